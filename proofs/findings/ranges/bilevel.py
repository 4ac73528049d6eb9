"""What a user truly gets at worst under cooperative OEF, over all reports within an error: branch and bound, exact.

Speedups are measured by the slowest type, so that those of the other types err. The search is
`fairopt.properties.worst_reports`, with the linear program of `CooperativeOEF.least_in_range` below each range.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from fairopt.datasets import oef_example
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.properties.worst_reports import worst_share
from fairopt.report import Statement

#: The two bounds on the part of an equal share meet within this.
GAP = Fraction(1, 100)
MOST_CELLS = 10_000


def worst(market: Market, user: int, error: Fraction, gap: Fraction = GAP) -> Statement:
    """Bound the least that ``user`` truly gets, as a part of its equal share, over all reports within ``error``."""
    off = market.speedup * error
    off[:, 0] = Fraction(0)
    ranged = replace(market, least=market.speedup - off, most=market.speedup + off)
    return worst_share(CooperativeOEF(), ranged, market.users[user], gap=gap, cells=MOST_CELLS)


def cooperative() -> Finding:
    """Bound it on two users, where a closed form is known, and for the user of OEF's example who is slowed most."""
    error = Fraction(1, 20)
    for a, b in ((2, 5), (3, 7)):
        found = worst(Market.of([[1, a], [1, b]], capacity=[1, 1]), 0, error)
        known = (2 + a - 1 / (1 - error)) / (1 + a)
        require(found.least <= known <= found.most, "the closed form is between the bounds")
    market = oef_example()
    found = worst(market, 0, error)
    parts = found.cells - 1  # without the whole range
    return Finding(
        Ruling.HOLDS_BOUNDED,
        "Cooperative OEF on OEF's example, all reports of all users on the faster type within 5%, any optimum: u1 "
        f"truly gets, at worst, between {float(found.least):.4f} and {float(found.most):.4f} of its equal share, by "
        f"branch and bound over ranges of reports, all linear programs exact ({parts} cells). On (1, 2), (1, 5) "
        "and (1, 3), (1, 7) the closed form (2 + a - 1/(1 - e))/(1 + a) is between the bounds.",
    )
