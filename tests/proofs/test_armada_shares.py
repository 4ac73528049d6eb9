"""Armada's own tables of fair shares, row by row, in exact numbers."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from fairopt.models.armada.fair_shares import fair_shares

ONE, MUCH = F(1, 100), F(10)
#: internal/scheduler/scheduling/context/scheduling_test.go, TestCalculateFairShares, 207cc9e0: weights, demands of
#: 100 CPUs; fair shares, those capped by demand, uncapped ones. Without capacity every demand counts as 1.
PUBLISHED = {
    "one queue, demand exceeds capacity": ([1], [MUCH], [1], [1], [1]),
    "one queue, demand less than capacity": ([1], [ONE], [1], [ONE], [1]),
    "two queues, demand exceeds capacity for both": ([1, 1], [MUCH] * 2, *([F(1, 2)] * 2 for _ in range(3))),
    "two queues, demand less than capacity for both": ([1, 1], [ONE] * 2, [F(1, 2)] * 2, [ONE] * 2, [F(99, 100)] * 2),
    "two queues, demand less than capacity for one": (
        [1, 1], [ONE, MUCH], [F(1, 2)] * 2, [ONE, F(99, 100)], [F(1, 2), F(99, 100)],
    ),
    "non equal weights, demand exceeds capacity for both": (
        [1, 3], [MUCH] * 2, [F(1, 4), F(3, 4)], [F(1, 4), F(3, 4)], [F(1, 4), F(3, 4)],
    ),
    "non equal weights, the higher one only": (
        [1, 3], [ONE, MUCH], [F(1, 4), F(3, 4)], [ONE, F(99, 100)], [F(1, 4), F(99, 100)],
    ),
    "non equal weights, the lower one only": (
        [1, 3], [MUCH, ONE], [F(1, 4), F(3, 4)], [F(99, 100), ONE], [F(99, 100), F(3, 4)],
    ),
    "three queues, several iterations": (
        [1, 1, 1], [ONE, F(2, 5), MUCH], [F(1, 3)] * 3, [ONE, F(2, 5), F(59, 100)],
        [F(457, 1200), F("0.495"), F("0.59")],
    ),
    "no demand": ([1, 1, 1], [0, 0, 0], [F(1, 3)] * 3, [0] * 3, [1] * 3),
    "no capacity": ([1, 1, 1], [1, 1, 1], [F(1, 3)] * 3, [F(1, 3)] * 3, [F(1, 3)] * 3),
}  # fmt: skip
#: TestCalculateTheoreticalShare, 207cc9e0: weights and demands of the queues that are there, and the new one's share.
THEORETICAL = {
    "cluster empty": ([], [], 1),
    "one user": ([1], [MUCH], F(1, 2)),
    "two users": ([1, 1], [MUCH, MUCH], F(1, 3)),
    "one user with lower priority": ([F(1, 2)], [MUCH], F(2, 3)),
    "one user with higher priority": ([2], [MUCH], F(1, 3)),
    "one user with a low demand": ([1], [ONE], F(99, 100)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_fair_shares(name: str) -> None:
    weight, demand, *expected = PUBLISHED[name]
    assert [list(each) for each in fair_shares(weight, demand)] == expected


@pytest.mark.parametrize("name", THEORETICAL)
def test_published_theoretical_shares(name: str) -> None:
    weight, demand, expected = THEORETICAL[name]
    assert fair_shares([*weight, 1], [*demand, 10**9])[1][-1] == expected


def test_the_tables_are_counted() -> None:
    assert (len(PUBLISHED), len(THEORETICAL)) == (11, 6)


def test_what_is_left_below_a_hundredth_is_lost() -> None:
    _, capped, _ = fair_shares([1, 1], [F("0.495"), MUCH])
    assert capped == (F("0.495"), F("0.5"))
    assert fair_shares([1, 1], [F("0.495"), MUCH], rest=0)[1] == (F("0.495"), F("0.505"))


def test_ten_rounds_may_leave_a_part_of_the_pool() -> None:
    # each round one queue, which has three quarters of the weight that is left, is given a little more than it demands
    weight = [4**i for i in reversed(range(13))]
    demand = [F(0), *map(F, (".1876", ".1876", ".1524", ".1172", ".0887", ".0667", ".0501"))]
    demand += [*map(F, (".0376", ".0282", ".0213", ".0161")), MUCH]
    short, whole = fair_shares(weight, demand)[1], fair_shares(weight, demand, rounds=100, rest=0)[1]
    assert sum(whole) == 1
    assert sum(short) < F(95, 100)
    assert short[-1] * 20 < whole[-1]
