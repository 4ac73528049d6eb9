"""What is mutated, and its corpus: of the files that the tests give it, a few for each way through its lines.

The verifiers are given files; the property checkers are given calls, each kept as a file.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import calls
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
            "forged_documents",
            "forged_runs",
            "forged_schedules",
        )
    ),
    *(
        "tests/certificates",
        "tests/frontier",
        "tests/proofs/test_efficient_rules.py",
        "tests/models/test_entitled_shares.py",
    ),
    *(f"tests/properties/test_{name}.py" for name in ("within_bounds", "entitlements", "ranges")),
    *("tests/methods/test_whole_gpus.py", "tests/cli/test_cli_verify_record.py"),
)
#: Tests of what no file shows: how files are opened and numbers printed, the command, and what is asked of a text.
UNITS = {
    "runs.py": ("tests/proofs/test_forged_runs.py", "tests/proofs/test_forged_documents.py"),
    "standing.py": ("tests/properties/test_whole_gangs.py",),
    "decisions.py": ("tests/certificates/test_forged_decisions.py",),
    "front.py": ("tests/proofs/test_verifier_program.py",),
    "reading.py": ("tests/proofs/test_verifier_reading.py", "tests/proofs/test_verifier_program.py"),
}
LAST_DIGIT = "tests/properties/test_last_digit.py"
#: Tests of what no call shows, such as what cannot be written down; those of a folder for each module in it.
PARTS = {
    "entitlements": ("tests/properties/test_held_and_owed.py", "tests/properties/test_entitlements.py", LAST_DIGIT),
    **dict.fromkeys(
        (f"entitlements/{name}.py" for name in ("nobody_starves_while_lent", "whole_gangs")),
        ("tests/properties/test_whole_gangs.py", "tests/properties/test_entitlements.py", LAST_DIGIT),
    ),
    "runs": ("tests/properties/test_run_properties.py",),
    "schedules": ("tests/properties/test_schedule_properties.py", LAST_DIGIT),
    "schedules/pareto.py": (
        "tests/properties/test_schedule_pareto_steps.py",
        "tests/properties/test_schedule_properties.py",
    ),
    "lattice.py": ("tests/properties/test_lattice.py",),
    "within_bounds.py": ("tests/properties/test_within_bounds_steps.py", LAST_DIGIT),
    "worst_reports.py": ("tests/properties/test_worst_reports.py",),
    "over_optima.py": ("tests/properties/test_over_optima_steps.py",),
    "property.py": ("tests/properties/test_edges.py", LAST_DIGIT),
    "verdict.py": ("tests/properties/test_verdict.py",),
    "misreports/exact_reports.py": ("tests/properties/test_exact_reports.py",),
    "misreports/kinds.py": ("tests/properties/test_misreport_kinds.py",),
    "long_fractions.py": ("tests/properties/test_long_fractions.py",),
    "misreports/reports.py": ("tests/properties/test_reports.py",),
    "misreports/search.py": ("tests/properties/test_search.py",),
    "misreports/shrinking.py": ("tests/properties/test_shrinking_steps.py",),
    "misreports/strategy_proofness.py": (
        "tests/properties/test_strategy_proofness.py",
        "tests/properties/test_in_ranges.py",
    ),
    **dict.fromkeys(
        (
            f"shares/{name}.py"
            for name in ("adjacent_types", "envy_freeness", "feasibility", "sharing_incentive", "work_conservation")
        ),
        (LAST_DIGIT, "tests/properties/test_edges.py"),
    ),
    "shares/pareto_efficiency.py": ("tests/properties/test_pareto_by_hand.py", "tests/properties/test_edges.py"),
    "shares/pareto_within_bounds.py": ("tests/properties/test_pareto_by_hand.py",),
}
#: Plugins of pytest, some of which take longer to load than the tests, are left out, and its options with them.
PLUGINS = "cacheprovider hypothesispytest xdist doctest unraisableexception threadexception logging faulthandler"
BARE = (
    *("-o", "addopts=", "--import-mode=importlib", "--assert=plain", "-m", "not slow"),
    *(f"-pno:{each}" for each in PLUGINS.split()),
)
#: Of a test that gives at most so many files all are kept; of others those that take a line that fewer than so many
#: files before them take that are decided alike, out of so many that the test gives.
FEW, KEPT, SAMPLE = 20, 40, 400


@dataclass(frozen=True)
class Subject:
    """What is mutated: its folder, the tests that give it files, and the plugin of pytest that keeps these.

    ``anew`` forgets its modules, so that they are read anew; ``decision`` says how a file is decided at a tolerance.
    ``units``: by module or folder, tests of what no file shows. A mutant has survived after so many ``seconds`` of the
    processor that files took, and after these tests. What takes longer than the ``slowest``, noted line by line, is
    left out.
    """

    folder: Path
    tests: tuple[str, ...]
    plugin: str
    anew: Callable[[], Any]
    decision: Callable[[Path, str | None], Any]
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 3
    slowest: float = 0.5

    def tests_of(self, file: str) -> tuple[str, ...] | None:
        """Return the tests of what no file shows of a module, its own or those of its folder."""
        return self.units.get(file) or self.units.get(file.partition("/")[0])


@dataclass(frozen=True)
class File:
    """A file, how it is decided, the seconds that this takes, and the lines that it takes, by module."""

    name: str
    tolerance: str | None
    decision: Any
    seconds: float
    lines: dict[str, list[int]]


def _decided(path: Path, tolerance: str | None) -> Any:
    """Return how the verifiers decide: the exit status, and what may be believed; reasons may be told otherwise."""
    status, said = importlib.import_module("verifier.front").report(
        path, None if tolerance is None else Fraction(tolerance)
    )
    return [status, said if status == 0 else []]


def _anew() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == VERIFIER.name]:
        del sys.modules[name]
    if str(VERIFIER.parent) not in sys.path:
        sys.path.insert(0, str(VERIFIER.parent))


SUBJECTS = {
    "verifiers": Subject(VERIFIER, TESTS, "recording", _anew, _decided, UNITS),
    "properties": Subject(
        TOP / "fairopt" / "properties",
        ("tests/properties", "fairopt/properties"),
        "calls",
        calls.anew,
        lambda path, _: calls.answer(path),
        PARTS,
        seconds=0.5,
        slowest=0.1,
    ),
}


def passes(tests: tuple[str, ...]) -> bool:
    """Return whether tests pass in this process; they, and what they import of the verifiers, are read anew."""
    for name in [name for name in sys.modules if name.startswith(("fairopt.proofs", "tests."))]:
        del sys.modules[name]
    os.chdir(TOP)
    with TemporaryDirectory() as own:  # else pytest would first throw away what others have left behind
        os.environ["PYTEST_DEBUG_TEMPROOT"] = own
        return pytest.main(["-q", "-x", *BARE, *tests]) == pytest.ExitCode.OK


def collected(subject: Subject, folder: Path, sample: int = SAMPLE) -> list[File]:
    """Return the subject's corpus that stands in a folder, chosen out of so many files of a test.

    It is made there where it is missing: some minutes.
    """
    sources = b"".join(path.read_bytes() for path in sorted(subject.folder.rglob("*.py")))
    index = folder / f"index-{sha256(sources).hexdigest()[:12]}-{sample}.json"  # whose lines are those of these sources
    whole = folder / "whole"  # says that what tests give was not broken off
    if not whole.exists():
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        env = os.environ | {"MUTATION_CORPUS": str(folder), "PYTHONPATH": str(Path(__file__).parent)}
        words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", subject.plugin, *subject.tests]
        subprocess.run(words, cwd=TOP, env=env, check=False)  # where tests fail, too, they have given their files
        whole.touch()
    if not index.exists():
        index.write_text(json.dumps([asdict(each) for each in _chosen(subject, folder, sample)]), encoding="utf-8")
    return [File(**each) for each in json.loads(index.read_text(encoding="utf-8"))]


def _chosen(subject: Subject, folder: Path, sample: int) -> list[File]:
    found, taken = list[File](), Counter[tuple[str, str, int]]()
    given = [json.loads(line) for line in (folder / "given.jsonl").read_text(encoding="utf-8").splitlines()]
    by_test = defaultdict[str, set[tuple[str, str | None]]](set)
    for name, tolerance, test in given:
        by_test[test].add((name, tolerance))
    own = {name for each in by_test.values() if len(each) <= FEW for name, _ in each}
    subject.anew()
    # names are digests: in their order files are in none
    for name, tolerance in sorted(
        {each for every in by_test.values() for each in sorted(every, key=str)[:sample]}, key=str
    ):
        begun = time.process_time()
        try:
            with _traced(subject.folder) as lines:
                decided = subject.decision(folder / name, tolerance)
        except (ImportError, AttributeError):  # what only the tests know of
            continue
        seconds = time.process_time() - begun
        places = [(decided[0], module, line) for module, there in lines.items() for line in there]
        if (name in own or any(taken[place] < KEPT for place in places)) and seconds < subject.slowest:
            taken.update(places)
            told = {module: sorted(there) for module, there in lines.items()}
            found.append(File(name, tolerance, decided, seconds, told))
    subject.anew()  # what is decided otherwise the second time tells nothing
    same = (each for each in found if subject.decision(folder / each.name, each.tolerance) == each.decision)
    return sorted(same, key=lambda each: each.seconds)


@contextmanager
def _traced(subject: Path) -> Iterator[dict[str, set[int]]]:
    """Note which lines of the modules in a folder are run."""
    lines: dict[str, set[int]] = defaultdict(set)
    folder = str(subject)

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
