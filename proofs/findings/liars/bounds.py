"""Proved bounds on what a lie can pay, over all markets of a class.

With p the liar's part of all weight, and R such that no user's largest speedup is more than R times its least (each in
its own units). The proofs, with U the liar's true throughput after the lie, a its bundle, x_l that
of another user l, w and w_l their true speedups, pi and pi_l their weights, W = w.m the whole cluster for the liar:

`envy_free`: the others do not envy the liar, so that w_l.x_l >= (pi_l / pi) w_l.a. Scale each row so that its least
entry is 1. Then w.x_l >= |x_l| >= w_l.x_l / R >= (pi_l / pi) |a| / R >= (pi_l / pi) U / R^2. Summing over l and adding
U, W >= U (1 + (1 - p) / (p R^2)). Told the truth the liar has at least p W (it envies nobody and nothing useful is
left). The ratio is at most R^2 / (p R^2 + 1 - p), below 1/p. A user that enters as several, between which its weight is
divided, has no more: w_l.x_l >= (pi_l / pi_s) w_l.a_s of each of them adds up to the same inequality.

`fair_share`, n users of equal weight: only w_l.x_l >= w_l.m / n is known. Scale w_l such that w <= w_l <= R^2 w, and
write y_l = w.x_l. Then w_l.m >= w_l.x_l + (W - y_l) and w_l.x_l <= R^2 y_l give (n - 1) R^2 y_l >= W - y_l. Summing, U
<= W (1 - (n - 1) / ((n - 1) R^2 + 1)); told the truth the liar has at least W / n.

`max_min`, whatever the speedups: let fair shares count 1, so that the liar has U <= 1/p after the lie, and the others
at least 1 each. Let it keep the part t of a, the others the part t of what they have, and divide the part 1 - t of the
whole cluster among them by weight: they have at least t + (1 - t) / (1 - p). Where t U is the same, it is U / ((1 - p)
U + p), and at the truth the liar has no less: the ratio is at most (1 - p) U + p <= (1 - p) / p + p.

`equal_throughput`: speedups, and reports, between 1 and R in common units. Let E' be the level after the lie r, so that
r.a = pi E' >= |a|. If U <= pi E', level U / pi can be reached by all at the truth. Else let the liar keep the part t of
a, and hand the rest to the others by weight: by their true speedups they rise by at least (1 - t) |a| / (1/p - 1) pi
each per unit of weight. With t where levels meet, the truth's level is at least that, and the ratio at most (U + c) /
(pi E' + c), c = |a| p / (1 - p). Since U <= R |a| and |a| <= pi E', this is at most R - (R - 1) p.

`equilibrium` (Fisher market with linear utilities; that the ratio is below 2 is by Chen, Deng, Zhang and Zhang,
Incentive ratios of Fisher markets, ICALP 2012): count money such that all have 1 together, the liar p, and types in
units of one. Let p_j be the prices at the truth, q_j after the lie, r_j = q_j / p_j. Who buys type j after the lie
bought at the truth only types with r at least r_j. So the others' spending after the lie, times r, adds up to no more
than what they had at the truth costs after the lie, which is at most 1. With (p_j - c q_j)^2 >= 0 for c = 1 - p, their
bundles after the lie cost at least 2 c (1 - p) - c^2 = (1 - p)^2 at the truth's prices, and a at most 1 - (1 - p)^2. At
the truth nothing is worth more than the liar's throughput over p per unit of money: the ratio is at most 2 - p, also
for a user that enters as several, between which its money is divided.

`vanishing`, in the same market: let J be the types with q_j < p_j. Who bought some of J at the truth buys only of J
after the lie, so that sum_J (p_j - q_j) <= p - s, s the liar's spending on J after the lie, and a costs at most p + (p
- s) max_J a_j at the truth's prices. Where each type takes at least f of all money at the truth, a_j <= p / (f - p) on
J: the ratio is at most 1 + p / (f - p), so that gains vanish as 1/n.

All but `vanishing` are machine-checked: `Incentives.v` and, for `fair_share`, `TradingIncentives.v` in
`proofs/theorems`. Several liars together, and a user that enters as several under partial allocation:
`proofs/findings/liars/coalitions.py`.

Source: our own, where none is named; `proofs/findings/liars` has the markets that reach them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.problem import Market
from fairopt.program import Number


def envy_free(part: Any, spread: Any) -> Any:
    """Return the largest ratio under a policy without envy, of a liar with ``part`` of all weight; see above.

    >>> from fractions import Fraction
    >>> envy_free(Fraction(1, 2), 10), float(envy_free(Fraction(1, 3), 10**6))
    (Fraction(200, 101), 2.999999999994)
    """
    return spread**2 / (part * spread**2 + 1 - part)


def fair_share(users: int, spread: Any) -> Any:
    """Return a bound on the ratio where all that is known is that everybody has its fair share, for equal weights.

    >>> from fractions import Fraction
    >>> fair_share(2, Fraction(10)) == envy_free(Fraction(1, 2), 10)
    True
    """
    others = (users - 1) * spread**2
    return users * (others - users + 2) / (others + 1)


def max_min(part: Any, most: Any = None) -> Any:
    """Return the largest ratio where the least throughput over fair share is maximised; see above.

    ``most`` bounds what the liar has after the lie, over its fair share: 1 / ``part``, or `fair_share`.

    >>> from fractions import Fraction
    >>> max_min(Fraction(1, 2)), max_min(Fraction(1, 3)), max_min(Fraction(1, 2), fair_share(2, Fraction(10)))
    (Fraction(3, 2), Fraction(7, 3), Fraction(301, 202))
    """
    return (1 - part) * (1 / part if most is None else most) + part


def equal_throughput(part: Any, spread: Any) -> Any:
    """Return the largest ratio where all have the same throughput, speedups being from 1 to ``spread``; see above.

    >>> from fractions import Fraction
    >>> equal_throughput(Fraction(1, 2), 5)
    Fraction(3, 1)
    """
    return spread - (spread - 1) * part


def equilibrium(part: Any) -> Any:
    """Return the largest ratio in a Fisher market, of a liar with ``part`` of all money; see above.

    >>> from fractions import Fraction
    >>> equilibrium(Fraction(1, 2))
    Fraction(3, 2)
    """
    return 2 - part


def vanishing(part: Any, least: Any) -> Any:
    """Return a bound on the ratio in a Fisher market in which each type takes at least ``least`` of all money.

    >>> from fractions import Fraction
    >>> vanishing(Fraction(1, 64), Fraction(1, 4)), vanishing(Fraction(1, 2), Fraction(1, 4))
    (Fraction(16, 15), Fraction(3, 2))
    """
    return min(2 - part, 1 + part / (least - part)) if least > part else 2 - part


def spread(market: Market) -> Number:
    """Return R: by how much the largest speedup of a user exceeds its least, at most; infinite with a speedup of 0.

    >>> print(spread(Market.of([[1, 2], [2, 3]], capacity=[1, 1])))
    2
    """
    with np.errstate(divide="ignore"):
        least = market.speedup.min(axis=1)
    ratio: Number = float("inf") if not least.min() > 0 else (market.speedup.max(axis=1) / least).max()
    return ratio
