"""Everything public has an example that runs, and names its errors and shapes."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import fairopt
from fairopt import errors

ROOT = Path(__file__).parents[2]
#: What the reference lists is settled; `test_settled_names.py` holds it.
LISTED = [word for word in (ROOT / "docs/reference/api.rst").read_text(encoding="utf-8").split() if "fairopt" in word]
LISTED = [word for word in LISTED if re.fullmatch(r"fairopt\.[.\w]*\w", word)]
#: What fairopt itself asks for, and nobody else: the process of a solver, commands, verifiers and benchmarks.
OWN = ("fairopt.backends.apart", "fairopt.cli", "fairopt.proofs", "fairopt.benchmarks")
#: Modules whose names have examples, as those that packages offer have.
SINGLE = (
    "fairopt.backends.exact",
    "fairopt.deadline",
    "fairopt.discovery",
    "fairopt.errors",
    "fairopt.evidence",
    "fairopt.proofs.ledger.entries",
    "fairopt.proofs.findings.liars.bounds",
    "fairopt.proofs.findings.truthful.design",
    "fairopt.proofs.findings.truthful.efficient_rules",
    "fairopt.properties.misreports.kinds",
    "fairopt.proofs.findings.truthful.profiles",
    "fairopt.simulation.engine",
    "fairopt.simulation.playing",
    "fairopt.simulation.measures",
    *(f"fairopt.testing.{kind}_suite" for kind in ("policy", "backend", "property", "round", "rule", "run_property")),
    *(f"fairopt.testing.{name}" for name in ("schedule_suite", "data_suites", "suite", "strategies")),
)
#: The packages all of whose public names say their errors and shapes, too.
PACKAGES = ["backends", "certificates", "compare", "datasets", "policy", "problem", "program", "properties"]
FULL = ("fairopt", "fairopt.simulation", *(f"fairopt.{name}" for name in PACKAGES))


def offered(module: ModuleType) -> Iterator[str]:
    """Yield the functions and classes that a package or module offers: those in its `__all__`, else its own."""
    own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", None) or own:
        found = getattr(module, name)
        if name[0] != "_" and (isinstance(found, type) or inspect.isroutine(found)):
            yield f"{module.__name__}.{name}"


def public() -> Iterator[str]:
    """Yield the functions and classes that packages which are documented in full offer."""
    for package in FULL:
        yield from offered(import_module(package))


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    found = getattr(import_module(module), name, None) if module else None
    return import_module(path) if found is None else found  # `fairopt.compare` is the function, not its module


def packages() -> Iterator[ModuleType]:
    """Yield the packages that offer names to users."""
    for each in walk_packages(fairopt.__path__, "fairopt."):
        if each.ispkg and not each.name.startswith(OWN):
            package = import_module(each.name)
            if hasattr(package, "__all__"):
                yield package


#: What the reference lists, and all that packages and these modules offer.
NAMES = sorted({*LISTED, *(name for module in (*packages(), *map(import_module, SINGLE)) for name in offered(module))})


def has_example(path: str) -> bool:
    return ">>>" in (named(path).__doc__ or "")


def mentioned(path: str) -> set[str]:
    """Return the names in what a function returns, or in the fields of a class and what its methods return."""
    subject = named(path)
    if not isinstance(subject, type):
        said = [getattr(inspect.unwrap(subject), "__annotations__", {}).get("return", "")]
    else:
        said = []
        for kind in subject.__mro__:
            said += vars(kind).get("__annotations__", {}).values()
            for each in vars(kind).values():
                method = next(
                    (found for name in ("fget", "func", "__func__") if (found := getattr(each, name, None))), each
                )
                said.append(getattr(method, "__annotations__", {}).get("return", ""))
    return set(re.findall(r"\w+", " ".join(map(str, said))))


def is_result(path: str) -> bool:
    """Whether this is a class that can only carry values: a dataclass, a tuple or an enumeration."""
    subject = named(path)
    return isinstance(subject, type) and (is_dataclass(subject) or issubclass(subject, tuple | Enum))


@cache
def shown() -> set[str]:
    """Return the public names that an example shows.

    What only carries a result is shown by the example of what returns it, or of a result that it is a part of.
    """
    found = {path for path in NAMES if has_example(path)}
    results, new = {path for path in NAMES if is_result(path)} - found, found
    while new:
        words = set().union(*map(mentioned, new))
        new = {path for path in results if path.rpartition(".")[2] in words}
        results, found = results - new, found | new
    return found


def test_every_public_name_is_shown_by_an_example() -> None:
    assert len(NAMES) > 300
    assert not set(NAMES) - shown()


def runs_with_its_module(path: str) -> bool:
    """Whether pytest runs the example with others of its module: not where a decorator of others made the function."""
    subject = named(path)
    home = vars(sys.modules[subject.__module__]) if isinstance(subject, type) else getattr(subject, "__globals__", {})
    return isinstance(subject, ModuleType) or str(home.get("__name__")).startswith("fairopt")


@pytest.mark.parametrize("path", [path for path in NAMES if has_example(path) and not runs_with_its_module(path)])
def test_the_example_of_a_public_name_runs(path: str) -> None:
    subject, module = named(path), import_module(path.rpartition(".")[0])
    example = doctest.DocTestParser().get_doctest(subject.__doc__, dict(vars(module)), path, module.__file__, None)
    wrong: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=wrong.append)
    assert not wrong, "".join(wrong)


def test_the_other_examples_run_with_their_modules(request: pytest.FixtureRequest) -> None:
    assert request.config.getoption("doctestmodules")
    assert "fairopt" in request.config.getini("testpaths")


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
