"""Dominant Resource Fairness over GPUs of types and further goods, for whole gangs and for divisible tasks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
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
    owed = market.entitlements
    assert owed is not None
    gangs, tasks = owed.gangs, _Tasks(market)
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
    held = np.array(tasks.held, dtype=market.speedup.dtype)[:, : len(market.types)]
    return held, DecisionReason(after, "dominant share over weight", shares, None, order, waits, stopped)


@dataclass
class _Tasks:
    """What users hold while gangs start and stop: ``held`` (n, m), ``left`` (m,), ``on`` which type each gang runs."""

    market: Market
    held: list[list[Number]] = field(init=False)
    left: list[Number] = field(init=False)
    on: list[int] = field(init=False)
    started: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        owed = self._owed
        self.capacity = [*self.market.capacity, *owed.stock]
        self.held = owed.held.tolist()
        self.left = (objects(self.capacity) - owed.held.sum(axis=0)).tolist()
        self.on = owed.gangs.on.tolist()
        self._cap, self._weight = owed.cap.tolist(), self.market.weight.tolist()
        self._places = [np.flatnonzero(allowed).tolist() for allowed in owed.gangs.allowed]
        self._column = [[owed.good(each, j) for each in owed.gangs.resources] for j in range(len(self.market.types))]

    @property
    def _owed(self) -> Entitlements:
        assert self.market.entitlements is not None
        return self.market.entitlements

    def takes(self, gang: int, gpu_type: int) -> list[tuple[int, Number]]:
        """Return the (column, amount) that a gang takes on a type; what nobody counts is left out."""
        return takes(self._owed, gang, gpu_type, self._column[gpu_type])

    def share(self, user: int, gang: int | None) -> Number:
        """Return a user's dominant share over its weight, with ``gang`` on the first of its types, or without."""
        held = self.held[user]
        if gang is not None:
            held = list(held)
            for column, amount in self.takes(gang, self._first(gang)):
                held[column] += amount
        return dominant_share(held, self.capacity, self._weight[user])

    def _first(self, gang: int) -> int:
        """Return the type that a gang ran on, else the first that it may run on."""
        ran = int(self._owed.gangs.on[gang])
        return ran if ran >= 0 else self._places[gang][0]

    def stop(self, gang: int) -> None:
        """Put a gang that runs back into its user's queue."""
        self._add(gang, self.on[gang], -1)
        self._places[gang], self.on[gang] = [self.on[gang]], -1

    def start(self, gang: int) -> str:
        """Start a gang on the first of its types with room; return why not where there is none."""
        user, why = int(self._owed.gangs.user[gang]), []
        for gpu_type in self._places[gang]:
            reason = self._obstacle(user, self.takes(gang, gpu_type))
            if not reason:
                self._add(gang, gpu_type, 1)
                self.on[gang] = gpu_type
                self.started.append(gang)
                return ""
            why.append(reason)
        return "; ".join(why)

    def _obstacle(self, user: int, takes: list[tuple[int, Number]]) -> str:
        for column, amount in takes:
            needs, has = f"{self._owed.columns[column]}: needs {amount}", self.held[user][column]
            if amount > self.left[column]:
                return f"{needs}, {self.left[column]} are free"
            if has + amount > self._cap[user][column]:
                return f"{needs}, {self._owed.users[user]!r} has {has} of at most {self._cap[user][column]}"
        return ""

    def _add(self, gang: int, gpu_type: int, sign: int) -> None:
        held = self.held[int(self._owed.gangs.user[gang])]
        for column, amount in self.takes(gang, gpu_type):
            held[column] += sign * amount
            self.left[column] -= sign * amount


def takes(owed: Entitlements, gang: int, gpu_type: int, columns: list[int | None]) -> list[tuple[int, Number]]:
    """Return the (column, amount) that a gang takes on a type, given the column of each of its other resources."""
    gpus, other = int(owed.gangs.gpus[gang]), zip(columns, owed.gangs.other[gang].tolist(), strict=True)
    found: list[tuple[int, Number]] = [(column, amount) for column, amount in other if column is not None and amount]
    return [(gpu_type, gpus), *found] if gpus else found


def _divided(market: Market) -> tuple[Array, DecisionReason]:
    """Divide all resources among users by progressive filling. Source: NSDI 2011, Sec. 4.1."""
    owed = market.entitlements
    assert owed is not None
    gangs, k, number = owed.gangs, len(market.types), type(market.capacity.tolist()[0])
    vectors: dict[int, dict[int, Number]] = {}
    alike: dict[int, list[int]] = {}
    for gang in gangs.order().tolist():
        gpu_type = int(np.argmax(gangs.allowed[gang]))
        user, columns = int(gangs.user[gang]), [owed.good(each, gpu_type) for each in gangs.resources]
        vector = dict(takes(owed, gang, gpu_type, columns))
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
