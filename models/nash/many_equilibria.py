"""Nash welfare and partial allocation under many misreports at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.deadline import left
from fairopt.methods.eisenberg_gale.solve import many_maximal_nash_welfare
from fairopt.methods.roots import beyond_floats
from fairopt.policy import Allocation
from fairopt.policy.many_programs import reported
from fairopt.problem import Market
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array

#: So many speedups are looked at together: a step on them takes a quarter of a second, and memory for twenty of them.
MOST_AT_ONCE = 1_000_000


def reported_equilibria(market: Market, users: Array, reports: Array) -> Array:
    """Return the shares (cases, n, k) of maximal Nash welfare where each of ``users`` reports otherwise, NaN if none.

    Errors of shares are about 1e-7, those of utilities less, where a demand hardly binds; else about 1e-12.
    """
    return many_maximal_nash_welfare(reported(market, users, reports), market.capacity, market.weight, market.limit)


def equilibria_without_each(market: Market) -> Array:
    """Return the shares (n, n - 1, k) of maximal Nash welfare on a market without demands, without each user in turn.

    NaN where a type is of no use then, and where accuracy was not reached.
    """
    n = len(market.users)
    at_once, limit, found = max(1, MOST_AT_ONCE // market.speedup.size), np.full(n - 1, INFINITY), []
    for first in range(0, n, at_once):
        left()
        others = np.array([np.delete(np.arange(n), user) for user in range(first, min(first + at_once, n))])
        speedups, weight = market.speedup[others], market.weight[others]
        found.append(many_maximal_nash_welfare(speedups, market.capacity, weight, limit))
    return np.concatenate(found)


def bundles_of_equilibria(market: Market, users: Array, reports: Array) -> Array:
    """Return the bundles (cases, k) of maximal Nash welfare, by interior points; see `ManyBundles`."""
    shares = reported_equilibria(market, users, reports)
    bundles: Array = shares[np.arange(len(users)), users]
    return bundles


def bundles_that_are_kept(market: Market, apart: Sequence[Allocation], users: Array, reports: Array) -> Array:
    """Return the bundles (cases, k) of partial allocation; see `ManyBundles`.

    ``apart`` are the decisions without each user, whose misreports change nothing.
    """
    n, case = len(market.users), np.arange(len(users))
    without = np.ones((n, n))
    for user, decision in enumerate(apart):
        without[user, np.arange(n) != user] = decision.utilities.astype(float)
    shares = reported_equilibria(market, users, reports)
    ratio = capped_value(market.speedup, shares, market.demand) / without[users]
    ratio[case, users] = 1.0
    logs = np.minimum(np.log(ratio) @ market.weight / market.weight[users], 0.0)
    unsure = beyond_floats(market.weight.sum() / market.weight[users])
    bundles: Array = np.where(unsure, np.nan, np.exp(logs))[:, None] * shares[case, users]
    return bundles
