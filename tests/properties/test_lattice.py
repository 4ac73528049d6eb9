"""What verdicts rule each other out: made-up verdicts, each implication broken in turn."""

from __future__ import annotations

import pytest

from fairopt.problem import Market
from fairopt.properties import Answer, EnvyFreeness, Feasibility, SharingIncentive, Verdict, WorkConservation
from fairopt.properties.lattice import IMPLICATIONS, Implication, contradictions

NAMES = sorted({name for each in IMPLICATIONS for name in (*each.premises, each.conclusion)})


def said(**answers: Answer) -> dict[str, Verdict]:
    return {
        name: Verdict(name, answer, 0 if answer is Answer.HOLDS else -1, "", True, "")
        for name, answer in answers.items()
    }


@pytest.mark.parametrize("broken", IMPLICATIONS, ids=lambda each: each.conclusion)
def test_premises_that_hold_and_a_conclusion_that_fails_contradict_each_other(broken: Implication) -> None:
    answers = dict.fromkeys(broken.premises, Answer.HOLDS) | {broken.conclusion: Answer.FAILS}
    assert contradictions(said(**answers), demands=False) == [broken]
    assert contradictions(said(**answers), demands=True) == ([] if broken.without_demands else [broken])
    for name in answers:
        assert contradictions(said(**{key: each for key, each in answers.items() if key != name}), demands=False) == []
        for other in Answer:
            if other is not answers[name]:
                assert contradictions(said(**answers | {name: other}), demands=False) == [], (name, other)


def test_where_all_hold_or_all_fail_nothing_is_contradicted() -> None:
    for answer in Answer:
        assert contradictions(said(**dict.fromkeys(NAMES, answer)), demands=False) == []


def test_with_demands_nobody_may_envy_and_nothing_be_left_and_yet_sharing_not_pay() -> None:
    """A uses five GPUs at most. It has two fast ones, worth 6, and would get 5 out of B's ten; its half is worth 7."""
    market = Market.of([[1, 3], [1, "1/10"]], capacity=[10, 2], demand=[5, None])
    asked = (Feasibility(), EnvyFreeness(), WorkConservation(), SharingIncentive())
    verdicts = {each.name: each.check(market, [[0, 2], [10, 0]]) for each in asked}
    assert [each.margin for each in verdicts.values()] == [0, 1, 0, -1]
    assert contradictions(verdicts, demands=True) == []
    assert [each.conclusion for each in contradictions(verdicts, demands=False)] == ["sharing_incentive"]
