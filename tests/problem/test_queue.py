"""Clusters, jobs, traces and queues: what they refuse, in which words, and what they derive."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Cluster, Jobs, Outage, Pattern, Queue, Trace
from fairopt.program import INFINITY
from fairopt.simulation.rounds import check_matches
from fairopt.testing.strategies import clusters, placements, queues, traces

CLUSTER = Cluster.of(["old", "new", "old"], [4, 2, 2], memory={"old": "23/2"}, bandwidth=[1, None, "1/3"])


def jobs(**columns: Any) -> Jobs:
    return Jobs.of(**{"gpus": [1, 2], "work": [3, "7/2"], "types": ["old", "new"]} | columns)


@pytest.mark.parametrize(
    ("given", "place", "value", "remedy"),
    [
        ({"gpu_type": []}, "hosts", "no hosts", "at least one"),
        ({"gpu_type": "old"}, "gpu_type", "old", "list"),
        ({"gpus": [1]}, "gpus", "1 value for 2 hosts", "one for each host"),
        ({"gpus": [1, 0]}, "host 'h2'", "got 0", "whole number from 1"),
        ({"gpus": [1, -4]}, "host 'h2'", "-4", "whole number from 1"),
        ({"gpus": [1, "5/2"]}, "host 'h2'", "5/2", "whole number"),
        ({"gpus": [1, float("nan")]}, "host 'h2'", "nan", "finite"),
        ({"gpus": [True, 1]}, "host 'h1'", "True", "number"),
        ({"gpus": [10**7, 1]}, "host 'h1'", "10000000", "1000000"),
        ({"types": ["old"]}, "gpu_type", "'new'", "The types are old"),
        ({"types": ["old", "old"]}, "types", "both called 'old'", "name of its own"),
        ({"memory": {"young": 3}}, "memory", "'young'", "The types are old, new"),
        ({"memory": {"old": 0}}, "type 'old', memory", "got 0", "positive"),
        ({"memory": {"old": "many"}}, "type 'old', memory", "'many'", "5/4"),
        ({"bandwidth": [1]}, "bandwidth", "1 value for 2 hosts", "one for each host"),
        ({"bandwidth": [1, -1]}, "host 'h2', bandwidth", "-1", "positive"),
        ({"hosts": ["a", "a"]}, "hosts", "both called 'a'", "name of its own"),
        ({"hosts": ["a", ""]}, "host 2", "''", "printable"),
        ({"hosts": ["a"]}, "hosts", "1 host for 2", "one name for each"),
    ],
)
def test_a_cluster_refuses(given: dict[str, Any], place: str, value: str, remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        Cluster.of(**{"gpu_type": ["old", "new"], "gpus": [1, 2]} | given)
    assert place in caught.value.place
    assert value in caught.value.problem
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("given", "place", "value", "remedy"),
    [
        ({"gpus": [1, 0]}, "job 2 ('j2'), gpus", "got 0", "whole number from 1"),
        ({"gpus": [1, "3/2"]}, "job 2 ('j2'), gpus", "3/2", "whole number"),
        ({"gpus": 3}, "gpus", "3", "list"),
        ({"work": [1]}, "work", "1 value for 2 jobs", "one for each job"),
        ({"work": [1, 0]}, "job 2 ('j2'), work", "got 0", "positive"),
        ({"work": [1, None]}, "job 2 ('j2'), work", "None", "number"),
        ({"work": [1, float("inf")]}, "job 2 ('j2'), work", "inf", "finite"),
        ({"arrival": [0, -1]}, "job 2 ('j2'), arrival", "-1", "not negative"),
        ({"throughput": [[1, 1]]}, "throughput", "1 row for 2 jobs", "one row for each job"),
        ({"throughput": [[1, 1], [1]]}, "job 2 ('j2')", "1 speedup for 2 types", "one for each of old, new"),
        ({"throughput": [[1, 1], [1, -1]]}, "job 2 ('j2')", "-1", "not negative"),
        ({"throughput": [[1, 1], [1, "fast"]]}, "job 2 ('j2')", "'fast'", "5/4"),
        ({"tenant": ["A"]}, "tenant", "1 value for 2 jobs", "one for each job"),
        ({"tenant": ["A", "\n"]}, "job 2 ('j2'), tenant", "'\\n'", "printable"),
        ({"tenant_weight": {"B": 2}}, "tenant_weight", "'B'", "The tenants are tenant"),
        ({"tenant_weight": {"tenant": 0}}, "tenant 'tenant', weight", "got 0", "positive"),
        ({"weight": [1, 0]}, "job 2 ('j2'), weight", "got 0", "positive"),
        ({"memory": [1, "-1/2"]}, "job 2 ('j2'), memory", "-1/2", "not negative"),
        ({"state_size": [0, "1e99"]}, "job 2 ('j2'), state_size", "1e99", "units"),
        ({"dataset_size": [0, -2]}, "job 2 ('j2'), dataset_size", "-2", "not negative"),
        ({"priority": [0, "1/2"]}, "job 2 ('j2'), priority", "1/2", "whole number from 0"),
        ({"pattern": ["intra", "outer"]}, "job 2 ('j2'), pattern", "'outer'", "alone, intra, inter"),
        ({"pattern": ["intra"]}, "pattern", "1 value for 2 jobs", "one for each job"),
        ({"names": ["a", "a"]}, "jobs", "both called 'a'", "name of its own"),
        ({"types": ["old", "old"]}, "types", "both called 'old'", "name of its own"),
        ({"gpus": [1, -1], "places": ["row 2", "row 3"]}, "row 3, gpus", "-1", "whole number"),
    ],
)
def test_jobs_refuse(given: dict[str, Any], place: str, value: str, remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        jobs(**given)
    assert place in caught.value.place
    assert value in caught.value.problem
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(("begin", "end"), [(-1, 3), (3, 3), (3, 2), (float("nan"), 3), (0, float("nan"))])
def test_an_outage_has_a_beginning_and_a_later_end(begin: Any, end: Any) -> None:
    with pytest.raises(BadInput) as caught:
        Outage("h1", begin, end)
    assert caught.value.place == "outage of 'h1'"
    assert f"from {begin} to {end}" in str(caught.value)
    assert "an end after it" in caught.value.remedy


def test_a_trace_must_match_its_cluster() -> None:
    with pytest.raises(BadInput, match=r"types: throughputs for new, old; the cluster has old, new\. Read the trace"):
        check_matches(Trace(jobs(types=["new", "old"])), CLUSTER)
    with pytest.raises(BadInput, match=r"outages: there is no host 'h9'\. Hosts: h1, h2, h3"):
        check_matches(Trace(jobs(), (Outage("h9", 0, 1),)), CLUSTER)
    check_matches(Trace(jobs(), (Outage("h3", 0, INFINITY),)), CLUSTER)


def test_what_a_cluster_derives() -> None:
    assert CLUSTER.capacity.tolist() == [6, 2]
    assert CLUSTER.of_type(0) == [0, 2]
    assert CLUSTER.memory.tolist() == [Fraction(23, 2), INFINITY]
    assert [CLUSTER.link(hosts) for hosts in ([0], [0, 2], [1], [])] == [1, Fraction(1, 3), INFINITY, INFINITY]
    assert repr(CLUSTER) == "<Cluster: 3 hosts, GPUs: 6 old, 2 new>"


def test_defaults_of_jobs() -> None:
    made = jobs()
    assert made.throughput.tolist() == [[1, 1], [1, 1]]
    assert made.pattern == (Pattern.ALONE, Pattern.INTRA)
    assert (made.tenants, made.tenant_weight.tolist(), made.names) == (("tenant",), [1], ("j1", "j2"))


def test_jobs_are_sorted_by_arrival_and_who_arrives_together_keeps_its_place() -> None:
    made = Jobs.of(gpus=[1, 2, 3, 4], work=[1] * 4, types=["T"], arrival=[5, 0, 5, 0], tenant=list("ABCD"))
    assert made.names == ("j2", "j4", "j1", "j3")
    assert made.gpus.tolist() == [2, 4, 1, 3]
    assert [made.tenants[at] for at in made.tenant] == ["B", "D", "A", "C"]


def queue_of(**columns: Any) -> Queue:
    return Queue.fresh(jobs(**columns), CLUSTER, length=60)


def test_misfits_name_each_type_with_its_reason() -> None:
    one = {"gpus": [7], "work": [1], "throughput": [[1, 0]]}
    assert dict(queue_of(**one).unschedulable) == {0: "old: needs 7 GPUs of 6; new: no throughput"}
    two = {"gpus": [2], "work": [1], "memory": [12], "throughput": [[1, 0]]}
    assert dict(queue_of(**two).unschedulable) == {0: "old: needs 12 GB on a GPU of 11.5 GB; new: no throughput"}
    assert not queue_of(gpus=[6], work=[1]).unschedulable


def test_a_host_that_is_down_makes_nobody_a_misfit() -> None:
    up = np.array([False, True, True])
    one = queue_of(gpus=[6, 2], work=[1, 1])
    dark = Queue(**{each.name: getattr(one, each.name) for each in fields(one)} | {"up": up})
    assert not dark.unschedulable
    assert dark.capacity.tolist() == [2, 2]
    assert dark.allowed.tolist() == [[False, False], [True, True]]
    assert dark.suits.tolist() == [[True, True], [True, True]]
    assert dark.free([((1, 1),)]).tolist() == [0, 1, 2]
    assert dark.free({0: ((2, 2),)}).tolist() == [0, 2, 0]


def test_kinds_and_the_slowest_of_them() -> None:
    one = queue_of(throughput=[[3, 2], [1, 2]])
    last = (((0, 1), (1, 1)), ((0, 1), (2, 1)))
    then = Queue(**{each.name: getattr(one, each.name) for each in fields(one)} | {"last": last})
    assert [then.gpu_types(spots) for spots in (*last, ())] == [(0, 1), (0,), ()]
    assert [then.last_gpu_type(row) for row in (0, 1)] == [1, 0]
    assert one.last_gpu_type(0) == -1


def test_a_lease_holds_while_its_job_runs_and_until_it_ends() -> None:
    one = queue_of()
    spots = (((0, 1),), ((1, 2),))
    for running, lease, held in (
        ([True, True], [61, 60], {0}),
        ([False, True], [61, 60], set()),
        ([True, True], [60, "121/2"], {1}),
    ):
        changed = {"last": spots, "running": np.array(running), "now": Fraction(60)}
        changed["lease"] = np.array([Fraction(value) for value in lease], dtype=object)
        then = Queue(**{each.name: getattr(one, each.name) for each in fields(one)} | changed)
        assert set(then.leased) == held
        assert all(then.leased[row] == spots[row] for row in held)


def test_everything_is_frozen() -> None:
    one = queue_of()
    for part in (one, one.jobs, one.cluster):
        for name, value in vars(part).items():
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[0] = value[0]
            with pytest.raises(AttributeError):
                setattr(part, name, value)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Jobs | Cluster | Queue):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)


@given(queues())
def test_a_queue_in_floats_is_the_same_queue(queue: Queue) -> None:
    there = queue.as_(float)
    assert (queue.exact, there.exact) == (True, False)
    assert there.as_(float) is there
    assert queue.as_(Fraction) is queue
    for part, other in ((queue, there), (queue.jobs, there.jobs), (queue.cluster, there.cluster)):
        for each in fields(part):
            before, after = getattr(part, each.name), getattr(other, each.name)
            if isinstance(before, np.ndarray):
                assert after.dtype == (float if before.dtype == object else before.dtype), each.name
                assert before.astype(float).tolist() == after.astype(float).tolist()
    back = there.as_(Fraction)
    assert back.exact
    assert same(back.as_(float), there)  # floats are fractions: the way back loses nothing
    assert [list(row) for row in back.suits] == [list(row) for row in queue.suits]
    assert dict(there.leased) == dict(queue.leased)
    assert set(there.unschedulable) == set(queue.unschedulable)


@given(queues(), st.data())
def test_take_keeps_whole_rows(queue: Queue, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(queue) - 1), max_size=6, unique=True))
    taken = queue.jobs.take(rows)
    assert len(taken) == len(rows)
    assert same(taken, queue.jobs.take(np.array(rows, dtype=np.int64)))
    for at, row in enumerate(rows):
        assert taken.names[at] == queue.jobs.names[row]
        assert taken.throughput[at].tolist() == queue.jobs.throughput[row].tolist()
        assert (taken.work[at], taken.gpus[at], taken.dataset[at]) == (
            *(queue.jobs.work[row], queue.jobs.gpus[row], queue.jobs.dataset[row]),
        )
        assert taken.tenants[taken.tenant[at]] == queue.jobs.tenants[queue.jobs.tenant[row]]
    assert same(queue.jobs.take(range(len(queue))), queue.jobs)


@given(queues())
def test_misfits_are_those_that_no_type_can_take(queue: Queue) -> None:
    cluster, all_jobs = queue.cluster, queue.jobs
    for row in range(len(queue)):
        fits = [
            all_jobs.throughput[row, kind] > 0
            and all_jobs.memory[row] <= cluster.memory[kind]
            and all_jobs.gpus[row] <= sum(int(cluster.gpus[host]) for host in cluster.of_type(kind))
            for kind in range(len(cluster.types))
        ]
        assert (row in queue.unschedulable) == (not any(fits))
        if row in queue.unschedulable:
            assert queue.unschedulable[row].count(": ") == len(cluster.types)
            assert not queue.allowed[row].any()


@given(queues())
def test_queues_can_be_copied_and_stored(queue: Queue) -> None:
    assert same(copy.deepcopy(queue), queue)
    assert same(pickle.loads(pickle.dumps(queue)), queue)


@given(queues(), st.data())
def test_the_strategies_draw_what_can_be(queue: Queue, data: st.DataObject) -> None:
    from fairopt.policy import Schedule

    assert (queue.free(queue.leased) >= 0).all()
    assert all(queue.up[host] for spots in queue.leased.values() for host, _ in spots)
    drawn = data.draw(placements(queue))
    free = {row: spots for row, spots in drawn.items() if row not in queue.leased}
    if (queue.free(dict(queue.leased) | free) >= 0).all():
        refuse_broken(Schedule("drawn", queue, dict(queue.leased) | free))


@given(clusters().flatmap(lambda cluster: st.tuples(st.just(cluster), traces(cluster))))
def test_traces_match_their_cluster_and_survive_floats(pair: tuple[Cluster, Trace]) -> None:
    cluster, trace = pair
    check_matches(trace, cluster)
    floats = trace.as_(float)
    check_matches(floats, cluster.as_(float))
    assert [(each.host, float(each.begin), float(each.end)) for each in trace.outages] == [
        (each.host, each.begin, each.end) for each in floats.outages
    ]
    assert [type(each.begin) for each in floats.outages] == [float] * len(floats.outages)
