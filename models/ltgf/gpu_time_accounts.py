"""ASTRAEA's accounts: the GPU time that tenants and jobs have held and were due, kept from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Number
from fairopt.simulation.gpu_time import job_share, quota, tenant_share


@dataclass(frozen=True)
class Account:
    """One job's account: its tenant, the GPUs it asks for, its weight, GPU time held and due, and whether it ran.

    ``ran`` is about the last round. An account is kept as long as the job is present.
    """

    tenant: str
    gpus: int
    weight: Number
    held: Number
    due: Number
    ran: bool


@dataclass(frozen=True)
class GpuTimeAccounts:
    """The state of ASTRAEA: accounts of the jobs present, and of all tenants that ever had one.

    ``begun`` is t_begin, the first arrival. ``begin`` and ``end`` are those of the last round; the accounts are
    complete up to its beginning. ``held`` and ``due`` are GPU time by tenant.

    Source: ASTRAEA Sec. 4.2 (the integrals), 5.2 (from t_begin to t_now).
    """

    begun: Number
    begin: Number
    end: Number
    held: Mapping[str, Number]
    due: Mapping[str, Number]
    jobs: Mapping[str, Account]


@dataclass(frozen=True)
class Rho:
    """A fairness degree in a form that can be compared: time held, time due, and ``rate``, at which time is due now.

    Nothing is due yet to a job or tenant that has just arrived, and its degree is 0/0. Its limit is used instead: 0 if
    it holds nothing, else infinite. Infinite degrees are ordered by time held over rate, the smallest first.
    """

    held: Number
    due: Number
    rate: Number

    @property
    def key(self) -> tuple[Number, Number]:
        """The sort key: the least fairly served come first."""
        if self.due:
            return self.held / self.due, 0
        if not self.held:
            return 0, 0
        return INFINITY, self.held / self.rate if self.rate else INFINITY


@dataclass(frozen=True)
class Rates:
    """How fast GPU time is due at an instant: to tenants by name, to jobs by name."""

    tenants: Mapping[str, Number]
    jobs: Mapping[str, Number]


def rates(queue: Queue, present: Mapping[str, Account], demand_cap: bool) -> Rates:
    """Return the GPU time due per unit of time, to every tenant of the trace and to the jobs ``present``.

    M is all GPUs of the cluster, whether their hosts work or not. Source: Eq. (6)-(8), (13), (14), (16).
    """
    names = queue.jobs.tenants
    zero = queue.now * 0
    demand = dict.fromkeys(names, 0)
    weights = dict.fromkeys(names, zero)
    for account in present.values():
        demand[account.tenant] += account.gpus
        weights[account.tenant] += account.weight
    whole, gpus = sum(queue.jobs.tenant_weight), int(queue.cluster.gpus.sum())
    tenants = {
        name: tenant_share(demand[name], quota(weight, whole, gpus), demand_cap)
        for name, weight in zip(names, queue.jobs.tenant_weight, strict=True)
    }
    jobs = {
        name: job_share(each.gpus, each.weight, weights[each.tenant], tenants[each.tenant])
        for name, each in present.items()
    }
    return Rates(tenants, jobs)


def updated(gpu_time: GpuTimeAccounts, queue: Queue, demand_cap: bool) -> GpuTimeAccounts:
    """Return the books brought up to now, without the accounts of jobs that have left.

    A job is active from its arrival. A completed job counts as active, and as holding its GPUs, until the end of its
    last round. That is when the scheduler notices, and when its GPUs become free for others. (The measures of a run end
    at the completion itself: `fairopt.simulation.gpu_time`.) Jobs that fit no type have no account.
    """
    names = queue.jobs.tenants
    zero = queue.now * 0
    rows = {queue.jobs.names[row]: row for row in queue.fitting}
    fresh = [name for name in rows if name not in gpu_time.jobs]
    gone = [name for name in gpu_time.jobs if name not in rows]
    held = {name: gpu_time.held.get(name, zero) for name in names}
    for name in fresh:  # only if the books were opened late
        held[queue.jobs.tenant_of(rows[name])] += queue.attained[rows[name]]
    for name, account in gpu_time.jobs.items():
        # while the job is present, its held time is known exactly, failures included
        now_held = (
            queue.attained[rows[name]]
            if name in rows
            else account.held + (account.gpus * (gpu_time.end - gpu_time.begin) if account.ran else zero)
        )
        held[account.tenant] += now_held - account.held
    due, owed = {name: gpu_time.due.get(name, zero) for name in names}, dict.fromkeys((*gpu_time.jobs, *fresh), zero)
    closing = min(gpu_time.end, queue.now)
    arrivals = sorted((max(queue.jobs.arrival[rows[name]], gpu_time.begin), rows[name], name) for name in fresh)
    present = dict(gpu_time.jobs)
    times = sorted({gpu_time.begin, *([closing] if gone else []), *(time for time, _, _ in arrivals), queue.now})
    for since, until in pairwise(times):
        if gone and since >= closing:
            present = {name: account for name, account in present.items() if name in rows}
        while arrivals and arrivals[0][0] <= since:
            _, row, name = arrivals.pop(0)
            present[name] = _account(queue, row)
        rate = rates(queue, present, demand_cap)
        for name, each in rate.tenants.items():
            due[name] += each * (until - since)
        for name, each in rate.jobs.items():
            owed[name] += each * (until - since)
    kept = {}
    for name, row in rows.items():
        before = gpu_time.jobs.get(name) or _account(queue, row)
        kept[name] = replace(before, held=queue.attained[row], due=before.due + owed[name], ran=False)
    return GpuTimeAccounts(gpu_time.begun, queue.now, queue.end, held, due, kept)


def _account(queue: Queue, row: int) -> Account:
    jobs, zero = queue.jobs, queue.now * 0
    return Account(jobs.tenant_of(row), int(jobs.gpus[row]), jobs.weight[row], zero, zero, False)
