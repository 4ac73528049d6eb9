"""Kueue's objects: which fields are read, and changed entitlements as objects for ``kubectl apply --server-side``.

Source: kubernetes-sigs/kueue ff69552e, apis/kueue/v1beta2 and v1beta1, *_types.go; v1alpha1 Cohort of 9ea5869c;
Kubernetes, api/core/v1/types.go (PodSpec, Node).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from fairopt.discovery import library
from fairopt.errors import BadInput, NotCapable
from fairopt.importing.kubernetes import NODE, OBJECT, fields, own_names, pod_fields, written_quantity
from fairopt.importing.kueue_configuration import CONFIGURATION, CONFIGURATIONS
from fairopt.importing.unplaced import BOOKKEEPING, TAKEN
from fairopt.problem.entitled_rows import TOP, own_part
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.market import Market
from fairopt.program import INFINITY, Array

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "A ClusterQueue uses at most nominalQuota and borrowingLimit, a cohort what it has and its parent lends",
        "reserved": "What lendingLimit keeps back is for the ClusterQueue itself only",
        "held": "Borrowed quota comes back by preemption alone: reclaimWithinCohort of who waits says from whom",
        "promised": "Quotas may promise more than there is: Kueue does not compare them with nodes",
        "gang": "A Workload gets its whole quota at once",
        "full": "Beyond its nominalQuota a ClusterQueue has what others of its cohort leave",
        "good": "CPU, memory and other resources have quotas as GPUs do",
        "nothing": "A cycle looks at the first Workload of each ClusterQueue; with StrictFIFO the others wait too",
    }
)

GROUP = "kueue.x-k8s.io"
VERSION = f"{GROUP}/v1beta2"
_STATUS = "the cluster's own report, which does not change who is owed what"
_PLACING = "where pods lie inside a flavor: quotas are counted by flavor"
_CHECKS = "admission checks are not modelled: every quota reservation counts as admitted"
_INSIDE = "order among the LocalQueues of one ClusterQueue: they are one user here"
_GATES = "gates are not modelled: every workload may preempt as its ClusterQueue may"
_VARIANTS = "running variants of one workload on several flavors is not modelled"
_DEVICES = "devices by dynamic resource allocation are not counted"
_NUMBER = "the number in spec.priority is what counts"
_END = "when a workload ends is not asked"
#: Where several flavors may be tried, and how much quotas and nodes say that there is.
ORDER = "here all try the types in one order"
NODES = "quotas are the capacity here, as for Kueue"
PLACES = "the policy kueue places pods; what is owed and what is idle is counted by flavor"
#: Reasons of what keeps no workload from its quota.
HARMLESS = (_STATUS, _INSIDE, _GATES, _NUMBER, _END, ORDER, NODES, PLACES)


#: What a ClusterQueue's spec sets beside quotas, and the option of the policy kueue that it is.
OPTIONS: Mapping[str, str] = {
    "queueingStrategy": "queueing",
    "flavorFungibility.whenCanBorrow": "when_can_borrow",
    "flavorFungibility.whenCanPreempt": "when_can_preempt",
    "flavorFungibility.preference": "preference",
    "preemption.reclaimWithinCohort": "reclaim_within_cohort",
    "preemption.withinClusterQueue": "within_cluster_queue",
    "preemption.borrowWithinCohort.policy": "borrow_within_cohort",
    "preemption.borrowWithinCohort.maxPriorityThreshold": "max_priority_threshold",
}
#: Of any object, and of the pods of a Workload.
_LABELS = "job-uid managed queue-name priority-class prebuilt-workload-name job-owner-gvk job-owner-name podset"
_OWN = own_names(
    "kueue.x-k8s.io/ provreq.kueue.x-k8s.io/", " ".join(f"kueue.x-k8s.io/{each}" for each in _LABELS.split())
)
_QUOTAS = (
    {**OBJECT, **_OWN}
    | fields(TAKEN, "coveredResources flavors[].name", "spec.resourceGroups[].")
    | fields(TAKEN, "name nominalQuota borrowingLimit lendingLimit", "spec.resourceGroups[].flavors[].resources[].")
    | fields(TAKEN, "spec.fairSharing.weight status.fairSharing.weightedShare")
)
_AFS = "status.fairSharing.admissionFairSharingStatus."
_POD = "spec.podSets[].template.spec."
_TOPOLOGY = "spec.podSets[].topologyRequest."
_ASSIGNED = "status.admission.podSetAssignments[].topologyAssignment."
_TERMS = _POD + "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]"
#: By the kind of the object.
KINDS: Mapping[str, Mapping[str, str]] = {
    "ClusterQueue": _QUOTAS
    | fields(TAKEN, "cohort cohortName stopPolicy", "spec.")
    | {f"spec.{path}": TAKEN for path in OPTIONS}
    | fields(TAKEN, "pendingWorkloads reservingWorkloads admittedWorkloads", "status.")
    | fields(TAKEN, "name resources[].name resources[].total resources[].borrowed", "status.flavorsUsage[].")
    | fields(TAKEN, "name resources[].name resources[].total resources[].borrowed", "status.flavorsReservation[].")
    | fields(_STATUS, "conditions pendingWorkloadsStatus", "status.")
    | fields(_CHECKS, "admissionChecks admissionChecksStrategy.admissionChecks", "spec.")
    | {
        "spec.namespaceSelector": "namespaces are not in the file: pending workloads are taken as selected",
        "spec.admissionScope.admissionMode": TAKEN,
        "spec.concurrentAdmissionPolicy": _VARIANTS,
    }
    | fields(_INSIDE, "consumedResources lastUpdate", _AFS),
    "Cohort": _QUOTAS | fields(TAKEN, "spec.parent spec.parentName"),
    "LocalQueue": {**OBJECT, **_OWN}
    | fields(TAKEN, "spec.clusterQueue spec.stopPolicy spec.fairSharing.weight")
    | fields(_INSIDE, "status.fairSharing.weightedShare")
    | {_AFS + "consumedResources": TAKEN, _AFS + "lastUpdate": "the decayed usage is taken as of now"}
    | fields(BOOKKEEPING, "conditions pendingWorkloads reservingWorkloads admittedWorkloads", "status.")
    | fields(BOOKKEEPING, "flavorsReservation flavorsUsage flavorUsage flavors", "status."),
    "Topology": {**OBJECT, **_OWN, "spec.levels[].nodeLabel": TAKEN},
    "ResourceFlavor": {**OBJECT, **_OWN, "spec.nodeLabels": TAKEN, "spec.topologyName": TAKEN}
    | fields(TAKEN, "key value effect", "spec.nodeTaints[].")
    | fields(TAKEN, "key operator value effect", "spec.tolerations[].")
    | fields(BOOKKEEPING, "spec.nodeTaints[].timeAdded spec.tolerations[].tolerationSeconds"),
    "Workload": {**OBJECT, **_OWN, "metadata.creationTimestamp": TAKEN}
    | fields(TAKEN, "queueName priority active podSets[].name podSets[].count podSets[].minCount", "spec.")
    | fields(_NUMBER, "Ref Name Source", "spec.priorityClass")
    | {
        "spec.maximumExecutionTimeSeconds": _END,
        "spec.preemptionGates": _GATES,
        "spec.podSets[].template.metadata.*": BOOKKEEPING,
    }
    | fields(TAKEN, "required preferred unconstrained podSetSliceRequiredTopology podSetSliceSize", _TOPOLOGY)
    | fields(TAKEN, "topology size", _TOPOLOGY + "podsetSliceRequiredTopologyConstraints[].")
    | fields("that a leader is placed beside its workers is not modelled", "podSetGroupName", _TOPOLOGY)
    | fields(BOOKKEEPING, "podIndexLabel subGroupIndexLabel subGroupCount", _TOPOLOGY)
    | own_names("kueue.x-k8s.io/", before="spec.podSets[].template.metadata.")
    | fields("a boost of priority is not modelled", "kueue.x-k8s.io/priority-boost", "metadata.annotations.")
    | fields(_VARIANTS, "kueue.x-k8s.io/workload-allowed-resource-flavors", "metadata.annotations.")
    | fields(_VARIANTS, "kueue.x-k8s.io/concurrent-admission-parent", "metadata.labels.")
    | fields(
        "workloads that grow are not modelled",
        "elastic-job workload-slice-name",
        "metadata.annotations.kueue.x-k8s.io/",
    )
    | {
        name: why
        for name, why in pod_fields(_POD, BOOKKEEPING).items()
        if name not in (_POD + "affinity", _POD + "tolerations")
    }
    | fields(_DEVICES, "resourceClaims containers[].resources.claims initContainers[].resources.claims", _POD)
    | fields(TAKEN, "nodeSelector resources.requests resources.limits", _POD)
    | fields(TAKEN, "key operator values", f"{_TERMS}.matchExpressions[].")
    | {f"{_TERMS}.matchFields": "names of nodes say nothing about flavors"}
    | fields(TAKEN, "key operator value effect", _POD + "tolerations[].")
    | fields(BOOKKEEPING, "tolerations[].tolerationSeconds affinity.podAffinity affinity.podAntiAffinity", _POD)
    | fields(BOOKKEEPING, "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", _POD)
    | fields(BOOKKEEPING, "activeDeadlineSeconds nodeName priorityClassName priority preemptionPolicy", _POD)
    | fields(BOOKKEEPING, "schedulingGates workloadRef", _POD)
    | fields(TAKEN, "type status", "status.conditions[].")
    | fields(BOOKKEEPING, "reason message lastTransitionTime observedGeneration", "status.conditions[].")
    | fields(TAKEN, "clusterQueue podSetAssignments[].name podSetAssignments[].flavors", "status.admission.")
    | fields(TAKEN, "resourceUsage count", "status.admission.podSetAssignments[].")
    | fields(_PLACING, "delayedTopologyRequest", "status.admission.podSetAssignments[].")
    | fields(TAKEN, "levels domains[].values domains[].count slices[].domainCount", _ASSIGNED)
    | fields(
        TAKEN,
        "universal individual.prefix individual.suffix individual.roots",
        _ASSIGNED + "slices[].valuesPerLevel[].",
    )
    | fields(TAKEN, "universal individual", _ASSIGNED + "slices[].podCounts.")
    | fields(TAKEN, "resourceRequests[].name resourceRequests[].resources", "status.")
    | fields(TAKEN, "reclaimablePods[].name reclaimablePods[].count", "status.")
    | fields("other clusters are not in the file", "status.nominatedClusterNames status.clusterName")
    | {
        "status.admissionChecks": _CHECKS,
        "status.requeueState": "waiting before it is queued again is not modelled",
        "status.preemptionGates": _GATES,
        "status.unhealthyNodes": _PLACING,
    }
    | fields(_STATUS, "accumulatedPastExecutionTimeSeconds accumulatedPastExexcutionTimeSeconds", "status.")
    | {"status.schedulingStats": _STATUS},
    "Node": {**NODE, "metadata.labels": TAKEN}
    | fields(TAKEN, "spec.taints[].key spec.taints[].value spec.taints[].effect status.conditions")
    | fields(BOOKKEEPING, "spec.taints[].timeAdded"),
    "Pod": {**OBJECT, "metadata.annotations": TAKEN, "spec.nodeName": TAKEN, "status.phase": TAKEN}
    | pod_fields("spec.", BOOKKEEPING)
    | fields(BOOKKEEPING, "spec.* status.*"),
    "AdmissionCheck": {**OBJECT, **_OWN, "spec.controllerName": TAKEN}
    | fields(BOOKKEEPING, "spec.parameters spec.retryDelayMinutes status.conditions"),
    "Configuration": CONFIGURATION,
}
#: The API groups of kinds that are not Kueue's own.
GROUPS: Mapping[str, str] = {"Node": "", "Pod": "", "Configuration": CONFIGURATIONS}


def emit(before: Market, after: Market, resource: str = "nvidia.com/gpu") -> str:
    """Return the ClusterQueues and Cohorts whose quotas differ, as YAML; nothing where none does.

    The objects hold names, quotas, weights and parents only: ``kubectl apply --server-side`` leaves other fields as
    they are. ``resource`` is what GPUs are called. What is gone is a comment that says how to delete it. Errors:
    `NotCapable` for markets without entitlements, and for what no quota can say.

    >>> from fairopt.problem import Entitlements
    >>> def market(quota):
    ...     owed = Entitlements.of(["a"], ["H100"], guarantee={"a": [quota]}, group={"a": "ml"})
    ...     return Market.of([[1]], [8], users=["a"], types=["H100"], entitlements=owed)
    >>> print(emit(market(4), market(6)).splitlines()[-1].strip())
    nominalQuota: '6'
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None:
        raise NotCapable("Kueue's objects are made of entitlements, and this market says none")
    was, now = (_said(owed) for owed in (old, new))
    own = own_part(new.guarantee, new.children)
    yaml = library("yaml", "Kueue's objects", "import")
    made = [
        _object(new, node, own[node], resource) for node, name in enumerate(new.nodes) if was.get(name) != now[name]
    ]
    gone = [
        f"# gone: kubectl delete {'clusterqueue' if name in old.users else 'cohort'} {_called(name)}\n"
        for name in old.nodes
        if name not in now
    ]
    return "".join(gone) + (yaml.safe_dump_all(made, sort_keys=False) if made else "")


def _said(owed: Entitlements) -> dict[str, tuple[Any, ...]]:
    """Return what objects say of each node, by name."""
    own = own_part(owed.guarantee, owed.children)
    return {
        name: (
            None if owed.parent[node] == TOP else owed.nodes[owed.parent[node]],
            owed.borrow_weight[node],
            own[node].tolist(),
            *((_limit(owed, node, at), _lending(owed, node, at)) for at in range(len(owed.columns))),
        )
        for node, name in enumerate(owed.nodes)
    }


def _called(name: str) -> str:
    """Return the Cohort's own name: the importer writes "cohort NAME" where a ClusterQueue has the same."""
    return name.removeprefix("cohort ")


def _limit(owed: Entitlements, node: int, at: int) -> Fraction | None:
    """Return the borrowing limit."""
    if owed.parent[node] == TOP or owed.cap[node, at] == INFINITY:
        return None
    over: Fraction = owed.cap[node, at] - owed.guarantee[node, at]
    if over < 0:
        place = f"{owed.nodes[node]!r}, cap, {owed.columns[at]!r}"
        raise BadInput("a cap below the guarantee", place=place, remedy="Kueue borrows from 0 up: raise the cap")
    return over


def _lending(owed: Entitlements, node: int, at: int) -> Fraction | None:
    """Return the lending limit."""
    return owed.guarantee[node, at] - owed.reserve[node, at] if owed.reserve[node, at] > 0 else None


def _object(owed: Entitlements, node: int, own: Array, resource: str) -> dict[str, Any]:
    name, parent, user = owed.nodes[node], int(owed.parent[node]), node < len(owed.users)
    spec: dict[str, Any] = {}
    if parent != TOP:
        spec["cohortName" if user else "parentName"] = _called(owed.nodes[parent])
    spec["fairSharing"] = {"weight": written_quantity(owed.borrow_weight[node])}
    spec["resourceGroups"] = list(_groups(owed, node, own, resource))
    kind = "ClusterQueue" if user else "Cohort"
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name if user else _called(name)}, "spec": spec}


def _groups(owed: Entitlements, node: int, own: Array, resource: str) -> Iterable[dict[str, Any]]:
    """Yield the resource groups: flavors that share a resource are in one group, and list the same resources."""
    pairs = [(resource, kind) for kind in owed.types] + [(good.resource, good.flavor) for good in owed.goods]
    user = node < len(owed.users)
    listed = {
        pair: at
        for at, pair in enumerate(pairs)
        if own[at] or (_limit(owed, node, at) != 0 if user else _limit(owed, node, at) is not None)
    }
    left = list(dict.fromkeys(flavor for _, flavor in listed))
    while left:
        group, grown = [left[0]], True
        while grown:
            covered = [each for each, flavor in listed if flavor in group]
            more = [each for each in left if each not in group and any((name, each) in listed for name in covered)]
            group, grown = group + more, bool(more)
        left = [each for each in left if each not in group]
        names = list(dict.fromkeys(each for each, flavor in listed if flavor in group))
        flavors = [
            {"name": flavor, "resources": [_quota(owed, node, listed.get((each, flavor)), each, own) for each in names]}
            for flavor in group
        ]
        yield {"coveredResources": names, "flavors": flavors}


def _quota(owed: Entitlements, node: int, at: int | None, name: str, own: Any) -> dict[str, Any]:
    if at is None:
        return {"name": name, "nominalQuota": "0", "borrowingLimit": "0"}
    quota = {"name": name, "nominalQuota": written_quantity(own[at])}
    limits = {"borrowingLimit": _limit(owed, node, at), "lendingLimit": _lending(owed, node, at)}
    return quota | {key: written_quantity(limit) for key, limit in limits.items() if limit is not None}
