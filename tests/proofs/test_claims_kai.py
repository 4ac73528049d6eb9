"""The ledger's rows on KAI Scheduler: what is stored follows, and the shortest counterexamples by hand."""

from __future__ import annotations

import pytest

from fairopt.models.kai.pool import QueueClaim
from fairopt.proofs.claims.kai.dividing import documented
from fairopt.proofs.claims.kai.reclaiming import played
from fairopt.proofs.ledger.entries import Entry, read_package

ROWS = list(read_package("fairopt.proofs.claims.kai"))
#: Rows that take seconds.
CAMPAIGN = {"kai-quota-protected", "kai-surplus"}


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.id, marks=[pytest.mark.slow] if row.id in CAMPAIGN else []) for row in ROWS]
)
def test_the_verdict_follows(row: Entry) -> None:
    finding, _ = row.recompute()
    assert row.follows(finding), finding


def test_two_rounds_of_the_documented_loop_by_hand() -> None:
    """50 of 100, then 25 of the 50 left; then 12.5 of 25, and 6.25."""
    assert documented(100, [QueueClaim(0, 100)] * 2, 1) == [50, 25]
    assert documented(100, [QueueClaim(0, 100)] * 2, 2) == [62.5, 31.25]


def test_a_gang_is_reclaimed_whole() -> None:
    """A of quota 4 holds 8 in one gang; B asks for its 4, and A has none left."""
    found = played(8, {"A": 4, "B": 4}, [("A", 8, True, True), ("B", 4, False, True)])
    assert found.shares.tolist() == [[0], [4]]
