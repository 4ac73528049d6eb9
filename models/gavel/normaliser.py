"""What a user's throughput is compared with."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import replace

from fairopt.models.gavel.partitions import isolated
from fairopt.problem import Market
from fairopt.program import Array


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
