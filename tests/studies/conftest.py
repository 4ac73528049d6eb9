"""Studies of the tests name study_examples:NAME, which processes that are started must find too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran


@pytest.fixture(autouse=True)
def _examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


@pytest.fixture
def study(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run ``fairopt study`` in a folder, in this process."""

    def run(folder: Path, *options: Any) -> Ran:
        monkeypatch.chdir(folder)
        return fairopt("study", *options)

    return run
