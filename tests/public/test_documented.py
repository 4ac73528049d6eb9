"""Everything public has an example that runs, and names its errors and shapes."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fairopt
from fairopt import errors

ROOT = Path(__file__).parents[2]
#: The packages all of whose public names are documented in full.
PACKAGES = (
    "",
    *(f".{name}" for name in ["backends", "certificates", "compare", "datasets", "policy", "problem", "program"]),
    ".properties",
    ".simulation",
)


def public() -> Iterator[str]:
    """Yield the functions and classes that packages offer."""
    for package in PACKAGES:
        module = import_module(f"fairopt{package}")
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, type) or inspect.isroutine(found):
                yield f"fairopt{package}.{name}"


LISTED = (ROOT / "docs/reference/api.rst").read_text(encoding="utf-8").split()
NAMES = sorted({each for each in LISTED if "fairopt." in each} | set(public()))


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


@pytest.mark.parametrize("package", ["models", "plot", "discovery"])
def test_what_users_name_has_an_example(package: str) -> None:
    # pytest runs the examples with the modules
    module = import_module(f"fairopt.{package}")
    offered = {name: getattr(module, name) for name in getattr(module, "__all__", None) or vars(module)}
    ours = {name: each for name, each in offered.items() if getattr(each, "__module__", "").startswith(module.__name__)}
    without = [name for name, each in ours.items() if name[0] != "_" and ">>>" not in (each.__doc__ or "")]
    assert set(without) <= NEEDS_MORE
    assert len(ours) > 5


#: Examples of these need a run, or a package that is installed for the purpose.
NEEDS_MORE = {"Plugin", "plugins", "gantt", "over_time", "tenant_share"}


def written(path: str) -> tuple[str, ast.ClassDef | ast.FunctionDef]:
    """Return the docstring and the code of a function or class."""
    subject = named(path)
    (code,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(subject)))).body
    assert isinstance(code, ast.ClassDef | ast.FunctionDef)
    return subject.__doc__ or "", code


#: Errors that users can mend.
OURS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.FairoptError)}


@pytest.mark.parametrize("path", list(public()))
def test_a_public_name_says_what_it_raises(path: str) -> None:
    said, code = written(path)
    made = [
        each for each in code.body if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__post_init__")
    ]
    raised = {
        node.exc.func.id
        for part in ([code] if isinstance(code, ast.FunctionDef) else made)
        for node in ast.walk(part)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    assert not raised & OURS or re.search("Errors|errors", said), f"{path} raises {raised & OURS} and does not say so"
    if path.removeprefix("fairopt.") in fairopt.__all__ and not path.endswith(tuple(OURS)):
        assert re.search("[Ee]rrors", said), f"{path} says nothing of errors"


@pytest.mark.parametrize("path", list(public()))
def test_a_public_name_says_the_shapes_of_its_arrays(path: str) -> None:
    said, code = written(path)
    if isinstance(code, ast.FunctionDef):
        hints = [*(each.annotation for each in (*code.args.args, *code.args.kwonlyargs)), code.returns]
    else:
        hints = [each.annotation for each in code.body if isinstance(each, ast.AnnAssign)]
    arrays = any("Array" in ast.unparse(each).replace("|", " ").split() for each in hints if each is not None)
    assert not arrays or re.search(r"\((\w+|\.\.\.),[^)]*\)", said), f"{path} says no shape such as (n, k)"
