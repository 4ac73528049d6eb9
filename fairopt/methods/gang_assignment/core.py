"""The core: how best to deviate from what the wages choose, as a program of k rows and few columns.

With every group at its choice, types are over- or underfilled by ``residual`` GPUs. A deviation moves one job of a
group to another type (or to waiting) and costs its regret; deviations must bring each type to its capacity exactly.
Their cost is what is lost against the dual bound: the linear program improves the wages, the integer one decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.backends.highs import instance, outcome_of
from fairopt.backends.solution import Status
from fairopt.backends.solver import Options
from fairopt.methods.gang_assignment.bounds import Priced
from fairopt.program import Array

#: The largest regret is this to HiGHS, so that its absolute tolerances (1e-6, 1e-7) are small parts of the loss.
UNIT = 1e5
#: Regrets that differ by less than this part of the largest are taken for tied, as costs in floats are.
SAME = 1e-12
#: A regret that is no more than this is none: its reciprocal is no float.
TINY = 1e-290
#: What HiGHS may leave out by its tolerances, in units where the largest regret is `UNIT`.
SLACK = 4e-6
#: Up to so many deviations the cuts at the root decide most cores; what prepares a long search costs more than it saves
#: (8 rounds of 4,000 jobs: 1.2 s with all of it, 0.5 s without).
SMALL = 600
AT_ONCE: dict[str, bool | str | float] = {
    "presolve": "off",
    "mip_allow_restart": False,
    "mip_detect_symmetry": False,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}


@dataclass(frozen=True, eq=False)
class Deviations:
    """Some deviations from a pricing: one entry each of ``group``, ``to`` (a type; k: waiting) and ``regret``."""

    priced: Priced
    group: Array
    to: Array
    regret: Array
    limit: float

    @classmethod
    def within(cls, priced: Priced, limit: float) -> Deviations:
        """Return all deviations whose regret is at most ``limit``."""
        group, to, regret = priced.near(limit)
        return cls(priced, group, to, regret, limit)

    @property
    def residual(self) -> Array:
        """The GPUs of each type that the choices leave free (negative: that they ask too many); shape (k,)."""
        return self.priced.groups.capacity - np.rint(self.priced.demand).astype(np.int64)

    @property
    def largest(self) -> float:
        """The largest regret, 0 where there are no deviations."""
        return float(self.regret.max(initial=0.0))

    def again(self, before: Deviations, moved: Array) -> Array | None:
        """Return other deviations' ``moved`` jobs in the order of these, None where one of them is not among these."""
        types = len(self.priced.wages) + 1
        keys, old = self.group * types + self.to, before.group * types + before.to
        order = np.argsort(keys)
        at = np.flatnonzero(moved)
        place = order[np.searchsorted(keys, old[at], sorter=order).clip(max=len(keys) - 1)]
        if not (keys[place] == old[at]).all():
            return None
        again = np.zeros(len(keys), dtype=np.int64)
        again[place] = moved[at]
        return again

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, eq=False)
class CoreAnswer:
    """How the core ended: ``moved`` jobs of each deviation, their cost ``loss``, a proven ``bound`` on it.

    ``wages``: how much the linear program would change each wage. ``nodes`` of branch and bound.
    """

    status: Status
    moved: Array | None
    loss: float
    bound: float
    wages: Array | None = None
    nodes: int = 0


def solve_core(
    deviations: Deviations,
    *,
    integer: bool,
    start: Array | None = None,
    slack: float = 0.0,
    time_limit: float | None = None,
    jobs: Array | None = None,
) -> CoreAnswer:
    """Solve the core with HiGHS: the loss is least among ``deviations``, to less than ``slack`` + what floats leave.

    ``start``: moved jobs that satisfy the rows, in the order of the deviations. ``jobs``: how many each group has,
    where it stands for others too.
    """
    import highspy

    residual = deviations.residual
    count, types = len(deviations), len(residual)
    if not residual.any():
        return CoreAnswer(Status.OPTIMAL, np.zeros(count, dtype=np.int64), 0.0, 0.0, np.zeros(types))
    if not count:
        return CoreAnswer(Status.INFEASIBLE, None, np.inf, np.inf)
    jobs = deviations.priced.groups.count if jobs is None else jobs
    base = deviations.priced.base[deviations.group]
    gang, most = deviations.priced.groups.size[deviations.group], jobs[deviations.group]
    column = np.arange(count)
    into, out = deviations.to < types, base < types
    # a group with several deviations has only so many jobs; one deviation alone is held by its bound
    owner, own, times = np.unique(deviations.group, return_inverse=True, return_counts=True)
    crowded = times > 1
    row_of = np.cumsum(crowded) - 1 + types
    shared = crowded[own]
    row = np.concatenate([deviations.to[into], base[out].astype(np.int64), row_of[own][shared]])
    place = np.concatenate([column[into], column[out], column[shared]])
    value = np.concatenate([gang[into], -gang[out], np.ones(int(shared.sum()))])
    order = np.lexsort((place, row))
    row, place, value = row[order], place[order], value[order]
    rows = types + int(crowded.sum())
    lower = np.concatenate([residual, np.full(rows - types, -np.inf)]).astype(float)
    upper = np.concatenate([residual, jobs[owner[crowded]]]).astype(float)
    largest = deviations.largest
    unit = UNIT / largest if largest > TINY else 1.0
    highs = instance(Options(time_limit=time_limit))
    settings: dict[str, bool | str | float] = {
        "mip_rel_gap": 0.0,
        "mip_abs_gap": max(slack * unit, 1e-9),
        "parallel": "off",
    }
    if not integer or count <= SMALL:
        settings |= AT_ONCE
    for name, given in settings.items():
        highs.setOptionValue(name, given)
    highs.passModel(
        count, rows, len(value), 2, 1, 0.0,
        deviations.regret * unit, np.zeros(count), most.astype(float), lower, upper,
        np.searchsorted(row, np.arange(rows)).astype(np.int32), place.astype(np.int32), value,
        np.full(count, int(integer), dtype=np.int32),
    )  # fmt: skip
    if start is not None and integer:
        given_start = highspy.HighsSolution()
        given_start.col_value = start.astype(float).tolist()
        highs.setSolution(given_start)
    highs.run()
    info = highs.getInfo()
    status = outcome_of(highs.getModelStatus().name, info.primal_solution_status == 2)
    found = np.array(highs.getSolution().col_value) if info.primal_solution_status == 2 else None
    if not integer:
        wages = np.array(highs.getSolution().row_dual)[:types] / unit if status is Status.OPTIMAL else None
        loss = float(found @ deviations.regret) if found is not None else np.inf
        return CoreAnswer(status, found, loss, loss, wages)
    bound = (float(info.mip_dual_bound) - SLACK) / unit if np.isfinite(info.mip_dual_bound) else 0.0
    moved = None if found is None else np.rint(found).astype(np.int64)
    if moved is None or not _holds(moved, row, place, value, lower, upper, most):
        return CoreAnswer(status if moved is None else Status.INACCURATE, None, np.inf, max(bound, 0.0))
    loss = float(moved @ deviations.regret)
    return CoreAnswer(status, moved, loss, min(max(bound, 0.0), loss), nodes=int(info.mip_node_count))


def solve_merged(
    deviations: Deviations, *, start: Array | None = None, slack: float = 0.0, time_limit: float | None = None
) -> CoreAnswer:
    """Solve the integer core with groups that deviate alike as one, where the core is large; else as `solve_core`.

    Tied costs make many of these. A merged deviation costs the least of its regrets, so that the bound stays one.
    """
    if len(deviations) <= SMALL:
        return solve_core(deviations, integer=True, start=start, slack=slack, time_limit=time_limit)
    merged, jobs, column = merged_alike(deviations)
    begin = None if start is None else np.bincount(column, weights=start, minlength=len(merged)).astype(np.int64)
    answer = solve_core(merged, integer=True, start=begin, slack=slack, time_limit=time_limit, jobs=jobs)
    if answer.moved is None:
        return answer
    return replace(answer, moved=spread_out(deviations, answer.moved, column))


def merged_alike(deviations: Deviations) -> tuple[Deviations, Array, Array]:
    """Return one group's deviations for all groups of the same gang, choice and regrets.

    And the number of jobs by group, with the others' added to that one's; and the place of each deviation's merged one.
    """
    priced, to, types = deviations.priced, deviations.to, len(deviations.priced.wages)
    owner, own = np.unique(deviations.group, return_inverse=True)
    table = np.full((len(owner), types + 3), -1.0)
    table[own, to] = np.rint(deviations.regret / ((deviations.largest or 1.0) * SAME))
    table[:, -2], table[:, -1] = priced.base[owner], priced.groups.size[owner]
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    kind = kind.ravel()
    jobs = priced.groups.count.copy()
    jobs[owner[first]] = np.bincount(kind, weights=priced.groups.count[owner])
    keys, column = np.unique(kind[own] * (types + 1) + to, return_inverse=True)
    regret = np.full(len(keys), np.inf)
    np.minimum.at(regret, column, deviations.regret)
    few = Deviations(priced, owner[first][keys // (types + 1)], keys % (types + 1), regret, deviations.limit)
    return few, jobs, column


def spread_out(deviations: Deviations, moved: Array, column: Array) -> Array:
    """Return the moved jobs of merged deviations as jobs of the groups that they stand for."""
    order = np.argsort(column, kind="stable")
    first = np.searchsorted(column[order], np.arange(len(moved) + 1))
    spread, left = np.zeros(len(deviations), dtype=np.int64), dict[int, int]()
    for each in np.flatnonzero(moved).tolist():
        need = int(moved[each])
        for place in order[first[each] : first[each + 1]].tolist():
            group = int(deviations.group[place])
            room = left.get(group, int(deviations.priced.groups.count[group]))
            spread[place] = taken = min(room, need)
            left[group], need = room - taken, need - taken
            if not need:
                break
    return spread


def _holds(moved: Array, row: Array, place: Array, value: Array, lower: Array, upper: Array, most: Array) -> bool:
    """Whether whole numbers of moved jobs satisfy the rows; all terms are whole, so the check is exact."""
    activity = np.bincount(row, weights=value * moved[place], minlength=len(lower))
    inside = bool((moved >= 0).all() and (moved <= most).all())
    return inside and bool((activity >= lower).all() and (activity <= upper).all())
