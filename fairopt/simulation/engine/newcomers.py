"""Those who come where nobody waits, and find room: put onto hosts without a question, as the policy would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairopt.policy import Schedule
from fairopt.problem import Queue, Spots
from fairopt.problem.jobs import Pattern
from fairopt.program import Array, Number
from fairopt.simulation.changes import Placed
from fairopt.simulation.engine.decided import Decided
from fairopt.simulation.engine.free_hosts import FreeHosts
from fairopt.simulation.engine.standing import Standing, of_tuples
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.placement import by_throughput
from fairopt.simulation.record import Change


class Newcomers:
    """What a policy would do with those who come, where they find room on the types that they ask for first.

    ``whole`` is the queue of all jobs of the trace. `plain` says whether that can be told of them at all.
    """

    def __init__(self, whole: Queue, mechanics: Mechanics) -> None:
        jobs = whole.jobs
        self._whole, self._free = whole, FreeHosts(whole.cluster)
        zero = whole.now * 0
        self._setup: Number = whole.number(mechanics.launch) + zero
        self._spread: Number = whole.number(mechanics.spread)
        local = mechanics.local_data and any(jobs.dataset)
        #: Whether loading and speed follow from the type alone, but for the spread over hosts.
        self.plain = type(mechanics) is Mechanics and not local and not jobs.elastic and whole.cluster.speed is None
        first = by_throughput.first(whole)
        self._first: list[int] = first.tolist()
        # all jobs as they start, in columns; where the first is -1 they are of no use
        work, rows = jobs.work, np.arange(len(jobs))
        self._started = Standing.new(range(len(jobs)), jobs, zero)._replace(
            setup=work * 0 + self._setup,
            running=np.ones(len(jobs), dtype=bool),
            speed=jobs.throughput[rows, first],
            gpu_type=first,
        )
        self._gpus: list[int] = jobs.gpus.tolist()
        self._inner: list[bool] = [each is Pattern.INTRA for each in jobs.pattern]
        self._known: tuple[Callable[[Queue], Array] | None, Array] = None, np.array([])

    def placed(self, schedule: Schedule, standing: Standing, fresh: range, now: Number, end: Number) -> Decided | None:
        """Return a round in which the ``fresh`` rows of the trace start, and all others go on, while all hosts are up.

        ``schedule`` is the policy's last, which says how (`Schedule.newcomers`). None where it does not, and where
        somebody fits no type, or finds no room on its first.
        """
        order, gpus, first = schedule.newcomers, self._gpus, self._first
        if order is None or not self.plain:
            return None
        wanted: dict[int, int] = {}
        for row in fresh:
            wanted[first[row]] = wanted.get(first[row], 0) + gpus[row]
        if -1 in wanted:
            return None
        free = self._free
        free.follow(standing, schedule)
        if any(free.room[gpu_type] < asked for gpu_type, asked in wanted.items()):
            free.settle(schedule)
            return None
        at = slice(fresh.start, fresh.stop)
        started = self._started
        speed = started.speed[at]
        spots: list[Spots] = [()] * len(fresh)
        for row in self._in_turn(order, fresh):
            on = free.taken(row, first[row], gpus[row])
            spots[row - fresh.start] = on
            if len(on) > 1 and self._inner[row]:
                speed = speed.copy()
                speed[row - fresh.start] *= self._spread
        free.settle(schedule)
        placed = tuple(
            Placed(row, on, Change.START, self._setup, each)
            for row, on, each in zip(fresh, spots, speed.tolist(), strict=True)
        )
        added = Standing(
            rows=started.rows[at],
            gpus=started.gpus[at],
            remaining=started.remaining[at],
            attained=started.attained[at],
            setup=started.setup[at],
            lease=started.attained[at] + end,
            running=started.running[at],
            last=of_tuples(spots),
            started=of_tuples([now] * len(fresh)),
            speed=speed,
            host=np.array([on[0][0] if len(on) == 1 else -1 for on in spots]),
            gpu_type=started.gpu_type[at],
        )
        return Decided(standing._replace(lease=standing.leased_until(now, end)).joined(added), placed=placed)

    def _in_turn(self, order: Callable[[Queue], Array], fresh: range) -> list[int]:
        """Return rows as `Consolidated` takes them: by falling GPUs, then in the policy's order."""
        if len(fresh) == 1:
            return [fresh.start]
        if self._known[0] is not order:
            self._known = order, order(self._whole.as_told())
        keys, gpus = self._known[1][fresh.start : fresh.stop].tolist(), self._gpus
        return sorted(fresh, key=lambda row: (-gpus[row], keys[row - fresh.start]))
