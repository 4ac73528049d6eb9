"""The small linear program of a box of prices: the users that may choose otherwise within it, solved to a vertex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.grouping import equal_users
from fairopt.methods.incremental_lp import BASIC, LOWER, ZERO, Blocks, IncrementalLP, places
from fairopt.methods.level.problem import LevelProblem
from fairopt.program import INFINITY, Array

#: Relative speeds that agree to so many bits count as equal: users with the same are merged.
BITS = 2.0**42
#: Programs of up to so many rows are solved to the last digits.
POLISHED = 300
#: HiGHS's tolerance where it can keep to none that is finer.
COARSE = 1e-7
#: Trades with the box below this part of the capacities, and reduced costs of the level below the second, are rounding.
TRADED, HELD = 1e-13, 1e-9


@dataclass(frozen=True, eq=False)
class FixedUsers:
    """The users outside of the small program: they hold ``held + rising * t`` (k,), for t from ``least`` to ``most``.

    ``box``: the least and the highest prices (k,) between which that is so; None for 0 and infinity.
    """

    held: Array
    rising: Array
    least: float = -INFINITY
    most: float = INFINITY
    box: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class BoxVertex:
    """An optimal vertex of the small program: ``prices`` (k,), ``level``, ``shares`` (k, n), ``demand_dual`` (n,).

    ``inside``: neither a price nor the level is at the boundary of the box. ``bought``: the GPUs bought from the box at
    its highest prices, beyond the capacities and as parts of them.
    """

    prices: Array
    level: float
    shares: Array
    demand_dual: Array | None
    inside: bool
    bought: float


def vertex(problem: LevelProblem, usable: Array, others: FixedUsers, level: float, prices: Array) -> BoxVertex:
    """Return an optimum of ``problem`` with shares only where ``usable`` (k, n) says, and the ``others`` as they are.

    ``level`` and ``prices`` (k,) are near it. The box is a trader, who sells GPUs at the dearest prices and buys them
    at the cheapest. Errors: `NotSolved` where HiGHS finds no optimum.
    """
    usable = usable & np.isfinite(problem.need)
    groups = _Groups(problem, usable)
    capacity, types, members = problem.capacity, len(problem.capacity), len(groups.first)
    unit = float(groups.size.mean())
    part = groups.weight / capacity[:, None]  # of each type's capacity, for one unit of every member's throughput
    type_, group = np.nonzero(groups.usable)
    limited = np.flatnonzero(np.isfinite(groups.limit))

    lp = Blocks()
    # the level as a change, in units in which all numbers are about one
    rise = lp.columns(np.ones(1), (others.least - level) / unit, (others.most - level) / unit)
    amounts = lp.columns(np.zeros(len(type_)))
    room = (capacity - others.held - others.rising * level) / (capacity * unit)
    within_capacity = lp.rows(-INFINITY, room, types)
    reaches_target = lp.rows(groups.floor + groups.rate * level, INFINITY, members)
    within_demand = lp.rows(-INFINITY, groups.limit[limited], len(limited))
    lp.entries(within_capacity, np.repeat(rise, types), others.rising / capacity)
    lp.entries(reaches_target, np.repeat(rise, members), -groups.rate * unit)
    lp.entries(within_capacity[type_], amounts, part[type_, group] / unit)
    lp.entries(reaches_target[group], amounts, np.ones(len(type_)))
    row = places(members, limited)[group]
    some = row >= 0
    lp.entries(within_demand[row[some]], amounts[some], groups.relative[type_, group][some])
    if others.box is not None:
        cheap, dear = others.box
        buys, sells = lp.columns(-dear * capacity), lp.columns(cheap * capacity)
        lp.entries(within_capacity, buys, -np.ones(types))
        lp.entries(within_capacity, sells, np.ones(types))

    solver = IncrementalLP(lp.program("a box of prices"), second=COARSE)
    solver.start(*_first_basis(groups, prices, (type_, group), others, len(limited)))
    found = solver.polished(solver.solve(), POLISHED)
    held = np.zeros((types, members))
    held[type_, group] = np.maximum(found.x[amounts], 0.0)
    demand_dual = None
    if problem.demand is not None:
        demand_duals = np.zeros(members)
        # the row of a group stands for each member by its part of the group; see `_Groups`
        demand_duals[limited] = np.maximum(found.dual[within_demand], 0.0) * unit
        demand_dual = demand_duals[groups.of] / groups.total[groups.of]
    inside = abs(found.reduced[0]) <= HELD
    bought = 0.0
    if others.box is not None:
        bought = float(found.x[buys].sum()) * unit
        sold = float((found.x[sells] * (cheap > 0)).sum()) * unit
        inside = inside and max(bought, sold) <= TRADED
    return BoxVertex(
        prices=np.maximum(found.dual[within_capacity], 0.0) / capacity,
        level=level + unit * float(found.x[0]),
        shares=held[:, groups.of] * np.where(usable, problem.need, 0.0) * problem.size,
        demand_dual=demand_dual,
        inside=bool(inside),
        bought=bought,
    )


def _first_basis(
    groups: _Groups, prices: Array, pairs: tuple[Array, Array], others: FixedUsers, limited: int
) -> tuple[Array, Array]:
    """Return the basis in which each group holds what is cheapest at ``prices``: positions of columns and rows."""
    type_, group = pairs
    types, members = groups.usable.shape
    cost = np.where(groups.usable, groups.relative * prices[:, None], np.inf)
    amounts = np.where(cost.argmin(axis=0)[group] == type_, BASIC, LOWER)
    level = [LOWER if np.isfinite(others.least) else ZERO]
    trader = np.full(0 if others.box is None else 2 * types, LOWER)
    columns = np.concatenate([level, amounts, trader])
    rows = np.repeat([BASIC, LOWER, BASIC], [types, members, limited])
    return columns.astype(np.int8), rows.astype(np.int8)


class _Groups:
    """Users that are equal up to size: the same relative speeds on the types among which they choose.

    ``of`` (n,) is each user's group and ``first`` a member of each. With one unit of throughput per size for each
    member, a group takes ``weight`` (k, g) GPUs. Demands are per GPU that the member would need on its best type;
    ``total`` is the sum of such GPUs over the members, and ``relative`` (k, g) the needs in that unit.
    """

    def __init__(self, problem: LevelProblem, usable: Array) -> None:
        need = np.where(usable, problem.need, np.inf)
        size = problem.size
        best = need.min(axis=0)
        relative = np.where(usable, need / best, 0.0)
        gpus = size * best
        ratio = problem.rate / size
        limit = np.full(len(size), np.inf) if problem.demand is None else problem.demand / gpus
        rounded = np.rint(relative * BITS)
        keys = [*rounded, np.rint(ratio * BITS), np.where(np.isfinite(limit), np.rint(limit * BITS), -1.0)]
        self.first, self.of = equal_users(keys)
        first, count = self.first, len(self.first)
        self.total = np.bincount(self.of, weights=gpus, minlength=count)
        self.size = np.bincount(self.of, weights=size, minlength=count)
        self.relative, self.usable = relative[:, first], usable[:, first]
        self.weight = self.relative * self.total
        self.rate, self.floor = ratio[first], (problem.floor / size)[first]
        self.limit = limit[first]
