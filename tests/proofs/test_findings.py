"""Our own ledger: what is stored of each finding follows from its computation."""

from __future__ import annotations

import pytest

from fairopt.proofs.ledger.entries import Entry, read_package

#: They take seconds each; their parts have tests of their own.
CAMPAIGN = {
    *("own-vertices", "own-lies-cooperative", "own-lies-noncooperative", "own-under-reporting"),
    *("own-lies-coalitions", "own-lies-sybils", "own-lies-weights"),
    *("own-lies-max-min", "own-lies-nash", "own-lies-trading", "own-demands"),
    *("own-truthful-efficient-3x2", "own-two-types-closed-form", "own-ranges-two-by-two"),
    *("own-three-improvement", "own-three-small"),
    *("own-pareto-loss", "own-price-of-envy-freeness", "own-equilibrium-two-types", "own-above-gavel-range"),
}
ROWS = [
    pytest.param(row, id=row.id, marks=[pytest.mark.slow] if row.slow or row.id in CAMPAIGN else [])
    for row in read_package("fairopt.proofs.findings")
    if row.run
]


@pytest.mark.usefixtures("coq_is_asked_once")
@pytest.mark.parametrize("row", ROWS)
def test_what_is_stored_follows_from_the_computation(row: Entry) -> None:
    finding, _ = row.recompute()
    assert row.follows(finding), finding
