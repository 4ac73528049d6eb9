"""Properties pass their suites, and agree with brute force written from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.errors import BadInput, WrongReturn
from fairopt.models import CooperativeOEF, EqualSplit, MaxEfficiency, NashWelfare, NonCooperativeOEF, WaterFilling
from fairopt.problem import Market
from fairopt.properties import (
    AdjacentTypes,
    AllocationProperty,
    Answer,
    Effort,
    EnvyFreeness,
    Feasibility,
    ParetoEfficiency,
    SharingIncentive,
    StrategyProofness,
    WorkConservation,
)
from fairopt.properties.lattice import contradictions
from fairopt.testing.property_suite import cases, mechanism_suite, of_allocations, of_policies, property_suite
from fairopt.testing.strategies import allocations, markets
from fairopt.testing.suite import Outcome


@pytest.mark.parametrize("each", of_allocations(), ids=lambda each: each.name)
def test_property_conforms(each: AllocationProperty, conformance: Callable[[object], None]) -> None:
    report = property_suite().run([each])
    conformance(f"property {each.name}: {report.counts[Outcome.RAN]} of {len(report.rows)} checks ran")
    report.require_complete()


@pytest.mark.parametrize("each", of_policies(), ids=lambda each: each.name)
def test_mechanism_property_conforms(each: Any, conformance: Callable[[object], None]) -> None:
    report = mechanism_suite().run([each])
    conformance(f"property {each.name}: {report.counts[Outcome.RAN]} of {len(report.rows)} checks ran")
    report.require_complete()


class AlwaysYes(EnvyFreeness):
    """Says that nobody envies anybody."""

    name = "always_yes"

    def _check(self, market: Any, shares: Any, tolerance: Any) -> Any:
        return self._by_tightest(self.case(Fraction(0), 1), 0, exact=market.exact, unit="", effort="")


class WrongWitness(EnvyFreeness):
    """Names the envied user as the envious one."""

    name = "wrong_witness"

    def _check(self, market: Any, shares: Any, tolerance: Any) -> Any:
        from dataclasses import replace

        verdict = super()._check(market, shares, tolerance)
        if verdict.witness is None:
            return verdict
        witness = verdict.witness
        return replace(verdict, witness=witness.but(user=witness.envied, envied=witness.user))


@pytest.mark.parametrize(
    ("each", "check"),
    [
        (AlwaysYes(), "instances hold and fail"),
        (AlwaysYes(), "witness refutes by the bare definition"),
        (WrongWitness(), "witness refutes by the bare definition"),
    ],
)
def test_the_suite_catches(each: AllocationProperty, check: str) -> None:
    suite = property_suite()
    one = next(entry for entry in suite.checks if entry.name == check)
    assert suite.run_one(each, one).outcome is Outcome.FAILED


# -- brute force, from the definitions ---------------------------------------------------------------------------
def worth(market: Market, i: int, bundle: Any) -> Fraction:
    """Try every order of filling up the demand; the best one is what the bundle is worth."""
    limit = market.limit[i]
    best = Fraction(0)
    for order in itertools.permutations(range(len(bundle))):
        left, total = limit, Fraction(0)
        for j in order:
            used = min(bundle[j], left)
            total, left = total + market.speedup[i, j] * used, left - used
        best = max(best, total)
    return best


def envy_free(market: Market, shares: Any) -> bool:
    users = range(len(market.users))
    return all(
        worth(market, i, shares[i]) >= worth(market, i, [x * market.weight[i] / market.weight[o] for x in shares[o]])
        for i in users
        for o in users
    )


def shares_pay(market: Market, shares: Any) -> bool:
    whole = sum(market.weight)
    return all(
        worth(market, i, shares[i]) >= worth(market, i, [m * market.weight[i] / whole for m in market.capacity])
        for i in range(len(market.users))
    )


def adjacent(market: Market, shares: Any) -> bool:
    columns = [j for j in range(len(market.types)) if market.capacity[j] > 0]
    patterns = ("".join("x" if row[j] > 0 else "." for j in columns).strip(".") for row in shares)
    return all("." not in pattern for pattern in patterns)


def feasible(market: Market, shares: Any) -> bool:
    return all(sum(column) <= m for column, m in zip(shares.T.tolist(), market.capacity, strict=True)) and all(
        share >= 0 for share in shares.ravel()
    )


def conserves_work(market: Market, shares: Any) -> bool:
    """Nobody gains from a GPU that nobody uses: give each user a little of each idle type and see."""
    used = np.zeros(market.shape, dtype=object)
    for i, row in enumerate(shares):
        left = market.limit[i]
        for j in sorted(range(len(row)), key=lambda j: -market.speedup[i, j]):
            if market.speedup[i, j] > 0:
                used[i, j] = min(row[j], left)
                left -= used[i, j]
    for j, idle in enumerate(market.capacity - used.sum(axis=0)):
        for i in range(len(market.users)):
            room = market.limit[i] - used[i].sum()
            if idle > 0 and room > 0 and market.speedup[i, j] > 0:
                return False
    return True


BRUTE = [
    (EnvyFreeness(), envy_free),
    (SharingIncentive(), shares_pay),
    (AdjacentTypes(), adjacent),
    (Feasibility(), feasible),
    (WorkConservation(), conserves_work),
]


@pytest.mark.parametrize(("each", "brute"), BRUTE, ids=[each.name for each, _ in BRUTE])
def test_agrees_with_brute_force(each: AllocationProperty, brute: Any) -> None:
    answers = set()
    for market, shares in cases():
        holds = brute(market, shares)
        answers.add(holds)
        assert (each.check(market, shares).answer is Answer.HOLDS) == holds, (market.speedup, shares)
    assert answers == {True, False}


def test_pareto_efficiency_agrees_with_all_trades_on_a_grid() -> None:
    """Two users, two types: an allocation on a grid is dominated iff one on the grid of exchanges dominates it.

    With integer speedups from 1 to 3 and two GPUs of each type, a user gives d of one type for d * r of the other, r
    between the two users' ratios: a small trade exists iff a trade of one grid step does at such a rate.
    """
    for a, b in itertools.product(range(1, 4), repeat=2):
        market = Market.of([[1, a], [1, b]], capacity=[2, 2])
        for x, y in itertools.product(range(5), repeat=2):
            shares = np.array([[Fraction(x, 2), Fraction(y, 2)], [2 - Fraction(x, 2), 2 - Fraction(y, 2)]])
            # user 1 can sell its second type to user 2 if that one's ratio is higher, and the other way round
            sells = b > a and shares[0, 1] > 0 and shares[1, 0] > 0
            buys = a > b and shares[1, 1] > 0 and shares[0, 0] > 0
            answer = ParetoEfficiency().check(market, shares).answer
            assert (answer is Answer.FAILS) == (sells or buys), (a, b, shares)


@given(st.data())
def test_verdicts_do_not_contradict_each_other(data: st.DataObject) -> None:
    market = data.draw(markets(demands=True, max_users=4, max_types=3))
    shares = data.draw(allocations(market))
    verdicts = {each.name: each.check(market, shares) for each in of_allocations()}
    assert not contradictions(verdicts, demands=market.demand is not None)


@given(st.data())
def test_pareto_weights_prove_what_they_say(data: st.DataObject) -> None:
    market = data.draw(markets(demands=True, max_users=4, max_types=3))
    shares = allocate(NashWelfare(), market).shares if market.demand is None else data.draw(allocations(market))
    verdict = ParetoEfficiency().check(market, shares)
    if verdict.answer is Answer.HOLDS and verdict.exact:
        assert verdict.evidence.violations(market, shares) == []
        worse = verdict.evidence.violations(market, shares * 0)
        assert "the weighted throughput is below the dual bound" in worse


def test_float_allocation_within_tolerance_holds_and_says_so() -> None:
    market = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])
    shares = allocate(CooperativeOEF(), market).shares
    for each in (EnvyFreeness(), SharingIncentive(), ParetoEfficiency(), Feasibility()):
        verdict = each.check(market, shares + 1e-9)
        assert verdict.answer is Answer.HOLDS
        assert not verdict.exact


def test_a_loose_solver_answer_that_overbooks_fails() -> None:
    market = Market.of([[1, 2], [1, 3]], capacity=[1, 1])
    shares = np.array([[1.0, 0.25], [0.0, 0.75 + 2.5e-4]])
    assert Feasibility().check(market, shares).answer is Answer.FAILS
    assert ParetoEfficiency().check(market, shares).answer is Answer.FAILS


SCARCE = Market.of([[1, 1], [1, 1]], capacity=[4_000_000, 1], demand=[None, 2], users=["A", "B"])


@pytest.mark.parametrize("each", [Feasibility(), ParetoEfficiency()], ids=lambda each: each.name)
def test_a_scarce_type_beside_a_common_one_has_a_tolerance_of_its_own(each: AllocationProperty) -> None:
    overbooked = np.array([[3_999_998.0, 2.9], [2.0, 0.0]])
    assert each.check(SCARCE, overbooked).answer is Answer.FAILS
    negative = np.array([[4_000_000.0, 1.5], [0.0, -0.5]])
    assert each.check(SCARCE, negative).answer is Answer.FAILS
    assert each.check(SCARCE, np.array([[3_999_998.0, 1 + 1e-8], [2.0, 0.0]])).answer is Answer.HOLDS


def test_what_idles_of_a_scarce_type_is_a_part_of_that_type_and_of_a_users_demand() -> None:
    check = WorkConservation().check
    assert check(SCARCE, np.array([[3_999_998.0, 0.0], [2.0, 0.0]])).answer is Answer.FAILS
    assert check(SCARCE, np.array([[3_999_998.0, 1.0 - 1e-8], [2.0, 0.0]])).answer is Answer.HOLDS
    limited = Market.of([[1, 1]], capacity=[4_000_000, 1], demand=[2])
    assert check(limited, np.array([[0.0, 1.0]])).answer is Answer.FAILS
    assert check(limited, np.array([[1 - 1e-8, 1.0]])).answer is Answer.HOLDS


def test_a_type_without_gpus_has_a_tolerance_too() -> None:
    market = Market.of([[1, 1]], capacity=[4_000_000, 0])
    assert Feasibility().check(market, np.array([[4e6, 1e-8]])).answer is Answer.HOLDS
    assert Feasibility().check(market, np.array([[4e6, 0.5]])).answer is Answer.FAILS


def test_what_one_of_many_users_could_gain_is_measured_by_its_own_size() -> None:
    n = 1000
    market = Market.of_arrays(np.ones((n, 1)), [float(n)])
    shares = np.ones((n, 1))
    shares[0] -= 1e-4
    verdict = ParetoEfficiency().check(market, shares)
    assert verdict.answer is Answer.FAILS
    assert verdict.margin == pytest.approx(-1e-4)


def test_adjacent_types_in_an_order_of_ones_own() -> None:
    market = Market.of([[3, 1, 2], [3, 1, 2]], capacity=[1, 1, 1], types=["V100", "K80", "P100"])
    shares = np.array([[Fraction(1), Fraction(0), Fraction(1)], [Fraction(0), Fraction(1), Fraction(0)]])
    assert AdjacentTypes().check(market, shares).answer is Answer.FAILS
    assert AdjacentTypes(order=["K80", "P100", "V100"]).check(market, shares).answer is Answer.HOLDS
    with pytest.raises(BadInput, match="Name each of"):
        AdjacentTypes(order=["K80"]).check(market, shares)


@pytest.mark.parametrize(
    "allocation",
    [
        np.zeros((3, 2)),
        np.array([[np.nan, 0.25], [0, 0.75]]),
        np.array([[1, np.inf], [0, 0.75]]),
        [[1, "x"], [0, 1]],
        np.array([["1", "x"], ["0", "1"]]),
        np.full((2, 2), True),
        [[1, 0]],
    ],
    ids=["shape", "nan", "inf", "text", "array of text", "truth", "rows"],
)
@pytest.mark.parametrize("each", of_allocations(), ids=lambda each: each.name)
def test_what_is_no_allocation_is_refused(each: AllocationProperty, allocation: Any) -> None:
    with pytest.raises(BadInput):
        each.check(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), allocation)


@pytest.mark.parametrize("each", of_allocations(), ids=lambda each: each.name)
def test_less_than_nothing_is_judged_as_it_is(each: AllocationProperty) -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    if each.asked_of(market):
        assert each.check(market, [[-1, 0], [-1, -1]]).exact
        assert not each.check(market.as_(float), [[-1, 0], [-1, -1]]).exact


def test_whole_numbers_in_an_array_are_as_exact_as_in_a_list() -> None:
    verdict = EnvyFreeness().check(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), np.eye(2, dtype=int))
    assert verdict.exact


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1, "1e-6"])
def test_a_tolerance_that_is_none_is_refused(tolerance: Any) -> None:
    with pytest.raises(BadInput, match="tolerance"):
        EnvyFreeness().check(Market.of([[1, 2]], capacity=[1, 1]), [[1, 1]], tolerance=tolerance)


def test_nested_lists_are_allocations_too() -> None:
    verdict = EnvyFreeness().check(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), [[1, "1/4"], [0, 0.75]])
    assert verdict.exact
    assert verdict.margin == 0


@pytest.mark.parametrize(
    ("policy", "market"),
    [
        (MaxEfficiency(), Market.of([[1, 1], [1, 2]], capacity=[5, 3])),
        (WaterFilling(), Market.of([[1, 2], [2, 2]], capacity=[1, 2])),
        (MaxEfficiency(), Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])),
    ],
    ids=lambda it: getattr(it, "name", ""),
)
def test_every_misreport_that_is_said_to_pay_does_under_allocate(policy: Any, market: Market) -> None:
    """Where optima tie, a solver's warm start once chose among them, and the gain did not replay."""
    verdict = StrategyProofness().search(policy, market, effort=Effort(evaluations=200))
    for kind in verdict.by_misreport.values():
        if kind.answer is Answer.FAILS:
            found = kind.witness
            backend = Exact() if kind.exact else None
            honest = allocate(policy, market, backend)
            misreported = allocate(policy, market.misreport(found.user, found.report), backend)
            i = market.index(found.user)
            true = market if kind.exact else market.as_(float)
            gain = true.utility(misreported.shares)[i] - true.utility(honest.shares)[i]
            assert float(gain) == pytest.approx(float(found.gain))


# -- strategy-proofness ------------------------------------------------------------------------------------------
def test_normalised_search_keeps_the_slowest_type() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    verdict = StrategyProofness(normalised=True).search(CooperativeOEF(), market)
    assert verdict.answer is Answer.FAILS
    assert verdict.witness.report[0] == 1
    assert "slowest type's speedup kept" in verdict.effort


def test_noncooperative_oef_rewards_smaller_but_not_larger_reports() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    verdict = StrategyProofness().search(NonCooperativeOEF(), market, effort=Effort(evaluations=600))
    assert verdict.by_misreport["larger"].answer is Answer.NOT_REFUTED
    assert verdict.by_misreport["smaller"].answer is Answer.FAILS
    assert verdict.by_misreport["any"].answer is Answer.FAILS


def test_lies_under_maximum_efficiency_pay_in_exact_numbers() -> None:
    market = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])
    verdict = StrategyProofness().search(MaxEfficiency(), market)
    assert verdict.exact
    assert isinstance(verdict.witness.gain, Fraction)


def test_effort_must_be_some() -> None:
    with pytest.raises(BadInput):
        Effort(evaluations=0)
    with pytest.raises(BadInput):
        Effort(seconds=0)


class NoBundle(EqualSplit):
    """A rule whose shortcut forgot to return."""

    def many_bundles(self, problem: Any, before: Any) -> None:
        return None

    def bundle(self, user: int, problem: Market, before: Any, solve: Any) -> Any:
        return None


def test_what_a_shortcut_must_return_is_said() -> None:
    with pytest.raises(WrongReturn, match="bundle returned None; it must return an array"):
        StrategyProofness().search(NoBundle(), Market.of([[1, 2], [1, 5]], capacity=[1, 1]))
