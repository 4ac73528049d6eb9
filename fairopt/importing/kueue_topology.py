"""Topologies of Kueue's flavors: which nodes are in which racks and blocks, what is free there, and what pods ask for.

Source: kubernetes-sigs/kueue ff69552e, apis/kueue/v1beta2/topology_types.go and workload_types.go (TopologyAssignment),
pkg/cache/scheduler/tas_nodes_cache.go, tas_non_tas_pod_cache.go, tas_flavor_snapshot.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from fairopt.errors import require
from fairopt.importing.documents import AMOUNTS
from fairopt.importing.kubernetes import Objects, add, listed_in, pod_requests
from fairopt.importing.kueue_pods import PLACING, PodSet, matches, tolerates
from fairopt.importing.kueue_quotas import FlavorColumns
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import shown

#: The level whose domains are nodes.
HOST = "kubernetes.io/hostname"
#: What a pod set may ask of a topology.
LEVELS = (
    "required",
    "preferred",
    "podSetSliceRequiredTopology",
    "unconstrained",
    "podsetSliceRequiredTopologyConstraints",
)
#: Annotations of pods that Kueue placed itself: what they take, their workloads say.
_PLACED = "kueue.x-k8s.io/podset-"
#: Who places pods itself, or makes nodes first; other checks only let a workload wait.
_LATE = ("kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue", "")
#: So many domains are in one part of an assignment: tas_assignment.go, maxDomainsPerTopologyAssignmentSlice.
_MOST_DOMAINS = 100_000
_EFFECTS = ("NoSchedule", "NoExecute")
_POD = {"pods": Fraction(1)}


class Topology:
    """The topologies of a cluster's flavors as far as the files say them: nodes, and what is free.

    ``levels``: by type, the labels of the levels from the top; only of types with nodes in the files.
    """

    def __init__(self, found: Objects, columns: FlavorColumns) -> None:
        self.levels: dict[str, list[str]] = {}
        self._nodes: dict[str, list[ObjectPart]] = {}
        self._flavors: dict[str, ObjectPart] = {}
        self._free: dict[str, dict[str, Fraction]] = {}
        self._allowed: dict[tuple[str, str], list[str] | None] = {}
        gates = [part.part("featureGates") for part in found["Configuration"].values()]
        if not all(each.flag("TopologyAwareScheduling", True) for each in gates):
            return
        nodes = found["Node"] if found["Topology"] else {}
        ready = {name: node for name, node in nodes.items() if _ready(node)}
        for good, kind in columns.type_of.items():
            flavor = found["ResourceFlavor"].get(good.flavor)
            topology = None if flavor is None else found["Topology"].get(flavor.part("spec").text("topologyName"))
            if flavor is None or topology is None or not nodes:
                continue
            levels = [each.text("nodeLabel") for each in topology.part("spec").parts("levels")]
            if not levels:
                continue
            wanted = flavor.at("spec.nodeLabels").value
            own = [
                node
                for node in ready.values()
                if all(_labels(node).get(key) == value for key, value in wanted.items())
                and _labels(node).keys() >= {*levels}
            ]
            self.levels[kind], self._nodes[kind], self._flavors[kind] = levels, own, flavor
        self._free = {name: node.part("status").read("allocatable", AMOUNTS, {}) for name, node in ready.items()}
        for pod in found["Pod"].values() if self.levels else ():
            node = self._free.get(pod.part("spec").text("nodeName"))
            placed = any(key.startswith(_PLACED) for key in pod.at("metadata.annotations").value)
            if node is not None and not placed and pod.part("status").text("phase") not in ("Succeeded", "Failed"):
                add(node, pod_requests(pod.part("spec")) | _POD, -1)

    def setting(self) -> str:
        """Return what the policy kueue reads as ``topologies``; "" where no flavor has nodes in a topology."""
        said = {
            kind: {"levels": levels, "leaves": [[values, _texts(room)] for values, room in self._leaves(kind).items()]}
            for kind, levels in self.levels.items()
        }
        return json.dumps(said) if said else ""

    def known(self, types: Iterable[str]) -> bool:
        """Return whether any of the types has nodes in a topology."""
        return any(kind in self.levels for kind in types)

    def _leaves(self, kind: str) -> dict[tuple[str, ...], dict[str, Fraction]]:
        """Return what is free in each leaf: nodes are leaves, or all nodes with the same values together.

        Nodes with the same hostname are one leaf, where the first is: topologyTree.addNode.
        """
        leaves: dict[tuple[str, ...], dict[str, Fraction]] = {}
        first: dict[str, tuple[str, ...]] = {}
        for node in self._nodes[kind]:
            values = tuple(str(_labels(node)[level]) for level in self.levels[kind])
            if self.levels[kind][-1] == HOST:
                values = first.setdefault(values[-1], values)
            add(leaves.setdefault(values, {}), self._free[node.part("metadata").text("name")])
        return leaves

    def asked(self, pod_sets: Iterable[PodSet], types: Iterable[str], *, implied: bool) -> str:
        """Return what pod sets ask of the topologies of the types, as the rule's setting; "" where they ask nothing.

        ``implied``: whether they are placed though they do not ask.
        """
        kinds = [kind for kind in types if kind in self.levels]
        said = list[dict[str, Any]]()
        for pods in pod_sets:
            asks: dict[str, Any] = {key: pods.topology.value.get(key) for key in LEVELS}
            asks |= {key: pods.topology.text(key) for key in LEVELS[:3] if asks[key] is not None}
            if not pods.placed.value and not implied and all(each is None for each in asks.values()):
                continue
            twice = any(each["name"] == pods.name for each in said)
            require(not twice, shown(pods.name), f"{pods.topology.place}, name", "Give each pod set its own name")
            one: dict[str, Any] = {
                "name": pods.name,
                "count": pods.number,
                "takes": _texts(pod_requests(pods.pod) | _POD),
            }
            level = asks["required"] or asks["preferred"]
            slices = _slices(pods.topology)
            one |= {"level": level} if level else {}
            one |= {"required": True} if asks["required"] else {}
            one |= {"slices": slices} if slices else {}
            one |= {} if level or slices else {"unconstrained": True}
            one |= {"spare": pods.spare} if pods.spare else {}
            where = {kind: names for kind in kinds if (names := self._where(kind, pods.pod)) is not None}
            one |= {"leaves": where} if where else {}
            one |= {"at": at} if (at := _spots(pods.placed)) else {}
            said.append(one)
        return json.dumps(said) if said else ""

    def _where(self, kind: str, pod: ObjectPart) -> list[str] | None:
        """Return on which nodes of a flavor pods may run, None for all: FindFeasibleNodes; only nodes are asked."""
        if self.levels[kind][-1] != HOST:
            return None
        key = kind, repr([*map(pod.value.get, PLACING)])
        if key not in self._allowed:
            tolerated = [*pod.parts("tolerations"), *self._flavors[kind].part("spec").parts("tolerations")]
            names = [str(_labels(node)[HOST]) for node in self._nodes[kind] if _may_run(pod, node, tolerated)]
            self._allowed[key] = names if len(names) < len(self._nodes[kind]) else None
        return self._allowed[key]


def placed_late(spec: ObjectPart, checks: Mapping[str, ObjectPart]) -> bool:
    """Return whether a ClusterQueue's pods get places only after an admission check on all flavors.

    A check that is not in the files may be such a one. Source: tas_flavorassigner.go, podSetTopologyRequest.
    """
    named = [ObjectPart(spec.place, {"name": each}) for each in listed_in(spec, "admissionChecks")]
    chosen = spec.part("admissionChecksStrategy").parts("admissionChecks")
    named += [each for each in chosen if not each.value.get("onFlavors")]
    found = (checks.get(each.text("name")) for each in named)
    return any(each is None or each.part("spec").text("controllerName") in _LATE for each in found)


def _labels(node: ObjectPart) -> Mapping[str, Any]:
    labels: Mapping[str, Any] = node.at("metadata.labels").value
    return labels


def _ready(node: ObjectPart) -> bool:
    """Return whether Kueue counts a node: nodesCache.sync."""
    ready = {each.text("type"): each.text("status") for each in node.part("status").parts("conditions")}
    return ready.get("Ready") == "True" and not node.part("spec").flag("unschedulable", False)


def _texts(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _slices(topology: ObjectPart) -> list[tuple[str, int]]:
    """Return how many pods at once must be in one domain of which level: PodSetSliceRequiredTopologyConstraints."""
    several = topology.parts("podsetSliceRequiredTopologyConstraints")
    if several:
        return [(each.text("topology"), each.whole("size", 0)) for each in several]
    level = topology.text("podSetSliceRequiredTopology")
    return [(level, topology.whole("podSetSliceSize", 0))] if level else []  # without a size they fit nowhere


def _spots(assigned: ObjectPart) -> dict[str, int]:
    """Return how many pods are in which leaf, of an assignment in any version of the API.

    Source: pkg/util/tas/tas_assignment.go; since v1beta2 names are packed: what begins and ends alike is said once.
    """
    levels = _named(assigned, "levels")
    rows = [(_named(each, "values"), each.whole("count", 0)) for each in assigned.parts("domains")]
    for part in assigned.parts("slices"):
        count = part.whole("domainCount", 0)
        require(count <= _MOST_DOMAINS, count, part.place_of("domainCount"), f"Give at most {_MOST_DOMAINS}")
        names = [_values(each, count) for each in part.parts("valuesPerLevel")]
        pods = part.part("podCounts")
        counts = _named(pods, "individual") or [pods.whole("universal", 0)] * count
        known = all(type(each) is int and each >= 0 for each in counts)
        require(known, shown(counts), pods.place_of("individual"), "Give whole numbers")
        alike = bool(names) and all(len(each) == count for each in (*names, counts))
        require(alike, count, part.place_of("domainCount"), "Give as many names and counts as there are domains")
        rows += [(list(values), own) for values, own in zip(zip(*names, strict=True), counts, strict=True)]
    found: dict[str, int] = {}
    for values, own in rows:
        remedy = "Give a name for each level"
        require(len(values) == len(levels) > 0, shown(values), f"{assigned.place}, values", remedy)
        leaf = str(values[-1]) if levels[-1] == HOST else "/".join(map(str, values))
        found[leaf] = found.get(leaf, 0) + own
    return found


def _values(level: ObjectPart, count: int) -> list[str]:
    if "universal" in level.value:
        return [level.text("universal")] * count
    own = level.part("individual")
    return [f"{own.text('prefix')}{each}{own.text('suffix')}" for each in _named(own, "roots")]


_named = partial(listed_in, kinds=(str, int), wanted="names or numbers")


def _may_run(pod: ObjectPart, node: ObjectPart, tolerated: Iterable[ObjectPart]) -> bool:
    """Return whether a node's taints, labels and name let pods run there."""
    taints = [each.value for each in node.part("spec").parts("taints") if each.value.get("effect") in _EFFECTS]
    if not all(any(tolerates(each.value, taint) for each in tolerated) for taint in taints):
        return False
    labels = _labels(node)
    if any(labels.get(key) != value for key, value in pod.part("nodeSelector").value.items()):
        return False
    required = pod.at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution").parts("nodeSelectorTerms")
    name = {"metadata.name": node.part("metadata").text("name")}
    return not required or any(
        all(matches(each, labels) for each in term.parts("matchExpressions"))
        and all(matches(each, name) for each in term.parts("matchFields"))
        for term in required
        if term.parts("matchExpressions") or term.parts("matchFields")
    )
