"""A faster search for posted-price packing: bounds first, placements only where they can change the answer."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from fairopt.deadline import left
from fairopt.errors import NotCapable
from fairopt.methods.columns.columns import RunMode
from fairopt.models.astraea.reference import Reference, scheduled
from fairopt.models.astraea.round_state import RoundState, least_over, spots
from fairopt.policy import Admission
from fairopt.problem.batch import NEVER
from fairopt.program import Array


@dataclass(frozen=True)
class Fast(Reference):
    """The same schedule as `Reference`, found from prefix sums of prices and least free resources over windows.

    A schedule's gain is at most its gain with the fewest PS that could suffice on any server. Families of schedules are
    placed, all starts at once, in falling order of this bound, until it drops below the best gain found.

    The printed price of Algorithm 5 gives no bound and is refused.

    Source: Astraea (posted prices) Algorithms 3-5; the search is ours.
    """

    def __post_init__(self) -> None:
        if not self.price_each_slot:
            raise NotCapable("the fast search needs each slot's own price; give search=Reference(...) for the other")

    def best(self, state: RoundState, job: int) -> Admission:
        """Propose the schedule of largest gain, which may be negative; without a schedule where nothing fits."""
        left()
        outlines = _outlines(state, job, self.enough_ps)
        if not outlines.size:
            return Admission(job, origin=state.origin)
        worth = np.array(state.batch.jobs.utility[job].floats(state.slots))
        # utilities never rise and prices are not negative: none gains more than completing at once for nothing
        most = worth[outlines[2] - 1]
        waiting = list(zip(most.tolist(), *outlines.tolist(), strict=True))
        waiting.sort(key=lambda each: (each[0], -each[1]))
        ready: list[tuple[float, int, RunMode, Array]] = []  # a heap, largest bound first
        found: tuple[float, int, int] | None = None  # gain, then start and family as the reference tries them, negated
        best: RunMode | None = None
        while waiting or ready:
            bound = max(waiting[-1][0] if waiting else -np.inf, -ready[0][0] if ready else -np.inf)
            if found is not None and bound < found[0]:
                break
            if waiting and waiting[-1][0] == bound:
                _, number, workers, slots = waiting.pop()
                family = _family(state, job, number, workers, slots, worth, self.enough_ps)
                if family is not None:
                    heappush(ready, (-float(family[1].max()), number, *family))
                continue
            _, number, mode, gain = heappop(ready)
            gains = _gains(state, job, mode, gain, worth, self)
            start = int(np.argmax(gains))  # the first of the largest
            if gains[start] > -np.inf:
                one = float(gains[start]), -start, -number
                if found is None or one > found:
                    found, best = one, mode
        if found is None or best is None:
            return Admission(job, origin=state.origin)
        return _placed(state, job, best, -found[1], self)


def _outlines(state: RoundState, job: int, enough: bool) -> Array:
    """Return what may fit, for all that is free at any one slot: columns of number, workers and slots; (3, families).

    ``number``: the place of a family in the order in which the reference tries them.
    """
    batch, pairs = state.batch, state.batch.pairs
    tenant, found = int(batch.jobs.tenant[job]), [np.zeros((3, 0), dtype=np.int64)]
    for place, (worker, ps) in enumerate(pairs):
        for apart in (False, True):
            slots = batch.durations(job, not apart, worker, ps)
            fitting = state.stretches(tenant, worker, ps, apart, enough)[1 : len(slots) + 1]
            workers = (slots[: len(fitting)] <= fitting).nonzero()[0] + 1
            found.append(np.array([(workers * len(pairs) + place) * 2 + apart, workers, slots[workers - 1]]))
    return np.concatenate(found, axis=1)


def _family(
    state: RoundState, job: int, number: int, workers: int, slots: int, worth: Array, enough: bool
) -> tuple[RunMode, Array] | None:
    """Return how jobs of a family of `_outlines` run, and the largest gain possible for each start (starts,).

    That is the gain with the fewest PS that could suffice; -inf where the tenant may not take the resources or the
    servers do not have them. None where no start can fit.
    """
    pairs = state.batch.pairs
    (worker, ps), apart = pairs[number // 2 % len(pairs)], bool(number % 2)
    own, own_ps = state.windows_offered(int(state.batch.jobs.tenant[job]), worker, ps)
    fits = (least_over(own, slots) >= workers) & (least_over(own_ps, slots) >= 1)
    if not fits.any():
        return None
    there, most_workers, most_ps = state.room(slots)
    fewest: Array | int = 1
    if apart and enough:
        fewest = _fewest(workers, most_workers[worker], state.batch.ps_needed[worker, ps])
    fits &= (there if apart else most_workers)[worker] >= workers
    fits &= most_ps[ps] >= fewest
    if not fits.any():
        return None
    cost, cost_ps = _costs(state, workers, worker, ps, slots)
    gains = np.where(fits, worth[slots - 1 :] - cost - cost_ps * fewest, -np.inf)
    return RunMode(worker, ps, not apart, workers, slots), gains


def _fewest(workers: int, there: Array, needs: Array) -> Array:
    """Return the PS that (3i) requires if a server has room for ``there`` workers; at least one is elsewhere."""
    return np.asarray(needs[workers - np.minimum(workers - 1, there)])


def _costs(state: RoundState, workers: int, worker: int, ps: int, slots: int) -> tuple[Array, Array]:
    """Return what the workers (starts,) and one PS (starts,) cost over ``slots`` slots from each start on."""
    total, total_ps = state.totals[0][worker], state.totals[1][ps]
    starts = state.slots - slots + 1
    return (total[slots:] - total[:starts]) * workers, total_ps[slots:] - total_ps[:starts]


def _gains(state: RoundState, job: int, mode: RunMode, most: Array, worth: Array, readings: Reference) -> Array:
    """Return what each start (starts,) gains, at ``most`` so much, and -inf where no servers have room."""
    workers, worker, ps, slots = mode.workers, mode.worker, mode.ps, mode.slots
    free, free_ps = state.windows
    room, left = least_over(free, slots)[:, worker], least_over(free_ps, slots)[:, ps]
    if mode.together:
        return np.where(((room >= workers) & (left >= 1)).any(axis=0), most, -np.inf)
    host, given, able = _hosts(state, job, mode, room, left, readings)
    there = np.minimum(workers - 1, np.take_along_axis(room, host[None], axis=0)[0])
    others = room.sum(axis=0) - np.take_along_axis(room, host[None], axis=0)[0]
    cost, cost_ps = _costs(state, workers, worker, ps, slots)
    able &= (others >= workers - there) & (most > -np.inf)
    return np.where(able, worth[slots - 1 :] - cost - cost_ps * given, -np.inf)


def _hosts(
    state: RoundState, job: int, mode: RunMode, room: Array, left: Array, readings: Reference
) -> tuple[Array, Array, Array]:
    """Return, for each start, the server that holds the PS, how many, and whether there is one."""
    tenant = int(state.batch.jobs.tenant[job])
    offered = least_over(state.windows_offered(tenant, mode.worker, mode.ps)[1], mode.slots)
    left = np.minimum(left, offered)
    needed = _fewest(mode.workers, room, state.batch.ps_needed[mode.worker, mode.ps])
    given = needed if readings.enough_ps else np.minimum(needed, left)
    given = np.where((given >= 1) & (given <= left), given, NEVER)
    host = np.argmin(given, axis=0)
    least = np.take_along_axis(given, host[None], axis=0)[0]
    able = least < NEVER
    return host, np.where(able, least, 0), able


def _placed(state: RoundState, job: int, mode: RunMode, start: int, readings: Reference) -> Admission:
    """Return the schedule of one family from one start (from 0), which is known to fit."""
    workers, worker, ps, slots = mode.workers, mode.worker, mode.ps, mode.slots
    free, free_ps = state.windows
    room, left = least_over(free, slots)[:, worker], least_over(free_ps, slots)[:, ps]
    if not mode.together:
        host, given, _ = (int(each[start]) for each in _hosts(state, job, mode, room, left, readings))
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
