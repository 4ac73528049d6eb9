"""The fields of Kueue's objects: which are read, and why the others have no place in a market.

Source: kubernetes-sigs/kueue ff69552e, apis/kueue/v1beta2 and v1beta1, *_types.go; v1alpha1 Cohort of 9ea5869c;
Kubernetes, api/core/v1/types.go (PodSpec, Node).
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.importing.fields import BOOKKEEPING, OBJECT, TAKEN

STATUS_ONLY = "the cluster's own report, which does not change who is owed what"
PLACEMENT = "where pods lie inside a flavor: quotas are counted by flavor"
PODS = BOOKKEEPING
CHECKS = "admission checks are not modelled: every quota reservation counts as admitted"
INSIDE = "order among the LocalQueues of one ClusterQueue: they are one user here"


def _option(name: str) -> str:
    return f"the policy kueue has it as its option {name}, for all ClusterQueues alike"


def _fields(prefix: str, names: str, why: str = TAKEN) -> dict[str, str]:
    return {prefix + name: why for name in names.split()}


_QUOTA = "spec.resourceGroups[]."
QUOTAS: Mapping[str, str] = (
    _fields(_QUOTA, "coveredResources flavors[].name")
    | _fields(_QUOTA + "flavors[].resources[].", "name nominalQuota borrowingLimit lendingLimit")
    | _fields("", "spec.fairSharing.weight status.fairSharing.weightedShare")
)
_AFS = "status.fairSharing.admissionFairSharingStatus."

CLUSTER_QUEUE: Mapping[str, str] = (
    {**OBJECT, **QUOTAS}
    | _fields("spec.", "cohort cohortName stopPolicy")
    | _fields("status.", "pendingWorkloads reservingWorkloads admittedWorkloads")
    | _fields("status.flavorsUsage[].", "name resources[].name resources[].total resources[].borrowed")
    | _fields("status.flavorsReservation[].", "name resources[].name resources[].total resources[].borrowed")
    | _fields("status.", "conditions pendingWorkloadsStatus", STATUS_ONLY)
    | _fields("spec.", "admissionChecks admissionChecksStrategy.admissionChecks", CHECKS)
    | {
        "spec.queueingStrategy": _option("queueing"),
        "spec.namespaceSelector": "namespaces are not in the file: pending workloads are taken as selected",
        "spec.flavorFungibility.whenCanBorrow": _option("when_can_borrow"),
        "spec.flavorFungibility.whenCanPreempt": _option("when_can_preempt"),
        "spec.flavorFungibility.preference": _option("preference"),
        "spec.preemption.reclaimWithinCohort": _option("reclaim_within_cohort"),
        "spec.preemption.withinClusterQueue": _option("within_cluster_queue"),
        "spec.preemption.borrowWithinCohort.policy": _option("borrow_within_cohort"),
        "spec.preemption.borrowWithinCohort.maxPriorityThreshold": _option("max_priority_threshold"),
        "spec.admissionScope.admissionMode": INSIDE,
        "spec.concurrentAdmissionPolicy": "running variants of one workload on several flavors is not modelled",
        _AFS + "consumedResources": INSIDE,
        _AFS + "lastUpdate": INSIDE,
    }
)

COHORT: Mapping[str, str] = {**OBJECT, **QUOTAS} | _fields("spec.", "parent parentName")

LOCAL_QUEUE: Mapping[str, str] = (
    {**OBJECT}
    | _fields("spec.", "clusterQueue stopPolicy")
    | {
        "spec.fairSharing.weight": INSIDE,
        "status.fairSharing.weightedShare": INSIDE,
        _AFS + "consumedResources": TAKEN,
        _AFS + "lastUpdate": "the decayed usage is taken as of now",
    }
    | _fields(
        "status.",
        "conditions pendingWorkloads reservingWorkloads admittedWorkloads flavorsReservation flavorsUsage flavorUsage "
        "flavors",
        BOOKKEEPING,
    )
)

_TOLERATION = "key operator value effect"
RESOURCE_FLAVOR: Mapping[str, str] = (
    {**OBJECT, "spec.nodeLabels": TAKEN, "spec.topologyName": PLACEMENT}
    | _fields("spec.nodeTaints[].", "key value effect")
    | {"spec.nodeTaints[].timeAdded": BOOKKEEPING}
    | _fields("spec.tolerations[].", _TOLERATION)
    | {"spec.tolerations[].tolerationSeconds": PODS}
)

_POD = "spec.podSets[].template.spec."
_CONTAINER = (
    "name image command args workingDir ports envFrom env volumeMounts volumeDevices livenessProbe readinessProbe "
    "startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin "
    "stdinOnce tty resizePolicy restartPolicyRules"
)
_POD_SPEC = (
    "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy "
    "serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC "
    "shareProcessNamespace securityContext imagePullSecrets hostname subdomain schedulerName hostAliases "
    "priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy "
    "topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates hostnameOverride workloadRef "
    "affinity.podAffinity affinity.podAntiAffinity "
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
)
WORKLOAD: Mapping[str, str] = (
    {**OBJECT, "metadata.creationTimestamp": TAKEN}
    | _fields("spec.", "queueName priority active podSets[].name podSets[].count")
    | {
        "spec.priorityClassRef": "the number in spec.priority is what counts",
        "spec.priorityClassName": "the number in spec.priority is what counts",
        "spec.priorityClassSource": "the number in spec.priority is what counts",
        "spec.maximumExecutionTimeSeconds": "when a workload ends is not asked",
        "spec.preemptionGates": "gates are not modelled: every workload may preempt as its ClusterQueue may",
        "spec.podSets[].minCount": "partial admission is not modelled: a gang has all of its pods",
        "spec.podSets[].topologyRequest": PLACEMENT,
        "spec.podSets[].template.metadata": BOOKKEEPING,
        _POD + "resourceClaims": "devices by dynamic resource allocation are not counted",
    }
    | {
        path: TAKEN
        for kind in ("containers", "initContainers")
        for path in _fields(f"{_POD}{kind}[].", "resources.requests resources.limits restartPolicy")
    }
    | {path: PODS for kind in ("containers", "initContainers") for path in _fields(f"{_POD}{kind}[].", _CONTAINER)}
    | {
        f"{_POD}{kind}[].resources.claims": "devices by dynamic resource allocation are not counted"
        for kind in ("containers", "initContainers")
    }
    | _fields(_POD, "nodeSelector overhead resources.requests resources.limits")
    | _fields(_POD + "affinity.nodeAffinity.", "requiredDuringSchedulingIgnoredDuringExecution")
    | _fields(_POD + "tolerations[].", _TOLERATION)
    | {_POD + "tolerations[].tolerationSeconds": PODS}
    | _fields(_POD, _POD_SPEC, PODS)
    | _fields("status.conditions[].", "type status")
    | _fields("status.conditions[].", "reason message lastTransitionTime observedGeneration", BOOKKEEPING)
    | _fields("status.admission.", "clusterQueue")
    | _fields("status.admission.podSetAssignments[].", "name flavors resourceUsage count")
    | _fields("status.admission.podSetAssignments[].", "topologyAssignment delayedTopologyRequest", PLACEMENT)
    | _fields("status.", "resourceRequests[].name resourceRequests[].resources")
    | _fields("status.", "reclaimablePods[].name reclaimablePods[].count")
    | {
        "status.admissionChecks": CHECKS,
        "status.requeueState": "waiting before it is queued again is not modelled",
        "status.preemptionGates": "gates are not modelled: every workload may preempt as its ClusterQueue may",
        "status.nominatedClusterNames": "other clusters are not in the file",
        "status.clusterName": "other clusters are not in the file",
        "status.unhealthyNodes": PLACEMENT,
    }
    | _fields(
        "status.",
        "accumulatedPastExecutionTimeSeconds accumulatedPastExexcutionTimeSeconds schedulingStats",
        STATUS_ONLY,
    )
)

NODE: Mapping[str, str] = (
    {**OBJECT, "metadata.labels": TAKEN, "spec.unschedulable": TAKEN, "status.allocatable": TAKEN}
    | _fields("spec.", "taints podCIDR podCIDRs providerID externalID configSource", BOOKKEEPING)
    | _fields(
        "status.",
        "addresses capacity conditions config daemonEndpoints declaredFeatures features images nodeInfo phase "
        "runtimeHandlers volumesAttached volumesInUse",
        BOOKKEEPING,
    )
)

#: By the kind of the object.
KINDS: Mapping[str, Mapping[str, str]] = {
    "ClusterQueue": CLUSTER_QUEUE,
    "Cohort": COHORT,
    "LocalQueue": LOCAL_QUEUE,
    "ResourceFlavor": RESOURCE_FLAVOR,
    "Workload": WORKLOAD,
    "Node": NODE,
}
