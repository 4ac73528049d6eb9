"""KAI Scheduler's objects: which fields are read, the zip of its snapshots, and queues written as it takes them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import IO, Any

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.importing.documents import DEEPEST, SMALL, bounded, json_documents, opened_zip
from fairopt.importing.imported import both_owed
from fairopt.importing.kubernetes import NODE, OBJECT, apply_list, fields, own_names, pod_fields
from fairopt.importing.unplaced import BOOKKEEPING, TAKEN, Places
from fairopt.problem import Market
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath
from fairopt.program import INFINITY

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "A queue and those above it hold at most resources.gpu.limit",
        "held": "Reclaim takes only what is preemptible, from queues that hold more than their fair share",
        "promised": "Quotas may add up to more than the node pool has: KAI divides what there is",
        "gang": "A PodGroup starts with minMember pods at once",
        "full": "Beyond its quota a queue has its part of what is left, by overQuotaWeight",
        "good": "CPU and memory have quotas and limits as GPUs do",
        "nothing": "Jobs are looked at in the order of their queues, and what is left over in the next cycle",
    }
)

#: A queue's resources: what a Queue counts in one unit is so many of ours (GPUs, cores, bytes).
#: Source: pkg/apis/scheduling/v2/resources.go (GPUs, thousandths of a core, 10^6 bytes).
UNITS: Mapping[str, Fraction] = {"gpu": Fraction(1), "cpu": Fraction(1, 1000), "memory": Fraction(10**6)}
#: The label that says in which node pool a node, a queue or a pod group is, and the pool of those without.
POOL, DEFAULT_POOL = "kai.scheduler/node-pool", "default"
#: Of a queue that does not say. Source: pkg/common/constants/constants.go.
#: The labels of a pod's queue, and of whether it may be stopped.
QUEUE, _STOPS = "kai.scheduler/queue", "kai.scheduler/preemptibility"
QUEUE_PRIORITY, GANG_PRIORITY, KEPT_FROM = 100, 50, 100
PRODUCT = "nvidia.com/gpu.product"
#: What counts as a GPU. Source: pkg/scheduler/api/resource_info, GPUResourceName and amdGpuResourceName.
GPUS = ("nvidia.com/gpu", "amd.com/gpu")

_WHERE = "where a gang may run is known by node pool only"
_TIME = "how long a gang runs before it may be stopped is not modelled"
_DEVICES = "GPUs of dynamic resource allocation are not counted"
_MOVES = "at most 16 gangs move for one, and those of a reclaim too"
_THOUGHT = "what the scheduler thought when it was written"
_OF_GROUP = "the pod group's priority counts"
_BOUND = "a pod that is being bound holds what it asks for"
_SEARCH = "the search is not cut short"
_LOOKED = "all gangs of a queue are looked at"
#: Reasons of what keeps no gang from starting.
HARMLESS = (_THOUGHT, _OF_GROUP, _BOUND, _SEARCH, _LOOKED, _TIME)
_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt")
_OWN = own_names(
    "kai.scheduler/ run.ai/ runai/", f"{QUEUE} {_STOPS} kai.scheduler/podgroup-name kai.scheduler/top-owner-metadata"
) | {f"metadata.labels.{POOL}": TAKEN}
#: What is read of the objects, and why the rest is not. Sources: pkg/apis/scheduling/v2/queue_types.go, resources.go,
#: status.go; v2alpha2/podgroup_types.go; v1alpha2/bindrequest_types.go; Kubernetes' core/v1 and scheduling/v1.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": {**OBJECT, **_OWN}
    | fields(TAKEN, "metadata.creationTimestamp spec.parentQueue spec.priority")
    | fields(TAKEN, "gpu cpu memory", "spec.resources.")
    | fields(TAKEN, "status.allocated status.requested status.allocatedNonPreemptible")
    | fields(BOOKKEEPING, "spec.displayName status.childQueues")
    | fields(_TIME, "spec.preemptMinRuntime spec.reclaimMinRuntime")
    | {"status.conditions": _THOUGHT},
    "PodGroup": {**OBJECT, **_OWN}
    | fields(TAKEN, "metadata.creationTimestamp spec.queue spec.minMember spec.priorityClassName spec.preemptibility")
    | fields("parts of a gang that start on their own are not modelled", "spec.minSubGroup spec.subGroups")
    | fields(_TIME, "spec.preemptionDelay spec.stalenessGracePeriod")
    | fields(BOOKKEEPING, "spec.markUnschedulable spec.schedulingBackoff")
    | fields(_THOUGHT, "conditions schedulingConditions", "status.")
    | {"status.resourcesStatus": _THOUGHT}
    | {"spec.topologyConstraint": "how near to each other its pods must be is not modelled"},
    "Pod": {**OBJECT, **_OWN}
    | fields(TAKEN, "pod-group-name gpu-fraction gpu-fraction-num-devices gpu-memory", "metadata.annotations.")
    | {f"metadata.labels.{QUEUE}": TAKEN}
    | fields("no annotation of a part of a GPU that is known here", "gpu* runai-gpu*", "metadata.annotations.")
    | fields(TAKEN, "runai-gpu-group runai-gpu-group/*", "metadata.labels.")
    | pod_fields("spec.", _WHERE)
    | fields(TAKEN, "metadata.creationTimestamp metadata.deletionTimestamp spec.nodeName spec.schedulerName")
    | fields(TAKEN, "spec.schedulingGates status.phase")
    | fields(_DEVICES, "spec.resourceClaims")
    | fields(
        BOOKKEEPING,
        "containers[].resources.claims initContainers[].resources.claims containers[].resources.limits "
        "initContainers[].resources.limits containers[].restartPolicy",
        "spec.",
    )
    | fields(_OF_GROUP, "spec.priority spec.priorityClassName spec.preemptionPolicy")
    | {"spec.resources": "resources of a whole pod are not counted", "spec.activeDeadlineSeconds": BOOKKEEPING}
    | fields(
        BOOKKEEPING,
        "conditions message reason nominatedNodeName hostIP hostIPs podIP podIPs startTime containerStatuses "
        "initContainerStatuses ephemeralContainerStatuses qosClass resize resourceClaimStatuses observedGeneration",
        "status.",
    ),
    "Node": {**NODE} | {"spec.taints": _WHERE, "status.conditions": TAKEN},
    # whom a pod may stop is the queue's matter in KAI
    "PriorityClass": {**OBJECT}
    | fields(TAKEN, "value globalDefault")
    | fields(BOOKKEEPING, "description preemptionPolicy"),
    "BindRequest": {**OBJECT}
    | fields(TAKEN, "spec.podName spec.selectedNode status.phase")
    | fields(_BOUND, "receivedResourceType receivedGPU", "spec.")
    | fields(BOOKKEEPING, "selectedGPUGroups predictedNUMAZones backoffLimit", "spec.")
    | fields(_DEVICES, "spec.resourceClaimAllocations spec.extendedResourceClaimAllocation")
    | fields(BOOKKEEPING, "reason failedAttempts", "status."),
}
#: The API version of each kind that is read.
VERSIONS: Mapping[str, str] = {
    **{"Queue": "scheduling.run.ai/v2", "PodGroup": "scheduling.run.ai/v2alpha2", "Pod": "v1", "Node": "v1"},
    **{"BindRequest": "scheduling.run.ai/v1alpha2", "PriorityClass": "scheduling.k8s.io/v1"},
}
#: The same of a snapshot's other parts. Source: pkg/scheduler/conf/scheduler_conf.go.
SNAPSHOT: Mapping[str, str] = (
    fields(TAKEN, "schedulerName partitionParams fullHierarchyFairness", "schedulerParams.")
    | fields(
        BOOKKEEPING,
        "numOfStatusRecordingWorkers schedulePeriod detailedFitErrors updatePodEvictionCondition queueLabelKey "
        "useSchedulingSignatures scheduleCSIStorage stuckInReleasingThreshold",
        "schedulerParams.",
    )
    | {
        "config.actions": TAKEN,
        "config.queueDepthPerAction": _LOOKED,
        "config.scenarioSearchBudgets": _SEARCH,
        "config.tiers[].plugins[].name": BOOKKEEPING,
        "config.tiers[].plugins[].arguments": "give the rule kValue as k, relcaimerSaturationMultiplier as saturation",
        "config.usageDBConfig": "past usage is not in a snapshot; the rule takes it from the market's entitlements",
        "schedulerParams.allowConsolidatingReclaim": _MOVES,
        "schedulerParams.maxNumberConsolidationPreemptees": _MOVES,
        "schedulerParams.restrictSchedulingNodes": "all nodes that are ready count",
        "schedulerParams.globalDefaultStalenessGracePeriod": _TIME,
        "discovery": BOOKKEEPING,
    }
)
#: A snapshot's lists, and the kinds of what is in them. Source: pkg/scheduler/plugins/snapshot/snapshot.go.
LISTS: Mapping[str, str] = {
    "pods": "Pod",
    "nodes": "Node",
    "queues": "Queue",
    "podGroups": "PodGroup",
    "bindRequests": "BindRequest",
    "priorityClasses": "PriorityClass",
}


def of_version(name: str, part: ObjectPart, kind: str = "Queue") -> ObjectPart:
    """Return an object as it is, where it is of the version in `VERSIONS`. Errors: `BadInput` with the place."""
    if part["apiVersion"] != VERSIONS[kind]:
        raise BadInput(f"got {part['apiVersion']}", place=part.place, remedy=f"Give {VERSIONS[kind]}")
    return part


def for_group(pod: ObjectPart) -> ObjectPart:
    """Return of a pod what `group_of` reads."""
    labels, metadata = pod.part("metadata").values("labels"), pod.values("metadata")
    named = {key: labels[key] for key in (QUEUE, _STOPS, "priorityClassName") if key in labels}
    of_all = {"labels": named, "creationTimestamp": metadata.get("creationTimestamp")}
    spec = {"priorityClassName": pod.values("spec").get("priorityClassName")}
    return ObjectPart(pod.place, {"metadata": of_all, "spec": spec})


def group_of(pod: ObjectPart, classes: Container[str]) -> ObjectPart:
    """Return the pod group that KAI makes of a pod that nothing groups: of the queue of its label, and of one pod.

    Source: pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go.
    """
    labels, chosen = pod.at("metadata.labels"), pod.part("spec").text("priorityClassName")
    named = next((each for each in (labels.text("priorityClassName"), chosen) if each in classes), "")
    spec = {"queue": labels.text(QUEUE), "priorityClassName": named, "preemptibility": labels.text(_STOPS)}
    age = {"creationTimestamp": pod.part("metadata").text("creationTimestamp")}
    return ObjectPart(pod.place, {"apiVersion": VERSIONS["PodGroup"], "metadata": age, "spec": spec})


def emit(before: Market, after: Market) -> str:
    """Return the changed Queue objects as JSON that ``kubectl apply --server-side -f`` takes.

    A queue that is the same in both markets is left out. A queue is of the one GPU type on which it is owed or may hold
    anything. Errors: `BadInput` for a market without entitlements, for other users or groups, and for a queue of
    several types.

    Source: pkg/apis/scheduling/v2/queue_types.go, resources.go.
    """
    _, new = both_owed(before, after, "queues and types")
    items = []
    for node, name in enumerate(new.nodes):
        objects = [_queue(market, node, name) for market in (before, after)]
        if objects[0] != objects[1]:
            items.append(objects[1])
    return apply_list(items)


def _queue(market: Market, node: int, name: str) -> dict[str, Any]:
    """Return one queue's object."""
    owed = market.entitlements
    assert owed is not None
    k = len(owed.types)
    own = [j for j in range(k) if owed.cap[node, j] > 0 or owed.guarantee[node, j] > 0]
    if len(own) > 1:
        several = ", ".join(owed.types[j] for j in own)
        remedy = "A KAI queue is in one node pool; make a queue for each"
        raise BadInput(f"it is owed, or may hold, GPUs of {several}", place=f"queue {name!r}", remedy=remedy)
    labels = {} if not own or owed.types[own[0]] == DEFAULT_POOL else {POOL: owed.types[own[0]]}
    resources = {}
    for resource, unit in UNITS.items():
        column = (own[0] if resource == "gpu" else owed.good(resource, own[0])) if own else None
        if column is not None:
            resources[resource] = {
                "quota": _number(owed.guarantee[node, column], unit),
                "overQuotaWeight": _number(owed.borrow_weight[node], Fraction(1)),
                "limit": _number(owed.cap[node, column], unit),
            }
    spec: dict[str, Any] = {} if owed.parent[node] == TOP else {"parentQueue": owed.nodes[owed.parent[node]]}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": spec | {"priority": int(owed.tier[node]), "resources": resources},
    }


def _number(value: Any, unit: Fraction) -> int | float:
    if value == INFINITY:
        return -1
    found = Fraction(value) / unit
    return int(found) if found.denominator == 1 else float(found)


# -- the zip that KAI answers to /get-snapshot, piece by piece where it is large
#: What is yielded as one piece: an object in a list, or another part of the snapshot.
_PIECE = re.compile(r"rawObjects\.(\w+)\.item|config|schedulerParams|discovery")
#: Values in one object of a large snapshot; a node's or a pod's are some hundreds.
LONGEST = 1_000_000


def actions_of(part: ObjectPart, places: Places) -> str:
    """Return the actions of a snapshot's configuration that the rule has, in order, and note the others."""
    named = [each.strip() for each in part.part("config").text("actions").split(",")]
    for name in named:
        if name and name not in _ACTIONS:
            why = _TIME if name == "stalegangeviction" else "no action that is known here"
            places.note("snapshot, config.actions", "the scheduler's", name, why)
    return ", ".join(name for name in named if name in _ACTIONS)


def snapshot(path: AnyPath) -> Iterator[ObjectPart]:
    """Yield a snapshot, or its pieces, each as a snapshot that has nothing else.

    Errors: `BadInput` for what is no zip file, unpacks to too much, or has no snapshot.json.
    """
    with opened_zip(path) as (packed, entries):
        chosen = [entry for entry in entries if entry.filename.rpartition("/")[2] == "snapshot.json"] or entries
        if len(chosen) != 1:
            remedy = "Give the zip that /get-snapshot answers, with snapshot.json in it"
            raise BadInput(f"{len(chosen)} files and no snapshot.json", place="the zip file", remedy=remedy)
        with packed.open(chosen[0]) as stream:
            found = (
                _pieces(stream) if chosen[0].file_size > SMALL else json_documents(_text(stream, chosen[0].filename))
            )
            yield from (ObjectPart(f"{chosen[0].filename}, {each.place}", each.value) for each in found)


def _text(stream: IO[bytes], name: str) -> str:
    try:
        return stream.read(SMALL + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"no UTF-8: {error}", place=name, remedy="The zip file is damaged") from error


def _pieces(stream: IO[bytes]) -> Iterator[ObjectPart]:
    ijson = library("ijson", "a snapshot of more than 50 MB", "import")
    builder: Any = None
    whole, number, count = "", 0, 0
    try:
        for prefix, event, value in ijson.parse(stream):
            if prefix.count(".") > DEEPEST:
                remedy = "Give what the scheduler answers, which has fewer"
                raise BadInput(f"more than {DEEPEST} levels", place=f"object {number}", remedy=remedy)
            if builder is None and event == "start_map" and _PIECE.fullmatch(prefix):
                builder, whole, number, count = ijson.ObjectBuilder(), prefix, number + 1, 0
            if builder is not None:
                builder.event(event, value)
                count += 1
                if count > LONGEST:
                    remedy = "Give what the scheduler answers, in which none is as large"
                    raise BadInput(
                        f"more than {LONGEST} values in one object", place=f"{whole} {number}", remedy=remedy
                    )
                if (prefix, event) == (whole, "end_map"):
                    yield ObjectPart(f"{whole} {number}", _alone(whole, bounded(builder.value)))
                    builder = None
    except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(
            f"not JSON: {error}", place=f"after object {number}", remedy="Correct the syntax there"
        ) from error
    if not number:
        raise BadInput("no rawObjects", place="the top level", remedy="Give what /get-snapshot answers")


def _alone(prefix: str, value: Any) -> dict[str, Any]:
    """Return a snapshot that has only one piece."""
    found = re.match(r"rawObjects\.(\w+)", prefix)
    return {"rawObjects": {found[1]: [value]}} if found else {prefix: value, "rawObjects": {}}
