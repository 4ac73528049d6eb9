"""Memory of a process and of those that it started, as the system counts it.

Linux: from /proc, for two reasons. psutil has no peak; ``VmHWM`` is one, and unlike ``ru_maxrss`` it does not begin at
the parent's memory. And psutil finds children by a scan of all processes, which takes ten times as long (4 ms against
0.4 ms beside 100 processes): 50 times a second, that would disturb what is measured. Other systems: by psutil; the peak
is then the largest value seen.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fairopt.discovery import library

PROC = Path("/proc")
_KIB = 1024


def resident(pid: int) -> int:
    """Return the resident bytes of a process and of all that it started, shared pages for each; 0 when it has ended."""
    if not _has_proc():
        return _by_psutil(pid)
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        total += _number(f"{process}/status", "VmRSS:") * _KIB
        waiting.extend(_children(process))
    return total


def peak(pid: int) -> int:
    """Return the most bytes that a process has had since `forget_peak`; without /proc, what it has now."""
    return _number(f"{pid}/status", "VmHWM:") * _KIB if _has_proc() else _by_psutil(pid)


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
