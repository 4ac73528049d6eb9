"""The pods of KAI Scheduler's pod groups: what they ask for, parts of GPUs too, and which of them start together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing import kai_objects as kai
from fairopt.importing.documents import SECONDS
from fairopt.importing.kai_objects import GPUS
from fairopt.importing.kubernetes import MOST_ALIKE, Objects, Pod, joined, key_of, listed_in, pod_requests, requests_in
from fairopt.importing.unplaced import Places
from fairopt.numbers import whole_as_int
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import MOST_GPUS, exact, shown

NONE = Fraction(0)
#: How the resources begin that are slices of GPUs.
MIG = "nvidia.com/mig-"
#: The label of the memory of a node's GPUs, in MiB, and what KAI takes where it is not there.
_MEMORY, LEAST_MEMORY = "nvidia.com/gpu.memory", 100
#: The label of the GPU that a pod shares, and how those of further ones begin.
_GROUP = "runai-gpu-group"
#: The labels of a node whose GPUs are sliced, and of how.
_SLICED, _STRATEGY = "node-role.kubernetes.io/mig-enabled", "nvidia.com/mig.strategy"
#: Pods with which KAI reserves and scales; they take no part. Source: pkg/scheduler/conf/global_config.go.
_UTILITIES = ("kai-resource-reservation", "scaling-pod")
_LONE = "its pod group is not in the files: it counts for that queue, and starts alone"
#: What is taken of resources; whole amounts may be ints, since thousands are added.
Amounts = dict[str, Any]
#: What a pod takes, whether it asks for slices, its devices, and what there is to note: place, value and why.
_Asked = tuple[Amounts, bool, tuple[Fraction, int], list[tuple[str, str, str]]]
#: The annotations that say which part of a GPU a pod takes.
_PARTS = ("gpu-fraction", "gpu-fraction-num-devices", "gpu-memory")


def together_of(name: str, queue: str, pods: list[Pod], first: int, places: Places) -> Iterator[list[Pod]]:
    """Yield the pods of each gang of a group: its first pods together, and each of the others by itself."""
    if len(pods) == 1 and not pods[0].sliced:  # nearly always
        yield pods
        return
    for runs in (True, False):
        some = [pod for pod in pods if pod.runs is runs]
        start, rest = some[:first], some[first:]
        first -= len(start)
        for together in ([start] if start else []) + [[pod] for pod in rest]:
            if any(pod.sliced for pod in together):
                why = "slices of GPUs are no parts of one: what they are is not known"
                places.note("PodGroup with slices of GPUs", name, queue, why)
            else:
                yield together


def is_part(share: Fraction) -> bool:
    """Return whether that is less than a whole GPU, and more than none."""
    return share.denominator > 1 and 0 < share < 1  # nearly all are whole


def told(pods: list[Pod]) -> str:
    """Return on how many GPUs each pod takes what part, and where it runs, as `fairopt.models.kai.devices` reads it.

    >>> told([Pod(True, {}, devices=(Fraction(1, 2), 1), node="n1", groups=("a",)), Pod(False, {}, devices=(NONE, 0))])
    '1/2*1@n1:a 0*0'
    """
    return " ".join(
        f"{pod.devices[0]}*{pod.devices[1]}"
        + (f"@{pod.node}" + f":{','.join(pod.groups)}" * bool(pod.groups)) * pod.runs
        for pod in pods
    )


class _ReadGroup(NamedTuple):
    """What is kept of a PodGroup: its queue, the PriorityClass that it names, and when it was made.

    ``stops``: whether it may be stopped, in KAI's words, "" where it does not say. ``first``: how many pods start
    together.
    """

    queue: str
    chosen: str
    stops: str
    first: int
    created: int


class _ReadPod(NamedTuple):
    """What is kept of a Pod: its phase, its scheduler, and its node, "" for none.

    ``group``: the name of its pod group, ``owner``: the same with the namespace. ``ends``: it is being deleted.
    ``gated``: it waits for a gate. ``like``: the first pod that asks for the same. ``groups``: the names of the GPUs
    that it shares. ``utility``: KAI reserves or scales with it. ``lone``: what says which group it makes where nothing
    groups it; None without the label of a queue.
    """

    phase: str
    group: str
    owner: str
    scheduler: str
    node: str
    ends: bool
    gated: bool
    like: ObjectPart
    groups: tuple[str, ...]
    utility: bool
    lone: ObjectPart | None


def read_group(name: str, part: ObjectPart) -> _ReadGroup:
    """Return what is kept of a PodGroup. Errors: `BadInput` with the place."""
    kai.of_version(name, part, "PodGroup")
    spec, stops = part.part("spec"), part.part("spec").text("preemptibility")
    if stops not in ("", "preemptible", "non-preemptible"):
        remedy = "Give preemptible or non-preemptible"
        raise BadInput(f"got {shown(stops)}", place=f"{spec.place}, preemptibility", remedy=remedy)
    created = part.part("metadata").read("creationTimestamp", SECONDS, 0)
    return _ReadGroup(spec.text("queue"), spec.text("priorityClassName"), stops, spec.whole("minMember", 1), created)


def pod_reader() -> Callable[[str, ObjectPart], _ReadPod]:
    """Return what returns all that is kept of a Pod, for `pods_of`; its errors are `BadInput` with the place."""
    alike: dict[bytes | str, ObjectPart] = {}

    def read(name: str, part: ObjectPart) -> _ReadPod:
        spec, metadata = part.part("spec"), part.part("metadata")
        notes, labels = metadata.values("annotations"), metadata.values("labels")
        phase, group = part.values("status").get("phase"), notes.get("pod-group-name")
        if not (type(phase) is type(group) is str):
            phase = part.part("status").text("phase", "Pending")
            group = metadata.part("annotations").text("pod-group-name")
        key = key_of([requests_in(spec.value), *map(notes.get, _PARTS)])
        if key not in alike and len(alike) >= MOST_ALIKE:
            alike.clear()
        return _ReadPod(
            phase,
            group,
            joined(metadata.text("namespace"), group),
            spec.text("schedulerName", "default-scheduler"),
            spec.text("nodeName"),
            bool(metadata.text("deletionTimestamp")),
            not spec.text("nodeName") and bool(spec.parts("schedulingGates")),
            alike.setdefault(key, part),
            _groups(labels) if labels else (),
            labels.get("app") in _UTILITIES,
            kai.for_group(part) if kai.QUEUE in labels else None,
        )

    return read


def pods_of(
    found: Objects, scheduler: str, memory: int | None, places: Places
) -> tuple[dict[str, list[Pod]], list[tuple[str, Amounts]], dict[str, tuple[str, ...]]]:
    """Return the pods of each pod group that take part; what others' pods take, with their nodes; and by pod its group.

    ``memory``: the least of a GPU of any node, None where no node says how much it has.
    """
    bound: dict[str, tuple[str, tuple[str, ...]]] = {}
    for part in found["BindRequest"].values():
        spec, metadata = part.part("spec"), part.part("metadata")
        if part.part("status").text("phase") in ("", "Pending"):
            space, pod = metadata.text("namespace"), spec.text("podName", metadata.text("name"))
            on = spec.text("selectedNode"), tuple(listed_in(spec, "selectedGPUGroups"))
            bound["/".join(filter(None, (space, pod)))] = on
    members: dict[str, list[Pod]] = {name: [] for name in found["PodGroup"]}
    others, group_of = [], dict[str, tuple[str, ...]]()
    alike: dict[ObjectPart, _Asked] = {}
    for name, own in found["Pod"].items():
        chosen, selected = bound.get(name, ("", ()))
        node, owner = own.node or chosen, own.owner
        if own.like not in alike:
            alike[own.like] = _takes(own.like, memory)
        takes, sliced, devices, notes = alike[own.like]
        for where, value, why in notes:
            places.note(where, name, value, why)
        if own.phase not in ("Pending", "Running"):
            places.note("Pod, status.phase", name, own.phase, "it takes nothing")
        elif own.scheduler != scheduler:
            if node and not own.utility:
                others.append((node, takes))
        elif own.ends:
            places.note("Pod, metadata.deletionTimestamp", name, "set", "it ends: KAI does not count it as held")
        elif not node and own.gated:
            places.note("Pod, spec.schedulingGates", name, "set", "it may not start: KAI does not count it")
        else:
            lone = own.lone if not own.group or owner not in members else None
            if lone is not None and lone.at("metadata.labels").text(kai.QUEUE):
                owner = name if name not in members else f"{name} (pod)"
                made = kai.group_of(lone, found["PriorityClass"])
                found["PodGroup"][owner], members[owner] = read_group(owner, made), []
                places.note(f"Pod, label {kai.QUEUE}", name, own.group or "no pod group", _LONE)
            if not own.group and owner not in members:
                places.note("Pod", name, "no annotation pod-group-name", "of no queue")
            elif owner not in members:
                places.note("Pod, pod-group-name", name, own.group, "no such pod group")
            else:
                runs = bool(node) or own.phase == "Running"
                members[owner].append(
                    Pod(runs, takes, sliced=sliced, devices=devices, node=node, groups=selected or own.groups)
                )
        group_of[name] = (owner,)
    return members, others, group_of


def _groups(labels: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the GPUs that a pod of these labels shares.

    Source: pkg/common/resources/gpu_sharing.go, GetGpuGroups.
    """
    more = (str(value) for key, value in labels.items() if key.startswith(f"{_GROUP}/"))
    return (str(labels[_GROUP]), *more) if _GROUP in labels else ()


def memory_of(node: ObjectPart) -> int:
    """Return the memory of a GPU of a node in MiB, in full hundreds; 100 where it does not say.

    Source: pkg/scheduler/api/node_info/node_info.go, getNodeGpuMemory.
    """
    said = node.at("metadata.labels").text(_MEMORY)
    if not said.isascii() or not said.isdigit():
        return LEAST_MEMORY
    found = int(said) if int(said) < 2**20 else int(said) // 2**20
    return max(1, found - found % 100)


def is_sliced(node: ObjectPart) -> bool:
    """Return whether a node's GPUs are sliced, so that it takes no parts of them.

    Source: node_info.go, IsMIGEnabled and isTaskAllocatableOnNonAllocatedResources.
    """
    labels = node.at("metadata.labels")
    return labels.text(_SLICED) == "true" or labels.text(_STRATEGY) in ("single", "mixed")


def _takes(pod: ObjectPart, memory: int | None) -> _Asked:
    """Return what a pod asks for, whether for slices of GPUs, how much of how many it takes, and what there is to note.

    Source: pod_info.go, getPodResourceRequest and updatePodAdditionalFields; gpu_sharing_node_info.go,
    getGpuMemoryFractionalOnNode: of a GPU's memory so much that hundredths are whole.
    """
    notes, whole = pod.at("metadata.annotations"), pod_requests(pod.part("spec"), limits=False)
    takes = {each: whole.get(each, NONE) for each in ("cpu", "memory")}
    takes["gpu"] = sum((whole.get(each, NONE) for each in GPUS), NONE)
    share, devices, sliced = Fraction(1), takes["gpu"], False
    told: list[tuple[str, str, str]] = []
    if notes.text("gpu-fraction") or notes.text("gpu-memory"):
        devices = exact(notes.text("gpu-fraction-num-devices") or 1, f"{notes.place}, gpu-fraction-num-devices")
        whole_count = devices.denominator == 1 and 0 < devices <= MOST_GPUS
        require(whole_count, str(devices), f"{notes.place}, gpu-fraction-num-devices", "Give a whole number from 1")
    if notes.text("gpu-fraction"):
        share = exact(notes.text("gpu-fraction"), f"{notes.place}, gpu-fraction")
        require(0 < share <= 1, str(share), f"{notes.place}, gpu-fraction", "Give more than 0 and at most 1")
    elif notes.text("gpu-memory"):
        wanted = exact(notes.text("gpu-memory"), f"{notes.place}, gpu-memory")
        require(wanted > 0, str(wanted), f"{notes.place}, gpu-memory", "Give more than 0")
        if memory is None:
            why = f"no node says by {_MEMORY} how much memory its GPUs have: KAI and fairopt take {LEAST_MEMORY} MiB"
            told.append(("Pod, annotation gpu-memory", notes.text("gpu-memory"), why))
        share = Fraction(ceil(100 * wanted / (memory or LEAST_MEMORY)), 100)
    takes["gpu"] = share * devices
    for resource, found in whole.items():
        if resource.startswith(MIG):
            sliced = True
            told.append((f"Pod, {resource}", str(found), "slices of GPUs are not counted"))
        elif resource not in (*GPUS, "cpu", "memory"):
            told.append((f"Pod, {resource}", str(found), "a resource that no queue counts"))
    require(devices.denominator == 1, str(devices), f"{pod.place}, GPUs", "Give whole GPUs")
    return {name: whole_as_int(found) for name, found in takes.items()}, sliced, (share, int(devices)), told
