"""KAI Scheduler's pod groups and pods as gangs: who holds what, and who asks for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from fairopt.errors import require
from fairopt.importing.fields import ObjectPart, Places
from fairopt.importing.kai_objects import GANG_PRIORITY, GPUS, KEPT_FROM
from fairopt.problem.numbers import exact, shown

_MIG = "nvidia.com/mig-"
#: Pods with which KAI reserves and scales; they take no part. Source: pkg/scheduler/conf/global_config.go.
_UTILITIES = ("kai-resource-reservation", "scaling-pod")


class PodGroup(NamedTuple):
    """A pod group: ``least`` is how many of its pods start together."""

    queue: str
    least: int
    tier: int
    preemptible: bool
    created: int


class PodGang(NamedTuple):
    """Pods of one group that start together, and what they take of each resource."""

    name: str
    group: PodGroup
    runs: bool
    takes: Mapping[str, Fraction]


class _Pod(NamedTuple):
    """A pod that runs or waits; ``part`` says of a part of a GPU that it is one."""

    name: str
    runs: bool
    takes: Mapping[str, Fraction]
    part: bool


class Workloads:
    """Pod groups, pods, priority classes and bind requests, as they are read."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.scheduler = "kai-scheduler"
        self._priority: dict[str, int] = {}
        self._default = GANG_PRIORITY
        self._bound: dict[tuple[str, str], str] = {}
        self._groups: dict[tuple[str, str], ObjectPart] = {}
        self._pods: dict[tuple[str, str], ObjectPart] = {}
        #: Queues with pods that ask for slices of GPUs or for their memory: how many GPUs that is, nobody says.
        self.sliced: set[str] = set()
        #: The node, and what a pod of another scheduler takes there.
        self.others: list[tuple[str, Mapping[str, Fraction]]] = []

    def take(self, kind: str, name: str, part: ObjectPart) -> None:
        """Read one object of a kind that is not a queue or a node."""
        key = (part.part("metadata").text("namespace"), name)
        if kind == "PriorityClass":
            self._priority[name] = part.whole("value", 0, least=-(2**31))
            if part.flag("globalDefault", False):
                self._default = self._priority[name]
        elif kind == "BindRequest":
            spec = part.part("spec")
            if part.part("status").text("phase") in ("", "Pending"):
                self._bound[key[0], spec.text("podName", name)] = spec.text("selectedNode")
        else:
            known = self._groups if kind == "PodGroup" else self._pods
            require(key not in known, shown(name), f"{kind}, metadata, name", "Give each object once")
            known[key] = part

    def of(self, types: Mapping[str, str]) -> tuple[_Amounts, _Amounts, _Amounts, list[PodGang]]:
        """Return what each queue holds, the part of it that is not preemptible, what its pods ask for, and the gangs.

        ``types`` are the GPU types by queue; what is of no such queue has no place.
        """
        groups = {key: self._group(part) for key, part in self._groups.items()}
        members: dict[tuple[str, str], list[_Pod]] = {key: [] for key in groups}
        for key, part in self._pods.items():
            for owner, pod in self._pod(key, part):
                if owner in members:
                    members[owner].append(pod)
                else:
                    self._places.note("Pod, pod-group-name", pod.name, owner[1], "no such pod group")
        held: dict[str, dict[str, Fraction]] = {}
        fixed: dict[str, dict[str, Fraction]] = {}
        asked: dict[str, dict[str, Fraction]] = {}
        gangs: list[PodGang] = []
        for (space, name), group in groups.items():
            if group.queue not in types:
                why = "no queue without queues below it, in a node pool with GPUs, is called so"
                self._places.note("PodGroup, spec.queue", name, group.queue, why)
                continue
            pods = members[space, name]
            for pod in pods:
                if pod.part and not pod.takes["gpu"]:
                    self.sliced.add(group.queue)
                for table in [asked] + ([held] + [fixed] * (not group.preemptible)) * pod.runs:
                    row = table.setdefault(group.queue, dict.fromkeys(pod.takes, Fraction(0)))
                    for resource, found in pod.takes.items():
                        row[resource] += found
            gangs += self._split(f"{space}/{name}" if space else name, group, pods)
        return held, fixed, asked, gangs

    def _split(self, name: str, group: PodGroup, pods: list[_Pod]) -> Iterator[PodGang]:
        """Yield the gangs of a group: its first pods together, and each of the others by itself."""
        left, number = group.least, 0
        for runs in (True, False):
            some = [pod for pod in pods if pod.runs is runs]
            first, rest = some[:left], some[left:]
            left -= len(first)
            for together in ([first] if first else []) + [[pod] for pod in rest]:
                if any(pod.part for pod in together):
                    why = "a part of a GPU is no gang of whole GPUs; what runs counts in what its queue holds"
                    self._places.note("PodGroup with parts of GPUs", name, group.queue, why)
                    continue
                takes = {each: sum((p.takes[each] for p in together), Fraction(0)) for each in together[0].takes}
                number += 1
                yield PodGang(name if number == 1 else f"{name}+{number - 1}", group, runs, takes)

    def _group(self, part: ObjectPart) -> PodGroup:
        spec, place = part.part("spec"), part.place
        chosen = spec.text("priorityClassName")
        tier = self._priority.get(chosen, self._default)
        if chosen and chosen not in self._priority:
            why = f"no such PriorityClass in the files: KAI and fairopt take {self._default}"
            self._places.note("PodGroup, spec.priorityClassName", part.part("metadata").text("name"), chosen, why)
        said = spec.text("preemptibility")
        known = ("", "preemptible", "non-preemptible")
        require(said in known, shown(said), f"{place}, spec, preemptibility", "Give preemptible or non-preemptible")
        return PodGroup(
            spec.text("queue"),
            spec.whole("minMember", 1),
            tier,
            tier < KEPT_FROM if not said else said == "preemptible",
            part.part("metadata").seconds("creationTimestamp"),
        )

    def _pod(self, key: tuple[str, str], part: ObjectPart) -> Iterator[tuple[tuple[str, str], _Pod]]:
        """Yield the group and the pod, if it takes part; note what another scheduler's pod takes."""
        spec, metadata, name = part.part("spec"), part.part("metadata"), key[1]
        phase, group = part.part("status").text("phase", "Pending"), metadata.part("annotations").text("pod-group-name")
        node = spec.text("nodeName") or self._bound.get(key, "")
        takes, portion = self._takes(part)
        if phase not in ("Pending", "Running"):
            self._places.note("Pod, status.phase", name, phase, "it takes nothing")
        elif spec.text("schedulerName", "default-scheduler") != self.scheduler:
            if node and metadata.part("labels").text("app") not in _UTILITIES:
                self.others.append((node, takes))
        elif metadata.text("deletionTimestamp"):
            self._places.note("Pod, metadata.deletionTimestamp", name, "set", "it ends: KAI does not count it as held")
        elif not node and spec.parts("schedulingGates"):
            self._places.note("Pod, spec.schedulingGates", name, "set", "it may not start: KAI does not count it")
        elif not group:
            self._places.note("Pod", name, "no annotation pod-group-name", "of no queue")
        else:
            yield (key[0], group), _Pod(name, bool(node) or phase == "Running", takes, portion)

    def _takes(self, pod: ObjectPart) -> tuple[dict[str, Fraction], bool]:
        """Return what a pod asks for, and whether it asks for a part of a GPU.

        Containers are added; one that prepares counts where it alone asks for more. Source: pod_info.go,
        getPodResourceRequest and updatePodAdditionalFields.
        """
        spec, notes = pod.part("spec"), pod.part("metadata").part("annotations")
        total, peak = _amounts(spec.parts("containers")), dict.fromkeys(("gpu", "cpu", "memory"), Fraction(0))
        beside = dict(peak)
        portion = False
        for each in spec.parts("initContainers"):
            own = _amounts([each])
            if each.text("restartPolicy") == "Always":
                beside = {name: beside[name] + own[name] for name in beside}
            else:
                peak = {name: max(peak[name], beside[name] + own[name]) for name in peak}
        extra = spec.amounts("overhead")
        takes = {name: max(total[name] + beside[name], peak[name]) + extra.get(name, Fraction(0)) for name in peak}
        if notes.text("gpu-fraction"):
            share = exact(notes.text("gpu-fraction"), f"{notes.place}, gpu-fraction")
            require(0 < share <= 1, str(share), f"{notes.place}, gpu-fraction", "Give more than 0 and at most 1")
            several = exact(notes.text("gpu-fraction-num-devices") or 1, f"{notes.place}, gpu-fraction-num-devices")
            require(several > 0, str(several), f"{notes.place}, gpu-fraction-num-devices", "Give 1 or more")
            takes["gpu"], portion = share * several, share < 1
        for key in notes.value:
            if key == "gpu-memory":
                portion = True
                why = "how much of a GPU that is depends on the node"
                self._places.note("Pod, annotation gpu-memory", pod.place, notes.text(key), why)
        for each in [*spec.parts("containers"), *spec.parts("initContainers")]:
            for resource, found in each.part("resources").amounts("requests").items():
                if resource.startswith(_MIG):
                    portion = True
                    self._places.note(f"Pod, {resource}", pod.place, str(found), "slices of GPUs are not counted")
                elif resource not in (*GPUS, "cpu", "memory"):
                    self._places.note(f"Pod, {resource}", pod.place, str(found), "a resource that no queue counts")
        require(portion or takes["gpu"].denominator == 1, str(takes["gpu"]), f"{pod.place}, GPUs", "Give whole GPUs")
        return takes, portion


_Amounts = Mapping[str, Mapping[str, Fraction]]


def _amounts(containers: list[ObjectPart]) -> dict[str, Fraction]:
    total = dict.fromkeys(("gpu", "cpu", "memory"), Fraction(0))
    for each in containers:
        for resource, found in each.part("resources").amounts("requests").items():
            name = "gpu" if resource in GPUS else resource
            if name in total:
                total[name] += found
    return total
