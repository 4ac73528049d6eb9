"""A wheel holds all that is needed, and nothing that depends on the checkout."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_versions_of_python_are_those_that_are_named() -> None:
    named = [each.rpartition(" ")[2] for each in SETTINGS["classifiers"] if each.startswith("Programming Language")]
    least = SETTINGS["requires-python"].removeprefix(">=")
    assert least == next(each for each in named if each.startswith("3."))


def test_citation_and_package_name_the_same_version() -> None:
    cited = dict(
        line.split(": ", 1)
        for line in (ROOT / "CITATION.cff").read_text().splitlines()
        if line[:1].isalpha() and ": " in line
    )
    assert cited["version"].strip('"') == SETTINGS["version"]
    assert cited["license"] == SETTINGS["license"]


def test_the_source_package_names_only_files_that_are_there() -> None:
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        verb, *names = line.split()
        if verb in ("include", "graft"):
            for name in names:
                assert any(ROOT.glob(name)), f"MANIFEST.in: {line}: there is no {name}"


@pytest.mark.slow
def test_every_command_runs_from_a_wheel_in_an_empty_folder(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    check = [sys.executable, str(Path(__file__).with_name("check_installed.py")), str(wheel)]
    ran = subprocess.run(check, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
