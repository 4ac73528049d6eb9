"""Volcano's action "preempt": a job that starves stops pods of lower priority in its own queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from fairopt.models.common.holdings import Amounts, Holdings, QueuedGang, TreeTurns, by_queue
from fairopt.problem import Entitlements
from fairopt.problem.numbers import integer

#: The plugins that say who may be preempted, where the settings do not name them: those of Volcano's Helm chart.
ASKED = "priority, conformance"
#: What places for pods are called: who takes nothing but one is of the class BestEffort.
PODS = "pods"


def preempt(
    room: Holdings,
    owed: Entitlements,
    starving: Iterable[QueuedGang],
    key: Callable[[int], tuple[Any, ...]],
    refused: Callable[[int, Amounts], str],
) -> list[QueuedGang]:
    """Start gangs in the places of others in their queues, queue by queue by ``key``; return those that wait still.

    Jobs of lower priority yield, the lowest first; then pods of lower priority, then the latest. Where the plugin
    "gang" is asked, only pods beyond the least number of their job do. Pods beyond it preempt nobody. Last, the pods of
    a job take the places of others of the same job, of lower priority. No more are stopped than are needed: Volcano
    takes back what it stopped in vain, node by node or, with ``enableTopologyAwarePreemption``, pod by pod. Nodes are
    not looked at: a gang fits where the whole cluster has enough. ``refused`` says why a queue may not hold what a gang
    takes. What starts here is not stopped again in the session.

    Source: volcano pkg/scheduler/actions/preempt/preempt.go, Execute, normalPreempt, SelectVictimsOnNode; plugins
    priority, gang and conformance, preemptableFn; framework/session.go, BuildVictimsPriorityQueue.
    """

    @cache
    def told(job: int) -> _Told:
        return _Told.of(own_gangs[job], owed)

    starves, running = by_queue(starving), [*room.running.values()]
    own_gangs = {job.number: job for job in chain(running, *starves.values())}
    asked = owed.settings.get("", {}).get("preemptable", ASKED).split(", ")
    before = set(room.started)
    victims = by_queue(job for job in running if job.name not in before and told(job.number).stops)
    turns = TreeTurns.flat(starves, key)
    waits: list[QueuedGang] = []
    while (queue := turns.first()) is not None:
        jobs = list(starves[queue])
        starves[queue].clear()
        turns.changed(queue)
        own = sorted(victims.get(queue, ()), key=lambda job: (job.tier, told(job.number).priority, -job.place))
        of_job: dict[str, list[QueuedGang]] = {}
        for other in own:
            of_job.setdefault(told(other.number).job, []).append(other)
        for within in (False, True):
            failed: dict[Any, int] = {}  # by what is taken, the highest priority at which it found no room
            first = 0
            for job in (job for job in jobs if job.on < 0 and own and asked[0]):
                said = told(job.number)
                if said.beyond or not said.preempts:
                    continue
                for way, takes in job.takes.items():
                    shape = frozenset(takes.items())
                    if not within and "priority" in asked and failed.get(shape, job.tier - 1) >= job.tier:
                        continue
                    others = of_job.get(said.job, []) if within else map(own.__getitem__, range(first, len(own)))
                    able = (
                        other
                        for other in others
                        if other.on >= 0 and said.over(told(other.number), asked, within=within)
                    )
                    stopped = _stopped(room, refused, job.queue, takes, able)
                    if stopped is None:
                        failed[shape] = max(job.tier, failed.get(shape, job.tier))
                        continue
                    for other in stopped:
                        room.stop(other, said.words(told(other.number), room.names[queue], within=within))
                    room.start(job, way)
                    job.preemptible = False
                    break
                while first < len(own) and own[first].on < 0:
                    first += 1  # most are stopped from the first on
        waits += (job for job in jobs if job.on < 0)
    return waits


class _Told(NamedTuple):
    """What is said of a gang: its ``job`` and the job's ``tier``, the ``priority`` of its pods, and what they may do.

    ``beyond``: whether they are beyond the least number of pods of the job. ``preempts``: whether their
    preemptionPolicy lets them; ``stops``: whether they may be preempted. ``best_effort``: they take nothing.
    """

    name: str
    job: str
    tier: int
    priority: int
    beyond: bool
    preempts: bool
    stops: bool
    best_effort: bool

    @staticmethod
    def of(gang: QueuedGang, owed: Entitlements) -> _Told:
        """Return what the settings of a gang say."""
        own = owed.gangs.settings[gang.number] if owed.gangs.settings else {}
        takes = {owed.columns[column] for amounts in gang.takes.values() for column in amounts if amounts[column]}
        return _Told(
            name=gang.name,
            job=own.get("job", gang.name),
            tier=gang.tier,
            priority=integer(own.get("priority", "1"), "settings of a gang, priority"),
            beyond=own.get("beyond") == "true",
            preempts=own.get("preempts") != "false",
            stops=own.get("preemptable", str(gang.preemptible).lower()) == "true",
            best_effort=all(each.partition(":")[0] == PODS for each in takes),
        )

    def over(self, other: _Told, asked: Collection[str], *, within: bool) -> bool:
        """Say whether the plugins that are ``asked`` let it take another's place, of its own job or of others."""
        if within != (other.job == self.job) or (self.best_effort and not other.best_effort):
            return False
        if "gang" in asked and not other.beyond:
            return False
        lower = other.priority < self.priority if within else other.tier < self.tier
        return lower or "priority" not in asked

    def words(self, other: _Told, queue: str, *, within: bool) -> str:
        """Say why another is stopped for it."""
        where, mine, its = (
            ("its job", self.priority, other.priority) if within else (repr(queue), self.tier, other.tier)
        )
        return f"{self.name!r} preempts it within {where}: it has priority {mine}, and this {its}"


def _stopped(
    room: Holdings,
    refused: Callable[[int, Amounts], str],
    queue: int,
    takes: Amounts,
    able: Iterator[QueuedGang],
) -> Sequence[QueuedGang] | None:
    """Return which of those that are ``able`` to yield are stopped so that ``takes`` fits; None where it does not."""

    def fits() -> bool:
        return not room.lacks(takes) and not refused(queue, takes)

    enough = fits()
    if enough and next(able, None) is None:  # where nobody could yield, Volcano lets it wait for the next session
        return None
    taken: list[QueuedGang] = []
    for other in able if not enough else ():
        if other.takes[other.on].keys().isdisjoint(room.lacks(takes) or takes):
            continue
        room.add(other, -1)
        taken.append(other)
        if enough := fits():
            break
    needed = []
    for other in reversed(taken):  # the highest priority first
        room.add(other, 1)
        if enough and not fits():
            room.add(other, -1)
            needed.append(other)
    for other in needed:
        room.add(other, 1)
    return needed[::-1] if enough else None
