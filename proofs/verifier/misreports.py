"""Certificates that a policy rewards a user for reporting other speedups than its own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .decisions import GRAIN, SENSES, Decision, Proved, decided
from .market import ZERO, Market, read_market, row_shown
from .reading import Rejected, fields, number, numbers, position, shown, text


def misreport(data: Any) -> Proved:
    """A user gains by a misreport; ``truth`` and ``lie`` prove what is decided without it and with it.

    Where they range over all optima, the user gains even by the worst after the misreport over the best
    before it.
    """
    told = fields(data, "misreport", "market policy user report gain truth lie")
    market, policy = read_market(told["market"]), text(told["policy"], "policy")
    i = position(told["user"], market.users, "user")
    report = numbers(told["report"], "report", len(market.types))
    reported = market.with_report(i, report)
    before, after = decided(told["truth"], "truth"), decided(told["lie"], "lie")
    if [(each.market, each.policy) for each in (before, after)] != [(market, policy), (reported, policy)]:
        raise Rejected("the decisions are not on the truth and on the misreport, or another policy's")
    gain, how = _gain(market, i, before, after)
    if reported == market or gain != number(told["gain"], "gain") or gain <= _unsure(market, i, policy):
        raise Rejected("the misreport does not gain this, or it is the truth")
    rewards = f"{before.named} rewards {market.users[i]!r} for reporting {row_shown(report)}"
    condition = ""
    if before.condition:
        condition = f"if {before.condition} on the truth, and {after.condition} on the misreport: "
    return Proved(f"{condition}{rewards}: {shown(gain)} more, {how}", market)


def _gain(market: Market, i: int, before: Decision, after: Decision) -> tuple[Fraction, str]:
    """Return what user i gains by its true speedups, and over which choices among optima that is so."""
    if before.range and after.range:
        own = market.throughput_of(i)
        found = [(each.sense, each.weights) for each in (before.range, after.range)]
        if found != [(sense, own) for sense in SENSES]:
            raise Rejected("the best at any optimum before and the worst after are needed")
        return after.range.value - before.range.value, "whatever optima are chosen"
    if before.range or after.range:
        raise Rejected("one decision ranges over all optima, and the other does not")
    gain = market.worth(i, after.shares[i]) - market.worth(i, before.shares[i])
    if before.ties or after.ties:
        return gain, "by the two decisions given; where optima tie, the policy may choose others"
    return gain, "and the policy leaves no choice"


def _unsure(market: Market, i: int, policy: str) -> Fraction:
    """Return by how much a gain may be off because a policy's decisions are rounded."""
    return GRAIN * market.worth(i, market.capacity) if policy == "partial-allocation" else ZERO


RULES: dict[str, Callable[[Any], Proved]] = {"misreport": misreport}
