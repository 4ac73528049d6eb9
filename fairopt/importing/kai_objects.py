"""KAI Scheduler's objects: which fields are read, and queues written as the scheduler takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.fields import BOOKKEEPING, OBJECT, TAKEN
from fairopt.problem import Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY

#: A queue's resources: what a Queue counts in one unit is so many of ours (GPUs, cores, bytes).
#: Source: pkg/apis/scheduling/v2/resources.go (GPUs, thousandths of a core, 10^6 bytes).
UNITS: Mapping[str, Fraction] = {"gpu": Fraction(1), "cpu": Fraction(1, 1000), "memory": Fraction(10**6)}
#: The label that says in which node pool a node, a queue or a pod group is, and the pool of those without.
POOL, DEFAULT_POOL = "kai.scheduler/node-pool", "default"
#: Of a queue that does not say. Source: pkg/common/constants/constants.go.
QUEUE_PRIORITY, GANG_PRIORITY, KEPT_FROM = 100, 50, 100
PRODUCT = "nvidia.com/gpu.product"
#: What counts as a GPU. Source: pkg/scheduler/api/resource_info, GPUResourceName and amdGpuResourceName.
GPUS = ("nvidia.com/gpu", "amd.com/gpu")

_CONTAINER = (
    "name image command args env envFrom ports volumeMounts volumeDevices imagePullPolicy securityContext "
    "resources.limits resources.claims livenessProbe readinessProbe startupProbe lifecycle resizePolicy stdin "
    "stdinOnce tty workingDir terminationMessagePath terminationMessagePolicy"
)
_WHERE = "where a gang may run is known by node pool only"
_TIME = "how long a gang runs before it may be stopped is not modelled"
_TOPOLOGY = "how near to each other its pods must be is not modelled"
_STATE = "what the scheduler thought when it was written"


_OBJECT = dict(OBJECT)


def _fields(why: str, names: str, before: str = "") -> dict[str, str]:
    return {f"{before}{name}": why for name in names.split()}


#: What is read of the objects, and why the rest is not. Sources: pkg/apis/scheduling/v2/queue_types.go, resources.go,
#: status.go; v2alpha2/podgroup_types.go; v1alpha2/bindrequest_types.go; Kubernetes' core/v1 and scheduling/v1.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": _OBJECT
    | _fields(TAKEN, "metadata.creationTimestamp spec.parentQueue spec.priority")
    | _fields(TAKEN, "gpu cpu memory", "spec.resources.")
    | _fields(TAKEN, "status.allocated status.requested status.allocatedNonPreemptible")
    | _fields(BOOKKEEPING, "spec.displayName status.childQueues")
    | _fields(_TIME, "spec.preemptMinRuntime spec.reclaimMinRuntime")
    | {"status.conditions": _STATE},
    "PodGroup": _OBJECT
    | _fields(TAKEN, "metadata.creationTimestamp spec.queue spec.minMember spec.priorityClassName spec.preemptibility")
    | _fields("parts of a gang that start on their own are not modelled", "spec.minSubGroup spec.subGroups")
    | _fields(_TIME, "spec.preemptionDelay spec.stalenessGracePeriod")
    | _fields(BOOKKEEPING, "spec.markUnschedulable spec.schedulingBackoff")
    | _fields(_STATE, "conditions schedulingConditions resourcesStatus", "status.")
    | {"spec.topologyConstraint": _TOPOLOGY},
    "Pod": _OBJECT
    | _fields(TAKEN, "metadata.creationTimestamp metadata.deletionTimestamp spec.nodeName spec.schedulerName")
    | _fields(TAKEN, "spec.schedulingGates spec.overhead status.phase")
    | _fields(TAKEN, "spec.containers[].resources.requests spec.initContainers[].resources.requests")
    | _fields(TAKEN, "spec.initContainers[].restartPolicy")
    | _fields(_WHERE, "nodeSelector affinity tolerations topologySpreadConstraints runtimeClassName", "spec.")
    | _fields("GPUs of dynamic resource allocation are not counted", "spec.resourceClaims")
    | _fields("the pod group's priority counts", "spec.priority spec.priorityClassName spec.preemptionPolicy")
    | {"spec.resources": "resources of a whole pod are not counted"}
    | _fields(BOOKKEEPING, f"restartPolicy {_CONTAINER}", "spec.containers[].")
    | _fields(BOOKKEEPING, _CONTAINER, "spec.initContainers[].")
    | _fields(
        BOOKKEEPING,
        "volumes restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy dnsConfig "
        "serviceAccountName serviceAccount automountServiceAccountToken securityContext imagePullSecrets hostname "
        "hostNetwork hostPID hostIPC hostUsers subdomain hostAliases shareProcessNamespace enableServiceLinks "
        "ephemeralContainers readinessGates os setHostnameAsFQDN",
        "spec.",
    )
    | _fields(
        BOOKKEEPING,
        "conditions message reason nominatedNodeName hostIP hostIPs podIP podIPs startTime containerStatuses "
        "initContainerStatuses ephemeralContainerStatuses qosClass resize resourceClaimStatuses observedGeneration",
        "status.",
    ),
    "Node": _OBJECT
    | _fields(TAKEN, "spec.unschedulable status.conditions status.allocatable")
    | _fields(_WHERE, "spec.taints")
    | _fields(BOOKKEEPING, "podCIDR podCIDRs providerID configSource externalID", "spec.")
    | _fields(
        BOOKKEEPING,
        "addresses capacity config daemonEndpoints declaredFeatures features images nodeInfo phase runtimeHandlers "
        "volumesAttached volumesInUse",
        "status.",
    ),
    "PriorityClass": _OBJECT
    | _fields(TAKEN, "value globalDefault")
    | _fields(BOOKKEEPING, "description")
    # whom a pod may stop is the queue's matter in KAI
    | _fields(BOOKKEEPING, "preemptionPolicy"),
    "BindRequest": _OBJECT
    | _fields(TAKEN, "spec.podName spec.selectedNode status.phase")
    | _fields("a pod that is being bound holds what it asks for", "receivedResourceType receivedGPU", "spec.")
    | _fields(BOOKKEEPING, "selectedGPUGroups predictedNUMAZones backoffLimit", "spec.")
    | _fields(
        "GPUs of dynamic resource allocation are not counted",
        "resourceClaimAllocations extendedResourceClaimAllocation",
        "spec.",
    )
    | _fields(BOOKKEEPING, "reason failedAttempts", "status."),
}
#: The same of a snapshot's other parts. Source: pkg/scheduler/conf/scheduler_conf.go.
SNAPSHOT: Mapping[str, str] = (
    _fields(TAKEN, "schedulerName partitionParams fullHierarchyFairness", "schedulerParams.")
    | _fields(
        BOOKKEEPING,
        "numOfStatusRecordingWorkers schedulePeriod detailedFitErrors updatePodEvictionCondition queueLabelKey "
        "useSchedulingSignatures scheduleCSIStorage stuckInReleasingThreshold",
        "schedulerParams.",
    )
    | {
        "config.actions": "the rule allocates, reclaims and preempts, in this order",
        "config.queueDepthPerAction": "all gangs of a queue are looked at",
        "config.scenarioSearchBudgets": "the search is not cut short",
        "config.tiers[].plugins[].name": BOOKKEEPING,
        "config.tiers[].plugins[].arguments": "give the rule kValue as k, relcaimerSaturationMultiplier as saturation",
        "config.usageDBConfig": "past usage is not in a snapshot; the rule takes it from the market's entitlements",
        "schedulerParams.allowConsolidatingReclaim": "moving gangs between nodes is not modelled",
        "schedulerParams.maxNumberConsolidationPreemptees": "moving gangs between nodes is not modelled",
        "schedulerParams.restrictSchedulingNodes": "all nodes that are ready count",
        "schedulerParams.globalDefaultStalenessGracePeriod": _TIME,
        "discovery": BOOKKEEPING,
    }
)


def emit(before: Market, after: Market) -> str:
    """Return the changed Queue objects as JSON that ``kubectl apply --server-side -f`` takes.

    A queue that is the same in both markets is left out. A queue is of the one GPU type on which it is owed or may hold
    anything. Errors: `BadInput` for a market without entitlements, for other users or groups, and for a queue of
    several types.

    Source: pkg/apis/scheduling/v2/queue_types.go, resources.go.
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or old.nodes != new.nodes or old.columns != new.columns:
        remedy = "Import both from the same cluster's files, or change one of them"
        raise BadInput("not the same queues and types", place="the markets", remedy=remedy)
    items = []
    for node, name in enumerate(new.nodes):
        objects = [_queue(market, node, name) for market in (before, after)]
        if objects[0] != objects[1]:
            items.append(objects[1])
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


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
