"""How much c of n users can gain who lie together: each at least so much, for every size of the coalition.

P is the part of all weight that the liars have together, p the least part of one of them, and R such that no user's
largest speedup is more than R times its least (in its own units). If each liar ends with at least g times what the
truth gives it, then g is bounded. The proofs go on from those for one liar, `fairopt.proofs.findings.liars.bounds`. U_s
is liar s's true throughput after the lie, a_s its bundle, W_s the whole cluster for it, each in units of its least
speedup.

`no_envy`: another user l leaves liar s at least U_s pi_l / (pi_s R^2) of what s likes, and another liar q leaves it
|a_q| >= U_q / R. So W_s >= U_s (1 + (1 - P) / (p_s R^2)) + sum_q U_q / R, and U_s >= g p_s W_s. Summing over the
liars, each W counts c - 1 times in the last sum: 1 >= g (p + (c - 1) p / R + (1 - P) / R^2).

`largest_least`: the liars keep the part t of their bundles, the others of theirs, and 1 - t of the cluster is divided
among the others. Where h is what all liars reach over their fair shares after the lie, and T the level at the truth,
h <= ((1 - P) h + P) T. With h = g T <= 1 / p: g <= (1 - P) / p + P. The larger the coalition, the less it gains.

`equal_throughput`: the same, with the rest of the liars' bundles handed to the others: R - (R - 1) P.

`equilibrium`: what the liars have after the lie costs at most 1 - (1 - P)^2 at the truth's prices: 2 - P.

`partial_allocation`: the liars hold parts of what an equilibrium of the told market gives them, which is at most 2 - P
times what the equilibrium at the truth gives the one that gains least. Of that the truth leaves it the part f, the
product over the others of (u / u')^(w_l / w_s): u what they have beside it, u' without it. The equilibrium being
proportionally fair, the sum of w_l u' / u is at most 1, so that f >= (1 - p)^((1 - p) / p) (arithmetic and geometric
mean). For one user that enters as several P = p.

`no_envy`, `largest_least`, `equal_throughput` and `equilibrium` are machine-checked: `proofs/theorems/Coalitions.v` and
`proofs/theorems/EquilibriumCoalitions.v`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.models import (
    CooperativeOEF,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    WaterFilling,
)
from fairopt.policy import Allocation, Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.findings.liars.bounds import spread
from fairopt.proofs.findings.liars.families import NEAR
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly, extent
from fairopt.proofs.ledger.wording import both, listed

Row = list[Fraction]
ONE = Fraction(1)
#: Users, liars and spreads of the members of a family that are decided.
MEMBERS = ((3, 2, 10), (4, 2, 10), (4, 3, 100))
#: Random lies of two users that each bound is asked of.
ASKED = 10


def no_envy(part: Any, together: Any, liars: int, spread: Any) -> Any:
    """Return the largest g under a policy without envy; ``part`` is the least p, ``together`` P.

    >>> no_envy(Fraction(1, 3), Fraction(1, 3), 1, 10) == Fraction(300, 102)
    True
    """
    return spread**2 / (part * spread**2 + (liars - 1) * part * spread + 1 - together)


def largest_least(part: Any, together: Any) -> Any:
    """Return the largest g where the least throughput over fair share is maximised; ``part`` is that of any liar."""
    return (1 - together) / part + together


def equal_throughput(together: Any, spread: Any) -> Any:
    """Return the largest g where all have the same throughput, speedups and reports being from 1 to ``spread``."""
    return spread - (spread - 1) * together


def equilibrium(together: Any) -> Any:
    """Return the largest g in a Fisher market with linear utilities."""
    return 2 - together


def partial_allocation(users: int, liars: int) -> Fraction:
    """Return a bound on g under partial allocation, for equal weights.

    >>> partial_allocation(2, 2), partial_allocation(3, 3)
    (Fraction(2, 1), Fraction(9, 4))
    """
    return (2 - Fraction(liars, users)) * Fraction(users, users - 1) ** (users - 1)


@dataclass(frozen=True)
class Coalition:
    """Markets by users n, liars c (the first) and spread R; the liars' reports; and g by a formula, worked out by hand.

    ``liar`` and ``told`` take c, R and the liar's number; ``most`` is the bound that g tends to, or does not reach.
    """

    policy: Policy
    liar: Callable[[int, Fraction, int], Row]
    other: Callable[[int, Fraction], Row]
    capacity: Callable[[int, int, Fraction], Row]
    told: Callable[[int, Fraction, int], Row]
    ratio: Callable[[int, int, Fraction], Fraction]
    most: Callable[[int, int, Fraction], Fraction]

    def checked(self, n: int, c: int, spread: int) -> Fraction:
        """Return g by exact decisions, whatever optima are chosen, certified; it is that of the formula.

        Errors: `NoLongerFollows` where it is another, or above the bound.
        """
        truth, told = self.markets(n, c, Fraction(spread))
        before, after = (decide(self.policy, each) for each in (truth, told))
        ratio = min(self._gain(truth, before, after, liar) for liar in range(c))
        expected, most = self.ratio(n, c, Fraction(spread)), self.most(n, c, Fraction(spread))
        require(ratio == expected, f"{self.policy.name}, n = {n}, c = {c}, R = {spread}: the formula")
        require(ratio <= most, f"{self.policy.name}: the bound")
        return ratio

    def markets(self, n: int, c: int, spread: Fraction) -> tuple[Market, Market]:
        """Return the market at the truth, and the one that the coalition tells."""
        others = [self.other(c, spread)] * (n - c)
        truth, told = (
            Market.of([*(rows(c, spread, liar) for liar in range(c)), *others], self.capacity(n, c, spread))
            for rows in (self.liar, self.told)
        )
        return truth, told

    def _gain(self, truth: Market, before: Allocation, after: Allocation, liar: int) -> Fraction:
        weights = np.full(truth.shape, Fraction(0), dtype=object)
        weights[liar] = truth.speedup[liar]
        return extent(self.policy, after, weights)[0] / extent(self.policy, before, weights)[1]


def _likes(types: int, type: int, worth: Fraction) -> Row:
    """Return speedups of 1 but for one type."""
    return [worth if each == type else ONE for each in range(types)]


def _no_envy(n: int, c: int, spread: Fraction) -> Fraction:
    """Return g: at the truth another user has ``each`` of each liar's type, and a liar the rest of its own alone."""
    each = (spread - 1 / spread) / (spread * (n - c) + spread + c - 1)
    return 1 / (1 - (n - c) * each)


def _largest_least(n: int, c: int, spread: Fraction) -> Fraction:
    """Return g: each liar gives up some of its own type, less if it seems to like it by 1 + NEAR only."""

    def kept(worth: Fraction, fair: Fraction) -> Fraction:
        # each liar gives up z, by which the others reach the level 1 + c z / (n - c)
        level = worth * n / (c * fair + worth * (n - c))
        return 1 - (level - 1) * (n - c) / c

    truth = kept(spread, (spread + c - 1 + (n - c) / spread) / n)
    return kept(1 + NEAR, (n + NEAR) / n) / truth


#: Each liar likes a type of its own by R, the others one more, in units so large that liars are left little.
COOPERATIVE = Coalition(
    CooperativeOEF(),
    liar=lambda c, R, s: _likes(c + 1, s, R),
    other=lambda c, R: [(R + 1) * each for each in _likes(c + 1, c, R)],
    capacity=lambda n, c, R: [*[ONE] * c, (n - c) / R],
    told=lambda c, R, s: [2 * each for each in _likes(c + 1, s, R)],
    ratio=_no_envy,
    most=lambda n, c, R: no_envy(Fraction(1, n), Fraction(c, n), c, R),
)
#: The same likes; each liar claims to like best what the others like, and its own type hardly more than the rest.
MAX_MIN = Coalition(
    MaxMin(),
    liar=COOPERATIVE.liar,
    other=lambda c, R: _likes(c + 1, c, R),
    capacity=COOPERATIVE.capacity,
    told=lambda c, R, s: [1 + NEAR if each == s else R if each == c else ONE for each in range(c + 1)],
    ratio=_largest_least,
    most=lambda n, c, R: largest_least(Fraction(1, n), Fraction(c, n)),
)
#: All liars like type 2, and hide it.
NONCOOPERATIVE = Coalition(
    NonCooperativeOEF(),
    liar=lambda c, R, s: [ONE, R],
    other=lambda c, R: [ONE, ONE],
    capacity=lambda n, c, R: [Fraction(n - c), Fraction(c)],
    told=lambda c, R, s: [ONE, 1 + NEAR],
    ratio=lambda n, c, R: (R * (n - c) + c) / ((1 + NEAR) * (n - c) + c),
    most=lambda n, c, R: equal_throughput(Fraction(c, n), R),
)
#: Each liar alone likes a type, of which there is little, and claims to like best what the others buy.
NASH = Coalition(
    NashWelfare(),
    liar=COOPERATIVE.liar,
    other=MAX_MIN.other,
    capacity=lambda n, c, R: [*[1 / (R * (n - c))] * c, ONE],
    told=lambda c, R, s: [ONE if each == s else R * (1 - NEAR) if each == c else ONE / 2 for each in range(c + 1)],
    ratio=lambda n, c, R: 2 - Fraction(c, n) - Fraction(n - c, n) / ((1 - NEAR) * R**2),
    most=lambda n, c, R: equilibrium(Fraction(c, n)),
)


def coalitions() -> Finding:
    """Any number of users lie together: bounds, and markets that reach them."""
    proofs = {
        name: theorem(file, f"{each}_coalition_ratio{rest}")
        for name, file, each, rest in (
            ("coop", "Coalitions", "cooperative_oef", ""),
            ("least", "Coalitions", "gavel", "_at_most"),
            ("equal", "Coalitions", "noncooperative_oef", ""),
            ("nash", "EquilibriumCoalitions", "nash_welfare", ""),
        )
    }
    coop, least, equal, nash = (_members(each) for each in (COOPERATIVE, MAX_MIN, NONCOOPERATIVE, NASH))
    above = listed(f"{name} {float(most):.3f}" for name, most in _asked().items())
    return Finding(
        Ruling.QUALIFIED,
        "n users of equal weight, c of whom lie, and each gains a factor of at least g. All bounds fall as c grows: "
        "more "
        "liars gain less each. What is the most under cooperative OEF for c > 1 is open.\nMax-min and water filling: "
        "at "
        f"most n - c + c/n ({proofs['least']}), which is the limit of {least}.\nNon-cooperative OEF, speedups and "
        f"reports from 1 to R: at most R - (R - 1) c/n ({proofs['equal']}), the limit of {equal}.\nNash welfare: at "
        f"most 2 - c/n ({proofs['nash']}), the limit of {nash}.\nCooperative OEF, oef-efficient: at most n R^2 / "
        "(R^2 + "
        f"(c - 1) R + n - c) ({proofs['coop']}), and n - c + 1 in the limit of {coop}.\n"
        "Partial allocation: at most (2 - c/n) (n / (n - 1))^(n - 1), below 2 e (proof in words: coalitions.py), which "
        "own-lies-together reaches for c = n.\nSecond-price trading, and whatever gives the fair share at the truth: "
        "less than n, since nobody has more than the whole cluster.\nMembers of families are certified, for every "
        f"optimum, and as worked out by hand; bounds, with weights, were asked of {ASKED} random lies of two users "
        f"each, the largest g being {above}.",
    )


def _members(family: Coalition) -> str:
    given = (f"{both(family.checked(*each))} with n = {each[0]}, c = {each[1]}, R = {each[2]}" for each in MEMBERS)
    return listed(given)


def _asked() -> dict[str, Fraction]:
    """Return the largest g of random lies, by policy; errors where one is above its bound."""

    def parts(market: Market) -> tuple[Fraction, Fraction]:
        weights = market.weight / market.weight.sum()
        return min(weights[:2]), weights[:2].sum()

    def normalised(truth: Market, told: Market) -> Fraction:
        return Fraction(max(truth.speedup.max(), told.speedup.max()))

    bounds: list[tuple[Policy, Callable[[Market, Market], Any]]] = [
        (CooperativeOEF(), lambda truth, told: no_envy(*parts(truth), 2, Fraction(spread(truth)))),
        (MaxMin(), lambda truth, told: largest_least(*parts(truth))),
        (WaterFilling(), lambda truth, told: largest_least(*parts(truth))),
        (NonCooperativeOEF(), lambda truth, told: equal_throughput(parts(truth)[1], normalised(truth, told))),
        (NashWelfare(), lambda truth, told: equilibrium(parts(truth)[1])),
        (PartialAllocation(), lambda truth, told: partial_allocation(len(truth.users), 2)),
    ]
    largest = {}
    for number, (policy, bound) in enumerate(bounds):
        largest[policy.name] = Fraction(0)
        for truth, told in _lies(number, weights=policy.name != PartialAllocation.name):
            before, after = exactly(policy, truth), exactly(policy, told)
            reached = (truth.speedup[:2] * after.shares[:2]).sum(axis=1)
            gain = min(Fraction(mine / own) for mine, own in zip(reached, before.utilities[:2], strict=True))
            require(gain <= bound(truth, told) * (1 + policy.rounding), f"{policy.name}: its bound")
            largest[policy.name] = max(largest[policy.name], gain)
    return largest


def _lies(seed: int, *, weights: bool) -> list[tuple[Market, Market]]:
    """Return markets of three or four users, speedups from 1 on, and those where the first two report others."""
    random, found = np.random.default_rng(seed), []
    for _ in range(ASKED):
        n, k = random.integers(3, 5), random.integers(2, 4)
        speedup: Array = random.choice([1, 2, 3, 5, 8], (n, k))
        told = speedup.copy()
        told[:2] = random.choice([1, 2, 3, 5, 8], (2, k))
        capacity = random.integers(1, 4, k).tolist()
        weight = random.integers(1, 3, n).tolist() if weights else None
        truth, lie = (Market.of(each.tolist(), capacity, weight=weight) for each in (speedup, told))
        found.append((truth, lie))
    return found
