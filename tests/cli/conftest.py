"""The command line, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
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
