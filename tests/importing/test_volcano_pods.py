"""Volcano's pods and the scheduler's configuration: gangs of pod groups without minResources, and what is played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairopt import allocate
from fairopt.importing.imported import Imported
from fairopt.importing.volcano import read
from fairopt.models import VolcanoProportion

GPU, API = "nvidia.com/gpu", "scheduling.volcano.sh/v1beta1"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {GPU: "8"}}}


def queue(name: str) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def group(name: str, of: str, least: int, phase: str = "Inqueue") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns"}
    spec = {"queue": of, "minMember": least}
    return {"apiVersion": API, "kind": "PodGroup", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pod(name: str, of: str, *, runs: bool = False, stops: bool = True) -> dict[str, Any]:
    notes = {"scheduling.k8s.io/group-name": of, "volcano.sh/preemptable": str(stops).lower()}
    spec = {"containers": [{"name": "c", "resources": {"requests": {GPU: "2"}}}]} | ({"nodeName": "n"} if runs else {})
    metadata = {"name": name, "namespace": "ns", "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def configured(text: str) -> dict[str, Any]:
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}


def imported(tmp_path: Path, *items: dict[str, Any]) -> Imported:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [NODE, *items]}), encoding="utf-8")
    return read(path)


def test_the_least_pods_of_a_group_are_a_gang_and_others_gangs_of_their_own(tmp_path: Path) -> None:
    running = [pod("a-0", "a", runs=True), pod("a-1", "a", runs=True, stops=False)]
    found = imported(
        tmp_path, queue("q"), group("a", "q", 1, "Running"), *running, pod("a-2", "a"),
        group("b", "q", 2), *(pod(f"b-{at}", "b") for at in range(3)), group("c", "q", 1),
    )  # fmt: skip
    gangs = found.problem.entitlements.gangs
    columns = (gangs.gpus, gangs.on, gangs.preemptible)
    rows = {name: tuple(int(each[at]) for each in columns) for at, name in enumerate(gangs.names)}
    assert rows == {
        "ns/a": (2, 0, 1),
        "ns/a+1": (2, 0, 0),
        "ns/a+2": (2, -1, 1),
        "ns/b": (4, -1, 1),
        "ns/b+1": (2, -1, 1),
        "ns/c": (0, -1, 1),
    }
    listed = "\n".join(map(str, found.unplaced))
    assert "PodGroup, spec.minResources: 'not given' ('ns/c')" in listed
    assert "PodGroup, pods beyond spec.minMember" in listed


def test_the_configuration_says_whether_queues_reclaim(tmp_path: Path) -> None:
    running = [pod(f"a-{at}", "a", runs=True) for at in range(4)]
    items = [queue("q"), queue("r"), group("a", "q", 0, "Running"), *running, group("b", "r", 1), pod("b-0", "b")]
    stops = {}
    for actions in ("enqueue, allocate", "allocate, reclaim, preempt"):
        text = f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: gang\n  - name: tdm\n    enabledJobOrder: false\n'
        found = imported(tmp_path, *items, configured(text))
        stops[actions] = len(allocate(VolcanoProportion(), found.problem).evidence.stopped)
        listed = "\n".join(map(str, found.unplaced))
        assert "plugins: 'tdm'" in listed
        assert "enabledJobOrder" in listed
        assert "'preempt'" not in listed
    assert stops == {"enqueue, allocate": 0, "allocate, reclaim, preempt": 1}
    assert not allocate(VolcanoProportion(reclaim=False), found.problem).evidence.stopped


def test_the_configuration_says_who_may_be_preempted(tmp_path: Path) -> None:
    """That of Volcano's Helm chart, with the action; in the one in its code gang and drf are asked, too."""
    helm = (
        'actions: "enqueue, allocate, preempt, backfill"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
        "    enablePreemptable: false\n  - name: conformance\n- plugins:\n  - name: drf\n    enablePreemptable: false\n"
    )
    for text, asked in (
        (helm, "priority, conformance"),
        (helm.replace("false", "true"), "priority, gang, conformance"),
    ):
        found = imported(tmp_path, queue("q"), configured(text))
        said = found.problem.entitlements.settings[""]
        assert said == {"scheduler": "volcano", "actions": "allocate, preempt", "preemptable": asked}
        listed = "\n".join(map(str, found.unplaced))
        assert ("plugins, enablePreemptable: 'drf'" in listed) == ("gang" in asked)


def prioritised(name: str, value: int, **said: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | said


def of_class(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {**given, "spec": {**given["spec"], "priorityClassName": name}}


def test_a_job_preempts_within_its_queue_by_the_classes_of_the_files(tmp_path: Path) -> None:
    text = 'actions: "allocate, preempt"\ntiers:\n- plugins:\n  - name: priority\n  - name: conformance\n'
    running = [pod("a-0", "a", runs=True), pod("b-0", "b", runs=True), pod("c-0", "c", runs=True)]
    items = [
        configured(text), queue("q"), queue("r"), prioritised("usual", 5, globalDefault=True), prioritised("high", 9),
        prioritised("low", 1), group("a", "q", 1, "Running"), of_class(group("b", "q", 1, "Running"), "low"),
        of_class(group("c", "r", 1, "Running"), "low"), of_class(group("d", "q", 1), "high"), *running,
    ]  # fmt: skip
    waits = pod("d-0", "d")
    waits["spec"]["containers"][0]["resources"]["requests"][GPU] = "4"
    evidence = allocate(VolcanoProportion(), imported(tmp_path, *items, waits).problem).evidence
    assert evidence.stopped == {"ns/b": "'ns/d' preempts it within 'q': it has priority 9, and this 1"}
    never = {**waits, "spec": {**waits["spec"], "preemptionPolicy": "Never"}}
    assert not allocate(VolcanoProportion(), imported(tmp_path, *items, never).problem).evidence.stopped
    critical = {**running[1], "spec": {**running[1]["spec"], "priorityClassName": "system-node-critical"}}
    market = imported(tmp_path, *[critical if each is running[1] else each for each in items], waits).problem
    assert set(allocate(VolcanoProportion(), market).evidence.stopped) == {"ns/a"}  # of the default class, 5


def test_places_for_pods_are_counted_where_pods_are_preempted(tmp_path: Path) -> None:
    node = {**NODE, "status": {"allocatable": {GPU: "8", "pods": "1"}}, "metadata": {"name": "m"}}
    for actions, columns in (("allocate", 1), ("allocate, preempt", 2)):
        found = imported(
            tmp_path, queue("q"), node, group("a", "q", 1), pod("a-0", "a"), configured(f"actions: {actions}")
        )
        assert len(found.problem.entitlements.columns) == columns


def test_a_class_that_is_not_given_is_named(tmp_path: Path) -> None:
    found = imported(tmp_path, queue("q"), of_class(group("a", "q", 1), "high"), pod("a-0", "a"))
    assert "no such PriorityClass is given; taken as 0" in "\n".join(map(str, found.unplaced))
