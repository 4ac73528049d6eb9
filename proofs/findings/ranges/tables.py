"""Measured throughputs: up to which error each policy keeps what it has, exactly, and what being robust costs."""

from __future__ import annotations

from fractions import Fraction

from fairopt import allocate
from fairopt.certificates import PROPERTY, Certificate
from fairopt.datasets import gandiva_table3, gavel_example, oef_example
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import Array
from fairopt.proofs.ledger.checking import proved, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import lines, listed, percent
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.property import AllocationProperty
from fairopt.properties.within_bounds import percent as rounded_down

POLICIES = ("oef-cooperative", "oef-noncooperative", "max-min", "nash-welfare", "second-price-trading", "equal-split")
ASKED: tuple[AllocationProperty, ...] = (EnvyFreeness(), SharingIncentive(), ParetoEfficiency())
#: An error at which nearly nothing is known of speedups.
LARGE = Fraction(99, 100)
ERRORS = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))


def tables() -> dict[str, Market]:
    """Return the tables of throughputs by name, without demands: speedups by the slowest type."""
    named = {"OEF's example": oef_example(), "Gandiva_fair's Table 3": gandiva_table3(), "Gavel's": gavel_example()}
    return {name: Market.of(m.speedup.tolist(), m.capacity.tolist()).normalised() for name, m in named.items()}


def tolerated(market: Market, shares: Array, asked: AllocationProperty) -> Fraction | None:
    """Return the largest error up to which the property holds, proved on both sides; None where it fails without."""
    ranged = with_error(market, LARGE)
    verdict = asked.check(ranged, shares)
    if verdict.answer is Answer.HOLDS:
        proved(Certificate(PROPERTY, ranged, shares, asked.name, "HOLDS"))
        return LARGE
    if verdict.answer is Answer.FAILS or verdict.boundary.error is None:
        require(asked.check(market, shares).answer is Answer.FAILS, "it fails without an error")
        return None
    for end, there in verdict.boundary.ends.items():
        found = asked.check(there, shares)
        require(found.answer.value == end.upper(), f"{asked.name} {end} at the end of the range")
        proved(asked.certify(there, shares, found))
    return Fraction(verdict.boundary.error)


def largest_errors() -> Finding:
    """Return, for each table and policy, the largest error for envy-freeness, sharing incentive, and efficiency."""
    said = []
    for name, market in tables().items():
        cells = []
        for policy in POLICIES:
            shares = allocate(policy, market, exact=True).shares
            found = [tolerated(market, shares, each) for each in ASKED]
            cells.append(f"{policy} {', '.join(map(_told, found))}")
        said.append(f"{name}: {'; '.join(cells)}")
    return Finding(
        Ruling.REPRODUCED,
        "Largest relative errors for envy-freeness, sharing incentive and Pareto efficiency, rounded down (-: it fails "
        f"without an error; any: it holds at 99%).\n{lines(said)}\nEach with certificates on both sides, accepted "
        "by proofs/verify.py; those of efficiency are exact up to a part of 2^-30.",
    )


def _told(error: Fraction | None) -> str:
    return "-" if error is None else "any" if error == LARGE else rounded_down(error)


def price() -> Finding:
    """Return what robust cooperative OEF gives up of the total of cooperative OEF, at the speedups as stated."""
    said = []
    for name, market in tables().items():
        best = allocate("oef-cooperative", market, exact=True).utilities.sum()
        equal = market.fair_utility().sum()
        lost = []
        for error in ERRORS:
            ranged = with_error(market, error)
            decision = allocate("oef-cooperative-robust", ranged, exact=True)
            verdict = EnvyFreeness().check(ranged, decision.shares)
            require(verdict.answer is Answer.HOLDS, "nobody envies anybody at any speedups in the range")
            proved(EnvyFreeness().certify(ranged, decision.shares, verdict))
            total = market.utility(decision.shares).sum()
            require(equal * (1 - Fraction(1, 10**9)) <= total <= best, "between the equal split and cooperative OEF")
            lost.append(f"{percent(1 - total / best)} at {100 * error}%")
        said.append(f"{name}: {listed(lost)} (the equal split: {percent(1 - equal / best)})")
    return Finding(
        Ruling.REPRODUCED,
        "Part of cooperative OEF's total, at the speedups as stated, that is lost where nobody may envy anybody at any "
        f"speedups within an error.\n{lines(said)}\nEach robust allocation with a certificate that it is free of "
        "envy for all speedups in the range, accepted by proofs/verify.py.",
    )
