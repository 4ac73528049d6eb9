"""Which of the ledger's theorems stay true where users have demands: bounds on how many GPUs each uses at once.

What survives in words. Envy-freeness is a constraint of Eq. (10), demands or not. Gavel's fair share is that of the
equal split, cut to the demand; it is feasible and has ratio 1, so that the largest least ratio is at least 1.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np

from fairopt.evidence import throughput_of
from fairopt.models import CooperativeOEF, MaxMin, NonCooperativeOEF
from fairopt.policy import Formulated
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.claims.oef.theorems import no_optimum_has
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly, extent, of_share
from fairopt.proofs.ledger.searching import as_in_oef, ordered_by_ratios
from fairopt.proofs.ledger.wording import listed, rows, speedups
from fairopt.properties import AdjacentTypes, AllocationProperty, Answer, EnvyFreeness, ParetoEfficiency
from fairopt.properties import SharingIncentive as Sharing

COOPERATIVE, NONCOOPERATIVE, MAX_MIN = CooperativeOEF(), NonCooperativeOEF(), MaxMin()
#: Two users who are alike, of whom one can use half a GPU at most; one GPU of each of two types.
HALF = Market.of([[1, 1], [1, 1]], [1, 1], demand=["1/2", 1])
#: Users in strict order of their ratios, speedups as in OEF Sec. 2.3.
ORDERED = Market.of([[1, 2, 3], [1, 3, 6]], [1, 1, 1], demand=["3/2", 1])
#: A market of non-cooperative OEF, and an extreme point of its optima with more than n + k - 1 = 3 shares.
SHARED = Market.of([[4, 2], [4, 1]], [1, 1], demand=["2/3", "3/2"])
POINT = np.array([["3/5", "1/15"], ["2/5", "14/15"]], dtype=object)
#: Random markets on which what survives is computed.
MARKETS = 40


def theorems_with_demands() -> Finding:
    """Which theorems survive demands, and a market against each of the others."""
    for lost, policy, market in (
        (Sharing(), COOPERATIVE, HALF),
        (ParetoEfficiency(), COOPERATIVE, HALF),
        (ParetoEfficiency(), NONCOOPERATIVE, HALF),
        (AdjacentTypes(), COOPERATIVE, ORDERED),
        (AdjacentTypes(), NONCOOPERATIVE, ORDERED),
    ):
        require(no_optimum_has(lost, policy, market), f"{policy.name} loses {lost.name} on {speedups(market)}")
        free = replace(market, demand=None)
        require(_has(lost, policy, free), f"without demands {policy.name} has {lost.name} on {speedups(market)}")
    for mode, user in ((COOPERATIVE, 1), (NONCOOPERATIVE, 1)):
        decision = decide(mode, ORDERED)
        slow, skipped, fast = (extent(mode, decision, of_share(ORDERED, user, type)) for type in range(3))
        require(min(slow[0], fast[0]) > 0 == skipped[1], f"the verifier accepts that u2 skips T2 under {mode.name}")
    for mode in (COOPERATIVE, NONCOOPERATIVE):
        most = extent(mode, decide(mode, HALF), throughput_of(HALF, 1))[1]
        require(most == Fraction(1, 2) < HALF.fair_utility()[1], f"the verifier accepts what u2 has under {mode.name}")
    require(ordered_by_ratios(ORDERED) and as_in_oef(ORDERED), "the users of ORDERED are in order")
    point = np.vectorize(Fraction, otypes=[object])(POINT)
    total = SHARED.utility(point).sum()
    program = NONCOOPERATIVE.formulate(SHARED, None)
    extreme = is_extreme(program, np.append(point.ravel(), SHARED.utility(point)[0]))
    require(extreme and total == exactly(NONCOOPERATIVE, SHARED).utilities.sum(), "POINT is an optimal extreme point")
    proof = theorem("Demands", "over_reporting_with_demands")
    _survivors()
    return Finding(
        Ruling.QUALIFIED,
        "Survive: that reports nowhere smaller than the truth never pay under non-cooperative OEF (Theorem 5.4), where "
        f"demands are told truly, for all sizes ({proof}, whose over_reporting_allowed is for any limits that allow "
        "parts of what they allow); that cooperative OEF is envy-free (a constraint) and Gavel sharing-incentive, with "
        f"fair shares cut to demands (in words); computed on {MARKETS} random markets.\nDo not survive, in any "
        "optimum: "
        f"on {_with_demands(HALF)}, sharing incentive (Theorem 5.1) and Pareto efficiency of two users under "
        "cooperative OEF, and Pareto efficiency of non-cooperative OEF (Theorem 5.3): the user with the small demand "
        f"holds the other down; on {_with_demands(ORDERED)}, Theorem 5.2 in both modes, though users are in strict "
        f"order of their ratios: cooperative OEF ends at {rows(exactly(COOPERATIVE, ORDERED).shares)}, "
        f"non-cooperative at {rows(exactly(NONCOOPERATIVE, ORDERED).shares)}.\nSec. 4.4's n + k - 1 fails in the "
        "non-cooperative mode too: "
        f"on {_with_demands(SHARED)}, {rows(point)} is an optimal extreme point with 4.",
    )


def _survivors() -> None:
    dice = Random(15)
    for _ in range(MARKETS):
        n, k = dice.randint(2, 3), dice.randint(2, 3)
        table = [[dice.randint(1, 5) for _ in range(k)] for _ in range(n)]
        demand = [dice.choice([Fraction(1, 2), Fraction(1), Fraction(3, 2)]) for _ in range(n)]
        market = Market.of(table, [1] * k, demand=demand)
        require(_has(EnvyFreeness(), COOPERATIVE, market), f"cooperative OEF is envy-free on {speedups(market)}")
        require(_has(Sharing(), MAX_MIN, market), f"max-min is sharing-incentive on {speedups(market)}")
        report = [value * dice.choice([Fraction(1), Fraction(3, 2), Fraction(3)]) for value in table[0]]
        before, after = (exactly(NONCOOPERATIVE, each).shares for each in (market, market.misreport(0, report)))
        gain = _throughput(market, after) - _throughput(market, before)
        require(gain <= 0, f"u1 gains nothing by {report} on {speedups(market)}")


def _throughput(market: Market, shares: Array) -> Fraction:
    return Fraction((market.speedup[0] * shares[0]).sum())


def _has(asked: AllocationProperty, policy: Formulated, market: Market) -> bool:
    return asked.check(market, exactly(policy, market).shares).answer is Answer.HOLDS


def _with_demands(market: Market) -> str:
    return f"{speedups(market)}, demands {listed(map(str, market.limit))}"
