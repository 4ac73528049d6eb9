"""Each stage on the way to an exact answer, forced; and the answers against ways that share nothing with it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from from_basis import from_basis

from fairopt.backends.exact import Exact
from fairopt.backends.exact import solve as stages
from fairopt.backends.exact.checks import dual_bound, refuted, require_endless
from fairopt.backends.exact.refinement import FloatProgram
from fairopt.backends.exact.vertex import slacks, vertex_of
from fairopt.backends.solution import Basis, Position, Status
from fairopt.benchmarks.float_samples import odd_market
from fairopt.datasets.gavel import gavel_example, gavel_market
from fairopt.errors import NotCapable
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.program import INFINITY, Formulation, Program, between
from fairopt.testing.backend_suite import check_optimality

KINDS = ("small", "scaled", "decimal", "nearly tied")
DIRECT = "after 0 refinements and 0 exact pivots"


def numbers(random: np.random.Generator, kind: str, *shape: int) -> np.ndarray:
    """Fractions: small integers, the same times 1e-6 to 1e6, 17 random digits, or integers a billionth off."""
    count = int(np.prod(shape))
    whole, power = random.integers(-3, 4, count).tolist(), random.integers(-6, 7, count).tolist()
    if kind == "small":
        values = [Fraction(value) for value in whole]
    elif kind == "scaled":
        values = [value * Fraction(10) ** by for value, by in zip(whole, power, strict=True)]
    elif kind == "decimal":
        drawn = random.integers(-(10**17), 10**17, count).tolist()
        values = [Fraction(value, 10**17) * (some != 0) for value, some in zip(drawn, whole, strict=True)]
    else:
        values = [
            Fraction(value) + Fraction(by % 3 - 1, 10**9) * (value != 0) for value, by in zip(whole, power, strict=True)
        ]
    out = np.empty(count, dtype=object)
    out[:] = values
    return out.reshape(shape)


def drawn(kind: str, seed: int) -> Program:
    """A small program with bounds and sides of every kind: one, two, equal, none."""
    random = np.random.default_rng([seed, len(kind)])
    columns, rows = int(random.integers(1, 7)), int(random.integers(0, 8))

    def bounds(count: int) -> tuple[np.ndarray, np.ndarray]:
        pair = np.sort(numbers(random, kind, 2, count), axis=0)
        shape = random.integers(0, 6, count)
        low, high = np.where(shape <= 1, -INFINITY, pair[0]), np.where((shape == 0) | (shape == 5), INFINITY, pair[1])
        return low, np.where(shape == 4, low, high)

    p = Formulation(f"{kind} {seed}")
    low, high = bounds(columns)
    x = p.variable("x", (columns,), lower=low, upper=high)
    goal = (numbers(random, kind, columns) * x).sum()
    (p.maximize if random.random() < 0.5 else p.minimize)(goal)
    low, high = bounds(rows)
    p.constrain("row", between(low.tolist(), numbers(random, kind, rows, columns) @ x, high.tolist()))
    return p.program()


def same_as_pivots(program: Program) -> Status:
    found, wanted = Exact().solve(program), from_basis(program, None, refinement=False)
    assert (found.status, found.objective if found.bound is not None else None) == (
        wanted.status,
        wanted.objective if wanted.bound is not None else None,
    ), f"{program.name}: {found.raw_status}, but {wanted.raw_status}"
    if found.status is Status.OPTIMAL:
        check_optimality(program, found, accuracy=0)
    exact = program.as_(Fraction)
    if found.status is Status.INFEASIBLE and found.farkas is not None:
        assert refuted(exact, found.farkas) == found.conflict
    if found.status is Status.UNBOUNDED:
        require_endless(exact, found.x, found.ray)
    return found.status


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_pivots_from_the_slacks(kind):
    outcomes = {same_as_pivots(drawn(kind, seed)) for seed in range(40)}
    assert outcomes == {Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_pivots_from_the_slacks_on_many(kind):
    for seed in range(40, 1500):
        same_as_pivots(drawn(kind, seed))


# -- every vertex, one by one ------------------------------------------------------------------------------------
def best_vertex(matrix: np.ndarray, sides: np.ndarray, cost: np.ndarray) -> Fraction | None:
    """The largest cost @ x over the vertices of ``matrix @ x <= sides`` (a bounded set), None where it is empty."""
    best = None
    size = matrix.shape[1]
    for chosen in map(list, combinations(range(len(matrix)), size)):
        square = fmpq_mat(size, size, [fmpq(v.numerator, v.denominator) for v in matrix[chosen].ravel()])
        if square.det() == 0:
            continue
        right = fmpq_mat(size, 1, [fmpq(v.numerator, v.denominator) for v in sides[chosen]])
        x = np.array([Fraction(int(v.p), int(v.q)) for v in square.solve(right).entries()], dtype=object)
        if (matrix @ x <= sides).all():
            best = max((cost @ x), best) if best is not None else cost @ x
    return best


@pytest.mark.parametrize("kind", ["small", "scaled", "decimal"])
def test_agrees_with_every_vertex(kind):
    feasible = 0
    for seed in range(25):
        random = np.random.default_rng(seed)
        columns, rows = int(random.integers(1, 4)), int(random.integers(1, 5))
        matrix, sides, cost = (numbers(random, kind, *shape) for shape in ((rows, columns), (rows,), (columns,)))
        p = Formulation("boxed")
        x = p.variable("x", (columns,), lower=-1, upper=2)
        p.maximize((cost * x).sum())
        p.constrain("row", matrix @ x <= sides)
        found = Exact().solve(p.program())
        unit = numbers(random, "small", columns, columns) * 0
        np.fill_diagonal(unit, Fraction(1))
        everything = np.concatenate([matrix, unit, -unit])
        wanted = best_vertex(everything, np.concatenate([sides, np.full(columns, 2), np.full(columns, 1)]), cost)
        assert found.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL)
        assert found.objective == wanted
        feasible += wanted is not None
    assert feasible > 5


# -- each stage ----------------------------------------------------------------------------------------------------
def cooperative(users: int, types: int, seed: int = 0) -> Program:
    random = np.random.default_rng(seed)
    speedup = np.sort(random.integers(10, 100, (users, types)), axis=1) * Fraction(1, 10)
    market = Market.of(speedup.tolist(), random.integers(1, 20, types).tolist())
    return CooperativeOEF().formulate(market, None).as_(Fraction)


def test_a_perturbed_basis_is_refined():
    program = cooperative(8, 4)
    best = Exact().solve(program)
    assert DIRECT in best.raw_status
    columns, rows = best.basis.columns.copy(), best.basis.rows.copy()
    columns[np.flatnonzero(columns == Position.BASIC)[0]] = Position.LOWER
    rows[np.flatnonzero(rows != Position.BASIC)[0]] = Position.BASIC
    found = from_basis(program, Basis(columns, rows))
    assert DIRECT not in found.raw_status
    assert "and 0 exact pivots" in found.raw_status
    assert found.objective == best.objective


@pytest.mark.parametrize("power", [9, 12, 20, 60])
def test_ties_far_below_the_tolerance_are_decided(power):
    p = Formulation("nearly tied")
    x = p.variable("x", (3,), lower=0)
    gain = Fraction(1, 10**power)
    p.maximize(x[0] + (1 + gain) * x[1] + (1 + gain / 2) * x[2])
    p.constrain("sum", x.sum() <= 1)
    p.constrain("second", x[1] <= gain)
    program = p.program()
    first = Basis(np.array([1, 0, 0], dtype=np.int8), np.array([2, 1], dtype=np.int8))
    found = from_basis(program, first)
    assert found.status is Status.OPTIMAL
    assert found.x.tolist() == [0, gain, 1 - gain]


@pytest.mark.parametrize("columns", [[0, 0], [1, 1], [2, 3]])
def test_what_is_no_basis_is_replaced(columns):
    p = Formulation("singular")
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + 2 * x[1])
    p.constrain("sum", x.sum() <= 1)
    p.constrain("twice", 2 * x.sum() <= 2)
    program = p.program().as_(Fraction)
    basis = Basis(np.array(columns, dtype=np.int8), np.array([2, 2], dtype=np.int8))
    assert vertex_of(program, basis) is None
    for refinement in (True, False):
        assert from_basis(program, basis, refinement=refinement).objective == 2


def test_pivots_take_over_where_refinement_ends(monkeypatch):
    program = cooperative(5, 3)
    monkeypatch.setattr("fairopt.backends.exact.refinement.MOST_ROUNDS", 0)
    found = from_basis(program, None)
    assert "after 0 refinements" in found.raw_status
    assert "and 0 exact pivots" not in found.raw_status
    assert found.objective == Exact().solve(program).objective


def test_refinement_stops_where_a_basis_comes_back():
    program = cooperative(4, 3)
    floats = FloatProgram(program)
    proposed = replace(floats.solve(), basis=slacks(program))
    floats.corrected = lambda vertex, primal, dual: proposed  # a solver that never moves
    vertex, _ = floats.refined(proposed)
    assert floats.rounds == 1
    assert not vertex.optimal


@pytest.mark.parametrize("users", [6, 20])
def test_without_time_there_is_a_point_and_a_bound(users):
    program = cooperative(users, 4)
    best = Exact().solve(program)
    found = Exact().solve(program, time_limit=0)
    assert found.status is Status.LIMIT
    assert "out of reach" in found.raw_status
    assert program.violations(found.x) == {}
    assert found.objective == program.value(found.x) <= best.objective <= found.bound
    assert found.bound == dual_bound(program, found.dual)


def test_what_is_too_large_gets_a_tight_bound(monkeypatch):
    program = cooperative(12, 4)
    best = Exact().solve(program)
    monkeypatch.setattr("fairopt.backends.exact.vertex.LARGEST_NUCLEUS", 1)
    with pytest.raises(NotCapable, match="nucleus of"):
        vertex_of(program, best.basis)
    found = Exact().solve(program)
    assert found.status is Status.LIMIT
    assert "nucleus of" in found.raw_status
    assert program.violations(found.x) == {}
    assert found.objective <= best.objective <= found.bound
    assert 0 < found.gap < 1e-5


def test_users_who_differ_by_rounding_only_are_decided():
    """Nearly singular bases: HiGHS's corrections fail, and pivots by least index needed 13,388 steps."""
    market = odd_market(384, apart=("units",)).as_(Fraction)
    solution = Exact().solve(CooperativeOEF().formulate(market, None))
    assert solution.status is Status.OPTIMAL
    assert "and 0 exact pivots" not in solution.raw_status


def test_pivots_that_are_too_many_end_with_a_bound(monkeypatch):
    program = cooperative(6, 3)
    monkeypatch.setattr(stages, "MOST_WORK", 3 * len(program.rows.value))
    found = from_basis(program, None, refinement=False)
    best = Exact().solve(program)
    assert found.status is Status.LIMIT
    assert found.objective <= best.objective <= found.bound


# -- no optimum ----------------------------------------------------------------------------------------------------
def without_optimum(users: int, types: int) -> tuple[Program, Program]:
    """Cooperative OEF with a promise that nobody can envy but everybody does; and with a type without capacity."""
    program = cooperative(users, types)
    lower, upper = program.lower.copy(), program.rows.upper.copy()
    capacity = program.row_block("capacity").span
    lower[:types] = upper[capacity] * Fraction(3, 5)
    upper[capacity.start] = INFINITY
    return replace(program, lower=lower), replace(program, rows=replace(program.rows, upper=upper))


def proofs_of(users: int, types: int) -> None:
    infeasible, unbounded = without_optimum(users, types)
    found = Exact().solve(infeasible)
    assert found.status is Status.INFEASIBLE
    assert refuted(infeasible, found.farkas) == found.conflict
    assert "and 0 exact pivots" in found.raw_status
    found = Exact().solve(unbounded)
    assert found.status is Status.UNBOUNDED
    require_endless(unbounded, found.x, found.ray)
    assert "and 0 exact pivots" in found.raw_status


def test_proofs_need_no_pivots():
    proofs_of(12, 4)


def test_feasible_by_a_billionth_and_no_more():
    for gap in (Fraction(1, 10**9), Fraction(-1, 10**9), Fraction(0)):
        p = Formulation("narrow")
        x = p.variable("x", (2,), lower=0)
        p.maximize(x[0])
        p.constrain("most", x[0] + x[1] <= 1)
        p.constrain("least", x[0] + 3 * x[1] >= 3 - gap)
        found = Exact().solve(p.program())
        assert found.status is (Status.INFEASIBLE if gap < 0 else Status.OPTIMAL)
        assert found.objective == (None if gap < 0 else gap / 2)


def test_nothing_that_constrains_is_a_ray():
    p = Formulation("free")
    p.minimize(p.variable("x"))
    found = Exact().solve(p.program())
    assert found.status is Status.UNBOUNDED
    assert found.ray.tolist() == [-1]


# -- at scale --------------------------------------------------------------------------------------------------------
def test_measured_speedups_with_all_their_digits():
    example = gavel_example()
    jobs = [("ResNet-50", 64), ("ResNet-18", 32), ("Transformer", 128), ("LM", 20), ("Recommendation", 2048)] * 4
    named = {f"u{place}": job for place, job in enumerate(jobs)}
    market = gavel_market(named, dict(zip(example.types, example.capacity, strict=True)), digits=None)
    program = CooperativeOEF().formulate(market, None)
    found = Exact().solve(program)
    assert found.status is Status.OPTIMAL
    assert max(value.denominator for value in found.x) > 10**15
    check_optimality(program, found, accuracy=0)


@pytest.mark.slow
def test_two_hundred_users():
    program = cooperative(200, 10)
    found = Exact().solve(program)
    assert found.status is Status.OPTIMAL
    assert program.violations(found.x) == {}


@pytest.mark.slow
def test_proofs_for_a_hundred_users():
    proofs_of(100, 10)
