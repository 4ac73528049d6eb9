"""Deviations by dynamic programming against HiGHS; warm starts over sequences of rounds; limits of time."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from drawn_seeds import counts, seeds

from fairopt.backends import Highs
from fairopt.backends.solution import Status
from fairopt.methods import result
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs, usable_gpus
from fairopt.methods.gang_assignment.deviations import Deviations, loss_of, solve_deviations
from fairopt.methods.gang_assignment.dynamic_program import solve_by_states
from fairopt.methods.gang_assignment.groups import EVERYTHING, Groups, Priced
from fairopt.program import Array


def some_deviations(seed: int) -> Deviations:
    """Deviations of few groups of one to nine like jobs, at duals that need not be good; a third have tied costs."""
    random = np.random.default_rng([13, seed])
    groups, types = int(random.integers(2, 14)), int(random.integers(1, 5))
    gang = random.choice(([1, 2, 4, 8], [3, 5, 7], [4, 6, 9], [1, 16])[seed % 4], groups)
    count = random.integers(1, 10 if seed % 2 else 2, groups)
    cost = random.normal(0, 10, (types, groups))
    if seed % 3 == 0:
        cost = np.round(cost / 5)
    cost[random.random(cost.shape) < 0.1] = np.inf
    capacity = np.zeros(types, dtype=np.int64)
    chosen = random.integers(0, types + 1, groups)  # capacities that some assignment fills, mostly
    np.add.at(capacity, chosen[chosen < types], (gang * random.integers(1, count + 1))[chosen < types])
    priced = Priced.at(
        Groups(cost, gang, count, capacity, True, np.arange(groups), np.arange(groups + 1)), random.normal(0, 1, types)
    )
    return Deviations.within(priced, EVERYTHING if seed % 5 else float(random.uniform(5, 20)))


def busy(deviations: Deviations, moved: Array) -> Array:
    """The GPUs that moves bring to each type."""
    types = len(deviations.residual)
    base, gpus = deviations.priced.base[deviations.group], deviations.priced.groups.size[deviations.group] * moved
    arrive = np.bincount(deviations.to, weights=gpus, minlength=types + 1)
    return (arrive - np.bincount(base, weights=gpus, minlength=types + 1))[:types]


@pytest.mark.parametrize("ten", seeds(8, 30))
def test_moves_cost_the_same_by_states_and_by_highs(ten: int) -> None:
    for seed in range(10 * ten, 10 * ten + 10):
        deviations = some_deviations(seed)
        highs, states = solve_deviations(deviations, integer=True), solve_by_states(deviations)
        assert states is not None
        if states.x is None or states.status is Status.LIMIT:
            # nothing within these deviations, or nothing that leaves each group as many jobs as it has
            assert states.status is Status.LIMIT or highs.x is None, seed
            assert min(states.bound, deviations.limit) <= loss_of(highs) + 1e-6, seed
            continue
        counts = deviations.priced.groups.count
        assert (busy(deviations, states.x) == deviations.residual).all()
        used = np.bincount(deviations.group, weights=states.x, minlength=len(counts))
        assert (used <= counts).all()
        assert states.objective == pytest.approx(float(states.x @ deviations.regret))
        if states.bound >= deviations.limit * (1 - 1e-9):  # whatever is better would be outside of these deviations
            assert loss_of(highs) >= deviations.limit * (1 - 1e-9) - 1e-6
        else:
            assert states.objective == pytest.approx(loss_of(highs), abs=1e-6), seed


def test_most_small_problems_are_proven_by_states() -> None:
    outcomes = [solve_by_states(some_deviations(seed)) for seed in range(100)]
    proven = [each for each in outcomes if each is not None and each.status is not Status.LIMIT]
    assert len(proven) >= 90


@pytest.mark.parametrize("count", counts(20, 60))
def test_a_point_within_the_slack_is_not_improved_and_a_cheaper_one_is_found(count: int) -> None:
    for seed in range(count):
        deviations = some_deviations(seed)
        best = solve_by_states(deviations)
        if best is None or best.x is None or not best.objective > 0:
            continue
        again = solve_by_states(deviations, start=best.x)
        kept = solve_by_states(deviations, start=best.x, slack=2 * best.objective)
        assert again is not None
        assert kept is not None
        assert again.objective == pytest.approx(best.objective)
        assert kept.x is best.x
        assert kept.bound <= best.objective


def cluster(seed: int, jobs: int, spread: float = 1.0) -> GangAssignment:
    random = np.random.default_rng([17, seed])
    cost = random.normal(0, 10, (jobs, 3)) * random.lognormal(0, spread, (jobs, 1))
    gangs = random.choice([1, 1, 1, 2, 4, 8], jobs)
    allowed = random.random((jobs, 3)) < 0.9
    capacity = np.array([40, 24, 16])
    return GangAssignment(cost, gangs, capacity, usable_gpus(gangs, allowed, capacity), allowed)


@pytest.mark.parametrize("jobs", [40, 250])
def test_sixty_rounds_cost_the_same_cold_and_warm(jobs: int) -> None:
    random, problem = np.random.default_rng(jobs), cluster(0, jobs)
    start = None
    for _ in range(60):
        cost, arrived = problem.cost * 1.02, random.random(jobs) < 0.1
        cost[arrived] = random.normal(0, 10, (int(arrived.sum()), 3))
        problem = replace(problem, cost=cost)
        cold, warm = solve_gangs(problem).require_optimal(), solve_gangs(problem, start=start).require_optimal()
        assert warm.objective == pytest.approx(cold.objective, rel=1e-11)
        assert not problem.violations(warm.values["type_of"])
        start = warm.warm_start


@pytest.mark.parametrize("factor", [0.0, -1.0, 1e6, np.nan, np.inf])
def test_multipliers_that_are_far_off_do_no_harm(factor: float) -> None:
    problem = cluster(1, 400)
    cold = solve_gangs(problem).require_optimal()
    with np.errstate(invalid="ignore"):
        start = {name: each * factor for name, each in cold.duals.items()}
        warm = solve_gangs(problem, start=start).require_optimal()
    assert warm.objective == pytest.approx(cold.objective, rel=1e-11)


def test_large_costs_and_gangs_that_do_not_divide_each_other_agree_with_highs() -> None:
    problem = cluster(2, 48, spread=3.0)
    awkward = replace(problem, gangs=np.random.default_rng(2).choice([4, 6, 9], 48))
    least = usable_gpus(awkward.gangs, awkward.allowed, awkward.capacity)
    for each in (problem, replace(awkward, least=least)):
        ours = solve_gangs(each).require_optimal()
        highs = Highs().solve(each.program(), gap=0.0).require_optimal()
        assert ours.objective == pytest.approx(float(highs.objective or 0), rel=1e-9)
        assert ours.gap <= 1e-9


@pytest.mark.parametrize("integer", [False, True])
def test_a_program_of_deviations_keeps_its_limit_of_time(integer: bool) -> None:
    problem = cluster(3, 400)
    groups = problem.tightened(problem.classes()).groups()
    deviations = Deviations.within(Priced.at(groups, np.zeros(3)), EVERYTHING)
    assert solve_deviations(deviations, integer=integer, time_limit=0.0).status is Status.LIMIT


@pytest.mark.parametrize("limit", [0.5, 3.5, 10.5])
def test_a_limit_of_time_is_kept(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which a second is over whenever it is read: what is begun then may end, and no more is."""
    problem = replace(cluster(3, 400), gangs=np.random.default_rng(3).choice([4, 6, 9], 400), least=0)
    with monkeypatch.context() as patch:
        clock = count()
        patch.setattr(result, "perf_counter", lambda: float(next(clock)))
        stopped = solve_gangs(problem, time_limit=limit)
    assert stopped.status is Status.LIMIT
    assert next(clock) <= limit + 6
    if stopped.objective is not None:
        best = solve_gangs(problem).require_optimal()
        assert best.objective is not None
        assert stopped.lower <= best.objective + 1e-6 <= stopped.objective + 2e-6
