"""KAI Scheduler's queues, pod groups, nodes and pods as a market with entitlements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.documents import Document, found_in
from fairopt.importing.fields import ObjectPart, Places
from fairopt.importing.imported import Imported
from fairopt.importing.kai_objects import DEFAULT_POOL, FIELDS, GPUS, POOL, PRODUCT, QUEUE_PRIORITY, SNAPSHOT, UNITS
from fairopt.importing.kai_pods import PodGang, Workloads
from fairopt.importing.kai_snapshot import snapshot
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import exact, shown
from fairopt.program import INFINITY

#: A snapshot's lists, and the kinds of what is in them. Source: pkg/scheduler/plugins/snapshot/snapshot.go.
_LISTS: Mapping[str, str] = {
    "pods": "Pod",
    "nodes": "Node",
    "queues": "Queue",
    "podGroups": "PodGroup",
    "bindRequests": "BindRequest",
    "priorityClasses": "PriorityClass",
}
_GROUPS: Mapping[str, str] = {"Queue": "scheduling.run.ai/v2", "PodGroup": "scheduling.run.ai/v2alpha2"}


class _Queue(NamedTuple):
    """A queue: amounts by resource, in GPUs, cores and bytes."""

    name: str
    created: int
    pool: str
    parent: str
    tier: int
    quota: Mapping[str, Any]
    limit: Mapping[str, Any]
    weight: Fraction


class _Node(NamedTuple):
    """A node that is ready: its pool, its GPUs' product, and what there is of each resource."""

    pool: str
    product: str
    there: Mapping[str, Fraction]


def read(*paths: AnyPath, product: bool = False) -> Imported:
    """Read KAI Scheduler's saved objects: the zip of ``/get-snapshot``, or what ``kubectl get -o json`` printed.

    ``kubectl get queues.scheduling.run.ai,podgroups.scheduling.run.ai,nodes,pods,priorityclasses -A -o json``. Users
    are queues without queues below them, groups the others, GPU types the node pools; CPU cores and bytes of memory are
    goods of each pool. A quota of -1 is infinite, and a limit of 0, or none at all, lets a queue hold nothing. Speedups
    are unknown: any positive ones. With ``product`` a type is called after the only GPU product of its pool. A gang is
    the least number of pods with which its group starts; each pod beyond them is a gang of its own.

    Errors: `BadInput` that names the file, the object, the value and what to do.

    Source: pkg/apis/scheduling/v2 and v2alpha2, pkg/scheduler/cache/cluster_info/cluster_info.go and
    pkg/scheduler/plugins/proportion/proportion.go at d5bc503a; docs/plugins/snapshot.md.
    """
    cluster = _Cluster()
    for path in paths:
        with naming(path):
            for document in snapshot(path) if Path(path).suffix.lower() == ".zip" else found_in(path):
                cluster.take(document)
    with naming(", ".join(map(str, paths))):
        return cluster.imported(product)


class _Cluster:
    """What was read so far."""

    def __init__(self) -> None:
        self.places = Places()
        self.pool = POOL
        self.queues: dict[str, _Queue] = {}
        self.nodes: dict[str, _Node] = {}
        self.workloads = Workloads(self.places)
        self.declared: dict[str, dict[str, dict[str, Fraction]]] = {}

    # -- reading ---------------------------------------------------------------------------------------------------
    def take(self, document: Document) -> None:
        """Read one document: an object, or a snapshot with lists of them."""
        place, value = document
        if "rawObjects" not in value:
            kind = ObjectPart(place, value).text("kind")
            require(bool(kind), "no kind", place, "Give objects with apiVersion, kind and metadata")
            self._object(kind, place, value)
            return
        whole = ObjectPart(place, value)
        self._snapshot(whole)
        for key, found in whole.part("rawObjects").value.items():
            for each in whole.part("rawObjects").parts(key) if found is not None else ():
                self._object(_LISTS.get(key, key), each.place, each.value)

    def _snapshot(self, whole: ObjectPart) -> None:
        params = whole.part("schedulerParams")
        self.workloads.scheduler = params.text("schedulerName", self.workloads.scheduler)
        self.pool = params.part("partitionParams").text("NodePoolLabelKey", self.pool)
        rest = {key: value for key, value in whole.value.items() if key != "rawObjects"}
        self.places.of("snapshot", "the scheduler's", rest, SNAPSHOT)
        if params.value and not params.flag("fullHierarchyFairness", False):
            why = "this scheduler takes all queues with a parent for siblings; here the tree stays as it is written"
            self.places.note("snapshot, schedulerParams.fullHierarchyFairness", "the scheduler's", "off", why)

    def _object(self, kind: str, place: str, value: Mapping[str, Any]) -> None:
        name = ObjectPart(place, value).part("metadata").text("name")
        version = ObjectPart(place, value).text("apiVersion")
        if kind not in FIELDS or (version and not version.startswith(_GROUPS.get(kind, "").partition("/")[0])):
            self.places.note(f"objects of kind {kind}{f', {version}' if version else ''}", name, name, "not looked at")
            return
        require(bool(name), "no name", f"{place}, metadata, name", "Give each object its name")
        require(version in ("", _GROUPS.get(kind, version)), version, f"{kind} {name!r}", f"Give {_GROUPS.get(kind)}")
        self.places.of(kind, name, value, FIELDS[kind])
        reader = {"Queue": self._queue, "Node": self._node}.get(kind)
        part = ObjectPart(f"{kind} {name!r}", value)
        if reader is not None:
            reader(name, part)
        else:
            self.workloads.take(kind, name, part)

    def _queue(self, name: str, queue: ObjectPart) -> None:
        require(name not in self.queues, shown(name), "Queue, metadata, name", "Give each queue once")
        spec, metadata = queue.part("spec"), queue.part("metadata")
        resources = spec.part("resources")
        parts = {resource: resources.part(resource) for resource in UNITS}
        weights = {each: _quantity(part, "overQuotaWeight", 1, least=0) for each, part in parts.items() if part.value}
        weight = weights.get("gpu", Fraction(0))
        for resource, own in weights.items():
            if own != weight:
                why = "a queue has one weight here, that of its GPUs"
                self.places.note(f"Queue, spec.resources.{resource}.overQuotaWeight", name, str(own), why)
        for key, part in parts.items():
            self.places.of(f"Queue, spec.resources.{key}", name, part.value, _AMOUNTS)
        self.queues[name] = _Queue(
            name,
            metadata.seconds("creationTimestamp"),
            metadata.part("labels").text(self.pool) or DEFAULT_POOL,
            spec.text("parentQueue"),
            spec.whole("priority", QUEUE_PRIORITY, least=-(2**31)),
            {each: _quantity(part, "quota", UNITS[each]) for each, part in parts.items()},
            {each: _quantity(part, "limit", UNITS[each]) for each, part in parts.items()},
            weight,
        )
        status = queue.part("status")
        self.declared[name] = {
            key: status.amounts(key) for key in ("allocated", "requested", "allocatedNonPreemptible")
        }

    def _node(self, name: str, node: ObjectPart) -> None:
        require(name not in self.nodes, shown(name), "Node, metadata, name", "Give each node once")
        labels, status = node.part("metadata").part("labels"), node.part("status")
        there = status.amounts("allocatable")
        gpus = sum((there.get(each, Fraction(0)) for each in GPUS), Fraction(0))
        require(gpus.denominator == 1, str(gpus), f"{node.place}, status, allocatable, GPUs", "Give a whole number")
        for resource, found in there.items():
            if resource.startswith("nvidia.com/mig-") and found:
                why = "slices of GPUs are not counted"
                self.places.note(f"Node, status.allocatable, {resource}", name, str(found), why)
        unready = node.part("spec").flag("unschedulable", False) or any(
            each.text("status") != ("True" if each.text("type") == "Ready" else "False")
            for each in status.parts("conditions")
            if each.text("type") in _CONDITIONS
        )
        if unready:
            self.places.note("Node", name, f"{gpus} GPUs", "it is not ready, and KAI does not count it")
            there, gpus = {}, Fraction(0)
        amounts = {each: there.get(each, Fraction(0)) for each in ("cpu", "memory")} | {"gpu": gpus}
        self.nodes[name] = _Node(labels.text(self.pool) or DEFAULT_POOL, labels.text(PRODUCT), amounts)

    # -- putting it together ---------------------------------------------------------------------------------------
    def imported(self, product: bool) -> Imported:
        """Return the market, what has no place in it, and what the queues' status says."""
        there = self._there()
        called = self._called(there, product)
        queues = self._placed(called)
        above = {queue.parent for queue in queues if queue.parent}
        leaves = [queue for queue in queues if queue.name not in above]
        if not leaves:
            remedy = (
                "Add what kubectl get queues.scheduling.run.ai -o json prints, and nodes with the label of their pool"
            )
            raise BadInput("no queue in a node pool that has GPUs", place="queues and nodes", remedy=remedy)
        held, fixed, asked, gangs = self.workloads.of({queue.name: called[queue.pool] for queue in leaves})
        types, users = tuple(called.values()), [queue.name for queue in leaves]
        own = {queue.name: called[queue.pool] for queue in queues}
        named = {queue.name: queue for queue in queues}
        market = Market.of(
            [[int(own[name] == each) for each in types] for name in users],
            [there[pool]["gpu"] for pool in called],
            users=users,
            types=types,
            least=[[0] * len(types)] * len(users),
            most=[[None if own[name] == each else 0 for each in types] for name in users],
            entitlements=Entitlements.of(
                users,
                types,
                group={queue.name: queue.parent for queue in queues if queue.parent},
                groups=[queue.name for queue in queues if queue.name in above],
                goods={Good(each, called[pool]): there[pool][each] for pool in called for each in ("cpu", "memory")},
                guarantee={name: _row(queue.quota, own[name]) for name, queue in named.items()},
                cap={
                    name: dict.fromkeys([*types, *(f"{r}:{t}" for t in types for r in ("cpu", "memory"))], 0)
                    | _row(queue.limit, own[name])
                    for name, queue in named.items()
                },
                borrow_weight={queue.name: queue.weight for queue in queues},
                tier={queue.name: queue.tier for queue in queues},
                held={name: _row(row, own[name]) for name, row in held.items()},
                fixed={name: _row(row, own[name]) for name, row in fixed.items()},
                gangs=_gangs(gangs, users, types, own),
            ),
        )
        stated = {name: _stated(said, own[name]) for name, said in self.declared.items() if name in named}
        requested = _requested(asked, self.workloads.sliced, {queue.name: queue.parent for queue in queues}, own)
        return Imported(market, self.places.unplaced, {name: said for name, said in stated.items() if said}, requested)

    def _there(self) -> dict[str, dict[str, Fraction]]:
        """Return how much each pool has of each resource, without what pods of other schedulers take."""
        there: dict[str, dict[str, Fraction]] = {}
        for node in self.nodes.values():
            pool = there.setdefault(node.pool, dict.fromkeys(UNITS, Fraction(0)))
            for resource, found in node.there.items():
                pool[resource] += found
        for name, taken in self.workloads.others:
            if name in self.nodes and any(self.nodes[name].there.values()):
                pool = there[self.nodes[name].pool]
                pool.update({each: max(Fraction(0), pool[each] - found) for each, found in taken.items()})
        return there

    def _called(self, there: Mapping[str, Mapping[str, Fraction]], product: bool) -> dict[str, str]:
        """Return the pools that have GPUs, and what their type is called."""
        called = {pool: pool for pool, amounts in there.items() if amounts["gpu"] > 0}
        for pool in called if product else ():
            names = {each.product for each in self.nodes.values() if each.pool == pool and each.there["gpu"]}
            if len(names) != 1 or names & (set(called.values()) | {""}):
                remedy = "Leave product out: KAI counts all GPUs of a pool alike"
                raise BadInput(f"{len(names)} products: {sorted(names)}", place=f"node pool {pool!r}", remedy=remedy)
            called[pool] = names.pop()
        return called

    def _placed(self, called: Mapping[str, str]) -> list[_Queue]:
        """Return the queues that take part, the eldest first."""
        kept = []
        for queue in sorted(self.queues.values(), key=lambda each: (each.created, each.name)):
            at: _Queue | None = queue
            seen: set[str] = set()
            while at is not None and at.parent and at.name not in seen:
                seen.add(at.name)
                at = self.queues.get(at.parent)
            if at is None:
                self.places.note(
                    "Queue, spec.parentQueue", queue.name, queue.parent, "no such queue: KAI leaves it out"
                )
            elif queue.pool not in called:
                self.places.note("Queue", queue.name, queue.pool, "its node pool has no GPUs that are ready")
            elif queue.parent and self.queues[queue.parent].pool != queue.pool:
                remedy = f"A queue and the one above it have the same label {POOL}"
                raise BadInput(f"got {queue.pool!r}", place=f"Queue {queue.name!r}, node pool", remedy=remedy)
            else:
                kept.append(queue)
        return kept


_AMOUNTS = dict.fromkeys(("quota", "limit", "overQuotaWeight"), "")
#: Source: pkg/scheduler/scheduler_util/scheduler_utils.go, CheckNodeConditionPredicate.
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def _quantity(part: ObjectPart, key: str, unit: Fraction | int, *, least: int = -1) -> Any:
    """Return what a queue says in ``unit``, infinity for -1, and 0 where it says nothing."""
    said = part.value.get(key)
    found = exact(0 if said is None else said, f"{part.place}, {key}")
    wanted = "Give a number that is not negative" + (", or -1 for no bound" if least else "")
    require(found >= 0 or found == least, str(found), f"{part.place}, {key}", wanted)
    return INFINITY if found == -1 else found * unit


def _row(amounts: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Return amounts by the names of columns: of the type ``own``, and of its goods."""
    return {own if resource == "gpu" else f"{resource}:{own}": found for resource, found in amounts.items()}


def _stated(status: Mapping[str, Mapping[str, Fraction]], own: str) -> dict[str, Fraction]:
    """Return what a queue's status says, by what it is and the name of the column."""
    found: dict[str, Fraction] = {}
    for key, amounts in status.items():
        row = _row({"gpu" if each in GPUS else each: amount for each, amount in amounts.items()}, own)
        found |= {f"{key} {column}": amount for column, amount in row.items()}
    return found


def _requested(
    asked: Mapping[str, Mapping[str, Fraction]],
    sliced: Collection[str],
    parents: Mapping[str, str],
    own: Mapping[str, str],
) -> dict[str, dict[str, Fraction]]:
    """Return what the pods of each queue and of those below it ask for, those that run and parts of GPUs too.

    GPUs are left out where some are ``sliced``.
    """
    found: dict[str, dict[str, Fraction]] = {}
    uncounted = set()
    for queue in parents:
        at = queue
        while at:
            row = found.setdefault(at, {})
            if queue in sliced:
                uncounted.add(at)
            for column, amount in _row(asked.get(queue, dict.fromkeys(UNITS, Fraction(0))), own[queue]).items():
                row[f"requested {column}"] = row.get(f"requested {column}", Fraction(0)) + amount
            at = parents.get(at, "")
    for queue in uncounted:
        del found[queue][f"requested {own[queue]}"]
    return found


def _gangs(gangs: list[PodGang], users: list[str], types: tuple[str, ...], own: Mapping[str, str]) -> Gangs:
    return Gangs.of(
        [gang.group.queue for gang in gangs],
        [gang.takes["gpu"] for gang in gangs],
        users=users,
        types=types,
        names=[gang.name for gang in gangs],
        allowed=[[own[gang.group.queue]] for gang in gangs],
        on=[own[gang.group.queue] if gang.runs else None for gang in gangs],
        tier=[gang.group.tier for gang in gangs],
        preemptible=[gang.group.preemptible for gang in gangs],
        since=[gang.group.created for gang in gangs],
        other={each: [gang.takes[each] for gang in gangs] for each in ("cpu", "memory")},
    )
