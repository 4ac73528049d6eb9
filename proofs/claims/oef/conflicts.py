"""OEF Sec. 3.1: what becomes of efficiency, fairness and honesty on the paper's small examples, in exact numbers.

Every decision, every range over optima and every verdict on an allocation is certified, and accepted by
``proofs/verify.py``, which knows nothing of the solver.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.certificates import bound_of_optimum
from fairopt.datasets import oef_eq6, oef_example
from fairopt.evidence import throughput_of
from fairopt.models import CooperativeOEF, MaxEfficiency
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation
from fairopt.proofs.ledger.checking import proved, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, extent, extents, gains_of_lie, holds, of_share, only_optimum
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency
from fairopt.proofs.ledger.wording import all_print_as, both, listed, percent, printed_table, prints_as, rows
from fairopt.properties import EnvyFreeness, SharingIncentive

#: What the paper prints.
EQUATION_5 = "1 0; 0 0; 0 1"
EQUATION_6, TOTAL_6 = "1 .25; 0 .75", "5.25"
LIE_6, LIARS_6, GAIN_6, TOTAL_LIE_6 = "1 .375; 0 .625", "1.75", ".167", "4.875"
MAX_MIN_6, WORTH_MAX_MIN_6 = ".5 .5; .5 .5", "1.5 3"
DROP_6 = ".08"
FIGURE_2, FIGURE_2_LIE = "1 .25; 0 .75", "1 .33; 0 .67"


def eq5() -> Finding:
    """Eq. (5): the largest total and nothing else."""
    market, policy = oef_example(), MaxEfficiency()
    decision = decide(policy, market)
    stated = printed_table(EQUATION_5)
    best = market.utility(stated).sum() == decision.objective
    most = [extent(policy, decision, throughput_of(market, user))[1] for user in range(3)]
    fair = market.fair_utility()
    # whatever optimum is chosen: u2 below its own partition, u1 and u2 below what the shares of u3 would give them
    _, most_others = extent(policy, decision, throughput_of(market, 0) + throughput_of(market, 1))
    fast = {user: extent(policy, decision, of_share(market, user, 1)) for user in range(3)}
    no_incentive = most[1] < fair[1]
    envy = all(most[user] < market.speedup[user, 1] * fast[2][0] for user in (0, 1))
    lies = {user: gains_of_lie(policy, market, user, [1, 5]) for user in (0, 1)}
    fails = not any(holds(asked, market, stated) for asked in (SharingIncentive(), EnvyFreeness()))
    bad = no_incentive and envy and fails and all(least > 0 for least, _ in lies.values())
    unique = only_optimum(policy, decision)
    who = [market.users[user] for user in range(3) if extent(policy, decision, of_share(market, user, 0))[1] == 1]
    verdict = Ruling.REPRODUCED if market.users[0] in who and market.users[1] in who else Ruling.QUALIFIED
    gains = listed(f"u{user + 1} {least} to {high}" for user, (least, high) in lies.items())
    return Finding(
        verdict if best and bad else Ruling.REFUTED,
        f"The printed allocation reaches the optimum, {decision.objective}, and is {'' if unique else 'not '}the only "
        f"one: the slow GPU may go to u1 or u2, as the paper says (to {listed(who)} each in some optimum, being worth "
        f"{market.speedup[0, 0]} to everybody); the fast one has to go to u3. All that follows holds of every optimum, "
        f"so that the choice leaves nothing open: u2 has at most {most[1]} of the {both(fair[1])} of its own "
        f"partition, u1 and u2 (at most {most[0]} and {most[1]}, {most_others} together) envy u3, and reporting 5 on "
        f"the fast type gains {gains}.",
    )


def eq6() -> Finding:
    """Eq. (6): the largest total without envy."""
    market, policy = oef_eq6(), CooperativeOEF()
    decision = decide(policy, market)
    agree = all_print_as(decision.shares, EQUATION_6) and prints_as(decision.objective, TOTAL_6)
    unique = only_optimum(policy, decision)
    return Finding(
        Ruling.REPRODUCED if agree and unique else Ruling.QUALIFIED if agree else Ruling.REFUTED,
        f"{rows(decision.shares)}, total {both(decision.objective)}, "
        f"is {'the only' if unique else 'an'} optimum (primal, dual and the range of every share certified).",
    )


def eq6_lie() -> Finding:
    """Sec. 3.1: u1 of Eq. (6) reports 4."""
    market, policy = oef_eq6(), CooperativeOEF()
    told = market.misreport("u1", [1, 4])
    honest, misreported = decide(policy, market), decide(policy, told)
    true = market.utility(misreported.shares)
    least, _ = gains_of_lie(policy, market, 0, [1, 4])
    agree = (
        all_print_as(misreported.shares, LIE_6)
        and only_optimum(policy, misreported)
        and prints_as(true[0], LIARS_6)
        and prints_as(least / honest.utilities[0], GAIN_6)
        and prints_as(true.sum(), TOTAL_LIE_6)
        and all_print_as(market.utility(printed_table(MAX_MIN_6)), WORTH_MAX_MIN_6)
    )
    # whatever u2 reports, u1 must not envy it by u1's own report, which bounds what u2 can get
    ceiling = _most_unenvied(told, market)
    back = gains_of_lie(policy, told, 1, [1, 4])  # u2's speedups in ``told`` are its true ones
    both_lie = decide(policy, told.misreport("u2", [1, 4]))
    split = market.equal_split()
    reached = (told.misreport("u2", [1, 4]).utility(split).sum() == both_lie.objective) and all(
        low <= share <= high for share, (low, high) in zip(split.ravel(), extents(policy, both_lie), strict=True)
    )
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"The allocation becomes {rows(misreported.shares)}, the only optimum; u1 truly gets {both(true[0])}, "
        f"{percent(least / honest.utilities[0], 1)} more; the true total goes from {both(honest.objective)} to "
        f"{both(true.sum())}. A further finding, on the remark that u2 then has the incentive to lie as well, which "
        f"leads to the equal split with {listed(map(str, market.fair_utility()))}: it is "
        f"{'false' if ceiling == true[1] else 'open'}. No allocation that u1, reporting 4, does not envy gives u2 more "
        f"than {both(ceiling)}, which is what u2 {'has' if ceiling == true[1] else 'has not'} by telling the truth "
        f"({both(true[1])}). Should u2 say 4 for 5 nevertheless, the equal split is {'one' if reached else 'none'} of "
        f"the optima, and u2 truly gains between {both(back[0])} and {both(back[1])}.",
    )


def eq6_si() -> Finding:
    """Sec. 3.1: sharing incentive in place of envy-freeness."""
    market = oef_eq6()
    told = market.misreport("u1", [1, 4])
    honest, misreported = (_only(SharingIncentiveEfficiency(), each) for each in (market, told))
    totals = [market.utility(shares).sum() for shares in (honest, misreported)]
    gain = market.utility(misreported)[0] - market.utility(honest)[0]
    drop = totals[0] - totals[1]
    coefficient = market.speedup[1, 1]
    # as printed: u2 counts its fast GPU 4 times in its constraint, which still asks for 3
    printed = _AsPrinted()
    nothing_left = Exact().solve(printed.formulate(told.misreport("u2", [1, 4]), None)).status is Status.INFEASIBLE
    before = _only(printed, market)
    relative = {when: drop / total for when, total in zip(("before", "after"), totals, strict=True)}
    matching = [when for when, part in relative.items() if prints_as(part, DROP_6)]
    contradiction = coefficient != 4 and prints_as(market.fair_utility()[1], "3")
    holds_ = gain > 0 and drop > 0 and len(matching) > 0
    verdict = Ruling.INCONSISTENT if contradiction else Ruling.REPRODUCED if len(matching) == 2 else Ruling.QUALIFIED
    return Finding(
        verdict if holds_ else Ruling.REFUTED,
        f"Eq. (6) implies the coefficient {coefficient} for u2 (right side (1 + {coefficient})/2 = "
        f"{market.fair_utility()[1]}, as printed), not 4. With {coefficient}: the only optimum goes from "
        f"{rows(honest)} to {rows(misreported)}, u1 gains {both(gain)}, and the total drops from {both(totals[0])} "
        f"to {both(totals[1])}: by {drop / totals[0]} = {percent(relative['before'])} of what it was before the lie, "
        f"and by {drop / totals[1]} = {percent(relative['after'])} of what it is after it; the printed 8% is "
        f"{listed(f'the part of the total {when} the lie' for when in matching) or 'neither'}. With 4 as printed: the "
        f"honest optimum is {'the same' if (before == honest).all() else rows(before)}, and after the lie "
        f"{'no allocation satisfies both constraints' if nothing_left else 'there is another optimum'}.",
    )


def fig2() -> Finding:
    """Fig. 2 with notes 3 and 4: the allocations by (1,2), (1,4), and when u1 reports 3."""
    market, policy = Market.of([[1, 2], [1, 4]], capacity=[1, 1]), CooperativeOEF()
    told = market.misreport("u1", [1, 3])
    honest, misreported = decide(policy, market), decide(policy, told)
    unique = only_optimum(policy, honest) and only_optimum(policy, misreported)
    agree = all_print_as(honest.shares, FIGURE_2) and all_print_as(misreported.shares, FIGURE_2_LIE)
    envied = not holds(EnvyFreeness(), told, honest.shares)
    own, others = told.utility(honest.shares)[0], told.values(honest.shares)[0, 1]
    least, _ = gains_of_lie(policy, market, 0, [1, 3])
    good = agree and envied and least > 0
    return Finding(
        Ruling.REPRODUCED if good and unique else Ruling.QUALIFIED if good else Ruling.REFUTED,
        f"{rows(honest.shares)} becomes {rows(misreported.shares)}, each {'the only' if unique else 'an'} optimum; "
        f"by its report u1 would envy the former ({both(own)} against {both(others)}), and by its true speedups the "
        f"lie gains it {both(least)} on {both(honest.utilities[0])}.",
    )


# -- programs ----------------------------------------------------------------------------------------------------
class _AsPrinted(SharingIncentiveEfficiency):
    """The constraint of u2 in Sec. 3.1 as printed: its fast GPU counts 4 times, and 3 are asked for."""

    name = "sharing incentive as printed"

    def kept(self, problem: Market) -> tuple[Array, Array]:
        """Return the speedups of the constraints and what each asks for."""
        _, least = super().kept(problem)
        return problem.misreport("u2", [1, 4]).speedup, np.array([least[0], Fraction(3)], dtype=object)


def _only(policy: Policy, market: Market) -> Array:
    """Return the shares of the only optimum, certified."""
    decision = decide(policy, market)
    require(only_optimum(policy, decision), f"{policy.name} has one optimum on {rows(market.speedup)}")
    return decision.shares


def _most_unenvied(told: Market, true: Market) -> Fraction:
    """Return the most that u2 can truly get in any allocation in which u1, as it reports, does not envy u2."""
    p = Formulation("the most for u2")
    share = shares_of(p, told)
    p.maximize((true.speedup * share).sum(axis=1)[1])
    values = told.speedup @ share.T
    p.constrain("envy_free", values[0, 0] >= values[0, 1])
    program = p.program()
    solution = Exact().solve(program).require_optimal()
    proved(bound_of_optimum(program, solution))
    return Fraction(program.value(solution.point))
