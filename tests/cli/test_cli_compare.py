"""`fairopt compare` on markets, traces and batches: JSON keys, tables, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

from fairopt.cli import comparing
from fairopt.datasets import dataset_path, philly_trace
from fairopt.discovery import policies, properties
from fairopt.problem import Queue, Trace
from fairopt.problem.batch import Batch
from fairopt.problem.files.storage import file_type
from fairopt.problem.files.trace import write_trace
from fairopt.simulation import Setting
from fairopt.simulation.measures import UNITS

MARKET = str(dataset_path("oef_example.toml"))
CLUSTER = str(dataset_path("philly_cluster.toml"))
BATCH = str(dataset_path("astraea_example.toml"))
POLICIES = {
    *("equal-split", "max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling"),
    *("second-price-trading", "nash-welfare", "partial-allocation"),
    *("gavel-isolated", "gavel-proportional", "hierarchical-water-filling", "oef-efficient"),
}
PROPERTIES = {
    *("sharing_incentive", "envy_freeness", "pareto_efficiency", "strategy_proofness", "adjacent_types"),
    "work_conservation",
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "forty.csv"
    write_trace(Trace(philly_trace().jobs.take(range(40))), path)
    return path


# -- markets -----------------------------------------------------------------------------------------------------
def test_compare_json(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("compare", MARKET, "--json", "--evaluations", 20)
    assert ran.status == 0
    assert set(ran.data["policies"]) == POLICIES
    for row in ran.data["policies"].values():
        assert {"policy", "backend", "status", "allocation", "utilities", "properties", "metrics"} <= row.keys()
        assert row["properties"].keys() >= PROPERTIES
        kinds = row["properties"]["strategy_proofness"]["by_misreport"]
        assert set(kinds) == {"larger", "smaller", "any"}
    trading = ran.data["policies"]["second-price-trading"]["properties"]
    assert trading["envy_freeness"]["answer"] == "FAILS"
    assert trading["strategy_proofness"]["answer"] == "FAILS"
    assert trading["sharing_incentive"]["answer"] == "HOLDS"


def test_compare_prints_the_table_and_what_shows_each_failure(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("compare", MARKET, "--policy", "second-price-trading", "--policy", "equal-split", "--evaluations", 60)
    assert ran.status == 0
    assert "3 users share 1 GPU1, 1 GPU2." in ran.out
    assert "u3 gets 16/9; with the shares of u2, by weight, it would get 28/15" in ran.out
    assert "max-min" not in ran.out


def test_the_answer_comes_first_and_rows_that_give_the_same_are_one(fairopt: Callable[..., Ran]) -> None:
    lines = fairopt("compare", MARKET, "--evaluations", 60).out.splitlines()
    assert lines[:3] == [
        "3 users share 1 GPU1, 1 GPU2.",
        "None of 13 policies keeps all 7 properties that were asked.",
        "equal-split, gavel-isolated and gavel-proportional break 1: u3 could get more and nobody less. "
        "Total throughput: 4, 20.0% below the maximum.",
    ]
    table = [line.strip() for line in lines]
    place = next(at for at, line in enumerate(table) if line.startswith("hierarchical-water-filling  "))
    assert "NO 0.148, smaller" in table[place]  # which kind of lie pays most
    assert table[place + 1 : place + 3] == ["max-min", "water-filling"]
    assert "All of them: adjacent types only, no more than there is." in lines


def test_three_witnesses_are_shown_and_more_where_asked(fairopt: Callable[..., Ran]) -> None:
    asked = ("compare", MARKET, "--policy", "max-efficiency", "--policy", "max-min", "--policy", "partial-allocation")
    asked += ("--evaluations", "20")
    shown = {
        why: {line for line in fairopt(*asked, *why).out.splitlines() if line.startswith("  ")}
        for why in ((), ("--why",), ("--why", "max-efficiency"))
    }
    few, every, one = ({line for line in lines if ": " in line} for lines in shown.values())
    assert len(few) == 3
    assert few < every
    assert len(every) == 8
    assert one - few == {line for line in every - few if line.startswith("  max-efficiency: ")}
    assert "  max-efficiency: u2 gets 0; its equal share is worth 4/3" in one


def test_a_policy_that_was_not_compared_cannot_be_asked_why(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("compare", MARKET, "--policy", "max-min", "--why", "max-mim")
    assert (ran.status, ran.out) == (2, "")
    assert "--why" in ran.err
    assert "max-min" in ran.err


def test_the_page_of_a_comparison(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = fairopt("compare", MARKET, "--html", page, "--evaluations", 6)
    text = page.read_text()
    assert ran.status == 0
    for words in ("None of 13 policies keeps", "u2 gets 0; its equal share is worth 4/3", "u1: 1/3 of 1 GPU1"):
        assert words in text
    assert "http" not in text.replace("http-equiv", "")
    assert fairopt("compare", BATCH, "--policy", "fcfs", "--html", page, "--evaluations", 10).status == 0
    assert "4 jobs of 2 tenants on 4 servers." in page.read_text()


def test_compare_says_whether_optima_are_the_only_ones_where_asked(fairopt: Callable[..., Ran]) -> None:
    """Guards against an answer that only the JSON has; of a rule, which optimises nothing, there is none."""
    asked = ("compare", MARKET, "--policy", "oef-cooperative", "--policy", "equal-split", "--property", "feasibility")
    assert "unique" not in fairopt(*asked).out
    lines = [line for line in fairopt(*asked, "--unique").out.splitlines() if "unique" in line]
    assert lines == ["  oef-cooperative, unique utilities: yes; unique shares: yes"]


def test_compare_and_verify_say_one_price_of_what_is_more_than_there_is(
    fairopt: Callable[..., Ran], tmp_path: Path
) -> None:
    """Kueue counts quotas, and gives 10 of 8 H100: a quarter more than is possible. compare said 0.0%."""
    market, given = tmp_path / "now.toml", tmp_path / "given.json"
    market.write_text(
        'schema = 1\ntypes = ["H100"]\ncapacity = [8]\n'
        'user = [{ name = "A", speedup = [1], guarantee = [6] }, { name = "B", speedup = [1] }]\n'
        'gang = [{ name = "a", user = "A", gpus = 4 }, { name = "b", user = "B", gpus = 6, on = "H100" }]\n'
    )
    asked = ("--property", "feasibility")
    assert "-25.0%" in fairopt("compare", market, "--policy", "kueue", *asked).out
    both = ("--property", "pareto_efficiency", *asked)
    said = fairopt("compare", market, "--policy", "kueue", *both).out
    assert (
        "an infeasible allocation is not efficient and more is given out than there is. Total throughput: 10," in said
    )
    given.write_text(fairopt("solve", market, "--policy", "kueue", "--json").out)
    assert "price of fairness -25.0%" in fairopt("verify", market, given, *asked).out


def test_compare_keeps_the_other_policies_when_one_cannot_answer(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairopt.errors import NotSolved
    from fairopt.models import MaxMin

    def fail(*_: object) -> Any:
        raise NotSolved("the solver fell asleep")

    monkeypatch.setattr(MaxMin, "formulate", fail)
    ran = fairopt("compare", MARKET, "--policy", "max-min", "--policy", "equal-split", "--json", "--evaluations", 30)
    assert ran.status == 3
    assert ran.data["policies"]["max-min"]["error"] == "the solver fell asleep"
    assert ran.data["policies"]["equal-split"]["status"] == "optimal"


def test_a_property_that_cannot_be_decided_is_so_in_its_own_cell(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairopt.errors import NotSolved
    from fairopt.properties import StrategyProofness

    def fail(*_: object, **__: object) -> Any:
        raise NotSolved("the search lost its way")

    monkeypatch.setattr(StrategyProofness, "search", fail)
    ran = fairopt("compare", MARKET, "--policy", "second-price-trading", "--json")
    assert ran.status == 0
    row = ran.data["policies"]["second-price-trading"]
    cell = row["properties"]["strategy_proofness"]
    assert (cell["answer"], cell["reason"]) == ("UNDECIDED", "the search lost its way")
    assert "error" not in row
    assert row["status"] == "optimal"
    assert row["properties"]["envy_freeness"]["answer"] == "FAILS"
    assert row["metrics"]["total_efficiency"] > 4


def test_nothing_fails_and_something_is_undecided(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from fairopt.errors import NotSolved
    from fairopt.properties import EnvyFreeness

    def fail(*_: object, **__: object) -> Any:
        raise NotSolved("no envy was to be seen")

    monkeypatch.setattr(EnvyFreeness, "_check", fail)
    asked = ("--property", "envy_freeness", "--property", "sharing_incentive")
    ran = fairopt("compare", MARKET, "--policy", "equal-split", *asked)
    assert ran.status == 4
    assert "envies nobody (equal-split): undecided: no envy was to be seen" in ran.out
    assert "equal-split leaves open: envies nobody." in ran.out
    given_ = tmp_path / "a.json"
    given_.write_text(json.dumps({"allocation": [["1/3", "1/3"]] * 3}))
    ran = fairopt("verify", MARKET, given_, *asked, "--json")
    assert ran.status == 4
    assert ran.data["properties"]["envy_freeness"]["answer"] == "UNDECIDED"
    assert ran.data["properties"]["sharing_incentive"]["answer"] == "HOLDS"
    assert fairopt("verify", MARKET, given_, *asked, "--property", "pareto_efficiency").status == 1


def test_an_interrupted_comparison_prints_what_it_has(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairopt.models import MaxMin

    def interrupt(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(MaxMin, "formulate", interrupt)
    ran = fairopt("compare", MARKET, "--policy", "equal-split", "--policy", "max-min", "--json", "--evaluations", 30)
    assert ran.status == 130
    assert list(ran.data["policies"]) == ["equal-split"]
    assert "1 of 2 policies done" in ran.err


# -- traces ------------------------------------------------------------------------------------------------------
def test_compare_runs(fairopt: Callable[..., Ran], trace: Path) -> None:
    ran = fairopt("compare", trace, "--cluster", CLUSTER, "--floats", "--json")
    assert ran.status == 0
    assert set(ran.data["policies"]) == {policy.name for policy in policies(Queue)}
    for name, row in ran.data["policies"].items():
        assert (row["policy"], row["status"]) == (name, "complete")
        assert set(row["properties"]) == {each.name for each in properties(Setting)}
        assert {verdict["answer"] for verdict in row["properties"].values()} <= {"HOLDS", "FAILS"}
        assert row["measures"]["completed"] == 40
        assert row["measures"]["units"] == dict(UNITS)
    quota = ran.data["policies"]["fifo-quota"]["properties"]["work_conservation_over_time"]
    assert (quota["answer"], quota["unit"]) == ("FAILS", "GPU-time")
    assert quota["witness"]["job"].startswith("ph")


def test_compare_runs_exactly_and_as_a_table(fairopt: Callable[..., Ran], trace: Path) -> None:
    asked = ("--policy", "srtf", "--policy", "fifo-quota", "--property", "no_starvation")
    ran = fairopt("compare", trace, "--cluster", CLUSTER, *asked, "--length", "600", "--restart", "30")
    assert ran.status == 0
    assert "40 jobs on 32 K80, 16 P100, 16 V100, rounds of 600." in ran.out
    assert "srtf keeps it." in ran.out
    assert "starves" in ran.out
    assert "~" not in ran.out


def test_a_run_that_is_cut_is_undecided(fairopt: Callable[..., Ran], trace: Path) -> None:
    asked = ("--policy", "srtf", "--property", "lease_kept")
    ran = fairopt("compare", trace, "--cluster", CLUSTER, *asked, "--rounds", "2")
    assert ran.status == 4
    assert "leases kept (srtf): undecided: the run ends at 600 with" in ran.out
    ran = fairopt("compare", trace, "--cluster", CLUSTER, *asked, "--rounds", "2", "--json")
    row = ran.data["policies"]["srtf"]
    assert (row["status"], row["properties"]["lease_kept"]["answer"]) == ("stopped", "UNDECIDED")
    assert row["properties"]["lease_kept"]["reason"].startswith("the run ends at 600")
    more = ("--policy", "fifo", "--property", "no_starvation")
    ran = fairopt("compare", trace, "--cluster", CLUSTER, *asked, *more, "--rounds", "2")
    assert ran.out.count("undecided: the run ends") == 1, "said once of all of which it is so"
    assert "leases kept and no job starves (srtf and fifo): undecided: the run ends at 600 with" in ran.out


# -- batches -----------------------------------------------------------------------------------------------------
def test_compare_batches(fairopt: Callable[..., Ran]) -> None:
    asked = ("--policy", "posted-prices", "--policy", "fcfs", "--evaluations", "30")
    ran = fairopt("compare", BATCH, *asked, "--json")
    assert ran.status == 0
    assert list(ran.data["policies"]) == ["posted-prices", "fcfs"]
    row = ran.data["policies"]["posted-prices"]
    assert set(row["properties"]) == {each.name for each in properties(Batch)}
    answers = {name: verdict["answer"] for name, verdict in row["properties"].items()}
    assert answers["budget_balance"] == answers["gain_as_you_contribute"] == "HOLDS"
    assert answers["revenue_fairness"] == "FAILS"
    assert answers["schedule_pareto_efficiency"] == "UNDECIDED"
    assert "more than 400 schedules" in row["properties"]["schedule_pareto_efficiency"]["reason"]
    assert row["measures"]["jobs_run"] == 3
    assert sum(row["measures"]["gains"].values()) == row["measures"]["revenue"] == 250
    assert row["measures"]["unscheduled"] == ["j22"]
    printed = fairopt("compare", BATCH, *asked, "--property", "budget_balance")
    assert "4 jobs of 2 tenants on 4 servers." in printed.out


# -- what a file is ----------------------------------------------------------------------------------------------
def test_files_are_told_by_their_contents(trace: Path, tmp_path: Path) -> None:
    assert [file_type(path) for path in (MARKET, CLUSTER, BATCH, trace)] == ["market", "cluster", "batch", "trace"]
    for text, kind in (
        ('[{"user": 1}]', "market"),
        ('{"types": ["T"], "user": [{"name": "the host of a job"}]}', "market"),
        ('{"job": [{"server": 3}]}', "trace"),
        ('{"job": [], "server": []}', "batch"),
        ("{}", "market"),
    ):
        path = tmp_path / "some.json"
        path.write_text(text)
        assert file_type(path) == kind, text
    (tmp_path / "m.csv").write_text("user,K80\nu,1\n")
    assert file_type(tmp_path / "m.csv") == "market"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((MARKET, "--length", "300"), "--length: it means nothing for a market"),
        ((MARKET, "--cluster", CLUSTER), "--cluster: it means nothing for a market"),
        ((BATCH, "--floats"), "--floats: it means nothing for a batch"),
        ((BATCH, "--policy", "max-min"), "`fairopt solve` takes it"),
        ((MARKET, "--policy", "fcfs"), "`fairopt schedule` takes it"),
        ((MARKET, "--property", "lease_kept"), "lease_kept is a property of a run"),
        ((BATCH, "--property", "strategy_proofness"), "Here: "),
        ((CLUSTER,), "it is a cluster"),
        (("TRACE",), "fairopt compare TRACE --cluster FILE"),
        (("TRACE", "--cluster", CLUSTER, "--certificates", "e"), "--certificates: it means nothing for a trace"),
        (("TRACE", "--cluster", CLUSTER, "--length", "0"), "Give the length of a round, positive"),
        (("TRACE", "--cluster", MARKET), "the key 'user' is that of a market"),
        (("nowhere.toml",), "there is no such file"),
    ],
)
def test_what_cannot_be_meant(
    fairopt: Callable[..., Ran], trace: Path, arguments: tuple[object, ...], says: str
) -> None:
    ran = fairopt("compare", *(trace if each == "TRACE" else each for each in arguments))
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err


def test_a_batch_has_a_limit_for_each_cell(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    assert comparing.BATCH_LIMIT <= 10
    monkeypatch.setattr(comparing, "BATCH_LIMIT", 0.2)
    ran = fairopt("compare", BATCH, "--policy", "offline-optimum", "--policy", "fcfs", "--json")
    assert ran.status == 3
    assert "the time limit of 0.2 s is over" in ran.data["policies"]["offline-optimum"]["error"]
    assert ran.data["policies"]["fcfs"]["properties"]["budget_balance"]["answer"] == "HOLDS"


def test_an_answer_about_one_policy_says_what_it_keeps(fairopt: Callable[..., Ran]) -> None:
    """No sentence stands before it that says what "it" and "both" are. It began with "equal-split keeps it"."""
    asked = ("--property", "envy_freeness")
    said = fairopt("compare", MARKET, "--policy", "equal-split", *asked).out
    assert "equal-split keeps the property that was asked. Total throughput: 4" in said
    both = fairopt("compare", MARKET, "--policy", "equal-split", *asked, "--property", "sharing_incentive").out
    assert "equal-split keeps both properties that were asked. Total throughput: 4" in both
