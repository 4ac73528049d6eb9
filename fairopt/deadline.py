"""A time limit on everything that is decided within a block: backends get no more time, and what comes later stops.

What is asked of a policy or a property is answered by many solvers, one inside another. The end is theirs all, so it is
kept beside the call, as `decimal.localcontext` keeps a precision, and not handed through every one of them.

>>> from fairopt.deadline import time_limit
>>> with time_limit(60):
...     left() <= 60
True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

from fairopt.errors import BadInput, OutOfTime

__all__ = ["left", "remaining", "stoppable", "time_limit"]

INFINITY = float("inf")
#: When it ends, by `monotonic`, and the seconds that were allowed.
_end: ContextVar[tuple[float, float]] = ContextVar("end", default=(INFINITY, INFINITY))
_stoppable: ContextVar[bool] = ContextVar("stoppable", default=False)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop what runs in the block after so many seconds (None: never) with `OutOfTime`; an earlier end stays.

    >>> with time_limit(0):
    ...     left()
    Traceback (most recent call last):
        ...
    fairopt.errors.OutOfTime: the time limit of 0 s is over
    """
    allowed = INFINITY if seconds is None else seconds
    if not (isinstance(allowed, int | float) and allowed >= 0):
        raise BadInput(f"got {allowed!r}", place="time limit", remedy="Give seconds, or None for no limit")
    before = _end.set(min(_end.get(), (monotonic() + allowed, allowed)))
    try:
        yield
    finally:
        _end.reset(before)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal, such as Ctrl-C, stop the block at once, also within a solver, which hears of none until it is done.

    What may last then runs in another process, as it does under a time limit. The command line works so.

    >>> with stoppable():
    ...     is_stoppable()
    True
    """
    before = _stoppable.set(True)
    try:
        yield
    finally:
        _stoppable.reset(before)


def is_stoppable() -> bool:
    """Return whether this runs in a block of `stoppable`."""
    return _stoppable.get()


def remaining() -> float:
    """Return the seconds that are left, negative where the limit is over, infinite where there is none.

    >>> remaining()
    inf
    """
    return _end.get()[0] - monotonic()


def left(asked: float | None = None, *, found: Any = None) -> float | None:
    """Return the seconds that are left, at most those ``asked`` for; None where there is no limit.

    Errors: `OutOfTime` where none are left, with the solution that was ``found`` by then.

    >>> left(2.5), left() is None
    (2.5, True)
    """
    seconds = remaining()
    if seconds <= 0:
        over = OutOfTime(f"the time limit of {_end.get()[1]:g} s is over")
        over.solution = found
        raise over
    within = min(seconds, INFINITY if asked is None else asked)
    return None if within == INFINITY else within


@contextmanager
def only_a_part() -> Iterator[None]:
    """Let `OutOfTime` of the block carry no solution: it would be one of a part of the question.

    >>> with time_limit(0), only_a_part():
    ...     left(found="a part")
    Traceback (most recent call last):
        ...
    fairopt.errors.OutOfTime: the time limit of 0 s is over
    """
    try:
        yield
    except OutOfTime as over:
        over.solution = None
        raise
