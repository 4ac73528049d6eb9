"""The core by dynamic programming against HiGHS; warm starts over sequences of rounds; limits of time."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from fairopt.backends.solution import Status
from fairopt.methods import GangAssignment, Multipliers, solve_gangs, usable_gpus
from fairopt.methods.gang_assignment.bounds import EVERYTHING, Groups, Priced
from fairopt.methods.gang_assignment.core import Deviations, solve_core
from fairopt.methods.gang_assignment.dynamic_program import solve_labels
from fairopt.program import Array


def core(seed: int) -> Deviations:
    """A core of few groups of one to nine like jobs, at wages that need not be good; a third have tied costs."""
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
    priced = Priced.at(Groups(cost, gang, count, capacity, True), random.normal(0, 1, types))
    return Deviations.within(priced, EVERYTHING if seed % 5 else float(random.uniform(5, 20)))


def busy(deviations: Deviations, moved: Array) -> Array:
    """The GPUs that moves bring to each type."""
    types = len(deviations.residual)
    base, gpus = deviations.priced.base[deviations.group], deviations.priced.groups.size[deviations.group] * moved
    arrive = np.bincount(deviations.to, weights=gpus, minlength=types + 1)
    return (arrive - np.bincount(base, weights=gpus, minlength=types + 1))[:types]


@pytest.mark.parametrize("ten", range(30))
def test_the_core_costs_the_same_by_states_and_by_highs(ten: int) -> None:
    for seed in range(10 * ten, 10 * ten + 10):
        deviations = core(seed)
        highs, states = solve_core(deviations, integer=True), solve_labels(deviations)
        assert states is not None
        if states.moved is None or states.status is Status.LIMIT:
            # nothing within these deviations, or nothing that leaves each group as many jobs as it has
            assert states.status is Status.LIMIT or highs.moved is None, seed
            assert min(states.bound, deviations.limit) <= highs.loss + 1e-6, seed
            continue
        counts = deviations.priced.groups.count
        assert (busy(deviations, states.moved) == deviations.residual).all()
        used = np.bincount(deviations.group, weights=states.moved, minlength=len(counts))
        assert (used <= counts).all()
        assert states.loss == pytest.approx(float(states.moved @ deviations.regret))
        if states.bound >= deviations.limit * (1 - 1e-9):  # whatever is better would be outside of this core
            assert highs.loss >= deviations.limit * (1 - 1e-9) - 1e-6
        else:
            assert states.loss == pytest.approx(highs.loss, abs=1e-6), seed


def test_most_small_cores_are_proven_without_an_integer_program() -> None:
    outcomes = [solve_labels(core(seed)) for seed in range(100)]
    proven = [each for each in outcomes if each is not None and each.status is not Status.LIMIT]
    assert len(proven) >= 90


def test_a_point_within_the_slack_is_not_improved_and_a_cheaper_one_is_found() -> None:
    for seed in range(60):
        deviations = core(seed)
        best = solve_labels(deviations)
        if best is None or best.moved is None or not best.loss > 0:
            continue
        again = solve_labels(deviations, start=best.moved)
        kept = solve_labels(deviations, start=best.moved, slack=2 * best.loss)
        assert again is not None
        assert kept is not None
        assert again.loss == pytest.approx(best.loss)
        assert kept.moved is best.moved
        assert kept.bound <= best.loss


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
    start: Multipliers | None = None
    for _ in range(60):
        cost, arrived = problem.cost * 1.02, random.random(jobs) < 0.1
        cost[arrived] = random.normal(0, 10, (int(arrived.sum()), 3))
        problem = replace(problem, cost=cost)
        cold, warm = solve_gangs(problem).require_optimal(), solve_gangs(problem, start=start).require_optimal()
        assert warm.objective == pytest.approx(cold.objective, rel=1e-11)
        assert warm.type_of is not None
        assert not problem.violations(warm.type_of)
        start = warm.multipliers


@pytest.mark.parametrize("factor", [0.0, -1.0, 1e6, np.nan, np.inf])
def test_multipliers_that_are_far_off_do_no_harm(factor: float) -> None:
    problem = cluster(1, 400)
    cold = solve_gangs(problem).require_optimal()
    assert cold.multipliers is not None
    with np.errstate(invalid="ignore"):
        start = Multipliers(cold.multipliers.price * factor, cold.multipliers.reward * factor)
        warm = solve_gangs(problem, start=start).require_optimal()
    assert warm.objective == pytest.approx(cold.objective, rel=1e-11)
    assert warm.effort.linear <= cold.effort.linear + 2


def test_large_costs_and_gangs_that_do_not_divide_each_other_need_no_integer_program() -> None:
    problem = cluster(2, 48, spread=3.0)
    assert solve_gangs(problem).require_optimal().effort.integer == 0
    awkward = replace(problem, gangs=np.random.default_rng(2).choice([4, 6, 9], 48))
    least = usable_gpus(awkward.gangs, awkward.allowed, awkward.capacity)
    assert solve_gangs(replace(awkward, least=least)).require_optimal().effort.integer == 0


def test_a_limit_of_time_is_kept() -> None:
    problem = replace(cluster(3, 400), gangs=np.random.default_rng(3).choice([4, 6, 9], 400), least=0)
    began = perf_counter()
    stopped = solve_gangs(problem, time_limit=0.01)
    assert perf_counter() - began < 2.0
    if stopped.objective is not None:
        assert stopped.bound is not None
        best = solve_gangs(problem).require_optimal()
        assert best.objective is not None
        assert stopped.bound <= best.objective + 1e-6 <= stopped.objective + 2e-6
