"""Exact misreports by themselves: the rational reports near one in floats, and what a report does by definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.errors import BadInput, NotSolved
from fairopt.models import EqualSplit, MaxEfficiency
from fairopt.policy import Computed, Formulated
from fairopt.problem import Market
from fairopt.program import Array, Formulation
from fairopt.properties import SlackCase, StrategyProofness
from fairopt.properties.misreports.exact_reports import ExactReports, candidates, exact_or_none, simplest
from fairopt.properties.misreports.kinds import ANYTHING, LARGER, SMALLER, MisreportKind
from fairopt.properties.misreports.search import Found

F = Fraction
TWO = Market.of([[1, 2], [1, 5]], capacity=[1, 1])


class Loudest(Computed):
    """All goes to who reports the most on the first type, of those who say the same to the first of them."""

    name = "loudest"
    source = "these tests"
    asked = 0

    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        type(self).asked += 1
        if (problem.speedup[:, 0] > 100).any():
            raise NotSolved("too loud")
        shares = np.zeros(problem.shape, dtype=problem.speedup.dtype) + 0 * problem.speedup[0, 0]
        shares[int(np.argmax(problem.speedup[:, 0]))] = problem.capacity
        return shares, None


def row(*numbers: Any) -> Array:
    return np.array([F(number) for number in numbers], dtype=object)


# -- the simplest fraction ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("low", "high", "right"),
    [
        *(
            (0, 0, 0),
            (0, F(1, 2), 0),
            (F(1, 3), F(1, 2), F(1, 2)),
            (F(5, 2), F(7, 2), 3),
            (F(61, 200), F(8, 25), F(4, 13)),
        ),
        *((1, 1, 1), (F(7, 3), F(7, 3), F(7, 3)), (F(1, 9), F(1, 8), F(1, 8)), (F(13, 5), F(14, 5), F(8, 3))),
    ],
)
def test_the_simplest_fraction_by_hand(low: Any, high: Any, right: Any) -> None:
    assert simplest(F(low), F(high)) == right


def test_an_interval_is_not_negative_and_not_empty() -> None:
    for low, high in ((-1, 1), (2, 1)):
        with pytest.raises(BadInput, match="simplest fraction"):
            simplest(F(low), F(high))


# -- candidates --------------------------------------------------------------------------------------------------
def by_definition(truth: Array, found: list[float], kind: MisreportKind) -> set[tuple[Fraction, ...]]:
    """Return all reports that are in question: on each part of the way, within each width of it."""
    out = set()
    for part in (F(1, 2), F(3, 4), F(9, 10), F(1)):
        for width in (0.5, 0.25, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6):
            report = list(truth)
            for j, (true, told) in enumerate(zip(truth, found, strict=True)):
                there = true + part * (F(told) - true)
                ends = there * F(1 - width), there * F(1 + width)
                if told != float(true) and not ends[0] <= true <= ends[1]:
                    report[j] = next(
                        F(p, q)
                        for q in range(1, 4000)
                        for p in range(int(ends[0] * q), int(ends[1] * q) + 1)
                        if ends[0] * q <= p
                    )
            if report != list(truth) and kind.allows(truth, np.array(report, dtype=object)):
                out.add(tuple(report))
    return out


@pytest.mark.parametrize(
    ("truth", "found", "kind"),
    [
        (row(1, 2), [1.0, 3.14159], LARGER),
        (row(1, 2), [1.75, 2.0], ANYTHING),
        (row("1.3", "2.7", 0), [0.77, 1.01, 0.0], SMALLER),
        (row(1, 2, 0), [1.04, 2.6, 0.3], ANYTHING),
        (row("1.3", "2.7"), [1.3, 2.6], ANYTHING),
        (row(1, 2), [1.0, 2.0], ANYTHING),
        (row(3, 2), [3.5, 2.0], SMALLER),
    ],
)
def test_candidates_are_those_of_the_definition_plain_ones_first(truth: Array, found: list[float], kind: Any) -> None:
    market = Market.of([truth.tolist(), [1] * len(truth)], capacity=[1] * len(truth))
    reports = candidates(market, Found(0, np.array(found), 1.0, 1.0), kind)
    rows = [tuple(each) for each in reports]
    assert set(rows) == by_definition(truth, found, kind)
    assert len(set(rows[:-1])) == len(rows[:-1])
    sums = [sum(v.numerator + v.denominator for v in each) for each in rows]
    assert sums[:-1] == sorted(sums[:-1])
    if rows:
        far = [max(abs(float(a) - b) for a, b in zip(each, found, strict=True)) for each in rows]
        assert far[-1] == min(far)


def test_the_way_goes_from_the_truth() -> None:
    reports = candidates(TWO, Found(0, np.array([1.0, 7.0]), 1.0, 1.0), LARGER)
    assert {tuple(each) for each in reports} >= {(1, F(9, 2)), (1, F(23, 4)), (1, F(13, 2)), (1, 7)}
    assert reports[-1].tolist() == [1, 7]


@pytest.mark.parametrize("found", [[1e-32, 1e30], [1e-30, 5e31], [3e-31, 2e32]])
def test_no_candidate_is_beyond_what_a_market_may_state(found: list[float]) -> None:
    """Guards against a search that ends, on a market of such numbers, with a refusal of what it made up itself."""
    market = Market.of([["1e-30", "1e30"], [1, 1]], capacity=[1, 1])
    reports = candidates(market, Found(0, np.array(found), 1.0, 1.0), ANYTHING)
    assert all(market.misreport(0, report).speedup[0].tolist() == report.tolist() for report in reports)


def lie_of(user: str, truth: Array, report: Array, own: Any, reached: Any, shares: Array) -> SlackCase:
    """Return a lie by hand: what is had by the truth, by the report, and shares that stand for both decisions."""
    both = {"truthful_allocation": shares, "allocation": shares, "every_optimum": False, "least_gain": None}
    told = {"truth": truth, "report": report, "truthful_utility": own, "utility": reached, "gain": reached - own}
    return StrategyProofness().case(own - reached, own, user=user, **told, **both)


# -- what a report does ------------------------------------------------------------------------------------------
def test_a_misreport_says_what_the_definition_says() -> None:
    exactly = ExactReports(StrategyProofness(), Loudest(), Market.of([[1, 2], [3, 5]], capacity=[4, 2]))
    found = exactly.misreport(0, row("7/2", 1))
    assert found is not None
    assert (found.user, found.truthful_utility, found.utility, found.gain) == ("u1", 0, 8, 8)
    assert (found.truth.tolist(), found.report.tolist()) == ([1, 2], [F(7, 2), 1])
    assert found.truthful_allocation.tolist() == [[0, 0], [4, 2]]
    assert found.allocation.tolist() == [[4, 2], [0, 0]]
    assert (found.every_optimum, found.least_gain) == (False, None)
    loses = exactly.misreport(1, row("1/2", 5))
    assert loses is not None
    assert (loses.gain, loses.truthful_utility, loses.utility) == (-22, 22, 0)
    assert exactly.misreport(0, row(101, 1)) is None


def test_a_policy_that_chooses_nothing_gains_for_every_optimum_what_it_gains() -> None:
    exactly = ExactReports(StrategyProofness(), Loudest(), Market.of([[1, 2], [3, 5]], capacity=[4, 2]))
    for user, report, least in ((0, row(4, 1), 8), (0, row(5, 5), 8), (1, row("1/2", 5), -22), (1, row(2, 5), 0)):
        found = exactly.misreport(user, report)
        assert found is not None
        decided = exactly.for_every_optimum(found)
        assert (decided.least_gain, decided.every_optimum) == (least, least > 0)
        assert decided.gain == found.gain


def test_a_report_is_decided_once_and_no_truth_is_no_gain() -> None:
    market = Market.of([[1, 2], [3, 5]], capacity=[4, 2])
    Loudest.asked = 0
    exactly = ExactReports(StrategyProofness(), Loudest(), market)
    for _ in range(3):
        found = exactly.misreport(0, row(4, 1))
        assert found is not None
        exactly.for_every_optimum(found)
    assert Loudest.asked == 2
    truth = exact_or_none(Loudest(), market)
    assert truth is not None
    assert ExactReports(StrategyProofness(), Loudest(), market, truth).truth is truth
    loud = Market.of([[101, 2], [3, 5]], capacity=[4, 2])
    Loudest.asked = 0
    nothing = ExactReports(StrategyProofness(), Loudest(), loud)
    assert nothing.truth is None
    assert nothing.misreport(0, row(4, 1)) is None
    assert nothing.for_every_optimum(found) is found
    assert Loudest.asked == 1


def test_what_has_no_decision_stays_as_it_is_and_demands_are_kept() -> None:
    """u1 wants one of two GPUs alike, and gets one in every optimum where it says more than u2."""
    market = Market.of([[1, 1], [1, 1]], capacity=[1, 1], demand=[1, None])
    exactly = ExactReports(StrategyProofness(), MaxEfficiency(), market)
    found = exactly.misreport(0, row(3, 3))
    assert found is not None
    decided = exactly.for_every_optimum(found)
    assert (decided.least_gain, decided.every_optimum) == (0, False)
    other = ExactReports(StrategyProofness(), Loudest(), market)
    loud = lie_of("u1", market.speedup[0], row(101, 1), F(0), F(1), market.speedup)
    assert other.for_every_optimum(loud) is loud


class Unlimited(Formulated):
    """All that there is for those who say that they use it best, wanted or not."""

    name, source = "unlimited", "these tests"

    def formulate(self, problem: Market, state: Any) -> Any:
        p = Formulation(self.name)
        share = p.variable("share", problem.shape, lower=0, labels=(problem.users, problem.types))
        p.constrain("capacity", share.sum(axis=0) <= problem.capacity)
        p.maximize((problem.speedup * share).sum())
        return p.program()


def test_beyond_a_demand_throughput_is_not_linear_and_nothing_is_said_of_every_optimum() -> None:
    market = Market.of([[1], [3]], capacity=[2], demand=[1, None])
    exactly = ExactReports(StrategyProofness(), Unlimited(), market)
    for user, report, least in ((0, row(4), None), (0, row(2), 0), (1, row("1/2"), -6)):
        found = exactly.misreport(user, report)
        assert found is not None
        decided = exactly.for_every_optimum(found)
        assert (decided.least_gain, decided.every_optimum) == (least, False)


def test_in_floats_gains_are_floats_and_bundles_beyond_a_demand_are_worth_nothing() -> None:
    market = Market.of([[1, 2], [3, 5]], capacity=[4, 2], demand=[3, None])
    before, after = (exact_or_none(Loudest(), each) for each in (market, market.misreport(0, row(9, 9))))
    assert before is not None
    assert after is not None
    exact = StrategyProofness().told(market, 0, row(9, 9), before, after)
    assert (exact.truthful_utility, exact.utility) == (0, 5)
    floats = StrategyProofness().told(market.as_(float), 0, np.array([9.0, 9.0]), before, after)
    assert (floats.gain, type(floats.gain)) == (5.0, float)
    assert (type(exact.gain), exact.gain) == (F, 5)


def test_a_misreport_in_words() -> None:
    told = (np.array([F(1), F(2)], dtype=object), np.array([F(3, 2), F(4)], dtype=object))
    shares = TWO.equal_split()
    words = str(lie_of("u1", *told, F(1), F(5, 4), shares))
    assert words == "u1 has speedups 1, 2, reports 1.5, 4, and gets 1.25 instead of 1"
    near = lie_of("u1", *told, 1.0, 1.0 + 1e-12, shares).but(gain=1e-12)
    assert str(near) == "u1 has speedups 1, 2, reports 1.5, 4, and gets 1e-12 more than 1"


def test_a_policy_without_an_exact_decision_has_none() -> None:
    assert exact_or_none(Loudest(), Market.of([[101]], capacity=[1])) is None
    decision = exact_or_none(EqualSplit(), TWO.as_(float))
    assert decision is not None
    assert decision.shares.tolist() == [[F(1, 2)] * 2] * 2
