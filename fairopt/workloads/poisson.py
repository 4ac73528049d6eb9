"""Arrivals at a constant rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.workloads.synthetic import Synthetic


@dataclass(frozen=True)
class Poisson(Synthetic):
    """Jobs that arrive one by one and independently, at a constant rate.

    Source: ours; Gavel, OSDI 2020, Sec. 7.1, generates its continuous traces so.

    >>> from fairopt.datasets import philly_cluster
    >>> Poisson(jobs=50, tenants=3).trace(seed=1, cluster=philly_cluster())
    <Trace: <Jobs: 50 of 3 tenants, types K80, P100, V100>, 0 outages>
    """

    name = "poisson"
    source = "a Poisson process; Gavel, OSDI 2020, Sec. 7.1"

    def pieces(self, span: int, random: np.random.Generator) -> Sequence[tuple[int, int]]:
        """Return one piece."""
        return [(span, 1)]
