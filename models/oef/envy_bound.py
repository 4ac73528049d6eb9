"""Exact bounds for envy-free shares in floats: an allocation in Fractions, an upper bound, and the gap."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import ceil, isqrt

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates import MarketBound
from fairopt.errors import NotCapable
from fairopt.models.common.levels import by_prices
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, fractions

#: The most users for whom envy between all pairs is compared in Fractions, which then takes a few seconds.
MOST_USERS = 100
#: Square roots are rounded, and mixing weights rounded up, to a multiple of 1 over this.
GRAIN = 2**200
NONE = Fraction(0)


def exact_bound(decision: Allocation) -> MarketBound:
    """Return an exactly envy-free allocation near the decision's, and a bound from its multipliers.

    Bundles in floats have envy of the size of rounding errors. Users with proportional speedups are given bundles of
    the same value. The rest of the envy is removed by mixing in bundles that are strictly envy-free (see `envy_proof`),
    all in Fractions. Errors: `NotCapable` for more than `MOST_USERS` users, and where no mixture is free of envy.
    """
    market, solution = decision.market.as_(Fraction), decision.solution
    assert solution is not None
    if len(market.users) > MOST_USERS:
        raise NotCapable(
            f"envy between {len(market.users)} users is not compared in Fractions, which is done for {MOST_USERS}: "
            "the decision's solution holds the bounds in floats"
        )
    shares = _allocation(market, solution.values["bundle"]) * market.weight[:, None]
    reached = (market.speedup * shares).sum()
    bound, duals = _bound(market, solution)
    return MarketBound(decision.market, decision.policy, shares, reached, bound, bound - reached, duals)


def _allocation(market: Market, floats: Array) -> Array:
    """Return envy-free, feasible bundles per weight (n, k) in Fractions."""
    # a type without GPUs counts as useless to all
    speedup = np.where(market.capacity > 0, market.speedup, np.array(NONE))
    bundle = np.where(speedup > 0, fractions(floats), np.array(NONE))
    top = speedup.max(axis=1)
    alike: dict[tuple[Fraction, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(speedup / top[:, None]):
        alike[tuple(row)].append(i)
    value = (speedup * bundle).sum(axis=1) / top
    for members in alike.values():
        least = min(value[members])
        for i in members:
            bundle[i] = bundle[i] * (least / value[i]) if value[i] else bundle[i]
    bundle, strict = _fit(market, bundle), _strict(market)
    envy, slack = (_envy(speedup, each) for each in (bundle, strict))
    envied = envy > 0
    if (slack[envied] >= 0).any():
        raise NotCapable("some users are too much alike: their envy, by a rounding error, is not mixed away exactly")
    mixed = max([NONE, *(e / (e - s) for e, s in zip(envy[envied], slack[envied], strict=True))])
    mixed = Fraction(ceil(mixed * GRAIN), GRAIN)
    held = bundle * (1 - mixed) + strict * mixed
    if (_envy(market.speedup, held) > 0).any():
        raise NotCapable("some users are too much alike: what rounding leaves of envy is not mixed away exactly")
    return np.asarray(held)


def _envy(speedup: Array, bundle: Array) -> Array:
    """Return (n, n): by how much user l prefers i's bundle per weight to its own."""
    worth = speedup @ bundle.T
    return np.asarray(worth - np.diagonal(worth)[:, None])


def _strict(market: Market) -> Array:
    """Return bundles per weight (n, k), in proportion to the worth of all GPUs of a type to the holder."""
    worth = market.speedup * market.capacity
    worth = worth / worth.max(axis=1)[:, None]
    length = np.array([Fraction(isqrt(int((row * row).sum() * GRAIN**2)), GRAIN) for row in worth])
    along = np.array([[Fraction(int(entry * GRAIN), GRAIN) for entry in row] for row in worth / length[:, None]])
    return _fit(market, along * market.capacity)


def _fit(market: Market, bundle: Array) -> Array:
    """Return the bundles per weight, scaled within capacities and demands: by a short number near the largest."""
    return np.asarray(bundle * Fraction(int(market.largest_multiple(bundle * market.weight[:, None]) * GRAIN), GRAIN))


def _bound(market: Market, solution: Solution) -> tuple[Fraction, list[list[object]]]:
    """Return the bound of the multipliers by weak duality, and the duals by rows of the program."""
    speedup, weight = market.speedup, market.weight
    (envious, envied), floats = solution.duals["envy_free"]
    against: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for l, i, y in zip(envious.tolist(), envied.tolist(), floats.tolist(), strict=True):  # noqa: E741
        if l != i and y > 0:
            against[l, i] += Fraction(y)
    pays = speedup.copy()
    for (l, i), y in against.items():  # noqa: E741
        pays[l] = pays[l] + speedup[l] * y
        pays[i] = pays[i] - speedup[l] * (y * weight[l] / weight[i])
    price = np.maximum(fractions(np.asarray(solution.duals["capacity"])), np.array(NONE))
    # a price of a type without GPUs adds nothing to the bound, but the dual of a demand does
    price = np.where(market.capacity > 0, price, np.maximum(pays.max(axis=0), np.array(NONE)))
    for i, limit in enumerate(market.limit):
        if limit == INFINITY:
            price = np.where(speedup[i] > 0, np.maximum(price, pays[i]), price)
    demand_dual = fractions(max([NONE, *(own - price)[runs]]) for own, runs in zip(pays, speedup > 0, strict=True))
    bound, entries = by_prices(market, price, demand_dual)
    entries += [["envy_free", l, i, -y] for (l, i), y in sorted(against.items())]  # noqa: E741
    return bound, entries
