"""Measures the size and shape of a checkout: `make house` prints this one beside another, or writes docs/house.md.

.venv/bin/python tests/house.py [FOLDER ...]        # a column for each checkout that has a .venv; by default this one
.venv/bin/python tests/house.py --write ../before   # that one and this one into the table of docs/house.md
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "house.md"
#: What says that a class is a result, an optimum or a bound; where these classes lie.
_RESULT = re.compile(r"(Result|Optimum|Optima|Bound|Bounds|Equilibrium|Outcome|Solution)$")
_SOLVING = ("fairopt/backends", "fairopt/methods", "models")
#: A question whether numbers are floats or rationals.
_ASKS = re.compile(
    r"\b(is|is not|==|!=) Fraction\b|isinstance\([^)]*\bFraction|dtype (==|!=|is|is not) object|dtype\.kind"
    r"|\bis_exact\(|\bexactly\("
)
#: Run in a checkout's own environment: what one decision loads, and the processor's seconds of all of it.
_ALLOCATE = """
import json, sys, time
from fairopt import allocate
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
allocate(CooperativeOEF(), Market.of([[1, 2], [1, 5]], capacity=[1, 1]))
print(json.dumps([len([name for name in sys.modules if name.split(".")[0] == "fairopt"]), time.process_time()]))
"""
#: The folders of fairopt in which something is called with a thing of a class while a command runs.
_ROOMS = """
import json, sys
from importlib import import_module
from pathlib import Path
import fairopt
from fairopt.cli import main
what = getattr(import_module("fairopt.problem"), sys.argv.pop(1))
root, rooms = str(Path(fairopt.__file__).parent), []
def seen(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        code, told = frame.f_code, frame.f_locals
        if any(isinstance(told.get(name), what) for name in code.co_varnames[: code.co_argcount]):
            room = Path(code.co_filename).relative_to(root).parts
            room = room[0] if len(room) > 1 else "(top)"
            room in rooms or rooms.append(room)
sys.setprofile(seen)
sys.argv[0] = "fairopt"
sys.stdout = sys.stderr
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(json.dumps(rooms), file=sys.__stdout__)
"""
#: What a market and a trace are asked, to see where they pass.
_COMPARE = ("compare", "oef_example.toml", "--policy", "max-min", "--evaluations", "3")
_RUN_A_TRACE = ("run", "philly_1000.csv", "--cluster", "philly_cluster.toml", "--policy", "srtf", "--rounds", "3")


def source_files(root: Path, *tops: str) -> Iterator[Path]:
    """Yield the Python files of folders at the top; links from one to another are not followed."""
    for top in tops:
        for path in sorted((root / top).rglob("*.py")):
            inner = path.relative_to(root / top).parents
            if not any((root / top / each).is_symlink() for each in inner):
                yield path


def classes(root: Path) -> dict[str, list[str]]:
    """Return the names of all classes of ``fairopt`` and ``models``, by file."""
    return {
        str(path.relative_to(root)): [
            node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)
        ]
        for path in source_files(root, "fairopt", "models")
    }


def _lines(root: Path, *tops: str) -> list[str]:
    return [line for path in source_files(root, *tops) for line in path.read_text("utf-8").splitlines()]


def _docstrings(root: Path) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = (
        ast.get_docstring(node)
        for path in source_files(root, "fairopt", "models")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, kinds)
    )
    return [text for text in texts if text]


def _mean(counts: list[int]) -> float:
    return sum(counts) / len(counts)


def _asking(root: Path) -> int:
    files = source_files(root, "fairopt", "models")
    return sum(bool(_ASKS.search(re.sub(r"#.*", "", path.read_text("utf-8")))) for path in files)


def _results(root: Path) -> int:
    found = [(path, name) for path, names in classes(root).items() for name in names if path.startswith(_SOLVING)]
    return sum(bool(_RESULT.search(name)) for _, name in found)


def _run(root: Path, program: str, *arguments: str) -> Any:
    python = root / ".venv" / "bin" / "python"
    called = [str(python if python.exists() else sys.executable), "-c", program, *arguments]
    return json.loads(subprocess.run(called, capture_output=True, text=True, check=True, cwd=root).stdout)


def _rooms(root: Path, what: str, command: tuple[str, ...]) -> int:
    folder = root / "fairopt" / "datasets"
    return len(_run(root, _ROOMS, what, *(str(folder / word) if "." in word else word for word in command)))


def _allocating(root: Path, which: int) -> Any:
    found = [_run(root, _ALLOCATE)[which] for _ in range(5)]
    return min(found)


#: What is measured, in the words of the page.
MEASURES: Mapping[str, Callable[[Path], Any]] = {
    "public classes in fairopt and models": lambda root: sum(
        not name.startswith("_") for names in classes(root).values() for name in names
    ),
    "all classes there": lambda root: sum(map(len, classes(root).values())),
    "classes of solving that are a result, an optimum or a bound": _results,
    "files": lambda root: len(list(source_files(root, "fairopt", "models"))),
    "lines": lambda root: len(_lines(root, "fairopt", "models")),
    "characters of a line that is not blank": lambda root: round(
        _mean([len(line) for line in _lines(root, "fairopt", "models") if line.strip()]), 1
    ),
    "words of a docstring": lambda root: round(_mean([len(text.split()) for text in _docstrings(root)]), 1),
    "lines of the verifier": lambda root: len(_lines(root, "proofs/verifier")),
    "folders of fairopt": lambda root: len({path.relative_to(root).parts[1] for path in source_files(root, "fairopt")
                                            if len(path.relative_to(root).parts) > 2}),
    "files that ask for the kind of a number": _asking,
    "modules of fairopt that `allocate` loads": lambda root: _allocating(root, 0),
    "processor seconds of `allocate` on a 2 x 2 market, Python's start with it": lambda root: round(
        _allocating(root, 1), 2
    ),
    "folders that a market comes through in `compare`": lambda root: _rooms(root, "Market", _COMPARE),
    "folders that a trace comes through in `run`": lambda root: _rooms(root, "Trace", _RUN_A_TRACE),
}  # fmt: skip


def table(roots: list[Path], heads: list[str]) -> str:
    """Return the measures of checkouts as a table of Markdown."""
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for words, measure in MEASURES.items():
        lines.append(f"| {words} | {' | '.join(f'{measure(root):,}' for root in roots)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, or write it into the page; ``--help`` prints what is at the top."""
    if {"-h", "--help"} & {*sys.argv}:
        print(__doc__)
        return
    write = "--write" in sys.argv
    given = [Path(each).resolve() for each in sys.argv[1:] if each != "--write"]
    roots = [*given, ROOT] if write or not given else given
    for root in roots:
        if not all((root / top).is_dir() for top in ("fairopt", "models")):
            sys.exit(f"{root}: it is no checkout of fairopt. Make one: git worktree add FOLDER COMMIT")
    heads = ["before", "now"] if write and len(roots) == 2 else [root.name for root in roots]
    text = table(roots, heads)
    print(text, end="")
    if write:
        page = PAGE.read_text("utf-8")
        PAGE.write_text(re.sub(r"(?ms)^\| \|.*?\n(?=\n)", lambda _: text, page, count=1), "utf-8")


if __name__ == "__main__":
    main()
