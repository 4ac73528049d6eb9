"""Where, in a range of speedups, the answer of a property changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from typing import Any

from fairopt.problem import Market
from fairopt.problem.market import NEAR
from fairopt.problem.ranges import error_of
from fairopt.program import Number


@dataclass(frozen=True)
class Boundary:
    """How far around the speedups that are stated a property holds for all, and what changes its answer there.

    ``part``: of the ranges; None where it fails at the speedups that are stated. ``error``: that part as a relative
    error, where all speedups have the same. ``ends``: a market at which it holds, for all its speedups, and one at
    which it fails, for the certificates on both sides. ``words`` say all of it, ``shown`` are its parts by name: a user
    and its speedups at which the answer changes, trades that make all better off beyond, or a misreport that pays.

    >>> from fractions import Fraction
    >>> from fairopt.problem.ranges import with_error
    >>> market = with_error(Market.of([[1, 2]], capacity=[1, 1]), "10%")
    >>> print(Boundary.of(market, Fraction(1, 2), {}, "it changes where u1 runs at 1 on T1 and 2 on T2"))
    it holds up to an error of 5%; it changes where u1 runs at 1 on T1 and 2 on T2
    """

    words: str
    part: Number | None = None
    error: Number | None = None
    ends: Mapping[str, Market] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, market: Market, part: Number | None, ends: Mapping[str, Market], what: str = "", **shown: Any
    ) -> Boundary:
        """Return the boundary, given how far around the stated speedups of ``market`` it holds and ``what`` changes."""
        whole = error_of(market)
        error = None if whole is None or part is None else part * whole
        return cls("; ".join(filter(None, (_reach(part, error), what))), part, error, ends, shown)

    def summary(self) -> Mapping[str, Any]:
        """Return what is shown: all but the words and the markets."""
        return {"part": self.part, "error": self.error, **self.shown}

    def __str__(self) -> str:
        return self.words


def _reach(part: Number | None, error: Number | None) -> str:
    """Return in words up to where it holds.

    >>> _reach(2 / 3, None)
    'it holds within 66.66% of the ranges'
    """
    if part is None:
        return "it fails at the speedups that are stated, and holds at others"
    if (part if error is None else error) <= NEAR:
        return "any error may break it"
    up_to = f"within {percent(part)} of the ranges" if error is None else f"up to an error of {percent(error)}"
    return f"it holds {up_to}"


def percent(part: Number) -> str:
    """Return a part in per cent, of four digits, rounded down: what holds up to it holds up to what is printed.

    >>> percent(2 / 3)
    '66.66%'
    """
    shown = float(part * 100) if part > NEAR else 0.0
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal_from_float(shown).normalize():f}%"


def range_of(market: Market) -> str:
    """Return how far the speedups of a market may be from those that it states; "" where they are known."""
    if market.known.all():
        return ""
    error = error_of(market)
    return "within the bounds of the market" if error is None else f"within an error of {percent(error)}"
