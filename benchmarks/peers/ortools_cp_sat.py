"""OR-Tools' CP-SAT on FFT's round, an integer program; without continuous variables it answers no linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairopt.benchmarks.peers.ortools_linear import OrTools
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.gang_assignment import GangAssignment


@dataclass(frozen=True, eq=False)
class _Asked:
    """The problem, the variables with their jobs and types, and the solver with its parameters."""

    problem: GangAssignment
    x: list[Any]
    job: NDArray[np.int64]
    kind: NDArray[np.int64]
    model: Any
    solver: Any


@dataclass(frozen=True)
class OrToolsCpSat(OrTools):
    """CP-SAT; it makes whole numbers of the costs itself, to the precision that it proves its bound with.

    ``gap``: relative. ``workers``: as many as threads, so that with one it does not run its portfolio.
    """

    name = "ortools-cp-sat"
    tasks = ("fft-round",)
    modules = ("ortools.sat.python.cp_model",)
    gap: float = 1e-7

    def build(self, task: str, prepared: GangAssignment, *, time_limit: float, threads: int) -> _Asked:
        """Write the model."""
        from ortools.sat.python import cp_model

        problem, model = prepared, cp_model.CpModel()
        job, kind = np.nonzero(problem.allowed & (problem.gangs[:, None] <= problem.capacity))
        gang = problem.gangs[job]
        x = [model.new_bool_var("") for _ in range(len(job))]
        ends = np.cumsum(np.bincount(job, minlength=len(problem.gangs))).tolist()
        for begin, end in zip([0, *ends], ends, strict=False):
            if end > begin:
                model.add_at_most_one(x[begin:end])
        weigh = cp_model.LinearExpr.weighted_sum
        for each, amount in enumerate(problem.capacity.tolist()):
            here = np.flatnonzero(kind == each).tolist()
            model.add(weigh([x[at] for at in here], gang[here].tolist()) <= amount)
        model.add(weigh(x, gang.tolist()) >= problem.least)
        model.minimize(weigh(x, problem.cost[job, kind].tolist()))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = float(time_limit)
        solver.parameters.num_workers = threads
        solver.parameters.relative_gap_limit = self.gap
        return _Asked(problem, x, job, kind, model, solver)

    def solve(self, built: _Asked) -> NDArray[np.int64]:
        """Run CP-SAT."""
        from ortools.sat.python import cp_model

        status = built.solver.solve(built.model)
        if status in (cp_model.FEASIBLE, cp_model.UNKNOWN):
            raise OutOfTime(f"CP-SAT stopped at its time limit: {built.solver.status_name(status)}")
        if status != cp_model.OPTIMAL:
            raise NotSolved(f"CP-SAT: {built.solver.status_name(status)}")
        type_of = np.full(len(built.problem.gangs), -1)
        runs = np.flatnonzero([built.solver.boolean_value(each) for each in built.x])
        type_of[built.job[runs]] = built.kind[runs]
        return type_of
