"""Algorithms 3 to 5 of posted-price packing, line by line: the reference for the fast search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil

from fairopt.models.astraea.round_state import RoundState, spots
from fairopt.policy import Admission
from fairopt.problem.batch import JobSchedule
from fairopt.problem.queue import Spots


@dataclass(frozen=True)
class Reference:
    """A way to find the best schedule of one job in a round. All ways return the same.

    This one is slow and plain: it tries every start slot and every number of workers, distributed and centralised.
    Among equal gains the first found is kept: start slots rising, then workers rising, worker types and types of PS in
    order; centralised before distributed (line 6 has "at least"). Another way to search derives from it, with the same
    options and the same answers. Where the printed algorithms leave something open, or contradict the constraints they
    are to keep:

    * ``enough_ps``: Algorithm 4, line 8, takes the least of the PS that the bandwidth asks for and of those that are
      left, so that a server short of PS is preferred and (3i) broken. True (default): a server must have as many as
      (3i) asks for. False: as printed.
    * ``price_each_slot``: Algorithm 5, line 12, charges the first slot's price for all slots. True (default): each
      slot's own, as Eq. (10) and Algorithm 4 have it. False: as printed.

    Source: Astraea (posted prices) Algorithm 3.
    """

    enough_ps: bool = True
    price_each_slot: bool = True

    def best(self, state: RoundState, job: int) -> Admission:
        """Propose the schedule of largest gain, which may be negative; without a schedule where nothing fits."""
        found = Admission(job, origin=state.origin)
        numbers = range(1, int(state.batch.jobs.chunks[job]) + 1)
        for start, workers, types in product(range(1, state.slots + 1), numbers, state.batch.pairs):
            here = (state, job, start, workers, *types, self)
            for one in (centralised(*here), distributed(*here)):
                if one is not None and (found.schedule is None or one.gain > found.gain):
                    found = one
        return found


def distributed(
    state: RoundState, job: int, start: int, workers: int, worker: int, ps: int, readings: Reference
) -> Admission | None:
    """Return a cheap schedule over several servers, all PS on one of them; None where there is none.

    The PS go to the server that needs the fewest for the workers elsewhere, which keeps at most ``workers`` - 1 of the
    workers; the others go to the servers with the fewest free workers, so that room for centralised jobs is left.

    Source: Astraea (posted prices) Algorithm 4.
    """
    batch, span = state.batch, _span(state, job, start, workers, worker, ps, together=False)
    if span is None:
        return None
    free, free_ps = state.workers.free, state.ps.free
    offered = state.ps.offered(int(batch.jobs.tenant[job]), ps)
    ratio = batch.worker_bandwidth[worker] / batch.ps_bandwidth[ps]
    servers, hosts = range(len(batch.servers)), []
    for server in servers:
        there = min(workers - 1, *(int(free[server, worker, t]) for t in span))
        needed = ceil((workers - there) * ratio)
        left = min(min(int(free_ps[server, ps, t]), int(offered[t])) for t in span)
        given = needed if readings.enough_ps else min(needed, left)
        if 1 <= given <= left:
            hosts.append((given, server, there))
    if not hosts:
        return None
    given, host, there = min(hosts)
    missing, placed = workers - there, [(host, there)]
    room = {server: min(int(free[server, worker, t]) for t in span) for server in servers if server != host}
    for server in sorted(room, key=lambda server: (room[server], server)):
        here = min(room[server], missing)
        placed.append((server, here))
        missing -= here
    return None if missing else scheduled(state, job, span, spots(placed), ((host, given),), worker, ps)


def centralised(
    state: RoundState, job: int, start: int, workers: int, worker: int, ps: int, readings: Reference
) -> Admission | None:
    """Return a schedule with all workers and one PS on one server, the first that has room; None where none has.

    Source: Astraea (posted prices) Algorithm 5.
    """
    span = _span(state, job, start, workers, worker, ps, together=True)
    if span is None:
        return None
    free, free_ps = state.workers.free, state.ps.free
    for server in range(len(state.batch.servers)):
        if all(free[server, worker, t] >= workers and free_ps[server, ps, t] >= 1 for t in span):
            best = scheduled(state, job, span, ((server, workers),), ((server, 1),), worker, ps)
            if readings.price_each_slot or best.schedule is None:
                return best
            workers_cost, ps_cost = _first_slot(state, best.schedule)
            return replace(best, worker_cost=workers_cost, ps_cost=ps_cost)
    return None


def _span(
    state: RoundState, job: int, start: int, workers: int, worker: int, ps: int, *, together: bool
) -> range | None:
    """Return the slots of a schedule, from 0; None where the round is too short or its tenant may not. Lines 3-6."""
    span = range(start - 1, start - 1 + state.batch.duration(job, workers, together, worker, ps))
    if span.stop > state.slots:
        return None
    own, own_ps = state.offered(int(state.batch.jobs.tenant[job]), worker, ps)
    return span if all(own[t] >= workers and own_ps[t] >= 1 for t in span) else None


def scheduled(
    state: RoundState, job: int, span: range, where: Spots, where_ps: Spots, worker: int, ps: int
) -> Admission:
    """Return the schedule over ``span``; f counts from the round's origin. Source: Algorithm 3, line 6."""
    schedule = JobSchedule(job, state.origin + span.start + 1, state.origin + span.stop, where, where_ps, worker, ps)
    cost, cost_ps = state.cost(schedule)
    utility = state.batch.jobs.utility[job].value(Fraction(span.stop))
    return Admission(job, schedule=schedule, worker_cost=cost, ps_cost=cost_ps, utility=utility, origin=state.origin)


def _first_slot(state: RoundState, schedule: JobSchedule) -> tuple[float, float]:
    eta_workers, eta_ps = state.prices()
    at = schedule.first - state.origin - 1
    etas = eta_workers[schedule.worker_type, at], eta_ps[schedule.ps_type, at]
    workers, ps = (float(schedule.duration * n * eta) for n, eta in zip(schedule.count(), etas, strict=True))
    return workers, ps
