"""Everything public has an example that runs, and type checkers see what it returns."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fairopt

ROOT = Path(__file__).parents[2]
LISTED = (ROOT / "docs/reference/api.rst").read_text(encoding="utf-8").split()
NAMES = sorted({f"fairopt.{name}" for name in fairopt.__all__}.union(each for each in LISTED if "fairopt." in each))
#: What a user writes.
SCRIPT = """
from typing import reveal_type

import fairopt
from fairopt.datasets import astraea_example, philly_cluster, philly_trace
from fairopt.simulation import Setting

market = fairopt.Market.of([[1, 2], [1, 5]], {"K80": 1, "V100": 1}, types=["K80", "V100"])
decision = fairopt.allocate("oef-cooperative", market, exact=True)
reveal_type(market)
reveal_type(decision)
reveal_type(decision.objective)
reveal_type(fairopt.decide("max-min", market))
reveal_type(fairopt.decide("fcfs", astraea_example()))
reveal_type(fairopt.verify(market, [[1, 0], [0, 1]]))
reveal_type(fairopt.verify(market, decision.to_frame())["envy_freeness"].holds)
for row in fairopt.compare(market, ["max-min"]):
    reveal_type(row)
    reveal_type(row.decision)
for played in fairopt.compare(Setting(philly_cluster(), philly_trace())):
    reveal_type(played)
reveal_type(fairopt.run("srtf", philly_trace(), philly_cluster(), length=300))
reveal_type(fairopt.metrics(market, decision.shares))
reveal_type(fairopt.policies(fairopt.Market))
reveal_type(fairopt.uniqueness("max-min", decision))
reveal_type(fairopt.read_market("market.toml"))
reveal_type(market.to_frame())
reveal_type(fairopt.__version__)
"""


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    found = getattr(import_module(module), name, None) if module else None
    return import_module(path) if found is None else found  # `fairopt.compare` is the function, not its module


@pytest.mark.parametrize("path", NAMES)
def test_a_public_name_has_an_example_that_runs(path: str) -> None:
    subject = named(path)
    module = sys.modules[getattr(subject, "__module__", path)]
    text = subject.__doc__ or ""
    assert ">>>" in text, f"the docstring of {path} has no example"
    example = doctest.DocTestParser().get_doctest(text, dict(vars(module)), path, module.__file__, None)
    wrong: list[str] = []
    doctest.DocTestRunner().run(example, out=wrong.append)
    assert not wrong, "".join(wrong)


def test_type_checkers_see_what_the_main_calls_return(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", str(script)]  # strict, as the project is, whose cache makes it quick
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    revealed = [line for line in ran.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == SCRIPT.count("reveal_type(")
    assert not [line for line in revealed if "Any" in line]
