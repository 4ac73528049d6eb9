"""Where, in a range of speedups, the answer of a property changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import ROUND_FLOOR, Context
from typing import Any

from fairopt.problem import Market
from fairopt.problem.market import NEAR
from fairopt.problem.ranges import error_of
from fairopt.program import Number, number_text


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far around the speedups that are stated a property holds for all.

    ``part``: of the ranges; None where it fails at the speedups that are stated. ``error``: that part as a relative
    error, where all speedups have the same. ``ends``: a market at which it holds, for all its speedups, and one at
    which it fails, for the certificates on both sides.

    >>> from fractions import Fraction
    >>> print(Reach(part=Fraction(1, 2), error=Fraction(1, 30)))
    it holds up to an error of 3.333%
    """

    part: Number | None = None
    error: Number | None = None
    ends: Mapping[str, Market] = field(default_factory=dict)

    def summary(self) -> Mapping[str, Any]:
        """Return what is shown: all but the markets."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "ends"}

    def __str__(self) -> str:
        if self.part is None:
            return "it fails at the speedups that are stated, and holds at others"
        if (self.part if self.error is None else self.error) <= NEAR:
            return "any error may break it"
        if self.error is not None:
            return f"it holds up to an error of {percent(self.error)}"
        return f"it holds within {percent(self.part)} of the ranges"


@dataclass(frozen=True)
class Boundary(Reach):
    """Speedups of a user at which the answer changes: there it holds, and further on it fails."""

    user: str
    speedups: tuple[tuple[str, Number], ...]

    def __str__(self) -> str:
        at = " and ".join(f"{number_text(speed)} on {name}" for name, speed in self.speedups)
        said = super().__str__()
        return f"{said}{'; ' if said else ''}it changes where {self.user} runs at {at}"


@dataclass(frozen=True)
class TradeBoundary(Reach):
    """A cycle of trades that, beyond the boundary, makes all its users better off at some speedups.

    ``trades``: who gives GPUs of which type to whom.
    """

    trades: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        swaps = ", ".join(f"{giver} gives {name} to {taker}" for giver, name, taker in self.trades)
        said = super().__str__()
        return f"{said}{'; ' if said else ''}beyond, trades may make all better off: {swaps}"


def reach(market: Market, part: Number | None, ends: Mapping[str, Market]) -> dict[str, Any]:
    """Return the fields of a `Reach`, given how far around the stated speedups of ``market`` it holds."""
    error = error_of(market)
    return {"part": part, "error": None if error is None or part is None else part * error, "ends": ends}


def percent(part: Number) -> str:
    """Return a part in per cent, of four digits, rounded down: what holds up to it holds up to what is printed.

    >>> percent(2 / 3)
    '66.66%'
    """
    shown = float(part * 100) if part > NEAR else 0.0
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal_from_float(shown).normalize():f}%"
