"""Which misreports are allowed, and where to look for one that pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Protocol

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array


class Misreports(Protocol):
    """A set of reports that a user may make instead of the truth."""

    name: ClassVar[str]

    def allows(self, truth: Array, report: Array) -> Array:
        """Whether a report (..., k) belongs to the set (...,)."""
        ...

    def into(self, truth: Array, report: Array) -> Array:
        """Return a report (..., k) moved into the set."""
        ...


class Larger:
    """No entry is smaller than the truth.

    Source: OEF Sec. 2.3.1 (1).
    """

    name: ClassVar[str] = "larger"

    def allows(self, truth: Array, report: Array) -> Array:
        """Whether no entry is smaller than the truth."""
        return np.asarray(np.all(report >= truth, axis=-1))

    def into(self, truth: Array, report: Array) -> Array:
        """Return the report with smaller entries raised to the truth."""
        return np.maximum(truth, report)


class Smaller:
    """No entry is larger than the truth.

    Source: OEF Theorem 5.4 asks for larger ones only; slowing a job down is Gandiva_fair's example in Sec. 3.4.
    """

    name: ClassVar[str] = "smaller"

    def allows(self, truth: Array, report: Array) -> Array:
        """Whether no entry is larger than the truth."""
        return np.asarray(np.all(report <= truth, axis=-1))

    def into(self, truth: Array, report: Array) -> Array:
        """Return the report with larger entries lowered to the truth."""
        return np.minimum(truth, report)


class Anything:
    """Every positive report."""

    name: ClassVar[str] = "any"

    def allows(self, truth: Array, report: Array) -> Array:
        """Whether every entry where the user can run is positive."""
        return np.asarray(np.all((report > 0) | ((truth == 0) & (report == 0)), axis=-1))

    def into(self, truth: Array, report: Array) -> Array:
        """Return the report as it is."""
        return report


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

    def pretended(self) -> Iterator[Array]:
        """Yield reports of running where the user cannot run."""
        for j in np.flatnonzero(self.truth == 0):
            for size in (self.truth.max(), self.truth[self.truth > 0].min() / 10):
                if j != self.fixed:
                    report = self.truth.copy()
                    report[j] = size
                    yield report

    def coordinate(self) -> Iterator[Array]:
        """Yield reports that change one entry, or all free entries together."""
        yield from self.pretended()
        for factor in self.factors:
            for j in self.free:
                yield self._scaled([j], factor)
            if len(self.free) > 1:
                yield self._scaled(self.free, factor)

    def boundary(self) -> Iterator[Array]:
        """Yield reports just past another user's ratio of two types, where the order of users by it changes."""
        for other in range(len(self.market.users)):
            theirs = self.market.speedup[other]
            if other == self.user:
                continue
            for j in self.free:
                for base in range(len(self.truth)):
                    if base == j or not self.truth[base] > 0 or not theirs[base] > 0 or not theirs[j] > 0:
                        continue
                    same = self.truth[base] * theirs[j] / theirs[base]
                    for side in (1 - self.nudge, 1 + self.nudge):
                        report = self.truth.copy()
                        report[j] = same * side
                        yield report

    def structured(self) -> Iterator[Array]:
        """Yield boundary and coordinate moves, one of each in turn."""
        for pair in zip_longest(self.boundary(), self.coordinate()):
            yield from (report for report in pair if report is not None)

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

    def _scaled(self, columns: list[int], factor: float) -> Array:
        report = self.truth.copy()
        report[columns] = report[columns] * factor
        return report
