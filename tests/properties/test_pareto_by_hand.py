"""Pareto efficiency where random markets hardly come: crumbs, tolerances, demands that bind, and its evidence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.certificates import DOMINANCE, PARETO, PROPERTY
from fairopt.errors import NotCapable
from fairopt.models import MaxEfficiency
from fairopt.policy import Optima
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import INFINITY, Array
from fairopt.properties import Answer, Feasibility, ParetoEfficiency
from fairopt.properties.property import SlackCase
from fairopt.properties.shares.pareto_efficiency import (
    ParetoWeights,
    _weights,
    largest_gain,
)

F = Fraction
PE = ParetoEfficiency()
TWO = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
BEST = [[1, 0], [0, 1]]  # u2 is better at the second type
#: Whatever the speedups are, u1 is better at the first type and u2 at the second.
APART = Market.of([[2, 2], [1, 5]], [1, 1], least=[[2, 1], [1, 4]], most=[[3, 2], [1, 9]])
LIMITED = replace(APART, demand=np.array([F(1), INFINITY], dtype=object))


def table(rows: Any) -> Array:
    return np.array([[F(each) for each in row] for row in rows], dtype=object)


# -- evidence ----------------------------------------------------------------------------------------------------
def better(market: Market, other: Any) -> SlackCase:
    """Return the case of another allocation, by which u2 is said to gain 1."""
    return PE.case(-1, 1, allocation=other, gains=np.array([F(0), F(1)]), users=market.users)


@pytest.mark.parametrize(
    ("other", "right"),
    [
        ([[1, 0], [0, 1]], True),
        ([["1/2", "1/2"], ["1/2", "1/2"]], False),  # nobody gains
        ([[0, "3/4"], [1, "1/4"]], False),  # u2 loses
        ([["1/2", 0], ["1/2", 1]], False),  # u1 loses a half
        ([["1/2", "1/2"], ["1/2", "2/3"]], False),  # more than there is
        ([["-1/2", 1], ["3/2", "1/2"]], False),  # less than nothing
    ],
)
def test_what_dominates_is_feasible_hurts_nobody_and_helps_somebody(other: Any, right: bool) -> None:
    market = Market.of([[2, 1], [1, 5]], capacity=[1, 1])
    shares = market.equal_split()
    shown = better(market, table(other))
    assert shown.refutes(market, shares) is right
    assert str(shown) == "u2 could get 1 more and nobody less"


def test_a_negative_share_alone_does_not_dominate() -> None:
    market = Market.of([[1, 1], [1, 1]], capacity=[2, 2])
    other = table([["-1/2", 2], [2, 0]])
    assert not better(market, other).refutes(market, table([[1, 0], [0, 1]]))


def weights(*, prices: Any = (1, 5), demand_duals: Any = (0, 0), each: Any = (1, 1)) -> ParetoWeights:
    return ParetoWeights(
        *(np.array([F(number) for number in numbers], dtype=object) for numbers in (each, prices, demand_duals))
    )


@pytest.mark.parametrize(
    ("told", "demand", "broken"),
    [
        ({}, None, set()),
        ({"each": (0, 1)}, None, {"a weight is not positive", "the weighted throughput is below the dual bound"}),
        ({"prices": (1, -1)}, None, {"a price is negative", "a GPU is worth more to a user than its prices"}),
        ({"prices": (1, 4)}, None, {"a GPU is worth more to a user than its prices"}),
        ({"prices": (2, 5)}, None, {"the weighted throughput is below the dual bound"}),
        ({"demand_duals": (1, 0)}, None, {"a price is put on a demand that there is not"}),
        ({"demand_duals": (1, 0)}, [1, None], {"the weighted throughput is below the dual bound"}),
        ({"demand_duals": (1, 0), "prices": (1, 4)}, [None, 1], {"a GPU is worth more to a user than its prices"}),
        ({"demand_duals": (0, 1), "prices": (1, 4)}, [None, 1], set()),
    ],
)
def test_each_condition_of_the_weights_is_looked_at(told: Any, demand: Any, broken: set[str]) -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=demand)
    found = set(weights(**told).violations(market, table(BEST)))
    unowed = {"a price is put on a demand that there is not"}
    assert found - unowed == broken - unowed
    if demand is None:
        assert found == broken


def test_a_price_below_nothing_on_no_demand_is_refused_within_a_tolerance_too() -> None:
    found = weights(demand_duals=(F(-1, 1000), 0)).violations(TWO, table(BEST), F(1, 100))
    assert found == ["a price is put on a demand that there is not"]
    assert weights(prices=(1, F(499, 100))).violations(TWO, table(BEST), F(1, 50)) == []


@pytest.mark.parametrize(
    ("market", "shares", "kind"),
    [
        (TWO, BEST, PARETO),
        (replace(TWO, demand=np.array([F(1), F(1)], dtype=object)), BEST, PARETO),
        (TWO, [["1/2", "1/2"]] * 2, DOMINANCE),
        (TWO, [[1, 0], [1, 1]], PROPERTY),
        (APART, BEST, PROPERTY),
    ],
)
def test_each_verdict_has_its_evidence(market: Market, shares: Any, kind: type) -> None:
    verdict = PE.check(market, table(shares))
    evidence = PE.certify(market, table(shares), verdict)
    assert evidence.kind is kind
    named = evidence.property if evidence.kind is PROPERTY else ""
    assert named == ("" if kind is not PROPERTY else PE.name if market is APART else Feasibility.name)


def test_what_depends_is_certified_at_its_ends() -> None:
    market = Market.of([[1, 2], [1, 3]], [1, 1], least=[[1, 1], [1, 3]], most=[[1, 4], [1, 3]])
    verdict = PE.check(market, table(BEST))
    assert verdict.answer is Answer.DEPENDS
    with pytest.raises(NotCapable, match="two ends"):
        PE.certify(market, table(BEST), verdict)


# -- what is not feasible ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shares", "margin", "where"),
    [
        ([[1, -1], [0, 0]], -1, "T2"),  # the first type is full, and of the second a share is negative
        ([[2, 5], [0, 0]], -1, "T1"),  # a GPU too many of either
        ([["5/4", 6], [0, 0]], -2, "T2"),
        ([[2, "-1/2"], [0, 0]], -1, "T1"),
    ],
)
def test_the_type_that_is_named_is_the_one_that_is_wrong(shares: Any, margin: int, where: str) -> None:
    market, given = Market.of([[1, 2], [1, 5]], capacity=[1, 4]), table(shares)
    verdict = PE.check(market, given)
    assert (verdict.answer, verdict.margin, verdict.witness.type) == (Answer.FAILS, margin, where)
    assert verdict.witness.refutes(market, given)
    feasible = Feasibility().check(market, given)
    assert (feasible.witness.type, feasible.margin) == (where, margin)


def test_a_type_on_which_nothing_is_wrong_refutes_nothing() -> None:
    shares = table([[1, -1], [0, 0]])
    assert [
        Feasibility().at(TWO, shares, 0).refutes(TWO, shares),
        Feasibility().at(TWO, shares, 1, 0).refutes(TWO, shares),
    ] == [False, True]
    much = table([[1, 0], [1, 1]])
    assert [Feasibility().at(TWO, much, at).refutes(TWO, much) for at in (0, 1)] == [True, False]


# -- tolerances --------------------------------------------------------------------------------------------------
def test_the_tolerance_is_for_each_users_gain() -> None:
    """Both could have 0.8 of 5 more: 0.16 each, 0.32 together."""
    market = Market.of([[1, 0], [0, 1]], capacity=[10, 10])
    shares = table([["46/5", 0], [0, "46/5"]])
    for tolerance, answer in ((F(15, 100), Answer.FAILS), (F(1, 5), Answer.HOLDS), (F(16, 100), Answer.HOLDS)):
        verdict = PE.check(market, shares, tolerance=tolerance)
        assert (verdict.answer, verdict.margin) == (answer, F(-32, 100))
    assert PE.check(market, shares).exact


@pytest.mark.parametrize("market", [TWO, APART], ids=["known", "within bounds"])
@pytest.mark.parametrize(
    ("shares", "exact"),
    [(BEST, True), ([["1001/1000", 0], [0, 1]], False), ([[1, "-1/1000"], [0, 1]], False)],
    ids=["as it is", "scaled down", "nothing for less"],
)
def test_what_was_changed_within_the_tolerance_is_not_exact(market: Market, shares: Any, exact: bool) -> None:
    verdict = PE.check(market, table(shares), tolerance=F(1, 100))
    assert (verdict.answer, verdict.exact) == (Answer.HOLDS, exact)


def test_crumbs_are_not_held() -> None:
    """u2 holds a crumb of what u1 is better at, and u1 a crumb of u2's: these two could trade."""
    crumbs = table([["999/1000", "1/1000"], ["1/1000", "999/1000"]])
    assert PE.check(APART, crumbs).answer is Answer.FAILS
    wide = Market.of([[2, 2], [2, 5]], [4, 4], least=[[2, 1], [1, 4]], most=[[3, 2], [2, 9]])
    for market, scale in ((APART, 1), (wide, 4)):
        verdict = PE.check(market, crumbs * scale, tolerance=F(1, 100))
        assert (verdict.answer, verdict.exact, verdict.margin) == (Answer.HOLDS, False, verdict.margin)
        clean = PE.check(market, table(BEST) * scale, tolerance=F(1, 100))
        assert verdict.margin == clean.margin


def test_what_fails_without_the_crumbs_does_not_fail_exactly() -> None:
    """u2 holds a crumb of the second type; u1 would give nearly all of that for the first."""
    verdict = PE.check(APART, table([["1/2", "999/1000"], ["1/2", "1/1000"]]), tolerance=F(1, 100))
    assert (verdict.answer, verdict.exact) == (Answer.FAILS, False)


def test_a_trade_that_pays_within_the_tolerance_is_none_but_not_exactly() -> None:
    """At the worst of the speedups u1 gives 1 for what is worth 1.01."""
    market = Market.of([[1, 1], [1, 1]], [1, 1], least=[[1, 1], [1, 1]], most=[[1, "1.01"], [1, 1]])
    assert PE.check(market, table(BEST)).answer is Answer.DEPENDS
    near = PE.check(market, table(BEST), tolerance=F(1, 50))
    assert (near.answer, near.exact) == (Answer.HOLDS, False)
    assert near.margin == F(100, 101) - 1
    assert PE.check(market, table(BEST), tolerance=F(1, 200)).answer is Answer.DEPENDS
    even = Market.of([[1, 1], [1, 1]], [1, 1], least=[[1, 1], [1, 1]], most=[[1, 1], [1, 2]])
    holds = PE.check(even, table(BEST))
    assert (holds.answer, holds.exact, holds.margin) == (Answer.HOLDS, True, 0)


# -- bounds that are open ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("least", "most"),
    [
        ([[2, 1], [1, 1]], [[2, None], [1, 1]]),
        ([[0, 1], [1, 1]], [[2, 1], [1, 1]]),
        ([[0, 1], [1, 1]], [[2, None], [1, 1]]),
    ],
    ids=["without an end", "from 0 on", "both"],
)
def test_where_bounds_are_open_it_fails_at_what_is_shown(least: Any, most: Any) -> None:
    """At twice the second speedup, or half the first, the trade pays nobody yet."""
    verdict = PE.check(Market.of([[2, 1], [1, 1]], [1, 1], least=least, most=most), table(BEST))
    assert verdict.answer is Answer.DEPENDS
    assert {name: PE.check(there, table(BEST)).answer.value for name, there in verdict.boundary.ends.items()} == {
        "holds": "HOLDS",
        "fails": "FAILS",
    }


def test_where_only_what_is_next_to_nothing_fails_it_is_shown() -> None:
    """The first speedup may be any from 0 on, and the trade pays below 1, next to nothing of 2 ** 31."""
    market = Market.of([[2**31, 1], [1, 1]], [1, 1], least=[[0, 1], [1, 1]], most=[[2**31, 1], [1, 1]])
    verdict = PE.check(market, table(BEST))
    assert verdict.answer is Answer.DEPENDS
    assert PE.check(verdict.boundary.ends["fails"], table(BEST)).answer is Answer.FAILS


def test_idle_gpus_of_any_speed_above_0_are_better_than_none() -> None:
    market = Market.of([[1, "1/2"]], [1, 1], least=[[1, 0]], most=[[1, "1/2"]])
    verdict = PE.check(market, table([[1, 0]]))
    assert verdict.answer is Answer.FAILS
    assert verdict.witness.allocation.tolist() == [[1, 1]]


# -- demands that bind -------------------------------------------------------------------------------------------
def test_trades_that_pay_within_demands_are_not_decided_for_all_speedups() -> None:
    holds = PE.check(LIMITED, table(BEST))
    assert holds.answer is Answer.HOLDS
    assert PE.check(LIMITED, table(BEST), tolerance=F(1, 100)).answer is Answer.HOLDS
    even = replace(LIMITED, least=table([[2, 2], [1, 4]]), most=table([[3, 2], [4, 9]]))
    rate = PE.check(even, table(BEST))  # at the worst, 2 for 2 and 4 for 4
    assert (rate.answer, rate.margin) == (Answer.HOLDS, 0)


def test_speedups_without_an_end_are_no_corner() -> None:
    open_ended = replace(LIMITED, most=np.array([[F(3), INFINITY], [F(1), F(9)]], dtype=object))
    assert PE.check(open_ended, table(BEST)).answer is Answer.UNDECIDED


def test_idle_gpus_that_somebody_can_use_leave_it_open_where_demands_bind() -> None:
    market = Market.of([[1, "1/2"]], [1, 1], least=[[1, "1/4"]], most=[[1, "3/4"]], demand=[1])
    idle = PE.check(market, table([[1, 0]]))
    assert (idle.answer, idle.reason) == (Answer.UNDECIDED, "trades within demands are not decided for all speedups")


def test_an_optimum_is_not_dominated_by_more_than_a_demand() -> None:
    """There are GPUs that nobody may use: two users want one each, of three."""
    for market in (
        Market.of([[1], [2]], capacity=[3], demand=[1, 1]),
        Market.of([[1, 2]], capacity=[1, 3], demand=[2]),
    ):
        optima = Optima.of(MaxEfficiency(), allocate(MaxEfficiency(), market, exact=True))
        assert optima is not None
        over = PE.over(optima)
        assert (over.every.answer, over.some.answer) == (Answer.HOLDS, Answer.HOLDS)


def test_what_is_not_there_fails_at_all_speedups() -> None:
    assert ParetoEfficiency().check(with_error(TWO, "10%"), table([[2, 2], [0, 0]])).answer is Answer.FAILS


def test_a_gain_within_the_tolerance_is_undecided_where_no_speedups_hold() -> None:
    ranged, used = with_error(TWO, "10%"), table([[0, 1], [1, 0]])
    stated = ParetoEfficiency().check(replace(ranged, least=None, most=None), used)

    class Never(ParetoEfficiency):
        def check(self, *given: Any, **options: Any) -> Any:
            return stated

    assert stated.answer is Answer.FAILS
    verdict = Never()._failing(stated, ranged, used, F(99))
    assert (verdict.answer, verdict.reason) == (Answer.UNDECIDED, "a gain at all speedups is within the tolerance")


#: u1 has nearly all of the weight and nothing of the GPUs; the others hold more than they demand.
FAR_APART = Market.of_arrays([[1.0], [1.0], [1.0]], [26.6], weight=[1e11, 0.04, 1e-4], demand=[3.3, 3.3, 1.6])


def test_gains_that_sums_of_floats_lose_are_found_in_rationals() -> None:
    verdict = ParetoEfficiency().check(FAR_APART, np.array([[0.0], [5.0], [10.0]]))
    assert (verdict.answer, verdict.exact) == (Answer.FAILS, False)
    assert verdict.margin == pytest.approx(-1)
    assert verdict.witness.gains.tolist() == [3.3, 0, 0]
    held = ParetoEfficiency().check(FAR_APART, np.array([[3.3], [5.0], [10.0]]))
    assert (held.answer, held.exact) == (Answer.HOLDS, False)
    assert held.evidence.weights.dtype == float
    crumb = ParetoEfficiency().check(FAR_APART, np.array([[3.3], [3.3], [1.6 - 1e-15]]))
    assert crumb.answer is Answer.UNDECIDED
    assert "floats round" in crumb.reason


def test_large_markets_of_which_floats_lose_gains_are_undecided() -> None:
    market = Market.of_arrays(np.ones((1001, 1)), [1e3], weight=[1e12, *[1.0] * 1000])
    verdict = ParetoEfficiency().check(market, np.array([[0.0], *[[1.0]] * 1000]))
    assert (verdict.answer, verdict.exact) == (Answer.UNDECIDED, False)
    assert "ask in rationals" in verdict.reason


def test_without_duals_there_are_no_weights() -> None:
    program = largest_gain(TWO, TWO.fair_utility(), TWO.fair_utility())
    assert _weights(program, SimpleNamespace(dual=None), TWO.fair_utility()) is None  # type: ignore[arg-type]
