"""A decision carried out: what changes by it, checked as far as anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fairopt.policy import Schedule
from fairopt.policy.schedule import refuse_broken
from fairopt.problem.placements import Placements
from fairopt.program import Number
from fairopt.simulation.changes import Placed
from fairopt.simulation.engine.standing import Standing, place
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import Change
from fairopt.simulation.run import change


class Decided(NamedTuple):
    """The jobs at the beginning of a round, with who runs in it, and what is new of that; as `Changes` has it.

    ``says`` is what the policy says, key by key, where that is new.
    """

    standing: Standing
    stopped: tuple[int, ...] = ()
    placed: tuple[Placed, ...] = ()
    leases: Mapping[int, Number] = {}
    unschedulable: Mapping[int, str] = {}
    says: Mapping[str, Any] = {}


def going_on(standing: Standing, now: Number, end: Number) -> Decided:
    """Return a round in which all go on where they are; a lease that is over becomes one to the ``end``."""
    return Decided(standing._replace(lease=standing.leased_until(now, end)))


def carried_out(
    schedule: Schedule, standing: Standing, before: Standing, mechanics: Mechanics, *, whole: bool
) -> Decided:
    """Return what a schedule makes of those who are ``standing`` at the beginning of its round.

    ``before``: the same at the end of the round before, when hosts that have failed since still ran jobs. ``whole``:
    check all jobs and work out all speeds, not only those of jobs that come to other GPUs. Errors: `BrokenSchedule`.
    """
    queue = schedule.queue
    moving = _moving(schedule)
    refuse_broken(schedule, None if whole else moving)
    placements = schedule.placements
    runs = np.zeros(len(queue), dtype=bool)
    if isinstance(placements, Placements):
        runs[placements.stay] = True
    runs[list(placements.moved if isinstance(placements, Placements) else placements)] = True
    last_: Any = queue.end
    unsaid = np.where(queue.holds, queue.lease, last_)
    lease, leases = unsaid, {}
    if schedule.leases:
        named = np.fromiter(schedule.leases, dtype=np.int64, count=len(schedule.leases))
        until = np.array(list(schedule.leases.values()), dtype=unsaid.dtype)
        there = (named >= 0) & (named < len(queue))
        named, until = named[there], until[there]
        new = runs[named] & (until != unsaid[named])
        leases = dict(zip(named[new].tolist(), until[new].tolist(), strict=True))
        lease = unsaid.copy()
        lease[named[new]] = until[new]
    rows = standing.rows
    after = standing._replace(running=runs, lease=lease)
    placed: list[Placed] = []
    if moving or whole:
        setup, speed, last, started = (
            column.copy() for column in (standing.setup, standing.speed, standing.last, standing.started)
        )
        host, gpu_type, gpus = standing.host.copy(), standing.gpu_type.copy(), standing.gpus.copy()
        for row in sorted(placements) if whole else moving:
            spots = placements[row]
            setup[row], speed[row] = mechanics.setup(queue, row, spots), mechanics.speed(queue, row, spots)
            gpus[row] = sum(each for _, each in spots)  # an elastic job may have another number than before
            how = change(queue, row, spots)
            known = standing.speed[row], standing.setup[row]
            if how is Change.STAY and (not known[0] or known == (speed[row], setup[row])):
                continue
            on = tuple((int(number), int(gpus)) for number, gpus in spots)
            placed.append(Placed(int(rows[row]), on, how, setup[row], speed[row]))
            last[row], (host[row], gpu_type[row]) = spots, place(queue.cluster, spots)
            started[row] = queue.now if started[row] is None else started[row]
        after = after._replace(
            setup=setup, speed=speed, gpus=gpus, last=last, started=started, host=host, gpu_type=gpu_type
        )
    stopped = before.running & ~runs
    return Decided(
        standing=after,
        stopped=tuple(rows[stopped].tolist()),
        placed=tuple(placed),
        leases={int(rows[row]): until for row, until in leases.items()},
    )


def _moving(schedule: Schedule) -> list[int]:
    """Return the rows, rising, of the jobs that come to GPUs on which they did not run in the round before."""
    queue, count, placements = schedule.queue, len(schedule.queue), schedule.placements
    if isinstance(placements, Placements) and placements.last is queue.last:
        placements = placements.moved  # all others stay, and have run before
    running, last = queue.running, queue.last
    return sorted(
        row for row, spots in placements.items() if not 0 <= row < count or not running[row] or spots != last[row]
    )
