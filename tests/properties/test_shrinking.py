"""What a search finds is decided exactly, for every optimum where it holds, and shrinks until it is easily checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.errors import BadInput
from fairopt.models import (
    CooperativeOEF,
    EqualSplit,
    MaxEfficiency,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Formulation, Sense
from fairopt.properties import Answer, Effort, EnvyFreeness, SlackCase, StrategyProofness
from fairopt.properties.misreports.exact_reports import ExactReports, candidates, simplest
from fairopt.properties.misreports.kinds import LARGER, REPORTS, SMALLER, MisreportKind
from fairopt.properties.misreports.search import Found
from fairopt.properties.misreports.shrinking import shrink, shrink_market, shrinking_misreports, shrinks
from fairopt.testing.samples import sample_markets

THREE = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])


# -- exact answers -----------------------------------------------------------------------------------------------
def test_simplest_fraction_has_the_least_denominator() -> None:
    random = np.random.default_rng(4)
    for _ in range(300):
        low, high = sorted(Fraction(int(a), int(b)) for a, b in random.integers(1, 60, (2, 2)))
        right = next(Fraction(p, q) for q in range(1, 61) for p in range(61 * q) if low <= Fraction(p, q) <= high)
        assert simplest(low, high) == right
    with pytest.raises(BadInput):
        simplest(Fraction(2), Fraction(1))


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
def test_rational_reports_near_a_float_one_stay_of_its_kind(kind: MisreportKind) -> None:
    market = Market.of([["1.3", "2.71", 0], [1, 3, 1]], capacity=[1, 1, 1])
    truth = market.as_(float).speedup[0]
    random = np.random.default_rng(5)
    for report in kind.into(truth, truth * np.exp(random.normal(0, 0.5, (30, 3)))):
        if (report == truth).all():
            continue
        found = candidates(market, Found(0, report, 1.0, 1.0), kind)
        assert found
        for each in found:
            assert kind.allows(market.speedup[0], each)
            assert (each != market.speedup[0]).any()
            assert all(told > 0 for told, true in zip(each, market.speedup[0], strict=True) if true > 0)
        assert np.allclose(found[-1].astype(float), report, rtol=2e-6)


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        (CooperativeOEF(), {"larger", "smaller", "any"}),
        (NonCooperativeOEF(), {"smaller", "any"}),
        (MaxMin(), {"larger", "smaller", "any"}),
        (SecondPriceTrading(), {"larger", "smaller", "any"}),
        pytest.param(WaterFilling(), {"larger", "smaller", "any"}, marks=pytest.mark.slow),
        pytest.param(NashWelfare(), {"larger", "smaller", "any"}, marks=pytest.mark.slow),
        (MaxEfficiency(), {"larger", "any"}),
        (EqualSplit(), set()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_verdict_is_exact_and_what_it_says_pays(policy: Policy, kinds: set[str]) -> None:
    market = Market.of([["1.1", "2.3"], [1, "3.7"], ["1.4", "5.9"]], capacity=[3, 2])
    verdict = StrategyProofness().search(policy, market, effort=Effort(evaluations=300))
    failing = set()
    for name, each in verdict.by_misreport.items():
        assert each.exact, name
        assert isinstance(each.margin, Fraction | int)
        if each.answer is Answer.FAILS:
            failing.add(name)
            lie = each.witness
            honest, misreported = (
                allocate(policy, market, exact=True),
                allocate(policy, market.misreport(lie.user, lie.report), exact=True),
            )
            i = market.index(lie.user)
            assert (
                market.utility(misreported.shares)[i] - market.utility(honest.shares)[i] == lie.gain == -each.margin > 0
            )
            assert lie.every_optimum
            assert lie.least_gain is not None
            assert 0 < lie.least_gain <= lie.gain
        else:
            assert each.margin >= 0
    assert failing == kinds


def test_without_exact_decisions_the_margin_is_a_float() -> None:
    verdict = StrategyProofness().search(NonCooperativeOEF(), THREE.as_(float), effort=Effort(evaluations=60))
    assert not verdict.exact
    assert verdict.by_misreport["smaller"].answer is Answer.FAILS
    assert isinstance(verdict.margin, float)
    named = StrategyProofness().search(
        NonCooperativeOEF(), THREE, effort=Effort(evaluations=60), truth=allocate(NonCooperativeOEF(), THREE)
    )
    assert not named.exact


def best_and_worst(market: Market, reported: Market, user: int) -> Iterator[Fraction]:
    """Yield the least and the largest true utility of a user among all allocations of the largest reported total."""
    p = Formulation("total")
    share = shares_of(p, reported)
    p.maximize((reported.speedup * share).sum())
    total = p.program().value(Exact().solve(p.program()).point)
    for sense in (Sense.MINIMIZE, Sense.MAXIMIZE):
        p = Formulation("among the largest totals")
        share = shares_of(p, reported)
        p.constrain("total", (reported.speedup * share).sum() >= total)
        own = (market.speedup[user] * share[user]).sum()
        (p.minimize if sense is Sense.MINIMIZE else p.maximize)(own)
        yield Fraction(p.program().value(Exact().solve(p.program()).point))


def test_gains_for_every_optimum_are_the_worst_case_over_both_ties() -> None:
    answers = set()
    for market in sample_markets(8, seed=34, users=(2, 3), types=(1, 2), most=3, demands=True):
        exactly = ExactReports(StrategyProofness(), MaxEfficiency(), market)
        report = market.speedup[0] * 4
        found = exactly.misreport(0, report)
        assert found is not None
        decided = exactly.for_every_optimum(found)
        _, best = best_and_worst(market, market, 0)
        worst, _ = best_and_worst(market, market.misreport(0, report), 0)
        assert decided.least_gain == worst - best
        assert decided.every_optimum == (worst > best)
        assert found.gain >= decided.least_gain
        answers.add((found.gain > 0, decided.every_optimum))
    assert answers >= {(True, True), (False, False)}


def test_a_gain_that_another_optimum_would_take_away_says_so() -> None:
    """Two users alike: maximum efficiency may give either the GPU; whoever says more gets it for sure."""
    market = Market.of([[1], [1]], capacity=[1])
    exactly = ExactReports(StrategyProofness(), MaxEfficiency(), market)
    gains = []
    for user in (0, 1):
        found = exactly.misreport(user, market.speedup[user] * 2)
        assert found is not None
        decided = exactly.for_every_optimum(found)
        assert decided.least_gain == 0
        assert not decided.every_optimum
        gains.append(decided.gain)
    assert sorted(gains) == [0, 1]


# -- shrinking ---------------------------------------------------------------------------------------------------
def total(market: Market, report: Any = ()) -> Fraction:
    return sum([*market.speedup.ravel(), *market.capacity, *market.weight, *report], Fraction(0))


def exact_gains(policy: Policy, market: Market, kind: MisreportKind, most: int) -> Iterator[tuple[SlackCase, Fraction]]:
    """Yield every lie in integers up to ``most`` that pays with every optimum, and the total of all numbers."""
    exactly = ExactReports(StrategyProofness(), policy, market)
    for user in range(len(market.users)):
        for told in itertools.product(range(1, most + 1), repeat=len(market.types)):
            report = np.array([Fraction(value) for value in told], dtype=object)
            if (report == market.speedup[user]).all() or not kind.allows(market.speedup[user], report):
                continue
            found = exactly.misreport(user, report)
            if found is not None and found.gain > 0 and exactly.for_every_optimum(found).every_optimum:
                yield found, total(market, report)


def least_total(policy: Policy, kind: MisreportKind, shape: tuple[int, int], below: Fraction) -> Fraction:
    """Return the least total of a market of this shape in integers with a lie in integers, by trying all below it."""
    n, k = shape
    best = below
    for whole in range(n * k + k, int(below) - n - k):  # weights are 1, and a report has k entries of at least 1
        for ends in itertools.combinations(range(1, whole), n * k + k - 1):
            numbers = np.diff([0, *ends, whole]).tolist()
            market = Market.of(np.array(numbers[: n * k]).reshape(n, k).tolist(), numbers[n * k :])
            most = int(best) - whole - n - k + 1
            best = min([best, *(sum_ for _, sum_ in exact_gains(policy, market, kind, most))])
    return best


@pytest.mark.parametrize(
    ("policy", "kind", "size"),
    [
        pytest.param(CooperativeOEF(), LARGER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(CooperativeOEF(), SMALLER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxMin(), LARGER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxMin(), SMALLER, (2, 2, 0, 0, 12), marks=pytest.mark.slow),
        pytest.param(WaterFilling(), LARGER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(WaterFilling(), SMALLER, (2, 2, 0, 0, 12), marks=pytest.mark.slow),
        pytest.param(NashWelfare(), LARGER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(NashWelfare(), SMALLER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxEfficiency(), LARGER, (2, 1, 0, 0, 9), marks=pytest.mark.slow),
        pytest.param(SecondPriceTrading(), LARGER, (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        (NonCooperativeOEF(), SMALLER, (2, 1, 0, 0, 7)),
        pytest.param(SecondPriceTrading(), SMALLER, (2, 2, 0, 0, 12), marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_lie_shrinks_to_the_smallest_that_there_is(
    policy: Policy, kind: MisreportKind, size: tuple[int, ...]
) -> None:
    market = Market.of(
        [["1.27", "2.81", "3.1"], ["0.64", "1.9", "3.77"], ["1.8", "2.2", "4.15"], [1, 3, "4.5"]], capacity=[7, 5, 2]
    )
    lie = StrategyProofness().search(policy, market).by_misreport[kind.name].witness
    small = shrink(policy, market, lie)
    assert small.size == size
    assert kind.allows(small.witness.truth, small.witness.report)
    assert small.witness.every_optimum
    i = small.market.index(small.witness.user)
    reached = allocate(policy, small.market.misreport(i, small.witness.report), exact=True).shares
    had = allocate(policy, small.market, exact=True).shares
    assert small.market.utility(reached)[i] - small.market.utility(had)[i] == small.witness.gain > 0
    smallest = total(small.market, small.witness.report)
    assert smallest == size[-1]
    assert least_total(policy, kind, small.market.shape, smallest) == smallest


def test_shrinking_stops_when_told_and_keeps_the_best() -> None:
    market = Market.of([["1.27", "2.81"], ["0.64", "1.9"], ["1.8", "2.2"]], capacity=[7, 5])
    lie = StrategyProofness().search(SecondPriceTrading(), market, effort=Effort(evaluations=60)).witness
    steps = list(shrinking_misreports(SecondPriceTrading(), market, lie, effort=Effort(evaluations=25)))
    sizes = [step.size for step in steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) > 3
    first = shrink(SecondPriceTrading(), market, lie, effort=Effort(evaluations=1))
    assert first.market == market
    again = shrinking_misreports(SecondPriceTrading(), market, lie)
    assert [next(again).size for _ in range(4)] == sizes[:4]


def test_what_does_not_pay_is_not_shrunk() -> None:
    truth = THREE.speedup[0]
    told = truth * 2
    gained = {"truthful_utility": Fraction(1), "utility": Fraction(2), "gain": Fraction(1), "every_optimum": False}
    nothing = StrategyProofness().case(Fraction(-1), Fraction(1), user="u1", truth=truth, report=told, **gained)
    with pytest.raises(BadInput, match="pays nothing"):
        shrink(EqualSplit(), THREE, nothing)
    with pytest.raises(BadInput, match="`fails` is false on it"):
        shrink_market(THREE, lambda market: False)
    with pytest.raises(BadInput, match="floats"):
        list(shrinks(THREE.as_(float), lambda market: True))


def test_other_counterexamples_shrink_too() -> None:
    """Maximum efficiency causes envy as soon as two users differ; demands, weights and other types are left out."""
    market = Market.of(
        [["1.5", "2.25", 3], [1, "3.5", 4], [2, 3, "4.5"]],
        capacity=["5/2", 7, 3],
        weight=[1, 3, "1/2"],
        demand=[4, None, "7/2"],
    )

    def envious(each: Market) -> bool:
        return EnvyFreeness().check(each, allocate(MaxEfficiency(), each, Exact()).shares).answer is Answer.FAILS

    small = shrink_market(market, envious)
    assert small.shape == (2, 1)
    assert small.demand is None
    assert envious(small)
    assert total(small) == 5


def test_zeros_stay_where_they_are() -> None:
    market = Market.of([[1, 0, 3], [2, 5, 0]], capacity=[2, 3, 4])
    small = shrink_market(market, lambda each: each.shape == (2, 3))
    assert small.speedup.tolist() == [[1, 0, 1], [1, 1, 0]]
    assert small.capacity.tolist() == [1, 1, 1]
