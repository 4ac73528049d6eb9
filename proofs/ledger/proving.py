"""Functions that make the certificates by which a market refutes a claim, or return None where it does not.

Unless its name says otherwise, a function speaks of every optimum of a policy.

A float solver sifts the candidates first; what it lets pass is decided exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.certificates import DOMINANCE, MISREPORT, OPTIMALITY, PROPERTY, Certificate, bound_of_optimum
from fairopt.errors import NotCapable
from fairopt.evidence import extreme, throughput_of
from fairopt.models import SecondPriceTrading
from fairopt.policy import Formulated, Policy
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Program, Sense
from fairopt.proofs.ledger.checking import found as there
from fairopt.proofs.ledger.measuring import exactly, extreme_as_written, of_share
from fairopt.proofs.ledger.searching import FalseReport
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.over_optima import over_optima
from fairopt.properties.shares.pareto_efficiency import largest_gain

#: What a float solver's answer may miss by.
LITTLE = 1e-7

Certificates = dict[str, Certificate]
MOST, LEAST = Sense.MAXIMIZE, Sense.MINIMIZE


class SharingIncentiveEfficiency(Formulated):
    """The largest total throughput among allocations that give everybody at least its fair share.

    Source: OEF Sec. 3.1, Theorem 3.3.
    """

    name = "sharing-incentive-efficiency"
    source = "OEF Sec. 3.1"

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (4) with a row for each user's fair share."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        p.maximize((problem.speedup * share).sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (4)")
        own, least = self.kept(problem)
        p.constrain("sharing_incentive", (own * share).sum(axis=1) >= least, equation="E_l >= E_l(equal)")
        return p.program()

    def kept(self, problem: Market) -> tuple[Array, Array]:
        """Return the speedups (n, k) that the constraints count with, and the least that each user must get (n,)."""
        return problem.speedup, problem.fair_utility()


def sifted(policy: Policy, market: Market) -> Array:
    """Return the shares that a policy decides in floats, or exactly where it needs no solver."""
    return allocate(policy, market).shares.astype(float)


# -- about every optimum of a policy on a market -----------------------------------------------------------------
def dominated(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """No optimum is Pareto-efficient: an allocation gives everybody at least the most that it gets at any optimum."""

    def certified(market: Market) -> Certificates | None:
        if ParetoEfficiency().check(market, sifted(policy, market)).answer is Answer.HOLDS:
            return None
        decision = exactly(policy, market)
        optima = [extreme(policy, decision, throughput_of(market, i), MOST) for i in range(len(market.users))]
        most = np.array([each.value for each in optima], dtype=object)
        program = largest_gain(market, most, market.fair_utility())
        solution = Exact().solve(program)
        if solution.x is None or not program.value(solution.point) > 0:
            return None
        return {"": Certificate(DOMINANCE, market, decision.shares, program.variable("share", solution.point), optima)}

    return certified


def sometimes_dominated(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """An optimum is not Pareto-efficient; others may be."""

    def certified(market: Market) -> Certificates | None:
        decision = exactly(policy, market)
        lacking = over_optima(policy, decision, ParetoEfficiency()).lacking
        if lacking is None:
            return None
        optimal = policy.certify(decision)  # its duals prove every optimum optimal
        if optimal.kind is not OPTIMALITY:
            raise NotCapable(f"{policy.name} has no certificate that could be that of another optimum")
        verdict = ParetoEfficiency().check(market, lacking)
        return {
            "optimal": Certificate(optimal.kind, **{**optimal.parts, "allocation": lacking}),
            "": ParetoEfficiency().certify(market, lacking, verdict),
        }

    return certified


def with_gap(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """In every optimum a user holds some of two types and nothing of one between them."""

    def certified(market: Market) -> Certificates | None:
        held = sifted(policy, market) > LITTLE
        for i, (a, b, c) in _places(market, 3):
            if not held[i, a] or held[i, b] or not held[i, c]:
                continue
            decision = exactly(policy, market)
            left, right = (extreme(policy, decision, of_share(market, i, j), LEAST) for j in (a, c))
            between = extreme(policy, decision, of_share(market, i, b), MOST)
            if left.value > 0 and right.value > 0 and between.value == 0:
                names = [market.types[j] for j in (a, c, b)]
                which = (f"least-{names[0]}", f"least-{names[1]}", f"most-{names[2]}")
                return dict(zip(which, (left, right, between), strict=True))
        return None

    return certified


def not_from_the_left(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """In every optimum the first user holds some of a type, but not all of a slower one."""

    def certified(market: Market) -> Certificates | None:
        shares, capacity = sifted(policy, market)[0], market.as_(float).capacity
        for slow, fast in combinations(range(market.shape[1]), 2):
            if not shares[fast] > LITTLE or not shares[slow] < capacity[slow] - LITTLE:
                continue
            decision = exactly(policy, market)
            some = extreme(policy, decision, of_share(market, 0, fast), LEAST)
            most = extreme(policy, decision, of_share(market, 0, slow), MOST)
            if some.value > 0 and most.value < market.capacity[slow]:
                return {f"least-{market.types[fast]}": some, f"most-{market.types[slow]}": most}
        return None

    return certified


def many_nonzeros(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """Every optimum has more than n + k - 1 shares that are not zero; the certificate is that of one of them."""

    def certified(market: Market) -> Certificates | None:
        n, k = market.shape
        places = np.argwhere(sifted(policy, market) > LITTLE).tolist()
        if len(places) <= n + k - 1:
            return None
        decision = exactly(policy, market)
        least = (extreme(policy, decision, of_share(market, i, j), LEAST).value for i, j in places)
        return {"": policy.certify(decision)} if all(value > 0 for value in least) else None

    return certified


def an_extreme_point_with_many_nonzeros(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """An optimum has more than n + k - 1 shares that are not zero and is an extreme point; others may have fewer."""

    def certified(market: Market) -> Certificates | None:
        n, k = market.shape
        decision = exactly(policy, market)
        optimal, program = policy.certify(decision), policy.formulate(market, None)
        if optimal.kind is not OPTIMALITY:
            raise NotCapable(f"{policy.name} has no certificate that could be that of another optimum")
        for i, j in np.ndindex(n, k):
            end = extreme(policy, decision, of_share(market, i, j), LEAST)
            if (end.allocation > 0).sum() > n + k - 1 and is_extreme(program, end.allocation.ravel()):
                return {"": Certificate(optimal.kind, **{**optimal.parts, "allocation": end.allocation})}
        return None

    return certified


def envious(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """In every optimum one user envies another, the same two in all of them."""

    def certified(market: Market) -> Certificates | None:
        if EnvyFreeness().check(market, sifted(policy, market)).answer is Answer.HOLDS:
            return None
        decision = exactly(policy, market)
        for i, other in permutations(range(len(market.users)), 2):
            weights = throughput_of(market, i)
            weights[other] = -market.speedup[i] * market.weight[i] / market.weight[other]
            nearest = extreme(policy, decision, weights, MOST)
            if nearest.value < 0:
                return {"": nearest}
        return None

    return certified


def below_fair_share(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """The most that some user gets at any optimum is less than its fair share."""

    def certified(market: Market) -> Certificates | None:
        if SharingIncentive().check(market, sifted(policy, market)).answer is Answer.HOLDS:
            return None
        decision = exactly(policy, market)
        for i, fair in enumerate(market.fair_utility()):
            most = extreme(policy, decision, throughput_of(market, i), MOST)
            if most.value < fair:
                return {"": most}
        return None

    return certified


def rewarded(policy: Policy) -> Callable[[FalseReport], Certificates | None]:
    """By its true speedups a user gets more at every optimum after a false report than at any before it."""

    def certified(misreport: FalseReport) -> Certificates | None:
        market, i = misreport.market, misreport.user
        told = market.misreport(i, misreport.report)
        both = [sifted(policy, each)[i] @ market.speedup[i].astype(float) for each in (market, told)]
        if not both[1] > both[0] + LITTLE:
            return None
        report = np.array([Fraction(value) for value in misreport.report], dtype=object)
        decisions = [exactly(policy, each) for each in (market, told)]
        if policy.choices(decisions[0]) is None:  # it optimises nothing, and so has no choice
            gain = (market.speedup[i] * (decisions[1].shares[i] - decisions[0].shares[i])).sum()
            return {
                "": Certificate(
                    MISREPORT, market, policy.name, market.users[i], report, gain, *(map(policy.certify, decisions))
                )
            }
        own = throughput_of(market, i)
        truth, untruth = (extreme(policy, d, own, sense) for d, sense in zip(decisions, (MOST, LEAST), strict=True))
        gain = untruth.value - truth.value
        return (
            {"": Certificate(MISREPORT, market, policy.name, market.users[i], report, gain, truth, untruth)}
            if gain > 0
            else None
        )

    return certified


# -- the largest total above everybody's fair share --------------------------------------------------------------
def rewarded_above_fair_shares(misreport: FalseReport) -> Certificates | None:
    """As `rewarded`, for the largest total that gives everybody its fair share; certificates of bare programs.

    Two say what the largest totals are, on the truth and on the lie; two how far the liar's throughput then goes.
    """
    policy, market, i = SharingIncentiveEfficiency(), misreport.market, misreport.user
    told = market.misreport(i, misreport.report)
    both = [sifted(policy, each)[i] @ market.speedup[i].astype(float) for each in (market, told)]
    if not both[1] > both[0] + LITTLE:
        return None
    found: Certificates = {}
    ends = []
    for name, each, sense in (("truth", market, MOST), ("lie", told, LEAST)):
        decision = exactly(policy, each)
        end = extreme_as_written(policy, decision, throughput_of(market, i), sense)
        ends.append(end.value)
        program, solution = there(decision.program, "the program"), there(decision.solution, "its solution")
        total = bound_of_optimum(program, solution)
        found |= {f"{name}-total": total, f"{name}-{'most' if sense is MOST else 'least'}": end}
    return found if ends[1] > ends[0] else None


def larger_total_above_fair_shares(market: Market) -> Certificates | None:
    """An allocation that gives everybody its fair share has a larger total than trading's."""
    trading, best = SecondPriceTrading(), SharingIncentiveEfficiency()
    before, after = exactly(trading, market), exactly(best, market)
    if not market.utility(after.shares).sum() > market.utility(before.shares).sum():
        return None
    judged = Certificate(PROPERTY, market, after.shares, SharingIncentive.name, Answer.HOLDS.value)
    return {"trading": trading.certify(before), "better": judged}


def larger_total_than_trading(policy: Formulated) -> Callable[[Market], Certificates | None]:
    """In every optimum of a policy the total is larger than where trading ends (trading ignores demands)."""

    def certified(market: Market) -> Certificates | None:
        trading = SecondPriceTrading()
        free = replace(market, demand=None)
        traded = exactly(trading, free)
        least = extreme(policy, exactly(policy, market), market.speedup, LEAST)
        if not least.value > traded.utilities.sum():
            return None
        return {"least": least} | ({"trading": trading.certify(traded)} if market.demand is None else {})

    return certified


# -- trading, which has one allocation ---------------------------------------------------------------------------
def envious_after_trading(market: Market) -> Certificates | None:
    """Somebody envies somebody after trading."""
    return _after_trading(market, EnvyFreeness())


def dominated_after_trading(market: Market) -> Certificates | None:
    """Another allocation gives nobody less than trading does, and somebody more."""
    return _after_trading(market, ParetoEfficiency())


def _after_trading(market: Market, asked: EnvyFreeness | ParetoEfficiency) -> Certificates | None:
    policy = SecondPriceTrading()
    decision = exactly(policy, market)
    verdict = asked.check(market, decision.shares)
    if verdict.answer is Answer.HOLDS:
        return None
    return {"trace": policy.certify(decision), "": asked.certify(market, decision.shares, verdict)}


def _places(market: Market, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    n, k = market.shape
    return ((i, types) for i in range(n) for types in combinations(range(k), count))
