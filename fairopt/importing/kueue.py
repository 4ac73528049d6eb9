"""Kueue's objects as a market: ClusterQueues are users, Cohorts groups, flavors of GPUs types, Workloads gangs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.importing.documents import found_in
from fairopt.importing.fields import ObjectPart, Places
from fairopt.importing.imported import Imported
from fairopt.importing.kueue_counted import counted
from fairopt.importing.kueue_fields import KINDS
from fairopt.importing.kueue_quotas import FlavorColumns, QuotaOwner, read_owner
from fairopt.importing.kueue_workloads import Amounts, Flavor, PodSet, ReadWorkload, read_workload, whole_gpus
from fairopt.numbers import in_full
from fairopt.problem.entitled_rows import Good
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.gangs import Gangs
from fairopt.problem.market import Market
from fairopt.program import INFINITY

#: Versions that were read; another is taken for the newest, and said.
VERSIONS = ("v1alpha1", "v1beta1", "v1beta2")
ASKED = "clusterqueues,cohorts,localqueues,resourceflavors,workloads,nodes -A -o json"


def read(*paths: AnyPath, resource: str | None = None) -> Imported:
    """Kueue: ClusterQueues, Cohorts, LocalQueues, ResourceFlavors, Workloads and Nodes that kubectl printed.

    Save them with ``kubectl get clusterqueues,cohorts,localqueues,resourceflavors,workloads,nodes -A -o json``; YAML
    is read too, and several files together. API versions v1alpha1 (Cohorts), v1beta1 and v1beta2. A type is a flavor
    of GPUs; ``resource`` names another resource to share, such as "cpu". The capacity is the sum of the quotas.
    ``declared`` has by ClusterQueue or Cohort: weightedShare, the numbers of workloads, and "flavorsUsage GOOD total".

    Errors: `BadInput` that names the file, the object, the value and what to do.

    Source: kubernetes-sigs/kueue ff69552e, apis/kueue.

    >>> from importlib.resources import files
    >>> read(files("fairopt.datasets").joinpath("clusters/kueue/story3.yaml")).problem
    <Market: 5 users, 1 types (a100), 300 GPUs>
    """
    places = Places()
    if not paths:
        raise BadInput("no file", place="read", remedy="Give what kubectl get -o json printed")
    found = Objects()
    for path in paths:
        with naming(path):
            _collect(path, found, places)
    with naming(", ".join(str(path) for path in paths)):
        market = _market(found, places, resource)
    declared = {found.called(owner): owner.declared for owner in found.owners if owner.declared}
    added = counted(found.queues, found.works.values(), found.local) if found.workloads else {}
    return Imported(market, places.unplaced, declared, added)


@dataclass
class Objects:
    """What the files hold, by kind."""

    queues: dict[str, QuotaOwner] = field(default_factory=dict)
    cohorts: dict[str, QuotaOwner] = field(default_factory=dict)
    #: The ClusterQueue of each LocalQueue, and its stop policy; by namespace and name.
    local: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    #: Decayed usage by ClusterQueue, as its LocalQueues say.
    consumed: dict[str, Amounts] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)
    works: dict[str, ReadWorkload] = field(default_factory=dict)
    nodes: dict[str, tuple[Mapping[str, Any], Amounts]] = field(default_factory=dict)
    workloads: bool = False

    @property
    def owners(self) -> list[QuotaOwner]:
        """All ClusterQueues, then all Cohorts."""
        return [*self.queues.values(), *self.cohorts.values()]

    def called(self, owner: QuotaOwner) -> str:
        """Return the name of the user or group that an owner is."""
        return self.group(owner.name) if self.cohorts.get(owner.name) is owner else owner.name

    def group(self, cohort: str) -> str:
        """Return the name of the group that a Cohort is: a ClusterQueue may have the same."""
        return f"cohort {cohort}" if cohort in self.queues else cohort


def _collect(path: AnyPath, found: Objects, places: Places) -> None:
    for document in found_in(path):
        part = ObjectPart(document.place, document.value)
        kind, version = part.text("kind"), part.text("apiVersion")
        if not kind:
            raise BadInput("no kind", place=document.place, remedy="Give objects as kubectl get -o json prints them")
        name, namespace = part.part("metadata").text("name"), part.part("metadata").text("namespace")
        group, _, number = version.rpartition("/")
        if kind not in KINDS or group != ("" if kind == "Node" else "kueue.x-k8s.io"):
            places.note(f"kind {kind}", name, version or "no apiVersion", "not an object that quotas are made of")
            continue
        if kind != "Node" and number not in VERSIONS:
            places.note(f"{kind}, apiVersion", name, version, f"not known here, and read as {VERSIONS[-1]}")
        if not name:
            raise BadInput("no name", place=f"{document.place}, metadata", remedy="Give each object a name")
        own = ObjectPart(f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}", document.value)
        places.of(kind, name, document.value, KINDS[kind])
        _add(kind, (namespace, name), own, found, places)


def _add(kind: str, name: tuple[str, str], part: ObjectPart, found: Objects, places: Places) -> None:
    spec = part.part("spec")
    into: dict[Any, Any]
    key: Any = name[1]
    value: Any
    match kind:
        case "ClusterQueue":
            into, value = found.queues, read_owner(part)
        case "Cohort":
            into, value = found.cohorts, read_owner(part)
        case "LocalQueue":
            into, key, value = found.local, name, (spec.text("clusterQueue"), spec.text("stopPolicy", "None"))
            usage = part.part("status").part("fairSharing").part("admissionFairSharingStatus")
            for resource, amount in usage.amounts("consumedResources").items():
                own = found.consumed.setdefault(value[0], {})
                own[resource] = own.get(resource, Fraction(0)) + amount
        case "ResourceFlavor":
            tolerations = [each.value for each in spec.parts("tolerations")]
            value = Flavor(
                spec.part("nodeLabels").value, [each.value for each in spec.parts("nodeTaints")], tolerations
            )
            into = found.flavors
        case "Workload":
            found.workloads = True
            work = read_workload(part)
            if isinstance(work, str):
                return places.note("Workload", part.place, "not taken over", work)
            into, key, value = found.works, work.name, work
        case _:
            usable = not spec.flag("unschedulable", False)
            allocatable = part.part("status").amounts("allocatable") if usable else {}
            into, value = found.nodes, (part.part("metadata").part("labels").value, allocatable)
    if key in into:
        raise BadInput("it stands twice", place=part.place, remedy="Give each object once")
    into[key] = value
    return None


def _market(found: Objects, places: Places, resource: str | None) -> Market:
    if not found.queues:
        remedy = (
            "Save them with kubectl get clusterqueues,cohorts,localqueues,resourceflavors,workloads,nodes -A -o json"
        )
        raise BadInput("no ClusterQueue", place="kind", remedy=remedy)
    columns = FlavorColumns(found.owners, resource)
    users = list(found.queues)
    gangs = Gangs.of(**_listed(list(_gangs(found, columns, places)), columns), users=users, types=columns.types)
    total = columns.sums(found.owners)
    names = [*columns.types, *map(str, columns.goods)]
    owned = {found.called(owner): columns.quotas(owner) for owner in found.owners}
    parents = {found.called(owner): found.group(owner.parent) for owner in found.owners if owner.parent}
    groups = list(dict.fromkeys([*map(found.group, found.cohorts), *parents.values()]))
    guarantee, cap, reserve = _rows(owned, parents, users, groups, names)
    held = None if found.workloads else {user: _reserved(queue, columns) for user, queue in found.queues.items()}
    owed = Entitlements.of(
        users,
        columns.types,
        group=parents,
        groups=groups,
        goods={good: total[str(good)] for good in columns.goods},
        guarantee=guarantee,
        cap=cap,
        reserve=reserve,
        borrow_weight={found.called(owner): owner.weight for owner in found.owners},
        held=held,
        usage=_consumed(found, columns),
        gangs=gangs,
    )
    _tell(found, columns, places, total)
    capacity = [max(total[name], owed.held[:, at].sum()) for at, name in enumerate(columns.types)]
    for at, name in enumerate(columns.types):
        if capacity[at] > total[name]:
            text = f"{in_full(capacity[at])} in use, {in_full(total[name])} in quotas"
            places.note("ClusterQueue, quotas", name, text, "the capacity is what is in use")
    n, k = len(users), len(columns.types)
    return Market.of(
        [[1] * k] * n,
        capacity,
        users=users,
        types=columns.types,
        least=[[0] * k] * n,
        most=[[None] * k] * n,
        entitlements=owed,
    )


def _reserved(queue: QuotaOwner, columns: FlavorColumns) -> dict[str, Fraction]:
    """Return what a ClusterQueue's status says that it holds, where the files have no Workloads."""
    named = ((columns.name(good), amount) for good, amount in queue.reserved.items())
    return {name: amount for name, amount in named if name is not None}


def _consumed(found: Objects, columns: FlavorColumns) -> dict[str, Fraction]:
    """Return the decayed usage of what is shared, by ClusterQueue."""
    return {
        user: sum((amounts.get(each, Fraction(0)) for each in columns.resources), Fraction(0))
        for user, amounts in found.consumed.items()
        if user in found.queues
    }


def _rows(
    owned: Mapping[str, Mapping[str, Any]],
    parents: Mapping[str, str],
    users: list[str],
    groups: list[str],
    names: list[str],
) -> tuple[dict[str, Any], ...]:
    """Return guarantees, caps and reserves by node and column; a group's are those of the whole group."""
    below: dict[str, list[str]] = {}
    for child, parent in parents.items():
        below.setdefault(parent, []).append(child)
    rows: tuple[dict[str, Any], ...] = ({}, {}, {})
    for node in (*users, *groups):
        own = owned.get(node, {})
        inside, level = [node], [node]
        while level and len(inside) <= len(users) + len(groups):  # a circle is refused with the entitlements
            level = [child for each in level for child in below.get(each, [])]
            inside += level
        for row in rows:
            row[node] = {}
        for name in names:
            quota = own.get(name)
            whole = sum((owned[each][name].nominal for each in inside if name in owned.get(each, {})), Fraction(0))
            most: Fraction | float = INFINITY
            if node in users and (quota is None or node not in parents):
                most = whole  # nothing is borrowed without a Cohort, nor where no quota is listed
            elif quota is not None and quota.borrowing is not None:
                most = whole + quota.borrowing
            rows[0][node][name], rows[1][node][name] = whole, most
            lending = None if quota is None else quota.lending
            rows[2][node][name] = Fraction(0) if lending is None else max(Fraction(0), whole - lending)
    return rows


class WorkloadGang(NamedTuple):
    """A gang to be: what `Gangs.of` takes of one."""

    name: str
    user: str
    gpus: int
    on: str | None
    allowed: tuple[str, ...]
    work: ReadWorkload
    other: Amounts


def _listed(gangs: list[WorkloadGang], columns: FlavorColumns) -> dict[str, Any]:
    resources = sorted({resource for gang in gangs for resource in gang.other if resource in columns.counted})
    return {
        "user": [gang.user for gang in gangs],
        "gpus": [gang.gpus for gang in gangs],
        "names": [gang.name for gang in gangs],
        "allowed": [gang.allowed for gang in gangs],
        "on": [gang.on for gang in gangs],
        "tier": [gang.work.priority for gang in gangs],
        "since": [gang.work.since for gang in gangs],
        "other": {each: [gang.other.get(each, Fraction(0)) for gang in gangs] for each in resources},
    }


def _gangs(found: Objects, columns: FlavorColumns, places: Places) -> Iterator[WorkloadGang]:
    for work in found.works.values():
        local, stopped = found.local.get(work.local_queue, ("", ""))
        queue = found.queues.get(work.admitted or local)
        if not work.admitted and not local:
            places.note("Workload, spec.queueName", work.name, work.local_queue[1], "its LocalQueue is not in the file")
        elif queue is None:
            places.note("Workload", work.name, work.admitted or local, "its ClusterQueue is not in the file")
        elif not work.admitted and (queue.stopped or stopped != "None"):
            places.note(
                "Workload, stopPolicy", work.name, queue.stopped or stopped, "its queue is stopped: it does not wait"
            )
        else:
            yield from _of_work(work, queue, found, columns, places)


def _of_work(
    work: ReadWorkload, queue: QuotaOwner, found: Objects, columns: FlavorColumns, places: Places
) -> Iterator[WorkloadGang]:
    """Yield the gangs of a Workload: one where a single type can hold all of its GPUs, else one for each pod set."""
    parts: list[tuple[str, int, tuple[str, ...], Amounts]] = []
    for pods in work.pod_sets:
        asked = [each for each in columns.resources if pods.amounts.get(each)]
        other = {each: amount for each, amount in pods.amounts.items() if amount and each not in columns.resources}
        for each in other:
            if each not in columns.counted and each != "pods":
                places.note(f"Workload, {each}", work.name, in_full(other[each]), "no quota counts this resource")
        if not asked:
            parts.append((pods.name, 0, _types_for(pods, work, queue, None, found, columns), other))
        for number, each in enumerate(asked):
            gpus = whole_gpus(pods.amounts[each], f"Workload {work.name}, pod set {pods.name}, {each}")
            parts.append(
                (pods.name, gpus, _types_for(pods, work, queue, each, found, columns), {} if number else other)
            )
        _counted_elsewhere(pods, columns, work, places)
    common = set(columns.types).intersection(*(allowed for _, _, allowed, _ in parts))
    if parts and common:
        total: Amounts = {}
        for _, _, _, other in parts:
            for each, amount in other.items():
                total[each] = total.get(each, Fraction(0)) + amount
        gpus = sum(gpus for _, gpus, _, _ in parts)
        parts = [("", gpus, tuple(each for each in columns.types if each in common), total)]
    elif len(parts) > 1 and not work.admitted:
        places.note(
            "Workload, spec.podSets", work.name, "apart", "pod sets on several flavors start apart here, not together"
        )
    for number, (name, gpus, allowed, other) in enumerate(parts):
        if not allowed:
            where = "flavors of its ClusterQueue" if not work.admitted else "an unknown flavor"
            places.note("Workload, flavors", work.name, where, "no flavor with quotas fits its pods, so it is left out")
            continue
        again = "" if name not in [each[0] for each in parts[:number]] else f"/{number + 1}"
        called = f"{work.name}/{name}{again}" if name else work.name
        yield WorkloadGang(called, queue.name, gpus, allowed[0] if work.admitted else None, allowed, work, other)


def _types_for(
    pods: PodSet, work: ReadWorkload, queue: QuotaOwner, resource: str | None, found: Objects, columns: FlavorColumns
) -> tuple[str, ...]:
    """Return the types where a pod set runs, or may run; all of them where it takes none of what is shared."""
    if work.admitted:
        if resource is not None:
            own = columns.type_of.get(Good(resource, pods.flavors.get(resource, "")))
            return () if own is None else (own,)
        used = set(pods.flavors.values())
        return tuple(kind for good, kind in columns.type_of.items() if good.flavor in used) or columns.types
    listed = [good for good in queue.quotas if good in columns.type_of and resource in (None, good.resource)]
    fits = [good for good in listed if good.flavor not in found.flavors or pods.fits(found.flavors[good.flavor])]
    own_types = {columns.type_of[good] for good in fits}
    allowed = tuple(each for each in columns.types if each in own_types)
    return allowed or (columns.types if resource is None else ())


def _counted_elsewhere(pods: PodSet, columns: FlavorColumns, work: ReadWorkload, places: Places) -> None:
    types = {columns.type_of.get(Good(each, pods.flavors.get(each, ""))) for each in columns.resources} - {None}
    for resource, flavor in pods.flavors.items():
        good = columns.good_of.get(Good(resource, flavor))
        if (
            good is not None
            and good.flavor not in types
            and any(Good(resource, kind or "") in columns.goods for kind in types)
        ):
            places.note(f"Workload, flavor of {resource}", work.name, flavor, "here it is counted where the GPUs are")


def _tell(found: Objects, columns: FlavorColumns, places: Places, total: Mapping[str, Fraction]) -> None:
    """Note what quotas and nodes say that one column for each type cannot."""
    for resource, names in columns.merged.items():
        places.note(f"flavors of {resource}", names[0], ", ".join(names), "no GPU types, and counted together here")
    if len(columns.resources) > 1:
        names = columns.resources
        places.note("resources", names[0], ", ".join(names), "one kind of GPUs here; Kueue's shares count them apart")
    for queue in found.queues.values():
        order = [columns.types.index(columns.type_of[good]) for good in queue.quotas if good in columns.type_of]
        if order != sorted(order):
            flavors = ", ".join(good.flavor for good in queue.quotas if good in columns.type_of)
            places.note("ClusterQueue, order of flavors", queue.name, flavors, "here all try the types in one order")
    for good, kind in columns.type_of.items() if found.nodes else ():
        labels = found.flavors[good.flavor].labels if good.flavor in found.flavors else {}
        there = [
            amounts.get(good.resource, Fraction(0))
            for own, amounts in found.nodes.values()
            if labels and all(own.get(key) == value for key, value in labels.items())
        ]
        if sum(there) != total[kind]:
            text = f"{in_full(Fraction(sum(there)))} on nodes, {in_full(total[kind])} in quotas"
            places.note("Node, status.allocatable", kind, text, "quotas are the capacity here, as for Kueue")
    for owner in found.owners:
        if "weightedShare" in owner.declared:
            why = "fair sharing is on, which the policy kueue has as its option fair_sharing"
            places.note("status.fairSharing", owner.name, f"weightedShare {owner.declared['weightedShare']}", why)
