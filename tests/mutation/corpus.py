"""Files for the verifiers: of those that the tests give them, a few for each way through the verifiers' lines."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
VERIFIER = TOP / "proofs" / "verifier"
#: The tests that give the verifiers their files.
TESTS = (
    *(
        f"tests/proofs/test_{name}.py"
        for name in ("verifier", "verifier_entitled", "verifier_program", "verifier_reading")
    ),
    *(
        f"tests/proofs/test_{name}.py"
        for name in (
            "verify_records",
            "verify_run",
            "verify_schedule",
            "counterexamples",
            "forged_runs",
            "forged_schedules",
        )
    ),
    *(
        "tests/certificates",
        "tests/frontier",
        "tests/mechanisms/test_efficient.py",
        "tests/models/test_entitled_shares.py",
    ),
    *(f"tests/properties/test_{name}.py" for name in ("within_bounds", "entitlements", "ranges")),
    *("tests/methods/test_whole_gpus.py", "tests/cli/test_cli_verify_record.py"),
)
#: Tests of what no file shows: how files are opened and numbers printed, the command, and what is asked of a text.
UNITS = {
    "runs.py": ("tests/proofs/test_forged_runs.py",),
    "front.py": ("tests/proofs/test_verifier_program.py",),
    "reading.py": ("tests/proofs/test_verifier_reading.py", "tests/proofs/test_verifier_program.py"),
}
#: Of a test that gives at most so many files all are kept; of others those that take a line that fewer than so many
#: files before them take that are decided alike.
FEW, KEPT = 20, 40


@dataclass(frozen=True)
class File:
    """A file, how it is decided, the seconds that this takes, and the lines that it takes, by module."""

    name: str
    tolerance: str | None
    decision: Any
    seconds: float
    lines: dict[str, list[int]]


def decision(front: Any, path: Path, tolerance: str | None) -> Any:
    """Return how a file is decided: the exit status, and what may be believed; reasons may be told otherwise."""
    status, said = front.report(path, None if tolerance is None else Fraction(tolerance))
    return [status, said if status == 0 else []]


def passes(tests: tuple[str, ...]) -> bool:
    """Return whether tests pass in this process; what they import of the verifiers is read anew."""
    for name in [name for name in sys.modules if name.startswith("fairopt.proofs")]:
        del sys.modules[name]
    os.chdir(TOP)
    return pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]) == pytest.ExitCode.OK


def front() -> Any:
    """Return the verifiers' command, read anew."""
    for name in [name for name in sys.modules if name.split(".")[0] == VERIFIER.name]:
        del sys.modules[name]
    if str(VERIFIER.parent) not in sys.path:
        sys.path.insert(0, str(VERIFIER.parent))
    return importlib.import_module("verifier.front")


def collected(folder: Path) -> list[File]:
    """Return the corpus that stands in a folder; it is made there where it is missing: some minutes."""
    sources = b"".join(path.read_bytes() for path in sorted(VERIFIER.glob("*.py")))
    index = folder / f"index-{sha256(sources).hexdigest()[:12]}.json"  # whose lines are those of these sources
    if not (folder / "given.jsonl").exists():
        folder.mkdir(parents=True, exist_ok=True)
        env = os.environ | {"MUTATION_CORPUS": str(folder), "PYTHONPATH": str(Path(__file__).parent)}
        words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "recording", *TESTS]
        subprocess.run(words, cwd=TOP, env=env, check=False)  # where tests fail, too, they have given their files
    if not index.exists():
        index.write_text(json.dumps([asdict(each) for each in _chosen(folder)]), encoding="utf-8")
    return [File(**each) for each in json.loads(index.read_text(encoding="utf-8"))]


def _chosen(folder: Path) -> list[File]:
    verifiers, found, taken = front(), list[File](), Counter[tuple[int, str, int]]()
    given = [json.loads(line) for line in (folder / "given.jsonl").read_text(encoding="utf-8").splitlines()]
    many = Counter(test for _, _, test in given)
    own = {name for name, _, test in given if many[test] <= FEW}
    for name, tolerance in sorted({(name, tolerance) for name, tolerance, _ in given}):  # by digest, so in no order
        begun = time.perf_counter()
        with _traced() as lines:
            decided = decision(verifiers, folder / name, tolerance)
        places = [(decided[0], module, line) for module, there in lines.items() for line in there]
        if name in own or any(taken[place] < KEPT for place in places):
            taken.update(places)
            told = {module: sorted(there) for module, there in lines.items()}
            found.append(File(name, tolerance, decided, time.perf_counter() - begun, told))
    return sorted(found, key=lambda each: each.seconds)


@contextmanager
def _traced() -> Iterator[dict[str, set[int]]]:
    """Note which lines of the verifiers are run."""
    lines: dict[str, set[int]] = defaultdict(set)
    folder = str(VERIFIER)

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(folder):
            return None
        there = lines[path[len(folder) + 1 :]]

        def stepped(frame: FrameType, event: str, argument: Any) -> Any:
            there.add(frame.f_lineno)
            return stepped

        return stepped

    sys.settrace(called)
    try:
        yield lines
    finally:
        sys.settrace(None)
