"""A faster search for posted-price packing: bounds first, placements only where they can change the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.astraea.reference import Best, Readings, scheduled
from fairopt.models.astraea.round_state import RoundState, Windows, spots
from fairopt.problem.batch import slots_for
from fairopt.program import Array

#: More PS than any server has.
NEVER = int(np.iinfo(np.int64).max)


class ShiftedSchedules(NamedTuple):
    """Schedules that differ only in their start, with the largest gain possible for each start.

    ``most`` (starts,): the gain with the fewest PS that could suffice; -inf where the tenant may not take the resources
    or the servers do not have them.
    """

    workers: int
    worker: int
    ps: int
    apart: bool
    slots: int
    most: Array


@dataclass(frozen=True)
class Fast:
    """The same schedule as `Reference`, found from prefix sums of prices and least free resources over windows.

    A schedule's gain is at most its gain with the fewest PS that could suffice on any server. Families of schedules are
    placed, all starts at once, in falling order of this bound, until it drops below the best gain found.

    ``readings``: as in `Reference`, except the printed price of Algorithm 5, which gives no bound and is refused.

    Source: Astraea (posted prices) Algorithms 3-5; the search is ours.
    """

    readings: Readings = field(default_factory=Readings)

    def __post_init__(self) -> None:
        if not self.readings.price_each_slot:
            raise NotCapable("the fast search needs each slot's own price; give search=Reference(...) for the other")

    def best(self, state: RoundState, job: int) -> Best | None:
        """Return the schedule of largest gain, which may be negative; None where nothing fits."""
        worth = np.array(state.batch.jobs.utility[job].floats(state.slots))
        families = list(_families(state, job, worth, self.readings.enough_ps))
        bounds = [float(family.most.max()) for family in families]
        found: tuple[float, int, int] | None = None  # gain, then start and family as the reference tries them, negated
        for number in sorted(range(len(families)), key=lambda number: (-bounds[number], number)):
            if found is not None and bounds[number] < found[0]:
                break
            gains = _gains(state, job, families[number], worth, self.readings)
            start = int(np.argmax(gains))  # the first of the largest
            if gains[start] > -np.inf:
                found = max(found or (-np.inf, 0, 0), (float(gains[start]), -start, -number))
        if found is None:
            return None
        return _placed(state, job, families[-found[2]], -found[1], self.readings)


def _families(state: RoundState, job: int, worth: Array, enough: bool) -> Iterator[ShiftedSchedules]:
    """Yield the families that have a start which may fit, in the order in which the reference tries them."""
    batch = state.batch
    servers, tenant, minibatches = batch.servers, int(batch.jobs.tenant[job]), batch.minibatches(job)
    pairs = servers.pairs
    offers = {pair: tuple(Windows.of(row) for row in state.offered(tenant, *pair)) for pair in pairs}
    times = {
        (*pair, apart): batch.slots_per_minibatch(job, not apart, *pair) for pair in pairs for apart in (False, True)
    }
    most = {pair: int(own.levels[0].max()) for pair, (own, _) in offers.items()}
    chunks = int(batch.jobs.chunks[job])
    needs = {pair: _needs(state, *pair, min(chunks, most[pair])) for pair in pairs}
    largest = servers.workers.max(axis=0).tolist()
    # with fewer workers no placement ends within the round
    least = min(slots_for(minibatches, time, state.slots) for time in times.values())
    for workers in range(max(least, 1), chunks + 1):
        for worker, ps in pairs:
            if workers > most[worker, ps]:
                continue
            own, own_ps = offers[worker, ps]
            for apart in (False, True):
                if not apart and workers > largest[worker]:
                    continue
                slots = slots_for(minibatches, times[worker, ps, apart], workers)
                if slots > state.slots:
                    continue
                fits = (own.least(slots) >= workers) & (own_ps.least(slots) >= 1)
                if not fits.any():
                    continue
                room = state.room(slots)
                fewest = _fewest(workers, room.most_workers[worker], needs[worker, ps]) if apart and enough else 1
                fits &= (room.workers if apart else room.most_workers)[worker] >= workers
                fits &= room.most_ps[ps] >= fewest
                if fits.any():
                    cost, cost_ps = _costs(state, workers, worker, ps, slots)
                    gains = np.where(fits, worth[slots - 1 :] - cost - cost_ps * fewest, -np.inf)
                    yield ShiftedSchedules(workers, worker, ps, apart, slots, gains)


def _needs(state: RoundState, worker: int, ps: int, most: int) -> Array:
    """Return the PS that the bandwidth of 0, ..., ``most`` workers on other servers requires: ceil(n b_w / b_p)."""
    servers = state.batch.servers
    ratio: Fraction = servers.worker_bandwidth[worker] / servers.ps_bandwidth[ps]
    needed = (-(-count * ratio.numerator // ratio.denominator) for count in range(most + 1))
    return np.array([min(each, NEVER) for each in needed], dtype=np.int64)


def _fewest(workers: int, there: Array, needs: Array) -> Array:
    """Return the PS that (3i) requires if a server has room for ``there`` workers; at least one is elsewhere."""
    return np.asarray(needs[workers - np.minimum(workers - 1, there)])


def _costs(state: RoundState, workers: int, worker: int, ps: int, slots: int) -> tuple[Array, Array]:
    """Return what the workers (starts,) and one PS (starts,) cost over ``slots`` slots from each start on."""
    total, total_ps = state.totals[0][worker], state.totals[1][ps]
    starts = state.slots - slots + 1
    return (total[slots:] - total[:starts]) * workers, total_ps[slots:] - total_ps[:starts]


def _gains(state: RoundState, job: int, family: ShiftedSchedules, worth: Array, readings: Readings) -> Array:
    """Return what each start (starts,) gains, -inf where no servers have room."""
    workers, worker, ps, apart, slots, most = family
    free, free_ps = state.windows
    room, left = free.least(slots)[:, worker], free_ps.least(slots)[:, ps]
    if not apart:
        return np.where(((room >= workers) & (left >= 1)).any(axis=0), most, -np.inf)
    host, given, able = _hosts(state, job, family, room, left, readings)
    there = np.minimum(workers - 1, np.take_along_axis(room, host[None], axis=0)[0])
    others = room.sum(axis=0) - np.take_along_axis(room, host[None], axis=0)[0]
    cost, cost_ps = _costs(state, workers, worker, ps, slots)
    able &= (others >= workers - there) & (most > -np.inf)
    return np.where(able, worth[slots - 1 :] - cost - cost_ps * given, -np.inf)


def _hosts(
    state: RoundState, job: int, family: ShiftedSchedules, room: Array, left: Array, readings: Readings
) -> tuple[Array, Array, Array]:
    """Return, for each start, the server that holds the PS, how many, and whether there is one."""
    tenant = int(state.batch.jobs.tenant[job])
    offered = Windows.of(state.offered(tenant, family.worker, family.ps)[1]).least(family.slots)
    left = np.minimum(left, offered)
    needed = _fewest(family.workers, room, _needs(state, family.worker, family.ps, family.workers))
    given = needed if readings.enough_ps else np.minimum(needed, left)
    given = np.where((given >= 1) & (given <= left), given, NEVER)
    host = np.argmin(given, axis=0)
    least = np.take_along_axis(given, host[None], axis=0)[0]
    able = least < NEVER
    return host, np.where(able, least, 0), able


def _placed(state: RoundState, job: int, family: ShiftedSchedules, start: int, readings: Readings) -> Best:
    """Return the schedule of one family from one start (from 0), which is known to fit."""
    workers, worker, ps, apart, slots, _ = family
    free, free_ps = state.windows
    room, left = free.least(slots)[:, worker], free_ps.least(slots)[:, ps]
    if apart:
        host, given, _ = (int(each[start]) for each in _hosts(state, job, family, room, left, readings))
        where, where_ps = _spread(workers, host, room[:, start]), ((host, given),)
    else:
        host = int(np.flatnonzero((room[:, start] >= workers) & (left[:, start] >= 1))[0])
        where, where_ps = ((host, workers),), ((host, 1),)
    return scheduled(state, job, range(start, start + slots), where, where_ps, worker, ps)


def _spread(workers: int, host: int, room: Array) -> tuple[tuple[int, int], ...]:
    """Return the workers on their servers: at most all but one beside the PS, the others on the fullest servers."""
    there = min(workers - 1, int(room[host]))
    placed, missing = [(host, there)], workers - there
    for server in np.argsort(room, kind="stable"):
        here = min(int(room[server]), missing) if server != host else 0
        placed.append((int(server), here))
        missing -= here
    return spots(placed)
