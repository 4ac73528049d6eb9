"""Armada's queues, jobs, priority classes and nodes, as armadactl and its API print them and jobs are submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput, require
from fairopt.importing.armada_fields import FIELDS
from fairopt.importing.armada_jobs import ArmadaJob, Classes, PriorityClass, Stock, details, gangs, not_negative
from fairopt.importing.documents import found_in
from fairopt.importing.fields import ObjectPart, Places, in_files
from fairopt.importing.imported import Imported
from fairopt.importing.volcano import is_gpu
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import shown

#: The label that says which GPUs a node has.
PRODUCT = "nvidia.com/gpu.product"
#: The flavor of what is not counted by GPU type: CPU and memory of the pool.
POOL = "pool"
#: What a job names no class gets, and what dominant shares are over. Source: config/scheduler/config.yaml.
DEFAULT_CLASS, COUNTED = "armada-default", ("cpu", "memory")


@dataclass
class _Found:
    """What the files hold."""

    label: str
    places: Places = field(default_factory=Places)
    queues: dict[str, ObjectPart] = field(default_factory=dict)
    jobs: dict[str, ArmadaJob] = field(default_factory=dict)
    nodes: dict[str, ObjectPart] = field(default_factory=dict)
    scheduling: ObjectPart = field(default_factory=lambda: ObjectPart("scheduling", {}))

    def queue(self, part: ObjectPart) -> None:
        """Take a Queue."""
        _once(self.queues, part, "Queue", part.text("name"), part)
        self.places.of("Queue", part.text("name"), part.value, FIELDS["Queue"])

    def queue_list(self, part: ObjectPart) -> None:
        """Take a QueueList."""
        for each in part.parts("queues"):
            self.queue(each)

    def kept_jobs(self, part: ObjectPart) -> None:
        """Take the answer to GetJobDetails."""
        inner = part.part("jobDetails")
        for key in inner.value:
            each = inner.part(key)
            job = details(each)
            _once(self.jobs, each, "job", job.name, job)
            self.places.of("job", job.name, each.value, FIELDS["job"])

    def submitted(self, part: ObjectPart) -> None:
        """Take a file of `armadactl submit`, or a JobSubmitRequest: its jobs wait."""
        queue, found = part.text("queue"), [*part.parts("jobs"), *part.parts("jobRequestItems")]
        for number, each in enumerate(found, start=1):
            name = each.text("clientId") or f"{part.text('jobSetId') or queue}/{number}"
            _once(self.jobs, each, "job", name, ArmadaJob(name, queue, each, "QUEUED", "", 0))
            self.places.of("submitted job", name, each.value, FIELDS["submitted job"])

    def config(self, part: ObjectPart) -> None:
        """Take the scheduler's configuration."""
        require(not self.scheduling.value, "a second one", part.place, "Give one configuration of the scheduler")
        self.scheduling = part.part("scheduling")
        self.places.of("scheduling", "scheduling", self.scheduling.value, FIELDS["scheduling"])

    def values(self, part: ObjectPart) -> None:
        """Take a Helm chart's values, which hold the configuration."""
        self.config(part.part("applicationConfig"))

    def node(self, part: ObjectPart) -> None:
        """Take a node of Kubernetes."""
        name = part.part("metadata").text("name")
        _once(self.nodes, part, "Node", name, part)
        self.places.of("Node", name, part.value, FIELDS["Node"])


#: A document is known by its kind, or by a key that no other has.
_KINDS: Mapping[str, Callable[[_Found, ObjectPart], None]] = {"Queue": _Found.queue, "Node": _Found.node}
_KEYS: Mapping[str, Callable[[_Found, ObjectPart], None]] = {
    "queues": _Found.queue_list,
    "jobDetails": _Found.kept_jobs,
    "jobs": _Found.submitted,
    "jobRequestItems": _Found.submitted,
    "scheduling": _Found.config,
    "applicationConfig": _Found.values,
}


def read(*paths: AnyPath, label: str = PRODUCT) -> Imported:
    """Read Armada's queues, with jobs, the scheduler's configuration and the nodes of its clusters.

    A queue is a user; one over its priority factor is its weight. It is guaranteed nothing. Limits by priority class
    are added up to a cap, where each class has one. Types are the values of a ``label`` of nodes, or the name of the
    GPU resource. Jobs with one gangId are a gang; a class's priority is its tier. CPU, memory and what else dominant
    shares are over are goods. All nodes are one pool. Speedups are unknown.

    Files: ``armadactl get queue NAME`` or a QueueList, the answer of ``/v1/job/details`` with ``expandJobSpec`` and
    ``expandJobRun``, files of ``armadactl submit``, the scheduler's config.yaml, ``kubectl get nodes -o json``.
    Errors: `BadInput` with file, object, field, value and remedy.

    Source: armadaproject/armada at 207cc9e0: pkg/api/submit.proto, pkg/api/job.proto, pkg/client/domain/types.go,
    internal/common/types/scheduling.go, internal/scheduler/scheduling/constraints/constraints.go (limits),
    internal/scheduler/jobdb/comparison.go (order), docs/scheduling_and_preempting_jobs.md.
    """
    found = _Found(label)
    with in_files(paths):
        for path in paths:
            for place, value in found_in(path):
                with naming(path, place):
                    _take(found, ObjectPart(f"{path}: {place}", value))
        return _imported(found)


def _take(found: _Found, part: ObjectPart) -> None:
    kind = part.text("kind")
    takers = [_KINDS[kind]] if kind in _KINDS else [take for key, take in _KEYS.items() if key in part.value][:1]
    if not takers:
        said = kind or ", ".join(map(str, list(part.value)[:3]))
        found.places.note(f"object {said}", said, said, "not an object that is read")
    for take in takers:
        take(found, part)


def _once(known: dict[str, Any], part: ObjectPart, kind: str, name: str, value: Any) -> None:
    if not name or name in known:
        got = f"{kind} {name!r} stands twice" if name else f"a {kind} without a name"
        raise BadInput(got, place=part.place, remedy="Give each object once, with its name")
    known[name] = value


def _imported(found: _Found) -> Imported:
    places = found.places
    if not found.queues:
        remedy = "Give what armadactl get queue NAME prints, or the API's list of queues"
        raise BadInput("no Queue of armadaproject.io", place="the files", remedy=remedy)
    users = tuple(found.queues)
    stock, amounts = _stock(found)
    classes = _classes(found.scheduling, places)
    closed = [name for name, part in found.queues.items() if part.flag("cordoned", False)]
    taken = gangs(list(found.jobs.values()), users, closed, stock, classes, places)
    weights = {name: _weight(part) for name, part in found.queues.items()}
    types = tuple(stock.types)
    goods: dict[Good, object] = {Good(name, POOL): amounts[name] for name in stock.others}
    entitlements = Entitlements.of(
        users,
        types,
        goods=goods,
        cap={name: _cap(part, classes, stock, amounts, places) for name, part in found.queues.items()},
        borrow_weight=weights,
        gangs=taken,
    )
    width = len(types)
    market = Market.of(
        [[1] * width for _ in users],
        [amounts[kind] for kind in types],
        weight=[weights[name] for name in users],
        users=users,
        types=types,
        least=[[0] * width for _ in users],
        most=[[None] * width for _ in users],
        entitlements=entitlements,
    )
    return Imported(market, places.unplaced)


def _weight(part: ObjectPart) -> Fraction:
    """Return a queue's weight. Source: pkg/client/queue/priority_factor.go; one over it in scheduling_algo.go."""
    place = f"{part.place}, priorityFactor"
    factor = not_negative(part.value.get("priorityFactor", 1), place)
    require(factor > 0, shown(part.value.get("priorityFactor")), place, "Give a number above 0")
    return 1 / factor


def _stock(found: _Found) -> tuple[Stock, dict[str, Fraction]]:
    """Return what is counted, and how much there is of each type and resource."""
    types: dict[str, str] = {}
    amounts: dict[str, Fraction] = {}
    type_of: dict[str, str] = {}
    for name, node in found.nodes.items():
        there = node.part("status").amounts("allocatable")
        gpus = [each for each, amount in there.items() if is_gpu(each) and amount > 0]
        for each in gpus[1:]:
            found.places.note("Node, status.allocatable", name, each, "a node has GPUs of one resource here")
        if node.part("spec").flag("unschedulable", False):
            found.places.note("Node, spec.unschedulable", name, "true", "it is counted all the same")
        for each in gpus[:1]:
            kind = node.part("metadata").part("labels").text(found.label) or each
            if types.setdefault(kind, each) != each:
                got, place = f"{each}, and {types[kind]} on another node", f"{node.place}, status, allocatable"
                raise BadInput(f"{kind!r} are {got}", place=place, remedy="Give each GPU type one resource name")
            type_of[name] = kind
            amounts[kind] = amounts.get(kind, Fraction(0)) + there[each]
        for each, amount in there.items():
            if not is_gpu(each):
                amounts[each] = amounts.get(each, Fraction(0)) + amount
    if not types:
        got, remedy = (
            ("no node has GPUs" if found.nodes else "no nodes"),
            "Give kubectl get nodes -o json of all clusters",
        )
        raise BadInput(got, place="Node, status.allocatable", remedy=remedy)
    wanted = found.scheduling.value.get("dominantResourceFairnessResourcesToConsider", list(COUNTED))
    fits = isinstance(wanted, list) and all(isinstance(each, str) for each in wanted)
    place = f"{found.scheduling.place}, dominantResourceFairnessResourcesToConsider"
    require(fits, shown(wanted), place, "Give a list of names of resources")
    others = [each for each in dict.fromkeys(wanted) if each in amounts and each not in types]
    return Stock(types, others, type_of, found.label), amounts


def _classes(scheduling: ObjectPart, places: Places) -> Classes:
    named = {}
    given = scheduling.part("priorityClasses")
    for name in given.value:
        part = given.part(name)
        places.of("priority class", name, part.value, FIELDS["priority class"])
        limits = _fractions(part.part("maximumResourceFractionPerQueue"))
        named[name] = PriorityClass(part.whole("priority", 0), part.flag("preemptible", False), limits)
    return Classes(named, scheduling.text("defaultPriorityClassName", DEFAULT_CLASS))


def _fractions(part: ObjectPart) -> dict[str, Fraction]:
    return {name: not_negative(value, f"{part.place}, {name}") for name, value in part.value.items()}


def _cap(
    part: ObjectPart, classes: Classes, stock: Stock, amounts: Mapping[str, Fraction], places: Places
) -> dict[str, Fraction]:
    """Return the most that a queue may hold by column; what has no limit, or one of the whole pool, is left out.

    A queue's own limits for a class take the place of the class's. A limit of GPUs is one of all types together.
    """
    own, limits = part.part("resourceLimitsByPriorityClassName"), []
    for name in dict.fromkeys((*classes.named, *own.value)):
        given = own.part(name)
        if given.part("maximumResourceFractionByPool").value:
            places.note("Queue, maximumResourceFractionByPool", part.text("name"), name, "one pool is read")
        of_class = classes.named.get(name, PriorityClass()).limits
        limits.append({**of_class, **_fractions(given.part("maximumResourceFraction"))})
    cap: dict[str, Fraction] = {}
    for resource in dict.fromkeys(name for each in limits for name in each):
        least = sum((each.get(resource, Fraction(1)) for each in limits), Fraction(0))
        if least >= 1:
            continue
        if len(limits) > 1:
            places.note(
                "Queue, limits by priority class", part.text("name"), resource, "those of all classes are added up"
            )
        if resource in stock.others:
            cap[str(Good(resource, POOL))] = least * amounts[resource]
        kinds: Sequence[str] = [kind for kind, name in stock.types.items() if name == resource]
        most = least * sum((amounts[kind] for kind in kinds), Fraction(0))
        if len(kinds) > 1:
            places.note("Queue, limit of GPUs", part.text("name"), most, "of all types together; it caps each of them")
        cap |= {kind: min(most, amounts[kind]) for kind in kinds}
    return cap
