"""Our algorithm for FFT's program of one round, against HiGHS on the plain program, brute force and exact bounds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt.backends import Highs
from fairopt.backends.exact.bound import exact_bound
from fairopt.backends.solution import Solution, Status
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment import IDLE, GangAssignment, solve_gangs, usable_gpus
from fairopt.methods.gang_assignment.deviations import (
    SLACK,
    UNIT,
)

GANGS = ([1, 2, 4, 8], [1], [3, 5, 7], [2, 4, 16], [1, 1, 1, 8])
INSTANCES = 500


def instance(seed: int) -> GangAssignment:
    """One of many kinds: gang mixes, tied, equal and huge costs, jobs that do not fit, a least from 0 to too much."""
    random = np.random.default_rng([7, seed])
    n, k = int(random.integers(1, 41 if seed % 10 == 0 else 21)), int(random.integers(1, 5))
    gangs = random.choice(GANGS[seed % 5], n)
    cost = random.normal(0, 10, (n, k))
    costs = (
        lambda: cost,
        lambda: np.round(cost / 5),
        lambda: np.full((n, k), float(random.integers(-2, 3))),
        lambda: np.round(cost) * 1e-7,
        lambda: cost * 1e9 + random.normal(0, 1, (n, k)),
        lambda: np.repeat(cost[:, :1], k, axis=1),
    )[seed // 5 % 6]()
    capacity = random.integers(0, [12, 30, 60][seed % 3], k)
    allowed = random.random((n, k)) < [1, 0.7, 0.3][seed // 3 % 3]
    usable = usable_gpus(gangs, allowed, capacity)
    least = (usable, usable, usable // 2, 0, usable + 1 + int(random.integers(0, 3)))[seed // 7 % 5]
    return GangAssignment(costs, gangs, capacity, least, allowed)


def tolerance(problem: GangAssignment) -> float:
    return 1e-9 * float(np.abs(problem.cost[problem.allowed]).sum()) + 1e-12


def assert_right(problem: GangAssignment, solution: Solution) -> None:
    """The assignment is one, its cost is what is said, and the bounds are below it."""
    type_of = solution.values["type_of"]
    assert solution.objective is not None
    assert not problem.violations(type_of)
    runs = np.flatnonzero(type_of != IDLE)
    cost = sum((Fraction(float(problem.cost[job, type_of[job]])) for job in runs.tolist()), Fraction(0))
    assert solution.objective == pytest.approx(float(cost), rel=1e-15, abs=1e-300)
    assert solution.lower <= solution.objective
    assert solution.objective - solution.lower <= tolerance(problem)


@pytest.mark.parametrize(
    "tens",
    [pytest.param(tens, marks=[pytest.mark.slow] if tens % 4 else []) for tens in range(INSTANCES // 10)],
)
def test_the_optimum_is_that_of_the_plain_program(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        problem = instance(seed)
        ours, highs = solve_gangs(problem), Highs().solve(problem.program(), gap=0.0)
        assert ours.status is highs.status, seed
        if ours.status is Status.OPTIMAL:
            assert_right(problem, ours)
            assert ours.objective == pytest.approx(float(highs.objective or 0), rel=1e-9, abs=tolerance(problem)), seed


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_multipliers_prove_the_dual_bound_in_fractions(seed: int) -> None:
    problem = instance(seed)
    solution = solve_gangs(problem)
    if "type_of" not in solution.values:
        assert solution.status is Status.INFEASIBLE
        return
    price, reward = -solution.duals["capacity"], solution.duals["work_conserving"]
    assert (price >= 0).all()
    assert reward >= 0
    tight = problem.tightened(problem.classes())
    net = np.where(tight.allowed, tight.cost + (price - reward) * tight.gangs[:, None], 0.0)
    dual = np.concatenate([net.min(axis=1, initial=0.0), -price, [reward]])
    proved = exact_bound(tight.program(), dual)
    assert solution.objective is not None
    assert proved is not None
    assert proved[0] <= Fraction(solution.objective) + Fraction(tolerance(problem))
    # what floats say of the dual is below what is so, but for the rounding of the multipliers themselves
    assert solution.effort["dual_bound"] <= proved[0] + Fraction(tolerance(problem))


def brute_force(problem: GangAssignment) -> tuple[float, int]:
    """Return the least cost, infinite where there is no assignment, and the most GPUs that can be busy."""
    best, busy = np.inf, 0
    n, k = problem.cost.shape
    anything = replace(problem, least=0)
    for types in itertools.product(range(-1, k), repeat=n):
        type_of = np.array(types, dtype=np.int64)
        if anything.violations(type_of):
            continue
        runs = np.flatnonzero(type_of != IDLE)
        busy = max(busy, int(problem.gangs[runs].sum()))
        if not problem.violations(type_of):
            best = min(best, float(problem.cost[runs, type_of[runs]].sum()))
    return best, busy


@pytest.mark.parametrize("seed", seeds(14, 40))
def test_brute_force_agrees(seed: int) -> None:
    random = np.random.default_rng([11, seed])
    n, k = int(random.integers(0, 6)), int(random.integers(1, 4))
    gangs = random.choice([1, 2, 3, 5], n)
    allowed = random.random((n, k)) < 0.8
    cost = np.round(random.normal(0, 3, (n, k)), int(seed % 3))
    problem = GangAssignment(cost, gangs, random.integers(0, 8, k), int(random.integers(0, 12)), allowed)
    best, busy = brute_force(problem)
    assert usable_gpus(gangs, allowed, problem.capacity) == busy
    solution = solve_gangs(problem)
    if best == np.inf:
        assert solution.status is Status.INFEASIBLE
        assert solution.effort["usable"] == busy
        with pytest.raises(NotSolved, match=f"at most {busy}"):
            solution.require_optimal()
    else:
        assert solution.require_optimal().objective == pytest.approx(best, abs=1e-9)
        assert_right(problem, solution)


def plain(cost: list[list[float]], gangs: list[int], capacity: list[int], least: int) -> GangAssignment:
    table = np.array(cost, dtype=float).reshape(len(gangs), len(capacity))
    return GangAssignment(table, np.array(gangs), np.array(capacity), least, np.ones(table.shape, dtype=bool))


@pytest.mark.parametrize(
    ("problem", "objective"),
    [
        (plain([], [], [4, 4], 0), 0.0),
        (plain([[1, 2]], [4], [0, 0], 0), 0.0),
        (plain([[-1, -2]], [4], [0, 0], 0), 0.0),  # larger than any type
        (plain([[1], [2], [3]], [1, 1, 1], [3], 3), 6.0),  # everybody must run
        (plain([[1], [2], [3]], [2, 2, 2], [5], 3), 3.0),  # 3 GPUs come in twos
        (plain([[1.0, 1.0]] * 6, [2] * 6, [3, 5], 6), 3.0),  # types that cannot be filled
        (plain([[-1.0, 1.0], [-1.0, 1.0]], [1, 1], [1, 1], 0), -1.0),
    ],
)
def test_small_cases(problem: GangAssignment, objective: float) -> None:
    solution = solve_gangs(problem).require_optimal()
    assert solution.objective == objective
    assert solution.lower == pytest.approx(objective, abs=1e-9)


def test_like_jobs_are_one_group() -> None:
    problem = plain([[3.0, 1.0]] * 500 + [[1.0, 2.0]] * 500, [1] * 500 + [2] * 500, [300, 301], 601)
    solution = solve_gangs(problem).require_optimal()
    assert solution.effort["groups"] == 2
    # 300 GPUs of gangs of two on the first type, and the second filled by single GPUs at 1 or pairs at 2
    highs = Highs().solve(problem.program(), gap=0.0)
    assert solution.objective == pytest.approx(float(highs.objective or 0))


def test_whole_costs_are_proven_exactly() -> None:
    random = np.random.default_rng(3)
    cost = np.round(random.normal(0, 2, (300, 4)))
    gangs = random.choice([1, 2, 4, 8], 300)
    allowed = np.ones(cost.shape, dtype=bool)
    solution = solve_gangs(GangAssignment(cost, gangs, np.array([50, 40, 30, 20]), 140, allowed)).require_optimal()
    assert solution.lower == solution.objective
    assert solution.gap == 0


def test_a_warm_start_gives_the_same_optimum() -> None:
    random = np.random.default_rng(5)
    cost, gangs = random.normal(0, 10, (1000, 4)), random.choice([1, 2, 4], 1000)
    problem = GangAssignment(cost, gangs, np.array([60, 60, 60, 60]), 240, np.ones(cost.shape, dtype=bool))
    first = solve_gangs(problem).require_optimal()
    cost = cost.copy()
    cost[:50] += random.normal(0, 1, (50, 4))
    changed = replace(problem, cost=cost)
    cold, warm = solve_gangs(changed), solve_gangs(changed, start=first.warm_start)
    assert cold.require_optimal().objective == pytest.approx(warm.require_optimal().objective, rel=1e-12)


def test_a_limit_and_a_gap() -> None:
    random = np.random.default_rng(6)
    cost, gangs = random.normal(0, 10, (200, 3)), random.choice([1, 2, 4], 200)
    problem = GangAssignment(cost, gangs, np.array([31, 33, 35]), 99, np.ones(cost.shape, dtype=bool))
    stopped = solve_gangs(problem, time_limit=0.0)
    assert stopped.status is Status.LIMIT
    loose, best = solve_gangs(problem, gap=0.5).require_optimal(), solve_gangs(problem).require_optimal()
    assert loose.gap <= 0.5
    assert loose.lower <= best.objective <= loose.objective + tolerance(problem)  # type: ignore[operator]


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_cost_does_not_matter(scale: float) -> None:
    for seed in range(0, 30, 6):
        problem = instance(seed)
        if solve_gangs(problem).status is Status.OPTIMAL:
            scaled = solve_gangs(replace(problem, cost=problem.cost * scale)).require_optimal()
            assert scaled.objective == pytest.approx(scale * (solve_gangs(problem).objective or 0), rel=1e-9)


def test_what_the_integer_program_may_miss_is_far_below_the_tolerance() -> None:
    assert SLACK / UNIT < 1e-10


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"cost": np.zeros(3)}, "cost"),
        ({"cost": np.array([["a"]])}, "cost"),
        ({"cost": np.array([[np.nan, 0.0]])}, "cost[0, 0]"),
        ({"allowed": np.ones((1, 1), dtype=bool)}, "allowed"),
        ({"allowed": np.ones((1, 2))}, "allowed"),
        ({"gangs": np.array([0])}, "gangs[0]"),
        ({"gangs": np.array([1.5])}, "gangs"),
        ({"gangs": np.array([1, 2])}, "gangs"),
        ({"capacity": np.array([1, -1])}, "capacity[1]"),
        ({"least": -1}, "least[0]"),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], place: str) -> None:
    good = plain([[1.0, 2.0]], [1], [1, 1], 0)
    with pytest.raises(BadInput) as error:
        replace(good, **changed)  # type: ignore[arg-type]
    assert error.value.place == place


def test_bad_options_are_named() -> None:
    problem = plain([[1.0, 2.0]], [1], [1, 1], 0)
    with pytest.raises(BadInput, match="options"):
        solve_gangs(problem, gap=-1.0)
    start = solve_gangs(plain([[1.0]], [1], [1], 1)).warm_start
    with pytest.raises(BadInput, match="start"):
        solve_gangs(problem, start=start)


@pytest.mark.parametrize(
    ("gangs", "capacity", "usable"),
    [([3, 5, 7], [9], 8), ([2] * 10, [5, 5], 8), ([8, 8, 1], [15, 3], 9), ([6, 10, 15], [16, 15], 31), ([], [5], 0)],
)
def test_usable_gpus(gangs: list[int], capacity: list[int], usable: int) -> None:
    allowed = np.ones((len(gangs), len(capacity)), dtype=bool)
    assert usable_gpus(np.array(gangs, dtype=np.int64), allowed, np.array(capacity)) == usable
