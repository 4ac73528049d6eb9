"""`fairopt generate`: from a generator to a file, and from there to a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

Command = Callable[..., Ran]


def test_a_record_of_a_misled_run_is_accepted_by_the_verifier(fairopt: Command, tmp_path: Path) -> None:
    drawn, record = tmp_path / "drawn.csv", tmp_path / "run.jsonl.gz"
    of = "generate poisson --set jobs=30 --cluster @philly-cluster --error 0.3 --error-sign under --json -o"
    made = fairopt(*of.split(), drawn)
    assert made.status == 0
    assert abs(json.loads(made.out)["load"] - 0.8) < 1e-6
    assert "estimate" in drawn.read_text(encoding="utf-8").partition("\n")[0]
    ran = fairopt("run", drawn, *["--cluster", "@philly-cluster", "--policy", "srtf", "--record"], record)
    assert ran.status == 0, ran.err
    checked = fairopt("check", record)
    assert checked.status == 0, checked.out + checked.err


def test_generators_are_listed_and_described(fairopt: Command) -> None:
    listed = fairopt("generate")
    assert "fft-traces" in listed.out
    assert "fft-cluster" in listed.out
    described = fairopt("generate", "poisson").out
    assert "longest_hours" in described
    assert "They are set by --set OPTION=VALUE" in described
    assert len(json.loads(fairopt("generate", "--json").out)) == 7


def test_the_same_command_writes_the_same_bytes(fairopt: Command, tmp_path: Path) -> None:
    for name in ("one.csv.gz", "two.csv.gz"):
        made = fairopt("generate", "fft-traces", "--set", "jobs=50", "--seed", 4, "--out", tmp_path / name)
        assert "load 1.0000 at mean speed" in made.out
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("generate --out x.csv", "--out: no trace to write to x.csv. Name a generator"),
        ("generate poison --out x.csv", "Did you mean poisson?"),
        ("generate poisson --out x.csv", "--cluster: poisson has no cluster of its own. Give a cluster file"),
        ("generate fft-traces --set lod=1 --out x.csv", "fft-traces has no option 'lod'"),
        ("generate fft-traces --set which=0 --out x.csv", "which: got 0. Give one of 1, 2, 3"),
        ("generate fft-traces --error 1 --out x.csv", "error: got 1.0, by which an estimate may be too small"),
        ("generate fft-traces --error much --out x.csv", "--error: got 'much', not a number"),
        ("generate fft-traces --set jobs=20 --out x.txt", "x.txt: its name: it ends in '.txt'"),
        ("generate astraea-venus --set data=none.csv --out x.csv", "none.csv: data: cannot be read"),
    ],
)
def test_mistakes_end_with_status_2(
    fairopt: Command, arguments: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = fairopt(*arguments.split())
    assert (ran.status, ran.out) == (2, "")
    assert words in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [["--set", "jobs=3"], ["--seed", 1], ["--cluster", "@philly-cluster"]])
def test_options_of_a_trace_that_is_written_nowhere_are_refused(fairopt: Command, options: list[object]) -> None:
    ran = fairopt("generate", "poisson", *options)
    assert ran.status == 2
    assert "--out: nothing says where to write the trace. Add --out FILE" in ran.err


def test_the_kind_of_an_error_needs_its_size(fairopt: Command, tmp_path: Path) -> None:
    ran = fairopt("generate", "oef-tenants", "--error-form", "fixed", "--out", tmp_path / "t.csv")
    assert ran.status == 2
    assert "--error: " in ran.err
    assert "Give its size" in ran.err


def test_an_error_of_no_size_is_refused(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt("generate", "poisson", "--cluster", "@philly-cluster", "--out", tmp_path / "x.csv", "--error", "0")
    assert ran.status == 2
    assert "--error: got 0" in ran.err
