"""What a user's throughput is compared with before the least ratio is raised."""

from __future__ import annotations

import enum
from dataclasses import replace

from fairopt.problem import Market
from fairopt.program import Array


class Normaliser(enum.Enum):
    """The throughput (n,) that stands for 1.

    * ``OWN_PARTITION``: of the user's weight's part of every type, GPUs beyond its demand unused.
    * ``EQUAL_TIME``: the same without regard to demands. With X_equal the time fractions in proportion to the numbers
      of GPUs by type, a gang of s GPUs has s times the mean throughput of a GPU there, and s cancels: Gavel multiplies
      ratios by it. Both agree where no demand is below its user's part of the cluster.

    Source: Gavel, OSDI 2020, Sec. 4.1 (X_equal); its scheduler/policies/proportional.py, `ProportionalPolicy`, and
    max_min_fairness.py, `MaxMinFairnessPolicyWithPerf` (commit c4fa4009).

    >>> market = Market.of([[2, 1]], capacity=[4, 4], demand=[4])
    >>> [str(each.of(market)[0]) for each in Normaliser]
    ['8', '12']
    """

    OWN_PARTITION = "own-partition"
    EQUAL_TIME = "equal-time"

    def of(self, market: Market) -> Array:
        """Return the throughput (n,) in the units of the users."""
        counted = market if self is Normaliser.OWN_PARTITION else replace(market, demand=None)
        return counted.fair_utility()
