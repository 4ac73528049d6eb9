"""Whether an allocation has a property, by the definition in the property's source: every case is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, permutations

from plain_efficient import gain_for_all
from plain_market import NOTHING, Given, Table, part, used, worth


def no_envy(market: Given, shares: Table) -> bool:
    """Whether nobody gets more from another's shares, by weight, than from its own. Source: OEF Sec. 2.3.1 (2)."""
    for i, other in permutations(market.users, 2):
        theirs = [x * market.weight[i] / market.weight[other] for x in shares[other]]
        if worth(market, i, theirs) > worth(market, i, shares[i]):
            return False
    return True


def incentive(market: Given, shares: Table) -> bool:
    """Whether everybody has at least what its own partition is worth. Source: OEF Sec. 2.3.1 (3)."""
    return all(worth(market, i, shares[i]) >= worth(market, i, part(market, i)) for i in market.users)


def feasible(market: Given, shares: Table) -> bool:
    """Whether no share is below 0, and of no type more is given out than there is. Source: OEF Eq. (9b)."""
    given_out = [sum((row[j] for row in shares), NOTHING) for j in market.types]
    return min(min(row) for row in shares) >= 0 and all(x <= m for x, m in zip(given_out, market.capacity, strict=True))


def conserving(market: Given, shares: Table) -> bool:
    """Whether nobody who runs on an idle GPU uses fewer than it demands. Source: Gandiva_fair Sec. 3.3."""
    uses = [used(market, i, row) for i, row in enumerate(shares)]
    for j in market.types:
        idle = sum((row[j] for row in uses), NOTHING) < market.capacity[j]
        for i, limit in enumerate(market.limit):
            if idle and market.speedup[i][j] > 0 and (limit is None or sum(uses[i]) < limit):
                return False
    return True


def adjacent(market: Given, shares: Table) -> bool:
    """Whether nobody holds two types and none of one between them. Source: OEF Theorem 5.2."""
    there = [j for j in market.types if market.capacity[j] > 0]
    ways = [(row, three) for row in shares for three in combinations(there, 3)]
    return not any(row[a] > 0 and row[c] > 0 and row[b] <= 0 for row, (a, b, c) in ways)


def efficient(market: Given, shares: Table) -> bool:
    """Whether nobody can have more and nobody less. Source: OEF Sec. 2.3.1 (4)."""
    worths = [worth(market, i, row) for i, row in enumerate(shares)]
    return gain_for_all(market, worths) == 0


DEFINITIONS: Mapping[str, Callable[[Given, Table], bool]] = {
    "envy_freeness": no_envy,
    "sharing_incentive": incentive,
    "feasibility": feasible,
    "work_conservation": conserving,
    "adjacent_types": adjacent,
    "pareto_efficiency": efficient,
}
