"""PAL's placement: host by host, how slow a job would be there, times what spreading over hosts costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.errors import require
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
