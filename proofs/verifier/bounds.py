"""Certificates about programs: how good a point can be, and that there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from .decisions import Proved, embedded, read_allocation
from .market import ZERO, read_market
from .programs import (
    Program,
    Row,
    point_of,
    policy_shown,
    program_of,
    read_duals,
    read_point,
    read_program,
    sharing,
    throughput,
)
from .reading import Rejected, fields, items, number, numbers, position, require, shown


def bound(data: Any) -> Proved:
    """A feasible point of a program, and a bound on all of them; if they meet, the point is optimal."""
    if "shares" in data:
        return embedded(data).proved
    if "program" in data:
        told = fields(data, "bound", "program point value bound gap duals")
        program = read_program(told["program"])
        x = read_point(told["point"], program, "point")
        return Proved(_bound(program, x, told, "the program"), program)
    told = fields(data, "bound", "market allocation policy value bound gap duals", "variables")
    market, shares = read_allocation(told)
    program = program_of(market, told["policy"])
    x = point_of(shares, told["variables"])
    return Proved(_bound(program, x, told, policy_shown(told["policy"], market)), market, shares)


def _bound(program: Program, x: Any, told: dict[str, Any], name: str) -> str:
    value, limit = program.value(x), program.bound(read_duals(told["duals"], "duals"))
    found = [program.sign * value, program.sign * limit, limit - value]
    if numbers([told["value"], told["bound"], told["gap"]], "value, bound, gap") != found:
        raise Rejected("value, bound or gap is another")
    said = f"a feasible point of {name} has objective {shown(found[0])}, none is beyond {shown(found[1])}"
    return f"{said}: optimal" if limit == value else said


def infeasibility(data: Any) -> Proved:
    """No point satisfies a bare program, or no feasible allocation gives these users these throughputs."""
    if "program" in data:
        told = fields(data, "infeasibility", "program duals")
        program = read_program(told["program"])
        _require_contradiction(program, told["duals"])
        return Proved("no point satisfies the program", program)
    told = fields(data, "infeasibility", "market at_least duals")
    market, wanted = read_market(told["market"]), items(told["at_least"], "at_least")
    program, said = sharing(market), []
    for at, entry in enumerate(wanted):
        name, least = items(entry, f"at_least[{at}]", 2)
        i, least = position(name, market.users, f"at_least[{at}]"), number(least, f"at_least[{at}]")
        require(("at_least", i) not in program.rows, f"at_least[{at}]", f"{name!r} stands twice")
        program.rows["at_least", i] = Row(throughput(market, i), least, inf)
        said.append(f"{name!r} {shown(least)}")
    _require_contradiction(program, told["duals"])
    return Proved(f"no feasible allocation gives {' and '.join(said)}", market)


def _require_contradiction(program: Program, duals: Any) -> None:
    """Refuse multipliers that do not prove 0, made the objective of every point, to be below 0."""
    if replace(program, cost={}, offset=ZERO).bound(read_duals(duals, "duals")) >= 0:
        raise Rejected("the multipliers contradict nothing")


RULES: dict[str, Callable[[Any], Proved]] = {"bound": bound, "infeasibility": infeasibility}
