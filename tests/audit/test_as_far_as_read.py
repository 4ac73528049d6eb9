"""A reason says no more than the rule reads: what else the files say of a gang, its queue or nodes for it, it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairopt.audit import Audit, audit, explain, whatif
from fairopt.importing.imported import Imported
from fairopt.problem import Entitlements, Gangs, Market

GPU = "nvidia.com/gpu"
#: What the audit says where everything is read.
NOTHING = "nothing in the file stops it"


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "ns", **more}


def container(gpus: int) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {GPU: str(gpus)}}}


def node(name: str = "n", gpus: int = 8, **more: Any) -> dict[str, Any]:
    status = {"allocatable": {GPU: str(gpus)}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"gpu": "h100"}},
        "status": status,
    } | more


def written(folder: Path, name: str, *items: object, text: str = "") -> Path:
    path = folder / name
    path.write_text(text or json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


def kueue(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    api = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    items: list[Any] = [api | {"kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}}, *more]
    for name in ("a", "b"):
        quota = [{"name": "h100", "resources": [{"name": GPU, "nominalQuota": 4}]}]
        spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": quota}]} | (of_queue if name == "a" else {})
        items.append(api | {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        items.append(api | {"kind": "LocalQueue", "metadata": metadata(name), "spec": {"clusterQueue": name}})
        pods = {"name": "m", "count": 1, "template": {"spec": {"containers": [container(2)]}}}
        spec = {"queueName": name, "podSets": [pods | (of_gang if name == "a" else {})]}
        items.append(api | {"kind": "Workload", "metadata": metadata(f"w{name}"), "spec": spec})
    return [written(folder, "kueue.json", *items)]


def kai(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    items = [node(), *more]
    for name in ("a", "b"):
        spec = {"resources": {"gpu": {"quota": 4, "limit": -1, "overQuotaWeight": 1}}} | (
            of_queue if name == "a" else {}
        )
        items.append({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec})
        group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata(f"w{name}")}
        items.append(group | {"spec": {"queue": name, "minMember": 1}})
        spec = {"schedulerName": "kai-scheduler", "containers": [container(2)]} | (of_gang if name == "a" else {})
        notes = {"pod-group-name": f"w{name}"}
        items.append(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(f"p{name}", annotations=notes), "spec": spec}
        )
    return [written(folder, "kai.json", *items)]


def volcano(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    api = {"apiVersion": "scheduling.volcano.sh/v1beta1"}
    items = [node(), *more]
    for name in ("a", "b"):
        spec = {"weight": 1, "deserved": {GPU: "4"}} | (of_queue if name == "a" else {})
        items.append(api | {"kind": "Queue", "metadata": {"name": name}, "spec": spec})
        spec = {"queue": name, "minMember": 1, "minResources": {GPU: "2"}} | (of_gang if name == "a" else {})
        items.append(api | {"kind": "PodGroup", "metadata": metadata(f"w{name}"), "spec": spec})
    return [written(folder, "volcano.json", *items)]


def armada(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    queues = {
        "queues": [{"name": name, "priorityFactor": 1} | (of_queue if name == "a" else {}) for name in ("a", "b")]
    }
    jobs = {
        f"w{name}": {
            "jobId": f"w{name}", "queue": name, "state": "QUEUED",
            "jobSpec": {"podSpecs": [{"containers": [container(2)]} | (of_gang if name == "a" else {})]},
        }
        for name in ("a", "b")
    }  # fmt: skip
    known = {"scheduling": {"priorityClasses": {"armada-default": {"priority": 0}}}}
    return [written(folder, "armada.json", queues, {"jobDetails": jobs}, known, node(), *more)]


def slurm(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    shares = "Account|User|RawShares|RawUsage\nroot||1|0\n a||1|0\n  a|u|1|0\n b||1|0\n  b|u|1|0\n"
    nodes = "NodeName=n1 CPUTot=64\n   Gres=gpu:h100:8\n   State=IDLE\n   Partitions=gpu,other\n"
    jobs, parts = "", ""
    for number, name in enumerate(("a", "b"), 1):
        own = " ".join(f"{key}={value}" for key, value in (of_gang if name == "a" else {}).items())
        inside = "gpu" if name == "a" else "other"
        jobs += (
            f"JobId={number} JobName=w\n   UserId=u(1) Account={name} QOS=normal\n"
            f"   JobState=PENDING Reason=Resources\n   Partition={inside} NumNodes=1 NumCPUs=1\n"
            f"   TresPerNode=gres:gpu:h100:2 {own}\n\n"
        )
        own = " ".join(f"{key}={value}" for key, value in (of_queue if name == "a" else {}).items())
        parts += f"PartitionName={inside}\n   State=UP Nodes=n1 {own}\n\n"
    files = {"shares": shares, "nodes": nodes, "jobs": jobs, "parts": parts} | {
        f"more{i}": text for i, text in enumerate(more)
    }
    return [written(folder, f"{name}.txt", text=text) for name, text in files.items()]


def yarn(folder: Path, of_gang: Mapping[str, Any], of_queue: Mapping[str, Any], *more: Any) -> list[Path]:
    given = {"root.queues": "a,b", "user-limit-factor": "-1", "root.a.capacity": "50", "root.b.capacity": "50"}
    given |= {f"root.a.{name}": value for name, value in of_queue.items()} | dict(more)
    text = "".join(
        f"<property><name>yarn.scheduler.capacity.{k}</name><value>{v}</value></property>" for k, v in given.items()
    )

    def amounts(gpus: int) -> dict[str, Any]:
        named = [{"name": "memory-mb", "value": 1024 * gpus}, {"name": "yarn.io/gpu", "value": gpus}]
        return {"resourceInformations": {"resourceInformation": named}}

    usage = {"partitionName": "", "used": amounts(0), "pending": amounts(2)}
    leaf = {"type": "capacitySchedulerLeafQueueInfo", "resources": {"resourceUsagesByPartition": [usage]}}
    queues = [
        leaf | {"queueName": name, "queuePath": f"root.{name}"} | (of_gang if name == "a" else {})
        for name in ("a", "b")
    ]
    root = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": queues}}
    return [
        written(folder, "capacity-scheduler.xml", text=f"<configuration>{text}</configuration>"),
        written(folder, "scheduler.json", text=json.dumps({"scheduler": {"schedulerInfo": root}})),
        written(
            folder,
            "metrics.json",
            text=json.dumps({"clusterMetrics": {"totalClusterResourcesAcrossPartition": amounts(8)}}),
        ),
    ]


Reader = Callable[..., list[Path]]
FILES: Mapping[str, Reader] = {each.__name__: each for each in (slurm, kueue, kai, volcano, armada, yarn)}
SELECTOR = {"nodeSelector": {"zone": "x"}}
CLAIM = {"template": {"spec": {"containers": [container(2)], "resourceClaims": [{"name": "x"}]}}}
MEMORY = """Configuration data as of 2026-11-01T12:00:00
PriorityType            = priority/multifactor
SelectTypeParameters    = CR_Core_Memory
"""


def users(name: str) -> tuple[str, str]:
    return {"slurm": ("a/u", "b/u"), "yarn": ("root.a", "root.b")}.get(name, ("a", "b"))


def asked(name: str, folder: Path, of_gang: Any = None, of_queue: Any = None, *more: Any) -> Audit:
    return audit(FILES[name](folder, of_gang or {}, of_queue or {}, *more), importer=name)


@pytest.mark.parametrize("name", FILES)
def test_where_everything_is_read_nothing_stops_it(name: str, tmp_path: Path) -> None:
    found = asked(name, tmp_path)
    for user in users(name):
        assert NOTHING in str(found.reasons[user])


OF_GANGS = [
    ("slurm", {"Features": "nvlink"}, "scontrol show job, features ('nvlink')"),
    ("slurm", {"Reservation": "course"}, "reservation ('course')"),
    ("slurm", {"Licenses": "matlab:1"}, "licenses ('matlab:1')"),
    ("slurm", {"MinMemoryNode": "64G"}, "minmemorynode ('64G')"),
    ("slurm", {"ReqNodeList": "n1"}, "reqnodelist ('n1')"),
    ("kueue", CLAIM, "resourceClaims"),
    ("kueue", {"strange": 1}, "spec.podSets[].strange (1)"),
    ("kai", SELECTOR, "Pod, spec.nodeSelector"),
    ("kai", {"tolerations": [{"key": "x"}]}, "Pod, spec.tolerations"),
    ("volcano", {"networkTopology": {"mode": "hard"}}, "PodGroup, spec.networkTopology"),
    ("volcano", {"minResources": {GPU: "2", "example.com/fpga": "1"}}, "minResources of example.com/fpga"),
    ("armada", SELECTOR, "job, nodeSelector ('zone')"),
    ("armada", {"tolerations": [{"key": "x"}]}, "tolerations"),
    ("yarn", {"maxParallelApps": 1}, "queue, maxParallelApps (1)"),
]


@pytest.mark.parametrize(("name", "more", "said"), OF_GANGS)
def test_what_is_said_of_a_gang_alone(name: str, more: Any, said: str, tmp_path: Path) -> None:
    found = asked(name, tmp_path, more)
    one, other = users(name)
    assert said in str(found.reasons[one])
    assert NOTHING not in str(found.reasons[one])
    assert NOTHING in str(found.reasons[other])
    explained = explain(FILES[name](tmp_path, more, {}), one, importer=name)
    assert said in str(explained.waits[0])
    assert said in str(explained.loans[0])
    assert NOTHING not in str(explained.loans[0])


OF_QUEUES = [
    ("slurm", {"AllowGroups": "staff"}, "scontrol show partition, allowgroups ('staff')"),
    ("kueue", {"namespaceSelector": {"matchLabels": {"team": "x"}}}, "ClusterQueue, spec.namespaceSelector"),
    ("kai", {"strange": True}, "Queue, spec.strange"),
    ("volcano", {"affinity": {"nodeGroupAffinity": {}}}, "Queue, spec.affinity"),
    ("armada", {"strange": True}, "Queue, strange"),
    ("yarn", {"maximum-applications": "1"}, "property, maximum-applications ('1')"),
]


@pytest.mark.parametrize(("name", "more", "said"), OF_QUEUES)
def test_what_is_said_of_its_queue(name: str, more: Any, said: str, tmp_path: Path) -> None:
    found = asked(name, tmp_path, {}, more)
    one, other = users(name)
    assert said in str(found.reasons[one])
    assert NOTHING in str(found.reasons[other])


TAINT = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
OF_ALL = [
    (
        "slurm",
        MEMORY,
        "CR_Core_Memory",
    ),
    (
        "slurm",
        "ReservationName=r Nodes=n1 NodeCnt=1 Users=root Accounts=(null)\n   StartTime=2026-01-01T00:00:00\n",
        "r: n1",
    ),
    ("kueue", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata("q")}, "kind ResourceQuota"),
    ("kai", node("m", **TAINT), "Node, spec.taints"),
    ("volcano", node("m", **TAINT), "Node, spec.taints"),
    (
        "volcano",
        node("m", 1, status={"allocatable": {GPU: "1"}, "conditions": [{"type": "Ready", "status": "False"}]}),
        "Ready",
    ),
    ("armada", node("m", **TAINT), "Node, spec.taints"),
    ("yarn", ("node-locality-delay", "40"), "node-locality-delay ('40')"),
]


@pytest.mark.parametrize(("name", "more", "said"), OF_ALL)
def test_what_is_said_of_nodes_and_of_the_whole(name: str, more: Any, said: str, tmp_path: Path) -> None:
    found = asked(name, tmp_path, {}, {}, more)
    for user in users(name):
        assert said in str(found.reasons[user])
        assert NOTHING not in str(found.reasons[user])


def test_nodes_of_another_type_do_not_matter(tmp_path: Path) -> None:
    other = node("m", **TAINT)
    other["status"] = {"allocatable": {"amd.com/gpu": "8"}}
    found = asked("volcano", tmp_path, {}, {}, other)
    assert all(NOTHING in str(reason) for reason in found.reasons.values())


def test_what_cannot_stop_a_gang_is_not_named(tmp_path: Path) -> None:
    for name, of_gang in (("slurm", {"MinMemoryNode": "0"}), ("volcano", {"minMember": 1}), ("kai", {"priority": 5})):
        assert NOTHING in str(asked(name, tmp_path, of_gang).reasons[users(name)[0]])


def test_a_change_that_changes_nothing_leaves_reasons_as_they_are(tmp_path: Path) -> None:
    files = slurm(tmp_path, {"Features": "nvlink"}, {}, MEMORY)
    found = whatif(files, ["b/u.weight=1"], importer="slurm")
    assert found.reasons == {}
    assert "nvlink" in str(found.after.reasons["a/u"])


def test_a_remedy_claims_no_more_than_the_reason() -> None:
    gangs = Gangs.of(
        ["A", "A", "B"], [2, 2, 8], users=["A", "B"], types=["T"], names=["a", "c", "b"], on=[None, None, "T"]
    )
    owed = Entitlements.of(["A", "B"], ["T"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    market = Market.of([[1], [1]], [8], users=["A", "B"], types=["T"], entitlements=owed)
    said = {"a": ("features ('nvlink')",), "c": ("features ('nvlink')", "licenses ('x')")}
    source = Imported(market, unread=lambda gang: said.get(gang, ()))
    claim = "Then a, c run, if what the rule does not read lets them: features ('nvlink'); licenses ('x')"
    assert str(audit(source, policies=[]).mends[0]).endswith(claim)
    assert str(explain(source, "A", policies=[]).mends[0]).endswith(claim)
    assert str(audit(Imported(market), policies=[]).mends[0]).endswith("Then a, c run")
