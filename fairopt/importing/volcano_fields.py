"""Which fields of Volcano's objects the importer reads, and why the others have no place.

Source: volcano-sh/volcano at ed72c7c8, the types of scheduling/v1beta1/types.go and batch/v1alpha1/job.go; Kubernetes,
core/v1 (Node, PodTemplate) and scheduling/v1 (PriorityClass).
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.importing.fields import BOOKKEEPING, COUNTED, TAKEN


def _fields(why: str, names: str, under: str = "") -> dict[str, str]:
    return {f"{under}{name}": why for name in names.split()}


_PLACING = "where on the nodes a pod may run is not modelled"
_TOPOLOGY = "how near each other the GPUs of a gang must be is not modelled"
_TIME = "limits in time are not modelled"
_POD = (
    _fields(
        TAKEN, "containers[].resources.limits containers[].resources.requests overhead", "spec.tasks[].template.spec."
    )
    | _fields(
        TAKEN, "initContainers[].resources.limits initContainers[].resources.requests", "spec.tasks[].template.spec."
    )
    | _fields(_PLACING, "nodeSelector affinity tolerations", "spec.tasks[].template.spec.")
    | _fields(
        BOOKKEEPING,
        "containers[].name containers[].image containers[].command containers[].args containers[].env "
        "containers[].volumeMounts containers[].imagePullPolicy containers[].workingDir containers[].ports "
        "initContainers[].name initContainers[].image initContainers[].command volumes restartPolicy "
        "imagePullSecrets serviceAccountName schedulerName hostNetwork",
        "spec.tasks[].template.spec.",
    )
    | _fields(BOOKKEEPING, "template.metadata", "spec.tasks[].")
)

#: The API group and kind of the objects that are read.
KINDS = frozenset(
    {
        ("scheduling.volcano.sh", "Queue"),
        ("scheduling.volcano.sh", "PodGroup"),
        ("batch.volcano.sh", "Job"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("", "Node"),
    }
)
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": _fields(TAKEN, "weight capability deserved guarantee.resource parent priority reclaimable", "spec.")
    | _fields(TAKEN, "allocated state pending inqueue running unknown completed", "status.")
    | {
        "spec.affinity": _PLACING,
        "spec.dequeueStrategy": "that a gang which does not fit stops those behind it (fifo) is not modelled",
        "spec.extendClusters": "other clusters are not modelled",
        "spec.type": "kinds of queues are not modelled",
        "status.reservation": "which nodes are locked for a queue is not modelled",
    },
    "PodGroup": _fields(TAKEN, "queue minResources priorityClassName", "spec.")
    | {
        "spec.minMember": "the gang is counted in GPUs",
        "spec.minTaskMember": "the gang is counted in GPUs",
        "spec.networkTopology": _TOPOLOGY,
        "spec.subGroupPolicy": _TOPOLOGY,
        "status.phase": TAKEN,
        "status.conditions": "what the scheduler last said of it",
    }
    | _fields(COUNTED, "running succeeded failed", "status."),
    "Job": _POD
    | _fields(TAKEN, "queue priorityClassName minAvailable tasks[].replicas tasks[].minAvailable", "spec.")
    | _fields(BOOKKEEPING, "schedulerName volumes policies plugins maxRetry ttlSecondsAfterFinished", "spec.")
    | _fields(BOOKKEEPING, "name policies maxRetry", "spec.tasks[].")
    | _fields(_TIME, "runningEstimate", "spec.")
    | _fields(_TOPOLOGY, "networkTopology tasks[].topologyPolicy tasks[].partitionPolicy", "spec.")
    | {
        "spec.minSuccess": "when a job is done does not matter here",
        "spec.tasks[].dependsOn": "a task that waits for another is taken as asked for now",
        "status.state.phase": TAKEN,
    }
    | _fields(BOOKKEEPING, "state.reason state.message state.lastTransitionTime version retryCount", "status.")
    | _fields(BOOKKEEPING, "runningDuration controlledResources conditions", "status.")
    | _fields(COUNTED, "minAvailable taskStatusCount pending running succeeded failed terminating unknown", "status."),
    "Node": _fields(TAKEN, "spec.unschedulable status.allocatable")
    | {"spec.taints": _PLACING, "status.capacity": "Volcano counts what is allocatable"}
    | _fields(BOOKKEEPING, "podCIDR podCIDRs providerID configSource externalID", "spec.")
    | _fields(BOOKKEEPING, "addresses daemonEndpoints images nodeInfo volumesAttached volumesInUse", "status.")
    | _fields(BOOKKEEPING, "phase config features runtimeHandlers declaredFeatures", "status.")
    | {"status.conditions": "Volcano counts a node in the total whatever its conditions are"},
    "PriorityClass": _fields(TAKEN, "value")
    | _fields(BOOKKEEPING, "description")
    | {
        "globalDefault": "pod groups without a class have priority 0 here",
        "preemptionPolicy": "whether its pods may take others' places is not modelled",
    },
}
