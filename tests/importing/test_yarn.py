"""YARN's files: capacities of queues by partition, what the cluster says, and that nothing breaks on bad ones."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import CHANGES, STRANGE, Spot, answered_or_refused, mutated, spots

from fairopt.audit.settings import read_setting, with_settings
from fairopt.errors import BadInput, NotCapable
from fairopt.importing import yarn
from fairopt.importing.yarn_objects import METRICS, PREFIX, PROPERTIES, QUEUE, SCHEDULER, emit, properties
from fairopt.problem import Market

SAMPLES = Path(str(files("fairopt.datasets") / "clusters" / "yarn"))
CONFIG, SCHEDULED, MEASURED = (SAMPLES / name for name in ("capacity-scheduler.xml", "scheduler.json", "metrics.json"))


def _config(tmp_path: Path, given: dict[str, str]) -> Path:
    text = "".join(
        f"<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>"
        for name, value in given.items()
    )
    path = tmp_path / "capacity-scheduler.xml"
    path.write_text(f"<configuration>{text}</configuration>")
    return path


def _cluster(tmp_path: Path, memory: int, cores: int, gpus: int) -> Path:
    amounts = [
        {"name": "memory-mb", "value": memory},
        {"name": "vcores", "value": cores},
        {"name": "yarn.io/gpu", "value": gpus},
    ]
    whole = {"resourceInformations": {"resourceInformation": amounts}}
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps({"clusterMetrics": {"totalClusterResourcesAcrossPartition": whole}}))
    return path


AMOUNTS = {
    "root.queues": "train,infer",
    "root.train.queues": "a,b",
    "root.train.capacity": "[memory=600,vcores=60,yarn.io/gpu=12]",
    "root.train.maximum-capacity": "[memory=900,vcores=90,yarn.io/gpu=14]",
    "root.train.a.capacity": "[memory=400,vcores=40,yarn.io/gpu=8]",
    "root.train.b.capacity": "[memory=200,vcores=20,yarn.io/gpu=2]",
    "root.infer.capacity": "[memory=400,vcores=40,yarn.io/gpu=2]",
}


def test_a_change_is_written_as_properties(tmp_path: Path) -> None:
    """What `emit` writes, in the place of the properties of those names, is read as the changed market."""
    cluster = _cluster(tmp_path, 1000, 100, 16)
    before = yarn.read(_config(tmp_path, AMOUNTS), cluster).problem
    changes = ["root.train.b.default.quota=4", "root.infer.default.cap=6", "root.infer.priority=3"]
    after = with_settings(before, [read_setting(each, before) for each in changes])
    written = tmp_path / "change.xml"
    written.write_text(emit(before, after))
    merged = AMOUNTS | {name.removeprefix(PREFIX): value for name, value in properties(written).items()}
    assert merged["root.train.b.capacity"] == "[yarn.io/gpu=4,memory-mb=200,vcores=20]"
    assert merged["root.train.capacity"] == "[yarn.io/gpu=14,memory-mb=600,vcores=60]"  # it has what its queues have
    changed = {name for name in merged if merged[name] != AMOUNTS.get(name)}
    assert changed == {
        *(f"root.{name}.capacity" for name in ("train", "train.a", "train.b", "infer")),
        *("root.infer.maximum-capacity", "root.infer.priority"),
    }
    assert yarn.read(_config(tmp_path, merged), cluster).problem.entitlements == after.entitlements
    assert emit(before, before) == ""


def test_what_yarn_cannot_be_told_is_refused_or_said(tmp_path: Path) -> None:
    before = yarn.read(_config(tmp_path, AMOUNTS), _cluster(tmp_path, 1000, 100, 16)).problem

    def changed(setting: str) -> Market:
        return with_settings(before, [read_setting(setting, before)])

    with pytest.raises(NotCapable, match="not whole"):
        emit(before, changed("root.infer.default.quota=7/2"))
    assert "<!-- root.infer: borrow weight changes; YARN has none -->" in emit(before, changed("root.infer.weight=2"))
    with pytest.raises(BadInput, match="not the same queues"):
        emit(before, before.plain())


def test_a_leaf_queue_is_a_user_and_a_partition_is_a_type() -> None:
    found = yarn.read(CONFIG, SCHEDULED, MEASURED)
    owed = found.problem.entitlements
    assert found.problem.types == ("a100", "h100")
    assert found.problem.capacity.tolist() == [16, 8]
    assert found.problem.users == ("root.research.vision", "root.research.language", "root.serving", "root.default")
    assert owed.groups == ("root.research",)
    gpus = dict(zip(owed.nodes, owed.guarantee[:, :2].tolist(), strict=True))
    assert gpus["root.research"] == [12, 4]  # 75% and 50%
    assert gpus["root.research.vision"] == [8, 0]  # weight 2 of 3; no access to h100
    assert gpus["root.research.language"] == [4, 4]
    caps = dict(zip(owed.nodes, owed.cap[:, :2].tolist(), strict=True))
    assert caps["root.research.vision"] == [Fraction(64, 5), 0]  # 80% of what research may have
    assert caps["root.serving"] == [8, 8]  # one user with factor 2: less than the maximum of 100%
    assert owed.held[2].tolist()[:2] == [2, 5]
    assert owed.fixed[2].tolist()[:2] == [2, 5]  # preemption is off
    assert owed.tier[owed.node("root.serving")] == 5


def test_a_total_of_all_partitions_is_not_taken_for_that_of_one(tmp_path: Path) -> None:
    given = {"root.queues": "a,b", "root.a.capacity": 40, "root.b.capacity": 60}
    metrics = _cluster(tmp_path, 1024, 8, 16)
    assert yarn.read(_config(tmp_path, given), metrics).problem.capacity.tolist() == [16]
    labelled = given | {"root.b.accessible-node-labels": "gpu", "root.b.accessible-node-labels.gpu.capacity": 100}
    with pytest.raises(BadInput, match="the metrics add up all partitions, and no file says how much of it gpu has"):
        yarn.read(_config(tmp_path, labelled), metrics)


def test_computed_capacities_are_those_that_the_cluster_declares() -> None:
    found = yarn.read(CONFIG, SCHEDULED, MEASURED)
    owed = found.problem.entitlements
    for name in found.problem.users[:3]:
        for j, label in enumerate(found.problem.types):
            said = found.declared[name].get(f"effectiveMinResource of {label}", {"yarn.io/gpu": 0})["yarn.io/gpu"]
            assert owed.guarantee[owed.node(name), j] == said


def test_pending_and_used_containers_are_gangs_of_one() -> None:
    gangs = yarn.read(CONFIG, SCHEDULED, MEASURED).problem.entitlements.gangs
    assert gangs.gpus.tolist() == [1] * 35
    assert gangs.held(4).tolist() == [[10, 0], [4, 0], [2, 5], [0, 0]]
    waiting = [gangs.names[g] for g in range(len(gangs)) if gangs.pending[g]]
    assert sum(name.startswith("root.research.language h100") for name in waiting) == 8


def test_every_property_and_field_that_is_read_occurs_in_the_samples() -> None:
    text = CONFIG.read_text()
    for name in (*PROPERTIES, *SCHEDULER):
        for part in name.replace("<user>", "ada").replace("<label>", "a100").split("<"):
            assert part in text or name == "config.", name
    said = SCHEDULED.read_text() + MEASURED.read_text()
    for name in (*QUEUE, *METRICS):
        assert f'"{name.rpartition(".")[2].removesuffix("[]")}"' in said or name in ("schedulerName",), name


@pytest.mark.parametrize(
    ("capacities", "guarantees"),
    [
        # CapacityScheduler.md, Configuring Resource Allocation: weights 3, 2 and 5 are 30%, 20% and 50%
        ({"a": "3w", "b": "2w", "c": "5w"}, [30, 20, 50]),
        # ... and with a new queue of weight 10, 15%, 10%, 25% and 50%
        ({"a": "3w", "b": "2w", "c": "5w", "d": "10w"}, [15, 10, 25, 50]),
        ({"a": "12.5", "b": "87.5"}, [Fraction(25, 2), Fraction(175, 2)]),
        ({"a": "[memory=10,vcores=12,yarn.io/gpu=4]", "b": "[yarn.io/gpu=90]"}, [4, 90]),
        ({"a": "[yarn.io/gpu=150]", "b": "[yarn.io/gpu=50]"}, [75, 25]),  # more than there is: scaled
        ({"a": "[yarn.io/gpu=20]", "b": "[yarn.io/gpu=25%]", "c": "[yarn.io/gpu=3w]"}, [20, 20, 60]),
    ],
)
def test_percent_weights_and_amounts(tmp_path: Path, capacities: dict[str, str], guarantees: list[Any]) -> None:
    given = {"root.queues": ",".join(capacities)} | {f"root.{name}.capacity": each for name, each in capacities.items()}
    found = yarn.read(_config(tmp_path, given), _cluster(tmp_path, 1000, 100, 100))
    assert found.problem.entitlements.guarantee[:, 0].tolist() == guarantees


def test_node_labels_of_the_documents_example(tmp_path: Path) -> None:
    """NodeLabel.md: 4 nodes of 24 cores without a label, one with GPU; a third each, and half each of the GPU node."""
    given = {
        "root.queues": "engineering,marketing,sales",
        "root.engineering.capacity": "33",
        "root.marketing.capacity": "34",
        "root.sales.capacity": "33",
        "root.engineering.accessible-node-labels": "GPU",
        "root.marketing.accessible-node-labels": "GPU",
        "root.engineering.accessible-node-labels.GPU.capacity": "50",
        "root.marketing.accessible-node-labels.GPU.capacity": "50",
        "root.sales.accessible-node-labels": " ",
    }
    partitions = [
        {"partitionName": label, "effectiveMinResource": {"memory": 24576 * nodes, "vCores": 24 * nodes}}
        for label, nodes in (("", 4), ("GPU", 1))
    ]
    cluster = tmp_path / "scheduler.json"
    root = {"type": "capacityScheduler", "queueName": "root", "capacities": {"queueCapacitiesByPartition": partitions}}
    cluster.write_text(json.dumps({"scheduler": {"schedulerInfo": root}}))
    market = yarn.read(_config(tmp_path, given), cluster, resource="vcores").problem
    assert market.types == ("default", "GPU")
    assert market.entitlements.guarantee[:, :2].tolist() == [
        [Fraction(3168, 100), 12],
        [Fraction(3264, 100), 12],
        [Fraction(3168, 100), 0],
    ]
    assert market.entitlements.cap[2, 1] == 0  # sales may not use the GPU partition


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"root.queues": "a,b", "root.a.capacity": "60", "root.b.capacity": "60"}, ["120 per cent", "100 together"]),
        ({"root.queues": "a", "root.a.capacity": "lots"}, ["root.a.capacity", "'lots'", "50, 2w"]),
        ({"root.queues": "a"}, ["root.a.capacity", "missing"]),
        ({"root.queues": "a,a", "root.a.capacity": "100"}, ["root.queues", "'a,a'", "once"]),
        ({"root.queues": "a", "root.a.capacity": "[vcores]"}, ["root.a.capacity", "'[vcores]'", "resource=amount"]),
        ({"root.queues": "a", "root.a.capacity": "100", "root.a.priority": "x"}, ["root.a.priority", "'x'"]),
        ({}, ["no queues", "root.queues"]),
    ],
)
def test_bad_configurations_are_named(tmp_path: Path, given: dict[str, str], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        yarn.read(_config(tmp_path, given), _cluster(tmp_path, 1000, 100, 100))
    assert all(word in str(caught.value) for word in words), str(caught.value)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'<!DOCTYPE c [<!ENTITY l0 "ha">{LAUGHS}]><configuration>&l19;</configuration>', "a document type"),
        ('<!DOCTYPE c SYSTEM "file:///etc/passwd"><configuration/>', "a document type"),
        ("<a>" * 100_000, "the element 'a'"),
        ("<configuration>" + "<property>" + "<a>" * 50, "the element 'a'"),
        ("<configuration><property><name>x</name>", "not XML: no element found"),
        ("<configuration>&nbsp;</configuration>", "not XML: undefined entity"),
        ("<configuration><property><value>1</value></property></configuration>", "a property without a name"),
        ("\x00", "not XML"),
    ],
)
def test_hostile_xml_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.xml"
    path.write_text(text)
    with pytest.raises(BadInput, match=words) as caught:
        yarn.read(path)
    assert "c.xml: line 1" in str(caught.value)


def test_what_the_cluster_does_not_say_is_named() -> None:
    with pytest.raises(BadInput, match="ws/v1/cluster/scheduler"):
        yarn.read(CONFIG)
    with pytest.raises(BadInput, match="resource='vcores'"):
        yarn.read(CONFIG, SCHEDULED, resource="fpga")
    assert any("user-limit-factor" in str(each) for each in yarn.read(SAMPLES / "absolute.xml", MEASURED).unplaced)


ANSWER, TEXT = json.loads(SCHEDULED.read_text()), CONFIG.read_text()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spot=st.sampled_from(spots(ANSWER)), value=STRANGE, how=st.sampled_from(CHANGES))
def test_mutated_answers_are_answered_or_refused(tmp_path: Path, spot: Spot, value: Any, how: str) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps(mutated(ANSWER, spot, value, how)))
    answered_or_refused(lambda: yarn.read(CONFIG, path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.integers(0, len(TEXT)), length=st.integers(0, 30), put=st.text(st.characters(codec="utf-8"), max_size=12)
)
def test_mutated_configurations_are_answered_or_refused(tmp_path: Path, start: int, length: int, put: str) -> None:
    path = tmp_path / "capacity-scheduler.xml"
    path.write_text(TEXT[:start] + put + TEXT[start + length :], encoding="utf-8")
    answered_or_refused(lambda: yarn.read(path, SCHEDULED))


def test_names_are_those_of_the_text_whatever_the_file_says_that_it_was(tmp_path: Path) -> None:
    """Saved as UTF-8, as asked for, it still says ISO-8859-1 in its first line; its queue was called "MÃ¼ller"."""
    path = tmp_path / "capacity-scheduler.xml"
    value = "<property><name>yarn.scheduler.capacity.root.queues</name><value>Müller</value></property>"
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    path.write_text(f"{head}<configuration>{value}</configuration>", encoding="utf-8")
    assert properties(path) == {"yarn.scheduler.capacity.root.queues": "Müller"}
