"""Past use of Kueue's LocalQueues: where it orders workloads, by how much admissions add to it, and what is listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairopt import decide
from fairopt.errors import BadInput
from fairopt.importing import kueue
from fairopt.importing.imported import Imported
from fairopt.models import Kueue

API = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
AFS = {"usageHalfLifeTime": "10s", "usageSamplingInterval": "1s"}


def local(name: str, used: int, weight: str | None = None) -> dict[str, Any]:
    status = {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"nvidia.com/gpu": str(used)}}}}
    spec: dict[str, Any] = {"clusterQueue": "q"} | ({"fairSharing": {"weight": weight}} if weight else {})
    return API | {"kind": "LocalQueue", "metadata": {"name": name, "namespace": "n"}, "spec": spec, "status": status}


def workload(name: str, queue: str, gpus: int, second: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    pods = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
    meta = {"name": name, "namespace": "n", "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
    return API | {"kind": "Workload", "metadata": meta, "spec": {"queueName": queue, "podSets": pods}}


def read(folder: Path, locals_: list[Any], works: list[Any], config: Any = AFS, within: str = "Never") -> Imported:
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "8"}
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [quota]}]}]
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    spec = {"resourceGroups": groups, "admissionScope": scope, "preemption": {"withinClusterQueue": within}}
    items = [
        API | {"kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}},
        API | {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec},
        *locals_,
        *works,
    ]
    if config is not None:
        api = "config.kueue.x-k8s.io/v1beta2"
        items.append({"apiVersion": api, "kind": "Configuration", "admissionFairSharing": config})
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    return kueue.read(path)


def order(found: Imported) -> list[str]:
    evidence: Any = decide(Kueue(), found.problem, exact=True).evidence
    return [name.rpartition("/")[2] for name in evidence.order]


def test_who_has_used_less_goes_first_though_younger(tmp_path: Path) -> None:
    found = read(tmp_path, [local("a", 8), local("b", 2)], [workload("wa", "a", 8, 1), workload("wb", "b", 8, 2)])
    assert order(found) == ["wb"]


@pytest.mark.parametrize(("weight", "first"), [("1", "wb"), ("10", "wa"), ("0", "wb")])
def test_past_use_is_over_the_weight(tmp_path: Path, weight: str, first: str) -> None:
    locals_ = [local("a", 8, weight), local("b", 2)]
    found = read(tmp_path, locals_, [workload("wa", "a", 8, 1), workload("wb", "b", 8, 2)])
    assert order(found) == [first]


def test_each_admission_adds_to_past_use(tmp_path: Path) -> None:
    works = [
        workload(f"w{q}{n}", q, 2, second) for second, (q, n) in enumerate([("a", 1), ("a", 2), ("b", 1), ("b", 2)])
    ]
    found = read(tmp_path, [local("a", 4), local("b", 4)], works)
    assert order(found) == ["wa1", "wb1", "wa2", "wb2"]
    slow = read(tmp_path, [local("a", 4), local("b", 4)], works, {**AFS, "usageHalfLifeTime": "0s"})
    assert order(slow) == ["wa1", "wa2", "wb1", "wb2"]  # nothing is added, and age decides


def test_weights_of_resources_count(tmp_path: Path) -> None:
    works = [workload("wa", "a", 8, 1), workload("wb", "b", 8, 2)]
    found = read(tmp_path, [local("a", 8), local("b", 2)], works, AFS | {"resourceWeights": {"nvidia.com/gpu": 0}})
    assert order(found) == ["wa"]


def test_what_is_not_known_or_not_modelled_is_listed(tmp_path: Path) -> None:
    locals_, works = [local("a", 8), local("b", 2)], [workload("wa", "a", 8, 1), workload("wb", "b", 8, 2)]
    without = read(tmp_path, locals_, works, None)
    assert order(without) == ["wb"]
    assert any("no Configuration says how fast" in each.why for each in without.unplaced)
    blank = [{**each, "status": {}} for each in locals_]
    silent = read(tmp_path, blank, works, None)
    assert order(silent) == ["wa"]
    assert any("taken not to be in force" in each.why for each in silent.unplaced)
    stops = read(tmp_path, locals_, works, AFS, "LowerPriority")
    assert any("who is stopped does not depend" in each.why for each in stops.unplaced)


def test_a_duration_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"usageHalfLifeTime.*got 'soon'.*Give a duration"):
        read(tmp_path, [local("a", 8)], [workload("wa", "a", 8, 1)], {"usageHalfLifeTime": "soon"})
