"""FFT's program of one round, solved and proven optimal.

Duals, one a type, leave nearly every job one best choice: a smoothed dual finds near ones, and small linear programs
the optimal ones. The few jobs whose regret for another choice is less than the remaining gap decide the rest: by
dynamic programming or, where that has too many states, by an integer program. No other job can deviate without losing
more than the gap, so that the optimum over these few deviations is that of the whole problem.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment.cheapest import EFFORT, all_on_cheapest
from fairopt.methods.gang_assignment.deviations import Deviations, loss_of, solve_deviations
from fairopt.methods.gang_assignment.dynamic_program import solve_by_states
from fairopt.methods.gang_assignment.groups import (
    EVERYTHING,
    IDLE,
    SAMPLE,
    SUMMED,
    Groups,
    Priced,
    grain_of,
    safe_value,
    size,
)
from fairopt.methods.gang_assignment.problem import GangAssignment, most_busy
from fairopt.methods.result import StageClock
from fairopt.program import INFINITY, Array

_log = logging.getLogger(__name__)

#: About so many deviations are looked at first, where ties alone may do, and second, which mostly finds a point near
#: the best one; a proof with up to so many, third, is tried at once.
TIES, INTEGER, AT_ONCE = 8, 70, 1000
#: `OPTIMAL` without a gap: the bounds differ by at most this part of the chosen costs' sizes and of the loss against
#: the dual, added up, and by the rounding errors that were subtracted from the lower one.
TOLERANCE = 1e-9
#: The soft dual: each temperature is this part of the last, with so many Newton steps at most, so many narrowings.
COOLING, STEPS, NARROWINGS = 4.0, 6, 6
#: Narrowing looks at no more deviations than this, and ends where fewer jobs than that are at the wrong type.
MOST_UNDECIDED, CLOSE = 16 * SAMPLE, 30
#: Deviations in the first linear program, and how many times more are in the next where these are too few.
LINEAR, GROWTH = 600, 4
#: A start is tried where at most about so many groups are at the wrong type with it, with so many linear programs.
NEAR, TRIALS = 100, 2
#: Duals are optimal where no better ones are in sight by this part of the dual's terms.
NEGLIGIBLE = 1e-11


def solve_gangs(
    problem: GangAssignment,
    *,
    start: Mapping[str, Array] | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
) -> Solution:
    """Return an assignment of least cost, the value "type_of" (n,), -1 for waiting, and the proof of it as a bound.

    The duals "capacity" (k,), from 0 down, and "work_conserving", a reward from 0 up, are those of `GangAssignment`'s
    program, and the `Solution.warm_start`. ``start``: that of the last round; it is dropped where it is far off, and
    never changes the cost. ``gap``: relative gap that counts as solved. ``time_limit``: seconds; the best assignment so
    far comes back with `Status.LIMIT`. HiGHS, where it is needed, gets what is left and overruns it, as it looks at the
    clock between its own steps only. `Status.INFEASIBLE`: ``least`` is more than can be kept busy, and the effort
    "usable" says how much can. `Status.OPTIMAL` with gap 0: upper - lower <= 1e-9 (sum of |cost| of the jobs that run,
    where they run, + upper - dual bound) + rounding of the dual's sums (2^-50 of their terms' sizes). The bound holds
    in floats: rounding is subtracted from the dual's part, and from the deviations' part the tolerance of the program
    that decided them. Effort: "groups" of identical jobs; "linear" programs for the duals, "integer" ones for the
    deviations (0 where dynamic programming proved it); "columns" and "nodes" of the last of these; "dual_bound" before
    them; all 0 where each job must run, and finds room on the type where it is cheapest. Errors: `BadInput`.

    >>> free = np.ones((2, 2), dtype=bool)
    >>> problem = GangAssignment(np.array([[1.0, 3], [2, 2]]), np.array([1, 2]), np.array([2, 2]), 3, free)
    >>> found = solve_gangs(problem)
    >>> found.values["type_of"].tolist(), found.upper
    ([0, 1], 3.0)
    """
    if not gap >= 0 or (time_limit is not None and not time_limit >= 0):
        raise BadInput(f"got gap {gap}, time_limit {time_limit}", place="options", remedy="Give numbers from 0")
    if start is not None and start["capacity"].shape != problem.capacity.shape:
        remedy = f"Give one price a type: {len(problem.capacity)}"
        raise BadInput(f"{len(start['capacity'])} prices", place="start", remedy=remedy)
    clock = StageClock(time_limit)
    known = problem.cost, problem.gangs, problem.capacity, problem.allowed, problem.least
    if (found := all_on_cheapest(*known)) is not None:
        return clock.stamped(_assigned(Status.OPTIMAL, *found))
    classes = problem.classes()
    tight = problem.tightened(classes)
    try:
        usable = most_busy(classes, tight.capacity, clock.left, tight.least)
    except NotSolved as failure:  # the time limit has passed: the status says so
        _log.info("no assignment: %s", failure)
        return Solution(Status.LIMIT, str(failure), "auto")
    if usable < tight.least:
        word = f"no assignment keeps enough GPUs busy: at most {usable} can be"
        return Solution(Status.INFEASIBLE, word, "auto", effort={"usable": float(usable)})
    groups = tight.groups()
    clock.lap("build")
    if not len(groups.jobs):
        nobody = np.full(len(problem.gangs), IDLE)
        free = {"capacity": np.zeros(len(problem.capacity)), "work_conserving": np.array(0.0)}
        return clock.stamped(_assigned(Status.OPTIMAL, nobody, 0.0, 0.0, free, dict.fromkeys(EFFORT, 0.0)))
    priced, linear = best_duals(groups, start, clock)
    search = _Search(problem, priced, gap, clock)
    search.effort |= {"groups": float(len(groups.first) - 1), "linear": float(linear)}
    return search.run()


def _assigned(
    status: Status,
    type_of: Array | None,
    lower: float,
    upper: float,
    duals: dict[str, Array],
    effort: Mapping[str, float],
) -> Solution:
    """Return the solution of a round; ``type_of`` is None where no assignment was found."""
    known: dict[str, Any] = (
        {} if type_of is None else {"objective": upper, "upper": upper, "values": {"type_of": type_of}}
    )
    bound = None if lower == -INFINITY else lower
    return Solution(
        status, status.value, "auto", bound=bound, lower=bound, duals=duals, effort=effort, warm_start=duals, **known
    )


class _Search:
    """The search for the best deviations from what the duals choose: more and more of them, until none is missing."""

    def __init__(self, problem: GangAssignment, priced: Priced, gap: float, clock: StageClock) -> None:
        self.problem, self.priced, self.gap, self.clock = problem, priced, gap, clock
        groups = priced.groups
        self.grain = grain_of(groups.cost)
        self.dual = self.bound = safe_value(priced)
        self.cost = np.inf
        self.type_of: Array | None = None
        #: The deviations looked at last, and the best moves known of some earlier ones.
        self._count, self._limited = 0, False
        self._moved: tuple[Deviations, Array] | None = None
        # the error of one regret, counted as in `safe_value`
        largest = float(np.abs(priced.duals).max()) * float(groups.size.max())
        self._blur = SUMMED * (largest + float(np.abs(priced.reduced).max()))
        self.effort = {"integer": 0.0, "columns": 0.0, "nodes": 0.0, "dual_bound": self.dual}

    def run(self) -> Solution:
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
        duals = _multipliers(self.priced)
        bound = min(self.bound, self.cost)
        return self.clock.stamped(_assigned(status, self.type_of, bound, self.cost, duals, self.effort))

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
        self.effort |= {"columns": float(len(deviations)), "nodes": answer.effort["nodes"]}
        if answer.x is not None:
            self._moved = deviations, answer.x
            cost, type_of = self._assignment(deviations, answer.x)
            if cost < self.cost:
                self.cost, self.type_of = cost, type_of
        # a deviation beyond the limit loses at least that
        loss = min(_bound_of(answer), limit * (1 - SUMMED) - self._blur)
        self.bound = max(self.bound, _whole(self.dual + loss, self.grain))

    def _assignment(self, deviations: Deviations, moved: Array) -> tuple[float, Array]:
        """Return the cost of the assignment that moves make, and each job's type."""
        at = np.flatnonzero(moved)
        moves = deviations.group[at], deviations.to[at], moved[at]
        type_of = self.priced.groups.type_of(len(self.problem.gangs), self.priced.base, moves)
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


def _best_moves(deviations: Deviations, start: Array | None, slack: float, clock: StageClock) -> tuple[Solution, int]:
    """Return the best moves, and the integer programs that took: none where `solve_by_states` proves it."""
    states = solve_by_states(deviations, start=start, slack=slack, time_limit=clock.left)
    if states is not None:
        if states.status is not Status.LIMIT or clock.over:
            return states, 0
        start = states.x
    answer = solve_deviations(deviations, integer=True, start=start, slack=slack, time_limit=clock.left)
    loss = np.inf if start is None else float(start @ deviations.regret)
    if loss < loss_of(answer):
        answer = replace(answer, x=start, objective=loss)
    known = max(_bound_of(answer), _bound_of(states) if states else 0.0)
    return replace(answer, bound=min(known, loss_of(answer))), 1


def _bound_of(moves: Solution) -> float:
    assert moves.bound is not None
    return float(moves.bound)


def _whole(bound: float, grain: float) -> float:
    """Return the least cost from ``bound`` on that is a multiple of ``grain``."""
    return math.ceil(bound / grain * (1 - math.copysign(SUMMED, bound))) * grain if grain else bound


def _multipliers(priced: Priced) -> dict[str, Array]:
    """Return the duals as those of the program's rows."""
    groups, level = priced.groups, float(priced.duals.max())
    if groups.waiting:
        return {"capacity": priced.duals - max(0.0, level), "work_conserving": np.array(max(0.0, level))}
    # nobody waits: the prices are relative, and the reward is what makes every job's best choice worth it
    reward = max(0.0, float((priced.reduced / groups.size).max()) + level)
    return {"capacity": priced.duals - level, "work_conserving": np.array(reward)}


def best_duals(groups: Groups, start: Mapping[str, Array] | None, clock: StageClock) -> tuple[Priced, int]:
    """Return the groups priced at optimal duals, near ``start`` if few are off there, and how many programs it took."""
    types = len(groups.capacity)
    if len(groups.gang) * (types + 1) <= LINEAR:  # one linear program has all deviations, from any duals
        return exact_duals(groups, Priced.at(groups, np.zeros(types)), clock)[:2]
    programs = 0
    if start is not None:
        trial = Priced.at(groups, start["work_conserving"] + start["capacity"])
        if trial.off <= NEAR and math.isfinite(trial.value):
            priced, programs, exact = exact_duals(groups, trial, clock, most=TRIALS)
            if exact:
                return priced, programs
    duals = smooth_duals(groups)
    priced, more, _ = exact_duals(groups, Priced.at(groups, duals), clock)
    return priced, programs + more


def exact_duals(groups: Groups, priced: Priced, clock: StageClock, most: int = 99) -> tuple[Priced, int, bool]:
    """Return the groups priced at better duals, how many linear programs that took, and whether they are optimal.

    Each knows the deviations near the duals only; where these are worse for groups left out, the next one knows more.
    """
    programs, done = 0, False
    columns = max(LINEAR, int(4 * priced.off))
    while not (clock.over or done or programs == most):
        limit = priced.limit_for(columns)
        answer = solve_deviations(Deviations.within(priced, limit), integer=False, time_limit=clock.left)
        programs += 1
        if answer.dual is not None:
            better = Priced.at(groups, priced.duals + answer.dual)
            reached = priced.value + loss_of(answer)
            done = better.value >= reached - NEGLIGIBLE * size(better)
            if better.value > priced.value:
                priced = better
        done = done or limit == EVERYTHING
        columns *= GROWTH
    return priced, programs, done


def smooth_duals(groups: Groups) -> Array:
    """Return near-optimal duals (k,), by Newton's method on the dual with soft minima, made harder step by step.

    Each job spreads over types as in a logit model of some temperature; duals at which demand meets capacity maximise a
    concave function of k variables. Where there are many groups, a sample comes first, and then those undecided.
    """
    jobs = len(groups.gang)
    step = max(1, jobs // SAMPLE)
    some = np.unique(np.append(np.arange(0, jobs, step), jobs - 1))  # the last group may stand for idle GPUs
    weight = groups.weight[some]
    if step > 1:
        weight[:-1] *= (groups.weight.sum() - weight[-1]) / weight[:-1].sum()
    unit = groups.cost[:, some] / groups.size[some]
    duals, scale = _first_guess(unit, weight, float(groups.capacity.sum()), groups.waiting)
    duals = _newton(unit, weight, groups.capacity.astype(float), duals, groups.waiting, scale / COOLING ** np.arange(5))
    if step == 1:
        return duals
    priced, columns = Priced.at(groups, duals), SAMPLE
    for _ in range(NARROWINGS):
        # those that are looked at must be able to make up for what is asked too much or too little
        columns = min(max(columns, int(8 * priced.off)), MOST_UNDECIDED)
        limit = priced.limit_for(columns)
        undecided = np.unique(priced.near(limit)[0])
        if limit == EVERYTHING or not len(undecided):
            break
        base, weight = priced.base[undecided], groups.weight[undecided]
        demand = np.bincount(base, weights=weight, minlength=len(groups.capacity) + 1)[:-1]
        target = groups.capacity - (priced.demand - demand)
        unit = groups.cost[:, undecided] / groups.size[undecided]
        heat = limit / float(np.median(groups.size[undecided])) / COOLING ** np.arange(1, 4)
        duals = _newton(unit, weight, target, priced.duals, groups.waiting, heat)
        better = Priced.at(groups, duals)
        if better.value > priced.value:
            priced, columns = better, SAMPLE
            if better.off < CLOSE:
                break
        elif columns == MOST_UNDECIDED:
            break
        else:
            columns *= 4
    return priced.duals


def _first_guess(unit: Array, weight: Array, wanted: float, waiting: bool) -> tuple[Array, float]:
    """Return one dual for all types at which about ``wanted`` GPUs are asked for, and how far apart costs are there."""
    types = len(unit)
    best = unit.min(axis=0)
    order = np.argsort(best)
    asked = np.cumsum(weight[order])
    low, middle, high = best[order][np.minimum(np.searchsorted(asked, wanted * np.array([0.5, 1, 1.5])), len(best) - 1)]
    scale = float(high - low) / 2
    if not waiting or scale <= 0:
        finite = unit[np.isfinite(unit)]
        scale = float(np.percentile(finite, 75) - np.percentile(finite, 25)) or float(np.abs(finite).mean()) or 1.0
    return np.full(types, middle if waiting else 0.0), scale


def _newton(unit: Array, weight: Array, target: Array, duals: Array, waiting: bool, heats: Array) -> Array:
    """Return duals (k,) of the largest soft dual; ``unit`` (k, s) cost a GPU, ``weight`` (s,) GPUs, ``target`` (k,)."""
    enough = 1e-3 * float(np.abs(target).sum()) + 0.5
    for heat in heats.tolist():
        value, spread, demand = _soft(unit, weight, target, duals, waiting, heat)
        for _ in range(STEPS):
            slope = target - demand
            if np.abs(slope).sum() < enough:
                break
            bend = (np.diag(demand) - (spread * weight) @ spread.T) / heat
            ridge = (1e-6 * float(np.trace(bend)) + 1e-9 * float(weight.sum()) / heat) / len(duals)
            step = np.linalg.solve(bend + ridge * np.eye(len(duals)), slope)
            step *= min(1.0, 8 * heat / max(float(np.abs(step).max()), 1e-300))
            length = 1.0
            while length > 1e-3:
                trial = _soft(unit, weight, target, duals + length * step, waiting, heat)
                if trial[0] >= value + 1e-4 * length * float(slope @ step):
                    break
                length /= 4
            else:
                break
            duals = duals + length * step
            value, spread, demand = trial
    return duals


def _soft(
    unit: Array, weight: Array, target: Array, duals: Array, waiting: bool, heat: float
) -> tuple[float, Array, Array]:
    """Return the soft dual's value, each job's spread over types (k, s), and the demand (k,)."""
    gain = (duals[:, None] - unit) / heat
    top = gain.max(axis=0)
    if waiting:
        np.maximum(top, 0.0, out=top)
    gain -= top
    spread = np.exp(gain, out=gain)
    total = spread.sum(axis=0)
    if waiting:
        total += np.exp(-top)
    spread /= total
    return float(duals @ target - heat * (weight @ (top + np.log(total)))), spread, spread @ weight
