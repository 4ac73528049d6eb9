"""Markets and batches made from a seed: small, with ties and all that can go wrong, the same ones in every run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from random import Random
from typing import Any

import numpy as np

from fairopt.problem import Entitled, Entitlements, Gangs, Good, Market
from fairopt.problem.batch import Batch
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.program import INFINITY, Array


def sample_markets(
    count: int,
    *,
    seed: int = 0,
    users: tuple[int, int] = (1, 5),
    types: tuple[int, int] = (1, 4),
    most: int = 6,
    weights: bool = True,
    zeros: bool = True,
    demands: bool = False,
    ties: bool = True,
    alike: bool = False,
) -> Iterator[Market]:
    """Yield ``count`` exact markets with users and types within the given ranges.

    Speedups, capacities and weights are integers up to ``most``; ``weights``, ``zeros`` (users that cannot run on a
    type) and ``demands`` switch these on in about half of the markets. Without ``ties`` no two ratios of speedups are
    the same, so that the decision of a policy does not depend on the order of the users. ``alike`` makes, in about half
    of the markets, users alike or in proportion, types in proportion, and types without GPUs.
    """
    random = np.random.default_rng(seed)
    for _ in range(count):
        n, k = int(random.integers(users[0], users[1] + 1)), int(random.integers(types[0], types[1] + 1))
        speedup = random.integers(1, most + 1, (n, k)).astype(object)
        if not ties:
            # primes over primes: all ratios differ, within a row and between rows
            primes = random.permutation(_primes(n * k)).reshape(n, k)
            speedup = np.array([[Fraction(int(p), 10) for p in row] for row in primes], dtype=object)
        if zeros and k > 1 and random.random() < 0.5:
            speedup[random.random((n, k)) < 0.25] = 0
            for i in range(n):
                if not any(speedup[i] > 0):
                    speedup[i, int(random.integers(k))] = 1
        capacity = random.integers(1, most + 1, k)
        if alike and random.random() < 0.5:
            _make_alike(random, speedup, capacity)
        yield Market.of(
            speedup.tolist(),
            capacity.tolist(),
            weight=random.integers(1, 4, n).tolist() if weights and random.random() < 0.5 else None,
            demand=random.integers(1, most + 1, n).tolist() if demands and random.random() < 0.5 else None,
        )


def _make_alike(random: np.random.Generator, speedup: Array, capacity: Array) -> None:
    n, k = speedup.shape
    speedup[n - n // 2 :] = speedup[: n // 2] * int(random.integers(1, 3))
    if k > 1 and random.random() < 0.5:
        runs = speedup[:, 0] > 0
        speedup[runs, -1] = 2 * speedup[runs, 0]
    spare = random.integers(k)
    if (np.delete(speedup, spare, axis=1) > 0).any(axis=1).all():
        capacity[spare] = 0


def entitled_markets(count: int, *, seed: int = 0) -> Iterator[Market]:
    """Yield ``count`` exact markets with entitlements: two to four users, up to three types, and at times CPU too.

    Users are in one of two groups, in a group of a group, or in none. Guarantees may be more than there is, gangs run
    or wait on one type or on several.
    """
    random = np.random.default_rng(seed)
    for market in sample_markets(count, seed=seed, users=(2, 4), types=(1, 3), weights=False):
        n, k = market.shape

        def some(low: int, high: int, k: int = k) -> list[int]:
            return [int(each) for each in random.integers(low, high + 1, k)]

        goods = {Good("cpu", "all"): 9} if random.random() < 0.3 else {}
        nodes = (*market.users, "team", "part", "company")
        group = {user: str(random.choice(["team", "part"])) for user in market.users if random.random() < 0.8}
        size = int(random.integers(1, 6))
        allowed = [[t for t in market.types if random.random() < 0.6] or [market.types[0]] for _ in range(size)]
        gangs = Gangs.of(
            [str(user) for user in random.choice(market.users, size)],
            random.integers(1, 5, size).tolist(),
            users=market.users,
            types=market.types,
            allowed=allowed,
            on=[types[0] if random.random() < 0.5 else None for types in allowed],
            preemptible=(random.random(size) < 0.8).tolist(),
            other={"cpu": random.integers(0, 4, size).tolist()},
        )
        owed = Entitlements.of(
            market.users,
            market.types,
            group=group | {"team": "company", "part": "company"},
            groups=nodes[n:],
            goods=goods,
            guarantee={user: some(0, 4) for user in market.users},
            cap={node: some(1, 6) for node in nodes if random.random() < 0.4},
            borrow_weight={node: int(random.integers(0, 4)) for node in nodes},
            tier={node: int(random.integers(0, 2)) for node in nodes if random.random() < 0.3},
            gangs=gangs if random.random() < 0.8 else None,
        )
        yield replace(market, entitlements=owed)


def guaranteed_market(seed: int) -> Market:
    """Return a small market in a tree of groups, whose guarantees fit: a third of each type is guaranteed to nobody."""
    random = np.random.default_rng(seed)
    n, k = random.integers(2, 6), random.integers(1, 4)
    users, types = [f"u{i}" for i in range(n)], [f"T{j}" for j in range(k)]
    capacity = random.integers(3, 13, k)
    speedup = random.integers(1, 9, (n, k)) * (random.random((n, k)) < 0.7)
    speedup[np.arange(n), random.integers(0, k, n)] = random.integers(1, 9, n)
    group = {user: ["a", "b"][random.integers(2)] for user in users if random.random() < 0.8} | {"b": "top"}
    parts = random.dirichlet(np.ones(n + 1), k).T  # of each type: a part for each user, one for nobody
    own = [[Fraction(int(12 * part * there), 12) for part, there in zip(row, capacity, strict=True)] for row in parts]
    guarantee: dict[str, Any] = dict(zip(users, own, strict=False))
    members = [user for user in users if group.get(user) == "a"]
    guarantee["a"] = [sum(guarantee[user][j] for user in members) + own[-1][j] / 2 for j in range(k)]
    cap = {user: random.integers(3, 9, k).tolist() for user in users if random.random() < 0.4}
    owed = Entitlements.of(users, types, group=group, groups=["a", "b"], guarantee=guarantee, cap=cap)
    demand = [int(each) if random.random() < 0.6 else None for each in random.integers(1, 12, n)]
    return Market.of(speedup.tolist(), capacity.tolist(), demand=demand, users=users, types=types, entitlements=owed)


def stated(market: Market) -> Entitlements:
    """Return the entitlements of a market that has some."""
    assert market.entitlements is not None
    return market.entitlements


def only(market: Market, supported: frozenset[Entitled]) -> Market:
    """Return the market with nothing else in its entitlements than what is ``supported``."""
    owed = stated(market)
    if Entitled.GROUPS not in supported:
        users = len(owed.users)
        names = ("guarantee", "cap", "reserve", "borrow_weight", "tier", "usage")
        own: dict[str, Any] = {name: getattr(owed, name)[:users] for name in names}
        owed = replace(owed, groups=(), parent=np.full(users, TOP), **own)
    without: dict[Entitled, dict[str, Any]] = {
        Entitled.GUARANTEES: {"guarantee": owed.guarantee * 0, "reserve": owed.reserve * 0},
        Entitled.CAPS: {"cap": np.where(owed.cap < INFINITY, INFINITY, owed.cap)},
        Entitled.TIERS: {"tier": owed.tier * 0},
    }
    for what, columns in without.items():
        owed = owed if what in supported else replace(owed, **columns)
    return replace(market, entitlements=owed)


def _primes(count: int) -> list[int]:
    """Return the primes from 11 on."""
    primes = (number for number in itertools.count(11, 2) if all(number % part for part in range(3, isqrt(number) + 1)))
    return list(itertools.islice(primes, count))


def sample_batches(count: int, *, seed: int = 0, jobs: int = 4, servers: int = 3) -> Iterator[Batch]:
    """Yield ``count`` exact batches, the same ones in every run for a ``seed``.

    Among them: servers without workers or PS; tenants without a share, and without jobs; jobs that arrive later, want
    more workers than there are, slow down when they are spread, or are worth nothing after a few slots; several types.
    """
    for number in range(count):
        yield _batch(Random(f"{seed}/{number}"), jobs, servers)


def _batch(random: Random, most_jobs: int, most_servers: int) -> Batch:
    types = [random.choice([1, 1, 2]) for _ in range(2)]
    servers, jobs = random.randint(1, most_servers), random.randint(1, most_jobs)
    names = [f"tenant-{number}" for number in range(random.randint(1, 3))]
    held = [[[random.randint(0, 2) for _ in range(of)] for _ in range(servers)] for of in types]
    for there in held:
        there[0][0] = max(1, there[0][0])
    workers, ps = held
    return Batch.of(
        workers=workers,
        ps=ps,
        worker_quota=quotas(random, workers, names),
        ps_quota=quotas(random, ps, names),
        worker_types=[f"worker-{number}" for number in range(types[0])],
        ps_types=[f"ps-{number}" for number in range(types[1])],
        worker_bandwidth=random.choice([1, 2]),
        ps_bandwidth=random.choice([1, 2, 3]),
        tenant=[random.choice(names) for _ in range(jobs)],
        arrival=[random.choice([0, 0, 1, 3]) for _ in range(jobs)],
        epochs=[random.randint(1, 2) for _ in range(jobs)],
        chunks=[random.randint(1, 3) for _ in range(jobs)],
        minibatches=[1] * jobs,
        minibatch_time=[[Fraction(random.randint(1, 4), 4) for _ in range(types[0])] for _ in range(jobs)],
        update_time=[[Fraction(random.randint(0, 2), 4) for _ in range(types[1])] for _ in range(jobs)],
        gradient=[Fraction(random.randint(0, 2), 4) for _ in range(jobs)],
        utility=[_utility(random) for _ in range(jobs)],
        names=[f"job-{number}" for number in range(jobs)],
        servers=[f"server-{number}" for number in range(servers)],
    )


def quotas(random: Random, there: list[list[int]], names: list[str]) -> dict[str, list[int]]:
    """Return who owns what: each worker, or PS, belongs to somebody."""
    quota = {name: [0] * len(there[0]) for name in names}
    for kind in range(len(there[0])):
        for _ in range(sum(row[kind] for row in there)):
            quota[random.choice(names)][kind] += 1
    return quota


def _utility(random: Random) -> CompletionUtility:
    linear = Linear(Fraction(-random.randint(2, 5)), Fraction(random.randint(4, 20)))
    steps = Steps(tuple(sorted((Fraction(random.randint(0, 20)) for _ in range(5)), reverse=True)))
    return random.choice([linear, steps, Power(Fraction(random.randint(5, 60)), Fraction(1))])
