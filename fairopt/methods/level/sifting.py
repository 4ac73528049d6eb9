"""The only optimum of many users: those near a tie are solved alone, then all others are asked what they would choose.

Source: Bixby, Gregory, Lustig, Marsten and Shanno, Very large-scale linear programming: a case study in combining
interior point and simplex methods, 1992 (sifting).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.methods.level.box import Raised, nearest
from fairopt.methods.level.interior_point import Guess
from fairopt.methods.level.price_simplex import CLEARLY, price_vertex
from fairopt.methods.level.problem import BestResponse, LevelProblem, choose, floored
from fairopt.methods.level.smoothing import PricePath, smoothed_prices
from fairopt.program import Array

#: Prices of up to so many users need no sample.
FEW = 1500
#: Prices of a sample of at least so many, and one user in so many, come first.
SAMPLE, SAMPLED = 250, 8
#: So many users for each type are near a tie.
NEAREST = 20
#: Prices are made so sharp that one user in so many divides what it spends, or fewer.
SHARP = 4
#: The part of the way to smoothed prices by which other prices are moved, to where users do not tie.
ASIDE = 0.01
#: How often users near a tie are sought.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Sifted:
    """Positive ``prices`` (k,) near the optimum, and the ``optimum`` if there is no other, after ``steps``."""

    prices: Array
    optimum: Raised | None
    steps: int


def near_prices(problem: LevelProblem) -> Array:
    """Return positive prices (k,) near the optimum of a problem without demands. Errors: `OutOfTime`, with prices."""
    n = len(problem.rate)
    if n <= FEW:
        return smoothed_prices(problem)
    sample = problem.sample(max(n // SAMPLED, SAMPLE))
    # the fewer users stand for all, the less do their prices say
    squares = 3 + len(sample.rate).bit_length() // 2
    prices = PricePath(sample, smoothed_prices(sample, squares), squares).follow(squares)
    return PricePath(problem, prices, squares).follow((SHARP * n).bit_length())


def sifted(problem: LevelProblem, smoothed: Array) -> Sifted | None:
    """Return the only optimum of a problem without demands, or prices, from ``smoothed`` prices (k,) near it.

    None where the steps lead nowhere: users tie, or numbers are far apart.
    """
    k, n = problem.shape
    if n <= NEAREST * k:
        at = price_vertex(problem, smoothed)
        return None if at is None else _told(problem, at, smoothed, at.steps, None, np.arange(n))
    prices, steps = smoothed, 0
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
        only = np.count_nonzero(cost <= own / (1 - CLEARLY)) == n - len(active)
        if only or not (cost < own / (1 + CLEARLY)).any():
            return _told(problem, replace(at, only=at.only and only), smoothed, steps, choice, active)
    return None


def _told(
    problem: LevelProblem, at: Guess, smoothed: Array, steps: int, choice: BestResponse | None, active: Array
) -> Sifted:
    """Return the optimum with these ``active`` users if it is the only one, and prices where users do not tie."""
    if at.only:
        return Sifted(smoothed, Raised(at.prices, at.level, choice, active, at.shares, None), steps)
    prices = floored(problem, at.prices, 0.0)
    # at prices where users tie, what they choose hangs on last digits
    return Sifted(prices * (smoothed / prices) ** ASIDE, None, steps)
