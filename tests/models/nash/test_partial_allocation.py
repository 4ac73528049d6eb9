"""Partial allocation: the fractions by hand, the bound of 1/e, and misreports that must not pay."""

from __future__ import annotations

import json
import math
from fractions import Fraction as F

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.backends.solution import Solution, Status
from fairopt.deadline import time_limit
from fairopt.errors import NotCapable, NotSolved, OutOfTime
from fairopt.methods.roots import GRAIN, root, whole_root
from fairopt.models import NashWelfare, PartialAllocation
from fairopt.models.gandiva_fair.second_price_trading import OEF_EQUATION_1
from fairopt.models.nash.partial_allocation import equilibria_without_each
from fairopt.policy import uniqueness
from fairopt.problem import Market
from fairopt.proofs.verify import verify
from fairopt.testing.samples import sample_markets


def partial(market, backend=None):
    return allocate(PartialAllocation(), market, backend)


def test_by_hand():
    decision = partial(Market.of([[1, 2], [1, 5]], [1, 1]))
    # alone the users would have 3 and 6; together 3/2 and 15/4
    assert decision.evidence.kept.tolist() == [F(15, 4) / 6, F(3, 2) / 3]
    assert decision.shares.tolist() == [[F(5, 8), F(5, 32)], [0, F(3, 8)]]


def test_weights_are_exponents():
    # budgets 1 and 2: u1 has all of the first type, u2 all of the second; f_1 = (5/6)^2, f_2 = (1/3)^(1/2)
    decision = partial(Market.of([[1, 2], [1, 5]], [1, 1], weight=[1, 2]))
    assert decision.arithmetic.exact
    assert not decision.exact  # the root of 1/3 is irrational
    first, second = decision.evidence.kept
    assert first == F(5, 6) ** 2
    assert second**2 <= F(1, 3) < (second + GRAIN) ** 2  # a root, rounded down


def test_roots():
    assert root(F(1, 10**60), 3) == F(1, 10**20)
    assert root(F(2, 10**60), 3) == 0
    for value in range(200):
        for degree in range(1, 8):
            found = whole_root(value, degree)
            assert found**degree <= value < (found + 1) ** degree
            assert root(F(value, 200) ** degree, degree) == F(value, 200)
            inexact = root(F(value, 211), degree)
            assert inexact**degree <= F(value, 211) < (inexact + GRAIN) ** degree


def test_large_weights_are_left_to_floats():
    decision = partial(Market.of([[1, 2], [1, 5]], [1, 1], weight=[1, "0.001"]))
    assert not decision.exact
    assert 0 < decision.evidence.kept[1] < 1


def test_one_good_by_closed_form():
    # n equal users on one type: f = ((1/n) / (1/(n-1)))^(n-1), which falls to 1/e
    for n in range(2, 12):
        decision = partial(Market.of([[i + 1] for i in range(n)], [1]))
        assert decision.evidence.kept.tolist() == [F(n - 1, n) ** (n - 1)] * n


def test_a_user_alone_keeps_everything():
    decision = partial(Market.of([[1, 2]], [3, 4]))
    assert decision.shares.tolist() == [[3, 4]]
    assert decision.exact


def test_who_takes_nothing_from_others_keeps_everything():
    decision = partial(Market.of([[1, 0], [0, 1]], [1, 1]))
    assert decision.evidence.kept.tolist() == [1, 1]


@pytest.mark.parametrize("count", counts(10, 25))
@pytest.mark.parametrize("seed", range(3))
def test_everybody_keeps_at_least_one_over_e(seed, count):
    for market in sample_markets(count, seed=seed, users=(1, 6)):
        decision = partial(market)
        kept = decision.evidence.kept
        assert all(1 / math.e <= float(f) <= 1 for f in kept)
        nash = allocate(NashWelfare(), market)
        assert np.allclose(decision.utilities.astype(float), (kept * nash.utilities).astype(float), rtol=1e-12)
        assert (decision.shares.sum(axis=0).astype(float) <= market.capacity.astype(float) * (1 + 1e-12)).all()
        assert decision.arithmetic.exact
        assert decision.error <= F(3, 10**12)


@pytest.mark.parametrize("markets", counts(3, 20))
@pytest.mark.parametrize("weights", [False, True])
def test_misreports_do_not_pay(weights, markets):
    random = np.random.default_rng(1)
    changed = 0
    for market in sample_markets(markets, seed=2, users=(2, 4), types=(2, 3), weights=weights):
        honest = partial(market).utilities
        for _ in range(8):
            user = int(random.integers(len(market.users)))
            row = [v * F(int(random.integers(1, 13)), int(random.integers(1, 7))) for v in market.speedup[user]]
            told = partial(market.misreport(user, row))
            gained = float((market.speedup[user] * told.shares[user]).sum()) - float(honest[user])
            assert gained <= 1e-9 * float(honest[user]), (market.speedup.tolist(), user, row)
            changed += abs(gained) > 1e-6
    assert changed > 3 * markets


def test_the_same_misreport_pays_without_partial_allocation():
    # so that the test above is seen to be able to fail: Nash welfare itself is not truthful
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    told = market.misreport("u1", [1, 4])
    assert market.utility(allocate(NashWelfare(), told).shares)[0] > allocate(NashWelfare(), market).utilities[0]
    assert market.utility(partial(told).shares)[0] < partial(market).utilities[0]


def test_misreports_under_oef_equation_1():
    honest = partial(OEF_EQUATION_1).utilities
    for user in range(3):
        for tenths in range(10, 80, 7):
            told = OEF_EQUATION_1.misreport(user, [1, F(tenths, 10)])
            assert OEF_EQUATION_1.utility(partial(told).shares)[user] <= honest[user]


def test_floats_agree_with_fractions():
    for market in sample_markets(15, seed=3):
        assert np.allclose(partial(market.as_(float)).utilities, partial(market).utilities.astype(float), rtol=1e-11)


def test_order_and_units_do_not_matter():
    random = np.random.default_rng(4)
    for market in sample_markets(10, seed=4, weights=False):
        order = random.permutation(len(market.users))
        decision = partial(market)
        assert np.array_equal(partial(market.select(order.tolist())).shares, decision.shares[order])
        scaled = market.rescaled({user: F(i + 2, 3) for i, user in enumerate(market.users)})
        assert np.array_equal(partial(scaled).shares, decision.shares)


def test_demands_are_kept():
    for market in sample_markets(15, seed=5, demands=True):
        decision = partial(market)
        assert (decision.shares.sum(axis=1).astype(float) <= market.limit.astype(float) * (1 + 1e-9)).all()
        assert all(0 < float(f) <= 1 for f in decision.evidence.kept)


def test_a_back_end_solves_the_nash_programs():
    clarabel = pytest.importorskip("fairopt.backends.cvxpy").CLARABEL
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    decision = partial(market, clarabel)
    assert decision.backend == "clarabel"
    assert np.array_equal(decision.shares, partial(market).shares)


def test_the_face_holds_the_utilities():
    policy = PartialAllocation()
    for market in (Market.of([[1, 2], [2, 4], [1, 1]], [2, 2]), Market.of([[1, 2], [1, 5]], [1, 1], demand=[1, None])):
        decision = partial(market)
        assert uniqueness(policy, decision).utilities
        assert policy.optimal_face(decision).violations(decision.shares.ravel(), 0 if decision.exact else 1e-9) == {}


def test_a_single_user_with_a_demand_is_in_floats_and_has_no_certificate():
    """It keeps everything, which is exact; what it keeps is not, as the demand binds."""
    market = Market.of([["1/250", "3/500"]], capacity=[1, 1], demand=["3/2"])
    decision = allocate(PartialAllocation(), market)
    assert not decision.exact
    with pytest.raises(NotCapable, match="floats prove nothing"):
        PartialAllocation().certify(decision)


def test_weights_far_apart_are_no_matter_of_rounding() -> None:
    """In floats the lightest user kept all or nothing, where it keeps 1/e of its bundle."""
    market = Market.of([[3, 1], [1, 2], [5, 7]], capacity=[2, 3], weight=[1, 10**25, 3])
    kept = allocate("partial-allocation", market).evidence.kept
    assert kept.astype(float) == pytest.approx([np.exp(-1), 1, np.exp(-1)])
    with pytest.raises(NotSolved, match="what u1 keeps is a product of powers"):
        allocate("partial-allocation", market.as_(float))


def test_many_users_are_left_out_in_turn_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 at once took gigabytes, and 2 s between two looks at the clock."""
    speedup = np.random.default_rng(3).uniform(1, 4, (7, 3))
    market = Market.of_arrays(speedup, np.array([2.0, 1, 3]), weight=np.arange(1.0, 8))
    together = equilibria_without_each(market)
    monkeypatch.setattr("fairopt.models.nash.partial_allocation.MOST_AT_ONCE", 3 * speedup.size)
    apart = equilibria_without_each(market)
    assert together.shape == apart.shape == (7, 6, 3)
    assert np.allclose(together, apart, rtol=0, atol=1e-9)
    with pytest.raises(OutOfTime), time_limit(0):
        equilibria_without_each(market)


def test_numbers_at_the_ends_of_what_is_allowed_are_decided_exactly() -> None:
    """Without the second user floats found no equilibrium, and Nash welfare was proved to 30 digits only."""
    market = Market.of([["1e-29", "2e29", 1], ["1e29", 5, "1e-20"], [1, 1, "1e29"]], ["1e-29", "1e29", 1])
    decision = partial(market)
    assert decision.exact
    # beside what is next to nothing, the first two share the second type, and the third has all of its own
    assert decision.evidence.kept.astype(float) == pytest.approx([0.5, 0.5, 1.0])
    assert verify(json.loads(json.dumps(PartialAllocation().certify(decision).to_json())))
    assert not allocate(NashWelfare(), market.without(1), exact=True).error
    assert partial(market.as_(float)).evidence.kept == pytest.approx(decision.evidence.kept.astype(float))


def test_what_is_refused_says_what_may_do() -> None:
    inaccurate = Solution(Status.INACCURATE, "KKT residual 0.5", "auto")
    with pytest.raises(NotSolved, match="rational numbers, another backend or a looser tolerance may do"):
        inaccurate.require_optimal()
