"""Steps that nothing can interrupt, in another process that is ended when a time limit is over, or by a signal.

HiGHS looks at the clock between its own steps only, and flint not at all; neither hears Ctrl-C. Under a time limit, and
where a signal may stop what runs (`fairopt.deadline.stoppable`), they run in a process that is kept for the next one,
if a program is large enough for that to matter: one for each thread that asks. Where it is ended or dies, what asked
gets an error of fairopt, and the next step has a new process. Elsewhere there is none. What goes to and fro is numbers
and names (`fairopt.backends.wire`), never code.

Such a process needs POSIX (Linux, macOS). On Windows everything runs in the one process, and a solver may overrun.

A request is ("solve", module, class, attributes, program, options) for a backend, ("new", number) for a HiGHS, or
("method", number, name, arguments) for a call of one, with the seconds it may take and the numbers of those that are no
longer needed. An answer is (True, value), (False, error), or (None, value) where more is to come. The system ends the
process where a request takes longer, also when who asked is gone; on Linux at once where that is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL
from functools import partial
from itertools import count
from time import monotonic
from typing import Any

from fairopt.backends.wire import framed, ours, taken_from
from fairopt.deadline import INFINITY, is_stoppable, left, remaining
from fairopt.errors import FairoptError, NotSolved

#: Seconds after the limit in which an answer is still waited for: solvers then say what they have.
GRACE = 0.3
#: Programs with fewer non-zeros are solved here: between two looks at the clock HiGHS then takes milliseconds.
SMALL = 10_000
#: Programs with fewer are solved here where only a signal may end them: a process costs half a second.
SHORT = 100_000
#: The system ends the process itself so many seconds later, in case that who asked is gone.
LATER = 1.0
#: Of Linux's prctl: which signal to get when who began this process ends.
_PR_SET_PDEATHSIG = 1
#: Where what is proven so far goes; only the other process has it.
_tell: list[Callable[[Any], None]] = []
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
        code = f"import sys; sys.path[:] = {path!r}; from fairopt.backends.apart import main; main()"
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
            message = framed((alarm, forgotten, request))
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
        return taken_from(lambda size: self._bytes(size, until))

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


# -- the other process, from inside ------------------------------------------------------------------------------------
def heard() -> bool:
    """Whether this is the other process, where somebody hears what is told."""
    return bool(_tell)


def tell(value: object) -> None:
    """Say to who asked what is proven so far, for where this process is ended before it is done."""
    _tell[0](value)


def main(reading: int = 0, writing: int = 1) -> None:
    """Answer requests from one pipe on another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; who asked ends this one
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if sys.platform == "linux":  # without a limit there is no alarm, and who asked may be gone
        CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    out = os.dup(writing)
    os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # libraries print there
    made: dict[int, Any] = {}
    with os.fdopen(reading, "rb") as requests, os.fdopen(out, "wb") as answers:

        def send(value: object) -> None:
            answers.write(framed(value))
            answers.flush()

        _tell.append(lambda value: send((None, value)))
        while requests.peek():
            try:
                send((True, _done(made, *taken_from(requests.read))))
            except FairoptError as error:
                send((False, error))
            except BaseException as error:  # noqa: BLE001  # whatever a library breaks off with is told to who asked
                send((False, NotSolved(f"the solver broke off: {type(error).__name__}: {error}")))
            signal.setitimer(signal.ITIMER_REAL, 0)


def _done(made: dict[int, Any], seconds: float, forgotten: list[int], request: tuple[Any, ...]) -> Any:
    what, *parts = request
    signal.setitimer(signal.ITIMER_REAL, seconds)
    for number in forgotten:
        made.pop(number, None)
    if what == "new":
        from fairopt.backends.silent_highs import SilentHighs

        made[parts[0]] = SilentHighs()
        return None
    if what == "method":
        number, name, given = parts
        return getattr(made[number], name)(*given)
    module, name, attributes, program, options = parts
    backend = object.__new__(ours(module, name))
    vars(backend).update(attributes)
    return backend._solve(program, options)
