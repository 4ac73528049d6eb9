"""Pods in topologies: beside what fits by definition, and as Kueue's objects say it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_seeds import seeds

from fairopt import allocate
from fairopt.errors import BadInput
from fairopt.importing.kueue import read
from fairopt.models import Kueue
from fairopt.models.kueue.state import Preempts
from fairopt.models.kueue.topology import Topologies
from fairopt.models.kueue.work import PodPlacement, QueuedWork, placements
from fairopt.problem import Entitlements, Gangs, Market

HOST = "kubernetes.io/hostname"
LEVELS = ["block", "rack", HOST]


def drawn(draw: Random) -> dict[tuple[str, ...], int]:
    """Return leaves with how many pods each has room for."""
    blocks = [f"b{at}" for at in range(draw.randint(1, 3))]
    racks = [(block, f"r{at}") for block in blocks for at in range(draw.randint(1, 3))]
    return {
        (*rack, f"{'-'.join(rack)}-n{at}"): draw.randint(0, 5) for rack in racks for at in range(draw.randint(1, 3))
    }


def _said(leaves: dict[tuple[str, ...], int]) -> dict[str, Any]:
    return {"gpus": {"levels": LEVELS, "leaves": [[leaf, {"gpu": room}] for leaf, room in leaves.items()]}}


def placed(leaves: dict[tuple[str, ...], int], asked: PodPlacement) -> Any:
    work = QueuedWork("w", 0, 0, 0, 0, {}, topology=[asked])
    found = Topologies(json.dumps(_said(leaves)), ["gpus"], [work]).place(work, 0)
    return None if found is None else found["main"]


def room(
    leaves: dict[tuple[str, ...], int], depth: int, slices: Iterable[tuple[int, int]]
) -> dict[tuple[str, ...], int]:
    """Return how many pods each domain of a level has room for, in slices: (depth, size), outermost first."""
    left, lowest = dict(leaves), len(LEVELS)
    steps = [*sorted(slices, reverse=True), (depth, 1)]
    for at, size in steps:
        above: dict[tuple[str, ...], int] = {}
        for leaf, count in left.items():
            above[leaf[:at]] = above.get(leaf[:at], 0) + count
        left, lowest = {domain: count // size * size for domain, count in above.items()}, at
    assert lowest == depth
    return left


@pytest.mark.parametrize("seed", seeds(40, 1_000))
def test_pods_are_placed_where_and_only_where_they_fit(seed: int) -> None:
    draw = Random(f"topology {seed}")
    leaves, count, depth = drawn(draw), draw.randint(1, 12), draw.randint(1, 3)
    sizes: list[tuple[int, int]] = []
    if draw.random() < 0.4:
        sizes = [(at, size) for at, size in ((draw.randint(depth, 3), draw.choice([2, 3])),)]
        count *= sizes[0][1]
    for how in ("required", "preferred", "unconstrained"):
        asked = PodPlacement(
            "main", count, {"gpu": Fraction(1)},
            level="" if how == "unconstrained" else LEVELS[depth - 1],
            required=how == "required", unconstrained=how == "unconstrained",
            slices=[(LEVELS[at - 1], size) for at, size in sizes],
        )  # fmt: skip
        found = placed(leaves, asked)
        domains = room(leaves, depth if how == "required" else 0, sizes)
        assert (found is not None) == (max(domains.values()) >= count), how
        if found is None:
            continue
        assert sum(found.values()) == count
        of = {leaf[-1]: leaf for leaf in leaves}
        assert all(pods <= leaves[of[name]] for name, pods in found.items())
        if how == "required":
            assert len({of[name][:depth] for name in found}) == 1
        for at, size in sizes:
            inside: dict[tuple[str, ...], int] = {}
            for name, pods in found.items():
                inside[of[name][:at]] = inside.get(of[name][:at], 0) + pods
            assert all(pods % size == 0 for pods in inside.values())


def test_few_domains_are_used_where_not_all_fit_into_one() -> None:
    leaves = {("b", "r1", "n1"): 3, ("b", "r1", "n2"): 1, ("b", "r2", "n3"): 2, ("b", "r2", "n4"): 2}
    asked = PodPlacement("main", 4, {"gpu": Fraction(1)}, level="rack")
    assert placed(leaves, asked) == {"n1": 3, "n2": 1}  # of racks that are alike the first
    assert placed(leaves, PodPlacement("main", 2, {"gpu": Fraction(1)}, level=HOST)) == {"n3": 2}  # not the larger n1


BAD = ['{"gpus": {"levels": [], "leaves": []}}', '{"gpus": {"levels": ["a"], "leaves": [["x"]]}}', "[[]]", "{"]


@pytest.mark.parametrize("text", BAD)
def test_topologies_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="topologies"):
        Topologies(text, ["gpus"], [])


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '[{"name": "a"}]',
        '[{"name": "a", "count": 1, "takes": {"gpu": "x"}}]',
        '[{"name": "a", "count": "b", "takes": {}}]',
    ],
)
def test_a_setting_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="settings of 'g'"):
        placements(text, "settings of 'g'")


def _cluster(draw: Random) -> tuple[Market, Kueue, dict[str, tuple[tuple[str, ...], int]]]:
    """Return two cohorts and a queue alone that share nodes, with who runs and waits; a policy; and the nodes."""
    leaves = drawn(draw)
    users = [f"q{at}" for at in range(4)]
    free = {leaf[-1]: room for leaf, room in leaves.items()}
    rows: list[tuple[str, int, str | None, int, str]] = []
    for number in range(draw.randint(5, 12)):
        pods, runs, at = draw.randint(1, 4), number < 4, dict[str, int]()
        for name in draw.sample(list(free), len(free)) if runs else ():
            at[name] = min(free[name], pods - sum(at.values()))
            free[name] -= at[name]
        if runs and sum(at.values()) < pods:
            continue
        one: dict[str, Any] = {"name": "main", "count": pods, "takes": {"gpu": "1"}, "at": at}
        how = draw.choice(["required", "preferred", "unconstrained"])
        one |= {"unconstrained": True} if how == "unconstrained" else {"level": draw.choice(LEVELS)}
        one |= {"required": True} if how == "required" and not runs else {}
        rows.append((draw.choice(users), pods, "gpus" if runs else None, draw.randint(0, 2), json.dumps([one])))
    who, gpus, on, tier, said = zip(*rows, strict=True)
    gangs = Gangs.of(
        who, gpus, users=users, types=["gpus"], on=on, tier=tier, settings=[{"topology": each} for each in said]
    )
    quota = {user: [draw.randint(0, 12)] for user in users}
    owed = Entitlements.of(
        users, ["gpus"], guarantee=quota, gangs=gangs, group={"q0": "a", "q1": "a", "q2": "b"},
        settings={"": {"topologies": json.dumps(_said(leaves))}},
    )  # fmt: skip
    market = Market.of(
        [[1]] * 4, [sum(q for (q,) in quota.values()) or 1], users=users, types=["gpus"], entitlements=owed
    )
    fair = draw.random() < 0.5
    policy = Kueue(
        fair_sharing=fair, reclaim_within_cohort=Preempts.ANY, within_cluster_queue=Preempts.LOWER_PRIORITY,
        place_again=draw.random() < 0.7, cycles=draw.choice([None, 1]),
    )  # fmt: skip
    return market, policy, {leaf[-1]: (leaf, room) for leaf, room in leaves.items()}


@pytest.mark.parametrize("seed", seeds(60, 3_000))
def test_no_node_holds_more_than_it_has(seed: int) -> None:
    market, policy, nodes = _cluster(Random(f"cluster {seed}"))
    evidence: Any = allocate(policy, market, exact=True).evidence
    gangs, used = evidence.gangs, dict.fromkeys(nodes, 0)
    for at, said in enumerate(gangs.settings):
        (asked,) = placements(said["topology"], "")
        assert sum(asked.at.values()) == (asked.count if gangs.on[at] >= 0 else 0)
        for name, pods in asked.at.items():
            used[name] += pods
        if asked.required and gangs.on[at] >= 0:
            assert len({nodes[name][0][: LEVELS.index(asked.level) + 1] for name in asked.at}) == 1
    assert all(used[name] <= room for name, (_, room) in nodes.items())


def _objects(**more: Any) -> list[dict[str, Any]]:
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    quota = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 16}]}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}
    nodes = [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": rack, HOST: name}},
            "spec": {"taints": [{"key": "own", "value": "x", "effect": "NoSchedule"}]} if name == "n3" else {},
            "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "10"},
                       "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "b"))
    ]  # fmt: skip
    pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "4"}}}]}
    runs = {
        "clusterQueue": "q",
        "podSetAssignments": [
            {
                "name": "main", "flavors": {"nvidia.com/gpu": "h100"}, "count": 1,
                "resourceUsage": {"nvidia.com/gpu": "4"},
                "topologyAssignment": {"levels": [HOST], "domains": [{"values": ["n1"], "count": 1}]},
            }
        ],
    }  # fmt: skip
    sets = [{"name": "main", "count": 1, "template": {"spec": pod}, "topologyRequest": {"required": "rack"}}]
    return [
        kueue | {"kind": "Topology", "metadata": {"name": "t"},
                 "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": HOST}]}},
        kueue | {"kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {"topologyName": "t"}},
        kueue | {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"resourceGroups": [group]}},
        kueue | {"kind": "LocalQueue", "metadata": {"name": "l", "namespace": "d"}, "spec": {"clusterQueue": "q"}},
        *nodes,
        kueue | {"kind": "Workload", "metadata": {"name": "runs", "namespace": "d"},
                 "spec": {"queueName": "l", "podSets": sets}, "status": {"admission": runs}},
        kueue | {"kind": "Workload", "metadata": {"name": "waits", "namespace": "d"},
                 "spec": {"queueName": "l", "podSets": [{**sets[0], "count": 3, **more}]}},
    ]  # fmt: skip


def _decided(path: Path, objects: list[dict[str, Any]]) -> tuple[Any, Any]:
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    imported = read(path)
    evidence: Any = allocate(Kueue(), imported.problem, exact=True).evidence
    return imported, evidence


NO_RACK = (
    "h100: no 'rack' has room for 3 pods of 'main', on the nodes where they may run, even if no other workload ran"
)


def test_quota_is_left_and_no_rack_has_room(tmp_path: Path) -> None:
    _, evidence = _decided(tmp_path / "c.json", _objects())
    assert evidence.waits == {"d/waits": NO_RACK}


def test_who_prefers_a_rack_starts_on_several_nodes(tmp_path: Path) -> None:
    _, evidence = _decided(tmp_path / "c.json", _objects(topologyRequest={"preferred": "rack"}))
    placed = json.loads(evidence.gangs.settings[evidence.gangs.names.index("d/waits")]["topology"])
    assert placed[0]["at"] == {"n1": 1, "n2": 2}
    again = placements(json.dumps(placed), "")[0]
    assert again.at == {"n1": 1, "n2": 2}


def test_a_toleration_opens_a_node(tmp_path: Path) -> None:
    pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "4"}}}],
           "tolerations": [{"key": "own", "operator": "Exists"}]}  # fmt: skip
    _, evidence = _decided(tmp_path / "c.json", _objects(template={"spec": pod}))
    assert not evidence.waits


def test_what_other_pods_take_is_not_free(tmp_path: Path) -> None:
    other = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"},
        "spec": {"nodeName": "n2", "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "5"}}}]},
        "status": {"phase": "Running"},
    }  # fmt: skip
    imported, evidence = _decided(tmp_path / "c.json", [*_objects(topologyRequest={"preferred": "rack"}), other])
    assert "its nodes do not have room" in evidence.waits["d/waits"]
    assert not any(each.place == "kind Pod" for each in imported.unplaced)
    other["status"] = {"phase": "Succeeded"}
    _, evidence = _decided(tmp_path / "c.json", [*_objects(topologyRequest={"preferred": "rack"}), other])
    assert not evidence.waits


def test_without_nodes_places_are_not_looked_at(tmp_path: Path) -> None:
    objects = [each for each in _objects() if each["kind"] != "Node"]
    imported, evidence = _decided(tmp_path / "c.json", objects)
    assert not evidence.waits
    assert any("no nodes" in str(each) for each in imported.unplaced)


def _named(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in objects if each["metadata"]["name"] == name)


@pytest.mark.parametrize("preemption", [{}, {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}])
def test_who_finds_no_place_on_a_flavor_goes_on_with_the_next(tmp_path: Path, preemption: dict[str, str]) -> None:
    """Source: scheduler_preserve_flavor_scan_progress_test.go, TestScheduleForPreserveFlavorScanProgress."""
    objects = _objects(count=1, topologyRequest={"required": HOST})
    flavor, queue, node = _named(objects, "h100"), _named(objects, "q"), _named(objects, "n1")
    flavor["spec"]["nodeLabels"] = {"rack": "a"}
    objects.append(flavor | {"metadata": {"name": "h200"}, "spec": flavor["spec"] | {"nodeLabels": {"rack": "b"}}})
    (group,) = queue["spec"]["resourceGroups"]
    group["flavors"].append(group["flavors"][0] | {"name": "h200"})
    queue["spec"]["preemption"] = preemption
    node["status"]["allocatable"]["nvidia.com/gpu"] = "4"  # all of it is in use
    _, evidence = _decided(tmp_path / "c.json", objects)
    assert not evidence.waits
    assert evidence.gangs.on.tolist() == [0, 1]


def test_the_pod_set_that_lacks_room_is_named(tmp_path: Path) -> None:
    objects = _objects(count=2, topologyRequest={"required": HOST})
    sets = _named(objects, "waits")["spec"]["podSets"]
    sets.append({**sets[0], "name": "second", "count": 1, "topologyRequest": {"required": "rack"}})
    _named(objects, "n1")["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    _, evidence = _decided(tmp_path / "c.json", objects)
    lack = "no 'rack' has room for 1 pod of 'second' beside 2 of 'main', on the nodes where they may run"
    assert evidence.waits == {"d/waits": f"h100: {lack}"}


def test_slices_and_nodes_that_are_gone_are_said(tmp_path: Path) -> None:
    asks = {"required": "rack", "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 3}
    objects = _objects(topologyRequest=asks)
    _, evidence = _decided(tmp_path / "c.json", objects)
    assert "room for 3 pods of 'main', 3 at a time in one 'kubernetes.io/hostname'" in evidence.waits["d/waits"]
    for name in ("n1", "n2", "n3"):
        _named(objects, name)["status"]["conditions"] = []
    _, evidence = _decided(tmp_path / "c.json", objects)
    lack = "no ready node has the labels of this flavor and of all levels of its topology"
    assert evidence.waits == {"d/waits": f"h100: {lack}"}


def test_nodes_with_one_hostname_are_one_leaf(tmp_path: Path) -> None:
    objects = _objects(count=2, topologyRequest={"preferred": "rack"})
    _named(objects, "n1")["metadata"]["labels"][HOST] = "n2"
    placed = _decided(tmp_path / "c.json", objects)[1].gangs
    assert json.loads(placed.settings[placed.names.index("d/waits")]["topology"])[0]["at"] == {"n2": 2}


def test_leaves_whose_names_have_slashes_are_in_use(tmp_path: Path) -> None:
    leaves = {("a/b", "c"): 3}
    said = {"gpus": {"levels": ["block", "rack"], "leaves": [[leaf, {"gpu": room}] for leaf, room in leaves.items()]}}
    asked = PodPlacement("main", 2, {"gpu": Fraction(1)}, level="rack")
    runs = QueuedWork("r", 0, 0, 0, 0, {}, flavor=0, topology=[asked], spots={"main": {"a/b/c": 2}})
    waits = QueuedWork("w", 0, 0, 0, 1, {}, topology=[asked])
    topologies = Topologies(json.dumps(said), ["gpus"], [runs, waits])
    assert topologies.place(waits, 0) is None
    assert topologies.place(waits, 0, [runs]) == {"main": {"a/b/c": 2}}


SLICE = {"domainCount": 1, "valuesPerLevel": [{"universal": "n1"}], "podCounts": {"universal": 1}}


@pytest.mark.parametrize(
    ("assigned", "place"),
    [
        ({"levels": 1, "domains": []}, "levels"),
        ({"levels": {"a": 1}, "domains": []}, "levels"),
        ({"levels": [HOST], "domains": [{"values": "n1", "count": 1}]}, "values"),
        ({"levels": [HOST], "domains": [{"values": ["r", "n1"], "count": 1}]}, "values"),
        ({"levels": [HOST], "domains": [{"values": ["n1"], "count": -1}]}, "count"),
        ({"levels": [], "slices": [SLICE]}, "values"),
        ({"levels": [HOST], "slices": [SLICE | {"domainCount": 10**9}]}, "domainCount"),
        ({"levels": [HOST], "slices": [SLICE | {"podCounts": {"universal": -2}}]}, "universal"),
        ({"levels": [HOST], "slices": [SLICE | {"podCounts": {"individual": [True]}}]}, "individual"),
        ({"levels": [HOST], "slices": [SLICE | {"podCounts": {"individual": [1, 2]}}]}, "domainCount"),
        ({"levels": [HOST], "slices": [SLICE | {"valuesPerLevel": []}]}, "domainCount"),
        ({"levels": [HOST], "slices": [SLICE | {"valuesPerLevel": [{"individual": {"roots": 1}}]}]}, "roots"),
        ({"levels": [HOST], "slices": [SLICE | {"valuesPerLevel": [{"individual": {}}]}]}, "domainCount"),
    ],
)  # fmt: skip
def test_an_assignment_that_is_none_is_refused(tmp_path: Path, assigned: dict[str, Any], place: str) -> None:
    objects = _objects()
    admission = _named(objects, "runs")["status"]["admission"]
    admission["podSetAssignments"][0]["topologyAssignment"] = assigned
    with pytest.raises(BadInput) as error:
        _decided(tmp_path / "c.json", objects)
    assert place in error.value.place
    assert error.value.remedy


@pytest.mark.parametrize("asks", [{"required": 2}, {"preferred": ["rack"]}, {"podSetSliceRequiredTopology": {}}])
def test_a_request_that_is_none_is_refused(tmp_path: Path, asks: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="Give text"):
        _decided(tmp_path / "c.json", _objects(topologyRequest=asks))
