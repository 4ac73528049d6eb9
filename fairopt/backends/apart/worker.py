"""The other process: it computes what it is asked, one thing after another, until nobody asks any more.

A request is ("solve", module, class, attributes, program, options) for a backend, ("new", number) for a HiGHS, or
("method", number, name, arguments) for a call of one, with the seconds it may take and the numbers of those that are no
longer needed. An answer is (True, value), (False, error), or (None, value) where more is to come. The system ends the
process where a request takes longer, also when who asked is gone; on Linux at once where that is gone.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from ctypes import CDLL
from typing import Any

from fairopt.backends.apart.wire import ours, pack, unpack
from fairopt.errors import FairoptError, NotSolved

#: Before a message stand the number of its parts and the length of each.
COUNT = struct.Struct("<Q")
#: Of Linux's prctl: which signal to get when who began this process ends.
_PR_SET_PDEATHSIG = 1
#: Where what is proven so far goes; only the other process has it.
_tell: list[Callable[[Any], None]] = []


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
            answers.write(framed(*pack(value)))
            answers.flush()

        _tell.append(lambda value: send((None, value)))
        while head := requests.read(COUNT.size):
            sizes = [COUNT.unpack(requests.read(COUNT.size))[0] for _ in range(COUNT.unpack(head)[0])]
            text, *buffers = [requests.read(size) for size in sizes]
            try:
                send((True, _done(made, text, buffers)))
            except FairoptError as error:
                send((False, error))
            except BaseException as error:  # noqa: BLE001  # whatever a library breaks off with is told to who asked
                send((False, NotSolved(f"the solver broke off: {type(error).__name__}: {error}")))
            signal.setitimer(signal.ITIMER_REAL, 0)


def framed(text: bytes, buffers: Sequence[bytes]) -> bytes:
    """Return a message as it goes through a pipe."""
    parts = [text, *buffers]
    return b"".join([COUNT.pack(len(parts)), *(COUNT.pack(len(part)) for part in parts), *parts])


def _done(made: dict[int, Any], text: bytes, buffers: Sequence[bytes]) -> Any:
    seconds, forgotten, (what, *parts) = unpack(text, buffers)
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
