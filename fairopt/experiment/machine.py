"""The machine that plays and measures: what it is, how threads are pinned, memory, and the job that shows noise."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ClassVar

import numpy as np

from fairopt.codec import encode
from fairopt.discovery import library

#: Variables by which libraries learn how many threads to use.
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"),
)
#: Libraries whose versions are always recorded.
ALWAYS = ("fairopt", "numpy")
PROC = Path("/proc")
_MATRIX, _SORTED, _COUNTED = 256, 200_000, 200_000


@dataclass(frozen=True)
class Clock:
    """Seconds of one stage: wall time, and processor time of all threads and of child processes that have ended."""

    wall: float
    cpu: float


def pinned(threads: int) -> dict[str, str]:
    """Return the variables that pin libraries to so many threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed distributions; what is not installed is left out."""
    found = {}
    for name in sorted({*libraries}):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class Environment:
    """Where and for what something was played or measured. ``digest`` is the hash of everything else.

    ``threads`` are the variables that pin threads; ``libraries`` the versions of all libraries that the specification
    asks for, as installed; ``commit`` and ``dirty`` the state of the checkout, "" and False without one.
    """

    kind: ClassVar[str] = "environment"

    digest: str
    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    threads: Mapping[str, str]
    libraries: Mapping[str, str]
    commit: str
    dirty: bool
    spec_text: str
    command: str

    @classmethod
    def of(cls, **parts: Any) -> Environment:
        """Return the environment with its digest."""
        text = json.dumps(encode(parts, finite=True), sort_keys=True)
        return cls(digest=sha256(text.encode()).hexdigest(), **parts)

    @classmethod
    def starting(cls, spec_text: str, libraries: Iterable[str], command: Iterable[str] | None = None) -> Environment:
        """Return the environment of the process that starts a run; the commit is that of fairopt's checkout, if any."""
        commit, dirty = checkout(Path(__file__).resolve().parent)
        text = writable(" ".join(sys.argv if command is None else command))
        asked = dict.fromkeys((*ALWAYS, *libraries), "")
        run = {"commit": commit, "dirty": dirty, "spec_text": spec_text, "command": text}
        return cls.of(**_machine(), **run, threads={}, libraries=asked | versions(asked))

    def here(self, threads: int) -> Environment:
        """Return the environment of the same run on the machine of this process, which may be another."""
        run = {name: getattr(self, name) for name in ("commit", "dirty", "spec_text", "command")}
        return self.of(**_machine(), **run, threads=pinned(threads), libraries=versions(self.libraries))


def _machine() -> dict[str, Any]:
    names = lines("cpuinfo", "model name")  # where Linux has the processor's name
    return {
        "cpu": (names[0].partition(":")[2].strip() if names else "") or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def writable(text: str) -> str:
    """Return a text that UTF-8 can write: halves of surrogate pairs become "?"."""
    return text.encode("utf-8", "replace").decode()


def checkout(folder: Path) -> tuple[str, bool]:
    """Return the commit of the Git checkout that tracks a folder's files, and whether any differs; else ("", False).

    A folder that Git does not track has none, even inside a checkout, as an installed package does.
    """
    try:
        _git(folder, "ls-files", "--error-unmatch", ".")
        return _git(folder, "rev-parse", "HEAD"), bool(_git(folder, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):  # no Git, or no checkout
        return "", False


def reference_job() -> Clock:
    """Do the same small job as ever (about 50 ms; longer: the machine was busy or throttled), return what it took."""
    random = np.random.default_rng(0)
    matrix, values = random.random((_MATRIX, _MATRIX)), random.random(_SORTED)
    began = now()
    for _ in range(4):
        matrix = matrix @ matrix
        matrix /= matrix.max()
    np.sort(values)
    total = 0
    for number in range(_COUNTED):
        total += number & 7
    return since(began)


def now() -> Clock:
    """Return the present clocks of this process; `since` returns what has passed."""
    import resource  # POSIX systems have it; without it, a specification can still be read and results shown

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Clock(perf_counter(), process_time() + children.ru_utime + children.ru_stime)


def since(began: Clock) -> Clock:
    """Return what has passed since ``began``."""
    ended = now()
    return Clock(ended.wall - began.wall, ended.cpu - began.cpu)


def _git(folder: Path, *words: str) -> str:
    # it only reads: a process that is killed meanwhile must leave no index.lock behind
    command = ["git", "--no-optional-locks", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=30)
    return ran.stdout.strip()


# -- memory of a process and of those that it started, as the system counts it ----------------------------------------
# Linux: from /proc, for two reasons. psutil has no peak; ``VmHWM`` is one, and unlike ``ru_maxrss`` it does not begin
# at the parent's memory. And psutil finds children by a scan of all processes, which takes ten times as long (4 ms
# against 0.4 ms beside 100 processes): 50 times a second, that would disturb what is measured. Other systems: by
# psutil; the peak is then the largest value seen.
def resident(pid: int) -> int:
    """Return the resident bytes of a process and of all that it started, shared pages for each; 0 when it has ended."""
    if not _has_proc():
        return _by_psutil(pid)
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        total += _number(f"{process}/status", "VmRSS:") * 2**10
        waiting.extend(_children(process))
    return total


def peak(pid: int) -> int:
    """Return the most bytes that a process has had since `forget_peak`; without /proc, what it has now."""
    return _number(f"{pid}/status", "VmHWM:") * 2**10 if _has_proc() else _by_psutil(pid)


def forget_peak() -> None:
    """Let the peak of this process begin anew; where the system cannot, it counts from the start of the process."""
    with suppress(OSError):  # not Linux, or not allowed: the peak is then that of the whole process, never less
        (PROC / "self" / "clear_refs").write_text("5")


def kills() -> int:
    """Return how many processes the system has killed since its start because memory ran out; 0 where unknown."""
    return _number("vmstat", "oom_kill ")


def _has_proc() -> bool:
    return (PROC / "self" / "status").exists()


def lines(file: str, key: str) -> list[str]:
    """Return the lines of a file of /proc that begin with a key; none where the file, or its process, is gone."""
    try:
        return [line for line in (PROC / file).read_text().splitlines() if line.startswith(key)]
    except OSError:
        return []


def _number(file: str, key: str) -> int:
    return next((int(line.split()[1]) for line in lines(file, key)), 0)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # a thread, or the process, has ended meanwhile
        for thread in (PROC / str(pid) / "task").iterdir():
            found.extend(int(child) for child in (thread / "children").read_text().split())
    return found


def _by_psutil(pid: int) -> int:
    psutil = library("psutil", "measuring memory on this system")
    try:
        process = psutil.Process(pid)
        return int(sum(each.memory_info().rss for each in [process, *process.children(recursive=True)]))
    except psutil.NoSuchProcess:
        return 0
