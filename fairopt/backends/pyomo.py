"""Any solver that Pyomo knows by name; HiGHS through Pyomo's modern interface unless another is asked for.

Pyomo has two interfaces to solvers. Where the modern one knows the name, status, incumbent and duals are read from its
loader, never from a status word alone. The classic one serves the other solvers (glpk, cbc, commercial ones).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairopt.backends.highs import SMALLEST_COEFFICIENT
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.backends.trivial import settle, uncrossed
from fairopt.errors import BadInput, NotCapable, NotInstalled
from fairopt.program import INFINITY, Array, Program, Sense

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The name of HiGHS in the modern interface; options can be passed to no other solver.
HIGHS = "highs"
#: Solvers of the classic interface that respect integrality; ipopt, for one, silently drops it.
KNOW_INTEGERS = frozenset(
    {HIGHS, "appsi_highs", "glpk", "cbc", "appsi_cbc", "gurobi", "cplex", "scip", "xpress", "copt"}
)


class Pyomo(Backend):
    """A solver behind Pyomo: HiGHS, or another by name, ``Pyomo("glpk")``, which then takes no options.

    Source: Bynum et al., Pyomo: optimization modeling in Python, 3rd edition, 2021.
    """

    name = "pyomo"
    modules: ClassVar[tuple[str, ...]] = ("pyomo", "highspy")
    install = "fairopt[pyomo]"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.INTEGERS,
            Capability.DUALS,
            Capability.TIME_LIMIT,
            Capability.GAP,
            Capability.TOLERANCE,
            Capability.SEED,
            Capability.THREADS,
        }
    )

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
        import pyomo.environ  # noqa: F401  # the modern interface knows no solver before this
        from pyomo.contrib.solver.common.factory import SolverFactory

        solve = _Modern(self.solver) if self.solver in list(SolverFactory) else _Classic(self.solver)
        return settle(program, self.name) or self._read(program, solve(_Model(program), options))

    def _read(self, program: Program, answer: _Answer) -> Solution:
        integer = bool(program.integer.any())
        optimal = answer.status is Status.OPTIMAL
        objective = None if answer.x is None else program.value(answer.x)
        dual = answer.dual if optimal and not integer else None
        return Solution(
            status=answer.status,
            raw_status=f"{self.solver}: {answer.word}",
            backend=self.name,
            objective=objective,
            bound=answer.bound if integer else objective if optimal else None,
            x=answer.x,
            dual=dual,
            reduced_cost=None if dual is None or answer.x is None else program.reduced_cost(answer.x, dual),
            seconds=answer.seconds,
        )


@dataclass(frozen=True, eq=False)
class _Answer:
    """A solver's answer, in our arrays and statuses."""

    status: Status
    word: str
    seconds: float
    x: Array | None = None
    dual: Array | None = None
    bound: float | None = None


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
        self.program = program
        self.written = np.flatnonzero((np.diff(rows.start) > 0) & (np.isfinite(low) | np.isfinite(high)))
        model = self.model = pyo.ConcreteModel()
        kinds = (pyo.Reals, pyo.Integers)
        model.x = pyo.Var(
            range(len(program.cost)),
            domain=lambda _, j: kinds[int(program.integer[j])],
            bounds=lambda _, j: (_side(least[j]), _side(most[j])),
        )
        variables = self.variables = list(model.x.values())

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
        self.known: list[int] = np.union1d(used, unused).astype(int).tolist()

    def point(self, values: list[float]) -> Array:
        """Return x from the values of the variables that Pyomo knows."""
        x = np.zeros(len(self.variables))
        x[self.known] = values
        return x

    def duals(self, dual: Mapping[Any, float]) -> Array:
        """Return one dual per row from those of the written rows; Pyomo's signs are ours for both senses."""
        out = np.zeros(len(self.program.rows))
        out[self.written] = [dual[self.model.row[int(row)]] for row in self.written]
        return out


class _Modern:
    """A solver of ``pyomo.contrib.solver``."""

    def __init__(self, solver: str) -> None:
        from pyomo.contrib.solver.common.factory import SolverFactory

        self._name, self._solver = solver, SolverFactory(solver)
        if not self._solver.available():
            raise NotInstalled(_absent(solver))

    def __call__(self, built: _Model, options: Options) -> _Answer:
        config = _for_highs(options) if self._name == HIGHS else {}
        began = time.perf_counter()
        results = self._run(built, config)
        word = results.termination_condition.name
        doubtful = ["infeasibleOrUnbounded"] + ([] if built.program.integer.any() else ["provenInfeasible"])
        if word in doubtful and self._name == HIGHS:  # presolve can be wrong here; ask the simplex, as `Highs` does
            results = self._run(built, {**config, "solver_options": {**config["solver_options"], "presolve": "off"}})
            word = results.termination_condition.name
        elapsed = time.perf_counter() - began
        x = dual = None
        if results.incumbent_objective is not None:
            values = results.solution_loader.get_vars([built.variables[column] for column in built.known])
            x = built.point(list(values.values()))
        status = _outcome(word, x is not None)
        if status is Status.OPTIMAL and not built.program.integer.any():
            dual = built.duals(results.solution_loader.get_duals(list(built.model.row.values())))
        return _Answer(status, word, elapsed, x, dual, _finite(results.objective_bound))

    def _run(self, built: _Model, config: dict[str, Any]) -> Any:
        quiet = {"load_solutions": False, "raise_exception_on_nonoptimal_result": False}
        return self._solver.solve(built.model, **quiet, **config)


class _Classic:
    """A solver of Pyomo's first interface, ``pyomo.environ.SolverFactory``."""

    def __init__(self, solver: str) -> None:
        import pyomo.environ as pyo
        from pyomo.common.log import LoggingIntercept

        with LoggingIntercept(module="pyomo"):  # Pyomo logs an unknown name with a traceback; here it is an error
            self._solver = pyo.SolverFactory(solver)
            if not self._solver.available(exception_flag=False):
                raise NotInstalled(_absent(solver))

    def __call__(self, built: _Model, options: Options) -> _Answer:
        import pyomo.environ as pyo

        model = built.model
        if not built.program.integer.any():  # asking for duals of an integer program is an error
            model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        began = time.perf_counter()
        results = self._solver.solve(model, load_solutions=False)
        elapsed = time.perf_counter() - began
        word = str(results.solver.termination_condition)
        x = dual = None
        if len(results.solution):
            model.solutions.load_from(results)
            x = built.point([built.variables[column].value for column in built.known])
        status = _outcome(word, x is not None)
        if status is Status.OPTIMAL and not built.program.integer.any():
            dual = built.duals(model.dual)
        maximize = built.program.sense is Sense.MAXIMIZE
        bound = results.problem.upper_bound if maximize else results.problem.lower_bound
        return _Answer(status, word, elapsed, x, dual, _finite(bound))


def _for_highs(options: Options) -> dict[str, Any]:
    """Return the options for HiGHS. Pyomo ignores options that HiGHS refuses, so they are tried on HiGHS first."""
    import highspy

    settings: dict[str, float | int] = {"small_matrix_value": SMALLEST_COEFFICIENT}
    if options.tolerance is not None:
        for kind in ("primal", "dual", "mip"):
            settings[f"{kind}_feasibility_tolerance"] = float(options.tolerance)
    if options.seed is not None:
        settings["random_seed"] = int(options.seed)
    scratch = highspy.Highs()
    scratch.setOptionValue("output_flag", False)
    for name, value in settings.items():
        if scratch.setOptionValue(name, value).name == "kError":
            raise BadInput(f"HiGHS refuses {value!r}", place=f"option {name}", remedy="Choose a value in its range")
    config: dict[str, Any] = {"solver_options": settings}
    if options.time_limit is not None:
        config["time_limit"] = float(options.time_limit)
    if options.gap is not None:
        config["rel_gap"] = float(options.gap)
    if options.threads is not None:
        highspy.Highs.resetGlobalScheduler(True)  # otherwise all instances share one number of threads
        config["threads"] = int(options.threads)
    return config


def _outcome(word: str, found: bool) -> Status:
    """Translate a termination condition of either interface."""
    if word in ("convergenceCriteriaSatisfied", "optimal"):
        return Status.OPTIMAL if found else Status.FAILED
    limits = ("maxTimeLimit", "iterationLimit", "objectiveLimit", "interrupted")
    classic_limits = ("maxIterations", "maxEvaluations", "minFunctionValue", "userInterrupt", "resourceInterrupt")
    if word in limits + classic_limits:
        return Status.LIMIT
    known = {
        "provenInfeasible": Status.INFEASIBLE,
        "infeasible": Status.INFEASIBLE,
        "unbounded": Status.UNBOUNDED,
        "infeasibleOrUnbounded": Status.INFEASIBLE_OR_UNBOUNDED,
    }
    return known.get(word, Status.INACCURATE if found else Status.FAILED)


def _side(bound: Any) -> float | None:
    return float(bound) if -INFINITY < bound < INFINITY else None


def _finite(value: Any) -> float | None:
    """Return Pyomo's value as a float; it may be missing, infinite or wrapped."""
    plain = getattr(value, "value", value)
    return float(plain) if isinstance(plain, int | float) and np.isfinite(plain) else None


def _absent(solver: str) -> str:
    return (
        f"Pyomo finds no solver {solver!r}: install its program on the PATH (or its Python package here), or "
        "use Pyomo() for HiGHS, which `pip install 'fairopt[pyomo]'` brings"
    )
