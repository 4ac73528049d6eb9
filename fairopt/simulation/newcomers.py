"""Those who come where nobody waits, and find room: put onto hosts without a question, as the policy would."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

import numpy as np

from fairopt.policy import Schedule
from fairopt.problem import Cluster, Queue, Spots
from fairopt.problem.jobs import Pattern
from fairopt.program import Array, Number
from fairopt.simulation.job_states import JobStates, of_tuples
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.placement import by_throughput
from fairopt.simulation.record import Change, Placed


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
        self.plain = type(mechanics) is Mechanics and not local and not jobs.profiles and whole.cluster.speed is None
        first = by_throughput.first(whole)
        self._first: list[int] = first.tolist()
        # all jobs as they start, in columns; where the first is -1 they are of no use
        work, rows = jobs.work, np.arange(len(jobs))
        self._started = JobStates.new(range(len(jobs)), jobs, zero)._replace(
            setup=work * 0 + self._setup,
            running=np.ones(len(jobs), dtype=bool),
            speed=jobs.throughput[rows, first],
            gpu_type=first,
        )
        self._gpus: list[int] = jobs.gpus.tolist()
        self._inner: list[bool] = [each is Pattern.INTRA for each in jobs.pattern]
        self._known: tuple[Callable[[Queue], Array] | None, Array] = None, np.array([])

    def placed(
        self, schedule: Schedule, states: JobStates, fresh: range, now: Number, end: Number
    ) -> tuple[JobStates, tuple[Placed, ...]] | None:
        """Return who starts in a round in which the ``fresh`` rows of the trace do, and all others go on; all hosts up.

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
        free.follow(states, schedule)
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
        added = JobStates(
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
        return states.going_on(now, end).joined(added), placed

    def _in_turn(self, order: Callable[[Queue], Array], fresh: range) -> list[int]:
        """Return rows as `Consolidated` takes them: by falling GPUs, then in the policy's order."""
        if len(fresh) == 1:
            return [fresh.start]
        if self._known[0] is not order:
            self._known = order, order(self._whole.as_told())
        keys, gpus = self._known[1][fresh.start : fresh.stop].tolist(), self._gpus
        return sorted(fresh, key=lambda row: (-gpus[row], keys[row - fresh.start]))


class FreeHosts:
    """The hosts of each type by how many of their GPUs are free, while all hosts work.

    `room` (k) has the free GPUs of each type. `follow` counts those who run; then `taken` gives a job its GPUs, and
    `settle` says that all of them start. Whatever is left in between by an exception is counted anew.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._gpus, self._type = cluster.gpus, cluster.gpu_type.tolist()
        self.room = [0] * len(cluster.types)
        self._free: list[int] = []
        self._hosts: list[dict[int, list[int]]] = []  # of each type, by free GPUs, rising
        self._on: dict[int, Spots] = {}  # by row of the trace, all whose GPUs are not free
        self._since: Schedule | None = None

    def follow(self, states: JobStates, since: Schedule) -> None:
        """Count the GPUs of those who run, placed by the schedule ``since``, or after it by `taken`."""
        there = np.count_nonzero(states.running)
        known, self._since = since is self._since, None
        if known and len(self._on) != there:
            for row in self._on.keys() - states.rows.tolist():
                self._change(self._on.pop(row), 1)
        if not known or len(self._on) != there:
            self._anew(states)

    def _anew(self, states: JobStates) -> None:
        columns = (states.rows, states.running, states.last)
        self._on = {row: on for row, runs, on in zip(*(each.tolist() for each in columns), strict=True) if runs}
        self._free = (self._gpus - states.held(len(self._gpus))).tolist()
        self._hosts, self.room[:] = [{} for _ in self.room], [0] * len(self.room)
        for host, free in enumerate(self._free):
            self._hosts[self._type[host]].setdefault(free, []).append(host)
            self.room[self._type[host]] += free

    def taken(self, row: int, gpu_type: int, gpus: int) -> Spots:
        """Give a job the GPUs that `Consolidated` would: on the fullest host with room, else on the emptiest hosts.

        ``row`` is that of the trace. The type has so much `room`.
        """
        spots = self._spots(self._hosts[gpu_type], gpus)
        self._on[row] = spots
        self._change(spots, -1)
        return spots

    def settle(self, since: Schedule) -> None:
        """Let all who have `taken` GPUs keep them, as long as the schedule ``since`` stands."""
        self._since = since

    def _spots(self, hosts: dict[int, list[int]], gpus: int) -> Spots:
        fullest = min([free for free in hosts if free >= gpus], default=0)
        if fullest:
            return ((hosts[fullest][0], gpus),)
        spots, missing = [], gpus
        for free in sorted(hosts, reverse=True):
            for host in hosts[free] if missing else ():
                here = min(missing, free)
                spots.append((host, here))
                missing -= here
                if not missing:
                    break
        return tuple(sorted(spots))

    def _change(self, spots: Spots, sign: int) -> None:
        """Count GPUs as free (1), or as taken (-1)."""
        for host, gpus in spots:
            hosts, free = self._hosts[self._type[host]], self._free[host]
            alike, more = hosts[free], free + sign * gpus
            del alike[bisect_left(alike, host)]
            if not alike:
                del hosts[free]
            insort(hosts.setdefault(more, []), host)
            self._free[host] = more
            self.room[self._type[host]] += sign * gpus
