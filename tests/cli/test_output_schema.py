"""What every command prints with --json fits the published schema, and nothing that lacks a key does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ran_command import Ran
from small_files import subcommands, write_small_files

from fairopt import discovery
from fairopt.cli.output_schema import OUTPUTS, output_schema

LIES = "solve @oef-eq6 --policy max-min --exact --json"
ROUNDS = "--cluster @philly --policy srtf --rounds 1 --floats"
#: Arguments by command. FOLDER is one that can be written to, in which the files of `made` are.
CALLS = (
    ("solve", "solve @oef-eq6 --policy oef-cooperative --json"),
    ("solve", LIES),
    ("verify", "verify @oef-eq6 FOLDER/shares.json --json"),
    ("verify", "verify @astraea-example FOLDER/plan.json --json"),
    ("verify", "verify FOLDER/run.jsonl --json"),
    ("compare", "compare @oef-eq6 --floats --policy max-min --evaluations 30 --every-optimum --json"),
    ("compare", "compare @astraea-example --policy fcfs --property budget_balance --json"),
    ("compare", "compare FOLDER/two.csv --cluster @philly-cluster --policy srtf --json"),
    ("compare", "compare FOLDER/two.csv --cluster @philly-cluster --policy srtf --policy tiresias --seeds 3 --json"),
    ("audit", "audit FOLDER/now.toml --json"),
    ("explain", "explain FOLDER/now.toml train --json"),
    ("whatif", "whatif FOLDER/now.toml --set train.H100.quota=4 --json"),
    ("plan", "plan FOLDER/now.toml --policy max-min --throughput FOLDER/speeds.csv --emit kueue --json"),
    ("policies", "policies --json"),
    ("policies", "policies fft --json"),
    ("backends", "backends --json"),
    ("properties", "properties --json"),
    ("plugins", "plugins --json"),
    ("datasets", "datasets --json"),
    ("datasets", "datasets oef-eq6 --out FOLDER/out.toml --json"),
    ("generate", "generate --json"),
    ("generate", "generate poisson --json"),
    ("generate", "generate poisson --set jobs=20 --cluster @philly-cluster --out FOLDER/drawn.csv --json"),
    ("import", "import oef FOLDER/shares.json --out FOLDER/imported.toml --json"),
    ("check", "check FOLDER/proof.json FOLDER/shares.json --json"),
    ("claims", "claims --json"),
    ("lie", "lie @oef-eq6 --policy max-min --json"),
    ("lie", "lie @oef-eq6 --policy equal-split --evaluations 6 --json"),
    ("frontier", "frontier @oef-eq6 --policy max-min --json"),
    ("incentives", "incentives @oef-eq6 --policy max-min --kind any --evaluations 6 --json"),
    ("run", f"run @philly {ROUNDS} --json"),
    ("schedule", "schedule @astraea-example --policy fcfs --json"),
    ("study run", "study FOLDER/study.toml --jobs 1 --cells FOLDER/new.jsonl --page FOLDER/study.html --json"),
    ("study merge", "study merge FOLDER/cells.jsonl -o FOLDER/all.jsonl --json"),
    ("study report", "study report FOLDER/cells.jsonl --json"),
    ("study list", "study list --json"),
    ("bench run", "bench FOLDER/small.toml --json -"),
    ("bench list", "bench list --json"),
    ("bench report", "bench report FOLDER/results.jsonl -o FOLDER/report.html --json"),
    ("bench export", "bench export FOLDER/small.toml --out FOLDER/instances --json"),
    ("bench figures", "bench figures FOLDER/results.jsonl --into FOLDER/page.md --json"),
)


def test_every_command_has_json_and_a_schema() -> None:
    assert set(OUTPUTS) == set(subcommands())
    assert {command for command, _ in CALLS} == set(OUTPUTS)
    Draft202012Validator.check_schema(output_schema())


def test_every_output_has_the_version() -> None:
    schema = output_schema()

    def objects(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "$ref" in part:
            yield from objects(schema["$defs"][part["$ref"].rpartition("/")[2]])
        elif "anyOf" in part:
            for each in part["anyOf"]:
                yield from objects(each)
        else:
            yield part["items"] and from_items(part) if part.get("type") == "array" else part

    def from_items(part: dict[str, Any]) -> dict[str, Any]:
        [only] = objects(part["items"])
        return only

    for command, output in OUTPUTS.items():
        for part in objects(output):
            assert "schema" in part["required"], command


@pytest.fixture
def made(tmp_path: Path, fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the calls read."""
    write_small_files(tmp_path)
    (tmp_path / "plan.json").write_text(fairopt("schedule", "@astraea-example", "--policy", "fcfs", "--json").out)
    monkeypatch.setattr(
        discovery, "load", lambda group, name, load=discovery.load: _importer if name == "oef" else load(group, name)
    )
    return tmp_path


def _importer(path: Path) -> Any:
    return discovery.load(discovery.DATASETS, "oef-eq6")()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("command", "line"), CALLS, ids=[line for _, line in CALLS])
def test_the_output_fits(
    made: Path, fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, command: str, line: str
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # no other processes for a few cells
    if "run.jsonl" in line:
        fairopt("run", "@philly", *ROUNDS.split(), "--record", made / "run.jsonl")
    if "proof.json" in line:
        fairopt(*LIES.split(), "--certificate", made / "proof.json")
    if "results.jsonl" in line:
        fairopt("bench", made / "small.toml", "--json", made / "results.jsonl")
    if "cells.jsonl" in line:
        fairopt("study", made / "study.toml", "--jobs", "1", "--cells", made / "cells.jsonl", "--page", made / "p.html")
    ran = fairopt(*line.replace("FOLDER", str(made)).split())
    validator = Draft202012Validator(output_schema(command))
    found = [json.loads(text) for text in ran.out.splitlines()] if command == "bench run" else [ran.data]
    assert found, ran.err
    for data in found:
        assert [error.message for error in validator.iter_errors(data)] == []
        for one in data if isinstance(data, list) else [data]:
            assert one["schema"] == 1
            lacking = {key: value for key, value in one.items() if key != "schema"}
            assert not validator.is_valid([lacking] if isinstance(data, list) else lacking)
