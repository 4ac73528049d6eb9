"""`fairopt run` keeps its contracts: JSON, tables, Parquet, exit status, and going on after an interruption."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

from fairopt.cli import main, round_json, round_tables
from fairopt.cli.parquet import require_parquet
from fairopt.cli.settings import configured
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput, NotInstalled
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.problem import read_cluster, read_trace
from fairopt.problem.files import storage
from fairopt.simulation import History, Mechanics, Stalled, referee, run
from fairopt.simulation.differences import differences
from fairopt.simulation.measures import UNITS
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_record

ROOT = Path(__file__).parents[2]
CLUSTER = """
schema = 1
[[host]]
type = "K80"
gpus = 2
count = 2
bandwidth = 1.25
[[host]]
type = "V100"
gpus = 2
"""
JOBS = """job_id,tenant,submit_s,work,gpus,state_size,throughput K80,throughput V100
a,t,0,3000,1,0.5,1,3.3
b,u,20,500,2,0.5,1,2
c,u,700,90,4,0,1,0
d,t,900,4000,1,0.1,1,5
e,t,899.5,100,2,0.1,0,1
big,u,1300,10,8,0,1,1
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    trace, cluster = tmp_path / "jobs.csv", tmp_path / "cluster.toml"
    trace.write_text(JOBS)
    cluster.write_text(CLUSTER)
    return trace, cluster


@pytest.fixture
def fairopt_run(files: tuple[Path, Path], fairopt: Callable[..., Ran]) -> Callable[..., Ran]:
    def call(*arguments: object, policy: str = "srtf") -> Ran:
        return fairopt("run", files[0], "--cluster", files[1], "--policy", policy, *arguments)

    return call


def without_seconds(data: dict[str, Any]) -> dict[str, Any]:
    for record in data["rounds"]:
        del record["seconds"]
    del data["measures"]["deciding"], data["measures"]["row"]["deciding"]
    return data


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
    assert data["measures"]["misfits"] == ["big"]
    assert data["measures"]["row"].keys() == data["measures"]["units"].keys() == UNITS.keys()
    path = tmp_path / "run.json"
    path.write_text(ran.out)
    command = [sys.executable, str(ROOT / "proofs" / "verify_run.py"), str(path)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_numbers_in_floats(fairopt_run: Callable[..., Ran]) -> None:
    data = fairopt_run("--json", "--floats").data
    assert all(not isinstance(ran["progress"], str) for record in data["rounds"] for ran in record["ran"])
    exact = fairopt_run("--json").data
    assert data["measures"]["row"]["jct_mean"] == pytest.approx(exact["measures"]["row"]["jct_mean"])


def test_tables_for_people(fairopt_run: Callable[..., Ran]) -> None:
    ran = fairopt_run()
    assert ran.status == 0
    for words in ("5 of 6 jobs completed", "completion time (JCT)", "utilisation", "sharing_loss", "mean JCT"):
        assert words in ran.out
    assert "fit no type of the cluster: 1 jobs: big" in ran.out
    some = fairopt_run("--rounds", 1)
    assert some.status == 0
    assert "not completed: 2 jobs: a, b" not in some.out  # b comes later
    assert "not completed: 1 jobs: a" in some.out


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


# -- stopping and going on -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [(), ("--floats",)])
def test_a_run_gone_on_from_prints_what_one_run_prints(
    fairopt_run: Callable[..., Ran], tmp_path: Path, number: tuple[str, ...]
) -> None:
    state, options = tmp_path / "state.jsonl", ("--restart", "30", *number, "--json")
    whole = without_seconds(fairopt_run(*options).data)
    part = fairopt_run(*options, "--state", state, "--rounds", 2).data
    assert (len(part["rounds"]), part["outcome"]["complete"], part["outcome"]["stopped"]) == (2, False, "--rounds")
    again = fairopt_run(*options, "--state", state, "--resume", state, "--rounds", 3).data
    assert len(again["rounds"]) == 5
    assert without_seconds(fairopt_run(*options, "--resume", state).data) == whole


def interrupted_in(rounds: int, ended_by: int) -> Callable[..., Iterator[Any]]:
    def play(*arguments: Any, **options: Any) -> Iterator[Any]:
        for number, record in enumerate(run(*arguments, **options)):
            if number == rounds - 1:
                os.kill(os.getpid(), ended_by)
            yield record

    return play


@pytest.mark.parametrize(("ended_by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_what_it_has(
    fairopt_run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended_by: int, status: int
) -> None:
    state = tmp_path / "state.jsonl"
    whole = without_seconds(fairopt_run("--json").data)
    with monkeypatch.context() as patch:
        patch.setattr(referee, "run", interrupted_in(3, ended_by))
        ran = fairopt_run("--json", "--state", state)
    assert ran.status == status
    assert "interrupted after 3 rounds" in ran.err
    assert (len(ran.data["rounds"]), ran.data["outcome"]["stopped"]) == (3, "interrupted")
    assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_a_state_cut_short_while_it_was_written_is_read_to_its_last_snapshot(
    fairopt_run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairopt.cli.journal.BETWEEN", 0.0)
    state = tmp_path / "state.jsonl"
    whole = without_seconds(fairopt_run("--json", "--state", state).data)
    text = state.read_text()
    for cut in (len(text) - 5, len(text) // 2, len(text) // 3):
        state.write_text(text[:cut])
        assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_a_round_that_was_written_after_the_last_snapshot_is_played_again(
    fairopt_run: Callable[..., Ran], tmp_path: Path
) -> None:
    state = tmp_path / "state.jsonl"
    whole = without_seconds(fairopt_run("--json", "--state", state).data)
    fairopt_run("--state", state, "--rounds", 3)
    more = [line for line in state.read_text().splitlines() if not line.startswith('{"snapshot"')]
    fairopt_run("--state", state, "--rounds", 2)
    _, snapshot = [line for line in state.read_text().splitlines() if line.startswith('{"snapshot"')]
    rounds = [line for line in more if not line.startswith(('{"standing"', '{"end"'))]
    state.write_text("\n".join([*rounds, snapshot]) + "\n")
    assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_a_run_that_is_killed_goes_on_from_its_beginning_at_least(
    fairopt_run: Callable[..., Ran], files: tuple[Path, Path], tmp_path: Path
) -> None:
    """There is a snapshot before the first round; one is there every half minute."""
    state = tmp_path / "state.jsonl"
    command = """
import os, signal
from fairopt.cli import main
from fairopt.simulation import referee
def run(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
    yield
referee.run = run
main()
"""
    words = ["run", *map(str, files[:1]), "--cluster", str(files[1]), "--policy", "srtf", "--state", str(state)]
    ended = subprocess.run([sys.executable, "-c", command, *words], capture_output=True, check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    whole = without_seconds(fairopt_run("--json").data)
    assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_a_state_may_be_larger_than_any_file_that_we_read(
    fairopt_run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.jsonl"
    whole = without_seconds(fairopt_run("--json").data)
    fairopt_run("--state", state, "--rounds", 4)
    monkeypatch.setattr(storage, "LARGEST_FILE", max(len(JOBS), len(CLUSTER)) + 1)
    assert state.stat().st_size > storage.LARGEST_FILE
    assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_away_from_a_terminal_lines_say_how_far_a_long_run_is(
    fairopt_run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fairopt_run().err == ""
    monkeypatch.setattr(round_tables, "BETWEEN", 0.0)
    lines = fairopt_run().err.splitlines()
    assert lines[0].startswith("round 0, 0 of 6 jobs done, 0 wait; ")
    assert lines[-1].startswith("round 6, 5 of 6 jobs done, 0 wait; 100% in 0:00:0")


@pytest.mark.parametrize("floats", [(), ("--floats",)])
def test_a_window_is_measured_apart(fairopt_run: Callable[..., Ran], floats: tuple[str, ...]) -> None:
    found = fairopt_run("--json", "--window", "600:1200", *floats).data["measures"]
    assert (found["window"], found["jobs"], found["completed"]) == ([600, 1200], 3, 3)  # c, e, d
    assert found["gpu"]["usable"] == 6 * 600
    assert fairopt_run("--json", "--window", "600:", *floats).data["measures"]["window"] == [600, None]
    assert fairopt_run("--json", *floats).data["measures"]["window"] is None
    for text, says in (("600", "Write BEGIN:END"), ("9:3", "ends at 3"), ("a:", "not a number")):
        ran = fairopt_run("--window", text, *floats)
        assert ran.status == 2
        assert says in ran.err


def test_a_policy_that_cannot_go_on_keeps_the_rounds_before(
    fairopt_run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield from run(*arguments, **(options | {"rounds": 2}))
        raise Stalled("nothing runs")

    monkeypatch.setattr(referee, "run", play)
    ran = fairopt_run("--json")
    assert ran.status == 3
    assert ran.err == "fairopt: nothing runs\n"
    assert (len(ran.data["rounds"]), ran.data["outcome"]["stopped"]) == (2, "nothing runs")


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_records_are_read_as_they_were_written(files: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    cluster = read_cluster(files[1])
    trace, path = read_trace(files[0], cluster.types), tmp_path / name
    policy, mechanics = ShortestRemainingTimeFirst(), Mechanics(restart=Fraction(30))
    for given in (trace, trace.as_(float)):
        records = list(run(policy, given, cluster, length=100, mechanics=mechanics))
        about = header("srtf", given, cluster, length=100, mechanics=mechanics)
        with Recorder(path, about, given, cluster) as book:
            book.keep()
            for changes in differences(given, cluster, records):
                book.add(changes)
            book.end(records[-1].after)
        read = read_record(path)
        assert list(read.rounds()) == [replace(each, after=replace(each.after, state=None)) for each in records]
        assert sum(record.seconds for record in read.rounds()) == pytest.approx(sum(each.seconds for each in records))
        assert read.history.completion == History.of(given, cluster, records).completion
        written = (gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()).splitlines()
        rounds = [json.loads(line) for line in written if line.startswith(b'{"round"')]
        assert len(rounds) < len(records), "a round in which nothing changes has no line"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("--length", "200"), "run, length: the run was begun with 300, not with 200"),
        (("--restart", "1"), "run, mechanics"),
        (("--floats",), "run, numbers"),
        (("--backend", "highs"), "run, backend"),
    ],
)
def test_a_run_goes_on_only_as_it_was_begun(
    fairopt_run: Callable[..., Ran], tmp_path: Path, change: tuple[str, ...], says: str
) -> None:
    state = tmp_path / "state.jsonl"
    fairopt_run("--state", state, "--rounds", 1)
    ran = fairopt_run("--resume", state, *change)
    assert ran.status == 2
    assert str(state) in ran.err
    assert says in ran.err


def test_a_run_goes_on_only_with_the_same_files(
    fairopt_run: Callable[..., Ran], files: tuple[Path, Path], tmp_path: Path
) -> None:
    state = tmp_path / "state.jsonl"
    fairopt_run("--state", state, "--rounds", 1)
    files[0].write_text(JOBS.replace("a,t,0,3000", "a,t,0,3001"))
    ran = fairopt_run("--resume", state)
    assert ran.status == 2
    assert "run, trace: the run was begun with another file's contents" in ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("hello", "line 1: not JSON"),
        ("[]", "line 1: neither a round nor a snapshot"),
        ('{"schema": 3, "run": {}}', "line 1: no run begins there"),
        ('{"schema": 1, "run": {}}', "line 1: it has schema 1, and this fairopt reads schema 2. Begin the run anew"),
        ("{header}", "no snapshot yet"),
        ('{header}\n{"round": {}}\n{snapshot}', "line 2: a round has no number"),
        ("{header}\nx\n{snapshot}", "line 2: not JSON"),
    ],
)
def test_states_that_are_none(fairopt_run: Callable[..., Ran], tmp_path: Path, text: str, says: str) -> None:
    state = tmp_path / "state.jsonl"
    fairopt_run("--state", state, "--rounds", 1)
    lines = state.read_text().splitlines()
    _, snapshot = [line for line in lines if line.startswith('{"snapshot"')]
    state.write_text(text.replace("{header}", lines[0]).replace("{snapshot}", snapshot))
    ran = fairopt_run("--resume", state)
    assert ran.status == 2
    assert says in ran.err


# -- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--policy", "srft"), 2, "--policy: it is given twice. Give it once; `fairopt compare` takes several"),
        (("--set", "seed=1"), 2, "srtf has no option 'seed'"),
        (("--set", "seed"), 2, "Write OPTION=VALUE"),
        (("--set", "placement=best"), 2, "others can be given in Python only"),
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
        for changes in differences(trace, cluster, records):
            progress.add(changes)
            tell()
    assert progress.part == 1
    assert "5 of 6 jobs done" in capsys.readouterr().err


def test_the_excerpt_runs_from_the_command_line() -> None:
    command = [sys.executable, "-m", "fairopt", "run", str(dataset_path("philly_1000.csv")), "--rounds", "30"]
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
