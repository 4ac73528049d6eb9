"""Volcano's pod groups and jobs as gangs: who waits and runs, and what each takes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from fairopt.importing.fields import ObjectPart, Places
from fairopt.problem import Gangs

_PREEMPTABLE = "volcano.sh/preemptable"
_WAITS, _RUNS = ("Pending", "Inqueue"), ("Running", "Unknown")


class Columns(NamedTuple):
    """What is counted: GPU types by resource name, other resources, and how much the cluster has of each."""

    types: tuple[str, ...]
    others: tuple[str, ...]
    stock: Mapping[str, Fraction]

    def has(self, resource: str) -> bool:
        """Say whether a resource is counted."""
        return resource in self.types or resource in self.others


class Wanted(NamedTuple):
    """A gang as it is read: GPUs of one type (None: it takes none), and its part of the other resources."""

    name: str
    queue: str
    gpus: int
    of: str | None
    other: Mapping[str, Fraction]
    runs: bool
    tier: int
    preemptible: bool
    since: int


def gangs(
    found: Mapping[str, list[ObjectPart]],
    queues: Mapping[str, ObjectPart],
    users: tuple[str, ...],
    columns: Columns,
    places: Places,
) -> Gangs:
    """Return the gangs of pod groups, and of jobs that have none yet.

    A pod group's ``minResources`` start together; where it says none, its job's pods do.
    """
    classes = {called(part): part.whole("value", 0, least=-(2**31)) for part in found["PriorityClass"]}
    rows: list[Wanted] = []
    for part, job in _pod_groups(found):
        kind, name, spec = part.text("kind"), called(part), part.part("spec")
        queue, phase = _where(part, job)
        if phase not in _WAITS + _RUNS:
            places.note(f"{kind}, phase {phase}", name, phase, "it neither waits nor runs")
            continue
        if queue not in users:
            places.note(f"{kind}, spec.queue", name, queue, "no such leaf queue is given; Volcano skips it")
            continue
        opened = queues[queue].part("status").text("state", "Open")
        if opened != "Open" and phase in _WAITS:
            places.note(f"{kind}, spec.queue", name, queue, f"the queue is {opened}, and starts nothing")
            continue
        whole, takes = _of_job(job) if job is not None else ({}, {})
        if spec.value.get("minResources") is not None:
            takes = spec.amounts("minResources")
        for each in columns.types:
            if (more := whole.get(each, Fraction(0)) - takes.get(each, Fraction(0))) > 0:
                why = "pods beyond the gang's minimum start one by one, and are not asked for here"
                places.note(f"{kind}, elastic pods", name, f"{more} {each}", why)
        klass = spec.text("priorityClassName")
        if klass and klass not in classes:
            places.note(f"{kind}, spec.priorityClassName", name, klass, "no such PriorityClass is given; taken as 0")
        can = part.part("metadata").part("annotations").text(_PREEMPTABLE, "true") != "false"
        reclaimable = queues[queue].part("spec").flag("reclaimable", True)
        since, runs = part.part("metadata").seconds("creationTimestamp"), phase in _RUNS
        for gang, gpus, of, other in _by_type(name, takes, columns, places):
            rows.append(Wanted(gang, queue, gpus, of, other, runs, classes.get(klass, 0), can and reclaimable, since))
    return Gangs.of(
        [row.queue for row in rows],
        [row.gpus for row in rows],
        users=users,
        types=columns.types,
        names=[row.name for row in rows],
        allowed=[None if row.of is None else [row.of] for row in rows],
        on=[(row.of or columns.types[0]) if row.runs else None for row in rows],
        tier=[row.tier for row in rows],
        preemptible=[row.preemptible for row in rows],
        since=[row.since for row in rows],
        other={each: [row.other.get(each, Fraction(0)) for row in rows] for each in columns.others},
    )


def phases(found: Mapping[str, list[ObjectPart]]) -> list[tuple[str, str]]:
    """Return the queue and the phase of every pod group."""
    return [_where(part, None) for part in found["PodGroup"]]


def _where(part: ObjectPart, job: ObjectPart | None) -> tuple[str, str]:
    state = part.part("status").part("state") if part is job else part.part("status")
    return part.part("spec").text("queue", "default"), state.text("phase", "Pending")


def called(part: ObjectPart) -> str:
    """Return the name of an object, after its namespace where it has one."""
    metadata = part.part("metadata")
    return "/".join(filter(None, (metadata.text("namespace"), metadata.text("name"))))


def _pod_groups(found: Mapping[str, list[ObjectPart]]) -> Iterator[tuple[ObjectPart, ObjectPart | None]]:
    """Yield each pod group with its job, and each job without a pod group with itself."""
    jobs = {called(part): part for part in found["Job"]}
    owned = set()
    for part in found["PodGroup"]:
        owners = [
            each.text("name") for each in part.part("metadata").parts("ownerReferences") if each.text("kind") == "Job"
        ]
        space = part.part("metadata").text("namespace")
        job = "/".join(filter(None, (space, *owners[:1])))
        owned.add(job)
        yield part, jobs.get(job)
    yield from ((part, part) for name, part in jobs.items() if name not in owned)


def _by_type(
    name: str, takes: Mapping[str, Fraction], columns: Columns, places: Places
) -> Iterator[tuple[str, int, str | None, Mapping[str, Fraction]]]:
    """Yield what a gang takes, a gang for each GPU type in it; the first has all of the other resources."""
    for each, amount in takes.items():
        if not columns.has(each) and amount > 0:
            why = "no queue has a quota of it" if each in columns.stock else "no node has it"
            places.note(f"minResources of {each}", name, amount, why)
    of = {each: takes[each] for each in columns.types if takes.get(each)}
    if len(of) > 1:
        places.note("minResources", name, ", ".join(of), "a gang has GPUs of one type here; it is split")
    other: Mapping[str, Fraction] = {each: takes[each] for each in columns.others if each in takes}
    for each, amount in of.items():
        whole = -(-amount.numerator // amount.denominator)
        if whole != amount:
            places.note(f"minResources of {each}", name, amount, f"taken as {whole}")
        yield (f"{name} [{each}]" if len(of) > 1 else name), whole, each, other
        other = {}
    if not of:
        yield name, 0, None, other


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
        for name, amount in of_pod(task.part("template").part("spec")).items():
            whole[name] = whole.get(name, Fraction(0)) + amount * replicas
            least[name] = least.get(name, Fraction(0)) + amount * (start + more)
    return whole, least


def of_pod(spec: ObjectPart) -> dict[str, Fraction]:
    """Return what a pod asks for: the sum of its containers, at least the largest of those that come first."""
    takes: dict[str, Fraction] = {}
    for container in spec.parts("containers"):
        for name, amount in _asked(container).items():
            takes[name] = takes.get(name, Fraction(0)) + amount
    for container in spec.parts("initContainers"):
        for name, amount in _asked(container).items():
            takes[name] = max(takes.get(name, Fraction(0)), amount)
    for name, amount in spec.amounts("overhead").items():
        takes[name] = takes.get(name, Fraction(0)) + amount
    return takes


def _asked(container: ObjectPart) -> dict[str, Fraction]:
    given = container.part("resources")
    return {**given.amounts("limits"), **given.amounts("requests")}
