"""Which fields of Armada's objects the importer reads, and why the others have no place.

Source: armadaproject/armada at 207cc9e0: pkg/api/submit.proto (Queue, Job, JobSubmitRequestItem), pkg/api/job.proto
(JobDetails, JobRunDetails), internal/common/types/scheduling.go (PriorityClass), internal/scheduler/configuration
(SchedulingConfig); Kubernetes, core/v1 (Node, PodSpec).
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.importing.fields import BOOKKEEPING, OBJECT, TAKEN
from fairopt.importing.volcano_fields import FIELDS as OF_VOLCANO

_PLACING = "where on the nodes a pod may run is known by GPU type only"
_RATES = "how many jobs are started in a cycle or a second is not modelled"
_POOLS = "one pool is read: all nodes together"
_MARKET = "scheduling by price is not modelled"


def _fields(why: str, names: str, before: str = "") -> dict[str, str]:
    return {f"{before}{name}": why for name in names.split()}


def _pod(before: str) -> dict[str, str]:
    """Return the fields of a PodSpec."""
    return (
        _fields(TAKEN, "priorityClassName overhead nodeSelector", before)
        | _fields(TAKEN, "containers[].resources.limits containers[].resources.requests", before)
        | _fields(TAKEN, "initContainers[].resources.limits initContainers[].resources.requests", before)
        | _fields(_PLACING, "affinity tolerations topologySpreadConstraints", before)
        | _fields("how long a job runs is not known", "activeDeadlineSeconds", before)
        | _fields(
            BOOKKEEPING,
            "containers[].name containers[].image containers[].command containers[].args containers[].env "
            "containers[].volumeMounts containers[].imagePullPolicy containers[].workingDir containers[].ports "
            "initContainers[].name initContainers[].image initContainers[].command volumes restartPolicy "
            "terminationGracePeriodSeconds imagePullSecrets serviceAccountName schedulerName hostNetwork",
            before,
        )
    )


#: Of a job, as it is submitted (JobSubmitRequestItem) and as it is kept (Job).
_SPEC = (
    _fields(TAKEN, "priority requiredNodeLabels schedulingResourceRequirements created")
    | _fields(TAKEN, "armadaproject.io/gangId armadaproject.io/gangCardinality", "annotations.")
    | {
        "annotations.armadaproject.io/gangNodeUniformityLabel": "how near a gang's nodes are is not modelled",
        "annotations.armadaproject.io/pool": _POOLS,
        "annotations.armadaproject.io/priceBand": _MARKET,
        "annotations.armadaproject.io/failFast": BOOKKEEPING,
    }
    | _pod("podSpec.")
    | _pod("podSpecs[].")
    | _fields("several schedulers are not modelled", "scheduler")
    | _fields(BOOKKEEPING, "id clientId jobSetId queue namespace labels owner queueOwnershipUserGroups")
    | _fields(BOOKKEEPING, "compressedQueueOwnershipUserGroups ingress services k8sIngress k8sService")
)
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": _fields(TAKEN, "apiVersion kind name priorityFactor cordoned")
    | _fields(TAKEN, "resourceLimitsByPriorityClassName")
    | _fields(BOOKKEEPING, "permissions userOwners groupOwners labels labelsDeprecated retryPolicies")
    | {"resourceLimits": "Armada ignores it"},
    "submitted job": _SPEC | _fields(BOOKKEEPING, "externalJobUri"),
    "job": _fields(TAKEN, "jobId queue state submittedTs latestRunId")
    | _fields(TAKEN, "runId jobId node state", "jobRuns[].")
    | {f"jobSpec.{name}": why for name, why in _SPEC.items()}
    | _fields(BOOKKEEPING, "jobset namespace cancelTs cancelReason cancelUser lastTransitionTs")
    | _fields(BOOKKEEPING, "cluster leasedTs pendingTs startedTs finishedTs ingressAddresses", "jobRuns[]."),
    "scheduling": _fields(TAKEN, "priorityClasses defaultPriorityClassName dominantResourceFairnessResourcesToConsider")
    | _fields(_POOLS, "pools maximumResourceFractionToScheduleByPool")
    | _fields(
        _RATES,
        "maximumResourceFractionToSchedule maximumSchedulingRate maximumSchedulingBurst maximumPerQueueSchedulingRate "
        "maximumPerQueueSchedulingBurst maxQueueLookback",
    )
    | {"protectedFractionOfFairShare": "who is above his fair share is not stopped by the importer"}
    | _fields(_MARKET, "experimentalIndicativePricing experimentalIndicativeShare")
    | _fields(
        BOOKKEEPING,
        "supportedResourceTypes disableScheduling disableIndependentPoolFailures maxSchedulingDuration "
        "enableAssertions enablePreferLargeJobOrdering respectNodePodLimits nodeIdLabel priorityClassNameOverride "
        "maxJobSchedulingContextsPerExecutor maxRetries retryPolicy indexedResources indexedNodeLabels indexedTaints "
        "executorTimeout maxUnacknowledgedJobsPerExecutor executorUpdateFrequency wellKnownNodeTypes",
    ),
    "priority class": _fields(TAKEN, "priority preemptible maximumResourceFractionPerQueue")
    | {
        "maximumResourceFractionPerQueueByPool": _POOLS,
        "awayNodeTypes": "running on nodes of other kinds at a lower priority is not modelled",
    },
    "Node": dict(OBJECT)
    | dict(OF_VOLCANO["Node"])
    | {"status.capacity": "what is allocatable counts", "status.conditions": "a node counts whatever its conditions"},
}
