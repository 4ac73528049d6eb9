"""The search through all packings of schedules, step by step: what fits, what is worth most, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from fairopt.errors import NotCapable
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import INFINITY
from fairopt.proofs.claims.astraea.properties import two_tenants
from fairopt.properties import Answer
from fairopt.properties.schedules.pareto import Exhaustive, ScheduleParetoEfficiency

F = Fraction
#: The schedules of a job, each its first and last slot on the first server, with what it is worth.
Choices = dict[tuple[int, int], Any]


def runs(job: int, first: int, last: int) -> JobSchedule:
    return JobSchedule(job, first, last, ((0, 1),), ((0, 1),))


def exhaustive(first: Choices, second: Choices, most: int | None = None) -> Exhaustive:
    """Return the search for two tenants with a job each."""

    def columns(at: Batch, job: int) -> Sequence[JobSchedule]:
        return [runs(job, *slots) for slots in (first, second)[job]]

    def worth(one: JobSchedule) -> Any:
        return F((first, second)[one.job][one.first, one.last])

    return Exhaustive(two_tenants(), columns, worth, most)


def test_jobs_take_the_slots_from_their_first_to_their_last() -> None:
    assert exhaustive({(1, 2): 1}, {(3, 4): 1}).largest() == (runs(0, 1, 2), runs(1, 3, 4))
    assert exhaustive({(1, 2): 1}, {(2, 3): 2}).largest() == (runs(1, 2, 3),)
    assert exhaustive({(2, 3): 1}, {(1, 1): 1}).largest() == (runs(0, 2, 3), runs(1, 1, 1))


def test_nobody_is_left_with_less_even_by_a_half() -> None:
    either = exhaustive({(1, 1): "1/2"}, {(1, 1): 1})
    assert either.largest() == (runs(1, 1, 1),)
    assert either.largest([F(1, 2), F(0)]) == (runs(0, 1, 1),)
    assert either.largest([F(1, 2), F(1)]) == ()


def test_who_may_be_left_out_is_worth_nothing_and_not_less() -> None:
    assert exhaustive({(1, 1): "-1/2"}, {(2, 2): 1}).largest([F(0), F(1)]) == (runs(1, 2, 2),)


def test_of_what_is_worth_the_same_the_earliest_is_taken() -> None:
    assert exhaustive({(2, 2): 1, (1, 1): 1}, {}).largest() == (runs(0, 1, 1),)


def test_the_search_ends_after_so_many_packings() -> None:
    none = exhaustive({}, {})
    none.most = 3  # nothing yet, and after each job
    assert (none.largest(), none.looked) == ((), 3)
    none = exhaustive({}, {})
    none.most = 2
    with pytest.raises(NotCapable, match="not decided after 2 packings"):
        none.largest()
    assert [exhaustive({}, {}, most).most for most in (7, None)] == [7000, INFINITY]


@pytest.mark.parametrize(("count", "answer"), [(400, Answer.FAILS), (401, Answer.UNDECIDED)])
def test_400_schedules_are_looked_at_and_no_more(count: int, answer: Answer) -> None:
    nothing = replace(decide(PostedPricePacking(theta=(16, 16), intervals=1), two_tenants()), schedules=())
    rule = ScheduleParetoEfficiency(columns=lambda at, job: [runs(0, 1, 1)] * count * (job == 0))
    assert rule.check(nothing).answer is answer
