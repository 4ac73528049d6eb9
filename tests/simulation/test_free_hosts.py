"""Free hosts that follow what changed give gangs the GPUs that `Consolidated` gives them, which looks at all hosts."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.models import ShortestRemainingTimeFirst
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Queue, Spots
from fairopt.simulation.placement import Request, fewest_hosts, take
from fairopt.simulation.unasked import _FreeHosts

JOBS = 200


@pytest.mark.parametrize("seed", range(3))
def test_gangs_get_what_the_protocol_of_placements_gives_them(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cluster = Cluster.uniform({"A": (5, 4), "B": (3, 8)}).as_(float)
    sizes = draw.choice([1, 2, 3, 4, 8, 9], JOBS)
    jobs = Jobs.of(gpus=sizes.tolist(), work=[1] * JOBS, types=cluster.types, throughput=[[1, 1]] * JOBS).as_(float)
    queue = Queue.fresh(jobs, cluster, length=1)
    schedules = [Schedule(ShortestRemainingTimeFirst.name, queue, {}) for _ in range(2)]
    free, left, on, held = _FreeHosts(cluster), cluster.gpus.copy(), dict[int, Spots](), set[str]()
    for row in range(JOBS):
        for gone in [each for each in on if draw.random() < 0.2]:
            take(left, [(host, -gpus) for host, gpus in on.pop(gone)])
        since = schedules[row // 50 % 2]
        free.follow(on, since)
        rooms = [int(left[hosts].sum()) for hosts in cluster.hosts_by_type]
        assert free.room == rooms
        gpu_type = int(draw.integers(2))
        if rooms[gpu_type] >= sizes[row]:
            wanted = fewest_hosts(queue, Request(row, (gpu_type,)), left)
            on[row] = free.taken(row, gpu_type, int(sizes[row]))
            assert on[row] == wanted
            take(left, wanted)
            held.add("over hosts" if len(wanted) > 1 else "on one host")
        if row % 7:  # else an exception came first
            free.settle(since)
    assert held == {"over hosts", "on one host"}
