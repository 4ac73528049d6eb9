"""What an audit of a large cluster costs: three commands on files as each scheduler's own commands print them.

    .venv/bin/python benchmarks/large_clusters.py  # 2,000 queues, 20,000 gangs that run, 50,000 that wait
    .venv/bin/python benchmarks/large_clusters.py --schedulers slurm --queues 200 --running 2000 --waiting 5000

Each command runs as a process of its own; printed are its seconds of processor and the most memory that it held.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any

from fairopt.benchmarks.drawn_cluster import CORES, MEMORY, ON_NODE, TYPES, Drawn

#: Linux's number for a process to which orphans below it are given: PR_SET_CHILD_SUBREAPER of prctl.
ADOPT = 36
SUBMITTED = "2026-08-01T{:02}:{:02}:{:02}"


def _at(second: int) -> str:
    return SUBMITTED.format(second // 3600 % 24, second // 60 % 60, second % 60)


def _items(folder: Path, items: Iterator[dict[str, Any]], name: str = "cluster.json") -> list[Path]:
    """Write a list of objects as kubectl prints it."""
    with (folder / name).open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, each in enumerate(items):
            file.write(",\n" * bool(number) + indent(json.dumps(each, indent=4), 8 * " "))
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')
    return [folder / name]


def _requests(gpus: int, resource: str = "nvidia.com/gpu") -> dict[str, str]:
    return {"cpu": str(CORES * gpus), "memory": f"{MEMORY * gpus}Gi", resource: str(gpus)}


def _nodes(
    drawn: Drawn, label: str = "gpu.example.com/model", resource: str = "nvidia.com/gpu"
) -> Iterator[dict[str, Any]]:
    for name, (kind, _) in drawn.nodes.items():
        has = _requests(ON_NODE, resource.format(kind)) | {"pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {label: kind, "kubernetes.io/hostname": name}},
            "status": {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]},
        }


def _pod(name: str, requests: dict[str, str], on: str | None, selector: dict[str, str], **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/train:1", "resources": {"requests": requests}}
    spec = {"containers": [container], "nodeSelector": selector} | ({"nodeName": on} if on else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0", "namespace": "all", "annotations": {"pod-group-name": name}},
        "spec": spec | more,
        "status": {"phase": "Running" if on else "Pending"},
    }


def _classes() -> Iterator[dict[str, Any]]:
    for value in (0, 100, 1000):
        meta = {"name": f"p{value}"}
        yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}


def kueue(drawn: Drawn, folder: Path) -> list[Path]:
    """ClusterQueues in cohorts, one LocalQueue each, Workloads."""

    def objects() -> Iterator[dict[str, Any]]:
        api = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
        for kind in TYPES:
            labels = {"nodeLabels": {"gpu.example.com/model": kind}}
            yield api | {"kind": "ResourceFlavor", "metadata": {"name": kind}, "spec": labels}
        yield api | {"kind": "ResourceFlavor", "metadata": {"name": "cpu"}, "spec": {}}
        for name in drawn.groups:
            parent = {"parentName": drawn.group[name]} if name in drawn.group else {}
            yield api | {"kind": "Cohort", "metadata": {"name": name}, "spec": parent}
        for name in drawn.queues:
            flavors = [
                {"name": kind, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": most}]}
                for kind, most in zip(TYPES, drawn.owed[name], strict=True)
            ]
            most = sum(drawn.owed[name])
            others = [
                {"name": "cpu", "nominalQuota": CORES * most},
                {"name": "memory", "nominalQuota": f"{MEMORY * most}Gi"},
            ]
            spec = {
                "cohortName": drawn.group[name],
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [
                    {"coveredResources": ["nvidia.com/gpu"], "flavors": flavors},
                    {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "cpu", "resources": others}]},
                ],
            }
            yield api | {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
            local = {"metadata": {"name": name, "namespace": "all"}, "spec": {"clusterQueue": name}}
            yield api | {"kind": "LocalQueue"} | local
        for name, queue, gpus, kind, priority, second, on in drawn.gangs:
            container = {
                "name": "train",
                "image": "registry.example.com/train:1",
                "resources": {"requests": _requests(gpus)},
            }
            template = {"spec": {"containers": [container], "nodeSelector": {"gpu.example.com/model": kind}}}
            pods = [{"name": "main", "count": 1, "template": template}]
            flavors_of = {"cpu": "cpu", "memory": "cpu", "nvidia.com/gpu": kind}
            given = {"name": "main", "flavors": flavors_of, "resourceUsage": _requests(gpus), "count": 1}
            reserved = {
                "type": "QuotaReserved",
                "status": "True" if on else "False",
                "lastTransitionTime": _at(second) + "Z",
            }
            status: dict[str, Any] = {"conditions": [reserved]}
            if on:
                status["admission"] = {"clusterQueue": queue, "podSetAssignments": [given]}
            yield api | {
                "kind": "Workload",
                "metadata": {"name": name, "namespace": "all", "creationTimestamp": _at(second) + "Z"},
                "spec": {"queueName": queue, "podSets": pods, "active": True, "priority": priority},
                "status": status,
            }
        yield from _nodes(drawn)

    return _items(folder, objects())


def kai(drawn: Drawn, folder: Path) -> list[Path]:
    """Queues of each node pool, PodGroups and pods."""

    def objects() -> Iterator[dict[str, Any]]:
        names = [*drawn.groups, *drawn.queues]
        for name in names:
            below = [each for each in drawn.queues if name in (each, drawn.group[each], drawn.group[drawn.group[each]])]
            free = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
            quota = sum(sum(drawn.owed[each]) for each in below)
            spec: dict[str, Any] = {"resources": {"gpu": free | {"quota": quota}, "cpu": free, "memory": free}}
            top = name
            while top in drawn.group:
                top = drawn.group[top]
            if name != top:
                spec["parentQueue"] = drawn.group[name]
            meta = {"name": name, "labels": {"kai.scheduler/node-pool": TYPES[int(top[3:]) % len(TYPES)]}}
            yield {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": meta, "spec": spec}
        yield from _classes()
        for name, queue, gpus, kind, priority, second, on in drawn.gangs:
            pool = {"kai.scheduler/node-pool": kind}
            yield {
                "apiVersion": "scheduling.run.ai/v2alpha2",
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": "all", "labels": pool, "creationTimestamp": _at(second) + "Z"},
                "spec": {"queue": queue, "minMember": 1, "priorityClassName": f"p{priority}"},
            }
            yield _pod(name, _requests(gpus), on, pool, schedulerName="kai-scheduler")
        yield from _nodes(drawn, "kai.scheduler/node-pool")

    return _items(folder, objects())


def volcano(drawn: Drawn, folder: Path) -> list[Path]:
    """Queues with what they deserve, PodGroups."""
    gpu = "nvidia.com/{}"

    def objects() -> Iterator[dict[str, Any]]:
        api = {"apiVersion": "scheduling.volcano.sh/v1beta1"}
        held = {name: dict.fromkeys(TYPES, 0) for name in drawn.queues}
        for _, queue, gpus, kind, _, _, on in drawn.gangs:
            held[queue][kind] += gpus if on else 0
        for name in [*drawn.groups, *drawn.queues]:
            spec: dict[str, Any] = {"weight": 1, "reclaimable": True, "parent": drawn.group.get(name, "root")}
            status: dict[str, Any] = {"state": "Open"}
            if name in held:
                spec["deserved"] = {gpu.format(kind): str(n) for kind, n in zip(TYPES, drawn.owed[name], strict=True)}
                status["allocated"] = {gpu.format(kind): str(n) for kind, n in held[name].items()}
            yield api | {"kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": status}
        yield from _classes()
        for name, queue, gpus, kind, priority, second, on in drawn.gangs:
            spec = {"queue": queue, "minMember": 1, "priorityClassName": f"p{priority}"}
            spec["minResources"] = _requests(gpus, gpu.format(kind))
            meta = {"name": name, "namespace": "all", "creationTimestamp": _at(second) + "Z"}
            status = {"phase": "Running", "running": 1} if on else {"phase": "Pending"}
            yield api | {"kind": "PodGroup", "metadata": meta, "spec": spec, "status": status}
        yield from _nodes(drawn, resource=gpu)

    return _items(folder, objects())


def armada(drawn: Drawn, folder: Path) -> list[Path]:
    """Queues, jobs, nodes and the scheduler's configuration. Armada has no groups of queues."""
    jobs = {}
    for name, queue, gpus, kind, priority, second, on in drawn.gangs:
        resources = {"requests": _requests(gpus), "limits": _requests(gpus)}
        pod = {
            "priorityClassName": f"p{priority}",
            "containers": [{"name": "main", "image": "train:1", "resources": resources}],
            "nodeSelector": {"gpu": kind},
        }
        spec = {"id": name, "queue": queue, "created": _at(second) + "Z", "podSpecs": [pod]}
        job: dict[str, Any] = {
            "jobId": name,
            "queue": queue,
            "state": "RUNNING" if on else "QUEUED",
            "jobSpec": spec,
        }
        job["submittedTs"] = _at(second) + "Z"
        if on:
            job["latestRunId"] = f"{name}-run"
            job["jobRuns"] = [{"runId": f"{name}-run", "jobId": name, "state": "RUNNING", "cluster": "c", "node": on}]
        jobs[name] = job

    classes = "".join(f"    p{value}: {{priority: {value}, preemptible: true}}\n" for value in (0, 100, 1000))
    (folder / "scheduler.yaml").write_text(
        f"scheduling:\n  pools: [{{name: default}}]\n  priorityClasses:\n{classes}  defaultPriorityClassName: p0\n"
        "  dominantResourceFairnessResourcesToConsider: [cpu, memory, nvidia.com/gpu]\n"
    )
    (folder / "queues.json").write_text(
        json.dumps({"queues": [{"name": each, "priorityFactor": 1} for each in drawn.queues]})
    )
    (folder / "jobs.json").write_text(json.dumps({"jobDetails": jobs}))
    nodes = _items(folder, _nodes(drawn, "gpu"), "nodes.json")
    return [folder / "queues.json", folder / "jobs.json", *nodes, folder / "scheduler.yaml"]


def slurm(drawn: Drawn, folder: Path) -> list[Path]:
    """Accounts, one user in each, nodes and what squeue prints."""
    tree = {name: [each for each in drawn.group if drawn.group[each] == name] for name in drawn.groups}
    tops = [name for name in drawn.groups if name not in drawn.group]
    shares = [
        "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS|GrpTRESMins|TRESRunMins"
    ]
    shares.append("root||||1000000||1.000000||||")
    draw = random.Random(2)

    def walk(name: str, depth: int) -> None:
        shares.append(f"{' ' * depth}{name}||1||{draw.randint(1, 9999)}||||||")
        for each in tree.get(name, ()):
            walk(each, depth + 1)
        if name not in tree:
            shares.append(f"{' ' * (depth + 1)}{name}|u{name}|1||{draw.randint(1, 9999)}||||||")

    for top in tops:
        walk(top, 1)
    (folder / "sshare.txt").write_text("\n".join(shares) + "\n")
    nodes = (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=32\n   CPUAlloc={CORES * used} CPUEfctv=64 CPUTot=64\n"
        f"   Gres=gpu:{kind}:{ON_NODE}\n   GresUsed=gpu:{kind}:{used}\n"
        f"   RealMemory={ON_NODE * MEMORY * 1024} Sockets=2 Boards=1\n"
        f"   State={'ALLOCATED' if used == ON_NODE else 'MIXED'} ThreadsPerCore=1\n   Partitions=gpu\n"
        f"   CfgTRES=cpu=64,mem={ON_NODE * MEMORY}G,billing=64,gres/gpu={ON_NODE},gres/gpu:{kind}={ON_NODE}\n"
        for name, (kind, used) in drawn.nodes.items()
    )
    (folder / "nodes.txt").write_text("\n".join(nodes))
    with (folder / "squeue.txt").open("w") as file:
        file.write(
            "JOBID|PARTITION|NAME|USER|ACCOUNT|QOS|STATE|PRIORITY|SUBMIT_TIME|NODES|NODELIST(REASON)|TRES_PER_NODE\n"
        )
        for i, (name, queue, gpus, kind, priority, second, on) in enumerate(drawn.gangs, 1):
            state, where = ("RUNNING", on) if on else ("PENDING", "(Priority)")
            file.write(
                f"{i}|gpu|{name}|u{queue}|{queue}|normal|{state}|{priority}|{_at(second)}|1|{where}|gres/gpu:{kind}:{gpus}\n"
            )
    return [folder / name for name in ("sshare.txt", "nodes.txt", "squeue.txt")]


def yarn(drawn: Drawn, folder: Path) -> list[Path]:
    """Queues by weights, what they use of one partition, and the cluster's amounts; containers have no names."""
    below = {name: [each for each in drawn.group if drawn.group[each] == name] for name in drawn.groups}
    below["root"] = [name for name in drawn.groups if name not in drawn.group]
    path = {"root": "root"}
    for name, inside in reversed(below.items()):
        path |= {each: f"{path[name]}.{each}" for each in inside}
    found = {"root.queues": ",".join(below["root"]), "root.capacity": "100"}
    for name, where in path.items():
        if name in drawn.group or name in below:
            found.setdefault(f"{where}.capacity", "1w")
        if below.get(name):
            found[f"{where}.queues"] = ",".join(below[name])
    lines = (
        f"<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>"
        for name, value in found.items()
    )
    (folder / "capacity-scheduler.xml").write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")

    def amounts(gpus: int) -> dict[str, Any]:
        named = {"memory-mb": MEMORY * 1024 * gpus, "vcores": CORES * gpus, "yarn.io/gpu": gpus}
        return {"resourceInformations": {"resourceInformation": [{"name": n, "value": v} for n, v in named.items()]}}

    uses, waits = dict.fromkeys(drawn.queues, 0), dict.fromkeys(drawn.queues, 0)
    for _, queue, gpus, _, _, _, on in drawn.gangs:
        (uses if on else waits)[queue] += gpus
    nested: dict[str, Any] = {}
    for name in [*drawn.queues, *below]:
        one: dict[str, Any] = {"queueName": name, "queuePath": path[name], "state": "RUNNING"}
        if name in below:
            one["queues"] = {"queue": [nested[each] for each in below[name]]}
        else:
            usage = {"partitionName": "", "used": amounts(uses[name]), "pending": amounts(waits[name])}
            one |= {"type": "capacitySchedulerLeafQueueInfo", "resources": {"resourceUsagesByPartition": [usage]}}
        nested[name] = one
    root = nested["root"] | {"type": "capacityScheduler"}
    (folder / "scheduler.json").write_text(json.dumps({"scheduler": {"schedulerInfo": root}}))
    whole = {"totalClusterResourcesAcrossPartition": amounts(ON_NODE * len(drawn.nodes))}
    (folder / "metrics.json").write_text(json.dumps({"clusterMetrics": whole}))
    return [folder / name for name in ("capacity-scheduler.xml", "scheduler.json", "metrics.json")]


SCHEDULERS: dict[str, Callable[[Drawn, Path], list[Path]]] = {
    each.__name__: each for each in (slurm, kueue, kai, volcano, yarn, armada)
}


def measured(command: list[str]) -> tuple[float, float, int, bytes]:
    """Return seconds of processor, MB, exit code and the output of a command.

    The seconds of a solver's process that it leaves behind are counted, on Linux, where orphans can be adopted.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    with suppress(ChildProcessError):  # there are no more
        while True:
            _, _, more = os.wait3(0)
            seconds += more.ru_utime + more.ru_stime
    return seconds, used.ru_maxrss / 1024, process.returncode, printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedulers", nargs="*", default=list(SCHEDULERS), choices=list(SCHEDULERS))
    parser.add_argument("--commands", nargs="*", default=["audit", "explain", "whatif", "page"])
    parser.add_argument("--queues", type=int, default=2_000)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=50_000)
    parser.add_argument("--folder", type=Path, default=Path("build/large_clusters"))
    given = parser.parse_args()
    drawn = Drawn.of(given.queues, given.running, given.waiting)
    program = str(Path(sys.executable).with_name("fairopt"))
    print(f"{given.queues} queues, {given.running} gangs that run, {given.waiting} that wait")
    print(f"{'scheduler':10} {'command':8} {'CPU s':>7} {'MB':>6}  exit")
    for name in given.schedulers:
        folder = given.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        # A queue of KAI is in one node pool.
        cluster = Drawn.of(given.queues, given.running, given.waiting, one_type=True) if name == "kai" else drawn
        files = [str(path) for path in SCHEDULERS[name](cluster, folder)]
        queue = f"root.top0.g0.{drawn.queues[0]}" if name == "yarn" else drawn.queues[0]
        queue = f"{queue}/u{queue}" if name == "slurm" else queue
        quota = {"volcano": "nvidia.com/h100.quota=50", "kueue": "h100.quota=50", "kai": f"{TYPES[0]}.quota=50"}
        value = quota.get(name, "weight=2")
        for command, more in {
            "audit": ["audit"],
            "explain": ["explain", queue],
            "whatif": ["whatif", "--set", f"{queue}.{value}"],
            "page": ["audit", "--html", str(folder / "page.html")],
        }.items():
            if command in given.commands:
                line = [program, more[0], *files, *more[1:], "--from", name]
                seconds, most, code, printed = measured(line)
                (folder / f"{command}.txt").write_bytes(printed)
                print(f"{name:10} {command:8} {seconds:7.2f} {most:6.0f}  {code}", flush=True)


if __name__ == "__main__":
    main()
