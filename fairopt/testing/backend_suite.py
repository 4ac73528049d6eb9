"""The conformance suite of backends: what every `Backend` must do, whatever library is behind it.

Compared are status, objective and the residuals of the optimality conditions, never x or duals entry by entry: where a
program is degenerate, correct backends differ. All floats are held to one accuracy, exact numbers to none at all.

>>> from fairopt.backends import Highs
>>> backend_suite().run([Highs()]).require_complete()
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar

import numpy as np

from fairopt.backends.solution import Position, Solution, Status
from fairopt.backends.solver import Backend, Capability
from fairopt.errors import BadInput, NotCapable
from fairopt.numbers import arithmetic, is_number
from fairopt.program import INFINITY, Array, Program, Rows, Sense, entry_names, objects
from fairopt.testing.backend_programs import CASES as CASES
from fairopt.testing.backend_programs import Case, hard
from fairopt.testing.suite import Check, Suite, Traits, checks_of, requires

__all__ = ["backend_suite"]

#: Relative accuracy demanded of floats, of every backend alike.
ACCURACY = 1e-6
#: With logarithms the error of the point, and of the gradient, is the root of the objective's error.
LOGARITHM_ACCURACY = 1e-4
#: What has lower and upper bounds.
B = TypeVar("B", Program, Rows)


def backend_suite(expected_failures: Mapping[str, Mapping[str, str]] | None = None) -> Suite[Backend]:
    """Return the suite; ``expected_failures`` maps a backend's name to {check: measured reason}.

    >>> len(backend_suite().checks) > 20
    True
    """
    known = expected_failures or {}
    programs = {one.name: one.program() for one in CASES}

    def traits(backend: Backend) -> Traits:
        missing = ", ".join(backend.missing())
        absent = f"not installed: {missing}" if missing else ""
        fitting = {_fitting(name) for name, program in programs.items() if not backend.unfit(program)}
        return Traits(backend.name, backend.capabilities | fitting, absent, known.get(backend.name, {}))

    return Suite("backends", [*map(_of_case, CASES), *checks_of(sys.modules[__name__])], traits)


def _of_case(one: Case) -> Check[Backend]:
    needs = _needs(one.program()) | {_fitting(one.name)}
    return Check(f"program: {one.name}", lambda backend: _solves(backend, one), needs, one.guards)


def _fitting(name: str) -> str:
    """Return what a backend declares that takes programs of the form of a case; most take any (`Backend.unfit`)."""
    return f"programs like {name!r}"


def _needs(program: Program) -> frozenset[Capability]:
    needs = {Capability.INTEGERS: program.integer.any(), Capability.LOGARITHMS: program.logarithms is not None}
    return frozenset(capability for capability, needed in needs.items() if needed)


def _solves(backend: Backend, one: Case) -> None:
    program = one.program()
    solution = backend.solve(program)
    vague = Status.INFEASIBLE_OR_UNBOUNDED  # not wrong, where the answer is one of the two
    accepted = {one.status} | ({vague} if one.status in (Status.INFEASIBLE, Status.UNBOUNDED) else set())
    assert solution.status in accepted, f"ended {solution.status} ({solution.raw_status}), not {one.status}"
    if one.optimum is not None:
        _same("objective", solution.objective, one.optimum, _accuracy(backend))
        _check(backend, program, solution)


def _check(backend: Backend, program: Program, solution: Solution) -> None:
    check_optimality(program, solution, _accuracy(backend), Capability.DUALS in backend.capabilities)


def _accuracy(backend: Backend) -> float:
    return arithmetic(backend.number).tolerance(ACCURACY)


def _same(what: str, found: object, wanted: int | float | Fraction, accuracy: float) -> None:
    assert is_number(found), f"{what} is {found!r}, not a number"
    assert abs(found - wanted) <= accuracy * _large(wanted), f"{what} is {found}, not {wanted}"


def _large(value: Any) -> Any:
    """Return 1 + abs(value), in the numbers of the value: mypy knows no abs() common to them."""
    return 1 + abs(value)


# -- optimality conditions ---------------------------------------------------------------------------------------
def check_optimality(program: Program, solution: Solution, accuracy: float = ACCURACY, duals: bool = True) -> None:
    """Raise AssertionError unless ``solution`` satisfies the optimality conditions of `fairopt.backends.solution`.

    ``accuracy`` is relative to the size of the numbers compared; 0 is for exact backends.
    """
    x = solution.x
    assert x is not None, "an optimal solution has a point"
    assert x.shape == program.cost.shape, f"x has shape {x.shape}, not {program.cost.shape}"
    exact = program.as_(Fraction) if accuracy == 0 else program.as_(float)
    broken = exact.violations(x, accuracy * _size(exact.rows.lower, exact.rows.upper, exact.lower, exact.upper))
    assert not broken, f"the point breaks {broken}"
    _same("objective at x", solution.objective, exact.value(x), accuracy)
    if program.integer.any():
        assert solution.dual is None, "a program with integers has no duals"
        assert solution.bound is not None, "an integer optimum comes with a proven bound"
        ahead = solution.bound - exact.value(x) if program.sense is Sense.MINIMIZE else exact.value(x) - solution.bound
        assert ahead <= accuracy * _large(exact.value(x)), f"bound {solution.bound} is beaten by {solution.objective}"
        return
    if not duals:
        return
    dual, reduced = solution.dual, solution.reduced_cost
    assert dual is not None, "DUALS is declared but there are none"
    assert reduced is not None, "DUALS is declared but there are no reduced costs"
    assert dual.shape == (len(program.rows),), f"dual has shape {dual.shape}, not {(len(program.rows),)}"
    if program.logarithms is not None:
        accuracy = LOGARITHM_ACCURACY
    rate = accuracy * _size(exact.cost, dual)
    wanted = exact.reduced_cost(x, dual)
    assert (abs(reduced - wanted) <= rate).all(), f"reduced costs are {reduced}, but c - A.T @ dual is {wanted}"
    size = accuracy * _large(exact.value(x))
    names = (list(entry_names(exact.row_blocks)), list(entry_names(exact.variable_blocks)))
    sign = 1 if exact.sense is Sense.MAXIMIZE else -1
    _complementary(names[0], sign * dual, exact.rows.lower, exact.rows.activity(x), exact.rows.upper, rate, size)
    _complementary(names[1], sign * reduced, exact.lower, x, exact.upper, rate, size)


def _complementary(
    names: list[str], push: Array, lower: Array, value: Array, upper: Array, rate: float, size: float
) -> None:
    """Check that what pushes up stands at an upper bound, and what pushes down at a lower one."""
    for name, force, low, here, high in zip(names, push, lower, value, upper, strict=True):
        bound = high if force > 0 else low
        if abs(force) <= rate:
            continue
        assert abs(bound) != INFINITY, f"the dual of {name} has the sign of a bound that it does not have: {force}"
        # the smaller of the two residuals counts: either the force is nearly 0 or the bound is nearly reached
        assert abs(force * (bound - here)) <= size, f"{name} has dual {force} but is {bound - here} from its bound"


def _size(*arrays: Array) -> float:
    finite = [abs(float(value)) for array in arrays for value in array if abs(value) != INFINITY]
    return 1 + max(finite, default=0.0)


# -- capabilities and options ------------------------------------------------------------------------------------
def _case(name: str) -> Program:
    return next(one for one in CASES if one.name == name).program()


def _refused_unless(backend: Backend, capability: Capability, program: Program, **option: float) -> Solution | None:
    if capability in backend.capabilities:
        return backend.solve(program, **option)  # type: ignore[arg-type]  # the option's name is not known statically
    try:
        backend.solve(program, **option)  # type: ignore[arg-type]
    except NotCapable:
        return None
    raise AssertionError(f"does not declare {capability.value}, yet takes it")


@requires(_fitting("integers"))
def refuses_integers(backend: Backend) -> None:
    """Guards against a continuous solver that relaxes integers without a word."""
    _refused_unless(backend, Capability.INTEGERS, _case("integers"))


def refuses_logarithms(backend: Backend) -> None:
    """Guards against a linear solver that drops the logarithms of an objective."""
    _refused_unless(backend, Capability.LOGARITHMS, _case("logarithms"))


def option_time_limit(backend: Backend) -> None:
    """Guards against a limit that is ignored, raises, means none when 0 (SCS), or makes any point an optimum."""
    program = _case("rows at most")
    solution = _refused_unless(backend, Capability.TIME_LIMIT, program, time_limit=0)
    if solution is None:
        return
    assert solution.status in (Status.LIMIT, Status.OPTIMAL), f"ended {solution.status} ({solution.raw_status})"
    if solution.status is Status.OPTIMAL:
        _check(backend, program, solution)
    after = backend.solve(program)
    assert after.status is Status.OPTIMAL, f"a limit of an earlier solve still holds: {after.status}"


def option_gap(backend: Backend) -> None:
    """Guards against a gap that is ignored or, worse, meant as an absolute one."""
    integer = Capability.INTEGERS in backend.capabilities
    program = _case("integers binary" if integer else "rows at most")
    solution = _refused_unless(backend, Capability.GAP, program, gap=0.5)
    if solution is not None:
        gap = solution.require_optimal().gap
        assert gap is None or gap <= 0.5 + ACCURACY, f"the gap is {gap}, 0.5 was asked for"


def option_tolerance(backend: Backend) -> None:
    """Guards against a tolerance that does not reach the library."""
    program = _case("oef cooperative")
    solution = _refused_unless(backend, Capability.TOLERANCE, program, tolerance=1e-8)
    if solution is not None:
        _check(backend, program, solution.require_optimal())


def option_seed(backend: Backend) -> None:
    """Guards against a seed that is ignored: with one seed, two runs agree in every digit."""
    program = _case("degenerate dual")
    if _refused_unless(backend, Capability.SEED, program, seed=7) is not None:
        first, second = backend.solve(program, seed=7), backend.solve(program, seed=7)
        assert _equal(first.x, second.x), f"two runs with one seed gave {first.x} and {second.x}"


def option_threads(backend: Backend) -> None:
    """Guards against threads set once for a whole process, so that a second number fails."""
    program = _case("rows at most")
    for threads in (1, 2):
        solution = _refused_unless(backend, Capability.THREADS, program, threads=threads)
        assert solution is None or solution.status is Status.OPTIMAL, f"with {threads} threads: {solution.status}"


def option_values(backend: Backend) -> None:
    """Guards against nonsense passed on to a library, which may take a negative limit for none."""
    of = Capability
    options = {of.TIME_LIMIT, of.GAP, of.TOLERANCE, of.SEED, of.THREADS} & backend.capabilities
    for name, value in product((each.name.lower() for each in options), (-1, math.nan)):
        try:
            backend.solve(_case("rows at most"), **{name: value})  # type: ignore[arg-type]
        except BadInput:
            continue
        raise AssertionError(f"option {name}={value} was taken")


@requires(_fitting("oef cooperative"))
def solves_twice_alike(backend: Backend) -> None:
    """Guards against state left behind by a solve, another program's included (found in ECOS.jl, PR 72)."""
    program, other = _case("oef cooperative"), _case("rows equal")
    first = backend.solve(program)
    backend.solve(other)
    second = backend.solve(program)
    assert first.status is second.status, f"{first.status}, then {second.status}"
    assert first.objective == second.objective, f"{first.objective}, then {second.objective}"
    assert _equal(first.x, second.x), f"{first.x}, then {second.x}"


def program_is_not_changed(backend: Backend) -> None:
    """Guards against a library that writes into the arrays it is given (a sign flipped for maximising, say)."""
    for name in ("rows range at upper", "variables bounded", "rows at least maximised"):
        program = _case(name).as_(backend.number)
        before = [array.copy() for array in _arrays(program)]
        backend.solve(program)
        assert all(map(_equal, before, _arrays(program))), f"solving {name!r} changed the program"


def fractions_are_taken(backend: Backend) -> None:
    """Guards against object arrays of Fractions handed to a library that wants floats, and the reverse."""
    for number in (Fraction, float):
        solution = backend.solve(_case("rows range at upper").as_(number))
        _same("objective", solution.objective, 8, _accuracy(backend))
        assert isinstance(solution.objective, backend.number), f"objective is {solution.objective!r}"
        assert solution.x is not None, "no point"
        assert all(isinstance(value, backend.number) for value in solution.x.tolist()), f"x is {solution.x!r}"


def answer_is_complete(backend: Backend) -> None:
    """Guards against a status without its raw form, a wrong name, and times that are missing or negative."""
    solution = backend.solve(_case("rows at most"))
    assert solution.backend == backend.name, f"calls itself {solution.backend!r}, not {backend.name!r}"
    assert solution.raw_status, "no raw status"
    assert 0 <= solution.seconds < INFINITY, f"took {solution.seconds} s"
    assert solution.require_optimal() is solution


@requires(Capability.DUALS)
def duals_are_rates(backend: Backend) -> None:
    """Guards against duals with the right sign but wrong size: moving a bound moves the objective by its dual."""
    rows_of = ("at most", "at least", "at least maximised", "at most minimised", "equal")
    for name in (f"rows {kind}" for kind in rows_of):
        program = _case(name).as_(Fraction)
        if backend.unfit(program):
            continue
        here = backend.solve(program)
        assert here.dual is not None, "DUALS is declared but there are none"
        for row in range(len(program.rows)):
            step = objects(Fraction(int(other == row), 8) for other in range(len(program.rows)))
            rows = replace(program.rows, lower=program.rows.lower + step, upper=program.rows.upper + step)
            there = backend.solve(replace(program, rows=rows))
            assert here.objective is not None, "an optimum has an objective"
            assert there.objective is not None, "an optimum has an objective"
            wanted = (there.objective - here.objective) * 8
            _same(f"dual of {program.row_name(row)} in {name!r}", here.dual[row], wanted, 10 * _accuracy(backend))


@requires(Capability.BASIS)
def basis_is_a_basis(backend: Backend) -> None:
    """Guards against a basis of the wrong size, or with a variable at a bound that it does not have."""
    for name in ("rows at most", "rows equal", "variables bounded", "degenerate vertex", "oef cooperative"):
        program = _case(name)
        basis = backend.solve(program).basis
        assert basis is not None, "BASIS is declared but there is none"
        basic = int((basis.columns == Position.BASIC).sum() + (basis.rows == Position.BASIC).sum())
        assert basic == len(program.rows), f"{basic} basic entries for {len(program.rows)} rows"
        for place, of in ((basis.columns, program), (basis.rows, program.rows)):
            for at, side in ((Position.LOWER, of.lower), (Position.UPPER, of.upper)):
                there = np.isfinite(side[place == at].astype(float)).all()
                assert there, f"{name}: at a bound ({at.name.lower()}) that is not there"


@requires(Capability.CONFLICTS)
def conflict_is_irreducible(backend: Backend) -> None:
    """Guards against conflicts with innocent members: leave any one out and the rest must hold together."""
    for one in CASES:
        program = one.program()
        if one.status is not Status.INFEASIBLE or program.integer.any():
            continue
        conflict = backend.solve(program).conflict
        assert conflict, f"{one.name}: no conflict is named"
        members = set(_members(program))
        assert set(conflict) <= members, f"{one.name}: no constraint is called {sorted(set(conflict) - members)}"
        alone = _relaxed(program, members - set(conflict))
        assert backend.solve(alone).status is Status.INFEASIBLE, f"{one.name}: {conflict} can hold together"
        for member in conflict:
            rest = backend.solve(_relaxed(alone, {member}))
            assert rest.status is not Status.INFEASIBLE, f"{one.name}: {conflict} conflicts without {member} too"


@requires(Capability.INTEGERS, Capability.TIME_LIMIT, _fitting("integers"))
def limit_keeps_the_incumbent(backend: Backend) -> None:
    """Guards against a limit that throws away the best point found, or calls it optimal."""
    program = hard()
    solution = backend.solve(program, time_limit=1)
    assert solution.status in (Status.LIMIT, Status.OPTIMAL), f"ended {solution.status} ({solution.raw_status})"
    assert solution.x is not None, "the incumbent was thrown away"
    broken = program.as_(float).violations(solution.x, 1e-5)
    assert not broken, f"the incumbent breaks {broken}"
    assert solution.objective is not None, "an incumbent has an objective"
    assert solution.bound is not None, "a limit comes with a bound"
    proved = solution.objective - solution.bound <= 0.01 * _large(solution.objective)
    assert proved or solution.status is Status.LIMIT, f"optimal at {solution.objective}, bound {solution.bound}"


def _members(program: Program) -> list[str]:
    return [*entry_names(program.row_blocks), *(f"bounds of {name}" for name in entry_names(program.variable_blocks))]


def _relaxed(program: Program, names: set[str]) -> Program:
    """Return the program without the bounds of the rows and variables named."""
    out = np.array([name in names for name in _members(program)])
    rows = _unbounded(program.rows, out[: len(program.rows)])
    return replace(_unbounded(program, out[len(program.rows) :]), rows=rows)


def _unbounded(of: B, out: Array) -> B:
    return replace(of, lower=np.where(out, -INFINITY, of.lower), upper=np.where(out, INFINITY, of.upper))


def _arrays(program: Program) -> list[Array]:
    rows = program.rows
    return [program.cost, program.lower, program.upper, rows.row, rows.column, rows.value, rows.lower, rows.upper]


def _equal(left: Array | None, right: Array | None) -> bool:
    return left is right or (left is not None and right is not None and bool(np.array_equal(left, right)))
