"""FFT's placement: Fig. 6, fewest hosts against all placements, what moves and what stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from fairopt.models.fft.placement import HierarchicalPlacement
from fairopt.problem import Cluster, Jobs, Queue
from fairopt.problem.queue import Spots
from fairopt.program import Number
from fairopt.simulation import Mechanics, Request


def queue_of(hosts, **columns):
    """A queue on hosts of one type with so many GPUs each; ``last`` and ``held`` may be given."""
    last, held = columns.pop("last", None), columns.pop("held", None)
    jobs = Jobs.of(types=["T"], work=[1] * len(columns["gpus"]), **columns)
    queue = Queue.fresh(jobs, Cluster.of(["T"] * len(hosts), hosts, bandwidth=[1] * len(hosts)), length=1)
    if last is not None:
        queue = replace(queue, last=tuple(last), running=np.array([bool(spots) for spots in last]))
    return queue if held is None else replace(queue, held=tuple(map(frozenset, held)))


def place(queue, rows=None, placement=None, free=None):
    requests = [Request(row, (0,)) for row in (range(len(queue)) if rows is None else rows)]
    return (placement or HierarchicalPlacement()).place(queue, requests, queue.free() if free is None else free)


def test_figure_6():
    """J1 and J3 are parallel within operators, J2 is a pipeline; two hosts of 4 (our numbers: the figure has none)."""
    patterns, sizes = ["intra", "inter", "intra"], [3, 2, 3]
    at_t1 = place(queue_of([4, 4], gpus=sizes, pattern=patterns, names=["J1", "J2", "J3"]))
    assert at_t1 == {0: ((0, 3),), 2: ((1, 3),), 1: ((0, 1), (1, 1))}
    # T2: J1 is done; J2 comes together on one host, J3 stays
    later = queue_of([4, 4], gpus=[2, 3], pattern=["inter", "intra"], last=[((0, 1), (1, 1)), ((1, 3),)])
    assert place(later) == {0: ((0, 2),), 1: ((1, 3),)}
    assert place(later, placement=HierarchicalPlacement(repack=False)) == {0: ((0, 1), (1, 1)), 1: ((1, 3),)}


def test_within_operators_comes_before_larger_pipelines():
    queue = queue_of([4, 1, 1, 1], gpus=[4, 3], pattern=["inter", "intra"])
    assert place(queue) == {1: ((0, 3),), 0: ((0, 1), (1, 1), (2, 1), (3, 1))}
    # among those that are parallel within operators, the larger gang chooses first
    queue = queue_of([4, 1, 1, 1], gpus=[3, 4], pattern=["intra", "intra"])
    assert place(queue) == {1: ((0, 4),), 0: ((1, 1), (2, 1), (3, 1))}


def test_cheapest_migration_first():
    # both lie apart, one host of 2 is free: the lighter state moves to it
    spread = [((0, 1), (1, 1)), ((0, 1), (1, 1))]
    for sizes, mover in (([5, 1], 1), ([1, 5], 0)):
        queue = queue_of([2, 2, 2], gpus=[2, 2], state_size=sizes, last=spread)
        got = place(queue)
        assert got[mover] == ((2, 2),)
        # the other comes together where the first has made room
        assert got[1 - mover] == ((0, 2),)
    # equal cost: who is parallel within operators gains more by it
    queue = queue_of([2, 2, 2], gpus=[2, 2], pattern=["inter", "intra"], state_size=[1, 1], last=spread)
    assert place(queue)[1] == ((2, 2),)


def test_nobody_moves_who_is_not_wanted_or_already_together():
    queue = queue_of([4, 4], gpus=[2, 2, 1], last=[((0, 2),), ((1, 2),), ()])
    assert place(queue) == {0: ((0, 2),), 1: ((1, 2),), 2: ((0, 1),)}
    # a gang that came now is repacked before a single GPU takes the room that it needs
    queue = queue_of([3, 2], gpus=[2, 1, 1], last=[((0, 1), (1, 1)), (), ((0, 1),)])
    assert place(queue) == {0: ((0, 2),), 1: ((1, 1),), 2: ((0, 1),)}


def test_data_then_the_fullest_host_decide():
    held = [[], ["pile"], []]
    queue = queue_of([4, 4, 4], gpus=[2], dataset=["pile"], dataset_size=[9], held=held)
    assert place(queue) == {0: ((1, 2),)}
    assert place(queue_of([4, 2, 3], gpus=[2])) == {0: ((1, 2),)}
    # a state that lies on a host is worth more than data elsewhere
    queue = queue_of([4, 4, 4], gpus=[2], dataset=["pile"], state_size=[3], last=[((2, 2),)], held=held)
    paused = replace(queue, running=np.array([False]))
    assert place(paused) == {0: ((2, 2),)}
    # where data must be copied, copying enters the cost
    local = HierarchicalPlacement(Mechanics(local_data=True))
    big = replace(paused, jobs=replace(paused.jobs, dataset_size=paused.jobs.dataset_size + 100))
    assert place(big, placement=local) == {0: ((1, 2),)}


def test_one_job_gets_the_fewest_hosts():
    dice = Random(3)
    for _ in range(300):
        hosts = [dice.randint(1, 5) for _ in range(dice.randint(1, 6))]
        gpus = dice.randint(1, 12)
        free = np.array([dice.randint(0, most) for most in hosts])
        queue = queue_of(hosts, gpus=[gpus])
        got = place(queue, free=free)
        if free.sum() < gpus:
            assert not got
            continue
        spots = got[0]
        assert sum(count for _, count in spots) == gpus
        assert all(0 < count <= free[host] for host, count in spots)
        fewest = next(
            size
            for size in range(1, len(hosts) + 1)
            if any(sum(free[host] for host in chosen) >= gpus for chosen in combinations(range(len(hosts)), size))
        )
        assert len(spots) == fewest


@pytest.mark.parametrize("seed", range(4))
def test_whoever_fits_is_placed_and_a_second_look_moves_nobody(seed):
    """Repacking each round is repacking at churn events: without one, all stays."""
    dice = Random(seed)
    for _ in range(60):
        hosts = [dice.randint(1, 4) for _ in range(dice.randint(1, 5))]
        sizes = [dice.choice([1, 1, 2, 3, 4]) for _ in range(dice.randint(1, 6))]
        while sum(sizes) > sum(hosts):
            sizes.pop()
        if not sizes:
            continue
        patterns = [dice.choice(["intra", "inter"]) for _ in sizes]
        states = [dice.randint(0, 3) for _ in sizes]
        before = place(queue_of(hosts, gpus=sizes, pattern=patterns, state_size=states))
        assert before.keys() == set(range(len(sizes)))
        # some of them are done; the others go on, and newcomers take what is left
        gone = {row for row in range(len(sizes)) if dice.random() < 0.4}
        stay = [row for row in range(len(sizes)) if row not in gone]
        if not stay:
            continue
        queue = queue_of(
            hosts,
            gpus=[sizes[row] for row in stay],
            pattern=[patterns[row] for row in stay],
            state_size=[states[row] for row in stay],
            last=[before[row] for row in stay],
        )
        after = place(queue)
        assert after.keys() == set(range(len(stay)))
        assert (queue.free(after) >= 0).all()
        for row, spots in after.items():
            assert spots == queue.last[row] or (len(spots) == 1 < len(queue.last[row]))
        # whoever still lies apart would not fit on one host, its own GPUs there counted
        left = queue.free(after)
        for spots in after.values():
            own = dict(spots)
            need = sum(own.values())
            assert len(spots) == 1 or all(left[host] + own.get(host, 0) < need for host in range(len(hosts)))
        again = replace(queue, last=tuple(after[row] for row in range(len(stay))))
        assert place(again) == after


def test_other_types_and_hosts_that_are_down_are_left_alone():
    jobs = Jobs.of(types=["a", "b"], gpus=[2, 2], work=[1, 1])
    queue = Queue.fresh(jobs, Cluster.uniform({"a": (2, 2), "b": (1, 4)}), length=1)
    queue = replace(queue, up=np.array([False, True, True]))
    got = HierarchicalPlacement().place(queue, [Request(0, (0,)), Request(1, (1,))], queue.free())
    assert got == {0: ((1, 2),), 1: ((2, 2),)}
    # no room on the type: left out
    assert HierarchicalPlacement().place(queue, [Request(0, (0,)), Request(1, (0,))], queue.free()).keys() == {0}


class Doorstep(Mechanics):
    """A model in which each host has a price of its own: the last one is the cheapest."""

    def setup(self, queue: Queue, row: int, spots: Spots) -> Number:
        return queue.number(len(queue.cluster.hosts) - spots[0][0])


def test_hosts_are_alike_only_where_the_mechanics_say_so() -> None:
    queue = Queue.fresh(Jobs.of(gpus=[1], work=[1], types=["T"]), Cluster.uniform({"T": (3, 4)}), length=1)
    requests = [Request(0, (0,))]
    assert HierarchicalPlacement().place(queue, requests, queue.free()) == {0: ((0, 1),)}
    assert HierarchicalPlacement(Doorstep()).place(queue, requests, queue.free()) == {0: ((2, 1),)}
