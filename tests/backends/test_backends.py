"""Every backend passes the conformance suite, and the suite catches backends that should not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.metadata import version
from typing import ClassVar
from unittest import SkipTest

import numpy as np
import pytest

from fairopt.backends import Backend, Capability, Highs, Options
from fairopt.backends.cvxpy import CLARABEL, ECOS, SCS, Cvxpy
from fairopt.backends.exact import Exact
from fairopt.backends.network import Network
from fairopt.backends.pyomo import Pyomo
from fairopt.backends.solution import Solution, Status
from fairopt.backends.trivial import contradiction
from fairopt.errors import BadInput, NotCapable, NotInstalled, NotSolved, OutOfTime
from fairopt.program import Formulation, Program, between
from fairopt.testing.backend_programs import hard
from fairopt.testing.backend_suite import CASES, backend_suite
from fairopt.testing.suite import Check, Outcome, Suite, Traits, check


class ClassicPyomo(Pyomo):
    """Pyomo's first interface, which every solver but HiGHS goes through where the modern one does not know it."""

    name = "pyomo-classic"
    capabilities = frozenset({Capability.INTEGERS, Capability.DUALS})

    def __init__(self) -> None:
        super().__init__("appsi_highs")


BACKENDS: list[Backend] = [Highs(), Pyomo(), ClassicPyomo(), ECOS, CLARABEL, SCS, Exact(), Network()]

#: The classic interface passes no option that turns presolve off.
PARALLEL_ROWS = (
    {"program: unbounded between parallel rows": "the presolve of HiGHS before 1.16 says infeasible, and stays on"}
    if tuple(int(part) for part in version("highspy").split(".")[:2]) < (1, 16)
    else {}
)
KNOWN = {
    "pyomo-classic": PARALLEL_ROWS,
    "ecos": {"program: badly scaled": "stops as inaccurate at 1000.9999998; asked for 1e-10, it gets no further"},
    "scs": {
        "program: badly scaled": "says solved at 1000.000001, 1e-3 short: a cost of 1e-6 is below its dual tolerance "
        "relative to a cost of 1000"
    },
}
SUITE = backend_suite(KNOWN)


@SUITE.parametrize(BACKENDS)
def test_back_end(conforms):
    conforms()


def test_every_back_end_is_asked_everything_that_it_declares():
    idle = {}
    for backend in BACKENDS:
        traits = SUITE.traits(backend)
        idle[backend.name] = [one for one in SUITE.checks if SUITE.why_not(traits, one)]
        assert not traits.absent, f"{backend.name}: {traits.absent}; the development install has all of them"
    assert {name: len(SUITE.checks) - len(skipped) for name, skipped in idle.items()} == {
        "highs": 56,
        "pyomo": 54,
        "pyomo-classic": 53,
        "ecos": 51,
        "clarabel": 51,
        "scs": 51,
        "exact": 50,
        "network": 37,
    }


def test_the_programs_are_many_and_their_names_differ():
    assert len(CASES) >= 30
    assert len({case.name for case in CASES}) == len(CASES)
    assert all("Guards against" in case.guards for case in CASES)


# -- tests of the tests --------------------------------------------------------------------------------------------
class Mock(Highs):
    """HiGHS with a defect."""

    name = "mock"

    def _solve(self, program: Program, options: Options) -> Solution:
        try:
            found = super()._solve(program, options)
        except OutOfTime as over:  # what was found by then goes with it
            found = over.solution
        return self.spoil(replace(found, backend=self.name), program)

    def spoil(self, solution: Solution, program: Program) -> Solution:
        return solution


class WrongSign(Mock):
    def spoil(self, solution, program):
        return replace(
            solution,
            dual=None if solution.dual is None else -solution.dual,
            reduced_cost=None if solution.dual is None else program.reduced_cost(solution.x, -solution.dual),
        )


class WrongSize(Mock):
    def spoil(self, solution, program):
        if solution.dual is None:
            return solution
        return replace(
            solution, dual=2 * solution.dual, reduced_cost=program.reduced_cost(solution.x, 2 * solution.dual)
        )


class Loose(Mock):
    def spoil(self, solution, program):
        if solution.x is None or program.integer.any():
            return solution
        x = solution.x * (1 + 2.5e-4)
        return replace(solution, x=x, objective=program.value(x))


class Liar(Mock):
    def spoil(self, solution, program):
        return replace(solution, status=Status.OPTIMAL) if solution.status is Status.LIMIT else solution


class Optimist(Mock):
    def spoil(self, solution, program):
        zero = np.zeros(len(program.cost))
        fine = solution.status in (Status.OPTIMAL, Status.LIMIT)
        return solution if fine else replace(solution, status=Status.OPTIMAL, x=zero, objective=0.0)


class Forgetful(Mock):
    def spoil(self, solution, program):
        return replace(solution, x=None, objective=None) if solution.status is Status.LIMIT else solution


class Relaxing(Mock):
    def _solve(self, program, options):
        return super()._solve(replace(program, integer=np.zeros(len(program.cost), dtype=bool)), options)


class Accusing(Mock):
    def spoil(self, solution, program):
        every = tuple(program.row_name(row) for row in range(len(program.rows)))
        return replace(solution, conflict=every) if solution.conflict else solution


class Deaf(Mock):
    capabilities: ClassVar = Highs.capabilities - {Capability.SEED, Capability.GAP}

    def check(self, program, options):
        Backend.check(self, program, Options(time_limit=options.time_limit))


class Scribbler(Mock):
    def _solve(self, program, options):
        solution = super()._solve(program, options)
        program.rows.value[:] *= -1
        return solution


class Unsteady(Mock):
    def __init__(self):
        self.times = 0

    def spoil(self, solution, program):
        self.times += 1
        return solution if solution.x is None else replace(solution, x=solution.x + 1e-9 * self.times)


class Crashing(Mock):
    def _solve(self, program, options):
        if not len(program.rows):
            raise IndexError("no rows")
        return super()._solve(program, options)


@pytest.mark.parametrize(
    ("mock", "caught"),
    [
        (WrongSign, "program: rows at most"),
        (WrongSign, "duals are rates"),
        (WrongSize, "program: rows equal"),
        (WrongSize, "duals are rates"),
        (Loose, "program: oef cooperative"),
        (Loose, "program: rows equal"),
        (Liar, "limit keeps the incumbent"),
        (Optimist, "program: infeasible by rows"),
        (Optimist, "program: unbounded"),
        pytest.param(Forgetful, "limit keeps the incumbent", marks=pytest.mark.slow),  # Liar is the quick one
        (Relaxing, "program: integers"),
        (Accusing, "conflict is irreducible"),
        (Deaf, "option seed"),
        (Deaf, "option gap"),
        (Scribbler, "program is not changed"),
        (Unsteady, "solves twice alike"),
        (Crashing, "program: rows none"),
    ],
)
def test_the_suite_catches(mock, caught):
    one = next(one for one in SUITE.checks if one.name == caught)
    assert SUITE.run_one(Mock(), one).outcome is Outcome.RAN
    row = SUITE.run_one(mock(), one)
    assert row.outcome is Outcome.FAILED, f"{caught} did not notice {mock.__name__}"


def test_a_suite_that_fails_says_which_check_did():
    one = next(one for one in SUITE.checks if one.name == "program: rows equal")
    with pytest.raises(AssertionError, match=one.name):
        Suite("one", [one], SUITE.traits).run([Loose()]).require_complete()


# -- the mechanism ---------------------------------------------------------------------------------------------------
def fails(subject):
    """Guards against nothing: it fails."""
    raise AssertionError("as it must")


def passes(subject):
    """Guards against nothing: it passes."""


def shirks(subject):
    """Guards against nothing: it does not run."""
    raise SkipTest("no time")


def test_a_report_counts_and_explains():
    traits = {"a": Traits("a", frozenset({"x"})), "b": Traits("b", absent="not installed: z")}
    suite = Suite("letters", [check(passes, "x"), check(fails)], lambda name: traits[name])
    report = suite.run(["a", "b"])
    assert report.counts == {Outcome.RAN: 1, Outcome.FAILED: 1, Outcome.SKIPPED: 2}
    assert (report.expected, report.ran("a"), report.ran("b")) == ({"a": 2, "b": 0}, 2, 0)
    assert "a x fails: FAILED: AssertionError: as it must" in str(report)
    assert "b x passes: skipped: not installed: z" in str(report)
    with pytest.raises(AssertionError, match="as it must"):
        report.require_complete()


@pytest.mark.parametrize(
    ("one", "expected", "outcome", "complaint"),
    [
        (check(shirks), {}, Outcome.MISSING, "ran 0 checks; what it declares implies 1"),
        (check(passes), {"passes": "was broken"}, Outcome.SURPRISE, "delete the record"),
        (check(fails), {"fails": "broken"}, Outcome.EXPECTED_FAILURE, ""),
        (check(passes, "y"), {}, Outcome.SKIPPED, ""),
    ],
)
def test_a_report_is_complete_only_if_all_ran_that_is_declared(one, expected, outcome, complaint):
    report = Suite("one", [one], lambda _: Traits("it", frozenset("x"), expected_failures=expected)).run([0])
    assert report.rows[0].outcome is outcome
    if complaint:
        with pytest.raises(AssertionError, match=complaint):
            report.require_complete()
    else:
        report.require_complete()


def test_a_suite_refuses_what_would_blur_its_table():
    with pytest.raises(ValueError, match="two checks"):
        Suite("twice", [check(passes), check(passes)], lambda _: Traits("it"))
    with pytest.raises(ValueError, match="no docstring"):
        Check("bare", lambda _: None)
    with pytest.raises(ValueError, match="two subjects"):
        Suite("same", [check(passes)], lambda _: Traits("it")).run([0, 1])
    with pytest.raises(ValueError, match="do not exist"):
        Suite("gone", [check(passes)], lambda _: Traits("it", expected_failures={"old": "why"})).run([0])


# -- single backends ------------------------------------------------------------------------------------------------
def small() -> Program:
    p = Formulation("small")
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + 2 * x[1])
    p.constrain("sum", x.sum() <= 4)
    return p.program()


def whole() -> Program:
    p = Formulation("whole")
    x = p.variable("x", lower=0, upper=1, integer=True)
    p.maximize(x)
    return p.program()


@pytest.mark.parametrize("backend", [Pyomo("nonsense"), Pyomo("glpk"), Cvxpy("NONSENSE")])
def test_a_solver_that_is_not_there_is_named(backend):
    if backend.solver == "glpk" and shutil.which("glpsol"):
        pytest.skip("glpk is installed here")
    with pytest.raises(NotInstalled, match=f"'{backend.solver}'.*install"):
        backend.solve(small())


def test_pyomo_refuses_what_it_cannot_pass_on():
    with pytest.raises(NotCapable, match="option seed"):
        Pyomo("appsi_highs").solve(small(), seed=1)
    with pytest.raises(NotCapable, match="respects integer"):
        Pyomo("ipopt").solve(whole())
    with pytest.raises(BadInput, match="1e-20"):  # Pyomo itself would go on with HiGHS's default
        Pyomo().solve(small(), tolerance=1e-20)


def test_pyomo_uses_the_modern_interface_for_highs():
    assert Pyomo().solve(small()).raw_status == "highs: convergenceCriteriaSatisfied"
    assert Pyomo("appsi_highs").solve(small()).raw_status == "appsi_highs: optimal"


@pytest.mark.parametrize("solver", ["OSQP", "CLARABEL", "HIGHS", "SCIPY"])
def test_cvxpy_takes_any_solver_that_it_has(solver):
    cvxpy = pytest.importorskip("cvxpy")
    if solver not in cvxpy.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    solution = Cvxpy(solver).solve(small())
    assert solution.raw_status.startswith(solver)
    assert solution.objective == pytest.approx(8, abs=1e-2)  # OSQP's own tolerance is 1e-5


def test_a_limit_at_which_nothing_was_found_has_no_point():
    program = next(case for case in CASES if case.name == "rows at least").program()
    solution = CLARABEL.solve(program, time_limit=0)
    assert solution.status is Status.LIMIT
    assert solution.x is None
    with pytest.raises(NotSolved, match="nothing found"):
        solution.require_optimal()


def test_rounding_does_not_make_a_contradiction():
    p = Formulation("rounded")
    x = p.variable("x", (2,), lower=0, upper=1)
    p.maximize(x.sum())
    p.constrain("nearly", between(0.1 + 0.2, x[0], 0.3))  # 0.30000000000000004 <= x <= 0.3
    p.constrain("empty", 0.0 * x[1] <= -1e-12)
    program = p.program()
    for backend in BACKENDS:
        if backend.number is float:
            assert backend.solve(program).objective == pytest.approx(1.3), backend.name
    assert contradiction(program) == ""
    assert contradiction(program, forgiven=0) == "nearly"
    assert Exact().solve(program).conflict == ("nearly",)


def test_back_ends_agree_on_the_hard_program_when_it_is_small():
    program = hard(size=12, rows=2)
    assert Pyomo().solve(program).objective == pytest.approx(Highs().solve(program).objective)


def promised_too_much(*, integer: bool) -> Program:
    """Two tenants share one GPU, each is promised two thirds of it; a third tenant asks for nothing."""
    p = Formulation("promised too much")
    share = p.variable("share", (3,), lower=0, integer=integer, labels=(("A", "B", "C"),))
    p.maximize(share.sum())
    p.constrain("capacity", share.sum() <= 1)
    p.constrain("promised", share[:2] >= 0.667, labels=(("A", "B"),))
    return p.program()


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("integer", [False, True])
def test_what_cannot_hold_together_is_named_whoever_solves(backend: Backend, integer: bool) -> None:
    if integer and Capability.INTEGERS not in backend.capabilities:
        return
    solution = backend.solve(promised_too_much(integer=integer))
    assert solution.status is Status.INFEASIBLE
    assert set(solution.conflict) == {"capacity", "promised[A]", "promised[B]", "bounds of share[C]"}
    with pytest.raises(NotSolved, match=r"these cannot hold together: .*promised\[A\], promised\[B\]"):
        solution.require_optimal()
