"""Arrivals in bursts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from fairopt.problem.numbers import within
from fairopt.workloads.poisson import FINE, Poisson


@dataclass(frozen=True)
class OnOff(Poisson):
    """Jobs that arrive in bursts: the rate is high and low in turn, for random times (exponential).

    ``on_hours`` and ``off_hours``: how long a burst and a pause take on average. ``burst``: how many times as many jobs
    come in an hour of a burst as in one of a pause.

    Source: ours; a Markov-modulated Poisson process of two states.

    >>> from fairopt.datasets import philly_cluster
    >>> OnOff(jobs=50, tenants=3, burst=100).trace(seed=1, cluster=philly_cluster())
    <Trace: <Jobs: 50 of 3 tenants, types K80, P100, V100>, 0 outages>
    """

    name = "on-off"
    source = "ours: a Poisson process whose rate is high and low in turn"

    on_hours: float = within(2, above=0, most=1_000_000)
    off_hours: float = within(6, above=0, most=1_000_000)
    burst: float = within(10, above=1, most=1_000_000)

    def pieces(self, span: int, random: np.random.Generator) -> Sequence[tuple[int, int]]:
        """Return bursts and pauses in turn, in whole seconds; the first is either, as likely as it is long."""
        found: list[tuple[int, int]] = []
        left = span
        even = int(random.integers(2**32)) / 2**32 < self.on_hours / (self.on_hours + self.off_hours)
        while left > 0:
            hours, rate = (self.on_hours, self.burst) if even else (self.off_hours, 1)
            drawn = -log1p(-int(random.integers(2**32)) / 2**32) * hours * 3600
            # whole seconds, so that the last digit of a logarithm matters to nobody
            length = min(left, max(1, round(drawn)) * FINE)
            found.append((length, round(length * rate)))
            left, even = left - length, not even
        return found
