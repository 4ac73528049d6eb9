"""Arrivals as in two weeks of a real trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.workloads.distributions import hours
from fairopt.workloads.poisson import Poisson, stretched


@dataclass(frozen=True)
class TraceDriven(Poisson):
    """Jobs that arrive as in two weeks of Philly (from 2017-10-03) or Venus (from 2020-09-01), hour by hour.

    ``arrivals``: philly or venus. The weeks are stretched or compressed to the time that the load asks for; within an
    hour arrivals are drawn evenly. Source: Jeon et al., USENIX ATC 2019; Hu et al., SC 2021.

    >>> from fairopt.datasets import philly_cluster
    >>> TraceDriven(jobs=50, arrivals="venus").trace(seed=1, cluster=philly_cluster())
    <Trace: <Jobs: 50 of 7 tenants, types K80, P100, V100>, 0 outages>
    """

    name = "trace-driven"
    source = "Jeon et al., USENIX ATC 2019; Hu et al., SC 2021"

    arrivals: str = "philly"

    def __post_init__(self) -> None:
        super().__post_init__()
        hours(self.arrivals)

    def pieces(self, span: int, random: np.random.Generator) -> Sequence[tuple[int, int]]:
        """Return the hours."""
        return stretched(hours(self.arrivals), span)
