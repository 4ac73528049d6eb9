"""PAL: the source's order of choices by hand, speeds of hosts in a run and in files, options."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.errors import BadInput
from fairopt.models.pal.pal import PAL, VariabilityAware, slowdowns
from fairopt.problem import Cluster, Jobs, Queue, Spots, Trace
from fairopt.problem.files.cluster import cluster_from_dict, cluster_to_dict
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import History, Mechanics, Request, Round, run
from fairopt.simulation.document import document
from fairopt.testing.round_suite import round_suite

#: Four hosts of four GPUs; the second is 25% slower than the first, the third 5%, the fourth as fast.
CLUSTER = Cluster.of(["A"] * 4, [4] * 4, speed=[1, "4/5", "20/21", 1])


def spots(gpus: int, free: list[int], locality: object, cluster: Cluster = CLUSTER) -> Spots:
    queue = Queue.fresh(Jobs.of(gpus=[gpus], work=[1], types=cluster.types), cluster, length=1)
    types = tuple(range(len(cluster.types)))
    return VariabilityAware(locality).spots(queue, Request(0, types), np.array(free))


@pytest.mark.parametrize(
    ("gpus", "free", "locality", "where"),
    [
        (1, [0, 4, 3, 0], "3/2", ((2, 1),)),  # PM-First: the least slow GPU
        (3, [4, 4, 4, 3], "3/2", ((3, 3),)),  # equally fast: the host whose free GPUs are nearest to three
        (3, [2, 4, 1, 2], "3/2", ((1, 3),)),  # V L: 5/4 within the second host, 3/2 across the fast ones
        (3, [2, 4, 1, 2], "6/5", ((0, 2), (3, 1))),  # 6/5 across the fast ones, 5/4 within the second host
        (3, [2, 2, 2, 0], "6/5", ((0, 2), (2, 1))),  # none has three: across, with 21/20 at most
        (3, [1, 2, 1, 0], "6/5", ((0, 1), (1, 1), (2, 1))),  # nor there: also the slowest, by PM-First
        (8, [2, 4, 4, 4], "3/2", ((0, 2), (2, 2), (3, 4))),  # larger than a host: PM-First
        (4, [1, 1, 1, 0], "3/2", ()),
    ],
)
def test_slowdown_times_locality_by_hand(gpus: int, free: list[int], locality: object, where: Spots) -> None:
    assert spots(gpus, free, locality) == where


def test_slowdowns_count_types_and_hosts() -> None:
    cluster = Cluster.of(["old", "new", "new"], [2, 2, 2], speed=[1, 1, "9/10"])
    jobs = Jobs.of(gpus=[2, 1], work=[9, 9], types=cluster.types, throughput=[[1, 3], [1, 0]])
    queue = Queue.fresh(jobs, cluster, length=1)
    assert slowdowns(queue, 0, [0, 1, 2]) == {0: 3, 1: 1, 2: Fraction(10, 9)}
    assert slowdowns(queue, 1, [0]) == {0: 1}


def played(policy: PAL, jobs: Jobs, cluster: Cluster, **more: Any) -> list[Round]:
    return list(run(policy, Trace(jobs), cluster, length=10, **more))


def test_a_job_is_as_fast_as_the_slowest_of_its_hosts() -> None:
    cluster = Cluster.of(["A", "A"], [1, 1], speed=["1/2", 1])
    jobs = Jobs.of(gpus=[2, 1], work=[10, 6], types=["A"], arrival=[0, 5])
    first, second, *_ = played(PAL(), jobs, cluster, mechanics=Mechanics(spread="4/5"))
    assert [ran.speed for ran in first.ran] == [Fraction(2, 5)]
    assert [(ran.job, ran.spots, ran.speed) for ran in second.ran] == [("j2", (("h2", 1),), 1)]


def test_jobs_move_to_better_hosts_that_become_free() -> None:
    cluster = Cluster.of(["A", "A"], [1, 1], speed=[1, "1/2"])
    jobs = Jobs.of(gpus=[1, 1], work=[10, 40], types=["A"])
    assert [{ran.job: ran.spots[0][0] for ran in each.ran} for each in played(PAL(), jobs, cluster)[:2]] == [
        {"j1": "h1", "j2": "h2"},
        {"j2": "h1"},
    ]


@pytest.mark.parametrize("skip", [False, True])
def test_nobody_overtakes_who_does_not_fit_unless_asked(skip: bool) -> None:
    cluster = Cluster.uniform({"A": (1, 4)})
    jobs = Jobs.of(gpus=[3, 2, 1], work=[30, 30, 30], types=["A"])
    first = played(PAL(skip=skip), jobs, cluster)[0]
    assert {ran.job for ran in first.ran} == ({"j1", "j3"} if skip else {"j1"})


def test_the_shortest_comes_first_if_asked() -> None:
    jobs = Jobs.of(gpus=[1, 1], work=[30, 5], types=["A"])
    first = played(PAL(by_remaining=True), jobs, Cluster.uniform({"A": (1, 1)}))[0]
    assert [ran.job for ran in first.ran] == ["j2"]


def test_speeds_of_hosts_in_files() -> None:
    again = cluster_from_dict(cluster_to_dict(CLUSTER))
    assert again.speed is not None
    assert again.speed.tolist() == [1, Fraction(4, 5), Fraction(20, 21), 1]
    assert Cluster.of(["A"], [1], speed=[1]).speed is None
    assert isinstance(CLUSTER.as_(float).speed[1], float)  # type: ignore[index]
    with pytest.raises(BadInput, match="speed"):
        Cluster.of(["A"], [1], speed=[0])


def test_the_verifier_knows_speeds_of_hosts() -> None:
    trace = Trace(Jobs.of(gpus=[8, 4, 1], work=[50, 50, 70], types=["A"], arrival=[0, 0, 15]))
    history = History.of(trace, CLUSTER, run(PAL(), trace, CLUSTER, length=10))
    told = document(history, Mechanics(), 10, "pal")
    assert judge(json.dumps(told), Fraction(0))[0] == []
    for host in told["cluster"]["hosts"]:
        del host["speed"]
    assert any("speed" in each for each in judge(json.dumps(told), Fraction(0))[0])


def test_a_locality_below_one_is_refused() -> None:
    with pytest.raises(BadInput, match="pal, locality"):
        VariabilityAware("1/2")


@pytest.mark.parametrize("settings", counts(1, 4))
@pytest.mark.parametrize("policy", [PAL(skip=True), PAL(by_remaining=True, placement=VariabilityAware(3))], ids=repr)
def test_options_conform(policy: PAL, settings: int) -> None:
    round_suite(judge, settings=settings).run([policy]).require_complete()
