"""The search for misreports: as fast as it is, it says what `allocate` says; its witnesses are exact, and shrink."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.backends.batch import solve_many
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
from fairopt.models.shares import shares_of
from fairopt.policy import Formulated, Policy, allocate
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Block, Formulation, Program, Rows, Sense
from fairopt.program.many import CasesDiffer, Many, Programs, formulated
from fairopt.properties import Answer, Effort, EnvyFreeness, Misreport, StrategyProofness
from fairopt.properties.misreport_search import Found, Search
from fairopt.properties.misreports import Anything, Larger, Misreports, Moves, Smaller
from fairopt.properties.replies import Replies
from fairopt.properties.shrinking import shrink_market, shrinks
from fairopt.properties.smallest_lie import shrink, shrinking_lies
from fairopt.properties.witnesses import ExactReplies, candidates, simplest
from fairopt.solution import Basis, Position, Status
from fairopt.testing.samples import sample_markets
from fairopt.uniqueness import uniqueness

PROGRAMS: list[Formulated] = [NonCooperativeOEF(), CooperativeOEF(), MaxMin(), MaxEfficiency()]
KINDS: list[Misreports] = [Larger(), Smaller(), Anything()]
THREE = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])


def misreports(market: Market, count: int, seed: int) -> tuple[Array, Array]:
    """Return users and reports: random ones, the truth of another user, and pretending to run everywhere."""
    random = np.random.default_rng(seed)
    truth = market.as_(float).speedup
    users = random.integers(0, len(truth), count)
    reports = truth[users] * np.exp(random.normal(0, 0.7, (count, truth.shape[1])))
    reports[::5] = truth[random.integers(0, len(truth), len(reports[::5]))]
    reports[1::5] = np.where(reports[1::5] == 0, 1.5, reports[1::5])
    return users, reports


# -- many programs in one ----------------------------------------------------------------------------------------
def test_a_comparison_speaks_for_all_cases_or_for_none() -> None:
    many = Many(np.array([1.0, 2.0, 3.0]))
    assert many > 0
    assert not many < 1
    assert (2 / (many + 1) - 1).values.tolist() == [0.0, 2 / 3 - 1, -0.5]
    with pytest.raises(CasesDiffer) as found:
        bool(many >= 2)
    assert found.value.answer.tolist() == [False, True, True]


@pytest.mark.parametrize("policy", PROGRAMS, ids=lambda policy: policy.name)
def test_a_formulation_for_many_is_that_of_each(policy: Formulated) -> None:
    groups = 0
    for number, market in enumerate(sample_markets(12, seed=31, demands=True)):
        users, reports = misreports(market, 15, number)
        speedups = np.repeat(market.as_(float).speedup[None], 15, axis=0)
        speedups[np.arange(15), users] = reports

        def written(speedup: Array, market: Market = market) -> Program:
            return policy.formulate(replace(market.as_(float), speedup=speedup), None)

        seen: list[int] = []
        for programs in formulated(written, speedups):
            groups += 1
            for place, case in enumerate(programs.cases):
                one, other = programs.program(place), written(speedups[case])
                assert one.same_structure(other)
                for mine, theirs in (
                    (one.cost, other.cost),
                    (one.upper, other.upper),
                    (one.rows.value, other.rows.value),
                    (one.rows.upper, other.rows.upper),
                ):
                    assert np.allclose(mine, theirs.astype(float), rtol=1e-12, atol=0)
                seen.append(int(case))
        assert sorted(seen) == list(range(15))
    assert groups > 12, "no market whose programs differ in structure was drawn"


# -- many programs side by side ----------------------------------------------------------------------------------
def random_programs(seed: int, count: int = 40) -> Programs:
    """Return programs with free and boxed variables, ranges, equations, negative costs: also ones without optimum."""
    random = np.random.default_rng(seed)
    m, n = int(random.integers(1, 5)), int(random.integers(1, 6))
    matrix = random.integers(-3, 4, (m, n))
    row, column = np.nonzero(matrix != 0)
    lower = random.choice([-INFINITY, 0.0, -2.0], n)
    upper = np.where(random.random(n) < 0.5, INFINITY, lower + random.integers(0, 4, n))
    upper = np.where(np.isnan(upper) | (upper == -INFINITY), 3.0, upper)
    top = random.integers(0, 6, m).astype(float)
    bottom = np.where(random.random(m) < 0.3, top, np.where(random.random(m) < 0.5, -INFINITY, top - 4))
    value = matrix[row, column].astype(float)
    template = Program(
        name="random",
        sense=random.choice(np.array([Sense.MAXIMIZE, Sense.MINIMIZE])),
        cost=random.integers(-3, 4, n).astype(float),
        offset=0.0,
        lower=lower,
        upper=upper,
        integer=np.zeros(n, dtype=bool),
        rows=Rows(row, column, value, bottom, top),
        variable_blocks=(Block("x", (n,), 0, n),),
        row_blocks=(Block("row", (m,), 0, m),),
        objective=Block("objective", (), 0, 1),
    )

    def many(array: Array, spread: float) -> Array:
        return array * (1 + spread * random.uniform(-1, 1, (count, len(array))))

    return Programs(
        template, np.arange(count), many(template.cost, 0.9), *(np.tile(a, (count, 1)) for a in (lower, upper)),
        many(value, 0.6), *(np.tile(a, (count, 1)) for a in (bottom, top)),
    )  # fmt: skip


def slacks(program: Program) -> Basis:
    rows, variables = program.shape
    held = np.where(np.isfinite(program.lower), Position.LOWER, Position.UPPER)
    held = np.where(np.isfinite(program.lower) | np.isfinite(program.upper), held, Position.ZERO)
    assert held.shape == (variables,)
    return Basis(held.astype(np.int8), np.full(rows, Position.BASIC, dtype=np.int8))


def test_side_by_side_or_one_by_one_the_optima_are_the_same() -> None:
    counts = {"optimal": 0, "missed": 0, "none": 0}
    for seed in range(30):
        programs = random_programs(seed)
        points = solve_many(programs, programs.template, slacks(programs.template))
        for place in range(0, 40, 4):
            program = programs.program(place)
            answer = Highs().solve(program)
            if answer.status is not Status.OPTIMAL:
                assert np.isnan(points[place]).all(), (seed, place, answer.status)
                counts["none"] += 1
            elif np.isnan(points[place]).any():
                counts["missed"] += 1
            else:
                assert not program.violations(points[place], 1e-6)
                assert program.value(points[place]) == pytest.approx(float(answer.objective or 0), abs=1e-6, rel=1e-6)
                counts["optimal"] += 1
    assert counts["optimal"] > 80
    assert counts["none"] > 20
    assert counts["missed"] <= counts["optimal"] / 50, counts


@pytest.mark.parametrize("policy", PROGRAMS, ids=lambda policy: policy.name)
@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_gains_are_those_of_allocate_wherever_the_optimum_is_unique(policy: Formulated, count: int) -> None:
    compared = 0
    for number, market in enumerate(sample_markets(count, seed=32, users=(2, 6), demands=True)):
        replies = Replies(policy, market, None)
        assert replies.screened
        users, reports = misreports(market, 6, number)
        gains = replies.gains(users, reports)
        if not uniqueness(policy, replies.truth).utilities:
            continue
        for user, report, gain in zip(users.tolist(), reports, gains, strict=True):
            lying = replies.lying(user, report)
            if uniqueness(policy, lying).shares:  # the same reported throughput may be another true one
                right = replies.market.utility(lying.shares)[user] - replies.own[user]
                assert gain == pytest.approx(right, abs=1e-6 * replies.fair[user]), (market.speedup, user, report)
                compared += 1
    assert compared > count


def test_nearly_nothing_is_left_to_be_solved_by_itself() -> None:
    asked = []

    class Counting(Replies):
        def lying(self, user: int, report: Array) -> Any:
            asked.append(user)
            return super().lying(user, report)

    total = 0
    for number, market in enumerate(sample_markets(20, seed=33, users=(2, 8), demands=True)):
        users, reports = misreports(market, 30, number)
        gains = Counting(NonCooperativeOEF(), market, None).gains(users, reports)
        assert not np.isnan(gains).any()
        total += len(gains)
    assert len(asked) < total / 100


class NeedsFloats(NonCooperativeOEF):
    """Writes its program with plain floats only."""

    def formulate(self, problem: Market, state: Any) -> Program:
        return super().formulate(replace(problem, speedup=np.array(problem.speedup, dtype=float)), state)


class Rounded(NonCooperativeOEF):
    """Says one thing in plain floats and another in other numbers."""

    def formulate(self, problem: Market, state: Any) -> Program:
        if problem.speedup.dtype == object:
            problem = replace(problem, speedup=problem.speedup * 2 + 1)
        return super().formulate(problem, state)


class OtherRows(NonCooperativeOEF):
    """Has a row more for each speedup above 2."""

    def formulate(self, problem: Market, state: Any) -> Program:
        p = Formulation(self.name)
        share = shares_of(p, problem)
        p.maximize((problem.speedup * share).sum())
        p.constrain("half", (share <= problem.capacity / 2).where(problem.speedup > 2))
        return p.program()


@pytest.mark.parametrize("policy", [NeedsFloats(), Rounded(), OtherRows()], ids=lambda policy: type(policy).__name__)
def test_a_formulation_that_cannot_be_written_for_many_is_written_one_by_one(policy: Formulated) -> None:
    replies = Replies(policy, THREE, None)
    users, reports = misreports(THREE, 12, 1)
    gains = replies.gains(users, reports)
    for user, report, gain in zip(users.tolist(), reports, gains, strict=True):
        lying = allocate(policy, replies.market.misreport(user, report))
        assert gain == pytest.approx(replies.market.utility(lying.shares)[user] - replies.own[user], abs=1e-6)


# -- the search --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("evaluations", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("policy", [NonCooperativeOEF(), SecondPriceTrading()], ids=lambda policy: policy.name)
def test_effort_is_kept_to_the_last_evaluation(policy: Policy, evaluations: int) -> None:
    verdict = StrategyProofness().search(policy, THREE, effort=Effort(evaluations=evaluations))
    assert verdict.effort.startswith(f"{evaluations} misreports in all")


def test_the_same_effort_is_the_same_search() -> None:
    first, second = (
        StrategyProofness().search(NonCooperativeOEF(), THREE, effort=Effort(evaluations=200, seed=3)).to_json()
        for _ in range(2)
    )
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_report_tried_is_a_lie_of_its_kind(kind: Misreports, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Array]] = []
    gains = Replies.gains

    def recorded(self: Replies, users: Array, reports: Array, *rest: Any) -> Array:
        asked.extend(zip(users.tolist(), reports, strict=True))
        return gains(self, users, reports, *rest)

    monkeypatch.setattr(Replies, "gains", recorded)
    market = Market.of([[1, 2, 4], [1, 3, 0], [2, 4, 5]], capacity=[1, 2, 3])
    Search(Replies(MaxMin(), market, None), Effort(), fixed=0).best(kind, 400, structured=True)
    assert 300 < len(asked) <= 400
    assert {user for user, _ in asked} == {0, 1, 2}
    for user, report in asked:
        truth = market.as_(float).speedup[user]
        assert kind.allows(truth, report)
        assert (report != truth).any()
        assert report[0] == truth[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_random_reports_can_be_moved_into_each_kind(kind: Misreports) -> None:
    moves = Moves(THREE.as_(float), 1, None)
    reports = kind.into(moves.truth, moves.random(np.random.default_rng(0), 50))
    assert kind.allows(moves.truth, reports).all()
    assert kind.allows(moves.truth, reports[0]) == np.True_


# -- exact answers -----------------------------------------------------------------------------------------------
def test_simplest_fraction_has_the_least_denominator() -> None:
    random = np.random.default_rng(4)
    for _ in range(300):
        low, high = sorted(Fraction(int(a), int(b)) for a, b in random.integers(1, 60, (2, 2)))
        right = next(
            Fraction(p, q)
            for q in range(1, 61)
            for p in range(low.__ceil__() * 0, 61 * q)
            if low <= Fraction(p, q) <= high
        )
        assert simplest(low, high) == right
    with pytest.raises(BadInput):
        simplest(Fraction(2), Fraction(1))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rational_reports_near_a_float_one_stay_of_its_kind(kind: Misreports) -> None:
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
    exact = None if policy.own_algorithm else Exact()
    failing = set()
    for name, each in verdict.by_misreport.items():
        assert each.exact, name
        assert isinstance(each.margin, Fraction | int)
        if each.answer is Answer.FAILS:
            failing.add(name)
            lie = each.witness
            honest, lying = (
                allocate(policy, market, exact),
                allocate(policy, market.misreport(lie.user, lie.report), exact),
            )
            i = market.index(lie.user)
            assert market.utility(lying.shares)[i] - market.utility(honest.shares)[i] == lie.gain == -each.margin > 0
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
    named = StrategyProofness().search(NonCooperativeOEF(), THREE, effort=Effort(evaluations=60), backend=Highs())
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
    for market in sample_markets(12, seed=34, users=(2, 3), types=(1, 2), most=3, demands=True):
        exactly = ExactReplies(MaxEfficiency(), market)
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
    exactly = ExactReplies(MaxEfficiency(), market)
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


def exact_gains(policy: Policy, market: Market, kind: Misreports, most: int) -> Iterator[tuple[Misreport, Fraction]]:
    """Yield every lie in integers up to ``most`` that pays with every optimum, and the total of all numbers."""
    exactly = ExactReplies(policy, market)
    for user in range(len(market.users)):
        for told in itertools.product(range(1, most + 1), repeat=len(market.types)):
            report = np.array([Fraction(value) for value in told], dtype=object)
            if (report == market.speedup[user]).all() or not kind.allows(market.speedup[user], report):
                continue
            found = exactly.misreport(user, report)
            if found is not None and found.gain > 0 and exactly.for_every_optimum(found).every_optimum:
                yield found, total(market, report)


def least_total(policy: Policy, kind: Misreports, shape: tuple[int, int], below: Fraction) -> Fraction:
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
        pytest.param(CooperativeOEF(), Larger(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(CooperativeOEF(), Smaller(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxMin(), Larger(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxMin(), Smaller(), (2, 2, 0, 0, 12), marks=pytest.mark.slow),
        pytest.param(WaterFilling(), Larger(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(WaterFilling(), Smaller(), (2, 2, 0, 0, 12), marks=pytest.mark.slow),
        pytest.param(NashWelfare(), Larger(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(NashWelfare(), Smaller(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        pytest.param(MaxEfficiency(), Larger(), (2, 1, 0, 0, 9), marks=pytest.mark.slow),
        pytest.param(SecondPriceTrading(), Larger(), (2, 2, 0, 0, 13), marks=pytest.mark.slow),
        (NonCooperativeOEF(), Smaller(), (2, 1, 0, 0, 7)),
        (SecondPriceTrading(), Smaller(), (2, 2, 0, 0, 12)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_lie_shrinks_to_the_smallest_that_there_is(policy: Policy, kind: Misreports, size: tuple[int, ...]) -> None:
    market = Market.of(
        [["1.27", "2.81", "3.1"], ["0.64", "1.9", "3.77"], ["1.8", "2.2", "4.15"], [1, 3, "4.5"]], capacity=[7, 5, 2]
    )
    lie = StrategyProofness().search(policy, market).by_misreport[kind.name].witness
    small = shrink(policy, market, lie)
    assert small.size == size
    assert kind.allows(small.witness.truth, small.witness.report)
    assert small.witness.every_optimum
    exact = None if policy.own_algorithm else Exact()
    i = small.market.index(small.witness.user)
    reached = allocate(policy, small.market.misreport(i, small.witness.report), exact).shares
    had = allocate(policy, small.market, exact).shares
    assert small.market.utility(reached)[i] - small.market.utility(had)[i] == small.witness.gain > 0
    smallest = total(small.market, small.witness.report)
    assert smallest == size[-1]
    assert least_total(policy, kind, small.market.shape, smallest) == smallest


def test_shrinking_stops_when_told_and_keeps_the_best() -> None:
    market = Market.of([["1.27", "2.81"], ["0.64", "1.9"], ["1.8", "2.2"]], capacity=[7, 5])
    lie = StrategyProofness().search(SecondPriceTrading(), market, effort=Effort(evaluations=60)).witness
    steps = list(shrinking_lies(SecondPriceTrading(), market, lie, effort=Effort(evaluations=60)))
    sizes = [step.size for step in steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) > 3
    first = shrink(SecondPriceTrading(), market, lie, effort=Effort(evaluations=1))
    assert first.market == market
    again = shrinking_lies(SecondPriceTrading(), market, lie)
    assert [next(again).size for _ in range(4)] == sizes[:4]


def test_what_does_not_pay_is_not_shrunk() -> None:
    truth = THREE.speedup[0]
    told = truth * 2
    nothing = Misreport("u1", truth, told, Fraction(1), Fraction(2), Fraction(1), told, told)
    with pytest.raises(BadInput, match="pays nothing"):
        shrink(EqualSplit(), THREE, nothing)
    with pytest.raises(BadInput, match="does not fail"):
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
