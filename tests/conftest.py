"""What the tests share. At the end are printed each conformance run, with what it ran, and why tests were skipped."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from html import escape
from pathlib import Path
from typing import Any

import forked
import pytest
from hypothesis import HealthCheck, settings
from ran_command import Ran
from skip_reasons import reason_of, skipped_for

#: How fast the machine is decides nothing. Other examples are drawn in each run, and many in `make campaign`.
settings.register_profile("quick", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("campaign", settings.get_profile("quick"), max_examples=500)
settings.load_profile("quick")


#: Threads of the BLAS wait for each other by spinning: where others work too, small solves take many times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

gc.disable()  # what is imported and collected stays to the end


def pytest_collection_finish() -> None:
    """Look for garbage from now on, but not in what was imported and collected: that lives as long as the process."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are cores: many tests wait for processes of their own."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (own or 1) + 1


@pytest.fixture(autouse=True)
def as_wide_as_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and progress do not depend on the terminal that the tests run in."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for all tests that ask for none: one of its own for each takes longer than most of them."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True)
def in_an_empty_folder(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, empty_folder: Path
) -> Iterator[None]:
    """What lies in the folder that the tests are started from, a user's results for instance, decides nothing."""
    asked = "tmp_path" in request.fixturenames
    monkeypatch.chdir(request.getfixturevalue("tmp_path") if asked else empty_folder)
    yield
    if not asked and any(empty_folder.iterdir()):
        shutil.rmtree(empty_folder)
        empty_folder.mkdir()


@pytest.fixture
def fairopt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run ``fairopt`` with arguments in this process, and return how it ended."""

    from fairopt.cli import main  # not where no test runs a command

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["fairopt", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def forked_fairopt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the words that run ``fairopt`` in a process of its own that does not import everything again."""
    where = str(tmp_path_factory.mktemp("forked") / "socket")
    command = [sys.executable, forked.__file__, where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout.readline()  # it listens
        yield [sys.executable, "-I", "-S", str(forked.CLIENT), where]
        server.stdin.close()  # it ends


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures, which take most of the time of the page of a study or benchmark, where nobody looks at them."""
    monkeypatch.setattr("fairopt.experiment.studies.page.svg", lambda draw, title, what: "")
    monkeypatch.setattr("fairopt.experiment.bench.page.svg", lambda draw, title, what, description: escape(title))


@pytest.fixture
def conformance(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Keep a line for the terminal summary; it travels with the test's report, also between processes."""
    return lambda text: record_property("conformance", str(text))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Fail a test that is skipped and does not say why."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not reason_of(report):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} is skipped and does not say why"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if reasons := skipped_for(terminalreporter.getreports("skipped")):
        terminalreporter.section(f"skipped: {sum(reasons.values())} tests, by reason")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:5}  {reason}")
    lines = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "conformance"
    ]
    if lines:
        terminalreporter.section("conformance: what ran")
        for line in sorted(set(lines)):
            terminalreporter.write_line(line)
