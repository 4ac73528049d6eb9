"""Certificates: a statement about a market or a bare program, and the numbers that prove it.

The verifier rebuilds from the market itself what a policy may do and what it wants, and decides in
fractions whether the numbers prove the statement. It returns what it has checked: that is what a reader may
believe, and only that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import allocations, bounds, misreports
from .decisions import DECISIONS, Proved, opened
from .reading import Rejected, Unreadable, brief

#: What decides a certificate that is no decision, by the word in it.
RULES: dict[str, Callable[[Any], Proved]] = allocations.RULES | misreports.RULES | bounds.RULES
KINDS = (*DECISIONS, *RULES)


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a certificate."""
    return type(first) is dict and "certificate" in first


def verify(data: Any) -> str:
    """Return the statement that a certificate proves. Errors: `Rejected` where it proves none."""
    try:
        kind, body = opened(data, "certificate")
        if kind in DECISIONS:
            return str(DECISIONS[kind](body).proved)
        if kind in RULES:
            return str(RULES[kind](body))
    except (Unreadable, RecursionError) as error:
        raise Rejected(f"it is not built like a certificate: {error}") from error
    raise Rejected(f"it is not built like a certificate: {brief(kind)} is none of {', '.join(KINDS)}")


def decide(data: Any) -> tuple[list[str], str]:
    """Return why a certificate is rejected, if it is, and the statement that it proves."""
    try:
        return [], verify(data)
    except Rejected as why:
        return [str(why)], ""
