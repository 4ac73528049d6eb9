"""Kueue's objects: what the samples say, versions and defaults, what has no place, hostile files, and objects back."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kueue_files import queue, written

from fairopt.errors import BadInput
from fairopt.importing.kueue import read
from fairopt.importing.kueue_objects import KINDS, emit
from fairopt.importing.unplaced import BOOKKEEPING
from fairopt.problem import Entitlements, Market
from fairopt.program import INFINITY
from fairopt.testing.data_suites import importer_suite

SAMPLES = Path(str(files("fairopt.datasets") / "clusters" / "kueue"))
API = "kueue.x-k8s.io/v1beta2"
CLUSTER = json.loads((SAMPLES / "cluster.json").read_text())


def objects() -> Iterator[dict[str, Any]]:
    yield from CLUSTER["items"]
    yield from yaml.safe_load((SAMPLES / "older.yaml").read_text())["items"]
    yield from yaml.safe_load_all((SAMPLES / "story3.yaml").read_text())
    yield from yaml.safe_load_all((SAMPLES / "topology.yaml").read_text())


def paths_of(value: Any, path: str = "") -> Iterator[str]:
    yield path
    for key, each in value.items() if isinstance(value, dict) else ():
        yield from paths_of(each, f"{path}.{key}".lstrip("."))
    for each in value if isinstance(value, list) else ():
        yield from paths_of(each, f"{path}[]")


def entitled(path: Path, **options: Any) -> Entitlements:
    owed = read(path, **options).problem.entitlements
    assert owed is not None
    return owed


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("sample", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_the_samples_conform(sample: Path) -> None:
    importer_suite(sample).run([read]).require_complete()


def test_every_field_of_the_types_occurs_in_a_sample() -> None:
    seen: dict[str, set[str]] = {}
    for each in objects():
        seen.setdefault(each["kind"], set()).update(paths_of(each))
    missing = {
        f"{kind} {path}"
        for kind, known in KINDS.items()
        for path, why in known.items()
        if path not in seen.get(kind, {path}) and (why != BOOKKEEPING or path.startswith("status"))
        if ".labels." not in path and ".annotations." not in path
    }
    # one of each object is enough for what no quota asks
    pod = "spec.podSets[].template.spec."
    allowed = {f"Workload {pod}{each}" for each in (
        "resourceClaims", "containers[].restartPolicy", "containers[].resources.claims",
        "resources.requests", "resources.limits", "initContainers[].resources.claims",
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields",
    )}  # fmt: skip
    assert {
        each for each in missing if not each.startswith(("Node ", "Pod ")) and "metadata.namespace" not in each
    } <= allowed


def test_nothing_of_the_samples_is_unknown() -> None:
    for sample in SAMPLES.iterdir():
        assert not [each for each in read(sample).unplaced if "known here" in each.why]


def test_a_cluster_has_its_quotas_tree_gangs_and_declared_numbers() -> None:
    found = read(SAMPLES / "cluster.json")
    owed = found.problem.entitlements
    assert found.problem.capacity.tolist() == [40, 40]
    assert not found.problem.known.any()
    assert [list(map(float, row)) for row in owed.guarantee[:, :2]] == [
        [16, 16], [16, 8], [8, 0], [0, 8], [40, 40], [32, 32], [8, 8],
    ]  # fmt: skip
    row = {name: owed.node(name) for name in owed.nodes}
    assert owed.cap[row["nlp"]].tolist()[:3] == [24, INFINITY, 300]
    assert owed.cap[row["search"], 1] == 0, "a flavor that a ClusterQueue does not list cannot be borrowed"
    assert owed.cap[row["research"], 0] == 48
    assert owed.reserve[row["vision"], 0] == 8
    assert owed.reserve[row["research"], 0] == 8, "32 less the 24 that it lends"
    assert owed.borrow_weight.tolist() == [1, 1, 1, 0.5, 1, 2, 1]
    gangs = owed.gangs
    where = {name: gangs.on[at] for at, name in enumerate(gangs.names)}
    assert where["nlp/pretrain"] == 0
    assert gangs.gpus[gangs.names.index("nlp/pretrain")] == 24
    assert gangs.gpus[gangs.names.index("nlp/distill")] == 12, "one of its four pods is done"
    assert gangs.allowed[gangs.names.index("search/serve")].tolist() == [True, False]
    assert float(gangs.other[gangs.names.index("nlp/finetune"), 0]) == 2 * 41.25, "with its sidecar and overhead"
    assert found.declared["nlp"]["flavorsUsage nvidia.com/gpu:h100 borrowed"] == 8
    held = {name: owed.held[row[name]] for name in owed.users}
    for name, said in found.declared.items():
        for key, value in said.items():
            if key.startswith("flavorsUsage") and key.endswith("total") and name in held:
                column = key.split()[1].removeprefix(f"{GPU}:")
                assert held[name][owed.columns.index(column)] == value, (name, key)


def test_what_has_no_place_is_named_once_with_a_count() -> None:
    said = {each.place: each for each in read(SAMPLES / "cluster.json").unplaced}
    assert "32 on nodes, 40 in quotas" in said["Node, status.allocatable"].value
    twice = {"Workload", "ClusterQueue, spec.admissionScope.admissionMode"}  # for two reasons each
    assert len(said) == len(read(SAMPLES / "cluster.json").unplaced) - len(twice)
    assert twice < set(said)


def test_older_versions() -> None:
    owed = entitled(SAMPLES / "older.yaml")
    parents = {owed.nodes[node]: owed.nodes[up] for node, up in enumerate(owed.parent) if up >= 0}
    assert parents == {"maths": "department", "physics": "department", "department": "company"}
    assert owed.borrow_weight.tolist() == [1, 0, 1.5, 1]
    assert owed.gangs.tier.tolist() == [-10, 0]


def test_pod_sets_on_different_flavors_are_gangs_of_their_own(tmp_path: Path) -> None:
    work = copy.deepcopy(next(each for each in CLUSTER["items"] if each["metadata"]["name"] == "pretrain"))
    work["status"]["admission"]["podSetAssignments"][0] = {
        "name": "launcher", "flavors": {GPU: "a100"}, "resourceUsage": {GPU: "2"}, "count": 1,
    }  # fmt: skip
    others = [each for each in CLUSTER["items"] if each["kind"] != "Workload"]
    gangs = entitled(written(tmp_path, *others, work)).gangs
    assert gangs.names == ("nlp/pretrain/launcher", "nlp/pretrain/worker")
    assert (gangs.gpus.tolist(), gangs.on.tolist()) == ([2, 24], [1, 0])


def test_without_workloads_the_status_says_what_is_held(tmp_path: Path) -> None:
    owed = entitled(written(tmp_path, *[each for each in CLUSTER["items"] if each["kind"] != "Workload"]))
    assert owed.held[owed.node("ads")].tolist()[:3] == [0, 16, 64]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "no ClusterQueue"),
        ([queue("a", ("x", "cpu", {"nominalQuota": 4}))], "looks like GPUs.*quotas of cpu"),
        ([queue("a", ("x", GPU, {"nominalQuota": -4}))], r"ClusterQueue 'a', .*nominalQuota: got -4"),
        ([queue("a", ("x", GPU, {"nominalQuota": "4 GPUs"}))], "ClusterQueue 'a', .*4 GPUs.*Give a quantity"),
        ([queue("a", ("x", GPU, {"nominalQuota": 4}))] * 2, "ClusterQueue 'a' stands twice"),
        ([queue("a", ("x", GPU, {"nominalQuota": 4}), cohortName=7)], "ClusterQueue 'a', spec, cohortName: got 7"),
        (
            [
                queue("a", ("x", GPU, {"nominalQuota": 4})),
                {
                    "kind": "Workload",
                    "apiVersion": API,
                    "metadata": {"name": "w"},
                    "status": {"conditions": {"type": "Finished", "status": "True"}},
                },
            ],
            "Workload 'w', status, conditions: got",
        ),
    ],
)
def test_refusals_name_the_file_the_object_and_the_remedy(tmp_path: Path, items: list[Any], said: str) -> None:
    with pytest.raises(BadInput, match=rf"objects\.json.*{said}"):
        read(written(tmp_path, *items))


def test_any_resource_can_be_the_shared_one(tmp_path: Path) -> None:
    path = written(
        tmp_path, queue("a", ("default", "cpu", {"nominalQuota": 4}), ("default", "memory", {"nominalQuota": "1Gi"}))
    )
    owed = entitled(path, resource="cpu")
    assert (owed.types, owed.columns) == (("default",), ("default", "memory:default"))


LEAVES = [
    None,
    -1,
    0,
    2**70,
    "",
    "x",
    "1e400",
    "-3",
    "9" * 50,
    [],
    {},
    [[]],
    {"a": {"b": [1]}},
    True,
    1.5,
    "2020-13-99T99:00:00Z",
]


class Refused(Exception):
    """A refusal that names the file, the place and the remedy."""


def _read(path: Path) -> Any:
    try:
        return read(path)
    except BadInput as error:
        raise (Refused if path.name in str(error) and error.place and error.remedy else error) from error


def _mutated(draw: Any) -> Any:
    """Return the sample with some values dropped, replaced, doubled or swapped."""
    made = copy.deepcopy(CLUSTER)
    for _ in range(draw(st.integers(1, 4))):
        at: Any = made["items"][draw(st.integers(0, len(made["items"]) - 1))]
        for _ in range(draw(st.integers(0, 9))):
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            below = [key for key in keys if isinstance(at[key], dict | list) and at[key]]
            if not below:
                break
            at = at[draw(st.sampled_from(below))]
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw(st.sampled_from(keys))
        what = draw(st.sampled_from(["drop", "replace", "deep", "twice"]))
        if what == "drop":
            del at[key]
        elif what == "twice" and isinstance(at, list):
            at.append(copy.deepcopy(at[key]))
        else:
            at[key] = copy.deepcopy(draw(st.sampled_from(LEAVES)))
            for _ in range(draw(st.integers(0, 130)) if what == "deep" else 0):
                at[key] = {"spec": at[key]}
        if not at:
            break
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutations_give_an_answer_or_a_refusal(data: st.DataObject, tmp_path: Path) -> None:
    (tmp_path / "mutated.json").write_text(json.dumps(_mutated(data.draw)))
    with contextlib.suppress(Refused):
        assert isinstance(_read(tmp_path / "mutated.json").problem, Market)


def changed(market: Market, **rows: Any) -> Market:
    owed = market.entitlements
    assert owed is not None
    told: dict[str, Any] = {"guarantee": {}, "cap": {}, "reserve": {}}
    for node, name in enumerate(owed.nodes):
        for key, into in told.items():
            into[name] = getattr(owed, key)[node].tolist()
    for key, own in rows.items():
        for name, row in own.items():
            told[key][name] = [new if new is not None else old for old, new in zip(told[key][name], row, strict=True)]
    weights = dict(zip(owed.nodes, owed.borrow_weight, strict=True))
    group = {owed.nodes[node]: owed.nodes[up] for node, up in enumerate(owed.parent) if up >= 0}
    after = Entitlements.of(
        owed.users, owed.types, group=group, goods=dict(zip(owed.goods, owed.stock, strict=True)),
        borrow_weight=weights, **told,
    )  # fmt: skip
    return Market.of(market.speedup, market.capacity, users=market.users, types=market.types, entitlements=after)


def test_a_change_is_written_as_objects_that_read_back(tmp_path: Path) -> None:
    before = read(SAMPLES / "cluster.json").problem
    # search gives its 8 H100 to ads, which lends none; the tree above has as much as before
    rows = {
        "guarantee": {"search": [4, None, None, None], "ads": [4, None, None, None]},
        "cap": {"ads": [6, None, None, None]},
        "reserve": {"ads": [4, None, None, None]},
    }
    after = changed(before, **rows)
    text = emit(before, after)
    made = {each["metadata"]["name"]: each for each in yaml.safe_load_all(text)}
    assert sorted(made) == ["ads", "search"], "the Cohorts' own quotas did not change"
    assert emit(before, before) == ""
    rest = [each for each in CLUSTER["items"] if each["metadata"]["name"] not in made]
    (tmp_path / "after.yaml").write_text(text)
    again = read(written(tmp_path, *rest), tmp_path / "after.yaml").problem.entitlements
    assert again is not None
    assert after.entitlements is not None
    for key in ("guarantee", "cap", "reserve", "borrow_weight"):
        for name in after.entitlements.nodes:
            mine, theirs = (getattr(each, key)[each.node(name)] for each in (after.entitlements, again))
            assert mine == theirs if key == "borrow_weight" else (mine == theirs).all(), (key, name)


def test_every_sample_reads_back_from_its_own_objects(tmp_path: Path) -> None:
    for sample in SAMPLES.iterdir():
        market = read(sample).problem
        owed = market.entitlements
        nothing = Market.of([[1]], [1], users=["-"], types=["-"], entitlements=Entitlements.of(["-"], ["-"]))
        (tmp_path / "all.yaml").write_text(emit(nothing, market).split("\n", 1)[1])
        again = read(tmp_path / "all.yaml").problem.entitlements
        for node, name in enumerate(owed.nodes):
            for key in ("guarantee", "cap", "reserve"):
                mine = dict(zip(owed.columns, getattr(owed, key)[node], strict=True))
                theirs = dict(zip(again.columns, getattr(again, key)[again.node(name)], strict=True))
                assert mine == theirs, (sample.name, key, name)


def test_parts_of_a_gpu_are_counted_as_kueue_does(tmp_path: Path) -> None:
    """A quota of 1500m GPUs is one of 2 to Kueue, and a pod that asks for 1500m takes 2; CPU is exact."""
    owed = entitled(written(tmp_path, queue("a", ("f", GPU, {"nominalQuota": "1500m"}))))
    assert owed.guarantee.tolist() == [[2]]
    pod = {"containers": [{"name": "c", "resources": {"requests": {GPU: "1500m", "cpu": "1500m"}}}]}
    work = {
        "kind": "Workload",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"queueName": "l", "podSets": [{"name": "main", "count": 3, "template": {"spec": pod}}]},
    }
    quotas = (("f", GPU, {"nominalQuota": 8}), ("f", "cpu", {"nominalQuota": "2500m"}))
    local = {
        "kind": "LocalQueue",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {"name": "l", "namespace": "n"},
        "spec": {"clusterQueue": "a"},
    }
    owed = entitled(written(tmp_path, queue("a", *quotas), local, work))
    assert owed.guarantee.tolist() == [[8, Fraction(5, 2)]]
    assert owed.gangs.gpus.tolist() == [6]


def test_workloads_that_are_alike_are_read_as_each_alone(tmp_path: Path) -> None:
    """Workloads differ in one thing that is read, or in their names; whose like was read before is the same gang."""
    quotas = ("a100", "nvidia.com/gpu", {"nominalQuota": 9}), ("h100", "nvidia.com/gpu", {"nominalQuota": 9})
    taint = {"key": "old", "value": "yes", "effect": "NoSchedule"}
    flavors = [
        {"kind": "ResourceFlavor", "apiVersion": API, "metadata": {"name": "a100"}, "spec": {"nodeTaints": [taint]}},
        {"kind": "ResourceFlavor", "apiVersion": API, "metadata": {"name": "h100"}, "spec": {"nodeLabels": {"x": "1"}}},
    ]
    base = [*flavors, queue("q", *quotas, cohortName="c"), queue("r", *quotas, cohortName="c")]
    for name in "qr":
        local = {"metadata": {"name": name, "namespace": "n"}, "spec": {"clusterQueue": name}}
        base.append({"kind": "LocalQueue", "apiVersion": API, **local})

    def workload(name: str, change: str, queued: str) -> dict[str, Any]:
        container: dict[str, Any] = {"name": name, "resources": {"requests": {"nvidia.com/gpu": "2"}}}
        pod: dict[str, Any] = {"containers": [container]}
        pods: dict[str, Any] = {"name": "main", "count": 3, "template": {"spec": pod}}
        status: dict[str, Any] = {}
        match change:
            case "count":
                pods["count"] = 2
            case "fewer":
                pods["minCount"] = 1
            case "tolerates":
                pod["tolerations"] = [taint | {"operator": "Equal"}]
            case "selects":
                pod["nodeSelector"] = {"x": "2"}
            case "asks":
                container["resources"] = {"requests": {"nvidia.com/gpu": "1", "example.com/disk": "1"}}
            case "overhead":
                pod["overhead"] = {"nvidia.com/gpu": "1"}
            case "prepares":
                pod["initContainers"] = [{"resources": {"requests": {"nvidia.com/gpu": "4"}}}]
            case "done":
                status["reclaimablePods"] = [{"name": "main", "count": 1}]
            case "told":
                status["resourceRequests"] = [{"name": "main", "resources": {"nvidia.com/gpu": "5"}}]
            case "runs" | "runs without":
                given = {"name": "main", "flavors": {"nvidia.com/gpu": "h100"}, "count": 3}
                given["resourceUsage"] = {"nvidia.com/gpu": "6"}
                status["admission"] = {"clusterQueue": queued, "podSetAssignments": [given] * (change == "runs")}
        spec = {"queueName": queued, "podSets": [pods]}
        meta = {"name": name, "namespace": "n", "creationTimestamp": "2026-08-01T00:00:00Z"}
        return {"kind": "Workload", "apiVersion": API, "metadata": meta, "spec": spec, "status": status}

    changes = ["", "count", "fewer", "tolerates", "selects", "asks", "overhead", "prepares", "done", "told", "runs"]
    works = [workload(f"w{n}", each, "qr"[n % 2]) for n, each in enumerate([*changes, "runs without"] * 3)]

    def gangs(*some: dict[str, Any]) -> list[tuple[Any, ...]]:
        found = read(written(tmp_path, *base, *some)).problem.entitlements.gangs
        columns = (found.user, found.gpus, found.allowed, found.on)
        settings = found.settings or ({},) * len(found)
        return list(zip(found.names, *(each.tolist() for each in columns), settings, strict=True))

    together = gangs(*works)
    assert together == [each for work in works for each in gangs(work)]
    assert len({str(each[2:]) for each in together}) > 7
    listed = [str(each) for each in read(written(tmp_path, *base, *works)).unplaced]
    assert any("example.com/disk" in each and "and 2 more" in each for each in listed)
