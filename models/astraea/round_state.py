"""The state of one round of posted prices: what is free, what each tenant uses, and what a slot costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Array


class Cost(NamedTuple):
    """What a schedule costs at posted prices, workers and PS apart."""

    workers: float
    ps: float


class FreeWindows(NamedTuple):
    """What stays free over a window, by type and start: workers on all servers, on the best one, and PS on the best."""

    workers: Array
    most_workers: Array
    most_ps: Array


@dataclass(frozen=True, eq=False)
class Windows:
    """The minimum of a row over any window of slots, from the minima over windows of lengths 2^k.

    ``levels``: for each power 2^k the table (rows..., T - 2^k + 1), a column for each start.
    """

    levels: tuple[Array, ...]

    @classmethod
    def of(cls, table: Array) -> Windows:
        """Return the windows of a table (rows..., T)."""
        levels, length = [table], 1
        while 2 * length <= table.shape[-1]:
            levels.append(np.minimum(levels[-1][..., :-length], levels[-1][..., length:]))
            length *= 2
        return cls(tuple(levels))

    def least(self, slots: int) -> Array:
        """Return (rows..., T - slots + 1): the least over ``slots`` slots from each start on."""
        power = slots.bit_length() - 1
        level, starts = self.levels[power], self.levels[0].shape[-1] - slots + 1
        late = slots - 2**power
        return np.asarray(np.minimum(level[..., :starts], level[..., late : late + starts]))


@dataclass(eq=False)
class RoundState:
    """Free resources, use and prices over the T slots of one round; changed by `RoundState.admit` only.

    ``origin``: the slot before the first, (lambda + i - 1) tau_l; slot t of the round is ``origin + t``, t = 1..T.
    Shapes: ``free_workers`` (S, W, T) and ``free_ps`` (S, P, T) int, C_s - h_s(t); ``own_workers`` (U, W, T) and
    ``own_ps`` (U, P, T) int, q^u minus what u's jobs use, below 0 where a tenant borrows; ``pool_workers`` (W, T) and
    ``pool_ps`` (P, T) int: a(t), the unused of all tenants, 0 while each is held to its own share; ``theta_workers``
    (W,) and ``theta_ps`` (P,).

    Source: Astraea (posted prices) Sec. 4.3, 4.4.
    """

    batch: Batch
    origin: int
    free_workers: Array
    free_ps: Array
    own_workers: Array
    own_ps: Array
    pool_workers: Array
    pool_ps: Array
    theta_workers: Array
    theta_ps: Array
    _totals: tuple[Array, Array] | None = None
    _windows: tuple[Windows, Windows] | None = None
    _room: dict[int, FreeWindows] = field(default_factory=dict)

    @classmethod
    def fresh(cls, batch: Batch, origin: int, slots: int, theta_workers: Array, theta_ps: Array) -> RoundState:
        """Return the state in which everything is free and tenants are held to their own shares."""
        servers = batch.servers

        def over_time(table: Array, kind: type = np.int64) -> Array:
            return np.repeat(np.asarray(table, dtype=kind)[..., None], slots, axis=-1)

        return cls(
            batch=batch,
            origin=origin,
            # these are the largest tables and take most of the time; the numbers of one server fit into 32 bits
            free_workers=over_time(servers.workers, np.int32),
            free_ps=over_time(servers.ps, np.int32),
            own_workers=over_time(batch.worker_quota),
            own_ps=over_time(batch.ps_quota),
            pool_workers=np.zeros((len(servers.worker_types), slots), dtype=np.int64),
            pool_ps=np.zeros((len(servers.ps_types), slots), dtype=np.int64),
            theta_workers=theta_workers,
            theta_ps=theta_ps,
        )

    @property
    def slots(self) -> int:
        """T, the slots of the round (tau_l)."""
        return int(self.free_workers.shape[-1])

    def share(self) -> None:
        """Put unused resources into the pool: a(t) = sum_u (q^u - use of u's jobs). Source: Algorithm 2, line 4."""
        self.pool_workers = self.own_workers.sum(axis=0)
        self.pool_ps = self.own_ps.sum(axis=0)

    def after(self, slot: int) -> RoundState:
        """Return the state from the slot after ``slot`` on: a view of the same tables."""
        cut = slot - self.origin
        return replace(
            self,
            origin=slot,
            **{
                name: getattr(self, name)[..., cut:]
                for name in ("free_workers", "free_ps", "own_workers", "own_ps", "pool_workers", "pool_ps")
            },
            _totals=None,
            _windows=None,
            _room={},
        )

    def prices(self) -> tuple[Array, Array]:
        """Return the prices of workers (W, T) and of PS (P, T): theta to the part in use, minus 1. Source: Eq. (8)."""
        return (
            _price(self.theta_workers, self.batch.servers.workers, self.free_workers),
            _price(self.theta_ps, self.batch.servers.ps, self.free_ps),
        )

    def offered(self, tenant: int, worker: int, ps: int) -> tuple[Array, Array]:
        """Return how many workers (T,) and PS (T,) of these types a tenant may take: own share left, or the pool."""
        return (
            np.maximum(self.own_workers[tenant, worker], self.pool_workers[worker]),
            np.maximum(self.own_ps[tenant, ps], self.pool_ps[ps]),
        )

    @property
    def totals(self) -> tuple[Array, Array]:
        """Return the prices of workers (W, T + 1) and PS (P, T + 1) added up over the slots before each.

        All costs are differences of these, so that every search computes the same float for the same schedule.
        """
        if self._totals is None:
            workers, ps = (
                np.concatenate([np.zeros((len(price), 1)), np.cumsum(price, axis=1)], axis=1) for price in self.prices()
            )
            self._totals = workers, ps
        return self._totals

    def cost(self, schedule: JobSchedule) -> Cost:
        """Return the cost of a schedule at the current prices, slot by slot."""
        total_workers, total_ps = self.totals
        first, last = schedule.first - self.origin - 1, schedule.last - self.origin
        workers, ps = schedule.count()
        return Cost(
            float((total_workers[schedule.worker_type, last] - total_workers[schedule.worker_type, first]) * workers),
            float((total_ps[schedule.ps_type, last] - total_ps[schedule.ps_type, first]) * ps),
        )

    @property
    def windows(self) -> tuple[Windows, Windows]:
        """Return the workers and the PS that stay free over any window of slots; cached until `admit`."""
        if self._windows is None:
            self._windows = Windows.of(self.free_workers), Windows.of(self.free_ps)
        return self._windows

    def room(self, slots: int) -> FreeWindows:
        """Return what stays free over windows of ``slots`` slots; cached until `admit`."""
        if slots not in self._room:
            workers, ps = (windows.least(slots) for windows in self.windows)
            self._room[slots] = FreeWindows(workers.sum(axis=0), workers.max(axis=0), ps.max(axis=0))
        return self._room[slots]

    def admit(self, schedule: JobSchedule) -> None:
        """Take a schedule's resources from the free ones, its tenant's share, and the pool once there is one."""
        tenant = int(self.batch.jobs.tenant[schedule.job])
        span = slice(schedule.first - self.origin - 1, schedule.last - self.origin)
        shared = self.pool_workers.any() or self.pool_ps.any()
        for free, own, spots, gpu_type in (
            (self.free_workers, self.own_workers, schedule.workers, schedule.worker_type),
            (self.free_ps, self.own_ps, schedule.ps, schedule.ps_type),
        ):
            for server, count in spots:
                free[server, gpu_type, span] -= count
                own[tenant, gpu_type, span] -= count
        self._totals = self._windows = None
        self._room.clear()
        if shared:
            self.share()


def _price(theta: Array, there: Array, free: Array) -> Array:
    total = there.sum(axis=0)  # C, by type
    used = total[:, None] - free.sum(axis=0)
    part = np.divide(used, total[:, None], out=np.zeros(used.shape), where=total[:, None] > 0)
    return np.asarray(theta[:, None] ** part - 1.0)


def spots(counts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return (server, count) pairs, servers rising, without zero counts."""
    return tuple(sorted((server, count) for server, count in counts if count > 0))
