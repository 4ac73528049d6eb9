"""Certificates: a statement about a market or a bare program, and the numbers that prove it.

The verifier rebuilds from the market itself what a policy may do and what it wants, and decides in
fractions whether the numbers prove the statement. It returns what it has checked: that is what a reader may
believe, and only that. Here are the statements about programs, and the table of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from . import allocations
from .decisions import DECISIONS, Proved, embedded, opened, read_allocation, require_bound
from .market import ZERO, read_market
from .programs import (
    PROGRAMS,
    Point,
    Program,
    point_of,
    policy_shown,
    read_duals,
    read_point,
    read_program,
    read_variables,
    sharing_with,
)
from .reading import Entry, Rejected, Unreadable, brief, require, shown


def bound(data: Entry) -> Proved:
    """A feasible point of a program, and a bound on all of them; if they meet, the point is optimal."""
    if "shares" in data.value:
        return embedded(data)
    if "program" in data.value:
        told = data.fields("program point value bound gap duals")
        program = read_program(told["program"])
        return Proved(_bound(program, read_point(told["point"], program), told, "the program"), program)
    told = data.fields("market allocation policy value bound gap duals", "variables")
    market, shares = read_allocation(told)
    policy = told["policy"].choice(PROGRAMS)
    x = point_of(shares, read_variables(told["variables"]))
    return Proved(_bound(PROGRAMS[policy](market), x, told, policy_shown(policy, market)), market, shares)


def _bound(program: Program, x: Point, told: Entry, name: str) -> str:
    value, limit = program.sign * program.value(x), program.sign * program.bound(read_duals(told["duals"]))
    require_bound(value, limit, told)
    said = f"a feasible point of {name} has objective {shown(value)}, none is beyond {shown(limit)}"
    return f"{said}: optimal" if limit == value else said


def infeasibility(data: Entry) -> Proved:
    """No point satisfies a bare program, or no feasible allocation gives these users these throughputs."""
    if "program" in data.value:
        told = data.fields("program duals")
        program = read_program(told["program"])
        _require_contradiction(program, told["duals"])
        return Proved("no point satisfies the program", program)
    told = data.fields("market at_least duals")
    market, least = read_market(told["market"]), dict[int, Fraction]()
    for each in told["at_least"].items():
        name, at_least = each.items(2)
        i = name.position(market.users)
        require(i not in least, each.place, f"{name.value!r} stands twice")
        least[i] = at_least.number()
    _require_contradiction(sharing_with(market, "at_least", least), told["duals"])
    said = " and ".join(f"{market.users[i]!r} {shown(at_least)}" for i, at_least in least.items())
    return Proved(f"no feasible allocation gives {said}", market)


def _require_contradiction(program: Program, duals: Entry) -> None:
    """Refuse multipliers that do not prove 0, made the objective of every point, to be below 0."""
    if replace(program, cost={}, offset=ZERO).bound(read_duals(duals)) >= 0:
        raise Rejected("the multipliers contradict nothing")


#: What decides a certificate, by the word in it.
RULES: dict[str, Callable[[Entry], Proved]] = {
    **DECISIONS,
    **allocations.RULES,
    "bound": bound,
    "infeasibility": infeasibility,
}


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a certificate."""
    return type(first) is dict and "certificate" in first


def verify(data: Any) -> str:
    """Return the statement that a certificate proves. Errors: `Rejected` where it proves none."""
    try:
        kind, body = opened(Entry(data))
        if kind in RULES:
            return str(RULES[kind](body))
    except (Unreadable, RecursionError) as error:
        raise Rejected(f"it is not built like a certificate: {error}") from error
    raise Rejected(f"it is not built like a certificate: {brief(kind)} is none of {', '.join(RULES)}")


def decide(data: Any) -> tuple[list[str], str]:
    """Return why a certificate is rejected, if it is, and the statement that it proves."""
    try:
        return [], verify(data)
    except Rejected as why:
        return [str(why)], ""
