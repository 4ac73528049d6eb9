"""`fairopt run` is stopped, killed and gone on from; its records and states are read back."""

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
from played_files import CLUSTER, JOBS, without_seconds
from ran_command import Ran

from fairopt.cli import round_tables, running
from fairopt.errors import NotSolved
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.problem import read_cluster, read_trace
from fairopt.problem.files import storage
from fairopt.simulation import History, Mechanics, run
from fairopt.simulation.engine import Engine
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_record


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


def interrupted_in(rounds: int, ended_by: int) -> type[Engine]:
    class Interrupted(Engine):
        def __iter__(self) -> Iterator[Any]:
            for number, changes in enumerate(super().__iter__()):
                if number == rounds - 1:
                    os.kill(os.getpid(), ended_by)
                yield changes

    return Interrupted


@pytest.mark.parametrize(("ended_by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_keeps_what_it_has(
    fairopt_run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended_by: int, status: int
) -> None:
    state = tmp_path / "state.jsonl"
    whole = without_seconds(fairopt_run("--json").data)
    with monkeypatch.context() as patch:
        patch.setattr(running, "Engine", interrupted_in(3, ended_by))
        ran = fairopt_run("--json", "--state", state)
    assert ran.status == status
    assert "interrupted after 3 rounds" in ran.err
    assert (len(ran.data["rounds"]), ran.data["outcome"]["stopped"]) == (3, "interrupted")
    assert without_seconds(fairopt_run("--json", "--resume", state).data) == whole


def test_a_state_cut_short_while_it_was_written_is_read_to_its_last_snapshot(
    fairopt_run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairopt.simulation.recording.BETWEEN", 0.0)
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
from fairopt.cli import running
def killed(engine):
    os.kill(os.getpid(), signal.SIGKILL)
    yield
running.Engine.__iter__ = killed
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
    class Stalling(Engine):
        def __iter__(self) -> Iterator[Any]:
            for number, changes in enumerate(super().__iter__()):
                yield changes
                if number == 1:
                    raise NotSolved("nothing runs")

    monkeypatch.setattr(running, "Engine", Stalling)
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
            for changes in (record.changes for record in records):
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
        ('{"schema": 3, "run": {}}', "line 1: this is not the beginning of a recorded run"),
        ('{"schema": 1, "run": {}}', "line 1: it has schema 1, and this fairopt reads schema 2. Begin the run anew"),
        ("{header}", "no snapshot yet"),
        ('{header}\n{"round": {}}\n{snapshot}', "line 2: a round has no number"),
        ("{header}\nx\n{snapshot}", "line 2: not JSON"),
        ('{header}\n{"snapshot": {now: null}}', "snapshot: got nan for a time"),
        ('{header}\n{"snapshot": {now: Infinity}}', "snapshot: got inf for a time"),
        ('{header}\n{"snapshot": {now: -1}}', "snapshot: got -1 for a time"),
        ('{header}\n{"snapshot": {now: 300}, "seconds": []}', "seconds: got []"),
        ('{header}\n{"snapshot": {now: 300}, "seconds": 0}', "line 2, key 'sha256': the snapshot is not as it was"),
    ],
)
def test_states_that_are_none(fairopt_run: Callable[..., Ran], tmp_path: Path, text: str, says: str) -> None:
    state = tmp_path / "state.jsonl"
    fairopt_run("--state", state, "--rounds", 1)
    lines = state.read_text().splitlines()
    _, snapshot = [line for line in lines if line.startswith('{"snapshot"')]
    text = text.replace("{header}", lines[0]).replace("{snapshot}", snapshot)
    rest = {key: value for key, value in json.loads(snapshot)["snapshot"].items() if key != "now"}
    state.write_text(text.replace("{now:", json.dumps(rest)[:-1] + ', "now":'))
    ran = fairopt_run("--resume", state)
    assert ran.status == 2
    assert says in ran.err


def test_what_a_policy_remembers_is_its_own(fairopt_run: Callable[..., Ran], tmp_path: Path) -> None:
    """A tenant that the trace does not know had ended in a `KeyError`."""
    state = tmp_path / "state.jsonl"
    fairopt_run("--state", state, "--rounds", 2, policy="ltgf")
    first, *lines = state.read_text().splitlines()
    tenant = '"u"'
    number = max(at for at, line in enumerate(lines) if line.startswith('{"snapshot"'))
    assert tenant in lines[number]
    lines[number] = lines[number].replace(tenant, '"x"')
    state.write_text("\n".join([first, *lines]) + "\n")
    ran = fairopt_run("--resume", state, policy="ltgf")
    assert ran.status == 2
    assert f"{state}: line {number + 2}, key 'sha256': the snapshot is not as it was written" in ran.err
