"""Files that were asked for are written, whoever reads what is printed: all commands that write any, with no reader."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_files import subcommands, write_small_files

from fairopt.datasets import dataset_path

KAI = dataset_path("SOURCES.md").parent / "clusters/kai/cluster.yaml"
PLAYED = "--cluster @philly --policy srtf --rounds 1 --floats"
#: Arguments by command, and the files that they ask for. FOLDER is one with small files.
CALLS = (
    ("solve", "solve @oef-eq6 --policy max-min --certificate FOLDER/proof.json", "proof.json"),
    ("verify", "verify @oef-eq6 FOLDER/shares.json --certificates FOLDER/new", "new/envy_freeness.json"),
    (
        "compare",
        "compare @oef-eq6 --policy max-min --property envy_freeness --certificates FOLDER/new",
        "new/max-min/decision.json",
    ),
    ("audit", "audit FOLDER/now.toml --html FOLDER/p.html --certificates FOLDER/new", "p.html new/guarantee_kept.json"),
    ("explain", "explain FOLDER/now.toml train --graphml FOLDER/g.graphml", "g.graphml"),
    ("whatif", "whatif FOLDER/now.toml --set train.H100.quota=4 --html FOLDER/p.html", "p.html"),
    (
        "plan",
        "plan FOLDER/now.toml --policy max-efficiency --throughput FOLDER/speeds.csv --emit kueue --out FOLDER/new",
        "new/apply.yaml",
    ),
    ("datasets", "datasets oef-eq6 --out FOLDER/out.toml", "out.toml"),
    ("generate", "generate poisson --set jobs=20 --cluster @philly-cluster --out FOLDER/drawn.csv", "drawn.csv"),
    ("import", f"import kai {KAI} --out FOLDER/out.toml", "out.toml"),
    (
        "lie",
        "lie @oef-eq6 --policy max-min --evaluations 30 --certificate FOLDER/proof.json --out FOLDER/out.toml",
        "proof.json out.toml",
    ),
    (
        "frontier",
        "frontier @oef-eq6 --goal total_efficiency --policy max-min --html FOLDER/p.html --out FOLDER/p.svg "
        "--certificates FOLDER/new",
        "p.html p.svg new",
    ),
    (
        "run",
        f"run @philly {PLAYED} --json --parquet FOLDER/p.parquet --state FOLDER/s.jsonl --record FOLDER/r.jsonl.gz",
        "p.parquet s.jsonl r.jsonl.gz",
    ),
    (
        "study run",
        "study FOLDER/study.toml --jobs 1 --cells FOLDER/c.jsonl --page FOLDER/p.html --table FOLDER/t.csv",
        "c.jsonl p.html t.csv",
    ),
    ("schedule", "schedule @astraea-example --policy packing --write FOLDER/x.mps", "x.mps"),
    ("study merge", "study merge FOLDER/c.jsonl -o FOLDER/all.jsonl", "all.jsonl"),
    ("study report", "study report FOLDER/c.jsonl --page FOLDER/q.html --table FOLDER/t.tex", "q.html t.tex"),
    ("bench run", "bench FOLDER/small.toml --json FOLDER/r.jsonl --report FOLDER/p.html", "r.jsonl p.html"),
    ("bench report", "bench report FOLDER/r.jsonl -o FOLDER/q.html", "q.html"),
    ("bench export", "bench export FOLDER/small.toml --out FOLDER/instances", "instances/README.md"),
    ("bench figures", "bench figures FOLDER/r.jsonl --into FOLDER/page.md", "page.md"),
)
#: What has to be there before, by command.
BEFORE = {"study merge": "study run", "study report": "study run", "bench report": "bench run"}
BEFORE |= {"bench figures": "bench run"}
LINES = {command: line for command, line, _ in CALLS}
AT_ONCE = ("audit", "run")


def unread(fairopt: list[str], line: str, folder: Path) -> int:
    """Run a command of which nobody reads anything; return its exit status."""
    read, write = os.pipe()
    os.close(read)
    arguments = line.replace("FOLDER", str(folder)).split()
    ran = subprocess.run([*fairopt, *arguments], stdout=write, stderr=write, check=False, cwd=folder, timeout=120)
    os.close(write)
    return ran.returncode


@pytest.mark.parametrize(
    ("command", "files"),
    [pytest.param(name, made, marks=[] if name in AT_ONCE else [pytest.mark.slow]) for name, _, made in CALLS],
)
def test_what_nobody_reads_is_written(tmp_path: Path, forked_fairopt: list[str], command: str, files: str) -> None:
    write_small_files(tmp_path)
    page = (tmp_path / "page.md").read_text()
    if command in BEFORE:
        assert unread(forked_fairopt, LINES[BEFORE[command]], tmp_path) == 141
    assert unread(forked_fairopt, LINES[command], tmp_path) == 141
    for name in files.split():
        made = tmp_path / name
        assert any(made.iterdir()) if made.is_dir() else made.read_text("latin-1") not in ("", page)


def written(command: Any) -> Iterator[str]:
    """Yield the parameters of a command that are files to write: no callback makes something else of them."""
    for each in command.params:
        if each.type_descriptor.annotation in (Path, list[Path]) and each.callback is None:
            yield each.name


def test_no_command_is_forgotten() -> None:
    assert {name for name, command in subcommands().items() if any(written(command))} == set(LINES)
