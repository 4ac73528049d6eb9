"""Comparisons: limits of time, what is asked only where it is wanted, and what floats may stand for."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fairopt import discovery
from fairopt.benchmarks.float_samples import large_market, rising
from fairopt.compare import DECISION, asked_of, compare, left_out
from fairopt.datasets import gavel_example
from fairopt.deadline import left, time_limit
from fairopt.errors import OutOfTime
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium
from fairopt.models import CooperativeOEF, MaxEfficiency, PartialAllocation, SecondPriceTrading
from fairopt.policy import Policy
from fairopt.policy.optima import UNIQUENESS, UNKNOWN
from fairopt.problem import Market
from fairopt.properties import Answer, Effort, EnvyFreeness, ParetoEfficiency, StrategyProofness, Verdict
from fairopt.properties.metrics import metrics


def large(users: int) -> Market:
    return large_market(users, 6, rising).as_(Fraction)


def test_a_decision_that_takes_too_long_is_the_rows_error_and_the_others_stand() -> None:
    slow, quick = compare(large(100), [CooperativeOEF(), MaxEfficiency()], ["feasibility"], limit=0.05)
    assert isinstance(slow.error, OutOfTime)
    assert str(slow.error) == "the time limit of 0.05 s is over"
    assert slow.outcome is None
    assert quick.policy.name == "max-efficiency"


def test_a_property_that_takes_too_long_is_undecided_in_its_own_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = ParetoEfficiency._check

    def slowly(*given: Any) -> Any:
        time.sleep(0.6)
        return checked(*given)

    monkeypatch.setattr(ParetoEfficiency, "_check", slowly)
    [row] = compare(large(3), [MaxEfficiency()], ["feasibility", "pareto_efficiency"], limit=0.5)
    assert row.error is None
    assert row.verdicts["feasibility"].answer is Answer.HOLDS
    undecided = row.verdicts["pareto_efficiency"]
    assert undecided.answer is Answer.UNDECIDED
    assert undecided.reason == "the time limit of 0.5 s is over"


def test_a_search_has_its_own_seconds_beside_the_limit() -> None:
    [row] = compare(large(20), [MaxEfficiency()], ["strategy_proofness"], effort=Effort(seconds=30), limit=20)
    assert row.verdicts["strategy_proofness"].answer is Answer.FAILS
    assert set(row.seconds) == {DECISION, "strategy_proofness"}


def test_the_earlier_of_two_limits_counts_and_ends_with_its_block() -> None:
    with time_limit(60), time_limit(3600):
        assert left() is not None
        assert left() <= 60
        assert left(5) == 5
    assert left() is None
    with time_limit(0), pytest.raises(OutOfTime, match="time limit of 0 s"):
        left()


MARKET = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
SHARES = MARKET.equal_split()


@pytest.mark.parametrize(
    "step",
    [
        lambda: metrics(MARKET, SHARES),
        lambda: EnvyFreeness().check(MARKET, SHARES, tolerance=0),
        lambda: exact_equilibrium(MARKET, SHARES.astype(float)),
        lambda: SecondPriceTrading().compute(MARKET, None),
    ],
    ids=["metrics", "envy", "equilibrium", "trades"],
)
def test_long_steps_in_fractions_look_at_the_time(step: Callable[[], object]) -> None:
    step()
    with time_limit(0), pytest.raises(OutOfTime):
        step()


def test_a_search_of_which_nobody_says_how_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    efforts: list[Effort | None] = []
    monkeypatch.setattr(
        StrategyProofness, "judge", lambda *_, effort: efforts.append(effort) or Verdict.undecided("", "")
    )
    list(compare(large(3), [MaxEfficiency()], ["strategy_proofness"]))
    assert efforts == [Effort(seconds=60)]


def test_whoever_watches_is_told_of_each_cell_before_it_is_computed() -> None:
    told: list[tuple[str, str]] = []

    def watch(policy: Policy, cell: str) -> None:
        told.append((policy.name, cell))

    [row] = compare(large(3), [MaxEfficiency()], ["strategy_proofness", "feasibility"], watch=watch)
    assert told == [("max-efficiency", cell) for cell in (DECISION, "feasibility", "strategy_proofness")]
    assert list(row.seconds) == [cell for _, cell in told]


def test_uniqueness_is_asked_only_where_it_is_wanted() -> None:
    market = Market.of([["1", "1"], ["1", "1"]], capacity=[1, 1])
    [plain] = compare(market, [MaxEfficiency()], ["feasibility"])
    [asked] = compare(market, [MaxEfficiency()], ["feasibility"], unique=True)
    assert plain.unique == UNKNOWN
    assert asked.unique == UNIQUENESS.of(utilities=False, shares=False)


def test_floats_are_floats_throughout() -> None:
    for row in compare(large(4), ["equal-split", "max-min"], exact=False, effort=Effort(9)):
        assert row.outcome is not None
        assert row.outcome.shares.dtype == float
        assert not any(verdict.exact for verdict in row.verdicts.values())


def test_one_lie_to_partial_allocation_costs_one_equilibrium(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairopt.models.nash import partial_allocation

    counted = []
    solved = partial_allocation.NashWelfare.decide
    monkeypatch.setattr(partial_allocation.NashWelfare, "decide", lambda *given: counted.append(1) or solved(*given))
    market, effort = large(10).as_(float), Effort(60)
    [_] = compare(market, [PartialAllocation()], ["strategy_proofness"], effort=effort)
    truth_and_witnesses = 4 * 11
    assert len(counted) <= effort.evaluations + truth_and_witnesses


def test_what_may_take_minutes_is_compared_only_where_it_is_named_and_said_to_be_left_out() -> None:
    small, large = (
        Market.of([[Fraction(i + j * j + 1) for j in range(k)] for i in range(k)], [1] * k) for k in (10, 11)
    )
    assert asked_of("oef-efficient", small)
    assert not asked_of("oef-efficient", large)
    compared = compare(large, properties=[])
    assert dict(compared.left_out) == left_out(["max-min", "oef-efficient"], large)
    assert "may take minutes on more than 100 speedups" in compared.left_out["oef-efficient"]
    assert repr(compared).endswith("computed: nothing yet; print it for the answer; left out: oef-efficient>")
    named = compare(large, ["oef-efficient"], [])
    assert (dict(named.left_out), "left out" in repr(named)) == ({}, False)
    assert left_out(discovery.policies(Market), small) == {}


def test_who_does_not_support_a_demand_is_left_out_by_name() -> None:
    asked = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=[1, None])
    assert list(left_out(discovery.policies(Market), asked)) == ["oef-efficient"]
    assert "does not support demands" in compare(asked, properties=[]).left_out["oef-efficient"]


def test_equal_shares_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five policies that give the same, four are not asked again; a lie is a matter of the policy."""
    asked, checked = [], ParetoEfficiency._check
    monkeypatch.setattr(ParetoEfficiency, "_check", lambda *given: asked.append(given) or checked(*given))
    policies = ["equal-split", "max-min", "gavel-isolated", "gavel-proportional"]
    rows = compare(gavel_example(), policies, ["pareto_efficiency", "strategy_proofness"]).rows
    one, other, *same = [row.verdicts["pareto_efficiency"] for row in rows]
    assert len(asked) == 2
    assert {each.margin for each in same} == {one.margin} != {other.margin}
    assert rows[0].verdicts["strategy_proofness"].effort != rows[1].verdicts["strategy_proofness"].effort
