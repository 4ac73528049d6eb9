"""Cooperative OEF by its own algorithm: against the exact optimum, and what it proves of itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import counts, seeds

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.benchmarks.float_samples import Speedups, even, large_market, odd_market, rising, sparse
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free import envy_free_shares, group_multipliers, relaxation, restricted_lp
from fairopt.methods.envy_free import solve as envy_free_solve
from fairopt.methods.envy_free.restricted_lp import RestrictedLP
from fairopt.methods.grouping import evened_out, identical_rows, shared_out
from fairopt.models import CooperativeOEF
from fairopt.policy import Allocation, follow
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Formulation

#: What is asked of the proof; for most markets it comes to 1e-10.
GAP = 1e-7
EVERY = 10
#: In some of the small markets units lie six orders of magnitude apart.
UNITS = ("units",)


def check_against_exact(seed: int) -> Allocation:
    market = odd_market(seed, apart=UNITS)
    own = allocate(CooperativeOEF(), market)
    exact = allocate(CooperativeOEF(), market.as_(Fraction), Exact()).objective
    assert Fraction(own.solution.lower) <= exact <= Fraction(own.solution.upper), seed
    assert own.solution.gap <= GAP, seed
    check_shares(market, own.shares)
    return own


def check_shares(market: Market, shares: np.ndarray, tolerance: float = 1e-9) -> None:
    assert (shares >= 0).all()
    assert (shares[market.speedup == 0] == 0).all()
    assert (shares.sum(axis=0) <= market.capacity * (1 + 1e-12)).all()
    assert (shares.sum(axis=1) <= market.limit * (1 + 1e-12)).all()
    own = (market.speedup * shares).sum(axis=1)
    of_others = market.speedup @ (shares / market.weight[:, None]).T * market.weight[:, None]
    scale = (market.speedup * market.capacity).max(axis=1) * market.weight / market.weight.sum()
    assert (of_others - own[:, None] <= tolerance * np.maximum(own, scale)[:, None]).all()


@pytest.fixture
def groups_from_the_first_user(monkeypatch):
    monkeypatch.setattr(envy_free_solve, "SMALL", 2)


@pytest.mark.parametrize("part", seeds(1, 4))
def test_it_agrees_with_the_exact_optimum(part):
    for seed in range(part, 160, 4):
        check_against_exact(seed)


@pytest.fixture
def groups_that_count_as_large(monkeypatch):
    """Groups whose rows come in where they are violated, users who go back to them, and rows that are dropped."""
    monkeypatch.setattr(envy_free_solve, "SMALL", 2)
    monkeypatch.setattr(group_multipliers, "FEW_MEMBERS", 2)
    monkeypatch.setattr(group_multipliers, "NEAR_LARGE", 2)
    monkeypatch.setattr(relaxation, "MOST_FREED", 2)
    monkeypatch.setattr(relaxation, "MANY_FREE", 0)
    monkeypatch.setattr(relaxation, "HIGHER", 0.0)
    monkeypatch.setattr(relaxation, "MANY_GAIN", 1)
    monkeypatch.setattr(restricted_lp, "MANY_ROWS", 10)
    monkeypatch.setattr(restricted_lp, "CROWDED", 1)


@pytest.mark.usefixtures("groups_that_count_as_large")
@pytest.mark.parametrize("far", [0.0, 1e9])
def test_it_agrees_where_groups_count_as_large(monkeypatch, far):
    monkeypatch.setattr(group_multipliers, "FAR", far)
    for seed in range(6):
        check_against_exact(seed)


@pytest.mark.usefixtures("groups_that_count_as_large")
def test_large_groups_are_proven(monkeypatch):
    market = large_market(120, 6, even)
    found = allocate(CooperativeOEF(), market)
    assert found.solution.gap <= GAP
    check_shares(market, found.shares)
    monkeypatch.undo()
    assert found.objective == pytest.approx(allocate(CooperativeOEF(), market).objective, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(EVERY))
def test_it_agrees_with_the_exact_optimum_on_many(part):
    for seed in set(range(160 + part, 1160, EVERY)) - {411, 715}:  # one is refused, one is proven to a quarter only
        check_against_exact(seed)


@pytest.mark.usefixtures("groups_from_the_first_user")
@pytest.mark.parametrize("part", seeds(1, 2))
def test_it_agrees_where_most_users_stand_in_single_type_groups(part):
    for seed in range(part, 80, 2):
        check_against_exact(seed)


@pytest.mark.slow
@pytest.mark.usefixtures("groups_from_the_first_user")
@pytest.mark.parametrize("part", range(EVERY))
def test_it_agrees_where_most_users_stand_in_single_type_groups_on_many(part):
    for seed in set(range(part, 1000, EVERY)) - {411, 715}:
        check_against_exact(seed)


@pytest.mark.usefixtures("groups_from_the_first_user")
@pytest.mark.parametrize("seed", range(6))
def test_larger_markets_agree_with_highs(seed):
    market = odd_market(seed, users=(30, 60), types=(1, 6), apart=UNITS)
    own, plain = allocate(CooperativeOEF(), market), allocate(CooperativeOEF(), market, Highs())
    # HiGHS solves to 1e-7
    assert own.solution.lower * (1 - 1e-6) <= plain.objective <= own.solution.upper * (1 + 1e-6)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)


@pytest.mark.parametrize(("users", "weights"), [(200, False), (150, True)])
def test_hundreds_of_users_are_proven(users, weights):
    market = large_market(users, 10, rising, weights=weights)
    own = allocate(CooperativeOEF(), market)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)
    check_bound(market, own.solution)


def limited_market(users: int, types: int, speedups: Speedups, *, few: bool = False, seed: int = 0) -> Market:
    """A market in which demands of 0.1 to 2 times the equal share bind for most users."""
    market, random = large_market(users, types, speedups, seed=seed), np.random.default_rng([seed, users])
    times = random.choice([0.25, 0.5, 1, 2], users) if few else random.uniform(0.1, 2, users)
    return Market.of_arrays(market.speedup, market.capacity, demand=times * market.capacity.sum() / users)


def nearly_proportional(random: np.random.Generator, users: int, types: int) -> np.ndarray:
    rows = np.outer(random.lognormal(0, 1, users), random.lognormal(0, 0.5, types))
    return rows * random.uniform(0.95, 1.05, rows.shape)


@pytest.mark.parametrize("few_demands", [False, True])
@pytest.mark.parametrize("speedups", [even, rising, nearly_proportional, sparse])
def test_demands_that_bind_for_most_users_agree_with_highs(monkeypatch, speedups, few_demands):
    monkeypatch.setattr(envy_free_solve, "LIMITED", 10)
    market = limited_market(60, 4, speedups, few=few_demands)
    own, plain = allocate(CooperativeOEF(), market), allocate(CooperativeOEF(), market, Highs())
    assert own.solution.effort["rounds"] == 1  # all rows were there: the interior-point method
    assert own.solution.lower * (1 - 1e-6) <= plain.objective <= own.solution.upper * (1 + 1e-6)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)
    check_bound(market, own.solution)


@pytest.mark.parametrize("markets", counts(20, 60))
def test_bounds_of_the_interior_point_method_hold_exactly(monkeypatch, markets):
    monkeypatch.setattr(envy_free_solve, "SMALL", 2)
    monkeypatch.setattr(envy_free_solve, "LIMITED", 3)
    inside = 0
    for seed in range(markets):
        inside += check_against_exact(seed).solution.warm_start is None
    assert inside > markets // 12


def test_proportional_users_with_different_demands_value_their_bundles_alike():
    market = limited_market(60, 4, even)
    pairs = np.concatenate([market.speedup[:30], 2 * market.speedup[:30]])
    market = Market.of_arrays(pairs, market.capacity, demand=market.demand)
    own, plain = allocate(CooperativeOEF(), market), allocate(CooperativeOEF(), market, Highs())
    assert own.objective == pytest.approx(plain.objective, rel=1e-6)
    assert own.solution.gap <= GAP
    worth = (pairs * own.shares).sum(axis=1)
    np.testing.assert_allclose(2 * worth[:30], worth[30:], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("speedups", [even, rising, nearly_proportional])
def test_four_hundred_users_whose_demands_bind_are_proven(speedups):
    market = limited_market(400, 10, speedups)
    own = allocate(CooperativeOEF(), market)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)


@pytest.mark.slow
def test_users_that_one_number_orders_are_proven_where_demands_bind():
    """Those who hold the same have no room between them: the restricted program proves what the inside does not."""
    random = np.random.default_rng([0, 200])
    speedup = np.linspace(1, 4, 10) ** random.uniform(0.2, 2, 200)[:, None]
    capacity = (200 * 10 ** random.uniform(-1.5, 0, 10)).round() + 1
    times = np.where(random.random(200) < 0.3, 100, random.uniform(0.05, 1.5, 200))
    market = Market.of_arrays(speedup, capacity, demand=times * capacity.sum() / 200)
    own = allocate(CooperativeOEF(), market)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)


@pytest.mark.slow
def test_a_thousand_users_that_one_number_orders_are_proven():
    """HiGHS's primal simplex ends a program of these with an error, from a basis and from nothing."""
    random = np.random.default_rng([1, 1000])
    speedup = np.linspace(1, 4, 10) ** random.uniform(0.2, 2, 1000)[:, None]
    market = Market.of_arrays(speedup, (1000 * 10 ** random.uniform(-1.5, 0, 10)).round() + 1)
    own = allocate(CooperativeOEF(), market)
    assert own.solution.gap <= GAP
    check_shares(market, own.shares)


def check_bound(market: Market, proven: object) -> None:
    """The duals, by the program's rows, prove the upper bound by weak duality, written here once more."""
    duals = proven.duals
    (envious, envied), y = duals["envy_free"]
    n = len(market.users)
    assert (y >= 0).all()
    worth = market.speedup * (1 + np.bincount(envious, y, minlength=n))[:, None]
    ratio = market.weight[envious] / market.weight[envied]
    np.subtract.at(worth, envied, (y * ratio)[:, None] * market.speedup[envious])
    prices = np.maximum((worth - duals["demand"][:, None]).max(axis=0), 0)
    limited = np.isfinite(market.limit)
    bound = prices @ market.capacity + duals["demand"][limited] @ market.limit[limited]
    assert bound <= proven.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", seeds(7, 20))
def test_duals_by_the_programs_rows_prove_the_bound(seed):
    market = odd_market(seed, apart=UNITS)
    check_bound(market, allocate(CooperativeOEF(), market).solution)


def test_identical_users_cost_nothing():
    distinct = large_market(50, 10, rising)
    pick = np.random.default_rng(3).integers(0, 50, 10_000)
    market = Market.of_arrays(distinct.speedup[pick], distinct.capacity)
    own = allocate(CooperativeOEF(), market)
    assert own.solution.effort["groups"] == 50
    assert own.solution.gap <= GAP
    for number in range(50):
        alike = own.shares[pick == number]
        assert (alike == alike[0]).all()
    check_bound(market, own.solution)


def test_proportional_users_are_of_one_kind_whatever_their_units():
    market = Market.of_arrays([[1, 3, 7], [2, 6, 14], [0.1, 0.3, 0.7], [5, 1, 1]], [3, 2, 4], weight=[1, 2, 3, 1])
    own = allocate(CooperativeOEF(), market)
    per_weight = own.shares / market.weight[:, None]
    # 0.1 : 0.3 and 1 : 3 differ in the last bit
    np.testing.assert_allclose(per_weight[:2], per_weight[1:3], rtol=1e-15)
    assert own.solution.gap <= GAP


def test_uniqueness_and_exact_decisions_work_as_before():
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    own = allocate(CooperativeOEF(), market)
    assert own.backend == "auto"
    np.testing.assert_allclose(own.shares, [[1, 0.25], [0, 0.75]])
    face = CooperativeOEF().optimal_face(own)
    assert face is not None
    np.testing.assert_allclose(Highs().solve(face).require_optimal().point, own.shares.ravel(), atol=1e-6)
    assert allocate(CooperativeOEF(), market, Exact()).exact


def test_amounts_are_shared_out_by_parts():
    group, part = np.array([0, 1, 0, 1, 1]), np.array([0.25, 0.5, 0.75, 0.25, 0.25])
    giver, taker, amount = shared_out(group, part, np.array([0]), np.array([1]), np.array([8.0]))
    np.testing.assert_allclose(np.bincount(giver, amount, minlength=5), [2, 0, 6, 0, 0])
    np.testing.assert_allclose(np.bincount(taker, amount, minlength=5), [0, 4, 0, 2, 2])


def test_amounts_are_evened_out_in_each_group():
    group, amount = np.array([0, 1, 0, 1, 0]), np.array([3.0, -1.0, -1.0, 1.0, -2.0])
    giver, taker, moved = evened_out(group, amount)
    assert (group[giver] == group[taker]).all()
    left = amount - np.bincount(giver, moved, minlength=5) + np.bincount(taker, moved, minlength=5)
    np.testing.assert_allclose(left, 0)


def test_identical_rows_are_found_in_the_order_of_their_first():
    first, group = identical_rows(np.array([[2.0, 1], [1, 2], [2, 1], [0, 0], [1, 2]]))
    assert first.tolist() == [0, 1, 3]
    assert group.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("least", [2, 40])
def test_a_sequence_of_nearby_markets_is_decided_as_each_alone(monkeypatch, least):
    monkeypatch.setattr(envy_free_solve, "SMALL", least)
    random = np.random.default_rng(9)
    market = large_market(60, 5, rising)
    speedup, capacity = market.speedup, market.capacity
    rows, names = list(speedup), [f"u{number}" for number in range(60)]
    demand = {name: float(random.integers(1, 20)) for name in names[:5]}
    decide = follow(CooperativeOEF())
    for step in range(9):
        limits = [demand.get(name, np.inf) for name in names]
        market = Market.of_arrays(rows, capacity, users=names, demand=limits if step > 5 else None)
        follows, alone = decide(market), allocate(CooperativeOEF(), market)
        assert follows.solution.gap <= GAP
        assert follows.objective == pytest.approx(alone.objective, rel=1e-8)
        check_shares(market, follows.shares)
        place = int(random.integers(len(rows)))
        if step % 3 == 0:
            rows[place] = rising(random, 1, 5)[0]
        elif step % 3 == 1:
            del rows[place], names[place]
        else:
            rows.insert(place, rising(random, 1, 5)[0])
            names.insert(place, f"new{step}")


def test_a_large_market_is_proven_again_after_a_user_changed():
    market = large_market(150, 10, rising)
    speedup, capacity = market.speedup.copy(), market.capacity
    decide = follow(CooperativeOEF())
    decide(Market.of_arrays(speedup, capacity))
    speedup[3] = speedup[4] * 1.01 + 0.1
    market = Market.of_arrays(speedup, capacity)
    again = decide(market)
    assert again.solution.gap <= GAP
    assert again.objective == pytest.approx(allocate(CooperativeOEF(), market).objective, rel=1e-9)
    check_shares(market, again.shares)


def test_following_into_other_types_starts_afresh():
    decide = follow(CooperativeOEF())
    decide(Market.of_arrays([[1, 2], [1, 5]], [1, 1]))
    other = Market.of_arrays([[1, 2, 3], [1, 5, 2]], [1, 1, 1])
    assert decide(other).objective == pytest.approx(allocate(CooperativeOEF(), other).objective)


def test_another_program_does_not_inherit_the_algorithm():
    class OnlyCapacities(CooperativeOEF):
        def formulate(self, problem, state):
            p = Formulation(self.name)
            share = shares_of(p, problem)
            p.maximize((problem.speedup * share).sum())
            return p.program()

    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    decision = allocate(OnlyCapacities(), market)
    assert decision.backend == "highs"
    assert decision.objective == pytest.approx(6)


class _Stops:
    """Ends the time at one of the restricted programs, or groups, whatever it takes."""

    def __init__(self, after: int) -> None:
        self.left, self.solve, self.groups = after, RestrictedLP.solve, relaxation.group_multipliers

    def _tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfTime("over")

    def solved(self, program):
        self._tick()
        return self.solve(program)

    def priced(self, *given):
        self._tick()
        return self.groups(*given)


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("further", ["plain", "weights", "demands"])
def test_stopped_anywhere_the_bound_is_valid_and_near(after, further, monkeypatch):
    """Until all groups were priced, the bound was that without envy: 40% above the optimum, with demands 110%."""
    random = np.random.default_rng(3)
    speedup, capacity = np.cumsum(random.uniform(0.1, 2, (40, 4)), axis=1), np.array([7.0, 3, 20, 11])
    weight = random.choice([1.0, 2, 50], 40) if further == "weights" else np.ones(40)
    demand = random.uniform(0.5, 3, 40) if further == "demands" else None
    names = [str(number) for number in range(40)]
    asked = names, speedup, capacity, weight, demand, lambda value, there, weights: np.ones(len(there))
    best = envy_free_shares(*asked)
    stops = _Stops(after)
    monkeypatch.setattr(RestrictedLP, "solve", lambda program: stops.solved(program))
    monkeypatch.setattr(relaxation, "group_multipliers", stops.priced)
    stopped = envy_free_shares(*asked)
    assert (stopped.status is Status.OPTIMAL) == (stops.left >= 0)
    assert stopped.upper >= best.lower
    assert stopped.upper <= (1.5 if further == "demands" else 1.03) * best.upper
