"""Volcano's files: what is taken, what is named as having no place, and that nothing breaks on bad ones."""

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
from fairopt.importing import volcano
from fairopt.importing.kubernetes import OBJECT
from fairopt.importing.volcano_objects import FIELDS, emit
from fairopt.program import INFINITY

SAMPLES = Path(str(files("fairopt.datasets") / "clusters" / "volcano"))
CAPACITY, HDRF = SAMPLES / "capacity.json", SAMPLES / "hdrf.yaml"


def test_a_leaf_queue_is_a_user_and_its_fields_are_entitlements() -> None:
    market = volcano.read(CAPACITY).problem
    owed = market.entitlements
    assert market.types == ("nvidia.com/a100", "nvidia.com/h100")
    assert market.capacity.tolist() == [32, 16]
    assert (market.users, owed.groups) == (("default", "vision", "language", "serving", "legacy"), ("research",))
    vision = owed.node("vision")
    assert owed.guarantee[vision].tolist() == [12, 0, 200, 1536 * 2**30]  # spec.deserved
    assert owed.reserve[vision].tolist() == [4, 0, 48, 384 * 2**30]  # spec.guarantee.resource
    assert owed.cap[vision].tolist() == [24, 4, INFINITY, INFINITY]  # spec.capability
    assert owed.held[vision].tolist() == [16, 0, 200, 1536 * 2**30]  # status.allocated
    assert owed.parent[vision] == owed.node("research")
    assert owed.guarantee[owed.node("research")].tolist()[:2] == [20, 8]
    assert dict(zip(owed.nodes, owed.tier.tolist(), strict=True))["serving"] == 100
    assert market.weight.tolist() == [1, 2, 1, 2, 1]
    assert not market.known.any()


def test_the_root_is_owed_what_its_queues_are_together(tmp_path: Path) -> None:
    def queue(name: str, **spec: object) -> dict[str, object]:
        api = "scheduling.volcano.sh/v1beta1"
        return {"apiVersion": api, "kind": "Queue", "metadata": {"name": name}, "spec": spec}

    gpus = "nvidia.com/gpu"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {gpus: "24"}}}
    queues = [
        queue("root", capability={gpus: "24"}),
        queue("a", deserved={gpus: "8"}, guarantee={"resource": {gpus: "10"}}),
        queue("b", deserved={gpus: "4"}),
    ]
    path = tmp_path / "queues.json"
    path.write_text(json.dumps({"items": [*queues, node]}))
    owed = volcano.read(path).problem.entitlements
    root = owed.node("root")
    assert (owed.guarantee[root].tolist(), owed.reserve[root].tolist()) == ([14], [10])


def test_pod_groups_are_gangs() -> None:
    gangs = volcano.read(CAPACITY).problem.entitlements.gangs
    found = dict(zip(gangs.names, zip(gangs.gpus, gangs.on, gangs.tier, gangs.preemptible, strict=True), strict=True))
    assert found["vision/segment-large-1"] == (8, 0, 100, True)
    assert found["language/rlhf-a100-2"] == (8, -1, 1000, True)
    assert found["serving/chat-1"] == (4, 1, 10000, False)  # its annotation, and its queue, say that it stays
    assert found["language/translate-eval"] == (4, -1, 100, True)  # a job without a pod group
    assert "legacy/old-1" not in found  # its queue is closed


def test_what_has_no_place_is_named_once() -> None:
    found = volcano.read(CAPACITY)
    said = [str(each) for each in found.unplaced]
    for words in (
        "spec.affinity",
        "the queue is Closed",
        "no node has it",
        "2 nvidia.com/a100",
        "gpu.product",
        "metadata.uid",
    ):
        assert sum(words in each for each in said) == 1, words
    assert len(said) < 40
    assert found.declared["vision"]["status.allocated nvidia.com/a100"] == 16
    assert found.declared["vision"]["running"] == 3


def test_every_field_of_the_named_types_occurs_in_the_samples() -> None:
    seen = {"Queue": set[str](), "PodGroup": set[str]()}
    for item in json.loads(CAPACITY.read_text())["items"]:
        for part in ("spec", "status"):
            seen.setdefault(item["kind"], set()).update(f"{part}.{key}" for key in item.get(part, {}))
    for kind in ("Queue", "PodGroup", "Job"):
        wanted = {".".join(path.split("[]")[0].split(".")[:2]) for path in FIELDS[kind].keys() - OBJECT.keys()}
        wanted -= {"metadata.labels", "metadata.annotations"}
        assert wanted - seen[kind] == set()


def test_annotations_of_hierarchical_drf_make_the_tree() -> None:
    owed = volcano.read(HDRF).problem.entitlements
    assert owed.groups == ("root", "root/eng")
    above = {name: owed.nodes[over] for name, over in zip(owed.nodes, owed.parent, strict=True) if over >= 0}
    assert above == {"prod": "root/eng", "dev": "root/eng", "sci": "root", "root/eng": "root"}
    assert dict(zip(owed.nodes, owed.borrow_weight, strict=True))["root/eng"] == 2
    assert owed.gangs.other.tolist()[1] == [Fraction(1, 2)]


def test_a_cluster_without_gpus_is_shared_by_another_resource(tmp_path: Path) -> None:
    document = json.loads(CAPACITY.read_text())
    for item in document["items"]:
        if item["kind"] == "Node":
            item["status"]["allocatable"] = {"cpu": "32"}
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="resource='cpu'"):
        volcano.read(path)
    market = volcano.read(path, resource="cpu").problem
    assert (market.types, market.capacity.tolist()) == (("cpu",), [192])


def _edited(tmp_path: Path, kind: str, edit: Any) -> Path:
    document = json.loads(CAPACITY.read_text())
    document["items"] = [
        each for item in document["items"] for each in ([item] if item["kind"] != kind else edit(item))
    ]
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("kind", "keys", "value", "words"),
    [
        ("Queue", ("spec", "weight"), "heavy", ["edited.json: Queue 'default', spec, weight", "'heavy'", "integer"]),
        ("Queue", ("spec", "deserved"), {"cpu": "-4"}, ["Queue 'root', spec, deserved, cpu", "-4", "not negative"]),
        ("Queue", ("spec", "parent"), "reserch", ["'reserch'", "spec, parent", "'research'?"]),
        ("PodGroup", ("spec", "minResources"), {"nvidia.com/a100": "8 GPUs"}, ["minResources", "'8 GPUs'", "quantity"]),
        ("PodGroup", ("metadata", "creationTimestamp"), "yesterday", ["creationTimestamp", "'yesterday'"]),
        ("Node", ("status",), {}, ["no nodes", "kubectl get nodes"]),
        ("Node", ("metadata",), {}, ["without a name"]),
    ],
)
def test_bad_values_are_named_with_place_and_remedy(
    tmp_path: Path, kind: str, keys: tuple[str, ...], value: Any, words: list[str]
) -> None:
    def edit(item: dict[str, Any]) -> list[dict[str, Any]]:
        inner = item
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        return [item]

    path = _edited(tmp_path, kind, edit)
    with pytest.raises(BadInput) as caught:
        volcano.read(path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_same_object_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="stands twice"):
        volcano.read(CAPACITY, CAPACITY)


def test_a_changed_queue_is_written_as_the_scheduler_takes_it(tmp_path: Path) -> None:
    """What `emit` writes, merged into the files as kubectl does, is read as the changed market."""
    before = volcano.read(CAPACITY).problem
    h100, a100 = (f"nvidia.com/{kind}" for kind in ("h100", "a100"))
    changes = [f"vision.{h100}.quota=2", f"vision.{a100}.cap=20", "serving.weight=3", "vision.priority=7",
               f"vision.{a100}.reserve=0", f"research.{h100}.cap=12"]  # fmt: skip
    after = with_settings(before, [read_setting(each, before) for each in changes])
    written = {each["metadata"]["name"]: each["spec"] for each in json.loads(emit(before, after))["items"]}
    assert set(written) <= {"research", "serving", "vision"}
    assert written["vision"]["guarantee"]["resource"][a100] is None

    def merge(own: dict[str, Any], new: dict[str, Any]) -> None:
        for key, value in new.items():
            if isinstance(value, dict):
                merge(own.setdefault(key, {}), value)
            elif value is None:
                own.pop(key, None)
            else:
                own[key] = value

    def edit(item: dict[str, Any]) -> list[dict[str, Any]]:
        merge(item["spec"], written.get(item["metadata"]["name"], {}))
        return [item]

    assert volcano.read(_edited(tmp_path, "Queue", edit)).problem.entitlements == after.entitlements
    assert json.loads(emit(before, before))["items"] == []


def test_what_volcano_cannot_be_told_is_refused() -> None:
    before, hdrf = volcano.read(CAPACITY).problem, volcano.read(HDRF).problem
    half = with_settings(before, [read_setting("serving.weight=1/2", before)])
    with pytest.raises(BadInput, match="whole numbers"):
        emit(before, half)
    third = with_settings(before, [read_setting("vision.nvidia.com/a100.quota=37/3", before)])
    with pytest.raises(NotCapable, match="no quantity"):
        emit(before, third)
    with pytest.raises(NotCapable, match="hierarchical DRF"):
        emit(hdrf, hdrf)
    with pytest.raises(BadInput, match="not the same queues"):
        emit(before, hdrf)


WHOLE = json.loads(CAPACITY.read_text())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spot=st.sampled_from(spots(WHOLE)), value=STRANGE, how=st.sampled_from(CHANGES))
def test_mutations_are_answered_or_refused(tmp_path: Path, spot: Spot, value: Any, how: str) -> None:
    path = tmp_path / "mutated.json"
    path.write_text(json.dumps(mutated(WHOLE, spot, value, how)))
    answered_or_refused(lambda: volcano.read(path))
