"""The ledger's rows on OEF's examples, models and figures: what is written there is what the computation says now."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fairopt.datasets import oef_eq6, oef_example
from fairopt.errors import BadInput
from fairopt.models import MaxEfficiency, MaxMin
from fairopt.proofs.claims.oef import errors, figures, tenants, timing
from fairopt.proofs.ledger import measuring, wording
from fairopt.proofs.ledger.entries import Entry, Finding, Ruling, read_package
from fairopt.proofs.ledger.rewrite import main, with_finding

MODULES = {"examples", "conflicts", "models", "figures", "errors", "timing"}
OEF = [row for row in read_package("fairopt.proofs.claims") if row.paper == "oef"]
OURS = [row for row in OEF if row.run.partition(":")[0] in MODULES]


def test_every_claim_of_the_paper_has_its_row() -> None:
    assert len({row.id for row in OEF}) == len(OEF) == 33
    assert len(OURS) == 21
    for row in OEF:
        assert (row.verdict is Ruling.OPEN) == (row.evidence == ""), row.id
        assert row.run or row.waits_for, row.id


@pytest.mark.parametrize("row", [row for row in OURS if not row.slow], ids=lambda row: row.id)
def test_the_stored_verdict_follows(row: Entry) -> None:
    assert row.follows(row.recompute()[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in OURS if row.slow], ids=lambda row: row.id)
def test_the_stored_verdict_follows_slowly(row: Entry) -> None:
    assert row.follows(row.recompute()[0])


# -- the figures, small ------------------------------------------------------------------------------------------
def test_samples_of_tenants_agree_with_what_must_hold() -> None:
    for sample in figures.samples(2):
        for unit in figures.UNITS:
            assert (sample.above("Gavel", "equal split", "nobody bounded", unit) > -1e-6).all(), "sharing incentive"
        slowest = figures.UNITS[0]
        assert (sample.above("cooperative", "noncooperative", "nobody bounded", slowest) > -1).all()
        # nobody gains from a bound but those that it does not bind
        free, one = (sample.totals["Gavel", bound, figures.UNITS[1]] for bound in ("free", "one"))
        assert (one < free + 1e-6).all()
    assert figures.fig7(2).verdict is Ruling.NOT_DECIDABLE_HERE


@pytest.mark.usefixtures("coq_is_asked_once")
def test_no_sample_reaches_what_figure_8_prints() -> None:
    assert figures.fig8(2).verdict is Ruling.QUALIFIED


def test_a_figure_without_its_data_is_reproduced_only_where_it_comes_out_everywhere() -> None:
    combinations = len(tenants.tables()) * len(figures.READINGS) * len(figures.UNITS)
    assert figures._ruling(combinations) is Ruling.REPRODUCED
    assert figures._ruling(combinations - 1) is Ruling.NOT_DECIDABLE_HERE
    assert figures._ruling(0) is Ruling.NOT_DECIDABLE_HERE
    assert errors.fig10b(2).verdict is Ruling.NOT_DECIDABLE_HERE


def test_without_errors_nothing_is_lost() -> None:
    for mode in errors.MODES:
        found = errors.run("the printed range", mode, errors.LAWS[0], 0.0, 2)
        assert np.abs(list(found.deviation.values())).max() < 1e-6
        if mode == "cooperative":
            assert found.envy.max() < 1e-6
            assert found.partition.min() > -1e-6


def test_drawn_tenants_are_as_the_paper_says() -> None:
    for name, speedups in tenants.tables().items():
        market = tenants.draw(speedups, np.random.default_rng(0))
        assert len(market.users) == 20
        assert set(market.capacity) == {8}
        assert set(market.speedup[:, 0]) == {1}, name
    fast = market.speedup[:, 2]
    assert Fraction("1.39") <= min(fast) <= max(fast) <= Fraction("2.15")


def test_both_ways_of_timing_solve_the_same_program() -> None:
    market = timing.market_of(6)
    totals = [timing._theirs(way, market).total for way in (timing.PAIRS, timing.CHAIN)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-5)
    assert timing._growth({10: timing.ModeTiming(1, 0), 20: timing.ModeTiming(8, 0)}, 10, 20) == pytest.approx(
        (3, 20 * (30 / 8) ** (1 / 3))
    )


# -- what the computations share ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "text", "same"),
    [
        ("53/45", "1.18", True),
        ("7/5", "1.41", False),
        ("1/8", ".13", True),
        ("1/8", ".12", True),
        ("20/11", "1.8", True),
        ("20/11", "1.80", False),
    ],
)
def test_printed_digits(value: str, text: str, same: bool) -> None:
    assert wording.prints_as(Fraction(value), text) == same


def test_a_table_of_another_size_is_not_what_is_printed() -> None:
    assert not wording.all_print_as([[1, 2]], "1 2; 3 4")


def test_all_optima_are_ranged_over() -> None:
    decision = measuring.decide(MaxEfficiency(), oef_example())
    assert not measuring.only_optimum(MaxEfficiency(), decision)
    assert list(measuring.extents(MaxEfficiency(), decision))[:2] == [(0, 1), (0, 0)]
    decision = measuring.decide(MaxMin(), oef_eq6())
    assert measuring.only_optimum(MaxMin(), decision)


# -- writing the ledger ------------------------------------------------------------------------------------------
def ledger_text() -> str:
    return (Path(figures.__file__).parent / "claims.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "evidence",
    ["short", "long words " * 40 + 'with "quotes", a back\\slash and 1/3', "ends in a backslash " + "x" * 200 + " \\"],
)
def test_a_finding_is_written_and_nothing_else_changes(evidence: str) -> None:
    text = ledger_text()
    new = with_finding(text, "oef-eq6", Finding(Ruling.REFUTED, evidence))
    before, after = ({row["id"]: row for row in tomllib.loads(each)["claim"]} for each in (text, new))
    assert after["oef-eq6"] == before["oef-eq6"] | {"verdict": "refuted", "evidence": evidence}
    assert [line for line in new.splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]
    finding = Finding(Ruling(before["oef-eq6"]["verdict"]), before["oef-eq6"]["evidence"])
    assert with_finding(new, "oef-eq6", finding) == text


@pytest.mark.parametrize(
    ("text", "name", "finding"),
    [
        (ledger_text(), "oef-eq66", Finding(Ruling.REFUTED, "no such row")),
        (ledger_text(), "oef-eq6", Finding(Ruling.OPEN, "decided it must be")),
        (ledger_text(), "oef-eq6", Finding(Ruling.REFUTED, "two  spaces " * 20)),
        ('[[claim]]\nid = "a"\nverdict = "open"\n', "a", Finding(Ruling.REFUTED, "no evidence to replace")),
    ],
)
def test_what_cannot_be_written_is_refused(text: str, name: str, finding: Finding) -> None:
    with pytest.raises(BadInput, match=name):
        with_finding(text, name, finding)


def test_a_row_that_is_not_there_is_no_row_to_rewrite() -> None:
    with pytest.raises(BadInput, match="oef-eq66"):
        main(["oef-eq6", "oef-eq66"])
