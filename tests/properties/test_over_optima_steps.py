"""Properties over all optima, step by step: from slacks, optima and limits that are given."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import pytest

from fairopt import allocate
from fairopt.errors import BadInput, NotCapable
from fairopt.models import EqualSplit, MaxEfficiency
from fairopt.policy import Optima
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.properties import (
    AdjacentTypes,
    Answer,
    EnvyFreeness,
    ParetoEfficiency,
    SharingIncentive,
    over_optima,
)
from fairopt.properties.over_optima import Slack, found, linear
from fairopt.properties.property import AllocationProperty
from fairopt.properties.verdict import Verdict
from fairopt.report import Statement

POLICY = MaxEfficiency()
#: The module, which the function that is called as it is hides.
MODULE = sys.modules["fairopt.properties.over_optima"]
ALIKE = Market.of([[1, 2], [1, 2]], [1, 1])
DECISION = allocate(POLICY, ALIKE, exact=True)


class Always(AllocationProperty):
    """A property with one answer."""

    name = "always"
    source = definition = "made by hand"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def _check(self, market: Market, shares: Any, tolerance: Any) -> Verdict:
        return Verdict(self.name, self.answer, F(0), "", True, "")


FAILS, HOLDS = Always(Answer.FAILS), Always(Answer.HOLDS)


def optima() -> Optima:
    every = Optima.of(POLICY, DECISION)
    assert every is not None
    return every


def answers(verdict: Statement) -> tuple[Answer, Answer]:
    return verdict.some.answer, verdict.every.answer


@pytest.mark.parametrize("most", ["3/2", 5])
def test_an_optimum_that_meets_no_stricter_slack_may_have_the_property(most: Any) -> None:
    """Nobody has that many GPUs; with demands that does not say that no optimum has what the property asks for."""
    exact, loose = Slack({0: F(1)}, F(most)), Slack({0: F(1)}, F(most), used={0: F(1)})
    assert answers(linear(FAILS, optima(), [exact], "1")) == (Answer.FAILS, Answer.FAILS)
    for slacks in ([loose], [exact, loose], [loose, exact]):
        verdict = linear(FAILS, optima(), slacks, "2")
        assert answers(verdict) == (Answer.NOT_REFUTED, Answer.FAILS)
        assert not verdict.some.exact
        assert verdict.having is None
    assert answers(linear(HOLDS, optima(), [Slack({0: F(1)}, F(0), used={0: F(1)})], "1"))[0] is Answer.HOLDS


def test_what_is_compared_with_nobody_holds() -> None:
    alone = Market.of([[1, 2]], [1, 1])
    verdict = over_optima(POLICY, allocate(POLICY, alone, exact=True), EnvyFreeness())
    assert answers(verdict) == (Answer.HOLDS, Answer.HOLDS)
    assert verdict.every.effort == "every optimum: 0 pairs of users"


def test_verdicts_agree_with_what_was_found() -> None:
    every = optima()
    assert answers(found(FAILS, every, None, every.shares, "a", "b")) == (Answer.FAILS, Answer.FAILS)
    assert answers(found(HOLDS, every, every.shares, None, "a", "b")) == (Answer.HOLDS, Answer.HOLDS)
    for wrong, having, lacking in ((FAILS, every.shares, every.shares), (HOLDS, every.shares, every.shares)):
        with pytest.raises(AssertionError):
            found(wrong, every, having, lacking, "a", "b")


@pytest.mark.parametrize(("most", "answer"), [(0, Answer.NOT_REFUTED), (1, Answer.HOLDS)])
def test_so_many_faces_are_looked_at(most: int, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "MOST_FACES", most)
    verdict = over_optima(POLICY, DECISION, AdjacentTypes())
    assert verdict.some.answer is answer


def test_the_only_face_may_be_the_last_that_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    market = Market.of([[2, 1, 2]], [1, 1, 1], demand=[2])
    decision = allocate(POLICY, market, exact=True)
    whole = over_optima(POLICY, decision, AdjacentTypes()).some
    count = int(whole.effort.removeprefix("some optimum: ").removesuffix(" faces"))
    for most, answer in ((count, Answer.FAILS), (count - 1, Answer.NOT_REFUTED)):
        monkeypatch.setattr(MODULE, "MOST_FACES", most)
        assert over_optima(POLICY, decision, AdjacentTypes()).some.answer is answer


def test_a_rule_has_one_allocation_which_has_the_property_or_not() -> None:
    rule = EqualSplit()
    decision = allocate(rule, Market.of([[1, 2], [1, 5]], [1, 1]), exact=True)
    for asked, answer in ((EnvyFreeness(), Answer.HOLDS), (ParetoEfficiency(), Answer.FAILS)):
        verdict = over_optima(rule, decision, asked)
        assert answers(verdict) == (answer, answer)
        assert (verdict.having is decision.shares, verdict.lacking is decision.shares) == (
            answer is Answer.HOLDS,
            answer is Answer.FAILS,
        )
        assert verdict.some.effort == "the only allocation: nothing is optimised"


def test_within_ranges_only_what_needs_no_speedups_is_decided_of_all_optima() -> None:
    decision = allocate(POLICY, with_error(ALIKE, "10%"), exact=True)
    assert Answer.NOT_REFUTED not in answers(over_optima(POLICY, decision, AdjacentTypes()))
    assert Answer.NOT_REFUTED in answers(over_optima(POLICY, decision, SharingIncentive()))


def test_what_cannot_be_asked_of_all_optima_is_named() -> None:
    with pytest.raises(BadInput, match="the name 'envy_freeness'"):
        over_optima(POLICY, DECISION, "envy_freeness")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="property: got "):
        over_optima(POLICY, DECISION, 7)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="policy"):
        over_optima("max-efficiency", DECISION, EnvyFreeness())  # type: ignore[arg-type]
    with pytest.raises(NotCapable, match="irrational"):
        over_optima(POLICY, replace(DECISION, error=F(1, 9)), EnvyFreeness())
    with pytest.raises(NotCapable, match="floats"):
        over_optima(POLICY, allocate(POLICY, ALIKE, exact=False), EnvyFreeness())
