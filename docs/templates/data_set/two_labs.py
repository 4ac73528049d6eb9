"""A data set: a function that returns a market, a trace, a cluster or a batch."""

from __future__ import annotations

from fairopt.problem import Market


def two_labs() -> Market:
    """Return two labs that share 16 K80 and 4 V100; speedups are over the K80.

    Source: where the numbers are from, and under which licence.
    """
    return Market.of(
        [[1, "1.5"], [1, 4]], capacity=[16, 4], weight=[2, 1], users=["vision", "language"], types=["K80", "V100"]
    )
