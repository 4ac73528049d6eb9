"""Bounds in floats that hold whatever was rounded: each step is moved to the safe side by more than it can be off.

A float operation is off by at most `ROUNDING` of its result, a sum by `math.fsum` is rounded once. So a value that
took ``count`` operations on positive numbers is safe when it is moved by ``count`` roundings, and a few more.
"""

from __future__ import annotations

from typing import TypeVar

from fairopt.program import ROUNDING, Array

Floats = TypeVar("Floats", float, Array)


def rounded_up(value: Floats, count: int) -> Floats:
    """Return a float, or an array of them, that is at least the exact value; off by ``count`` roundings at most."""
    up: Floats = value + abs(value) * (count * ROUNDING)
    return up


def rounded_down(value: Floats, count: int) -> Floats:
    """Return a float, or an array of them, that is at most the exact value; off by ``count`` roundings at most."""
    down: Floats = value - abs(value) * (count * ROUNDING)
    return down
