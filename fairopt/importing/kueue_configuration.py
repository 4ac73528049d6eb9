"""Kueue's own configuration: whether shares are fair, and by which rules, for the whole cluster.

Source: kubernetes-sigs/kueue ff69552e, apis/config/v1beta1 and v1beta2, configuration_types.go; pkg/features.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.errors import BadInput, require
from fairopt.importing.imported import ImportedQueue
from fairopt.importing.kubernetes import OBJECT, fields, listed_in
from fairopt.importing.unplaced import BOOKKEEPING, TAKEN, Places
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import shown

#: The API group, and the key of a ConfigMap that holds such a document.
CONFIGURATIONS, KEY = "config.kueue.x-k8s.io", "controller_manager_config.yaml"
_FAIR = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
#: Feature gates that the policy kueue has as options.
GATES: Mapping[str, str] = {
    "FairSharingPreemptWithinNominal": "preempt_within_nominal",
    "FairSharingPrioritizeNonBorrowing": "prioritize_non_borrowing",
    "TASRecomputeAssignmentWithinSchedulingCycle": "place_again",
}
_TOPOLOGY = "TopologyAwareScheduling"
#: What is read of a Configuration, and why the rest is not.
CONFIGURATION: Mapping[str, str] = (
    {**OBJECT}
    | fields(TAKEN, "fairSharing.enable fairSharing.preemptionStrategies fairSharing")
    | {f"featureGates.{gate}": TAKEN for gate in (*GATES, "PartialAdmission", "AdmissionFairSharing", _TOPOLOGY)}
    | fields(TAKEN, "usageHalfLifeTime usageSamplingInterval resourceWeights.*", "admissionFairSharing.")
    | fields("waiting until pods are ready is not modelled", "waitForPodsReady")
    | fields("other clusters are not in the file", "multiKueue")
    | fields(TAKEN, "resources.excludeResourcePrefixes")
    | fields(
        "resources are read as the Workloads state them",
        "resources.transformations resources.deviceClassMappings resources.quotaCheckStrategy",
    )
    | fields("the rule has its defaults for this gate", "featureGates.*")
    | fields(
        BOOKKEEPING,
        "namespace webhook leaderElection metrics health controller syncPeriod gracefulShutDown pprofBindAddress tls "
        "cacheNamespace internalCertManagement clientConnection integrations objectRetentionPolicies visibilityServer "
        "manageJobsWithoutQueueName managedJobsNamespaceSelector queueVisibility",
    )
)


def uncounted(found: Mapping[str, ObjectPart]) -> tuple[str, ...] | None:
    """Return how the names of resources begin that no quota counts; None where no Configuration is given."""
    prefixes: list[str] = []
    for part in found.values():
        prefixes += listed_in(part.part("resources"), "excludeResourcePrefixes")
    return tuple(prefixes) if found else None


def partly(found: Mapping[str, ObjectPart]) -> bool:
    """Return whether workloads may start with fewer pods: the feature gate PartialAdmission, on by default."""
    return all(part.part("featureGates").flag("PartialAdmission", True) for part in found.values())


def settings_of(found: Mapping[str, ObjectPart], queues: Mapping[str, ImportedQueue], places: Places) -> dict[str, str]:
    """Return what is set for the whole cluster, as options of the policy kueue.

    Fair sharing is on where the Configuration says so, or else where a ClusterQueue's status states its share, which
    Kueue writes only then. Source: clusterqueue_controller.go, updateCqStatusIfChanged.
    """
    if len(found) > 1:
        names = ", ".join(found)
        raise BadInput(
            f"{len(found)} Configurations: {names}", place="kind", remedy="Give the one that Kueue runs under"
        )
    settings: dict[str, str] = {}
    for part in found.values():
        sharing = part.value.get("fairSharing")
        if sharing is not None and part.part("fairSharing").flag("enable", True):
            settings["fair_sharing"] = "true"
            rules = part.part("fairSharing").value.get("preemptionStrategies") or list(_FAIR)
            known = isinstance(rules, list) and tuple(rules) in (_FAIR, _FAIR[:1], _FAIR[1:])
            where = f"{part.place}, fairSharing, preemptionStrategies"
            require(known, shown(rules), where, f"Give {_FAIR[0]}, {_FAIR[1]}, or both in this order")
            settings["strategies"] = ", ".join(rules)
        for gate, option in GATES.items():
            gates = part.part("featureGates")
            if gates.value.get(gate) is not None:
                settings[option] = str(gates.flag(gate, True)).lower()
    shares = [name for name, queue in queues.items() if "weightedShare" in queue.declared]
    if not found and shares:
        settings["fair_sharing"] = "true"
    elif found and shares and "fair_sharing" not in settings:
        why = "the Configuration has no fair sharing, and is taken at its word"
        places.note("ClusterQueue, status.fairSharing", shares[0], "stated", why)
    return settings
