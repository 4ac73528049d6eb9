"""Who solves: one chooser for every policy, and nothing that is named is ignored or replaced."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fairopt import allocate, discovery
from fairopt.backends import Capability, Highs, Options
from fairopt.backends.exact import Exact
from fairopt.benchmarks.float_samples import odd_market
from fairopt.compare import compare
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.models import CooperativeOEF, EqualSplit, MaxMin, NonCooperativeOEF, WaterFilling
from fairopt.policy import (
    Formulated,
    Optima,
    Trait,
    chosen,
    decide,
    decide_each,
    follow,
    uniqueness,
)
from fairopt.policy.optima import UNKNOWN
from fairopt.problem import Market
from fairopt.program import Formulation
from fairopt.properties import Answer, Effort
from fairopt.testing.policy_suite import installed

MARKET = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
POLICIES = discovery.policies()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_back_end_is_refused_where_there_is_no_program(policy):
    if policy.has_program:
        assert chosen(policy, Highs()).name == "highs"
        return
    with pytest.raises(NotCapable, match="has no program for highs"):
        chosen(policy, Highs())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_somebody_can_solve_every_policy(policy):
    found = chosen(policy)
    assert found in policy.methods or policy.has_program


def test_a_method_is_chosen_by_name_and_by_object():
    method = discovery.solver(MaxMin(), "prices")
    assert method == MaxMin.methods[0]
    assert allocate(MaxMin(), MARKET, method).method == method
    assert allocate(MaxMin(), MARKET, Highs()).method is None
    with pytest.raises(NotCapable, match="max-efficiency has no method"):
        decide(discovery.policy("max-efficiency"), MARKET, method)


def test_a_name_that_is_neither_method_nor_back_end_is_refused_with_the_nearest():
    with pytest.raises(BadInput, match="Did you mean prices"):
        discovery.solver(MaxMin(), "pricess")


def test_what_a_method_does_not_support_is_left_to_a_back_end_or_refused():
    assert allocate(MaxMin(), MARKET, seed=1).backend == "highs"
    with pytest.raises(NotCapable, match="no use for option seed"):
        allocate(MaxMin(), MARKET, MaxMin.methods[0], seed=1)
    assert allocate(MaxMin(), MARKET, time_limit=10).method == MaxMin.methods[0]
    with pytest.raises(NotCapable, match="no use for option seed"):
        allocate(EqualSplit(), MARKET, seed=1)


@pytest.mark.parametrize(
    "policy", [MaxMin(), NonCooperativeOEF(), CooperativeOEF(), WaterFilling()], ids=lambda policy: policy.name
)
def test_exact_decisions_are_not_made_by_methods_in_floats(policy):
    decision = decide(policy, MARKET, exact=True)
    assert decision.exact
    assert decision.backend == "exact"
    with pytest.raises(NotCapable, match="exact=True asks for rational numbers, and highs has floats"):
        decide(policy, MARKET, Highs(), exact=True)


def test_the_name_of_a_back_end_is_no_back_end():
    with pytest.raises(BadInput, match="got the name 'highs'"):
        decide(MaxMin(), MARKET, "highs")  # type: ignore[arg-type]


def test_options_reach_the_back_end_that_was_chosen():
    with pytest.raises(NotCapable, match="no option seed"):
        decide(MaxMin(), MARKET, Exact(), options=Options(seed=3))


def test_following_any_policy_gives_what_allocating_gives():
    for policy in installed():
        again = follow(policy)
        for market in (MARKET, MARKET.misreport("u1", [1, 3])):
            assert float(again(market).objective) == pytest.approx(float(allocate(policy, market).objective), rel=1e-7)


def test_one_market_after_another_is_decided_exactly_where_asked():
    assert follow(MaxMin(), exact=True)(MARKET).exact
    assert [decision.exact for decision in decide_each(MaxMin(), [MARKET, MARKET], exact=True)] == [True, True]


def test_a_decision_stands_where_its_uniqueness_is_not_known(monkeypatch):
    def empty(self, *, seed=0):
        raise NotSolved("highs: no point satisfies all constraints")

    monkeypatch.setattr(Optima, "unique", empty)
    assert uniqueness(MaxMin(), allocate(MaxMin(), MARKET)) == UNKNOWN
    (row,) = compare(MARKET, [MaxMin()], [], exact=False)
    assert row.error is None
    assert row.outcome.exact is False


# -- numbers that are far apart ---------------------------------------------------------------------------------------
#: More GPUs of one type than floats can hold beside those of the other, and users who differ in the other only.
FAR_APART = Market.of([[1, 2], [1, 3]], capacity=["1e15", "1e-9"])


@pytest.mark.parametrize("name", ["max-min", "water-filling", "oef-noncooperative"])
def test_what_floats_cannot_hold_is_decided_in_rationals_and_says_so(name: str) -> None:
    policy = discovery.policy(name)
    decision = decide(policy, FAR_APART)
    assert decision.backend == "exact"
    assert decision.exact
    fair = FAR_APART.fair_utility()
    assert min(decision.utilities / fair) >= min(decide(policy, FAR_APART, exact=True).utilities / fair)


INF = math.inf
#: Where floats once decided otherwise: the policy, speedups, capacities, weights and demands.
HARD = [
    ("oef-cooperative", [[1.38e-29, 0, 0], [1.52e-29, 1.2e-30, 2.3e-29], [2.76e-29, 0, 0]], [3, 6, 1],
     [94150135.52719058, 2.9027164166411747e-09, 0.4828865873506841], [1 / 6, INF, 5 / 6]),
    ("oef-cooperative", [[19.352558393197185, 20.710773015025637], [4.838144039171326, 5.177698006300765],
     [19.352558393196936, 20.710773015025808], [7.2765001962633304, 0]], [0.026057800825134245, 0.010726965526979406],
     [1, 1, 1, 1], [0.009196191588028414, 0.004598095794014207, 0.045980957940142064, 0.01379428738204262]),
    ("oef-cooperative-robust", [[4.321919649657446, 2.394802981428073, 3.9895907283347807]] * 2
     + [[4.321919649657447, 2.3948029814280734, 3.9895907283347816]], [4.03, 1.1, 19.35],
     [53601200608.90709, 8.685751586551373e-11, 64089788475.765594], [8.16, 12.24, 8.16]),
    ("oef-cooperative-robust", [[4.291066953392233, 0, 4.7930089050793665]] * 2
     + [[4.291066953392234, 0, 4.793008905079367]], [7, 0, 7], [2, 2, 3], [INF, 7, 14 / 3]),
    ("max-min-robust", [[1, 1, 1]] * 4, [5, 1, 0], [1] * 4, [4.7351792198372535e-09, 2e7, 7e-10, 1e5]),
    ("max-min-robust", [[1.8143090294637934e-12, 5346011894.048293], [0.03812016108683529, 71226.22472832545],
     [293153904.24478996, 98636258.98284963]], [4, 0], [2, 4, 4], [11 / 12, 55 / 3, 5.5]),
    ("hierarchical-water-filling", [[1e-3, 1e-3, 1e6], [1e-3, 100, 10]], [22.97, 0, 0], [1, 3],
     [24.42, 122.1]),
    ("oef-cooperative", [[1.28e-9, 3.24e-9], [1.28e-8, 3.24e-8], [4.46e-27, 2.88e-27], [1.7e-25, 1.27e-25]],
     [1.1, 1.86], [1] * 4, [0.74] * 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "speedup", "capacity", "weight", "demand"), HARD)
@pytest.mark.filterwarnings("error")
def test_a_small_market_of_hard_numbers_is_decided_right(name, speedup, capacity, weight, demand) -> None:
    rates, gpus, weights, limits = (np.array(each, dtype=float) for each in (speedup, capacity, weight, demand))
    market, policy = Market.of_arrays(rates, gpus, weight=weights, demand=limits), discovery.policy(name)
    right = float(decide(policy, market, exact=True).objective)
    assert float(decide(policy, market).objective) == pytest.approx(right, rel=1e-7, abs=0)


@pytest.mark.parametrize("seed", [915, 1382, 1654, 2416, 2421, 2631, 20448, 22907])
def test_levels_that_hang_on_a_last_digit_are_those_of_rationals(seed: int) -> None:
    draw = np.random.default_rng(seed)
    orders, near = int(draw.choice([1, 3, 6, 9, 12])), bool(draw.random() < 0.5)
    market = odd_market(seed, users=(2, 6), types=(1, 4), orders=orders, near=near)
    levels, right = (
        each.evidence.level for each in (allocate("water-filling", market), decide(WaterFilling(), market, exact=True))
    )
    assert levels.astype(float) == pytest.approx(right.astype(float), rel=1e-7, abs=0)


def test_ordinary_numbers_stay_in_floats() -> None:
    draw = np.random.default_rng(1)
    for name in ("max-efficiency", "max-min-robust", "hierarchical-water-filling", "water-filling", "oef-cooperative"):
        market = Market.of_arrays(draw.lognormal(size=(6, 3)), np.array([8.0, 4.0, 6.0]))
        assert not decide(discovery.policy(name), market).exact


def test_a_back_end_that_was_named_is_never_replaced() -> None:
    policy = discovery.policy("max-min")
    by_prices = decide(policy, FAR_APART, policy.methods[0])
    assert not by_prices.exact
    assert by_prices.objective == pytest.approx(float(decide(policy, FAR_APART, exact=True).objective), rel=1e-7)
    with pytest.raises(NotSolved, match="highs calls a point optimal that by its duals may be 6 from the optimum"):
        decide(policy, FAR_APART, Highs())  # it answers that nobody can have anything


@pytest.mark.parametrize("exact", [pytest.param(True, marks=pytest.mark.slow), False])
def test_rows_of_numbers_far_apart_are_whole_and_their_witnesses_can_be_read(exact: bool) -> None:
    for row in compare(FAR_APART, None, None, exact=exact, effort=Effort(evaluations=3)):
        assert row.error is None
        for verdict in row.verdicts.values():
            assert verdict.answer is not Answer.UNDECIDED or "by its duals" in str(verdict)
            gets, _, instead = str(verdict.witness or "").rpartition(" instead of ")
            assert not instead or not gets.endswith(f" gets {instead}")


@pytest.mark.parametrize("exact", [True, False])
def test_what_floats_cannot_measure_leaves_no_row_empty(exact: bool) -> None:
    market = Market.of(
        [["1e-12", 1], [1, "1e12"], ["1e-6", 3]],
        capacity=[7, 0],
        weight=[1, 1, "1e9"],
        demand=[None, Fraction(1, 1000), None],
    )
    rows = list(compare(market, ["equal-split", "partial-allocation"], ["pareto_efficiency"], exact=exact))
    assert [row.error for row in rows] == [None, None]
    assert [row.verdicts["pareto_efficiency"].answer for row in rows] == [Answer.HOLDS, Answer.FAILS]
    assert all(row.metrics.price_of_fairness > Fraction(9, 10) for row in rows)


class WholeGpus(Formulated):
    """A policy with integers, which the exact backend does not solve."""

    name = "whole-gpus"
    source = "made up"
    traits = frozenset({Trait.PROGRAM})
    needs = frozenset({Capability.INTEGERS})

    def formulate(self, problem, state):
        p = Formulation(self.name)
        share = p.variable("share", problem.shape, lower=0, integer=True)
        p.maximize((problem.speedup * share).sum())
        p.constrain("capacity", share.sum(axis=0) <= problem.capacity, labels=(problem.types,))
        return p.program()


def test_a_policy_that_answers_in_floats_only_is_compared_in_floats() -> None:
    [row] = compare(MARKET, [WholeGpus()], ["envy_freeness", "sharing_incentive"])
    assert row.error is None
    assert not row.outcome.exact
    assert row.outcome.objective == pytest.approx(6)
    assert row.verdicts["envy_freeness"].answer is Answer.FAILS
    with pytest.raises(NotCapable, match="whole-gpus answers in floats only"):
        allocate(WholeGpus(), MARKET, exact=True)
