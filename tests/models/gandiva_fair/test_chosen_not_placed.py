"""Who is chosen and finds no hosts has not run: stride keeps its pass, the lottery its win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.models.gandiva_fair.lottery import GangAwareLottery
from fairopt.models.gandiva_fair.stride import GangAwareStride
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue
from fairopt.problem.queue import Spots
from fairopt.program import Array
from fairopt.simulation import Request


@dataclass(frozen=True)
class OneHost:
    """A placement that puts a job on one host or nowhere."""

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        left, found = free.copy(), dict[int, Spots]()
        for request in requests:
            gpus = int(queue.jobs.gpus[request.row])
            host = next((host for host, here in enumerate(left) if here >= gpus), None)
            if host is not None:
                left[host] -= gpus
                found[request.row] = ((host, gpus),)
        return found


def queue() -> Queue:
    cluster = Cluster.uniform({"GPU": (2, 2)})
    jobs = Jobs.of(names=["small", "large"], gpus=[2, 4], work=[9, 9], types=cluster.types)
    return Queue.fresh(jobs, cluster, length=1)


def test_stride_does_not_charge_who_did_not_run():
    one, policy = queue(), GangAwareStride(placement=OneHost())
    state = policy.start(one)
    for _ in range(3):  # small, then twice large, which is not served
        schedule = decide(policy, one, state=state)
        state = schedule.state
    assert schedule.placements == {}
    assert state.passes["large"] == 0
    assert state.passes["small"] > Fraction(0)


def test_a_win_that_was_not_served_waits():
    one, drawn = queue(), 0
    for seed in range(30):
        policy = GangAwareLottery(placement=OneHost(), seed=seed)
        schedule = decide(policy, one)
        if not schedule.placements:  # large was drawn first, and its four GPUs lie on two hosts
            drawn += 1
            assert schedule.state.waiting[0] == "large"
    assert 0 < drawn < 30
