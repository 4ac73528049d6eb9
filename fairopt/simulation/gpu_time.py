"""Long-term GPU-time fairness and finish-time fairness of a run, exactly.

The first is the GPU time of jobs and tenants over their fair GPU time, the second a job's time in the shared cluster
over its time on a part of its own.

Source: ASTRAEA, TPDS 2022, Sec. 4.2, Eq. (1)-(16); FFT, ICS 2025, Sec. 6.1.5, after Themis, NSDI 2020.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import compress
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Number
from fairopt.simulation.history import History
from fairopt.simulation.job_states import Hosts
from fairopt.simulation.steps import StepFunction

#: A job with a smaller ratio loses by sharing (Sec. 6.3).
LOSS = Fraction(95, 100)


def quota(weight: Number, weights: Number, gpus: Number) -> Number:
    """Return a tenant's GPUs by weight, of ``gpus`` in all; ``weights`` is the sum. Source: Eq. (6)."""
    return gpus * weight / weights


def tenant_share(demand: Number, own: Number, demand_cap: bool) -> Number:
    """Return a tenant's fair GPUs: its quota ``own``, with ``demand_cap`` at most its demand. Source: Eq. (8), (16)."""
    return min(demand, own) if demand_cap else own


def job_share(gpus: int, weight: Number, weights: Number, share: Number) -> Number:
    """Return a job's fair GPUs at an instant: its part, by weight, of ``share``, at most its ``gpus``.

    ``weights`` is the sum over all active jobs that divide ``share``. Source: Eq. (3)-(4), (13)-(14).
    """
    part = share * weight / weights if weights else weights
    return part if part < gpus else gpus


class Window(NamedTuple):
    """A window of time, from ``begin`` to ``end``."""

    begin: Number
    end: Number


def overlap(window: Window | None, begin: Number, end: Number) -> Number:
    """Return the time from ``begin`` to ``end`` that lies in a window; None is all of time."""
    if window is not None:
        begin, end = max(begin, window.begin), min(end, window.end)
    return end - begin if begin < end else end * 0


# -- fair shares over time -------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Alike:
    """Active jobs of a tenant with the same size and weight: how many, and the fair GPU-time of each so far."""

    gpus: int
    weight: Number
    due: Number
    count: int = 0


@dataclass(slots=True)
class _Tenant:
    """A tenant's active jobs, and what accrued up to ``since``, by job and for the tenant in its window."""

    weight: Number
    quota: Number
    capped: bool
    since: Number
    fair: Number
    demand: int = 0
    alike: dict[tuple[int, Number], _Alike] = field(default_factory=dict)

    def pass_to(self, time: Number, window: Window | None, of_jobs: Window | None) -> None:
        """Let all accrue up to a time. Source: Eq. (3)-(4), (8), (13)-(14), (16)."""
        since, self.since = self.since, time
        if not time > since or not (self.demand or not self.capped):
            return
        share = tenant_share(self.demand, self.quota, self.capped)
        # jobs are counted by weight, so that no rounding error is left when all of them are gone
        weights: Number = 0
        for each in self.alike.values():
            weights += each.weight * each.count
        span = time - since if of_jobs is None else overlap(of_jobs, since, time)
        for each in self.alike.values():  # `job_share`, which is called too often to be called
            part = share * each.weight / weights if weights else weights
            each.due += (part if part < each.gpus else each.gpus) * span
        self.fair += share * (time - since if window is None else overlap(window, since, time))

    def change(self, gpus: int, weight: Number, by: int) -> Number:
        """Count a job that becomes active (1), or is not any more (-1); return what is due to one like it so far."""
        self.demand += by * gpus
        alike = self.alike.get((gpus, weight))
        if alike is None:
            alike = self.alike[gpus, weight] = _Alike(gpus, weight, self.since * 0)
        alike.count += by
        if not alike.count:
            del self.alike[gpus, weight]
        return alike.due


class FairShares:
    """The fair GPU-time of jobs and tenants, and how many jobs are present, as time passes.

    Completions come by rising time, arrivals are those of the trace; nothing is kept but what is needed for the jobs
    present. ``queue`` is that of all jobs of the trace, ``able`` (n,) says which of them are active from their arrival
    on; ``window`` is that in which the fair GPU-time of tenants counts, ``of_jobs`` that of jobs, None for all of time.

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
        jobs, now = queue.jobs, queue.now
        self._window, self._of_jobs, self._able = window, of_jobs, able
        self._arrival, self._now, self._next, self._last = jobs.arrival.tolist(), now, 0, len(jobs)
        weights = jobs.tenant_weight.tolist() if tenants else [now + 1]
        self._tenants = [_Tenant(each, now, tenants and demand_cap, now, now) for each in weights]
        self._owner = jobs.tenant.tolist() if tenants else [0] * len(jobs)
        self._size, self._weight = jobs.gpus.tolist(), jobs.weight.tolist()
        self._count, self._presence = 0, now
        self._begun: dict[int, tuple[Number, Number]] = {}  # what had accrued when a job came
        self.resize(now, int(queue.cluster.gpus.sum()))

    def resize(self, time: Number, gpus: int) -> None:
        """Let M be so many GPUs from a time on, of which each tenant has its part by weight. Source: Eq. (6)."""
        self.of_tenants(time)
        weights = sum(each.weight for each in self._tenants)
        for each in self._tenants:
            each.quota = quota(each.weight, weights, gpus)

    def pass_to(self, time: Number) -> None:
        """Let all accrue up to a time: the jobs that arrive before it become active."""
        while self._next < self._last and self._arrival[self._next] < time:
            row, self._next = self._next, self._next + 1
            if self._able[row]:
                self._enter(row, self._arrival[row])
        self._at(time)

    def complete(self, row: int, time: Number) -> tuple[Number, Number]:
        """Return what accrued for a job that is completed at a time, not before that of the last call.

        That is the number of jobs present times time, and its fair GPU-time, both from its arrival on.
        """
        self.pass_to(time)
        (presence, fair), tenant = self._begun.pop(row), self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window, self._of_jobs)
        due = tenant.change(self._size[row], self._weight[row], -1)
        self._count -= 1
        return self._presence - presence, due - fair

    def of(self, row: int, time: Number) -> Number:
        """Return the fair GPU-time of a job until a time, not before that of the last call; 0 if it fits no type."""
        self.pass_to(time)
        begun = self._begun.get(row)
        if begun is None:
            return time * 0
        tenant = self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window, self._of_jobs)
        due: Number = tenant.alike[self._size[row], self._weight[row]].due
        return due - begun[1]

    def of_tenants(self, time: Number) -> list[Number]:
        """Return the fair GPU-time of each tenant within the window so far."""
        self.pass_to(time)
        for tenant in self._tenants:
            tenant.pass_to(time, self._window, self._of_jobs)
        return [tenant.fair for tenant in self._tenants]

    def _enter(self, row: int, time: Number) -> None:
        self._at(time)
        tenant = self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window, self._of_jobs)
        due = tenant.change(self._size[row], self._weight[row], 1)
        self._count += 1
        self._begun[row] = self._presence, due

    def _at(self, time: Number) -> None:
        self._presence += self._count * (time - self._now)
        self._now = time


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
                fair[jobs.names[row]] = shares.complete(row, time)[1]
        due = shares.of_tenants(run.end if until < run.end < INFINITY else until)
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


def time_on_own_part(queue: Queue, row: int, jobs: Number) -> Number:
    """Return a job's time alone on 1/N of the GPUs of each type; N is ``jobs``.

    Where the part of a type is smaller than the gang, the job holds the whole gang for the fraction of time with the
    same GPU-time, on one type at a time, the fastest first. So T_id stays finite, as in Themis and Gavel.

    Source: Themis (a cluster of its own with 1/N of the resources); Gavel, OSDI 2020 (1/N of the time on each type).
    """
    jobs, speeds = jobs * int(queue.jobs.gpus[row]), queue.jobs.mean_speed(row)
    types = zip(speeds, queue.capacity.tolist(), queue.fits[row].tolist(), strict=True)
    there = [(each, gpus) for each, gpus, fits in types if fits]
    there.sort(key=itemgetter(0), reverse=True)  # types of one speed keep their order
    speed, left = queue.now * 0, queue.now * 0 + 1
    for each, gpus in there:
        part = min(left, gpus / jobs)
        speed, left = speed + part * each, left - part
    time: Number = queue.jobs.work[row] / speed
    return time


def time_on_whole_cluster(queue: Queue, row: int, jobs: Number, *, times_jobs: bool = False) -> Number:
    """Return a job's time alone on the whole cluster, on its fastest type; with ``times_jobs`` that times N, ``jobs``.

    Source: FFT Sec. 6.1.5 literally ("exclusive cluster"); with ``times_jobs`` ASTRAEA Sec. 4.1.2.
    """
    alone: Number = queue.jobs.work[row] / max(compress(queue.jobs.mean_speed(row), queue.fits[row]))
    return alone * jobs if times_jobs else alone


def finish_time_fairness(history: History, ideal: IdealTime = time_on_own_part) -> Mapping[str, Number]:
    """Return rho = T_sh / T_id of each completed job; above 1 it was worse off than alone on its part.

    T_sh is from arrival to completion; N is the mean number of jobs present meanwhile that fit some type.
    Source: FFT Sec. 6.1.5; Themis (N is the contention over the time of the job).
    """
    jobs = history.trace.jobs
    if not history.rounds:
        return {}
    queue = Queue.fresh(jobs, history.cluster, length=1)
    present = presence(history)
    rho = {}
    for row, name in enumerate(jobs.names):
        done = history.completion.get(name)
        if done is not None:
            spent = done - history.arrival[name]
            others = present.integral(history.arrival[name], done) / spent
            rho[name] = spent / ideal(queue, row, others)
    return rho


def presence(history: History) -> StepFunction:
    """Return the number of jobs present over time, up to the run's end: arrived, not completed, fit for some type."""
    return StepFunction.of_windows((begin, end, 1) for begin, end in active(history).values())
