"""Users who train the jobs of Gavel's measured throughput table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.benchmarks.instances.markets import CLUSTERS, MarketFamily, runnable
from fairopt.datasets.gavel import gavel_throughputs
from fairopt.problem import Market


class GavelTable(MarketFamily):
    """Each user trains one job of the table, on one GPU; speedups over the slowest type that the job runs on.

    The types are the table's: K80, P100, V100. As there are 26 jobs, most users have many twins.
    """

    name = "gavel-table"
    source = "Gavel, OSDI 2020, scheduler/simulation_throughputs.json"
    any_types = False

    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market of rows of the table."""
        users = chosen["users"]
        jobs = [list(each.steps_per_s.values()) for each in gavel_throughputs("simulation")]
        rows = np.array([[0.0 if steps is None else float(steps) for steps in job] for job in jobs])
        rows = rows[(rows > 0).any(axis=1)]
        slowest = np.where(rows > 0, rows, np.inf).min(axis=1)
        capacity = CLUSTERS[chosen["capacity"]](random, users, 3)
        speedup = (rows / slowest[:, None])[random.integers(0, len(rows), users)]
        return Market.of_arrays(runnable(speedup, capacity), capacity, types=["K80", "P100", "V100"])
