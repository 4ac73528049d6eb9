"""Packages that load a name when it is first used say the same to type checkers, and load nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest


def test_only_public_names_are_listed() -> None:
    import fairopt

    assert set(dir(fairopt)) == {*fairopt.__all__, "__version__", "plot"}
    assert all(hasattr(fairopt, name) for name in fairopt.__all__)


@pytest.mark.parametrize("name", ["fairopt", "fairopt.models"])
def test_type_checkers_see_the_names_that_are_there(name: str) -> None:
    package = import_module(name)
    seen = {
        each.names[0].asname: each.module
        for each in ast.walk(ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8")))
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("fairopt") and each.names[0].asname
    }
    assert seen == package._MODULES
    assert package.__all__ == sorted(seen)
    assert {*seen} <= {*dir(package)}
    for each, module in seen.items():
        assert getattr(package, each) is getattr(import_module(str(module)), each)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_a_policy_is_had_without_the_others() -> None:
    code = "import sys; from fairopt.models import EqualSplit; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {each for each in loaded if each.startswith("fairopt.models.")} == {
        *("fairopt.models.baselines", "fairopt.models.baselines.equal_split")
    }
