"""An algorithm of our own for FFT's program of one round, proven optimal on every solve.

Wages (one a type) from the dual leave nearly every job one best choice; a linear program over the few jobs that are
close makes the wages exact; a core of the jobs whose regret is less than the remaining gap decides the rest, by dynamic
programming or, where that has too many states, by an integer program. Who is not in the core cannot deviate without
losing more than the gap, so its optimum is that of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter

import numpy as np

from fairopt.backends.solution import Status
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment.bounds import EVERYTHING, Groups, Priced, smooth_wages
from fairopt.methods.gang_assignment.core import CoreAnswer, Deviations, solve_core, solve_merged
from fairopt.methods.gang_assignment.dynamic_program import solve_labels
from fairopt.methods.gang_assignment.groups import Grouping, grouped
from fairopt.methods.gang_assignment.problem import Effort, GangAssignment, GangSolution, Multipliers
from fairopt.methods.gang_assignment.usable_gpus import GangClasses, greedy_filling, most_busy
from fairopt.program import Array

#: Deviations in the first linear program; the linear and integer ones grow so many times where that is too few.
LINEAR, GROWTH = 600, 4
#: Deviations in the first core, where ties alone may do, and in the second, which finds a point near the best mostly.
TIES, INTEGER = 8, 70
#: Old wages are a start where about so many groups at most are at the wrong type with them, for so many programs.
NEAR, TRIALS = 100, 2
#: A proof with up to so many deviations is tried at once.
AT_ONCE = 1000
#: `OPTIMAL` without a gap: objective and bound differ by at most this part of the chosen costs' sizes and of the loss
#: against the dual, added up, and by the rounding errors that were subtracted from the bound.
TOLERANCE = 1e-9
#: A float operation errs by 2^-53 of its result; the sums below have a handful for each term.
ROUNDING = 2.0**-50


def solve_gangs(
    problem: GangAssignment,
    *,
    start: Multipliers | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
) -> GangSolution:
    """Return an assignment of least cost, and the proof of it as a bound.

    ``start``: multipliers to begin with, those of the last round; they are dropped where they are far off, and never
    change the cost. ``gap``: relative gap that counts as solved. ``time_limit``: seconds; the best assignment so far
    comes back with `Status.LIMIT`. HiGHS, where it is needed, gets what is left and overruns it, as it looks at the
    clock between its own steps only. `Status.INFEASIBLE`: ``least`` is more than can be kept busy, and ``usable`` says
    how much can. `Status.OPTIMAL` with gap 0: objective - bound <= 1e-9 (sum of |cost| of who runs, where it runs, +
    objective - dual bound) + rounding of the dual's sums (2^-50 of their terms' sizes). The bound holds in floats:
    rounding is subtracted from the dual's part, and the tolerance of whatever decided the core from the core's.
    Errors: `BadInput` for options.
    """
    if not gap >= 0 or (time_limit is not None and not time_limit >= 0):
        raise BadInput(f"got gap {gap}, time_limit {time_limit}", place="options", remedy="Give numbers from 0")
    if start is not None and start.price.shape != problem.capacity.shape:
        remedy = f"Give one price a type: {len(problem.capacity)}"
        raise BadInput(f"{len(start.price)} prices", place="start", remedy=remedy)
    clock = Clock(perf_counter(), time_limit)
    classes = problem.classes()
    tight = problem.tightened(classes)
    try:
        usable = _usable(classes, tight, clock)
    except NotSolved:
        return GangSolution(Status.LIMIT)
    if usable < tight.least:
        return GangSolution(Status.INFEASIBLE, usable=usable)
    grouping = grouped(tight)
    if not len(grouping.jobs):
        nobody = np.full(len(problem.gangs), -1)
        return GangSolution(Status.OPTIMAL, nobody, 0.0, 0.0, Multipliers(np.zeros(len(problem.capacity)), 0.0))
    clock.lap("preparing")
    priced, linear = _wages(grouping.groups, start, clock)
    clock.lap("linear")
    effort = Effort(len(grouping.first) - 1, linear, dual_bound=proven(priced))
    solution = _decide(problem, grouping, priced, gap, clock, effort)
    clock.lap("integer")
    return solution


@dataclass
class Clock:
    """The time since the start, by stage, and what is left of a limit, in seconds."""

    began: float
    limit: float | None

    def __post_init__(self) -> None:
        self.last = self.began
        self.stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Note the time since the last lap as that of ``stage``."""
        now = perf_counter()
        self.stages[stage], self.last = now - self.last, now

    @property
    def left(self) -> float | None:
        """What is left of the limit, None where there is none."""
        return None if self.limit is None else max(0.0, self.limit - (perf_counter() - self.began))

    @property
    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.left == 0.0


def _usable(classes: GangClasses, tight: GangAssignment, clock: Clock) -> int:
    """Return the most GPUs that can be busy, or less where that is enough already."""
    enough = max(greedy_filling(classes, tight.capacity, freedom) for freedom in (False, True))
    return enough if enough >= tight.least else most_busy(classes, tight.capacity, clock.left)


def _wages(groups: Groups, start: Multipliers | None, clock: Clock) -> tuple[Priced, int]:
    """Return the groups at wages that maximise the dual, and how many linear programs that took.

    Old multipliers are tried where few jobs are at the wrong type with them; if that does not do, they are dropped.
    """
    types = len(groups.capacity)
    if len(groups.gang) * (types + 1) <= LINEAR:  # one linear program has all deviations, from any wages
        return exact_wages(groups, Priced.at(groups, np.zeros(types)), clock)[:2]
    programs = 0
    if start is not None:
        trial = Priced.at(groups, start.reward - start.price)
        if trial.off <= NEAR and math.isfinite(trial.value):
            priced, programs, exact = exact_wages(groups, trial, clock, most=TRIALS)
            if exact:
                return priced, programs
    wages = smooth_wages(groups)
    clock.lap("smoothing")
    priced, more, _ = exact_wages(groups, Priced.at(groups, wages), clock)
    return priced, programs + more


def exact_wages(groups: Groups, priced: Priced, clock: Clock, most: int = 99) -> tuple[Priced, int, bool]:
    """Return the groups at wages that maximise the dual, how many linear programs that took, and whether they do.

    Each one knows the deviations near the present wages only; where its wages turn out worse for the groups that it
    does not know, the next one knows more.
    """
    programs, done = 0, False
    columns = max(LINEAR, int(4 * priced.off))
    while not (clock.over or done or programs == most):
        limit = priced.limit_for(columns)
        answer = solve_core(Deviations.within(priced, limit), integer=False, time_limit=clock.left)
        programs += 1
        if answer.wages is not None:
            better = Priced.at(groups, priced.wages + answer.wages)
            reached = priced.value + answer.loss
            done = better.value >= reached - TOLERANCE * 0.01 * size(better)
            if better.value > priced.value:
                priced = better
        done = done or limit == EVERYTHING
        columns *= GROWTH
    return priced, programs, done


def size(priced: Priced) -> float:
    """Return the sum of the sizes of the dual's terms, in the unit of cost: what tolerances refer to."""
    return float(np.abs(priced.wages) @ priced.groups.capacity + np.abs(priced.reduced) @ priced.groups.count)


def proven(priced: Priced) -> float:
    """Return the dual's value less all that rounding can have added to it."""
    groups = priced.groups
    chosen = np.flatnonzero(priced.reduced)
    terms = (priced.reduced[chosen] * groups.count[chosen]).tolist() + (priced.wages * groups.capacity).tolist()
    asked = float(np.abs(priced.wages).max()) * float(groups.weight.sum())
    return math.fsum(terms) - ROUNDING * (asked + size(priced))


def _decide(
    problem: GangAssignment, grouping: Grouping, priced: Priced, gap: float, clock: Clock, effort: Effort
) -> GangSolution:
    groups, dual, grain = grouping.groups, effort.dual_bound, _grain(grouping.groups)
    limit = priced.limit_for(TIES)
    best: tuple[float, Array] | None = None
    bound, columns = dual, INTEGER // GROWTH
    # the error of one regret, as `proven` counts it
    blur = ROUNDING * (
        float(np.abs(priced.wages).max()) * float(groups.size.max()) + float(np.abs(priced.reduced).max())
    )
    noise = abs(priced.value - dual) + 2 * blur
    status, moved = Status.LIMIT, None
    while not clock.over:
        deviations = Deviations.within(priced, limit)
        start = None if moved is None else deviations.again(*moved)
        slack = max(0.999 * grain, gap * abs(dual))
        answer, programs = _core(deviations, start, slack, clock)
        effort = effort.plus(integer=effort.integer + programs, columns=len(deviations), nodes=answer.nodes)
        if answer.moved is not None:
            point = _point(problem, grouping, deviations, answer)
            best = point if best is None or point[0] < best[0] else best
            moved = deviations, answer.moved
        # whoever deviates by more than the limit loses at least that
        bound = max(bound, _whole(dual + min(answer.bound, limit * (1 - ROUNDING) - blur), grain))
        if best is not None and best[0] - bound <= max(_tolerance(problem, best, dual, noise), gap * abs(best[0])):
            status = Status.OPTIMAL
            break
        # only who deviates by less than this can be in something better; a better point first, where those are many
        needed = EVERYTHING if best is None else max(0.0, best[0] - dual - 0.999 * grain)
        columns = max(columns, len(deviations)) * GROWTH
        wider = (
            EVERYTHING
            if limit >= needed
            else priced.limit_for(max(columns, AT_ONCE) if columns > 2 * INTEGER else columns)
        )
        if best is None and limit < EVERYTHING:
            limit = priced.limit_for(columns)
        elif best is not None and limit != min(needed, wider):
            limit = min(needed, wider)
        else:
            status = Status.LIMIT if answer.status is Status.LIMIT else Status.INACCURATE
            break
    effort = effort.plus(seconds=clock.stages)
    multipliers = _multipliers(priced)
    if best is None:
        return GangSolution(status, None, None, bound, multipliers, effort=effort)
    return GangSolution(status, best[1], best[0], min(bound, best[0]), multipliers, effort=effort)


def _core(deviations: Deviations, start: Array | None, slack: float, clock: Clock) -> tuple[CoreAnswer, int]:
    """Return how the core ended, and the integer programs that took: none where `solve_labels` proves it."""
    states = solve_labels(deviations, start=start, slack=slack, time_limit=clock.left)
    if states is not None:
        if states.status is not Status.LIMIT or clock.over:
            return states, 0
        start = states.moved
    answer = solve_merged(deviations, start=start, slack=slack, time_limit=clock.left)
    loss = np.inf if start is None else float(start @ deviations.regret)
    if loss < answer.loss:
        answer = replace(answer, moved=start, loss=loss)
    return replace(answer, bound=min(max(answer.bound, states.bound if states else 0.0), answer.loss)), 1


def _tolerance(problem: GangAssignment, best: tuple[float, Array], dual: float, noise: float) -> float:
    """Return how far objective and bound may lie apart in an optimum."""
    runs = np.flatnonzero(best[1] >= 0)
    chosen = float(np.abs(problem.cost[runs, best[1][runs]]).sum())
    return TOLERANCE * (chosen + abs(best[0] - dual)) + 2 * noise


def _point(
    problem: GangAssignment, grouping: Grouping, deviations: Deviations, answer: CoreAnswer
) -> tuple[float, Array]:
    """Return the assignment that the core's moves make, and its cost."""
    assert answer.moved is not None
    at = np.flatnonzero(answer.moved)
    moves = deviations.group[at], deviations.to[at], answer.moved[at]
    type_of = grouping.type_of(len(problem.gangs), deviations.priced.base, moves)
    runs = np.flatnonzero(type_of >= 0)
    return math.fsum(problem.cost[runs, type_of[runs]].tolist()), type_of


def _grain(groups: Groups) -> float:
    """Return a number that all costs are whole multiples of, 0 where they are not whole."""
    finite = groups.cost[:, :64][np.isfinite(groups.cost[:, :64])]
    if (finite != np.rint(finite)).any():
        return 0.0
    finite = groups.cost[np.isfinite(groups.cost)]
    if (finite != np.rint(finite)).any() or np.abs(finite).max(initial=0.0) >= 2.0**53:
        return 0.0
    return float(np.gcd.reduce(np.abs(finite).astype(np.int64)))


def _whole(bound: float, grain: float) -> float:
    """Return the least cost from ``bound`` on that is a multiple of ``grain``."""
    return math.ceil(bound / grain * (1 - math.copysign(ROUNDING, bound))) * grain if grain else bound


def _multipliers(priced: Priced) -> Multipliers:
    """Return the wages as prices and a reward."""
    groups, wages = priced.groups, priced.wages
    reward = max(0.0, float(wages.max()))
    if not groups.waiting:
        # nobody waits: the prices are relative, and the reward is what makes every job's best choice worth it
        level = float(wages.max())
        reward = max(0.0, float((priced.reduced / groups.size).max()) + level)
        return Multipliers(level - wages, reward)
    return Multipliers(reward - wages, reward)


def exact_bound(problem: GangAssignment, multipliers: Multipliers) -> Fraction:
    """Return the Lagrangian bound of some multipliers, every float taken as the rational number that it is.

    No assignment costs less, whatever the multipliers (negative ones count as 0). Capacities and the least are
    tightened first, which is whole-number reasoning. It reads every allowed cost as a Fraction: a second for 100,000.

    Source: Lagrangian relaxation of FFT (2025), Eq. (1) and (7).
    """
    tight = problem.tightened(problem.classes())
    price = [max(Fraction(0), Fraction(float(each))) for each in multipliers.price]
    reward = max(Fraction(0), Fraction(float(multipliers.reward)))
    capacity = [int(each) for each in tight.capacity]
    total = reward * tight.least - sum((p * most for p, most in zip(price, capacity, strict=True)), Fraction(0))
    for job, gang in enumerate(tight.gangs.tolist()):
        own = np.flatnonzero(tight.allowed[job]).tolist()
        total += min([Fraction(0), *(Fraction(float(tight.cost[job, i])) + (price[i] - reward) * gang for i in own)])
    return total
