"""Our data sets pass their suite, the suites catch what should not pass, and the command writes data sets to files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fairopt.cli import main
from fairopt.datasets import dataset_path, oef_example
from fairopt.discovery import DATASETS, load, names
from fairopt.errors import BadInput
from fairopt.problem import Market, read_market
from fairopt.problem.files.problem import kind_of, name_of
from fairopt.testing.data_suites import dataset_suite, importer_suite
from fairopt.testing.suite import Outcome


@pytest.mark.parametrize("name", names(DATASETS))
def test_data_set_conforms(name: str) -> None:
    dataset_suite().run([load(DATASETS, name)]).require_complete()


def test_the_suite_of_data_sets_catches() -> None:
    numbers = count(1)

    def growing() -> Market:
        """Return a market with one GPU more each time.

        Source: nobody.
        """
        return Market.of([[1]], [next(numbers)])

    def silent() -> Market:
        return oef_example()

    def text() -> str:
        """Return no problem. Source: nobody."""
        return "market"

    caught = {growing: "is the same each time", silent: "says what it is", text: "survives a file"}
    for made, name in caught.items():
        report = dataset_suite().run([made])
        assert name in {row.check for row in report.of(Outcome.FAILED)}


def reader(fail: Callable[[Path], Any]) -> Callable[[Any], Market]:
    def read(path: Any) -> Market:
        """Read a market. Source: nobody."""
        try:
            return read_market(path)
        except BadInput:
            return fail(path)  # type: ignore[no-any-return]

    return read


def test_the_suite_of_importers_catches() -> None:
    def nameless(path: Path) -> None:
        raise BadInput("something is wrong")

    def traceback(path: Path) -> None:
        raise KeyError(path)

    refusals = {"refuses a missing file", "refuses noise"}
    for fail in (lambda path: oef_example(), nameless, traceback):
        report = importer_suite(dataset_path("oef_example.toml")).run([reader(fail)])
        assert {row.check for row in report.of(Outcome.FAILED)} == refusals


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fairopt", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_the_list_says_what_each_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "datasets", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    kinds = {name: name_of(kind_of(load(DATASETS, name)(), name)) for name in rows}
    assert {name: row["kind"] for name, row in rows.items()} == kinds
    assert all(row["about"] for row in rows.values())
    assert run(monkeypatch, "datasets") == 0
    assert "philly-trace" in capsys.readouterr().out


def test_a_data_set_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "market.csv"
    assert run(monkeypatch, "datasets", "oef-example", "--out", str(path)) == 0
    assert read_market(path) == oef_example()
    assert f"{path}: market, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["datasets", "oef-exampel", "--out", "x.toml"], "Did you mean @oef-example"),
        (["datasets", "oef-example"], "Give --out oef-example.toml"),
        (["datasets", "--out", "x.toml"], "no data set is named for x.toml"),
        (["datasets", "oef-example", "--out", "x.exe"], ".toml"),
        (["import", "nothing", "x", "--out", "x.toml"], "there is no 'nothing' among the importers"),
    ],
)
def test_mistakes(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert says in capsys.readouterr().err


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(BadInput, match=r"importer 'mine'.*got 3, which is no problem.*a Market"):
        kind_of(3, "importer 'mine'")
