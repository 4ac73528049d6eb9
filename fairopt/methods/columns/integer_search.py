"""The integer optimum of (5) where its columns are too many: when jobs run first, then where, until both agree.

A first program chooses when each job runs, and how, within what all servers hold together: a relaxation of (5), made
tighter by families of cuts (`_rows`). A second one looks for servers. Where not all that was chosen finds its place, a
least set of jobs that does not is forbidden, with all that asks for at least as much, and the first is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairopt.backends import Session
from fairopt.backends.solution import Solution, Status
from fairopt.methods.columns.columns import RunMode, Spots, Times, hosts, ps_needed
from fairopt.methods.columns.pricing import PackingEvidence, Prices, Pricing, weighted_sums
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Array, Formulation

#: What a float solver's optimum may be off by.
SLACK = 1e-7
#: The first goal is below the bound by this part of it, and each next one this many times farther.
FIRST_DISTANCE, FARTHER = Fraction(1, 2000), 8


class Slot(NamedTuple):
    """When a job runs and how, but not where."""

    job: int
    first: int
    mode: RunMode

    @property
    def last(self) -> int:
        """The slot of completion."""
        return self.first + self.mode.slots - 1


def search(batch: Batch, times: Times, relaxed: PackingEvidence, solve: Session, most_cuts: int) -> PackingEvidence:
    """Return the integer optimum, or the best that ``most_cuts`` sets that cannot be placed lead to.

    Times that cannot belong to a schedule that earns more than some goal, by the prices of the relaxation, are left
    out. The goal is just below the bound at first, and is lowered until as much as the goal is earned: then nothing
    better was left out.

    Errors: `NotSolved`.
    """
    best = relaxed
    losses = _losses(batch, times, relaxed.prices)
    distance = relaxed.bound * FIRST_DISTANCE
    while True:
        goal = max(best.revenue, relaxed.bound - distance)
        promising = [slot for loss, slot in losses if times.rounded(relaxed.proved - loss) > goal]
        if promising:
            best = _rounds(batch, times, promising, solve, best, most_cuts)
        if best.revenue >= goal or not best.searched:
            return replace(best, searched=best.searched or best.by_prices)
        distance *= FARTHER


def _rounds(
    batch: Batch, times: Times, slots: Sequence[Slot], solve: Session, best: PackingEvidence, most_cuts: int
) -> PackingEvidence:
    """Return ``best`` improved by choices among ``slots``, up to its bound; searched where no choice is better."""
    cuts: list[tuple[Slot, ...]] = []
    while best.cuts <= most_cuts:
        value, chosen = _choose(batch, times, slots, cuts, solve)
        value = min(value, float(best.bound))
        if _reaches(best, value):
            return replace(best, searched=True)
        placed, sure = place(batch, times, chosen, solve)
        revenue = sum((Fraction(times.worth[each.job][each.last - 1]) for each in placed), start=Fraction(0))
        if revenue > best.revenue:
            best = replace(best, schedules=tuple(placed), revenue=revenue)
        if len(placed) == len(chosen) or not sure:
            return replace(best, searched=_reaches(best, value))
        cuts.append(_least_unplaceable(batch, times, chosen, solve))
        best = replace(best, cuts=best.cuts + 1)
    return replace(best, searched=False)


def _reaches(best: PackingEvidence, value: float) -> bool:
    return value <= float(best.revenue) + SLACK * max(1.0, abs(value))


def _losses(batch: Batch, times: Times, prices: Prices) -> list[tuple[Fraction, Slot]]:
    """Return all slots of jobs, and how much less than the job's best schedule the cheapest one there gains."""
    whole, common = prices.whole()
    pricing = Pricing(batch, times, whole, every_slot=True)
    found = []
    for job in range(len(batch.jobs)):
        worth = [Fraction(value) for value in times.worth[job]]
        gains = []
        for number, mode in enumerate(times.modes[job]):
            cost = pricing.cheapest(job, number).cost.tolist()
            gains += [
                (worth[at] - Fraction(int(each), common), Slot(job, at - mode.slots + 2, mode))
                for at, each in enumerate(cost)
                if each < pricing.most
            ]
        most = max([Fraction(0), *(gain for gain, _ in gains)])
        found += [(most - gain, slot) for gain, slot in gains]
    return found


def _choose(
    batch: Batch, times: Times, slots: Sequence[Slot], cuts: Sequence[tuple[Slot, ...]], solve: Session
) -> tuple[float, list[Slot]]:
    """Return a bound on the revenue without servers, infinity at a limit, and the slots that reach it; see `_rows`."""
    if not slots:
        return 0.0, []
    p = Formulation("when jobs run")
    o = p.variable("chosen", (len(slots),), lower=0, upper=1, integer=True)
    unit = times.unit or Fraction(1)  # whole numbers let a backend round its bounds
    worth = np.array([float(Fraction(times.worth[each.job][each.last - 1]) / unit) for each in slots])
    p.maximize((worth * o).sum())
    for name, weights, most in _rows(batch, times, slots, cuts):
        p.constrain(name, weighted_sums(o, weights) <= most)
    solution = solve(p.program())
    if solution.status is Status.LIMIT and solution.x is None:
        return float("inf"), []
    solution = answer(solution)
    assert solution.bound is not None
    chosen = [slots[at] for at in np.flatnonzero(solution.point > 1 / 2).tolist()]
    return float(solution.bound) * float(unit), chosen


#: A name, weights (rows, slots) and the most that each weighted sum of chosen slots may come to.
Rows = tuple[str, Array, int]


def _rows(batch: Batch, times: Times, slots: Sequence[Slot], cuts: Sequence[tuple[Slot, ...]]) -> Iterator[Rows]:
    """Yield the rows of the first program, family by family."""
    job = np.array([each.job for each in slots])
    yield "once", (job == np.arange(len(batch.jobs))[:, None]).astype(np.int64), 1
    span, now = np.array([(each.first, each.last) for each in slots]), np.arange(1, times.slots + 1)
    active = ((span[:, :1] <= now) & (now <= span[:, 1:])).T
    starts = np.unique(span[:, 0]) - 1  # use rises only where something starts
    spots = [list(hosts(batch, each.mode)) for each in slots]
    workers = np.array([each.mode.workers for each in slots])
    beside = np.array([min(here for _, here, _ in each) for each in spots])  # workers on the server of the PS
    fewest = np.array([min(ps for _, _, ps in each) for each in spots])
    worker_type, ps_type = np.array([(each.mode.worker, each.mode.ps) for each in slots]).T
    for name, weight, most in (
        *_type_rows("workers", worker_type, batch.workers, workers, beside, batch.ps.sum(axis=1)),
        *_type_rows("ps", ps_type, batch.ps, fewest, fewest, batch.ps.sum(axis=1)),
    ):
        yield name, active[starts] * weight, most
    for number, cut in enumerate(cuts):
        asks = [any(_at_least(each, other) for other in cut) for each in slots]
        yield f"cut {number}", np.array([asks], dtype=np.int64), len(cut) - 1


def _type_rows(name: str, types: Array, there: Array, asked: Array, on_one: Array, hosts: Array) -> Iterator[Rows]:
    """Yield for each type how many there are of it, and how many servers have so many at once for a job.

    By slot: ``types``, ``asked`` in all and ``on_one`` server. ``hosts`` (servers,): most jobs with their PS there.
    """
    for type_, room in enumerate(there.T):
        yield f"{name} {type_}", asked * (types == type_), int(room.sum())
        alone = on_one * (types == type_)
        for least in np.unique(alone[alone > 1]):
            most = np.minimum(room // least, hosts).sum()
            yield f"{name} {type_} on one server, {least}", (alone >= least).astype(np.int64), int(most)


def place(batch: Batch, times: Times, chosen: Sequence[Slot], solve: Session) -> tuple[list[JobSchedule], bool]:
    """Return schedules of the largest utility for those of ``chosen`` that can be placed, and whether it is proved."""
    if not chosen:
        return [], True
    n, count = len(chosen), len(batch.servers)
    workers = np.array([each.mode.workers for each in chosen])
    together = np.array([each.mode.together for each in chosen])
    room = np.stack([batch.workers[:, each.mode.worker] for each in chosen])
    ps_room = np.stack([batch.ps[:, each.mode.ps] for each in chosen])
    # PS that a worker elsewhere asks for
    ratio = [batch.worker_bandwidth[each.mode.worker] / batch.ps_bandwidth[each.mode.ps] for each in chosen]
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
            ("workers", y, batch.workers, [each.mode.worker for each in chosen]),
            ("ps", z, batch.ps, [each.mode.ps for each in chosen]),
        ):
            for type in range(there.shape[1]):
                counted = np.flatnonzero(active & (np.array(types) == type))
                if len(counted):
                    p.constrain(f"{name} {type} in slot {start}", use[counted].sum(axis=0) <= there[:, type])
    program = p.program()
    solution = answer(solve(program))
    point = solution.point
    placed, taken, given = (np.rint(program.variable(name, point)) for name in ("placed", "workers", "ps"))
    schedules = [
        _shortest(batch, slot, _spots(taken[at]), _spots(given[at])) for at, slot in enumerate(chosen) if placed[at] > 0
    ]
    return schedules, solution.status is Status.OPTIMAL


def answer(solution: Solution) -> Solution:
    """Return an optimum, or what was found up to a limit; errors: `NotSolved` where that is nothing."""
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
    """Return whether ``other`` could be placed wherever ``slot`` is: the same types, no fewer slots and workers."""
    mine, its = slot.mode, other.mode
    return (
        slot.job == other.job
        and slot.first <= other.first
        and slot.last >= other.last
        and (mine.worker, mine.ps) == (its.worker, its.ps)
        and mine.workers >= its.workers
        and (mine.together or not its.together)
    )


def _shortest(batch: Batch, slot: Slot, workers: Spots, ps: Spots) -> JobSchedule:
    """Return the schedule with no PS too many. Where all workers happen to be on one server, it takes fewer slots."""
    mode, host = slot.mode, ps[0][0]
    ps = ((host, ps_needed(batch, mode.worker, mode.ps, mode.workers - dict(workers).get(host, 0))),)
    schedule = JobSchedule(slot.job, slot.first, slot.last, workers, ps, mode.worker, mode.ps)
    slots = batch.duration(slot.job, mode.workers, schedule.together, mode.worker, mode.ps)
    return replace(schedule, last=slot.first + slots - 1)


def _spots(counts: Array) -> Spots:
    return tuple((int(server), int(counts[server])) for server in np.flatnonzero(counts))
