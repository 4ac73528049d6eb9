"""Consolidated placement and the walk down a list: nothing overbooked, as few hosts as possible, who runs stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairopt.errors import WrongReturn
from fairopt.policy import Schedule
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Cluster, Jobs, Queue, Spots
from fairopt.program import Array
from fairopt.simulation import Consolidated, Request, by_throughput, choose, placed
from fairopt.simulation.placement import fewest_hosts, staying
from fairopt.testing.strategies import queues


def queue_of(gpus: Sequence[int], hosts: Sequence[int], last: Sequence[Spots] = ()) -> Queue:
    cluster = Cluster.of(["T"] * len(hosts), list(hosts))
    queue = Queue.fresh(Jobs.of(gpus=list(gpus), work=[100] * len(gpus), types=["T"]), cluster, length=60)
    ran = (*last, *[()] * (len(gpus) - len(last)))
    return replace(queue, last=ran, running=np.array([bool(spots) for spots in ran]))


def wants_of(queue: Queue, draw: st.DataObject) -> list[Request]:
    """Some jobs without a lease, in some order, each with some of the types that it can run on."""
    rows = draw.draw(st.permutations(range(len(queue))))
    out = []
    for row in rows[: draw.draw(st.integers(0, len(rows)))]:
        gpu_types = np.flatnonzero(queue.suits[row]).tolist()
        if row in queue.leased or not gpu_types:
            continue
        few = draw.draw(st.lists(st.sampled_from(gpu_types), min_size=1, unique=True))
        out.append(Request(row, tuple(few)))
    return out


@given(queues(), st.data())
def test_what_is_placed_is_possible_and_who_is_left_out_does_not_fit(queue: Queue, data: st.DataObject) -> None:
    requests, free = wants_of(queue, data), queue.free(queue.leased)
    before = free.copy()
    found = Consolidated().place(queue, requests, free)
    assert free.tolist() == before.tolist()  # the caller's array is left as it is
    refuse_broken(Schedule("placed", queue, dict(queue.leased) | dict(found)))
    gpu_types = {request.row: request.gpu_types for request in requests}
    assert set(found) <= set(gpu_types)
    assert all(set(queue.gpu_types(spots)) <= set(gpu_types[row]) for row, spots in found.items())
    left = queue.free(dict(queue.leased) | dict(found))
    for request in requests:
        if request.row not in found:
            assert sum(left[host] for host in hosts_of(queue, request.gpu_types)) < queue.jobs.gpus[request.row]


@given(queues(), st.data())
def test_who_ran_stays_where_it_is_if_it_can(queue: Queue, data: st.DataObject) -> None:
    requests, free = wants_of(queue, data), queue.free(queue.leased)
    found = Consolidated().place(queue, requests, free)
    ran = [request for request in requests if queue.running[request.row]]
    allowed = [request for request in ran if set(queue.gpu_types(queue.last[request.row])) <= set(request.gpu_types)]
    # in the round before they all ran side by side, so that all of them can stay
    assert all(found[request.row] == queue.last[request.row] for request in allowed)
    assert all(bool(staying(queue, [request], free.copy())[0]) == (request in allowed) for request in requests)


def hosts_of(queue: Queue, gpu_types: Sequence[int]) -> list[int]:
    return [host for gpu_type in gpu_types for host in queue.cluster.of_type(gpu_type)]


def fewest(queue: Queue, request: Request, free: Array) -> int:
    """The least number of hosts with room for the gang, by trying all sets of them; 0 for none."""
    gpus = queue.jobs.gpus[request.row]
    whole = [(gpu_type,) for gpu_type in request.gpu_types] + [request.gpu_types]
    for gpu_types in whole:  # a gang lies on one type where one has room, the first of those that it names
        hosts = hosts_of(queue, gpu_types)
        for count in range(1, len(hosts) + 1):
            if any(sum(free[host] for host in some) >= gpus for some in combinations(hosts, count)):
                return count
    return 0


@given(queues(), st.data())
def test_a_job_gets_the_fewest_hosts(queue: Queue, data: st.DataObject) -> None:
    requests = wants_of(queue, data)
    assume(requests)
    free = queue.free(queue.leased)
    # the free GPUs of hosts are anything up to what there is
    free = np.array([data.draw(st.integers(0, int(gpus))) for gpus in free])
    for request in requests:
        spots = fewest_hosts(queue, request, free)
        assert len(spots) == fewest(queue, request, free)
        assert sum(gpus for _, gpus in spots) == (queue.jobs.gpus[request.row] if spots else 0)
        assert all(0 < gpus <= free[host] for host, gpus in spots)


@pytest.mark.parametrize(
    ("gpus", "hosts", "free", "last", "expected"),
    [
        (2, [4, 4, 4], [4, 2, 3], (), ((1, 2),)),  # the fullest host with room
        (2, [4, 4, 4], [3, 3, 3], (), ((0, 2),)),  # the first where they are alike
        (2, [4, 4, 4], [3, 3, 3], ((2, 2),), ((2, 2),)),  # the one that it ran on last, where they are alike
        (2, [4, 4, 4], [3, 2, 3], ((2, 2),), ((1, 2),)),  # a fuller host goes before that
        (6, [4, 4, 4], [2, 4, 4], (), ((1, 4), (2, 2))),  # no host holds it: the emptiest first
        (5, [4, 4, 4], [3, 3, 3], ((2, 5),), ((0, 2), (2, 3))),  # and of those, where it ran last
        (7, [4, 4, 4], [2, 2, 2], (), ()),  # it does not fit
    ],
)
def test_where_a_job_goes(gpus: int, hosts: list[int], free: list[int], last: Spots, expected: Spots) -> None:
    queue = queue_of([gpus], hosts, [last])
    assert fewest_hosts(queue, Request(0, (0,)), np.array(free)) == expected


def test_larger_gangs_are_placed_before_smaller_ones() -> None:
    queue = queue_of([2, 4], [4, 2])
    found = Consolidated().place(queue, [Request(0, (0,)), Request(1, (0,))], queue.free())
    assert dict(found) == {1: ((0, 4),), 0: ((1, 2),)}


def test_who_moves_does_not_push_out_who_stays() -> None:
    queue = queue_of([4, 1], [4], [(), ((0, 1),)])
    found = Consolidated().place(queue, [Request(0, (0,)), Request(1, (0,))], queue.free())
    assert dict(found) == {1: ((0, 1),)}


def test_a_gang_lies_on_two_types_only_where_none_alone_has_room() -> None:
    cluster = Cluster.of(["old", "new"], [2, 2])
    queue = Queue.fresh(Jobs.of(gpus=[3, 2], work=[1, 1], types=cluster.types), cluster, length=60)
    assert fewest_hosts(queue, Request(0, (0, 1)), queue.free()) == ((0, 2), (1, 1))
    assert fewest_hosts(queue, Request(1, (1, 0)), queue.free()) == ((1, 2),)
    assert fewest_hosts(queue, Request(0, (0,)), queue.free()) == ()


@given(queues(), st.data())
def test_the_walk_down_a_list(queue: Queue, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(queue))))
    skip = data.draw(st.booleans())
    requests = choose(queue, order, skip=skip)
    left = np.bincount(queue.cluster.gpu_type, queue.free(queue.leased), len(queue.cluster.types))
    taken = {request.row: request.gpu_types for request in requests}
    stopped = False
    for row in order:
        if row in queue.leased or row in queue.unschedulable:
            assert row not in taken
            continue
        rooms = [gpu_type for gpu_type in by_throughput(queue, row) if left[gpu_type] >= queue.jobs.gpus[row]]
        if stopped or not rooms:
            assert row not in taken
            stopped = stopped or not skip
            continue
        assert taken[row] == (rooms[0],)
        left[rooms[0]] -= queue.jobs.gpus[row]
    result = placed(queue, requests, Consolidated())
    refuse_broken(Schedule("walk", queue, result))
    assert set(result) == set(taken) | set(queue.leased)  # whoever was chosen has room, host by host


@given(queues(), st.data())
def test_an_array_has_the_one_type_on_which_each_may_run(queue: Queue, data: st.DataObject) -> None:
    """It is the walk in which each job names this type, unless it does not fit the job now."""
    kinds = st.integers(0, len(queue.cluster.types) - 1)
    gpu_type = np.array(data.draw(st.lists(kinds, min_size=len(queue), max_size=len(queue))), dtype=np.int64)
    order, skip = data.draw(st.permutations(range(len(queue)))), data.draw(st.booleans())

    def named(queue: Queue, row: int) -> list[int]:
        return [int(each) for each in [gpu_type[row]] if queue.allowed[row, each]]

    one, other = (choose(queue, order, gpu_types=each, skip=skip) for each in (gpu_type, named))
    assert [*one] == [*other]


@given(queues())
def test_types_are_tried_from_the_fastest_down(queue: Queue) -> None:
    for row in range(len(queue)):
        gpu_types = by_throughput(queue, row)
        speeds = [queue.jobs.throughput[row, gpu_type] for gpu_type in gpu_types]
        assert speeds == sorted(speeds, reverse=True)
        assert set(gpu_types) == set(np.flatnonzero(queue.allowed[row]).tolist())


@pytest.mark.parametrize(
    ("placements", "says"),
    [
        ({0: ((0, 1),)}, "job 'j1' gets 1 GPUs of the 2"),
        ({0: ((0, 2), (1, 0))}, "job 'j1' gets 2 GPUs of the 2"),
        ({0: ((1, 1), (0, 1))}, "hosts of job 'j1' are not rising"),
        ({0: ((0, 1), (0, 1))}, "hosts of job 'j1' are not rising"),
        ({0: ((0, 2),), 1: ((0, 2),), 2: ((0, 1),)}, "host 'h1' gives out 5 GPUs and has 4"),
        ({0: ((2, 2),)}, "host 'h3' gives out 2 GPUs and has 0"),
        ({0: ((1, 2),)}, "job 'j1' cannot run on type 'new'"),
        ({3: ((1, 1),)}, "job 'j4' holds a lease on"),
        ({}, "job 'j4' holds a lease on"),
    ],
)
def test_what_cannot_be_is_refused(placements: dict[int, Spots], says: str) -> None:
    cluster = Cluster.of(["old", "new", "old"], [4, 4, 4])
    jobs = Jobs.of(gpus=[2, 2, 1, 1], work=[1] * 4, types=cluster.types, throughput=[[1, 0]] + [[1, 1]] * 3)
    queue = Queue.fresh(jobs, cluster, length=60)
    queue = replace(
        queue,
        up=np.array([True, True, False]),
        last=((), (), (), ((0, 1),)),
        running=np.array([False, False, False, True]),
        lease=queue.lease + 100,
    )
    with pytest.raises(WrongReturn, match="odd, round 0: ") as caught:
        refuse_broken(Schedule("odd", queue, placements))
    assert says in str(caught.value)
