"""Users with independent speedups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.benchmarks.instances.markets import CLUSTERS, MarketFamily
from fairopt.problem import Market


class Uniform(MarketFamily):
    """Independent speedups, uniform from 0.1 to 1: no type is better for all users."""

    name = "uniform"
    source = "the usual random instances of linear Fisher markets"

    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market of independent rows."""
        users, types = chosen["users"], chosen["types"]
        speedup = random.uniform(0.1, 1.0, (users, types))
        return Market.of_arrays(speedup, CLUSTERS[chosen["capacity"]](random, users, types))
