"""The only optimum of many users: those near a tie are solved alone, then all others are asked what they would choose.

Source: Bixby, Gregory, Lustig, Marsten and Shanno, Very large-scale linear programming: a case study in combining
interior point and simplex methods, 1992 (sifting).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.level.box import Raised, nearest
from fairopt.methods.level.price_simplex import CLEARLY, price_vertex
from fairopt.methods.level.problem import LevelProblem, choose, floored
from fairopt.methods.level.smoothing import Path, smoothed_prices
from fairopt.program import Array

#: Up to so many users, all are near a tie.
FEW = 150
#: Prices of a sample of at least so many, and one user in so many, come first.
SAMPLE, SAMPLED = 250, 8
#: So many users for each type are near a tie.
NEAREST = 20
#: Prices are made so sharp that one user in so many divides what it spends, or fewer.
SHARP = 4
#: How often users near a tie are sought.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Sifted:
    """The only ``optimum``, found in so many ``steps``."""

    optimum: Raised
    steps: int


def near_prices(problem: LevelProblem) -> Array:
    """Return positive prices (k,) near the optimum of a problem without demands."""
    n = len(problem.rate)
    if n <= FEW:
        return smoothed_prices(problem)
    sample = problem if n <= SAMPLE else problem.sample(max(n // SAMPLED, SAMPLE))
    # the fewer users stand for all, the less do their prices say
    squares = 3 + len(sample.rate).bit_length() // 2
    prices = smoothed_prices(sample, squares)
    if n > SAMPLE:
        prices = Path(sample, prices, squares).follow(squares)
    return Path(problem, prices, squares).follow((SHARP * n).bit_length())


def sifted(problem: LevelProblem, prices: Array) -> Sifted | None:
    """Return the only optimum of a problem without demands, from ``prices`` (k,) near it; None where there are several.

    None, too, where the steps lead nowhere: users tie, or numbers are far apart.
    """
    k, n = problem.shape
    if n <= NEAREST * k:
        at = price_vertex(problem, prices)
        return None if at is None else Sifted(Raised(at.prices, at.level, None, np.arange(n), at.shares, None), at.steps)
    steps = 0
    for _ in range(ROUNDS):
        choice = choose(problem, prices, 1.0)
        core = nearest(choice.margin, NEAREST * k)
        active = np.flatnonzero(core)
        at = price_vertex(problem.select(active), prices, *choice.held(~core, k))
        if at is None:
            return None
        steps += at.steps
        prices = floored(problem, at.prices, 0.0)
        cost = problem.need * prices[:, None]
        own = cost[choice.high.type, np.arange(n)]
        own[active] = 0.0
        if np.count_nonzero(cost * (1 - CLEARLY) <= own) == n - len(active):
            return Sifted(Raised(at.prices, at.level, choice, active, at.shares, None), steps)
        if not (cost * (1 + CLEARLY) < own).any():
            return None
    return None
