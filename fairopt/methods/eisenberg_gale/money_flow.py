"""Exact maximum flow of money from groups of buyers to the goods that each group buys; integers or Fractions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from math import lcm


def spend(
    budgets: Sequence[Fraction], wishes: Sequence[Sequence[int]], values: Sequence[Fraction]
) -> list[list[Fraction]] | None:
    """Return who spends how much on what (groups, goods), so that all budgets are spent and all goods are paid for.

    Group g has ``budgets[g]`` and buys goods ``wishes[g]`` only; good j costs ``values[j]`` in all. None where it
    cannot be done. The answer is a function of the arguments: shortest augmenting paths, in their order.

    Source: Edmonds and Karp 1972.
    """
    if sum(budgets) != sum(values):
        return None
    unit = lcm(*(number.denominator for number in (*budgets, *values)))
    purse = [int(amount * unit) for amount in budgets]
    unpaid = [int(amount * unit) for amount in values]
    flow = [[0] * len(values) for _ in budgets]
    for group in range(len(purse)):
        while purse[group]:
            path = _path(group, wishes, flow, unpaid)
            if path is None:
                return None
            # forward over (path[0], path[1]), back over (path[2], path[1]), forward over (path[2], path[3]), ...
            goods, groups = path[1::2], path[0::2]
            back = [flow[g][j] for g, j in zip(groups[1:], goods[:-1], strict=True)]
            amount = min(purse[group], unpaid[goods[-1]], *back)
            for g, j in zip(groups, goods, strict=True):
                flow[g][j] += amount
            for g, j in zip(groups[1:], goods[:-1], strict=True):
                flow[g][j] -= amount
            purse[group] -= amount
            unpaid[goods[-1]] -= amount
    return [[Fraction(amount, unit) for amount in row] for row in flow]


def _path(start: int, wishes: Sequence[Sequence[int]], flow: list[list[int]], unpaid: list[int]) -> list[int] | None:
    """Return a shortest path group, good, group, ..., good from ``start`` to a good that is not paid for."""
    reached_by: dict[int, int] = {}  # good: the group that reaches it
    frees: dict[int, int] = {start: -1}  # group: the good that it would give back
    waiting = deque([start])
    while waiting:
        group = waiting.popleft()
        for good in wishes[group]:
            if good in reached_by:
                continue
            reached_by[good] = group
            if unpaid[good]:
                path = [good]
                while good >= 0:
                    path += [reached_by[good], frees[reached_by[good]]]
                    good = path[-1]
                return path[-2::-1]
            for other, row in enumerate(flow):
                if other not in frees and row[good]:
                    frees[other] = good
                    waiting.append(other)
    return None
