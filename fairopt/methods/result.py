"""What every method returns: a `Solution` with the numbers between which the optimum is proved to lie.

Such bounds hold in floats because each step is moved to the safe side by more than it can be off. A float operation is
off by at most `ROUNDING` of its result, a sum by `math.fsum` is rounded once, one by `summed` as often as that says: a
value that took ``count`` operations on positive numbers is safe when it is moved by as many roundings, and a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.errors import OutOfTime
from fairopt.program import INFINITY, ROUNDING, Array, Number

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


def proven(by: str, lower: Number | None, upper: Number | None, *, ended: bool = True, **told: Any) -> Solution:
    """Return a method's answer with bounds proved ``by`` something, in words; ``told`` are further fields.

    Where it has not ``ended``, time was over: it is the best by then.
    """
    status, until = (Status.OPTIMAL, "") if ended else (Status.LIMIT, " until time was over")
    word, known = f"proved by {by}{until}", {"objective": lower, "bound": upper} | told
    return Solution(status, word, "auto", lower=lower, upper=upper, **known)


def gap_of(solution: Solution) -> float:
    """Return the proven relative gap of a solution; infinite where a bound is missing."""
    return INFINITY if solution.gap is None else solution.gap


def ends_of(solution: Solution) -> tuple[float, float]:
    """Return the proven bounds as floats, infinity where there is no upper one."""
    assert solution.lower is not None
    return float(solution.lower), INFINITY if solution.upper is None else float(solution.upper)


def duals_of(solution: Solution, *names: str) -> tuple[Array, ...]:
    """Return the multipliers of blocks of rows, each an array in the shape of its block."""
    return tuple(np.asarray(solution.duals[name]) for name in names)


def so_far(method: Callable[[], Solution]) -> Solution:
    """Return what a ``method`` returns, or had when time was over. Errors: `OutOfTime` where it had nothing."""
    try:
        return method()
    except OutOfTime as over:
        if not isinstance(over.solution, Solution):
            raise
        return over.solution


def summed(values: Array) -> tuple[Array, int]:
    """Return the sums of ``values`` over the first axis, and by how many roundings positive ones are off at most.

    Half is added to the other half, again and again. ``values`` are lost.

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

    def told(self, effort: Mapping[str, float]) -> dict[str, Any]:
        """Return the seconds of "solve", and the effort with those of the other stages, as a `Solution` has them."""
        others = {"prepare": self.stages.get("build", 0.0), "certify": self.stages.get("certify", 0.0)}
        return {"seconds": self.stages.get("solve", 0.0), "effort": {**effort, **others}}

    def stamped(self, solution: Solution) -> Solution:
        """Return the solution with what is `told` of the stages."""
        return replace(solution, **self.told(solution.effort))
