"""What every method returns: an answer, the numbers between which the optimum is proved to lie, and a warm start.

Such bounds hold in floats because each step is moved to the safe side by more than it can be off. A float operation is
off by at most `ROUNDING` of its result, a sum by `math.fsum` is rounded once, one by `summed` as often as that says: a
value that took ``count`` operations on positive numbers is safe when it is moved by as many roundings, and a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isinf
from time import perf_counter
from typing import TypeVar, cast

from fairopt.errors import OutOfTime
from fairopt.program import INFINITY, ROUNDING, Array

Floats = TypeVar("Floats", float, Array)
#: So few numbers are added one after another.
FEW = 8


def rounded_up(value: Floats, count: int) -> Floats:
    """Return a float, or an array of them, that is at least the exact value; off by ``count`` roundings at most."""
    up: Floats = value + abs(value) * (count * ROUNDING)
    return up


def rounded_down(value: Floats, count: int) -> Floats:
    """Return a float, or an array of them, that is at most the exact value; off by ``count`` roundings at most."""
    down: Floats = value - abs(value) * (count * ROUNDING)
    return down


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodResult:
    """The answer of a method, in the units of the problem. The optimum is between ``lower`` and ``upper``.

    Both bounds hold whatever was rounded. Where the method has not ``ended``, time was over: it is the best by then.
    ``effort`` counts what was done; ``seconds`` is the time spent on the stages "build", "solve" and "certify". Where a
    method can begin the next, similar problem from where this one ended, its result has a ``warm_start``, which is
    given back as ``start``.
    """

    lower: float
    upper: float
    ended: bool = True
    effort: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def until(self) -> str:
        """What is to be said of an answer that is not the optimum."""
        return "" if self.ended else " until time was over"

    @property
    def gap(self) -> float:
        """The distance of the bounds as a part of ``upper`` (of 1 where that is 0); infinite where one is missing."""
        if isinf(self.lower) or isinf(self.upper):
            return INFINITY
        return (self.upper - self.lower) / abs(self.upper) if self.upper else self.upper - self.lower


Result = TypeVar("Result", bound=MethodResult)


def so_far(method: Callable[[], Result]) -> Result:
    """Return what a ``method`` returns, or had when time was over. Errors: `OutOfTime` where it had nothing."""
    try:
        return method()
    except OutOfTime as over:
        if not isinstance(over.solution, MethodResult):
            raise
        return cast("Result", over.solution)


def summed(values: Array) -> tuple[Array, int]:
    """Return the sums of ``values`` over the first axis, and by how many roundings positive ones are off at most.

    Half is added to the other half, again and again. ``values`` are lost.

    >>> import numpy as np
    >>> total, roundings = summed(np.ones((1000, 2)))
    >>> total.tolist(), roundings
    ([1000.0, 1000.0], 14)
    """
    count, roundings = len(values), 0
    while count > FEW:
        half = (count + 1) // 2
        values[: count - half] += values[half:count]
        count, roundings = half, roundings + 1
    return values[:count].sum(axis=0), roundings + max(count - 1, 0)


class StageClock:
    """The seconds since the start, by stage, and what is left of a limit; None for no limit."""

    def __init__(self, limit: float | None = None) -> None:
        self._began = self._last = perf_counter()
        self._limit = limit
        self.stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Count the time since the last lap as that of ``stage``."""
        now = perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now

    @property
    def left(self) -> float | None:
        """What is left of the limit, None where there is none."""
        return None if self._limit is None else max(0.0, self._limit - (perf_counter() - self._began))

    @property
    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.left == 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class SharesResult(MethodResult):
    """Shares (n, k) in GPUs, and the duals that prove the upper bound: ``prices`` (k,) and ``demand_duals`` (n,).

    A demand dual is what one GPU more of a user's demand would be worth, 0 for users without a demand.
    """

    shares: Array
    prices: Array
    demand_duals: Array
