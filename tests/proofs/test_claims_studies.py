"""Rows of the ledger that a study decides: claims and their cases, the table, and what is played."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairopt import History, run
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.errors import BadInput
from fairopt.experiment.statistics import compare_drawn
from fairopt.experiment.studies import observe
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySpec
from fairopt.proofs.claims.oef import studies
from fairopt.proofs.ledger import studying
from fairopt.proofs.ledger.cases import PrintedRatio, RatioCase, held_alike, parts, ruling
from fairopt.proofs.ledger.entries import Entry, Figure, Finding, Measure, PrintedAndFound, Ruling, read_package
from fairopt.proofs.ledger.rewrite import FOLDER, PACKAGE, with_finding
from fairopt.simulation.gpu_time import finish_time_fairness, time_on_whole_cluster

SPEC = """
schema = 1
name = "tiny"
seeds = 3
length = 300
policies = [{ policy = "srtf" }, { policy = "tiresias" }]
traces = [{ generator = "fft-traces", parameters = { jobs = 4 } }]
clusters = [{ file = "@fft-cluster" }]
compare = [{ measure = "jct_mean", better = "less" }]
"""


def case(factor: float, **where: str) -> RatioCase:
    """Return a case of six runs in which one side is ahead by a factor, about."""
    other = np.array([3.0, 4.0, 5.0, 4.0, 6.0, 3.0])
    return RatioCase(where, compare_drawn(other * factor * [1, 1.01, 0.99, 1, 1.01, 0.99], other))


def test_a_claim_holds_where_the_side_is_ahead_and_the_interval_reaches_what_is_printed() -> None:
    cases = [case(3, load="1"), case(1.5, load="2"), case(0.5, load="4")]
    claim = PrintedRatio("three times", 3, cases)
    assert [each.where["load"] for each in claim.holding] == ["1"]
    assert (len(claim.ahead), len(claim.behind)) == (2, 1)
    assert "as printed 1 (1)" in claim.line().holds
    assert ruling([claim]) is Ruling.QUALIFIED
    assert ruling([PrintedRatio("", 9, cases)]) is Ruling.REFUTED
    assert ruling([PrintedRatio("", 2, cases[:1])]) is Ruling.REPRODUCED


def test_what_is_equal_is_not_ahead() -> None:
    claim = PrintedRatio("ahead", 1, [case(1.0)])
    assert not claim.holding


def test_parts_name_only_what_is_not_everywhere() -> None:
    every = [case(2, load=load, rival=rival) for load in "12" for rival in "ab"]
    assert parts(every[:2], every) == "1"
    assert parts(every, every) == "in every part"


def test_numbers_that_hold_together_are_of_one_reading_and_setting() -> None:
    claims = [
        PrintedRatio("x", 2, [case(3, load="1"), case(1, load="2")]),
        PrintedRatio("y", 2, [case(1, load="1"), case(3, load="2")]),
    ]
    held = {where["load"]: [claim.said for claim in some] for where, some in held_alike(claims, ("load",))}
    assert held == {"1": ["x"], "2": ["y"]}


def test_a_table_and_figures_are_written_read_back_and_taken_out_again() -> None:
    text = (FOLDER / "fft" / "claims.toml").read_text(encoding="utf-8")
    lines = (
        PrintedAndFound("1.46 times", "0.5", "[0.4, 0.6]", 'none of "9"'),
        PrintedAndFound("2", "1", "[1, 1]", "all"),
    )
    figures = (Figure("max-min", Measure.INCENTIVE_AT_LEAST, "4/3", "two users"),)
    new = with_finding(text, "fft-eq2", Finding(Ruling.REFUTED, "found", lines, figures=figures))
    row = next(each for each in tomllib.loads(new)["claim"] if each["id"] == "fft-eq2")
    assert row["table"] == [list(each) for each in lines]
    assert row["figures"] == [["max-min", "incentive ratio at least", "4/3", "two users"]]
    again = with_finding(new, "fft-eq2", Finding(Ruling.REFUTED, "found"))
    assert not {"none of", "4/3"} & {*again.split('"')}


def test_a_study_is_played_once_and_goes_on_from_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "tiny.toml"
    spec.write_text(SPEC, encoding="utf-8")
    quick = studying.Extent(2, tmp_path / "cells")
    first = studying.results_of(str(spec), quick)
    assert (len(first.cells), first.missing, first.spec.seeds) == (4, [], (0, 1))
    said = capsys.readouterr().err
    assert "tiny: 1 of 4 cells, " in said
    assert " left" in said
    studying.results_of.cache_clear()
    played: list[Any] = []
    real = studying.run_study
    monkeypatch.setattr(studying, "run_study", lambda *a, **k: (played.append(each) or each for each in real(*a, **k)))
    whole = studying.results_of(str(spec), studying.Extent(None, tmp_path / "cells"))
    assert len(whole.cells) == 6
    assert sum(each.kind == "cell" for each in played) == 2


def test_what_is_said_of_a_study_does_not_wait_for_its_end_to_fail() -> None:
    """Numbers of a specification are Fractions; a float's format ended the studies of OEF once all was played."""
    said = studies._played(StudyResults(StudySpec.read(studies.STUDY), []))
    assert said.endswith("gangs on several hosts run at 0.8 of their speed.")


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in read_package(PACKAGE) if row.table], ids=lambda row: row.id)
def test_the_quick_form_has_the_lines_of_the_stored_one(row: Entry) -> None:
    found = row.computation()(studying.Extent(studying.FEW))
    assert [line.claimed for line in found.table] == [line.claimed for line in row.table]


def test_what_no_study_decides_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="fft-nothing"):
        studying.main(["fft-nothing"])
    with pytest.raises(BadInput, match="--write"):
        studying.main(["fft-jct", "--quick", "--write"])


def test_other_definitions_of_the_time_without_others_are_those_of_the_history() -> None:
    trace, cluster = philly_trace(), philly_cluster()
    history = History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=30))
    seen = observe(history)
    for name, ideal in (
        ("whole cluster", time_on_whole_cluster),
        ("whole cluster, N times", partial(time_on_whole_cluster, times_jobs=True)),
    ):
        rho = [float(value) for value in finish_time_fairness(history, ideal).values()]
        found = seen.finish_times[name]
        assert (found["mean"], found["most"]) == pytest.approx((np.mean(rho), max(rho)))
        assert found["below"] == pytest.approx(np.mean(np.array(rho) < 1))
    assert seen.finish_times["whole cluster"]["below"] == 0 < seen.finish_times["whole cluster, N times"]["below"]
    assert 0 < seen.between_types <= seen.measures["migrations"]
