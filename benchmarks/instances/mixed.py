"""Markets with everything in them: weights, demands of some users, zeros, units that are far apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.instances.markets import CLUSTERS, Check, MarketFamily, between, runnable
from fairopt.problem import Market


class Mixed(MarketFamily):
    """Weights from 1/4 to 4; demands for a part of the users; zeros; users who measure in units of their own.

    ``demands`` (0.5): the part of users with a demand, of 0.2 to 3 times the GPUs that there are for each.
    ``zeros`` (0.1): the part of speedups that are 0. ``units`` (0): each row is multiplied by 10 to a power of up to
    this much, up or down.
    """

    name = "mixed"
    source = "what real markets have and papers' examples lack"
    own: ClassVar[Mapping[str, tuple[Any, Check]]] = {
        "demands": (0.5, between(0, 1)),
        "zeros": (0.1, between(0, 1)),
        "units": (0, between(0, 6)),
    }

    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market of all kinds of rows."""
        users, types = chosen["users"], chosen["types"]
        capacity = CLUSTERS[chosen["capacity"]](random, users, types)
        speedup = np.round(random.uniform(0.5, 5.0, (users, types)), 2)
        speedup[random.random(speedup.shape) < chosen["zeros"]] = 0.0
        speedup = runnable(speedup, capacity)
        units = 10.0 ** random.uniform(-chosen["units"], chosen["units"], (users, 1))
        # to four digits: on other processors the last bit may differ
        speedup *= np.array([[float(f"{unit:.3e}")] for unit in units.ravel()])
        weight = np.round(2.0 ** random.uniform(-2, 2, users), 2)
        demand = np.round(capacity.sum() / users * random.uniform(0.2, 3.0, users), 6)
        demand[random.random(users) >= chosen["demands"]] = np.inf
        return Market.of_arrays(speedup, capacity, weight=weight, demand=np.maximum(demand, 1e-6))
