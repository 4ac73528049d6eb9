"""Who buys what at maximal Nash welfare without demands: Newton's method in the prices, best buys being smoothed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.deadline import left
from fairopt.problem import Market
from fairopt.program import Array

#: Best buys are smoothed first by `WARM`, as a part of a price, and then less and less; shares are told at each
#: `COLD` over the number of users, since the more there are the nearer to each other their prices of indifference lie.
WARM, COLD, COOLER = 0.3, (2e-2, 1e-3), 0.15
#: The excess of what is spent on a type, as a part of its price, and in temperatures, at which the next is tried. A
#: part of all money would not do: of what is worth little, prices would be far off when best buys are told apart more.
NEXT = 4.0
MOST_STEPS = 160
#: What is minimised may rise by this, which is rounding, where a step is a good one.
ROUNDED = 1e-14
#: Added to the diagonal (ones) of the scaled system, and the least price: smaller ones have no digits left.
REGULAR, TINY = 1e-15, 1e-100


def smoothed_shares(market: Market) -> Iterator[Array]:
    """Yield shares (n, k) in floats, nearer and nearer to those of maximal Nash welfare, as far as the method comes.

    Prices p minimise p.m + sum_i w_i log max_j (s_ij / p_j). With the largest of these smoothed at a temperature T,
    user i spends its money on types in proportion to (s_ij / p_j)^(1 / T), and at the minimum all GPUs are sold. A
    step of Newton's method has one equation for each type, and costs O(n k^2). Demands are ignored.

    Source: the dual of Eisenberg and Gale 1959; smoothing of the largest by log-sum-exp, Nesterov 2005.
    """
    market = market.as_(float)
    columns = np.flatnonzero((market.capacity > 0) & (market.speedup > 0).any(axis=0))
    capacity, weight = market.capacity[columns], market.weight / market.weight.sum()
    with np.errstate(divide="ignore"):
        value = np.log((market.speedup[:, columns] * capacity).T)
    value -= value.max(axis=0)
    level = np.full(len(columns), -np.log(len(columns)))
    cold = [each / len(weight) for each in COLD]
    temperature, before, step = WARM, np.inf, np.zeros(len(columns))
    for _ in range(MOST_STEPS):
        left()
        part = value - level[:, None]
        top = part.max(axis=0)
        np.exp((part - top) / temperature, out=part)
        total = part.sum(axis=0)
        price = np.exp(level)
        reached = price.sum() + weight @ (top + temperature * np.log(total))
        if reached > before + ROUNDED:
            step = step / 4
            level = level - 3 * step
            continue
        part /= total
        spent = part @ weight
        if not np.minimum(spent, price).min() > TINY:
            return  # numbers so far apart are for the interior points
        excess = spent - price
        if (np.abs(excess) / price).max() <= NEXT * min(0.1, temperature):
            if temperature in cold:
                shares = np.zeros(market.shape)
                shares[:, columns] = (weight * part / spent[:, None]).T * capacity
                yield shares
            temperature, before = _cooler(temperature, cold), np.inf
            if not temperature:
                return
            continue
        # (diag(spent) - part diag(weight) part') / temperature + diag(price), then scaled to a diagonal of ones
        curved = (part * -weight) @ part.T
        diagonal = curved.reshape(-1)[:: len(price) + 1]
        diagonal += spent
        curved /= temperature
        diagonal += price
        unit = 1 / np.sqrt(diagonal)
        curved *= unit
        curved *= unit[:, None]
        diagonal += REGULAR
        step = np.linalg.solve(curved, excess * unit) * unit
        before, level = reached, level + step


def _cooler(temperature: float, cold: list[float]) -> float:
    """Return the next temperature, 0 after the last: no ``cold`` one is passed over."""
    colder = [each for each in cold if each < temperature]
    return max(temperature * COOLER, colder[0]) if colder else 0.0
