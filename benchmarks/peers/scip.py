"""SCIP through PySCIPOpt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.plain import Peer
from fairopt.benchmarks.peers.sparse_programs import PROGRAMS, SparseProgram
from fairopt.errors import NotSolved, OutOfTime


@dataclass(frozen=True)
class Scip(Peer):
    """SCIP; linear programs go to SoPlex, which it brings along. PySCIPOpt takes rows one by one only.

    ``gap``: relative, for integer programs.
    """

    name = "scip"
    tasks = tuple(PROGRAMS)
    libraries: ClassVar[Sequence[str]] = ("PySCIPOpt",)
    modules: ClassVar[Sequence[str]] = ("pyscipopt",)
    gap: float = 1e-7

    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> tuple[SparseProgram, Any, Any]:
        """Write the rows down as expressions."""
        import pyscipopt

        program = PROGRAMS[task](prepared)
        model = pyscipopt.Model()
        model.hideOutput()
        model.setParam("limits/time", float(time_limit))
        model.setParam("limits/gap", self.gap if program.whole else 0.0)
        model.setParam("lp/threads", threads)
        model.setParam("parallel/maxnthreads", threads)
        kind = "B" if program.whole else "C"
        bounds = zip(program.lower.tolist(), program.upper.tolist(), program.gain.tolist(), strict=True)
        x = [
            model.addVar(lb=low, ub=None if np.isinf(high) else high, obj=gain, vtype=kind)
            for low, high, gain in bounds
        ]
        rows = program.rows
        columns, values, starts = rows.columns.tolist(), rows.values.tolist(), rows.starts.tolist()
        for row, (low, high) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
            span = range(starts[row], starts[row + 1])
            total = pyscipopt.quicksum(values[at] * x[columns[at]] for at in span)
            if low == high:
                model.addCons(total == low)
            elif np.isinf(low):
                model.addCons(total <= high)
            else:  # no program here has rows with two different sides
                model.addCons(total >= low)
        model.setMaximize()
        return program, model, x

    def solve(self, built: tuple[SparseProgram, Any, Any]) -> Any:
        """Run SCIP."""
        program, model, x = built
        model.optimize()
        status = model.getStatus()
        if status == "timelimit":
            raise OutOfTime("SCIP stopped at its time limit")
        if status not in ("optimal", "gaplimit"):
            raise NotSolved(f"SCIP: {status}")
        best = model.getBestSol()
        return program.read(np.array([model.getSolVal(best, each) for each in x]))
