"""The ledger's rows on Volcano and YARN: what is stored follows."""

from __future__ import annotations

import pytest

from fairopt.proofs.ledger.entries import Entry, read_package

ROWS = [row for paper in ("volcano", "yarn") for row in read_package(f"fairopt.proofs.claims.{paper}") if row.run]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_verdict_follows(row: Entry) -> None:
    finding, _ = row.recompute()
    assert row.follows(finding), finding
