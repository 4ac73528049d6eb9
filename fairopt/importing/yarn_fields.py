"""Which of YARN's properties and fields the importer reads, and why the others have no place.

Source: Hadoop's CapacityScheduler.md and CapacitySchedulerConfiguration.java; CapacitySchedulerQueueInfo.java,
CapacitySchedulerLeafQueueInfo.java and ClusterMetricsInfo.java of the ResourceManager's webapp/dao.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.importing.fields import BOOKKEEPING, COUNTED, TAKEN


def _all(why: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, why)


_APPS = "how many applications may be there at once is not modelled"
_MASTERS = "what application masters may take is not modelled"
_SIZES = "how large one container may be is not modelled"
_PLACING = "which queue an application goes to is read from where it is"
_MADE = "queues that are made later are not there yet"
_WITHIN = "the order of applications and users within a queue is not modelled"
_PACE = "how containers are assigned to nodes is not modelled"

#: Of a queue, after its path.
PROPERTIES: Mapping[str, str] = (
    _all(TAKEN, "queues", "capacity", "maximum-capacity", "accessible-node-labels", "state", "priority")
    | _all(TAKEN, "accessible-node-labels.<label>.capacity", "accessible-node-labels.<label>.maximum-capacity")
    | _all(TAKEN, "disable_preemption", "user-limit-factor")
    | _all(COUNTED, "default-node-label-expression")
    | _all(_WITHIN, "minimum-user-limit-percent", "ordering-policy", "user-settings.<user>.weight")
    | _all(_WITHIN, "ordering-policy.fair.enable-size-based-weight", "intra-queue-preemption.disable_preemption")
    | _all(_WITHIN, "default-application-priority", "maximum-application-lifetime", "default-application-lifetime")
    | _all(BOOKKEEPING, "acl_submit_applications", "acl_administer_queue", "acl_application_max_priority")
    | _all(_APPS, "maximum-applications", "max-parallel-apps", "config.")
    | _all(_MASTERS, "maximum-am-resource-percent", "accessible-node-labels.<label>.maximum-am-resource-percent")
    | _all(_SIZES, "maximum-allocation-mb", "maximum-allocation-vcores", "maximum-allocation")
    | _all(_MADE, "auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled", "reservable")
)
#: Of the scheduler, after "yarn.scheduler.capacity.".
SCHEDULER: Mapping[str, str] = (
    _all(TAKEN, "user-limit-factor", "resource-calculator")
    | _all(
        _WITHIN,
        "minimum-user-limit-percent",
        "application.fail-fast",
        "per-node-heartbeat.multiple-assignments-enabled",
    )
    | _all(
        _APPS, "maximum-applications", "max-parallel-apps", "user.max-parallel-apps", "user.<user>.max-parallel-apps"
    )
    | _all(_MASTERS, "maximum-am-resource-percent")
    | _all(
        _PLACING,
        "queue-mappings",
        "queue-mappings-override.enable",
        "workflow-priority-mappings",
        "mapping-rule-format",
    )
    | _all(_PLACING, "mapping-rule-json", "workflow-priority-mappings-override.enable")
    | _all(_PACE, "node-locality-delay", "rack-locality-additional-delay", "schedule-asynchronously.enable")
    | _all(
        _PACE, "per-node-heartbeat.maximum-offswitch-assignments", "per-node-heartbeat.maximum-container-assignments"
    )
    | _all(BOOKKEEPING, "legacy-queue-mode.enabled", "configuration.store.class")
)

_OF_PARTITION = (
    _all(TAKEN, "partitionName", "absoluteCapacity", "absoluteMaxCapacity", "absoluteUsedCapacity")
    | _all(TAKEN, "effectiveMinResource", "effectiveMaxResource")
    | _all(COUNTED, "capacity", "usedCapacity", "maxCapacity", "weight", "normalizedWeight")
    | _all(COUNTED, "configuredMinResource", "configuredMaxResource", "queueCapacityVectorInfo")
    | _all(_MASTERS, "maxAMLimitPercentage")
)
_USAGE = _all(TAKEN, "partitionName", "used", "pending") | _all(_MASTERS, "amUsed", "amLimit", "userAmLimit")
#: Of a queue in the answer of ws/v1/cluster/scheduler.
QUEUE: Mapping[str, str] = (
    _all(TAKEN, "queueName", "queuePath", "queuePriority", "preemptionDisabled", "userLimitFactor", "users")
    | {f"capacities.queueCapacitiesByPartition[].{name}": why for name, why in _OF_PARTITION.items()}
    | {f"resources.resourceUsagesByPartition[].{name}": why for name, why in _USAGE.items()}
    | {"resources.resourceUsagesByPartition[].reserved": "GPUs reserved for a container that does not fit yet are free"}
    | _all(COUNTED, "absoluteCapacity", "absoluteMaxCapacity", "absoluteUsedCapacity", "capacity", "usedCapacity")
    | _all(
        COUNTED, "maxCapacity", "weight", "normalizedWeight", "isAbsoluteResource", "mode", "queueType", "resourcesUsed"
    )
    | _all(COUNTED, "minEffectiveCapacity", "maxEffectiveCapacity", "numApplications", "numActiveApplications")
    | _all(COUNTED, "numPendingApplications", "numContainers", "allocatedContainers", "reservedContainers")
    | _all(COUNTED, "pendingContainers", "nodeLabels", "queueCapacityVectorInfo", "state", "userLimit")
    | _all(_APPS, "maxApplications", "maxApplicationsPerUser", "maxParallelApps")
    | _all(_MASTERS, "AMResourceLimit", "usedAMResource", "userAMResourceLimit", "configuredMaxAMResourceLimit")
    | _all(_SIZES, "maximumAllocation")
    | _all(_WITHIN, "orderingPolicyInfo", "defaultPriority", "intraQueuePreemptionDisabled", "maxApplicationLifetime")
    | _all(_WITHIN, "defaultApplicationLifetime", "defaultNodeLabelExpression")
    | _all(
        _MADE, "autoCreateChildQueueEnabled", "leafQueueTemplate", "autoCreationEligibility", "isAutoCreatedLeafQueue"
    )
    | _all(_MADE, "autoQueueTemplateProperties", "autoQueueParentTemplateProperties", "autoQueueLeafTemplateProperties")
    | _all(BOOKKEEPING, "type", "queueAcls", "hideReservationQueues", "creationMethod", "health", "schedulerName")
)
#: Of clusterMetrics in the answer of ws/v1/cluster/metrics.
METRICS: Mapping[str, str] = (
    _all(TAKEN, "totalMB", "totalVirtualCores", "totalClusterResourcesAcrossPartition")
    | _all(COUNTED, "allocatedMB", "allocatedVirtualCores", "availableMB", "availableVirtualCores", "pendingMB")
    | _all(COUNTED, "pendingVirtualCores", "reservedMB", "reservedVirtualCores", "containersAllocated")
    | _all(COUNTED, "containersPending", "containersReserved", "totalUsedResourcesAcrossPartition")
    | _all(COUNTED, "totalReservedResourcesAcrossPartition", "totalAllocatedContainersAcrossPartition")
    | _all(COUNTED, "utilizedMBPercent", "utilizedVirtualCoresPercent", "crossPartitionMetricsAvailable")
    | _all(BOOKKEEPING, "appsSubmitted", "appsCompleted", "appsPending", "appsRunning", "appsFailed", "appsKilled")
    | _all(BOOKKEEPING, "totalNodes", "activeNodes", "lostNodes", "unhealthyNodes", "decommissioningNodes")
    | _all(BOOKKEEPING, "decommissionedNodes", "rebootedNodes", "shutdownNodes", "rmSchedulerBusyPercent")
    | _all(BOOKKEEPING, "containerAssignedPerSecond", "rmEventQueueSize", "schedulerEventQueueSize")
)
