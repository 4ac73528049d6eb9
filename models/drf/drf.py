"""Dominant Resource Fairness over GPUs of types and further goods, for whole gangs and for divisible tasks.

Shapes, for n users and m resources: ``demand`` (n, m) what one task of each user takes, ``capacity`` (m,), ``weight``
(n,), or (n, m) where a user has a weight for each resource. Numbers are Fractions or floats alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.common.holdings import (
    Holdings,
    TreeTurns,
    by_queue,
    entitlements_of,
    quick,
    takes_of,
)
from fairopt.policy import Claim, Computed, DecisionReason, Example, Trait
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.program import INFINITY, Array, Formulation, Number, Program, cast, objects


def rates(demand: Array, capacity: Array, weight: Array) -> Array:
    """Return how many tasks each user (n,) runs when its dominant share is its weight.

    The dominant share of a user is the largest of its shares of a resource, each over its weight there. Users who ask
    for nothing, or for what there is none of, have rate 0.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1, and 4.3 (weights by resource).

    >>> import numpy as np
    >>> print(rates(np.array([[1, 4], [3, 1]]), np.array([9, 18]), np.array([1, 1])))
    [4.5 3. ]
    """
    weights = weight if weight.ndim == 2 else weight[:, None]
    there = np.asarray(capacity > 0)
    largest = (demand / (np.where(there, capacity, 1) * weights)).max(axis=1)
    runs = (largest > 0) & ~np.asarray(demand[:, ~there] > 0).any(axis=1)
    return np.where(runs, 1 / np.where(runs, largest, 1), 0 * largest)


def filled(demand: Array, capacity: Array, rate: Array, most: Array | None = None) -> Array:
    """Return the tasks (n,) of progressive filling: all users grow at their ``rate`` until something stops them.

    A user stops where a resource that it needs is used up, or at ``most`` tasks (n,); the others go on. Tasks are
    divisible. With the rates of `rates` this is DRF, for other measures of a share it is another policy.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1 (progressive filling, as for max-min fairness).

    >>> import numpy as np
    >>> demand, capacity = np.array([[1, 4], [3, 1]]), np.array([9, 18])
    >>> print(filled(demand, capacity, rates(demand, capacity, np.array([1, 1]))))
    [3. 2.]
    """
    tasks, left, grows = rate * 0, capacity + rate.sum() * 0, rate > 0
    limit = np.full(len(rate), INFINITY) if most is None else most
    while grows.any():
        speed = np.where(grows, rate, 0 * rate)
        use = speed @ demand
        until = [room / need for room, need in zip(left, use, strict=True) if need > 0]
        until += [(end - has) / by for end, has, by in zip(limit, tasks, speed, strict=True) if by > 0]
        step = min(until)
        tasks = tasks + speed * step
        done = np.array([has >= end for has, end in zip(tasks, limit, strict=True)])
        # what is used up is known by the step, not by a rest that rounding may leave
        empty = np.array([need > 0 and room / need <= step for room, need in zip(left, use, strict=True)])
        tasks = np.where(done & grows, limit, tasks)
        left = capacity - tasks @ demand
        grows = grows & ~done & ~(demand[:, empty] > 0).any(axis=1)
    return np.asarray(tasks)


def program(demand: Array, capacity: Array, rate: Array) -> Program:
    """Return the linear program of DRF: the largest dominant share that all users can have at once.

    Where every user needs every resource this is the whole of DRF; else `filled` goes on with those who can grow.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1: maximise (x, y) subject to the capacities and equal dominant shares.
    """
    p = Formulation("drf")
    tasks = p.variable("tasks", (len(rate),))
    share = p.variable("dominant_share")
    p.maximize(share, equation="s", source="NSDI 2011, Sec. 4.1")
    p.constrain("equal", tasks - rate * share == 0, equation="x_i / rate_i = s", source="NSDI 2011, Sec. 4.1")
    p.constrain(
        "capacity",
        (demand.T * tasks).sum(axis=1) <= capacity,
        equation="sum_i x_i d_ij <= r_j",
        source="NSDI 2011, Sec. 4.1",
    )
    return p.program()


def dominant_share(held: Sequence[Number], capacity: Sequence[Number], weight: Number) -> Number:
    """Return the dominant share of a user that holds ``held`` (m,), over its weight.

    Resources of which there is nothing count as no share.

    >>> dominant_share([6, 2], [9, 18], 2)
    0.3333333333333333
    """
    shares = [has / there for has, there in zip(held, capacity, strict=True) if there > 0]
    most: Number = max(shares, default=0 * weight) / weight
    return most


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
    user. With ``divisible`` tasks can be cut, and all resources are given out anew by progressive filling, as in the
    paper's theorems; each user's gangs must then take the same on their first allowed type.

    The paper ends a round when a task does not fit; here other users go on. A gang that may run on several types takes
    the first of these with room; the paper has no choice of types. Ties go to the first user. Weights are the market's.

    Source: Ghodsi et al., NSDI 2011, Algorithm 1, Sec. 4.1-4.3.

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
    divisible: bool = False

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that users hold after the rule, and why."""
        assert problem.entitlements is not None  # Trait.ENTITLED
        return _divided(problem) if self.divisible else _in_turn(problem)


def _in_turn(market: Market) -> tuple[Array, DecisionReason]:
    """Give whole gangs to the user of least dominant share, one after another. Source: NSDI 2011, Algorithm 1."""
    owed, room = entitlements_of(market), Holdings.at_first(market)
    capacity, cap, weight = [*market.capacity, *owed.stock], owed.cap.tolist(), market.weight.tolist()
    queues = by_queue(sorted((gang for own in room.waiting.values() for gang in own), key=lambda gang: gang.place))

    def share(user: int) -> Number:
        return dominant_share(room.held[user], capacity, weight[user])

    turns = TreeTurns.flat(queues, lambda user: tuple(quick((share(user),))))
    while (user := turns.first()) is not None:
        gang = queues[user].popleft()
        why = []
        for gpu_type, takes in gang.takes.items():
            if not (reason := room.obstacle(user, takes, cap[user])):
                room.start(gang, gpu_type)
                break
            why.append(reason)
        else:
            room.waits[gang.name] = "; ".join(why)
            room.waits |= dict.fromkeys((other.name for other in queues[user]), f"behind {gang.name!r}")
            queues[user].clear()
        turns.changed(user)
    shares = {name: share(user) for user, name in enumerate(market.users)}
    return room.decided(market, "dominant share over weight", shares)


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
