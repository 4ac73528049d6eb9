"""The command line, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from played_files import CLUSTER, JOBS
from ran_command import Ran

from fairopt.cli import main


@pytest.fixture
def fairopt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run ``fairopt`` with arguments, and return how it ended."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["fairopt", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        return Ran(status, *capsys.readouterr())

    return run


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
