"""What Kueue's objects set beside quotas: the options of each ClusterQueue, and those of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kueue_files import queue, written

from fairopt import allocate, read_market, write_market
from fairopt.errors import BadInput
from fairopt.importing.kueue import read
from fairopt.models import Kueue
from fairopt.models.kueue.state import Preempts, Rules


def test_options_come_from_the_objects(tmp_path: Path) -> None:
    own = {
        "queueingStrategy": "StrictFIFO",
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never",
                       "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -5}},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "Preempt",
                              "preference": "PreemptionOverBorrowing"},
    }  # fmt: skip
    quota = ("h100", "nvidia.com/gpu", {"nominalQuota": 4})
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}, "data": {
        "controller_manager_config.yaml": yaml.safe_dump({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "waitForPodsReady": {"timeout": "5m"}, "namespace": "kueue-system",
            "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
            "featureGates": {"FairSharingPrioritizeNonBorrowing": False, "PartialAdmission": False}})}}  # fmt: skip
    found = read(written(tmp_path, queue("a", quota, **own), queue("b", quota), config))
    assert found.problem.entitlements.settings == {
        "": {"fair_sharing": "true", "strategies": "LessThanInitialShare", "prioritize_non_borrowing": "false"},
        "a": {
            "queueing": "StrictFIFO",
            "when_can_borrow": "TryNextFlavor",
            "when_can_preempt": "MayStopSearch",
            "preference": "PreemptionOverBorrowing",
            "reclaim_within_cohort": "Any",
            "within_cluster_queue": "Never",
            "borrow_within_cohort": "LowerPriority",
            "max_priority_threshold": "-5",
        },
    }
    listed = " ".join(map(str, found.unplaced))
    assert "waitForPodsReady" in listed
    assert "featureGates.PartialAdmission" not in listed
    assert "preemption" not in listed
    rules, whole = Kueue().rules_on(found.problem.entitlements)
    assert [rules[0].max_priority_threshold, rules[0].preference.value] == [-5, "PreemptionOverBorrowing"]
    assert rules[1] == Rules()
    assert whole["fair_sharing"]
    assert not whole["prioritize_non_borrowing"]
    given, _ = Kueue(reclaim_within_cohort=Preempts.NEVER).rules_on(found.problem.entitlements)
    assert given[0].reclaim_within_cohort is Preempts.NEVER, "an option that is given holds for all"
    with pytest.raises(BadInput, match=r"withinClusterQueue.*LowerOrNewerEqualPriority"):
        read(written(tmp_path, queue("a", quota, preemption={"withinClusterQueue": "Any"})))


def test_a_share_in_the_status_says_that_sharing_is_fair(tmp_path: Path) -> None:
    stated = queue("a", ("h100", "nvidia.com/gpu", {"nominalQuota": 4}))
    assert read(written(tmp_path, stated)).problem.entitlements.settings == {}
    stated["status"] = {"fairSharing": {"weightedShare": 0}}
    assert read(written(tmp_path, stated)).problem.entitlements.settings == {"": {"fair_sharing": "true"}}


def test_each_queue_preempts_as_its_own_object_says(tmp_path: Path) -> None:
    quota = ("h100", "nvidia.com/gpu", {"nominalQuota": 4})

    def workload(name: str, of: str, gpus: int, **more: Any) -> dict[str, Any]:
        pods = [{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]}}}]  # fmt: skip
        status: dict[str, Any] = {}
        if more.pop("runs", False):
            usage = {"nvidia.com/gpu": str(gpus)}
            own = {"name": "main", "flavors": {"nvidia.com/gpu": "h100"}, "resourceUsage": usage, "count": 1}
            status = {"admission": {"clusterQueue": of, "podSetAssignments": [own]}}
        metadata = {"name": name, "namespace": "n"}
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "status": status,
                "spec": {"queueName": of, "podSets": pods} | more}  # fmt: skip

    locals_ = [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": {"clusterQueue": name},
                "metadata": {"name": name, "namespace": "n"}} for name in "abc"]  # fmt: skip
    reclaims = {"cohortName": "all", "preemption": {"reclaimWithinCohort": "Any"}}
    found = read(written(
        tmp_path, queue("a", quota, **reclaims),
        *(queue(name, quota, cohortName="all") for name in "bc"),
        *locals_, workload("big", "c", 12, runs=True), workload("wa", "a", 4), workload("wb", "b", 4),
    ))  # fmt: skip
    grounds = allocate(Kueue(), found.problem).evidence
    assert (grounds.order, [*grounds.stopped]) == (("n/wa", "n/wb"), ["n/big"]), "b has what a reclaimed"
    cycle = allocate(Kueue(cycles=1), found.problem)
    assert cycle.evidence.order == ()
    assert list(cycle.evidence.stopped) == ["n/big"]
    assert "stopped for it" in cycle.evidence.waits["n/wa"]
    without = allocate(Kueue(reclaim_within_cohort=Preempts.NEVER), found.problem).evidence
    assert without.order == ()
    assert not without.stopped
    path = tmp_path / "market.toml"
    write_market(found.problem, path)
    again = allocate(Kueue(), read_market(path)).evidence
    assert (again.order, again.stopped) == (grounds.order, grounds.stopped), "a market file keeps the options"


def admissible(tmp_path: Path, *items: dict[str, Any], **more: Any) -> tuple[dict[str, list[str]], str]:
    """Return the flavors on which each workload may run, and what is listed."""
    found = read(written(tmp_path, *items), **more)
    gangs, types = found.problem.entitlements.gangs, found.problem.types
    allowed = {
        name: [types[at] for at, may in enumerate(gangs.allowed[g]) if may] for g, name in enumerate(gangs.names)
    }
    return allowed, "\n".join(map(str, found.unplaced))


def asking(name: str, *, topology: dict[str, Any] | None = None, **requests: str) -> dict[str, Any]:
    """Return a workload of LocalQueue n/a, with one GPU unless it says otherwise."""
    asked = {"nvidia.com/gpu": "1"} | {key.replace("_", "."): value for key, value in requests.items()}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [
        {"name": "c", "resources": {"requests": asked}}]}}}  # fmt: skip
    if topology is not None:
        pods["topologyRequest"] = topology
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name, "namespace": "n"},
            "spec": {"queueName": "a", "podSets": [pods]}}  # fmt: skip


def plain(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": "n"} if kind == "LocalQueue" else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
LOCAL = plain("LocalQueue", "a", clusterQueue="a")
GPU = ("nvidia.com/gpu", {"nominalQuota": 4})


def test_a_flavor_with_a_topology_is_for_those_that_ask_for_one_of_its_levels(tmp_path: Path) -> None:
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]
    flavors = [plain("ResourceFlavor", "near", topologyName="racks"), plain("ResourceFlavor", "far"),
               plain("Topology", "racks", levels=levels)]  # fmt: skip
    asked = {"by-rack": {"required": "rack"}, "odd": {"preferred": "row"}, "free": {"unconstrained": True}, "any": None}
    works = [asking(name, topology=topology) for name, topology in asked.items()]
    allowed, listed = admissible(tmp_path, queue("a", ("near", *GPU), ("far", *GPU)), *flavors, LOCAL, *works)
    assert allowed == {"n/any": ["far"], "n/by-rack": ["near"], "n/free": ["near"]}
    assert "'n/odd'" in listed
    allowed, _ = admissible(tmp_path, queue("a", ("near", *GPU)), *flavors, LOCAL, *works)
    assert sorted(allowed) == ["n/any", "n/by-rack", "n/free"], "all flavors have one: who asks for none may start"


def test_a_queue_with_a_flavor_that_is_not_there_admits_nothing(tmp_path: Path) -> None:
    own = queue("a", ("h100", *GPU), ("lost", *GPU))
    allowed, listed = admissible(tmp_path, own, plain("ResourceFlavor", "h100"), LOCAL, asking("w"))
    assert allowed == {}
    assert "no such ResourceFlavor" in listed
    allowed, _ = admissible(tmp_path, own, LOCAL, asking("w"))
    assert allowed == {"n/w": ["h100", "lost"]}, "without any ResourceFlavor nobody knows"


def test_a_resource_without_quota_keeps_a_workload_out(tmp_path: Path) -> None:
    items = [queue("a", ("h100", *GPU)), LOCAL, asking("w", cpu="2")]
    allowed, listed = admissible(tmp_path, *items)
    assert allowed == {"n/w": ["h100"]}
    assert "unless its Configuration" in listed
    allowed, listed = admissible(tmp_path, *items, CONFIGURATION)
    assert allowed == {}
    assert "Kueue does not admit it" in listed
    excluded = CONFIGURATION | {"resources": {"excludeResourcePrefixes": ["cpu"]}}
    assert admissible(tmp_path, *items, excluded)[0] == {"n/w": ["h100"]}


def test_a_workload_may_start_with_fewer_pods_unless_the_gate_is_off(tmp_path: Path) -> None:
    def found(gate: bool | None, *pods: tuple[int, int | None, str]) -> list[dict[str, str]]:
        sets = []
        for number, (count, least, gpus) in enumerate(pods):
            requests = {"nvidia.com/gpu": gpus, "cpu": "500m"}
            spec = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
            one: dict[str, Any] = {"name": f"set{number}", "count": count, "template": {"spec": spec}}
            sets.append(one | ({} if least is None else {"minCount": least}))
        quotas = [("h100", "nvidia.com/gpu", {"nominalQuota": 90}), ("h100", "cpu", {"nominalQuota": 90})]
        local = {"kind": "LocalQueue", "metadata": {"name": "a", "namespace": "n"}, "spec": {"clusterQueue": "a"}}
        work = {"kind": "Workload", "metadata": {"name": "w", "namespace": "n"}, "spec": {"queueName": "a"}}
        api = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
        items = [queue("a", *quotas), api | local, api | work | {"spec": {"queueName": "a", "podSets": sets}}]
        if gate is not None:
            configuration = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
            items.append(configuration | {"featureGates": {"PartialAdmission": gate}})
        return list(read(written(tmp_path, *items)).problem.entitlements.gangs.settings)

    assert found(None, (8, 2, "1"), (3, None, "2"), (4, 3, "0")) == [
        {"fewer_pods": "6: gpu 1, cpu 1/2, pods 1; 1: cpu 1/2, pods 1"}
    ]
    assert found(True, (8, 8, "1")) == []
    assert found(False, (8, 2, "1")) == []
    with pytest.raises(BadInput, match=r"minCount.*-1"):
        found(None, (8, -1, "1"))
