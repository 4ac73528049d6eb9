"""Armada's round: jobs by class and by what their queue costs; preemption to fair share, and by urgency."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import merge
from math import lcm
from operator import mul
from typing import Any

from fairopt.errors import BadInput, require
from fairopt.models.armada.fair_shares import fair_shares
from fairopt.models.common.holdings import (
    Amounts,
    Holdings,
    QueuedGang,
    TreeTurns,
    by_queue,
    entitlements_of,
    light,
    quick,
    ratio,
)
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Entitlements, Market
from fairopt.problem.numbers import exact
from fairopt.program import Array, Number

#: The settings of a cluster that the rule reads, as Armada's configuration calls them.
PROTECTED, LARGE = "protectedFractionOfFairShare", "enablePreferLargeJobOrdering"
#: The setting that says what the resource of each GPU type is called.
RESOURCE = "resource"


@dataclass(frozen=True)
class Armada(Computed):
    """The next job is one of the highest priority class, of the queue that costs the least with it, over its weight.

    A queue's cost is its dominant share: each good is a resource, and so is each GPU type, but for types of which the
    market's `settings` say that they are one (``resource``: its name by type, in JSON). First, running gangs of a
    preemptible class stand in their queue again where the queue holds more than
    ``protected_fraction_of_fair_share`` of its fair share: that by weight, or what others do not demand, whichever is
    more (preemption to fair share). Who finds no room takes the places of preemptible gangs of lower classes, the
    lowest first, and of these those that would be the last to start (urgency-based preemption). A gang that finds no
    room waits alone. Caps are for those that wait. With ``enable_prefer_large_job_ordering`` queues below their fair
    share go by what they hold, larger gangs first, and before the others. None is what the market's `settings` say,
    else Armada's default: 1, and no. A weight is ``borrow_weight``; ties go by name.

    Source: armadaproject/armada at 207cc9e0: docs/scheduling_and_preempting_jobs.md; internal/scheduler/scheduling,
    preempting_queue_scheduler.go, queue_scheduler.go (``Less``), eviction.go; nodedb.go (urgency); config.yaml.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"], tier=[0, 1], on=["H100", None])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> decision = allocate(Armada(), market, exact=True)
    >>> print(*decision.shares[:, 0])
    0 6
    """

    protected_fraction_of_fair_share: Fraction | None = None
    enable_prefer_large_job_ordering: bool | None = None

    name = "armada"
    source = "Armada, internal/scheduler/scheduling"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.CAPS})
    claims = (
        Claim(
            "",
            "docs/scheduling_and_preempting_jobs.md, introduction",
            words="Always preempt less urgent jobs to make room for more urgent jobs, but never the opposite",
        ),
    )

    def asked_of(self, problem: Any) -> bool:
        """Say whether a market is of Armada's files."""
        owed = getattr(problem, "entitlements", None)
        return owed is not None and owed.settings.get("", {}).get("scheduler") == self.name

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each queue holds after a round, and why."""
        owed, room = entitlements_of(problem), Holdings.at_first(problem)
        protected, large = self._options(owed)
        costs = _Costs(problem, room, large=large)
        put_back = [
            gang
            for gang in room.running.values()
            if gang.preemptible and costs.held[gang.queue] > protected * costs.fair[gang.queue]
        ]
        round_ = _Round(room, costs, owed.cap.tolist(), ran=frozenset(room.running))
        round_.play(put_back)
        idle = room.waits.keys() | round_.stopped.keys()
        room.started = [name for name in dict.fromkeys(room.started) if name not in idle]
        shares = {name: costs.part(room.held[user]) / costs.weight[user] for user, name in enumerate(problem.users)}
        return room.decided(problem, "dominant share over weight", shares, stopped=round_.stopped)

    def _options(self, owed: Entitlements) -> tuple[Number, bool]:
        said = owed.settings.get("", {})
        protected, large = self.protected_fraction_of_fair_share, self.enable_prefer_large_job_ordering
        if protected is None:
            protected = exact(said.get(PROTECTED, "1"), f"settings, {PROTECTED}")
        return protected, said.get(LARGE) == "true" if large is None else large


class _Costs:
    """What queues cost: ``held`` and ``fair`` are parts of the pool (n,); only queues with jobs have fair shares.

    Costs over weights are compared in a small ``unit``, so that they are whole numbers where amounts are. ``there``
    (r,): what the pool has of each resource; ``rank`` (n,): the place of each queue by name.
    """

    def __init__(self, market: Market, room: Holdings, *, large: bool) -> None:
        owed, n = entitlements_of(market), len(market.users)
        self.users, self.large = market.users, large
        self.rank = dict(zip(sorted(range(n), key=market.users.__getitem__), range(n), strict=True))
        names = [*map(_resources(owed).get, owed.types, owed.types), *owed.columns[len(owed.types) :]]
        called = list(dict.fromkeys(names))
        self._of = [called.index(name) for name in names]  # the resource of each column
        self._alone = len(called) == len(names)
        self.there = self._by_resource([*market.capacity.tolist(), *owed.stock.tolist()])
        self.weight = owed.borrow_weight[:n].tolist()
        for name, weight in zip(market.users, self.weight, strict=True):
            require(weight > 0, weight, f"weight of {name!r}", "Give one above 0: it is one over a priority factor")
        each = [[1 / (all_ * weight) if all_ > 0 else all_ * 0 for all_ in self.there] for weight in self.weight]
        self.unit = lcm(*(part.denominator for row in each for part in row)) if market.exact else 1
        self._each = [light(part * self.unit for part in row) for row in each]
        self.held = [self.part(room.held[user]) for user in range(n)]
        demand = [list(room.held[user]) for user in range(n)]
        for gang in (gang for own in room.waiting.values() for gang in own):
            for column, amount in next(iter(gang.takes.values()), {}).items():
                demand[gang.queue][column] += amount
        active = [user for user in range(n) if any(demand[user])]
        parts = [self.part([*map(min, demand[user], owed.cap[user])]) for user in active]
        by_weight, capped, _ = fair_shares([self.weight[user] for user in active], parts) if active else ((), (), ())
        self.fair, self._budget = [0 * self.weight[0]] * n, [0 * self.weight[0]] * n
        for user, own, due in zip(active, by_weight, capped, strict=True):
            self.fair[user], self._budget[user] = max(own, due), due / self.weight[user] * self.unit

    def part(self, held: Sequence[Any]) -> Any:
        """Return the largest part of a resource that somebody holds (W,); what there is nothing of does not count."""
        pairs = zip(self._by_resource(held), self.there, strict=True)
        return max((ratio(has, all_) for has, all_ in pairs if all_ > 0), default=0)

    def key(self, user: int, held: Sequence[Any], gang: QueuedGang) -> tuple[Any, ...]:
        """Return what queues are compared by, with the gang that is next. Source: queue_scheduler.go, ``Less``."""
        takes = gang.takes[gang.on] if gang.on >= 0 else next(iter(gang.takes.values()), {})
        with_it = list(held)
        for column, amount in takes.items():
            with_it[column] += amount
        then = self._cost(user, with_it)
        if not self.large:
            return -gang.tier, then, self.rank[user]
        if then > self._budget[user]:
            return -gang.tier, 1, then, 0, self.rank[user]
        size = self.part([takes.get(column, 0) for column in range(len(held))]) * self.weight[user]
        return -gang.tier, 0, self._cost(user, held), -size, self.rank[user]

    def said(self, user: int) -> str:
        """Return in words what a queue held, and its fair share."""
        held, fair = (f"{float(each):.4g}" for each in (self.held[user], self.fair[user]))
        return f"{self.users[user]!r} held {held} of the pool, its fair share is {fair}"

    def _cost(self, user: int, held: Sequence[Any]) -> Any:
        return max(map(mul, self._by_resource(held), self._each[user]))

    def _by_resource(self, held: Sequence[Any]) -> Sequence[Any]:
        if self._alone:
            return held
        out = [0 * held[0]] * (max(self._of) + 1)
        for at, amount in zip(self._of, held, strict=True):
            out[at] += amount
        return out


def _resources(owed: Entitlements) -> dict[str, str]:
    """Return the name of each type's resource, as far as the settings say it. Errors: `BadInput`."""
    text = owed.settings.get("", {}).get(RESOURCE, "{}")
    place, remedy = f"settings, {RESOURCE}", 'Give JSON such as {"A100": "nvidia.com/gpu"}'
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadInput(f"got {text!r}", place=place, remedy=remedy) from error
    fits = isinstance(found, dict) and all(isinstance(each, str) for each in found.values())
    require(fits, text, place, remedy)
    return dict(found)


@dataclass
class _Round:
    """Gangs that start one by one, and who is stopped for them.

    ``cap`` (n, W); ``ran``: numbers of the gangs that run before the round. ``left`` (W): what those take that stand in
    their queue again and are neither started nor stopped yet, by priority in ``left_at``; ``tables``: these by type,
    each with its place among those that would start again. ``spare``: what preemptible gangs take that run, by priority
    (W,). ``urgent``: gangs that started on what others take.
    """

    room: Holdings
    costs: _Costs
    cap: list[list[Any]]
    ran: frozenset[int]
    stopped: dict[str, str] = field(default_factory=dict)
    spare: dict[int, list[Any]] = field(default_factory=dict)
    left: list[Any] = field(default_factory=list)
    left_at: dict[int, list[Any]] = field(default_factory=dict)
    tables: dict[int, list[tuple[int, QueuedGang]]] = field(default_factory=dict)
    urgent: list[QueuedGang] = field(default_factory=list)

    def play(self, put_back: Sequence[QueuedGang]) -> None:
        """Put gangs back into their queues, and start them and those that wait.

        Source: preempting_queue_scheduler.go, Schedule; queue_scheduler.go, Schedule; nodedb.go,
        selectNodeForJobWithTxnAtPriority.
        """
        room = self.room
        self.left = [0] * len(room.columns)
        for gang in put_back:  # for the type that it runs on
            gang.takes = {gang.on: gang.takes[gang.on]}
            room.stop(gang, "")
            self._leaves(gang, 1)
        room.stopped.clear()
        for gang in room.running.values():
            self._runs(gang, 1)
        for place, gang in enumerate(self._in_turn(put_back)):
            self.tables.setdefault(next(iter(gang.takes)), []).append((place, gang))
        waiting = (gang for own in room.waiting.values() for gang in own)
        for _ in self._in_turn([*put_back, *waiting], self._start):
            pass
        self._evict_again()

    def _in_turn(
        self, gangs: Iterable[QueuedGang], start: Callable[[QueuedGang], None] | None = None
    ) -> Iterator[QueuedGang]:
        """Yield gangs by the costs of their queues, of a queue those that ran first, then those of the highest class.

        Each is started by ``start``; without it, it counts as if it were. Source: jobdb/comparison.go,
        SchedulingOrderCompare; queue_scheduler.go, ``Less``.
        """
        queues = by_queue(sorted(gangs, key=lambda gang: (gang.number not in self.ran, -gang.tier, gang.place)))
        held = self.room.held if start else {user: list(self.room.held[user]) for user in queues}

        def key(user: int) -> tuple[Any, ...]:
            return tuple(quick(self.costs.key(user, held[user], queues[user][0])))

        turns = TreeTurns.flat(queues, key)
        while (user := turns.first()) is not None:
            gang = queues[user].popleft()
            if start:
                start(gang)
            else:
                for column, amount in next(iter(gang.takes.values())).items():
                    held[user][column] += amount
            turns.changed(user)
            yield gang

    def _start(self, gang: QueuedGang) -> None:
        """Start a gang where it finds room, or makes it."""
        if gang.number in self.ran:
            self._start_again(gang)
            return
        why, cap = [], self.cap[gang.queue]
        for gpu_type, takes in gang.takes.items():
            if not (reason := self.room.obstacle(gang.queue, takes, cap, self.left)):
                self._run(gang, gpu_type)
                return
            why.append(reason)
        for gpu_type, takes in gang.takes.items():
            if self.room.beyond(gang.queue, takes, cap) is None and self._fits(gang.tier, takes):
                if not self._takes_from_queued(gang, gpu_type, takes):
                    self.urgent.append(gang)
                self._run(gang, gpu_type)
                return
        self.room.waits[gang.name] = "; ".join(why)

    def _start_again(self, gang: QueuedGang) -> None:
        """Start a gang again that ran, on its type, unless it was stopped."""
        gpu_type, takes = next(iter(gang.takes.items()))
        if gang.name not in self.stopped and self._fits(gang.tier, takes):
            self._leaves(gang, -1)
            self._run(gang, gpu_type)

    def _takes_from_queued(self, gang: QueuedGang, gpu_type: int, takes: Amounts) -> bool:
        """Stop gangs that stand in their queues again, of no higher class, the last first; say whether that is enough.

        Source: nodedb.go, selectNodeForJobWithFairPreemption.
        """
        free = {column: self.room.free[column] - self.left[column] for column in takes}
        lacks = {column: amount - free[column] for column, amount in takes.items() if amount > free[column]}
        for column, lack in lacks.items():
            if lack > sum(left[column] for tier, left in self.left_at.items() if tier <= gang.tier):
                return False
        tables = [self.tables.get(gpu_type, [])] if gpu_type in lacks else list(self.tables.values())
        for table in tables:
            while table and self._is_done(table[-1][1]):
                table.pop()
        taken = []
        for _, other in merge(*map(reversed, tables), key=lambda each: -each[0]):
            has = next(iter(other.takes.values()))
            if self._is_done(other) or other.tier > gang.tier or lacks.keys().isdisjoint(has):
                continue
            taken.append(other)
            lacks = {c: lack - has.get(c, 0) for c, lack in lacks.items() if lack > has.get(c, 0)}
            if not lacks:
                break
        for other in taken if not lacks else ():
            self._leaves(other, -1)
            by = f"{gang.name!r} of {self.room.names[gang.queue]!r} takes its place"
            self.stopped[other.name] = f"preemption to fair share: {self.costs.said(other.queue)}; {by}"
        return not lacks

    def _evict_again(self) -> None:
        """Stop the preemptible gangs of classes on whose places others started, and start again those that fit.

        Source: eviction.go, NewOversubscribedEvictor; preempting_queue_scheduler.go, Schedule, the second time.
        """
        room, over = self.room, dict[int, set[int]]()
        for tier in self.spare:
            short = {column for column in range(len(room.columns)) if self._free_for(tier, column) < 0}
            over |= {tier: short} if short else {}
        again = {}
        for gang in [*room.running.values()] if over else ():
            if gang.preemptible and not over.get(gang.tier, set()).isdisjoint(gang.takes[gang.on]):
                again[gang.number] = gang
                self._runs(gang, -1)
                gang.takes = {gang.on: gang.takes[gang.on]}
                room.stop(gang, "")
        room.stopped.clear()

        def start(gang: QueuedGang) -> None:
            gpu_type, takes = next(iter(gang.takes.items()))
            if self._fits(gang.tier, takes):
                self._run(gang, gpu_type)

        for gang in self._in_turn(again.values(), start):
            if gang.on < 0:
                (self.stopped if gang.number in self.ran else room.waits)[gang.name] = self._urgency(gang)
        for _, gang in (each for table in self.tables.values() for each in table):
            if not self._is_done(gang):
                self.stopped[gang.name] = self._urgency(gang)

    def _urgency(self, gang: QueuedGang) -> str:
        """Say for whom a gang is stopped by urgency."""
        takes = next(iter(gang.takes.values()))
        able = (each for each in self.urgent if each.on >= 0 and each.tier > gang.tier)
        by = next((each for each in able if not takes.keys().isdisjoint(each.takes[each.on])), None)
        who = "others" if by is None else f"{by.name!r} of {self.room.names[by.queue]!r}, of priority {by.tier},"
        return f"urgency-based preemption: {who} took its place, and it has priority {gang.tier}"

    def _is_done(self, gang: QueuedGang) -> bool:
        return gang.on >= 0 or gang.name in self.stopped

    def _fits(self, tier: int, takes: Amounts) -> bool:
        """Say whether a gang of a class fits where all that may yield to it does."""
        return all(amount <= self._free_for(tier, column) for column, amount in takes.items())

    def _free_for(self, tier: int, column: int) -> Any:
        return self.room.free[column] + sum(spare[column] for at, spare in self.spare.items() if at < tier)

    def _run(self, gang: QueuedGang, gpu_type: int) -> None:
        self.room.start(gang, gpu_type)
        self._runs(gang, 1)

    def _runs(self, gang: QueuedGang, sign: int) -> None:
        """Take notice of a gang that runs now, or no more."""
        if gang.preemptible:
            _add(self.spare.setdefault(gang.tier, [0] * len(self.left)), gang.takes[gang.on], sign)

    def _leaves(self, gang: QueuedGang, sign: int) -> None:
        """Take notice of a gang that stands in its queue again, or no more."""
        takes = next(iter(gang.takes.values()))
        _add(self.left, takes, sign)
        _add(self.left_at.setdefault(gang.tier, [0] * len(self.left)), takes, sign)


def _add(amounts: list[Any], takes: Amounts, sign: int) -> None:
    for column, amount in takes.items():
        amounts[column] += sign * amount
