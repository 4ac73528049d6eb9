"""From prices nearby to the optimum: exact vertices in boxes of prices that move and grow until one holds it.

At prices in a box almost all users have one cheapest way to their target; those that have not are *active*, and are
solved together with the sum of all others by a small linear program. Where its vertex is inside the box and
nobody has a cheaper way, it is the optimum of the whole problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.grouping import equal_users
from fairopt.methods.incremental_lp import BASIC, LOWER, ZERO, Blocks, IncrementalLP, places
from fairopt.methods.level.problem import BestResponse, LevelPoint, LevelProblem, choose, floored, nearest
from fairopt.program import INFINITY, Array

#: Relative speeds that agree to so many bits count as equal: users with the same are merged.
BITS = 2.0**42
#: Programs of up to so many rows are solved to the last digits.
POLISHED = 300
#: HiGHS's tolerance where it can keep to none that is finer.
COARSE = 1e-7
#: Trades with the box below this part of the capacities, and reduced costs of the level below the second, are rounding.
TRADED, HELD = 1e-13, 1e-9
#: Users that would choose otherwise at prices within so many gaps of the guess are active.
TIE = 10.0
#: The gap of a guess is taken to be between these.
ROUGH, FINE = 1e-4, 1e-6
#: Each box holds more than the last, so that this many are never needed.
MOST_BOXES = 60
#: What users could save by choosing otherwise is rounding below this part of the level.
NEGLIGIBLE = 1e-12
#: Less of its throughput is rounding: on a type that is sold out, a bound takes even that for more than there is.
CRUMB = 1e-14
#: Of a type of which it needs more times all GPUs for what its best type gives it, a user gets nothing that counts.
FAR = 1e12
#: A box may be as wide as this, relative to the prices.
WIDEST = 0.999


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
        keys = np.rint(np.vstack((relative, ratio, limit)) * BITS)
        self.first, self.of = equal_users(keys)
        first, count = self.first, len(self.first)
        self.total = np.bincount(self.of, weights=gpus, minlength=count)
        self.size = np.bincount(self.of, weights=size, minlength=count)
        self.relative, self.usable = relative[:, first], usable[:, first]
        self.weight = self.relative * self.total
        self.rate, self.floor = ratio[first], (problem.floor / size)[first]
        self.limit = limit[first]


class Box:
    """A box of prices, around ``prices`` (k,) at first; `step` looks for the optimum in it, and moves it.

    The users that are not active hold ``held + rising * t`` (k,) for ``levels`` t, from the least to the most, at all
    prices between the two ``sides`` (k,), None where there are no others. ``inside``: no price of the last vertex and
    not its level is at the boundary. ``bought``: parts of the capacities that it takes beyond these.
    """

    def __init__(self, problem: LevelProblem, prices: Array, level: float) -> None:
        k, n = problem.shape
        self.problem, self.prices, self.level = problem, prices, min(level, problem.highest)
        self.boxes = self.largest = 0
        self.held = self.rising = np.zeros(k)
        self.levels: tuple[float, float] = (-INFINITY, INFINITY)
        self.sides: tuple[Array, Array] | None = None
        self.inside, self.bought = True, 0.0
        #: At least so many of the users nearest to a tie are active, and so are all of ``_extra`` (n,).
        self._count, self._extra = min(8 * k, n), np.zeros(n, dtype=bool)
        #: Prices and levels at which active users may also choose: those of the last box and its vertex.
        self._before: tuple[tuple[Array, float], ...] = ()

    def settle(self) -> LevelPoint:
        """Step until the optimum is found. Errors: `NotSolved` after `MOST_BOXES` boxes, or where HiGHS fails."""
        for _ in range(MOST_BOXES):
            if (found := self.step()) is not None:
                return found
        raise NotSolved(f"no optimum in {MOST_BOXES} boxes of prices")

    def whole(self) -> LevelPoint:
        """Return the optimum by one program of all users, from the first prices. Errors: `NotSolved`."""
        problem = self.problem
        return self._vertex(problem, problem.need <= FAR * problem.capacity[:, None], self.level, self.prices)

    def step(self) -> LevelPoint | None:
        """Return the optimum if it is in this box, else None and move on to the next box. Errors: `NotSolved`."""
        problem = self.problem
        centre, choice = self._centre()
        near = nearest(choice.margin, self._count) | (choice.margin <= TIE * precision(problem))
        active = np.flatnonzero(near | self._extra)
        # as far as prices can move before anybody else would choose otherwise
        width = min(float(choice.margin[~near].min(initial=np.inf)), WIDEST)
        usable = _candidates(problem, active, centre, self.level, width)
        for prices, level in self._before:
            usable |= _candidates(problem, active, prices, level, width)
        self._fix_others(choice, active, centre, width)
        at = self._vertex(problem.select(active), usable, self.level, centre)
        found = replace(at, choice=choice, active=active)
        self.largest = max(self.largest, len(active))
        if self.bought <= NEGLIGIBLE and at.level >= problem.highest * (1 - NEGLIGIBLE):
            return replace(found, prices=np.zeros(len(centre)), demand_dual=one_demand_dual(problem))
        savings = self._savings(at, choice, active)
        is_whole = len(active) == len(near) and bool((usable | np.isinf(problem.need)).all())
        if is_whole or (self.inside and savings.sum() <= NEGLIGIBLE * max(abs(at.level), 1e-300)):
            return replace(found, demand_dual=self._demand_duals(at, active))
        self._move(at, savings, near, centre)
        return None

    def _centre(self) -> tuple[Array, BestResponse]:
        """Return positive prices near the present ones, and the users' choices there."""
        centre = floored(self.problem, self.prices)
        choice = choose(self.problem, centre, self.level)
        if self.problem.demand is None:  # of all multiples of the prices those of the optimum: rate @ value is 1
            weight = float(self.problem.rate @ choice.value)
            centre, self.prices = centre / weight, self.prices / weight
        return centre, choice

    def _fix_others(self, choice: BestResponse, active: Array, centre: Array, width: float) -> None:
        """Set what all but the ``active`` users hold together, and the box of prices within which they do."""
        problem, k = self.problem, len(centre)
        fixed = np.ones(len(problem.rate), dtype=bool)
        fixed[active] = False
        (self.held, self.rising), self.levels = choice.held(fixed, k), choice.range(fixed, problem)
        if not fixed.any():
            self.sides = None
        elif self.level < problem.highest * (1 - TIE * FINE):
            cheap = np.where(self.prices < centre, 0.0, centre * (1 - width))
            self.sides = cheap, centre * (1 + width)
        else:
            # where a user's demand alone limits the level, all prices may be 0, and a narrow box would keep them above:
            # one GPU more of a type is never worth so much as these prices
            self.sides = np.zeros(k), 2 * k * max(self.level, 1.0) / problem.capacity

    def _vertex(self, problem: LevelProblem, usable: Array, level: float, prices: Array) -> LevelPoint:
        """Return an optimum of ``problem`` with shares only where ``usable`` (k, n) says, and others as they are.

        ``level`` and ``prices`` (k,) are near it. The box is a trader, who sells GPUs at the dearest prices and buys
        them at the cheapest. Errors: `NotSolved` where HiGHS finds no optimum.
        """
        usable = usable & np.isfinite(problem.need)
        groups = _Groups(problem, usable)
        capacity, types, members = problem.capacity, len(problem.capacity), len(groups.first)
        unit = float(groups.size.mean())
        if not np.finfo(float).tiny <= unit < INFINITY:
            raise NotSolved("numerically out of range for floats: what users could have alone")
        part = groups.weight / capacity[:, None]  # of each type's capacity, for one unit of every member's throughput
        type_, group = np.nonzero(groups.usable)
        limited = np.flatnonzero(np.isfinite(groups.limit))

        lp = Blocks()
        # the level as a change, in units in which all numbers are about one
        rise = lp.columns(np.ones(1), *((end - level) / unit for end in self.levels))
        amounts = lp.columns(np.zeros(len(type_)))
        room = (capacity - self.held - self.rising * level) / (capacity * unit)
        within_capacity = lp.rows(-INFINITY, room, types)
        reaches_target = lp.rows(groups.floor + groups.rate * level, INFINITY, members)
        within_demand = lp.rows(-INFINITY, groups.limit[limited], len(limited))
        lp.entries(within_capacity, np.repeat(rise, types), self.rising / capacity)
        lp.entries(reaches_target, np.repeat(rise, members), -groups.rate * unit)
        lp.entries(within_capacity[type_], amounts, part[type_, group] / unit)
        lp.entries(reaches_target[group], amounts, np.ones(len(type_)))
        row = places(members, limited)[group]
        some = row >= 0
        lp.entries(within_demand[row[some]], amounts[some], groups.relative[type_, group][some])
        if self.sides is not None:
            cheap, dear = self.sides
            buys, sells = lp.columns(-dear * capacity), lp.columns(cheap * capacity)
            lp.entries(within_capacity, buys, -np.ones(types))
            lp.entries(within_capacity, sells, np.ones(types))

        solver = IncrementalLP(lp.program("a box of prices"), second=COARSE)
        solver.start(*self._first_basis(groups, prices, (type_, group), len(limited)))
        solver.solve()
        solver.polish(POLISHED)
        held = np.zeros((types, members))
        held[type_, group] = np.where(solver.x[amounts] > CRUMB, solver.x[amounts], 0.0)
        demand_dual = None
        if problem.demand is not None:
            demand_duals = np.zeros(members)
            # the row of a group stands for each member by its part of the group; see `_Groups`
            demand_duals[limited] = np.maximum(solver.dual[within_demand], 0.0) * unit
            demand_dual = demand_duals[groups.of] / groups.total[groups.of]
        self.inside, self.bought = bool(abs(solver.reduced[0]) <= HELD), 0.0
        if self.sides is not None:
            self.bought = float(solver.x[buys].sum()) * unit
            sold = float((solver.x[sells] * (cheap > 0)).sum()) * unit
            self.inside = self.inside and max(self.bought, sold) <= TRADED
        self.boxes += 1
        return LevelPoint(
            prices=np.maximum(solver.dual[within_capacity], 0.0) / capacity,
            level=level + unit * float(solver.x[0]),
            shares=held[:, groups.of] * np.where(usable, problem.need, 0.0) * problem.size,
            demand_dual=demand_dual,
        )

    def _first_basis(
        self, groups: _Groups, prices: Array, pairs: tuple[Array, Array], limited: int
    ) -> tuple[Array, Array]:
        """Return the basis in which each group holds what is cheapest at ``prices``: positions of columns and rows."""
        type_, group = pairs
        types, members = groups.usable.shape
        cost = np.where(groups.usable, groups.relative * prices[:, None], np.inf)
        amounts = np.where(cost.argmin(axis=0)[group] == type_, BASIC, LOWER)
        level = [LOWER if np.isfinite(self.levels[0]) else ZERO]
        trader = np.full(0 if self.sides is None else 2 * types, LOWER)
        columns = np.concatenate([level, amounts, trader])
        rows = np.repeat([BASIC, LOWER, BASIC], [types, members, limited])
        return columns.astype(np.int8), rows.astype(np.int8)

    def _move(self, at: LevelPoint, savings: Array, near: Array, centre: Array) -> None:
        """Put the next box around the vertex, with more users in it."""
        cheaper = savings > 0.01 * NEGLIGIBLE * max(abs(at.level), 1e-300) / len(near)
        if cheaper.sum() > 2 * self._count:
            cheaper = nearest(-savings, 2 * self._count)
        self._extra = (self._extra & self.inside) | cheaper
        if self.inside:
            self._extra |= near
        else:
            self._count *= 2
        before = centre, self.level
        self.prices, self.level = at.prices, min(at.level, self.problem.highest)
        self._before = before, (floored(self.problem, self.prices, 0.0), self.level)

    def _demand_duals(self, at: LevelPoint, active: Array) -> Array | None:
        """Return the demand duals of all users (n,) at the vertex's prices: the program's where they prove no less."""
        problem = self.problem
        prices = floored(problem, at.prices, 0.0)
        demand_dual = choose(problem, prices, at.level).demand_dual
        if demand_dual is None or at.demand_dual is None or problem.demand is None:
            return demand_dual
        need = problem.need[:, active]
        demand = np.where(np.isfinite(problem.demand[active]), problem.demand[active], 0.0)
        target = problem.floor[active] + problem.rate[active] * at.level
        chosen, of_vertex = (
            ((prices[:, None] + each) * need).min(axis=0) * target - each * demand
            for each in (demand_dual[active], at.demand_dual)
        )
        demand_dual[active] = np.where(
            of_vertex >= chosen - NEGLIGIBLE * np.abs(chosen), at.demand_dual, demand_dual[active]
        )
        return demand_dual

    def _savings(self, at: LevelPoint, choice: BestResponse, active: Array) -> Array:
        """Return what each user (n,) could save at the vertex's prices by choosing otherwise."""
        problem = self.problem
        least = choose(problem, floored(problem, at.prices, 0.0), at.level).cost(at.prices, at.level)
        paid = choice.cost(at.prices, at.level)
        paid[active] = at.prices @ at.shares
        return np.asarray(np.maximum(paid - least, 0.0))


def precision(problem: LevelProblem) -> float:
    """Return the relative gap that a guess needs: few users need not be told apart as finely as many."""
    return min(max(0.1 / len(problem.rate), FINE), ROUGH)


def one_demand_dual(problem: LevelProblem) -> Array:
    """Return the demand duals (n,) where one user's demand alone limits the level: those of all others are 0."""
    demand_dual = np.zeros(len(problem.rate))
    demand_dual[int(problem.reach.argmin())] = 1.0
    return demand_dual


def _candidates(problem: LevelProblem, active: Array, prices: Array, level: float, width: float) -> Array:
    """Return which types (k, len(active)) may be used by ``active`` users while prices move by ``width``."""
    part = problem.select(active)
    speed, column = part.speed(np.arange(len(active))), np.arange(len(active))
    usable = np.zeros(speed.shape, dtype=bool)
    nearby = level * (1 - width), min(level * (1 + width), problem.highest)
    for each in (level,) if problem.demand is None else (level, *nearby):
        choice = choose(part, prices, each)
        cost = prices[:, None] + (0.0 if choice.demand_dual is None else choice.demand_dual)
        usable |= cost * (1 - width) <= choice.value * speed * (1 + width) * (1 + 1e-12)
        for type_ in choice.type:
            some = type_ >= 0
            usable[type_[some], column[some]] = True
    return usable
