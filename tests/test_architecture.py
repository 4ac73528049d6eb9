"""The arrows of the house: who may import whom; and habits that a reader relies on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLKIT = ROOT / "fairopt"


def imports(path: Path) -> set[str]:
    """Return every fairopt module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] in ("fairopt", "models", "proofs", "tests", "benchmarks")}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((TOOLKIT / folder).rglob("*.py"))]


def toolkit() -> list[Path]:
    elsewhere = {TOOLKIT / "models", TOOLKIT / "proofs"}
    return [path for path in sorted(TOOLKIT.rglob("*.py")) if not elsewhere & set(path.parents)]


@pytest.mark.parametrize("path", toolkit(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_toolkit_never_imports_a_model_by_name(path: Path) -> None:
    # commands hand files over to the verifiers; nothing else here knows them
    verifiers = {f"fairopt.proofs.{name}" for name in ("verify", "verify_run", "verify_schedule")} | {"fairopt.proofs"}
    known = verifiers if path.parent == TOOLKIT / "cli" else set()
    strangers = ("fairopt.models", "fairopt.proofs", "models", "proofs", "tests")
    assert not {name for name in imports(path) - known if name.startswith(strangers)}


#: Which folders of the toolkit each folder may import, besides itself and `fairopt.errors`.
ALLOWED = {
    "program": "",
    "backends": "program",
    "problem": "program",
    "datasets": "problem program",
    "methods": "problem program backends policy",
    "certificates": "problem program backends",
    "policy": "problem program backends certificates",
    "simulation": "problem program backends policy",
    "schedules": "problem program backends policy",
    "properties": "problem program backends policy certificates schedules simulation",
    "testing": "*",
    "bench": "discovery problem",
    "cli": "*",
}


def test_every_folder_has_its_arrows() -> None:
    # models, proofs and benchmarks are links, and have rules of their own
    folders = {path.name for path in TOOLKIT.iterdir() if path.is_dir() and not path.is_symlink()}
    assert folders - {"__pycache__"} == set(ALLOWED)


@pytest.mark.parametrize("folder", [name for name, others in ALLOWED.items() if others != "*"])
def test_arrows(folder: str) -> None:
    allowed = [f"fairopt.{name}" for name in (folder, "errors", *ALLOWED[folder].split())]
    for path in files(folder):
        strangers = {
            name
            for name in imports(path)
            if name != "fairopt" and not any(name == other or name.startswith(other + ".") for other in allowed)
        }
        assert not strangers, f"{path.relative_to(ROOT)} imports {strangers}"


def test_models_import_the_toolkit_and_each_other_only() -> None:
    for path in sorted((ROOT / "models").rglob("*.py")):
        assert not {name for name in imports(path) if name.startswith(("fairopt.cli", "fairopt.testing", "models"))}


def test_the_models_folder_and_the_installed_package_are_one() -> None:
    assert (TOOLKIT / "models").resolve() == ROOT / "models"


def test_importing_fairopt_imports_no_solver() -> None:
    import subprocess
    import sys

    code = "import fairopt, fairopt.cli, fairopt.discovery, fairopt.models, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert not loaded & {
        "highspy",
        "pyomo",
        "cvxpy",
        "ecos",
        "clarabel",
        "scs",
        "flint",
        "pandas",
        "matplotlib",
        "scipy",
        "networkx",
        "pyarrow",
    }


def test_no_file_is_long() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in [
            *toolkit(),
            *(ROOT / "models").rglob("*.py"),
            *(ROOT / "tests").rglob("*.py"),
            *(ROOT / "proofs").rglob("*.py"),
        ]
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
        and path != ROOT / "proofs" / "verify.py"  # one file on purpose: read in one sitting, under 500 lines
    }
    assert not long, "a file over 400 lines is asking to be two"


def test_every_entry_point_loads_and_is_called_as_it_is_registered() -> None:
    from fairopt.discovery import BACKENDS, POLICIES, PROPERTIES, load, names

    for group in (POLICIES, BACKENDS, PROPERTIES):
        for name in names(group):
            assert load(group, name).name == name


#: Where sessions are made: the chooser, and the class itself.
CHOOSERS = {TOOLKIT / "policy" / "decide.py", TOOLKIT / "backends" / "solver.py"}


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]


def test_who_solves_is_decided_in_one_module() -> None:
    """Only `fairopt.policy.decide` makes sessions and looks at the methods of a policy to choose one."""
    found = []
    for path in [*toolkit(), *(ROOT / "models").rglob("*.py")]:
        if path in CHOOSERS or "testing" in path.parts or "bench" in path.parts:
            continue
        made = [call for call in calls(path) if isinstance(call.func, ast.Name) and call.func.id == "Session"]
        # a policy that is made of another may hand its own session on; nobody else calls `Policy.decide`
        direct = [
            call
            for call in calls(path)
            if isinstance(call.func, ast.Attribute)
            and call.func.attr == "decide"
            and len(call.args) == 3
            and not (isinstance(call.args[2], ast.Name) and call.args[2].id == "solve")
        ]
        found += [f"{path.relative_to(ROOT)}:{call.lineno}" for call in (*made, *direct)]
    assert not found
