"""A third party's policy, back end and property, in a package of its own, are on the same footing as fairopt's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairopt.datasets import dataset_path

CODE = '''
"""A plug-in: somebody else's policy, back end and property."""

from typing import Any

from fairopt.backends import Highs
from fairopt.policy import Computed
from fairopt.properties import EnvyFreeness


class Halves(Computed):
    """Give out half of everybody's own partition."""

    name = "halves"
    source = "nobody"

    def compute(self, problem: Any, state: Any) -> Any:
        return problem.equal_split() / 2, None


class Mine(Highs):
    """HiGHS under another name."""

    name = "mine"


class NoEnvy(EnvyFreeness):
    """Envy-freeness under another name."""

    name = "no_envy"
'''
ENTRY_POINTS = """
[fairopt.policies]
halves = plugin:Halves

[fairopt.backends]
mine = plugin:Mine

[fairopt.properties]
no_envy = plugin:NoEnvy
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "plugin.py").write_text(CODE)
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def fairopt(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "fairopt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


def test_plug_ins_are_listed_and_used(installed: Path) -> None:
    market = str(dataset_path("oef_example.toml"))
    for group, name in (("policies", "halves"), ("backends", "mine"), ("properties", "no_envy")):
        listed = json.loads(fairopt(installed, group, "--json").stdout)
        assert name in {row["name"] for row in listed}
    solved = json.loads(
        fairopt(installed, "solve", market, "--policy", "max-min", "--backend", "mine", "--json").stdout
    )
    assert solved["status"] == "optimal"
    ran = fairopt(installed, "compare", market, "--policy", "halves", "--json", "--evaluations", "30")
    row = json.loads(ran.stdout)["policies"]["halves"]
    assert row["properties"]["no_envy"]["answer"] == "HOLDS"
    assert row["properties"]["work_conservation"]["answer"] == "FAILS"


def test_a_broken_plug_in_is_named(installed: Path) -> None:
    (installed / "plugin.py").write_text(CODE.replace("class Halves(Computed)", "class Halves"))
    ran = fairopt(installed, "solve", str(dataset_path("oef_example.toml")), "--policy", "halves")
    assert ran.returncode == 2
    assert "Mend the plug-in" in ran.stderr


def test_a_plug_in_that_cannot_be_loaded_leaves_the_others_alone(installed: Path) -> None:
    (installed / "plugin.py").write_text("import nowhere_to_be_found")
    ran = fairopt(installed, "policies", "--json")
    assert ran.returncode == 0
    assert "max-min" in {row["name"] for row in json.loads(ran.stdout)}
    assert "left out: 'halves' is registered as plugin:Halves, which cannot be loaded" in ran.stderr
    asked = fairopt(installed, "solve", str(dataset_path("oef_example.toml")), "--policy", "halves")
    assert asked.returncode == 3
    assert "nowhere_to_be_found" in asked.stderr


def test_two_packages_with_one_name_are_refused(installed: Path) -> None:
    points = installed / "plugin-1.0.dist-info" / "entry_points.txt"
    points.write_text(ENTRY_POINTS.replace("halves =", "max-min ="))
    ran = fairopt(installed, "policies")
    assert ran.returncode == 2
    assert "two packages register 'max-min'" in ran.stderr
