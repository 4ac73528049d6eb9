"""Slurm's scheduler by hand: partitions, limits on jobs, backfill and preemption, by settings of a market."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairopt.errors import BadInput
from fairopt.models.slurm.slurm import SlurmFairTree
from fairopt.policy.decide import decide
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market

USERS, TYPES = ("a/u", "b/v"), ("H100",)
#: Two nodes of 4; p has both, q the second.
NODES = {
    "NodeName=n1": "H100=4 CPUs=8",
    "NodeName=n2": "H100=4 CPUs=8",
    "PartitionName=p": "Nodes=n1,n2",
    "PartitionName=q": "Nodes=n2 PriorityTier=1",
    "PriorityType": "priority/multifactor",
}


def job(user: str, gpus: int, **more: object) -> dict[str, object]:
    """Return a job of partition p that waits, and what else is said of it; ``on`` is a node that it runs on."""
    return {"user": user, "gpus": gpus, "Partition": "p"} | more


def market(jobs: list[dict[str, object]], settings: dict[str, str], **more: dict[str, str]) -> Market:
    """Return eight GPUs, and jobs 1, 2 and so on, submitted in this order."""
    rows = [{name: str(value) for name, value in each.items() if name not in ("user", "gpus", "on")} for each in jobs]
    rows = [row | ({"NodeList": str(each["on"])} if "on" in each else {}) for row, each in zip(rows, jobs, strict=True)]
    gangs = Gangs.of(
        [str(each["user"]) for each in jobs],
        [each["gpus"] for each in jobs],
        users=USERS,
        types=TYPES,
        names=[str(number) for number in range(1, 1 + len(jobs))],
        on=["H100" if "on" in each else None for each in jobs],
        settings=rows,
    )
    group = {"a/u": "a", "b/v": "b"}
    owed = Entitlements.of(USERS, TYPES, group=group, gangs=gangs, settings={"": NODES | settings, **more})
    return Market.of([[1], [1]], [8], users=USERS, types=TYPES, entitlements=owed)


def decided(asked: Market) -> DecisionReason:
    evidence = decide(SlurmFairTree(), asked).evidence
    assert isinstance(evidence, DecisionReason)
    return evidence


def running(asked: Market) -> list[str]:
    gangs = decided(asked).gangs
    return [name for name, on in zip(gangs.names, gangs.on.tolist(), strict=True) if on >= 0]


def test_a_job_that_waits_keeps_its_partition_from_those_of_other_partitions() -> None:
    held = job("a/u", 2, on="n1")
    asked = market([held, job("a/u", 6, NumNodes=2), job("b/v", 1, Partition="q")], {})
    assert running(asked) == ["1"]
    waits = decided(asked).waits
    assert waits["2"] == "it needs 6 H100, and 6 are free in p, but not on 2 nodes together"
    assert "kept for 2" in waits["3"]
    first = {"PartitionName=q": "Nodes=n2 PriorityTier=5"}
    assert running(market([held, job("a/u", 8, NumNodes=2), job("b/v", 1, Partition="q")], first)) == ["1", "3"]


def test_a_job_fits_on_the_nodes_that_it_asks_for_and_their_cpus() -> None:
    assert running(market([job("a/u", 4, NumNodes=1, NumCPUs=9), job("b/v", 4)], {})) == ["2"]
    assert "more than there are" in decided(market([job("a/u", 4, NumCPUs=9)], {})).waits["1"]
    assert running(market([job("a/u", 1, on="n1", NumCPUs=6), job("b/v", 3, NumCPUs=4)], {})) == ["1", "2"]  # on n2


def test_limits_on_jobs_of_associations_and_of_qos() -> None:
    jobs = [job("a/u", 1, QOS="x"), job("a/u", 1, QOS="x"), job("b/v", 3, QOS="x")]
    assert running(market(jobs, {})) == ["1", "2", "3"]
    assert running(market(jobs, {}, **{"a/u": {"MaxJobs": "1"}})) == ["1", "3"]
    assert running(market(jobs, {}, a={"GrpJobs": "0"})) == ["3"]
    assert running(market(jobs, {"QOS=x": "MaxTRES=gres/gpu=2"})) == ["1", "2"]
    assert running(market(jobs, {"QOS=x": "MaxTRESPU=gres/gpu=1"})) == ["1"]
    assert running(market(jobs, {"QOS=x": "GrpTRES=gres/gpu:H100=4"})) == ["1", "2"]
    over = market(jobs, {"QOS=x": "MaxJobsPU=2"}, **{"a/u": {"MaxJobs": "1"}})
    assert running(over) == ["1", "2", "3"]  # the QOS's limit stands in the place of the association's
    assert running(market(jobs, {"QOS=x": "MaxJobsPU=1", "AccountingStorageEnforce": "associations"})) == [
        "1",
        "2",
        "3",
    ]
    assert decided(market(jobs, {"QOS=x": "MaxTRESPU=gres/gpu=1"})).waits["2"] == (
        "the limit of QOS x for user u: 1 GPUs, of which it holds 1"
    )


def test_a_partition_refuses_what_it_does_not_take() -> None:
    for said, why in (
        ("State=DOWN", "is DOWN"),
        ("MaxTime=60", "time limit"),
        ("AllowAccounts=b", "does not take jobs of a"),
        ("DenyQos=x", "does not take jobs of x"),
        ("MinNodes=2", "takes jobs of 2 to"),
    ):
        asked = market([job("a/u", 1, QOS="x", TimeLimit=120)], {"PartitionName=p": f"Nodes=n1,n2 {said}"})
        assert why in decided(asked).waits["1"], said


@pytest.mark.parametrize(
    ("of_job", "of_cluster"),
    [
        ({"NumNodes": "1.5"}, {}),
        ({"TimeLimit": "inf"}, {}),
        ({}, {"NodeName=n1": "H100=4 CPUs=8 Weight=é"}),
        ({}, {"NodeName=n1": "H100=four"}),
        ({}, {"PartitionName=p": "Nodes=n1,n2 PriorityTier=--2"}),
        ({}, {"QOS=x": "GrpTRES=gres/gpu-18"}),
        ({}, {"QOS=x": "MaxJobsPU=²"}),
        ({}, {"QOS=x": "Priority=" + "9" * 30, "PriorityWeightQOS": "9"}),
        ({}, {"PriorityWeightQOS": "much"}),
    ],
)
def test_a_setting_that_is_no_number_is_refused(of_job: dict[str, str], of_cluster: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=r"settings, .*: got .+(Give a whole number|not a number)"):
        decided(market([job("a/u", 1, QOS="x", **of_job)], of_cluster))


def test_backfill_starts_what_ends_before_the_expected_start() -> None:
    held = [
        job("a/u", 4, on="n1", TimeLimit=7200, TimeLeft=3600),
        job("a/u", 3, on="n2", TimeLimit=7200, TimeLeft=7200),
    ]
    line = [
        *held,
        job("a/u", 8, NumNodes=2, TimeLimit=600),
        job("b/v", 1, TimeLimit=600),
        job("b/v", 1, TimeLimit=9000),
    ]
    on = {"SchedulerType": "sched/backfill"}
    assert running(market(line, {})) == ["1", "2"]
    assert running(market(line, on)) == ["1", "2", "4"]
    late = [*held, job("a/u", 8, NumNodes=2, TimeLimit=600), job("b/v", 1, TimeLimit=9000)]
    assert running(market(late, on)) == ["1", "2"]  # it would run on n2 for longer than 7200 s
    soon = on | {"SchedulerParameters": "bf_window=60"}
    assert running(market(late, soon)) == ["1", "2", "4"]  # nobody plans for more than an hour ahead
    assert running(market(line, on | {"SchedulerParameters": "bf_max_job_test=1"})) == ["1", "2"]
    # the first job that waits makes two pieces of one, and for the second there is no third
    several = [*late, job("a/u", 1, TimeLimit=9000), job("b/v", 1, TimeLimit=600)]
    assert running(market(several, on)) == ["1", "2", "6"]
    assert running(market(several, on | {"SchedulerParameters": "bf_node_space_size=2"})) == ["1", "2"]


def test_the_youngest_is_stopped_first_also_where_it_has_no_limit() -> None:
    qos = {"QOS=low": "Priority=1", "QOS=high": "Priority=9 Preempt=low", "PreemptType": "preempt/qos"}
    qos |= {"PreemptMode": "REQUEUE", "SchedulerParameters": "preempt_youngest_first"}
    limited = job("b/v", 4, on="n1", QOS="low", TimeLimit=600, TimeLeft=590)
    for ran, stopped in (("5", "2"), ("15", "1")):
        asked = [limited, job("b/v", 4, on="n2", QOS="low", RunTime=ran), job("a/u", 4, QOS="high")]
        assert list(decided(market(asked, qos)).stopped) == [stopped]


def test_preemption_stops_the_lowest_and_no_more_than_it_needs() -> None:
    low = [job("b/v", 1, on="n1", QOS="low"), job("b/v", 4, on="n2", QOS="low"), job("b/v", 3, on="n1", QOS="low")]
    qos = {"QOS=low": "Priority=1", "QOS=high": "Priority=9 Preempt=low", "PreemptType": "preempt/qos"}
    asked = [*low, job("a/u", 4, QOS="high")]
    assert running(market(asked, qos)) == ["1", "2", "3"]
    found = decided(market(asked, qos | {"PreemptMode": "REQUEUE"}))
    assert list(found.stopped) == ["2"]
    assert found.stopped["2"] == "stopped for 4 of a/u"
    assert running(market(asked, qos | {"PreemptMode": "SUSPEND,GANG"})) == ["1", "2", "3"]
    tiers = {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "CANCEL",
        "PartitionName=p": "Nodes=n1,n2 PriorityTier=2",
    }
    beneath = [job("b/v", 4, on="n2", Partition="q"), job("b/v", 4, on="n1")]
    assert list(decided(market([*beneath, job("a/u", 2)], tiers)).stopped) == ["1"]


def test_gpus_that_no_node_has_are_there_for_all() -> None:
    asked = market([job("a/u", 4), job("a/u", 4), job("b/v", 4)], {})
    assert running(asked) == ["1", "2"]
    assert running(replace(asked, capacity=asked.capacity + 4)) == ["1", "2", "3"]
    assert running(replace(asked, capacity=asked.capacity - 4)) == ["1"]


def test_a_job_of_more_gpus_than_a_node_has_takes_several() -> None:
    assert running(market([job("a/u", 6), job("b/v", 2)], {})) == ["1", "2"]
