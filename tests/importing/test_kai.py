"""KAI Scheduler's files: what is read, what has no place, what is refused, and queues written back."""

from __future__ import annotations

import copy
import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairopt import allocate
from fairopt.errors import BadInput
from fairopt.importing import kai_objects
from fairopt.importing.imported import Imported
from fairopt.importing.kai import read
from fairopt.importing.kai_objects import FIELDS, emit
from fairopt.importing.kubernetes import OBJECT
from fairopt.models import Kai
from fairopt.program import INFINITY

SAMPLES = Path(__file__).parents[2] / "fairopt" / "datasets" / "clusters" / "kai"
CLUSTER, SNAPSHOT = SAMPLES / "cluster.yaml", SAMPLES / "snapshot.json"


def zip_of(folder: Path, text: str, name: str = "snapshot.json") -> Path:
    """Pack a text as the scheduler packs its snapshot."""
    path = folder / "snapshot.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, text)
    return path


def saved(folder: Path, *items: dict[str, Any]) -> Path:
    """Write objects as kubectl does."""
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


def queue(name: str, **resources: object) -> dict[str, Any]:
    """Return a queue."""
    spec = {"resources": resources}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}


def said(found: Imported, place: str) -> str:
    """Return what is said of the one thing without a place there."""
    kind, _, field = place.partition(", ")
    return next(
        str(each)
        for each in found.unplaced
        if each.place.partition(", ")[0] == kind and field in str(each).split(": ")[0] and (field or each.place == kind)
    )


def test_what_kubectl_printed_is_queues_by_pool_with_what_they_are_owed_and_hold() -> None:
    """Quotas, limits, priorities, the tree, holdings and gangs; numbers worked out from the file by hand."""
    market = read(CLUSTER).problem
    owed = market.entitlements
    assert (market.types, market.capacity.tolist()) == (("h100", "default"), [16, 4])  # a node of 8 is not ready
    assert owed.groups == ("campus", "research")
    vision = owed.node("vision")
    assert (owed.guarantee[vision, 0], owed.cap[vision, 0], owed.borrow_weight[vision]) == (8, 16, 2)
    assert (owed.cap[vision, 1], owed.cap[owed.node("llm"), 0]) == (0, INFINITY)  # another pool; a limit of -1
    assert owed.nodes[owed.parent[vision]] == "research"
    assert owed.held[owed.users.index("vision"), 0] == 14
    notebooks = owed.users.index("notebooks")
    assert (owed.held[notebooks, 1], owed.fixed[notebooks, 1]) == (Fraction(5, 2), 2)  # a half that runs, too
    gangs = dict(zip(owed.gangs.names, zip(owed.gangs.gpus, owed.gangs.on, owed.gangs.tier, strict=True), strict=True))
    assert gangs["llm/finetune"] == (4, -1, 50)  # two pods of two GPUs that start together
    assert gangs["vision/sweep"] == gangs["vision/sweep+2"] == (2, 0, 50)  # one is enough to start; others follow
    assert gangs["ops/serve"] == (1, 0, 125)
    assert market.least.tolist()[0] == [0, 0]
    assert market.most.tolist()[0] == [0, INFINITY]  # unknown in its own pool, none elsewhere


def test_a_pool_may_be_called_after_its_only_product(tmp_path: Path) -> None:
    """The node's GPU product label instead of the pool; two products in one pool are refused."""
    assert read(CLUSTER, product=True).problem.types == ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB")
    other = NODE | {"metadata": {"name": "m", "labels": {"nvidia.com/gpu.product": "A100"}}}
    with pytest.raises(BadInput, match=r"node pool 'default'.*2 products"):
        read(saved(tmp_path, NODE, other, queue("a", gpu={"limit": -1})), product=True)


def test_a_snapshot_is_the_same_in_its_zip(tmp_path: Path) -> None:
    """Bound pods hold, gated ones ask for nothing, queues whose parent is missing are left out."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    packed, plain = read(zip_of(tmp_path, text)), read(SNAPSHOT)
    assert packed.problem == plain.problem
    assert packed.unplaced == plain.unplaced
    owed = plain.problem.entitlements
    assert owed.users == ("team-a", "team-b")
    assert owed.held[1, :2].tolist() == [1, Fraction(51, 10)]  # 4 cores, 1 beside them, a tenth of overhead
    assert "KAI leaves it out" in said(plain, "Queue, spec.parentQueue")
    assert "kValue" in said(plain, "snapshot, config.tiers[].plugins[].arguments")


def test_a_large_snapshot_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same market, and the same words but for where a list stands."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    monkeypatch.setattr(kai_objects, "SMALL", 1000)
    found, plain = read(zip_of(tmp_path, text)), read(SNAPSHOT)
    assert found.problem == plain.problem
    assert {each.value for each in found.unplaced} == {each.value for each in plain.unplaced}
    with pytest.raises(BadInput, match="not JSON"):
        read(zip_of(tmp_path, text[:5000]))
    with pytest.raises(BadInput, match="no rawObjects"):
        read(zip_of(tmp_path, json.dumps({"items": [0] * 1000})))


def test_parts_of_gpus_and_other_things_without_a_place_are_named() -> None:
    """A MIG slice, topology, minimal run times, a node that is not ready; a fraction is a gang."""
    found = read(CLUSTER)
    for place, word in (
        ("PodGroup with slices of GPUs", "slices of GPUs are no parts of one"),
        ("Pod, nvidia.com/mig-1g.5gb", "slices of GPUs"),
        ("PodGroup, spec.topologyConstraint", "not modelled"),
        ("Queue, spec.reclaimMinRuntime", "not modelled"),
        ("Node", "gpu-3"),
    ):
        assert word in said(found, place)
    assert found.declared["vision"]["allocated h100"] == 14


def test_the_samples_have_every_field_of_the_types() -> None:
    """Each field of Queue, PodGroup and BindRequest occurs in one of the two files."""
    objects = [(each["kind"], each) for each in yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))["items"]]
    raw = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["rawObjects"]
    objects += [("BindRequest", each) for each in raw["bindRequests"]]
    for kind in ("Queue", "PodGroup", "BindRequest"):
        for path in FIELDS[kind].keys() - OBJECT.keys():
            assert path.startswith(("metadata.labels.", "metadata.annotations.")) or any(
                _has(each, path.split(".")) for name, each in objects if name == kind
            ), (kind, path)


def _has(found: Any, path: list[str]) -> bool:
    return not path or (path[0] in found and _has(found[path[0]], path[1:]))


@pytest.mark.parametrize(
    ("resources", "owed", "cap"),
    [
        ({"gpu": {"quota": -1, "limit": -1}}, INFINITY, INFINITY),
        ({"gpu": {"quota": 0.5, "limit": 2.5}}, Fraction(1, 2), Fraction(5, 2)),
        ({"gpu": {"quota": 3}}, 3, 0),  # no limit said: none at all may be held
        ({}, 0, 0),
    ],
)
def test_quota_and_limit_by_what_is_said(tmp_path: Path, resources: Any, owed: Any, cap: Any) -> None:
    """-1 is no bound; 0, or nothing, is 0."""
    found = read(saved(tmp_path, NODE, queue("a", **resources))).problem.entitlements
    assert (found.guarantee[0, 0], found.cap[0, 0], found.tier[0]) == (owed, cap, 100)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([NODE, queue("a", gpu={"quota": -2})], "Queue 'a', spec, resources, gpu, quota: got -2. Give a number"),
        ([NODE, queue("a", gpu={"quota": "lots"})], "Queue 'a', spec, resources, gpu, quota"),
        ([NODE, queue("a", gpu=8)], "Queue 'a', spec, resources, gpu: got 8"),
        ([NODE, queue("a"), queue("a")], "Give each object once"),
        ([NODE, NODE, queue("a")], "Give each object once"),
        ([NODE], "no queue in a node pool that has GPUs"),
        ([queue("a")], "no queue in a node pool that has GPUs"),
        ([NODE, queue("a") | {"apiVersion": "scheduling.run.ai/v1"}], "Give scheduling.run.ai/v2"),
        ([{"metadata": {"name": "x"}}], "no kind"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_place_value_and_remedy(tmp_path: Path, items: Any, says: str) -> None:
    """Each message names the file and the object."""
    path = saved(tmp_path, *items)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert says in str(caught.value)


def test_another_schedulers_queue_is_not_taken_for_kais(tmp_path: Path) -> None:
    """Volcano calls its objects Queue and PodGroup too."""
    other = queue("v") | {"apiVersion": "scheduling.volcano.sh/v1beta1"}
    found = read(saved(tmp_path, NODE, queue("a", gpu={"limit": -1}), other))
    assert found.problem.users == ("a",)
    assert "not an object that is read" in said(found, "kind Queue")


def test_bombs_are_refused(tmp_path: Path) -> None:
    """A zip that unpacks to a thousand times its size, an alias for a billion, a hundred thousand levels."""
    with pytest.raises(BadInput, match="at most 1000 of"):
        read(zip_of(tmp_path, " " * 50_000_000))
    path = zip_of(tmp_path, "{}", "a.json")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("b.json", "{}")
    with pytest.raises(BadInput, match=r"2 files and no snapshot\.json"):
        read(path)
    laughs = tmp_path / "laughs.yaml"
    laughs.write_text("a: &a [1, 1]\nb: &b [*a, *a]\nitems: [*b, *b]\n", encoding="utf-8")
    with pytest.raises(BadInput, match="alias"):
        read(laughs)
    with pytest.raises(BadInput, match=r"levels|deeply"):
        read(zip_of(tmp_path, '{"rawObjects": {"queues": ' + "[" * 100_000 + "]" * 100_000 + "}}"))


def test_a_damaged_zip_is_refused(tmp_path: Path) -> None:
    """Bytes in the middle that no longer unpack."""
    path = zip_of(tmp_path, SNAPSHOT.read_text(encoding="utf-8"))
    data = bytearray(path.read_bytes())
    for at in range(200, 1200, 25):  # wherever the bytes are changed, and whatever they then unpack to
        data[at] ^= 0x55
        path.write_bytes(data)
        with pytest.raises(BadInput, match=r"snapshot\.zip"):
            read(path)
        data[at] ^= 0x55


def test_a_changed_queue_is_written_as_the_scheduler_takes_it(tmp_path: Path) -> None:
    """What `emit` writes, read back with the other files, is the changed market; unchanged queues are left out."""
    before = read(CLUSTER).problem
    guarantee, cap = before.entitlements.guarantee.copy(), before.entitlements.cap.copy()
    node = before.entitlements.node("llm")
    guarantee[node, 0], cap[node, 0] = Fraction(6), Fraction(10)
    after = replace(before, entitlements=replace(before.entitlements, guarantee=guarantee, cap=cap))
    written = json.loads(emit(before, after))["items"]
    assert [each["metadata"]["name"] for each in written] == ["llm"]
    assert written[0]["spec"]["resources"]["gpu"] == {"quota": 6, "overQuotaWeight": 1, "limit": 10}
    items = yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))["items"]
    for each in items:
        if (each["kind"], each["metadata"]["name"]) == ("Queue", "llm"):
            each["spec"] = written[0]["spec"]
            each["metadata"]["labels"] = written[0]["metadata"]["labels"]
    assert read(saved(tmp_path, *items)).problem == after
    assert json.loads(emit(before, before))["items"] == []


# -- mutations -----------------------------------------------------------------------------------------------------
PARSED = {CLUSTER: yaml.safe_load(CLUSTER.read_text(encoding="utf-8")), SNAPSHOT: json.loads(SNAPSHOT.read_text())}
VALUES = st.sampled_from([None, "", "x", -1, 0, 3, 1.5, 10**40, True, [], {}, [1], {"a": 1}, [[[[1]]]], "1e999", "-5"])


def _mutated(draw: Any, found: Any) -> Any:
    """Change one place: another value, a key less, an entry twice."""
    at: Any = found
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw(st.sampled_from(keys))
        below = at[key]
        if isinstance(below, dict | list) and below and draw(st.integers(0, 4)):
            at = below
            continue
        how = draw(st.integers(0, 2))
        if how == 0:
            at[key] = copy.deepcopy(draw(VALUES))
        elif how == 1:
            del at[key]
        elif isinstance(at, list):
            at.append(below)
        else:
            at[f"{key}x"] = below
        return found


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), which=st.sampled_from([CLUSTER, SNAPSHOT]))
def test_mutations_of_the_samples_give_an_answer_or_a_typed_error(data: Any, which: Path, tmp_path: Path) -> None:
    """No traceback, whatever was dropped, replaced or doubled."""
    found = copy.deepcopy(PARSED[which])
    for _ in range(data.draw(st.integers(1, 3))):
        found = _mutated(data.draw, found)
        if not isinstance(found, dict) or not found:
            return
    path = tmp_path / "mutated.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    message = ""
    try:
        read(path)
    except BadInput as error:
        message = str(error)
    assert not message or "mutated.json" in message


def pod(name: str, queue: str, gpus: int, **more: Any) -> dict[str, Any]:
    """Return a pod with the label of its queue; on node n where it runs."""
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": [
        {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]}  # fmt: skip
    labels = {"kai.scheduler/queue": queue} | more.pop("labels", {})
    spec |= {key: more.pop(key) for key in ("nodeName", "priorityClassName") if key in more}
    metadata = {"name": name, "labels": labels, "annotations": more.pop("annotations", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    } | more


def test_a_pod_counts_for_the_queue_of_its_label_where_no_pod_group_is_given(tmp_path: Path) -> None:
    ready = {**NODE, "status": NODE["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 125}
    found = read(saved(
        tmp_path, ready, high, queue("a", gpu={"quota": 4, "limit": -1}), queue("b", gpu={"quota": 4, "limit": -1}),
        pod("runs", "a", 6, nodeName="n", priorityClassName="high"),
        pod("waits", "b", 4, labels={"priorityClassName": "nowhere"}),
        pod("lost", "b", 1, annotations={"pod-group-name": "gone"},
            labels={"kai.scheduler/preemptibility": "non-preemptible"}),
        pod("odd", "nobody", 1),
    ))  # fmt: skip
    gangs = found.problem.entitlements.gangs
    columns = (gangs.user, gangs.gpus, gangs.on, gangs.tier, gangs.preemptible)
    named = {name: tuple(int(each[at]) for each in columns) for at, name in enumerate(gangs.names)}
    assert named == {"runs": (0, 6, 0, 125, 0), "waits": (1, 4, -1, 50, 1), "lost": (1, 1, -1, 50, 0)}
    assert found.problem.entitlements.held[:, 0].tolist() == [6, 0]
    assert "starts alone" in said(found, "Pod, label kai.scheduler/queue")
    assert "'nobody'" in said(found, "PodGroup, spec.queue")


def test_a_label_of_the_schedulers_own_that_nothing_knows_is_listed(tmp_path: Path) -> None:
    asked = pod("p", "a", 1, labels={"kai.scheduler/new-rule": "yes", "app": "x"})
    asked["metadata"]["annotations"] = {"kai.scheduler/new-note": "x", "team": "y"}
    found = read(saved(tmp_path, NODE, queue("a", gpu={"quota": 4, "limit": -1}), asked))
    listed = " ".join(map(str, found.unplaced))
    assert "metadata.labels.kai.scheduler/new-rule" in listed
    assert "metadata.annotations.kai.scheduler/new-note" in listed
    assert "labels.app" not in listed
    assert "annotations.team" not in listed


def test_a_snapshot_says_what_a_cycle_does(tmp_path: Path) -> None:
    ready = {**NODE, "status": NODE["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
    items = [ready, queue("a", gpu={"quota": 8, "limit": -1}), queue("b", gpu={"quota": 0, "limit": -1}),
             pod("holds", "b", 8, nodeName="n"), pod("waits", "a", 8)]  # fmt: skip
    stopped = {}
    for actions in ("allocate, consolidation", "consolidation", "allocate, reclaim", ""):
        snapshot = {"rawObjects": {}, "config": {"actions": actions}}
        found = read(saved(tmp_path, *items, snapshot))
        stopped[actions] = list(allocate(Kai(), found.problem).evidence.stopped)
        assert "consolidation" not in "".join(map(str, found.unplaced))
    assert stopped == {
        "allocate, consolidation": [],
        "consolidation": [],
        "allocate, reclaim": ["holds"],
        "": ["holds"],
    }
    assert not allocate(Kai(actions=("allocate", "preempt")), found.problem).evidence.stopped
    with pytest.raises(BadInput, match=r"actions.*allocate, consolidation, reclaim, preempt"):
        Kai(actions=("stalegangeviction",))
