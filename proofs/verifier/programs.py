"""Linear programs, with integers or not: the points that they allow, and bounds on how good a point can be.

This is the kernel of most certificates. A point proves what can be had: it keeps every row and every bound of
a variable. Multipliers of the rows prove what cannot, see `Program.bound`. Where the two meet, the point is
optimal. The programs of policies are written down here from the market; a policy's own code is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations
from math import inf
from operator import mul
from typing import Any, NamedTuple

from .market import MOST_SHOWN, Market, digest_of, in_integers
from .reading import (
    ONE,
    ZERO,
    Budget,
    Entry,
    Number,
    Rejected,
    Table,
    brief,
    digest,
    exactly,
    require,
    shown,
    summed,
    within,
)

Key = tuple[Any, ...]  #: the name of a row or variable: a word, and positions counted from 0
Terms = dict[Key, Fraction]  #: a sum of variables, each times a number
Point = dict[Key, Fraction]  #: a value for each variable
SENSES = ("maximize", "minimize")
#: Envy rows of more terms are not written down: they would take half a gigabyte.
MOST_TERMS = 2 * 10**7
#: So many terms of rows and bounds of variables are looked at for one file, which takes about a minute.
MOST_STEPS = 25 * 10**6


@dataclass(slots=True)
class Envy:
    """What a user gets, less what it would get out of another's shares: a name for one of very many rows."""

    market: Market
    user: int
    other: int

    def __len__(self) -> int:
        """Return the most terms that there may be."""
        return 2 * len(self.market.types)

    def items(self) -> list[tuple[Key, Fraction]]:
        """Return the variables with their numbers, worked out anew."""
        scale = -self.market.weight[self.user] / self.market.weight[self.other]
        theirs = throughput(self.market, self.user, self.other, scale)
        return [*throughput(self.market, self.user).items(), *theirs.items()]


class Row(NamedTuple):
    """The constraint low <= sum of terms <= high."""

    terms: Terms | Envy
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
    budget: Budget = field(default_factory=Budget)  #: of the file that it is from

    def look_at(self, rows: Iterable[Row]) -> None:
        """Spend what it takes to look at some rows and at all variables."""
        steps = len(self.bounds) + sum(len(row.terms) + 1 for row in rows)
        self.budget.spend(steps, MOST_STEPS, "programs", "terms")

    def value(self, x: Point) -> Fraction:
        """Return the objective at a point. Errors: `Rejected` where the point is not feasible."""
        self.look_at(self.rows.values())
        if x.keys() != self.bounds.keys():
            raise Rejected("the point does not give every variable a value")
        for key, (low, high) in self.bounds.items():
            if not low <= x[key] <= high:
                raise Rejected(f"variable {key_shown(key)} is outside of its bounds")
            if key in self.integers and x[key].denominator != 1:
                raise Rejected(f"variable {key_shown(key)} is no integer")
        for key in _broken(self.rows, x):
            raise Rejected(f"the point breaks row {key_shown(key)}")
        return self.offset + total(self.cost, x)

    def bound(self, duals: Terms) -> Fraction:
        """Return a number that no feasible point's objective exceeds, for any multipliers y of the rows.

        With A for the rows, cost.x = (cost - yA).x + y(Ax). Each of the two is at most what it is with
        every variable, and every row, at the better of its two bounds; `Rejected` where that is infinite.
        """
        reduced, most = dict(self.cost), self.offset
        self.look_at(self.rows[key] for key in duals if key in self.rows)
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
        return replace(self, rows=self.rows | {("optimum",): kept}, cost={}, offset=ZERO, sign=1)

    def __str__(self) -> str:
        """Name a bare program: its digest and its size."""
        variables = f"{len(self.bounds)} variables" + (" with integers" if self.integers else "")
        return f"program {digest(list(self._canonical()))}: {variables}, {len(self.rows)} rows"

    def _canonical(self) -> Iterator[Any]:
        yield ["program", self.sign, exactly(self.offset)]
        for key, sides in self.bounds.items():
            yield [exactly(self.cost[key]), *map(exactly, sides), key in self.integers]
        for row in self.rows.values():
            terms = [[key[1], exactly(rate)] for key, rate in row.terms.items()]
            yield [terms, exactly(row.low), exactly(row.high)]


def _broken(rows: dict[Key, Row], x: Point) -> Iterator[Key]:
    """Yield the rows that a point breaks. Envy, of a million rows perhaps, is compared in integers."""
    bundles, asked, speeds, most = dict[int, tuple[list[int], int]](), None, list[int](), ZERO
    for key, (terms, low, high) in rows.items():
        if not isinstance(terms, Envy) or high < inf:
            if not low <= total(terms, x) <= high:
                yield key
            continue
        market, i, other = terms.market, terms.user, terms.other
        if asked != (i, low):  # rows of one user stand together
            asked, (speeds, scale) = (i, low), in_integers(market.speedup[i], ONE)
            most = (total(throughput(market, i), x) - Fraction(low)) / market.weight[i] * scale
        if other not in bundles:
            shares = [x["share", other, j] for j in range(len(market.types))]
            bundles[other] = in_integers(shares, market.weight[other])
        held, by = bundles[other]
        if sum(map(mul, speeds, held)) * most.denominator > most.numerator * by:
            yield key


def total(terms: Terms | Envy, x: Point) -> Fraction:
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


def read_duals(entry: Entry) -> Terms:
    """Return multipliers by row from entries [word, position..., number]."""
    duals: Terms = {}
    for each in entry.items():
        parts = each.items()
        require(len(parts) >= 2, each.place, "it is no [row, ..., number]")
        key = (parts[0].text(), *(index.integer() for index in parts[1:-1]))
        require(key not in duals, entry.place, f"row {key_shown(key)} has two duals")
        duals[key] = parts[-1].number()
    return duals


def priced(certificate: Entry, market: Market) -> tuple[list[Fraction], Fraction]:
    """Return positive weights of users, and the most that prices and demand duals allow of their sum."""
    weights = certificate["weights"].numbers(len(market.users))
    if min(weights) <= 0:
        raise Rejected("a weight is not positive")
    program, duals = sharing(market), read_prices(certificate, market)
    for i, weight in enumerate(weights):
        program.cost |= throughput(market, i, factor=weight)
    return weights, program.bound(duals)


def read_prices(certificate: Entry, market: Market) -> Terms:
    """Return prices of types and, where they are there, duals of users' demands by row of `sharing`."""
    entry = certificate["demand_duals"]
    prices = certificate["prices"].numbers(len(market.types))
    duals = [] if entry.value is None else entry.numbers(len(market.users))
    rows = {("capacity", j): price for j, price in enumerate(prices)}
    return rows | {("demand", i): dual for i, dual in enumerate(duals)}


# -- bare programs -----------------------------------------------------------------------------------------
def read_program(entry: Entry) -> Program:
    """Return a program as it was written: variables are ("x", position), rows ("row", position)."""
    fields = entry.fields("sense offset variables rows")
    sign = 1 if fields["sense"].choice(SENSES) == "maximize" else -1
    program = Program(offset=sign * fields["offset"].number(), sign=sign, budget=entry.budget)
    for j, each in enumerate(fields["variables"].items()):
        variable = each.fields("cost lower upper integer")
        program.bounds["x", j] = _sides(variable)
        program.cost["x", j] = sign * variable["cost"].number()
        if variable["integer"].truth():
            program.integers.add(("x", j))
    for r, each in enumerate(fields["rows"].items()):
        row = each.fields("terms lower upper")
        program.rows["row", r] = Row(_terms(row["terms"], program), *_sides(row))
    return program


def _sides(entry: Entry) -> tuple[Number, Number]:
    return entry["lower"].or_infinity(-inf), entry["upper"].or_infinity()


def _terms(entry: Entry, program: Program) -> Terms:
    terms: Terms = {}
    for each in entry.items():
        variable, rate = each.items(2)
        key = ("x", variable.integer())
        if key not in program.bounds or key in terms:
            raise each.odd("is a strange term")
        terms[key] = rate.number()
    return terms


def read_point(entry: Entry, program: Program) -> Point:
    """Return a point of a bare program from a list of numbers."""
    if len(entry.items()) != len(program.bounds):
        raise Rejected("the point does not give every variable a value")
    return {("x", j): value for j, value in enumerate(entry.numbers())}


# -- programs of policies ----------------------------------------------------------------------------------
def sharing(market: Market) -> Program:
    """Return the program of all allocations in which nobody holds what it cannot use or does not demand.

    The variable ("share", i, j) is how many GPUs of type j user i holds.
    """
    users, types = range(len(market.users)), range(len(market.types))
    program = Program(budget=market.budget)
    for i in users:
        for j in types:
            program.bounds["share", i, j] = (0, inf if market.speedup[i][j] else 0)
    for j in types:
        program.rows["capacity", j] = Row({("share", i, j): ONE for i in users}, -inf, market.capacity[j])
    for i in users:
        program.rows["demand", i] = Row({("share", i, j): ONE for j in types}, -inf, market.demand[i])
    program.look_at(program.rows.values())
    return program


def floors(market: Market, word: str, least: dict[int, Fraction]) -> dict[Key, Row]:
    """Return rows (word, user): users get throughputs of at least so much."""
    return {(word, i): Row(throughput(market, i), least_of_i, inf) for i, least_of_i in least.items()}


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
    size = 2 * len(users) ** 2 * max(len(market.types), 5)  # a row takes as much memory as some terms
    within(size, MOST_TERMS, "oef-cooperative", "terms of its envy rows")
    market.budget.spend(len(users) ** 2, MOST_STEPS, "oef-cooperative", "envy rows")
    program = max_efficiency(market)
    for i, other in permutations(users, 2):
        program.rows["envy_free", i, other] = Row(Envy(market, i, other), 0, inf)
    return program


def max_min(market: Market) -> Program:
    """Maximise the least ratio of throughput to own partition, ``least_ratio`` (Gavel Sec. 4.1)."""
    users = range(len(market.users))
    fair, nothing, alike = [market.equal_share(i) for i in users], [ZERO for _ in users], [ONE for _ in users]
    return rising(sharing(market), market, fair, nothing, alike)


def rising(
    within: Program, market: Market, fair: list[Fraction], ratios: list[Fraction], rates: list[Fraction]
) -> Program:
    """Maximise ``least_ratio``: ratios to ``fair`` are at least what they were, and rates times it more."""
    program = replace(within, rows=dict(within.rows), bounds=within.bounds | {("least_ratio",): (-inf, inf)})
    program.cost = {("least_ratio",): ONE}
    for i, (own, least, rate) in enumerate(zip(fair, ratios, rates, strict=True)):
        rises = {("least_ratio",): -rate} if rate else {}
        program.rows["least_ratio", i] = Row(throughput(market, i, factor=1 / own) | rises, least, inf)
    return program


PROGRAMS: dict[str, Callable[[Market], Program]] = {
    "max-efficiency": max_efficiency,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
    "max-min": max_min,
}


def policy_shown(policy: str, market: Market) -> str:
    """Name a policy for a statement, and say how it is read where there are two readings."""
    if policy == "oef-cooperative" and any(demand < inf for demand in market.demand):
        return f"{policy} (read so that envy counts all GPUs of the other, even beyond the own demand)"
    return policy


def point_of(shares: Table, variables: Entry) -> Point:
    """Return the point of an allocation and of the values of a program's other variables, by name."""
    x: Point = {("share", i, j): share for i, row in enumerate(shares) for j, share in enumerate(row)}
    return x | {(name,): each.number() for name, each in variables.by_name().items()}


def certified(program: Program, shares: Table, certificate: Entry, sign: int = 1) -> Fraction:
    """Return the objective at an allocation, which must be the value and, by the duals, the optimum."""
    x, duals = point_of(shares, certificate["variables"]), read_duals(certificate["duals"])
    value = sign * program.optimum(x, duals)
    if value != certificate["value"].number():
        raise Rejected("the value is not the point's")
    return value


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
    return f"the sum of shares weighted by the table {digest_of(weights)}"
