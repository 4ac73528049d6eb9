"""OR-Tools' GLOP and PDLP, given the whole matrix at once.

OR-Tools and highspy each load a HiGHS of their own, and of two that are loaded into one process the second fails: in a
process that has imported highspy, `Contender.prepare` raises `NotInstalled`. The harness gives each contender its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.plain import Peer
from fairopt.benchmarks.peers.sparse_programs import LINEAR, SparseProgram
from fairopt.errors import NotInstalled, NotSolved, OutOfTime


class OrTools(Peer):
    """A peer that needs OR-Tools, in a process that has not loaded highspy."""

    libraries: ClassVar[Sequence[str]] = ("ortools",)

    def prepare(self, task: str, problem: Any) -> Any:
        """Import OR-Tools. Errors: `NotInstalled` where its library does not load."""
        try:
            return super().prepare(task, problem)
        except ImportError as error:
            raise NotInstalled(
                f"OR-Tools does not load here: {error}; run it in a process that has not imported highspy"
            ) from error


@dataclass(frozen=True, eq=False)
class _Filled:
    """A program, OR-Tools' model of it, and the solver with its limit in seconds."""

    program: SparseProgram
    model: Any
    solver: Any
    time_limit: float


@dataclass(frozen=True)
class OrToolsGlop(OrTools):
    """GLOP, OR-Tools' simplex method, through ModelBuilder's helper, which takes sparse arrays. One thread."""

    name = "ortools-glop"
    tasks = tuple(LINEAR)
    modules: ClassVar[Sequence[str]] = ("ortools.linear_solver.python.model_builder_helper", "scipy.sparse")
    solver: ClassVar[str] = "GLOP"

    def parameters(self, threads: int) -> str:
        """Return the solver's parameters, as the text of its protocol buffer."""
        return ""

    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> _Filled:
        """Make the arrays and fill the model with them."""
        from ortools.linear_solver.python import model_builder_helper
        from scipy.sparse import csr_matrix

        program = LINEAR[task](prepared)
        rows = program.rows
        matrix = csr_matrix((rows.values, rows.columns, rows.starts), shape=(len(rows.lower), len(program.gain)))
        model: Any = model_builder_helper.ModelBuilderHelper()  # its stubs know no shape of an array
        model.fill_model_from_sparse_data(program.lower, program.upper, program.gain, rows.lower, rows.upper, matrix)
        model.set_maximize(True)
        solver = model_builder_helper.ModelSolverHelper(self.solver)
        solver.set_time_limit_in_seconds(float(time_limit))
        if parameters := self.parameters(threads):
            solver.set_solver_specific_parameters(parameters)
        return _Filled(program, model, solver, time_limit)

    def solve(self, built: _Filled) -> Any:
        """Run the solver. Time limit and numerical trouble have the same status in both; the clock tells them apart.

        OR-Tools stops before a step that might end after the limit, on a busy machine long before.
        """
        from ortools.linear_solver.python.model_builder_helper import SolveStatus

        begun = perf_counter()
        built.solver.solve(built.model)
        status = built.solver.status()
        if status in (SolveStatus.NOT_SOLVED, SolveStatus.FEASIBLE) and perf_counter() - begun >= built.time_limit / 2:
            raise OutOfTime(f"{self.solver} stopped at its time limit")
        if status != SolveStatus.OPTIMAL:
            raise NotSolved(f"{self.solver}: {status.name} {built.solver.status_string()}")
        return built.program.read(np.array(built.solver.variable_values()))


@dataclass(frozen=True)
class OrToolsPdlp(OrToolsGlop):
    """PDLP, a first-order method, to a ``tolerance`` that is absolute and relative; its own, 1e-6, is too coarse."""

    name = "ortools-pdlp"
    solver: ClassVar[str] = "PDLP"
    tolerance: float = 1e-8

    def parameters(self, threads: int) -> str:
        """Return tolerance and threads."""
        wanted = f"eps_optimal_absolute: {self.tolerance} eps_optimal_relative: {self.tolerance}"
        return f"termination_criteria {{ simple_optimality_criteria {{ {wanted} }} }} num_threads: {threads}"
