"""Which misreports are allowed, and where to look for one that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, TypeVar

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Misreports:
    """A set of reports (..., k) that a user may make instead of the truth (k,).

    ``allows(truth, report)`` says whether a report belongs to it (...,), ``into(truth, report)`` is the report moved
    into it.
    """

    name: str
    allows: Callable[[Array, Array], Any]
    into: Callable[[Array, Array], Array]


#: No entry is smaller than the truth. Source: OEF Sec. 2.3.1 (1).
LARGER = Misreports("larger", lambda truth, report: (report >= truth).all(axis=-1), np.maximum)
#: No entry is larger than the truth. Source: OEF Theorem 5.4 asks for larger ones only; slowing a job down is
#: Gandiva_fair's example in Sec. 3.4.
SMALLER = Misreports("smaller", lambda truth, report: (report <= truth).all(axis=-1), np.minimum)
#: Every entry where the user can run is positive.
ANYTHING = Misreports(
    "any",
    lambda truth, report: ((report > 0) | ((truth == 0) & (report == 0))).all(axis=-1),
    lambda truth, report: report,
)
#: All kinds, the narrow ones first.
EVERY_KIND = (LARGER, SMALLER, ANYTHING)


def in_turn(*streams: Iterable[Entry]) -> Iterator[Entry]:
    """Yield an entry of each stream in turn, as long as any has one."""
    return (entry for turn in zip_longest(*streams) for entry in turn if entry is not None)


@dataclass(frozen=True)
class CandidateReports:
    """The reports to try: coordinate moves, boundary moves and random ones, for one user of one market (in floats).

    ``fixed`` is the column that must keep its value, where speedups are normalised to the slowest type; else None.
    """

    market: Market
    user: int
    fixed: int | None

    #: Factors from slight to gross; a rule that depends on an order of users reacts to those that change the order.
    factors: ClassVar[tuple[float, ...]] = (1.05, 1 / 1.05, 1.4, 1 / 1.4, 2.0, 0.5, 5.0, 0.2)
    #: The relative distance of boundary moves from the boundary, on either side.
    nudge: ClassVar[float] = 1e-3

    @property
    def truth(self) -> Array:
        """The true row (k,)."""
        return np.asarray(self.market.speedup[self.user])

    @property
    def free(self) -> list[int]:
        """The columns that may be misreported by a factor: where the user can run, the fixed one left out."""
        return [j for j in range(len(self.truth)) if j != self.fixed and self.truth[j] > 0]

    def coordinate(self) -> Iterator[Array]:
        """Yield reports of running where the user cannot run, then those that change one entry, or all free ones."""
        for j in np.flatnonzero(self.truth == 0).tolist():
            if j != self.fixed:
                yield self._with(j, self.truth.max())
                yield self._with(j, self.truth[self.truth > 0].min() / 10)
        for factor in self.factors:
            for j in self.free:
                yield self._with(j, self.truth[j] * factor)
            if len(self.free) > 1:
                yield self._with(self.free, self.truth[self.free] * factor)

    def boundary(self) -> Iterator[Array]:
        """Yield reports just past another user's ratio of two types, where the order of users by it changes."""
        for other, theirs in enumerate(self.market.speedup):
            for j in self.free if other != self.user else ():
                for base in np.flatnonzero((self.truth > 0) & (theirs > 0)):
                    if base != j and theirs[j] > 0:
                        same = self.truth[base] * theirs[j] / theirs[base]
                        yield self._with(j, same * (1 - self.nudge))
                        yield self._with(j, same * (1 + self.nudge))

    def structured(self, kind: Misreports) -> Iterator[Array]:
        """Yield boundary and coordinate moves of a kind, one of each in turn."""
        moves = in_turn(self.boundary(), self.coordinate())
        return (report for report in moves if kind.allows(self.truth, report))

    def random(self, generator: np.random.Generator, count: int) -> Array:
        """Return random reports (count, k): the free entries scaled, most of them by little."""
        free = len(self.free)
        spread = generator.choice([0.1, 0.4, 1.0], (count, 1))
        chosen = generator.random((count, free)) < 0.7
        chosen |= ~chosen.any(axis=1, keepdims=True)  # where no entry was drawn, all entries change
        reports = np.tile(self.truth, (count, 1))
        reports[:, self.free] *= np.exp(generator.normal(0, 1, (count, free)) * spread * chosen)
        return reports

    def around(self, report: Array, step: float) -> Array:
        """Return the neighbours of a report (2 * free, k): each free entry one step up and down."""
        near = np.tile(report, (2 * len(self.free), 1))
        for place, j in enumerate(self.free):
            near[2 * place, j] *= 1 + step
            near[2 * place + 1, j] /= 1 + step
        return near

    def _with(self, columns: Any, value: Any) -> Array:
        report = self.truth.copy()
        report[columns] = value
        return report
