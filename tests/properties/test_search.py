"""The search for misreports by itself: which are tried, and in which order, against gains that are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fairopt.errors import NotSolved, OutOfTime
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import Effort
from fairopt.properties.misreports.kinds import ANYTHING, LARGER, REPORTS, SMALLER
from fairopt.properties.misreports.search import CandidateReports, Found, MisreportSearch, in_turn

TWO = Market.of([[1, 2], [1, 5]], capacity=[1, 1]).as_(float)
FIVE = Market.of([[1, 2], [1, 3], [2, 3], [2, 5], [3, 7]], capacity=[1, 1]).as_(float)
#: As often as a step of 0.3 is a third before it is at most 1e-4.
STEPS = [0.3 / 3**turn for turn in range(8)]


class Asked:
    """In place of a policy's decisions: gains that are known for each user and report, and what was asked."""

    def __init__(
        self, market: Market, gain: Callable[[int, Array], float], *, chunk: int = 16, true: Any = None
    ) -> None:
        self.market, self.chunk, self.fair = market, chunk, market.fair_utility()
        self.screened, self._gain, self._true = true is not None, gain, true
        self.asked: list[list[tuple[int, Array]]] = []
        self.confirmed: list[int] = []

    def gains(self, users: Array, reports: Array, over: Callable[[], bool], ends: float) -> Array:
        self.asked.append(list(zip(users.tolist(), reports, strict=True)))
        return np.array([self._gain(user, report) for user, report in self.asked[-1]])

    def gain(self, user: int, report: Array) -> float:
        self.confirmed.append(user)
        return float(self._true(user))


def searching(asked: Any, *, fixed: int | None = None, effort: Effort | None = None) -> MisreportSearch:
    return MisreportSearch(asked, effort or Effort(), fixed=fixed)


def listed(reports: Any) -> list[list[float]]:
    return [[round(float(value), 9) for value in each] for each in reports]


# -- kinds -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("report", "kinds"),
    [
        ([1, 2, 0], {"larger", "smaller", "any"}),
        ([1, 3, 0], {"larger", "any"}),
        ([1, 2, 1], {"larger", "any"}),
        ([0.5, 2, 0], {"smaller", "any"}),
        ([0.5, 3, 0], {"any"}),
        ([0, 2, 0], {"smaller"}),
        ([1, 3, -1], set()),
        ([1, -1, 0], {"smaller"}),
    ],
)
def test_kinds_of_reports(report: list[float], kinds: set[str]) -> None:
    truth = np.array([1.0, 2.0, 0.0])
    assert {kind.name for kind in REPORTS if kind.allows(truth, np.array(report))} == kinds
    for kind in REPORTS:
        both = kind.allows(truth, np.array([report, truth]))
        assert both.tolist() == [kind.name in kinds, True]


def test_reports_are_moved_entry_by_entry() -> None:
    truth, report = np.array([1.0, 2.0, 0.0]), np.array([2.0, 1.0, 1.0])
    assert [each.into(truth, report).tolist() for each in REPORTS] == [[2, 2, 1], [1, 1, 0], [2, 1, 1]]
    assert [each.name for each in REPORTS] == ["larger", "smaller", "any"]


# -- what is tried -----------------------------------------------------------------------------------------------
def test_streams_take_turns_as_long_as_any_has_something() -> None:
    assert list(in_turn("abc", [], "xy")) == ["a", "x", "b", "y", "c"]


def test_coordinate_moves_are_these() -> None:
    market = Market.of([[1, 4, 0], [1, 1, 1]], capacity=[1, 1, 1]).as_(float)
    free, fixed = CandidateReports(market, 0, None), CandidateReports(market, 0, 0)
    assert (free.free, fixed.free, free.truth.tolist()) == ([0, 1], [1], [1, 4, 0])
    factors = [1.05, 1 / 1.05, 1.4, 1 / 1.4, 2, 0.5, 5, 0.2]
    runs_there = [[1, 4, 4], [1, 4, 0.1]]  # as fast as where it is fastest, and a tenth of where it is slowest
    of_each = [move for f in factors for move in ([f, 4, 0], [1, 4 * f, 0], [f, 4 * f, 0])]
    assert listed(free.coordinate()) == listed([*runs_there, *of_each])
    assert listed(fixed.coordinate()) == listed([*runs_there, *([1, 4 * f, 0] for f in factors)])
    nowhere_else = CandidateReports(market, 0, 2)
    assert listed(nowhere_else.coordinate()) == listed(of_each)


def test_boundary_moves_are_just_past_the_ratios_of_others() -> None:
    market = Market.of([[2, 3, 0], [1, 4, 1], [0, 1, 2]], capacity=[1, 1, 1]).as_(float)
    # u2 has 4 times the speed on the second type: with 2 on the first that is 8, or with 3 on the second 3/4
    right = [[0.75 * 0.999, 3, 0], [0.75 * 1.001, 3, 0], [2, 8 * 0.999, 0], [2, 8 * 1.001, 0]]
    assert listed(CandidateReports(market, 0, None).boundary()) == listed(right)
    assert listed(CandidateReports(market, 0, 0).boundary()) == listed(right[2:])


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
def test_structured_moves_are_of_the_kind_and_all_of_both_sorts(kind: Any) -> None:
    moves = CandidateReports(FIVE, 1, None)
    turns = [*in_turn(moves.boundary(), moves.coordinate())]
    right = [each for each in turns if kind.allows(moves.truth, each)]
    assert listed(moves.structured(kind)) == listed(right)
    assert listed(turns[:2]) == listed([next(moves.boundary()), next(moves.coordinate())])


def test_random_reports_change_free_entries_most_of_them_by_little() -> None:
    market = Market.of([[1, 4, 0, 2], [1, 1, 1, 1]], capacity=[1, 1, 1, 1]).as_(float)
    moves = CandidateReports(market, 0, 3)
    reports = moves.random(np.random.default_rng(1), 6000)
    assert reports.shape == (6000, 4)
    assert (reports[:, 2:] == [0, 2]).all()
    change = np.log(reports[:, :2] / [1, 4])
    changed = change != 0
    assert changed.any(axis=1).all()
    both, neither = 0.7**2, 0.3**2  # where neither is drawn both change
    assert changed.all(axis=1).mean() == pytest.approx(both + neither, abs=0.02)
    size = np.abs(change[changed])
    assert np.median(change[changed]) == pytest.approx(0, abs=0.02)
    # of a third the logarithm spreads by 0.1, of a third by 0.4, of a third by 1
    assert np.sqrt((size**2).mean()) == pytest.approx(np.sqrt((0.01 + 0.16 + 1) / 3), rel=0.05)
    assert (size < 0.1).mean() == pytest.approx((0.6827 + 0.1974 + 0.0797) / 3, abs=0.03)
    spread = np.sort(size.max(axis=1) if size.ndim > 1 else np.abs(change).max(axis=1))
    assert spread[-1] > 2


def test_neighbours_are_one_step_away_up_and_down() -> None:
    market = Market.of([[1, 4, 0], [1, 1, 1]], capacity=[1, 1, 1]).as_(float)
    near = CandidateReports(market, 0, None).around(np.array([2.0, 3.0, 7.0]), 0.5)
    assert listed(near) == listed([[3, 3, 7], [2 / 1.5, 3, 7], [2, 4.5, 7], [2, 2, 7]])
    assert listed(CandidateReports(market, 0, 1).around(np.array([2.0, 3.0, 7.0]), 0.5)) == listed(near[:2])


# -- the search --------------------------------------------------------------------------------------------------
def test_a_search_begins_with_structured_moves_user_by_user_and_keeps_to_its_budget() -> None:
    asked = Asked(TWO, lambda user, report: 0.0)
    search = searching(asked)
    search.best(ANYTHING, 80, structured=True)
    assert [len(each) for each in asked.asked] == [16, 16, 16, 12, 8, 8, 4]  # three quarters are samples
    assert search.tried == {"any": 80}
    assert search.stopped == set()
    moves = [list(CandidateReports(TWO, user, None).structured(ANYTHING)) for user in (0, 1)]
    samples = [each for chunk in asked.asked[:4] for each in chunk]
    right = [(user, move) for turn in zip(*moves, strict=True) for user, move in enumerate(turn)]
    assert len(right) < 60
    assert [user for user, _ in samples] == [0, 1] * 30
    assert listed(report for _, report in samples[: len(right)]) == listed(move for _, move in right)
    drawn = listed(report for _, report in samples[len(right) :])
    assert len({tuple(each) for each in drawn}) == len(drawn)
    search.best(LARGER, 20, structured=True)
    assert search.tried == {"any": 80, "larger": 20}


@pytest.mark.parametrize("kind", [LARGER, SMALLER])
def test_random_reports_are_lies_of_the_kind(kind: Any) -> None:
    asked = Asked(FIVE, lambda user, report: 0.0, chunk=40)
    searching(asked, fixed=0).best(kind, 160, structured=False)
    assert [len(each) for each in asked.asked[:3]] == [40, 40, 40]
    users = [user for chunk in asked.asked[:3] for user, _ in chunk]
    assert all(users.count(user) >= 15 for user in range(5))
    for chunk in asked.asked:
        for user, report in chunk:
            assert kind.allows(FIVE.speedup[user], report)
            assert report[0] == FIVE.speedup[user, 0]
            assert (report != FIVE.speedup[user]).any()


def test_the_best_four_are_improved_in_smaller_and_smaller_steps_then_the_next() -> None:
    order = [3, 0, 4, 1, 2]  # by gain over equal share's throughput, where equal the first user first
    firsts = {user: next(CandidateReports(FIVE, user, None).structured(ANYTHING)) for user in order}
    gain = {user: (5 - place) * float(FIVE.fair_utility()[user]) for place, user in enumerate(order)}
    asked = Asked(
        FIVE, lambda user, report: gain[user] * (1 if listed([report]) == listed([firsts[user]]) else 0.9), chunk=100
    )
    found = searching(asked).best(ANYTHING, 800, structured=True)
    assert [each.user for each in found] == order
    assert [each.share for each in found] == pytest.approx([5, 4, 3, 2, 1])
    assert [each.gain for each in found] == [gain[each.user] for each in found]
    for each in found:  # nothing gained more than the first
        assert listed([each.report]) == listed([firsts[each.user]])
    climbs = asked.asked[6:]
    assert len(climbs) == 16
    for turn, chunk in enumerate(climbs):
        users = order[:4] if turn < 8 else order[4:]
        near = [CandidateReports(FIVE, user, None) for user in users]
        reports = {each.user: each.report for each in found}
        right = [(each.user, report) for each in near for report in each.around(reports[each.user], STEPS[turn % 8])]
        assert [user for user, _ in chunk] == [user for user, _ in right]
        assert listed(report for _, report in chunk) == listed(report for _, report in right)


def test_who_gains_alike_is_ranked_by_its_place() -> None:
    asked = Asked(FIVE, lambda user, report: float(FIVE.fair_utility()[user]))
    assert [each.user for each in searching(asked).best(SMALLER, 100, structured=True)] == [0, 1, 2, 3, 4]


def test_the_climb_ends_at_the_best_report() -> None:
    target = np.array([[1.7, 0.9], [0.4, 4.2]])

    def gain(user: int, report: Array) -> float:
        return 3 - float((np.log(report / target[user]) ** 2).sum())

    found = searching(Asked(TWO, gain)).best(ANYTHING, 900, structured=True)
    assert sorted(each.user for each in found) == [0, 1]
    for each in found:
        assert each.report == pytest.approx(target[each.user], rel=1e-3)
        assert each.gain == gain(each.user, each.report)


def test_steps_stay_in_the_kind_and_a_step_that_gains_is_repeated() -> None:
    asked = Asked(TWO, lambda user, report: float(report.sum()), chunk=100)
    found = searching(asked).best(SMALLER, 200, structured=True)
    assert all(SMALLER.allows(TWO.speedup[user], report) for chunk in asked.asked for user, report in chunk)
    asked = Asked(TWO, lambda user, report: float(report[1]) if user == 0 else -1.0, chunk=100)
    found = searching(asked, fixed=0).best(ANYTHING, 130, structured=True)
    tops = [max(report[1] for user, report in chunk if user == 0) for chunk in asked.asked[1:]]
    assert len(tops) > 3
    assert all(after == pytest.approx(before * 1.3) for before, after in pairwise(tops))
    assert found[0].report[1] == tops[-1]
    assert found[0].first is None


def test_a_climb_over_what_gains_alike_tells_where_it_began() -> None:
    asked = Asked(TWO, lambda user, report: float(report[1] > 2.5) if user == 0 else -1.0, chunk=100)
    found = searching(asked, fixed=0).best(ANYTHING, 130, structured=True)[0]
    first = next(report for chunk in asked.asked for user, report in chunk if user == 0 and report[1] > 2.5)
    assert found.first is not None
    assert found.first.tolist() == first.tolist()
    assert found.report[1] > 5 * first[1]


def test_where_nobody_gains_all_come_to_a_step_their_last_types_first() -> None:
    asked = Asked(TWO, lambda user, report: 0.0, chunk=100)
    searching(asked).best(ANYTHING, 40, structured=True)
    firsts = {user: next(report for at, report in asked.asked[0] if at == user) for user in (0, 1)}
    near = [CandidateReports(TWO, user, None).around(report, 0.3)[::-1] for user, report in firsts.items()]
    assert [user for user, _ in asked.asked[1]] == [0, 1] * 4
    assert listed(report for _, report in asked.asked[1]) == listed(in_turn(*near))


def test_of_what_gains_alike_the_farther_leads_on() -> None:
    truth = np.array([2.0, 2.0, 0.0])
    near, far = (Found(0, np.array([each, 2.0, 0.0]), 1.0, 1.0) for each in (3.0, 0.5))
    assert far.leads_on_from(near, truth)
    assert not near.leads_on_from(far, truth)
    assert not near.leads_on_from(near, truth)
    assert Found(0, near.report, 2.0, 2.0).leads_on_from(far, truth)


def test_a_start_is_improved_too_and_what_has_no_answer_is_no_find() -> None:
    start = Found(1, np.array([9.0, 9.0]), 50.0, 50.0)
    asked = Asked(TWO, lambda user, report: np.nan if user == 0 else 0.0)
    found = searching(asked).best(ANYTHING, 40, structured=False, start=start)
    assert found == [start]
    assert {user for user, _ in asked.asked[2]} == {1}
    assert listed(report for _, report in asked.asked[2][:1]) == [[11.7, 9]]
    assert searching(Asked(TWO, lambda user, report: np.nan)).best(ANYTHING, 40, structured=True) == []


def test_where_nothing_can_be_misreported_nothing_is_tried() -> None:
    asked = Asked(Market.of([[1], [2]], capacity=[1]).as_(float), lambda user, report: 1.0)
    search = searching(asked, fixed=0)
    assert search.best(ANYTHING, 40, structured=True) == []
    assert (search.tried, asked.asked) == ({"any": 0}, [])


def test_the_same_seed_draws_the_same_reports() -> None:
    drawn = []
    for seed in (1, 1, 2):
        asked = Asked(TWO, lambda user, report: 0.0)
        searching(asked, effort=Effort(seed=seed)).best(ANYTHING, 16, structured=False)
        drawn.append(listed(report for _, report in asked.asked[0]))
    assert drawn[0] == drawn[1] != drawn[2]


def test_each_kind_has_a_third_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    for module in ("property", "misreports.search"):
        monkeypatch.setattr(f"fairopt.properties.{module}.monotonic", lambda: now[0])

    def gain(user: int, report: Array) -> float:
        now[0] += 0.125
        return 1.0

    for seconds, least, most in ((4.0, 11, 11), (40.0, 107, 114), (60.0, 120, 120)):  # samples, then climbs of up to 8
        now[0], asked = 0.0, Asked(TWO, gain, chunk=1)
        search = searching(asked, effort=Effort(seconds=seconds))
        assert len(search.best(LARGER, 120, structured=True)) == 2
        assert least <= search.tried["larger"] <= most
        assert search.stopped == (set() if seconds == 60 else {"larger"})


def test_gains_cut_short_by_the_time_are_of_the_first_users() -> None:
    class Stopped(Asked):
        def gains(self, users: Array, reports: Array, over: Callable[[], bool], ends: float) -> Array:
            assert not over()
            return super().gains(users, reports, over, ends)[:3]

    asked = Stopped(TWO, lambda user, report: 1.0 + 2 * user, chunk=5)
    search = searching(asked)
    found = search.best(ANYTHING, 5, structured=True)
    assert [each.user for each in found] == [1, 0]
    assert [each.share for each in found] == [1, 1 / 1.5]
    assert search.tried["any"] == 5


@pytest.mark.parametrize(("left", "ends"), [(-0.5, True), (0.0, True), (0.5, False)])
def test_time_that_ends_within_a_decision_ends_the_search_or_all_that_is_asked(
    left: float, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Asked):
        def gains(self, users: Array, reports: Array, over: Callable[[], bool], ends: float) -> Array:
            raise OutOfTime("late")

    monkeypatch.setattr("fairopt.properties.misreports.search.remaining", lambda: left)
    search = searching(Late(TWO, lambda user, report: 1.0))
    if ends:
        with pytest.raises(OutOfTime):
            search.best(ANYTHING, 5, structured=True)
    else:
        assert search.best(ANYTHING, 5, structured=True) == []
        assert (search.tried, search.stopped) == ({"any": 0}, {"any"})


# -- decided like the truth --------------------------------------------------------------------------------------
def of(user: int, share: float) -> Found:
    return Found(user, np.array([1.0, 1.0]), share, share)


def test_gains_of_the_policys_own_choice_need_not_be_confirmed() -> None:
    search = searching(Asked(TWO, lambda user, report: 0.0))
    assert search.confirmed([]) is None
    assert search.confirmed([of(1, 2.0), of(0, 1.0)]).user == 1


def test_screened_gains_are_decided_like_the_truth_until_none_can_be_better() -> None:
    fair = FIVE.fair_utility()

    def true(user: int) -> float:
        if user == 4:
            raise NotSolved("no answer")
        return [1.0, 3.0, 3.0, 0.5][user] * float(fair[user])

    found = [of(4, 9.0), of(0, 8.0), of(1, 7.0), of(2, 4.0), of(3, 3.0)]
    asked = Asked(FIVE, lambda user, report: 0.0, true=true)
    best = searching(asked).confirmed(found)
    assert best is not None
    assert (best.user, best.share) == (1, pytest.approx(3))
    assert best.gain == pytest.approx(3 * fair[1])
    assert asked.confirmed == [4, 0, 1, 2]  # the next claims no more than what was confirmed
    assert searching(asked).confirmed([of(4, 9.0)]) is None
