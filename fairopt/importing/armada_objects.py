"""Armada's objects: which fields are read, and a change of entitlements as the Queues that Armada takes.

Source: armadaproject/armada at 207cc9e0: pkg/api/submit.proto (Queue, Job, JobSubmitRequestItem), pkg/api/job.proto
(JobDetails, JobRunDetails), internal/common/types/scheduling.go (PriorityClass), internal/scheduler/configuration
(SchedulingConfig); Kubernetes, core/v1 (Node, PodSpec).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from fairopt.discovery import library
from fairopt.errors import BadInput, NotCapable
from fairopt.importing.imported import both_owed
from fairopt.importing.kubernetes import NODE, fields, pod_fields
from fairopt.importing.unplaced import BOOKKEEPING, TAKEN
from fairopt.problem import Market
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import amount, shown

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "maximumResourceFractionPerQueue of a priority class limits a queue's part of each resource",
        "held": "Preemptible jobs of queues beyond protectedFractionOfFairShare may be evicted in a scheduling round",
        "promised": "Fair shares divide what there is by 1 / priorityFactor among queues that want more",
        "gang": "Jobs of one gang start together",
        "full": "No queue has a guarantee: whose share is the smallest for its priorityFactor is next",
        "good": "CPU and memory count for the share of a queue as GPUs do",
        "nothing": "A round starts so many jobs at most, whose queue has the smallest share first",
    }
)

_PLACING = "where on the nodes a pod may run is known by GPU type only"
_RATES = "how many jobs are started in a cycle or a second is not modelled"
_POOLS = "one pool is read: all nodes together"
_MARKET = "scheduling by price is not modelled"
_TIME, _IGNORED, _REQUESTS = "how long a job runs is not known", "Armada ignores it", "requests are what counts"
_ALLOCATABLE, _WHATEVER = "what is allocatable counts", "a node counts whatever its conditions"
#: What is said of places for pods, where the scheduler looks at them.
UNCOUNTED = "how many pods a node has places for is not counted"
#: Reasons of what keeps no job from starting.
HARMLESS = (_TIME, _IGNORED, _REQUESTS, _ALLOCATABLE, _WHATEVER)


def _pod(before: str) -> dict[str, str]:
    """Return the fields of a PodSpec."""
    return (
        pod_fields(before, _PLACING)
        | fields(TAKEN, "priorityClassName nodeSelector", before)
        | fields(_TIME, "activeDeadlineSeconds", before)
    )


#: Of a job, as it is submitted (JobSubmitRequestItem) and as it is kept (Job).
_SPEC = (
    fields(TAKEN, "priority requiredNodeLabels schedulingResourceRequirements.requests created")
    | {"schedulingResourceRequirements.limits": _REQUESTS}
    | fields(TAKEN, "armadaproject.io/gangId armadaproject.io/gangCardinality", "annotations.")
    | {
        "annotations.armadaproject.io/gangNodeUniformityLabel": "how near a gang's nodes are is not modelled",
        "annotations.armadaproject.io/pool": _POOLS,
        "annotations.armadaproject.io/priceBand": _MARKET,
        "annotations.armadaproject.io/failFast": BOOKKEEPING,
    }
    | _pod("podSpec.")
    | _pod("podSpecs[].")
    | fields("several schedulers are not modelled", "scheduler")
    | fields(BOOKKEEPING, "id clientId jobSetId queue namespace labels owner queueOwnershipUserGroups")
    | fields(BOOKKEEPING, "compressedQueueOwnershipUserGroups ingress services k8sIngress k8sService")
)
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue": fields(TAKEN, "apiVersion kind name priorityFactor cordoned resourceLimitsByPriorityClassName")
    | fields(BOOKKEEPING, "permissions userOwners groupOwners labels labelsDeprecated retryPolicies")
    | {"resourceLimits": _IGNORED},
    "submitted job": _SPEC | fields(BOOKKEEPING, "externalJobUri"),
    "job": fields(TAKEN, "jobId queue state submittedTs latestRunId")
    | fields(TAKEN, "runId jobId node state", "jobRuns[].")
    | {f"jobSpec.{name}": why for name, why in _SPEC.items()}
    | fields(BOOKKEEPING, "jobset namespace cancelTs cancelReason cancelUser lastTransitionTs")
    | fields(BOOKKEEPING, "cluster leasedTs pendingTs startedTs finishedTs ingressAddresses", "jobRuns[]."),
    "scheduling": fields(TAKEN, "priorityClasses defaultPriorityClassName dominantResourceFairnessResourcesToConsider")
    | fields(TAKEN, "protectedFractionOfFairShare enablePreferLargeJobOrdering respectNodePodLimits")
    | fields(_POOLS, "pools maximumResourceFractionToScheduleByPool")
    | fields(
        _RATES,
        "maximumResourceFractionToSchedule maximumSchedulingRate maximumSchedulingBurst maximumPerQueueSchedulingRate "
        "maximumPerQueueSchedulingBurst maxQueueLookback",
    )
    | fields(_MARKET, "experimentalIndicativePricing experimentalIndicativeShare")
    | fields(
        BOOKKEEPING,
        "supportedResourceTypes disableScheduling disableIndependentPoolFailures maxSchedulingDuration "
        "enableAssertions nodeIdLabel priorityClassNameOverride "
        "maxJobSchedulingContextsPerExecutor maxRetries retryPolicy indexedResources indexedNodeLabels indexedTaints "
        "executorTimeout maxUnacknowledgedJobsPerExecutor executorUpdateFrequency wellKnownNodeTypes",
    ),
    "priority class": fields(TAKEN, "priority preemptible maximumResourceFractionPerQueue")
    | {
        "maximumResourceFractionPerQueueByPool": _POOLS,
        "awayNodeTypes": "running on nodes of other kinds at a lower priority is not modelled",
    },
    "Node": {**NODE}
    | {
        "spec.taints": _PLACING,
        "status.capacity": _ALLOCATABLE,
        "status.conditions": _WHATEVER,
    },
}


def number_in(part: ObjectPart, key: str, blank: int = 0) -> Fraction:
    """Return the number there, which is not negative. Errors: `BadInput` with the place."""
    found, place = part.value.get(key, blank), f"{part.place}, {key}"
    try:
        return amount(found, place)
    except BadInput as error:
        remedy = "Give a number that is not negative, such as 1 or 0.5"
        raise BadInput(f"got {shown(found)}", place=place, remedy=remedy) from error


def emit(before: Market, after: Market) -> str:
    """Return the changed queues as YAML, one document each, as ``armadactl get queue`` prints them; "" for no change.

    A queue's priority factor is one over its weight. Other fields are to be taken from what ``armadactl get queue``
    prints, since Armada replaces a queue as a whole. What a queue has not got (guarantees, reserves, tiers), and caps,
    which are limits by priority class, are lines that begin with "#".

    Errors: `BadInput` for a market without entitlements, or other queues; `NotCapable` for a weight such that one over
    it is no decimal number.

    Source: armadaproject/armada at 207cc9e0, pkg/api/submit.proto (Queue), pkg/client/resource.go, example/queue.yaml.
    """
    old, new = both_owed(before, after, "queues and types")
    yaml = library("yaml", "Armada's objects", "import")
    lines, made = [], []
    for node, name in enumerate(new.nodes):
        for what, why in (
            ("guarantee", "Armada guarantees nothing"),
            ("reserve", "Armada reserves nothing"),
            ("tier", "priorities are those of jobs"),
            ("cap", "limits are by priority class: set resourceLimitsByPriorityClassName"),
        ):
            if not np.array_equal(getattr(old, what)[node], getattr(new, what)[node]):
                lines.append(f"# {name}: {what} changes; {why}\n")
        if old.borrow_weight[node] != new.borrow_weight[node]:
            header = {"apiVersion": "armadaproject.io/v1beta1", "kind": "Queue", "name": name}
            made.append(header | {"priorityFactor": _factor(name, new.borrow_weight[node])})
    return "".join(lines) + (yaml.safe_dump_all(made, sort_keys=False) if made else "")


def _factor(name: str, weight: object) -> float:
    """Return a priority factor that says exactly one over the weight."""
    exact = Fraction(str(weight))
    if exact <= 0:
        raise BadInput(f"got {exact}", place=f"queue {name!r}, weight", remedy="Give a weight above 0")
    factor = float(1 / exact)
    if Fraction(repr(factor)) != 1 / exact:
        raise NotCapable(
            f"{name!r}: one over the weight {exact} is no short decimal number, which a priority factor is"
        )
    return factor
