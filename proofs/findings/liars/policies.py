"""How much one liar can gain, policy by policy: the families decided exactly, the bounds asked of random markets.

The proofs of the bounds are in words, in `fairopt.proofs.findings.liars.bounds`. Here each is asked of random markets
and reports that are decided exactly: one ratio above its bound would end the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fairopt.errors import NotSolved
from fairopt.models import (
    CooperativeOEF,
    DominantResourceFairness,
    EfficientOEF,
    EqualSplit,
    GavelIsolated,
    GavelProportional,
    HierarchicalWaterFilling,
    Kai,
    Kueue,
    MaxEfficiency,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
    SlurmFairTree,
    SlurmMultifactor,
    VolcanoCapacity,
    VolcanoHdrf,
    VolcanoProportion,
    WaterFilling,
    YarnCapacity,
)
from fairopt.policy import Policy
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.program import Array
from fairopt.proofs.findings.liars import families
from fairopt.proofs.findings.liars.bounds import envy_free, equal_throughput, fair_share, max_min, spread, vanishing
from fairopt.proofs.findings.liars.families import NEAR, Family
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Figure, Finding, Measure, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly
from fairopt.proofs.ledger.wording import both, listed

#: Random markets and reports that a bound is asked of.
ASKED = 60
#: Users and spreads of the members of a family that are decided.
MEMBERS = ((2, 3), (2, 10), (3, 10), (4, 10))
#: A bound on the ratio from the true market, the market after the lie, and what the policy decides on both.
Bound = Callable[[Market, Market, Any, Any], Any]


def _part(market: Market) -> Fraction:
    return Fraction(market.weight[0] / market.weight.sum())


def lies(seed: int, count: int, *, normalised: bool = False, weights: bool = True) -> list[tuple[Market, Array]]:
    """Return random markets of two or three users and types, each with a report of the first user.

    Half of the reports are near another user's speedups, where choices change. ``normalised``: speedups of 1 or more.
    """
    random, found = np.random.default_rng(seed), []
    for number in range(count):
        n, k = random.integers(2, 4, 2)
        speedup = random.choice([1, 1, 2, 3, 5, 8, 20], (n, k)).tolist()
        capacity, weight = random.integers(1, 5, k).tolist(), random.choice([1, 1, 2, 3], n).tolist()
        told = random.choice([1, 2, 3, 5, 8, 20], k).tolist() if number % 2 else speedup[-1]
        report = [Fraction(int(v)) * (1 + Fraction(int(random.integers(-1, 2)), 50)) for v in told]
        report = [max(v, Fraction(1)) for v in report] if normalised else report
        market = Market.of(speedup, capacity, weight=weight if weights else None)
        found.append((market, np.array(report, dtype=object)))
    return found


def asked(policy: Policy, bound: Bound, told: list[tuple[Market, Array]]) -> tuple[int, Fraction]:
    """Return how many lies were decided exactly, and the largest ratio; errors where one is above its bound."""
    most, count = Fraction(1), 0
    for market, report in told:
        after = market.misreport(0, report)
        try:
            before, then = exactly(policy, market), exactly(policy, after)
        except NotSolved:
            continue
        truth, lie = ((market.speedup[0] * each.shares[0]).sum() for each in (before, then))
        require(lie <= bound(market, after, before, then) * truth * (1 + policy.rounding), f"{policy.name}: its bound")
        count += 1
        most = max(most, Fraction(lie / truth)) if truth > 0 else most
    return count, most


def members(family: Family, shapes: tuple[tuple[int, int], ...] = MEMBERS) -> str:
    """Return in words what exact and certified decisions on members of a family give."""
    given = (f"{both(family.checked(n, spread))} with n = {n} and R = {spread}" for n, spread in shapes)
    return listed(given)


def _checked(policy: Policy, bound: Bound, told: list[tuple[Market, Array]]) -> str:
    count, most = asked(policy, bound, told)
    return f"checked on {count} random lies, the largest ratio {float(most):.3f}"


PROOF = "in words in proofs/findings/liars/bounds.py"
CERTIFIED = "(certified, for every optimum, and equal to the formula worked out by hand)"


def unread() -> Finding:
    """Reports of speedups that a rule does not read gain nothing; demands that it reads may."""
    plain: list[Policy] = [EqualSplit(), GavelIsolated(), GavelProportional()]
    users, types = ("A", "B", "C"), ["T1", "T2"]
    gangs = Gangs.of([*"AAAAABBBCCCC"], [1] * 5 + [2] * 3 + [1] * 4, users=users, types=types)
    owed = Entitlements.of(users, types, gangs=gangs)
    queues = Market.of([[1, 2], [1, 3], [2, 1]], capacity=[6, 3], users=users, types=types, entitlements=owed)
    rules: list[Policy] = [DominantResourceFairness(), Kai(), Kueue(), SlurmFairTree(), SlurmMultifactor()]
    rules += [VolcanoCapacity(), VolcanoHdrf(), VolcanoProportion(), YarnCapacity()]
    others = [(queues, np.array(row, dtype=object)) for row in ([7, 1], [1, 7], [3, 3])]
    for policies, told in ((plain, lies(1, ASKED)), (rules, others)):
        for policy, (market, report) in product(policies, told):
            same = exactly(policy, market).shares == exactly(policy, market.misreport(0, report)).shares
            require(same.all(), f"{policy.name} does not read speedups")
    given = []
    for gpus in (10, 100):
        market = Market.of([[1, 1000], [1, 1]], [gpus - 1, 1], demand=[1, 1])
        lie = Market.of([[1, 1000], [1, 1]], [gpus - 1, 1], demand=[gpus, 1])
        truth, after = (decide(EqualSplit(), each).shares for each in (market, lie))
        ratio = market.utility(after)[0] / market.utility(truth)[0]
        require(ratio == Fraction(1000 * (gpus - 1) + 1, 1000 + gpus - 1), "the formula")
        given.append(f"{both(ratio)} with {gpus} GPUs")
    return Finding(
        Ruling.QUALIFIED,
        f"The ratio is 1: {listed(each.name for each in (*plain, *rules))} do not read speedups; checked: {ASKED} "
        "random reports change no share under the first three, and none on a market of gangs under the others.\nA "
        "demand is read: on (1, R), (1, 1), T - 1 GPUs of type 1 and one of type 2, with demands 1 and 1, who "
        "claims T has (R (T - 1) + 1) / (R + T - 1) times its throughput under equal-split, since it may leave the "
        f"slow ones of its GPUs unused: {listed(given)} at R = 1000. So no bound holds for demands.",
        figures=of_liars(("equal-split",), "1", "1", "any"),
    )


def of_liars(policies: Sequence[str], least: str, most: str | None, scope: str) -> tuple[Figure, ...]:
    """Return the incentive ratio of policies: what is reached, or in the limit, and the bound, if one is proved."""
    told = {Measure.INCENTIVE_AT_LEAST: least, Measure.INCENTIVE_AT_MOST: most}
    return tuple(Figure(name, which, value, scope) for name in policies for which, value in told.items() if value)


def partial_allocation() -> Finding:
    """Partial allocation is truthful."""
    told = lies(2, ASKED // 2)
    count, most = asked(PartialAllocation(), lambda *_: 1, told)
    require(most == 1, "no lie pays")
    return Finding(
        Ruling.QUALIFIED,
        "The ratio is 1, a theorem of Cole, Gkatzelis and Goel (EC 2013): a payment in GPUs makes what a user is left "
        "with its own utility times what only the others report. Proof in words, checked on "
        f"{count} random lies decided exactly: none pays.",
        figures=of_liars(("partial-allocation",), "1", "1", "any"),
    )


def max_efficiency() -> Finding:
    """The largest total: over-reports have no bound, under-reports never pay."""
    given = []
    for much in (10, 1000):
        market = Market.of([[2, much], [1, much + 1]], [1, 1])
        after = market.misreport(0, [2, much + 2])
        truth, lie = ((market.speedup[0] * decide(MaxEfficiency(), each).shares[0]).sum() for each in (market, after))
        require(lie / truth == Fraction(much + 2, 2), "the formula")
        given.append(f"{lie / truth} at M = {much}")
    under = [(m, np.minimum(r, m.speedup[0])) for m, r in lies(3, ASKED) if _no_ties(m)]
    count, most = asked(MaxEfficiency(), lambda *_: 1, [(m, r) for m, r in under if _no_ties(m.misreport(0, r))])
    require(most == 1, "no smaller report pays")
    return Finding(
        Ruling.QUALIFIED,
        "Larger reports: none, gains have no bound. On (2, M), (1, M + 1), one GPU of each type, user 1 reports "
        f"(2, M + 2) and has M + 2 instead of 2: {listed(given)} (certified). Smaller reports: 1, since each type goes "
        f"to who reports most for it. Proof in words, checked on {count} random lies without ties.",
        figures=of_liars(("max-efficiency",), "unbounded", None, "any"),
    )


def _no_ties(market: Market) -> bool:
    return all(sorted(column)[-1] > sorted(column)[-2] for column in market.speedup.T.tolist())


def noncooperative() -> Finding:
    """Equal throughput in common units: R - (R - 1) p at most."""
    told = lies(4, ASKED, normalised=True)
    checked = _checked(
        NonCooperativeOEF(),
        lambda market, after, *_: equal_throughput(_part(market), max(market.speedup.max(), after.speedup.max())),
        told,
    )
    larger = [(market, np.maximum(report, market.speedup[0])) for market, report in told]
    asked(NonCooperativeOEF(), lambda *_: 1, larger)
    slow = Market.of([[1], [1]], [1])
    truth, lie = (exactly(NonCooperativeOEF(), each).shares[0, 0] for each in (slow, slow.misreport(0, ["1/999"])))
    require(lie / truth == 2 * Fraction(999, 1000), "one type")
    return Finding(
        Ruling.PROVED,
        f"{theorem('Incentives', 'noncooperative_oef_incentive_ratio')}; {PROOF}, equal_throughput; {checked}.\nIt is "
        "reached in the limit: on (1, R), n - 1 times (1, 1), n - 1 GPUs of type 1 and one of type 2, user 1 reports "
        "(1, 1 + e), and the ratio is (R (n - 1) + 1) / ((1 + e) (n - 1) + 1), which tends to R - (R - 1) / n; at e = "
        f"{NEAR}: {members(families.NONCOOPERATIVE)} {CERTIFIED}.\nLarger reports: 1 "
        f"({theorem('EqualEfficiency', 'noncooperative_oef_over_reporting')}; the same lies made larger: none pays).\n"
        "Where the slowest type is not 1 for all, who reports less on every type has all of the cluster in the limit, "
        "n times what it has among n users that are alike, and no bound holds where others are slow.",
        figures=(
            *of_liars(("oef-noncooperative",), "R-(R-1)/n", "R-(R-1)/n", "speedups and reports from 1 to R"),
            *of_liars(("oef-noncooperative",), "unbounded", None, "any"),
        ),
    )


def cooperative() -> Finding:
    """Envy-free rules, cooperative OEF among them: R^2 / (p R^2 + 1 - p) at most."""
    checked = _checked(CooperativeOEF(), lambda market, *_: envy_free(_part(market), spread(market)), lies(5, ASKED))
    efficient = replace(families.COOPERATIVE_OVER, policy=EfficientOEF())
    require(all(efficient.checked(*each) for each in MEMBERS), "the same under oef-efficient")
    free = ("oef-cooperative", "oef-efficient")
    proofs = [theorem("Incentives", each) for each in ("envy_free_incentive_ratio", "cooperative_oef_incentive_ratio")]
    return Finding(
        Ruling.PROVED,
        f"{listed(proofs)}; {PROOF}, envy_free; {checked}.\nLarger reports reach it: on (R, 1), n - 1 times (R + 1) "
        "(1, R), one GPU of type 1 and (n - 1) / R of type 2, user 1 reports (2 R, 2), and the ratio is n R^2 / "
        f"(R^2 + n - 1): {members(families.COOPERATIVE_OVER)} {CERTIFIED}, and the same under oef-efficient.\nSmaller "
        f"ones reach it in the limit: user 1 reports (1 / R + e, 1), at e = {NEAR}: "
        f"{members(families.COOPERATIVE_UNDER)}.\nWith speedup 1 on the slowest type kept, on three types, the ratio "
        "tends to n R / (R + n - 1): (1, 2, 1), n - 1 times (1, 2 + e, R), e, 1 and (n - 1) (2 + 2 e) / R GPUs, "
        f"user 1 reports (1, 2 + 2 e, 1): {members(families.COOPERATIVE_NORMALISED, ((2, 10), (3, 10)))}; what the "
        "largest is there is unknown.",
        figures=(
            *of_liars(free, "n*R*R/(R*R+n-1)", "n*R*R/(R*R+n-1)", "speedups within a factor R"),
            *of_liars(free, "n", "n", "any, equal weights"),
        ),
    )


def nash() -> Finding:
    """Fisher markets with equal incomes: 2 - p at most."""

    def bound(market: Market, after: Market, before: Any, then: Any) -> Any:
        money = before.evidence.prices * market.capacity
        part = _part(market)
        return min(vanishing(part, (money / money.sum()).min()), envy_free(part, spread(market)))

    return Finding(
        Ruling.PROVED,
        f"{theorem('Incentives', 'nash_welfare_incentive_ratio')}, where each type has a price; {PROOF}, "
        f"equilibrium; {_checked(NashWelfare(), bound, lies(6, ASKED))}. That it is below 2 was known (Chen, Deng, "
        "Zhang and Zhang, Incentive ratios of Fisher markets, ICALP 2012).\nIt is reached in the limit: on (1, R), n "
        "- 1 times (R, 1), one GPU of type 1 and 1 / (R (n - 1)) of type 2, user 1 reports ((1 - e) R, 1), and the "
        f"ratio tends to 2 - 1/n - (1 - 1/n) / R^2; at e = {NEAR}: {members(families.NASH)} {CERTIFIED}.\nFor a given "
        "R it is unknown between that and the lesser of 2 - p and the bound of rules without envy.\nWhere each type "
        "takes at least the part f of all money at the truth, the ratio is at most 1 + p / (f - p), so that gains "
        "vanish as 1/n (proof in words: vanishing; checked on the same lies).",
        figures=of_liars(("nash-welfare",), "2-1/n", "2-1/n", "any, equal weights"),
    )


def max_min_family() -> Finding:
    """Max-min and water filling: n - 1 + 1/n in the limit, exactly; for two users for every R."""

    def bound(market: Market, *_: Any) -> Any:
        equal = (market.weight == market.weight[0]).all()
        most = fair_share(len(market.users), Fraction(spread(market))) if equal else None
        return max_min(_part(market), most)

    told = lies(7, ASKED)
    for market, report in told[: ASKED // 2]:
        lie = market.misreport(0, report)
        require(
            (exactly(MaxMin(), lie).utilities == exactly(WaterFilling(), lie).utilities).all(), "the same utilities"
        )
    alike = [market for market, _ in told if (market.weight == 1).all()]
    for market in alike:
        mine, theirs = (exactly(each, market).utilities for each in (MaxMin(), HierarchicalWaterFilling()))
        require((mine == theirs).all(), "the same utilities without groups")
    return Finding(
        Ruling.PROVED,
        f"{theorem('Incentives', 'gavel_incentive_ratio_at_most')}, for each policy that maximises the least ratio "
        f"to the fair share; {PROOF}, max_min; {_checked(MaxMin(), bound, told)}.\nWith positive speedups max-min, "
        "water-filling, and without groups hierarchical-water-filling give everybody the same (checked on "
        f"{ASKED // 2} and {len(alike)} markets).\nIt is reached in the limit: on (R, 1), n - 1 times (1, R), one GPU "
        "of type 1 and (n - 1) / R of type 2, user 1 reports (1 + e, R), and the ratio tends to (n - 1) R^2 / (R^2 "
        f"+ n - 1) + 1/n; at e = {NEAR}: {members(families.MAX_MIN)} {CERTIFIED}.\nFor two users that is (3 R^2 + 1) "
        "/ (2 R^2 + 2), the largest for every R; for more, the largest for a given R is unknown between that and "
        "((n - 1) F + 1) / n, F that of fair_share.",
        figures=of_liars(("max-min", "water-filling"), "n-1+1/n", "n-1+1/n", "any, equal weights"),
    )


def trading() -> Finding:
    """Second-price trading: below n, and n in the limit."""
    shapes = ((2, 10), (3, 10), (4, 10), (4, 1000))
    told = lies(8, 4 * ASKED, weights=False)
    checked = _checked(
        SecondPriceTrading(), lambda market, *_: fair_share(len(market.users), Fraction(spread(market))), told
    )
    return Finding(
        Ruling.QUALIFIED,
        "Upper bound, for n users of equal weight: n ((n - 1) (R^2 - 1) + 1) / ((n - 1) R^2 + 1), since no trade hurts "
        "anybody and the others keep the worth of their equal shares "
        f"({theorem('TradingIncentives', 'second_price_trading_incentive_ratio')}); {PROOF}, fair_share; {checked}.\n"
        "Lower bound: (1, R), n - 1 times (2, 1), (n - 1) / 2 GPUs of type 1 and one of type 2; user 1 reports (2 - "
        "e, 1), which turns the order of types round, so that it sells type 1 for 2 of type 2 instead of paying "
        f"about R / 2 for one. The ratio tends to n (R + 1/2) / (R + n - 1/2) from R = 10 on; at e = {NEAR}: "
        f"{members(families.TRADING, shapes)} {CERTIFIED}.\nFor a given R it is unknown between the two.",
        figures=of_liars(("second-price-trading",), "n", "n", "any, equal weights"),
    )
