"""Gavel's two rules without an optimiser, and what throughputs are compared with: the user's part of the types."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.policy import Claim, Computed, Example, Trait
from fairopt.problem import Market
from fairopt.program import INFINITY, Array


class GavelIsolated(Computed):
    """Each user gets its part, by weight, of every type, all of them scaled down to its demand; the rest is idle.

    The source has no weights there. `EqualSplit` gives what is left to the others, which this does not.

    Source: scheduler/policies/isolated.py, `IsolatedPolicy._get_allocation` (commit c4fa4009).

    >>> from fairopt import allocate
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[4, 2], demand=[2, None])
    >>> allocate(GavelIsolated(), market, exact=True).shares.astype(str).tolist()
    [['4/3', '2/3'], ['2', '1']]
    """

    name = "gavel-isolated"
    source = "Gavel's scheduler, isolated.py"
    looks_at_reports = False
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("strategy_proofness", "the reports are not looked at"),
        Claim("envy_freeness", "every bundle is the same by weight", assumes="no demands"),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        """Return the shares (n, k)."""
        return isolated(problem), None


class GavelProportional(Computed):
    """Each user's GPUs, as many as it demands, are of all types in proportion to their numbers.

    The source gives every job all of its time, also where jobs ask for more GPUs than there are. Here all are then
    scaled down alike; who has no demand asks for its part of the cluster, by weight.

    Source: scheduler/policies/proportional.py, `ProportionalPolicy._get_allocation` (commit c4fa4009), where it serves
    as the normaliser of max-min (`Normaliser`).

    >>> from fairopt import allocate
    >>> print(*allocate(GavelProportional(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    3/2 3
    """

    name = "gavel-proportional"
    source = "Gavel's scheduler, proportional.py"
    looks_at_reports = False
    traits = frozenset({Trait.UNIT_FREE, Trait.EXACT, Trait.DETERMINED})
    claims = (Claim("strategy_proofness", "the reports are not looked at"),)
    examples = (
        Example(
            "by hand: 2 and 4 GPUs asked for of 6 + 3, and then twice as many",
            Market.of([[1, 2], [1, 3]], capacity=[6, 3], demand=[2, 4]),
            shares=[["4/3", "2/3"], ["8/3", "4/3"]],
        ),
        Example(
            "by hand: 18 GPUs asked for where there are 9",
            Market.of([[1, 2], [1, 3]], capacity=[6, 3], demand=[6, 12]),
            shares=[[2, 1], [4, 2]],
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        """Return the shares (n, k)."""
        total = problem.capacity.sum()
        part = problem.weight / problem.weight.sum() * total
        asked = np.where(problem.limit < INFINITY, problem.limit, part)
        asked = asked * total / max(total, asked.sum())
        return np.multiply.outer(asked, problem.capacity / total), None


def isolated(market: Market) -> Array:
    """Return each user's part of every type (n, k), by weight, scaled down to its demand."""
    own = market.equal_split()
    held = own.sum(axis=1)
    return np.asarray(own * (np.minimum(held, market.limit) / held)[:, None])


class Normaliser(enum.Enum):
    """The throughput (n,) that stands for 1.

    * ``OWN_PARTITION``: of the user's weight's part of every type, GPUs beyond its demand unused, the slowest first.
    * ``EQUAL_TIME``: the same without regard to demands. With X_equal the time fractions in proportion to the numbers
      of GPUs by type, a gang of s GPUs has s times the mean throughput of a GPU there, and s cancels: Gavel multiplies
      ratios by it.
    * ``ISOLATED``: of the user's weight's part of every type, all of them scaled down to its demand.

    All agree where no demand is below its user's part of the cluster.

    Source: Gavel, OSDI 2020, Sec. 4.1 (X_equal); in its scheduler/policies proportional.py, `ProportionalPolicy`,
    max_min_fairness.py, `MaxMinFairnessPolicyWithPerf`, and isolated.py, `IsolatedPolicy` (commit c4fa4009).

    >>> market = Market.of([[2, 1]], capacity=[4, 4], demand=[4])
    >>> [str(each.of(market)[0]) for each in Normaliser]
    ['8', '12', '6']
    """

    OWN_PARTITION = "own-partition"
    EQUAL_TIME = "equal-time"
    ISOLATED = "isolated"

    def of(self, market: Market) -> Array:
        """Return the throughput (n,) in the units of the users."""
        return _THROUGHPUT[self](market)


_THROUGHPUT: Mapping[Normaliser, Callable[[Market], Array]] = {
    Normaliser.OWN_PARTITION: lambda market: market.fair_utility(),
    Normaliser.EQUAL_TIME: lambda market: replace(market, demand=None).fair_utility(),
    Normaliser.ISOLATED: lambda market: market.utility(isolated(market)),
}
