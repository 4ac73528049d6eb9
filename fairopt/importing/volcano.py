"""Volcano's queues, pod groups, jobs and nodes, as `kubectl get -o json` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.documents import AMOUNTS, SECONDS, in_files
from fairopt.importing.imported import Imported, ImportedGang, ImportedQueue, entitlements_of, gangs_of, market_of
from fairopt.importing.kubernetes import (
    Objects,
    Stock,
    add,
    documents,
    is_ready,
    named,
    objects,
    pod_requests,
    unpacked,
)
from fairopt.importing.unplaced import Places
from fairopt.importing.volcano_objects import (
    CLUSTER,
    CONFIGURATION,
    GROUP,
    HARMLESS,
    KEY,
    KINDS,
    NO_QUOTA,
    PRODUCTS,
    ROOT,
    RULES,
)
from fairopt.importing.volcano_pods import (
    PODS,
    STOPS,
    Amounts,
    by_type,
    group_of,
    of_pods,
    pods_of,
    said_of,
    settings_of,
)
from fairopt.problem import Entitlements
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact, shown

_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_VENDORS = (
    *("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai", "huawei.com", "cambricon.com", "iluvatar.ai"),
    *("aws.amazon.com", "google.com"),
)
_PARTS = ("memory", "mem", "cores", "core", "percentage")
_NONE = Fraction(0)
_COUNTS = ("pending", "inqueue", "running", "unknown", "completed")
_WAITS, _RUNS = ("Pending", "Inqueue"), ("Running", "Unknown")


def read(*paths: AnyPath, resource: str | None = None) -> Imported:
    """Read Volcano's queues with their pod groups, jobs and nodes, from files that kubectl wrote.

    GPU types are the names of GPU resources, since Volcano counts by these. A leaf queue is a user; its ``deserved``
    is the guarantee, ``capability`` the cap, ``guarantee`` the reserve, ``priority`` the tier. CPU, memory and what
    else a queue names are goods. ``resource`` is taken as the only type where a cluster has no GPUs ("cpu"). Speedups
    are unknown. Errors: `BadInput` with file, object, field, value and remedy.

    Source: volcano-sh/volcano at ed72c7c8: staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go (Queue,
    PodGroup) and batch/v1alpha1/job.go (Job); pkg/scheduler/framework/session.go, the total is what all nodes have.
    """
    with in_files(paths):
        places = Places(HARMLESS)
        return _imported(
            objects(unpacked(documents(paths), KEY, GROUP, CONFIGURATION), KINDS, places), resource, places
        )


def _imported(found: Objects, resource: str | None, places: Places) -> Imported:
    queues = found["Queue"]
    if not queues:
        remedy = "Give what kubectl get queues.scheduling.volcano.sh,podgroups,nodes -A -o json prints"
        raise BadInput("no Queue of scheduling.volcano.sh", place="the files", remedy=remedy)
    settings = settings_of(found[CONFIGURATION], places)
    columns = _columns(found, resource, places, pods="preempt" in settings.get("actions", "").split(", "))
    above, weights = _tree(queues)
    groups = tuple(dict.fromkeys(above.values()))
    users = tuple(name for name in queues if name not in groups and name != ROOT)
    if not users:
        raise BadInput(f"no queue but {ROOT!r}", place="the files", remedy="Give its leaf queues too")
    gangs = _gangs(found, users, columns, places, settings)
    rows = {name: _row(part, columns, places) for name, part in queues.items() if name in users or name in groups}
    if ROOT in rows:
        root = rows[ROOT]
        root.guarantee, root.reserve = {}, {}  # whatever it says: checkHierarchicalQueue
        for row in (row for name, row in rows.items() if above.get(name) == ROOT):
            add(root.guarantee, row.guarantee or {})
            add(root.reserve, row.reserve or {})
    declared = {name: row.declared for name, row in rows.items()}
    types = tuple(columns.types)
    made = gangs_of(gangs, users, types, columns.others)
    running = Entitlements.of(users, types, goods=columns.goods, gangs=made)
    for at, name in enumerate(users):
        rows[name].held = _held(name, rows[name], dict(zip(running.columns, running.held[at], strict=True)), places)
    nodes = {name: rows.get(name, ImportedQueue()) for name in (*users, *groups)}
    for name, node in nodes.items():
        node.parent, node.weight = above.get(name, ""), weights.get(name, node.weight)
    for name in groups:
        nodes[name].held = None
    owed = entitlements_of(nodes, users, types, made, goods=columns.goods, settings=settings)
    weight = [1 if (own := nodes[name].weight) is None else own for name in users]
    market = market_of(owed, [columns.amounts[name] for name in types], weight=weight)
    counted, unread = _counted(found["PodGroup"], declared), _unread(found, gangs, columns, above, places)
    return Imported(market, places.unplaced, declared, counted, rules=RULES, unread=unread)


def _unread(
    found: Objects, gangs: Sequence[ImportedGang], columns: Stock, above: Mapping[str, str], places: Places
) -> Callable[[str], tuple[str, ...]]:
    """Return what says of a gang what its objects, its queue and the nodes of its type say beside."""

    def types(node: str) -> list[str]:
        return [each for each in columns.types if each in found["Node"][node].at("status.allocatable").value]

    def groups(pod: str) -> list[str]:
        return [group_of(found["Pod"][pod])]

    of: dict[str, tuple[str, Callable[[str], list[str]] | None]] = {
        "PodGroup": ("gang", None), "Job": ("job", None), "Queue": ("queue", None), "Pod": ("gang", groups),
        "Node": ("type", types), "PriorityClass": ("class", None),
    }  # fmt: skip
    return places.unread(gangs, of, above)


# -- queues --------------------------------------------------------------------------------------------------------
def _row(part: ObjectPart, columns: Stock, places: Places) -> ImportedQueue:
    """Return what a queue says of itself; ``held`` as its status has it."""
    spec, status = part.part("spec"), part.part("status")
    reserve, deserved = spec.part("guarantee").read("resource", AMOUNTS, {}), spec.read("deserved", AMOUNTS, {})
    cap, held = spec.read("capability", AMOUNTS, {}), status.read("allocated", AMOUNTS, {})
    for each in {**deserved, **reserve, **cap}:
        if not columns.has(each):
            places.note(f"Queue, quota of {each}", named(part), each, "no node has it")
    owed = {each: max(deserved.get(each, _NONE), reserve.get(each, _NONE)) for each in {**deserved, **reserve}}
    counts = {each: status.whole(each, 0) for each in _COUNTS}  # a status leaves numbers of 0 out
    allocated = columns.row(held)
    said = {f"status.allocated {each}": amount for each, amount in allocated.items()}
    return ImportedQueue(
        guarantee=columns.row(owed),
        cap=columns.row(cap),
        reserve=columns.row(reserve),
        held=allocated,
        weight=Fraction(spec.whole("weight", 1) or 1),
        tier=spec.whole("priority", 0),
        declared=(counts if any(counts.values()) else {}) | said,
    )


def _counted(groups: Mapping[str, ObjectPart], declared: Mapping[str, Any]) -> dict[str, dict[str, Fraction]]:
    """Return how many pod groups each queue has in each phase; nothing where the files have none.

    Completed ones are deleted with their jobs, so that a file need not have all that were counted. Source: Volcano
    ed72c7c8, pkg/controllers/queue/queue_controller_action.go, syncQueue.
    """
    found = {name: dict.fromkeys(_COUNTS[:-1], _NONE) for name in declared if groups}
    for part in groups.values():
        queue, phase = _where(part, None)
        if phase.lower() in found.get(queue, ()):
            found[queue][phase.lower()] += 1
    return found


def _held(name: str, row: ImportedQueue, running: Amounts, places: Places) -> dict[str, Fraction]:
    """Return what a queue holds: what its status says, and at least what its running gangs take."""
    held = row.held or {}
    for column, runs in running.items():
        said = held.get(column, _NONE)
        if runs > said and f"status.allocated {column}" in row.declared:
            got = f"{said} {column}, and its running pod groups take {runs}"
            places.note("Queue, status.allocated", name, got, "less than what runs; what runs is taken")
    return {column: max(runs, held.get(column, _NONE)) for column, runs in running.items()}


def is_gpu(resource: str) -> bool:
    """Say whether an extended resource counts GPUs or the like, and not their memory or cores."""
    domain, _, name = resource.rpartition("/")
    return bool(domain) and (domain in _VENDORS or "gpu" in resource) and not name.endswith(_PARTS)


def _columns(found: Objects, resource: str | None, places: Places, *, pods: bool) -> Stock:
    stock: dict[str, Fraction] = {}
    for name, node in found["Node"].items():
        add(stock, node.part("status").read("allocatable", AMOUNTS, {}))
        if node.part("spec").flag("unschedulable", False):
            places.note("Node, spec.unschedulable", name, "true", "Volcano counts such a node in the total too")
        if product := node.at("metadata.labels").text("nvidia.com/gpu.product"):
            places.note("Node, label nvidia.com/gpu.product", name, product, PRODUCTS)
        if not is_ready(node):
            places.note("Node, condition Ready", name, "not True", "Volcano counts such a node in the total too")
    types = tuple(each for each in stock if (each == resource if resource else is_gpu(each)) and stock[each] > 0)
    if not types:
        if not stock:
            got, remedy = "no nodes", "Give what kubectl get nodes -o json prints, too"
        elif resource:
            got, remedy = f"no node has {resource!r}", nearest(resource, stock, "resource")
        else:
            got, remedy = "no node has GPUs", "Say which resource is shared: resource='cpu'"
        raise BadInput(got, place="Node, status.allocatable", remedy=remedy)
    specs = [part.part("spec") for part in found["Queue"].values()]
    quotas = [spec.part(key).value for spec in specs for key in ("deserved", "capability")]
    asked = dict.fromkeys(["cpu", "memory", *(each for quota in quotas for each in quota), *[PODS] * pods])
    others = [each for each in asked if each in stock and each not in types]
    columns = Stock(dict(zip(types, types, strict=True)), others, stock, CLUSTER)
    if uncounted := [each for each in stock if not columns.has(each)]:
        places.note("Node, status.allocatable", next(iter(found["Node"])), ", ".join(uncounted), NO_QUOTA)
    return columns


def _tree(queues: Mapping[str, ObjectPart]) -> tuple[dict[str, str], dict[str, Fraction]]:
    """Return the group above each queue, and the weights that the annotations of hierarchical DRF give."""
    above: dict[str, str] = {}
    weights: dict[str, Fraction] = {}
    for name, part in queues.items():
        notes, over = part.at("metadata.annotations"), part.part("spec").text("parent")
        path = notes.text(_HIERARCHY).split("/")
        place = f"{part.place}, annotation {_HIERARCHY}"
        if len(path) > 1:
            given = notes.text(_WEIGHTS).split("/")
            if len(given) != len(path):
                remedy = "Give one weight for each level"
                raise BadInput(f"{len(path)} levels, {len(given)} weights", place=place, remedy=remedy)
            nodes = [*("/".join(path[:level]) for level in range(1, len(path))), name]
            for inner, outer, weight in zip(nodes[1:], nodes, given[1:], strict=False):
                if inner in above and above[inner] != outer:
                    raise BadInput(f"{inner!r} is in two groups", place=place, remedy="Give it one path")
                above[inner] = outer
                weights.setdefault(inner, _weight(weight, place))
        elif over and over != ROOT:
            if over not in queues:
                remedy = nearest(over, queues, "queue")
                raise BadInput(f"there is no queue {over!r}", place=f"{part.place}, spec, parent", remedy=remedy)
            above[name] = over
    root = queues[ROOT].part("spec").value if ROOT in queues else {}
    if any(root.get(key) for key in ("capability", "deserved", "guarantee")):
        above |= {name: ROOT for name in queues if name != ROOT and name not in above}
    return above, weights


def _weight(text: str, place: str) -> Fraction:
    """Return a weight of the hierarchy; one below 1 counts as 1. Source: drf.go, buildHierarchy."""
    try:
        return max(exact(text, place), Fraction(1))
    except BadInput as error:
        raise BadInput(f"got {shown(text)}", place=place, remedy="Give weights such as 1/2/8") from error


# -- pod groups and jobs as gangs ----------------------------------------------------------------------------------
def _gangs(
    found: Objects, users: Sequence[str], columns: Stock, places: Places, settings: Mapping[str, str]
) -> list[ImportedGang]:
    """Return the gangs of pod groups, and of jobs that have none yet.

    A pod group's ``minResources`` start together; where it says none, its job's pods do.
    """
    classes, never, usual = _classes(found["PriorityClass"])
    rows: list[ImportedGang] = []
    only: dict[str, list[str]] = {}
    counted = columns.has(PODS) and "preemptable" in settings
    pods, leaves = pods_of(found, places, counted=counted), frozenset(users)
    for part, job in _pod_groups(found):
        kind, name, spec = part.text("kind"), named(part), part.part("spec")
        queue, phase = _where(part, job)
        klass = spec.text("priorityClassName")
        about = ("gang", name), ("job", "" if job is None else named(job)), ("class", klass)
        if phase not in _WAITS + _RUNS and not pods.get(name):
            places.note(f"{kind}, phase {phase}", name, phase, "it neither waits nor runs")
            continue
        if queue not in leaves:
            places.note(f"{kind}, spec.queue", name, queue, "no such leaf queue is given; Volcano skips it")
            continue
        over = found["Queue"][queue]
        opened = over.part("status").text("state", "Open")
        if opened != "Open" and phase in _WAITS:
            places.note(f"{kind}, spec.queue", name, queue, f"the queue is {opened}, and starts nothing")
            continue
        if klass and klass not in classes:
            why = f"no such PriorityClass is given; taken as {usual}"
            places.note(f"{kind}, spec.priorityClassName", name, klass, why)
        if pods.get(name):
            made = of_pods(part, queue, pods[name], columns, places, classes.get(klass, usual), over, settings)
            rows += (gang._replace(about=about) for gang in made)
            continue
        whole, takes = _of_job(job) if job is not None else ({}, {})
        if job is None and spec.value.get("minResources") is None:
            why = "without minResources, a job or pods in the files nobody knows what it takes: nothing is taken"
            places.note(f"{kind}, spec.minResources", name, "not given", why)
        if spec.value.get("minResources") is not None:
            takes = spec.read("minResources", AMOUNTS, {})
        for each in columns.types if whole else ():
            if (more := whole.get(each, _NONE) - takes.get(each, _NONE)) > 0:
                why = "pods beyond the gang's minimum start one by one, and are not asked for here"
                places.note(f"{kind}, elastic pods", name, f"{more} {each}", why)
        stops = part.at("metadata.annotations").text(STOPS, "true") != "false"
        can, said = over.part("spec").flag("reclaimable", True) and stops, dict[str, str]()
        if settings:
            said = said_of(name, settings, stops=stops, preempts=klass not in never)
        since, runs = part.part("metadata").read("creationTimestamp", SECONDS, 0), phase in _RUNS
        for gang, gpus, of, other in by_type(name, takes, columns, places):
            on = (of or next(iter(columns.types))) if runs else None
            allowed = None if of is None else only.setdefault(of, [of])
            tier = classes.get(klass, usual)
            rows.append(ImportedGang(gang, queue, gpus, allowed, on, other, tier, can, since, said, about))
    return rows


def _classes(found: Mapping[str, ObjectPart]) -> tuple[dict[str, int], frozenset[str], int]:
    """Return the priority of each class, those that preempt nobody, and the priority of who names no class."""
    classes = {name: part.whole("value", 0, least=-(2**31)) for name, part in found.items()}
    never = frozenset(name for name, part in found.items() if part.text("preemptionPolicy") == "Never")
    return classes, never, next((classes[name] for name, part in found.items() if part.flag("globalDefault", False)), 0)


def _where(part: ObjectPart, job: ObjectPart | None) -> tuple[str, str]:
    """Return the queue and the phase of a pod group, or of a job that is taken for one."""
    state = part.at("status.state") if part is job else part.part("status")
    return part.part("spec").text("queue", "default"), state.text("phase", "Pending")


def _pod_groups(found: Objects) -> Iterator[tuple[ObjectPart, ObjectPart | None]]:
    """Yield each pod group with its job, and each job without a pod group with itself."""
    owned = set()
    for part in found["PodGroup"].values():
        metadata = part.part("metadata")
        owners = [each.text("name") for each in metadata.parts("ownerReferences") if each.text("kind") == "Job"]
        job = "/".join(filter(None, (metadata.text("namespace"), *owners[:1])))
        owned.add(job)
        yield part, found["Job"].get(job)
    yield from ((part, part) for name, part in found["Job"].items() if name not in owned)


def _of_job(job: ObjectPart) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """Return what all pods of a job take, and what those take that must start together.

    Source: pkg/controllers/job/job_controller_util.go, CalcPGMinResources: the minimum of each task in turn, then more
    pods of the tasks in turn, up to the job's minimum. Tasks are in the order given; Volcano sorts them by priority.
    """
    tasks = [(task, task.whole("replicas", 1)) for task in job.part("spec").parts("tasks")]
    left = job.part("spec").whole("minAvailable", 0) or sum(replicas for _, replicas in tasks)
    first = []
    for task, replicas in tasks:
        first.append(min(task.whole("minAvailable", replicas), replicas, left))
        left -= first[-1]
    whole: dict[str, Fraction] = {}
    least: dict[str, Fraction] = {}
    for (task, replicas), start in zip(tasks, first, strict=True):
        more = min(replicas - start, left)
        left -= more
        takes = pod_requests(task.at("template.spec"))
        add(whole, takes, replicas)
        add(least, takes, start + more)
    return whole, least
