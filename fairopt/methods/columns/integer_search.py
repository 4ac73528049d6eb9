"""The integer optimum of (5) where its columns are too many: first when jobs run, then where, till both agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairopt.backends import Session
from fairopt.backends.solution import Solution, Status
from fairopt.methods.columns.columns import Kind, Spots, Times, hosts, ps_needed
from fairopt.methods.columns.pricing import Pricing
from fairopt.methods.columns.restricted_program import Relaxation, weighted_sums
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Array, Formulation, Program

#: What a float solver's optimum may be off by.
SLACK = 1e-7
#: The first goal is below the bound by this part of it, and each next one this many times farther.
FIRST_DISTANCE, FARTHER = Fraction(1, 2000), 8


class Slot(NamedTuple):
    """When a job runs and how, but not where."""

    job: int
    first: int
    kind: Kind

    @property
    def last(self) -> int:
        """The slot of completion."""
        return self.first + self.kind.slots - 1


@dataclass(frozen=True)
class Found:
    """The best schedules found, and what they earn; ``optimal``: whether the search has ruled out all better ones.

    ``cuts``: how many sets of jobs were found that cannot be placed together.
    """

    schedules: tuple[JobSchedule, ...]
    revenue: Fraction
    optimal: bool
    cuts: int


def search(batch: Batch, times: Times, relaxation: Relaxation, solve: Session, most_cuts: int) -> Found:
    """Return the integer optimum, or the best that ``most_cuts`` sets that cannot be placed lead to.

    A first program chooses when each job runs, and how, within what all servers hold together: a relaxation of (5). A
    second one looks for servers. Where not all that was chosen finds its place, a least set of jobs that does not is
    forbidden, with all that asks for at least as much, and the first is asked again.

    Times that cannot belong to a schedule that earns more than some goal, by the prices of the relaxation, are left
    out. The goal is just below the bound at first, and lower from time to time; where as much as the goal is earned,
    nothing better was left out.

    Errors: `NotSolved`.
    """
    best = _Best(times)
    losses = _losses(batch, times, relaxation)
    distance = relaxation.bound * FIRST_DISTANCE
    while True:
        goal = max(best.revenue, relaxation.bound - distance)
        promising = [slot for loss, slot in losses if times.rounded(relaxation.proved - loss) > goal]
        optimal = _rounds(batch, times, promising, solve, best, relaxation.bound, most_cuts) if promising else True
        if best.revenue >= goal or not optimal:
            proved = best.revenue >= relaxation.bound or optimal
            return Found(best.schedules, best.revenue, proved, best.cuts)
        distance *= FARTHER


class _Best:
    """The best schedules so far."""

    def __init__(self, times: Times) -> None:
        self.schedules: tuple[JobSchedule, ...] = ()
        self.revenue = Fraction(0)
        self.cuts = 0
        self._times = times

    def offer(self, schedules: tuple[JobSchedule, ...]) -> None:
        """Keep schedules that earn more."""
        revenue = sum((Fraction(self._times.worth[each.job][each.last - 1]) for each in schedules), start=Fraction(0))
        if revenue > self.revenue:
            self.schedules, self.revenue = schedules, revenue


def _rounds(
    batch: Batch, times: Times, slots: Sequence[Slot], solve: Session, best: _Best, most: Fraction, most_cuts: int
) -> bool:
    """Improve ``best`` by choices among ``slots``, up to a bound; return whether no choice among them is better."""
    cuts: list[tuple[Slot, ...]] = []
    while best.cuts <= most_cuts:
        value, chosen = _choose(batch, times, slots, cuts, solve)
        value = min(value, float(most))
        if value <= float(best.revenue) + SLACK * max(1.0, abs(value)):
            return True
        placed, sure = place(batch, times, chosen, solve)
        best.offer(tuple(placed))
        if len(placed) == len(chosen) or not sure:
            return value <= float(best.revenue) + SLACK * max(1.0, abs(value))
        cuts.append(_least_unplaceable(batch, times, chosen, solve))
        best.cuts += 1
    return False


def _losses(batch: Batch, times: Times, relaxation: Relaxation) -> list[tuple[Fraction, Slot]]:
    """Return all times and kinds with how far below the bound the revenue is of any schedule with the job there.

    It is what the cheapest such schedule gains less than the job's best, at the prices of the relaxation.
    """
    whole, common = relaxation.prices.whole()
    pricing = Pricing(batch, times, whole, every_slot=True)
    found = []
    for job in range(len(batch.jobs)):
        worth = [Fraction(value) for value in times.worth[job]]
        gains = []
        for number, kind in enumerate(times.kinds[job]):
            cost = pricing.cheapest(job, number).cost.tolist()
            gains += [
                (worth[at] - Fraction(int(each), common), Slot(job, at - kind.slots + 2, kind))
                for at, each in enumerate(cost)
                if each < pricing.most
            ]
        most = max([Fraction(0), *(gain for gain, _ in gains)])
        found += [(most - gain, slot) for gain, slot in gains]
    return found


def _choose(
    batch: Batch, times: Times, slots: Sequence[Slot], cuts: Sequence[tuple[Slot, ...]], solve: Session
) -> tuple[float, list[Slot]]:
    """Choose at most one slot a job, within what all servers hold together, and how many servers can hold so much."""
    if not slots:
        return 0.0, []
    servers = batch.servers
    p = Formulation("when jobs run")
    o = p.variable("chosen", (len(slots),), lower=0, upper=1, integer=True)
    unit = times.unit or Fraction(1)  # whole numbers let a back end round its bounds
    worth = np.array([float(Fraction(times.worth[each.job][each.last - 1]) / unit) for each in slots])
    p.maximize((worth * o).sum())
    span = np.array([(each.first, each.last) for each in slots])
    active = (span[:, :1] <= np.arange(1, times.slots + 1)) & (np.arange(1, times.slots + 1) <= span[:, 1:])
    starts = np.unique(span[:, 0]) - 1  # use rises only where something starts
    job = np.array([each.job for each in slots])
    p.constrain("once", weighted_sums(o, (job == np.arange(len(batch.jobs))[:, None]).astype(np.int64)) <= 1)
    spots = [list(hosts(batch, each.kind)) for each in slots]
    fewest = [min(ps for _, _, ps in each) for each in spots]
    beside = [min(workers for _, workers, _ in each) for each in spots]  # workers on the server of the PS
    rows: dict[str, tuple[Array, int]] = {}
    for worker in range(len(servers.worker_types)):
        of = [each.kind.worker == worker for each in slots]
        room = servers.workers[:, worker]
        rows[f"workers {worker}"] = np.array([each.kind.workers for each in slots]) * of, int(room.sum())
        alone = np.array(beside) * of
        for least in np.unique(alone[alone > 1]):
            most = np.minimum(room // least, servers.ps.sum(axis=1)).sum()
            rows[f"workers {worker} on one server, {least}"] = (alone >= least).astype(np.int64), int(most)
    for ps in range(len(servers.ps_types)):
        of = [each.kind.ps == ps for each in slots]
        room, needed = servers.ps[:, ps], np.array(fewest) * of
        rows[f"ps {ps}"] = needed, int(room.sum())
        for least in np.unique(needed[needed > 1]):
            rows[f"ps {ps}, {least}"] = (needed >= least).astype(np.int64), int((room // least).sum())
    for name, (weight, most) in rows.items():
        p.constrain(name, weighted_sums(o, active[:, starts].T * weight) <= most)
    for number, cut in enumerate(cuts):
        asks = [any(_at_least(each, other) for other in cut) for each in slots]
        p.constrain(f"cut {number}", weighted_sums(o, np.array([asks], dtype=np.int64)) <= len(cut) - 1)
    solution = solve(p.program())
    if solution.status is Status.LIMIT and solution.x is None:
        return float("inf"), []
    solution = _known(solution)
    assert solution.bound is not None
    chosen = [slots[at] for at in np.flatnonzero(solution.point > 1 / 2).tolist()]
    return float(solution.bound) * float(unit), chosen


def place(batch: Batch, times: Times, chosen: Sequence[Slot], solve: Session) -> tuple[list[JobSchedule], bool]:
    """Return schedules, with servers, for as much of ``chosen`` as can be placed, by utility; and whether it is that.

    It may be less only where a limit stopped the back end.
    """
    if not chosen:
        return [], True
    servers = batch.servers
    n, count = len(chosen), len(servers.names)
    workers = np.array([each.kind.workers for each in chosen])
    together = np.array([each.kind.together for each in chosen])
    room = np.stack([servers.workers[:, each.kind.worker] for each in chosen])
    ps_room = np.stack([servers.ps[:, each.kind.ps] for each in chosen])
    ratio = [
        servers.worker_bandwidth[each.kind.worker] / servers.ps_bandwidth[each.kind.ps] for each in chosen
    ]  # PS that a worker elsewhere asks for
    p = Formulation("where jobs run")
    o = p.variable("placed", (n,), lower=0, upper=1, integer=True)
    host = p.variable("host", (n, count), lower=0, upper=1, integer=True)
    y = p.variable("workers", (n, count), lower=0, upper=np.minimum(room, workers[:, None]), integer=True)
    z = p.variable("ps", (n, count), lower=0, upper=ps_room, integer=True)
    p.maximize((np.array([float(times.worth[each.job][each.last - 1]) for each in chosen]) * o).sum())
    p.constrain("one host", host.sum(axis=1) == o)
    p.constrain("workers in all", y.sum(axis=1) == o * workers)
    p.constrain("together", (y <= host * workers[:, None]).where(np.broadcast_to(together[:, None], (n, count))))
    p.constrain("ps on the host", z <= host * ps_room)
    p.constrain("one ps", z >= host)
    beta = np.array(ratio, dtype=object)[:, None]
    # b_p z >= b_w (workers - y) on the host, and nothing elsewhere
    p.constrain("bandwidth", z >= beta * (host * workers[:, None] - y))
    for start in sorted({each.first for each in chosen}):
        active = np.array([each.first <= start <= each.last for each in chosen])
        for name, use, there, types in (
            ("workers", y, servers.workers, [each.kind.worker for each in chosen]),
            ("ps", z, servers.ps, [each.kind.ps for each in chosen]),
        ):
            for type in range(there.shape[1]):
                counted = np.flatnonzero(active & (np.array(types) == type))
                if len(counted):
                    p.constrain(f"{name} {type} in slot {start}", use[counted].sum(axis=0) <= there[:, type])
    program = p.program()
    solution = answer(solve, program)
    point = solution.point
    placed, taken, given = (np.rint(program.variable(name, point)) for name in ("placed", "workers", "ps"))
    schedules = [
        _shortest(batch, slot, _spots(taken[at]), _spots(given[at])) for at, slot in enumerate(chosen) if placed[at] > 0
    ]
    return schedules, solution.status is Status.OPTIMAL


def answer(solve: Session, program: Program) -> Solution:
    """Return an optimum, or what was found up to a limit; errors: `NotSolved` where that is nothing."""
    return _known(solve(program))


def _known(solution: Solution) -> Solution:
    if solution.status is Status.LIMIT and solution.x is not None and solution.bound is not None:
        return solution
    return solution.require_optimal()


def _least_unplaceable(batch: Batch, times: Times, chosen: Sequence[Slot], solve: Session) -> tuple[Slot, ...]:
    """Return a subset that cannot be placed, though each without one of its members can."""
    kept = list(chosen)
    for each in chosen:
        rest = [other for other in kept if other != each]
        placed, sure = place(batch, times, rest, solve)
        if sure and len(placed) < len(rest):
            kept = rest
    return tuple(kept)


def _at_least(slot: Slot, other: Slot) -> bool:
    """Whether wherever ``slot`` is placed, ``other`` could be: the same types, no fewer slots, no fewer workers."""
    mine, its = slot.kind, other.kind
    return (
        slot.job == other.job
        and slot.first <= other.first
        and slot.last >= other.last
        and (mine.worker, mine.ps) == (its.worker, its.ps)
        and mine.workers >= its.workers
        and (mine.together or not its.together)
    )


def _shortest(batch: Batch, slot: Slot, workers: Spots, ps: Spots) -> JobSchedule:
    """Return the schedule, with no PS too many; where all came to lie on one server unasked, it takes fewer slots."""
    kind = slot.kind
    host = ps[0][0]
    ps = ((host, ps_needed(batch, kind.worker, kind.ps, kind.workers - dict(workers).get(host, 0))),)
    schedule = JobSchedule(slot.job, slot.first, slot.last, workers, ps, kind.worker, kind.ps)
    slots = batch.duration(slot.job, kind.workers, schedule.together, kind.worker, kind.ps)
    return JobSchedule(slot.job, slot.first, slot.first + slots - 1, workers, ps, kind.worker, kind.ps)


def _spots(counts: Array) -> Spots:
    return tuple((int(server), int(counts[server])) for server in np.flatnonzero(counts))
