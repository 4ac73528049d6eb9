"""How best to deviate from what the duals choose, as a program of k rows and few columns.

With every group at its choice, types are over- or underfilled by ``residual`` GPUs. A deviation moves one job of a
group to another type (or to waiting) and costs its regret; deviations must bring each type to its capacity exactly.
Their cost is what is lost against the dual bound: the linear program improves the duals, the integer one decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.backends.highs import instance, load, outcome_of
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Options
from fairopt.deadline import left
from fairopt.deadline import time_limit as within
from fairopt.errors import OutOfTime
from fairopt.methods.gang_assignment.groups import Priced
from fairopt.methods.incremental_lp import Blocks
from fairopt.program import INFINITY, Array, Program, Sense

#: The largest regret is this to HiGHS, so that its absolute tolerances (1e-6, 1e-7) are small parts of the loss.
UNIT = 1e5
#: Smaller regrets count as 0, because 1 / regret overflows.
TINY = 1e-290
#: What HiGHS may leave out by its tolerances, in units where the largest regret is `UNIT`.
SLACK = 4e-6
#: Up to so many deviations the cuts at the root decide most programs; what prepares a long search costs more than it
#: saves (8 rounds of 4,000 jobs: 1.2 s with all of it, 0.5 s without).
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

    def translated(self, before: Deviations, moved: Array) -> Array | None:
        """Return other deviations' ``moved`` jobs in the order of these, None where one of them is not among these."""
        types = len(self.priced.duals) + 1
        keys, old = self.group * types + self.to, before.group * types + before.to
        order = np.argsort(keys)
        at = np.flatnonzero(moved)
        place = order[np.searchsorted(keys, old[at], sorter=order).clip(max=len(keys) - 1)]
        if not (keys[place] == old[at]).all():
            return None
        translated = np.zeros(len(keys), dtype=np.int64)
        translated[place] = moved[at]
        return translated

    def __len__(self) -> int:
        return len(self.group)


def best_moves(
    status: Status, moved: Array | None, loss: float, bound: float, dual: Array | None = None, nodes: int = 0
) -> Solution:
    """Return how a program of deviations ended: ``moved`` jobs of each, their cost ``loss``, a proven ``bound`` on it.

    ``dual``: how much the linear program would change each dual of a type. ``nodes`` of branch and bound.
    """
    return Solution(status, status.value, "auto", loss, bound, x=moved, dual=dual, effort={"nodes": float(nodes)})


def loss_of(moves: Solution | None) -> float:
    """Return the cost of moves; infinity where there are none."""
    return INFINITY if moves is None or moves.objective is None else float(moves.objective)


def solve_deviations(
    deviations: Deviations,
    *,
    integer: bool,
    start: Array | None = None,
    slack: float = 0.0,
    time_limit: float | None = None,
) -> Solution:
    """Return the moves of least loss among ``deviations``, by HiGHS, to less than ``slack`` + what floats leave.

    ``start``: moved jobs that satisfy the rows, in the order of the deviations. ``time_limit``: seconds.
    """
    import highspy

    count, types = len(deviations), len(deviations.residual)
    if not deviations.residual.any():
        return best_moves(Status.OPTIMAL, np.zeros(count, dtype=np.int64), 0.0, 0.0, np.zeros(types))
    if not count:
        return best_moves(Status.INFEASIBLE, None, np.inf, np.inf)
    unit = UNIT / deviations.largest if deviations.largest > TINY else 1.0
    program = _program(deviations, unit, integer)
    gap = max(slack * unit, 1e-9)
    settings: dict[str, bool | str | float] = {"mip_rel_gap": 0.0, "mip_abs_gap": gap, "parallel": "off"}
    if not integer or count <= SMALL:
        settings |= AT_ONCE
    if (seconds := left(time_limit)) is not None:
        settings["time_limit"] = seconds
    try:
        with within(time_limit):
            highs = instance(Options(), len(program.rows.value))
            for name, given in settings.items():
                highs.setOptionValue(name, given)
            load(highs, program)
            if start is not None and integer:
                given_start = highspy.HighsSolution()
                given_start.col_value = start.astype(float).tolist()
                highs.setSolution(given_start)
            highs.run()
    except OutOfTime:  # HiGHS was ended amid a step
        left()
        return best_moves(Status.LIMIT, None, np.inf, 0.0)
    info = highs.getInfo()
    status = outcome_of(highs.getModelStatus().name, info.primal_solution_status == 2)
    found = np.array(highs.getSolution().col_value) if info.primal_solution_status == 2 else None
    if not integer:
        duals = np.array(highs.getSolution().row_dual)[:types] / unit if status is Status.OPTIMAL else None
        loss = float(found @ deviations.regret) if found is not None else np.inf
        return best_moves(status, found, loss, loss, duals)
    bound = max((float(info.mip_dual_bound) - SLACK) / unit, 0.0) if np.isfinite(info.mip_dual_bound) else 0.0
    if found is None:
        return best_moves(status, None, np.inf, bound)
    moved = np.rint(found).astype(np.int64)
    if not _holds(program, moved):
        return best_moves(Status.INACCURATE, None, np.inf, bound)
    loss = float(moved @ deviations.regret)
    return best_moves(status, moved, loss, min(bound, loss), nodes=int(info.mip_node_count))


def _program(deviations: Deviations, unit: float, integer: bool) -> Program:
    """Return the program in moved jobs, one column a deviation; regrets are counted in ``unit``."""
    residual, jobs = deviations.residual, deviations.priced.groups.count
    count, types = len(deviations), len(residual)
    base = deviations.priced.base[deviations.group].astype(np.int64)
    gang = deviations.priced.groups.size[deviations.group]
    into, out = deviations.to < types, base < types
    lp = Blocks()
    moved = lp.columns(deviations.regret * unit, 0.0, jobs[deviations.group], integer=integer)
    filled = lp.rows(residual, residual, types)
    lp.entries(filled[deviations.to[into]], moved[into], gang[into])
    lp.entries(filled[base[out]], moved[out], -gang[out])
    # a group with several deviations has only so many jobs; one deviation alone is held by its bound
    owner, own, times = np.unique(deviations.group, return_inverse=True, return_counts=True)
    crowded = times > 1
    at_most = lp.rows(-INFINITY, jobs[owner[crowded]], int(crowded.sum()))
    shared = np.flatnonzero(crowded[own])
    lp.entries(at_most[(np.cumsum(crowded) - 1)[own][shared]], moved[shared], np.ones(len(shared)))
    return lp.program(f"{count} deviations", Sense.MINIMIZE)


def _holds(program: Program, moved: Array) -> bool:
    """Return whether whole numbers of moved jobs satisfy the program; all terms are whole, so the check is exact."""
    activity = program.rows.activity(moved.astype(float))
    inside = bool((moved >= 0).all() and (moved <= program.upper).all())
    return inside and bool((activity >= program.rows.lower).all() and (activity <= program.rows.upper).all())
