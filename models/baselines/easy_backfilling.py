"""EASY backfilling: first in, first out, and who may overtake the first that waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from fairopt.models.baselines.fifo import FirstInFirstOut
from fairopt.models.common.schedulers import Room, time_left, until_free
from fairopt.policy import Trait
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Number
from fairopt.simulation import by_throughput


@dataclass(frozen=True)
class EasyBackfilling(FirstInFirstOut):
    """FIFO in which a job may overtake, if that does not delay the first that waits.

    The first job that finds no room has a reservation: at the *shadow time*, when enough running jobs are done; the
    GPUs that are free then and that it does not need are *extra*. A later job starts now if it finds room and either is
    done by the shadow time or needs extra GPUs only. Only the first job that waits has a reservation.

    Choices of ours: with several types the reservation is on the type where the job can start first, the fastest of
    these; on the other types later jobs start wherever they find room. Lengths are those that the queue says, without
    loading. The shadow time is the beginning of a round, when freed GPUs can be given out.

    Source: Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995; Mu'alem and Feitelson, Utilization, Predictability,
    Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling, IEEE TPDS 12(6), 2001 (shadow time
    and extra nodes).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(EasyBackfilling(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of easy-backfilling, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    name = "easy-backfilling"
    source = "Lifka, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 2001"
    traits = FirstInFirstOut.traits - {Trait.EVENTS}  # the shadow time is the beginning of a round

    def overtake(self, queue: Queue, waiting: Sequence[int], room: Room) -> bool:
        """Start the jobs that do not delay the first; see `FirstInFirstOut.overtake`."""
        if not waiting:
            return False
        first, *others = waiting
        shadow, gpu_type, extra = reservation(queue, first, room)
        for row in others:
            for each in room.types(row):
                # on the reserved type a job is either done by then, or takes GPUs that nobody has asked for
                in_time = each != gpu_type or time_left(queue, row, each) <= shadow
                if in_time or room.sizes[row] <= extra:
                    extra -= 0 if in_time else room.sizes[row]
                    room.take(row, each)
                    break
        gone = {request.row for request in room.requests}
        return any(room.types(row) for row in others if row not in gone)


def reservation(queue: Queue, row: int, room: Room) -> tuple[Number, int, int]:
    """Return how long until a job can start, where, and how many GPUs it then leaves free there."""
    found = ((*_free_in(queue, row, gpu_type, room), gpu_type) for gpu_type in by_throughput(queue, row))
    shadow, extra, gpu_type = min(found, key=lambda each: each[0])  # the first of equals is the fastest
    return shadow, gpu_type, extra


def _free_in(queue: Queue, row: int, gpu_type: int, room: Room) -> tuple[Number, int]:
    """Return how long until a type has a job's GPUs free, at the beginning of a round, and how many more."""
    free = room.left[gpu_type]
    ends: list[tuple[Number, int]] = [
        (until_free(queue, other), int(queue.held_by([spots])[gpu_type])) for other, spots in queue.leased.items()
    ]
    ends += [
        (time_left(queue, other, gpu_type), room.sizes[other]) for other, (on, *_) in room.requests if on == gpu_type
    ]
    rounds = sorted((ceil(end / queue.length), gpus) for end, gpus in ends if gpus)
    for at, (when, gpus) in enumerate(rounds):
        free += gpus
        if free >= room.sizes[row] and (at + 1 == len(rounds) or rounds[at + 1][0] > when):
            return when * queue.length, free - room.sizes[row]
    return INFINITY, 0
