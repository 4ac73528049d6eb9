"""A trial: one thing done to fairopt, and what an independent judge says of how it ended."""

from __future__ import annotations

import enum
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import FrameType


class Ending(enum.Enum):
    """How a trial ended. The last six are faults: of those there may be none."""

    RIGHT = "right"  # an answer, and the judge agrees
    REFUSED = "refused"  # an error of fairopt's own that says what is wrong
    UNDECIDED = "undecided"  # fairopt says that it does not know
    WRONG = "wrong"  # an answer, and the judge does not agree
    FALSE = "false statement accepted"
    TRACEBACK = "traceback"  # an error that nobody raised on purpose
    HANG = "hang"  # no end, after so long that a busy machine does not explain it
    SLOW = "slow"  # over a limit of time; others may have held the machine
    LOST = "lost"  # something finished was lost

    @property
    def fault(self) -> bool:
        """Whether it must never happen."""
        return self in FAULTS


FAULTS = frozenset({Ending.WRONG, Ending.FALSE, Ending.TRACEBACK, Ending.HANG, Ending.SLOW, Ending.LOST})


class Fault(Exception):
    """What the judge says of a trial that ended in a fault."""

    def __init__(self, ending: Ending, says: str) -> None:
        self.ending, self.says = ending, says
        super().__init__(f"{ending.value}: {says}")


class TooLong(BaseException):
    """A trial is over its limit; no handler of `Exception` may keep it."""


@dataclass(frozen=True)
class Kind:
    """A kind of trials: its letter in the count, its name, and what one trial does with a source of chance.

    ``attempt`` returns how a trial without a fault ended, and raises `Fault`. ``limit``: the most seconds of a trial.
    ``prepare`` is called before the first one. ``cost``: about how many milliseconds one takes, so that chunks take
    about as long as each other. ``most``: so many are enough, where one takes long; other kinds of its letter make up.
    """

    letter: str
    name: str
    attempt: Callable[[Random], Ending]
    limit: float = 10.0
    cost: float = 5.0
    prepare: Callable[[], object] = lambda: None
    most: int = 10**9

    def trial(self, seed: int) -> tuple[Ending, str]:
        """Return how the trial with this seed ended, and what is to be said of a fault.

        What lasts too long is tried again: others may have held the machine. So is a hang, to be sure of it.
        """
        ended = self._ended(seed)
        return self._ended(seed) if ended[0] in (Ending.HANG, Ending.SLOW) else ended

    def _ended(self, seed: int) -> tuple[Ending, str]:
        try:
            with at_most(self.limit):
                return self.attempt(Random(f"{self.name} {seed}")), ""
        except Fault as fault:
            return fault.ending, fault.says
        except TooLong:
            return Ending.SLOW, f"more than {self.limit} s"
        except Exception:  # noqa: BLE001  # this is what is sought
            return Ending.TRACEBACK, traceback.format_exc(limit=-6)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in what runs longer; only in a process's main thread. Within another limit, that one goes on."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong

    begun = time.monotonic()
    outer, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - begun), 1e-3))
