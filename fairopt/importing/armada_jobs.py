"""Armada's jobs as gangs: who waits and runs, on which type, and what each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from fairopt.errors import BadInput
from fairopt.importing.fields import ObjectPart, Places
from fairopt.importing.volcano_jobs import of_pod
from fairopt.problem import Gangs
from fairopt.problem.numbers import exact, shown

_GANG, _MEMBERS = "armadaproject.io/gangId", "armadaproject.io/gangCardinality"
_WAITS, _RUNS = ("SUBMITTED", "QUEUED"), ("LEASED", "PENDING", "RUNNING")


class PriorityClass(NamedTuple):
    """A priority class: jobs of a higher priority may preempt; ``limits`` are parts of the pool for each queue."""

    priority: int = 0
    preemptible: bool = False
    limits: Mapping[str, Fraction] = {}


class Classes(NamedTuple):
    """The priority classes by name, and that of jobs which name none."""

    named: Mapping[str, PriorityClass]
    default: str

    def of(self, pod: ObjectPart, name: str, places: Places) -> PriorityClass:
        """Return the class of a pod; one that is not known has priority 0 and is not preemptible."""
        called = pod.text("priorityClassName") or self.default
        if called not in self.named:
            why = "no such class is given: priority 0, not preemptible"
            places.note("job, podSpec.priorityClassName", name, called or "none", why)
        return self.named.get(called, PriorityClass())


class ArmadaJob(NamedTuple):
    """A job: its specification, its state, the node it runs on ("" for none known), and when it was submitted."""

    name: str
    queue: str
    spec: ObjectPart
    state: str
    node: str
    since: int


class Stock(NamedTuple):
    """What there is: GPU types with the resource of each, other resources, each node's type, and the types' label."""

    types: Mapping[str, str]
    others: Sequence[str]
    type_of: Mapping[str, str]
    label: str


class _Part(NamedTuple):
    """One job's part of a gang."""

    job: ArmadaJob
    runs: bool
    gpus: int
    allowed: tuple[str, ...]
    other: Mapping[str, Fraction]
    of: PriorityClass
    place: tuple[Fraction, int]


def details(part: ObjectPart) -> ArmadaJob:
    """Return the job of a JobDetails, on the node of its latest run."""
    runs = {run.text("runId"): run.text("node") for run in part.parts("jobRuns")}
    node = runs.get(part.text("latestRunId"), list(runs.values())[-1] if runs else "")
    since = part.seconds("submittedTs")
    return ArmadaJob(
        part.text("jobId"), part.text("queue"), part.part("jobSpec"), part.text("state", "UNKNOWN"), node, since
    )


def gangs(
    jobs: Sequence[ArmadaJob],
    users: Sequence[str],
    closed: Sequence[str],
    stock: Stock,
    classes: Classes,
    places: Places,
) -> Gangs:
    """Return the jobs as gangs: those with one gangId together, and each other alone.

    Within a queue the class's priority counts first, then the job's own, the lowest first, then the time.
    """
    parts: dict[tuple[str, str, bool, tuple[str, ...]], list[_Part]] = {}
    for job in jobs:
        if job.queue not in users:
            places.note("job, queue", job.name, job.queue, "no such queue is given")
        elif job.state not in _WAITS + _RUNS:
            places.note("job, state", job.name, job.state, "it neither waits nor runs")
        elif job.state in _WAITS and job.queue in closed:
            places.note("job, queue", job.name, job.queue, "the queue is cordoned: what waits in it does not start")
        elif (part := _part(job, stock, classes, places)) is not None:
            gang = job.spec.part("annotations").text(_GANG) or f"job {job.name}"
            on = part.allowed if part.runs else ()
            parts.setdefault((job.queue, gang, part.runs, on), []).append(part)
    for (_, gang, _, _), members in parts.items():
        _complete(gang, members, places)
    rows = list(parts.values())
    order = {place: at for at, place in enumerate(sorted({min(each.place for each in row) for row in rows}))}
    return Gangs.of(
        [row[0].job.queue for row in rows],
        [sum(each.gpus for each in row) for row in rows],
        users=users,
        types=tuple(stock.types),
        names=_names(parts),
        allowed=[None if row[0].runs else _allowed(row) for row in rows],
        on=[row[0].allowed[0] if row[0].runs else None for row in rows],
        tier=[row[0].of.priority for row in rows],
        preemptible=[all(each.of.preemptible for each in row) for row in rows],
        since=[order[min(each.place for each in row)] for row in rows],
        other={name: [sum((each.other.get(name, Fraction(0)) for each in row), Fraction(0)) for row in rows]
               for name in stock.others},
    )  # fmt: skip


def _names(parts: Mapping[tuple[str, str, bool, tuple[str, ...]], list[_Part]]) -> list[str]:
    """Return a name for each gang: a job's own, or the gang's, with queue, state and type where it stands twice."""
    short = [row[0].job.name if len(row) == 1 else gang for (_, gang, _, _), row in parts.items()]
    twice = {name for name in short if short.count(name) > 1} if len(set(short)) < len(short) else set()
    return [
        " ".join([queue, name, "runs" if runs else "waits", *on]) if name in twice else name
        for name, (queue, _, runs, on) in zip(short, parts, strict=True)
    ]


def _complete(gang: str, members: Sequence[_Part], places: Places) -> None:
    """Note where a gang has fewer jobs than it says, or jobs that may not run on the same types."""
    said = members[0].job.spec.part("annotations").text(_MEMBERS)
    if said and said != str(len(members)):
        got = f"{len(members)} of {said} jobs"
        places.note(f"job, annotation {_MEMBERS}", gang, got, "the others are in another state, or not given")
    if not set(members[0].allowed).intersection(*(part.allowed for part in members)):
        why = "a gang has GPUs of one type here: those of its first job"
        places.note("job, types of a gang", gang, members[-1].allowed, why)


def _allowed(members: Sequence[_Part]) -> list[str]:
    """Return the types on which all jobs of a gang may run; where there is none, those of the first."""
    first = members[0].allowed
    return [kind for kind in first if all(kind in part.allowed for part in members)] or list(first)


def _part(job: ArmadaJob, stock: Stock, classes: Classes, places: Places) -> _Part | None:
    """Return what a job takes; None where it has no place in the market."""
    given = [*job.spec.parts("podSpecs"), job.spec.part("podSpec")]
    pod = given[0]
    whole = job.spec.part("schedulingResourceRequirements").amounts("requests") or of_pod(pod)
    wanted = {name: amount for name, amount in whole.items() if amount and name in stock.types.values()}
    gpus = sum(wanted.values(), Fraction(0))
    if gpus.denominator != 1:
        places.note("job, GPUs", job.name, gpus, f"taken as {-(-gpus.numerator // gpus.denominator)}")
    runs = job.state in _RUNS
    asked = {**job.spec.part("requiredNodeLabels").value, **pod.part("nodeSelector").value}.get(stock.label)
    allowed = tuple(
        kind for kind, name in stock.types.items() if name in (wanted or stock.types.values()) and asked in (None, kind)
    )
    if runs and job.node in stock.type_of:
        allowed = (stock.type_of[job.node],)
    if runs and not gpus:
        allowed = allowed[:1] or tuple(stock.types)[:1]
    if not allowed or (runs and len(allowed) > 1):
        why = "the type that it runs on is not known: give the nodes and the runs" if allowed else "no node has it"
        places.note("job, GPU type", job.name, asked or job.node or "none", why)
        return None
    own = _number(job.spec, "priority")
    return _Part(
        job, runs, -(-gpus.numerator // gpus.denominator), allowed,
        {name: whole[name] for name in stock.others if whole.get(name)},
        classes.of(pod, job.name, places), (own, job.since or job.spec.seconds("created")),
    )  # fmt: skip


def _number(part: ObjectPart, key: str) -> Fraction:
    """Return the number there, 0 where there is none."""
    return not_negative(part.value.get(key, 0), f"{part.place}, {key}")


def not_negative(value: object, place: str) -> Fraction:
    """Return a number that is not negative. Errors: `BadInput` with the place."""
    try:
        found = exact(value, place)
    except BadInput as error:
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a number such as 1 or 0.5") from error
    if found < 0:
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a number that is not negative")
    return found
