"""Linear programs, with integers or not: the points that they allow, and bounds on how good a point can be.

The programs of policies are written down here from the market. A policy's own code is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from math import inf
from typing import Any, NamedTuple

from .market import MOST_SHOWN, ONE, ZERO, Market, Table, exactly
from .reading import (
    Number,
    Rejected,
    Unreadable,
    brief,
    choice,
    digest,
    fields,
    integer,
    items,
    number,
    or_infinity,
    require,
    shown,
    summed,
    truth,
    within,
)

Key = tuple[Any, ...]  #: the name of a row or variable: a word, and positions counted from 0
Terms = dict[Key, Fraction]  #: a sum of variables, each times a number
Point = dict[Key, Fraction]  #: a value for each variable
#: Rows of more terms in all are not written down: they would not fit into memory.
MOST_TERMS = 2 * 10**7


class Row(NamedTuple):
    """The constraint low <= sum of terms <= high."""

    terms: Terms
    low: Number
    high: Number


@dataclass
class Program:
    """Maximise cost . x + offset where every row holds and every variable keeps its bounds (low, high)."""

    bounds: dict[Key, tuple[Number, Number]] = field(default_factory=dict)
    rows: dict[Key, Row] = field(default_factory=dict)
    cost: Terms = field(default_factory=dict)
    offset: Fraction = ZERO
    integers: set[Key] = field(default_factory=set)
    sign: int = 1  #: -1 where the program as written is minimised

    def value(self, x: Point) -> Fraction:
        """Return the objective at a point. Errors: `Rejected` where the point is not feasible."""
        if x.keys() != self.bounds.keys():
            raise Rejected("the point does not give every variable a value")
        for key, (low, high) in self.bounds.items():
            if not low <= x[key] <= high:
                raise Rejected(f"variable {key_shown(key)} is outside of its bounds")
            if key in self.integers and x[key].denominator != 1:
                raise Rejected(f"variable {key_shown(key)} is no integer")
        for key, row in self.rows.items():
            if not row.low <= total(row.terms, x) <= row.high:
                raise Rejected(f"the point breaks row {key_shown(key)}")
        return self.offset + total(self.cost, x)

    def bound(self, duals: Terms) -> Fraction:
        """Return a number that no feasible point's objective exceeds, for any multipliers y of the rows.

        With A for the rows, cost.x = (cost - yA).x + y(Ax). Each of the two is at most what it is with
        every variable, and every row, at the better of its two bounds. Errors: `Rejected` where that bound
        is infinite.
        """
        reduced, most = dict(self.cost), self.offset
        for key, rate in duals.items():
            if key not in self.rows:
                raise Rejected(f"there is no row {key_shown(key)}")
            row = self.rows[key]
            most += at_most(rate, row.low, row.high)
            for name, coefficient in row.terms.items():
                reduced[name] = reduced.get(name, ZERO) - rate * coefficient
        return most + summed(at_most(rate, *self.bounds[name]) for name, rate in reduced.items())

    def optimum(self, x: Point, duals: Terms) -> Fraction:
        """Return the objective at a point, which the duals must prove optimal: theirs is the same bound."""
        value = self.value(x)
        if self.bound(duals) != value:
            raise Rejected("the duals do not prove the point optimal")
        return value

    def keeping(self, objective: Fraction) -> Program:
        """Return the program of all points that are as good as ``objective``; nothing is maximised yet."""
        kept = Row(self.cost, objective - self.offset, inf)
        return Program(self.bounds, self.rows | {("optimum",): kept}, {}, ZERO, self.integers)

    def __str__(self) -> str:
        """Name a bare program: its digest and its size."""
        variables = f"{len(self.bounds)} variables" + (" with integers" if self.integers else "")
        return f"program {digest(list(self._canonical()))}: {variables}, {len(self.rows)} rows"

    def _canonical(self) -> Iterator[Any]:
        yield ["program", self.sign, exactly(self.offset)]
        for key, sides in self.bounds.items():
            yield [exactly(self.cost[key]), *map(_side, sides), key in self.integers]
        for row in self.rows.values():
            terms = [[key[1], exactly(rate)] for key, rate in row.terms.items()]
            yield [terms, _side(row.low), _side(row.high)]


def _side(value: Number) -> str | None:
    return None if abs(value) == inf else exactly(value)


def total(terms: Terms, x: Point) -> Fraction:
    """Return a sum of terms at a point."""
    return summed(rate * x[key] for key, rate in terms.items() if x[key])


def at_most(rate: Fraction, low: Number, high: Number) -> Fraction:
    """Return the largest ``rate * value`` over low <= value <= high."""
    side = high if rate > 0 else low
    if rate and abs(side) == inf:
        raise Rejected("a dual has the sign of a bound that there is not")
    return rate * Fraction(side) if rate else ZERO


def key_shown(key: Key) -> str:
    """Return the name of a row or variable for a message."""
    return " ".join(brief(part) for part in key)


def read_duals(value: Any, place: str) -> Terms:
    """Return multipliers by row from entries [word, position..., number]."""
    duals: Terms = {}
    for at, told in enumerate(items(value, place)):
        entry = items(told, f"{place}[{at}]")
        require(len(entry) >= 2 and type(entry[0]) is str, f"{place}[{at}]", "it is no [row, ..., number]")
        key = (entry[0], *(integer(index, f"{place}[{at}]") for index in entry[1:-1]))
        require(key not in duals, place, f"row {key_shown(key)} has two duals")
        duals[key] = number(entry[-1], f"{place}[{at}]")
    return duals


# -- bare programs -----------------------------------------------------------------------------------------
def read_program(data: Any, place: str = "program") -> Program:
    """Return a program as it was written: variables are ("x", position), rows ("row", position)."""
    told = fields(data, place, "sense offset variables rows")
    sign = 1 if choice(told["sense"], f"{place}, sense", ["maximize", "minimize"]) == "maximize" else -1
    program = Program(offset=sign * number(told["offset"], f"{place}, offset"), sign=sign)
    for j, entry in enumerate(items(told["variables"], f"{place}, variables")):
        at = f"{place}, variable {j}"
        variable = fields(entry, at, "cost lower upper integer")
        program.bounds["x", j] = _sides(variable, at)
        program.cost["x", j] = sign * number(variable["cost"], f"{at}, cost")
        if truth(variable["integer"], f"{at}, integer"):
            program.integers.add(("x", j))
    for r, entry in enumerate(items(told["rows"], f"{place}, rows")):
        at = f"{place}, row {r}"
        row = fields(entry, at, "terms lower upper")
        program.rows["row", r] = Row(_terms(row["terms"], program, f"{at}, terms"), *_sides(row, at))
    return program


def _sides(entry: dict[str, Any], place: str) -> tuple[Number, Number]:
    low = -inf if entry["lower"] is None else number(entry["lower"], f"{place}, lower")
    return low, or_infinity(entry["upper"], f"{place}, upper")


def _terms(value: Any, program: Program, place: str) -> Terms:
    terms: Terms = {}
    for entry in items(value, place):
        variable, rate = items(entry, place, 2)
        key = ("x", integer(variable, place))
        require(key in program.bounds and key not in terms, place, f"a strange term: {brief(entry)}")
        terms[key] = number(rate, place)
    return terms


def read_point(value: Any, program: Program, place: str) -> Point:
    """Return a point of a bare program from a list of numbers."""
    told = items(value, place)
    if len(told) != len(program.bounds):
        raise Rejected("the point does not give every variable a value")
    return {("x", j): number(each, f"{place}[{j}]") for j, each in enumerate(told)}


# -- programs of policies ----------------------------------------------------------------------------------
def sharing(market: Market) -> Program:
    """Return the program of all allocations in which nobody holds what it cannot use or does not demand.

    The variable ("share", i, j) is how many GPUs of type j user i holds.
    """
    users, types = range(len(market.users)), range(len(market.types))
    program = Program()
    for i in users:
        for j in types:
            program.bounds["share", i, j] = (0, inf if market.speedup[i][j] else 0)
    for j in types:
        program.rows["capacity", j] = Row({("share", i, j): ONE for i in users}, -inf, market.capacity[j])
    for i in users:
        program.rows["demand", i] = Row({("share", i, j): ONE for j in types}, -inf, market.demand[i])
    return program


def throughput(market: Market, i: int, holder: int | None = None, factor: Fraction = ONE) -> Terms:
    """Return ``factor`` times what user i would get out of the shares of ``holder``, by default its own."""
    held_by = i if holder is None else holder
    return {("share", held_by, j): factor * speed for j, speed in enumerate(market.speedup[i]) if speed}


def max_efficiency(market: Market) -> Program:
    """Maximise the sum of all throughputs (OEF Eq. (4))."""
    program = sharing(market)
    for i in range(len(market.users)):
        program.cost |= throughput(market, i)
    return program


def oef_noncooperative(market: Market) -> Program:
    """Maximise the sum, with throughput equal to ``level`` per unit of weight for everybody (OEF Eq. (9))."""
    program = max_efficiency(market)
    program.bounds["level",] = (-inf, inf)
    for i, weight in enumerate(market.weight):
        program.rows["equal_efficiency", i] = Row(throughput(market, i) | {("level",): -weight}, 0, 0)
    return program


def oef_cooperative(market: Market) -> Program:
    """Maximise the sum; nobody prefers another's shares, scaled by weights, to its own (OEF Eq. (10)).

    Where a demand is limited, all GPUs of the other are counted, even beyond what the envious user demands.
    """
    users = range(len(market.users))
    within(2 * len(users) ** 2 * len(market.types), MOST_TERMS, "oef-cooperative", "terms of its envy rows")
    program = max_efficiency(market)
    for i, other in permutations(users, 2):
        theirs = throughput(market, i, other, -market.weight[i] / market.weight[other])
        program.rows["envy_free", i, other] = Row(throughput(market, i) | theirs, 0, inf)
    return program


def max_min(market: Market, fixed: dict[int, Fraction] | None = None) -> Program:
    """Maximise the least ratio of throughput to own partition, ``least_ratio`` (Gavel Sec. 4.1).

    As in water filling, users that are ``fixed`` only keep the ratio that they have.
    """
    program, kept = sharing(market), fixed or {}
    program.bounds["least_ratio",] = (-inf, inf)
    program.cost = {("least_ratio",): ONE}
    for i in range(len(market.users)):
        ratio = throughput(market, i, factor=1 / market.equal_share(i))
        rising = {} if i in kept else {("least_ratio",): -ONE}
        program.rows["least_ratio", i] = Row(ratio | rising, kept.get(i, ZERO), inf)
    return program


PROGRAMS: dict[str, Callable[[Market], Program]] = {
    "max-efficiency": max_efficiency,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
    "max-min": max_min,
}


def program_of(market: Market, policy: Any) -> Program:
    """Return the program that a policy, called by name, makes of a market."""
    return PROGRAMS[choice(policy, "policy", list(PROGRAMS))](market)


def policy_shown(policy: str, market: Market) -> str:
    """Name a policy for a statement, and say how it is read where there are two readings."""
    if policy == "oef-cooperative" and any(demand < inf for demand in market.demand):
        return f"{policy} (read so that envy counts all GPUs of the other, even beyond the own demand)"
    return policy


def point_of(shares: Table, variables: Any, place: str = "variables") -> Point:
    """Return the point of an allocation and of the values of a program's other variables, by name."""
    x: Point = {("share", i, j): share for i, row in enumerate(shares) for j, share in enumerate(row)}
    if variables is None:
        return x
    if type(variables) is not dict:
        raise Unreadable(f"{place}: {brief(variables)} is no object")
    return x | {(name,): number(value, f"{place}, {name!r:.40}") for name, value in variables.items()}


def shares_shown(weights: Table, market: Market) -> str:
    """Return a weighted sum of shares for a statement: in full where it is short, else its digest."""
    named = [
        f"{shown(weight)} x[{user!r}, {gpu_type!r}]"
        for user, row in zip(market.users, weights, strict=True)
        for weight, gpu_type in zip(row, market.types, strict=True)
        if weight
    ]
    if len(named) <= MOST_SHOWN:
        return " + ".join(named) or "0"
    told = digest(["table", [[exactly(weight) for weight in row] for row in weights]])
    return f"the sum of shares weighted by the table of digest {told}"
