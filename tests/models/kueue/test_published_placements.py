"""Kueue's own table of where pods go: each row that the rule can say, read as objects and placed, agrees exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kueue_tables import FOLDER

from fairopt.importing.kueue import read
from fairopt.models.kueue.topology import Topologies
from fairopt.models.kueue.work import QueuedWork, placements

TABLE = json.loads((FOLDER / "topology_test.json").read_text())
KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2"}


def _node(said: dict[str, Any], name: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if said["ready"] else "False"}]
    spec = {key: said[key] for key in ("taints", "unschedulable") if key in said}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": said["labels"]}, "spec": spec,
        "status": {"allocatable": said["allocatable"], "conditions": conditions},
    }  # fmt: skip


def _pod(said: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": said.get("requests", {})}}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": said["name"], "namespace": "d"},
        "spec": {"nodeName": said.get("node", ""), "containers": containers},
        "status": {"phase": said.get("phase", "Pending")},
    }  # fmt: skip


def _pod_set(said: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": said["requests"]}}]
    spec = {"containers": containers} | {key: said[key] for key in ("tolerations", "nodeSelector") if key in said}
    asked = {"topologyRequest": said["topologyRequest"]} if "topologyRequest" in said else {}
    return {"name": said["name"], "count": said["count"], "template": {"spec": spec}} | asked


def _running(row: dict[str, Any], number: int) -> dict[str, Any]:
    values, requests, count = row["running"]["pods"][number]
    levels = row["levels"][-len(values) :]
    flavor = "gpus" if row["running"]["flavor"] == "own" else "other"
    assignment = {
        "name": "main", "count": count, "flavors": dict.fromkeys(requests, flavor), "resourceUsage": requests,
        "topologyAssignment": {"levels": levels, "domains": [{"values": values, "count": count}]},
    }  # fmt: skip
    return KUEUE | {
        "kind": "Workload", "metadata": {"name": f"runs-{number}", "namespace": "d"},
        "spec": {"podSets": [_pod_set({"name": "main", "count": count, "requests": requests})], "queueName": "l"},
        "status": {"admission": {"clusterQueue": "q", "podSetAssignments": [assignment]}},
    }  # fmt: skip


def _objects(row: dict[str, Any]) -> list[dict[str, Any]]:
    names = sorted({name for each in row["podSets"] for name in each["requests"]})
    flavors = ["gpus", "other"] if "running" in row else ["gpus"]
    quotas = [{"name": name, "nominalQuota": "1000000"} for name in names]
    nodes = TABLE["nodes"][row["nodes"]] if isinstance(row["nodes"], str) else row["nodes"]
    labels = {"nodeLabels": row["nodeLabels"]} if "nodeLabels" in row else {}
    group = {"coveredResources": names, "flavors": [{"name": flavor, "resources": quotas} for flavor in flavors]}
    topology = {"levels": [{"nodeLabel": level} for level in row["levels"]]}
    return [
        KUEUE | {"kind": "Topology", "metadata": {"name": "default"}, "spec": topology},
        *(KUEUE | {"kind": "ResourceFlavor", "metadata": {"name": each}, "spec": {"topologyName": "default"} | labels}
          for each in flavors),
        KUEUE | {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"resourceGroups": [group]}},
        KUEUE | {"kind": "LocalQueue", "metadata": {"name": "l", "namespace": "d"}, "spec": {"clusterQueue": "q"}},
        *(_node(each, each["name"] + (f"-{copy}" if copy else ""))
          for each in nodes for copy in range(each.get("copies", 1))),
        *map(_pod, row.get("pods", ())),
        *(_running(row, number) for number in range(len(row["running"]["pods"]) if "running" in row else 0)),
        KUEUE | {"kind": "Workload", "metadata": {"name": "asks", "namespace": "d"},
                 "spec": {"queueName": "l", "podSets": [_pod_set(each) for each in row["podSets"]]}},
    ]  # fmt: skip


@pytest.mark.parametrize("row", TABLE["cases"], ids=lambda row: f"{row['line']}: {row['name']}")
def test_placements(row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": _objects(row)}))
    resource = min(name for each in row["podSets"] for name in each["requests"])
    problem: Any = read(path, resource=resource).problem
    rights, types = problem.entitlements, list(problem.types)
    works = []
    for at, name in enumerate(rights.gangs.names):
        asked = placements(rights.gangs.settings[at]["topology"], name)
        on = rights.gangs.on[at]
        spots = {each.name: each.at for each in asked if each.at}
        works.append(QueuedWork(name, 0, 0, 0, at, {}, flavor=on if on >= 0 else None, topology=asked, spots=spots))
    want = {
        each["name"]: {"/".join(values): count for values, count in each["want"]}
        for each in row["podSets"]
        if "want" in each
    }
    waits = [work for work in works if work.name == "d/asks"]
    if len(want) < len(row["podSets"]) and not waits:
        return  # no flavor has such levels: it is left out, which the importer lists
    topologies = Topologies(rights.settings[""]["topologies"], types, works)
    assert topologies.place(waits[0], types.index("gpus")) == (want if len(want) == len(row["podSets"]) else None)
