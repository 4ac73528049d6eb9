"""Numbers, shares and markets as the evidence of a row prints them, and printed digits against exact numbers."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array, Number


# -- printed digits ----------------------------------------------------------------------------------------------
def prints_as(value: Number, text: str) -> bool:
    """Whether ``value`` rounded to as many decimals as ``text`` has is what ``text`` says; halves go either way.

    >>> prints_as(Fraction(53, 45), "1.18"), prints_as(Fraction(7, 5), "1.41")
    (True, False)
    """
    _, _, decimals = text.partition(".")
    return abs(Fraction(value) - Fraction(text)) <= Fraction(1, 2 * 10 ** len(decimals))


def all_print_as(values: Iterable[Any], texts: str) -> bool:
    """Whether numbers, row by row, print as the numbers in ``texts``, which is written like "1 .09; 0 .47"."""
    wanted = texts.replace(";", " ").split()
    given = np.array(list(values), dtype=object).ravel().tolist()
    return len(given) == len(wanted) and all(map(prints_as, given, wanted))


def printed_table(texts: str) -> Array:
    """Return the numbers in ``texts``, "1 .09; 0 .47", as Fractions in rows."""
    return np.array([[Fraction(entry) for entry in row.split()] for row in texts.split(";")], dtype=object)


def misprints(values: Iterable[Fraction], texts: str) -> str:
    """Return which of the printed numbers are not those of ``values``, as "1.41 for 7/5 (1.4000)"."""
    wanted = texts.split()
    return listed(
        f"{text} for {both(value)}" for value, text in zip(values, wanted, strict=True) if not prints_as(value, text)
    )


# -- words -------------------------------------------------------------------------------------------------------
def both(value: Number) -> str:
    """Return a number as a fraction and, unless it is an integer, as a decimal: "53/45 (1.1778)"."""
    return str(value) if Fraction(value).denominator == 1 else f"{value} ({float(value):.4f})"


def percent(value: Any, digits: int = 2) -> str:
    """Return a ratio as percent."""
    return f"{100 * float(value):.{digits}f}%"


def rows(table: Any) -> str:
    """Return speedups or shares in words: "(1, 2, 3), (1, 4, 5)"."""
    return ", ".join(f"({', '.join(map(str, row))})" for row in table)


def speedups(market: Market) -> str:
    """Return a market in words: its speedups, and its GPUs where they are not one of each type."""
    text = rows(market.speedup)
    if all(market.capacity == 1):
        return f"{text}, one GPU of each type"
    return f"{text}, {', '.join(map(str, market.capacity))} GPUs of the types"


def lines(parts: Iterable[str]) -> str:
    """Return sentences, each in a line of its own: what a page may leave to a second reading."""
    return "\n".join(f"{part}." for part in parts)


def listed(parts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    all_ = list(parts)
    return " and ".join([", ".join(all_[:-1]), all_[-1]]) if len(all_) > 1 else "".join(all_)
