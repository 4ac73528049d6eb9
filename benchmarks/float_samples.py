"""Markets in floats made from a seed: small ones of every odd kind, and large ones, the same ones in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array

#: Draws the speedups (n, k) of a large market.
Speedups = Callable[[np.random.Generator, int, int], Array]
#: What may lie orders of magnitude apart in an odd market.
APART = ("speedups", "capacities", "units", "weights", "demands")


def odd_market(
    seed: int,
    *,
    users: tuple[int, int] = (1, 10),
    types: tuple[int, int] = (1, 5),
    orders: int = 6,
    apart: Sequence[str] = APART,
    weights: bool = True,
    zeros: bool = True,
    demands: bool = True,
    near: bool = False,
) -> Market:
    """Return a market in floats of an odd kind; ``users`` and ``types`` are the ranges of their numbers.

    Speedups are whole and few, decimal, real, rising from type to type, or powers of ten. Users may be alike or in
    proportion; with ``near`` also alike but for a part of 1e-16 to 1e-6. ``zeros`` are speedups and capacities of 0;
    everybody can run somewhere. One of the things that may lie ``apart`` is in some markets ``orders`` orders of
    magnitude larger or smaller than 1. ``demands`` limit some users, or all, or together use up exactly what there is.
    """
    random = np.random.default_rng([seed, 1])
    n, k = (int(random.integers(low, high + 1)) for low, high in (users, types))
    wide = APART[random.integers(len(APART))] if random.random() < 0.6 else ""
    far = [orders if name == wide and name in apart else 0 for name in APART]
    speedup = _odd_speedups(random, n, k, far[0])
    capacity = _odd_capacity(random, k, far[1])
    if zeros:
        speedup[random.random((n, k)) < random.choice([0, 0.3, 0.6])] = 0
        capacity[1:][random.random(k - 1) < 0.2] = 0
    _make_alike(random, speedup, near)
    nowhere = ~((speedup > 0) & (capacity > 0)).any(axis=1)
    speedup[nowhere, 0] = 1
    speedup *= 10.0 ** random.integers(-far[2], far[2] + 1, (n, 1))
    weight = _odd_weights(random, n, far[3]) if weights else np.ones(n)
    demand = _odd_demands(random, capacity.sum() * weight / weight.sum(), far[4]) if demands else None
    return Market.of_arrays(speedup, capacity, weight=weight, demand=demand)


def large_market(
    users: int, types: int, speedups: Speedups, *, seed: int = 0, weights: bool = False, demands: bool = False
) -> Market:
    """Return a market in floats of a given size; about half of the users have a demand where there are ``demands``."""
    random = np.random.default_rng([seed, users, types])
    capacity = (users * 10.0 ** random.uniform(-1.5, 0, types)).round() + 1  # of some types few, of some many
    demand = np.where(random.random(users) < 0.5, random.uniform(0.1, 4, users) * capacity.sum() / users, np.inf)
    return Market.of_arrays(
        speedups(random, users, types),
        capacity,
        weight=random.integers(1, 5, users) if weights else None,
        demand=demand if demands else None,
    )


def even(random: np.random.Generator, users: int, types: int) -> Array:
    """Return speedups between 1 and 9."""
    return random.uniform(1, 9, (users, types))


def rising(random: np.random.Generator, users: int, types: int) -> Array:
    """Return speedups of two decimals that rise from 1 on the first type."""
    steps = np.cumsum(random.uniform(0, 1, (users, types)), axis=1)
    rows: Array = np.round(1 + steps - steps[:, :1], 2)
    return rows


def few(random: np.random.Generator, users: int, types: int) -> Array:
    """Return at most 50 different rows."""
    return random.uniform(1, 9, (50, types))[random.integers(0, 50, users)]


def whole(random: np.random.Generator, users: int, types: int) -> Array:
    """Return speedups of 1, 2 and 3."""
    return random.integers(1, 4, (users, types)).astype(float)


def sparse(random: np.random.Generator, users: int, types: int) -> Array:
    """Return speedups that are 0 on all but one to three types."""
    rows = random.uniform(1, 9, (users, types))
    rows[np.argsort(random.random((users, types)), axis=1) >= random.integers(1, 4, users)[:, None]] = 0
    return rows


def _wide(random: np.random.Generator, orders: int, *shape: int) -> Array:
    """Return numbers that are up to ``orders`` orders of magnitude larger or smaller than 1."""
    wide: Array = 10.0 ** random.uniform(-orders, orders, shape)
    return wide


def _odd_speedups(random: np.random.Generator, n: int, k: int, orders: int) -> Array:
    drawn: tuple[Callable[[], Array], ...] = (
        lambda: random.integers(1, int(random.integers(2, 6)), (n, k)).astype(float),
        lambda: random.uniform(0.1, 3, (n, k)).round(2),
        lambda: random.uniform(1, 8, (n, k)),
        lambda: 1 + np.cumsum(random.integers(0, 4, (n, k)), axis=1) * 0.5,
    )
    apart = (lambda: 10.0 ** random.integers(-orders, orders + 1, (n, k)), lambda: _wide(random, orders, n, k))
    kinds = apart if orders else drawn
    return kinds[int(random.integers(len(kinds)))]()


def _odd_capacity(random: np.random.Generator, k: int, orders: int) -> Array:
    if orders:
        return _wide(random, orders, k)
    return random.integers(1, 9, k).astype(float) if random.random() < 0.7 else random.uniform(0.5, 30, k).round(2)


def _make_alike(random: np.random.Generator, speedup: Array, near: bool) -> None:
    """Make users alike, in proportion, or nearly so, by copying rows in other units."""
    n, k = speedup.shape
    if random.random() < 0.5:
        return
    alike = random.random(n) < random.choice([0.2, 0.5, 0.9])
    of = random.integers(0, n // 3 + 1, n)[alike]
    speedup[alike] = speedup[of] * random.choice([1.0, 2.0, 4.0], (len(of), 1))
    if near:
        off = random.choice([0, 1, -1], (len(of), k)) * 10.0 ** random.uniform(-16, -6, (len(of), 1))
        speedup[alike] *= 1 + off


def _odd_weights(random: np.random.Generator, n: int, orders: int) -> Array:
    kind = random.random()
    if orders:
        return _wide(random, orders, n)
    if kind < 0.5:
        return np.ones(n)
    return random.integers(1, 5, n).astype(float) if kind < 0.8 else random.uniform(0.1, 5, n)


def _odd_demands(random: np.random.Generator, fair: Array, orders: int) -> Array | None:
    """Return demands, given how many GPUs each user's own partition has (n,)."""
    kind = random.random()
    if orders:
        return np.where(random.random(len(fair)) < 0.6, _wide(random, orders, len(fair)), np.inf)
    if kind < 0.4:
        return None
    if kind < 0.5:
        return fair  # together exactly what there is
    some: Array = fair.mean() * random.choice([0.05, 0.25, 0.5, 1, 1.5, 5, np.inf], len(fair))
    return some
