"""The choice of jobs and of their hosts: the greedy step of most schedulers, and one protocol of placements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, overload

import numpy as np

from fairopt.problem.queue import Placements, Queue, Spots, any_type
from fairopt.program import INFINITY, Array


class Request(NamedTuple):
    """A job that is to run: its row, and the types that its GPUs may have (one, unless types may mix).

    >>> Request(0, (1,)).gpu_types
    (1,)
    """

    row: int
    gpu_types: tuple[int, ...]


class Requests(Sequence[Request]):
    """Requests for one type each, in columns: ``rows`` and ``gpu_types``."""

    def __init__(self, rows: Array, gpu_types: Array) -> None:
        self.rows, self.gpu_types = rows, gpu_types

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Request: ...
    @overload
    def __getitem__(self, at: slice) -> Requests: ...
    def __getitem__(self, at: int | slice) -> Request | Requests:
        if isinstance(at, slice):
            return Requests(self.rows[at], self.gpu_types[at])
        return Request(int(self.rows[at]), (int(self.gpu_types[at]),))

    def __iter__(self) -> Iterator[Request]:
        for row, gpu_type in zip(self.rows.tolist(), self.gpu_types.tolist(), strict=True):
            yield Request(row, (gpu_type,))


class Placement(Protocol):
    """A way to choose hosts. Jobs that cannot be placed are left out of the answer; nothing is overbooked.

    >>> placement: Placement = Consolidated()
    """

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the `Spots` of those of ``requests`` that fit into ``free`` (H,), which is not changed."""
        ...


@dataclass(frozen=True)
class Consolidated:
    """As few hosts as possible for each job; a job that ran in the round before stays where it is.

    First the jobs that can stay, then the others by falling number of GPUs: onto the fullest single host with room
    (the one that it ran on last, where there is a choice), else onto the emptiest hosts.

    Source: ASTRAEA Sec. 5 (consolidated placement); OEF Sec. 4.3 (priority for jobs with more workers).

    >>> from fractions import Fraction
    >>> from fairopt.simulation import begin, present
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> queue = present(begin(cluster), trace, cluster, Fraction(300))
    >>> dict(Consolidated().place(queue, [Request(0, (0,))], cluster.gpus))
    {0: ((0, 1),)}
    """

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the spots of the requests that fit; see `Placement.place`."""
        left = free.copy()
        moving: Sequence[Request]
        at_once = all_staying(queue, requests, left) if isinstance(requests, Requests) else None
        if at_once is None:
            placed, moving = staying(queue, requests, left)
            stay = np.array(list(placed), dtype=np.int64)
        else:
            stay, moving = at_once
        moved = {}
        for request in sorted(moving, key=lambda request: -int(queue.jobs.gpus[request.row])):
            spots = fewest_hosts(queue, request, left)
            if spots:
                take(left, spots)
                moved[request.row] = spots
        return Placements(queue.last, stay, moved)


def staying(queue: Queue, requests: Sequence[Request], left: Array) -> tuple[dict[int, Spots], list[Request]]:
    """Return where jobs stay, whose GPUs are taken out of ``left`` (H,), and the requests of the others.

    A job stays if it ran in the round before, may run on the same types, and its GPUs are free.
    """
    placed: dict[int, Spots] = {}
    moving = []
    for request in requests:
        spots = queue.last[request.row]
        same = queue.running[request.row] and set(queue.gpu_types(spots)) <= set(request.gpu_types)
        if same and all(left[host] >= gpus for host, gpus in spots):
            placed[request.row] = spots
            take(left, spots)
        else:
            moving.append(request)
    return placed, moving


def all_staying(queue: Queue, requests: Requests, left: Array) -> tuple[Array, Sequence[Request]] | None:
    """Return the rows that stay and the requests of the others, as `staying` does; None where GPUs are taken."""
    rows = requests.rows
    stay = queue.running[rows] & (queue.last_type[rows] == requests.gpu_types)
    held = queue.held_at(rows[stay])
    if (held > left).any():
        return None
    left -= held
    return rows[stay], Requests(rows[~stay], requests.gpu_types[~stay])


def take(left: Array, spots: Spots) -> None:
    """Take the GPUs of ``spots`` out of ``left`` (H,), in place."""
    for host, gpus in spots:
        left[host] -= gpus


def fewest_hosts(queue: Queue, request: Request, left: Array) -> Spots:
    """Return spots for one job on as few hosts as possible, () where it does not fit.

    The fullest host that can hold all of it, else the emptiest first; ties go to where it ran last, then to the first.
    """
    gpus, of_type = int(queue.jobs.gpus[request.row]), queue.cluster.hosts_by_type
    before = {host for host, _ in queue.last[request.row]}
    groups = [of_type[gpu_type] for gpu_type in request.gpu_types]
    for hosts in groups if len(groups) == 1 else [*groups, np.concatenate(groups)]:
        free = left[hosts]
        at = fullest_host(free, gpus)
        if at >= 0:
            if before:
                fullest = hosts[free == free[at]].tolist()
                return ((next((host for host in fullest if host in before), fullest[0]), gpus),)
            return ((int(hosts[at]), gpus),)
        if spots := over_hosts(hosts, free, gpus, before):
            return spots
    return ()


#: More GPUs than a host has; numpy takes longer to say its largest number than to find the host.
_MANY = int(np.iinfo(np.int64).max)


def fullest_host(free: Array, gpus: int) -> int:
    """Return the place of the fullest host that can hold so many, by the GPUs ``free`` on each; -1 for none."""
    if not len(free):
        return -1
    at = int(np.where(free >= gpus, free, _MANY).argmin())
    return at if free[at] >= gpus else -1


def over_hosts(hosts: Array, free: Array, gpus: int, before: Collection[int] = ()) -> Spots:
    """Return spots for so many GPUs on the emptiest of the ``hosts``, () where they do not fit into those ``free``.

    Ties go to the hosts that the job ran on ``before``, then to the first.
    """
    if free.sum(where=free > 0) < gpus:
        return ()
    spots, missing = [], gpus
    emptiest = (hosts, np.isin(hosts, list(before), invert=True), -free) if before else (hosts, -free)
    for at in np.lexsort(emptiest).tolist():
        here = min(missing, int(free[at]))
        spots.append((int(hosts[at]), here))
        missing -= here
        if not missing:
            break
    return tuple(sorted(spots))


# -- the greedy step -----------------------------------------------------------------------------------------------
#: The types that a job may run on now, given queue and row, the one that it asks for first at the head. A callable with
#: methods ``first`` and ``ranked``, as `ByThroughput` has them, is asked for all jobs at once, which is faster.
Preference = Callable[[Queue, int], Sequence[int]]


@dataclass(frozen=True)
class ByThroughput:
    """The types that a job may run on now, the fastest for it first; ties keep the order of types.

    ``stay``: a job that ran in the round before asks for the type that it runs on before all others.
    """

    stay: bool = False

    def __call__(self, queue: Queue, row: int) -> Sequence[int]:
        """Return a job's types."""
        fastest = queue.by_speed(row)
        here = queue.last_gpu_type(row) if self.stay and queue.running[row] else -1
        return fastest if here < 0 else sorted(fastest, key=lambda gpu_type: gpu_type != here)

    def first(self, queue: Queue) -> Array:
        """Return the first of each job's types (n,), -1 where there is none."""
        if len(queue.cluster.types) == 1:
            return queue.can - 1
        fastest = np.argmax(np.where(queue.allowed, queue.jobs.throughput, -1), axis=1)
        first: Array = np.where(queue.can, fastest, -1)
        if self.stay:
            here = queue.last_type.copy()
            for row in np.flatnonzero(queue.running & (here < 0)).tolist():
                here[row] = queue.last_gpu_type(row)
            stays = queue.running & queue.allowed[np.arange(len(queue)), here]
            first = np.where(stays, here, first)
        return first

    def ranked(self, queue: Queue, rows: Array) -> Array:
        """Return the types (m, k) of ``rows`` (m,), best first; -1 where there are no more."""
        allowed = queue.allowed[rows]
        speed = np.where(allowed, queue.jobs.throughput[rows], -1)
        if self.stay:
            at = np.arange(len(rows))
            first = self.first(queue)[rows]
            speed[at, first] = np.where(first >= 0, INFINITY, speed[at, first])
        order = np.argsort(-speed, axis=1, kind="stable")
        return np.where(np.take_along_axis(allowed, order, axis=1), order, -1)


by_throughput = ByThroughput()


def choose(
    queue: Queue, order: Iterable[int], *, gpu_types: Preference | Array = by_throughput, skip: bool = True
) -> Requests:
    """Return the jobs that run, in ``order``, each with the first of its ``gpu_types`` that has room for the gang.

    An array (n,) of ``gpu_types`` has the one type on which each job may run.

    Jobs that hold a lease are left out (they run anyway), and their GPUs are not available. ``skip`` False stops at the
    first job that does not fit, so that no job overtakes it.

    >>> from fractions import Fraction
    >>> from fairopt.simulation import begin, present
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> queue = present(begin(cluster), trace, cluster, Fraction(300))
    >>> choose(queue, range(len(queue)))[0]
    Request(row=0, gpu_types=(1,))
    """
    left: list[int] = queue.room.tolist()
    rows = order if isinstance(order, np.ndarray) else np.array(list(order), dtype=np.int64)
    sizes, allowed = queue.jobs.gpus, queue.allowed
    open_to = ~queue.holds
    if skip:
        open_to &= queue.can
    elif queue.unschedulable:
        open_to[list(queue.unschedulable)] = False
    rows = rows[open_to[rows]]
    if isinstance(gpu_types, np.ndarray):
        alone = np.where(allowed[rows, gpu_types[rows]], gpu_types[rows], -1)
        return _in_turn(queue, Requests(rows[:0], rows[:0]), rows, alone[:, None], left, skip)
    first = getattr(gpu_types, "first", None)
    asked = np.full(len(rows), -1) if first is None else first(queue)[rows]
    got = _all_get(asked, sizes[rows], left)
    chosen, rows = rows[:got], rows[got:]
    if not len(rows):
        return Requests(chosen, asked)
    if hasattr(gpu_types, "ranked"):
        return _in_turn(queue, Requests(chosen, asked[:got]), rows, gpu_types.ranked(queue, rows), left, skip)
    if skip:  # most waiting jobs find no room, and will find none in this round
        rows = rows[(allowed[rows] & (sizes[rows, None] <= np.array(left))).any(axis=1)]
    more: list[tuple[int, int]] = []
    for row, gpus, able in zip(rows.tolist(), sizes[rows].tolist(), allowed[rows].tolist(), strict=True):
        if not any(left):  # no other job can be placed
            break
        # ranking the types of each would take most of the time
        roomy = any([can and room >= gpus for can, room in zip(able, left, strict=True)])  # noqa: C419 (faster)
        gpu_type = next((each for each in gpu_types(queue, row) if left[each] >= gpus), None) if roomy else None
        if gpu_type is None:
            if skip:
                continue
            break
        left[gpu_type] -= gpus
        more.append((row, gpu_type))
    late = np.array(more, dtype=np.int64).reshape(-1, 2)
    return Requests(np.concatenate((chosen, late[:, 0])), np.concatenate((asked[:got], late[:, 1])))


def _in_turn(queue: Queue, chosen: Requests, rows: Array, ranked: Array, left: list[int], skip: bool) -> Requests:
    """Return those ``chosen`` and, in their order, the ``rows`` (m,) that find room on one of their types (m, k)."""
    found = [(chosen.rows, chosen.gpu_types)]
    sizes = queue.jobs.gpus[rows]
    while len(rows):
        # room only shrinks: a type that has none for a job has none when it is the job's turn
        roomy = (ranked >= 0) & (sizes[:, None] <= np.array(left)[ranked])
        best = np.take_along_axis(ranked, roomy.argmax(axis=1)[:, None], axis=1)[:, 0]
        asked = np.where(any_type(roomy), best, -1)
        if skip:
            some = asked >= 0
            rows, sizes, ranked, asked = rows[some], sizes[some], ranked[some], asked[some]
        got = _all_get(asked, sizes, left)
        found.append((rows[:got], asked[:got]))
        if got < len(rows) and asked[got] < 0:
            break
        rows, sizes, ranked = rows[got:], sizes[got:], ranked[got:]
    return Requests(*map(np.concatenate, zip(*found, strict=True)))


def _all_get(asked: Array, sizes: Array, left: list[int]) -> int:
    """Return how many jobs at the head all get the types that they ask for first (-1: none), out of ``left``."""
    none = np.flatnonzero(asked < 0)
    got = int(none[0]) if len(none) else len(asked)
    for gpu_type, room in enumerate(left):
        total = np.cumsum(np.where(asked[:got] == gpu_type, sizes[:got], 0))
        got = int(np.searchsorted(total, room, side="right"))
    used = np.bincount(asked[:got], weights=sizes[:got], minlength=len(left))
    left[:] = [room - int(gpus) for room, gpus in zip(left, used, strict=True)]
    return got


def placed(queue: Queue, requests: Sequence[Request], placement: Placement) -> Placements:
    """Return the placements of one round: jobs with leases stay where they are, ``requests`` go where they fit.

    >>> from fractions import Fraction
    >>> from fairopt.simulation import begin, present
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> queue = present(begin(cluster), trace, cluster, Fraction(300))
    >>> dict(placed(queue, [Request(0, (0,))], Consolidated()))
    {0: ((0, 1),)}
    """
    kept = np.flatnonzero(queue.holds)
    answer = placement.place(queue, requests, queue.working - queue.held_at(kept))
    if isinstance(answer, Placements):
        return Placements(queue.last, np.concatenate((kept, answer.stay)), answer.moved)
    return Placements(queue.last, kept, answer)
