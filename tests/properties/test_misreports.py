"""The search for misreports: as fast as it is, it says what `allocate` says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.batched import proved, solve_many
from fairopt.backends.batched_tall import solve_nearby
from fairopt.backends.solution import Basis, Position, Status
from fairopt.models import (
    CooperativeOEF,
    HierarchicalWaterFilling,
    MaxEfficiency,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.policy import Formulated, Policy, uniqueness
from fairopt.policy.many_programs import reported
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Array, Block, Formulation, Program, Rows, Sense
from fairopt.program.batched import Programs, _CasesDiffer, _Many, formulated
from fairopt.properties import Answer, Effort, StrategyProofness
from fairopt.properties.misreports.kinds import REPORTS, MisreportKind
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import CandidateReports, MisreportSearch
from fairopt.testing.samples import sample_markets

PROGRAMS: list[Formulated] = [NonCooperativeOEF(), CooperativeOEF(), MaxMin(), MaxEfficiency()]
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
    many = _Many(np.array([1.0, 2.0, 3.0]))
    assert many > 0
    assert not many < 1
    assert (2 / (many + 1) - 1).values.tolist() == [0.0, 2 / 3 - 1, -0.5]
    with pytest.raises(_CasesDiffer) as found:
        bool(many >= 2)
    assert found.value.answer.tolist() == [False, True, True]


@pytest.mark.parametrize("policy", PROGRAMS, ids=lambda policy: policy.name)
def test_a_formulation_for_many_is_that_of_each(policy: Formulated) -> None:
    groups = 0
    for number, market in enumerate(sample_markets(8, seed=31, demands=True)):
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
    assert groups > 8, "no market whose programs differ in structure was drawn"


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
        replies = Reports(policy, market)
        assert replies.screened
        users, reports = misreports(market, 6, number)
        gains = replies.gains(users, reports)
        if not uniqueness(policy, replies.truth).utilities:
            continue
        for user, report, gain in zip(users.tolist(), reports, gains, strict=True):
            misreported = replies.misreported(user, report)
            if uniqueness(policy, misreported).shares:  # the same reported throughput may be another true one
                right = replies.market.utility(misreported.shares)[user] - replies.own[user]
                assert gain == pytest.approx(right, abs=1e-6 * replies.fair[user]), (market.speedup, user, report)
                compared += 1
    assert compared > count


RULES: list[Policy] = [
    SecondPriceTrading(),
    NashWelfare(),
    PartialAllocation(),
    WaterFilling(),
    HierarchicalWaterFilling(),
]


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("count", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_bundles_decided_many_at_once_are_worth_what_those_of_decide_are(
    policy: Policy, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a dozen reports are of many structures where demands bind: groups of one are decided side by side, too
    monkeypatch.setattr("fairopt.models.gavel.many_levels.FEWEST", 1)
    compared = lost = 0
    for number, market in enumerate(sample_markets(count, seed=34, users=(2, 6), demands=True)):
        asked = Reports(policy, market)
        assert asked.screened
        users, reports = misreports(market, 12, number)
        many = policy.many_bundles(asked.market, asked.truth)
        assert many is not None
        for user, report, bundle in zip(users.tolist(), reports, many(users, reports), strict=True):
            lost += int(np.isnan(bundle).any())
            if not np.isnan(bundle).any():
                # by the report itself: who is indifferent may get another bundle
                right = (report * asked.misreported(user, report).shares[user].astype(float)).sum()
                assert (report * bundle).sum() == pytest.approx(right, abs=1e-5 * float(asked.fair[user]))
                compared += 1
    assert lost <= compared / 4


def test_trading_many_at_once_is_trading_to_the_last_bit() -> None:
    market = Market.of([[1, 2, 5], [1, 3, 4], [2, 3, 9], [1, 1, 2]], capacity=[3, 2, 1], demand=[2, 9, 9, 1])
    asked = Reports(SecondPriceTrading(), market)
    users, reports = misreports(market, 40, 5)
    bundles = SecondPriceTrading().many_bundles(asked.market, asked.truth)(users, reports)
    told = ~np.isnan(bundles[:, 0])
    assert told.sum() > 30
    for user, report, bundle in zip(users[told].tolist(), reports[told], bundles[told], strict=True):
        assert (asked.misreported(user, report).shares[user] == bundle).all()


def test_programs_solved_by_their_tight_constraints_reach_the_optimum() -> None:
    policy, solved, lost = CooperativeOEF(), 0, 0
    for number, exact in enumerate(sample_markets(6, seed=35, users=(4, 6), demands=True)):
        market = exact.as_(float)
        users, reports = misreports(exact, 40, number)
        like = policy.formulate(market, None)
        basis = Highs().solve(like).basis
        assert basis is not None

        def written(speedup: Array, market: Market = market) -> Program:
            return policy.formulate(replace(market, speedup=speedup), None)

        for programs in formulated(written, reported(market, users, reports)):
            if not programs.template.same_structure(like):
                continue
            # each from the vertex of the one before it
            parent = np.arange(-1, len(programs.cases) - 1)
            points, vertices = solve_nearby(programs, like, basis, parent, {})
            assert len(vertices) == int((~np.isnan(points[:, 0])).sum())
            lost += len(points) - len(vertices)
            for place in vertices:
                program = programs.program(place)
                best = float(Highs().solve(program).objective or 0)
                assert not program.violations(points[place], 1e-6)
                assert program.value(points[place]) == pytest.approx(best, rel=1e-7)
                solved += 1
    assert solved > 100
    assert lost <= solved / 50


def test_nearly_nothing_is_left_to_be_solved_by_itself() -> None:
    asked = []

    class Counting(Reports):
        def misreported(self, user: int, report: Array) -> Any:
            asked.append(user)
            return super().misreported(user, report)

    total = 0
    for number, market in enumerate(sample_markets(10, seed=33, users=(2, 8), demands=True)):
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
    replies = Reports(policy, THREE)
    users, reports = misreports(THREE, 12, 1)
    gains = replies.gains(users, reports)
    for user, report, gain in zip(users.tolist(), reports, gains, strict=True):
        misreported = allocate(policy, replies.market.misreport(user, report))
        assert gain == pytest.approx(replies.market.utility(misreported.shares)[user] - replies.own[user], abs=1e-6)


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


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
def test_every_report_tried_is_a_lie_of_its_kind(kind: MisreportKind, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Array]] = []
    gains = Reports.gains

    def recorded(self: Reports, users: Array, reports: Array, *rest: Any) -> Array:
        asked.extend(zip(users.tolist(), reports, strict=True))
        return gains(self, users, reports, *rest)

    monkeypatch.setattr(Reports, "gains", recorded)
    market = Market.of([[1, 2, 4], [1, 3, 0], [2, 4, 5]], capacity=[1, 2, 3])
    MisreportSearch(Reports(MaxMin(), market, None), Effort(), fixed=0).best(kind, 400, structured=True)
    assert 300 < len(asked) <= 400
    assert {user for user, _ in asked} == {0, 1, 2}
    for user, report in asked:
        truth = market.as_(float).speedup[user]
        assert kind.allows(truth, report)
        assert (report != truth).any()
        assert report[0] == truth[0]


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
def test_random_reports_can_be_moved_into_each_kind(kind: MisreportKind) -> None:
    moves = CandidateReports(THREE.as_(float), 1, None)
    reports = kind.into(moves.truth, moves.random(np.random.default_rng(0), 50))
    assert kind.allows(moves.truth, reports).all()
    assert kind.allows(moves.truth, reports[0]) == np.True_


@pytest.mark.parametrize("which", ["full", "price"])
def test_what_is_infinite_is_never_proved_optimal(which):
    """An infinite point was within any tolerance of its own size."""
    numbers = {"full": np.array([[1.0, 1.0]]), "price": np.array([[-1.0, 0.0]])}
    bounds = np.zeros((1, 2)), np.array([[1.0, np.inf]])
    assert proved(*bounds, **numbers, value=np.array([-1.0]))
    numbers[which] = np.array([[1.0, np.inf]])
    assert not proved(*bounds, **numbers, value=np.array([-1.0]))
    assert not proved(*bounds, **numbers, value=np.array([np.inf]))


@pytest.mark.parametrize("policy", [MaxMin(), WaterFilling(), HierarchicalWaterFilling()], ids=lambda each: each.name)
@pytest.mark.parametrize("evaluations", counts(4, 20))
def test_where_floats_fail_at_the_truth_misreports_are_decided_in_rationals_too(
    policy: Policy, evaluations: int
) -> None:
    far_apart = Market.of([[1, 2], [1, 3]], capacity=["1e15", "1e-9"], users=["x", "y"])
    verdict = StrategyProofness().search(policy, far_apart, effort=Effort(evaluations=evaluations))
    assert verdict.answer is Answer.FAILS
    assert verdict.witness is not None
    assert verdict.witness.gain > 0
