"""A decision carried out: what changes by it, checked as far as anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairopt.policy import Schedule
from fairopt.policy.schedule import refuse_broken
from fairopt.program import Number
from fairopt.simulation.changes import Placed
from fairopt.simulation.engine.standing import Standing
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import Change
from fairopt.simulation.run import change


@dataclass(frozen=True, eq=False, slots=True)
class Decided:
    """The jobs at the beginning of a round, with who runs in it, and what is new of that; as `Changes` has it.

    ``says`` is what the policy says, key by key, where that is new.
    """

    standing: Standing
    stopped: tuple[int, ...] = ()
    placed: tuple[Placed, ...] = ()
    leases: Mapping[int, Number] = field(default_factory=dict)
    misfits: Mapping[int, str] = field(default_factory=dict)
    says: Mapping[str, Any] = field(default_factory=dict)


def going_on(standing: Standing, now: Number, end: Number) -> Decided:
    """Return a round in which all go on where they are; a lease that is over becomes one to the ``end``."""
    return Decided(replace(standing, lease=standing.leased_until(now, end)))


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
    at = np.fromiter(schedule.placements, dtype=np.int64, count=len(schedule.placements))
    runs = np.zeros(len(queue), dtype=bool)
    runs[at] = True
    unsaid = standing.leased_until(queue.now, queue.end)
    lease, leases = unsaid, {}
    if schedule.leases:
        usual = unsaid.tolist()
        said = {row: until for row, until in schedule.leases.items() if row in schedule.placements}
        leases = {row: until for row, until in said.items() if until != usual[row]}
        if leases:
            lease = unsaid.copy()
            lease[list(leases)] = list(leases.values())
    rows = standing.rows
    after = replace(standing, running=runs, lease=lease)
    placed: list[Placed] = []
    if moving or whole:
        setup, speed, gpus = standing.setup.copy(), standing.speed.copy(), standing.gpus.copy()
        last, started = list(standing.last), list(standing.started)
        for row in sorted(schedule.placements) if whole else moving:
            spots = schedule.placements[row]
            setup[row], speed[row] = mechanics.setup(queue, row, spots), mechanics.speed(queue, row, spots)
            gpus[row] = sum(each for _, each in spots)  # an elastic job may have another number than before
            how = change(queue, row, spots)
            if how is not Change.STAY:
                placed.append(Placed(int(rows[row]), spots, how, setup[row], speed[row]))
                last[row] = spots
                started[row] = queue.now if started[row] is None else started[row]
        after = replace(after, setup=setup, speed=speed, gpus=gpus, last=tuple(last), started=tuple(started))
    stopped = before.running & ~runs
    return Decided(
        standing=after,
        stopped=tuple(rows[stopped].tolist()) if stopped.any() else (),
        placed=tuple(placed),
        leases={int(rows[row]): until for row, until in leases.items()},
    )


def _moving(schedule: Schedule) -> list[int]:
    """Return the rows, rising, of the jobs that come to GPUs on which they did not run in the round before."""
    queue, count = schedule.queue, len(schedule.queue)
    running, last = queue.running.tolist(), queue.last
    return sorted(
        row
        for row, spots in schedule.placements.items()
        if not 0 <= row < count or not running[row] or (spots is not last[row] and spots != last[row])
    )
