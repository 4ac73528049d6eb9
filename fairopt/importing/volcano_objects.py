"""Volcano's objects: which fields are read, and a change of entitlements as the Queues that Volcano takes.

Source: volcano-sh/volcano at ed72c7c8, the types of scheduling/v1beta1/types.go and batch/v1alpha1/job.go; Kubernetes,
core/v1 (Node, PodTemplate) and scheduling/v1 (PriorityClass).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput, NotCapable
from fairopt.importing.imported import both_owed
from fairopt.importing.kubernetes import NODE, OBJECT, apply_list, fields, own_names, pod_fields, written_quantity
from fairopt.importing.unplaced import BOOKKEEPING, COUNTED, TAKEN
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "A queue holds at most spec.capability",
        "reserved": "spec.guarantee of a queue is kept free for it",
        "held": "The reclaim action takes from reclaimable queues beyond what they deserve, if it is configured",
        "promised": "What queues deserve may add up to more than the nodes have",
        "gang": "A PodGroup starts with minMember tasks at once",
        "full": "Beyond what it deserves a queue has what others leave",
        "good": "CPU and memory are deserved, guaranteed and limited as GPUs are",
        "nothing": "Queues are served by the part of what they deserve that they hold; the next session goes on",
    }
)

#: The flavor of what is not counted by GPU type: CPU and memory of the whole cluster.
CLUSTER = "cluster"
#: The queue above all others, which Volcano makes itself.
ROOT = "root"
#: The scheduler's configuration, which has no kind; the key of the ConfigMap that it is in.
GROUP, CONFIGURATION, KEY = "scheduling.volcano.sh", "SchedulerConfiguration", "volcano-scheduler.conf"
_PLACING = "where on the nodes a pod may run is not modelled"
_TOPOLOGY = "how near each other the GPUs of a gang must be is not modelled"
_COUNTED = "the gang is counted in GPUs"
_SAID = "what the scheduler last said of it"
_CLASS = "the job's class counts"
_DONE, _TASK = "when a job is done does not matter here", "which task of a job a pod is does not matter here"
_NOT_CAPACITY = "Volcano counts what is allocatable"
PRODUCTS = "Volcano counts by resource name, which does not tell products apart"
NO_QUOTA, _CONDITIONS = "no queue has a quota", "Volcano counts a node in the total whatever its conditions are"
#: Reasons of what keeps no gang from starting.
HARMLESS = (_COUNTED, _CONDITIONS, _SAID, _CLASS, _DONE, _TASK, _NOT_CAPACITY, PRODUCTS, NO_QUOTA)
_POD = "spec.tasks[].template.spec."
_OWN = own_names("volcano.sh/ scheduling.volcano.sh/ batch.volcano.sh/")
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": {**OBJECT, **_OWN}
    | fields(TAKEN, "volcano.sh/hierarchy volcano.sh/hierarchy-weights", "metadata.annotations.")
    | fields(TAKEN, "weight capability deserved guarantee.resource parent priority reclaimable", "spec.")
    | fields(TAKEN, "allocated state pending inqueue running unknown completed", "status.")
    | {
        "spec.affinity": _PLACING,
        "spec.dequeueStrategy": "that a gang which does not fit stops those behind it (fifo) is not modelled",
        "spec.extendClusters": "other clusters are not modelled",
        "spec.type": "kinds of queues are not modelled",
        "status.reservation": "which nodes are locked for a queue is not modelled",
    },
    "PodGroup": {**OBJECT, **_OWN}
    | {"metadata.annotations.volcano.sh/preemptable": TAKEN}
    | fields(TAKEN, "spec.queue spec.minResources spec.priorityClassName status.phase")
    | fields(_COUNTED, "spec.minMember spec.minTaskMember")
    | fields(_TOPOLOGY, "spec.networkTopology spec.subGroupPolicy")
    | {"status.conditions": _SAID}
    | fields(COUNTED, "running succeeded failed", "status."),
    "Job": {**OBJECT, **_OWN}
    | {"metadata.annotations.volcano.sh/preemptable": TAKEN}
    | pod_fields(_POD, _PLACING)
    | fields(_CLASS, "priorityClassName priority preemptionPolicy", _POD)
    | fields(BOOKKEEPING, "template.metadata name policies maxRetry", "spec.tasks[].")
    | fields(TAKEN, "queue priorityClassName minAvailable tasks[].replicas tasks[].minAvailable", "spec.")
    | fields(BOOKKEEPING, "schedulerName volumes policies plugins maxRetry ttlSecondsAfterFinished", "spec.")
    | fields("limits in time are not modelled", "runningEstimate", "spec.")
    | fields(_TOPOLOGY, "networkTopology tasks[].topologyPolicy tasks[].partitionPolicy", "spec.")
    | {
        "spec.minSuccess": _DONE,
        "spec.tasks[].dependsOn": "a task that waits for another is taken as asked for now",
        "status.state.phase": TAKEN,
    }
    | fields(BOOKKEEPING, "state.reason state.message state.lastTransitionTime version retryCount", "status.")
    | fields(BOOKKEEPING, "runningDuration controlledResources conditions", "status.")
    | fields(COUNTED, "minAvailable taskStatusCount pending running succeeded failed terminating unknown", "status."),
    "Pod": {**OBJECT, **_OWN}
    | pod_fields("spec.", _PLACING)
    | fields(TAKEN, "scheduling.k8s.io/group-name volcano.sh/preemptable", "metadata.annotations.")
    | fields(TAKEN, "volcano.sh/preemptable", "metadata.labels.")
    | fields(_TASK, "volcano.sh/task-spec", "metadata.labels.")
    | fields(TAKEN, "spec.nodeName status.phase")
    | fields(TAKEN, "priority priorityClassName preemptionPolicy", "spec.")
    | fields("devices by dynamic resource allocation are not counted", "spec.resourceClaims")
    | fields("devices by dynamic resource allocation are not counted", "spec.containers[].resources.claims")
    | {"spec.schedulingGates": "gates are not modelled: a pod with one is taken as asked for"}
    | {"status.nominatedNodeName": _PLACING, "spec.activeDeadlineSeconds": BOOKKEEPING}
    | fields(
        BOOKKEEPING,
        "conditions message reason hostIP hostIPs podIP podIPs startTime containerStatuses initContainerStatuses "
        "ephemeralContainerStatuses qosClass resize resourceClaimStatuses observedGeneration",
        "status.",
    ),
    CONFIGURATION: {**OBJECT, "actions": TAKEN, "metrics": BOOKKEEPING}
    | fields(TAKEN, "name enablePreemptable", "tiers[].plugins[].")
    | fields("options of plugins are not read", "tiers[].plugins[]* configurations"),
    "Node": {**NODE}
    | {
        "spec.taints": _PLACING,
        "status.capacity": _NOT_CAPACITY,
        "status.conditions": _CONDITIONS,
    },
    "PriorityClass": {**OBJECT, "description": BOOKKEEPING} | fields(TAKEN, "value globalDefault preemptionPolicy"),
}
_GROUPS = {"Job": "batch.volcano.sh", "PriorityClass": "scheduling.k8s.io", "Node": "", "Pod": ""}
#: The API group of each kind that is read, and its fields.
KINDS = {kind: (_GROUPS.get(kind, "scheduling.volcano.sh"), known) for kind, known in FIELDS.items()}


def emit(before: Market, after: Market) -> str:
    """Return the changed Queue objects as JSON that ``kubectl apply --server-side -f`` takes.

    A queue that is the same in both markets is left out. ``guarantee`` becomes ``deserved``, ``cap`` ``capability``,
    ``reserve`` ``guarantee.resource``; an amount that is not there any more is written as null. What the queue "root"
    deserves is left out: Volcano adds it up itself. Errors: `BadInput` for a market without entitlements, for other
    queues or resources, and for a weight that is no whole number; `NotCapable` for the paths of hierarchical DRF, and
    for amounts that no quantity says.

    Source: volcano-sh/volcano at ed72c7c8, staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go.
    """
    old, new = both_owed(before, after, "queues and resources")
    items = []
    for node, name in enumerate(new.nodes):
        was, now = (_spec(owed, node) for owed in (old, new))
        if was != now:
            spec = now | {key: _merged(was[key], now[key]) for key in ("deserved", "capability")}
            spec["guarantee"] = {"resource": _merged(was["guarantee"]["resource"], now["guarantee"]["resource"])}
            head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
            items.append(head | {"spec": spec})
    return apply_list(items)


def _merged(was: dict[str, str], now: dict[str, str]) -> dict[str, str | None]:
    return {name: now.get(name) for name in dict.fromkeys((*was, *now))}


def _spec(owed: Entitlements, node: int) -> dict[str, Any]:
    name, parent = owed.nodes[node], int(owed.parent[node])
    if "/" in name:
        raise NotCapable(f"the group {name!r} is a path in annotations of hierarchical DRF, which has no such quotas")
    weight = Fraction(owed.borrow_weight[node])
    if weight.denominator != 1 or weight < 1:
        place = f"queue {name!r}, weight"
        raise BadInput(f"got {weight}", place=place, remedy="Volcano's weights are whole numbers from 1")
    parents = {} if parent == TOP else {"parent": owed.nodes[parent]}
    deserved = {} if name == ROOT else _amounts(owed, owed.guarantee[node])
    reserve = {} if name == ROOT else _amounts(owed, owed.reserve[node])
    cap = _amounts(owed, owed.cap[node], most=True)
    quotas = {"deserved": deserved, "capability": cap, "guarantee": {"resource": reserve}}
    return {"weight": int(weight), "priority": int(owed.tier[node]), **parents, **quotas}


def _amounts(owed: Entitlements, row: Iterable[Any], *, most: bool = False) -> dict[str, str]:
    """Return quantities by resource: what is guaranteed, or with ``most`` what there is a limit of."""
    names = [column.removesuffix(f":{CLUSTER}") for column in owed.columns]
    pairs = zip(names, row, strict=True)
    return {name: written_quantity(amount) for name, amount in pairs if (amount != INFINITY if most else amount > 0)}
