"""The process that is kept, from outside: begun when first asked, asked within the time limit, and ended after it."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial
from itertools import count
from time import monotonic
from typing import Any

from fairopt.backends.apart.wire import pack, unpack
from fairopt.backends.apart.worker import COUNT, framed, heard
from fairopt.deadline import INFINITY, is_stoppable, left, remaining
from fairopt.errors import NotSolved

#: Seconds after the limit in which an answer is still waited for: solvers then say what they have.
GRACE = 0.3
#: Programs with fewer non-zeros are solved here: between two looks at the clock HiGHS then takes milliseconds.
SMALL = 10_000
#: Programs with fewer are solved here where only a signal may end them: a process costs half a second.
SHORT = 100_000
#: The system ends the process itself so many seconds later, in case that who asked is gone.
LATER = 1.0
_here = threading.local()
_numbers = count()


def wanted(nonzeros: int) -> bool:
    """Whether a program with so many non-zeros is solved in the other process: where it may last, and may be ended."""
    # without any time solvers stop at once, and say here what they have; of what is large, even that takes seconds
    least = SMALL if 0 < remaining() < INFINITY else SHORT
    may_end = remaining() < INFINITY or is_stoppable()
    return nonzeros >= least and may_end and hasattr(os, "posix_spawn") and not heard()


def solved(backend: Any, program: Any, options: Any, told: list[Any]) -> Any:
    """Return what a backend of fairopt answers in the other process; ``told`` gets what it says until then.

    Errors: those of the backend; `NotSolved` where the process died, `OutOfTime` where the limit is over.
    """
    kind = type(backend)
    return _process().ask("solve", kind.__module__, kind.__qualname__, vars(backend), program, options, told=told)


class Remote:
    """A HiGHS in the other process; its methods are called there. Errors: as `solved`."""

    def __init__(self) -> None:
        self._process, self._number = _process(), next(_numbers)
        self._process.ask("new", self._number)
        weakref.finalize(self, self._process.forgotten.append, self._number)

    @property
    def lost(self) -> bool:
        """Whether it is gone with its process."""
        return self._process.lost

    def __getattr__(self, method: str) -> Any:
        return partial(self._call, method)

    def _call(self, method: str, *given: Any) -> Any:
        return self._process.ask("method", self._number, method, list(given))


class _Process:
    """A process with a pipe to it and one from it. One thing is asked at a time."""

    def __init__(self) -> None:
        self.owner, self.ended, self.forgotten = os.getpid(), "", list[int]()
        self._one_at_a_time = threading.Lock()
        path = [each for each in sys.path if each]
        code = f"import sys; sys.path[:] = {path!r}; from fairopt.backends.apart.worker import main; main()"
        reading, self._writing = os.pipe()
        self._reading, writing = os.pipe()
        os.set_blocking(self._writing, False)
        pipes = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, writing, 1)]
        quiet = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        try:
            self._number = os.posix_spawn(
                sys.executable, [sys.executable, "-c", code], os.environ, file_actions=[*pipes, quiet], setsigmask=()
            )
        except OSError as error:
            self.ended = "was not begun"
            raise NotSolved(f"the process that was to solve this was not begun: {error.strerror}") from error
        finally:
            os.close(reading)
            os.close(writing)

    @property
    def lost(self) -> bool:
        """Whether it has ended, or belongs to the process that this one was forked from."""
        if not self.ended and self.owner == os.getpid() and not self._one_at_a_time.locked():
            poll = select.poll()
            poll.register(self._reading, 0)
            if poll.poll(0):  # it died while nobody asked it
                self.end("ended by itself")
        return bool(self.ended) or self.owner != os.getpid()

    def ask(self, *request: Any, told: list[Any] | None = None) -> Any:
        """Return what the process answers, and add to ``told`` what it says before; errors: as `solved`."""
        seconds = max(remaining(), 0.0) + GRACE
        until, alarm = (INFINITY, 0.0) if seconds == INFINITY else (monotonic() + seconds, seconds + LATER)
        with self._one_at_a_time:
            if self.ended or self.owner != os.getpid():
                left()
                raise NotSolved(f"the process that solved this {self.ended or 'is not ours'}; ask again")
            forgotten, self.forgotten[:] = list(self.forgotten), []
            message = framed(*pack((alarm, forgotten, request)))
            try:
                self._write(message, until)
                while (read := self._read(until))[0] is None:
                    (told if told is not None else []).append(read[1])
                fine, answer = read
            except BaseException:  # Ctrl-C too: what it would still answer is nobody's
                self.end("was ended")
                raise
        if fine:
            return answer
        raise answer

    def _write(self, data: bytes, until: float) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(self._writing, select.POLLOUT, until)
            try:
                rest = rest[os.write(self._writing, rest[: 1 << 20]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._died() from None

    def _read(self, until: float) -> Any:
        (parts,) = COUNT.unpack(self._bytes(COUNT.size, until))
        sizes = [COUNT.unpack(self._bytes(COUNT.size, until))[0] for _ in range(parts)]
        text, *buffers = [self._bytes(size, until) for size in sizes]
        return unpack(text, buffers)

    def _bytes(self, size: int, until: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(self._reading, select.POLLIN, until)
            more = os.read(self._reading, min(size - len(found), 1 << 20))
            if not more:
                raise self._died()
            found += more
        return bytes(found)

    def _wait(self, pipe: int, what: int, until: float) -> None:
        poll = select.poll()
        poll.register(pipe, what)
        seconds = until - monotonic()
        if seconds <= 0 or not poll.poll(None if until == INFINITY else seconds * 1000):
            self.end("was ended at its time limit")
            left()  # it is over
            raise NotSolved("the time limit is over")

    def _died(self) -> NotSolved:
        status = self.end("ended by itself")
        if status == -signal.SIGALRM:
            left()
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        hint = ", as the system does where memory runs out" if status == -signal.SIGKILL else ""
        return NotSolved(f"the solver's process {how}{hint}")

    def end(self, why: str) -> int:
        """End the process and return its exit status, negative for a signal; once."""
        if self.ended:
            return 0
        self.ended = why
        for pipe in (self._writing, self._reading):
            os.close(pipe)
        if self.owner != os.getpid():  # it belongs to the process that this one was forked from
            return 0
        with suppress(ProcessLookupError):
            os.kill(self._number, signal.SIGKILL)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self._number, 0)[1])
        except ChildProcessError:  # a program that does not want to hear of its children has them reaped
            return 0

    def __del__(self) -> None:
        self.end("was ended")


def _process() -> _Process:
    """Return the process of this thread; a new one where it has none of its own."""
    found: _Process | None = getattr(_here, "process", None)
    if found is None or found.lost:
        found = _here.process = _Process()
    return found
