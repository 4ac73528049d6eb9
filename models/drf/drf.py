"""Dominant Resource Fairness over GPUs of types and further goods, for whole gangs and for divisible tasks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.common.holdings import Amounts, Holdings, entitlements_of, takes_of
from fairopt.models.common.turns import TreeTurns
from fairopt.models.drf.dominant import dominant_share, filled, rates
from fairopt.policy import Claim, Computed, DecisionReason, Example, Trait
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.program import Array, Number, cast, objects


def _example() -> Market:
    """Return 9 CPUs and 18 GB, with tasks of <1 CPU, 4 GB> for A and of <3 CPUs, 1 GB> for B, more than fit."""
    users, types = ("A", "B"), ["cpu"]
    tasks = Gangs.of(
        ["A"] * 5 + ["B"] * 3, [1] * 5 + [3] * 3, users=users, types=types, other={"memory": [4] * 5 + [1] * 3}
    )
    owed = Entitlements.of(users, types, goods={Good("memory", "all"): 18}, gangs=tasks)
    return Market.of([[1], [1]], capacity=[9], users=users, types=types, entitlements=owed)


@dataclass(frozen=True)
class DominantResourceFairness(Computed):
    """The next task is that of the user whose dominant share, its largest share of any resource, is the least.

    Each GPU type and each good is a resource. A user's tasks are its gangs, by priority and then in the order in which
    they were asked for. A task that finds no room, or that would exceed a cap, waits, and so do the later ones of its
    user.

    * ``preempt``: running gangs that may be stopped stand in the queue again, for the types that they run on.
    * ``counting_next``: users are compared by the share that they would have with their next task, as Armada does.
    * ``divisible``: tasks can be cut, and all resources are given out anew by progressive filling, as in the paper's
      theorems. Each user's gangs must then take the same on their first allowed type.

    The paper ends a round when a task does not fit; here other users go on. A gang that may run on several types takes
    the first of these with room; the paper has no choice of types. Ties go to the first user. Weights are the market's.

    Source: Ghodsi et al., NSDI 2011, Algorithm 1, Sec. 4.1-4.3; ``counting_next``: Armada,
    docs/scheduling_and_preempting_jobs.md, Job scheduling order, 207cc9e0.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(DominantResourceFairness(), market, exact=True).shares[:, 0])
    4 0
    """

    name = "drf"
    source = "Ghodsi et al., NSDI 2011"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.CAPS})
    claims = tuple(
        Claim("", f"NSDI 2011, {where}", assumes="divisible tasks", words=words)
        for where, words in (
            ("Sec. 3", "sharing incentive"),
            ("Sec. 3", "strategy-proofness"),
            ("Sec. 3", "envy-freeness"),
            ("Sec. 3", "Pareto efficiency"),
            ("Sec. 3", "single resource fairness, bottleneck fairness and population monotonicity"),
        )
    )
    examples = (Example("Ghodsi et al., NSDI 2011, Sec. 4.1: 9 CPUs and 18 GB", _example(), shares=[[3], [6]]),)
    preempt: bool = False
    counting_next: bool = False
    divisible: bool = False

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that users hold after the rule, and why."""
        assert problem.entitlements is not None  # Trait.ENTITLED
        return _divided(problem) if self.divisible else _in_turn(problem, self.preempt, self.counting_next)


def _in_turn(market: Market, preempt: bool, counting_next: bool) -> tuple[Array, DecisionReason]:
    """Give whole gangs to the user of least dominant share, one after another. Source: NSDI 2011, Algorithm 1."""
    tasks = _Tasks(market)
    gangs = tasks.gangs
    waits: dict[str, str] = {}
    queues: dict[int, deque[int]] = {}
    put_back = preempt & ~gangs.pending & gangs.preemptible
    for gang in gangs.order().tolist():
        if gangs.pending[gang] or put_back[gang]:
            queues.setdefault(int(gangs.user[gang]), deque()).append(gang)
        if put_back[gang]:
            tasks.stop(gang)

    def key(user: int) -> tuple[Number]:
        return (tasks.share(user, queues[user][0] if counting_next else None),)

    turns = TreeTurns.flat(queues, key)
    while (user := turns.first()) is not None:
        gang = queues[user].popleft()
        why = tasks.start(gang)
        if why:
            waits[gangs.names[gang]] = why
            waits |= dict.fromkeys((gangs.names[other] for other in queues[user]), f"behind {gangs.names[gang]!r}")
            queues[user].clear()
        turns.changed(user)
    after = gangs.placed(np.array(tasks.on, dtype=np.int64))
    stopped = {gangs.names[g]: waits.pop(gangs.names[g]) for g in np.flatnonzero(put_back & after.pending)}
    shares = {name: tasks.share(user, None) for user, name in enumerate(market.users)}
    order = tuple(gangs.names[gang] for gang in tasks.started)
    rows = [row[: len(market.types)] for row in tasks.room.held[: len(market.users)]]
    held = np.array(rows, dtype=market.speedup.dtype) + 0 * market.capacity
    return held, DecisionReason(after, "dominant share over weight", shares, None, order, waits, stopped)


class _Tasks:
    """What users hold while gangs start and stop, and ``on`` which type each gang runs; ``started``: in order."""

    def __init__(self, market: Market) -> None:
        self.owed = entitlements_of(market)
        self.room, self.gangs = Holdings.at_first(market), self.owed.gangs
        self.capacity = [*market.capacity, *self.owed.stock]
        self.on: list[int] = self.gangs.on.tolist()
        self.started: list[int] = []
        self._cap, self._weight = self.owed.cap.tolist(), market.weight.tolist()
        self._places = [np.flatnonzero(allowed).tolist() for allowed in self.gangs.allowed]
        self._users: list[int] = self.gangs.user.tolist()
        self._takes: dict[tuple[int, int], Amounts] = {}

    def takes(self, gang: int, gpu_type: int) -> Amounts:
        """Return what a gang takes on a type."""
        if (gang, gpu_type) not in self._takes:
            self._takes[gang, gpu_type] = takes_of(self.owed, gang, gpu_type)
        return self._takes[gang, gpu_type]

    def share(self, user: int, gang: int | None) -> Number:
        """Return a user's dominant share over its weight, with ``gang`` on the first of its types, or without."""
        held = self.room.held[user]
        if gang is not None:
            held = list(held)
            ran = int(self.gangs.on[gang])
            for column, amount in self.takes(gang, ran if ran >= 0 else self._places[gang][0]).items():
                held[column] += amount
        return dominant_share(held, self.capacity, self._weight[user])

    def stop(self, gang: int) -> None:
        """Put a gang that runs back into its user's queue, for the type that it runs on."""
        self.room.add(self._users[gang], self.takes(gang, self.on[gang]), -1)
        self._places[gang], self.on[gang] = [self.on[gang]], -1

    def start(self, gang: int) -> str:
        """Start a gang on the first of its types with room; return why not where there is none."""
        user, why = self._users[gang], []
        for gpu_type in self._places[gang]:
            takes = self.takes(gang, gpu_type)
            reason = self._obstacle(user, takes)
            if not reason:
                self.room.add(user, takes)
                self.on[gang] = gpu_type
                self.started.append(gang)
                return ""
            why.append(reason)
        return "; ".join(why)

    def _obstacle(self, user: int, takes: Amounts) -> str:
        room, cap = self.room, self._cap[user]
        for column, amount in takes.items():
            needs, has = f"{room.columns[column]}: needs {amount}", room.held[user][column]
            if amount > room.free[column]:
                return f"{needs}, {room.free[column]} are free"
            if has + amount > cap[column]:
                return f"{needs}, {room.names[user]!r} has {has} of at most {cap[column]}"
        return ""


def _divided(market: Market) -> tuple[Array, DecisionReason]:
    """Divide all resources among users by progressive filling. Source: NSDI 2011, Sec. 4.1."""
    owed = entitlements_of(market)
    gangs, k, number = owed.gangs, len(market.types), type(market.capacity.tolist()[0])
    vectors: dict[int, dict[int, Number]] = {}
    alike: dict[int, list[int]] = {}
    for gang in gangs.order().tolist():
        gpu_type = int(np.argmax(gangs.allowed[gang]))
        user, vector = int(gangs.user[gang]), takes_of(owed, gang, gpu_type)
        first = alike.setdefault(user, [])
        if first and vectors[user] != vector:
            pair = f"gangs {gangs.names[first[0]]!r} and {gangs.names[gang]!r} of {market.users[user]!r}"
            raise NotCapable(f"{pair} take different amounts, and divisible tasks must be alike: leave divisible out")
        vectors[user] = vector
        first.append(gang)
    demand = np.array([[number(0)] * len(owed.columns) for _ in market.users])
    for user, vector in vectors.items():
        for column, amount in vector.items():
            demand[user, column] = amount
    capacity = np.append(market.capacity, owed.stock)
    rate = rates(demand, capacity, market.weight)
    most = objects(_most(demand[user], owed.cap[user], len(alike.get(user, []))) for user in range(len(demand)))
    tasks = filled(demand, capacity, rate, most)
    on = np.full(len(gangs), -1, dtype=np.int64)
    waits: dict[str, str] = {}
    for user, own in alike.items():
        for at, gang in enumerate(own):
            if at + 1 <= tasks[user]:
                on[gang] = int(np.argmax(gangs.allowed[gang]))
            else:
                waits[gangs.names[gang]] = f"{market.users[user]!r} is given {tasks[user]} of {len(own)} tasks"
    held = demand * tasks[:, None]
    shares = {
        name: dominant_share(held[user].tolist(), capacity.tolist(), market.weight[user])
        for user, name in enumerate(market.users)
    }
    return cast(held[:, :k], number), DecisionReason(
        gangs.placed(on), "dominant share over weight", shares, waits=waits
    )


def _most(demand: Array, cap: Array, count: int) -> Number:
    """Return how many tasks a user may run at most: those that it asks for, and what its caps allow."""
    most: Number = min([Fraction(count), *(end / need for end, need in zip(cap, demand, strict=True) if need > 0)])
    return most
