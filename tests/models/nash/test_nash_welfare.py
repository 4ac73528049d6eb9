"""Nash welfare: closed forms, exact equilibrium conditions, bare definitions, and a conic solver as another opinion."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.benchmarks.float_samples import large_market, rising
from fairopt.errors import NotCapable, NotSolved
from fairopt.methods.eisenberg_gale import solve as interior_point
from fairopt.methods.eisenberg_gale.bounds import Equilibrium
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium, spend
from fairopt.methods.eisenberg_gale.solve import maximal_nash_welfare
from fairopt.models import NashWelfare
from fairopt.models.nash import nash_welfare
from fairopt.policy import uniqueness
from fairopt.problem import Market
from fairopt.program import INFINITY
from fairopt.testing.samples import sample_markets


def nash(market, backend=None):
    return allocate(NashWelfare(), market, backend)


def degenerate_markets(count, seed):
    """Return markets full of ties: equal users, types in proportion, speedups of 0 to 3, empty types, weights."""
    return sample_markets(count, seed=seed, users=(1, 8), types=(1, 6), most=3, alike=True)


# -- closed forms ------------------------------------------------------------------------------------------------------


def two_by_two(a, b):
    """Return the largest product of utilities of users (1, a) and (1, b), a <= b, on one GPU of each of two types.

    At the optimum at most one type is shared. With all of the first for user 1 and a part y of the second, the product
    is (1 + a y) b (1 - y); with all of the second for user 2 and a part x of the first, (1 - x)(x + b).
    """
    y = min(max(F(1, 2) - 1 / (2 * a), 0), 1)
    x = min(max((1 - b) / F(2), 0), 1)
    return max((1 + a * y) * b * (1 - y), (1 - x) * (x + b))


def test_two_by_two_closed_form():
    for a in range(1, 9):
        for b in range(a, 9):
            one, two = F(a, 3), F(b, 3)
            decision = nash(Market.of([[1, one], [1, two]], [1, 1]))
            assert decision.exact
            assert math.prod(decision.utilities) == two_by_two(one, two)


def test_known_prices():
    decision = nash(Market.of([[1, 2], [1, 5]], [1, 1]))
    assert decision.shares.tolist() == [[1, F(1, 4)], [0, F(3, 4)]]
    assert decision.evidence.prices.tolist() == [F(2, 3), F(4, 3)]
    assert decision.objective == pytest.approx(math.log(1.5) + math.log(3.75), rel=1e-15)


def test_a_user_alone_takes_all_and_useless_types_are_free():
    decision = nash(Market.of([[2, 0, 3]], [4, 5, 0]))
    assert decision.shares.tolist() == [[4, 0, 0]]
    assert decision.evidence.prices.tolist() == [F(1, 4), 0, F(3, 8)]


# -- the proof ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_degenerate_markets_are_certified(seed):
    for market in degenerate_markets(60, seed):
        decision = nash(market)
        assert decision.exact, market.speedup.tolist()
        assert decision.evidence.violations(market, decision.shares) == []
        prices, capacity = decision.evidence.prices, market.capacity
        assert (prices * capacity).sum() == market.weight.sum()
        assert (decision.evidence.spending.sum(axis=1) == market.weight).all()


def test_large_markets_are_certified():
    for n, k in ((60, 6), (200, 10)):
        market = large_market(n, k, rising).as_(F)
        decision = nash(market)
        assert decision.exact
        assert decision.evidence.violations(market, decision.shares) == []


def test_units_far_apart():
    random = np.random.default_rng(2)
    for _ in range(20):
        speedup = 10.0 ** random.integers(-4, 5, (4, 1)) * random.integers(1, 9, (4, 3))
        market = Market.of(speedup.tolist(), [1, 1000, "1/7"], weight=[1, 10, 100, "1/10"])
        decision = nash(market)
        assert decision.exact
        assert decision.evidence.violations(market, decision.shares) == []


def change(array, place, by):
    out = array.copy()
    out[place] += by
    return out


def test_violations_name_what_is_wrong():
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    decision = nash(market)
    good, shares = decision.evidence, decision.shares
    for broken, x, words in (
        (replace(good, prices=change(good.prices, 0, F(1, 9))), shares, "would rather|not its best buy|spending"),
        (replace(good, budgets=change(good.budgets, 0, F(1))), shares, "u1 has another budget"),
        (good, change(shares, (0, 1), F(1, 9)), "T2 is overbooked"),
        (good, change(shares, (1, 1), F(-1, 9)), "T2 has a price, but some is left"),
        (good, change(change(shares, (0, 0), F(-1, 9)), (1, 0), F(1, 9)), "u2 holds T1, which is not its best buy"),
        (replace(good, demand_duals=np.array([F(1), F(0)])), shares, "u1 has a rent"),
    ):
        found = broken.violations(market, x)
        assert found
        assert any(part in "; ".join(found) for part in words.split("|")), found


def test_too_low_a_price_is_seen():
    # u1 holds the first type only, at half of the price that would keep it from wanting the second
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    shares = np.array([[F(1), F(0)], [F(0), F(1)]])
    evidence = Equilibrium(np.array([F(1), F(1)]), market.weight, shares)
    assert evidence.violations(market, shares) == ["u1 would rather buy T2"]


def test_every_feasible_move_lowers_the_product():
    # brute force: no mixture with another feasible allocation has a larger objective
    random = np.random.default_rng(3)
    for market in sample_markets(20, seed=1):
        decision = nash(market)
        floats, shares = market.as_(float), decision.shares.astype(float)
        for _ in range(20):
            other = random.dirichlet(np.ones(len(market.users)), len(market.types)).T * floats.capacity
            for step in (1e-3, 0.1, 1.0):
                utility = floats.utility((1 - step) * shares + step * other)
                with np.errstate(divide="ignore"):  # the other allocation may give somebody nothing
                    assert floats.weight @ np.log(utility) <= decision.objective + 1e-12


# -- what it promises, by the bare definitions -------------------------------------------------------------------------
@pytest.mark.parametrize("count", counts(15, 40))
@pytest.mark.parametrize("seed", range(3))
def test_envy_free_and_better_than_the_own_partition(seed, count):
    for market in sample_markets(count, seed=seed):
        shares = nash(market).shares
        for i, row in enumerate(market.speedup):
            own = sum(v * x for v, x in zip(row, shares[i], strict=True))
            for other, weight in zip(shares, market.weight, strict=True):
                assert own >= sum(v * x for v, x in zip(row, other, strict=True)) * market.weight[i] / weight
            partition = market.capacity * market.weight[i] / market.weight.sum()
            assert own >= sum(v * x for v, x in zip(row, partition, strict=True))


def test_pareto_efficient():
    # weak duality: with weights w_i / u_i on utilities no allocation has a larger sum, and all weights are positive
    for market in sample_markets(40, seed=4):
        decision = nash(market)
        worth = market.speedup * (market.weight / decision.utilities)[:, None]
        assert (worth.max(axis=0) * market.capacity).sum() == market.weight.sum()


def test_weight_is_copies_shares_included():
    for market in sample_markets(20, seed=5):
        many = market.replicated()
        summed = np.zeros(market.shape, dtype=object)
        rows = np.repeat(np.arange(len(market.users)), [int(w) for w in market.weight])
        np.add.at(summed, rows, nash(many).shares)
        assert np.array_equal(summed, nash(market).shares)


def test_order_and_units_do_not_matter():
    random = np.random.default_rng(6)
    for market in degenerate_markets(30, seed=6):
        n, k = market.shape
        users, types = random.permutation(n), random.permutation(k)
        decision = nash(market)
        assert np.array_equal(nash(market.select(users.tolist())).shares, decision.shares[users])
        assert np.array_equal(nash(market.select_types(types.tolist())).utilities, decision.utilities)
        scaled = market.rescaled({user: F(3 * i + 1, 7) for i, user in enumerate(market.users)})
        assert np.array_equal(nash(scaled).shares, decision.shares)


def test_floats_agree_with_fractions():
    for market in sample_markets(30, seed=7):
        decision = nash(market.as_(float))
        assert not decision.exact
        assert np.allclose(decision.utilities, nash(market).utilities.astype(float), rtol=1e-12)
        assert decision.evidence.violations(market, decision.shares, 1e-9) == []


# -- outside opinions --------------------------------------------------------------------------------------------------
def clarabel_objective(market):
    """Return the optimal objective by cvxpy and Clarabel, written here from scratch."""
    import cvxpy as cp

    floats = market.as_(float)
    unit = floats.speedup.max(axis=1)
    x = cp.Variable(market.shape, nonneg=True)
    own = cp.sum(cp.multiply(floats.speedup / unit[:, None], x), axis=1)
    rows = [cp.sum(x, axis=0) <= floats.capacity]
    if market.demand is not None:
        rows.append(cp.sum(x, axis=1) <= np.minimum(floats.limit, floats.capacity.sum()))
    problem = cp.Problem(cp.Maximize(floats.weight @ cp.log(own)), rows)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value + floats.weight @ np.log(unit)


@pytest.mark.parametrize("count", counts(10, 25))
@pytest.mark.parametrize("demands", [False, True])
def test_clarabel_finds_no_better(demands, count):
    for market in sample_markets(count, seed=8, users=(2, 6), demands=demands):
        assert nash(market).objective == pytest.approx(clarabel_objective(market), abs=2e-7)


@pytest.mark.parametrize("name", ["CLARABEL", "ECOS", "SCS"])
def test_back_ends_suggest_and_are_made_exact(name):
    backends = pytest.importorskip("fairopt.backends.cvxpy")
    backend = getattr(backends, name)
    for market in sample_markets(8, seed=9):
        decision = nash(market, backend)
        assert decision.backend == backend.name
        assert decision.exact
        assert decision.evidence.violations(market, decision.shares) == []
        assert decision.program is not None


def test_a_linear_back_end_is_refused():
    with pytest.raises(NotCapable, match="logarithms"):
        nash(Market.of([[1, 2]], [1, 1]), Highs())


# -- demands -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_demands_meet_the_kkt_conditions(seed):
    binding = 0
    for market in sample_markets(30, seed=seed, users=(2, 6), demands=True):
        decision = nash(market)
        assert (decision.shares.sum(axis=1).astype(float) <= market.limit.astype(float) * (1 + 1e-9)).all()
        tolerance = F(1, 10**12) if decision.error else 0
        assert decision.evidence.violations(market, decision.shares, tolerance) == []
        binding += decision.evidence.demand_duals is not None
    assert binding > 5


def test_a_demand_that_does_not_bind_leaves_it_exact():
    market = Market.of([[1, 2], [1, 5]], [1, 1], demand=["5/4", 2])
    assert nash(market).shares.tolist() == [[1, F(1, 4)], [0, F(3, 4)]]
    assert nash(Market.of([[1, 2], [1, 5]], [1, 1], demand=["9/8", 2])).evidence.demand_duals is not None


def test_a_back_end_brings_rents():
    clarabel = pytest.importorskip("fairopt.backends.cvxpy").CLARABEL
    for market in sample_markets(10, seed=14, users=(2, 5), demands=True):
        decision = nash(market, clarabel)
        assert decision.objective == pytest.approx(nash(market).objective, abs=1e-6)
        assert decision.evidence.violations(market, decision.shares, F(1, 10**12) if decision.error else 0) == []


def test_an_irrational_optimum():
    # u1 can use one GPU, x of it fast: (1 + x)(1 + 2 (1 - x) * 1) with one slow and one fast GPU, u2 as (1, 3)
    market = Market.of([[1, 2], [1, 3]], [1, 2], demand=[1, None], weight=[1, 2])
    decision = nash(market)
    x = np.linspace(0, 1, 200001)
    value = np.log((1 - x) + 2 * x) + 2 * np.log(x + 3 * (2 - x))
    assert decision.objective == pytest.approx(value.max(), abs=1e-9)


def test_an_inaccurate_answer_is_not_called_optimal(monkeypatch):
    monkeypatch.setattr(interior_point, "ACCURATE", 0.0)
    with pytest.raises(NotSolved, match="KKT residual") as caught:
        allocate(NashWelfare(digits=0), Market.of([[1, 2], [1, 3]], [1, 2], demand=[1, None]))
    assert caught.value.solution.x is not None


def test_iterates_do_not_run_in_circles():
    market = Market.of([[3, 5], [4, 4], [3, 4], [3, 5]], [1, 3], demand=[None, "0.9", 1, "0.5"])
    decision = nash(market)
    assert decision.objective == pytest.approx(clarabel_objective(market), rel=1e-8)
    assert decision.evidence.violations(market, decision.shares, 1e-9) == []


def test_demands_that_use_everything_up_exactly():
    # demand duals and prices are not unique: the reduced system is singular
    market = Market.of([[3, 1, 3, 3, 6], [2, 1, 3, 2, 4]], [1, 5, 2, 1, 1], demand=["11/2", "9/2"])
    decision = nash(market)
    assert decision.evidence.violations(market, decision.shares, nash_welfare.ACCURATE) == []


@pytest.mark.parametrize("count", counts(40, 400))
def test_many_small_markets_with_demands(count):
    random = np.random.default_rng(15)
    for case, market in enumerate(sample_markets(count, seed=15, users=(2, 6), types=(1, 5))):
        tenths, total = random.integers(1, 30, len(market.users)), market.capacity.sum()
        demand = (
            [F(int(d), 10) for d in tenths],
            [INFINITY if d > 20 else F(int(d), 10) for d in tenths],
            [int(d) * total / int(tenths.sum()) for d in tenths],  # together exactly what there is
            [total + int(d) for d in tenths],
        )[case % 4]
        market = replace(market, demand=np.array(demand, dtype=object))
        decision = nash(market)
        tolerance = F(1, 10**12) if decision.error else 0
        assert decision.evidence.violations(market, decision.shares, tolerance) == []


# -- parts -------------------------------------------------------------------------------------------------------------
def test_own_method_is_accurate():
    for market in sample_markets(40, seed=11, ties=False):
        *_, optimum = maximal_nash_welfare(market)
        assert optimum.effort["residual"] < 1e-10
        assert np.allclose(
            (market.speedup * optimum.values["share"]).sum(axis=1).astype(float), nash(market).utilities.astype(float)
        )


def test_a_misleading_guess_gives_nothing_or_the_truth():
    random = np.random.default_rng(12)
    found = 0
    for market in sample_markets(60, seed=12, users=(2, 5), types=(2, 4)):
        guess = random.dirichlet(np.ones(len(market.users)), len(market.types)).T * market.capacity.astype(float)
        answer = exact_equilibrium(market, guess)
        if answer is not None:
            found += 1
            assert answer[0].violations(market, answer[1]) == []
            assert np.array_equal(market.utility(answer[1]), nash(market).utilities)
    assert found < 60


def test_money_flow_by_hand():
    assert spend([F(1), F(1)], [[0], [0, 1]], [F(3, 2), F(1, 2)]) == [[1, 0], [F(1, 2), F(1, 2)]]
    assert spend([F(1), F(1)], [[0, 1], [0]], [F(1), F(1)]) == [[0, 1], [1, 0]]  # the first must give back
    assert spend([F(1), F(1)], [[0], [0]], [F(1), F(1)]) is None
    assert spend([F(1)], [[0]], [F(2)]) is None


def test_money_flow_against_hall():
    # a flow exists exactly where every set of buyers can spend on its wishes
    random = np.random.default_rng(13)
    seen = set()
    for _ in range(300):
        n, k = int(random.integers(1, 5)), int(random.integers(1, 5))
        wishes = [sorted(random.choice(k, int(random.integers(1, k + 1)), replace=False).tolist()) for _ in range(n)]
        values = [F(int(v)) for v in random.integers(1, 5, k)]
        cuts = sorted(random.integers(0, int(sum(values)) + 1, n - 1).tolist())
        budgets = [F(b - a) for a, b in zip([0, *cuts], [*cuts, int(sum(values))], strict=True)]
        possible = all(
            sum(budgets[i] for i in range(n) if mask >> i & 1)
            <= sum(values[j] for j in {j for i in range(n) if mask >> i & 1 for j in wishes[i]})
            for mask in range(1 << n)
        )
        flow = spend(budgets, wishes, values)
        assert (flow is not None) == possible
        seen.add(possible)
        if flow is not None:
            assert [sum(row) for row in flow] == budgets
            assert [sum(column) for column in zip(*flow, strict=True)] == values
            assert all(not amount or j in wishes[i] for i, row in enumerate(flow) for j, amount in enumerate(row))
    assert seen == {True, False}


def test_the_face_holds_the_utilities():
    market = Market.of([[1, 2], [2, 4]], [2, 2])
    decision = nash(market)
    unique = uniqueness(NashWelfare(), decision)
    assert (unique.utilities, unique.shares) == (True, False)
    assert NashWelfare().optimal_face(decision).violations(decision.shares.ravel()) == {}
    assert uniqueness(NashWelfare(), nash(Market.of([[1, 2], [1, 5]], [1, 1]))).shares


def test_decisions_pickle_and_count_seconds():
    decision = nash(Market.of([[1, 2], [1, 5]], [1, 1]))
    again = pickle.loads(pickle.dumps(decision))
    assert np.array_equal(again.shares, decision.shares)
    assert isinstance(again.evidence, Equilibrium)
    assert decision.seconds.solve > 0
    assert decision.seconds.certify > 0
