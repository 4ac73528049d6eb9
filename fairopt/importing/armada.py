"""Armada's queues, jobs, priority classes and nodes, as armadactl and its API print them and jobs are submitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from fairopt.errors import BadInput, require
from fairopt.importing.armada_objects import FIELDS, HARMLESS, RULES, UNCOUNTED
from fairopt.importing.documents import AMOUNTS, SECONDS, found_in, in_files
from fairopt.importing.imported import Imported, ImportedGang, ImportedQueue, entitlements_of, market_of
from fairopt.importing.kubernetes import Objects, Stock, add, is_ready, pod_requests
from fairopt.importing.unplaced import TAKEN, UNKNOWN, Places
from fairopt.importing.volcano import is_gpu
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import amount, shown

#: The label that says which GPUs a node has.
PRODUCT = "nvidia.com/gpu.product"
#: The flavor of what is not counted by GPU type: CPU and memory of the pool.
POOL = "pool"
#: What a job names no class gets, and what dominant shares are over. Source: config/scheduler/config.yaml.
DEFAULT_CLASS, COUNTED = "armada-default", ("cpu", "memory")
_LIMITS = dict.fromkeys(("maximumResourceFraction", "maximumResourceFractionByPool"), TAKEN)
_GANG, _MEMBERS = "armadaproject.io/gangId", "armadaproject.io/gangCardinality"
_WAITS, _RUNS = ("SUBMITTED", "QUEUED"), ("LEASED", "PENDING", "RUNNING")
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
    found: dict[str, dict[str, ObjectPart]] = {kind: {} for kind in FIELDS}
    with in_files(paths):
        for path in paths:
            for found_part in found_in(path):
                with naming(path, found_part.place):
                    for kind, name, part, read_as in _objects(
                        ObjectPart(f"{path}: {found_part.place}", found_part.value), places
                    ):
                        kept = found["job" if kind == "submitted job" else kind]
                        if not name or name in kept:
                            got = f"{kind} {name!r} stands twice" if name else f"a {kind} without a name"
                            raise BadInput(got, place=part.place, remedy="Give each object once, with its name")
                        kept[name] = read_as
                        places.of(kind, name, part.value, FIELDS[kind])
        return _imported(found, label, resource, places)


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
        for each in map(inner.part, inner.value):
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


def _spec(job: ObjectPart) -> ObjectPart:
    """Return a job's specification, which a submitted one is itself."""
    return job.part("jobSpec") if "jobSpec" in job.value else job


def _node(job: ObjectPart) -> str:
    """Return the node of a job's latest run, "" where none is known."""
    runs = {run.text("runId"): run.text("node") for run in job.parts("jobRuns")}
    return runs.get(job.text("latestRunId"), list(runs.values())[-1] if runs else "")


def _imported(found: Objects, label: str, resource: str | None, places: Places) -> Imported:
    queues = found["Queue"]
    if not queues:
        remedy = "Give what armadactl get queue NAME prints, or the API's list of queues"
        raise BadInput("no Queue of armadaproject.io", place="the files", remedy=remedy)
    scheduling = found["scheduling"].get("scheduling", ObjectPart("scheduling", {}))
    stock, type_of = _stock(found["Node"], label, resource, scheduling, places)
    classes = scheduling.part("priorityClasses")
    for name in classes.value:
        places.of("priority class", name, classes.part(name).value, FIELDS["priority class"])
        _class(scheduling, name)  # refuses what is none
    closed = {name for name, part in queues.items() if part.flag("cordoned", False)}
    times = {name: _place(job) for name, job in found["job"].items()}
    jobs = {name: job for name, job in found["job"].items() if _takes_part(job, queues, closed, places)}
    gangs = list(_gangs(jobs, times, stock, type_of, label, scheduling, places))
    used: dict[str, set[str]] = {}
    for job in jobs.values():
        used.setdefault(job.text("queue"), set()).add(_class_of(job, scheduling))
    nodes = {
        name: ImportedQueue(cap=_cap(part, scheduling, stock, places, used.get(name)), weight=_weight(part))
        for name, part in queues.items()
    }
    protected, large = "protectedFractionOfFairShare", "enablePreferLargeJobOrdering"
    said = {"scheduler": "armada", protected: str(_number(scheduling, protected, 1))}
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
    factor, given = _number(part, "priorityFactor", 1), part.value.get("priorityFactor")
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


def _class(scheduling: ObjectPart, name: str) -> tuple[int, bool, dict[str, Fraction]]:
    """Return a class's priority, whether its jobs are preemptible, and its limits: parts of the pool for each queue."""
    part = scheduling.part("priorityClasses").part(name)
    limits = _fractions(part.part("maximumResourceFractionPerQueue"))
    return part.whole("priority", 0), part.flag("preemptible", False), limits


def _fractions(part: ObjectPart) -> dict[str, Fraction]:
    return {name: _number(part, name) for name in part.value}


def _cap(
    part: ObjectPart, scheduling: ObjectPart, stock: Stock, places: Places, used: Container[str] | None
) -> dict[str, Fraction]:
    """Return the most that a queue may hold by column; what has no limit, or one of the whole pool, is left out.

    A queue's own limits for a class take the place of the class's. A limit of GPUs is one of all types together.
    ``used``: the classes of the queue's jobs, which are all that it can hold; None for any.
    """
    own, limits = part.part("resourceLimitsByPriorityClassName"), []
    for name in dict.fromkeys((*scheduling.part("priorityClasses").value, *own.value)):
        given = own.part(name)
        places.of("Queue, resourceLimitsByPriorityClassName", part.text("name"), given.value, _LIMITS)
        if used is not None and name not in used:
            continue
        if given.part("maximumResourceFractionByPool").value:
            places.note("Queue, maximumResourceFractionByPool", part.text("name"), name, "one pool is read")
        of_class = _class(scheduling, name)[2]
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


# -- jobs as gangs -------------------------------------------------------------------------------------------------
def _takes_part(job: ObjectPart, queues: Container[str], closed: Container[str], places: Places) -> bool:
    """Say whether a job runs or waits, and note where it does not."""
    name, queue, state = job.text("jobId"), job.text("queue"), job.text("state", "UNKNOWN")
    _node(job)  # what is malformed is refused also where the job takes no part
    if queue not in queues:
        places.note("job, queue", name, queue, "no such queue is given")
    elif state not in _WAITS + _RUNS:
        places.note("job, state", name, state, "it neither waits nor runs")
    elif state in _WAITS and queue in closed:
        places.note("job, queue", name, queue, "the queue is cordoned: what waits in it does not start")
    else:
        return True
    return False


def _gangs(
    jobs: Mapping[str, ObjectPart],
    times: Mapping[str, tuple[Fraction, int]],
    stock: Stock,
    type_of: Mapping[str, str],
    label: str,
    scheduling: ObjectPart,
    places: Places,
) -> Iterator[ImportedGang]:
    """Yield the jobs as gangs: those with one gangId together, and each other alone.

    Within a queue the class's priority counts first, then the job's own, the lowest first, then the time (``times``).
    """
    parts: dict[tuple[str, str, bool, tuple[str, ...]], list[tuple[ObjectPart, ImportedGang]]] = {}
    for job in jobs.values():
        if (part := _part(job, stock, type_of, label, scheduling, places)) is not None:
            gang, runs = _spec(job).part("annotations").text(_GANG) or f"job {part.name}", part.on is not None
            parts.setdefault((part.user, gang, runs, (part.on,) if part.on else ()), []).append((job, part))
    for members in parts.values():
        _complete(members, places)
    # a gang's turn comes with its last job. Source: jobiteration.go and queue_scheduler.go, QueuedGangIterator
    first = [max(times[each.name] for _, each in row) for row in parts.values()]
    order = {place: at for at, place in enumerate(sorted(set(first)))}
    for ((_, _, runs, _), row), name, place in zip(parts.items(), _names(parts), first, strict=True):
        if len(row) == 1:
            yield row[0][1]._replace(name=name, allowed=None if runs else row[0][1].allowed, since=order[place])
            continue
        other: dict[str, Fraction] = {}
        for _, each in row:
            add(other, each.other)  # type: ignore[arg-type]
        yield row[0][1]._replace(
            name=name,
            gpus=sum(each.gpus for _, each in row),
            allowed=None if runs else _allowed([each.allowed or () for _, each in row]),
            other=other,
            preemptible=all(each.preemptible for _, each in row),
            since=order[place],
            about=tuple(dict.fromkeys(thing for _, each in row for thing in each.about)),
        )


def _place(job: ObjectPart) -> tuple[Fraction, int]:
    spec = _spec(job)
    return _number(spec, "priority"), job.read("submittedTs", SECONDS, 0) or spec.read("created", SECONDS, 0)


def _names(parts: Mapping[tuple[str, str, bool, tuple[str, ...]], list[tuple[ObjectPart, ImportedGang]]]) -> list[str]:
    """Return a name for each gang: a job's own, or the gang's, with queue, state and type where it stands twice."""
    short = [row[0][1].name if len(row) == 1 else gang for (_, gang, _, _), row in parts.items()]
    twice = {name for name in short if short.count(name) > 1} if len(set(short)) < len(short) else set()
    return [
        " ".join([queue, name, "runs" if runs else "waits", *on]) if name in twice else name
        for name, (queue, _, runs, on) in zip(short, parts, strict=True)
    ]


def _complete(members: Sequence[tuple[ObjectPart, ImportedGang]], places: Places) -> None:
    """Note where a gang has fewer jobs than it says, or jobs that may not run on the same types."""
    first = members[0][1].name
    said = _spec(members[0][0]).part("annotations").text(_MEMBERS)
    if said and said != str(len(members)):
        got = f"{len(members)} of {said} jobs"
        places.note(f"job, annotation {_MEMBERS}", first, got, "the others are in another state, or not given")
    allowed = [part.allowed or () for _, part in members]
    if not set(allowed[0]).intersection(*allowed):
        why = "a gang has GPUs of one type here: those of its first job"
        places.note("job, types of a gang", first, allowed[-1], why)


def _allowed(members: Sequence[Iterable[str]]) -> list[str]:
    """Return the types on which all jobs of a gang may run; where there is none, those of the first."""
    return [kind for kind in members[0] if all(kind in each for each in members)] or list(members[0])


def _part(
    job: ObjectPart, stock: Stock, type_of: Mapping[str, str], label: str, scheduling: ObjectPart, places: Places
) -> ImportedGang | None:
    """Return what a job takes, as a gang of its own; None where it has no place in the market."""
    name, spec, node, runs = job.text("jobId"), _spec(job), _node(job), job.text("state") in _RUNS
    pod = [*spec.parts("podSpecs"), spec.part("podSpec")][0]
    whole = spec.part("schedulingResourceRequirements").read("requests", AMOUNTS, {}) or pod_requests(pod)
    wanted = {name: count for name, count in whole.items() if count and name in stock.types.values()}
    gpus = sum(wanted.values(), _NONE)
    rounded = -(-gpus.numerator // gpus.denominator)
    if gpus != rounded:
        places.note("job, GPUs", name, gpus, f"taken as {rounded}")
    labels = {**spec.part("requiredNodeLabels").value, **pod.part("nodeSelector").value}
    asked = labels.get(label)
    for each in labels.keys() - {label}:
        places.note("job, nodeSelector", name, each, "of a job's node labels only that of the GPU type counts")
    allowed = tuple(
        kind for kind, name in stock.types.items() if name in (wanted or stock.types.values()) and asked in (None, kind)
    )
    if runs and node in type_of:
        allowed = (type_of[node],)
    if runs and not gpus:
        allowed = allowed[:1] or tuple(stock.types)[:1]
    if not allowed or (runs and len(allowed) > 1):
        why = "the type that it runs on is not known: give the nodes and the runs" if allowed else "no node has it"
        places.note("job, GPU type", name, asked or node or "none", why)
        return None
    called = _class_of(job, scheduling)
    if called not in scheduling.part("priorityClasses").value:
        why = "no such class is given: priority 0, not preemptible"
        places.note("job, podSpec.priorityClassName", name, called or "none", why)
    (tier, preemptible, _), about = _class(scheduling, called), (("job", name), ("class", called))
    other = {name: whole[name] for name in stock.others if whole.get(name)}
    return ImportedGang(
        name, job.text("queue"), rounded, allowed, allowed[0] if runs else None, other, tier, preemptible, about=about
    )


def _class_of(job: ObjectPart, scheduling: ObjectPart) -> str:
    """Return the name of a job's priority class."""
    spec = _spec(job)
    pod = [*spec.parts("podSpecs"), spec.part("podSpec")][0]
    return pod.text("priorityClassName") or scheduling.text("defaultPriorityClassName", DEFAULT_CLASS)


def _number(part: ObjectPart, key: str, blank: int = 0) -> Fraction:
    """Return the number there, which is not negative."""
    found, place = part.value.get(key, blank), f"{part.place}, {key}"
    try:
        return amount(found, place)
    except BadInput as error:
        remedy = "Give a number that is not negative, such as 1 or 0.5"
        raise BadInput(f"got {shown(found)}", place=place, remedy=remedy) from error
