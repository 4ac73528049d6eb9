"""What a user truly gets at worst over reports in a range: between the bounds are all reports that are tried."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from fairopt.deadline import time_limit
from fairopt.errors import BadInput, NotCapable, OutOfTime
from fairopt.models import CooperativeOEF, EqualSplit, MaxEfficiency, MaxMin, NashWelfare
from fairopt.policy import Policy, decide
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.properties import worst_reports
from fairopt.properties.worst_reports import by_fair_share, worst_share

PAIR = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
ERROR = Fraction(1, 20)


def one_type_known(market: Market, error: Fraction) -> Market:
    """Return the market whose first speedups are known, as they are the unit, and whose others err."""
    ranged = with_error(market, error)
    least, most = (each.copy() for each in ranged.ends)
    least[:, 0] = most[:, 0] = market.speedup[:, 0]
    return replace(market, least=least, most=most)


def test_the_closed_form_is_between_the_bounds() -> None:
    found = worst_share(CooperativeOEF(), one_type_known(PAIR, ERROR), "u1", gap=2 * ERROR)
    assert found.least <= (4 - 1 / (1 - ERROR)) / 3 <= found.most <= found.least + 2 * ERROR
    assert found.how == "what is proved of the policy"
    assert "between 0.8924 and 0.9915" in str(found)


@pytest.mark.parametrize("policy", [CooperativeOEF(), MaxMin(), MaxEfficiency()], ids=lambda each: each.name)
def test_no_reports_that_are_tried_give_less(policy: Policy) -> None:
    for seed in range(2):
        random = np.random.default_rng(seed)
        market = Market.of(random.integers(1, 7, (2, 2)).tolist(), [1, 2], weight=random.integers(1, 3, 2).tolist())
        ranged = with_error(market, "10%")
        found = worst_share(policy, ranged, "u2", cells=3)
        fair = market.fair_utility()[1]
        for corner in list(product(*zip(*(each.ravel() for each in ranged.ends), strict=True)))[::3]:
            told = replace(market, speedup=np.array(corner, dtype=object).reshape(2, 2))
            assert market.utility(decide(policy, told, exact=True).shares)[1] / fair >= found.least
        least, most = ranged.ends
        assert ((least <= found.reports) & (found.reports <= most)).all()
        given = market.utility(decide(policy, replace(market, speedup=found.reports), exact=True).shares)[1] / fair
        assert found.least <= found.most <= given


def test_what_reports_do_not_change_is_exact() -> None:
    """With no range, and where the promised share is all that there is."""
    assert worst_share(MaxMin(), PAIR, "u1").exact
    alone = worst_share(EqualSplit(), with_error(PAIR, "10%"), "u1")
    assert (alone.least, alone.exact) == (1, True)
    assert "at worst, 1 of its equal share" in str(alone)


def test_promised_fair_shares_bound_as_all_corners_and_bundles_do() -> None:
    """Against bundles on a grid at every corner."""
    true, fair, most = (np.array([Fraction(v) for v in row]) for row in ((1, 3), (1, 1), (2, 2)))
    least, largest = true * Fraction(4, 5), true * Fraction(6, 5)
    found = by_fair_share(true, least, largest, fair, most)
    grid = [np.array([Fraction(a, 20), Fraction(b, 20)]) for a in range(41) for b in range(41)]
    corners = [np.array(each, dtype=object) for each in product(*zip(least, largest, strict=True))]
    tried = min((true * x).sum() for x in grid if any((r * x).sum() >= (r * fair).sum() for r in corners))
    assert found <= tried <= found + Fraction(3, 10)


def test_more_types_than_corners_are_bounded_by_the_worst_type() -> None:
    wide = Market.of([list(range(1, 13)), list(range(12, 0, -1))], [1] * 12)
    found = worst_share(NashWelfare(), with_error(wide, "10%"), "u1", cells=1)
    assert found.least == Fraction(9, 11)


def test_what_cannot_be_asked_is_named() -> None:
    for market in (
        Market.of([[1, 2]], [1, 1], demand=[1]),
        Market.of([[1, 2]], [1, 1], least=[[0, 2]], most=[[None, 2]]),
    ):
        with pytest.raises(NotCapable, match="two ends"):
            worst_share(MaxMin(), market, "u1")
    with pytest.raises(BadInput, match="cells"):
        worst_share(MaxMin(), PAIR, "u1", cells=0)
    with pytest.raises(BadInput, match="got the class MaxMin"):
        worst_share(MaxMin, PAIR, "u1")  # type: ignore[arg-type]


def test_so_many_cells_are_looked_at_at_most_and_what_to_do_is_said() -> None:
    ranged = with_error(PAIR, "20%")
    few = worst_share(MaxMin(), ranged, "u1", cells=3)
    assert (few.cells, few.stopped) == (3, f"the limit is 3: {worst_reports.CLOSER}")
    assert f"the range looked at in 3 parts; {few.stopped})" in str(few)
    more = worst_share(MaxMin(), ranged, "u1", cells=6)
    assert (more.cells, more.stopped) == (5, f"the limit is 6: {worst_reports.CLOSER}")
    assert few.least <= more.least <= more.most <= few.most
    whole = worst_share(MaxMin(), ranged, "u1", cells=2)
    assert (whole.cells, whole.stopped) == (1, f"the limit is 2: {worst_reports.CLOSER}")
    assert "the range looked at as a whole; the limit is 2" in str(whole)
    with time_limit(60):
        assert worst_share(CooperativeOEF(), ranged, "u1", gap=1).cells == 1


def test_bounds_that_meet_with_the_last_cell_were_not_stopped() -> None:
    ranged = with_error(PAIR, "20%")
    three = worst_share(MaxMin(), ranged, "u1", cells=3)
    enough = worst_share(MaxMin(), ranged, "u1", gap=three.most - three.least, cells=3)
    assert (enough.cells, enough.stopped) == (3, "")


class Promised(EqualSplit):
    """A rule of which little, or at last nothing, is proved."""

    def least_in_range(self, market: Market, user: int, true: object) -> Fraction | None:
        return Fraction(1, 2) if (market.speedup == PAIR.speedup).all() else self.later

    later: Fraction | None = None


@pytest.mark.parametrize("later", [None, Fraction(0)])
def test_nothing_that_is_proved_of_a_cell_is_nothing(later: Fraction | None) -> None:
    rule, ranged = Promised(), with_error(PAIR, "10%")
    object.__setattr__(rule, "later", later)
    below, how = worst_reports._from_below(rule, ranged, 0)
    assert (below(ranged), how) == (Fraction(1, 2), "what is proved of the policy")
    assert below(replace(ranged, speedup=ranged.speedup * 2)) == 0


def test_of_many_types_those_count_that_may_run() -> None:
    """The least true worth of what is promised is on the type that is overstated most, however slow it is."""
    true = np.array([Fraction(1, 2)] + [Fraction(1)] * 10 + [Fraction(0)], dtype=object)
    most = true * np.array([Fraction(5, 4)] + [Fraction(1)] * 11, dtype=object)
    fair = true * 0 + Fraction(1, 2)
    found = by_fair_share(true, true, most, fair, fair * 2)
    assert found == Fraction(4, 5) * Fraction(21, 2) / 2


def test_the_widest_speedup_is_halved_and_where_there_is_none_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worst_share(MaxMin(), PAIR, "u1", gap=-1).cells == 1
    elsewhere = with_error(Market.of([[2, 1, 0], [1, 3, 1]], [1, 1, 1]), "10%")
    assert worst_share(MaxMin(), elsewhere, "u1", cells=3).cells == 3

    def late() -> None:
        raise OutOfTime("late")

    monkeypatch.setattr(worst_reports, "left", late)
    ended = worst_share(MaxMin(), with_error(PAIR, "20%"), "u1", cells=9)
    assert (ended.stopped, ended.cells) == ("late", 3)


def test_cells_cover_the_whole_range() -> None:
    ranged = with_error(PAIR, "20%")
    search = worst_reports._Search(EqualSplit(), ranged, 0, lambda cell: Fraction(cell.speedup[0, 1]))
    whole = np.prod(ranged.ends[1] - ranged.ends[0])
    for _ in range(5):
        assert search.split()
        assert sum(np.prod(most - least) for _, _, least, most in search._open) == whole
