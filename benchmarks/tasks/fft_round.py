"""FFT's round: which type of GPU each job runs on, at least cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.solution import Status
from fairopt.experiment.bench import Instance, Interval, Judgement, Task, require_small
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs, usable_gpus
from fairopt.methods.result import ends_of
from fairopt.program import Program

WAITS = -1


@dataclass(frozen=True)
class FftRound(Task):
    """A round of FFT: the answer (n,) is the type that each job runs on, -1 where it waits.

    It is feasible or not, in whole numbers. Its cost is compared with a bound that no assignment can be below: HiGHS's
    own on the plain program, where it closes the gap within ``seconds``; else the one of fairopt's algorithm. The note
    says whose it was. A cost that is below the bound refutes whoever gave it: `Judgement.gap` is negative then.

    Source: FFT (2025), Eq. (1), (6), (7).
    """

    name = "fft-round"
    seconds: float = 20.0

    def warm_up(self) -> GangAssignment:
        """Return a round of three jobs on two types."""
        gangs, capacity = np.array([1, 2, 1]), np.array([2, 2])
        allowed = np.ones((3, 2), dtype=bool)
        cost = np.array([[3.0, 1.0], [2.0, 4.0], [1.0, 2.0]])
        return GangAssignment(cost, gangs, capacity, usable_gpus(gangs, allowed, capacity), allowed)

    def reference(self, instance: Instance) -> dict[str, Any]:
        """Return a bound on the cost, and whose it is."""
        problem: GangAssignment = instance.problem
        plain = Highs().solve(problem.program(), gap=0.0, time_limit=self.seconds)
        if plain.status is Status.OPTIMAL and plain.objective is not None:
            return {"bound": float(plain.objective), "whose": "HiGHS, on the plain program to gap 0"}
        own = solve_gangs(problem).require_optimal()
        return {"bound": own.lower, "whose": "fairopt's own algorithm"}

    def judge(self, instance: Instance, answer: Any, reference: Any) -> Judgement:
        """Return what an assignment is worth: every constraint by a count, the cost by an exactly rounded sum."""
        problem: GangAssignment = instance.problem
        n, k = problem.cost.shape
        type_of = np.asarray(answer)
        if type_of.shape != (n,) or type_of.dtype.kind not in "iu":
            return _broken(f"an array of {type_of.dtype} of shape {type_of.shape}, and not ({n},) whole numbers")
        if ((type_of < WAITS) | (type_of >= k)).any():
            return _broken(f"types from {type_of.min()} to {type_of.max()}, of {k} that there are")
        runs = np.flatnonzero(type_of != WAITS)
        kind = type_of[runs]
        forbidden = runs[~problem.allowed[runs, kind]]
        if len(forbidden):
            return _broken(f"job {forbidden[0]} runs on type {type_of[forbidden[0]]}, which it may not")
        busy = [int(problem.gangs[runs[kind == each]].sum()) for each in range(k)]
        for each, (used, there) in enumerate(zip(busy, problem.capacity.tolist(), strict=True)):
            if used > there:
                return _broken(f"{used} GPUs of type {each} are in use, of {there}", (used - there) / max(1, there))
        if sum(busy) < problem.least:
            short = problem.least - sum(busy)
            return _broken(f"{sum(busy)} GPUs are busy, {problem.least} must be", short / problem.least)
        cost = math.fsum(problem.cost[runs, kind].tolist())
        gap = (cost - reference["bound"]) / max(abs(cost), abs(reference["bound"]), 1e-300)
        if abs(gap) <= 1e-15:
            gap = 0.0
        return Judgement(
            accepted=gap <= self.tolerance,
            violation=0.0,
            gap=gap,
            objective=cost,
            note=f"cost compared with the bound of {reference['whose']}",
        )

    def program(self, problem: GangAssignment) -> Program:
        """Return the plain program."""
        require_small(problem.cost.size)
        return problem.program()

    def interval(self, problem: GangAssignment) -> Interval | None:
        """Return the bounds of fairopt's algorithm, where it finds an assignment."""
        found = solve_gangs(problem)
        if "type_of" not in found.values:
            return None
        return Interval(*ends_of(found), "fft-round: fairopt's own algorithm")


def _broken(why: str, violation: float = 1.0) -> Judgement:
    return Judgement(accepted=False, violation=violation, gap=math.nan, objective=math.nan, note=why)
