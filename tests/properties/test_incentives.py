"""How much lies pay: what is found stays below what is proved, and lies are valued by the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt import allocate, discovery
from fairopt.compare.incentives import at_most, best_misreport, incentives
from fairopt.errors import BadInput
from fairopt.models import (
    CooperativeOEF,
    EqualSplit,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.policy import Policy, Trait
from fairopt.problem import Entitlements, Market
from fairopt.proofs.findings.liars.bounds import envy_free, equal_throughput
from fairopt.properties import Answer, Effort, StrategyProofness
from fairopt.properties.misreports.kinds import (
    ANYTHING,
    COPIES,
    DEMAND,
    LARGER,
    REPORTS,
    SMALLER,
    SPLIT,
    TOGETHER,
    WEIGHT,
    every_kind,
    reached,
)

LITTLE = Effort(evaluations=24)
MARKET = Market.of([[1, 2], [1, 5], [3, 1]], [2, 1], weight=[1, 2, 1])
POLICIES = [
    policy
    for policy in map(discovery.policy, discovery.names(discovery.POLICIES))
    if policy.problem is Market and Trait.ENTITLED not in policy.traits
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_no_report_pays_more_than_is_proved(policy: Policy) -> None:
    found = incentives(policy, MARKET, REPORTS, LITTLE)
    for kind, lie in found.misreports.items():
        if lie is not None:
            assert 1 < lie.factor <= found.bounds[kind].upper
    anything, *narrow = (found.misreports[kind] for kind in (ANYTHING, LARGER, SMALLER))
    assert all(lie is None or (anything is not None and anything.factor >= lie.factor) for lie in narrow)


PROVED = [NonCooperativeOEF(), CooperativeOEF(), NashWelfare(), MaxMin(), WaterFilling(), SecondPriceTrading()]


@pytest.mark.parametrize("policy", PROVED, ids=lambda policy: policy.name)
def test_no_parts_and_no_weight_pay_more_than_is_proved(policy: Policy) -> None:
    found = incentives(policy, MARKET, [SPLIT, COPIES, WEIGHT], Effort(evaluations=8))
    for kind, lie in found.misreports.items():
        assert lie is None or 1 < lie.factor <= found.bounds[kind].upper * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("policy", [EqualSplit(), NashWelfare()], ids=lambda policy: policy.name)
def test_twice_the_weight_reaches_its_bound_where_users_are_alike(policy: Policy) -> None:
    alike = Market.of([[1, 2]] * 3, [1, 1])
    reported = WEIGHT.reported(alike, (0,), np.array(Fraction(2), dtype=object))
    assert reported is not None
    told, rows = reported
    after = reached(alike, rows, allocate(policy, told, exact=True).shares)[0]
    truth = allocate(policy, alike, exact=True)
    assert after / truth.utilities[0] == at_most(policy, alike, truth, "weight").upper == Fraction(3, 2)


def test_of_false_demands_and_of_two_liars_nothing_is_proved() -> None:
    demanding = Market.of([[1, 2], [1, 5]], [2, 1], demand=[1, 2])
    truth = allocate(NashWelfare(), demanding, exact=True)
    for kind in ("demand", "together", "weight", "copies"):
        with pytest.raises(BadInput, match=f"nothing is proved of all lies of the kind '{kind}'.*leave demands out"):
            at_most(NashWelfare(), demanding, truth, kind)


def test_bounds_say_what_is_known_of_each_policy() -> None:
    def most(policy: Policy, kind: str = "any") -> object:
        return at_most(policy, MARKET, allocate(policy, MARKET, exact=True), kind).upper

    assert most(PartialAllocation()) == 1
    assert most(NonCooperativeOEF(), "larger") == 1
    assert most(NonCooperativeOEF(), "smaller") > 2
    assert most(NashWelfare()) <= 2 - Fraction(1, 4)


def test_a_market_on_which_a_lie_reaches_its_bound() -> None:
    # the liar likes type 1 by 10, the others, in larger units, type 2; it reports to be twice as fast
    market = Market.of([[10, 1], [11, 110], [11, 110]], [1, "1/5"])
    found = best_misreport(CooperativeOEF(), market, LARGER, Effort(evaluations=90))
    assert found is not None
    assert found.exact
    assert found.factor == envy_free(Fraction(1, 3), Fraction(10)) == Fraction(50, 17)


def test_the_bound_of_equal_throughput_is_reached_in_the_limit() -> None:
    market = Market.of([[1, 9], [1, 1], [1, 1]], [2, 1])
    truth, told = (market, market.misreport(0, [1, "1000001/1000000"]))
    shares = [allocate(NonCooperativeOEF(), each, exact=True).shares[0] for each in (truth, told)]
    before, after = ((market.speedup[0] * share).sum() for share in shares)
    limit = equal_throughput(Fraction(1, 3), 9)
    assert limit - Fraction(1, 10_000) < after / before < limit


def test_who_enters_as_two_with_all_of_its_weight_gains_under_any_rule() -> None:
    found = best_misreport(EqualSplit(), Market.of([[1, 2]] * 4, [1, 1]), COPIES, LITTLE)
    assert found is not None
    assert found.factor == Fraction(8, 5)
    assert best_misreport(EqualSplit(), Market.of([[1, 2]] * 4, [1, 1]), SPLIT, LITTLE) is None


def test_two_liars_gain_where_one_cannot() -> None:
    alike = Market.of([[1, 1], [1, 1]], [1, 1])
    found = best_misreport(PartialAllocation(), alike, TOGETHER, Effort(evaluations=60))
    assert found is not None
    assert set(found.factors) == {0, 1}
    assert min(found.factors.values()) == found.factor > Fraction(3, 2)
    assert best_misreport(PartialAllocation(), alike, ANYTHING, LITTLE) is None


def test_a_false_demand_is_valued_by_the_true_one() -> None:
    market = Market.of([[5, 30], [30, 3]], [1, 6], demand=[1, 1])
    reported = DEMAND.reported(market, (1,), np.array(Fraction(60), dtype=object))
    assert reported is not None
    told, rows = reported
    shares = allocate(EqualSplit(), told, exact=True).shares
    assert shares[1].sum() == 6  # but one GPU of these is of use
    assert reached(market, rows, shares) == {1: Fraction(183, 7)}
    assert [kind.name for kind in every_kind(market)][-1] == "demand"


def test_a_weight_is_claimed_up_to_twice() -> None:
    assert WEIGHT.reported(MARKET, (0,), np.array(Fraction(5, 2), dtype=object)) is None
    found = best_misreport(EqualSplit(), MARKET, WEIGHT, LITTLE)
    assert found is not None
    assert 1 < found.factor <= Fraction(8, 5)


def test_a_report_that_no_market_takes_is_none() -> None:
    """Guards against a limit for input that ends a search: lies near it go beyond it."""
    effort = Effort(evaluations=8)
    market = Market.of([[10**9, 10**30], ["1e-30", "1e-15"]], [1, "1/3"], weight=["1e-30", 1])
    assert incentives("max-min", market, "larger", effort).bounds
    single = Market.of([["1e-30", 10**29]], [5, "1/3"])
    verdict = StrategyProofness().judge(MaxMin(), single, allocate(MaxMin(), single, exact=True), effort=effort)
    assert verdict.answer is not Answer.FAILS


def test_nobody_lies_about_what_is_not_known() -> None:
    unknown = Market.of([[1, 2], [1, 3]], [1, 1], least=[[1, 1], [1, 3]], most=[[1, 4], [1, 3]])
    with pytest.raises(BadInput, match=r"user .u1.*not known exactly.*State its true speedups"):
        every_kind(unknown)
    owed = Entitlements.of(["u1"], ["T1"], group={"u1": "all"})
    with pytest.raises(BadInput, match="the search does not cover lies about entitlements"):
        every_kind(Market.of([[1]], [1], entitlements=owed))
