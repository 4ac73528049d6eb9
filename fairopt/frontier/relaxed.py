"""Properties that may fail by epsilon, each in a unit of the user's own, so that a curve over epsilon is meaningful.

Epsilon stands alone in a row, never times a share: the best of a linear goal is then a concave, piecewise linear
function of epsilon, with rational breakpoints. (A factor 1 - epsilon on another user's shares would make it piecewise
rational.) At 0 the property holds. F_l is what user l's equal share is worth to it, pi_l its weight.

Where demands are limited, envy counts all GPUs of the other, as cooperative OEF does. That is stricter than the
property, which counts those that the envious user could use; allocations that have it are no convex set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.errors import NotSolved
from fairopt.problem import Market
from fairopt.program import Affine, Array, Formulation, Number
from fairopt.properties import Answer, ParetoEfficiency


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A property that may fail by epsilon.

    ``name`` is that of the property, ``short`` the head of a column, ``says`` a sentence for everybody, ``definition``
    its rows. ``constrain(p, market, share, epsilon)`` adds the rows that hold of ``share`` (n, k) if it fails by
    ``epsilon`` at most. ``epsilon(market, shares)`` is the least epsilon at which shares (n, k) have the property, both
    in Fractions or both in floats. ``variables(market, utilities)``: the values, at throughputs (n,), of the variables
    that the rows have beside shares and epsilon. ``efficient``: the curve is over efficient allocations only, and no
    row says so.

    >>> ENVY.epsilon(Market.of([[1, 2], [1, 5]], [1, 1]), np.array([[1, 0], [0, 1]]))
    Fraction(2, 3)
    """

    name: str
    short: str
    says: str
    definition: str
    constrain: Callable[[Formulation, Market, Affine, Affine], None]
    epsilon: Callable[[Market, Array], Number]
    variables: Callable[[Market, Array], Mapping[str, Fraction]] = lambda market, utilities: {}
    efficient: bool = False


def _envy_rows(p: Formulation, market: Market, share: Affine, epsilon: Affine) -> None:
    """Add a row for each ordered pair of users."""
    own, fair = (market.speedup * share).sum(axis=1), market.fair_utility()
    of_others = market.speedup @ share.T * (market.weight[:, None] / market.weight[None, :])
    slack = own[:, None] - of_others + epsilon * fair[:, None]
    p.constrain("envy_free", (slack >= 0).where(~np.eye(len(fair), dtype=bool)), equation=ENVY.definition)


def _envy(market: Market, shares: Array) -> Number:
    """Return the largest envy, of anybody of anybody."""
    theirs = market.speedup @ shares.T * (market.weight[:, None] / market.weight[None, :])
    envy = (theirs - market.utility(shares)[:, None]) / market.fair_utility()[:, None]
    np.fill_diagonal(envy, 0 * envy[0, 0])
    worst: Number = max(envy.ravel())
    return worst


#: Source: additive envy, Lipton, Markakis, Mossel and Saberi, On approximately fair allocations of indivisible goods,
#: 2004; weights, OEF Sec. 4.2.3.
ENVY = Relaxed(
    "envy_freeness",
    "EF",
    "Nobody envies by more than epsilon of what its own equal share is worth.",
    "E_l(x_l) >= E_l(pi_l / pi_i * x_i) - epsilon F_l for all users l, i",
    _envy_rows,
    _envy,
)


def _sharing_rows(p: Formulation, market: Market, share: Affine, epsilon: Affine) -> None:
    """Add a row for each user."""
    own, fair = (market.speedup * share).sum(axis=1), market.fair_utility()
    p.constrain("sharing_incentive", own + epsilon * fair >= fair, equation=SHARING.definition)


def _lack(market: Market, shares: Array) -> Number:
    """Return the largest lack, of anybody."""
    most: Number = max(0 * market.speedup[0, 0], *(1 - market.utility(shares) / market.fair_utility()))
    return most


#: Source: OEF Sec. 2.3.1 (3).
SHARING = Relaxed(
    "sharing_incentive",
    "SI",
    "Everybody gets at least 1 - epsilon of what its equal share is worth to it.",
    "E_l(x_l) >= (1 - epsilon) F_l for every user l",
    _sharing_rows,
    _lack,
)


def _throughput_rows(p: Formulation, market: Market, share: Affine, epsilon: Affine) -> None:
    """Add two rows for each user, which has at least the ``level`` per weight and not much more."""
    own, level = (market.speedup * share).sum(axis=1), p.variable("level")
    p.constrain("at_least", own >= level * market.weight, equation="E_l(x_l) >= pi_l level")
    most = level * market.weight + epsilon * (market.weight * _mean(market))
    p.constrain("at_most", own <= most, equation="E_l(x_l) <= pi_l (level + epsilon sum(F) / sum(pi))")


def _throughput_spread(market: Market, shares: Array) -> Number:
    """Return the spread of throughputs per weight."""
    per_weight = market.utility(shares) / market.weight
    spread: Number = (max(per_weight) - min(per_weight)) / _mean(market)
    return spread


def _mean(market: Market) -> Number:
    mean: Fraction = market.fair_utility().sum() / market.weight.sum()
    return mean


#: The least throughput per weight is the level. Source: OEF Eq. (9c), Sec. 4.2.3.
THROUGHPUT = Relaxed(
    "equal_throughput",
    "ET",
    "Throughputs per weight differ by at most epsilon of their mean in an equal split.",
    "E_l(x_l) / pi_l <= E_i(x_i) / pi_i + epsilon sum(F) / sum(pi) for all users l, i",
    _throughput_rows,
    _throughput_spread,
    lambda market, utilities: {"level": Fraction(min(utilities / market.weight))},
)


def _largest_gain(market: Market, shares: Array) -> Number:
    """Return the largest total gain that hurts nobody."""
    verdict = ParetoEfficiency().check(market, shares)
    if verdict.margin is None or verdict.unit == "GPUs":
        raise NotSolved(f"how far it is from Pareto efficiency is not known: {verdict.shown_by}")
    return -verdict.margin if verdict.answer is Answer.FAILS else 0 * verdict.margin


#: A goal that never falls when users get more has its largest value at a Pareto-efficient allocation. Alone, the
#: property therefore costs nothing, and the curve is level, without a row; epsilon says how far a policy is from it.
#: Source: OEF Sec. 2.3.1 (4).
EFFICIENCY = Relaxed(
    "pareto_efficiency",
    "PE",
    "No allocation that hurts nobody gains more than epsilon, summed over users in worths of their equal shares.",
    "sum_l (E_l(x'_l) - E_l(x_l)) / F_l <= epsilon for all feasible x' with E_l(x'_l) >= E_l(x_l)",
    lambda p, market, share, epsilon: None,
    _largest_gain,
    efficient=True,
)

#: All, in the order in which they are shown.
RELAXED: tuple[Relaxed, ...] = (ENVY, SHARING, THROUGHPUT, EFFICIENCY)
