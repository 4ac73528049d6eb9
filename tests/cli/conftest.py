"""Files that tests of the command line read, and the command that plays them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from played_files import CLUSTER, JOBS
from ran_command import Ran


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
