"""Speedups within bounds, step by step, from rows that are given: what each user has more than it compares with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from fairopt.errors import NotCapable
from fairopt.problem import Market
from fairopt.program import INFINITY
from fairopt.properties import Answer, SharingIncentive, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups, changes_at, holds_at, lowest


def array(*values: Any) -> Any:
    return np.array([each if each == INFINITY else F(each) for each in values], dtype=object)


def table(*rows: tuple[Any, ...]) -> Any:
    return np.array([array(*row) for row in rows], dtype=object)


class Given(LinearInSpeedups):
    """Compares what is given: by user, what it uses and what it would use."""

    name = "sharing_incentive"
    source = definition = "made by hand"

    def __init__(self, *pairs: tuple[int, Any, Any], stated: Answer = Answer.FAILS) -> None:
        self.pairs, self.stated = pairs, stated

    def compared(self, market: Market, shares: Any) -> Iterable[tuple[int, Any, Any]]:
        return self.pairs

    def _check(self, market: Market, shares: Any, tolerance: Any) -> Verdict:
        if self.stated is Answer.UNDECIDED:
            return Verdict.undecided(self.name, "as stated")
        return Verdict(self.name, self.stated, F(-1), "throughput", True, "as stated", "witness")


def rows(*each: tuple[int, tuple[Any, ...]], stated: Answer = Answer.FAILS) -> Given:
    """Return the property that these rows, each a user's, are not below 0."""
    return Given(*((user, array(*row), array(*row) * 0) for user, row in each), stated=stated)


def within(*ends: tuple[tuple[Any, ...], tuple[Any, ...]], stated: tuple[Any, ...] | None = None) -> Market:
    """Return users with speedups between ends, stated at the upper ones."""
    top = [[1 if x is None else x for x in most] for _, most in ends] if stated is None else [stated] * len(ends)
    return Market.of(top, [1] * len(ends[0][0]), least=[low for low, _ in ends], most=[high for _, high in ends])


ONE = within(((1, 1), (1, 4)))
EQUAL = [["1/2", "1/2"]]


@pytest.mark.parametrize(
    ("least", "most", "uses", "would", "never"),
    [
        ((1, 1), (2, 2), (1, 0), (0, 1), False),
        ((1, 1), (2, 2), (0, 0), (1, 0), True),
        ((1,), (2,), (0,), ("1/4",), True),
        ((1,), (2,), ("1/4",), (0,), False),
        ((0,), (2,), (0,), (1,), True),  # any speedup but 0
        ((0,), ("1/2",), (0,), (1,), True),
        ((0, 1), (0, 1), (0, 0), (1, 0), False),
        ((1,), (2,), (1,), (1,), False),
        ((0,), (2,), (1,), (1,), False),
        ((0,), (2,), (1,), (0,), False),
        ((0, 1), (2, 2), (0, 1), (1, "1/2"), False),
        ((1, 1), (1, 1), (0, 1), (1, 0), False),
        ((0, 1), (2, 1), (0, 2), (2, 1), False),
        ((0, 1), (2, 1), (0, 1), (2, 2), True),
        ((1, 1), (1, 2), (0, "1/2"), ("3/2", 0), True),
    ],
)
def test_a_comparison_that_fails_for_all_speedups_alone(
    least: tuple[Any, ...], most: tuple[Any, ...], uses: tuple[Any, ...], would: tuple[Any, ...], never: bool
) -> None:
    market = within((least, most))
    assert Given()._never(market, 0, array(*uses), array(*would)) is never
    assert not Given()._never(market, 0, None, array(*would))
    assert not Given()._never(market, 0, array(*uses), None)


def test_what_is_certified_of_speedups_within_bounds() -> None:
    shares = ONE.shares(EQUAL)
    for asked, answer in (
        (rows((0, (1, 0)), stated=Answer.HOLDS), Answer.HOLDS),
        (rows((0, (-1, 0)), (0, (1, 0))), Answer.FAILS),
        (rows((0, (2, -1))), Answer.DEPENDS),
    ):
        verdict = asked.check(ONE, EQUAL)
        assert verdict.answer is answer
        told = asked.certify(ONE, shares, verdict).to_json()
        assert told["answer"] == answer.value
        assert ("speedups" in told) == (answer is Answer.DEPENDS)
    apart = within(((1, 1), (9, 9)))  # each may be twice the other, but not both
    both = rows((0, (1, -2)), (0, (-2, 1)))
    verdict = both.check(apart, EQUAL)
    assert (verdict.answer, verdict.effort) == (Answer.FAILS, "all speedups within the bounds, as stated")
    with pytest.raises(NotCapable, match="several together have no certificate"):
        both.certify(apart, shares, verdict)
    assert LinearInSpeedups.__abstractmethods__ == {"_check", "compared"}


def test_speedups_at_which_all_rows_hold() -> None:
    found = holds_at(table((1, -1)), array(1, 0), array(1, 0))
    assert found is not None
    assert found.tolist() == [1, 0]
    assert holds_at(table((-1,)), array(0), array(1)) is None
    assert holds_at(table((1, -1)), array(1, 2), array(1, 3)) is None
    asked, stated, least, most = Given(), array(1, 2), array(1, 1), array(1, 2)
    assert asked._found(table((1, 0), (1, -1)), stated, least, most).tolist() == [1, 1]  # type: ignore[union-attr]
    assert asked._found(table((2, -1)), stated, least, most) is stated
    assert asked._found(table((-1, 0), (1, -1)), stated, least, most) is None
    assert lowest(array(1, -1), array(1, 1), array(2, INFINITY)) == -INFINITY
    slow = holds_at(table((1, -1)), array(0, "1/10"), array("1/2", "1/10"))  # below 1
    assert slow is not None
    assert slow[0] >= F(1, 10)
    second = holds_at(table((0, 1)), array(0, 0), array(0, "1/2"))  # beside a type on which the user cannot run
    assert second is not None
    assert second[0] == 0 < second[1]


@pytest.mark.parametrize(
    ("row", "least", "most", "part", "failing", "endless"),
    [
        ((1, -1), ("1/2", 1), (1, INFINITY), 0, ("1/2", 1), True),  # finite ends come first, and may do
        ((-1, 1), (1, "1/2"), (INFINITY, 1), 0, (1, "1/2"), True),
        ((2, -1), (1, 1), (1, INFINITY), "1/2", (1, 3), True),
        ((2, -1), (0, 1), (1, 1), "1/2", ("1/4", 1), False),  # positive, if not by much
        ((2, -1), ("1/4", 1), (1, 1), "2/3", ("1/4", 1), False),
        ((2, -1, 0), (1, 1, 0), (1, 4, 0), "1/3", (1, 4, 0), False),
        ((2, -1, 0), (1, 1, 1), (1, 4, INFINITY), "1/3", (1, 4, 1), False),
    ],
)
def test_the_way_to_where_a_row_fails(
    row: tuple[Any, ...],
    least: tuple[Any, ...],
    most: tuple[Any, ...],
    part: Any,
    failing: tuple[Any, ...],
    endless: bool,
) -> None:
    holding = array(*(0 if high == 0 else 1 for high in most))
    found = changes_at(0, table(row), holding, array(*least), array(*most))
    assert (found.part, found.failing.tolist(), found.endless) == (F(part), array(*failing).tolist(), endless)
    assert (array(*row) * found.point).sum() == 0
    assert (array(*row) * found.failing).sum() < 0


def test_the_first_row_to_fail_is_where_it_changes() -> None:
    """A row that is never below 0 is no way out."""
    found = changes_at(0, table((2, -1), (0, 0), (3, -1)), array(1, 1), array(1, 1), array(1, 4))
    assert (found.part, found.point.tolist()) == (F(1, 3), [1, 2])


@pytest.mark.parametrize(("tolerance", "answer"), [("1/5", Answer.HOLDS), ("1/6", Answer.DEPENDS), (0, Answer.DEPENDS)])
def test_a_tolerance_is_a_part_of_the_equal_share(tolerance: Any, answer: Answer) -> None:
    """By hand, of two alike: 1/2 - 4/4 + 5 t / 2 >= 0 where the second type is worth 4."""
    both = within(((1, 1), (1, 4)), ((1, 1), (1, 4)))
    asked = rows((0, ("1/2", "-1/4")), (1, (1, 1)))
    verdict = asked.check(both, EQUAL * 2, tolerance=F(tolerance))
    assert (verdict.answer, verdict.margin) == (answer, F(-1, 2))
    assert verdict.exact is (answer is Answer.DEPENDS)
    if answer is Answer.DEPENDS:
        assert asked.check(both, EQUAL * 2).answer is Answer.DEPENDS
    # who is within the tolerance says nothing of who is not, nor does one row of another
    for other in ((1, (1, -1)), (0, (1, -1))):
        two = rows((0, ("1/2", "-1/4")), other)
        assert two.check(both, EQUAL * 2, tolerance=F(tolerance)).answer is Answer.DEPENDS


def test_what_fails_for_all_may_be_within_the_tolerance_for_some() -> None:
    """By hand: 1/2 - v/4 + t (1 + v) / 2 where the second type is worth v, 3 to 4, is 0 for t = 1/8 and 1/5."""
    both = within(((1, 3), (1, 4)), ((1, 3), (1, 4)))
    asked = rows((0, ("1/2", "-1/4")))
    for tolerance, answer, exact in (
        (0, Answer.FAILS, True),
        ("1/9", Answer.FAILS, True),
        ("1/6", Answer.DEPENDS, False),
        ("1/5", Answer.HOLDS, False),
    ):
        verdict = asked.check(both, EQUAL * 2, tolerance=F(tolerance))
        assert (verdict.answer, verdict.exact) == (answer, exact), tolerance


def test_whose_use_depends_on_speedups_is_named() -> None:
    names = ", ".join(f"u{user + 1}" for user in range(5))
    many = within(*[((1, 1), (1, 4))] * 7)
    for count, said in ((1, "u1"), (5, names), (6, names)):
        asked = Given(*((user, None, array(1, 1)) for user in range(count)), (6, array(1, 1), array(0, 0)))
        verdict = asked.check(many, EQUAL * 7)
        assert verdict.reason == f"which GPUs {said} would use depends on the speedups"
    other = Given((0, array(1, 1), None)).check(many, EQUAL * 7)
    assert other.reason == "which GPUs u1 would use depends on the speedups"


def test_what_is_undecided_as_stated_stays_so() -> None:
    verdict = rows((0, (1, 1)), stated=Answer.UNDECIDED).check(ONE, EQUAL)
    assert (verdict.answer, verdict.reason) == (Answer.UNDECIDED, "as stated")
    nobody = Given(stated=Answer.HOLDS).check(ONE, EQUAL)
    assert nobody.effort == "as stated"
    known = replace(ONE, least=None, most=None)
    told = SharingIncentive().certify(known, known.shares(EQUAL), SharingIncentive().check(known, EQUAL))
    assert told.to_json()["answer"] == "FAILS"
