"""Users whose speedups grow from type to type, as OEF assumes of GPU generations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.benchmarks.instances.markets import CLUSTERS, MarketFamily
from fairopt.problem import Market


class OefGrowing(MarketFamily):
    """Every user's speedup is 1 on the slowest type and grows, at a rate of its own, to the fastest; two decimals."""

    name = "oef-growing"
    source = "OEF, Middleware 2024, Sec. 2.3: w_l^1 = 1 <= w_l^2 <= ... <= w_l^k"

    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market of growing rows."""
        users, types = chosen["users"], chosen["types"]
        growth = np.cumsum(random.uniform(0, 1, (users, types)), axis=1)
        speedup = np.round(1 + growth - growth[:, :1], 2)
        return Market.of_arrays(speedup, CLUSTERS[chosen["capacity"]](random, users, types))
