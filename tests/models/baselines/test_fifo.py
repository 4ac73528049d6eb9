"""FIFO and EASY backfilling: who waits for whom, and that nobody delays the first."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from fairopt.models import EasyBackfilling, FirstInFirstOut
from fairopt.models.baselines.easy_backfilling import reservation
from fairopt.models.common.schedulers import Room
from fairopt.policy import Policy, decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.simulation import run

FOUR = Cluster.uniform({"V100": (1, 4)})


def started(policy: Policy, gpus: Sequence[int], work: Sequence[int]) -> str:
    """Return who starts at once on four GPUs, in rounds of 1."""
    jobs = Jobs.of(gpus=gpus, work=work, types=["V100"], names=list("abcde"[: len(gpus)]))
    return "".join(ran.job for ran in next(run(policy, Trace(jobs), FOUR, length=1)).ran)


def test_the_first_that_does_not_fit_blocks_all_others() -> None:
    assert started(FirstInFirstOut(), [3, 4, 1], [10, 10, 1]) == "a"
    assert started(FirstInFirstOut(), [1, 1, 3, 1], [10, 10, 10, 1]) == "ab"


@pytest.mark.parametrize(
    ("gpus", "work", "who"),
    [
        ([3, 4, 1], [10, 10, 10], "ac"),  # done when a is: b starts then anyway
        ([3, 4, 1], [10, 10, 11], "a"),  # b would wait for c
        ([3, 3, 1, 1], [10, 10, 99, 99], "ac"),  # b leaves one GPU free, which is c's for as long as it likes
        ([2, 4, 1, 1], [10, 10, 11, 9], "ad"),
        ([2, 1, 4, 1], [10, 3, 10, 9], "abd"),
    ],
)
def test_who_overtakes_does_not_delay_the_first(gpus: list[int], work: list[int], who: str) -> None:
    assert started(EasyBackfilling(), gpus, work) == who


def test_the_first_starts_when_its_reservation_says() -> None:
    dice = Random(4)
    met = 0
    for _ in range(30):
        count = dice.randint(4, 12)
        jobs = Jobs.of(
            gpus=[dice.choice([1, 1, 2, 3, 4]) for _ in range(count)],
            work=[dice.randint(1, 9) for _ in range(count)],
            types=["V100"],
            arrival=[dice.randint(0, 4) for _ in range(count)],
        )
        promised: dict[str, float] = {}
        for record in run(Watched(promised), Trace(jobs), FOUR, length=1):
            for ran in record.ran:
                met += ran.job in promised
                assert record.begin <= promised.pop(ran.job, record.begin)
    assert met > 50


class Watched(EasyBackfilling):
    """EASY backfilling that tells the first reservation of each job that had one."""

    def __init__(self, promised: dict[str, float]) -> None:
        super().__init__()
        object.__setattr__(self, "promised", promised)

    def overtake(self, queue: Queue, waiting: Sequence[int], room: Room) -> bool:
        if waiting:
            shadow, *_ = reservation(queue, waiting[0], room)
            self.promised.setdefault(queue.jobs.names[waiting[0]], queue.now + shadow)  # type: ignore[attr-defined]
        return super().overtake(queue, waiting, room)


def test_the_fastest_type_with_room_and_a_reservation_on_one_type_only() -> None:
    jobs = Jobs.of(
        gpus=[2, 2, 2, 1], work=[20, 20, 20, 99], types=["old", "new"], throughput=[[1, 2], [0, 2], [0, 2], [1, 2]]
    )
    cluster = Cluster.uniform({"old": (1, 2), "new": (1, 2)})
    record = next(run(EasyBackfilling(), Trace(jobs), cluster, length=1))
    assert {ran.job: ran.types for ran in record.ran} == {"j1": ("new",), "j4": ("old",)}


def test_what_would_be_decided_again_stands() -> None:
    def stands(policy: Policy, gpus: list[int], work: list[int]) -> object:
        jobs = Jobs.of(gpus=gpus, work=work, types=["V100"])
        return decide(policy, Queue.fresh(jobs, FOUR, length=1)).stands

    assert stands(FirstInFirstOut(), [3, 4, 1], [10, 10, 1]) == float("inf")
    assert stands(EasyBackfilling(), [4, 4, 1], [10, 10, 1]) == float("inf")
    assert stands(EasyBackfilling(), [3, 4, 1], [10, 10, 11]) is None  # what is done in time, rounding may decide
