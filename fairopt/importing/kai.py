"""KAI Scheduler's queues, pod groups, nodes and pods as a market with entitlements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from fairopt.errors import BadInput, require
from fairopt.importing import kai_objects as kai
from fairopt.importing.documents import AMOUNTS, SECONDS, found_in, in_files
from fairopt.importing.imported import Imported, ImportedGang, ImportedQueue, entitlements_of, market_of
from fairopt.importing.kai_objects import FIELDS, GPUS, RULES, UNITS, VERSIONS
from fairopt.importing.kai_pods import (
    LEAST_MEMORY,
    MIG,
    NONE,
    Amounts,
    is_part,
    is_sliced,
    memory_of,
    pod_reader,
    pods_of,
    read_group,
    together_of,
    told,
)
from fairopt.importing.kubernetes import Objects, Pod, add, objects
from fairopt.importing.unplaced import Places
from fairopt.numbers import whole_as_int
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import exact
from fairopt.program import INFINITY

_AMOUNTS = dict.fromkeys(("quota", "limit", "overQuotaWeight"), "")
#: Source: pkg/scheduler/scheduler_util/scheduler_utils.go, CheckNodeConditionPredicate.
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_POOLED = "they count as one: that a gang fits on no nodes as they are, or that others could move, is not seen"


def read(*paths: AnyPath, product: bool = False) -> Imported:
    """Read KAI Scheduler's saved objects: the zip of ``/get-snapshot``, or what ``kubectl get -o json`` printed.

    ``kubectl get queues.scheduling.run.ai,podgroups.scheduling.run.ai,nodes,pods,priorityclasses -A -o json``. Users
    are queues without queues below them, groups the others, GPU types the node pools; CPU cores and bytes of memory are
    goods of each pool. A quota of -1 is infinite, and a limit of 0, or none at all, lets a queue hold nothing. Speedups
    are unknown: any positive ones. With ``product`` a type is called after the only GPU product of its pool. A gang is
    the least number of pods with which its group starts; each pod beyond them is a gang of its own. A pod whose group
    is not given counts for the queue of its label ``kai.scheduler/queue``.

    Errors: `BadInput` that names the file, the object, the value and what to do.

    Source: pkg/apis/scheduling/v2 and v2alpha2, pkg/scheduler/cache/cluster_info/cluster_info.go and
    pkg/scheduler/plugins/proportion/proportion.go at d5bc503a; docs/plugins/snapshot.md.
    """
    places, params = Places(kai.HARMLESS), {"scheduler": "kai-scheduler", "pool": kai.POOL}
    kinds = {kind: (VERSIONS[kind].rpartition("/")[0], known) for kind, known in FIELDS.items()}
    with naming(", ".join(map(str, paths))), in_files(paths):
        readers: Mapping[str, Callable[[str, ObjectPart], Any]]
        readers = {"Queue": kai.of_version, "PodGroup": read_group, "Pod": pod_reader()}
        found = objects(_documents(paths, params, places), kinds, places, readers)
        return _imported(found, params, product, places)


def _documents(
    paths: Sequence[AnyPath], params: dict[str, str], places: Places
) -> Iterator[tuple[AnyPath, ObjectPart]]:
    """Yield objects, also those in a snapshot's lists, each with its version; ``params`` get what a snapshot says."""
    for path in paths:
        for part in kai.snapshot(path) if Path(path).suffix.lower() == ".zip" else found_in(path):
            if "rawObjects" not in part.value:
                yield path, part if part.text("apiVersion") else _versioned(part, part.text("kind"))
                continue
            given = part.part("schedulerParams")
            params["scheduler"] = given.text("schedulerName", params["scheduler"])
            params["pool"] = given.part("partitionParams").text("NodePoolLabelKey", params["pool"])
            if part.part("config").text("actions"):
                params["actions"] = kai.actions_of(part, places)
            rest = {key: value for key, value in part.value.items() if key != "rawObjects"}
            places.of("snapshot", "the scheduler's", rest, kai.SNAPSHOT)
            if given.value and not given.flag("fullHierarchyFairness", False):
                why = "this scheduler takes all queues with a parent for siblings; here the tree stays as it is written"
                places.note("snapshot, schedulerParams.fullHierarchyFairness", "the scheduler's", "off", why)
            raw = part.part("rawObjects")
            for key in raw.value:
                yield from ((path, _versioned(each, kai.LISTS.get(key, key))) for each in raw.parts(key))


def _versioned(part: ObjectPart, kind: str) -> ObjectPart:
    """Return an object with its kind and version, which a snapshot leaves out."""
    said = part.text("apiVersion")
    if said and part.value.get("kind") == kind:
        return part
    version = said or VERSIONS.get(kind, "")
    return ObjectPart(part.place, {**part.value, "kind": kind, "apiVersion": version})


def _imported(found: Objects, params: Mapping[str, str], product: bool, places: Places) -> Imported:
    label, scheduler = params["pool"], params["scheduler"]
    nodes = {name: _node(name, part, places) for name, part in found["Node"].items()}
    pool_of = {name: _pool(part, label) for name, part in found["Node"].items()}
    product_of = {name: part.at("metadata.labels").text(kai.PRODUCT) for name, part in found["Node"].items()}
    known = [memory_of(part) for name, part in found["Node"].items() if nodes[name]["gpu"]]
    memory = min((each for each in known if each > LEAST_MEMORY), default=None)
    pods, others, group_of = pods_of(found, scheduler, memory, places)
    there: dict[str, Amounts] = {}
    for name, amounts in nodes.items():
        add(there.setdefault(pool_of[name], dict.fromkeys(UNITS, 0)), amounts)
    for name, taken in others:
        if any(nodes.get(name, {}).values()):
            left = there[pool_of[name]]
            left.update({each: max(NONE, left[each] - amount) for each, amount in taken.items()})
    called = {pool: pool for pool, amounts in there.items() if amounts["gpu"] > 0}
    for pool in called if product else ():
        products = {product_of[name] for name, at in pool_of.items() if at == pool and nodes[name]["gpu"]}
        if len(products) != 1 or products & (set(called.values()) | {""}):
            remedy = "Leave product out: KAI counts all GPUs of a pool alike"
            raise BadInput(f"{len(products)} products: {sorted(products)}", place=f"node pool {pool!r}", remedy=remedy)
        called[pool] = products.pop()
    own = {name: called.get(pool := _pool(part, label), pool) for name, part in found["Queue"].items()}
    queues = {name: _queue(name, part, own[name], places) for name, part in found["Queue"].items()}
    queues = {name: queues[name] for name in _placed(found["Queue"], label, called, places)}
    parents = {name: queue.parent for name, queue in queues.items()}
    above = set(parents.values())
    users = [name for name in parents if name not in above]
    if not users:
        remedy = "Add what kubectl get queues.scheduling.run.ai -o json prints, and nodes with the label of their pool"
        slices = sorted(
            {each for part in found["Node"].values() for each in part.at("status.allocatable").value if MIG in each}
        )
        more = f": nodes have {slices[0]}, and slices of GPUs are not counted" if slices else ""
        raise BadInput(f"no queue in a node pool that has GPUs{more}", place="queues and nodes", remedy=remedy)
    types = tuple(called.values())
    kinds = {user: own[user] for user in users}
    parted = {name for name, several in pods.items() if any(is_part(pod.devices[0]) for pod in several)}
    divided = {kinds.get(found["PodGroup"][name].queue, "") for name in parted} - {""}
    placed = set(types) if "consolidation" in params.get("actions", "") else divided
    asked, sliced, gangs = _workloads(found, pods, kinds, queues, placed, places)
    goods = {Good(each, called[pool]): there[pool][each] for pool in called for each in ("cpu", "memory")}
    nothing = dict.fromkeys([*types, *map(str, goods)], 0)
    for queue in queues.values():
        queue.cap = nothing | (queue.cap or {})
    for pool, kind in called.items():
        several = sum(pool_of[name] == pool and amounts["gpu"] > 0 for name, amounts in nodes.items())
        if several > 1 and kind not in placed:
            places.note("Node, GPUs by node", kind, f"{several} nodes", _POOLED)
    settings = {f"kai.{name}": said for name, said in params.items() if name == "actions"}
    for pool, kind in called.items():
        if kind in placed:
            settings[f"kai.nodes.{kind}"] = _told_nodes(
                found, {n: a for n, a in nodes.items() if pool_of[n] == pool}, others
            )
    if settings:
        settings = {"scheduler": "kai"} | settings
    owed = entitlements_of(queues, users, types, gangs, goods=goods, settings=settings)
    market = market_of(owed, [there[pool]["gpu"] for pool in called], own=own)
    stated = {name: _stated(part.part("status"), own[name]) for name, part in found["Queue"].items() if name in queues}
    declared = {name: said for name, said in stated.items() if said}
    counted = _requested(asked, sliced, parents, own)
    nodes_of = {name: [called.get(pool, "")] for name, pool in pool_of.items()} | {kind: [kind] for kind in types}
    of: dict[str, tuple[str, Callable[[str], Sequence[str] | None] | None]] = {
        "PodGroup": ("gang", None), "PodGroup with slices of GPUs": ("gang", None), "Queue": ("queue", None),
        "Pod": ("gang", group_of.get), "Node": ("type", nodes_of.get),
        "PriorityClass": ("class", None), "BindRequest": ("request", None),
    }  # fmt: skip
    unread = places.unread(gangs, of, parents)
    return Imported(market, places.unplaced, declared, counted, rules=RULES, unread=unread)


def _told_nodes(found: Objects, nodes: Mapping[str, Amounts], others: Sequence[tuple[str, Amounts]]) -> str:
    """Return how many GPUs each of a pool's nodes has for KAI, as `fairopt.models.kai.devices` reads it."""
    left = {name: amounts["gpu"] for name, amounts in nodes.items() if amounts["gpu"]}
    for name, taken in others:
        if name in left:
            left[name] = max(NONE, left[name] - taken["gpu"])
    return " ".join(f"{name}={floor(gpus)}{':whole' * is_sliced(found['Node'][name])}" for name, gpus in left.items())


# -- queues and nodes ----------------------------------------------------------------------------------------------
def _pool(part: ObjectPart, label: str) -> str:
    return part.at("metadata.labels").text(label) or kai.DEFAULT_POOL


def _queue(name: str, queue: ObjectPart, own: str, places: Places) -> ImportedQueue:
    """Return a queue whose GPUs are of the type ``own``."""
    spec, resources = queue.part("spec"), queue.at("spec.resources")
    parts = {resource: resources.part(resource) for resource in UNITS}
    weights = {each: _quantity(part, "overQuotaWeight", 1, least=0) for each, part in parts.items() if part.value}
    weight = weights.get("gpu", NONE)
    for resource, other in weights.items():
        if other != weight:
            why = "a queue has one weight here, that of its GPUs"
            places.note(f"Queue, spec.resources.{resource}.overQuotaWeight", name, str(other), why)
    for key, part in parts.items():
        places.of(f"Queue, spec.resources.{key}", name, part.value, _AMOUNTS)
    return ImportedQueue(
        parent=spec.text("parentQueue"),
        guarantee=_row({each: _quantity(part, "quota", UNITS[each]) for each, part in parts.items()}, own),
        cap=_row({each: _quantity(part, "limit", UNITS[each]) for each, part in parts.items()}, own),
        weight=weight,
        tier=spec.whole("priority", kai.QUEUE_PRIORITY, least=-(2**31)),
    )


def _quantity(part: ObjectPart, key: str, unit: Fraction | int, *, least: int = -1) -> Any:
    """Return what a queue says in ``unit``, infinity for -1, and 0 where it says nothing."""
    said = part.value.get(key)
    found = exact(0 if said is None else said, f"{part.place}, {key}")
    wanted = "Give a number that is not negative" + (", or -1 for no bound" if least else "")
    require(found >= 0 or found == least, str(found), f"{part.place}, {key}", wanted)
    return INFINITY if found == -1 else found * unit


def _node(name: str, node: ObjectPart, places: Places) -> Amounts:
    """Return what a node has of each resource: nothing where it is not ready."""
    status = node.part("status")
    there = status.read("allocatable", AMOUNTS, {})
    gpus = sum((there.get(each, NONE) for each in GPUS), NONE)
    require(gpus.denominator == 1, str(gpus), f"{node.place}, status, allocatable, GPUs", "Give a whole number")
    for resource, found in there.items():
        if resource.startswith(MIG) and found:
            why = "slices of GPUs are not counted"
            places.note(f"Node, status.allocatable, {resource}", name, str(found), why)
    unready = node.part("spec").flag("unschedulable", False) or any(
        each.text("status") != ("True" if each.text("type") == "Ready" else "False")
        for each in status.parts("conditions")
        if each.text("type") in _CONDITIONS
    )
    if unready:
        places.note("Node", name, f"{gpus} GPUs", "it is not ready, and KAI does not count it")
        return dict.fromkeys(UNITS, NONE)
    amounts = {each: there.get(each, NONE) for each in ("cpu", "memory")} | {"gpu": gpus}
    return {name: whole_as_int(amount) for name, amount in amounts.items()}


def _placed(queues: Mapping[str, ObjectPart], label: str, called: Mapping[str, str], places: Places) -> Iterator[str]:
    """Yield the names of the queues that take part, the eldest first."""
    above = {name: part.part("spec").text("parentQueue") for name, part in queues.items()}
    pools = {name: _pool(part, label) for name, part in queues.items()}
    ages = {name: part.part("metadata").read("creationTimestamp", SECONDS, 0) for name, part in queues.items()}
    for name in sorted(queues, key=lambda each: (ages[each], each)):
        at, seen = name, set[str]()
        while at in above and above[at] and at not in seen:
            seen.add(at)
            at = above[at]
        if at not in above:
            places.note("Queue, spec.parentQueue", name, above[name], "no such queue: KAI leaves it out")
        elif pools[name] not in called:
            places.note("Queue", name, pools[name], "its node pool has no GPUs that are ready")
        elif above[name] and pools[above[name]] != pools[name]:
            remedy = f"A queue and the one above it have the same label {kai.POOL}"
            raise BadInput(f"got {pools[name]!r}", place=f"Queue {name!r}, node pool", remedy=remedy)
        else:
            yield name


def _row(amounts: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Return amounts by the names of columns: of the type ``own``, and of its goods."""
    return {own if resource == "gpu" else f"{resource}:{own}": found for resource, found in amounts.items()}


def _stated(status: ObjectPart, own: str) -> Amounts:
    """Return what a queue's status says, by what it is and the name of the column."""
    found: Amounts = {}
    for key in ("allocated", "requested", "allocatedNonPreemptible"):
        amounts = {"gpu" if each in GPUS else each: amount for each, amount in status.read(key, AMOUNTS, {}).items()}
        found |= {f"{key} {column}": amount for column, amount in _row(amounts, own).items()}
    return found


def _requested(
    asked: Mapping[str, Amounts], sliced: set[str], parents: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, Amounts]:
    """Return what the pods of each queue and of those below it ask for, those that run and parts of GPUs too.

    GPUs are left out where some are ``sliced``.
    """
    found: dict[str, Amounts] = {}
    uncounted = set()
    for queue in parents:
        at = queue
        while at:
            if queue in sliced:
                uncounted.add(at)
            row = _row(asked.get(queue, dict.fromkeys(UNITS, NONE)), own[queue])
            add(found.setdefault(at, {}), {f"requested {column}": Fraction(amount) for column, amount in row.items()})
            at = parents.get(at, "")
    for queue in uncounted:
        del found[queue][f"requested {own[queue]}"]
    return found


# -- pod groups and pods -------------------------------------------------------------------------------------------
def _workloads(
    found: Objects,
    pods: Mapping[str, list[Pod]],
    types: Mapping[str, str],
    queues: Mapping[str, ImportedQueue],
    placed: Collection[str],
    places: Places,
) -> tuple[dict[str, Amounts], set[str], list[ImportedGang]]:
    """Return what each queue asks for, the queues with slices, and the gangs; ``queues`` get what they hold.

    ``types`` are the GPU types by queue; what is of no such queue has no place. Gangs on the types that are ``placed``
    say on which GPUs their pods are. Of slices nobody says how many GPUs they are.
    """
    tiers = {name: part.whole("value", 0, least=-(2**31)) for name, part in found["PriorityClass"].items()}
    usual = [name for name, part in found["PriorityClass"].items() if part.flag("globalDefault", False)]
    default = tiers[usual[-1]] if usual else kai.GANG_PRIORITY
    #: by queue, what its pods take, whether they run and may be stopped: that again, and how many pods do
    taken: dict[tuple[str, int, bool, bool], tuple[Amounts, int]] = {}
    alone = {kind: [kind] for kind in types.values()}
    sliced: set[str] = set()
    gangs: list[ImportedGang] = []
    for name, (queue, chosen, said, first, created) in found["PodGroup"].items():
        tier = tiers.get(chosen, default)
        if chosen and chosen not in tiers:
            why = f"no such PriorityClass in the files: KAI and fairopt take {default}"
            places.note("PodGroup, spec.priorityClassName", name, chosen, why)
        preemptible = tier < kai.KEPT_FROM if not said else said == "preemptible"
        own = pods[name]
        running = sum([pod.runs for pod in own])
        if 0 < running < first:
            why = "fewer pods run than start together; that KAI evicts such a group after a time is not modelled"
            places.note("PodGroup, spec.minMember", name, f"{running} of {first} pods run", why)
        if len(own) > first:
            why = "pods beyond the minimum are gangs of their own, in the order of their groups; KAI takes turns"
            places.note("PodGroup, pods beyond spec.minMember", name, len(own) - first, why)
        if queue not in types:
            why = "no queue without queues below it, in a node pool with GPUs, is called so"
            places.note("PodGroup, spec.queue", name, queue, why)
            continue
        for pod in own:
            if pod.sliced:
                sliced.add(queue)
            key = queue, id(pod.takes), pod.runs, preemptible
            taken[key] = pod.takes, taken[key][1] + 1 if key in taken else 1
        for number, together in enumerate(together_of(name, queue, own, first, places)):
            takes = together[0].takes
            if len(together) > 1:
                takes = {}
                for pod in together:
                    add(takes, pod.takes)
            called, kind = f"{name}+{number}" if number else name, types[queue]
            on = kind if together[0].runs else None
            row = (called, queue, takes["gpu"], alone[kind], on, takes, tier, preemptible, created)
            settings = {"kai.pods": told(together)} if kind in placed else {}
            gangs.append(ImportedGang._make((*row, settings, (("gang", name), ("class", chosen)))))
    asked, held, fixed = (dict[str, Amounts](), dict[str, Amounts](), dict[str, Amounts]())
    for (queue, _, runs, preemptible), (takes, count) in taken.items():
        for totals in (asked, *(held,) * runs, *(fixed,) * (runs and not preemptible)):
            add(totals.setdefault(queue, {}), takes, count)
    for queue in held:
        queues[queue].held = _row(held[queue], types[queue])
        queues[queue].fixed = _row(fixed[queue], types[queue]) if queue in fixed else None
    return asked, sliced, gangs
