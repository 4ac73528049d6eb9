"""FFT's program of one round, solved and proven optimal.

Duals (one a type, `fairopt.methods.gang_assignment.duals`) leave nearly every job one best choice. The few jobs whose
regret for another choice is less than the remaining gap decide the rest: by dynamic programming or, where that has too
many states, by an integer program. No other job can deviate without losing more than the gap, so that the optimum over
these few deviations is that of the whole problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairopt.backends.solution import Status
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment.deviations import DeviationOptimum, Deviations, solve_merged
from fairopt.methods.gang_assignment.duals import GROWTH, best_duals
from fairopt.methods.gang_assignment.dynamic_program import solve_by_states
from fairopt.methods.gang_assignment.groups import EVERYTHING, SUMMED, Grouping, Groups, Priced, grouped, safe_value
from fairopt.methods.gang_assignment.problem import GangAssignment, GangResult, Multipliers, most_busy
from fairopt.methods.result import StageClock
from fairopt.program import Array

#: About so many deviations are looked at first, where ties alone may do, and second, which mostly finds a point near
#: the best one.
TIES, INTEGER = 8, 70
#: A proof with up to so many deviations is tried at once.
AT_ONCE = 1000
#: `OPTIMAL` without a gap: the bounds differ by at most this part of the chosen costs' sizes and of the loss against
#: the dual, added up, and by the rounding errors that were subtracted from the lower one.
TOLERANCE = 1e-9


def solve_gangs(
    problem: GangAssignment, *, start: Multipliers | None = None, gap: float = 0.0, time_limit: float | None = None
) -> GangResult:
    """Return an assignment of least cost, and the proof of it as a bound.

    ``start``: the `GangResult.warm_start` of the last round; it is dropped where it is far off, and never changes the
    cost. ``gap``: relative gap that counts as solved. ``time_limit``: seconds; the best assignment so far comes back
    with `Status.LIMIT`. HiGHS, where it is needed, gets what is left and overruns it, as it looks at the clock between
    its own steps only. `Status.INFEASIBLE`: ``least`` is more than can be kept busy, and ``usable`` says how much can.
    `Status.OPTIMAL` with gap 0: upper - lower <= 1e-9 (sum of |cost| of the jobs that run, where they run, + upper -
    dual bound) + rounding of the dual's sums (2^-50 of their terms' sizes). The bound holds in floats: rounding is
    subtracted from the dual's part, and from the deviations' part the tolerance of the program that decided them.
    Errors: `BadInput` for options.
    """
    if not gap >= 0 or (time_limit is not None and not time_limit >= 0):
        raise BadInput(f"got gap {gap}, time_limit {time_limit}", place="options", remedy="Give numbers from 0")
    if start is not None and start.price.shape != problem.capacity.shape:
        remedy = f"Give one price a type: {len(problem.capacity)}"
        raise BadInput(f"{len(start.price)} prices", place="start", remedy=remedy)
    clock = StageClock(time_limit)
    classes = problem.classes()
    tight = problem.tightened(classes)
    try:
        usable = most_busy(classes, tight.capacity, clock.left, tight.least)
    except NotSolved:  # the time limit has passed: the status says so
        return GangResult(status=Status.LIMIT)
    if usable < tight.least:
        return GangResult(status=Status.INFEASIBLE, usable=usable)
    grouping = grouped(tight)
    clock.lap("build")
    if not len(grouping.jobs):
        nobody, free = np.full(len(problem.gangs), -1), Multipliers(np.zeros(len(problem.capacity)), 0.0)
        nothing = dict.fromkeys(("groups", "linear", "integer", "columns", "nodes", "dual_bound"), 0.0)
        return GangResult(status=Status.OPTIMAL, type_of=nobody, lower=0.0, upper=0.0, multipliers=free, effort=nothing)
    priced, linear = best_duals(grouping.groups, start, clock)
    search = _Search(problem, grouping, priced, gap, clock)
    search.effort |= {"groups": float(len(grouping.first) - 1), "linear": float(linear)}
    return search.run()


class _Search:
    """The search for the best deviations from what the duals choose: more and more of them, until none is missing."""

    def __init__(
        self, problem: GangAssignment, grouping: Grouping, priced: Priced, gap: float, clock: StageClock
    ) -> None:
        self.problem, self.grouping, self.priced, self.gap, self.clock = problem, grouping, priced, gap, clock
        self.grain = _grain(grouping.groups)
        self.dual = self.bound = safe_value(priced)
        self.cost = np.inf
        self.type_of: Array | None = None
        #: The deviations looked at last, and the best moves known of some earlier ones.
        self._count, self._limited = 0, False
        self._moved: tuple[Deviations, Array] | None = None
        # the error of one regret, counted as in `safe_value`
        largest = float(np.abs(priced.duals).max()) * float(grouping.groups.size.max())
        self._blur = SUMMED * (largest + float(np.abs(priced.reduced).max()))
        self.effort = {"integer": 0.0, "columns": 0.0, "nodes": 0.0, "dual_bound": self.dual}

    def run(self) -> GangResult:
        """Look within wider and wider limits until a cost is proved, time is over or nothing is left to try."""
        for limit in self._limits():
            if self.clock.over:
                status = Status.LIMIT
                break
            self._look_within(limit)
            if self._proved():
                status = Status.OPTIMAL
                break
        else:
            status = Status.LIMIT if self._limited else Status.INACCURATE
        self.clock.lap("solve")
        return GangResult(
            status=status,
            type_of=self.type_of,
            lower=min(self.bound, self.cost),
            upper=self.cost,
            multipliers=_multipliers(self.priced),
            effort=self.effort,
            seconds=self.clock.stages,
        )

    def _limits(self) -> Iterator[float]:
        """Yield limits on the regret of the deviations to look at; each takes account of what the last one led to."""
        limit, columns = self.priced.limit_for(TIES), INTEGER // GROWTH
        while True:
            yield limit
            columns = max(columns, self._count) * GROWTH
            following = EVERYTHING
            if self.type_of is None:
                if limit < EVERYTHING:
                    following = self.priced.limit_for(columns)
            else:
                # only deviations of less regret than this can be in something better; where those are many, a better
                # point is looked for first
                needed = max(0.0, self.cost - self.dual - 0.999 * self.grain)
                if limit < needed:
                    many = columns > 2 * INTEGER
                    following = self.priced.limit_for(max(columns, AT_ONCE) if many else columns)
                following = min(needed, following)
            if following == limit:
                return
            limit = following

    def _look_within(self, limit: float) -> None:
        """Find the best deviations of a regret up to ``limit``: a better assignment, a better bound or both."""
        deviations = Deviations.within(self.priced, limit)
        start = None if self._moved is None else deviations.translated(*self._moved)
        slack = max(0.999 * self.grain, self.gap * abs(self.dual))
        answer, programs = _best_moves(deviations, start, slack, self.clock)
        self._count, self._limited = len(deviations), answer.status is Status.LIMIT
        self.effort["integer"] += programs
        self.effort |= {"columns": float(len(deviations)), "nodes": float(answer.nodes)}
        if answer.moved is not None:
            self._moved = deviations, answer.moved
            cost, type_of = self._assignment(deviations, answer.moved)
            if cost < self.cost:
                self.cost, self.type_of = cost, type_of
        # a deviation beyond the limit loses at least that
        loss = min(answer.bound, limit * (1 - SUMMED) - self._blur)
        self.bound = max(self.bound, _whole(self.dual + loss, self.grain))

    def _assignment(self, deviations: Deviations, moved: Array) -> tuple[float, Array]:
        """Return the cost of the assignment that moves make, and each job's type."""
        at = np.flatnonzero(moved)
        moves = deviations.group[at], deviations.to[at], moved[at]
        type_of = self.grouping.type_of(len(self.problem.gangs), self.priced.base, moves)
        runs = np.flatnonzero(type_of >= 0)
        return math.fsum(self.problem.cost[runs, type_of[runs]].tolist()), type_of

    def _proved(self) -> bool:
        """Return whether cost and bound are as near as they must be in an optimum, or as the caller's gap."""
        if self.type_of is None:
            return False
        runs = np.flatnonzero(self.type_of >= 0)
        sizes = float(np.abs(self.problem.cost[runs, self.type_of[runs]]).sum())
        noise = abs(self.priced.value - self.dual) + 2 * self._blur
        near = TOLERANCE * (sizes + abs(self.cost - self.dual)) + 2 * noise
        return self.cost - self.bound <= max(near, self.gap * abs(self.cost))


def _best_moves(
    deviations: Deviations, start: Array | None, slack: float, clock: StageClock
) -> tuple[DeviationOptimum, int]:
    """Return the best moves, and the integer programs that took: none where `solve_by_states` proves it."""
    states = solve_by_states(deviations, start=start, slack=slack, time_limit=clock.left)
    if states is not None:
        if states.status is not Status.LIMIT or clock.over:
            return states, 0
        start = states.moved
    answer = solve_merged(deviations, start=start, slack=slack, time_limit=clock.left)
    loss = np.inf if start is None else float(start @ deviations.regret)
    if loss < answer.loss:
        answer = replace(answer, moved=start, loss=loss)
    return replace(answer, bound=min(max(answer.bound, states.bound if states else 0.0), answer.loss)), 1


def _grain(groups: Groups) -> float:
    """Return a number that all costs are whole multiples of, 0 where they are not whole."""
    for some in (groups.cost[:, :64], groups.cost):  # a few first: mostly these tell
        finite = some[np.isfinite(some)]
        if (finite != np.rint(finite)).any() or np.abs(finite).max(initial=0.0) >= 2.0**53:
            return 0.0
    return float(np.gcd.reduce(np.abs(finite).astype(np.int64)))


def _whole(bound: float, grain: float) -> float:
    """Return the least cost from ``bound`` on that is a multiple of ``grain``."""
    return math.ceil(bound / grain * (1 - math.copysign(SUMMED, bound))) * grain if grain else bound


def _multipliers(priced: Priced) -> Multipliers:
    """Return the duals as prices and a reward."""
    groups, level = priced.groups, float(priced.duals.max())
    if groups.waiting:
        return Multipliers(max(0.0, level) - priced.duals, max(0.0, level))
    # nobody waits: the prices are relative, and the reward is what makes every job's best choice worth it
    return Multipliers(level - priced.duals, max(0.0, float((priced.reduced / groups.size).max()) + level))
