"""How a command ends: its exit status, and streams whose readers go away before it does."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from enum import IntEnum
from io import BufferedWriter, FileIO, TextIOWrapper
from stat import S_ISCHR, S_ISFIFO, S_ISSOCK
from typing import Any, NoReturn


class Exit(IntEnum):
    """What the command tells the shell; UNDECIDED: nothing fails, but something is open, or depends on the input."""

    FINE = 0
    FAILS = 1
    BAD_INPUT = 2
    NOT_SOLVED = 3
    UNDECIDED = 4
    INTERRUPTED = 130
    NOBODY_READS = 141  # like a program ended by SIGPIPE: the reader of a pipe went away
    HUNG_UP = 129  # `run`, by SIGHUP: its terminal was closed
    TERMINATED = 143  # `run`, by SIGTERM


#: The signal of a terminal that is closed, where the system has one.
HANG_UP = [signal.Signals[name] for name in ("SIGHUP",) if hasattr(signal, name)]


def interrupted(number: int, _: object) -> NoReturn:
    """Take a signal as Ctrl-C."""
    print_nowhere(number)
    raise KeyboardInterrupt


def print_nowhere(number: int) -> None:
    """Print on no terminal from now on where a signal says that it was closed: files are still to be written."""
    if number in HANG_UP:
        _leave_terminals()


def _leave_terminals() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for each in (1, 2):
        with suppress(OSError):  # it is closed
            if S_ISCHR(os.fstat(each).st_mode):
                os.dup2(nowhere, each)


class _Pipe(FileIO):
    """A stream from which a reader may go away, as `head` does; ``left``: whether it has.

    The first to write after that is told so by a `BrokenPipeError`, and the program ends. Where it ``goes_on``, since
    it has files to write as well, nobody is told. What is printed from then on is dropped. So is what is printed on a
    terminal that was closed: the signal that says so may come later.
    """

    left = goes_on = False

    def write(self, data: Any) -> int:
        """Write bytes, and return how many of them are dealt with."""
        try:
            return len(data) if self.left else super().write(data)
        except BrokenPipeError:
            self.left = True
            if self.goes_on:
                return len(data)
            raise
        except OSError as error:
            if error.errno != errno.EIO or not S_ISCHR(os.fstat(self.fileno()).st_mode):
                raise
            _leave_terminals()
            return len(data)


def pipes() -> list[_Pipe]:
    """Return the streams to print on that may be closed by who reads them."""
    return [each for each in map(_raw, (sys.stdout, sys.stderr)) if isinstance(each, _Pipe)]


def _raw(stream: Any) -> Any:
    """Return what takes the bytes of a stream; None where that is not to be known."""
    below = getattr(stream, "buffer", None)
    return getattr(below, "raw", below)


def go_on_unread() -> None:
    """Have the command go on where nobody reads what it prints: it was asked for files, and they are to be written."""
    for each in pipes():
        each.goes_on = True


def open_streams() -> None:
    """Open what the caller has closed, since Python would print errors among the results; let every name be printed."""
    sys.stdout, sys.stderr = map(_watched, (sys.stdout, sys.stderr))
    sys.stdin, sys.stdout, sys.stderr = (
        open(os.devnull, mode) if stream is None else stream  # noqa: SIM115
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _watched(stream: Any) -> Any:
    """Return a stream as one that knows when its reader goes away; as it is where nobody can."""
    raw = _raw(stream)
    if not isinstance(stream, TextIOWrapper) or type(raw) is not FileIO:
        return stream
    mode = os.fstat(raw.fileno()).st_mode
    if not (S_ISFIFO(mode) or S_ISSOCK(mode) or S_ISCHR(mode)):
        return stream
    how: dict[str, Any] = {each: getattr(stream, each) for each in ("encoding", "errors", "line_buffering")}
    pipe: Any = _Pipe(raw.fileno(), "w", closefd=False)
    below = pipe if stream.buffer is raw else BufferedWriter(pipe)
    return TextIOWrapper(below, write_through=stream.write_through, **how)
