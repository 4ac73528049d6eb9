"""`Fragments`: GPU-time that was free while jobs waited, and of no use to them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number


class Fragments:
    """The GPUs that are free and the gangs that wait, as a run goes on: GPU-time that was free and of no use to them.

    In a round, F_i is the number of free GPUs of type i on working hosts after all placements, and J_i is the set of
    waiting jobs that suit the type (throughput, memory). If every gang in J_i is larger than F_i, no waiting job could
    use the GPUs, and all of F_i is fragmented. If some gang is not, but each is larger than the free GPUs of any single
    host of the type, F_i is scattered: a job could use it only across hosts. Otherwise the policy chose to leave the
    GPUs idle, and they count as neither. The same holds if no job waits for the type. The results are sums over types
    and rounds, times the rounds' length.

    Source: ours, for gangs. The idea (free GPUs that the workload's tasks cannot use) is from Weng et al., "Beware of
    Fragmentation", USENIX ATC 2023.
    """

    def __init__(self, queue: Queue) -> None:
        """Begin with all hosts free; ``queue`` is that of all jobs."""
        cluster = queue.cluster
        # the types that jobs suit; few jobs differ
        kinds, kind = np.unique(queue.suits, axis=0, return_inverse=True)
        types = [tuple(np.flatnonzero(each).tolist()) for each in kinds]
        self._suits = [types[each] for each in kind.ravel().tolist()]
        self._size = queue.jobs.gpus.tolist()
        self._gpus, self._free = cluster.gpus.tolist(), cluster.gpus.tolist()
        self._type = cluster.gpu_type.tolist()
        self._hosts = [hosts.tolist() for hosts in cluster.hosts_by_type]
        self._there = [sum(self._gpus[host] for host in hosts) for hosts in self._hosts]
        self._waiting: list[Counter[int]] = [Counter() for _ in cluster.types]  # of each type and size
        self._waits = [0] * len(cluster.types)
        self.usable = sum(self._gpus)
        self.fragmented: Number = queue.now
        self.scattered: Number = queue.now

    def change(self, spots: Spots, sign: int) -> None:
        """Count GPUs as free (1), or as taken (-1)."""
        for host, gpus in spots:
            self._free[host] += sign * gpus
            self._there[self._type[host]] += sign * gpus

    def works(self, host: int, sign: int) -> None:
        """Count a host, on which nobody runs, as working again (1), or as down (-1)."""
        self.change(((host, self._gpus[host]),), sign)
        self.usable += sign * self._gpus[host]

    def wait(self, row: int, sign: int) -> None:
        """Count a job as waiting (1), or not any more (-1)."""
        for gpu_type in self._suits[row]:
            self._waiting[gpu_type][self._size[row]] += sign
            self._waits[gpu_type] += sign

    def pass_(self, time: Number) -> None:
        """Let time pass in which nothing changes."""
        for gpu_type, waiting in enumerate(self._waiting):
            if not self._waits[gpu_type]:
                continue
            there = self._there[gpu_type]
            least = min((size for size, count in waiting.items() if count), default=0) if there else 0
            if least > there:
                self.fragmented += there * time
            elif least > 1 and least > max([self._free[host] for host in self._hosts[gpu_type]]):
                self.scattered += there * time
