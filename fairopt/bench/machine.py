"""The machine that measures: its description, how threads are pinned, and the reference job that shows noise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from fairopt.bench import memory
from fairopt.bench.records import Clock, Environment

#: Variables by which libraries learn how many threads to use.
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"),
)
#: Libraries whose versions are always recorded.
ALWAYS = ("fairopt", "numpy")
_MATRIX, _SORTED, _COUNTED = 256, 200_000, 200_000


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
class Provenance:
    """What only the process that starts a run knows; it goes into every environment."""

    commit: str
    dirty: bool
    spec_text: str
    command: str
    libraries: tuple[str, ...]

    @classmethod
    def of(cls, spec_text: str, libraries: Iterable[str], command: Iterable[str] | None = None) -> Provenance:
        """Return what this process knows; the commit is that of the checkout that fairopt is run from, if any."""
        commit, dirty = checkout(Path(__file__).resolve().parent)
        words = sys.argv if command is None else command
        return cls(commit, dirty, spec_text, writable(" ".join(words)), tuple(sorted({*ALWAYS, *libraries})))


def environment(provenance: Provenance, threads: int) -> Environment:
    """Return the environment of measurements on this machine."""
    names = memory.lines("cpuinfo", "model name")  # where Linux has the processor's name
    return Environment.of(
        cpu=(names[0].partition(":")[2].strip() if names else "") or platform.processor() or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=platform.platform(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        threads=pinned(threads),
        **{**vars(provenance), "libraries": versions(provenance.libraries)},
    )


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
