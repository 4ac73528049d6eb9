"""Kinds of misreports by hand: what each allows, who reports what in the market that is told, and what is refused."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import INFINITY
from fairopt.properties.misreports.kinds import (
    ANYTHING,
    COPIES,
    DEMAND,
    EVERY_KIND,
    LARGER,
    REPORTS,
    SMALLER,
    SPLIT,
    TOGETHER,
    WEIGHT,
    MisreportKind,
    every_kind,
    kind_of,
    reached,
)

MARKET = Market.of([[1, 2], [3, 5], [4, 4]], [4, 2], weight=[6, 2, 1])
LIMITED = Market.of([[1, 2], [3, 5], [4, 4]], [4, 2], weight=[6, 2, 1], demand=[8, None, 6])


@pytest.mark.parametrize(
    ("truth", "report", "allowed"),
    [
        ([1, 2], [F(1, 9), 7], True),
        ([0, 2], [0, 1], True),
        ([0, 2], [1, 1], True),  # it says that it runs where it cannot
        ([1, 2], [0, 3], False),  # and not that it cannot run where it can
        ([1, 2], [-1, 3], False),
        ([0, 2], [-1, 3], False),
    ],
)
def test_what_may_be_reported(truth: list[F], report: list[F], allowed: bool) -> None:
    assert ANYTHING.allows(np.array(truth), np.array(report)) == allowed


def test_larger_and_smaller_reports_may_keep_entries() -> None:
    truth = np.array([1, 2])
    assert [LARGER.allows(truth, np.array(report)) for report in ([1, 3], [1, 1])] == [True, False]
    assert [SMALLER.allows(truth, np.array(report)) for report in ([1, 3], [1, 1])] == [False, True]


def test_reports_are_those_of_one_user_in_one_row_about_speedups() -> None:
    assert tuple(kind for kind in EVERY_KIND if kind.is_report) == REPORTS
    assert not MisreportKind("", "", users=2, rows=2).is_report  # as many of the one as of the other


def test_a_misreport_has_a_factor_for_each_row_and_type_or_a_single_one() -> None:
    assert [kind.shape(MARKET) for kind in EVERY_KIND] == [(2,)] * 3 + [(2, 2)] * 3 + [(), ()]
    assert MisreportKind("", "", users=2, rows=3).shape(MARKET) == (6, 2)


def test_who_may_misreport() -> None:
    assert TOGETHER.liars(MARKET) == [(0, 1), (0, 2), (1, 2)]
    assert (DEMAND.liars(MARKET), DEMAND.liars(LIMITED)) == ([], [(0,), (2,)])
    assert [kind for kind in EVERY_KIND if kind not in every_kind(MARKET)] == [DEMAND]
    assert every_kind(LIMITED) == list(EVERY_KIND)


def test_a_weight_or_a_demand_is_multiplied_up_to_the_largest_factor() -> None:
    for kind, column in ((WEIGHT, "weight"), (DEMAND, "demand")):
        told, rows = kind.reported(LIMITED, (2,), np.array(F(3, 2))) or (LIMITED, {})
        assert rows == {2: (2,)}
        true, said = getattr(LIMITED, column).tolist(), getattr(told, column).tolist()
        assert said == [*true[:2], true[2] * F(3, 2)]
        assert told.speedup.tolist() == LIMITED.speedup.tolist()
    assert WEIGHT.reported(MARKET, (0,), np.array(F(2))) is not None
    assert WEIGHT.reported(MARKET, (0,), np.array(F(201, 100))) is None
    assert DEMAND.reported(LIMITED, (0,), np.array(F(100))) is not None


def test_speedups_are_multiplied_and_what_the_kind_does_not_allow_is_none() -> None:
    told, rows = TOGETHER.reported(MARKET, (0, 2), np.array([[F(1), F(2)], [F(1, 2), F(1)]])) or (MARKET, {})
    assert rows == {0: (0,), 2: (2,)}
    assert told.speedup.tolist() == [[1, 4], [3, 5], [2, 4]]
    assert LARGER.reported(MARKET, (1,), np.array([F(1), F(1, 2)])) is None
    assert SMALLER.reported(MARKET, (1,), np.array([F(1), F(2)])) is None


@pytest.mark.parametrize(("kind", "each"), [(SPLIT, 3), (COPIES, 6)], ids=["split", "copies"])
def test_who_enters_twice_comes_last_and_divides_what_it_does_not_copy(kind: MisreportKind, each: int) -> None:
    market = Market.of(LIMITED.speedup, [4, 2], weight=[6, 2, 1], demand=[8, None, 6], users=["a", "a'", "b"])
    told, rows = kind.reported(market, (0,), np.array([[F(1), F(1)], [F(2), F(3)]])) or (market, {})
    assert (told.users, rows) == (("a", "a'", "b", "a''"), {0: (0, 3)})
    assert told.weight.tolist() == [each, 2, 1, each]
    assert told.limit.tolist() == [4, INFINITY, 6, 4]
    assert told.speedup.tolist() == [[1, 2], [3, 5], [4, 4], [2, 6]]
    assert (kind.reported(MARKET, (0,), np.ones((2, 2))) or (MARKET,))[0].demand is None
    shares = np.array([[F(1), F(0)], [F(0), F(0)], [F(0), F(0)], [F(2), F(2)]])
    assert reached(market, rows, shares) == {0: 7}
    assert reached(market, rows, shares * 2) == {0: 12}  # of 6 and 4 GPUs it wants 8, the faster ones first


def test_how_often_a_weight_is_told() -> None:
    assert [kind.weight_told(MARKET) for kind in EVERY_KIND] == [1, 1, 1, None, 1, 2, 2, None]
    assert [kind.weight_told(LIMITED) for kind in EVERY_KIND] == [1, 1, 1] + [None] * 5


def test_a_kind_is_given_by_its_name_or_itself() -> None:
    assert kind_of(DEMAND, MARKET) is DEMAND  # whoever has one knows what it asks for
    assert kind_of("demand", LIMITED) is DEMAND
    with pytest.raises(BadInput, match=r"^kind: nobody states a demand\. Here: larger, smaller"):
        kind_of("demand", MARKET)
    for unknown in ("a kind", "zzz"):  # before and after it in the alphabet
        with pytest.raises(BadInput, match=rf"^lie: got '{unknown}'\. Here: larger"):
            kind_of(unknown, MARKET, "lie")
    with pytest.raises(BadInput, match=r"^kind: got \[\]"):
        kind_of([], MARKET)  # type: ignore[arg-type]


def test_nobody_lies_about_what_is_not_known() -> None:
    with pytest.raises(BadInput, match=r"^user 'u1': its speedups are not known exactly"):
        every_kind(with_error(MARKET, "5%"))
    with pytest.raises(BadInput, match=r"^market: got a list\. Give a Market"):
        every_kind([])  # type: ignore[arg-type]
