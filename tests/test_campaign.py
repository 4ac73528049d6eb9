"""Slow campaigns (`make campaign`): more and larger markets than every test run looks at; each says what it counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.discovery import properties
from fairopt.models import (
    CooperativeOEF,
    MaxEfficiency,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.properties import AllocationProperty, Answer, EnvyFreeness, Feasibility, ParetoEfficiency, SharingIncentive
from fairopt.properties.lattice import contradictions
from fairopt.testing.samples import sample_markets

pytestmark = pytest.mark.slow

LINEAR: list[Policy] = [MaxEfficiency(), NonCooperativeOEF(), CooperativeOEF(), MaxMin(), WaterFilling()]
PER_SEED = 60


@pytest.mark.parametrize("seed", range(5))
def test_floats_agree_with_the_exact_optimum(seed: int, conformance: Callable[[object], None]) -> None:
    counted: Counter[str] = Counter()
    checkers = [each for each in properties(Market) if isinstance(each, AllocationProperty)]
    for market in sample_markets(PER_SEED, seed=100 + seed, users=(2, 10), types=(2, 5), most=9, demands=True):
        for policy in LINEAR:
            floats, exact = allocate(policy, market), allocate(policy, market, Exact())
            assert float(floats.objective) == pytest.approx(float(exact.objective), rel=1e-7, abs=1e-7), policy.name
            verdicts = {each.name: each.check(market, exact.shares) for each in checkers}
            assert verdicts["feasibility"].answer is Answer.HOLDS
            assert not contradictions(verdicts, demands=market.demand is not None)
            counted[policy.name] += 1
    conformance(f"campaign, floats against exact optima, seed {seed}: {dict(counted)}")


@pytest.mark.parametrize("seed", range(4))
def test_equilibria_are_exact_and_have_their_properties(seed: int, conformance: Callable[[object], None]) -> None:
    exact = 0
    for market in sample_markets(150, seed=200 + seed, users=(2, 12), types=(2, 5), most=9):
        decision = allocate(NashWelfare(), market)
        exact += decision.exact
        if decision.exact:
            assert decision.evidence.violations(market, decision.shares) == []
        for each in (Feasibility(), EnvyFreeness(), SharingIncentive(), ParetoEfficiency()):
            assert each.check(market, decision.shares).answer is Answer.HOLDS
    assert exact == 150
    conformance(f"campaign, Nash welfare, seed {seed}: {exact} of 150 exact")


@pytest.mark.parametrize("seed", range(2))
def test_trading_hurts_nobody(seed: int) -> None:
    for market in sample_markets(300, seed=300 + seed, users=(2, 12), types=(2, 5), most=9):
        decision = allocate(SecondPriceTrading(), market)
        assert SharingIncentive().check(market, decision.shares).answer is Answer.HOLDS
