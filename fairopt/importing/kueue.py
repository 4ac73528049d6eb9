"""Kueue's objects as a market: ClusterQueues are users, Cohorts groups, flavors of GPUs types, Workloads gangs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.documents import AMOUNTS, in_files
from fairopt.importing.imported import Imported, ImportedQueue, entitlements_of, market_of
from fairopt.importing.kubernetes import Objects, add, documents, objects, unpacked
from fairopt.importing.kueue_configuration import CONFIGURATIONS, KEY, settings_of
from fairopt.importing.kueue_objects import GROUP, GROUPS, HARMLESS, KINDS, NODES, ORDER, PLACES, RULES
from fairopt.importing.kueue_quotas import FlavorColumns, read_owner
from fairopt.importing.kueue_topology import Topology
from fairopt.importing.kueue_workloads import gangs_in, work_reader
from fairopt.importing.unplaced import Places
from fairopt.numbers import in_full
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.program import Number

#: Versions that were read; another is taken for the newest, and said.
VERSIONS = ("v1alpha1", "v1beta1", "v1beta2")
_NONE = Fraction(0)


def read(*paths: AnyPath, resource: str | None = None) -> Imported:
    """Kueue: ClusterQueues, Cohorts, LocalQueues, ResourceFlavors, Workloads, Nodes and Pods that kubectl printed.

    Save them with ``kubectl get -A -o json clusterqueues,cohorts,localqueues,resourceflavors,topologies,workloads,``
    ``admissionchecks,nodes``; YAML is read too, and several files together. Pods matter where a flavor has a topology.
    API versions v1alpha1 (Cohorts), v1beta1 and v1beta2. A type is a flavor
    of GPUs; ``resource`` names another resource to share, such as "cpu". The capacity is the sum of the quotas.
    ``declared`` has by ClusterQueue or Cohort: weightedShare, the numbers of workloads, and "flavorsUsage GOOD total".

    Errors: `BadInput` that names the file, the object, the value and what to do.

    Source: kubernetes-sigs/kueue ff69552e, apis/kueue.

    >>> from importlib.resources import files
    >>> read(files("fairopt.datasets").joinpath("clusters/kueue/story3.yaml")).problem
    <Market: 5 users, 1 type (a100), 300 GPUs>
    """
    if not paths:
        raise BadInput("no file", place="read", remedy="Give what kubectl get -o json printed")
    places = Places(HARMLESS)
    kinds = {kind: (GROUPS.get(kind, GROUP), known) for kind, known in KINDS.items()}
    with naming(", ".join(map(str, paths))), in_files(paths):
        read_work = work_reader()

        def reader(kind: str) -> Callable[[str, ObjectPart], Any]:
            def read(name: str, part: ObjectPart) -> Any:
                if (version := part.text("apiVersion")).rpartition("/")[2] not in VERSIONS:
                    places.note(f"{kind}, apiVersion", name, version, f"not known here, and read as {VERSIONS[-1]}")
                return read_work(part) if kind == "Workload" else part

            return read

        readers = {kind: reader(kind) for kind in KINDS if kind not in GROUPS}
        found = objects(unpacked(documents(paths), KEY, CONFIGURATIONS, "Configuration"), kinds, places, readers)
        return _imported(found, resource, places)


def _imported(found: Objects, resource: str | None, places: Places) -> Imported:
    queues = {name: read_owner(part) for name, part in found["ClusterQueue"].items()}
    cohorts = {name: read_owner(part) for name, part in found["Cohort"].items()}
    if not queues:
        remedy = (
            "Save them with kubectl get -A -o json "
            "clusterqueues,cohorts,localqueues,resourceflavors,topologies,admissionchecks,workloads,nodes"
        )
        raise BadInput("no ClusterQueue", place="kind", remedy=remedy)

    def group(cohort: str) -> str:  # a ClusterQueue may have the same name
        return f"cohort {cohort}" if cohort in queues else cohort

    owners = queues | {group(name): owner for name, owner in cohorts.items()}
    columns = FlavorColumns(list(owners.values()), resource)
    local = {name: _local(part) for name, part in found["LocalQueue"].items()}
    topology = Topology(found, columns)
    gangs, added = gangs_in(found, queues, local, columns, topology, places)
    total = dict.fromkeys((*columns.types, *map(str, columns.goods)), _NONE)
    for owner in owners.values():
        add(total, columns.row(owner.guarantee))
    parents = {name: group(owner.parent) for name, owner in owners.items() if owner.parent}
    groups = list(dict.fromkeys([*map(group, cohorts), *parents.values()]))
    nodes = _nodes(owners, parents, list(queues), groups, columns, total)
    for name, used in _consumed(found["LocalQueue"], queues, columns).items():
        nodes[name].usage = used
    for name in queues if not found["Workload"] else ():
        nodes[name].held = columns.row(queues[name].held)  # as the status says
    goods = {good: total[str(good)] for good in columns.goods}
    settings = settings_of(found["Configuration"], queues, places)
    if said := topology.setting():
        settings["topologies"] = said
        for kind, levels in topology.levels.items():
            places.note("ResourceFlavor, spec.topologyName", kind, ", ".join(levels), PLACES)
        if not found["Pod"]:
            places.note("kind Pod", "pods", "not in the files", "what pods that Kueue does not place take of nodes")
    owed = entitlements_of(nodes, list(queues), columns.types, gangs, goods=goods, settings=settings)
    _tell(found, owners, queues, columns, places, total)
    capacity = [max(total[name], owed.held[:, at].sum()) for at, name in enumerate(columns.types)]
    for at, name in enumerate(columns.types):
        if capacity[at] > total[name]:
            text = f"{in_full(capacity[at])} in use, {in_full(total[name])} in quotas"
            places.note("ClusterQueue, quotas", name, text, "the capacity is what is in use")
    declared = {name: owner.declared for name, owner in owners.items() if owner.declared}
    flavors: dict[str, list[str]] = {}
    for good, kind in columns.type_of.items():
        flavors.setdefault(good.flavor, []).append(kind)
    of: dict[str, tuple[str, Callable[[str], list[str] | None] | None]] = {
        "Workload": ("workload", None), "LocalQueue": ("local", None), "ClusterQueue": ("queue", None),
        "Cohort": ("queue", {name: [group(name)] for name in cohorts}.get), "ResourceFlavor": ("type", flavors.get),
    }  # fmt: skip
    unread = places.unread(gangs, of, parents)
    return Imported(market_of(owed, capacity), places.unplaced, declared, added, rules=RULES, unread=unread)


def _local(part: ObjectPart) -> tuple[str, str]:
    """Return the ClusterQueue of a LocalQueue, and its stop policy."""
    return part.part("spec").text("clusterQueue"), part.part("spec").text("stopPolicy", "None")


def _consumed(
    local: Mapping[str, ObjectPart], queues: Mapping[str, ImportedQueue], columns: FlavorColumns
) -> dict[str, Fraction]:
    """Return the decayed usage of what is shared, by ClusterQueue, as its LocalQueues say."""
    used: dict[str, Fraction] = {}
    for part in local.values():
        queue, told = _local(part)[0], part.at("status.fairSharing.admissionFairSharingStatus")
        amounts = told.read("consumedResources", AMOUNTS, {})
        if amounts and queue in queues:
            add(used, {queue: sum((amounts.get(each, _NONE) for each in columns.resources), _NONE)})
    return used


def _nodes(
    owners: Mapping[str, ImportedQueue],
    parents: Mapping[str, str],
    users: Sequence[str],
    groups: Sequence[str],
    columns: FlavorColumns,
    total: Mapping[str, Number],
) -> dict[str, ImportedQueue]:
    """Return guarantees, caps and reserves by node and column; a group's are those of the whole group.

    The cap of a Cohort at the root is the sum of its quotas, where other trees have quotas (``total``: of all) too.
    """
    below: dict[str, list[str]] = {}
    for child, parent in parents.items():
        below.setdefault(parent, []).append(child)
    own = {name: columns.row(owner.guarantee) for name, owner in owners.items()}
    nodes, leaves = dict[str, ImportedQueue](), frozenset(users)
    for node in (*users, *groups):
        owner = owners.get(node, ImportedQueue())
        borrowing, lending = columns.limits(owner)
        whole = dict.fromkeys((*columns.types, *map(str, columns.goods)), _NONE)
        inside, level = [node], [node]
        while level and len(inside) <= len(users) + len(groups):  # a circle is refused with the entitlements
            level = [child for each in level for child in below.get(each, [])]
            inside += level
        for each in inside:
            add(whole, own.get(each, {}))
        cap: dict[str, Number] = {name: most + borrowing[name] for name, most in whole.items() if name in borrowing}
        if node in own and node in leaves:  # nothing is borrowed without a Cohort, nor where no quota is listed
            cap |= {name: most for name, most in whole.items() if name not in own[node] or node not in parents}
        elif node in groups and node not in parents:  # the members of a cohort at the root have nothing but its quotas
            cap = {name: most for name, most in whole.items() if most < total[name]}
        reserve = {name: max(_NONE, whole[name] - least) for name, least in lending.items()}
        nodes[node] = ImportedQueue(
            parents.get(node, ""), whole, cap, reserve, weight=owner.weight, settings=owner.settings
        )
    return nodes


def _tell(
    found: Objects, owners: Mapping[str, ImportedQueue], queues: Mapping[str, ImportedQueue], columns: FlavorColumns,
    places: Places, total: Mapping[str, Fraction],
) -> None:  # fmt: skip
    """Note what quotas and nodes say that one column for each type cannot."""
    for resource, names in columns.merged.items():
        places.note(f"flavors of {resource}", names[0], ", ".join(names), "no GPU types, and counted together here")
    if len(columns.resources) > 1:
        shared = columns.resources
        places.note("resources", shared[0], ", ".join(shared), "one kind of GPUs here; Kueue's shares count them apart")
    for name, queue in queues.items():
        order = [
            columns.types.index(columns.type_of[good]) for good in queue.guarantee or () if good in columns.type_of
        ]
        if order != sorted(order):
            flavors = ", ".join(good.flavor for good in queue.guarantee or () if good in columns.type_of)
            places.note("ClusterQueue, order of flavors", name, flavors, ORDER)
    nodes = [
        (node.at("metadata.labels").value, node.part("status").read("allocatable", AMOUNTS, {}))
        for node in found["Node"].values()
        if not node.part("spec").flag("unschedulable", False)
    ]
    for good, kind in columns.type_of.items() if found["Node"] else ():
        flavor = found["ResourceFlavor"].get(good.flavor)
        labels = {} if flavor is None else flavor.at("spec.nodeLabels").value
        there = [
            amounts.get(good.resource, _NONE)
            for own, amounts in nodes
            if all(own.get(key) == value for key, value in labels.items())
        ]
        if labels and sum(there) != total[kind]:  # a flavor without labels does not say which nodes are its own
            text = f"{in_full(Fraction(sum(there)))} on nodes, {in_full(total[kind])} in quotas"
            places.note("Node, status.allocatable", kind, text, NODES)
