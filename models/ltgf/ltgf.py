"""ASTRAEA: long-term GPU-time fairness, by tenants first and then by jobs, with leases."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.common.schedulers import Room, lease_length, ordered, staying_first
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem import Jobs
from fairopt.problem.numbers import within
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Array, Number, cast, objects
from fairopt.simulation import Consolidated, Placement, Request, placed
from fairopt.simulation.gpu_time import quota
from fairopt.simulation.placement import Requests

#: What a job's fair share at an instant depends on: tenant, GPUs and weight; jobs with the same have the same.
ShareBasis: TypeAlias = tuple[str, int, Number]
#: How fast GPU time is due in each span of time: to tenants, to jobs by what they are.
Rates: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True)
class GpuTimeAccounts:
    """The state of ASTRAEA: accounts of all tenants that ever had one, and of the jobs present, in columns.

    ``begun`` is t_begin, the first arrival. ``begin`` and ``end`` are those of the last round; the accounts are
    complete up to its beginning. ``held`` and ``due`` are GPU time by tenant. An account of a job is kept as long as it
    is present: ``jobs`` are their names, ``bases`` what their fair shares depend on; ``job_held`` and ``job_due`` are
    GPU time, and ``ran`` says whether each ran in the last round, which the decision sets.

    Source: ASTRAEA Sec. 4.2 (the integrals), 5.2 (from t_begin to t_now).
    """

    begun: Number
    begin: Number
    end: Number
    held: Mapping[str, Number]
    due: Mapping[str, Number]
    jobs: tuple[str, ...] = ()
    bases: tuple[ShareBasis, ...] = ()
    job_held: tuple[Number, ...] = ()
    job_due: tuple[Number, ...] = ()
    ran: tuple[bool, ...] = ()


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


def rho_orders(held: Array, due: Array, rate: Array) -> tuple[Array, Array]:
    """Return `rho_order` of many jobs or tenants at once, in two columns (m,)."""
    first, second = np.zeros_like(held), np.zeros_like(held)
    some, rising = due != 0, rate != 0
    first[some] = held[some] / due[some]
    late = ~some & (held != 0)
    first[late] = second[late] = INFINITY
    second[late & rising] = held[late & rising] / rate[late & rising]
    return first, second


def rates(queue: Queue, kinds: tuple[ShareBasis, ...], counts: Array, demand_cap: bool) -> Rates:
    """Return the GPU time due per unit of time, to every tenant (m, T) and to a job of each kind (m, K), in numbers.

    ``counts`` (m, K) are the active jobs of each of the ``kinds`` in each of m spans of time; of a kind without any
    nothing is due. M is all GPUs of the cluster, whether their hosts work or not.
    Source: Eq. (6)-(8), (13), (14), (16).
    """
    owner, size, weight = _columns(kinds, queue.jobs.tenants, queue.number)
    sums = queue.arithmetic.zeros((len(queue.jobs.tenants), 2 * len(counts)))
    np.add.at(sums, owner, np.concatenate((counts * size, counts * weight)).T)
    demand, weights, none = sums.T[: len(counts)], sums.T[len(counts) :], _column(queue, [queue.now * 0])
    own = _column(queue, _quotas(tuple(queue.jobs.tenant_weight.tolist()), int(queue.cluster.gpus.sum()), queue.number))
    tenants = np.minimum(demand, own) if demand_cap else np.broadcast_to(own, demand.shape)
    # a job's fair GPUs: its part of the tenant's by weight, at most its own
    there = (counts > 0) & (weights[:, owner] != 0)
    jobs = np.where(there, tenants[:, owner] * weight / np.where(there, weights[:, owner], 1), none)
    return tenants, np.minimum(jobs, size)


@lru_cache(maxsize=8)  # there are the same ones for many rounds
def _columns(kinds: tuple[ShareBasis, ...], tenants: tuple[str, ...], number: type) -> tuple[Array, Array, Array]:
    """Return the owner of each kind, by its place, and its GPUs and weight (K,) in numbers."""
    place = {name: at for at, name in enumerate(tenants)}
    owner = np.array([place[tenant] for tenant, _, _ in kinds], dtype=np.int64)
    size, weight = (cast(objects(each), number) for each in ([gpus for _, gpus, _ in kinds], [w for _, _, w in kinds]))
    return owner, size, weight


@lru_cache(maxsize=64)  # a trace has the same ones throughout
def _quotas(weights: Sequence[Number], gpus: int, number: type) -> list[Number]:
    """Return what each tenant is owed of so many GPUs, by weight; ``number`` keeps 1.0 and Fraction(1) apart."""
    whole = sum(weights)
    return [quota(weight, whole, gpus) for weight in weights]


@lru_cache(maxsize=2)  # the jobs are the same while nobody comes and nobody is done
def share_bases(jobs: Jobs) -> tuple[list[ShareBasis], tuple[ShareBasis, ...], Array]:
    """Return what each job's fair share depends on; these without repetition, and the place (n,) of each in them."""
    names = map(jobs.tenants.__getitem__, jobs.tenant.tolist())
    of_each = list(zip(names, jobs.gpus.tolist(), jobs.weight.tolist(), strict=True))
    place: dict[ShareBasis, int] = {}
    kind = [place.setdefault(each, len(place)) for each in of_each]
    return of_each, tuple(place), np.array(kind, dtype=np.int64)


def updated(books: GpuTimeAccounts, queue: Queue, demand_cap: bool) -> tuple[GpuTimeAccounts, Rates]:
    """Return the books brought up to now, without the accounts of jobs that have left, and what is due from now on.

    A job is active from its arrival. A completed job counts as active, and as holding its GPUs, until the end of its
    last round. That is when the scheduler notices, and when its GPUs become free for others. (The measures of a run end
    at the completion itself: `fairopt.simulation.gpu_time`.) Jobs that fit no type have no account.
    """
    zero, tenants = queue.now * 0, queue.jobs.tenants
    bases, kinds, kind = share_bases(queue.jobs)
    rows = np.array(queue.fitting, dtype=np.int64)
    names = queue.jobs.names
    there = names if len(rows) == len(names) else tuple(names[row] for row in rows.tolist())
    known, fresh = np.arange(len(rows)), np.zeros(len(rows), dtype=bool)  # the place of each account in the new books
    if there != books.jobs:
        place, before = {name: at for at, name in enumerate(there)}, set(books.jobs)
        known = np.array([place.get(name, -1) for name in books.jobs], dtype=np.int64)
        fresh = np.array([name not in before for name in there], dtype=bool)
    stays = known >= 0
    left = np.flatnonzero(~stays).tolist()
    gone = [books.bases[at] for at in left]
    attained = queue.attained[rows]
    # while a job is present, its held time is known exactly, failures included
    held_before = _column(queue, books.job_held)
    now_held = held_before.copy()
    now_held[stays] = attained[known[stays]]
    for at in left:
        now_held[at] += books.bases[at][1] * (books.end - books.begin) if books.ran[at] else zero
    held = _column(queue, [books.held.get(name, zero) for name in tenants])
    np.add.at(held, queue.jobs.tenant[rows[fresh]], attained[fresh])  # only if the books were opened late
    if gone:
        number = {name: at for at, name in enumerate(tenants)}
        owners = np.array([number[tenant] for tenant, _, _ in books.bases])
    else:
        owners = queue.jobs.tenant[rows[known]]
    np.add.at(held, owners, now_held - held_before)
    # what was due since the last round to a job that was there all the time, and that before a new one came
    new, closing = np.flatnonzero(fresh).tolist(), min(books.end, queue.now)
    came = {at: max(queue.jobs.arrival[rows[at]], books.begin) for at in new}
    times = sorted({books.begin, *([closing] if gone else []), *came.values(), queue.now})
    all_kinds = tuple(dict.fromkeys((*kinds, *gone))) if gone else kinds
    counts = np.zeros((len(times), len(all_kinds)), dtype=np.int64)
    counts[0, : len(kinds)] = np.bincount(kind[rows[~fresh]], minlength=len(kinds))
    for basis, many in Counter(gone).items():
        at = all_kinds.index(basis)
        counts[0, at] += many
        counts[times.index(closing), at] -= many
    since = {time: at for at, time in enumerate(times)}
    for row, time in came.items():
        counts[since[time], kind[rows[row]]] += 1
    moments = _column(queue, times)
    spans = (moments[1:] - moments[:-1])[:, None]
    to_tenants, to_jobs = rates(queue, all_kinds, counts.cumsum(axis=0), demand_cap)
    due = _added(_column(queue, [books.due.get(name, zero) for name in tenants]), to_tenants[:-1] * spans)[-1]
    owed = _added(_column(queue, [zero] * len(all_kinds)), to_jobs[:-1] * spans)
    owing = owed[-1][kind[rows]]
    for at in new:  # a job that came at this very moment is owed nothing yet
        owing[at] = owing[at] - owed[since[came[at]], kind[rows[at]]]
    owing[known[stays]] = _column(queue, books.job_due)[stays] + owing[known[stays]]
    new_books = GpuTimeAccounts(
        begun=books.begun,
        begin=queue.now,
        end=queue.end,
        held=dict(zip(tenants, held.tolist(), strict=True)),
        due=dict(zip(tenants, due.tolist(), strict=True)),
        jobs=there,
        bases=tuple(bases) if len(rows) == len(names) else tuple(bases[row] for row in rows.tolist()),
        job_held=tuple(attained.tolist()),
        job_due=tuple(owing.tolist()),
    )
    return new_books, (to_tenants[-1], to_jobs[-1, : len(kinds)])


def _added(first: Array, more: Array) -> Array:
    """Return the sums of a row (K,) and of none, one, ... of those after it (m, K), added one by one."""
    return np.add.accumulate(np.concatenate((first[None], more)), axis=0)


def _column(queue: Queue, values: Sequence[Number]) -> Array:
    return np.array(values, dtype=queue.remaining.dtype)


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
    states = (GpuTimeAccounts,)
    lease: object = within(None, above=0)
    adjusted: bool = False
    preferences: tuple[Preference, ...] = ()
    backfill: bool = False
    placement: Placement = field(default_factory=Consolidated)

    @classmethod
    def as_evaluated(cls, lease: object = 900) -> LongTermGpuTimeFairness:
        """Return the policy of the experiments in ASTRAEA Sec. 6.1: Eq. (16), new jobs first, leases of 900 seconds."""
        return cls(lease=lease, adjusted=True, preferences=(new_jobs_first,))

    def start(self, problem: Queue) -> GpuTimeAccounts:
        """Return empty books."""
        begun = min([problem.now, *problem.jobs.arrival])
        return GpuTimeAccounts(begun, begun, begun, {}, {})

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Bring the books up to now, select and place; see `Policy.decide`."""
        books, due = updated(state, problem, not self.adjusted)
        requests, refused = self._select(problem, books, due)
        placements = placed(problem, requests, self.placement)
        if len(placements) < np.count_nonzero(problem.holds) + len(requests):
            # a placement may need more than free GPUs of a type, so it is asked about each job in turn, as in line 9
            requests, refused = self._in_turn(problem, books, due, Room(problem, staying_first, self.placement))
            placements = placed(problem, requests, self.placement)
        rows = np.fromiter(placements, dtype=np.int64, count=len(placements))
        ran = np.zeros(len(problem), dtype=bool)
        ran[rows] = True
        return Schedule(
            self.name,
            problem,
            placements,
            leases=dict.fromkeys(rows[~problem.holds[rows]].tolist(), problem.now + lease_length(problem, self.lease)),
            state=replace(books, ran=tuple(ran[problem.fitting].tolist())),
            costs=least_fairness(problem, books),
            notes=dict.fromkeys(refused, "selected, and did not fit"),
        )

    def _select(self, queue: Queue, books: GpuTimeAccounts, due: Rates) -> tuple[Sequence[Request], list[int]]:
        """Return the jobs that get a lease now, in order, and those selected that do not fit. Source: Algorithm 1."""
        rows = np.flatnonzero(queue.can & ~queue.holds)
        first = staying_first.first(queue)
        asked = np.bincount(first[rows], weights=queue.jobs.gpus[rows], minlength=len(queue.room))
        if (asked > queue.room).any():
            return self._in_turn(queue, books, due, Room(queue, staying_first))
        # each gets the type that it asks for first, whenever it is its turn: the order says who chooses a host first
        if not (queue.running[rows] & (queue.last_type[rows] == first[rows])).all():
            rows, tenants = self._pending(queue, books, due)
            terms, names = queue.jobs.gpus[rows] * lease_length(queue, self.lease), queue.jobs.tenants
            parts = []
            for begin, end in pairwise([*np.flatnonzero(np.diff(tenants, prepend=-1)).tolist(), len(rows)]):
                grows = [books.held[names[tenants[begin]]], *terms[begin : end - 1].tolist()]
                parts.append(np.add.accumulate(_column(queue, grows)))
            owed = _column(queue, [books.due[name] for name in names])
            keys = rho_orders(np.concatenate(parts), owed[tenants], due[0][tenants])
            # what a tenant holds only grows, so that its jobs keep their order
            rows = rows[ordered(range(len(rows)), *keys, tenants)]
        return Requests(rows, first[rows]), []

    def _in_turn(
        self, queue: Queue, books: GpuTimeAccounts, due: Rates, room: Room
    ) -> tuple[Sequence[Request], list[int]]:
        """Return the same, where a job may find no room when it is its turn."""
        names, term = queue.jobs.tenants, lease_length(queue, self.lease)  # t_lease
        pending: dict[int, deque[int]] = {}  # T: the tenants that are still considered
        for row, tenant in zip(*(column.tolist() for column in self._pending(queue, books, due)), strict=True):
            pending.setdefault(tenant, deque()).append(row)
        held = {each: books.held[names[each]] for each in pending}

        def order_of(tenant: int) -> tuple[Any, ...]:
            return rho_order(held[tenant], books.due[names[tenant]], due[0][tenant]), tenant

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

    def _pending(self, queue: Queue, books: GpuTimeAccounts, due: Rates) -> tuple[Array, Array]:
        """Return the pending jobs by tenant, the best of each first, and their tenants. Source: Algorithm 2."""
        term = lease_length(queue, self.lease)
        rows, kind = np.flatnonzero(queue.can & ~queue.holds), share_bases(queue.jobs)[2]
        at = np.searchsorted(queue.fitting, rows)
        rho = rho_orders(_column(queue, books.job_held)[at], _column(queue, books.job_due)[at], due[1][kind[rows]])
        tenants = queue.jobs.tenant[rows]
        before = [objects(-rank(queue, row, term) for row in rows.tolist()) for rank in self.preferences]
        order = ordered(range(len(rows)), tenants, *before, *rho)
        return rows[order], tenants[order]


def least_fairness(queue: Queue, books: GpuTimeAccounts) -> Mapping[str, Number]:
    """Return the least rho of a tenant and of a job up to now, where there is one. Source: Sec. 4.2.3."""
    least: dict[str, Number] = {}
    tenants = [books.held[name] / due for name, due in books.due.items() if due]
    if tenants:
        least["least tenant fairness"] = min(tenants)
    held, due = _column(queue, books.job_held), _column(queue, books.job_due)
    if (some := due != 0).any():
        least["least job fairness"] = min((held[some] / due[some]).tolist())
    return least
