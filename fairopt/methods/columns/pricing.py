"""Exact pricing of schedules at prices by server and slot, the bound that these prove, and problem (5) over columns.

Its linear relaxation is solved by column generation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from fairopt.backends import Session
from fairopt.deadline import left
from fairopt.errors import BadInput
from fairopt.methods.columns.columns import RunMode, Times, ps_needed
from fairopt.methods.grouping import identical_rows
from fairopt.numbers import arithmetic
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Affine, Array, Formulation, Program, fractions, objects

#: Sums of integers up to here are exact in 64 bits, with room for two of them.
LARGEST = 2**61
SOURCE = "Astraea (posted prices)"
#: Columns of a job that are added in one round, those of the largest gain.
MOST_ADDED = 8
#: The relaxation is solved when its bound is above its value by no more than this part of the value.
CLOSE = 1e-7


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
class _Cheapest:
    """For one job and each slot t = 1..T, the ``cost`` of the cheapest schedule that completes there, and which it is.

    All (T,): ``cost``, `Pricing.most` where there is none; place of ``mode``, ``host`` of the PS, workers ``here``.
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
        for table, there, what in ((prices.workers, batch.workers, "workers"), (prices.ps, batch.ps, "ps")):
            shape = (*there.shape, times.slots)
            if table.shape != shape:
                raise BadInput(f"shape {table.shape}", place=f"prices, {what}", remedy=f"Give {shape}")
        self.batch, self.times = batch, times
        self.income = (prices.workers * batch.workers[..., None]).sum() + (prices.ps * batch.ps[..., None]).sum()
        #: More than any schedule can cost, as none takes more than all there is.
        self.most = self.income * 2 + 1
        if arithmetic(prices.workers).exact and self.most < LARGEST:
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
            (*batch.workers[s], *batch.ps[s], *prices.workers[s].ravel(), *prices.ps[s].ravel()): s
            for s in reversed(range(len(batch.servers)))
        }
        #: Servers that can have the PS; of identical ones, one will do.
        self._hosts = np.array(sorted(alike.values()), dtype=np.int64)
        largest = max((mode.workers for each in self._modes for mode in each), default=0)
        #: PS that a server must give, by worker type, PS type and workers elsewhere.
        self._ps = [
            [[ps_needed(batch, worker, ps, count) for count in range(largest + 1)] for ps in range(batch.ps.shape[1])]
            for worker in range(batch.workers.shape[1])
        ]
        self._needed: dict[tuple[int, int], int] = defaultdict(int)
        for mode in (mode for each in self._modes for mode in each if not mode.together):
            self._needed[mode.worker, mode.slots] = max(self._needed[mode.worker, mode.slots], mode.workers)
        self._elsewhere: dict[tuple[int, int], Array] = {}

    def cheapest(self, job: int, only: int | None = None) -> _Cheapest:
        """Return the cheapest schedules of a job, of all modes or of the one at place ``only`` in `modes`."""
        slots = self.times.slots
        mode_at, host_at, here_at = np.zeros((3, slots), dtype=np.int64)
        best = _Cheapest(np.full(slots, self.most, dtype=self._totals[0].dtype), mode_at, host_at, here_at)
        for number, mode in enumerate(self._modes[job]):
            if only not in (None, number):
                continue
            starts = slice(self.times.first[job] - 1, max(0, min(self.times.last[job], self._slots) - mode.slots + 1))
            if starts.start >= starts.stop:
                continue
            ends = slice(starts.start + mode.slots - 1, starts.stop + mode.slots - 1)
            most_here = min(mode.workers - 1, int(self.batch.workers[:, mode.worker].max()))
            for here in [mode.workers] if mode.together else range(most_here + 1):
                self._offer(best, mode, number, here, starts, ends)
        return best

    def _offer(self, best: _Cheapest, mode: RunMode, number: int, here: int, starts: slice, ends: slice) -> None:
        """Enter the schedules with ``here`` workers beside the PS where they are cheaper."""
        hosts = self._hosts
        ps = self._ps[mode.worker][mode.ps][mode.workers - here]
        fits = (self.batch.workers[hosts, mode.worker] >= here) & (self.batch.ps[hosts, mode.ps] >= ps)
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

    def schedule(self, job: int, last: int, best: _Cheapest) -> JobSchedule:
        """Return the schedule behind an entry of `Pricing.cheapest`: the one that completes in slot ``last``."""
        at = last - 1
        mode = self._modes[job][int(best.mode[at])]
        host, here, first = int(best.host[at]), int(best.here[at]), last - mode.slots + 1
        price = self._window(0, mode.worker, mode.slots)[:, first - 1]
        spots, missing = [(host, here)] if here else [], mode.workers - here
        for server in np.argsort(price, kind="stable"):
            count = min(missing, int(self.batch.workers[server, mode.worker]))
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
            price, room = self._window(0, worker, slots), self.batch.workers[:, worker]
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


@dataclass(frozen=True, eq=False)
class PackingEvidence:
    """What is known of a packing, and its proof: no plan within ``slots`` earns more than ``bound``, by ``prices``.

    `weak_duality` recomputes ``bound`` from the prices, in rationals; ``proved`` is that before rounding to
    `Times.unit`. ``relaxed``: the value of the linear relaxation, in floats. The best ``schedules`` that were found
    earn ``revenue``. ``searched``: whether nothing better is left to be found. ``looked_at``: the schedules that were
    considered; ``rounds`` of pricing; ``cuts``: how many sets of jobs were found that cannot be placed together.
    """

    slots: int
    prices: Prices
    bound: Fraction
    proved: Fraction
    relaxed: float
    looked_at: tuple[JobSchedule, ...]
    rounds: int
    schedules: tuple[JobSchedule, ...] = ()
    revenue: Fraction = Fraction(0)
    searched: bool = True
    cuts: int = 0

    @property
    def columns(self) -> int:
        """The number of schedules that were considered."""
        return len(self.looked_at)

    @property
    def optimal(self) -> bool:
        """Whether the plan is known to be optimal."""
        return self.by_prices or self.searched

    @property
    def by_prices(self) -> bool:
        """Whether prices prove it: what they bound revenue by is what the plan earns."""
        return self.revenue >= self.bound

    @property
    def proof(self) -> str:
        """What shows that the plan is optimal, in words."""
        if self.by_prices:
            return "prices: what they bound revenue by is what the plan earns"
        return "search: the backend found nothing better among all columns" if self.searched else "nothing"


def packing_program(
    batch: Batch, times: Times, columns: Sequence[JobSchedule], *, groups: Array | None = None, integer: bool = True
) -> Program:
    """Return problem (5) over ``columns``; with ``groups`` (S,) its rows (5a) and (5b) are added up over each group.

    Source: Astraea (posted prices) Eq. (5), (5a)-(5d).
    """
    jobs = batch.jobs
    of = np.arange(len(batch.servers)) if groups is None else groups
    p = Formulation("compact-exponential packing")
    o = p.variable("admitted", (len(columns),), lower=0, upper=1 if integer else None, integer=integer)
    worth = [times.worth[each.job][each.last - 1] for each in columns]
    exact = not any(isinstance(value, float) for value in worth)
    p.maximize((np.array(worth, dtype=object if exact else float) * o).sum(), equation="sum o f(t+)", source="Eq. (5)")
    for name, there, which in (("5a_workers", batch.workers, 0), ("5b_ps", batch.ps, 1)):
        room = np.zeros((int(of.max()) + 1, there.shape[1]), dtype=np.int64)
        np.add.at(room, of, there)
        shape = (*room.shape, times.slots)
        use = _sums(o, *_use(columns, which, of, shape), shape)
        rows = (use <= room[..., None]).where(np.diff(use.start).reshape(shape) > 0)
        p.constrain(name, rows, equation="sum o y(t) <= C_s", source=f"{SOURCE} Eq. (5{name[1]})")
    job_of = np.array([each.job for each in columns], dtype=np.int64)
    once = _sums(o, job_of, np.arange(len(columns)), np.ones(len(columns), dtype=np.int64), (len(jobs),))
    p.constrain("5c_once", once <= 1, equation="sum_i o_j <= 1", source=f"{SOURCE} Eq. (5c)", labels=(jobs.names,))
    return p.program()


def relax(batch: Batch, times: Times, solve: Session) -> PackingEvidence:
    """Solve the linear relaxation of (5), and prove a bound with the prices that it ends with. Errors: `NotSolved`."""
    # an optimum can be averaged over servers that hold the same: one row for all is as good, at the price of each
    groups = identical_rows(np.column_stack([batch.workers, batch.ps]))[1]
    shapes = [(*there.shape, times.slots) for there in (batch.workers, batch.ps)]
    prices = Prices(np.zeros(shapes[0]), np.zeros(shapes[1]))
    floors = np.zeros(len(batch.jobs))  # the duals of (5c)
    worth = [np.array([float(value) for value in row]) for row in times.worth]
    columns: dict[JobSchedule, None] = {}
    value, rounds = 0.0, 0
    while True:
        rounds += 1
        pricing = Pricing(batch, times, prices)
        bound, fresh = float(pricing.income), 0
        for job in range(len(batch.jobs)):
            left()
            best = pricing.cheapest(job)
            gain = np.where(best.cost < pricing.most, worth[job] - best.cost, -1.0)
            bound += max(0.0, float(gain.max(initial=0.0)))
            for at in np.argsort(-gain, kind="stable")[:MOST_ADDED]:
                if gain[at] > floors[job] + CLOSE * max(1.0, worth[job].max(initial=0.0)):
                    column = pricing.schedule(job, int(at) + 1, best)
                    fresh += column not in columns
                    columns[column] = None
        if not fresh or bound - value <= CLOSE * max(1.0, abs(value)):
            break
        program = packing_program(batch, times, tuple(columns), groups=groups, integer=False)
        solution = solve(program).require_optimal()
        assert solution.dual is not None
        assert solution.objective is not None
        value = float(solution.objective)
        tables = []
        for name, shape in zip(("5a_workers", "5b_ps"), shapes, strict=True):
            block = program.row_block(name)
            table = np.zeros((int(groups.max()) + 1, *shape[1:]))
            table.ravel()[np.arange(table.size) if block.kept is None else block.kept] = solution.dual[block.span]
            tables.append(np.maximum(table, 0.0)[groups])
        prices = Prices(*tables)
        floors = np.asarray(solution.dual[program.row_block("5c_once").span], dtype=float)
    kept = prices.rounded()
    proved = weak_duality(batch, kept, times)
    return PackingEvidence(times.slots, kept, times.rounded(proved), proved, value, tuple(columns), rounds)


def _use(
    columns: Sequence[JobSchedule], which: int, groups: Array, shape: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    """Return (row, column, how many) of the workers (0) or PS (1) that columns take in each slot."""
    row: list[int] = []
    column: list[int] = []
    count: list[int] = []
    for number, each in enumerate(columns):
        spots, type = (each.workers, each.worker_type) if which == 0 else (each.ps, each.ps_type)
        for server, taken in spots:
            first = (int(groups[server]) * shape[1] + type) * shape[2] + each.first - 1
            row += range(first, first + each.duration)
            column += [number] * each.duration
            count += [taken] * each.duration
    return np.array(row, dtype=np.int64), np.array(column, dtype=np.int64), np.array(count, dtype=np.int64)


def weighted_sums(variables: Affine, weights: Array) -> Affine:
    """Return ``weights @ variables`` for weights (rows, variables) of which most are 0 and make no entry."""
    row, column = np.nonzero(weights)
    return _sums(variables, row, column, weights[row, column], weights.shape[:1])


def _sums(variables: Affine, row: Array, column: Array, value: Array, shape: tuple[int, ...]) -> Affine:
    """Return the expressions ``sum value * variables[column]`` by ``row``; a dense table of them would be too large."""
    size = int(np.prod(shape))
    order = np.argsort(row, kind="stable")
    start = np.searchsorted(row[order], np.arange(size + 1))
    constant = np.zeros(shape, dtype=np.int64)
    return Affine(variables.owner, constant, start, variables.column[column[order]], value[order])
