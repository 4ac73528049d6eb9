"""The ledger's rows on theorems, trading and Table 1: what is stored follows from what is computed now."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fairopt.errors import BadInput, FairoptError
from fairopt.models import CooperativeOEF
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.proofs.claims.oef import limits, table1
from fairopt.proofs.ledger import citing
from fairopt.proofs.ledger.checking import NoLongerFollows, found, proved, require
from fairopt.proofs.ledger.entries import Entry, Ruling, read_package
from fairopt.proofs.ledger.measuring import decide, extent, of_share
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency

ROWS = {row.id: row for row in read_package("fairopt.proofs.claims")}
MODULES = ("oef.theorems", "oef.limits", "oef.table1", "gandiva_fair.trading")
OURS = [row for row in ROWS.values() if f"{row.package}.{row.run}".partition(":")[0].endswith(MODULES)]
PAPERS = ("gandiva", "fft", "ltgf", "astraea", "kueue")


@pytest.mark.usefixtures("coq_is_asked_once")
@pytest.mark.parametrize("row", OURS, ids=lambda row: row.id)
def test_the_verdict_follows(row: Entry) -> None:
    finding, _ = row.recompute()
    assert row.follows(finding), finding


def test_theorems_are_decided() -> None:
    theorems = [row for row in ROWS.values() if row.paper == "oef" and row.kind == "theorem"]
    assert len(theorems) == 8
    assert all(row.verdict is not Ruling.OPEN for row in theorems)


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_open_says_what_it_waits_for(paper: str) -> None:
    rows = [row for row in ROWS.values() if row.paper == paper]
    assert rows
    for row in rows:
        assert row.says
        assert (row.verdict is Ruling.OPEN) is bool(row.waits_for) is not bool(row.run), row.id
        assert not row.waits_for.startswith(("the simulat", "the schedulers")), f"{row.id}: these are there"


def test_every_claim_of_these_papers_has_a_row() -> None:
    with Path(__file__).with_name("asked_claims.csv").open(encoding="utf-8", newline="") as stream:
        asked = {row["id"] for row in csv.DictReader(stream) if row["id"].startswith(PAPERS)}
    assert asked
    assert not asked - ROWS.keys()


def test_lemma_3_1_is_false_in_the_order_of_ratios_with_speedup_1_on_the_slowest_type() -> None:
    market = Market.of([[1, 2, 5], [1, 9, 23], [1, 3, 11]], [3, 2, 1])
    decision = decide(CooperativeOEF(), market)
    assert extent(CooperativeOEF(), decision, of_share(market, 0, 2)) == (Fraction(47, 165),) * 2
    assert extent(CooperativeOEF(), decision, of_share(market, 0, 1)) == (0, 0)
    assert "(1, 2, 5), (1, 9, 23), (1, 3, 11), 3, 2, 1 GPUs" in ROWS["oef-lemma3.1"].evidence
    assert "it is true for small numbers" not in ROWS["oef-lemma3.1"].evidence


# -- what rows lean on -------------------------------------------------------------------------------------------
def test_a_bounded_decision_that_is_not_stored_is_not_cited() -> None:
    with pytest.raises(BadInput, match="stored is None"):
        citing.bounded("pareto-coop-every", "9x9")


def test_a_bounded_decision_says_what_is_assumed() -> None:
    cited = citing.bounded("lemma3.1-coop-ratios", "2x2", "3x2")
    assert "speedup 1 on the first type, rising strictly" in cited
    assert "every optimum" in citing.bounded_refutation("pareto-coop-every", "3x2")
    with pytest.raises(BadInput, match="stored is refuted"):
        citing.bounded("pareto-coop-every", "3x2")


def test_what_no_longer_holds_is_an_error_of_ours() -> None:
    require(True, "so it is")
    assert found(3, "a number") == 3
    with pytest.raises(NoLongerFollows, match="no longer so: water is dry"):
        require(False, "water is dry")
    with pytest.raises(NoLongerFollows, match="not found: a needle"):
        found(None, "a needle")
    with pytest.raises(NoLongerFollows, match="rejects"):
        proved({"schema": 1, "certificate": "optimality"})
    assert issubclass(NoLongerFollows, FairoptError)


def test_no_row_checks_by_bare_assertions() -> None:
    for module in Path(citing.__file__).parent.glob("*.py"):
        text = module.read_text(encoding="utf-8")
        assert "    assert " not in text, module.name
        assert "AssertionError" not in text, module.name


def test_the_program_with_fair_shares_is_that_of_its_market() -> None:
    for market in (
        Market.of([[1, 2], [1, 4]], [1, 1]),
        Market.of([[1, 2, 3], [2, 7, 5]], [3, 1, 2], weight=[1, 2]),
    ):
        decision = decide(SharingIncentiveEfficiency(), market)
        written = SharingIncentiveEfficiency().certify(decision).to_json()["program"]
        mine = limits.as_from_the_market(market)
        assert {**written, "rows": None} == {**mine, "rows": None}
        assert [_row(row) for row in written["rows"]] == [_row(row) for row in mine["rows"]]
        # a range over all optima keeps the total, which is what the last row says
        assert extent(SharingIncentiveEfficiency(), decision, market.speedup) == (decision.objective,) * 2
        ranged = limits.as_from_the_market(market, total=decision.objective)
        assert ranged["rows"][:-1] == mine["rows"]
        assert ranged["rows"][-1]["lower"] == str(decision.objective)


def _row(row: dict[str, Any]) -> tuple[dict[int, str], object, object]:
    return {column: rate for column, rate in row["terms"] if rate != "0"}, row["lower"], row["upper"]


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ([((), ()), ((), ())], Ruling.REPRODUCED),
        ([((), ("SP of OEF",)), ((), ())], Ruling.QUALIFIED),
        ([(("PE of OEF",), ()), ((), ())], Ruling.QUALIFIED),
        ([(("PE of OEF",), ()), (("PE of Gavel",), ())], Ruling.REFUTED),
    ],
)
def test_a_table_with_wrong_cells_is_never_reproduced(
    readings: list[tuple[tuple[str, ...], tuple[str, ...]]], verdict: Ruling
) -> None:
    assert table1.verdict_of([table1.Reading("so", *each) for each in readings]) is verdict


def test_extreme_points() -> None:
    market = Market.of([[1, 2], [1, 2]], [1, 1])
    program = CooperativeOEF().formulate(market, None)
    corner = market.equal_split() * 0
    assert is_extreme(program, corner.ravel())
    middle = market.equal_split() / 2
    assert not is_extreme(program, middle.ravel())
    with pytest.raises(BadInput, match="the point breaks"):
        is_extreme(program, 3 * middle.ravel() + 1)
