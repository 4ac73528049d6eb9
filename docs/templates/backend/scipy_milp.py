"""A backend: a solver's library behind one verb. Here it is `scipy.optimize.milp`."""

from __future__ import annotations

from time import perf_counter
from typing import ClassVar

from fairopt.backends import Backend, Capability, Options
from fairopt.backends.solution import Solution, Status
from fairopt.backends.trivial import settle, uncrossed
from fairopt.program import Program, Sense

#: What SciPy's numbers mean. It stops at an iteration or time limit with 1, and 4 is everything else.
STATUS = {0: Status.OPTIMAL, 1: Status.LIMIT, 2: Status.INFEASIBLE, 3: Status.UNBOUNDED}


class ScipyMilp(Backend):
    """Linear and mixed-integer programs by SciPy, which gives no duals for them.

    Source: the documentation of `scipy.optimize.milp`.
    """

    name = "scipy-milp"
    modules = ("scipy",)  # what must be importable; only `_solve` imports it
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.INTEGERS, Capability.TIME_LIMIT})

    def _solve(self, program: Program, options: Options) -> Solution:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        if (settled := settle(program, self.name)) is not None:
            return settled  # libraries disagree on programs that need no solver
        rows = program.rows
        sign = -1.0 if program.sense is Sense.MAXIMIZE else 1.0
        matrix = csr_array((rows.value, rows.column, rows.start), shape=program.shape)
        # presolve has called an unbounded LP infeasible; the simplex alone can tell
        given: dict[str, float | bool] = {"presolve": bool(program.integer.any())}
        if options.time_limit is not None:
            given["time_limit"] = float(options.time_limit)
        begun = perf_counter()
        found = milp(
            sign * program.cost,
            integrality=program.integer.astype(int),
            bounds=Bounds(*uncrossed(program.lower, program.upper)),
            constraints=LinearConstraint(matrix, *uncrossed(rows.lower, rows.upper)),
            options=given,
        )
        seconds = perf_counter() - begun
        objective = None if found.x is None else float(program.value(found.x))
        proven = getattr(found, "mip_dual_bound", None)
        bound = objective if proven is None else sign * proven + program.offset
        return Solution(
            status=STATUS.get(found.status, Status.FAILED),
            raw_status=found.message,
            backend=self.name,
            objective=objective,
            bound=bound,
            x=found.x,
            seconds=seconds,
        )
