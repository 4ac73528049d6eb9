"""The command ``python proofs/verify.py FILE-OR-FOLDER... [--tolerance T]``.

It decides certificates, recorded runs and schedules: JSON or JSON lines, packed by gzip or not. Contents say
which a file is. A line "accepted: ..." says what was checked, and a reader may believe that line only.
"REJECTED: ..." says what is wrong. Exit status: 0 all accepted, 1 one is rejected, 2 one cannot be read. The
tolerance says by how much numbers of runs and schedules in floats may be off, relative to their size.
"""

import argparse
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import NamedTemporaryFile

from . import certificates, runs, schedules
from .reading import Rejected, Unreadable, brief, first, one_line, require, within

#: So many violations of one file are printed.
MOST_SHOWN = 20
#: A file of fewer bytes may take so many seconds of the processor; larger ones have limits on steps.
MOST_SECONDS, SMALL = 3.0, 100_000
#: The most bytes of a pipe, and the most folders in each other.
MOST_PIPED, DEEPEST = 2**26, 400
#: A tolerance as it may be given: 1e-6, 0.000001 or 1/1000000.
TOLERANCE = r"\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,2})?|\d{1,30}/0*[1-9]\d{0,29}"
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
FINE, REJECTED, UNREADABLE = 0, 1, 2


def decide(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return what is wrong in a file, and where nothing is, the statement that has been checked.

    ``tolerance`` None means the usual one of the file's kind. Errors: `Unreadable`.
    """
    if os.path.isdir(path):
        raise Unreadable(f"no file in this folder ends in {', '.join(SUFFIXES)}, or it cannot be looked into")
    begins, alone = first(path)
    if runs.recognises(begins):
        return runs.decide_file(path, tolerance)  # a run may be long: it is read line by line
    require(alone, "line 2", "there is more than one document")
    if certificates.recognises(begins):
        try:
            return [], certificates.verify(begins)
        except Rejected as why:
            return [str(why)], ""
    if schedules.recognises(begins):
        return schedules.judged(begins, tolerance)
    held = brief(list(begins) if isinstance(begins, dict) else begins)
    raise Unreadable(f"it is no certificate, no run and no schedule: it holds {held}")


def report(path: Path, tolerance: Fraction | None = None, given: Path | None = None) -> tuple[int, list[str]]:
    """Return the exit status of a file, alone or of a folder ``given``, and the lines to print about it."""
    try:
        require(opens(path, given), "skipped", "of a folder, only files that hold something are opened")
        with small_in_time(path), kept(path) as file:
            violations, statement = decide(file, tolerance)
    except (Unreadable, OSError, MemoryError) as error:
        why = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
        return UNREADABLE, [f"cannot be read: {why}"]
    if not violations:
        return FINE, [f"accepted: {statement}"]
    said = [f"REJECTED: {what}" for what in violations[:MOST_SHOWN]]
    if len(violations) > MOST_SHOWN:
        said.append(f"REJECTED: {len(violations)} violations in all")
    return REJECTED, said


def opens(path: Path, given: Path | None) -> bool:
    """Return whether a path is opened: of a folder, pipes and files of the kernel could be waited for."""
    return given in (None, path) or os.path.isdir(path) or (os.path.isfile(path) and path.stat().st_size > 0)


@contextmanager
def kept(path: Path) -> Iterator[Path]:
    """Give a file, or the copy of a pipe, which can be read only once."""
    if not path.is_fifo():
        yield path
        return
    with NamedTemporaryFile() as copy, path.open("rb") as pipe:
        within(copy.write(pipe.read(MOST_PIPED + 1)), MOST_PIPED, "document", "bytes of a pipe")
        copy.flush()
        yield Path(copy.name)


@contextmanager
def small_in_time(path: Path) -> Iterator[None]:
    """Raise `TimeoutError` where a small file takes long: in the main thread, where there is such a clock."""
    clock = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not clock or (os.path.isfile(path) and path.stat().st_size >= SMALL):
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
    """Yield a file; of a folder the files with the right suffixes, and folders that cannot be looked into."""
    found, errors = list[Path](), list[OSError]()
    for folder, inner, names in os.walk(path, onerror=errors.append):
        found += [Path(folder, name) for name in names if name.endswith(SUFFIXES)]
        if folder.count(os.sep) > DEEPEST:
            found += [Path(folder, name) for name in inner]
            inner.clear()
    yield from sorted(
        [*found, *(Path(each.filename) for each in errors if each.filename != os.fspath(path))]
    ) or [path]


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
