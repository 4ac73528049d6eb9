"""Schedulers' own test cases, played: their objects go through the importers, and the policies decide.

A case is the set-up and the expected outcome of one row of a scheduler's own tests, as data: ``objects`` as kubectl
prints them (a number stands for one of the file's ``shared`` ones), and ``want``. It was taken before the policy's
outcome was seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fairopt import decide
from fairopt.errors import FairoptError
from fairopt.importing.armada import read as read_armada
from fairopt.importing.imported import Imported
from fairopt.importing.kai import read as read_kai
from fairopt.importing.kubernetes import pod_requests
from fairopt.importing.kueue import read as read_kueue
from fairopt.importing.unplaced import MINOR
from fairopt.importing.volcano import read as read_volcano
from fairopt.importing.yarn import read as read_yarn
from fairopt.models import Armada, Kai, Kueue, VolcanoCapacity, VolcanoProportion, YarnCapacity
from fairopt.policy import DecisionReason, Policy
from fairopt.problem import Gangs
from fairopt.problem.files.schema import ObjectPart

FOLDER = Path(__file__).parent


@dataclass
class Case:
    """A row of a scheduler's own tests, with its objects in full."""

    scheduler: str
    said: Mapping[str, Any]
    objects: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.said['test']}: {self.said['name']}"

    @property
    def want(self) -> Any:
        return self.said["want"]


@dataclass
class Played:
    """What came out of a case, what the importer listed, and why nothing came out, if so."""

    found: Any
    listed: str
    refused: str = ""


def cases_of(scheduler: str) -> Iterator[Case]:
    """Yield the cases of a scheduler's file."""
    data = json.loads((FOLDER / f"{scheduler}.json").read_text(encoding="utf-8"))
    for said in data["cases"]:
        found = [data["shared"][each] if isinstance(each, int) else each for each in said["objects"]]
        yield Case(scheduler, said, found)


def source_of(scheduler: str) -> str:
    """Return which repository, at which commit, a scheduler's cases are from, and which folder, if they are in one."""
    data = json.loads((FOLDER / f"{scheduler}.json").read_text(encoding="utf-8"))
    return f"{data['repository']} at `{data['commit'][:8]}`{', ' * ('folder' in data)}{data.get('folder', '')}"


def play(case: Case, folder: Path) -> Played:
    """Return what fairopt makes of a case."""
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "items": case.objects}), encoding="utf-8")
    try:
        read, rule, outcome = RULES[case.scheduler](case, path)
        decision = decide(rule, read.problem, exact=True)
    except FairoptError as error:
        return Played(None, str(error), str(error))
    listed = "\n".join(str(each) for each in read.unplaced if each.why not in MINOR)
    assert isinstance(decision.evidence, DecisionReason)
    return Played(outcome(read, decision.evidence), listed)


def changed(read: Imported, grounds: DecisionReason) -> tuple[dict[str, str], list[str]]:
    """Return the gangs that start, with their types, and those that are stopped."""
    owed = read.problem.entitlements
    before: Gangs = owed.gangs
    assert before.names == grounds.gangs.names
    starts = {
        before.names[at]: owed.types[grounds.gangs.on[at]]
        for at in np.flatnonzero(before.pending & ~grounds.gangs.pending)
    }
    return starts, list(grounds.stopped)


# -- Kueue ---------------------------------------------------------------------------------------------------------
def _kueue(case: Case, path: Path) -> tuple[Imported, Policy, Any]:
    read = read_kueue(path, resource=case.said["resource"])
    return read, Kueue(cycles=case.said.get("cycles", 1)), lambda *found: _kueue_outcome(case, *found)


def _kueue_outcome(case: Case, read: Imported, grounds: DecisionReason) -> dict[str, Any]:
    """Return the flavor of each pod set of who is admitted, on which nodes its pods are, and who is preempted."""
    starts, stopped = changed(read, grounds)
    admitted: dict[str, dict[str, Any]] = {}
    known = {_key(each): each for each in case.objects if each["kind"] == "Workload"}
    for gang, kind in starts.items():
        workload = gang if gang in known else gang.rpartition("/")[0]
        sets = known[workload]["spec"]["podSets"]
        pod_sets = [each["name"] for each in sets]
        asks = any(case.said["resource"] in json.dumps(each) for each in sets)
        flavor = kind if asks else None  # of another resource, which is no type here
        own = [gang.rpartition("/")[2]] if workload != gang else pod_sets
        admitted.setdefault(workload, {}).update(dict.fromkeys(own, flavor))
        before, after = (each.gpus[each.names.index(gang)] for each in (read.problem.entitlements.gangs, grounds.gangs))
        if after < before:
            admitted[workload]["pods"] = _fewer_pods(sets, case.said["resource"], before - after)
        placed = grounds.gangs.settings[grounds.gangs.names.index(gang)] if grounds.gangs.settings else {}
        for each in json.loads(placed.get("topology", "[]")):
            if each["at"]:  # not of a pod set without pods
                admitted[workload].setdefault("nodes", {})[each["name"]] = each["at"]
    gone = {each if each in known else each.rpartition("/")[0] for each in stopped}
    return {"admitted": admitted, "preempted": sorted(gone)}


def _fewer_pods(sets: list[dict[str, Any]], resource: str, less: int) -> dict[str, int]:
    """Return the pods of those pod sets that start with fewer, by how much less of a resource all of them take."""
    spare = [each["count"] - each.get("minCount", each["count"]) for each in sets]
    one = [pod_requests(ObjectPart("", each["template"]["spec"])).get(resource, Fraction(0)) for each in sets]
    for step in range(sum(spare) + 1):
        without = [most * step // sum(spare) for most in spare]
        if sum(count * takes for count, takes in zip(without, one, strict=True)) == less:
            return {each["name"]: each["count"] - count for each, count in zip(sets, without, strict=True) if count}
    raise AssertionError(f"no step takes {less} less")


def kueue_wanted(case: Case) -> dict[str, Any]:
    """Return what is expected of a case in the words of the outcome."""
    admitted = {}
    for name, own in case.want["admitted"].items():
        flavors = {pods: said.get(case.said["resource"]) for pods, said in own["flavors"].items()}
        first = next((each for each in flavors.values() if each), None)  # pods that take nothing of it go along
        admitted[name] = {pods: flavor or first for pods, flavor in flavors.items()}
        admitted[name] |= {key: own[key] for key in ("pods", "nodes") if key in own}
    return {"admitted": admitted, "preempted": case.want.get("preempted", [])}


def _key(item: Mapping[str, Any]) -> str:
    metadata = item["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))


# -- KAI -----------------------------------------------------------------------------------------------------------
def _kai(case: Case, path: Path) -> tuple[Imported, Policy, Any]:
    return read_kai(path), Kai(cycles=case.said.get("cycles", 1)), lambda *found: _kai_outcome(case, *found)


def _kai_outcome(case: Case, read: Imported, grounds: DecisionReason) -> dict[str, Any]:
    """Return how many pods of each pod group run in the end; None where a group is no gang, 0 where its pods end."""
    gangs = grounds.gangs
    cpu = gangs.resources.index("cpu") if "cpu" in gangs.resources else None
    runs: dict[str, Any] = dict.fromkeys(case.want)
    pods: dict[str, Any] = {}
    first: dict[str, int] = {}
    for each in case.objects:
        if each.get("kind") == "PodGroup":
            first[each["metadata"]["name"]] = each["spec"].get("minMember", 1)
        elif each.get("kind") == "Pod":
            group = each["metadata"]["annotations"]["pod-group-name"]
            pods[group] = pod_requests(ObjectPart("", each["spec"]))
            if "deletionTimestamp" in each["metadata"] and group in runs:
                runs[group] = 0
    for at, gang in enumerate(gangs.names):
        group = gang.split("/", 1)[1].partition("+")[0]
        if group not in runs:
            continue
        one = pods[group]
        gpus = one.get("nvidia.com/gpu", 0)
        takes, each_takes = (gangs.gpus[at], gpus) if gpus else (gangs.other[at, cpu], one.get("cpu", 0))
        count = takes / each_takes if each_takes else 1 if "+" in gang else first[group]  # of pods that take nothing
        if gangs.settings and "kai.pods" in gangs.settings[at]:
            count = len(gangs.settings[at]["kai.pods"].split())
        runs[group] = (runs[group] or 0) + (int(count) if gangs.on[at] >= 0 else 0)
    return runs


# -- Volcano -------------------------------------------------------------------------------------------------------
def _volcano(case: Case, path: Path) -> tuple[Imported, Policy, Any]:
    rule = VolcanoCapacity() if case.said["plugin"] == "capacity" else VolcanoProportion()
    return read_volcano(path, resource=case.said["resource"]), rule, lambda *found: _volcano_outcome(case, *found)


def _volcano_outcome(case: Case, read: Imported, grounds: DecisionReason) -> dict[str, Any]:
    """Return how many pods start, and are stopped; by pod group where the case says so."""
    owed = read.problem.entitlements
    groups: dict[str, list[Any]] = {}
    least: dict[str, int] = {}
    for each in case.objects:
        if each["kind"] == "Pod":
            group = each["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
            groups.setdefault(f"{each['metadata'].get('namespace')}/{group}", []).append(each)
        elif each["kind"] == "PodGroup":
            least[_key(each)] = each["spec"].get("minMember", 0)

    def pods(gang: str) -> tuple[str, int]:
        """Return the group of a gang, and how many pods it is: the first of those that run, and of those that wait."""
        group, beyond = gang.partition("+")[0], "+" in gang
        runs = sum("nodeName" in each["spec"] for each in groups[group])
        waits = owed.gangs.on[owed.gangs.names.index(gang)] < 0
        if not waits:
            return group, 1 if beyond or not least[group] else min(least[group], runs)
        before = -(-runs // 1) if not least[group] else 1 + max(0, runs - least[group]) if runs else 0
        first = max(0, least[group] - runs)
        number = int(gang.rpartition("+")[2]) if beyond else 0
        return group, first if first > 1 and number == before else 1

    starts, stopped = changed(read, grounds)
    found: dict[str, Any] = {}
    for key, gangs in (("starts", list(starts)), ("stops", stopped)):
        count: Counter[str] = Counter()
        for gang in gangs:
            group, number = pods(gang)
            count[group.rpartition("/")[2]] += number
        if key in case.want:
            found[key] = dict(count) if isinstance(case.want[key], dict) else sum(count.values())
    return found


# -- Armada --------------------------------------------------------------------------------------------------------
def _armada(case: Case, path: Path) -> tuple[Imported, Policy, Any]:
    """Jobs stand in rows of equal ones, and are written out as the API's answer has them."""
    jobs: dict[str, Any] = {}
    for row in case.said["jobs"]:
        for _ in range(row["count"]):
            name = f"{row['queue']}-{len(jobs):04}"
            pod = {"priorityClassName": row["class"], "containers": [{"resources": {"requests": row["requests"]}}]}
            pod |= {key: row[key] for key in ("nodeSelector", "affinity", "tolerations") if key in row}
            spec = {"priority": row.get("priority", 1000), "podSpecs": [pod], "annotations": row.get("annotations", {})}
            time = f"2026-08-01T{len(jobs) // 3600:02}:{len(jobs) // 60 % 60:02}:{len(jobs) % 60:02}Z"
            jobs[name] = {
                "jobId": name,
                "queue": row["queue"],
                "state": row["state"],
                "submittedTs": time,
                "jobSpec": spec,
            }
    # the tests' configuration is all there is: what it does not set is 0, where Armada's own configuration has 1
    zero = {"protectedFractionOfFairShare": 0}
    objects = [{"scheduling": zero | each["scheduling"]} if "scheduling" in each else each for each in case.objects]
    path.write_text(json.dumps({"items": [*objects, {"jobDetails": jobs}]}), encoding="utf-8")
    gpus = any("nvidia.com/gpu" in row["requests"] for row in case.said["jobs"])
    read = read_armada(path, resource=None if gpus else "cpu")
    return read, Armada(), lambda *found: _armada_outcome(case, *found)


def _armada_outcome(case: Case, read: Imported, grounds: DecisionReason) -> dict[str, Any]:
    """Return how many jobs of each queue start, and how many are preempted."""
    gangs = grounds.gangs
    size = Counter(gang for row in case.said["jobs"] for gang in [row.get("annotations", {}).get(_GANG)] * row["count"])
    users = dict(zip(gangs.names, (read.problem.users[at] for at in gangs.user), strict=True))
    starts, stopped = changed(read, grounds)
    found: dict[str, Counter[str]] = {"starts": Counter(), "stops": Counter()}
    for key, names in (("starts", list(starts)), ("stops", stopped)):
        for name in names:
            found[key][users[name]] += size.get(name, 1)
    return {key: dict(count) for key, count in found.items()}


_GANG = "armadaproject.io/gangId"


# -- YARN ----------------------------------------------------------------------------------------------------------
def _yarn(case: Case, path: Path) -> tuple[Imported, Policy, Any]:
    """Queues stand in rows of guaranteed, maximum, used and pending amounts by partition, and are written as YARN's.

    Capacities are weights, which are exact. The tests have a DefaultResourceCalculator, and preempt at once.
    """
    xml, answer = path.with_name("capacity-scheduler.xml"), path.with_name("scheduler.json")
    rows, total = case.said["queues"], case.said["total"]
    paths = {"root": "root"}
    for row in rows:
        paths[row["name"]] = f"{paths[row['parent']]}.{row['name']}"
    lines = []
    below: dict[str, list[str]] = {}
    for row in rows:
        below.setdefault(row["parent"], []).append(row["name"])
    for name, inner in below.items():
        lines.append((f"{paths[name]}.queues", ",".join(inner)))
    for row in rows:
        own = paths[row["name"]]
        lines.append((f"{own}.accessible-node-labels", ",".join(filter(None, row["amounts"])) or " "))
        lines += [(f"{own}.user-limit-factor", "1000"), (f"{own}.priority", str(row.get("priority", 0)))]
        for label, (least, most, *_) in row["amounts"].items():
            before = f"{own}.accessible-node-labels.{label}." if label else f"{own}."
            lines += [
                (f"{before}capacity", f"{least}w"),
                (f"{before}maximum-capacity", f"{100 * most // total[label]}"),
            ]
    lines += [("root.accessible-node-labels", "*"), ("resource-calculator", "DefaultResourceCalculator")]
    lines += [(f"root.accessible-node-labels.{label}.capacity", "100") for label in total if label]
    text = "".join(f"<property><name>yarn.scheduler.capacity.{a}</name><value>{b}</value></property>" for a, b in lines)
    xml.write_text(f"<configuration>{text}</configuration>", encoding="utf-8")

    def amount(number: int) -> dict[str, Any]:
        return {"resourceInformations": {"resourceInformation": [{"name": "memory-mb", "value": number}]}}

    def told(name: str, parent: str) -> dict[str, Any]:
        row = next((each for each in rows if each["name"] == name), {"amounts": {}})
        usages = [
            {"partitionName": label, "used": amount(used), "pending": amount(pending)}
            for label, (_, _, used, pending) in row["amounts"].items()
        ]
        said: dict[str, Any] = {"queueName": name, "preemptionDisabled": row.get("disabled", False)}
        said["resources"] = {"resourceUsagesByPartition": usages}
        if name in below:
            said["queues"] = {"queue": [told(each, name) for each in below[name]]}
        return said

    root = told("root", "") | {"type": "capacityScheduler"}
    parts = [{"partitionName": label, "effectiveMinResource": amount(each)} for label, each in total.items()]
    root["capacities"] = {"queueCapacitiesByPartition": parts}
    answer.write_text(json.dumps({"scheduler": {"schedulerInfo": root}}), encoding="utf-8")
    rule = YarnCapacity(preemption=True, natural_termination_factor=Fraction(1), total_preemption_per_round=Fraction(1))
    return read_yarn(xml, answer, resource="memory-mb"), rule, _yarn_outcome


def _yarn_outcome(read: Imported, grounds: DecisionReason) -> dict[str, Any]:
    """Return how many containers are preempted from each queue."""
    gangs = grounds.gangs
    users = dict(zip(gangs.names, (read.problem.users[at] for at in gangs.user), strict=True))
    return dict(Counter(users[name].rpartition(".")[2] for name in grounds.stopped))


RULES = {"kueue": _kueue, "kai": _kai, "volcano": _volcano, "armada": _armada, "yarn": _yarn}
WANTED = {
    "kueue": kueue_wanted,
    "kai": lambda case: dict(case.want),
    "volcano": lambda case: dict(case.want),
    "armada": lambda case: dict(case.want),
    "yarn": lambda case: dict(case.want),
}
