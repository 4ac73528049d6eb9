"""The state of one round of posted prices: what is free, what each tenant uses, and what a slot costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Array

#: A table (rows..., T) and, for each power 2^k that was asked for, the minima over windows of so many slots.
Minima = list[Array]


def least_over(minima: Minima, slots: int) -> Array:
    """Return (rows..., T - slots + 1): the least of each row over ``slots`` slots from each start on."""
    power = slots.bit_length() - 1
    while len(minima) <= power:
        length, last = 2 ** (len(minima) - 1), minima[-1]
        minima.append(np.minimum(last[..., :-length], last[..., length:]))
    level, starts = minima[power], minima[0].shape[-1] - slots + 1
    late = slots - 2**power
    return np.asarray(np.minimum(level[..., :starts], level[..., late : late + starts]))


def longest_stretches(row: Array) -> Array:
    """Return how many slots in a row a row (T,) of whole numbers, not negative, stays at or above each level from 0.

    The last of them is 0: of the first level that is never reached.
    """
    starts = np.append(0, np.flatnonzero(row[1:] != row[:-1]) + 1)
    longest = np.zeros(int(row.max(initial=0)) + 2, dtype=np.int64)
    rising: list[tuple[int, int]] = []  # where each level that has not ended yet was reached
    for at, level in zip([*starts.tolist(), len(row)], [*row[starts].tolist(), -1], strict=True):
        first = at
        while rising and rising[-1][1] >= level:
            first, high = rising.pop()
            longest[high] = max(longest[high], at - first)
        rising.append((first, level))
    return np.maximum.accumulate(longest[::-1])[::-1]


@dataclass(eq=False)
class Resource:
    """The workers, or the PS, of one round, by type; shapes for S servers, U tenants, K types and T slots.

    ``free`` (S, K, T) int, C_s - h_s(t); ``own`` (U, K, T) int, q^u minus what u's jobs use, below 0 where a tenant
    borrows; ``pool`` (K, T) int: a(t), the unused of all tenants, 0 while each is held to its own share; ``total``
    (K,): C; ``theta`` (K,).
    """

    free: Array
    own: Array
    pool: Array
    total: Array
    theta: Array

    @classmethod
    def fresh(cls, there: Array, quota: Array, theta: Array, slots: int) -> Resource:
        """Return the resource of which everything is free, with tenants held to their ``quota`` (U, K)."""
        # ``free`` is the largest table and takes most of the time; the numbers of one server fit into 32 bits
        free = np.repeat(np.asarray(there, dtype=np.int32)[..., None], slots, axis=-1)
        own = np.repeat(np.asarray(quota, dtype=np.int64)[..., None], slots, axis=-1)
        return cls(free, own, np.zeros(own.shape[1:], dtype=np.int64), there.sum(axis=0), theta)

    def between(self, first: int, last: int) -> Resource:
        """Return the columns from ``first`` to before ``last``: views of the same tables."""
        cut = {name: getattr(self, name)[..., first:last] for name in ("free", "own", "pool")}
        return replace(self, **cut)

    def prices(self) -> Array:
        """Return the prices (K, T): theta to the part in use, minus 1. Source: Eq. (8)."""
        total = self.total[:, None]
        used = total - self.free.sum(axis=0)
        part = np.divide(used, total, out=np.zeros(used.shape), where=total > 0)
        return np.asarray(self.theta[:, None] ** part - 1.0)

    def offered(self, tenant: int, kind: int) -> Array:
        """Return how many (T,) of a type a tenant may take: what is left of its own share, or the pool."""
        return np.asarray(np.maximum(self.own[tenant, kind], self.pool[kind]))

    def totals(self) -> Array:
        """Return the prices (K, T + 1) added up over the slots before each."""
        price = self.prices()
        return np.concatenate([np.zeros((len(price), 1)), np.cumsum(price, axis=1)], axis=1)


@dataclass(eq=False)
class RoundState:
    """Free resources, use and prices over the T slots of one round; changed by `RoundState.admit` only.

    ``origin``: the slot before the first, (lambda + i - 1) tau_l; slot t of the round is ``origin + t``, t = 1..T.

    Source: Astraea (posted prices) Sec. 4.3, 4.4.
    """

    batch: Batch
    origin: int
    workers: Resource
    ps: Resource

    @classmethod
    def fresh(cls, batch: Batch, origin: int, slots: int, theta_workers: Array, theta_ps: Array) -> RoundState:
        """Return the state in which everything is free and tenants are held to their own shares."""
        workers = Resource.fresh(batch.workers, batch.worker_quota, theta_workers, slots)
        return cls(batch, origin, workers, Resource.fresh(batch.ps, batch.ps_quota, theta_ps, slots))

    @property
    def slots(self) -> int:
        """T, the slots of the round (tau_l)."""
        return int(self.workers.free.shape[-1])

    def share(self) -> None:
        """Put unused resources into the pool: a(t) = sum_u (q^u - use of u's jobs). Source: Algorithm 2, line 4."""
        for each in (self.workers, self.ps):
            each.pool = each.own.sum(axis=0)
        self._forget("_offered", "_stretches")

    def between(self, first: int, last: int) -> RoundState:
        """Return the state of the slots after ``first`` up to ``last``: a view of the same tables."""
        span = first - self.origin, last - self.origin
        return RoundState(self.batch, first, self.workers.between(*span), self.ps.between(*span))

    def longer(self, slots: int, *, shared: bool) -> RoundState:
        """Return the state with more slots, ``slots`` in all; in those everything is free, and ``shared`` or not."""
        made = RoundState.fresh(self.batch, self.origin, slots, self.workers.theta, self.ps.theta)
        if shared:
            made.share()
        for new, before in ((made.workers, self.workers), (made.ps, self.ps)):
            for there, had in ((new.free, before.free), (new.own, before.own), (new.pool, before.pool)):
                there[..., : self.slots] = had
        return made

    def prices(self) -> tuple[Array, Array]:
        """Return the prices of workers (W, T) and of PS (P, T)."""
        return self.workers.prices(), self.ps.prices()

    def offered(self, tenant: int, worker: int, ps: int) -> tuple[Array, Array]:
        """Return how many workers (T,) and PS (T,) of these types a tenant may take."""
        return self.workers.offered(tenant, worker), self.ps.offered(tenant, ps)

    @cached_property
    def totals(self) -> tuple[Array, Array]:
        """The prices of workers (W, T + 1) and PS (P, T + 1) added up over the slots before each; cached until `admit`.

        All costs are differences of these, so that every search computes the same float for the same schedule.
        """
        return self.workers.totals(), self.ps.totals()

    def cost(self, schedule: JobSchedule) -> tuple[float, float]:
        """Return the cost of a schedule's workers, and that of its PS, at the current prices, slot by slot."""
        first, last = schedule.first - self.origin - 1, schedule.last - self.origin
        totals = (self.totals[0][schedule.worker_type], self.totals[1][schedule.ps_type])
        workers, ps = (float((each[last] - each[first]) * n) for each, n in zip(totals, schedule.count(), strict=True))
        return workers, ps

    def windows_offered(self, tenant: int, worker: int, ps: int) -> tuple[Minima, Minima]:
        """Return what of these types a tenant may take over any window of slots; cached until `admit`."""
        key = tenant, worker, ps
        if key not in self._offered:
            own, own_ps = self.offered(*key)
            self._offered[key] = [own], [own_ps]
        return self._offered[key]

    def stretches(self, tenant: int, worker: int, ps: int, apart: bool, enough: bool) -> Array:
        """Return how long so many workers may fit, slot by slot, by their number; cached until `admit`. No more fit.

        A server needs one PS, or, with ``enough`` and for workers ``apart``, what those elsewhere ask for.
        """
        key = tenant, worker, ps, apart, enough
        if key not in self._stretches:
            own, own_ps = self.offered(tenant, worker, ps)
            free, here, left = (each[kind] for each, kind in zip(self.room(1), (worker, worker, ps), strict=True))
            elsewhere = np.searchsorted(self.batch.ps_needed[worker, ps], left, side="right") - 1
            most = here if not apart else np.minimum(free, here + elsewhere) if enough else free
            able = (own_ps >= 1) & (left >= 1) & ((elsewhere >= 1) | (not apart) | (not enough))
            self._stretches[key] = longest_stretches(np.where(able, np.minimum(own, most), 0).clip(min=0))
        return self._stretches[key]

    @cached_property
    def _stretches(self) -> dict[tuple[int, int, int, bool, bool], Array]:
        return {}

    @cached_property
    def _offered(self) -> dict[tuple[int, int, int], tuple[Minima, Minima]]:
        return {}

    @cached_property
    def _room(self) -> dict[int, tuple[Array, Array, Array]]:
        return {}

    @cached_property
    def windows(self) -> tuple[Minima, Minima]:
        """The workers and the PS that stay free over any window of slots; cached until `admit`."""
        return [self.workers.free], [self.ps.free]

    def room(self, slots: int) -> tuple[Array, Array, Array]:
        """Return what stays free over windows of ``slots`` slots, by type and start; cached until `admit`.

        These are the workers on all servers, the workers on the best one, and the PS on the best.
        """
        if slots not in self._room:
            workers, ps = (least_over(each, slots) for each in self.windows)
            self._room[slots] = workers.sum(axis=0), workers.max(axis=0), ps.max(axis=0)
        return self._room[slots]

    def admit(self, schedule: JobSchedule) -> None:
        """Take a schedule's resources from the free ones, its tenant's share, and the pool once there is one."""
        tenant = int(self.batch.jobs.tenant[schedule.job])
        span = slice(schedule.first - self.origin - 1, schedule.last - self.origin)
        shared = self.workers.pool.any() or self.ps.pool.any()
        for each, spots, kind in (
            (self.workers, schedule.workers, schedule.worker_type),
            (self.ps, schedule.ps, schedule.ps_type),
        ):
            for server, count in spots:
                each.free[server, kind, span] -= count
                each.own[tenant, kind, span] -= count
        self._forget("totals", "windows", "_offered", "_stretches", "_room")
        if shared:
            self.share()

    def _forget(self, *cached: str) -> None:
        for name in cached:
            vars(self).pop(name, None)


def spots(counts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return (server, count) pairs, servers rising, without zero counts."""
    return tuple(sorted((server, count) for server, count in counts if count > 0))
