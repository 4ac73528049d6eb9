"""What makes the search for misreports quick: many at once, kinds side by side, and few digits of long fractions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from test_misreports import misreports, random_programs, slacks

from fairopt.backends import Highs
from fairopt.backends.batched import points_and_duals, solve_many
from fairopt.backends.solution import Status
from fairopt.datasets import dataset_path
from fairopt.errors import NotSolved
from fairopt.methods.efficient_faces import best_efficient, giving_out_all, improving_circle
from fairopt.methods.many_efficient import many_efficient
from fairopt.models import CooperativeOEF, EqualSplit, GavelIsolated, MaxMin
from fairopt.policy import Computed
from fairopt.policy.many_programs import reported
from fairopt.problem import Market, read_market
from fairopt.program import Array, Program
from fairopt.program.batched import Programs, formulated
from fairopt.properties import Answer, Effort, ParetoEfficiency
from fairopt.properties.metrics import metrics
from fairopt.properties.misreports.kinds import LARGER, SMALLER
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import MisreportSearch
from fairopt.testing.samples import sample_markets

#: Next to nothing, with 11,000 binary digits.
LITTLE = Fraction(1, 3**7000)
TWO = Market.of([[1, 2], [1, 5]], [1, 1])
#: Where cooperative OEF is not efficient, at the truth or at many reports.
GAVEL = read_market(dataset_path("gavel.toml"))
THREE = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], [1, 1, 1])


@pytest.mark.parametrize("exact", [GAVEL, THREE], ids=["gavel", "three"])
def test_searches_that_go_on_side_by_side_find_what_each_finds_alone(exact: Market) -> None:
    market, searched, compared = exact.as_(float), 0, 0
    users, reports = misreports(market, 40, 5)
    speedups = reported(market, users, reports)

    def written(speedup: Array) -> Program:
        return giving_out_all(CooperativeOEF().formulate(replace(market, speedup=speedup), None), speedup)

    like = written(market.speedup)
    basis = Highs().solve(like).basis
    assert basis is not None

    def again(programs: Programs, of: Array, upper: Array) -> Array:
        more = {name: getattr(programs, name)[of] for name in ("cost", "lower", "value", "row_lower", "row_upper")}
        return points_and_duals(replace(programs, **more, cases=of, upper=upper), like, basis)[0]

    for programs in formulated(written, speedups):
        if programs.template.shape != like.shape:
            continue
        points, block = solve_many(programs, like, basis), programs.template.variable_block("share")
        found = many_efficient(programs, speedups[programs.cases], points.copy(), partial(again, programs))
        for place in np.flatnonzero(~np.isnan(points[:, 0])).tolist():
            case, program = programs.cases[place], programs.program(place)
            shares = found[place, block.span].reshape(block.shape)
            with suppress(NotSolved):
                alone = best_efficient(program, speedups[case], lambda: np.zeros(exact.shape)).value
                assert program.cost[block.span] @ shares.ravel() == pytest.approx(alone, rel=1e-6), (place, users[case])
                assert improving_circle(speedups[case], shares) is None
                searched += bool((points[place] != found[place]).any())
                compared += 1
    assert compared > 20
    assert searched > 4


def test_programs_without_a_point_are_told_from_those_that_were_missed() -> None:
    counts = dict.fromkeys(("none", "missed", "optimal"), 0)
    for seed in range(30):
        programs: Programs = random_programs(seed)
        points = points_and_duals(programs, programs.template, slacks(programs.template))[0]
        for place in range(0, 40, 4):
            status = Highs().solve(programs.program(place)).status
            if np.isinf(points[place]).any():
                assert status is Status.INFEASIBLE, (seed, place)
                counts["none"] += 1
            else:
                counts["missed" if status is Status.INFEASIBLE else "optimal"] += 1
    assert counts["none"] > 20
    assert counts["missed"] <= counts["none"] / 10, counts


def test_two_kinds_side_by_side_are_what_each_is_by_itself() -> None:
    for market in sample_markets(3, seed=36, users=(3, 5)):
        asked = Reports(MaxMin(), market)
        together, apart = (MisreportSearch(asked, Effort(seed=2), fixed=None) for _ in range(2))
        found = together.side_by_side({LARGER: 90, SMALLER: 80}, structured=True)
        alone = {kind: apart.best(kind, count, structured=True) for kind, count in ((LARGER, 90), (SMALLER, 80))}
        for kind, each in alone.items():
            assert [(one.user, one.report.tolist()) for one in found[kind]] == [
                (one.user, one.report.tolist()) for one in each
            ]
        assert together.tried == apart.tried


def test_a_coefficient_of_1_in_some_cases_does_not_split_them() -> None:
    market = Market.of([[1, 2], [1, 3], [1, 4]], [1, 1]).as_(float)
    speedups = np.repeat(market.speedup[None], 3, axis=0)
    speedups[1, 0, 0], speedups[2, 1, 0] = 1.5, 0.5

    def written(speedup: Array) -> Program:
        return MaxMin().formulate(replace(market, speedup=speedup), None)

    (programs,) = formulated(written, speedups)
    for place, speedup in enumerate(speedups):
        assert programs.program(place).rows.value.tolist() == pytest.approx(written(speedup).rows.value.tolist())


@pytest.mark.parametrize("policy", [EqualSplit(), GavelIsolated()], ids=lambda policy: policy.name)
def test_who_does_not_look_at_reports_gives_what_it_gave(policy: Computed) -> None:
    for number, market in enumerate(sample_markets(5, seed=37, demands=True)):
        asked = Reports(policy, market)
        users, reports = misreports(market, 10, number)
        bundles = policy.many_bundles(asked.market, asked.truth)
        assert bundles is not None
        for user, report, bundle in zip(users.tolist(), reports, bundles(users, reports), strict=True):
            assert bundle == pytest.approx(asked.misreported(user, report).shares[user].astype(float))


# -- long fractions ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shares", "answer"),
    [
        ([[1, Fraction(1, 4) + LITTLE], [0, Fraction(3, 4) - LITTLE]], Answer.HOLDS),
        ([[1 - LITTLE, Fraction(1, 4)], [0, Fraction(3, 4)]], Answer.FAILS),
        ([[Fraction(1, 2) + LITTLE, Fraction(1, 2)], [Fraction(1, 2) - LITTLE, Fraction(1, 2)]], Answer.FAILS),
    ],
)
def test_efficiency_of_long_fractions_is_decided_exactly(shares: list[list[Fraction]], answer: Answer) -> None:
    verdict = ParetoEfficiency().check(TWO, shares)
    assert verdict.answer is answer
    assert verdict.exact
    if verdict.witness is not None:
        assert verdict.witness.refutes(TWO, np.array(shares, dtype=object))


def test_metrics_of_long_fractions_are_floats() -> None:
    found = metrics(TWO, [[1, Fraction(1, 4) + LITTLE], [0, Fraction(3, 4) - LITTLE]])
    assert isinstance(found.total_efficiency, float)
    assert found.total_efficiency == pytest.approx(5.25)
    assert isinstance(metrics(TWO, [[1, Fraction(1, 4)], [0, Fraction(3, 4)]]).total_efficiency, Fraction)
