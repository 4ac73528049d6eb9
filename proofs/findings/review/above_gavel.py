"""Cooperative OEF against Gavel: a bound for all markets, and for the printed range of speedups (Fig. 8)."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from fairopt.models import CooperativeOEF, MaxMin
from fairopt.problem import Market
from fairopt.proofs.claims.oef.printed_range import CUT, PRINTED_HIGH, PRINTED_LOW, GavelDual, most_above_gavel
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import exactly
from fairopt.proofs.ledger.wording import percent

#: Random markets of up to four users and three types, and as many tenants' markets in the printed range.
MARKETS = 120


def above_gavel() -> Finding:
    """By how much the total of a sharing-incentive allocation can exceed Gavel's."""
    proof = theorem("SharingIncentive", "sharing_incentive_above_gavel")
    dice, tightest = Random(15), Fraction(0)
    for _ in range(MARKETS):
        n, k = dice.randint(2, 4), dice.randint(2, 3)
        rows = [[dice.randint(1, 9) for _ in range(k)] for _ in range(n)]
        market = Market.of(rows, [dice.randint(1, 3) for _ in range(k)], weight=[dice.randint(1, 2) for _ in rows])
        above, dual = _above(market), GavelDual.of(market)
        require(above <= dual.most_above, f"the bound holds on {rows}")
        largest = max(max(own) / min(own) for own in zip(*market.speedup, strict=True))
        require(dual.spread <= largest, f"R is at most the largest ratio of two users' speedups on a type on {rows}")
        if dual.most_above > 0:
            tightest = max(tightest, above / dual.most_above)
    return Finding(
        Ruling.PROVED,
        f"For all sizes and weights ({proof}): with t Gavel's least ratio, f the fair shares and lambda its dual "
        "weights (there are some: duality), the least of which is 1, the total is at most Gavel's + (t - 1) sum_i "
        "(lambda_i - 1) f_i.\nGavel's "
        "being at least t sum_i f_i, the ratio of the totals is at most 1 + (1 - 1/t)(R - 1), where R is the mean of "
        "lambda by fair shares; it never was above the largest ratio of two users' speedups on one type.\nComputed on "
        f"{MARKETS} random markets of cooperative OEF, exactly: none is above the bound, and one reaches "
        f"{percent(tightest, 0)} of it.",
    )


def printed_range() -> Finding:
    """The same for all speedups in the range that OEF prints."""
    proof = theorem("SharingIncentive", "sharing_incentive_above_gavel")
    bound = most_above_gavel(PRINTED_LOW, PRINTED_HIGH, CUT)
    dice, most, largest = Random(8), Fraction(0), Fraction(0)
    for _ in range(MARKETS):
        market = _tenants(dice, dice.randint(3, 5))
        above, dual = _above(market), GavelDual.of(market)
        require(above <= dual.most_above <= bound, f"the bound holds on {market.speedup.tolist()}")
        most, largest = max(most, above), max(largest, dual.most_above)
    return Finding(
        Ruling.QUALIFIED,
        f"At most {percent(bound, 1)} above Gavel's. Proof in words (printed_range.py of proofs/claims/oef, on top of "
        f"{proof}), checked on {MARKETS} random markets of 3 to 5 tenants with speedups in the range, exactly: the "
        f"largest excess is {percent(most, 1)}, the largest bound for a single market {percent(largest, 1)}.",
    )


def _tenants(dice: Random, count: int) -> Market:
    rows = []
    for _ in range(count):
        fast = dice.choice([PRINTED_LOW, PRINTED_HIGH, Fraction(dice.randint(139, 215), 100)])
        rows.append([Fraction(1), dice.choice([Fraction(1), fast, (1 + fast) / 2]), fast])
    return Market.of(rows, [1, 1, 1])


def _above(market: Market) -> Fraction:
    """Return by how much, relatively, the total of cooperative OEF is above Gavel's; negative where it is below."""
    ours, theirs = (Fraction(exactly(policy, market).utilities.sum()) for policy in (CooperativeOEF(), MaxMin()))
    return ours / theirs - 1
