"""How the jobs present stand between two rounds, in columns, and what a round does to those that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairopt.problem import Cluster, Jobs, Spots
from fairopt.program import Array, Number, cast, objects
from fairopt.simulation.record import JobState


class Standing(NamedTuple):  # a class of data would take longer to make than a round
    """The columns of `JobState`, one value for each of n jobs present; nothing in it is ever changed in place.

    ``rows`` (n,) are those of the trace, rising. ``lease`` and ``speed`` (work per unit of time on ``last``) count
    where a job is ``running``. ``host`` and ``gpu_type`` are the only ones of ``last``, or -1.
    """

    rows: Array
    gpus: Array
    remaining: Array
    attained: Array
    setup: Array
    lease: Array
    running: Array
    last: Array
    started: Array
    speed: Array
    host: Array
    gpu_type: Array

    @classmethod
    def of(cls, present: Mapping[int, JobState], jobs: Jobs, cluster: Cluster, number: type) -> Standing:
        """Return the columns of a snapshot's jobs, of ``jobs`` of the whole trace. Their speeds are not known yet."""
        rows, states = np.array(list(present), dtype=np.int64), list(present.values())
        columns: dict[str, Any] = {
            name: cast(objects(getattr(each, name) for each in states), number)
            for name in ("remaining", "attained", "setup", "lease")
        }
        return cls(
            rows=rows,
            gpus=jobs.gpus[rows],
            running=np.array([each.running for each in states], dtype=bool),
            last=of_tuples([each.last for each in states]),
            started=of_tuples([each.started for each in states]),
            speed=cast(np.zeros(len(states)), number),
            host=np.array([place(cluster, each.last)[0] for each in states], dtype=np.int64),
            gpu_type=np.array([place(cluster, each.last)[1] for each in states], dtype=np.int64),
            **columns,
        )

    def states(self, now: Number) -> Iterator[tuple[int, JobState]]:
        """Yield each job's row and state; ``now`` is when the last round ended."""
        columns = (self.remaining, self.attained, self.setup, self.running, self.leases(now))
        listed = (column.tolist() for column in columns)
        for row, left, got, setup, running, lease, last, started in zip(
            self.rows.tolist(), *listed, self.last, self.started, strict=True
        ):
            yield row, JobState(left, got, setup, last, running, lease, started)

    def leases(self, now: Number) -> Array:
        """Return until when each job holds its GPUs, ``now`` where it runs nowhere."""
        there: Any = now
        return np.where(self.running, self.lease, there)

    def leased_until(self, now: Number, end: Number) -> Array:
        """Return the lease of each job that goes on, and the ``end`` of the round for those that hold none."""
        last: Any = end
        return np.where(self.leases(now) > now, self.lease, last)

    @classmethod
    def new(cls, fresh: range, jobs: Jobs, now: Number) -> Standing:
        """Return the columns of rows of the trace that just came."""
        count, none = len(fresh), jobs.work[fresh.start : fresh.stop] * 0
        nowhere = np.full(count, -1)
        return cls(
            rows=np.arange(fresh.start, fresh.stop),
            gpus=jobs.gpus[fresh.start : fresh.stop],
            remaining=jobs.work[fresh.start : fresh.stop],
            attained=none,
            setup=none,
            lease=none + now,
            running=np.zeros(count, dtype=bool),
            last=of_tuples([()] * count),
            started=np.full(count, None),
            speed=none,
            host=nowhere,
            gpu_type=nowhere,
        )

    def joined(self, others: Standing) -> Standing:
        """Return the same with others, whose rows come after."""
        return Standing(*map(np.concatenate, zip(self, others, strict=True))) if len(others.rows) else self

    def held(self, hosts: int) -> Array:
        """Return the GPUs of each of so many hosts (H,) that those who run hold."""
        gpus = self.gpus if np.count_nonzero(self.running) == len(self.running) else self.gpus * self.running
        # in the first place, those on no host or on several
        held = np.bincount(self.host + 1, weights=gpus, minlength=hosts + 1)
        apart, held = held[0], held[1:].astype(np.int64)
        if not apart:
            return held
        counts = held.tolist()
        for spots in self.last[self.running & (self.host < 0)]:
            for host, gpus in spots:
                counts[host] += gpus
        return np.array(counts)

    def without(self, gone: Array) -> Standing:
        """Return the same without the jobs that are ``gone`` (n,)."""
        stay = np.flatnonzero(~gone)
        return Standing(*[column[stay] for column in self])

    def on_hosts(self, up: Array) -> Standing:
        """Return the same, where no job runs that has a host that is not ``up`` (H,)."""
        if up.all():
            return self
        works = up.tolist()
        alive = [
            running and all(works[host] for host, _ in last)
            for running, last in zip(self.running.tolist(), self.last, strict=True)
        ]
        return self._replace(running=np.array(alive, dtype=bool))

    def advanced(
        self, now: Number, end: Number, failing: Mapping[int, Number]
    ) -> tuple[Standing, dict[int, Number], dict[int, Number]]:
        """Return what a round from ``now`` to ``end`` makes of them, and when rows were completed, or lost by failures.

        It is what `fairopt.simulation.run.play` does with those that run.

        ``failing`` are the hosts that fail in the round, and when.
        """
        at = self._at()
        if at is None:
            return self, {}, {}
        over: Any = end  # numpy's types know no Fractions
        left, loading, speed = self.remaining[at], self.setup[at], self.speed[at]
        complete = now + loading + left / speed
        # each operation in the referee's order, so that floats are the same to the last bit
        till = np.minimum(complete, over)
        if failing:
            at = np.flatnonzero(self.running)
        lost = self._lost(at, till, failing) if failing else {}
        for place, moment in lost.items():
            till[place] = moment
        held = till - now
        spent = np.minimum(loading, held)
        done = complete <= over
        progress = np.where(done, left, (held - spent) * speed)
        if lost:  # the round's work, and the loading
            places = list(lost)
            done[places] = False
            progress[places] = spent[places] = now * 0
        after = self._with(at, left - progress, self.attained[at] + self.gpus[at] * held, loading - spent)
        if lost:
            running = self.running.copy()
            running[at[list(lost)]] = False
            after = after._replace(running=running)
        rows = self.rows[at]
        lost_rows = {int(rows[place]): moment for place, moment in lost.items()}
        if not np.count_nonzero(done):
            return after, {}, lost_rows
        gone = done
        if not isinstance(at, slice):
            gone = np.zeros(len(self.rows), dtype=bool)
            gone[at] = done
        return after.without(gone), dict(zip(rows[done].tolist(), till[done].tolist(), strict=True)), lost_rows

    def undisturbed(self, now: Number, length: Number, until: Number, most: int) -> tuple[Standing, int, Number]:
        """Return what rounds make of them that all end before ``until`` and before a job is done; how many; the end.

        Each of these rounds does what `advanced` does, and no more than ``most`` are played.
        """
        at = self._at()
        if at is None or not most or now + 2 * length >= until:
            return self, 0, now
        left, loading, speed, gpus = self.remaining[at], self.setup[at], self.speed[at], self.gpus[at]
        attained = self.attained[at]
        # a round early, because the sum of many rounds in floats is another than this one
        until = min(until, (now + loading + left / speed).min() - length)
        begin, end, rounds = now, now + length, 0
        while end < until and rounds < most:
            held: Any = end - now
            spent = np.minimum(loading, held)
            left, loading, attained = left - (held - spent) * speed, loading - spent, attained + gpus * held
            begin, now, end, rounds = now, end, end + length, rounds + 1
        if not rounds:
            return self, 0, now
        return self._with(at, left, attained, loading)._replace(lease=self.leased_until(begin, now)), rounds, now

    def _with(self, at: Any, remaining: Array, attained: Array, setup: Array) -> Standing:
        """Return the same with other values of those ``at`` a place, as `_at` says it."""
        if not isinstance(at, slice):
            new = self.remaining.copy(), self.attained.copy(), self.setup.copy()
            for column, values in zip(new, (remaining, attained, setup), strict=True):
                column[at] = values
            remaining, attained, setup = new
        return self._replace(remaining=remaining, attained=attained, setup=setup)

    def _at(self) -> Any:
        """Return where those are that run, None if nobody does; all at once where all do."""
        count = np.count_nonzero(self.running)
        if not count:
            return None
        return slice(None) if count == len(self.running) else np.flatnonzero(self.running)

    def _lost(self, at: Array, till: Array, failing: Mapping[int, Number]) -> dict[int, Number]:
        """Return when a host fails under jobs that still run, by their place in ``at``."""
        lost = {}
        for place, job in enumerate(at.tolist()):
            moments = [failing[host] for host, _ in self.last[job] if host in failing]
            if moments and min(moments) < till[place]:
                lost[place] = min(moments)
        return lost


def of_tuples(values: Sequence[Any]) -> Array:
    """Return a column of objects, also where they are tuples."""
    array = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def place(cluster: Cluster, spots: Spots) -> tuple[int, int]:
    """Return the host and the type of ``spots``, each -1 where it is not the only one."""
    gpu_types = {cluster.type_of[host] for host, _ in spots}
    return spots[0][0] if len(spots) == 1 else -1, gpu_types.pop() if len(gpu_types) == 1 else -1
