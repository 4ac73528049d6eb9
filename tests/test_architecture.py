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
    verifiers = {name for name in imports(path) if name.startswith("fairopt.proofs.verif")}
    known = verifiers | {"fairopt.proofs"} if path.parent == TOOLKIT / "cli" else set()
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
    "simulation": "codec problem program backends policy",
    "schedules": "problem program backends policy",
    "properties": "problem program backends policy certificates schedules",
    "testing": "*",
    "bench": "discovery problem",
    "cli": "*",
}


@pytest.mark.parametrize("folder", [path.name for path in sorted(TOOLKIT.iterdir()) if path.is_dir()])
def test_arrows(folder: str) -> None:
    if (TOOLKIT / folder).is_symlink() or folder == "__pycache__":
        return  # models, proofs and benchmarks have rules of their own
    allowed = [f"fairopt.{name}" for name in (folder, "errors", *ALLOWED[folder].split())]
    if "fairopt.*" in allowed:
        return
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
    }
    assert not long, "a file over 400 lines is asking to be two"


def test_every_entry_point_loads_and_is_called_as_it_is_registered() -> None:
    from fairopt.discovery import BACKENDS, POLICIES, PROPERTIES, ROUND_POLICIES, SCHEDULE_POLICIES, load, names

    for group in (POLICIES, ROUND_POLICIES, SCHEDULE_POLICIES, BACKENDS, PROPERTIES):
        for name in names(group):
            assert load(group, name).name == name
