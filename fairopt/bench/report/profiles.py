"""Performance profiles: which part of all instances a contender solved within a factor of the fastest.

At factor 1 they show how often a contender is the fastest, at the right end how much it solves. They compare with the
best contender only: leaving one out may change the order of the others, so that they do not rank contenders (Gould and
Scott, A note on performance profiles for benchmarking software, ACM Transactions on Mathematical Software 43(2), 2016).

Source: Dolan and More, Benchmarking optimization software with performance profiles, Mathematical Programming 91,
201-213 (2002), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairopt.bench.report.statistics import CLOCK_STEP, Floats, seconds_of
from fairopt.errors import BadInput


@dataclass(frozen=True, eq=False)
class Profile:
    """The curve of one contender: a step function, constant from each factor up to the next.

    ``factors`` (m,) ascend from 1; ``parts`` (m,) are the parts of all instances solved within them. An instance that
    nobody solved stays among all instances, so that a curve ends at the part that the contender solved.
    """

    factors: Floats
    parts: Floats

    def within(self, factor: float) -> float:
        """Return the part of instances solved within ``factor`` times the best; 0 below 1."""
        place = int(np.searchsorted(self.factors, factor, side="right"))
        return float(self.parts[place - 1]) if place else 0.0


def to_the_best(seconds: ArrayLike, solved: ArrayLike) -> Floats:
    """Return each time as a multiple of the best on its instance (contenders, instances); infinite where not solved.

    ``seconds`` and ``solved`` have that shape too; the time of what was not solved is not looked at. Ties are ties:
    every contender at the best time has factor 1. The paper's r_{p,s}, its r_M being infinity.

    Errors: `BadInput` for shapes that differ, for no contender, and for a time that is negative or not finite.
    """
    times, done = np.asarray(seconds, dtype=float), np.asarray(solved, dtype=bool)
    if times.ndim != 2 or times.shape != done.shape:
        problem = f"times of shape {times.shape} have statuses of shape {done.shape}"
        raise BadInput(problem, remedy="Give both as (contenders, instances)")
    if not len(times):
        raise BadInput("there are no contenders", remedy="A profile compares at least one")
    times = np.where(done, np.maximum(seconds_of(np.where(done, times, 0.0)), CLOCK_STEP), np.inf)
    best = times.min(axis=0)
    return np.asarray(np.divide(times, best, out=np.full_like(times, np.inf), where=done), dtype=float)


def profiles(seconds: ArrayLike, solved: ArrayLike) -> list[Profile]:
    """Return the profile of each contender over the same instances; `BadInput` where there is no instance."""
    factors = to_the_best(seconds, solved)
    if not factors.shape[1]:
        raise BadInput("there are no instances", remedy="A profile is a part of at least one")
    return [_profile(row) for row in factors]


def _profile(row: Floats) -> Profile:
    reached, counts = np.unique(row[np.isfinite(row)], return_counts=True)
    parts = np.cumsum(counts) / row.size
    if not reached.size or reached[0] > 1:  # never the fastest: the curve begins at the bottom
        reached, parts = np.concatenate(([1.0], reached)), np.concatenate(([0.0], parts))
    return Profile(reached, parts)
