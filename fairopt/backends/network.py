"""Programs whose rows are a flow, by networkx's network simplex, in whole numbers and so without rounding.

A row is a node, and a variable an arc from one row to another, or between a row and the outside. Rows and variables may
be multiplied so that it comes out so: shares of types by users whose speedup is one number, assignments, transport.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import lcm
from time import perf_counter
from typing import Any, ClassVar

from fairopt.backends.highs import with_conflict
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.backends.trivial import settle, whole_within
from fairopt.errors import NotCapable
from fairopt.program import INFINITY, Array, Number, Program, Sense, objects


class Network(Backend):
    """Exact optima of programs that are flows, with whole numbers where these are asked for; it refuses the others.

    Source: Ahuja, Magnanti and Orlin, Network Flows, 1993, Ch. 11; which programs are flows: Sec. 1.2 and 16.4 there.

    >>> from fairopt import allocate, Market
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=[1, 1])
    >>> allocate("max-efficiency", market, backend="network").objective
    Fraction(6, 1)
    """

    name = "network"
    modules = ("networkx",)
    install = "fairopt[solvers]"
    capabilities = frozenset({Capability.INTEGERS, Capability.DUALS, Capability.TIME_LIMIT})
    number: ClassVar[type] = Fraction
    endable = 100

    def unfit(self, program: Program) -> str:
        """Return what keeps a program from being a flow, in words; nothing where it is one."""
        try:
            _Flow(program.as_(Fraction))
        except NotCapable as found:
            return str(found)
        return ""

    def _solve(self, program: Program, options: Options) -> Solution:
        if trivial := settle(program, self.name, 0):
            return trivial
        begun = perf_counter()
        flow = _Flow(program)
        status, word, x = flow.optimum()
        dual = flow.duals(x) if x is not None and not program.integer.any() else None
        objective = None if x is None else program.value(x)
        solution = Solution(
            status=status,
            raw_status=word,
            backend=self.name,
            objective=objective,
            bound=objective,
            x=x,
            dual=dual,
            reduced_cost=None if x is None or dual is None else program.reduced_cost(x, dual),
            seconds=perf_counter() - begun,
        )
        return with_conflict(program, solution)


@dataclass(frozen=True)
class _Arc:
    """What flows from ``tail`` to ``head``, between ``low`` and ``high``, at a ``cost`` a unit."""

    tail: int
    head: int
    low: Number
    high: Number
    cost: Fraction


class _Flow:
    """A linear program as a circulation: a node a row, and one node for the outside.

    Row r is multiplied by ``times[r]``, so that each variable enters one node and leaves another, ``unit[j]`` of it in
    a unit of flow. What a row adds up to comes in from the outside. Errors: `NotCapable`, which says why not.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.entries: list[list[tuple[int, Fraction]]] = [[] for _ in program.cost]
        rows = program.rows
        bounded = (rows.lower > -INFINITY) | (rows.upper < INFINITY)
        for row, column, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value.tolist(), strict=True):
            if bounded[row]:
                self.entries[column].append((row, value))
        if any(len(held) > 2 for held in self.entries):
            raise NotCapable("variables in more than two rows")
        self.times, part = self._multipliers()
        self.unit = [1 / abs(self.times[held[0][0]] * held[0][1]) if held else Fraction(1) for held in self.entries]
        self._whole(part)

    def _multipliers(self) -> tuple[list[Fraction], list[int]]:
        """Return what rows are multiplied by, and of each row the first one that it is connected with."""
        members = defaultdict(list)
        for column, held in enumerate(self.entries):
            for row, _ in held:
                members[row].append(column)
        count = len(self.program.rows)
        times, part = [Fraction(0)] * count, list(range(count))
        for first in range(count):
            if times[first]:
                continue
            times[first], waiting = Fraction(1), [first]
            for row in waiting:
                for column in members[row]:
                    if len(self.entries[column]) < 2:
                        continue
                    (one, a), (two, b) = self.entries[column]
                    (other, its), own = ((two, b), a) if one == row else ((one, a), b)
                    wanted = -times[row] * own / its
                    if not times[other]:
                        times[other], part[other] = wanted, first
                        waiting.append(other)
                    elif times[other] != wanted:
                        raise NotCapable("rows that no factors turn into a flow")
            whole = next((c for r in waiting for c in members[r] if self.program.integer[c]), None)
            if whole is not None:  # so that what must be whole flows in whole units
                row, value = self.entries[whole][0]
                factor = 1 / abs(times[row] * value)
                for each in waiting:
                    times[each] *= factor
        return times, part

    def _whole(self, part: list[int]) -> None:
        """Refuse whole numbers where a flow of whole numbers may not be the best one."""
        integer, rows = self.program.integer, self.program.rows
        mixed = {part[held[0][0]] for j, held in enumerate(self.entries) if held and integer[j]}
        for j, held in enumerate(self.entries):
            if held and part[held[0][0]] in mixed and (self.unit[j] != 1 or not integer[j]):
                raise NotCapable("whole numbers beside others")
        self.whole_rows = {row for row in range(len(rows)) if part[row] in mixed}
        if any(abs(self.times[row]) != 1 for row in self.whole_rows):
            raise NotCapable("whole numbers times fractions")

    @cached_property
    def arcs(self) -> list[_Arc]:
        """The arcs of variables, and after them those of rows, from the outside to the row."""
        program, outside = self.program, len(self.program.rows)
        sign = -1 if program.sense is Sense.MAXIMIZE else 1
        found = []
        for j, held in enumerate(self.entries):
            tails = [row for row, value in held if self.times[row] * value > 0]
            heads = [row for row, value in held if self.times[row] * value < 0]
            low, high = program.lower[j] / self.unit[j], program.upper[j] / self.unit[j]
            ends = ((*tails, outside)[0], (*heads, outside)[0])
            found.append(_Arc(*ends, low, high, sign * program.cost[j] * self.unit[j]))
        for row, factor in enumerate(self.times):
            low, high = sorted((program.rows.lower[row] * factor, program.rows.upper[row] * factor))
            low, high = whole_within(low, high) if row in self.whole_rows else (low, high)
            found.append(_Arc(outside, row, low, high, Fraction(0)))
        return found

    def optimum(self) -> tuple[Status, str, Array | None]:
        """Return how the search ended, in networkx's words, too, and the best point where there is one."""
        import networkx

        if any(arc.low > arc.high for arc in self.arcs):
            return Status.INFEASIBLE, "no solver was asked: no whole number lies between two bounds", None
        graph, starts = self._graph()
        unlimited = networkx.DiGraph()
        for tail, head, data in graph.edges(data=True):
            if "capacity" not in data:
                _add(unlimited, tail, head, data["weight"])
        endless = networkx.negative_edge_cycle(unlimited)
        if endless:  # network simplex would go round it for ever; what is left to see is whether anything can flow
            networkx.set_edge_attributes(graph, 0, "weight")
        try:
            _, flow = networkx.network_simplex(graph)
        except networkx.NetworkXUnfeasible as found:
            return Status.INFEASIBLE, f"networkx: {found}", None
        if endless:
            return Status.UNBOUNDED, "networkx: a cycle without a limit improves the objective", None
        moved = [0] * len(self.arcs)
        for tail, head, (number, sign) in graph.edges(keys=True):
            moved[number] += sign * flow[tail][head][number, sign]
        x = [(starts[j] + Fraction(moved[j], self._flow_unit)) * unit for j, unit in enumerate(self.unit)]
        return Status.OPTIMAL, "networkx: network simplex ended", objects(x)

    @cached_property
    def _flow_unit(self) -> int:
        """By what amounts are multiplied so that all are whole."""
        return _common(bound for arc in self.arcs for bound in (arc.low, arc.high))

    @cached_property
    def _cost_unit(self) -> int:
        return _common(arc.cost for arc in self.arcs)

    def _graph(self) -> tuple[Any, list[Fraction]]:
        """Return the graph in whole numbers, and where each arc starts.

        An edge (number, sign) adds to its arc's start, or takes from it.
        """
        import networkx

        graph = networkx.MultiDiGraph()
        graph.add_nodes_from(range(len(self.times) + 1), demand=0)
        starts = []
        for number, arc in enumerate(self.arcs):
            if arc.low > -INFINITY:
                start, rooms = Fraction(arc.low), {1: arc.high - arc.low}
            elif arc.high < INFINITY:
                start, rooms = Fraction(arc.high), {-1: INFINITY}
            else:
                start, rooms = Fraction(0), {1: INFINITY, -1: INFINITY}
            for sign, room in rooms.items():
                limit = {} if room == INFINITY else {"capacity": int(room * self._flow_unit)}
                ends = (arc.tail, arc.head)[::sign]
                graph.add_edge(*ends, (number, sign), weight=sign * int(arc.cost * self._cost_unit), **limit)
            graph.nodes[arc.tail]["demand"] += int(start * self._flow_unit)
            graph.nodes[arc.head]["demand"] -= int(start * self._flow_unit)
            starts.append(start)
        return graph, starts

    def duals(self, x: Array) -> Array:
        """Return the rows' multipliers at an optimum: shortest distances where something can still flow."""
        import networkx

        outside = len(self.times)
        residual = networkx.DiGraph()
        residual.add_nodes_from(range(outside + 1))
        values = chain(
            (value / unit for value, unit in zip(x, self.unit, strict=True)),
            (factor * total for factor, total in zip(self.times, self.program.rows.activity(x), strict=True)),
        )
        for arc, value in zip(self.arcs, values, strict=True):
            for tail, head, cost in _open(arc, value):
                if tail != head:
                    _add(residual, tail, head, cost)
        start = outside + 1
        residual.add_weighted_edges_from((start, node, Fraction(0)) for node in range(outside + 1))
        far = networkx.single_source_bellman_ford_path_length(residual, start)
        sign = -1 if self.program.sense is Sense.MAXIMIZE else 1
        return objects(sign * factor * (far[outside] - far[row]) for row, factor in enumerate(self.times))


def _add(graph: Any, tail: int, head: int, cost: Number) -> None:
    """Add an edge; of several between two nodes the cheapest stays."""
    known = graph.get_edge_data(tail, head, {"weight": cost})["weight"]
    graph.add_edge(tail, head, weight=min(cost, known))


def _open(arc: _Arc, value: Number) -> Iterator[tuple[int, int, Fraction]]:
    """Yield where more, or less, can flow, and what a unit costs."""
    if value < arc.high:
        yield arc.tail, arc.head, arc.cost
    if value > arc.low:
        yield arc.head, arc.tail, -arc.cost


def _common(values: Iterable[Number]) -> int:
    return lcm(*{Fraction(value).denominator for value in values if -INFINITY < value < INFINITY})
