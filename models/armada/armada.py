"""Armada's round: jobs by class and by what their queue costs; preemption to fair share, and by urgency."""

from __future__ import annotations

import json
from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
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
#: What a gang is compared by with others that run, its number, and itself.
_Place = tuple[tuple[Any, ...], int, QueuedGang]
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
        put_back, stopped = [], {}
        for gang in list(room.running.values()):
            if gang.preemptible and costs.held[gang.queue] > protected * costs.fair[gang.queue]:
                put_back.append(gang)
        for gang in put_back:  # for the type that it runs on
            gang.takes = {gang.on: gang.takes[gang.on]}
            room.stop(gang, "")
        ran, round_ = {gang.number for gang in put_back}, _Round(room, costs, owed.cap.tolist())
        before = {*ran, *room.running}
        waiting = [gang for own in room.waiting.values() for gang in own]
        round_.play([*put_back, *waiting], ran)
        for gang in put_back:
            if gang.on < 0 and (why := room.waits.pop(gang.name, "")):
                stopped[gang.name] = f"preemption to fair share: {costs.said(gang.queue)}; {why}"
        gone = {gang.name for gang, _ in round_.replaced if gang.on < 0}
        room.started = [name for name in room.started if name not in gone]
        for gang, why in round_.replaced:
            if gang.on < 0 and gang.number in before:
                stopped[gang.name] = why
            elif gang.on < 0:
                room.waits[gang.name] = why
        shares = {name: costs.part(room.held[user]) / costs.weight[user] for user, name in enumerate(problem.users)}
        return room.decided(problem, "dominant share over weight", shares, stopped=stopped)

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
    """Gangs that start one by one, and who yields to more urgent ones; ``cap`` (n, W).

    ``lower``: by priority, the preemptible gangs that run at it, once it is asked for: last those that would
    start again last. ``spare``: what they take, by priority (W,). ``replaced``: who yielded, and why.
    """

    room: Holdings
    costs: _Costs
    cap: list[list[Any]]
    lower: dict[int, list[_Place]] = field(default_factory=dict)
    spare: dict[int, list[Any]] = field(default_factory=dict)
    replaced: list[tuple[QueuedGang, str]] = field(default_factory=list)

    def play(self, pending: Sequence[QueuedGang], ran: set[int]) -> None:
        """Start gangs; those that ran come first in their queue, then those of the highest class.

        Source: jobdb/comparison.go, SchedulingOrderCompare; queue_scheduler.go, Schedule.
        """
        for gang in self.room.running.values():
            self._counts(gang, 1)
        queues = by_queue(sorted(pending, key=lambda gang: (gang.number not in ran, -gang.tier, gang.place)))

        def key(user: int) -> tuple[Any, ...]:
            return tuple(quick(self.costs.key(user, self.room.held[user], queues[user][0])))

        turns = TreeTurns.flat(queues, key)
        while (user := turns.first()) is not None:
            gang = queues[user].popleft()
            yielded = self._start(gang, None if gang.number in ran else self.cap[user])
            for each in {user, *yielded} & queues.keys():
                turns.changed(each)

    def _start(self, gang: QueuedGang, cap: Sequence[Any] | None) -> set[int]:
        """Start a gang where it finds room, or makes it; return the queues of those that yield."""
        why = []
        for gpu_type, takes in gang.takes.items():
            if not (reason := self.room.obstacle(gang.queue, takes, cap)):
                self._run(gang, gpu_type)
                return set()
            why.append(reason)
        for gpu_type, takes in gang.takes.items():
            if cap is None or self.room.beyond(gang.queue, takes, cap) is None:
                yielding = self._yielding(gang, takes)
                for each in yielding:
                    by = f"{gang.name!r} of {self.room.names[gang.queue]!r} has priority {gang.tier}"
                    self._counts(each, -1)
                    self.room.stop(each, "")
                    self.room.stopped.pop(each.name)
                    self.replaced.append((each, f"urgency-based preemption: {by}, and it has {each.tier}"))
                if yielding:
                    self._run(gang, gpu_type)
                    return {each.queue for each in yielding}
        self.room.waits[gang.name] = "; ".join(why)
        return set()

    def _run(self, gang: QueuedGang, gpu_type: int) -> None:
        self.room.start(gang, gpu_type)
        self._counts(gang, 1)

    # -- urgency -------------------------------------------------------------------------------------------------
    def _counts(self, gang: QueuedGang, sign: int) -> None:
        """Take notice of a preemptible gang that runs now, or no more."""
        if not gang.preemptible:
            return
        spare = self.spare.setdefault(gang.tier, [0] * len(self.room.columns))
        for column, amount in gang.takes[gang.on].items():
            spare[column] += sign * amount
        if sign > 0 and gang.tier in self.lower:
            held = list(self.room.held[gang.queue])
            for column, amount in gang.takes[gang.on].items():
                held[column] -= amount
            insort(self.lower[gang.tier], _place(self.costs, held, gang))

    def _yielding(self, gang: QueuedGang, takes: Amounts) -> list[QueuedGang]:
        """Return the gangs of lower classes that yield; nobody where all of them together are too few.

        Classes are tried from the lowest, and within one those go first that would be started last. Source: nodedb.go,
        selectNodeForJobWithUrgencyPreemption; preempting_queue_scheduler.go, the second scheduling.
        """
        room, tiers = self.room, sorted(tier for tier in self.spare if tier < gang.tier)
        lacks = {column: takes[column] - room.free[column] for column in room.lacks(takes)}
        if any(lack > sum(self.spare[tier][column] for tier in tiers) for column, lack in lacks.items()):
            return []
        out: list[QueuedGang] = []
        for tier in tiers:
            passed = []
            order = self._order(tier)
            while lacks and order:
                place = order.pop()
                last = place[-1]
                has = last.takes[last.on]
                if lacks.keys().isdisjoint(has):
                    passed.append(place)
                    continue
                out.append(last)
                lacks = {c: lack - has.get(c, 0) for c, lack in lacks.items() if lack > has.get(c, 0)}
            order += reversed(passed)
        return out

    def _order(self, tier: int) -> list[_Place]:
        """Return the preemptible gangs of a class that run, in the order in which they would be started again."""
        if tier not in self.lower:
            own = [gang for gang in self.room.running.values() if gang.preemptible and gang.tier == tier]
            self.lower[tier] = _sequence(self.costs, self.room.held, own)
        return self.lower[tier]


def _sequence(costs: _Costs, held: Sequence[Sequence[Any]], gangs: Iterable[QueuedGang]) -> list[_Place]:
    """Return gangs that run in the order in which they would be started again, by the costs of their queues."""
    queues = by_queue(sorted(gangs, key=lambda gang: gang.place))
    base: Mapping[int, list[Any]] = {user: list(held[user]) for user in queues}

    def add(gang: QueuedGang, sign: int) -> None:
        for column, amount in gang.takes[gang.on].items():
            base[gang.queue][column] += sign * amount

    for own in queues.values():
        for gang in own:
            add(gang, -1)
    ends: dict[int, deque[QueuedGang]] = queues
    turns = TreeTurns.flat(ends, lambda user: tuple(quick(costs.key(user, base[user], ends[user][0]))))
    out = []
    while (user := turns.first()) is not None:
        gang = ends[user].popleft()
        out.append(_place(costs, base[user], gang))
        add(gang, 1)
        turns.changed(user)
    return out


def _place(costs: _Costs, held: Sequence[Any], gang: QueuedGang) -> _Place:
    return tuple(quick(costs.key(gang.queue, held, gang))), gang.number, gang
