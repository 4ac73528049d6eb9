"""Markets made from a seed: small integers with ties, or floats of every size, the same ones in every run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np

from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.program import Array


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


def _primes(count: int) -> list[int]:
    """Return the primes from 11 on."""
    primes = (number for number in itertools.count(11, 2) if all(number % part for part in range(3, isqrt(number) + 1)))
    return list(itertools.islice(primes, count))
