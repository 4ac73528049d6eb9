"""The command ``python proofs/verify.py FILE-OR-FOLDER... [--tolerance T]``.

It decides certificates, recorded runs and schedules: JSON or JSON lines, packed by gzip or not. Which of the
three a file is, its contents say. A line "accepted: ..." says what was checked, and a reader may believe that
line only. "REJECTED: ..." says what is wrong. Exit status: 0 all accepted, 1 something is rejected,
2 something cannot be read.

The tolerance says by how much numbers of runs and schedules in floats may be off, relative to their size.
"""

import argparse
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from . import certificates, runs, schedules
from .reading import Unreadable, brief, first, one_line, require

#: So many violations of one file are printed.
MOST_SHOWN = 20
#: A file of fewer bytes may take so many seconds of the processor; larger ones have limits on steps.
MOST_SECONDS, SMALL = 3.0, 100_000
#: A tolerance as it may be given: 1e-6, 0.000001 or 1/1000000.
TOLERANCE = r"\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,2})?|\d{1,30}/0*[1-9]\d{0,29}"
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
FINE, REJECTED, UNREADABLE = 0, 1, 2


def decide(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return what is wrong in a file, and where nothing is, the statement that has been checked.

    ``tolerance`` None means the usual one of the file's kind. Errors: `Unreadable`.
    """
    if path.is_dir():
        raise Unreadable(f"no file in this folder ends in {', '.join(SUFFIXES)}")
    begins, alone = first(path)
    if runs.recognises(begins):
        return runs.decide_file(path, tolerance)  # a run may be long: it is read line by line
    require(alone, "line 2", "there is more than one document")
    if certificates.recognises(begins):
        return certificates.decide(begins)
    if schedules.recognises(begins):
        return schedules.judged(begins, tolerance)
    held = brief(list(begins) if isinstance(begins, dict) else begins)
    raise Unreadable(f"it is no certificate, no run and no schedule: it holds {held}")


def report(path: Path, tolerance: Fraction | None = None, given: Path | None = None) -> tuple[int, list[str]]:
    """Return the exit status of a file, and the lines to print about it.

    Of a folder that was ``given`` only regular files are opened: a pipe would be waited for without end.
    """
    try:
        require(given in (None, path) or path.is_file(), "skipped", "of a folder, only files are opened")
        with small_in_time(path):
            violations, statement = decide(path, tolerance)
    except (Unreadable, TimeoutError) as why:
        return UNREADABLE, [f"cannot be read: {why}"]
    except MemoryError:
        return UNREADABLE, ["cannot be read: there is not enough memory"]
    if not violations:
        return FINE, [f"accepted: {statement}"]
    said = [f"REJECTED: {what}" for what in violations[:MOST_SHOWN]]
    if len(violations) > MOST_SHOWN:
        said.append(f"REJECTED: {len(violations)} violations in all")
    return REJECTED, said


@contextmanager
def small_in_time(path: Path) -> Iterator[None]:
    """Raise `TimeoutError` where a small file takes long: in the main thread, where there is such a clock."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer") or (path.is_file() and path.stat().st_size >= SMALL):
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"it takes more than {MOST_SECONDS:g} s, the limit for files below {SMALL} bytes")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def printed(path: Path, line: str) -> str:
    """Return a line about a file. Its name has no colon before a space, so that it is no verdict."""
    return one_line(str(path).replace(": ", r"\x3a ") + f": {line}")


def files(path: Path) -> Iterator[Path]:
    """Yield a file; for a folder, the files in it with the right suffixes, or itself where it has none."""
    found = sorted(path.rglob("*")) if path.is_dir() else []
    yield from [each for each in found if each.name.endswith(SUFFIXES) and not each.is_dir()] or [path]


def small_number(text: str) -> Fraction:
    """Return a number that was given on the command line; a long one could take for ever to write out."""
    if not re.fullmatch(TOLERANCE, text, re.ASCII | re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"{brief(text)} is no number like 1e-6 or 1/1000000")
    return Fraction(text)


def main(arguments: list[str] | None = None) -> int:
    """Decide files, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(prog="verify.py", description=str(__doc__).partition("\n\n")[2])
    parser.add_argument("file", nargs="+", type=Path, help="certificates, runs, schedules, or folders")
    parser.add_argument("--tolerance", type=small_number, help="by default 0 for runs and 1e-9 for schedules")
    asked, worst = parser.parse_args(arguments), FINE
    for given, path in ((named, each) for named in asked.file for each in files(named)):
        status, said = report(path, asked.tolerance, given)
        worst = max(worst, status)
        for line in said:
            print(printed(path, line), flush=True)
    return worst
