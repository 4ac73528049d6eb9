"""Any solver that Pyomo knows by name; HiGHS through Pyomo's modern interface unless another is asked for.

Pyomo has two interfaces to solvers. Where the modern one knows the name, status, incumbent and duals are read from its
loader, never from a status word alone. The classic one serves the other solvers (glpk, cbc, commercial ones).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np

from fairopt.backends.highs import PASSED_AS, instance, settings, with_conflict
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.backends.trivial import settle, uncrossed
from fairopt.deadline import left
from fairopt.errors import NotCapable, NotInstalled
from fairopt.program import INFINITY, Array, Program, Sense

#: The name of HiGHS in the modern interface; options can be passed to no other solver.
HIGHS = "highs"
#: Solvers of the classic interface that respect integrality; ipopt, for one, silently drops it.
KNOW_INTEGERS = frozenset(
    {HIGHS, "appsi_highs", "glpk", "cbc", "appsi_cbc", "gurobi", "cplex", "scip", "xpress", "copt"}
)


#: Pyomo turns the output of the whole process away while it solves: two threads at once wait for each other forever.
#: A fork waits too, so that the new process does not begin in the midst of that.
_ONE_AT_A_TIME = RLock()
if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(
        before=_ONE_AT_A_TIME.acquire,
        after_in_parent=_ONE_AT_A_TIME.release,
        after_in_child=_ONE_AT_A_TIME.release,
    )


@contextmanager
def _alone() -> Iterator[None]:
    """Let no other thread of the process solve by Pyomo in the block. Errors: `OutOfTime` while it waits for them."""
    while not _ONE_AT_A_TIME.acquire(timeout=0.1):
        left()
    try:
        yield
    finally:
        _ONE_AT_A_TIME.release()


class Pyomo(Backend):
    """A solver behind Pyomo: HiGHS, or another by name, ``Pyomo("glpk")``, which then takes no options.

    Source: Bynum et al., Pyomo: optimization modeling in Python, 3rd edition, 2021.
    """

    name = "pyomo"
    modules = ("pyomo", "highspy")
    install = "fairopt[solvers]"
    endable = 1
    capabilities = frozenset({Capability.INTEGERS, Capability.DUALS, *PASSED_AS})

    def __init__(self, solver: str = HIGHS) -> None:
        self.solver = solver

    def check(self, program: Program, options: Options) -> None:
        """Also refuse options that are declared for HiGHS but cannot be passed to the chosen solver."""
        super().check(program, options)
        if self.solver != HIGHS and (given := sorted(option.value for option in options.given())):
            raise NotCapable(
                f"Pyomo's solver {self.solver!r} cannot be passed {', '.join(given)}; HiGHS can: use Pyomo()"
            )
        if self.solver not in KNOW_INTEGERS and program.integer.any():
            raise NotCapable(
                f"it is not known whether Pyomo's solver {self.solver!r} respects integer variables, which "
                f"{program.name!r} has; these do: {', '.join(sorted(KNOW_INTEGERS))}"
            )

    def _solve(self, program: Program, options: Options) -> Solution:
        with _alone():
            return self._solve_alone(program, options)

    def _solve_alone(self, program: Program, options: Options) -> Solution:
        import pyomo.environ as pyo  # the modern interface knows no solver before this
        from pyomo.common.log import LoggingIntercept
        from pyomo.contrib.solver.common.factory import SolverFactory

        modern = self.solver in list(SolverFactory)
        with LoggingIntercept(module="pyomo"):  # Pyomo logs an unknown name with a traceback; here it is an error
            solver = (SolverFactory if modern else pyo.SolverFactory)(self.solver)
            available = solver.available() if modern else solver.available(exception_flag=False)
        if not available:
            raise NotInstalled(
                f"Pyomo finds no solver {self.solver!r}: install its program on the PATH (or its Python package here), "
                "or use Pyomo() for HiGHS, which `pip install 'fairopt[solvers]'` brings"
            )
        if trivial := settle(program, self.name):
            return trivial
        if self.solver == HIGHS:
            instance(options)  # refuses what HiGHS does, which Pyomo would ignore
        own = dict(settings(options)) if self.solver == HIGHS else {}
        solution = (_by_modern if modern else _by_classic)(solver, _Model(program), own)
        named = replace(solution, raw_status=f"{self.solver}: {solution.raw_status}", backend=self.name)
        return with_conflict(program, named)


class _Model:
    """A program as a Pyomo model.

    Rows without bounds or without variables are not written: `settle` has checked that they hold. Pyomo's solvers do
    not see a variable that is in no row and has no cost, so its bounds are written as a row; without bounds it is 0.
    """

    def __init__(self, program: Program) -> None:
        import pyomo.environ as pyo
        from pyomo.core.expr import LinearExpression

        rows = program.rows
        low, high = uncrossed(rows.lower, rows.upper)
        least, most = uncrossed(program.lower, program.upper)
        self.program, self.integer = program, bool(program.integer.any())
        self.written = np.flatnonzero((np.diff(rows.start) > 0) & (np.isfinite(low) | np.isfinite(high)))
        model = self.model = pyo.ConcreteModel()
        kinds = (pyo.Reals, pyo.Integers)
        model.x = pyo.Var(
            range(len(program.cost)),
            domain=lambda _, j: kinds[int(program.integer[j])],
            bounds=lambda _, j: (_side(least[j]), _side(most[j])),
        )
        variables = list(model.x.values())

        def total(columns: Array, values: Array, constant: float = 0.0) -> Any:
            return LinearExpression(
                constant=constant, linear_coefs=values.tolist(), linear_vars=[variables[column] for column in columns]
            )

        def row(_: Any, r: int) -> Any:
            span = slice(rows.start[r], rows.start[r + 1])
            body = total(rows.column[span], rows.value[span])
            return body == float(low[r]) if low[r] == high[r] else (_side(low[r]), body, _side(high[r]))

        model.row = pyo.Constraint(self.written.tolist(), rule=row)
        priced = np.flatnonzero(program.cost)
        sense = pyo.maximize if program.sense is Sense.MAXIMIZE else pyo.minimize
        model.goal = pyo.Objective(expr=total(priced, program.cost[priced], float(program.offset)), sense=sense)
        used = np.union1d(priced, rows.column[np.isin(rows.row, self.written)])
        unused = np.setdiff1d(np.flatnonzero(np.isfinite(least) | np.isfinite(most)), used)
        model.alone = pyo.Constraint(
            unused.tolist(), rule=lambda _, j: (_side(least[j]), total(np.array([j]), np.ones(1)), _side(most[j]))
        )
        self.places = np.union1d(used, unused).astype(int)
        #: The variables that Pyomo knows, in the order of their ``places``.
        self.known = [variables[place] for place in self.places]

    def answer(
        self,
        word: str,
        seconds: float,
        values: list[float] | None,
        duals: Callable[[], Mapping[Any, float]],
        bound: Any,
    ) -> Solution:
        """Return an answer in our terms; ``values`` are None without a point; Pyomo's signs of ``duals`` are ours."""
        program = self.program
        status = _outcome(word, values is not None)
        answer = Solution(status, word, Pyomo.name, bound=_finite(bound) if self.integer else None, seconds=seconds)
        if values is None:
            return answer
        x = np.zeros(len(program.cost))
        x[self.places] = values
        answer = replace(answer, x=x, objective=program.value(x))
        if self.integer or status is not Status.OPTIMAL:
            return answer
        given, dual = duals(), np.zeros(len(program.rows))
        dual[self.written] = [given[self.model.row[int(row)]] for row in self.written]
        return replace(answer, bound=answer.objective, dual=dual, reduced_cost=program.reduced_cost(x, dual))


def _by_modern(solver: Any, built: _Model, own: dict[str, Any]) -> Solution:
    """Solve by ``pyomo.contrib.solver``, with HiGHS's ``own`` options (none: another solver)."""

    def run(**more: str) -> Any:
        quiet = {"load_solutions": False, "raise_exception_on_nonoptimal_result": False}
        return solver.solve(built.model, **quiet, **({"solver_options": {**own, **more}} if own else {}))

    began = time.perf_counter()
    results = run()
    word = results.termination_condition.name
    # presolve can be wrong here; ask the simplex, as `Highs` does
    if own and (word == "infeasibleOrUnbounded" or (word == "provenInfeasible" and not built.integer)):
        results = run(presolve="off")
        word = results.termination_condition.name
    elapsed = time.perf_counter() - began
    loader, values = results.solution_loader, None
    if results.incumbent_objective is not None:
        values = list(loader.get_vars(built.known).values())
    return built.answer(
        word, elapsed, values, lambda: loader.get_duals(list(built.model.row.values())), results.objective_bound
    )


def _by_classic(solver: Any, built: _Model, _: dict[str, Any]) -> Solution:
    """Solve by Pyomo's first interface, ``pyomo.environ.SolverFactory``."""
    import pyomo.environ as pyo

    model = built.model
    if not built.integer:  # asking for duals of an integer program is an error
        model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    began = time.perf_counter()
    results = solver.solve(model, load_solutions=False)
    elapsed = time.perf_counter() - began
    values = None
    if len(results.solution):
        model.solutions.load_from(results)
        values = [variable.value for variable in built.known]
    maximize = built.program.sense is Sense.MAXIMIZE
    bound = results.problem.upper_bound if maximize else results.problem.lower_bound
    return built.answer(str(results.solver.termination_condition), elapsed, values, lambda: model.dual, bound)


_LIMITS = (
    *("maxTimeLimit", "iterationLimit", "objectiveLimit", "interrupted"),
    *("maxIterations", "maxEvaluations", "minFunctionValue", "userInterrupt", "resourceInterrupt"),  # classic
)
_OUTCOMES = dict.fromkeys(_LIMITS, Status.LIMIT) | {
    "provenInfeasible": Status.INFEASIBLE,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "infeasibleOrUnbounded": Status.INFEASIBLE_OR_UNBOUNDED,
}


def _outcome(word: str, found: bool) -> Status:
    if word in ("convergenceCriteriaSatisfied", "optimal"):
        return Status.OPTIMAL if found else Status.FAILED
    return _OUTCOMES.get(word, Status.INACCURATE if found else Status.FAILED)


def _side(bound: Any) -> float | None:
    return float(bound) if -INFINITY < bound < INFINITY else None


def _finite(value: Any) -> float | None:
    """Return Pyomo's value as a float; it may be missing, infinite or wrapped."""
    plain = getattr(value, "value", value)
    return float(plain) if isinstance(plain, int | float) and np.isfinite(plain) else None
