"""ECOS, Clarabel, SCS and any other solver that cvxpy knows, through cvxpy's cone programs.

A program becomes one block of equalities and one of inequalities, each a sparse matrix, because cvxpy's cost of
building grows with the number of expressions. It is passed as a minimisation, so that cvxpy's duals have one sign
convention. Rows and objective are scaled to a largest coefficient near 1: without this, Clarabel and SCS call a bounded
program with numbers from 1e-6 to 1e6 unbounded. `_Cones.duals` reverses signs and scaling.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from fairopt.backends.highs import with_conflict
from fairopt.backends.scaling import largest_of, power_of_two, unit_of
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.backends.trivial import settle, uncrossed
from fairopt.errors import NotInstalled
from fairopt.program import INFINITY, Array, Block, Program, Rows, Sense

#: A point found at a limit is an incumbent only if it breaks nothing by more than this, relative to the numbers' size.
FEASIBLE = 1e-6
#: The tolerance of the interior-point methods. Their own, 1e-8, leaves gradients of logarithms wrong by 1e-4 (the
#: error of x is the root of the objective's); 1e-10 costs an iteration or two.
TIGHT = 1e-10
#: The least time limit passed on, in seconds; SCS reads 0 as no limit.
SOON = 1e-9


#: The names under which solvers take fairopt's options. Of others these are not known, so that none is declared.
PASSED_AS: Mapping[str, Mapping[Capability, tuple[str, ...]]] = {
    "ECOS": {Capability.TOLERANCE: ("abstol", "reltol", "feastol")},
    "CLARABEL": {
        Capability.TOLERANCE: ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
        Capability.TIME_LIMIT: ("time_limit",),
        Capability.THREADS: ("max_threads",),
    },
    "SCS": {Capability.TOLERANCE: ("eps_abs", "eps_rel"), Capability.TIME_LIMIT: ("time_limit_secs",)},
}
#: Their own options that are always set. cvxpy drops the point of a stalled run of Clarabel unless "unknown" is
#: accepted. SCS' default tolerance, 1e-4 (cvxpy: 1e-5), accepts answers that overbook a capacity by 2.5e-4; it is 1e-9
#: here, with enough iterations to reach it on programs of thousands of variables.
SETTINGS: Mapping[str, Mapping[str, float]] = {
    "ECOS": dict.fromkeys(PASSED_AS["ECOS"][Capability.TOLERANCE], TIGHT),
    "CLARABEL": {**dict.fromkeys(PASSED_AS["CLARABEL"][Capability.TOLERANCE], TIGHT), "accept_unknown": True},
    "SCS": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 500_000},
}


@cache
def _installed() -> tuple[str, ...]:
    """Return the solvers that cvxpy finds, for which it tries to import each that it knows."""
    import cvxpy

    return tuple(cvxpy.installed_solvers())


class Cvxpy(Backend):
    """Any continuous solver that is installed with cvxpy, by cvxpy's name for it: ``Cvxpy("CLARABEL")``.

    ECOS (interior point, for small and medium cone programs; no time limit), Clarabel (interior point, with a
    homogeneous embedding) and SCS (first order: many cheap iterations) have backends of their names in lower case, with
    options and logarithms. The options of another are not known, so that it has none, and is called "cvxpy".

    Source: Diamond and Boyd, CVXPY: a Python-embedded modeling language for convex optimization, 2016; Domahidi, Chu
    and Boyd, ECOS: an SOCP solver for embedded systems, 2013; Goulart and Chen, Clarabel: an interior-point solver for
    conic programs, 2024; O'Donoghue, Chu, Parikh and Boyd, Conic optimization via operator splitting and homogeneous
    self-dual embedding, 2016.
    """

    install = "fairopt[solvers]"
    endable = 1

    def __init__(self, solver: str) -> None:
        self.solver = solver

    # all of these follow from the solver's name, which goes to the process that may be ended
    @property
    def name(self) -> str:  # type: ignore[override]
        """The solver's name in lower case; "cvxpy" where it is not known."""
        return self.solver.lower() if self.solver in PASSED_AS else "cvxpy"

    @property
    def modules(self) -> tuple[str, ...]:  # type: ignore[override]
        """What must be importable."""
        return ("cvxpy", self.name) if self.solver in PASSED_AS else ("cvxpy",)

    @property
    def capabilities(self) -> frozenset[Capability]:  # type: ignore[override]
        """The options that the solver takes, and logarithms where it is known."""
        known = {Capability.LOGARITHMS, *PASSED_AS[self.solver]} if self.solver in PASSED_AS else ()
        return frozenset({Capability.DUALS, *known})

    def available(self) -> bool:  # type: ignore[override]  # it depends on the solver
        """Whether cvxpy is installed, and the solver where it is known; neither is imported."""
        return not self.missing()

    def missing(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the modules that are not installed."""
        return tuple(module for module in self.modules if find_spec(module) is None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.solver!r})"

    def _solve(self, program: Program, options: Options) -> Solution:
        if self.solver not in _installed():
            raise NotInstalled(
                f"cvxpy finds no solver {self.solver!r}, only {', '.join(_installed())}: "
                "install its package (often of the same name, in lower case), or choose one of these"
            )
        if options.time_limit is not None:
            options = replace(options, time_limit=max(options.time_limit, SOON))
        settings = {**SETTINGS.get(self.solver, {}), **options.named(PASSED_AS.get(self.solver, {}))}
        if trivial := settle(program, self.name):
            return trivial
        solution = self._run(program, settings)
        if solution.status is Status.UNBOUNDED:
            solution = self._reached(program, solution, settings)
        return with_conflict(program, solution)

    def _reached(self, program: Program, unlimited: Solution, settings: Mapping[str, float]) -> Solution:
        """Decide between unbounded and infeasible: a solver may find a ray in both cases."""
        point = self._run(replace(program, cost=np.zeros(len(program.cost)), logarithms=None), settings)
        if point.status is Status.OPTIMAL:
            return unlimited
        vague = Status.INFEASIBLE if point.status is Status.INFEASIBLE else Status.INFEASIBLE_OR_UNBOUNDED
        raw = f"{unlimited.raw_status}; without the objective, {point.raw_status}"
        return replace(unlimited, status=vague, raw_status=raw)

    def _run(self, program: Program, settings: Mapping[str, float]) -> Solution:
        import cvxpy
        from cvxpy.settings import SOLVE_TIME

        cones = _Cones(program)
        x = cvxpy.Variable(len(program.cost))
        # an equality or inequality of no rows is left out: several solvers do not take an empty matrix
        equalities = [cones.equal @ x == cones.equal_to] if len(cones.equal_to) else []
        inequalities = [cones.most @ x <= cones.at_most] if len(cones.at_most) else []
        problem = cvxpy.Problem(cvxpy.Minimize(_cost(program, x) / cones.unit), equalities + inequalities)
        # the steps of Problem.solve, one by one: that method discards what a solver found before it failed
        data, chain, inverse = problem.get_problem_data(self.solver, solver_opts=dict(settings))
        began = time.perf_counter()
        raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=dict(settings))
        elapsed = time.perf_counter() - began
        answer = chain.invert(raw, inverse)
        word = _own_word(raw)
        status = _outcome(answer.status, word)
        point = answer.primal_vars.get(x.id) if answer.primal_vars else None
        if point is not None:
            point = np.asarray(point, dtype=float).reshape(len(program.cost))
            # where an interior iteration stood when it was stopped, and cvxpy's zeros, are no incumbent
            holds = np.isfinite(point).all() and (status is not Status.LIMIT or _holds(program, point))
            point = point if holds else None
        dual = reduced = None
        if status is Status.OPTIMAL and point is not None:
            multipliers = [np.asarray(answer.dual_vars[c.id], dtype=float).ravel() for c in equalities + inequalities]
            dual = cones.duals(program, multipliers[: len(equalities)], multipliers[len(equalities) :])
            reduced = program.reduced_cost(point, dual)
        raw_status, value = f"{self.solver}: {word or answer.status}", None if point is None else program.value(point)
        seconds = float(answer.attr.get(SOLVE_TIME) or elapsed)
        return Solution(status, raw_status, self.name, value, x=point, dual=dual, reduced_cost=reduced, seconds=seconds)


def read_problem(problem: Any, share: Any, name: str) -> Program | None:
    """Return a cvxpy problem as a program in floats; None for one that is not linear.

    The variable ``share`` (n, k) becomes the block of that name. The other variables,
    cvxpy's own among them, are the block "other". Errors: those of cvxpy.

    >>> import cvxpy
    >>> x = cvxpy.Variable((1, 2), nonneg=True)
    >>> asked = cvxpy.Problem(cvxpy.Maximize(x[0, 0] + 3 * x[0, 1] + 1), [cvxpy.sum(x) <= 2])
    >>> program = read_problem(asked, x, "most")
    >>> program.shape, program.value(np.array([0.0, 2.0]))
    ((1, 2), 7.0)
    """
    import cvxpy

    if not (problem.is_dcp() and problem.objective.expr.is_pwl()):
        return None
    try:
        data, _, _ = problem.get_problem_data(cvxpy.HIGHS)
    except cvxpy.SolverError:  # cones, which HiGHS has not
        return None
    if "c" not in data:  # a quadratic program
        return None
    cones = data["param_prob"]
    if share.id not in cones.var_id_to_col:  # it has an attribute, and cvxpy has put another variable in its place
        plain = cvxpy.Variable(share.shape)
        return read_problem(cvxpy.Problem(problem.objective, [*problem.constraints, plain == share]), plain, name)
    count = len(data["c"])
    first, (n, k) = cones.var_id_to_col[share.id], share.shape
    own = first + np.arange(n * k).reshape(k, n).T.ravel()  # cvxpy stacks columns
    order = np.concatenate([own, np.delete(np.arange(count), own)])
    place = np.argsort(order)
    matrix, equal = data["A"].tocoo(), data["dims"].zero
    at = np.lexsort((place[matrix.col], matrix.row))
    at = at[matrix.data[at] != 0]
    sides = np.asarray(data["b"], dtype=float)
    whole, least, most = np.zeros(count, dtype=bool), np.full(count, -INFINITY), np.full(count, INFINITY)
    whole[[*data["bool_vars_idx"], *data["int_vars_idx"]]] = True
    least = least if data.get("lower_bounds") is None else np.array(data["lower_bounds"], dtype=float)
    most = most if data.get("upper_bounds") is None else np.array(data["upper_bounds"], dtype=float)
    binary = np.array(data["bool_vars_idx"], dtype=np.int64)
    least[binary], most[binary] = np.maximum(least[binary], 0), np.minimum(most[binary], 1)
    sign = -1.0 if isinstance(problem.objective, cvxpy.Maximize) else 1.0
    others = (Block("other", (count - n * k,), n * k, count - n * k),) if count > n * k else ()
    said = [("equal", 0, equal), ("at_most", equal, len(sides) - equal)]
    return Program(
        name,
        Sense.MAXIMIZE if sign < 0 else Sense.MINIMIZE,
        sign * np.asarray(data["c"], dtype=float)[order],
        sign * float(cones.apply_parameters()[1]),
        least[order],
        most[order],
        whole[order],
        Rows(
            row=matrix.row[at].astype(np.int64),
            column=place[matrix.col[at]],
            value=matrix.data[at].astype(float),
            lower=np.where(np.arange(len(sides)) < equal, sides, -INFINITY),
            upper=sides,
        ),
        (Block("share", (n, k), 0, n * k), *others),
        tuple(Block(what, (size,), start, size) for what, start, size in said if size),
        Block("objective", (), 0, 1),
    )


class _Cones:
    """The program as ``equal @ x == equal_to`` and ``most @ x <= at_most``; bounds of variables are rows too.

    ``tied`` are the rows of the program that became equalities. The inequalities are, in this order, the rows with an
    upper side, those with a lower side (negated), then the bounds of variables. Each row of the program is already
    divided by its ``size``; the objective is not yet divided by ``unit``.
    """

    def __init__(self, program: Program) -> None:
        from scipy import sparse

        rows = program.rows
        shape = program.shape
        full = np.diff(rows.start) > 0  # `settle` has checked the rows without variables
        self.size = size = power_of_two(largest_of(rows))
        weights = np.zeros(0) if program.logarithms is None else program.logarithms.weight
        self.unit = float(power_of_two(np.concatenate([np.abs(program.cost), weights]).max(initial=0.0) or 1.0))
        matrix = sparse.csr_array((rows.value / size[rows.row], rows.column, rows.start), shape=shape)
        each = sparse.eye_array(shape[1], format="csr")
        low, high = uncrossed(rows.lower / size, rows.upper / size)
        least, most = uncrossed(program.lower, program.upper)
        same, fixed = low == high, least == most
        self.tied = tied = np.flatnonzero(full & same)
        self.above = above = np.flatnonzero(full & ~same & np.isfinite(high))
        self.below = below = np.flatnonzero(full & ~same & np.isfinite(low))
        capped = np.flatnonzero(~fixed & np.isfinite(most))
        floored = np.flatnonzero(~fixed & np.isfinite(least))
        self.equal = sparse.vstack([matrix[tied], each[np.flatnonzero(fixed)]], format="csr")
        self.equal_to = np.concatenate([low[tied], least[fixed]])
        self.most = sparse.vstack([matrix[above], -matrix[below], each[capped], -each[floored]], format="csr")
        self.at_most = np.concatenate([high[above], -low[below], most[capped], -least[floored]])

    def duals(self, program: Program, equal: list[Array], most: list[Array]) -> Array:
        """Return the duals of the program's rows in the convention of `fairopt.backends.solution`.

        cvxpy's multiplier of ``a @ x <= b`` or ``a @ x == b`` is minus the rate at which the minimum grows with b. A
        lower side is passed negated, which changes the sign once. A maximisation is passed negated, which changes it
        again.
        """
        rate = np.zeros(len(program.rows))
        if equal:
            rate[self.tied] = -equal[0][: len(self.tied)]
        if most:
            rate[self.above] -= most[0][: len(self.above)]
            rate[self.below] += most[0][len(self.above) :][: len(self.below)]
        rate *= self.unit / self.size
        return -rate if program.sense is Sense.MAXIMIZE else rate


def _cost(program: Program, x: Any) -> Any:
    """Return the objective to be minimised, up to a constant, as a cvxpy expression."""
    import cvxpy
    from scipy import sparse

    sign = -1.0 if program.sense is Sense.MAXIMIZE else 1.0
    cost = (sign * program.cost) @ x
    if program.logarithms is None:
        return cost
    terms = program.logarithms
    inside = terms.argument
    size = unit_of(largest_of(inside))  # of which the logarithm is a constant
    entries = inside.value / size[inside.row], inside.column, inside.start
    matrix = sparse.csr_array(entries, shape=(len(inside), len(program.cost)))
    return cost + (sign * terms.weight) @ cvxpy.log(matrix @ x + terms.constant / size)


def _own_word(raw: Any) -> str:
    """Return the solver's own status, where the form of its answer is known; empty otherwise."""
    if not isinstance(raw, dict):
        return str(getattr(raw, "status", ""))
    info = raw.get("info")
    return str(info.get("status") or info.get("infostring") or "") if isinstance(info, dict) else ""


def _outcome(status: str, word: str) -> Status:
    if "time_limit" in word or status == "user_limit":  # SCS calls what it has at its time limit inaccurate
        return Status.LIMIT
    if status.endswith("_inaccurate"):
        return Status.INACCURATE
    ended = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)
    return next((each for each in ended if each.value == status), Status.FAILED)


def _holds(program: Program, point: Array) -> bool:
    bounds = np.concatenate([program.rows.lower, program.rows.upper, program.lower, program.upper])
    size = np.abs(bounds[np.isfinite(bounds)]).max(initial=1.0)
    return not program.violations(point, FEASIBLE * float(size))


#: The backends that are registered.
ECOS, CLARABEL, SCS = Cvxpy("ECOS"), Cvxpy("CLARABEL"), Cvxpy("SCS")
