"""Armada's jobs as gangs: what is kept of a job when it is read, what jobs alike take, and which start together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from fairopt.importing.armada_objects import number_in
from fairopt.importing.documents import AMOUNTS, SECONDS
from fairopt.importing.imported import ImportedGang
from fairopt.importing.kubernetes import MOST_ALIKE, Stock, add, key_of, pod_requests, requests_in
from fairopt.importing.unplaced import Places
from fairopt.numbers import whole_as_int
from fairopt.problem.files.schema import ObjectPart
from fairopt.program import Number

#: The class of a job that names none. Source: config/scheduler/config.yaml.
DEFAULT_CLASS = "armada-default"
#: A class's priority, whether its jobs are preemptible, and its limits: parts of the pool for each queue.
PriorityClass: TypeAlias = tuple[int, bool, Mapping[str, Fraction]]
_GANG, _MEMBERS = "armadaproject.io/gangId", "armadaproject.io/gangCardinality"
_WAITS, _RUNS = ("SUBMITTED", "QUEUED"), ("LEASED", "PENDING", "RUNNING")
#: What is read of a pod beside what it asks for.
_OF_POD = ("nodeSelector", "priorityClassName")


class _Job(NamedTuple):
    """What is kept of a job: its queue, its state, and the node of its latest run, "" where none is known.

    ``turn``: its own priority, the lowest first, then when it was submitted. ``spec``: of a job that waits or runs the
    specification of the first that asks for the same. ``notes``: of its own what says of which gang it is, if anything:
    what is malformed there is refused where the job takes part.
    """

    queue: str
    state: str
    node: str
    turn: tuple[Number, int]
    spec: ObjectPart
    notes: ObjectPart | None = None

    def note(self, key: str) -> str:
        """Return an annotation, "" where there is none."""
        return "" if self.notes is None else self.notes.part("annotations").text(key)


class _Takes(NamedTuple):
    """What a job takes: whole GPUs, other resources, and the types that it may wait for, of which it ``asked`` for one.

    ``called``: the name of its class, with ``tier`` and ``preemptible``. ``notes``: place, value and why.
    """

    gpus: int
    other: Mapping[str, Any]
    allowed: tuple[str, ...]
    asked: Any
    called: str
    tier: int
    preemptible: bool
    notes: Sequence[tuple[str, object, str]]


#: The jobs of a gang: the name of each, what is kept of it and what it takes, and the types that it may have.
_Row: TypeAlias = list[tuple[str, _Job, _Takes, tuple[str, ...]]]


def job_reader() -> Callable[[ObjectPart], _Job]:
    """Return what returns all that is kept of a job, for `gangs_in`; its errors are `BadInput` with the place."""
    alike: dict[bytes | str, ObjectPart] = {}

    def read(job: ObjectPart) -> _Job:
        queue, state, node = job.text("queue"), job.text("state", "UNKNOWN"), _node(job)
        spec = job.part("jobSpec") if "jobSpec" in job.value else job  # a submitted one is its own
        priority = whole_as_int(number_in(spec, "priority")) if "priority" in spec.value else 0
        turn = priority, job.read("submittedTs", SECONDS, 0) or spec.read("created", SECONDS, 0)
        if state not in _WAITS + _RUNS:
            return _Job(queue, state, node, turn, _NOTHING)
        key = key_of(_asked_in(spec.value))
        if key not in alike and len(alike) >= MOST_ALIKE:
            alike.clear()
        return _Job(queue, state, node, turn, alike.setdefault(key, spec), _notes(spec))

    return read


_NOTHING = ObjectPart("a job", {})


def _node(job: ObjectPart) -> str:
    """Return the node of a job's latest run, "" where none is known."""
    runs = {run.text("runId"): run.text("node") for run in job.parts("jobRuns")}
    return runs.get(job.text("latestRunId"), list(runs.values())[-1] if runs else "")


def _notes(spec: ObjectPart) -> ObjectPart | None:
    """Return a specification that has no more than the annotations that are read; None where it has none of them."""
    given = spec.value.get("annotations")
    if type(given) is dict:
        given = {key: given[key] for key in (_GANG, _MEMBERS) if key in given}
    return None if given in (None, {}) else ObjectPart(spec.place, {"annotations": given})


def _asked_in(spec: Mapping[str, Any]) -> list[Any]:
    """Return all that `_takes` reads of a specification: jobs with the same take the same."""

    def of_pod(pod: Any) -> Any:  # tuples, since JSON has none: what is no object is nothing else
        return (*requests_in(pod), *map(pod.get, _OF_POD)) if type(pod) is dict else pod

    pods, given = spec.get("podSpecs"), spec.get("schedulingResourceRequirements")
    return [
        tuple(map(of_pod, pods)) if type(pods) is list else pods,
        of_pod(spec.get("podSpec")),
        (given.get("requests"),) if type(given) is dict else given,
        spec.get("requiredNodeLabels"),
    ]


def gangs_in(
    jobs: Mapping[str, _Job], queues: Mapping[str, ObjectPart], classes: Mapping[str, PriorityClass], stock: Stock,
    type_of: Mapping[str, str], label: str, scheduling: ObjectPart, places: Places,
) -> tuple[list[ImportedGang], dict[str, set[str]]]:  # fmt: skip
    """Return jobs that wait or run as gangs, and the classes of each queue's jobs; others are noted.

    Those with one gangId are together, and each other is alone. Within a queue the class's priority counts first, then
    a job's turn. ``type_of``: the type of each node. Errors: `BadInput` that names the place.
    """
    closed = {name for name, part in queues.items() if part.flag("cordoned", False)}
    takes, used = dict[ObjectPart, _Takes](), dict[str, set[str]]()
    rows, together = list[_Row](), dict[tuple[str, str, bool, str], _Row]()
    for name, job in jobs.items():
        queue, runs = job.queue, job.state in _RUNS
        if queue not in queues:
            places.note("job, queue", name, queue, "no such queue is given")
        elif not runs and job.state not in _WAITS:
            places.note("job, state", name, job.state, "it neither waits nor runs")
        elif not runs and queue in closed:
            places.note("job, queue", name, queue, "the queue is cordoned: what waits in it does not start")
        else:
            own = takes.get(job.spec)
            if own is None:
                own = takes[job.spec] = _takes(job.spec, classes, stock, label, scheduling)
            used.setdefault(queue, set()).add(own.called)
            if allowed := _allowed(name, job, own, stock, type_of, places):
                if own.called not in classes:
                    why = "no such class is given: priority 0, not preemptible"
                    places.note("job, podSpec.priorityClassName", name, own.called or "none", why)
                row: _Row = []
                if gang := job.note(_GANG):
                    row = together.setdefault((queue, gang, runs, allowed[0] if runs else ""), row)
                if not row:
                    rows.append(row)
                row.append((name, job, own, allowed))
    for row in rows:
        _complete(row, places)
    # a gang's turn comes with its last job. Source: jobiteration.go and queue_scheduler.go, QueuedGangIterator
    last = [max(job.turn for _, job, _, _ in row) for row in rows]
    order = {turn: at for at, turn in enumerate(sorted(set(last)))}
    return [_gang(name, row, order[turn]) for name, row, turn in zip(_names(rows), rows, last, strict=True)], used


def _takes(
    spec: ObjectPart, classes: Mapping[str, PriorityClass], stock: Stock, label: str, scheduling: ObjectPart
) -> _Takes:
    """Return what a job of that specification takes."""
    pod = [*spec.parts("podSpecs"), spec.part("podSpec")][0]
    whole = spec.part("schedulingResourceRequirements").read("requests", AMOUNTS, {}) or pod_requests(pod)
    wanted = {name: count for name, count in whole.items() if count and name in stock.types.values()}
    gpus = sum(wanted.values(), Fraction(0))
    rounded = -(-gpus.numerator // gpus.denominator)
    notes: list[tuple[str, object, str]] = []
    if gpus != rounded:
        notes.append(("job, GPUs", gpus, f"taken as {rounded}"))
    labels = {**spec.part("requiredNodeLabels").value, **pod.part("nodeSelector").value}
    asked, why = labels.get(label), "of a job's node labels only that of the GPU type counts"
    notes += [("job, nodeSelector", each, why) for each in labels if each != label]
    allowed = tuple(
        kind for kind, name in stock.types.items() if name in (wanted or stock.types.values()) and asked in (None, kind)
    )
    called = pod.text("priorityClassName") or scheduling.text("defaultPriorityClassName", DEFAULT_CLASS)
    tier, preemptible, _ = classes.get(called, (0, False, {}))
    other = {name: whole_as_int(whole[name]) for name in stock.others if whole.get(name)}
    return _Takes(rounded, other, allowed, asked, called, tier, preemptible, notes)


def _allowed(
    name: str, job: _Job, own: _Takes, stock: Stock, type_of: Mapping[str, str], places: Places
) -> tuple[str, ...]:
    """Return the types on which a job may wait, or the one on which it runs; none where it has no place in the market.

    What has no place is noted.
    """
    for where, value, why in own.notes:
        places.note(where, name, value, why)
    allowed, runs = own.allowed, job.state in _RUNS
    if runs and job.node in type_of:
        allowed = (type_of[job.node],)
    if runs and not own.gpus:
        allowed = allowed[:1] or tuple(stock.types)[:1]
    if allowed and not (runs and len(allowed) > 1):
        return allowed
    why = "the type that it runs on is not known: give the nodes and the runs" if allowed else "no node has it"
    places.note("job, GPU type", name, own.asked or job.node or "none", why)
    return ()


def _complete(row: _Row, places: Places) -> None:
    """Note where a gang has fewer jobs than it says, or jobs that may not run on the same types."""
    first, job, _, allowed = row[0]
    said = job.note(_MEMBERS)
    if said and said != str(len(row)):
        got = f"{len(row)} of {said} jobs"
        places.note(f"job, annotation {_MEMBERS}", first, got, "the others are in another state, or not given")
    if len(row) > 1 and not set(allowed).intersection(*(each for _, _, _, each in row)):
        why = "a gang has GPUs of one type here: those of its first job"
        places.note("job, types of a gang", first, row[-1][3], why)


def _names(rows: Iterable[_Row]) -> list[str]:
    """Return a name for each gang: a job's own, or the gang's, with queue, state and type where it stands twice."""
    short = [row[0][0] if len(row) == 1 else row[0][1].note(_GANG) for row in rows]
    times = Counter(short)
    return [name if times[name] == 1 else _long(name, row[0]) for name, row in zip(short, rows, strict=True)]


def _long(name: str, first: tuple[str, _Job, _Takes, tuple[str, ...]]) -> str:
    _, job, _, allowed = first
    return " ".join([job.queue, name, *(("runs", allowed[0]) if job.state in _RUNS else ("waits",))])


def _gang(name: str, row: _Row, since: int) -> ImportedGang:
    """Return the gang of some jobs."""
    job, own, allowed = row[0][1:]
    runs, other, gpus, preemptible = job.state in _RUNS, own.other, own.gpus, own.preemptible
    if len(row) > 1:
        several, total = [each for _, _, each, _ in row], dict[str, Any]()
        for each in several:
            add(total, each.other)
        # where there is no type on which all of its jobs may run, those of the first count
        common = tuple(kind for kind in allowed if all(kind in each for _, _, _, each in row))
        allowed, other, gpus = common or allowed, total, sum(each.gpus for each in several)
        preemptible = all(each.preemptible for each in several)
    about = () if runs else tuple(
        dict.fromkeys(thing for own_name, _, each, _ in row for thing in (("job", own_name), ("class", each.called)))
    )  # fmt: skip
    on = allowed[0] if runs else None
    return ImportedGang(
        name, job.queue, gpus, None if runs else allowed, on, other, own.tier, preemptible, since, about=about
    )
