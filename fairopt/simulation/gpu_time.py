"""Long-term GPU-time fairness and finish-time fairness of a run, exactly.

The first is the GPU time of jobs and tenants over their fair GPU time, the second a job's time in the shared cluster
over its time on a part of its own.

Source: ASTRAEA, TPDS 2022, Sec. 4.2, Eq. (1)-(16); FFT, ICS 2025, Sec. 6.1.5, after Themis, NSDI 2020.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from fairopt.errors import BadInput
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Number
from fairopt.simulation.history import History
from fairopt.simulation.steps import StepFunction, combine

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
    return min(gpus, job_part(weight, weights, share))


def job_part(weight: Number, weights: Number, share: Number) -> Number:
    """Return a job's part of ``share`` by its weight out of all ``weights``, however many GPUs it has; 0 of none."""
    return share * weight / weights if weights else weights


class Window(NamedTuple):
    """A window of time, from ``begin`` to ``end``."""

    begin: Number
    end: Number


def overlap(window: Window | None, begin: Number, end: Number) -> Number:
    """Return the time from ``begin`` to ``end`` that lies in a window; None is all of time."""
    if window is not None:
        begin, end = max(begin, window.begin), min(end, window.end)
    return end - begin if begin < end else end * 0


#: Tenant, GPUs and weight of a job, which determine its fair share while it is active.
Claim = tuple[int, int, Number]


@dataclass(frozen=True, eq=False)
class GpuTime:
    """The GPU time of a history: held and fair, of jobs and tenants, as functions of time.

    * ``tenants``: whether jobs share only with jobs of their tenant, Eq. (13)-(15). Without, all jobs share the cluster
      as one tenant's, Eq. (1)-(5).
    * ``demand_cap``: Eq. (8). Without, Eq. (16), which then also gives the tenant's share in Eq. (13).
    * ``working``: whether M counts hosts only while they work. The paper has no failures, M is all hosts.
    * ``unschedulable``: whether jobs that fit no type of the cluster are active until the history ends, and so reduce
      the fair shares of others. By default they are not.

    A job is active from its arrival to its completion, or to the end of the history. Its held time includes loading,
    and rounds whose work a failure destroyed. Tenants are all those of the trace, also while they have no jobs, as Eq.
    (6) is printed. With one tenant, Eq. (13) equals Eq. (3) without the cap, but not with it: a tenant whose jobs ask
    for less than all GPUs then divides only what they ask for.

    Numbers are those of the trace: exact for an exact run. Source: ASTRAEA Sec. 4.2, Eq. (1)-(16).
    """

    history: History
    tenants: bool = True
    demand_cap: bool = True
    working: bool = False
    unschedulable: bool = False

    # -- inputs --------------------------------------------------------------------------------------------------
    @cached_property
    def run(self) -> Window:
        """From the first arrival to the end of the history."""
        arrival = self.history.trace.jobs.arrival
        begin: Number = arrival[0] if len(arrival) else self.history.until
        return Window(begin, max(begin, self.history.until))

    @cached_property
    def active(self) -> Mapping[str, Window]:
        """When each job that arrives before the history ends is active; those that fit no type if ``unschedulable``."""
        jobs, until = self.history.trace.jobs, self.history.until
        completion = self.history.completion
        never = (
            frozenset()
            if self.unschedulable or not len(jobs)
            else Queue.fresh(jobs, self.history.cluster, length=1).unschedulable
        )
        windows = {}
        for row, (name, arrival) in enumerate(zip(jobs.names, jobs.arrival, strict=True)):
            done = completion.get(name)
            if row not in never and arrival < until:
                windows[name] = Window(arrival, until if done is None else done)
        return windows

    @cached_property
    def gpus(self) -> StepFunction:
        """M: GPUs of the cluster, over time; with ``working`` those of hosts that work."""
        cluster = self.history.cluster
        zero = self.run.begin * 0
        changes: list[tuple[Number, Number]] = [(zero, int(cluster.gpus.sum()))]
        of_host: dict[str, list[tuple[Number, Number]]] = {}
        for outage in self.history.trace.outages if self.working else ():
            ends = [] if outage.end == INFINITY else [(outage.end, -1)]
            of_host.setdefault(outage.host, []).extend([(outage.begin, 1), *ends])
        for host, events in of_host.items():
            there = int(cluster.gpus[cluster.hosts.index(host)])
            # outages of one host may overlap
            down = combine(lambda count, there=there: -there if count else 0, StepFunction.of_changes(events))
            before: Number = 0
            for time, value in zip(down.times, down.values, strict=True):
                changes.append((time, value - before))
                before = value
        return StepFunction.of_changes(changes)

    # -- tenants -------------------------------------------------------------------------------------------------
    @cached_property
    def _jobs_of(self) -> Mapping[int, list[int]]:
        """The rows of active jobs, by tenant; all of them under 0 where tenants do not matter."""
        jobs = self.history.trace.jobs
        rows: dict[int, list[int]] = {number: [] for number in (range(len(jobs.tenants)) if self.tenants else range(1))}
        for row, name in enumerate(jobs.names):
            if name in self.active:
                rows[self._sharer(row)].append(row)
        return rows

    def _sharer(self, row: int) -> int:
        return int(self.history.trace.jobs.tenant[row]) if self.tenants else 0

    @cached_property
    def _weights(self) -> Mapping[int, StepFunction]:
        """The sum of the weights of active jobs, by tenant, over time."""
        # jobs are counted by weight, so that no rounding error is left when all of them are gone
        jobs = self.history.trace.jobs
        sums = {}
        for tenant, rows in self._jobs_of.items():
            by_weight: dict[Number, list[tuple[Number, Number, Number]]] = {}
            for row in rows:
                by_weight.setdefault(jobs.weight[row], []).append((*self.active[jobs.names[row]], 1))
            counts = [StepFunction.of_windows(windows) for windows in by_weight.values()]
            each = tuple(by_weight)
            sums[tenant] = combine(
                lambda *present, each=each: sum(
                    (weight * count for weight, count in zip(each, present, strict=True)), present[0] * 0
                ),
                *counts,
            )
        return sums

    @cached_property
    def tenant_demand(self) -> Mapping[str, StepFunction]:
        """Demand_j^tenant: GPUs that each tenant's active jobs ask for, over time. Source: Eq. (7)."""
        jobs = self.history.trace.jobs
        return {
            jobs.tenants[number]: StepFunction.of_windows(
                (*self.active[jobs.names[row]], int(jobs.gpus[row])) for row in rows
            )
            for number, rows in self._by_tenant.items()
        }

    @cached_property
    def _by_tenant(self) -> Mapping[int, list[int]]:
        if self.tenants:
            return self._jobs_of
        raise BadInput(
            "asked for tenants where all jobs share as one tenant's",
            place="GpuTime, tenants",
            remedy="Leave `tenants` True; with one tenant, ask for its jobs",
        )

    @cached_property
    def tenant_share(self) -> Mapping[str, StepFunction]:
        """FairShare_j^tenant: GPUs that are fair to each tenant, over time. Source: Eq. (6), (8), (16)."""
        jobs = self.history.trace.jobs
        weights = sum(jobs.tenant_weight)
        return {
            name: combine(
                lambda asked, gpus, weight=weight: tenant_share(asked, quota(weight, weights, gpus), self.demand_cap),
                self.tenant_demand[name],
                self.gpus,
            )
            for name, weight in zip(jobs.tenants, jobs.tenant_weight, strict=True)
        }

    @cached_property
    def tenant_held(self) -> Mapping[str, StepFunction]:
        """Alloc_j^tenant: GPUs that each tenant's jobs hold, over time. Source: Eq. (10)."""
        jobs = self.history.trace.jobs
        windows: dict[str, list[tuple[Number, Number, Number]]] = {name: [] for name in jobs.tenants}
        owner = {name: jobs.tenants[tenant] for name, tenant in zip(jobs.names, jobs.tenant, strict=True)}
        for name, rounds in self.history.ran.items():
            windows[owner[name]] += [(ran.begin, ran.end, ran.gpus) for ran in rounds]
        return {name: StepFunction.of_windows(each) for name, each in windows.items()}

    def of_tenant(self, tenant: str, window: Window | None = None) -> tuple[Number, Number]:
        """Return the GPU time that a tenant held and that was fair to it. Source: Eq. (9), (11)."""
        begin, end = window or self.run
        return self.tenant_held[tenant].integral(begin, end), self.tenant_share[tenant].integral(begin, end)

    # -- jobs ----------------------------------------------------------------------------------------------------
    @cached_property
    def job_held(self) -> Mapping[str, StepFunction]:
        """Alloc_i^job: GPUs that each job holds, over time. Source: Eq. (1)."""
        return {
            name: StepFunction.of_windows((ran.begin, ran.end, ran.gpus) for ran in rounds)
            for name, rounds in self.history.ran.items()
        }

    @cached_property
    def _claims(self) -> Mapping[Claim, StepFunction]:
        """The fair GPUs of an active job over time, for all jobs with one tenant, size and weight."""
        names = self.history.trace.jobs.tenants
        shares: Mapping[int, StepFunction] = (
            {number: self.tenant_share[name] for number, name in enumerate(names)} if self.tenants else {0: self.gpus}
        )
        return {
            (tenant, gpus, weight): combine(
                lambda weights, share, gpus=gpus, weight=weight: job_share(gpus, weight, weights, share),
                self._weights[tenant],
                shares[tenant],
            )
            for tenant, gpus, weight in {self._claim(row) for rows in self._jobs_of.values() for row in rows}
        }

    def _claim(self, row: int) -> Claim:
        jobs = self.history.trace.jobs
        return self._sharer(row), int(jobs.gpus[row]), jobs.weight[row]

    def of_job(self, job: str, window: Window | None = None) -> tuple[Number, Number]:
        """Return the GPU time that a job held and that was fair to it, over ``window`` or the time that it is active.

        Fair GPU time accrues only while the job is active. Source: Eq. (2)-(4), (13)-(14).
        """
        if job not in self.active:
            return self.run.begin * 0, self.run.begin * 0
        active = self.active[job]
        begin, end = window or active
        held = self.job_held[job].integral(begin, end) if job in self.job_held else begin * 0
        fair = self._claims[self._claim(self.history.row[job])]
        return held, fair.integral(max(begin, active.begin), min(end, active.end))


def ratio(held: Number, fair: Number) -> Number | None:
    """Return rho, held over fair time; None where the fair time is 0. Source: Eq. (5), (12), (15)."""
    return held / fair if fair else None


def job_fairness(history: History, *, window: Window | None = None, **options: bool) -> Mapping[str, Number | None]:
    """Return rho of each job that was present, over ``window`` or its own time; None where its fair time is 0.

    ``options`` are those of `GpuTime`. Source: ASTRAEA Eq. (15); without ``tenants`` Eq. (5).
    """
    time = GpuTime(history, **options)
    return {job: ratio(*time.of_job(job, window)) for job in history.ran}


def tenant_fairness(history: History, *, window: Window | None = None, **options: bool) -> Mapping[str, Number | None]:
    """Return rho of each tenant over ``window`` or the run, as `job_fairness`. Source: ASTRAEA Eq. (12)."""
    time = GpuTime(history, **options)
    return {tenant: ratio(*time.of_tenant(tenant, window)) for tenant in history.trace.jobs.tenants}


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
    jobs, speeds = jobs * int(queue.jobs.gpus[row]), queue.jobs.throughput[row].tolist()
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
    alone: Number = queue.jobs.work[row] / max(queue.jobs.throughput[row][queue.fits[row]])
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
    return StepFunction.of_windows((begin, end, 1) for begin, end in GpuTime(history).active.values())
