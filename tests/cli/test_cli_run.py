"""`fairopt run` keeps its contracts: JSON, tables, Parquet and exit status."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

from fairopt.cli import main, round_json, round_tables
from fairopt.cli.parquet import require_parquet
from fairopt.configuring import configured
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput, NotInstalled
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.problem import read_cluster, read_trace
from fairopt.simulation import run
from fairopt.simulation.measures import UNITS

ROOT = Path(__file__).parents[2]


# -- what it prints --------------------------------------------------------------------------------------------------
def test_json_holds_all_that_a_verifier_needs(fairopt_run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt_run("--json", "--restart", "30", "--spread", "9/10")
    assert (ran.status, ran.err) == (0, "")
    data = ran.data
    assert (data["schema"], data["policy"], data["length"]) == (1, "srtf", 300)
    assert data["mechanics"] == {"restart": 30, "launch": 0, "spread": "9/10", "local_data": False}
    assert data["outcome"] == {"options": [], "complete": True, "stopped": None}
    assert [job["name"] for job in data["trace"]["jobs"]] == ["a", "b", "c", "e", "d", "big"]
    assert data["trace"]["jobs"][0]["throughput"] == [1, "33/10"]
    assert data["measures"]["completed"] == 5
    assert data["measures"]["unschedulable"] == ["big"]
    assert data["measures"]["row"].keys() == data["measures"]["units"].keys() == UNITS.keys()
    path = tmp_path / "run.json"
    path.write_text(ran.out)
    command = [sys.executable, str(ROOT / "proofs" / "verify.py"), str(path)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_the_page_shows_the_queue_and_who_ran_where(fairopt_run: Callable[..., Ran], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert fairopt_run("--html", page).status == 0
    html = page.read_text(encoding="utf-8")
    assert "<h1>srtf on " in html
    for caption in ("Jobs that wait over time", "Part of the GPUs in use over time", "Who ran where"):
        assert html.count(f"<figcaption>{caption}") == 1
    assert html.count("<svg") == 3
    assert len(set(re.findall(r' id="([^"]+)"', html))) == len(re.findall(r' id="([^"]+)"', html))


def test_numbers_in_floats(fairopt_run: Callable[..., Ran]) -> None:
    data = fairopt_run("--json", "--floats").data
    assert all(not isinstance(ran["progress"], str) for record in data["rounds"] for ran in record["ran"])
    exact = fairopt_run("--json").data
    assert data["measures"]["row"]["jct_mean"] == pytest.approx(exact["measures"]["row"]["jct_mean"])


def test_tables_for_people(fairopt_run: Callable[..., Ran]) -> None:
    ran = fairopt_run()
    assert ran.status == 0
    for words in (
        "5 of 6 jobs completed",
        "completion time (JCT)",
        "GPUs in use",
        "jobs with GPU-time fairness below 1",
        "mean JCT",
    ):
        assert words in ran.out
    assert "fit no type of the cluster: 1 job: big" in ran.out
    some = fairopt_run("--rounds", 1)
    assert some.status == 0
    assert "not completed: 2 jobs: a, b" not in some.out  # b comes later
    assert "not completed: 1 job: a" in some.out


def test_parquet_has_a_row_for_each_job_and_round(fairopt_run: Callable[..., Ran], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "run.parquet"
    data = fairopt_run("--parquet", path, "--json").data
    table = parquet.read_table(path)
    assert table.schema.names == [name for name, _, _ in round_json.COLUMNS]
    assert [str(kind).replace("double", "float64") for kind in table.schema.types] == [
        kind.replace("list<", "list<element: ") for _, kind, _ in round_json.COLUMNS
    ]
    rows = table.to_pylist()
    assert len(rows) == sum(len(record["ran"]) + len(record["waiting"]) for record in data["rounds"])
    assert {row["status"] for row in rows} == {"ran", "waited", "misfit"}
    assert sum(row["progress"] or 0 for row in rows) == pytest.approx(3000 + 500 + 90 + 4000 + 100)
    assert [row["job"] for row in rows if row["completed"]].count("a") == 1


def test_parquet_needs_pyarrow(
    fairopt_run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = fairopt_run("--parquet", tmp_path / "run.parquet")
    assert ran.status == 3
    assert "pip install 'fairopt[tables]'" in ran.err
    assert ran.out == ""
    with pytest.raises(NotInstalled):
        require_parquet(tmp_path / "run.parquet")


# -- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--policy", "srft"), 2, "--policy: it is given twice. Give it once; `fairopt compare` takes several"),
        (("--set", "seed=1"), 2, "srtf has no option 'seed'"),
        (("--set", "seed"), 2, "Write OPTION=VALUE"),
        (("--set", "placement=best"), 2, "Known choices: Consolidated"),
        (("--length", "0"), 2, "length: got 0"),
        (("--length", "soon"), 2, "--length: got 'soon'"),
        (("--spread", "2"), 2, "--spread: got 2"),
        (("--restart", "-1"), 2, "--restart: got -1"),
        (("--backend", "highs"), 3, "it has no program for highs"),
        (("--backend", "hihgs"), 2, "Did you mean highs"),
        (("--state", "/nowhere/state"), 2, "cannot be written"),
        (("--parquet", "/nowhere/x"), 2, "cannot be written"),
        (("--resume", "/nowhere/state"), 2, "there is no such file"),
    ],
)
def test_what_cannot_be_meant(
    fairopt_run: Callable[..., Ran], arguments: tuple[str, ...], status: int, says: str
) -> None:
    ran = fairopt_run(*arguments)
    assert ran.status == status
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_options_of_policies() -> None:
    from fairopt import discovery

    themis = discovery.policy("themis")
    changed: Any = configured(themis, ["seed=3", "knob=0.5", "gang_share=true", "lease=none"])
    assert (changed.seed, changed.knob, changed.gang_share, changed.lease) == (3, Fraction(1, 2), True, None)
    tiresias: Any = configured(discovery.policy("tiresias"), ["thresholds=3600, 7200"])
    assert tiresias.thresholds == (3600, 7200)
    shares: Any = configured(discovery.policy("oef-rounds"), ["shares=max-min"])
    assert shares.shares.name == "max-min"
    for text, says in (
        ("seed=1.5", "whole number"),
        ("gang_share=maybe", "true or false"),
        ("knob=high", "not a number"),
        ("sede=1", "Did you mean 'seed'"),
    ):
        with pytest.raises(BadInput, match=says):
            configured(themis, [text])


def test_policies_of_rounds_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--json"], []):
        monkeypatch.setattr(sys, "argv", ["fairopt", "policies", *arguments])
        with pytest.raises(SystemExit):
            main()
        out = capsys.readouterr().out
        assert "srtf" in out
        assert "max-min" in out
        if arguments:
            decides = {row["name"]: row["decides"] for row in json.loads(out)}
            assert (decides["srtf"], decides["max-min"]) == ("rounds", "shares")
        else:
            assert out.index("max-min") < out.index("policy of rounds") < out.index("srtf")


def test_progress_counts_work(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = read_cluster(files[1])
    trace = read_trace(files[0], cluster.types)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    records = list(run(ShortestRemainingTimeFirst(), trace, cluster, length=300))
    progress = round_tables.RunProgress(trace, None)
    with round_tables.shown(progress) as tell:
        for record in records:
            progress.add(record.changes)
            tell()
    assert progress.part == 1
    assert "5 of 6 jobs done" in capsys.readouterr().err


def test_the_excerpt_runs_from_the_command_line(forked_fairopt: list[str]) -> None:
    command = [*forked_fairopt, "run", str(dataset_path("philly_1000.csv")), "--rounds", "30"]
    command += ["--cluster", str(dataset_path("philly_cluster.toml")), "--policy", "srtf", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(json.loads(ran.stdout)["rounds"]) == 30


def test_a_record_is_written_while_the_run_goes_on_and_verified(
    fairopt_run: Callable[..., Ran], tmp_path: Path
) -> None:
    state, record = tmp_path / "state.jsonl", tmp_path / "run.jsonl.gz"
    fairopt_run("--state", state, "--rounds", 2)
    assert fairopt_run("--resume", state, "--state", state, "--record", record).status == 0
    command = [sys.executable, str(ROOT / "proofs" / "verify.py"), str(record), str(state)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    last = json.loads(gzip.decompress(record.read_bytes()).splitlines()[-1])
    assert last["outcome"] == {"complete": True, "stopped": None}
    assert fairopt_run("--record", "/nowhere/x").status == 2
