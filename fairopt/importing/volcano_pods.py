"""What the pods of Volcano's pod groups take, as gangs: the least number together, and each of the others by itself.

Source: volcano-sh/volcano at ed72c7c8, pkg/scheduler/api/job_info.go; plugins/gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from fairopt.importing.documents import SECONDS
from fairopt.importing.imported import ImportedGang, Places
from fairopt.importing.kubernetes import Objects, Pod, Stock, add, named, pod_requests
from fairopt.importing.volcano_actions import in_order, is_critical, said_of
from fairopt.problem.files.schema import ObjectPart

#: What a node has places for, where these are counted.
PODS = "pods"
#: The annotation that names a pod's group, and what says whether it may be stopped.
GROUP_NAME, STOPS = "scheduling.k8s.io/group-name", "volcano.sh/preemptable"
Amounts: TypeAlias = Mapping[str, Fraction]


def pods_of(found: Objects, places: Places, *, counted: bool) -> dict[str, list[Pod]]:
    """Return the pods of each pod group that run or wait; nothing where the files have none.

    ``counted``: whether a pod's place on a node is a resource as others.
    """
    members: dict[str, list[Pod]] = {}
    for name, part in found["Pod"].items():
        metadata, phase = part.part("metadata"), part.part("status").text("phase", "Pending")
        notes, labels, owner = metadata.part("annotations"), metadata.part("labels"), group_of(part)
        if phase not in ("Pending", "Running"):
            places.note("Pod, status.phase", name, phase, "it takes nothing")
        elif not owner:
            places.note("Pod", name, "no annotation of a pod group", "of no queue")
        else:
            stops = labels.text(STOPS, notes.text(STOPS, "true")) != "false"
            spec, takes = part.part("spec"), pod_requests(part.part("spec"))
            if counted:
                takes[PODS] = Fraction(1)
            members.setdefault(owner, []).append(
                Pod(
                    bool(spec.text("nodeName")),
                    takes,
                    stops,
                    priority=spec.whole("priority", 1, least=-(2**31)),
                    preempts=spec.text("preemptionPolicy") != "Never",
                    critical=is_critical(metadata.text("namespace"), spec.text("priorityClassName")),
                )
            )
    return members


def group_of(pod: ObjectPart) -> str:
    """Return the name of a pod's group, "" for none."""
    metadata = pod.part("metadata")
    group = metadata.part("annotations").text(GROUP_NAME)
    return "/".join(filter(None, (metadata.text("namespace"), group))) if group else ""


def of_pods(
    part: ObjectPart, queue: str, pods: Sequence[Pod], columns: Stock, places: Places, tier: int, over: ObjectPart,
    settings: Mapping[str, str],
) -> Iterator[ImportedGang]:  # fmt: skip
    """Yield the gangs of a pod group's pods: the least number together, and each of the others by itself."""
    name, spec = named(part), part.part("spec")
    first, stops = spec.whole("minMember", 0), part.at("metadata.annotations").text(STOPS, "true") != "false"
    can = over.part("spec").flag("reclaimable", True) and stops
    since, number, left = part.part("metadata").read("creationTimestamp", SECONDS, 0), 0, first
    if 0 < first < len(pods):
        why = "pods beyond the gang's minimum are gangs of their own, and start after their group's"
        places.note("PodGroup, pods beyond spec.minMember", name, len(pods) - first, why)
    for runs in (True, False):
        some = in_order([pod for pod in pods if pod.runs is runs], settings, running=runs)
        together, left = some[:left], max(0, left - len(some))
        if runs and left and together:
            places.note(
                "PodGroup, spec.minMember", name, f"{len(together)} of {first} pods run", "the rest is asked for"
            )
        for each in ([together] if together else []) + [[pod] for pod in some[len(together) :]]:
            takes: dict[str, Fraction] = {}
            for pod in each:
                add(takes, pod.takes)
            said = said_of(name, settings, each, stops=stops, beyond=each is not together)
            for gang, gpus, of, other in by_type(f"{name}+{number}" if number else name, takes, columns, places):
                on = (of or next(iter(columns.types))) if runs else None
                may = can and all(pod.may_stop for pod in each)
                allowed = None if of is None else [of]
                yield ImportedGang(gang, queue, gpus, allowed, on, other, tier, may, since, said)
            number += 1


def by_type(
    name: str, takes: Amounts, columns: Stock, places: Places
) -> Iterator[tuple[str, int, str | None, Amounts]]:
    """Yield what a gang takes, a gang for each GPU type in it; the first has all of the other resources."""
    for each, amount in takes.items():
        if not columns.has(each) and amount > 0:
            why = "no queue has a quota of it" if each in columns.amounts else "no node has it"
            places.note(f"PodGroup, minResources of {each}", name, amount, why)
    of = {each: takes[each] for each in columns.types if takes.get(each)}
    if len(of) > 1:
        places.note("PodGroup, minResources", name, ", ".join(of), "a gang has GPUs of one type here; it is split")
    other: Amounts = {each: takes[each] for each in columns.others if each in takes}
    for each, amount in of.items():
        whole = -(-amount.numerator // amount.denominator)
        if whole != amount:
            places.note(f"PodGroup, minResources of {each}", name, amount, f"taken as {whole}")
        yield (f"{name} [{each}]" if len(of) > 1 else name), whole, each, other
        other = {}
    if not of:
        yield name, 0, None, other
