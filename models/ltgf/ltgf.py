"""ASTRAEA: long-term GPU-time fairness, by tenants first and then by jobs, with leases."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.common.schedulers import Room, check_lease, lease_length, staying_first
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem import Jobs
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Number
from fairopt.simulation import Consolidated, Placement, Request, placed
from fairopt.simulation.gpu_time import job_share, quota, tenant_share


@dataclass(frozen=True, slots=True)
class Account:
    """One job's account: its tenant, the GPUs it asks for, its weight, GPU time held and due, and whether it ran.

    ``ran`` is about the last round, and set by the decision. An account is kept as long as the job is present.
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


def rho_order(held: Number, due: Number, rate: Number) -> tuple[Number, Number]:
    """Return what fairness degrees rho = held / due are ordered by: the least fairly served come first.

    Nothing is due yet to a job or tenant that has just arrived, and its degree is 0/0. Its limit is used instead: 0 if
    it holds nothing, else infinite. Infinite degrees are ordered by time held over ``rate``, at which time is due now,
    the smallest first.
    """
    if due:
        return held / due, 0
    if not held:
        return 0, 0
    return INFINITY, held / rate if rate else INFINITY


#: What a job's fair share at an instant depends on: tenant, GPUs and weight; jobs with the same have the same.
ShareBasis: TypeAlias = tuple[str, int, Number]
basis_of = attrgetter("tenant", "gpus", "weight")
#: How fast GPU time is due at an instant: to tenants by name, to jobs by what they are.
Rates = tuple[Mapping[str, Number], Mapping[ShareBasis, Number]]


def rates(queue: Queue, active: Mapping[ShareBasis, int], demand_cap: bool) -> Rates:
    """Return the GPU time due per unit of time, to every tenant of the trace and to the ``active`` jobs, in numbers.

    M is all GPUs of the cluster, whether their hosts work or not. Source: Eq. (6)-(8), (13), (14), (16).
    """
    names = queue.jobs.tenants
    zero = queue.now * 0
    demand = dict.fromkeys(names, 0)
    weights = dict.fromkeys(names, zero)
    for (tenant, size, weight), count in active.items():
        demand[tenant] += size * count
        weights[tenant] += weight * count
    whole, gpus = sum(tenant_weights := queue.jobs.tenant_weight.tolist()), int(queue.cluster.gpus.sum())
    own = [quota(weight, whole, gpus) for weight in tenant_weights]
    tenants = {name: tenant_share(demand[name], each, demand_cap) for name, each in zip(names, own, strict=True)}
    jobs = {each: job_share(*each[1:], weights[each[0]], tenants[each[0]]) for each in active}
    return tenants, jobs


@lru_cache(maxsize=2)  # the jobs are the same while nobody comes and nobody is done
def share_bases(jobs: Jobs) -> list[ShareBasis]:
    """Return what each job's fair share depends on."""
    names = map(jobs.tenants.__getitem__, jobs.tenant.tolist())
    return list(zip(names, jobs.gpus.tolist(), jobs.weight.tolist(), strict=True))


def updated(gpu_time: GpuTimeAccounts, queue: Queue, demand_cap: bool) -> GpuTimeAccounts:
    """Return the books brought up to now, without the accounts of jobs that have left.

    A job is active from its arrival. A completed job counts as active, and as holding its GPUs, until the end of its
    last round. That is when the scheduler notices, and when its GPUs become free for others. (The measures of a run end
    at the completion itself: `fairopt.simulation.gpu_time`.) Jobs that fit no type have no account.
    """
    zero = queue.now * 0
    attained, arrival, claims = queue.attained.tolist(), queue.jobs.arrival.tolist(), share_bases(queue.jobs)
    names = queue.jobs.names
    rows = {names[row]: row for row in queue.fitting}
    same = rows.keys() == gpu_time.jobs.keys()
    fresh = [] if same else [name for name in rows if name not in gpu_time.jobs]
    gone = [] if same else [basis_of(each) for name, each in gpu_time.jobs.items() if name not in rows]
    held = {name: gpu_time.held.get(name, zero) for name in queue.jobs.tenants}
    for name in fresh:  # only if the books were opened late
        held[claims[rows[name]][0]] += attained[rows[name]]
    for name, account in gpu_time.jobs.items():
        # while the job is present, its held time is known exactly, failures included
        now_held = (
            attained[rows[name]]
            if name in rows
            else account.held + (account.gpus * (gpu_time.end - gpu_time.begin) if account.ran else zero)
        )
        held[account.tenant] += now_held - account.held
    due = {name: gpu_time.due.get(name, zero) for name in queue.jobs.tenants}
    # what was due since the last round to a job that was there all the time, and that before a new one came
    owed: dict[ShareBasis, Number] = {}
    missed: dict[str, Number] = {}
    active = Counter(map(basis_of, gpu_time.jobs.values()))
    closing = min(gpu_time.end, queue.now)
    arrivals = deque(sorted((max(arrival[rows[name]], gpu_time.begin), rows[name], name) for name in fresh))
    times = sorted({gpu_time.begin, *([closing] if gone else []), *(time for time, _, _ in arrivals), queue.now})
    for since, until in pairwise(times):
        if gone and since >= closing:
            active -= Counter(gone)
            gone = []
        while arrivals and arrivals[0][0] <= since:
            _, row, name = arrivals.popleft()
            active[claims[row]] += 1
            missed[name] = owed.get(claims[row], zero)
        to_tenants, to_jobs = rates(queue, active, demand_cap)
        for tenant, part in to_tenants.items():
            due[tenant] += part * (until - since)
        for basis, part in to_jobs.items():
            owed[basis] = owed.get(basis, zero) + part * (until - since)
    kept = {}
    for name, row in rows.items():
        tenant, gpus, weight = claim = claims[row]
        before = gpu_time.jobs.get(name)
        if before is not None:
            owing = before.due + owed.get(claim, zero)
        else:  # a job that came at this very moment is owed nothing yet
            owing = owed.get(claim, zero) - missed[name] if name in missed else zero
        kept[name] = Account(tenant, gpus, weight, attained[row], owing, False)
    return GpuTimeAccounts(gpu_time.begun, queue.now, queue.end, held, due, kept)


#: A reason to select one job of a tenant before another; it does not change the order of tenants. Given the queue, the
#: job's row and the length of a lease, it returns a rank; a larger one is selected earlier.
Preference: TypeAlias = Callable[[Queue, int, Number], Number]


def new_jobs_first(queue: Queue, row: int, term: Number) -> Number:
    """Return 1 for a job that never ran, else 0: most jobs are short and complete soon.

    Algorithm 2 already puts them first, since their rho is 0 and that of jobs that ran is larger. So this preference
    matters only together with others.

    Source: ASTRAEA Sec. 5.2.1 (1), 6.1.1.
    """
    return int(queue.started[row] is None)


def renew_long_jobs(queue: Queue, row: int, term: Number, terms: int = 4) -> Number:
    """Return 1 for a running job that has had at least ``terms`` leases' worth of time, so that it is not preempted.

    Source: ASTRAEA Sec. 5.2.1 (2), which gives no number of terms.
    """
    require(terms >= 1, terms, "preference, terms", "Give a number of leases, at least 1")
    had = queue.attained[row] / int(queue.jobs.gpus[row])
    return int(bool(queue.running[row]) and had >= terms * term)


def urgent_first(queue: Queue, row: int, term: Number) -> Number:
    """Return the priority that users gave a job. Source: ASTRAEA Sec. 5.2.1 (3)."""
    return int(queue.jobs.priority[row])


@dataclass(frozen=True)
class LongTermGpuTimeFairness(Policy):
    """Each round, repeatedly: select the tenant served least fairly, and its job served least fairly.

    * ``lease``: how long a job that is selected holds its GPUs, in the trace's unit of time; None for one round. A
      lease that ends within a round lasts to the end of that round. With None, all jobs can be selected and all GPUs
      are free in every round, as in Sec. 5.1.2. With longer leases, jobs with an unexpired lease keep their GPUs and
      are not selected again.
    * ``adjusted``: Eq. (16) in place of (8), for tenants; jobs' fair shares, Eq. (13), then divide the quota as well.
    * ``preferences``: criteria before fairness among the jobs of a tenant, in this order; none in Algorithm 2. Each is
      a `Preference`: `new_jobs_first`, `renew_long_jobs`, `urgent_first`.
    * ``backfill``: whether a tenant whose job does not fit may continue with its next job. As printed it may not: it is
      skipped for the rest of the round, even if another of its jobs could use the free GPUs.
    * ``placement``: where the selected jobs go.

    Readings. rho is over the time from the first arrival to now for tenants, and from its arrival for a job; for 0/0
    see `rho_order`. M is all GPUs of the cluster, T all tenants of the trace. Line 14 of Algorithm 1 adds a lease's GPU
    time to the time that the tenant held, and nothing to the time due. Ties go to the first tenant of the trace, and to
    the job that arrived first. Jobs that would fit no type now, even with all working GPUs free, are not pending, so
    they block no others. The paper's cluster has one type. Here a job whose lease is renewed stays on its type if there
    is room, and others take the type with room that is fastest for them.

    Source: ASTRAEA, TPDS 2022, Algorithms 1-2, Sec. 5.1.2, 5.2.1, Eq. (12), (15), (16).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(LongTermGpuTimeFairness(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of ltgf, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "ltgf"
    source = "ASTRAEA, TPDS 2022, Algorithms 1-2"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (Claim("lease_kept", "ASTRAEA, TPDS 2022, Sec. 5.1"),)
    states = (GpuTimeAccounts, Account)
    lease: object = None
    adjusted: bool = False
    preferences: tuple[Preference, ...] = ()
    backfill: bool = False
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        check_lease(self.lease, "ltgf, lease")

    @classmethod
    def as_evaluated(cls, lease: object = 900) -> LongTermGpuTimeFairness:
        """Return the policy of the experiments in ASTRAEA Sec. 6.1: Eq. (16), new jobs first, leases of 900 seconds."""
        return cls(lease=lease, adjusted=True, preferences=(new_jobs_first,))

    def start(self, problem: Queue) -> GpuTimeAccounts:
        """Return empty books."""
        begun = min([problem.now, *problem.jobs.arrival])
        return GpuTimeAccounts(begun, begun, begun, {}, {}, {})

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Bring the books up to now, select and place; see `Policy.decide`."""
        gpu_time = updated(state, problem, not self.adjusted)
        claims = share_bases(problem.jobs)
        due = rates(problem, Counter(map(claims.__getitem__, problem.fitting)), not self.adjusted)
        requests, refused = self._select(problem, gpu_time, due, Room(problem, staying_first))
        placements = placed(problem, requests, self.placement)
        if len(placements) < len(problem.leased) + len(requests):
            # a placement may need more than free GPUs of a type, so it is asked about each job in turn, as in line 9
            requests, refused = self._select(problem, gpu_time, due, Room(problem, staying_first, self.placement))
            placements = placed(problem, requests, self.placement)
        until = problem.now + lease_length(problem, self.lease)
        names = problem.jobs.names
        ran = {names[row]: replace(gpu_time.jobs[names[row]], ran=True) for row in placements}
        gpu_time = replace(gpu_time, jobs={**gpu_time.jobs, **ran})
        return Schedule(
            self.name,
            problem,
            placements,
            leases={row: until for row in placements if row not in problem.leased},
            state=gpu_time,
            costs=least_fairness(gpu_time),
            notes=dict.fromkeys(refused, "selected, and did not fit"),
        )

    def _select(
        self, queue: Queue, gpu_time: GpuTimeAccounts, due: Rates, room: Room
    ) -> tuple[list[Request], list[int]]:
        """Return the jobs that get a lease now, in order, and those selected that do not fit. Source: Algorithm 1."""
        names, term = queue.jobs.tenants, lease_length(queue, self.lease)  # t_lease
        pending = self._pending(queue, gpu_time, due)  # T: the tenants that are still considered
        held = {each: gpu_time.held[names[each]] for each in pending}

        def order_of(tenant: int) -> tuple[Any, ...]:
            return rho_order(held[tenant], gpu_time.due[names[tenant]], due[0][names[tenant]]), tenant

        order = {tenant: order_of(tenant) for tenant in pending}
        refused = []
        sizes = queue.jobs.gpus.tolist()
        while pending:
            tenant = min(pending, key=order.__getitem__)
            row = pending[tenant].popleft()
            if started := room.start(row):
                held[tenant] += sizes[row] * term
                order[tenant] = order_of(tenant)
            else:
                refused.append(row)
            if not pending[tenant] or (not started and not self.backfill):
                del pending[tenant]
        return room.requests, refused

    def _pending(self, queue: Queue, gpu_time: GpuTimeAccounts, due: Rates) -> dict[int, deque[int]]:
        """Return each tenant's pending jobs, the best first. Source: Algorithm 2."""
        term = lease_length(queue, self.lease)
        of: dict[int, list[tuple[Any, ...]]] = {}
        names, tenant, claims = queue.jobs.names, queue.jobs.tenant.tolist(), share_bases(queue.jobs)
        for row in np.flatnonzero(queue.can & ~queue.holds).tolist():
            account = gpu_time.jobs[names[row]]
            rho = rho_order(account.held, account.due, due[1][claims[row]])
            before = tuple(-rank(queue, row, term) for rank in self.preferences)
            of.setdefault(tenant[row], []).append((before, rho, row))
        return {tenant: deque(row for _, _, row in sorted(jobs)) for tenant, jobs in of.items()}


def least_fairness(gpu_time: GpuTimeAccounts) -> Mapping[str, Number]:
    """Return the least rho of a tenant and of a job up to now, where there is one. Source: Sec. 4.2.3."""
    tenants = [gpu_time.held[name] / due for name, due in gpu_time.due.items() if due]
    jobs = [each.held / each.due for each in gpu_time.jobs.values() if each.due]
    least = {"least tenant fairness": tenants, "least job fairness": jobs}
    return {name: min(values) for name, values in least.items() if values}
