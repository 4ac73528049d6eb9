"""Long-term GPU-time fairness and finish-time fairness of a run, exactly.

The first is the GPU time of jobs and tenants over their fair GPU time, the second a job's time in the shared cluster
over its time on a part of its own.

Source: ASTRAEA, TPDS 2022, Sec. 4.2, Eq. (1)-(16); FFT, ICS 2025, Sec. 6.1.5, after Themis, NSDI 2020.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Array, Number, objects
from fairopt.simulation.history import History
from fairopt.simulation.job_states import Hosts
from fairopt.simulation.steps import StepFunction

#: A job with a smaller ratio loses by sharing (Sec. 6.3).
LOSS = Fraction(95, 100)


def quota(weight: Number, weights: Number, gpus: Number) -> Number:
    """Return a tenant's GPUs by weight, of ``gpus`` in all; ``weights`` is the sum. Source: Eq. (6)."""
    return gpus * weight / weights


class Window(NamedTuple):
    """A window of time, from ``begin`` to ``end``."""

    begin: Number
    end: Number


def overlap(window: Window | None, begin: Number, end: Number) -> Number:
    """Return the time from ``begin`` to ``end`` that lies in a window; None is all of time."""
    if window is not None:
        begin, end = max(begin, window.begin), min(end, window.end)
    return end - begin if begin < end else end * 0


def overlaps(window: Window | None, begin: Array, end: Array) -> Array:
    """Return `overlap` of each of many spans (m,)."""
    if window is not None:
        first: Any = window.begin  # numpy's types know no Fractions
        last: Any = window.end
        begin, end = np.maximum(begin, first), np.minimum(end, last)
    return np.where(begin < end, end - begin, end * 0)


# -- fair shares over time -------------------------------------------------------------------------------------------
class FairShares:
    """The fair GPU-time of jobs and tenants, and how many jobs are present.

    It is told, by rising time, which jobs are completed, and how many GPUs there are; arrivals are those of the trace.
    `until` works out at once what has accrued until a moment. Of each row of the trace (n,): ``presence``, the number
    of jobs present times time, and ``fair``, a job's fair GPU-time, both from its arrival to its completion, or to the
    moment; 0 for a job that was never active. Of each tenant (T,): ``due``, its fair GPU-time in the window.

    ``queue`` is that of all jobs of the trace, ``able`` (n,) says which of them are active from their arrival on;
    ``window`` is that in which the fair GPU-time of tenants counts, ``of_jobs`` that of jobs, None for all of time.

    * ``tenants``: whether jobs share only with jobs of their tenant, Eq. (13)-(15). Without, all jobs share the cluster
      as one tenant's, Eq. (1)-(5).
    * ``demand_cap``: Eq. (8). Without, Eq. (16), which then also gives the tenant's share in Eq. (13).

    Tenants are all those of the trace, also while they have no jobs, as Eq. (6) is printed. With one tenant, Eq. (13)
    equals Eq. (3) without the cap, but not with it: a tenant whose jobs ask for less than all GPUs then divides only
    what they ask for. Source: ASTRAEA Sec. 4.2, Eq. (1)-(16).
    """

    def __init__(
        self,
        queue: Queue,
        able: Sequence[bool],
        window: Window | None,
        *,
        of_jobs: Window | None = None,
        tenants: bool = True,
        demand_cap: bool = True,
    ) -> None:
        jobs, cast = queue.jobs, queue.arithmetic.cast
        self._jobs, self._now, self._cast = jobs, queue.now, cast
        self._window, self._of_jobs, self._capped = window, of_jobs, tenants and demand_cap
        self._able = np.flatnonzero(np.asarray(able, dtype=bool))
        self._weight = jobs.tenant_weight.tolist() if tenants else [queue.now + 1]
        self._owner = jobs.tenant if tenants else np.zeros(len(jobs), dtype=np.int64)
        # jobs of one kind have the same size and weight: in a tenant each of them is due the same
        sizes, size = np.unique(jobs.gpus, return_inverse=True)
        weights, weight = np.unique(jobs.weight, return_inverse=True)
        self._kind = size * len(weights) + weight
        self._kinds = [(gpus, weight) for gpus in sizes.tolist() for weight in weights.tolist()]
        self._events: list[tuple[int, Number]] = []  # of rows that are completed; -1 where the GPUs change
        self._gpus = [int(queue.cluster.gpus.sum())]
        self._known: tuple[Number, int] | None = None  # the time that was worked out last, after so many events

    def resize(self, time: Number, gpus: int) -> None:
        """Let M be so many GPUs from a time on, of which each tenant has its part by weight. Source: Eq. (6)."""
        self._events.append((-1, time))
        self._gpus.append(gpus)

    def complete(self, row: int, time: Number) -> None:
        """Take in that a job is completed at a time, not before that of the last call."""
        self._events.append((row, time))

    def until(self, time: Number) -> None:
        """Work out what has accrued until a time, not before that of the last call."""
        if (time, len(self._events)) == self._known:
            return
        self._known = time, len(self._events)
        arrival = self._jobs.arrival[self._able]
        came = bisect_left(arrival, time)
        told = np.array([row for row, _ in self._events], dtype=np.int64)
        rows = np.concatenate((told, self._able[:came]))
        times = np.concatenate((self._column([at for _, at in self._events]), arrival[:came]))
        change = np.concatenate((np.where(told < 0, 0, -1), np.ones(came, dtype=np.int64)))
        order = np.argsort(times, kind="stable")  # who is done at a moment goes before who comes then
        rows, times, change = rows[order], times[order], change[order]
        nothing = self._column([self._now * 0]) * np.zeros(len(self._jobs), dtype=np.int64)
        self.presence, self.fair = nothing.copy(), nothing.copy()
        self.due = self._column([self._now * 0] * len(self._weight))
        _between(self.presence, _sums(np.cumsum(change) * np.diff(self._joined(times, time))), rows, change)
        owner = np.where(rows < 0, -1, self._owner[rows])
        for tenant in range(len(self._weight)):
            at = np.flatnonzero((owner == tenant) | (owner < 0))
            self._of_tenant(tenant, rows[at], times[at], change[at], time)

    def _of_tenant(self, tenant: int, rows: Array, times: Array, change: Array, time: Number) -> None:
        """Work out a tenant's part, by its events and the cluster's. Source: Eq. (3)-(4), (8), (13)-(14), (16)."""
        moments = self._joined(self._now, times, time)  # between two of these nothing changes
        kinds, zeros = self._kind[rows], self._joined(self._now, times, time) * 0
        counts = {
            kind: np.concatenate(([0], np.cumsum(np.where(kinds == kind, change, 0))))
            for kind in np.unique(kinds[rows >= 0]).tolist()
        }
        demand = sum((count * self._kinds[kind][0] for kind, count in counts.items()), np.zeros(len(rows) + 1, int))
        weights = sum((count * self._kinds[kind][1] for kind, count in counts.items()), demand * 0)
        quotas = self._column([quota(self._weight[tenant], sum(self._weight), gpus) for gpus in self._gpus])
        share = quotas[np.concatenate(([0], np.cumsum(rows < 0)))]
        share = np.minimum(demand, share) if self._capped else share
        for kind, count in counts.items():
            (gpus, weight), there = self._kinds[kind], np.flatnonzero(count)
            # a job's fair GPUs: its part by weight, at most its own
            due = np.minimum(share[there] * weight / weights[there], gpus)
            due = due * overlaps(self._of_jobs, moments[there], moments[there + 1])
            # each time that there were none of a kind, the next begins anew
            begins = np.flatnonzero(np.diff(there, prepend=-2) != 1)
            sums = zeros.copy()
            for begin, end in pairwise([*begins.tolist(), len(there)]):
                sums[there[begin] + 1 : there[begin] + 1 + end - begin] = np.add.accumulate(due[begin:end])
            own = np.flatnonzero(kinds == kind)
            _between(self.fair, sums[np.append(own + 1, -1)], rows[own], change[own])
        self.due[tenant] = _sums(share * overlaps(self._window, moments[:-1], moments[1:]))[-1]

    def _column(self, values: Sequence[Number]) -> Array:
        return self._cast(objects(values))

    def _joined(self, *values: Array | Number) -> Array:
        return np.concatenate([each if isinstance(each, np.ndarray) else self._column([each]) for each in values])


def _sums(values: Array) -> Array:
    """Return the sum before each of the values, and of all; they are added one by one, in their order."""
    sums = np.add.accumulate(values)
    return np.concatenate((sums[:1] * 0, sums))


def _between(into: Array, sums: Array, rows: Array, change: Array) -> None:
    """Write what the ``sums`` (m + 1,) say at the end of each row's time, less what they say at its beginning.

    ``change`` (m,) is 1 where a row begins and -1 where it ends; the last of the sums is for those that do not.
    """
    begins, ends = np.flatnonzero(change > 0), np.flatnonzero(change < 0)
    if len(begins):
        into[rows[begins]] = sums[-1]
        into[rows[ends]] = sums[ends]
        into[rows[begins]] -= sums[begins]


# -- of a history ----------------------------------------------------------------------------------------------------
def active(history: History, *, unschedulable: bool = False) -> Mapping[int, Window]:
    """Return when each job that arrives before the history ends is active, by its row in the trace.

    That is from its arrival to its completion, or to the end of the history; those that fit no type of the cluster
    are, to the end, if ``unschedulable``.
    """
    jobs, until = history.trace.jobs, history.until
    if not history.rounds or not len(jobs):
        return {}
    never = frozenset() if unschedulable else Queue.fresh(jobs, history.cluster, length=1).unschedulable
    done = [history.completion.get(name) for name in jobs.names]
    return {
        row: Window(arrival, until if (end := done[row]) is None else end)
        for row, arrival in enumerate(jobs.arrival.tolist())
        if row not in never and arrival < until
    }


def gpu_time(
    history: History,
    window: Window | None = None,
    *,
    tenants: bool = True,
    demand_cap: bool = True,
    working: bool = False,
    unschedulable: bool = False,
) -> tuple[Mapping[str, tuple[Number, Number]], Mapping[str, tuple[Number, Number]]]:
    """Return the GPU-time that jobs, and that tenants, held and that was fair to them, by name.

    It is that within ``window``; for None, of jobs while they are active, of tenants from the first arrival to the end
    of the history. Held time includes loading, and rounds whose work a failure destroyed.

    * ``tenants``, ``demand_cap``: as `FairShares` has them. Without ``tenants`` the fair time of tenants is not said.
    * ``working``: whether M counts hosts only while they work. The paper has no failures, M is all hosts.
    * ``unschedulable``: whether jobs that fit no type of the cluster are active until the history ends, and so reduce
      the fair shares of others. By default they are not.

    Numbers are those of the trace: exact for an exact run. Source: ASTRAEA Sec. 4.2, Eq. (1)-(16).
    """
    jobs, cluster, until = history.trace.jobs, history.cluster, history.until
    there = active(history, unschedulable=unschedulable)
    first = jobs.arrival[0] if len(jobs) else until
    run = Window(first, max(first, until)) if window is None else window
    held_by_job = {name: _held(history, name, window) for name in history.ran}
    held = dict.fromkeys(jobs.tenants, until * 0)
    for row, name in enumerate(jobs.names):
        if name in held_by_job:
            held[jobs.tenants[jobs.tenant[row]]] += _held(history, name, run)
    fair: dict[str, Number] = {}
    due: Sequence[Number] = [until * 0] * len(jobs.tenants)
    if history.rounds:
        queue = Queue.fresh(jobs, cluster, length=1)
        able = [row in there for row in range(len(jobs))]
        shares = FairShares(queue, able, run, of_jobs=window, tenants=tenants, demand_cap=demand_cap)
        events: list[tuple[Number, int]] = [(each.end, row) for row, each in there.items()]
        hosts, time = Hosts(cluster, history.trace), queue.now
        while working and time < until:
            events.append((time, -1))  # hosts fail or come back
            time = hosts.next_change(time)
        for time, row in sorted(events):
            if row < 0:
                shares.resize(time, int(cluster.gpus[hosts.up(time)].sum()))
            else:
                shares.complete(row, time)
        shares.until(run.end if until < run.end < INFINITY else until)
        due, own = shares.due.tolist(), shares.fair.tolist()
        fair = {jobs.names[row]: own[row] for row in there}
    return (
        {name: (each, fair.get(name, until * 0)) for name, each in held_by_job.items()},
        {name: (held[name], each) for name, each in zip(jobs.tenants, due, strict=True)} if tenants else {},
    )


def _held(history: History, name: str, window: Window | None) -> Number:
    """Return the GPU-time that a job held. Source: Eq. (1)-(2)."""
    return sum((ran.gpus * overlap(window, ran.begin, ran.end) for ran in history.ran[name]), history.until * 0)


def ratio(held: Number, fair: Number) -> Number | None:
    """Return rho, held over fair time; None where the fair time is 0. Source: Eq. (5), (12), (15)."""
    return held / fair if fair else None


def job_fairness(history: History, *, window: Window | None = None, **options: bool) -> Mapping[str, Number | None]:
    """Return rho of each job that was present, over ``window`` or its own time; None where its fair time is 0.

    ``options`` are those of `gpu_time`. Source: ASTRAEA Eq. (15); without ``tenants`` Eq. (5).
    """
    return {job: ratio(*each) for job, each in gpu_time(history, window, **options)[0].items()}


def tenant_fairness(history: History, *, window: Window | None = None, **options: bool) -> Mapping[str, Number | None]:
    """Return rho of each tenant over ``window`` or the run, as `job_fairness`. Source: ASTRAEA Eq. (12)."""
    return {tenant: ratio(*each) for tenant, each in gpu_time(history, window, **options)[1].items()}


def sharing_loss(fairness: Mapping[str, Number | None], below: Number = LOSS) -> Fraction | None:
    """Return the part of the values (None apart) that is below ``below``. Source: ASTRAEA Sec. 6.3."""
    values = sorted(value for value in fairness.values() if value is not None)
    # floats are slowly compared with fractions
    return Fraction(bisect_left(values, below), len(values)) if values else None


# -- finish-time fairness --------------------------------------------------------------------------------------------
#: A definition of T_id, a job's time without the others: of a queue of all jobs, the job's row in it, and N, the number
#: of jobs that share the cluster.
IdealTime: TypeAlias = Callable[[Queue, int, Number], Number]


def time_on_own_part(queue: Queue, row: Any, jobs: Any) -> Any:
    """Return a job's time alone on 1/N of the GPUs of each type; N is ``jobs``. Of many jobs, columns (m,) of them.

    Where the part of a type is smaller than the gang, the job holds the whole gang for the fraction of time with the
    same GPU-time, on one type at a time, the fastest first. So T_id stays finite, as in Themis and Gavel.

    Source: Themis (a cluster of its own with 1/N of the resources); Gavel, OSDI 2020 (1/N of the time on each type).
    """
    rows = np.atleast_1d(row)
    speeds, fits, wanted = _mean_speeds(queue, rows), queue.fits[rows], jobs * queue.jobs.gpus[rows]
    # types of one speed keep their order
    order = np.argsort(np.where(fits, -speeds, speeds * 0 + 1), axis=1, kind="stable")
    speed, left = queue.jobs.work[rows] * 0, queue.jobs.work[rows] * 0 + 1
    for gpu_type in order.T:
        at = np.arange(len(rows)), gpu_type
        part = np.where(fits[at], np.minimum(left, queue.capacity[gpu_type] / wanted), left * 0)
        speed, left = speed + part * speeds[at], left - part
    time = queue.jobs.work[rows] / speed
    return time if isinstance(row, np.ndarray) else time.tolist()[0]


def time_on_whole_cluster(queue: Queue, row: Any, jobs: Any, *, times_jobs: bool = False) -> Any:
    """Return a job's time alone on the whole cluster, on its fastest type; with ``times_jobs`` that times N, ``jobs``.

    Of many jobs, columns (m,) of them.
    Source: FFT Sec. 6.1.5 literally ("exclusive cluster"); with ``times_jobs`` ASTRAEA Sec. 4.1.2.
    """
    rows = np.atleast_1d(row)
    time = queue.jobs.work[rows] / (_mean_speeds(queue, rows) * queue.fits[rows]).max(axis=1)
    time = time * jobs if times_jobs else time
    return time if isinstance(row, np.ndarray) else time.tolist()[0]


def ideal_times(ideal: IdealTime, queue: Queue, rows: Array, jobs: Array) -> Array:
    """Return T_id of jobs (m,), of those definitions that take columns at once; ``jobs`` (m,) is N of each."""
    known: Any = ideal
    if (known.func if isinstance(known, partial) else known) in (time_on_own_part, time_on_whole_cluster):
        return np.asarray(known(queue, rows, jobs))
    return queue.arithmetic.cast(objects(map(partial(ideal, queue), rows.tolist(), jobs.tolist())))


def _mean_speeds(queue: Queue, rows: Array) -> Array:
    """Return the mean speeds (m, k) of jobs alone on their own number of GPUs of each type."""
    jobs = queue.jobs
    if not jobs.profiles:
        return jobs.throughput[rows]
    return np.array([jobs.mean_speed(row) for row in rows.tolist()], dtype=jobs.throughput.dtype)


def finish_time_fairness(history: History, ideal: IdealTime = time_on_own_part) -> Mapping[str, Number]:
    """Return rho = T_sh / T_id of each completed job; above 1 it was worse off than alone on its part.

    T_sh is from arrival to completion; N is the mean number of jobs present meanwhile that fit some type.
    Source: FFT Sec. 6.1.5; Themis (N is the contention over the time of the job).
    """
    jobs = history.trace.jobs
    if not history.rounds:
        return {}
    queue, present = Queue.fresh(jobs, history.cluster, length=1), presence(history)
    spent, others = {}, []
    for row, name in enumerate(jobs.names):
        done = history.completion.get(name)
        if done is not None:
            spent[row] = done - history.arrival[name]
            others.append(present.integral(history.arrival[name], done) / spent[row])
    alone = ideal_times(ideal, queue, np.array(list(spent), dtype=np.int64), jobs.arithmetic.cast(objects(others)))
    return {jobs.names[row]: time / own for (row, time), own in zip(spent.items(), alone.tolist(), strict=True)}


def presence(history: History) -> StepFunction:
    """Return the number of jobs present over time, up to the run's end: arrived, not completed, fit for some type."""
    return StepFunction.of_windows((begin, end, 1) for begin, end in active(history).values())
