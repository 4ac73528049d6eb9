"""Gavel's figures: the page is what the tables say, what is off is named, and the rules that only they need."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.benchmarks.gavel_figures import play
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.problem import Jobs, Market, Trace

OURS, THEIRS = play.table(play.OURS), play.table(play.PUBLISHED)


def test_the_page_is_what_the_tables_say() -> None:
    page = play.PAGE.read_text(encoding="utf-8")
    assert play.into(page, play.block(OURS, THEIRS)) == page


def test_points_are_within_a_tenth_or_their_curve_has_a_cause() -> None:
    off = {point[:2] for point, value in OURS.items() if abs(float(value) / float(THEIRS[point]) - 1) > 0.1}
    assert off == set(play.CAUSES)


def market(speed: list[list[float]], gangs: list[int]) -> JobMarket:
    count = np.ones(len(gangs))
    return JobMarket(tuple(range(len(gangs))), Market.of(speed, [2, 2], demand=gangs), count, count, count)


def test_fifo_takes_the_fastest_type_with_room_until_one_finds_none() -> None:
    jobs = market([[1, 3], [1, 2], [2, 1], [1, 4]], [2, 2, 1, 1])
    assert play.InOrder().rule(jobs).tolist() == [[0, 2], [2, 0], [0, 0], [0, 0]]


def test_equal_parts_are_of_every_type_and_no_more_than_a_gang_uses() -> None:
    jobs = market([[1, 3], [1, 2]], [1, 4])
    assert play.EqualParts().rule(jobs).tolist() == [[Fraction(1, 2)] * 2, [1, 1]]


def test_completion_times_are_those_of_the_wanted_jobs_in_hours() -> None:
    trace = Trace(
        Jobs.of(
            types=play.TYPES,
            arrival=[0, 100, 7200],
            gpus=[1, 1, 1],
            work=[7200, 3600, 10**9],
            throughput=[[1, 1, 2], [1, 1, 1], [1, 1, 1]],
        )
    ).as_(float)
    assert play.taken(play.POLICIES["fifo_perf"], trace, range(2)) == [1, (3600 + 360 - 100) / 3600]
