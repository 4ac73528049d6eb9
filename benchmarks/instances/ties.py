"""Markets with many ties: few distinct rows, few distinct numbers, zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.instances.markets import CLUSTERS, Check, MarketFamily, between, runnable, whole
from fairopt.problem import Market


class Ties(MarketFamily):
    """``distinct`` rows (5) of whole speedups from 1 to 4, some 0 (``zeros`` of them, 0.1), each held by many users."""

    name = "ties"
    source = "identical users and equal ratios: where bases are degenerate and optima are not unique"
    own: ClassVar[Mapping[str, tuple[Any, Check]]] = {"distinct": (5, whole(1)), "zeros": (0.1, between(0, 1))}

    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market of repeated rows."""
        users, types = chosen["users"], chosen["types"]
        capacity = CLUSTERS[chosen["capacity"]](random, users, types)
        rows = random.integers(1, 5, (chosen["distinct"], types)).astype(float)
        rows[random.random(rows.shape) < chosen["zeros"]] = 0.0
        held = random.integers(0, len(rows), users)
        return Market.of_arrays(runnable(rows, capacity)[held], capacity)
