"""Kills and stops at random moments: what was finished stays, and the same command goes on to the same end.

Each command runs in a child of a process that has everything loaded, which takes a second once; the parent stops it. A
stop is SIGKILL, SIGTERM, Ctrl-C, a disk that is full (a limit on the size of files) or read-only, memory that is used
up, a clock that goes back, or a second process at the same file.
"""

from __future__ import annotations

import builtins
import contextlib
import csv
import errno
import importlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from trials import Ending, Fault, Kind

from fairopt.cli.app import main

sys.path.append(str(Path(__file__).parents[1] / "studies"))
import study_examples as studies

#: Exit statuses of a command that says why it ended: done, bad input, not solved, a property that fails, signals.
SAID = frozenset({0, 1, 2, 3, 4, 130, 143})
ASKED = {signal.SIGINT, signal.SIGTERM}
SPEC = """
schema = 1
name = "small"
task = "max-min"
time_limit = 20
memory_limit = "8 GB"
repeats = 1
shift = 0.01

[[instances]]
family = "oef-growing"
parameters = { users = [5], types = 3 }
seeds = [1, 2]

[[contenders]]
contender = "fairopt"
"""

CLAIMS = ("oef-eq1", "oef-eq1-envy", "oef-eq1-lie")
CLUSTER = """
schema = 1
types = ["T"]

[[host]]
name = "h"
type = "T"
count = 2
gpus = 2
"""
MARKET = """
schema = 1
types = ["A", "B"]
capacity = [3, 2]
user = [
    { name = "a", speedup = [1, 2] }, { name = "b", speedup = [1, 5] }, { name = "c", speedup = [2, 3], demand = 2 },
]
"""


def child(words: Sequence[str], folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Begin a command in a child process, and return the process's number; its words go to files in the folder."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ASKED)  # not before the child is ready to be stopped
    number = os.fork()
    if number:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKED)
        return number
    status = 99
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKED)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for stream, name in ((1, "said"), (2, "errors")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        prepare()
        sys.argv = ["fairopt", *words]
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # a traceback is what is sought; it is in the file
        import traceback

        traceback.print_exc()
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        finally:
            os._exit(status)
    raise AssertionError("a child does not come here")


def ended(number: int, most: float = 60.0) -> int:
    """Return the exit status of a child, negative for a signal; `Fault` where it does not end."""
    until = time.monotonic() + most
    while time.monotonic() < until:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    _stop(number, signal.SIGKILL)
    os.waitpid(number, 0)
    raise Fault(Ending.HANG, "a command did not end")


def _stop(number: int, which: signal.Signals) -> None:
    """Send a signal to a child and all that it began; one that has ended already gets none."""
    try:
        os.killpg(number, which)
    except ProcessLookupError:  # it has no group of its own yet, or has ended
        os.kill(number, which)


# -- ways to stop ----------------------------------------------------------------------------------------------------
def _signalled(which: signal.Signals) -> Callable[[Sequence[str], Path, Random], int]:
    def stop(words: Sequence[str], folder: Path, draw: Random) -> int:
        number = child(words, folder)
        time.sleep(draw.uniform(0, 1.2))
        _stop(number, which)
        return ended(number)

    return stop


def _full_disk(words: Sequence[str], folder: Path, draw: Random) -> int:
    most = draw.randrange(10, 30_000)

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return ended(child(words, folder, prepare))


def _read_only(words: Sequence[str], folder: Path, draw: Random) -> int:
    """Run it where nothing can be written; the words of a child go to files that are open already."""
    honest, opened, replaced = builtins.open, os.open, os.replace

    def refuse(path: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def opening(path: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
        return (
            refuse(path)
            if not isinstance(path, int) and set(mode) & set("wax+")
            else honest(path, mode, *given, **named)
        )

    def low(path: Any, flags: int, *given: Any, **named: Any) -> int:
        writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and os.fspath(path) != os.devnull
        return refuse(path) if writing else opened(path, flags, *given, **named)

    def prepare() -> None:
        builtins.open = io.open = opening
        os.open, os.replace = low, lambda source, *given, **named: refuse(source) or replaced(source, *given, **named)
        os.mkdir = lambda path, *given, **named: refuse(path)

    return ended(child(words, folder, prepare))


def _no_memory(words: Sequence[str], folder: Path, draw: Random) -> int:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def prepare() -> None:
        most = now + draw.randrange(1, 40) * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return ended(child(words, folder, prepare))


def _clock_back(words: Sequence[str], folder: Path, draw: Random) -> int:
    honest = time.time

    def prepare() -> None:
        begun = honest()
        time.time = lambda: begun - (honest() - begun) * 1000

    return ended(child(words, folder, prepare))


def _two_at_once(words: Sequence[str], folder: Path, draw: Random) -> int:
    other = folder / "other"
    other.mkdir(exist_ok=True)
    first = child(words, folder)
    time.sleep(draw.uniform(0, 0.2))
    second = child(words, folder)
    one, two = ended(first), ended(second)
    return max(one, two)


STOPS = {
    **{which.name: _signalled(which) for which in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)},
    "full disk": _full_disk,
    "read-only disk": _read_only,
    "no memory": _no_memory,
    "clock back": _clock_back,
    "two at once": _two_at_once,
}


# -- commands, and what must be there after a stop ---------------------------------------------------------------------
class Command:
    """A command with its files, what it keeps of them, and how it ends undisturbed.

    ``told``: it ends by printing JSON, which is compared but for the seconds in it.
    """

    def __init__(
        self, words: Sequence[str], files: dict[str, str], kept: Callable[[Path], list[Any]], told: bool = False
    ) -> None:
        self.words, self.files, self.kept, self.told = words, files, kept, told

    def at_end(self, folder: Path) -> list[Any]:
        """Return what is there when it has ended by itself."""
        said = json.loads((folder / "said").read_text()) if self.told else None
        return [*self.kept(folder), *([_timeless(said)] if self.told else [])]

    def folder(self) -> Path:
        """Return a new folder with the files."""
        folder = Path(tempfile.mkdtemp(prefix="stopped-"))
        for name, text in self.files.items():
            (folder / name).write_text(text)
        return folder

    @cache  # noqa: B019  # there are four of them
    def whole(self) -> list[Any]:
        """Return what it keeps when nobody stops it."""
        folder = self.folder()
        try:
            status = ended(child(self.words, folder))
            assert status == 0, (folder / "errors").read_text()
            return self.at_end(folder)
        finally:
            shutil.rmtree(folder)

    def trial(self, draw: Random) -> Ending:
        """Stop it once or twice, then let it go on to its end."""
        folder, whole = self.folder(), self.whole()
        try:
            before: list[Any] = []
            for _ in range(draw.choice([1, 1, 2])):
                how = draw.choice(sorted(STOPS))
                status = STOPS[how](self.words, folder, draw)
                errors = (folder / "errors").read_text(errors="replace")
                if "Traceback (most recent call last)" in errors and how != "no memory":
                    raise Fault(Ending.TRACEBACK, f"{how}: {errors[-2500:]}")
                if status > 0 and status not in SAID and how != "no memory":
                    raise Fault(Ending.TRACEBACK, f"{how}: exit status {status}: {errors[-1500:]}")
                now = self.kept(folder)
                if any(each not in now for each in before):
                    raise Fault(Ending.LOST, f"{how}: of {len(before)} finished things {len(now)} are left")
                if any(each not in whole for each in now):
                    raise Fault(Ending.WRONG, f"{how}: kept what an undisturbed run does not have: {str(now)[:800]}")
                before = now
            status = ended(child(self.words, folder))
            errors = (folder / "errors").read_text(errors="replace")
            if status:
                raise Fault(Ending.WRONG, f"{how}, then it does not go on: {errors[-2500:]}")
            if sorted(map(str, self.at_end(folder))) != sorted(map(str, whole)):
                raise Fault(Ending.WRONG, f"{how}, then it ends otherwise: {str(self.at_end(folder))[:800]}")
            return Ending.RIGHT
        finally:
            shutil.rmtree(folder)


def _cells(folder: Path) -> list[Any]:
    path = folder / "small.jsonl"
    return studies.without_times(studies.cells_of(path)) if path.exists() and path.stat().st_size else []


def _measured(folder: Path) -> list[Any]:
    from fairopt.experiment.bench.records import KINDS as RECORDS
    from fairopt.experiment.bench.records import Measurement
    from fairopt.experiment.journal import read_records

    path = folder / "small.jsonl"
    if not path.exists() or not path.stat().st_size:
        return []
    found = [each for each in read_records(path, RECORDS) if isinstance(each, Measurement)]
    return [(each.instance, each.contender, str(each.status)) for each in found]


def _rows(folder: Path) -> list[Any]:
    """Return the rows of a file that is written at once: it is whole, or not there."""
    path = folder / "cells.csv"
    if not path.exists():
        return []
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return [json.dumps([row["policy"], row["load"], row["seed"], row["jct_mean"]]) for row in rows]


def _timeless(said: Any) -> Any:
    """Return JSON without what differs from run to run: seconds."""
    if isinstance(said, dict):
        return {key: _timeless(each) for key, each in said.items() if "second" not in key and "deciding" not in key}
    return [_timeless(each) for each in said] if isinstance(said, list) else said


def _states(folder: Path) -> list[Any]:
    """Return nothing, once each line that `run --state` has ended is found to be JSON."""
    state = folder / "state.json"
    for line in state.read_text().splitlines(keepends=True) if state.exists() else []:
        if line.endswith("\n"):
            json.loads(line)
    return []


def loaded() -> None:
    """Import what commands import, and have them read their entry points, before the first child."""
    for name in (
        "fairopt.models",
        "fairopt.experiment.studies.page",
        "fairopt.experiment.bench.run",
        "fairopt.compare",
        "pandas",
        "scipy.stats",
    ):
        importlib.import_module(name)
    with contextlib.suppress(Exception):
        for name in ("matplotlib.pyplot", "pyarrow.parquet"):
            importlib.import_module(name)
    commands()


def _study_files() -> dict[str, str]:
    folder = Path(tempfile.mkdtemp())
    text = studies.spec_text(folder).replace(str(folder / "trace.csv"), "trace.csv")
    return {"small.toml": text, "trace.csv": (folder / "trace.csv").read_text()}


@cache
def commands() -> dict[str, Command]:
    """Return the commands that are stopped."""
    study = ["study", "small.toml", "--jobs", "1"]  # a page takes longer to draw than all cells to play
    run = ["run", "trace.csv", "--cluster", "cluster.toml", "--policy", "srtf", "--length", "60", "--json"]
    files = _study_files()
    market = {"market.toml": MARKET}
    compare = [
        "compare",
        "market.toml",
        "--policy",
        "max-min",
        "--policy",
        "oef-cooperative",
        "--evaluations",  # not seconds: with those it ends otherwise on a machine that is busy
        "150",
        "--json",
    ]
    return {
        "run": Command(
            [*run, "--state", "state.json", "--record", "record.jsonl.gz"],
            {"trace.csv": files["trace.csv"], "cluster.toml": CLUSTER},
            _states,
            told=True,
        ),
        "compare": Command(compare, market, lambda folder: [], told=True),
        "claims": Command(["claims", *CLAIMS, "--run", "--json"], {}, lambda folder: [], told=True),
        "study": Command(study, files, _cells),
        "bench": Command(["bench", "small.toml", "--json", "small.jsonl"], {"small.toml": SPEC}, _measured),
        "table": Command([*study, "--table", "cells.csv"], files, _rows),
        "page": Command([*study, "--page", "p.html"], files, _cells),
    }


def attempt(name: str, draw: Random) -> Ending:
    """Stop a command."""
    return commands()[name].trial(draw)


COSTS = {"run": 700, "compare": 900, "claims": 700, "study": 2500, "bench": 2500, "table": 2500, "page": 8000}
#: So many stops are enough of a command that takes over a second.
ENOUGH = 150
KINDS = [
    Kind("c", f"stops of {name}", partial(attempt, name), 120, cost, loaded, most=ENOUGH if cost > 1000 else 10**9)
    for name, cost in COSTS.items()
]
