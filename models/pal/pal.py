"""PAL: least attained service first, every job placed anew each round, on GPUs that are fast for it.

Its placement goes host by host: how slow a job would be there, times what spreading over hosts costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number
from fairopt.simulation import Placement, Request
from fairopt.simulation.placement import take


def slowdowns(queue: Queue, row: int, hosts: Iterable[int]) -> dict[int, Number]:
    """Return how many times slower a job is on each of ``hosts`` than on the host of the cluster that is best for it.

    Source: PAL, SC 2024 (PM scores), with the speeds of types beside those of hosts.
    """
    cluster, speeds = queue.cluster, queue.jobs.throughput[row]

    def speed(host: int) -> Number:
        own: Number = speeds[cluster.gpu_type[host]]
        return own if cluster.speed is None else own * cluster.speed[host]

    best = max(speed(host) for host in range(len(cluster.hosts)) if queue.suits[row, cluster.gpu_type[host]])
    return {host: best / speed(host) for host in hosts}


@dataclass(frozen=True)
class VariabilityAware(Placement):
    """The jobs in the order in which they are asked for, each where slowdown times locality is least.

    A gang that fits a host looks at the products of a slowdown V of hosts and a locality L, 1 within a host and
    ``locality`` across hosts, the least first. Within a host: one with enough free GPUs and at most this slowdown, the
    least slow. Across hosts: the least slow GPUs among those with at most this slowdown, if there are enough. Single
    GPUs, and gangs that are larger than any host, take the least slow GPUs (PM-First).

    * ``locality``: the factor on the time of a gang over several hosts; the source varies it from 1 to 3.

    Readings. The GPUs of a host are equally fast (`Cluster.speed`), and all jobs suffer alike from slow GPUs, where the
    source measures each GPU for each of four classes of jobs and lets the class that suffers most choose first. The
    source clusters its measurements into bins; here each speed is a bin. A gang may lie on several types that suit it.
    Ties go to where the job ran last, then to the host whose free GPUs are nearest to its number, then to the first.

    Source: PAL, SC 2024; its code, blox-pal/placement/pal.py, `_pal_placement`, `_return_pmfirst_gpus`.
    """

    locality: object = Fraction(3, 2)

    def __post_init__(self) -> None:
        require(exact(self.locality, "pal, locality") >= 1, self.locality, "pal, locality", "Give a factor from 1")

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the spots of the requests that fit; see `Placement.place`."""
        left, found = free.copy(), {}
        for request in requests:
            if spots := self.spots(queue, request, left):
                take(left, spots)
                found[request.row] = spots
        return found

    def spots(self, queue: Queue, request: Request, left: Array) -> Spots:
        """Return the spots of one job in the GPUs that are ``left`` (H,), () where there are too few."""
        row, gpus = request.row, int(queue.jobs.gpus[request.row])
        hosts = [host for gpu_type in request.gpu_types for host in queue.cluster.of_type(gpu_type) if left[host] > 0]
        if sum(int(left[host]) for host in hosts) < gpus:
            return ()
        slow = slowdowns(queue, row, hosts)
        before = {host for host, _ in queue.last[row]}
        order = sorted(hosts, key=lambda host: (slow[host], host not in before, abs(int(left[host]) - gpus), host))
        if gpus > 1:
            across = queue.number(exact(self.locality, "pal, locality"))
            # within a host first, where the products are equal, and by rising slowdown
            products = sorted(
                (value * (across if apart else 1), apart, value) for value in set(slow.values()) for apart in (0, 1)
            )
            for _, apart, value in products:
                open_to = [host for host in order if slow[host] <= value]
                whole = next((host for host in open_to if left[host] >= gpus), None)
                if not apart and whole is not None:
                    return ((whole, gpus),)
                if apart and sum(int(left[host]) for host in open_to) >= gpus:
                    break
        chosen = {}
        for host in order:
            chosen[host] = min(gpus, int(left[host]))
            gpus -= chosen[host]
            if not gpus:
                break
        return tuple(sorted(chosen.items()))


@dataclass(frozen=True)
class PAL(Policy):
    """Each round jobs in order of attained GPU-time, each on the free GPUs that its placement likes best.

    All jobs are placed anew: a job that ran moves where better GPUs are free, whatever moving costs.

    * ``by_remaining``: order by remaining time instead, as on the host that is best for the job. PAL is a placement for
      any order; its source shows it with FIFO, least attained service and shortest remaining time.
    * ``skip``: whether a job that does not fit is passed over; else nobody overtakes it, as in the source's code.
    * ``placement``: the placement, with its factor for locality.

    Source: PAL, SC 2024; its code, blox-pal/placement/pal.py, `place`; FFT Sec. 6.1.4.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(PAL(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of pal, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "pal"
    source = "PAL, SC 2024"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.NAMELESS})
    by_remaining: bool = False
    skip: bool = False
    placement: VariabilityAware = field(default_factory=VariabilityAware)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Order the jobs and place one after the other; see `Policy.decide`."""
        best = np.where(problem.suits, problem.jobs.throughput, 0).max(axis=1)
        order = sorted(
            (row for row in problem.able if row not in problem.leased),
            key=lambda row: (problem.remaining[row] / best[row] if self.by_remaining else problem.attained[row], row),
        )
        placements: dict[int, Spots] = dict(problem.leased)
        left = problem.free(placements)
        for row in order:
            gpu_types = tuple(np.flatnonzero(problem.suits[row]).tolist())
            spots = self.placement.spots(problem, Request(row, gpu_types), left)
            if spots:
                take(left, spots)
                placements[row] = spots
            elif not self.skip:
                break
        return Schedule(self.name, problem, placements)
