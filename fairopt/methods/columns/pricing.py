"""Exact pricing of schedules at prices that differ by server and slot, and the bound on revenue that prices prove."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from fairopt.errors import BadInput
from fairopt.methods.columns.columns import RunMode, Times, ps_needed
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Array, fractions, objects

#: Sums of integers up to here are exact in 64 bits, with room for two of them.
LARGEST = 2**61


@dataclass(frozen=True, eq=False)
class Prices:
    """What a worker and a PS cost by server, type and slot: ``workers`` (S, W, T) and ``ps`` (S, P, T), not negative.

    Source: Astraea (posted prices) Eq. (6), eta_sw(t) and eta_sp(t).
    """

    workers: Array
    ps: Array

    def rounded(self, bits: int = 24) -> Prices:
        """Return the prices as multiples of 2 to the power -``bits``, negative ones as 0: proofs need no more."""
        tables = (np.maximum(np.rint(each.astype(float) * 2**bits), 0.0) / 2**bits for each in (self.workers, self.ps))
        return Prices(*map(fractions, tables))

    def whole(self) -> tuple[Prices, int]:
        """Return integers and the number that they are to be divided by; floats are the fractions that they are."""
        tables = [fractions(self.workers), fractions(self.ps)]
        common = lcm(*{each.denominator for table in tables for each in table.ravel()})
        workers, ps = (
            objects(each.numerator * (common // each.denominator) for each in table.ravel()).reshape(table.shape)
            for table in tables
        )
        return Prices(workers, ps), common


@dataclass(frozen=True, eq=False)
class Cheapest:
    """For one job and each slot t = 1..T, the cheapest schedule that completes there: its ``cost``, and which it is.

    ``cost`` (T,) is `Pricing.most` where there is none; ``mode``, ``host`` and ``here`` (T,) int: the place in
    `Times.modes`, the server of the PS and the workers on it.
    """

    cost: Array
    mode: Array
    host: Array
    here: Array


class Pricing:
    """The pricing problem of (5): the cheapest schedule of a job for each slot of completion, over all schedules.

    Workers away from the PS go to the cheapest servers over the slots that the job runs in, which is best as each takes
    any number. For the server of the PS, and the number of workers on it, all possibilities are tried. Arithmetic is
    that of the prices: floats, integers of 64 bits, or Python's, where sums could be too large. After the last slot
    with a price, and the last arrival, a later start is never better: such slots are listed with ``every_slot`` only.

    Source: Astraea (posted prices) Eq. (6a), (7).
    """

    def __init__(self, batch: Batch, times: Times, prices: Prices, every_slot: bool = False) -> None:
        servers = batch.servers
        for table, there, what in ((prices.workers, servers.workers, "workers"), (prices.ps, servers.ps, "ps")):
            shape = (*there.shape, times.slots)
            if table.shape != shape:
                raise BadInput(f"shape {table.shape}", place=f"prices, {what}", remedy=f"Give {shape}")
        self.batch, self.times = batch, times
        self.income = (prices.workers * servers.workers[..., None]).sum() + (prices.ps * servers.ps[..., None]).sum()
        #: More than any schedule can cost, as none takes more than all there is.
        self.most = self.income * 2 + 1
        if prices.workers.dtype == object and self.most < LARGEST:
            prices = Prices(prices.workers.astype(np.int64), prices.ps.astype(np.int64))
        self._modes = times.modes
        priced = [np.flatnonzero(each.any(axis=(0, 1))).max(initial=-1) + 1 for each in (prices.workers, prices.ps)]
        longest = max((mode.slots for each in self._modes for mode in each), default=0)
        enough = max(*priced, *times.first, 1) + longest
        #: Slots of completion that are listed.
        self._slots = times.slots if every_slot else min(times.slots, int(enough))
        prices = Prices(prices.workers[..., : self._slots], prices.ps[..., : self._slots])
        self._totals = [_totals(prices.workers), _totals(prices.ps)]
        alike = {
            (*servers.workers[s], *servers.ps[s], *prices.workers[s].ravel(), *prices.ps[s].ravel()): s
            for s in reversed(range(len(servers.names)))
        }
        #: Servers that can have the PS; of identical ones, one will do.
        self._hosts = np.array(sorted(alike.values()), dtype=np.int64)
        largest = max((mode.workers for each in self._modes for mode in each), default=0)
        #: PS that a server must give, by worker type, PS type and workers elsewhere.
        self._ps = [
            [[ps_needed(batch, worker, ps, count) for count in range(largest + 1)] for ps in range(servers.ps.shape[1])]
            for worker in range(servers.workers.shape[1])
        ]
        self._needed: dict[tuple[int, int], int] = defaultdict(int)
        for mode in (mode for each in self._modes for mode in each if not mode.together):
            self._needed[mode.worker, mode.slots] = max(self._needed[mode.worker, mode.slots], mode.workers)
        self._elsewhere: dict[tuple[int, int], Array] = {}

    def cheapest(self, job: int, only: int | None = None) -> Cheapest:
        """Return the cheapest schedules of a job, of all modes or of the one at place ``only`` in `modes`."""
        slots = self.times.slots
        mode_at, host_at, here_at = np.zeros((3, slots), dtype=np.int64)
        best = Cheapest(np.full(slots, self.most, dtype=self._totals[0].dtype), mode_at, host_at, here_at)
        for number, mode in enumerate(self._modes[job]):
            if only not in (None, number):
                continue
            starts = slice(self.times.first[job] - 1, max(0, min(self.times.last[job], self._slots) - mode.slots + 1))
            if starts.start >= starts.stop:
                continue
            ends = slice(starts.start + mode.slots - 1, starts.stop + mode.slots - 1)
            most_here = min(mode.workers - 1, int(self.batch.servers.workers[:, mode.worker].max()))
            for here in [mode.workers] if mode.together else range(most_here + 1):
                self._offer(best, mode, number, here, starts, ends)
        return best

    def _offer(self, best: Cheapest, mode: RunMode, number: int, here: int, starts: slice, ends: slice) -> None:
        """Enter the schedules with ``here`` workers beside the PS where they are cheaper."""
        servers, hosts = self.batch.servers, self._hosts
        ps = self._ps[mode.worker][mode.ps][mode.workers - here]
        fits = (servers.workers[hosts, mode.worker] >= here) & (servers.ps[hosts, mode.ps] >= ps)
        if not fits.any():
            return
        hosts = hosts[fits]
        cost = self._window(1, mode.ps, mode.slots)[hosts, starts] * ps
        if here:
            cost = cost + self._window(0, mode.worker, mode.slots)[hosts, starts] * here
        if here < mode.workers:
            cost = cost + self._others(mode.worker, mode.slots)[fits, mode.workers - here, starts]
        row = cost.argmin(axis=0)
        least = cost[row, np.arange(cost.shape[1])]
        better = least < best.cost[ends]
        best.cost[ends][better] = least[better]
        best.mode[ends][better] = number
        best.host[ends][better] = hosts[row[better]]
        best.here[ends][better] = here

    def schedule(self, job: int, last: int, best: Cheapest) -> JobSchedule:
        """Return the schedule behind an entry of `Pricing.cheapest`: the one that completes in slot ``last``."""
        at = last - 1
        mode = self._modes[job][int(best.mode[at])]
        host, here, first = int(best.host[at]), int(best.here[at]), last - mode.slots + 1
        price = self._window(0, mode.worker, mode.slots)[:, first - 1]
        spots, missing = [(host, here)] if here else [], mode.workers - here
        for server in np.argsort(price, kind="stable"):
            count = min(missing, int(self.batch.servers.workers[server, mode.worker]))
            if server != host and count:
                spots.append((int(server), count))
                missing -= count
        ps = ((host, self._ps[mode.worker][mode.ps][mode.workers - here]),)
        return JobSchedule(job, first, last, tuple(sorted(spots)), ps, mode.worker, mode.ps)

    def _window(self, which: int, type: int, slots: int) -> Array:
        """Return (S, T - slots + 1): the price of one worker (0) or PS (1) over so many slots from each start on."""
        total = self._totals[which][:, type]
        return np.asarray(total[:, slots:] - total[:, :-slots])

    def _others(self, worker: int, slots: int) -> Array:
        """Return (hosts, most workers + 1, starts): the least that so many workers cost away from each host."""
        key = worker, slots
        if key not in self._elsewhere:
            price, room = self._window(0, worker, slots), self.batch.servers.workers[:, worker]
            most, starts = self._needed[key], price.shape[1]
            order = np.argsort(price, axis=0, kind="stable")
            dearer = np.take_along_axis(price, order, axis=0)
            out = np.full((len(self._hosts), most + 1, starts), self.most, dtype=price.dtype)
            out[:, 0] = 0
            for at, host in enumerate(self._hosts):
                up_to = np.where(order == host, 0, room[order]).cumsum(axis=0)
                for count in range(1, min(most, int(room.sum() - room[host])) + 1):
                    next_one = dearer[(up_to < count).sum(axis=0), np.arange(starts)]
                    out[at, count] = out[at, count - 1] + next_one
            self._elsewhere[key] = out
        return self._elsewhere[key]


def weak_duality(batch: Batch, prices: Prices, times: Times) -> Fraction:
    """Return sum_j mu_j + sum eta C in rationals, mu_j the most that any schedule of the job gains: (6), (6a) tight.

    All schedules are looked at; a utility in floats is the fraction that it is. Errors: `BadInput` for prices that are
    negative or of another shape.

    Source: Astraea (posted prices) Eq. (6), (7).
    """
    whole, common = prices.whole()
    if (whole.workers < 0).any() or (whole.ps < 0).any():
        raise BadInput("a price is negative", place="prices", remedy="Give prices that are not")
    pricing = Pricing(batch, times, whole)
    total = Fraction(int(pricing.income), common)
    for job in range(len(batch.jobs)):
        gains = [
            Fraction(times.worth[job][at]) - Fraction(int(cost), common)
            for at, cost in enumerate(pricing.cheapest(job).cost.tolist())
            if cost < pricing.most
        ]
        total += max([Fraction(0), *gains])
    return total


def _totals(prices: Array) -> Array:
    """Return (S, types, T + 1): prices added up over the slots before each."""
    start = np.zeros((*prices.shape[:-1], 1), dtype=prices.dtype)
    return np.concatenate([start, np.cumsum(prices, axis=-1)], axis=-1)
