"""How much cooperative OEF can lose: against its own Pareto improvements, and against the largest total.

The Pareto loss of an allocation is 1 - T / T', with its total T and the largest total T' of those that leave nobody
worse off. A family on two types, for m >= 1: m users of ratio 1, users s = 1, ..., m of ratio R (2s + 1) / (m + s + 1),
one of ratio R^2, with m (R/2 + 1) slow GPUs and m + 5/4 fast ones. By the closed form in `two_types` the only optimum
gives each of the first R/4 + 1 slow GPUs, each of the next R/4 slow and one fast, and the last 5/4 fast, for R large.

Let m be a multiple of 4. The users s <= m/4 give up their fast GPU for as many slow ones as their ratio, in all at most
R m (m + 8) / (16 (m + 2)) of them, since (2s + 1) / (m + s + 1) <= (2s + 1) / (m + 2). Users s > m/2 have R m / 8
slow ones, which is enough for m >= 4, and take fast ones for them at their ratios, all at least 2 R / 3: at most
3 m (m + 8) / (32 (m + 2)) fast ones. So m (5m - 8) / (32 (m + 2)) fast GPUs are left over for the last user, and nobody
has lost. The last user's 5/4 are all of the total but for a part that vanishes as R grows, so that T' / T is at least
1 + m (5m - 8) / (40 (m + 2)) in the limit, which has no bound: the Pareto loss comes as near to 1 as one likes.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.models import CooperativeOEF, NonCooperativeOEF
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.findings.mathematics.two_types import Users
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Figure, Finding, Measure, Ruling
from fairopt.proofs.ledger.measuring import decide, only_optimum
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency
from fairopt.proofs.ledger.wording import both, listed, percent, rows, speedups

POLICY = CooperativeOEF()
#: m of the family, by linear programs, and by the closed form alone.
SOLVED, LARGE = (2, 3, 4), (8, 20, 60, 200)


class NobodyWorse(SharingIncentiveEfficiency):
    """The largest total that leaves nobody worse off than some utilities."""

    def __init__(self, least: Array) -> None:
        self.least = least

    def kept(self, problem: Market) -> tuple[Array, Array]:
        """Return the speedups, and those utilities."""
        return problem.speedup, self.least


def family(m: int) -> tuple[Users, Fraction, Fraction]:
    """Return users and GPUs of the family, with R = 10000 m."""
    scale = 10000 * m
    middle = [Fraction(scale * (2 * s + 1), m + s + 1) for s in range(1, m + 1)]
    return Users.of([*[1] * m, *middle, scale**2]), Fraction(m * scale, 2) + m, m + Fraction(5, 4)


def improved(users: Users, held: Array) -> Fraction:
    """Return the largest total that leaves nobody worse off, if the last user has all that is saved.

    Slow GPUs go to the least ratios first; who has none needs fast ones. That is best for the last user, who gains most
    by a fast GPU and holds nothing slow.
    """
    slow, need, total = held[:-1, 0].sum(), Fraction(0), Fraction(0)
    for ratio, (a, b) in zip(users.ratio, held[:-1], strict=False):
        utility = a + ratio * b
        paid = min(slow, utility)
        slow, need, total = slow - paid, need + (utility - paid) / ratio, total + utility
    return Fraction(total + users.ratio[-1] * (held[:, 1].sum() - need))


def everybody() -> Finding:
    """Everybody could have more at once: by a program of the largest common factor, and by hand."""
    market = Market.of([[4, 5], [0, 1], [4, 8]], [1, 1])
    held = decide(POLICY, market)
    require(only_optimum(POLICY, held), "no other optimum")
    more = decide(NonCooperativeOEF(), replace(market, weight=held.utilities))  # what each has, times the same factor
    (factor,) = {*(more.utilities / held.utilities)}
    by_hand = market.utility(np.array([[1, 0], [0, Fraction(4, 11)], [0, Fraction(7, 11)]], dtype=object))
    require((by_hand == Fraction(12, 11) * held.utilities).all(), "12/11 of each by hand")
    require(factor == Fraction(12, 11), "no larger common factor")
    return Finding(
        Ruling.PROVED,
        f"On {speedups(market)}, the only optimum is {rows(held.shares)}. {rows(more.shares)} gives everybody "
        f"{both(factor)} times as much, and no allocation gives all of them a larger multiple: both decided exactly "
        "and "
        "certified, the multiple by hand as well. Two users are too few, as they are Pareto-efficient "
        f"({theorem('SharingIncentive', 'two_users_pareto_efficient')}). How large the multiple can be is open.",
    )


def pareto_loss() -> Finding:
    """The family, by linear programs and in closed form, and the bound."""
    bound = theorem("PriceOfEnvy", "cooperative_oef_total")
    shown = []
    for m in (*SOLVED, *LARGE):
        users, *gpus = family(m)
        market, held = users.market(*gpus), users.optimum(*gpus)
        scale = 10000 * m
        want = [[Fraction(scale, 4) + 1, 0]] * m + [[Fraction(scale, 4), 1]] * m + [[0, Fraction(5, 4)]]
        require((held == np.array(want, dtype=object)).all(), f"the optimum of the family for m = {m}")
        hull = users.hull()
        require(
            hull[-1] == 2 * m and hull[-2] == m and gpus[0] / gpus[1] < users.points()[-1][0], "one edge of the hull"
        )
        total, best = (market.speedup * held).sum(), improved(users, held)
        if m in SOLVED:
            decision = decide(POLICY, market)
            require((decision.shares == held).all() and only_optimum(POLICY, decision), f"the only optimum, m = {m}")
            above = decide(NobodyWorse((market.speedup * held).sum(axis=1)), market)
            require((market.speedup * above.shares).sum() == best, f"the best improvement for m = {m}")
        shown.append((2 * m + 1, 1 - total / best))
    losses = listed(f"{percent(loss, 1)} (n = {n})" for n, loss in shown)
    return Finding(
        Ruling.QUALIFIED,
        f"1, never reached: with n users and equal weights it is at most 1 - 1/n, as the total is at least the n-th "
        f"part of the largest ({bound}). It comes as near to 1 as one likes, on two types already: users of ratio 1, "
        "as many of rising ratios who share both types alike, and one of a far larger ratio (the family in losses.py, "
        f"where the proof in words stands, checked on {len(shown)} markets).\nOf the total of the best improvement "
        "that "
        f"hurts nobody, the only optimum lacks {losses}.\nTwo ways agree: linear programs, certified, up to n = "
        f"{2 * SOLVED[-1] + 1}; and the closed form with a greedy exchange.",
    )


def price() -> Finding:
    """The price of envy-freeness: the theorem, and exact optima of its family."""
    cited = [theorem("PriceOfEnvy", name) for name in ("cooperative_oef_total", "price_of_envy_freeness")]
    weighted = theorem("PriceOfEnvy", "sharing_incentive_total")
    shown = []
    for n, ratio in ((2, 100), (3, 100), (5, 1000), (8, 1000)):
        market = Market.of([*[[1, ratio]] * (n - 1), [1, ratio**2]], [1, 1])
        total = (market.speedup * decide(POLICY, market).shares).sum()
        require(n * total <= (1 + ratio) * (n - 1 + ratio), "the bound of Coq's lemma")
        users = Users.of([*[ratio] * (n - 1), ratio**2])
        require(total == (market.speedup * users.optimum(1, 1)).sum(), "the closed form")
        shown.append(f"{float((1 + ratio**2) / total):.3f} (n = {n}, R = {ratio})")
    return Finding(
        Ruling.PROVED,
        f"n, for every n: no market has more ({cited[0]}), and for every e > 0 there is one with at least n / (1 + e) "
        f"({cited[1]}): two types, speedup 1 on the first, one GPU of each; n - 1 users (1, R), one (1, R^2). So n - 1 "
        "users (1, 1), one (1, b), whose ratio tends to n/2, are not the worst.\nExact optima, certified, which are "
        f"those of the closed form on two types: {listed(shown)}.\nWith weights it is at most the sum of the weights "
        f"over the least ({weighted}).",
        figures=(
            Figure(POLICY.name, Measure.EFFICIENCY_AT_LEAST, "1/n", "any, equal weights"),
            Figure(POLICY.name, Measure.EFFICIENCY_AT_MOST, "1/n", "two types, in the limit"),
        ),
    )


def six_users() -> Finding:
    """The instance of six users that a search had found."""
    ratios = ["17/20", "6/5", "82/5", "27", "28", "1860"]
    users, gpus = Users.of(ratios), (Fraction(18, 5), Fraction(1, 3))
    market, held = users.market(*gpus), users.optimum(*gpus)
    decision = decide(POLICY, market)
    require((decision.shares == held).all() and only_optimum(POLICY, decision), "the only optimum")
    above = decide(NobodyWorse((market.speedup * held).sum(axis=1)), market)
    total, best = (market.speedup * held).sum(), (market.speedup * above.shares).sum()
    require(best == improved(users, held), "the greedy improvement")
    return Finding(
        Ruling.PROVED,
        f"On {speedups(market)}, the only optimum is {rows(held)}, in all {both(total)}. {rows(above.shares)} has "
        f"{both(best)} and leaves nobody worse off: {percent(best / total - 1, 1)} more. A linear program, certified, "
        "and a greedy exchange agree.",
    )
