"""Ranges of speedups: what is measured is known up to an error."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fairopt.errors import BadInput, require
from fairopt.problem.market import NEAR, Market
from fairopt.problem.numbers import exact
from fairopt.problem.throughput import usable
from fairopt.program import INFINITY, Array, Number, number_text


def relative_error(given: object, place: str = "error") -> Fraction:
    """Return a relative error, such as "5%", 0.05 or "1/20". Errors: `BadInput` unless it is from 0 to below 1.

    >>> relative_error("2.5%")
    Fraction(1, 40)
    """
    remedy = "Give a relative error from 0 to below 1, such as 5% or 0.05"
    error = part_of(given, place, remedy)
    require(0 <= error < 1, given if isinstance(given, str) else number_text(error), place, remedy)
    return error


def part_of(given: object, place: str, remedy: str) -> Fraction:
    """Return a part of something, such as "5%", 0.05 or "1/20". Errors: `BadInput` with ``remedy`` for other texts."""
    text = given.strip() if isinstance(given, str) else given
    try:
        return exact(text[:-1], place) / 100 if isinstance(text, str) and text.endswith("%") else exact(text, place)
    except BadInput as wrong:
        raise BadInput(wrong.problem, place=place, remedy=remedy) from wrong


def with_error(market: Market, error: object) -> Market:
    """Return the market with every speedup known up to a relative ``error``; policies decide by the same speedups.

    Speedups that the market knows within bounds keep these, and 0 stays 0: where a user cannot run is no measurement.
    Errors: those of `relative_error`.

    >>> print(*with_error(Market.of([[1, 2]], capacity=[1, 1]), "5%").ends[1][0])
    21/20 21/10
    """
    part = relative_error(error)
    off = market.speedup * (part if market.exact else float(part))
    least, most = market.ends
    known = least == most
    return replace(
        market,
        least=np.where(known, market.speedup - off, least),
        most=np.where(known, market.speedup + off, most),
    )


def unmeasured(market: Market) -> list[str]:
    """Return the users of whom some speedup may be any positive number; what a market states there is a stand-in.

    >>> unmeasured(Market.of([[1, 2], [1, 1]], [1, 1], least=[[1, 2], [0, 0]], most=[[1, 2], [None, None]]))
    ['u2']
    """
    least, most = market.ends
    return [market.users[i] for i in np.flatnonzero(((least == 0) & (most == INFINITY)).any(axis=1))]


def stand_ins(market: Market) -> str:
    """Return, in words, whose throughputs are not of measured speedups; "" where all are measured."""
    users = unmeasured(market)
    names = ", ".join(users[:5]) + (f" and {len(users) - 5} others" if len(users) > 5 else "")
    counts = f"Not all speedups of {names} are known. A GPU counts there as its type's rate says, or as 1"
    return f"{counts}, so that throughputs do not say how fast they run." if users else ""


def shrunk(market: Market, part: Number) -> Market:
    """Return the market whose ranges are a ``part`` of what they were, around the speedups that are stated.

    >>> print(*shrunk(with_error(Market.of([[1, 2]], capacity=[1, 1]), "5%"), Fraction(1, 5)).ends[1][0])
    101/100 101/50
    """
    least, most = (_between(market, ends, part) for ends in market.ends)
    return replace(market, least=least, most=most)


def _between(market: Market, ends: Array, part: Number) -> Array:
    finite = ends < INFINITY
    inside = market.speedup + part * (np.where(finite, ends, market.speedup) - market.speedup)
    return np.asarray(np.where(finite | (part == 0), inside, ends))


def in_use(market: Market, user: int, bundle: Array) -> Array | None:
    """Return which of a bundle's GPUs (k,) a user uses, whatever its speedups are; None where these decide.

    >>> market = Market.of([[1, 2]], [2, 2], demand=[3], least=[[0, 0]], most=[[None, None]])
    >>> in_use(market, 0, np.array([1, 2])).tolist(), in_use(market, 0, np.array([2, 2]))
    ([1, 2], None)
    """
    limit = market.limit[user]
    least, most = market.ends[0][user], market.ends[1][user]
    runs = np.where(most > 0, bundle, 0)
    if limit == INFINITY or runs.sum() <= limit:
        return runs
    order = [j for j in np.argsort(-market.speedup[user], kind="stable").tolist() if runs[j]]
    if all(least[faster] >= most[slower] for faster, slower in pairwise(order)):
        return usable(market.speedup[user], bundle, np.array(limit, dtype=bundle.dtype))
    return None


def error_of(market: Market) -> Number | None:
    """Return the relative error that all speedups of a market have, up to rounding; None where they differ.

    >>> print(error_of(with_error(Market.of([[1, 2]], capacity=[1, 1]), "5%")))
    1/20
    """
    least, most = market.ends
    runs = market.speedup > 0
    if not (np.isfinite(most.astype(float)).all() and runs.any()):
        return None
    stated = market.speedup[runs]
    errors = np.concatenate([(stated - least[runs]) / stated, (most[runs] - stated) / stated])
    error: Number = errors.min()
    return error if 0 < errors.max() <= error * (1 + Fraction(NEAR)) else None


def nothing_known(market: Market) -> Array:
    """Return of which users (n,) the market knows no speedup at all."""
    least, most = market.ends
    return np.asarray(((least == 0) & (most == INFINITY)).all(axis=1))


def unknown_speedups(market: Market) -> str:
    """Return, as the reason why something could not be decided, whose speedups are not known, or within bounds only."""
    nothing = nothing_known(market)
    of = np.flatnonzero(nothing if nothing.any() else ~market.known)
    names = ", ".join(market.users[user] for user in of[:5]) + (f" and {len(of) - 5} others" if len(of) > 5 else "")
    if nothing.any():
        return f"not asked: the speedups of {names} are not known"
    return f"the speedups of {names} are known only within bounds"
