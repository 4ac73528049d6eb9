"""Families draw the same everywhere, and tasks let no tampered answer through."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt import allocate, discovery
from fairopt.backends.exact import Exact
from fairopt.benchmarks.tasks.shares import Duals, fair
from fairopt.errors import BadInput
from fairopt.experiment.bench import Instance, Task, kinds
from fairopt.policy import decide
from fairopt.problem import Market

TASKS = ("oef-noncooperative", "oef-cooperative", "max-min", "water-filling", "nash-welfare")
FAMILIES = ("oef-growing", "uniform", "ties", "mixed", "gavel-table")
Floats = Any


def drawn(family: str, seed: int, **parameters: object) -> Instance:
    return kinds.family(family).draw(seed, parameters)


def task_of(name: str) -> Task:
    return kinds.task(name)


def answer(name: str, market: Market) -> Floats:
    """Return the optimum by the generic way."""
    policy = discovery.policy(name)
    return np.asarray(decide(policy, market, vertex=True).shares, dtype=float)


# -- families ----------------------------------------------------------------------------------------------------------
def test_digests_are_the_same_in_another_process_and_as_they_were() -> None:
    pinned = {
        "oef-growing": "d39e6d56b1cfc5fe998dd606d1d0e76a893df3715154df6d518618ca3b347102",
        "mixed": "df277fbe12e31e578bfad2438cf390b63b2aa9c0c0752cee1e9cea458dab9778",
    }
    code = (
        "from fairopt import discovery; import sys;"
        "found = [discovery.load(discovery.FAMILIES, name)() for name in sys.argv[1:]];"
        "print(*(each.draw(7, {'users': 20, 'types': 4}).digest for each in found))"
    )
    ran = subprocess.run([sys.executable, "-c", code, *pinned], capture_output=True, text=True, check=True)
    here = [drawn(name, 7, users=20, types=4).digest for name in pinned]
    assert ran.stdout.split() == here == list(pinned.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_content_is_what_the_digest_tells_apart(family: str) -> None:
    first = drawn(family, 1, users=12)
    assert first.size == 12
    assert first.digest == drawn(family, 1, users=12).digest
    others = [drawn(family, 2, users=12), drawn(family, 1, users=13), drawn(family, 1, users=12, capacity="per-user")]
    assert len({first.digest, *(each.digest for each in others)}) == 4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("capacity", ["cluster", "per-user", "skewed", "one-empty"])
def test_every_style_gives_a_market_in_which_all_can_run(family: str, capacity: str) -> None:
    for users in (1, 2, 30):
        market = drawn(family, users, users=users, capacity=capacity).problem
        assert ((market.speedup > 0) & (market.capacity > 0)).any(axis=1).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "'users' is missing"),
        ({"users": 0}, "at least 1"),
        ({"users": 2.5}, "got 2.5"),
        ({"users": 2, "type": 3}, "Did you mean 'types'"),
        ({"users": 2, "capacity": "clustr"}, "Did you mean 'cluster'"),
        ({"users": 2, "zeros": 2}, "from 0 to 1"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        drawn("mixed", 0, **parameters)


# -- tasks -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("oef-growing", {"users": 5, "types": 3}),
        ("mixed", {"users": 30, "types": 4, "capacity": "one-empty"}),
        ("ties", {"users": 25, "types": 3}),
        ("uniform", {"users": 1, "types": 1}),
    ],
)
def test_the_optimum_is_accepted_with_a_proven_gap(name: str, family: str, parameters: dict[str, Any]) -> None:
    instance, task = drawn(family, 3, **parameters), task_of(name)
    judged = task.judge(instance, answer(name, instance.problem), task.reference(instance))
    assert judged.accepted, judged.note
    assert judged.violation <= 1e-7
    assert judged.gap < 1e-7


def overbooked(shares: Floats, market: Market) -> Floats:
    return shares * 1.001


def negative(shares: Floats, market: Market) -> Floats:
    return shares - 1e-4 * market.capacity


def to_one_user(shares: Floats, market: Market) -> Floats:
    taken = shares.copy()
    taken[0] += 0.01 * taken[1:].sum(axis=0)
    taken[1:] *= 0.99
    return taken


def suboptimal(shares: Floats, market: Market) -> Floats:
    return shares * 0.9999


def of_another_shape(shares: Floats, market: Market) -> Floats:
    return shares[:-1]


def not_finite(shares: Floats, market: Market) -> Floats:
    broken = shares.copy()
    broken[0, 0] = np.nan
    return broken


def complex_(shares: Floats, market: Market) -> Any:
    return shares + 1j


def ragged(shares: Floats, market: Market) -> Any:
    return [[1.0, 2.0], [3.0]]


def barely_overbooked(shares: Floats, market: Market) -> Floats:
    return shares * (1 + 1e-5)


def barely_short(shares: Floats, market: Market) -> Floats:
    return shares * (1 - 1e-5)


def a_little_below_zero_each(shares: Floats, market: Market) -> Floats:
    """What many owe together pays for one; no single debt is above the tolerance."""
    owing = shares - 0.9e-6 * market.capacity
    owing[0] += 0.9e-6 * market.capacity * len(shares)
    return owing


def a_text(shares: Floats, market: Market) -> Any:
    return "all of it"


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    "tampered",
    [
        *(overbooked, negative, to_one_user, suboptimal, of_another_shape, not_finite, a_text),
        *(complex_, ragged, barely_overbooked, barely_short, a_little_below_zero_each),
    ],
)
@pytest.mark.parametrize("family", ["oef-growing", "mixed"])
def test_no_tampered_answer_is_accepted(name: str, tampered: Callable[..., Any], family: str) -> None:
    instance, task = drawn(family, 5, users=12, types=3), task_of(name)
    good = answer(name, instance.problem)
    reference = task.reference(instance)
    assert task.judge(instance, good, reference).accepted
    assert not task.judge(instance, tampered(good, instance.problem), reference).accepted


def test_envy_and_unequal_levels_and_demands_are_named() -> None:
    instance = drawn("mixed", 5, users=12, types=3)
    market = instance.problem
    greedy = answer("max-efficiency", market)
    envious = task_of("oef-cooperative").judge(instance, greedy, task_of("oef-cooperative").reference(instance))
    unequal = task_of("oef-noncooperative").judge(instance, greedy, task_of("oef-noncooperative").reference(instance))
    assert "envy of" in envious.note
    assert "equal throughput" in unequal.note
    limited = int(np.argmin(market.limit))
    too_much = np.zeros(market.shape)
    too_much[limited] = market.capacity
    over = task_of("max-min").judge(instance, too_much, task_of("max-min").reference(instance))
    assert f"demand of {market.users[limited]}" in over.note


@pytest.mark.parametrize("name", ["oef-noncooperative", "oef-cooperative", "max-min", "nash-welfare"])
def test_what_multipliers_prove_is_never_below_the_optimum(name: str) -> None:
    """Whatever the multipliers: a bound that a contender could push below the truth would be worth nothing."""
    random = np.random.default_rng(11)
    task: Any = task_of(name)
    for seed in range(12):
        family = ("mixed", "ties", "uniform")[seed % 3]
        market = drawn(family, seed, users=int(random.integers(1, 6)), types=int(random.integers(1, 4))).problem
        n, k = market.shape
        best = task.objective(market, answer(name, market))
        for _ in range(20):
            pairs = random.integers(0, n, (2, 6))
            pairs = pairs[:, pairs[0] != pairs[1]]
            scale = 10.0 ** random.uniform(-3, 3)
            demand = np.where(np.isfinite(market.limit), random.random(n) * scale, 0.0)
            duals = Duals(random.random(k) * scale, demand, (pairs, random.random(pairs.shape[1]) * scale))
            assert task.upper(market, duals) >= best - 1e-7 * abs(best)


def test_the_own_partition_is_worth_what_the_market_says() -> None:
    for seed in range(6):
        market = drawn("mixed", seed, users=9, types=4).problem
        assert fair(market) == pytest.approx(market.fair_utility(), rel=1e-12)


@pytest.mark.parametrize("name", ["oef-noncooperative", "oef-cooperative", "max-min"])
def test_bounds_meet_the_exact_optimum(name: str) -> None:
    instance = drawn("mixed", 2, users=6, types=3)
    exact = allocate(discovery.policy(name), instance.problem, Exact())
    assert isinstance(exact.objective, Fraction)
    upper = task_of(name).reference(instance).upper
    assert 0 <= upper / float(exact.objective) - 1 < 1e-11


def test_what_prices_prove_of_levels_is_told_apart_from_what_they_do_not() -> None:
    from fairopt.benchmarks.tasks.shares import told_duals
    from fairopt.benchmarks.tasks.water_filling import decisive, raisable

    market = drawn("mixed", 4, users=20, types=4).problem
    decision = allocate(discovery.policy("water-filling"), market)
    rounds = [each for proof in decisive(decision) if (each := told_duals(market, proof.duals)) is not None]
    task: Any = task_of("water-filling")
    levels = task.ratios(market, np.asarray(decision.shares, dtype=float))
    assert rounds
    assert raisable(market, levels, rounds) < 1e-9
    # without a round nothing holds those down who are below their demand; somebody lowered can be raised again
    assert raisable(market, levels, []) > 1e-3
    for user in range(20):
        lowered = levels.copy()
        lowered[user] *= 0.999
        assert raisable(market, lowered, rounds) > 0.999e-3


def test_a_bound_too_loose_to_tell_is_neither_solved_nor_wrong() -> None:
    from fairopt.benchmarks.tasks.shares import Bound

    instance = drawn("oef-growing", 5, users=12, types=3)
    task = task_of("max-min")
    judged = task.judge(instance, answer("max-min", instance.problem), Bound(1e3, 1.0, "a guess"))
    assert not judged.accepted
    assert not judged.proven


def test_levels_that_prices_do_not_prove_are_those_of_the_exact_simplex_method() -> None:
    task: Any = task_of("water-filling")
    task_module = sys.modules[type(task).__module__]
    market = drawn("mixed", 4, users=6, types=3).problem
    instance = Instance("", "", 6, 0, {}, "", market)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_module, "decisive", lambda decision: ())
        filled = task.reference(instance)
    assert "the exact simplex method" in filled.note
    assert task.judge(instance, answer("water-filling", market), filled).accepted


def test_only_feasibility_is_told_of_a_batch_too_large_for_the_printed_algorithms() -> None:
    from fairopt.benchmarks.peers.posted_prices import FairoptPacking

    instance = drawn("posted-price-batches", 1, jobs=4, servers=3, small=True)
    contender = FairoptPacking()
    plan = contender.solve(contender.build("posted-prices", instance.problem, time_limit=60, threads=1))
    judged = task_of("posted-prices").judge(instance, plan, {"plan": None})
    assert judged.accepted
    assert np.isnan(judged.gap)
