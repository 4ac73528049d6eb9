"""The command line says what it said: exit codes, exact utilities, answers, and who ran where, on generated problems.

What is kept are hashes; `compare.py` says what differs, given the outputs of both versions of the code:

    git worktree add ../before COMMIT && (cd ../before && make .venv/ready)    # or a folder that was kept
    ../before/.venv/bin/python ../before/tests/golden/observe.py build/golden/before --quick
    .venv/bin/python tests/golden/observe.py build/golden/after --quick
    .venv/bin/python tests/golden/compare.py build/golden/before build/golden/after

A behaviour that is changed on purpose changes hashes. Then all outputs are written again (without --quick), every
difference is looked at with `compare.py` and explained in the commit, and
`.venv/bin/python tests/golden/hashes.py write build/golden/after` rewrites `hashes.json`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def observed_and_checked(folder: Path, *options: str) -> str:
    """Return what `hashes.py` prints of the outputs on a selection of problems, "" where nothing differs."""
    # processes of their own: the tools import each other by their bare names, and change the current folder
    subprocess.run([sys.executable, HERE / "observe.py", folder, *options], check=True, capture_output=True)
    checked = subprocess.run(
        [sys.executable, HERE / "hashes.py", "check", folder], capture_output=True, text=True, check=False
    )
    return checked.stdout + checked.stderr if checked.returncode else ""


def test_what_is_exact_is_as_it_was_on_a_few_problems(tmp_path: Path) -> None:
    assert observed_and_checked(tmp_path, "--quick") == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fixed", "markets", "queues", "batches", "clusters", "wide"])
def test_what_is_exact_is_as_it_was(kind: str, tmp_path: Path) -> None:
    assert observed_and_checked(tmp_path, "--kind", kind) == ""
