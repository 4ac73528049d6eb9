"""Nash welfare where demands bind: exact where it is rational, else rational shares with proven bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt import allocate
from fairopt.errors import BadInput, NotCapable
from fairopt.methods.eisenberg_gale.bounds import utility_bounds
from fairopt.methods.eisenberg_gale.chords import by_chords
from fairopt.methods.eisenberg_gale.smoothed import smoothed_shares
from fairopt.methods.eisenberg_gale.within import near_equilibrium
from fairopt.models import NashWelfare, PartialAllocation
from fairopt.models.nash.within_entitlements import rows_of
from fairopt.problem import Market
from fairopt.program import INFINITY, fractions
from fairopt.proofs.verify import Rejected, verify
from fairopt.properties import Answer, Effort, EnvyFreeness, ParetoEfficiency, SharingIncentive, StrategyProofness
from fairopt.properties.over_optima import over_optima
from fairopt.testing.samples import sample_markets

#: u1 uses one GPU, x of it fast; u2 has the rest of the fast one, and u3 all else: x = (sqrt(7) - 2) / 3 is best.
IRRATIONAL = Market.of([[2, 3], [1, 2], [2, 3]], [2, 1], demand=[1, 1, None])


def certified(market: Market, **options: int) -> str:
    """Decide, and return what the verifier says of the certificate, as it is read from a file."""
    policy = NashWelfare(**options)
    return verify(json.loads(json.dumps(policy.certify(allocate(policy, market, exact=True)).to_json())))


def awkward(seed: int) -> Market:
    """Draw a market with ties, zeros, empty types, proportional users, or numbers far apart, and demands that bind."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(1, 7)), int(random.integers(1, 5))
    speedup = random.integers(0 if seed % 2 else 1, 6, (n, k)).astype(object)
    if seed % 5 == 1:
        speedup = speedup[random.integers(0, (n + 1) // 2, n)]
    if seed % 5 == 2:
        speedup = np.outer(random.integers(1, 4, n), random.integers(1, 4, k)).astype(object)
    speedup[~speedup.astype(bool).any(axis=1), 0] = 1
    if seed % 5 == 3:
        speedup = speedup * np.array([[F(10) ** int(e) for e in row] for row in random.integers(-4, 5, (n, k))])
    apart = random.integers(-9, 10, n) // (1 if seed % 3 == 0 else 9)
    capacity = random.integers(1, 6, k)
    parts = random.integers(1, 30, n)
    demand = (
        [F(int(part), 10) for part in parts],
        [None if part > 15 else F(int(part), 10) for part in parts],
        [int(part) * F(int(capacity.sum()), int(parts.sum())) for part in parts],  # together exactly what there is
    )[seed % 3]
    weight = [F(10) ** int(e) for e in apart]
    return Market.of(speedup.tolist(), capacity.tolist(), weight=weight, demand=demand)


def test_an_optimum_worked_out_by_hand() -> None:
    decision = allocate("nash-welfare", IRRATIONAL, exact=True)
    found = decision.evidence.utilities
    assert decision.arithmetic.exact
    assert not decision.exact
    assert 0 < decision.error <= F(1, 10**30)
    for low, high in (  # x by the utility of each user
        (found.lower[0] - 2, found.upper[0] - 2),
        (1 - found.upper[1] / 2, 1 - found.lower[1] / 2),
        (found.lower[2] / 2 - 1, found.upper[2] / 2 - 1),
    ):
        assert 3 * low**2 + 4 * low - 1 <= 0 <= 3 * high**2 + 4 * high - 1
    assert "irrational" not in certified(IRRATIONAL)
    assert certified(IRRATIONAL).startswith(
        "wherever Nash welfare is largest, the throughputs of the users are at least"
    )


def test_as_many_digits_as_one_asks_for() -> None:
    for digits in (1, 10, 100):
        decision = allocate(NashWelfare(digits=digits), IRRATIONAL)
        assert decision.error <= F(1, 10**digits)
    assert not allocate(NashWelfare(digits=0), IRRATIONAL).exact
    for digits in (-1, 10**6):
        with pytest.raises(BadInput, match="digits"):
            NashWelfare(digits=digits)


def test_a_rational_optimum_is_exact_though_demands_bind() -> None:
    market = Market.of([[1, 2], [1, 5], [1, 3]], [4, 4], demand=[2, None, 3])
    decision = allocate("nash-welfare", market, exact=True)
    assert decision.error == 0
    assert decision.utilities.tolist() == [F(11, 4), 11, F(11, 2)]
    assert decision.evidence.violations(market, decision.shares) == []
    assert certified(market).startswith("the allocation maximises Nash welfare")
    assert decision.exact


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_no_awkward_market_is_refused(seed: int) -> None:
    market = awkward(seed)
    decision = allocate("nash-welfare", market, exact=True)
    assert decision.arithmetic.exact
    assert decision.exact == (not decision.error)
    assert decision.error <= F(1, 10**29)
    verify(json.loads(json.dumps(NashWelfare().certify(decision).to_json())))
    floats = allocate("nash-welfare", market.as_(float))
    assert floats.utilities.astype(float) == pytest.approx(decision.utilities.astype(float), rel=1e-5)


def test_clarabel_finds_the_same_utilities() -> None:
    clarabel = pytest.importorskip("fairopt.backends.cvxpy").CLARABEL
    for market in sample_markets(25, seed=3, users=(2, 6), demands=True):
        mine = allocate("nash-welfare", market, exact=True)
        theirs = allocate(NashWelfare(digits=0), market, clarabel)
        assert theirs.utilities.astype(float) == pytest.approx(mine.utilities.astype(float), rel=1e-3)
        assert float(theirs.objective) <= mine.objective + 1e-6


def test_a_back_end_suggests_and_bounds_are_proved() -> None:
    decision = allocate("nash-welfare", IRRATIONAL, pytest.importorskip("fairopt.backends.cvxpy").CLARABEL)
    assert 0 < decision.error <= F(1, 10**30)


def test_bounds_hold_for_whatever_is_given() -> None:
    random = np.random.default_rng(4)
    best = allocate("nash-welfare", IRRATIONAL, exact=True)
    for _ in range(40):
        prices, demand_duals = (
            fractions(random.integers(0, 9, size) / 8 * scale) for size, scale in ((2, 1.0), (3, 0.5))
        )
        demand_duals[2] = F(0)
        found = utility_bounds(IRRATIONAL, best.shares, prices, demand_duals)
        assert (found.lower <= best.evidence.utilities.upper).all()
        assert (found.upper >= best.evidence.utilities.lower).all()


def test_verdicts_are_those_of_what_is_shown_unless_they_are_too_close() -> None:
    decision = allocate("nash-welfare", IRRATIONAL, exact=True)
    assert ParetoEfficiency().verify(IRRATIONAL, decision).answer is Answer.HOLDS
    decided = SharingIncentive().verify(IRRATIONAL, decision)
    assert decided.exact
    assert decided.margin != 0
    for asked in (SharingIncentive(), EnvyFreeness()):
        verdict = asked.verify(IRRATIONAL, replace(decision, error=F(10)))
        assert verdict.answer is Answer.UNDECIDED
        assert "the shares are known to within 1e+01" in verdict.reason


def test_users_that_are_alike_do_not_envy_each_other() -> None:
    market = Market.of([*IRRATIONAL.speedup.tolist(), *IRRATIONAL.speedup.tolist()], [4, 2], demand=[1, 1, None] * 2)
    decision = allocate("nash-welfare", market, exact=True)
    assert decision.error
    assert (decision.shares[:3] == decision.shares[3:]).all()


def test_what_is_irrational_is_called_so() -> None:
    decision = allocate("nash-welfare", IRRATIONAL, exact=True)
    assert "irrational" in repr(decision)
    assert not decision.exact
    with pytest.raises(NotCapable, match="irrational"):
        over_optima(NashWelfare(), decision, EnvyFreeness())
    assert not allocate(PartialAllocation(), IRRATIONAL).exact


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("upper", ["11/5", "8/5", "5/2"], "on one side"),
        ("lower", ["11/5", "3/2", "9/4"], "closer"),
        ("demand_duals", [1, 1, 0], "larger gap"),
        ("demand_duals", [0, 0, 1], "no demand"),
        ("prices", [-1, 1], "negative"),
        ("allocation", [[1, 1], [0, 0], [0, 0]], "more than it demands"),
        ("allocation", [[0, 0], [0, 1], [2, 0]], "gets nothing"),
    ],
)
def test_what_is_not_proved_is_rejected(key: str, value: object, why: str) -> None:
    told = NashWelfare(digits=1).certify(allocate(NashWelfare(digits=1), IRRATIONAL)).to_json()
    rough = {"gap": "1/1000", "lower": [2, "7/5", "11/5"], "upper": ["5/2", "9/5", "14/5"]}
    verify(json.loads(json.dumps(told | rough)))
    with pytest.raises(Rejected, match=why):
        verify(json.loads(json.dumps(told | rough | {key: value})))


# -- parts -------------------------------------------------------------------------------------------------------------
def test_who_reaches_its_demand_only_exact_numbers_say() -> None:
    tiny = F(1, 10**18)
    market = Market.of([[1], [1], [1]], [2], weight=[1, 3, 4], demand=[F(1, 4) + 2 * tiny, F(3, 4) - tiny, 1])
    shares, prices = np.array([[0.25], [0.75], [1.0]]), np.array([4.0])  # all three at their demands, up to rounding
    held, proof = near_equilibrium(rows_of(market), market, shares, prices, 30)
    assert held.ravel().tolist() == [F(1, 4) + tiny, F(3, 4) - tiny, 1]
    assert proof.error * 10**30 < 1


def test_chords_come_near() -> None:
    best = allocate("nash-welfare", IRRATIONAL, exact=True).utilities.astype(float)
    *_, (shares, prices, demand_duals) = by_chords(IRRATIONAL)
    assert (IRRATIONAL.speedup * shares).sum(axis=1).astype(float) == pytest.approx(best, rel=1e-6)
    assert min(*prices, *demand_duals) >= 0


def test_smoothed_prices_sell_everything_and_come_near() -> None:
    for market in sample_markets(20, seed=5, users=(2, 6), ties=False):
        *_, shares = smoothed_shares(market)
        assert shares.sum(axis=0) == pytest.approx(market.capacity.astype(float), rel=1e-9)
        best = allocate("nash-welfare", market)
        reached = (market.speedup * shares).sum(axis=1).astype(float)
        assert float(market.weight @ np.log(reached)) >= float(best.objective) - 0.05 * float(market.weight.sum())


def test_lies_about_what_is_irrational_are_decided_in_floats() -> None:
    decision = allocate("nash-welfare", IRRATIONAL, exact=True)
    verdict = StrategyProofness().judge(NashWelfare(), IRRATIONAL, decision, effort=Effort(evaluations=30))
    assert verdict.answer in (Answer.FAILS, Answer.NOT_REFUTED)
    assert not verdict.exact


def test_speedups_whose_prices_are_large() -> None:
    market = Market.of_arrays(
        np.full((3, 1), 1.1e-30), capacity=[2.0], weight=[3e10, 444.5, 1.0], demand=[1.0, 5.0, INFINITY]
    )
    found = allocate(NashWelfare(), market)
    assert found.shares[:, 0] == pytest.approx([1.0, 444.5 / 445.5, 1 / 445.5])


def test_speedups_that_are_small_beside_weights() -> None:
    # each has one type of its own; u1 has all that it asks for, and u2 all there is
    market = Market.of_arrays(
        np.array([[0, 2.5e-30], [1.1e-30, 0]]), capacity=[6.0, 19.0], weight=[2e7, 9e9], demand=[0.0625, 25.0]
    )
    for exact in (False, True):
        shares = allocate(NashWelfare(), market, exact=exact).shares.astype(float)
        assert shares == pytest.approx(np.array([[0, 0.0625], [6, 0]]), rel=1e-12)


def test_rational_utilities_with_many_shares_that_give_them_are_found_exactly() -> None:
    users = [[2, 2, 1, 1], [2, 2, 1, 2], [1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 2, 2], [2, 1, 1, 1], [2, 2, 1, 2]]
    weight = [1, "1/5", "1/5", "3/5", 1, 1, 1]
    market = Market.of(users, [5, 7, 1, 8], demand=[None] * 6 + [2], weight=weight)
    found = allocate(NashWelfare(), market)
    assert not found.error
    assert list(map(str, found.utilities)) == ["19/2", "19/10", "19/10", "57/10", "19/2", "19/2", "4"]
