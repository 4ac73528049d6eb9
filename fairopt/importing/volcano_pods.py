"""What the pods of Volcano's pod groups take, as gangs: the least number together, and each of the others by itself.

And which actions of the scheduler are played, with what "preempt" asks of each gang.

Source: volcano-sh/volcano at ed72c7c8, pkg/scheduler/api/job_info.go; plugins/gang, conformance;
pkg/scheduler/conf/scheduler_conf.go; framework/session_plugins.go, Preemptable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from fairopt.importing.documents import SECONDS
from fairopt.importing.imported import ImportedGang
from fairopt.importing.kubernetes import Objects, Pod, Stock, add, named, pod_requests
from fairopt.importing.unplaced import Places
from fairopt.importing.volcano_objects import CONFIGURATION
from fairopt.problem.files.schema import ObjectPart

#: What a node has places for, where these are counted.
PODS = "pods"
#: The annotation that names a pod's group, and what says whether it may be stopped.
GROUP_NAME, STOPS = "scheduling.k8s.io/group-name", "volcano.sh/preemptable"
Amounts: TypeAlias = Mapping[str, Fraction]
#: Plugins that the policies have, or that choose nodes only.
_PLUGINS = ("proportion", "capacity", "drf", "gang", "priority", "conformance", "nodeorder", "binpack")
#: Actions that are played, and those that need not be: what waits is taken to be in the queue.
_PLAYED, _BESIDE = ("allocate", "preempt", "reclaim"), ("enqueue", "backfill")
#: Plugins that say who may be preempted, if nothing forbids it; the first are modelled.
_MODELLED = ("priority", "gang", "conformance")
_ASKED = (*_MODELLED, "cdp", "drf", "extender", "pdb", "tdm")
#: Who is critical by class, and where. Source: kubernetes, pkg/apis/scheduling/types.go; conformance.go.
_CRITICAL, _SYSTEM = ("system-cluster-critical", "system-node-critical"), "kube-system"


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


# -- actions ----------------------------------------------------------------------------------------------------
def settings_of(found: Mapping[str, ObjectPart], places: Places) -> dict[str, str]:
    """Return the actions of the scheduler's configuration, and who says whom "preempt" may stop; note others."""
    settings: dict[str, str] = {}
    for name, part in found.items():
        actions = [each.strip() for each in part.text("actions").split(",") if each.strip()]
        settings = {"scheduler": "volcano", "actions": ", ".join(each for each in actions if each in _PLAYED)}
        for each in actions:
            if each not in _PLAYED:
                why = "what waits is taken to be in the queue" if each in _BESIDE else "an action that is not modelled"
                places.note(f"{CONFIGURATION}, actions", name, each, why)
        tiers = [[(each.text("name"), each) for each in tier.parts("plugins")] for tier in part.parts("tiers")]
        for plugin, _ in (each for tier in tiers for each in tier):
            if plugin not in _PLUGINS:
                places.note(f"{CONFIGURATION}, plugins", name, plugin, "a plugin that is not modelled")
        if "preempt" in actions:
            settings["preemptable"] = _preemptable(name, tiers, places)
    return settings


def _preemptable(name: str, tiers: Sequence[Sequence[tuple[str, ObjectPart]]], places: Places) -> str:
    """Return the plugins that say who may be preempted: those of the first tier that has any."""
    on = [
        [plugin for plugin, part in tier if plugin in _ASKED and part.flag("enablePreemptable", True)] for tier in tiers
    ]
    first, *later = [each for each in on if each] or [[]]
    for plugin in (each for each in first if each not in _MODELLED):
        why = "whom it lets be preempted is not modelled"
        places.note(f"{CONFIGURATION}, plugins, enablePreemptable", name, plugin, why)
    for plugin in (each for tier in later for each in tier):
        why = "that it alone says who is preempted, where a tier before it names nobody, is not modelled"
        places.note(f"{CONFIGURATION}, plugins, enablePreemptable", name, plugin, why)
    return ", ".join(each for each in first if each in _MODELLED)


def is_critical(namespace: str, klass: str) -> bool:
    """Say whether the plugin "conformance" keeps a pod of a class from being stopped."""
    return namespace == _SYSTEM or klass in _CRITICAL


def in_order(pods: Sequence[Pod], settings: Mapping[str, str], *, running: bool) -> list[Pod]:
    """Return the pods of a group as "preempt" goes through them, where it is played: the highest priority first.

    Of running ones those that may not be stopped come first, and are the least that a group keeps; of waiting ones
    those that preempt nobody last.
    """
    if "preempt" not in settings.get("actions", "").split(", "):
        return list(pods)
    return sorted(pods, key=lambda pod: (running and pod.may_stop, -pod.priority, not pod.preempts))


def said_of(
    job: str,
    settings: Mapping[str, str],
    pods: Collection[Pod] = (),
    *,
    stops: bool,
    beyond: bool = False,
    preempts: bool = True,
) -> dict[str, str]:
    """Return the settings of a gang of a ``job``, or of some of its ``pods``, for the actions that are played.

    ``stops``: whether the group lets it be stopped; ``beyond``: it is not of the least pods that start together;
    ``preempts``: whether its class lets it.
    """
    actions = settings.get("actions", "").split(", ")
    preempts = preempts and all(pod.preempts for pod in pods)
    said = {} if preempts or not {"preempt", "reclaim"} & set(actions) else {"preempts": "false"}
    if "preempt" in actions:
        critical = "conformance" in settings.get("preemptable", "") and any(pod.critical for pod in pods)
        may = stops and not critical and all(pod.may_stop for pod in pods)
        said |= {"job": job, "preemptable": str(may).lower()}
        said |= {"beyond": "true"} if beyond else {}
        if pods:
            said["priority"] = str(min(pod.priority for pod in pods))
    return said
