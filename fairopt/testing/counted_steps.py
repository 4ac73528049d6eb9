"""How much work something is, in steps: a test asserts what is the same on every machine, not seconds of the wall."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CountedSteps"]


@dataclass
class CountedSteps:
    """The calls of functions, Python's and C's, that this thread makes in a block; more than ``most`` are an error.

    Work within one call of C, such as a solver's, is one step. `look` can stand in for a clock: it returns how often it
    was asked, and ``apart`` is the most steps that lay between two looks, or a look and an end of the block.

    >>> with CountedSteps() as steps:
    ...     _ = [abs(number) for number in range(100)]
    >>> steps.count > 100, steps.apart == steps.count
    (True, True)
    >>> with CountedSteps(most=50):
    ...     _ = [abs(number) for number in range(100)]
    Traceback (most recent call last):
        ...
    AssertionError: this takes more than 50 steps
    """

    most: float = float("inf")
    count: int = 0
    looks: int = 0
    apart: int = 0
    _looked: int = 0
    _before: Any = field(default=None, repr=False)

    def look(self) -> float:
        """Return how often was looked, this time included."""
        self.looks, self.apart, self._looked = self.looks + 1, max(self.apart, self.count - self._looked), self.count
        return float(self.looks)

    def __enter__(self) -> CountedSteps:
        self._before = sys.getprofile()
        sys.setprofile(self._step)
        return self

    def _step(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count > self.most:
                self._over()

    def _over(self) -> None:
        raise AssertionError(f"this takes more than {self.most} steps")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.setprofile(self._before)
        self.apart = max(self.apart, self.count - self._looked)
        if self.count > self.most and error is None:  # somebody caught it
            self._over()
