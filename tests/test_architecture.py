"""The arrows of the house: who may import whom; and habits that a reader relies on."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLKIT = ROOT / "fairopt"


#: Folders at the top, and the package that each is installed as.
PACKAGES = {
    "fairopt": "fairopt",
    "models": "fairopt.models",
    "proofs": "fairopt.proofs",
    "benchmarks": "fairopt.benchmarks",
}


def python_files(folder: Path) -> list[Path]:
    """Return the files in a folder; the links in fairopt/ lead to other folders at the top, and are not followed."""
    links = {TOOLKIT / name for name in PACKAGES}
    return [path for path in sorted(folder.rglob("*.py")) if not links & set(path.parents)]


def toolkit() -> list[Path]:
    return python_files(TOOLKIT)


def module_name(path: Path) -> str:
    """Return the name by which a file is imported."""
    top, *inner = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGES[top], *(inner[:-1] if inner[-1] == "__init__" else inner)])


MODULES = {module_name(path): path for top in PACKAGES for path in python_files(ROOT / top)}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return what a file imports of ours, wherever in the file: modules, and packages that other names come from."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {full if full in MODULES else str(node.module) for full in inside.values()}
    return frozenset(name for name in found if name.split(".")[0] in (*PACKAGES, "tests"))


#: Modules of Python that only some systems have.
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def test_every_module_can_be_imported_on_every_system() -> None:
    """What only POSIX systems have is imported where it is used."""
    for path in [*toolkit(), *(ROOT / "models").rglob("*.py"), *(ROOT / "benchmarks").glob("*/*.py")]:
        for node in parsed(path).body:
            named = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            named |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
            assert not named & POSIX_ONLY, path.relative_to(ROOT)


def test_no_module_imports_itself_by_way_of_others() -> None:
    # imports inside functions and for types only count too: who needs a circle has put a thing into the wrong place
    graph = {name: imports(path) - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


@pytest.mark.parametrize("path", toolkit(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_toolkit_never_imports_a_model_by_name(path: Path) -> None:
    # commands and suites hand evidence over to the verifiers, and commands show the ledger; nothing else knows these
    shown = ("fairopt.proofs.verif", *(["fairopt.proofs.ledger.entries"] if path.parent == TOOLKIT / "cli" else []))
    verifiers = {name for name in imports(path) if name.startswith(shown)}
    known = verifiers | {"fairopt.proofs"} if path.parent in (TOOLKIT / "cli", TOOLKIT / "testing") else set()
    strangers = ("fairopt.models", "fairopt.proofs", "models", "proofs", "tests")
    assert not {name for name in imports(path) - known if name.startswith(strangers)}


#: Which folders of the toolkit each folder may import, besides itself and the modules that all may (see `test_arrows`).
ALLOWED = {
    "program": "",
    "backends": "program",
    "problem": "program",
    "datasets": "problem program",
    "workloads": "problem program datasets",
    "importing": "discovery problem program",
    "methods": "problem program backends",
    "certificates": "problem program backends",
    "policy": "problem program backends certificates",
    "simulation": "codec problem program backends policy",
    "schedules": "problem program backends policy",
    "properties": "problem program backends policy methods certificates schedules simulation",
    "compare": "*",
    "frontier": "backends certificates compare discovery evidence methods problem program properties",
    "audit": "backends experiment compare discovery importing methods policy problem program properties",
    "testing": "*",
    "experiment": "backends by_name certificates codec compare configuring discovery evidence frontier policy problem"
    " program properties simulation workloads",
    "cli": "*",
}


def test_every_folder_has_its_arrows() -> None:
    # models, proofs and benchmarks are links, and have rules of their own
    folders = {path.name for path in TOOLKIT.iterdir() if path.is_dir() and not path.is_symlink()}
    assert folders - {"__pycache__"} == set(ALLOWED)


@pytest.mark.parametrize("folder", [name for name, others in ALLOWED.items() if others != "*"])
def test_arrows(folder: str) -> None:
    allowed = [
        f"fairopt.{name}"
        for name in (folder, "errors", "deadline", "later", "numbers", "replacing", "report", *ALLOWED[folder].split())
    ]
    for path in python_files(TOOLKIT / folder):
        strangers = {
            name
            for name in imports(path)
            if name != "fairopt" and not any(name == other or name.startswith(other + ".") for other in allowed)
        }
        assert not strangers, f"{path.relative_to(ROOT)} imports {strangers}"


def test_bench_and_studies_are_two_uses_of_one_engine() -> None:
    """What all experiments share, the modules in the folder itself but for pages, knows neither of them."""
    bench, studies = "fairopt.experiment.bench", "fairopt.experiment.studies"
    for path in python_files(TOOLKIT / "experiment"):
        strangers = {"bench": (studies,), "studies": (bench,), "plot": (bench,)}.get(path.parent.name, (bench, studies))
        if not path.stem.endswith("_page"):
            assert not {name for name in imports(path) if name.startswith(strangers)}, path


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
        "pyarrow",
        "cattrs",
        "distributed",
        "jinja2",
        "psutil",
    }


def test_a_module_does_not_hide_the_function_of_its_name() -> None:
    import fairopt
    import fairopt.audit
    import fairopt.compare

    assert callable(fairopt.audit)
    assert callable(fairopt.compare)
    assert all(getattr(fairopt, name) is not None for name in fairopt.__all__)


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in [*toolkit(), *python_files(ROOT / "models")]:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module_name(path))
    assert not {name: modules for name, modules in places.items() if len(modules) > 1}


#: Public classes of fairopt and models: a new one needs an old one to go, or a reason. Who removes some lowers this.
MOST_CLASSES = 448


def test_there_are_no_more_public_classes_than_there_were() -> None:
    public = [
        node.name
        for path in [*toolkit(), *python_files(ROOT / "models")]
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(public) <= MOST_CLASSES, "is none of the classes that there are this idea?"


def test_few_modules_lie_loose_at_the_top() -> None:
    loose = [path.stem for path in sorted(TOOLKIT.glob("*.py")) if not path.stem.startswith("__")]
    assert len(loose) <= 11, f"a module that belongs to others is in their folder: {loose}"


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
    from fairopt.discovery import BACKENDS, POLICIES, PROPERTIES, load, names

    for group in (POLICIES, BACKENDS, PROPERTIES):
        for name in names(group):
            assert load(group, name).name == name


#: Where sessions are made: the chooser, and the class itself.
CHOOSERS = {TOOLKIT / "policy" / "decide.py", TOOLKIT / "backends" / "solver.py"}


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]


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


def test_type_hints_are_read_in_one_place() -> None:
    # and the keys of results, which say their types
    readers = {
        path.relative_to(TOOLKIT).as_posix()
        for path in toolkit()
        if {"get_args", "get_origin"} & {word.strip("(,") for word in path.read_text(encoding="utf-8").split()}
    }
    assert readers == {"codec.py", "report.py"}


def test_a_share_policy_loads_no_more_than_it_needs() -> None:
    program = (
        "import sys\n"
        "from fairopt import Market, allocate\n"
        "allocate('oef-cooperative', Market.of([[1, 2], [1, 5]], capacity=[1, 1]))\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'fairopt'))\n"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert len(loaded) <= 70
    unneeded = (
        *("simulation", "properties", "importing", "certificates", "problem.files", "problem.batch", "problem.queue"),
        *("audit", "cli", "methods.level", "methods.eisenberg_gale", "backends.exact.solve"),
    )
    assert not [name for name in loaded if name.startswith(tuple(f"fairopt.{each}" for each in unneeded))]


def test_an_audit_loads_no_more_than_it_asks() -> None:
    sample = TOOLKIT / "datasets" / "clusters" / "kai" / "cluster.yaml"
    program = (
        "import sys\n"
        "from fairopt.cli import main\n"
        f"sys.argv = ['fairopt', 'audit', {str(sample)!r}, '--json']\n"
        "try:\n    main()\n"
        "finally:\n    print('LOADED', *sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr  # a guarantee is broken in it
    loaded = ran.stdout.rpartition("LOADED")[2].split()
    assert "fairopt.models.kai.kai" in loaded
    assert len([name for name in loaded if name.split(".")[0] == "fairopt"]) <= 201  # each importer is asked
    unneeded = (
        *("fairopt.simulation", "fairopt.methods.level", "fairopt.properties.misreports", "fairopt.models.oef"),
        *("fairopt.compare.side_by_side", "fairopt.audit.series", "pydantic", "flint", "pandas", "scipy"),
    )
    assert not [name for name in loaded if name.startswith(unneeded)]


def test_an_audit_asks_by_itself_all_that_look_at_entitlements() -> None:
    from fairopt.discovery import ENTITLED_POLICIES, ENTITLED_PROPERTIES, names, policies, properties
    from fairopt.policy import Policy, Trait
    from fairopt.problem import Market
    from fairopt.properties import AllocationProperty

    ours = [each for each in policies(Market) if type(each).__module__.startswith("fairopt.")]
    # one that says itself when it is asked is the rule of its own scheduler's files
    asked = [each.name for each in ours if Trait.ENTITLED in each.traits and type(each).asked_of is Policy.asked_of]
    assert names(ENTITLED_POLICIES) == asked
    allocations = [each for each in properties(Market) if isinstance(each, AllocationProperty)]
    assert names(ENTITLED_PROPERTIES) == [each.name for each in allocations if each.needs is not None]
