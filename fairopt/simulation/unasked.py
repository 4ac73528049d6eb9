"""Rounds in which nobody is asked: who runs goes on, who is done leaves, who comes where nobody waits finds room."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.policy import Schedule
from fairopt.problem import Cluster, Queue, Spots
from fairopt.problem.jobs import Pattern
from fairopt.program import INFINITY, Array, Number, objects
from fairopt.simulation.job_states import JobStates
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.placement import by_throughput
from fairopt.simulation.record import Change, Changes, Placed

#: Rounds that are played in one step, and jobs that come in them, at the most, because who listens wants to say how far
#: the run is; and rounds in which something changes, after which the jobs that are done are put away.
MOST_AT_ONCE, MOST_CHANGES = 1000, 100


class Unasked:
    """Plays the rounds that come until a policy is to be asked.

    ``whole`` is the queue of all jobs of the trace, ``length`` that of a round. Those who come are put onto hosts as
    the policy has said (`Schedule.newcomers`), where loading and speed follow from the type alone, but for the spread
    over hosts, and where all of them find room on the types that they ask for first.
    """

    def __init__(self, whole: Queue, mechanics: Mechanics, length: Number) -> None:
        jobs = whole.jobs
        self._whole, self._length, self._free = whole, length, _FreeHosts(whole.cluster)
        self._setup: Number = whole.number(mechanics.launch) + whole.now * 0
        self._spread: Number = whole.number(mechanics.spread)
        local = mechanics.local_data and any(jobs.dataset)
        self._plain = type(mechanics) is Mechanics and not local and not jobs.profiles and whole.cluster.speed is None
        self._type = by_throughput.first(whole)  # -1: of no use
        speed, none = jobs.throughput[np.arange(len(jobs)), self._type], jobs.work * 0
        self._coming = np.stack([jobs.work, none, none + self._setup, speed, jobs.gpus])
        self._first: list[int] = self._type.tolist()
        self._arrival: list[Number] = jobs.arrival.tolist()
        self._gpus: list[int] = jobs.gpus.tolist()
        self._inner: list[bool] = [each is Pattern.INTRA for each in jobs.pattern]
        self._known: tuple[Callable[[Queue], Array] | None, list[int]] = None, []

    def play(
        self,
        before: JobStates,
        schedule: Schedule,
        *,
        index: int,
        now: Number,
        arrived: int,
        stands: Number,
        until: Number,
        settled: bool,
        come: bool,
        most: int,
        again: bool = False,
    ) -> tuple[list[Changes], JobStates, int, Number]:
        """Play no more than ``most`` rounds, from number ``index`` on, which begins ``now``; all end by ``until``.

        Return what changes, how jobs stand after them, how many rounds they were, and when the last one ends.

        ``schedule`` is the policy's last, which ``stands`` until then; where ``settled``, also when jobs are done.
        ``come``: whether it may say how others come. ``again``: the rounds have been played, and are needed only in
        part. Each round does what `JobStates.advanced` does.
        """
        rounds = 0
        order = schedule.newcomers if settled and come and self._plain else None
        arrives = arrived < len(self._arrival) and self._arrival[arrived] <= now
        if now >= stands or (order is None and arrives):  # most often where jobs wait
            return [], before, 0, now
        coming = slice(arrived, arrived if order is None else arrived + MOST_AT_ONCE)
        running = _Running(before, self._coming[:, coming], arrived)
        changes, last, following = list[Changes](), now, False
        while rounds < most and len(changes) < MOST_CHANGES and now < stands and (end := now + self._length) <= until:
            fresh = range(arrived, bisect_right(self._arrival, now, lo=arrived))
            placed: tuple[Placed, ...] = ()
            if fresh:
                if order is None or fresh.stop > coming.stop:
                    break
                if not following:
                    self._free.follow(running.spots(), None if again else schedule)
                    following = True
                spots = self._placed(order, fresh)
                if spots is None:
                    break
                speeds = running.come(fresh, spots, self._slower(fresh, spots), now)
                each = zip(fresh, spots, speeds, strict=True)
                placed = tuple([Placed(row, on, Change.START, self._setup, speed) for row, on, speed in each])
            elif not running.count:
                break
            done = running.done(now, end)
            if done and not settled:
                break
            for row in done if following else ():
                self._free.leave(row)
            running.go_on(end - now)
            if fresh or done:
                changes.append(Changes(index + rounds, now, end, fresh, placed=placed, completed=done))
            arrived, last, now, rounds = fresh.stop, now, end, rounds + 1
        if following:
            self._free.settle(None if again else schedule)
        return changes, running.states(self._type).going_on(last, now) if rounds else before, rounds, now

    def _placed(self, order: Callable[[Queue], Array], fresh: range) -> list[Spots] | None:
        """Return where each of those who come starts; None where one fits no type, or not all find room."""
        free, types, gpus = self._free, self._first, self._gpus
        wanted: dict[int, int] = {}
        for row in fresh:
            wanted[types[row]] = wanted.get(types[row], 0) + gpus[row]
        if -1 in wanted or any(free.room[gpu_type] < asked for gpu_type, asked in wanted.items()):
            return None
        spots: list[Spots] = [()] * len(fresh)
        for row in self._in_turn(order, fresh):
            spots[row - fresh.start] = free.taken(row, types[row], gpus[row])
        return spots

    def _in_turn(self, order: Callable[[Queue], Array], fresh: range) -> Sequence[int]:
        """Return rows as `Consolidated` takes them: by falling GPUs, then in the policy's order."""
        if len(fresh) == 1:
            return fresh
        if self._known[0] is not order:
            told = np.argsort(order(self._whole.as_told()), kind="stable")
            turn = np.empty(len(told), dtype=np.int64)
            turn[told[np.argsort(-self._whole.jobs.gpus[told], kind="stable")]] = np.arange(len(told))
            self._known = order, turn.tolist()
        return sorted(fresh, key=self._known[1].__getitem__)

    def _slower(self, fresh: range, spots: list[Spots]) -> dict[int, Number]:
        """Return the speeds of those who come and are slower on these ``spots``, because they are apart."""
        apart = [row for row, on in zip(fresh, spots, strict=True) if len(on) > 1 and self._inner[row]]
        return {row: self._coming[3, row] * self._spread for row in apart}


class _Running:
    """Those who run in a stretch of rounds, in columns: first those of its beginning, then who came, one after another.

    Who is done has INFINITY left. ``count``: how many are not. ``coming`` (5, m) are those who may come: the work left,
    the GPU-time attained, the time to load, the speed, and the GPUs of each.
    """

    def __init__(self, before: JobStates, coming: Array, arrived: int) -> None:
        at = before.running_at()
        self._before, self._arrived = before, arrived
        self._at = np.zeros(0, dtype=np.int64) if at is None else at
        columns = (before.remaining, before.attained, before.setup, before.speed, before.gpus)
        self._all = np.concatenate((np.stack([column[self._at] for column in columns]), coming), axis=1)
        self._spots, self._since = list[Spots](), list[Number]()  # of those who came: where, and when
        self._rows = before.rows[self._at]
        self._own = self.count = len(self._rows)
        self._left, self._attained, self._loading, self._speed, self._gpus = self._all[:, : self._own]
        self._loads = bool(self._loading.any())

    @cached_property
    def _listed(self) -> list[int]:
        rows: list[int] = self._rows.tolist()
        return rows

    def spots(self) -> dict[int, Spots]:
        """Return where those run who were there at the beginning and are not done, by row of the trace."""
        there = self._left[: self._own] != INFINITY
        return dict(zip(self._rows[there].tolist(), self._before.last[self._at][there], strict=True))

    def come(self, fresh: range, spots: list[Spots], slower: Mapping[int, Number], now: Number) -> list[Number]:
        """Let those who come for the round that begins ``now`` run, some ``slower``; return their speeds."""
        there = len(self._left)
        for row, speed in slower.items():
            self._all[3, there + row - fresh.start] = speed
        self._spots += spots
        self._since += [now] * len(fresh)
        self._left, self._attained, self._loading, self._speed, self._gpus = self._all[:, : there + len(fresh)]
        self._loads = True
        self.count += len(fresh)
        speeds: list[Number] = self._speed[there:].tolist()
        return speeds

    def done(self, now: Number, end: Any) -> dict[int, Number]:
        """Return when rows are done in the round from ``now`` to ``end``."""
        # the order of operations decides the last bit of floats: `JobStates.advanced` has the same
        complete = (now + self._loading if self._loads else now) + self._left / self._speed
        self._done = (complete <= end).nonzero()[0]
        if not len(self._done):
            return {}
        own, rows, before = self._own, self._listed, self._arrived - self._own
        places = zip(self._done.tolist(), complete[self._done].tolist(), strict=True)
        return {rows[place] if place < own else place + before: time for place, time in places}

    def go_on(self, held: Any) -> None:
        """Let the round pass."""
        if self._loads:
            spent = np.minimum(self._loading, held)
            self._left -= (held - spent) * self._speed
            self._loading -= spent
            self._loads = bool(np.count_nonzero(self._loading))
        else:
            self._left -= held * self._speed
        self._attained += self._gpus * held
        if len(self._done):
            self._left[self._done] = INFINITY
            self.count -= len(self._done)

    def states(self, first: Array) -> JobStates:
        """Return all who are there now; those who came run on their ``first`` types. Leases are those of before."""
        own, runs = self._own, self._left != INFINITY
        after = self._before.progressed(self._at, self._left[:own], self._attained[:own], self._loading[:own])
        if not runs[:own].all():
            gone = np.zeros(len(after.rows), dtype=bool)
            gone[self._at] = ~runs[:own]
            after = after.without(gone)
        if not self._spots:
            return after
        came = np.flatnonzero(runs[own:])
        here, rows = own + came, self._arrived + came
        last = objects(self._spots)[came]
        added = JobStates(
            rows=rows,
            gpus=self._gpus[here].astype(np.int64),
            remaining=self._left[here],
            attained=self._attained[here],
            setup=self._loading[here],
            lease=self._left[here] * 0,
            running=np.ones(len(here), dtype=bool),
            last=last,
            started=objects(self._since)[came],
            speed=self._speed[here],
            host=np.array([on[0][0] if len(on) == 1 else -1 for on in last], dtype=np.int64),
            gpu_type=first[rows],
        )
        return after.joined(added)


class _FreeHosts:
    """The hosts of each type by how many of their GPUs are free, while all hosts work.

    `room` (k) has the free GPUs of each type. `follow` counts those who run; then `taken` gives a job its GPUs, `leave`
    takes them back, and `settle` says that all of them start. Whatever is left in between by an exception is counted
    anew.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._gpus, self._type = cluster.gpus, cluster.gpu_type.tolist()
        self._most = int(cluster.gpus.max(initial=0))
        self.room = [0] * len(cluster.types)
        self._free: list[int] = []
        self._hosts: list[list[list[int]]] = []  # of each type, by free GPUs: hosts, rising
        self._on: dict[int, Spots] = {}  # by row of the trace, all whose GPUs are not free
        self._since: Schedule | None = None

    def follow(self, there: Mapping[int, Spots], since: Schedule | None) -> None:
        """Count the GPUs of those who are ``there``, placed by the schedule ``since``, or after it by `taken`."""
        known, self._since = since is not None and since is self._since, None
        for row in self._on.keys() - there.keys() if known else ():
            self.leave(row)
        if not known or len(self._on) != len(there):
            self._anew(there)

    def _anew(self, there: Mapping[int, Spots]) -> None:
        self._on, self._free = dict(there), self._gpus.tolist()
        for spots in there.values():
            for host, gpus in spots:
                self._free[host] -= gpus
        self._hosts = [[[] for _ in range(self._most + 1)] for _ in self.room]
        self.room[:] = [0] * len(self.room)
        for host, free in enumerate(self._free):
            self._hosts[self._type[host]][free].append(host)
            self.room[self._type[host]] += free

    def taken(self, row: int, gpu_type: int, gpus: int) -> Spots:
        """Give a job the GPUs that `Consolidated` would: on the fullest host with room, else on the emptiest hosts.

        ``row`` is that of the trace. The type has so much `room`.
        """
        spots = self._on[row] = self._spots(self._hosts[gpu_type], gpus)
        self._change(spots, -1)
        return spots

    def leave(self, row: int) -> None:
        """Take a job's GPUs back."""
        self._change(self._on.pop(row), 1)

    def settle(self, since: Schedule | None) -> None:
        """Let all who have `taken` GPUs keep them, as long as the schedule ``since`` stands; None: only for now."""
        self._since = since

    def _spots(self, hosts: list[list[int]], gpus: int) -> Spots:
        for alike in hosts[gpus:]:
            if alike:
                return ((alike[0], gpus),)
        spots, missing = [], gpus
        for free in range(self._most, 0, -1):
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
            gpu_type, free = self._type[host], self._free[host]
            hosts, more = self._hosts[gpu_type], free + sign * gpus
            alike = hosts[free]
            del alike[bisect_left(alike, host)]
            insort(hosts[more], host)
            self._free[host] = more
            self.room[gpu_type] += sign * gpus
