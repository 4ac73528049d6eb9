"""Armada's queues, jobs, priority classes and nodes, as armadactl and its API print them and jobs are submitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from fairopt.errors import BadInput, require
from fairopt.importing.armada_objects import FIELDS, HARMLESS, RULES, UNCOUNTED, number_in
from fairopt.importing.documents import AMOUNTS, found_in, in_files
from fairopt.importing.imported import Imported, ImportedQueue, entitlements_of, market_of
from fairopt.importing.kubernetes import Objects, Stock, add, is_ready
from fairopt.importing.unplaced import TAKEN, TOGETHER, UNKNOWN, Places
from fairopt.importing.volcano import is_gpu
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath
from fairopt.problem.numbers import shown

if TYPE_CHECKING:
    from fairopt.importing.armada_jobs import PriorityClass

#: The label that says which GPUs a node has.
PRODUCT = "nvidia.com/gpu.product"
#: The flavor of what is not counted by GPU type: CPU and memory of the pool.
POOL = "pool"
#: What dominant shares are over. Source: config/scheduler/config.yaml.
COUNTED = ("cpu", "memory")
_LIMITS = dict.fromkeys(("maximumResourceFraction", "maximumResourceFractionByPool"), TAKEN)
_NONE = Fraction(0)


def read(*paths: AnyPath, label: str = PRODUCT, resource: str | None = None) -> Imported:
    """Read Armada's queues, with jobs, the scheduler's configuration and the nodes of its clusters.

    A queue is a user; one over its priority factor is its weight. It is guaranteed nothing. Limits by priority class
    are added up to a cap, where each class that its jobs have has one. Types are the values of a ``label`` of nodes, or
    the name of the GPU resource; ``resource`` names another to share ("cpu"). Jobs with one gangId are a gang; a
    class's priority is its tier. CPU, memory and what else dominant shares are over are goods. All nodes are one pool.

    Files: ``armadactl get queue NAME`` or a QueueList, the answer of ``/v1/job/details`` with ``expandJobSpec`` and
    ``expandJobRun``, files of ``armadactl submit``, the scheduler's config.yaml, ``kubectl get nodes -o json``.
    Errors: `BadInput` with file, object, field, value and remedy.

    Source: armadaproject/armada at 207cc9e0: pkg/api/submit.proto, pkg/api/job.proto, pkg/client/domain/types.go,
    internal/common/types/scheduling.go, internal/scheduler/scheduling/constraints/constraints.go (limits),
    internal/scheduler/jobdb/comparison.go (order), docs/scheduling_and_preempting_jobs.md.
    """
    places = Places(HARMLESS)
    with in_files(paths):
        return _imported(_found(paths, places), label, resource, places)


def _found(paths: Sequence[AnyPath], places: Places) -> Objects:
    """Return objects by kind and name, and of a job what is kept of it; fields that are not read have no place."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in FIELDS}
    readers: dict[str, Callable[[ObjectPart], Any]] = {}
    for path in paths:
        for document in found_in(path):
            left = _objects(ObjectPart(f"{path}: {document.place}", document.value), places)
            while some := list(islice(left, TOGETHER)):
                new: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
                for kind, name, part, read_as in some:
                    called = "job" if kind == "submitted job" else kind
                    if not name or name in found[called]:
                        got = f"{kind} {name!r} stands twice" if name else f"a {kind} without a name"
                        raise BadInput(got, place=part.place, remedy="Give each object once, with its name")
                    if called == "job" and not readers:
                        from fairopt.importing.armada_jobs import job_reader  # files of other schedulers have no jobs

                        readers[called] = job_reader()
                    read = readers.get(called)
                    found[called][name] = read_as if read is None else read(read_as)
                    new.setdefault(kind, []).append((name, part.value))
                for kind, objects in new.items():
                    places.of_all(kind, objects, FIELDS[kind])
    return found


def _objects(part: ObjectPart, places: Places) -> Iterator[tuple[str, str, ObjectPart, ObjectPart]]:
    """Yield the objects in a document, by kind and name, and as they are kept: a submitted job like one of the answer.

    A document is known by its kind, or by a key that no other has.
    """
    kind = part.text("kind")
    key = next((key for key in _KEYS if key in part.value), "") if kind not in ("Queue", "Node") else ""
    for beside in (name for name in part.value if key in _KEYS[:2] and name != key):
        places.note(f"object {key}, {beside}", key, beside, UNKNOWN)
    if kind == "Queue":
        yield kind, part.text("name"), part, part
    elif kind == "Node":
        yield kind, part.part("metadata").text("name"), part, part
    elif key == "queues":
        yield from (("Queue", each.text("name"), each, each) for each in part.parts(key))
    elif key == "jobDetails":
        inner = part.part(key)
        top = ObjectPart(inner.place, {})  # else each job that is kept would keep all others
        for name, value in inner.value.items():
            each = ObjectPart((top, name, 0), value) if type(value) is dict else inner.part(name)
            yield "job", each.text("jobId"), each, each
    elif key in ("jobs", "jobRequestItems"):  # a file of `armadactl submit`, or a JobSubmitRequest: its jobs wait
        queue, items = part.text("queue"), [*part.parts("jobs"), *part.parts("jobRequestItems")]
        for number, each in enumerate(items, start=1):
            name = each.text("clientId") or f"{part.text('jobSetId') or queue}/{number}"
            kept = {**each.value, "jobId": name, "queue": queue, "state": "QUEUED"}
            yield "submitted job", name, each, ObjectPart(each.place, kept)
    elif key:  # the scheduler's configuration, or a Helm chart's values, which hold it
        own = (part.part(key) if key == "applicationConfig" else part).part("scheduling")
        yield "scheduling", "scheduling", own, own
    else:
        said = kind or ", ".join(map(str, list(part.value)[:3]))
        places.note(f"object {said}", said, said, "not an object that is read")


_KEYS = ("queues", "jobDetails", "jobs", "jobRequestItems", "scheduling", "applicationConfig")


def _imported(found: Objects, label: str, resource: str | None, places: Places) -> Imported:
    from fairopt.importing.armada_jobs import gangs_in

    queues = found["Queue"]
    if not queues:
        remedy = "Give what armadactl get queue NAME prints, or the API's list of queues"
        raise BadInput("no Queue of armadaproject.io", place="the files", remedy=remedy)
    scheduling = found["scheduling"].get("scheduling", ObjectPart("scheduling", {}))
    stock, type_of = _stock(found["Node"], label, resource, scheduling, places)
    classes: dict[str, PriorityClass] = {}
    given = scheduling.part("priorityClasses")
    for name, part in ((each, given.part(each)) for each in given.value):
        places.of("priority class", name, part.value, FIELDS["priority class"])
        limits = _fractions(part.part("maximumResourceFractionPerQueue"))
        classes[name] = part.whole("priority", 0), part.flag("preemptible", False), limits
    gangs, used = gangs_in(found["job"], queues, classes, stock, type_of, label, scheduling, places)
    nodes = {
        name: ImportedQueue(cap=_cap(part, classes, stock, places, used.get(name)), weight=_weight(part))
        for name, part in queues.items()
    }
    protected, large = "protectedFractionOfFairShare", "enablePreferLargeJobOrdering"
    said = {"scheduler": "armada", protected: str(number_in(scheduling, protected, 1))}
    said |= {large: str(scheduling.flag(large, False)).lower(), "resource": json.dumps(dict(stock.types))}
    owed = entitlements_of(nodes, tuple(queues), tuple(stock.types), gangs, goods=stock.goods, settings=said)
    market = market_of(
        owed,
        [stock.amounts[kind] for kind in stock.types],
        weight=[1 if node.weight is None else node.weight for node in nodes.values()],
    )
    of: dict[str, tuple[str, Callable[[str], list[str] | None] | None]] = {
        "job": ("job", None), "submitted job": ("job", None), "priority class": ("class", None),
        "Queue": ("queue", None), "Node": ("type", {name: [kind] for name, kind in type_of.items()}.get),
    }  # fmt: skip
    return Imported(market, places.unplaced, rules=RULES, unread=places.unread(gangs, of))


# -- what there is, and what queues may have -----------------------------------------------------------------------
def _weight(part: ObjectPart) -> Fraction:
    """Return a queue's weight. Source: pkg/client/queue/priority_factor.go; one over it in scheduling_algo.go."""
    factor, given = number_in(part, "priorityFactor", 1), part.value.get("priorityFactor")
    require(factor > 0, shown(given), f"{part.place}, priorityFactor", "Give a number above 0")
    return 1 / factor


def _stock(
    nodes: Mapping[str, ObjectPart], label: str, resource: str | None, scheduling: ObjectPart, places: Places
) -> tuple[Stock, dict[str, str]]:
    """Return what there is, and the type of each node."""

    def shared(name: str) -> bool:
        return name == resource if resource else is_gpu(name)

    types: dict[str, str] = {}
    amounts: dict[str, Fraction] = {}
    type_of: dict[str, str] = {}
    for name, node in nodes.items():
        there = node.part("status").read("allocatable", AMOUNTS, {})
        gpus = [each for each, count in there.items() if shared(each) and count > 0]
        for each in gpus[1:]:
            places.note("Node, status.allocatable", name, each, "a node has GPUs of one resource here")
        if node.part("spec").flag("unschedulable", False):
            places.note("Node, spec.unschedulable", name, "true", "it is counted all the same")
        if not is_ready(node):
            places.note("Node, condition Ready", name, "not True", "it is counted all the same")
        for each in gpus[:1]:
            kind = node.at("metadata.labels").text(label) or each
            if types.setdefault(kind, each) != each:
                got, place = f"{each}, and {types[kind]} on another node", f"{node.place}, status, allocatable"
                raise BadInput(f"{kind!r} are {got}", place=place, remedy="Give each GPU type one resource name")
            type_of[name] = kind
            add(amounts, {kind: there[each]})
        add(amounts, {each: count for each, count in there.items() if not shared(each)})
    if not types:
        remedy = "Give kubectl get nodes -o json of all clusters"
        if nodes:
            remedy += "; of a cluster without GPUs say which resource is shared: resource='cpu'"
        raise BadInput("no node has GPUs" if nodes else "no nodes", place="Node, status.allocatable", remedy=remedy)
    if scheduling.flag("respectNodePodLimits", False):
        places.note("scheduling, respectNodePodLimits", "scheduling", "true", UNCOUNTED)
    wanted = scheduling.value.get("dominantResourceFairnessResourcesToConsider", list(COUNTED))
    fits = isinstance(wanted, list) and all(isinstance(each, str) for each in wanted)
    place = f"{scheduling.place}, dominantResourceFairnessResourcesToConsider"
    require(fits, shown(wanted), place, "Give a list of names of resources")
    others = [each for each in dict.fromkeys(wanted) if each in amounts and each not in types]
    return Stock(types, others, amounts, POOL), type_of


def _fractions(part: ObjectPart) -> dict[str, Fraction]:
    return {name: number_in(part, name) for name in part.value}


def _cap(
    part: ObjectPart, classes: Mapping[str, PriorityClass], stock: Stock, places: Places, used: Container[str] | None
) -> dict[str, Fraction]:
    """Return the most that a queue may hold by column; what has no limit, or one of the whole pool, is left out.

    A queue's own limits for a class take the place of the class's. A limit of GPUs is one of all types together.
    ``used``: the classes of the queue's jobs, which are all that it can hold; None for any.
    """
    own, limits = part.part("resourceLimitsByPriorityClassName"), []
    for name in dict.fromkeys((*classes, *own.value)):
        given = own.part(name)
        places.of("Queue, resourceLimitsByPriorityClassName", part.text("name"), given.value, _LIMITS)
        if used is not None and name not in used:
            continue
        if given.part("maximumResourceFractionByPool").value:
            places.note("Queue, maximumResourceFractionByPool", part.text("name"), name, "one pool is read")
        of_class = classes[name][2] if name in classes else {}
        limits.append({**of_class, **_fractions(given.part("maximumResourceFraction"))})
    cap: dict[str, Fraction] = {}
    for resource in dict.fromkeys(name for each in limits for name in each):
        least = sum((each.get(resource, Fraction(1)) for each in limits), _NONE)
        if least >= 1:
            continue
        if len(limits) > 1:
            why = "those of all classes are added up"
            places.note("Queue, limits by priority class", part.text("name"), resource, why)
        if resource in stock.others:
            cap[str(Good(resource, POOL))] = least * stock.amounts[resource]
        kinds = [kind for kind, name in stock.types.items() if name == resource]
        most = least * sum((stock.amounts[kind] for kind in kinds), _NONE)
        if len(kinds) > 1:
            places.note("Queue, limit of GPUs", part.text("name"), most, "of all types together; it caps each of them")
        cap |= {kind: min(most, stock.amounts[kind]) for kind in kinds}
    return cap
