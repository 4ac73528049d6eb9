"""Volcano's actions: "allocate" starts the first job of the queue that comes first, "reclaim" stops jobs of others.

With "reclaim" a queue below what it deserves stops jobs of queues that are above; "preempt" has a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any

from fairopt.models.common.holdings import Amounts, Holdings, QueuedGang, TreeTurns, by_queue, quick, ratio
from fairopt.problem import Entitlements
from fairopt.problem.entitled_rows import TOP

#: What nodes would hold after some of their jobs were stopped, where that differs from now.
Left = dict[int, list[Any]]


def allocate(
    room: Holdings,
    turns: TreeTurns,
    refused: Callable[[int, Amounts], str] = lambda queue, takes: "",
    overused: Callable[[int], str] = lambda queue: "",
    runs: Callable[[QueuedGang], None] = lambda job: None,
) -> list[QueuedGang]:
    """Start jobs while any fits; return those that wait, in the order in which they were looked at.

    ``turns``: whose turn it is among the queues with jobs that wait; in a tie it is that of the queue that is listed
    first. ``refused`` says why a queue may not start what takes so much, ``overused`` why it
    starts nothing; "" where it may. ``runs`` is told of each job that starts.

    A job that does not fit is passed over, and the queue goes on with its next. Nodes are not looked at: a job fits
    where the whole cluster has enough that is free.

    Source: volcano pkg/scheduler/actions/allocate/allocate.go, allocateResources; framework/session_plugins.go,
    QueueOrderFn, where ties go by time of creation.
    """
    starves: list[QueuedGang] = []
    while (queue := turns.first()) is not None:
        jobs = room.waiting[queue]
        if why := overused(queue):
            room.waits |= {job.name: why for job in jobs}
            starves += jobs
            jobs.clear()
        fits = False
        while jobs and not fits:  # while none starts, it stays the queue's turn
            job = jobs.popleft()
            way, why = _way(room, refused, job)
            if way is None:
                room.waits[job.name] = why
                starves.append(job)
            else:
                room.start(job, way)
                runs(job)
                fits = True
        turns.changed(queue)
    return starves


def _way(room: Holdings, refused: Callable[[int, Amounts], str], job: QueuedGang) -> tuple[int | None, str]:
    why = "no type is allowed"
    for way, takes in job.takes.items():
        why = refused(job.queue, takes)
        if why:
            continue
        lacking = room.lacks(takes)
        if not lacking:
            return way, ""
        free = room.said({column: room.free[column] for column in lacking})
        why = f"{free} free, and it takes {room.said({column: takes[column] for column in lacking})}"
    return None, why


def session(
    room: Holdings,
    owed: Entitlements,
    key: Callable[[int], tuple[Any, ...]],
    refused: Callable[[int, Amounts], str],
    overused: Callable[[int], str],
    reclaiming: Callable[[], Reclaiming],
    **asked: bool | None,
) -> None:
    """Play "allocate", and the actions that are played beside it: queues take turns by ``key``, the least first.

    ``refused`` and ``overused`` as in `allocate`; ``reclaiming``: the plugin's action; ``asked``: as in `actions_of`.
    """
    starves = allocate(room, TreeTurns.flat(room.waiting, lambda queue: tuple(quick(key(queue)))), refused, overused)
    for action in actions_of(owed, **asked):
        if action == "preempt":
            from fairopt.models.volcano.preempting import preempt  # here, since few clusters have the action

            starves = preempt(room, owed, starves, key, refused)
        else:
            reclaiming().play([job for job in starves if job.on < 0 and may_reclaim(owed, job)], key)


def actions_of(owed: Entitlements, **asked: bool | None) -> list[str]:
    """Return which of the actions "preempt" and "reclaim" are played, in order.

    They are as ``asked``; None is what the cluster's settings say of ``actions``, of which an action has its place.
    """
    said = owed.settings.get("", {}).get("actions", "").split(", ")
    played = [name for name, own in asked.items() if (name in said if own is None else own)]
    return sorted(played, key=lambda name: said.index(name) if name in said else len(said))


def may_reclaim(owed: Entitlements, job: QueuedGang) -> bool:
    """Say whether the preemptionPolicy of a job's pods lets it stop others."""
    return not owed.gangs.settings or owed.gangs.settings[job.number].get("preempts") != "false"


def within(room: Holdings, queue: int, most: list[Any], takes: Amounts, called: str) -> str:
    """Say why a queue that holds more after taking ``takes`` would have more than ``most``; "" where it would not."""
    column = room.beyond(queue, takes, most)
    if column is None:
        return ""
    held = room.said({column: room.held[queue][column]})
    takes_ = room.said({column: takes[column]})
    return f"{room.names[queue]!r} holds {held}, {called} {most[column]}, and it takes {takes_}"


def share(held: list[Any], owed: list[Any]) -> Any:
    """Return the largest part of what a queue is owed that it holds, over what it is owed any of; 0 for nothing.

    Source: volcano pkg/scheduler/plugins/proportion/proportion.go, updateQueueAttrShare; api/helpers, Share.
    """
    return max((ratio(has, due) for has, due in zip(held, owed, strict=True) if due > 0), default=0)


class Reclaiming(ABC):
    """The action "reclaim" by the rule of a plugin: queues stop jobs of others where that lets one start which waits.

    Whole jobs are stopped, only where enough of them are found, and not on single nodes as Volcano does. What starts
    here is not stopped again. ``victims``: the jobs that may be stopped by queue, of the lowest priority first, and
    the last that started. Queues with such jobs stand in the order in which they are asked, of each column and below
    each group; a queue's place changes with what it holds, and in a tie the queue that is listed first comes first.

    ``deserved`` (N, W): what nodes deserve. ``key``: the order of turns; queues are asked the other way around.
    ``local``: whether which jobs yield depends on the queue that reclaims.

    Source: volcano pkg/scheduler/actions/reclaim/reclaim.go, Execute and reclaimForTask.
    """

    local: bool = False

    def __init__(self, room: Holdings, deserved: list[list[Any]], key: Callable[[int], tuple[Any, ...]]) -> None:
        self.room, self.deserved, self.key = room, deserved, key
        self.victims = {queue: list(jobs) for queue, jobs in by_queue(self._may_stop()).items()}
        self._keys: dict[int, tuple[tuple[Any, ...], set[int]]] = {}
        self._lines: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for queue in self.victims:
            self.place(queue)

    def _may_stop(self) -> list[QueuedGang]:
        stoppable = (job for job in reversed(self.room.running.values()) if job.preemptible)
        return sorted(stoppable, key=lambda job: job.tier)

    # -- what the plugin says ----------------------------------------------------------------------------------------
    @abstractmethod
    def may(self, queue: int, takes: Amounts) -> bool:
        """Say whether a queue may reclaim for so much."""

    @abstractmethod
    def yields(self, queue: int, takes: Amounts, job: QueuedGang, left: Left) -> bool:
        """Say whether a job may be stopped for a queue that takes so much, by what is ``left`` to nodes before that."""

    def path(self, queue: int) -> Sequence[int]:
        """Return a queue and the groups above it, where those below the same group are asked first."""
        return ()

    def over(self, node: int, left: Left | None = None) -> bool:
        """Say whether a node holds of something more than it deserves, or what it deserves nothing of."""
        held = self.room.held[node] if left is None else left.get(node, self.room.held[node])
        return any(has > due for has, due in zip(held, self.deserved[node], strict=True))

    def standing(self, victim: int) -> tuple[Any, ...]:
        """Return the order of victims' queues: the last to get a turn first. Source: VictimQueueOrderFn."""
        return _negated(self.key(victim))

    # -- whom it asks ------------------------------------------------------------------------------------------------
    def place(self, queue: int) -> None:
        """Put a queue in its place, or leave it out where none of its jobs may be stopped."""
        groups = (*self.path(queue), TOP)
        if queue in self._keys:
            key, columns = self._keys.pop(queue)
            for own in (self._lines[node, column] for node in groups for column in columns):
                del own[bisect_left(own, key)]
        columns = {column for job in self.victims[queue] for column in job.takes[job.on]}
        if columns and self.over(queue):
            key = (*quick(self.standing(queue)), queue)
            self._keys[queue] = key, columns
            for own in (self._lines.setdefault((node, column), []) for node in groups for column in columns):
                insort(own, key)

    def nearest(self, queue: int, columns: Collection[int]) -> Iterator[int]:
        """Yield those that have any of the columns: below the lowest group above a queue, itself first, and so on."""
        seen: set[int] = set()
        for node in (*self.path(queue), TOP):
            for key in merge(*(self._lines.get((node, column), ()) for column in columns)):
                if key[-1] not in seen:
                    seen.add(key[-1])
                    yield key[-1]

    # -- the action --------------------------------------------------------------------------------------------------
    def play(self, starving: Iterable[QueuedGang], key: Callable[[int], tuple[Any, ...]]) -> None:
        """Start jobs that wait, one queue after the other by ``key``, and stop others for them."""
        starves = by_queue(starving)
        turns = TreeTurns.flat(starves, key)
        hopeless: set[Any] = set()
        while (queue := turns.first()) is not None:
            jobs = list(starves[queue])
            starves[queue].clear()
            turns.changed(queue)  # it has one turn
            for job in jobs:
                for way, takes in job.takes.items():
                    shape = frozenset(takes.items())
                    if shape in hopeless or (queue, shape) in hopeless or not self.may(queue, takes):
                        continue
                    victims = self._victims(queue, takes)
                    if victims is None:
                        # out of reach for all, where it would be even if the queue's own jobs yielded to it
                        own = queue in self._keys and self._victims(queue, takes, itself=True) is not None
                        hopeless.add((queue, shape) if self.local or own else shape)
                        continue
                    self._replace(victims, job, way)
                    break

    def _replace(self, victims: Sequence[QueuedGang], job: QueuedGang, way: int) -> None:
        room = self.room
        for victim in victims:
            by = room.names[job.queue]
            room.stop(victim, f"{by!r} reclaims {room.said(job.takes[way])} for {job.name!r}")
        room.start(job, way)
        for changed in {job.queue, *(victim.queue for victim in victims)} & self.victims.keys():
            self.victims[changed] = [each for each in self.victims[changed] if each.on >= 0]
            self.place(changed)

    def _victims(self, queue: int, takes: Amounts, *, itself: bool = False) -> Sequence[QueuedGang] | None:
        """Return the jobs to stop so that ``takes`` fits: some that have what lacks; None where too few do."""
        room = self.room
        lacking: dict[int, Any] = {column: takes[column] - room.free[column] for column in room.lacks(takes)}
        left: Left = {}
        victims: list[QueuedGang] = []
        able = (each for each in self.nearest(queue, list(lacking)) if itself or each != queue)
        for victim in (each for other in able for each in self.victims[other]):
            if not lacking:
                return victims
            has = victim.takes[victim.on]
            if not lacking.keys().isdisjoint(has) and self.yields(queue, takes, victim, left):
                victims.append(victim)
                for node in room.above(victim.queue):
                    now = left.setdefault(node, list(room.held[node]))
                    for column, amount in has.items():
                        now[column] -= amount
                lacking = {c: lack - has.get(c, 0) for c, lack in lacking.items() if lack > has.get(c, 0)}
        return None if lacking else victims


def _negated(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_negated(each) if isinstance(each, tuple) else -each for each in key)
