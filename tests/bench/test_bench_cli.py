"""`fairopt bench`: files that survive interruptions, a table otherwise, and remedies for mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import bench_records
import pytest
from bench_records import environment, stages

from fairopt.cli import main
from fairopt.cli.parquet import write_parquet
from fairopt.errors import BadInput
from fairopt.experiment.bench import Judgement
from fairopt.experiment.bench.records import (
    COLUMNS,
    KINDS,
    Measurement,
    measurements,
    read_results,
    rows,
)
from fairopt.experiment.journal import RecordsFile, TrialStatus, line_of, record_in
from fairopt.experiment.machine import Clock

SPEC = """
schema = 1
name = "small"
task = "max-min"
time_limit = 20
repeats = {repeats}
[[instances]]
family = "uniform"
parameters = {{ users = [4, 5], types = 2 }}
[[contenders]]
contender = "bench_fakes:{fake}"
label = "it"
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SPEC.format(repeats=1, fake="Failing"), encoding="utf-8")
    return path


def command(*words: object, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["fairopt", "bench", *(str(word) for word in words)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def measurement(**changes: Any) -> Measurement:
    made: dict[str, Any] = {
        "settings": {"delay": 0.5},
        "seconds": stages(Clock(0.5, 0.25), Clock(1.0, 1.0)),
        "judgement": Judgement(True, 0.0, float("nan"), 1.5, "checked"),
        **changes,
    }
    return bench_records.measurement(environment(), **made)


# -- lines and files --------------------------------------------------------------------------------------------------
def test_lines_come_back_as_they_were() -> None:
    found = record_in(line_of(measurement()), KINDS)
    assert isinstance(found, Measurement)
    assert line_of(found) == line_of(measurement())
    assert found.judgement is not None
    assert found.judgement.gap != found.judgement.gap
    assert found.seconds == measurement().seconds
    assert record_in(line_of(environment()), KINDS) == environment()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"schema": 1', '"schema": 9', "schema 9.*reads schema 1"),
        ('"measurement"', '"measurment"', "Did you mean 'measurement'"),
        ('"repeat": 0', '"repeat": "0"', "key 'repeat': got '0'"),
        ('"repeat"', '"repaet"', "unknown key 'repaet'"),
        ('"solved"', '"slved"', "key 'status'.*Did you mean 'solved'"),
        ('"wall": 0.5', '"wall": "x"', "key 'seconds', key 'build', key 'wall'"),
        ('"task": "max-min", ', "", "'task' is missing"),
        ('{"schema"', '["schema"', "not JSON"),
        ('{"schema"', "[" * 100_000 + '{"schema"', "not JSON"),
    ],
)
def test_malformed_lines_are_refused_with_their_place(tmp_path: Path, old: str, new: str, words: str) -> None:
    line = line_of(measurement())
    assert old in line
    path = tmp_path / "results.jsonl"
    path.write_text(line_of(environment()) + "\n" + line.replace(old, new, 1) + "\n")
    with pytest.raises(BadInput, match=f"results.jsonl: line 2.*{words}"):
        read_results(path)


def test_a_torn_last_line_is_dropped_and_a_whole_one_without_its_end_is_kept(tmp_path: Path) -> None:
    path, said = tmp_path / "results.jsonl", list[str]()
    whole = line_of(environment()) + "\n" + line_of(measurement()) + "\n"
    path.write_text(whole + line_of(measurement(repeat=1))[:-30])
    with RecordsFile(path, KINDS, said.append, place="--json") as file:
        assert len(measurements(file.before)) == 1
        file.add(measurement(repeat=1))
    assert "cut off" in said[0]
    assert path.read_text() == whole + line_of(measurement(repeat=1)) + "\n"
    path.write_text(whole + line_of(measurement(repeat=1)))
    with RecordsFile(path, KINDS, said.append, place="--json") as file:
        file.add(measurement(repeat=2))
    assert [each.repeat for each in measurements(read_results(path))] == [0, 1, 2]
    assert len(said) == 1


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    one, other = (RecordsFile(tmp_path / "results.jsonl", KINDS, print, place="--json") for _ in range(2))
    with one, pytest.raises(BadInput, match="another run is writing"), other:
        pass


def test_a_parquet_table_has_the_columns_that_are_documented(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "results.parquet"
    skipped = measurement(status=TrialStatus.SKIPPED, seconds=stages(), judgement=None)
    write_parquet(rows([environment(), measurement(), skipped]), COLUMNS, path)
    table = parquet.read_table(path)
    assert table.schema.names == [name for name, _, _ in COLUMNS]
    first, second = table.to_pylist()
    assert (first["build_wall"], first["solve_cpu"], first["certify_wall"], first["gap"]) == (0.5, 1.0, None, None)
    assert json.loads(first["settings"]) == {"delay": 0.5}
    assert json.loads(first["environment_json"])["cpu"] == "A CPU"
    assert (second["status"], second["build_wall"], second["note"]) == ("skipped", None, None)
    text = (Path(__file__).parents[2] / "docs" / "formats" / "benchmark.md").read_text(encoding="utf-8")
    for name, kind, says in COLUMNS:
        assert f"| `{name}` | {kind} | {says} |" in text


# -- the command ------------------------------------------------------------------------------------------------------
def test_a_run_writes_lines_to_the_file_only_and_goes_on_from_them(
    tmp_path: Path, spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    assert command(spec, "--json", results, "--parquet", tmp_path / "p.parquet", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "numerical trouble" in said.err
    found = read_results(results)
    assert [record.kind for record in found] == ["environment", *["measurement"] * 2]
    kept = results.read_text()
    # cut off in the middle of the last line: that one is measured again
    results.write_text(kept[:-40])
    assert command("--json", results, spec, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert "cut off" in said.err
    assert "going on from 1 measurements" in said.err
    assert len(measurements(read_results(results))) == 2
    assert command("run", spec, "--json", results, monkeypatch=monkeypatch) == 0
    assert "nothing is left" in capsys.readouterr().err
    assert command("report", results, "-o", tmp_path / "page.html", monkeypatch=monkeypatch) == 0
    assert "numerical trouble" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_without_a_file_a_table_is_printed_and_dash_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SPEC.format(repeats=1, fake="Sound").replace("[4, 5]", "4"), encoding="utf-8")
    assert command(path, monkeypatch=monkeypatch) == 0
    table = capsys.readouterr().out
    assert "uniform (users 4, types 2)" in table
    assert "solved" in table
    assert command(path, "--json", "-", monkeypatch=monkeypatch) == 0
    lines = [record_in(line, KINDS) for line in capsys.readouterr().out.splitlines()]
    assert [each.status for each in measurements(lines)] == [TrialStatus.SOLVED]


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
def test_an_interrupted_run_keeps_what_it_has_and_the_same_command_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    path, results = tmp_path / "small.toml", tmp_path / "results.jsonl"
    text = SPEC.format(repeats=2, fake="Sound").replace("[4, 5]", "4") + "settings = { delay = 0.5 }\n"
    path.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "fairopt", "bench", str(path), "--json", str(results)]
    first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(1200):
        if results.exists() and '"measurement"' in results.read_text():
            break
        time.sleep(0.05)
    os.kill(first.pid, how)
    out, said = first.communicate(timeout=60)
    assert out == ""
    assert first.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    assert ("interrupted after" in said) == (how is signal.SIGINT)
    before = measurements(read_results(results))
    assert len(before) == 1
    again = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert f"going on from {len(before)}" in again.stderr
    after = measurements(read_results(results))
    assert len({(each.instance.digest, each.repeat) for each in after}) == len(after) == 2
    assert after[: len(before)] == before


def test_one_that_is_interrupted_before_it_measures_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that there is nothing to report, with the status of bad input."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path, page = tmp_path / "small.toml", tmp_path / "page.html"
    path.write_text(SPEC.format(repeats=1, fake="Sound").replace("[4, 5]", "4"), encoding="utf-8")
    monkeypatch.setattr("fairopt.experiment.bench.run.run_spec", stopped)
    words = (path, "--json", str(tmp_path / "results.jsonl"), "--report", str(page))
    assert command(*words, monkeypatch=monkeypatch) == 130
    assert "interrupted after 0 measurements" in capsys.readouterr().err
    assert not page.exists()


@pytest.mark.parametrize(
    ("words", "problem", "remedy"),
    [
        (["nowhere.toml"], "no such file", "fairopt bench list"),
        (["oef-coperative"], "no specification", "Did you mean 'oef-cooperative'"),
        (["SPEC", "--json", "."], "cannot write", "Check that the folder"),
        (["SPEC", "--parquet", "nowhere/a.parquet"], "cannot be written", "Name a file"),
        (["SPEC", "--report", "nowhere/a.html"], "cannot be written", "Name a file"),
        (["SPEC", "--workers", "0"], "--workers: got 0", "at least 1"),
        (["SPEC", "--workers", "2", "--dask", "local:2"], "--workers 2 with --dask", "one of the two"),
        (["SPEC", "--dask", "local:many"], "--dask: got 'local:many'", "local:2"),
        (["report", "nowhere.jsonl", "-o", "a.html"], "there is no such file", "no .jsonl files"),
        (["export", "SPEC", "--out", "."], "--out: . holds other things", "a new folder"),
        (["export", "SPEC", "--out", "new", "--time-limit", "-1"], "--time-limit: got -1", "above 0"),
        (["export", "oef-coperative", "--out", "new"], "no specification", "Did you mean 'oef-cooperative'"),
    ],
)
def test_mistakes_end_with_status_2_and_a_remedy(
    spec: Path,
    words: list[str],
    problem: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(spec) if word == "SPEC" else word for word in words]
    assert command(*given, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert problem in said.err
    assert remedy in said.err


def test_a_report_of_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert command("report", empty, "-o", tmp_path / "a.html", monkeypatch=monkeypatch) == 2
    assert "no measurements" in capsys.readouterr().err


def test_an_export_says_what_it_writes_and_a_task_without_a_program_is_refused(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("export", spec, "--out", tmp_path / "made", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert said.out.count(", proven") == said.err.count(", proven") == 2
    assert "[2/2] uniform (users 5, types 2), seed 0: " in said.err
    assert "2 in " in said.err
    spec.write_text(spec.read_text().replace("max-min", "nash-welfare").replace("Failing", "Sound"))
    assert command("export", spec, "--out", tmp_path / "none", monkeypatch=monkeypatch) == 3
    assert "logarithms" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_no_test_reads_the_folder_that_it_was_started_from(pytestconfig: pytest.Config) -> None:
    assert Path.cwd() not in (pytestconfig.invocation_params.dir, pytestconfig.rootpath)
    assert not [*Path.cwd().iterdir()]


def test_list_says_what_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("list", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    for name in ("oef-cooperative", "water-filling", "oef-growing", "gavel-table", "first-look"):
        assert name in said


@pytest.mark.parametrize("twice", ["--parquet", "--report"])
def test_one_file_for_two_purposes_is_refused(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], twice: str
) -> None:
    results = tmp_path / "results"
    assert command(spec, "--json", results, twice, results, monkeypatch=monkeypatch) == 2
    assert "is the file of --json as well" in capsys.readouterr().err
    assert not results.exists()


@pytest.mark.parametrize(
    ("option", "hidden", "extra"),
    [("--report", "jinja2", "bench"), ("--report", "scipy.stats", "bench"), ("--parquet", "pyarrow", "tables")],
)
def test_a_missing_library_is_told_before_anything_is_measured(
    spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    hidden: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, hidden, None)
    results = tmp_path / "results.jsonl"
    assert command(spec, "--json", results, option, tmp_path / "written", monkeypatch=monkeypatch) == 3
    assert f"pip install 'fairopt[{extra}]'" in capsys.readouterr().err
    assert not results.exists()
