"""YARN's properties and answers: which are read, the XML that they are in, and a change of entitlements as properties.

Source: Hadoop's CapacityScheduler.md and CapacitySchedulerConfiguration.java; CapacitySchedulerQueueInfo.java,
CapacitySchedulerLeafQueueInfo.java and ClusterMetricsInfo.java of the ResourceManager's webapp/dao.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from html import escape  # that of xml.sax loads what opens addresses of the web
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.parsers import expat

import numpy as np

from fairopt.errors import BadInput, NotCapable, require
from fairopt.importing.documents import SMALL
from fairopt.importing.imported import both_owed
from fairopt.importing.kubernetes import fields
from fairopt.importing.unplaced import BOOKKEEPING, COUNTED, TAKEN
from fairopt.problem import Entitlements, Market
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.numbers import shown
from fairopt.program import INFINITY

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "A queue holds at most maximum-capacity of its parent, and a user user-limit-factor times the capacity",
        "held": "What goes beyond a capacity is preempted where the monitor runs and disable_preemption is unset",
        "promised": "Capacities of one parent add up to what it has, which may be more than the nodes have now",
        "gang": "A container needs all that it asks for on one node",
        "full": "Beyond its capacity a queue has what others leave, up to maximum-capacity",
        "good": "Memory and cores are part of the capacity as GPUs are",
        "nothing": "Queues are served by the part of their capacity that they use, when a node reports",
    }
)

PREFIX, ROOT, GPU = "yarn.scheduler.capacity.", "root", "yarn.io/gpu"
#: What the partition without a label is called.
DEFAULT = "default"
#: A configuration has three levels of elements.
_LEVELS = 10
_APPS = "how many applications may be there at once is not modelled"
_MASTERS = "what application masters may take is not modelled"
_SIZES = "how large one container may be is not modelled"
_PLACING = "which queue an application goes to is read from where it is"
_MADE = "queues that are made later are not there yet"
_WITHIN = "the order of applications and users within a queue is not modelled"
#: Reasons of what keeps no container from starting.
HARMLESS = (_PLACING, _MADE)
_PACE = "how containers are assigned to nodes is not modelled"

#: Of a queue, after its path.
PROPERTIES: Mapping[str, str] = (
    fields(
        TAKEN,
        "queues capacity maximum-capacity accessible-node-labels state priority "
        "accessible-node-labels.<label>.capacity accessible-node-labels.<label>.maximum-capacity "
        "disable_preemption user-limit-factor",
    )
    | fields(COUNTED, "default-node-label-expression")
    | fields(
        _WITHIN,
        "minimum-user-limit-percent ordering-policy user-settings.<user>.weight "
        "ordering-policy.fair.enable-size-based-weight intra-queue-preemption.disable_preemption "
        "default-application-priority maximum-application-lifetime default-application-lifetime",
    )
    | fields(BOOKKEEPING, "acl_submit_applications acl_administer_queue acl_application_max_priority")
    | fields(_APPS, "maximum-applications max-parallel-apps config.")
    | fields(_MASTERS, "maximum-am-resource-percent accessible-node-labels.<label>.maximum-am-resource-percent")
    | fields(_SIZES, "maximum-allocation-mb maximum-allocation-vcores maximum-allocation")
    | fields(_MADE, "auto-create-child-queue.enabled auto-queue-creation-v2.enabled reservable")
)
#: Of the scheduler, after "yarn.scheduler.capacity.".
SCHEDULER: Mapping[str, str] = (
    fields(TAKEN, "user-limit-factor resource-calculator")
    | fields(
        _WITHIN, "minimum-user-limit-percent application.fail-fast per-node-heartbeat.multiple-assignments-enabled"
    )
    | fields(_APPS, "maximum-applications max-parallel-apps user.max-parallel-apps user.<user>.max-parallel-apps")
    | fields(_MASTERS, "maximum-am-resource-percent")
    | fields(
        _PLACING,
        "queue-mappings queue-mappings-override.enable workflow-priority-mappings mapping-rule-format "
        "mapping-rule-json workflow-priority-mappings-override.enable",
    )
    | fields(
        _PACE,
        "node-locality-delay rack-locality-additional-delay schedule-asynchronously.enable "
        "per-node-heartbeat.maximum-offswitch-assignments "
        "per-node-heartbeat.maximum-container-assignments",
    )
    | fields(BOOKKEEPING, "legacy-queue-mode.enabled configuration.store.class")
)


def _resources(names: str, before: str = "") -> dict[str, str]:
    """Return the fields of amounts that are read: what the API's ResourceInfo and ResourceInformation have."""
    each = "resourceInformations.resourceInformation[]."
    return {
        f"{before}{name}.{path}": why
        for name in names.split()
        for why, paths in (
            (TAKEN, f"memory vCores {each}name {each}value"),
            (BOOKKEEPING, f"{each}units {each}resourceType {each}minimumAllocation {each}maximumAllocation"),
            (BOOKKEEPING, f"{each}attributes"),
        )
        for path in paths.split()
    }


_OF_PARTITION = (
    fields(
        TAKEN,
        "partitionName absoluteCapacity absoluteMaxCapacity absoluteUsedCapacity",
    )
    | _resources("effectiveMinResource effectiveMaxResource")
    | fields(
        COUNTED,
        "capacity usedCapacity maxCapacity weight normalizedWeight configuredMinResource "
        "configuredMaxResource queueCapacityVectorInfo",
    )
    | fields(_MASTERS, "maxAMLimitPercentage")
)
_USAGE = fields(TAKEN, "partitionName") | _resources("used pending") | fields(_MASTERS, "amUsed amLimit userAmLimit")
#: Of a queue in the answer of ws/v1/cluster/scheduler.
QUEUE: Mapping[str, str] = (
    fields(TAKEN, "queueName queuePath queuePriority preemptionDisabled userLimitFactor")
    | {"users.user[].*": COUNTED}
    | {f"capacities.queueCapacitiesByPartition[].{name}": why for name, why in _OF_PARTITION.items()}
    | {f"resources.resourceUsagesByPartition[].{name}": why for name, why in _USAGE.items()}
    | {"resources.resourceUsagesByPartition[].reserved": "GPUs reserved for a container that does not fit yet are free"}
    | fields(
        COUNTED,
        "absoluteCapacity absoluteMaxCapacity absoluteUsedCapacity capacity usedCapacity maxCapacity "
        "weight normalizedWeight isAbsoluteResource mode queueType resourcesUsed minEffectiveCapacity "
        "maxEffectiveCapacity numApplications numActiveApplications numPendingApplications numContainers "
        "allocatedContainers reservedContainers pendingContainers nodeLabels queueCapacityVectorInfo "
        "state userLimit",
    )
    | fields(_APPS, "maxApplications maxApplicationsPerUser maxParallelApps")
    | fields(_MASTERS, "AMResourceLimit usedAMResource userAMResourceLimit configuredMaxAMResourceLimit")
    | fields(_SIZES, "maximumAllocation")
    | fields(
        _WITHIN,
        "orderingPolicyInfo defaultPriority intraQueuePreemptionDisabled maxApplicationLifetime "
        "defaultApplicationLifetime defaultNodeLabelExpression",
    )
    | fields(
        _MADE,
        "autoCreateChildQueueEnabled leafQueueTemplate autoCreationEligibility isAutoCreatedLeafQueue "
        "autoQueueTemplateProperties autoQueueParentTemplateProperties autoQueueLeafTemplateProperties",
    )
    | fields(BOOKKEEPING, "type queueAcls hideReservationQueues creationMethod health schedulerName")
)
#: Of clusterMetrics in the answer of ws/v1/cluster/metrics.
METRICS: Mapping[str, str] = (
    fields(TAKEN, "totalMB totalVirtualCores")
    | _resources("totalClusterResourcesAcrossPartition")
    | fields(
        COUNTED,
        "allocatedMB allocatedVirtualCores availableMB availableVirtualCores pendingMB "
        "pendingVirtualCores reservedMB reservedVirtualCores containersAllocated containersPending "
        "containersReserved totalUsedResourcesAcrossPartition totalReservedResourcesAcrossPartition "
        "totalAllocatedContainersAcrossPartition utilizedMBPercent utilizedVirtualCoresPercent "
        "crossPartitionMetricsAvailable",
    )
    | fields(
        BOOKKEEPING,
        "appsSubmitted appsCompleted appsPending appsRunning appsFailed appsKilled totalNodes activeNodes "
        "lostNodes unhealthyNodes decommissioningNodes decommissionedNodes rebootedNodes shutdownNodes "
        "rmSchedulerBusyPercent containerAssignedPerSecond rmEventQueueSize schedulerEventQueueSize",
    )
)


# -- files
def properties(path: AnyPath) -> dict[str, str]:
    """Return the properties of a Hadoop configuration file.

    Errors: `BadInput` with the line for what is no such file, and for document types and entities, which none needs.
    """
    with naming(path):
        size = Path(path).stat().st_size if Path(path).is_file() else 0
        require(size <= SMALL, f"{size} bytes", "the file", f"Give a file of at most {SMALL} bytes")
        return _Reader().read(read_text(path))


class _Reader:
    """Reads the elements of one file."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._inside: list[str] = []
        self._text: dict[str, str] = {}
        self._parser = expat.ParserCreate("utf-8")  # whatever the file says that it was before
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def read(self, text: str) -> dict[str, str]:
        try:
            self._parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            remedy = "Give the capacity-scheduler.xml as it is"
            raise BadInput(f"not XML: {expat.ErrorString(error.code)}", place=self._line(), remedy=remedy) from error
        return self._found

    def _line(self) -> str:
        return f"line {self._parser.CurrentLineNumber}"

    def _refuse(self, *_: object) -> None:
        remedy = "Take it out, and write what its entities stand for"
        raise BadInput("a document type", place=self._line(), remedy=remedy)

    def _start(self, name: str, attributes: object) -> None:
        self._inside.append(name)
        known = (["configuration"], ["configuration", "property"])
        if len(self._inside) > _LEVELS or (len(self._inside) < 3 and self._inside != known[len(self._inside) - 1]):
            got = f"the element {shown(name)}"
            raise BadInput(got, place=self._line(), remedy="Give a <configuration> of <property> elements only")
        if len(self._inside) == 2:
            self._text = {}

    def _characters(self, text: str) -> None:
        if len(self._inside) == 3:
            self._text[self._inside[2]] = self._text.get(self._inside[2], "") + text

    def _end(self, name: str) -> None:
        self._inside.pop()
        if len(self._inside) == 1:
            key = self._text.get("name", "").strip()
            if not key or key in self._found:
                got = f"the property {shown(key)} stands twice" if key else "a property without a name"
                raise BadInput(got, place=self._line(), remedy="Give each property once, with its name")
            self._found[key] = self._text.get("value", "").strip()


# -- changes
def emit(before: Market, after: Market) -> str:
    """Return the properties of capacity-scheduler.xml that change, as a configuration, to replace those of their names.

    Where a queue's capacity changes, all queues beside it are written in amounts, since YARN takes one way of writing
    for the queues below one. Types are partitions, counted in yarn.io/gpu. Maximum capacities are the caps; a
    ``user-limit-factor`` that lowers them stays. Reserves and weights, which YARN has not got, are comments.

    Errors: `BadInput` for a market without entitlements, and for other queues or partitions; `NotCapable` for amounts
    that are not whole.

    Source: Hadoop's CapacityScheduler.md, Configuring Resource Allocation; NodeLabel.md.
    """
    old, new = both_owed(before, after, "queues and partitions")
    lines = [line for node in range(len(new.nodes)) for line in _comments(old, new, node)]
    for node, path in enumerate(new.nodes):
        for what, key in (("guarantee", "capacity"), ("cap", "maximum-capacity")):
            beside = range(len(new.nodes)) if what == "guarantee" else [node]
            same = all(
                np.array_equal(getattr(old, what)[each], getattr(new, what)[each])
                for each in beside
                if new.parent[each] == new.parent[node]
            )
            if not same:
                lines += _amounts(new, getattr(new, what)[node], path, key)
        if old.tier[node] != new.tier[node]:
            lines.append(_property(f"{path}.priority", str(int(new.tier[node]))))
    return f"<configuration>\n{''.join(lines)}</configuration>\n" if lines else ""


def _comments(old: Entitlements, new: Entitlements, node: int) -> Iterator[str]:
    for what in ("reserve", "borrow_weight"):
        if not np.array_equal(getattr(old, what)[node], getattr(new, what)[node]):
            name = new.nodes[node].replace("--", "- -")
            yield f"  <!-- {name}: {what.replace('_', ' ')} changes; YARN has none -->\n"


def _amounts(owed: Entitlements, row: Any, path: str, key: str) -> Iterator[str]:
    """Yield a property for each partition, with all resources of it."""
    for at, label in enumerate(owed.types):
        named = [(GPU, row[at])] + [
            (good.resource, row[len(owed.types) + column])
            for column, good in enumerate(owed.goods)
            if good.flavor == label
        ]
        said = ",".join(f"{name}={_whole(amount, path, key)}" for name, amount in named if amount != INFINITY)
        place = "" if label == DEFAULT else f"accessible-node-labels.{label}."
        yield _property(f"{path}.{place}{key}", f"[{said}]")


def _whole(amount: Any, path: str, key: str) -> int:
    exact = Fraction(amount)
    if exact.denominator != 1:
        raise NotCapable(f"{path}, {key}: {exact} is not whole, and YARN counts in whole units")
    return int(exact)


def _property(name: str, value: str) -> str:
    if not name.startswith(f"{ROOT}."):
        raise BadInput(
            f"got {name!r}", place="queue", remedy="Call queues by their paths, as `fairopt import yarn` does"
        )
    said = (escape(each, quote=False) for each in (PREFIX + name, value))
    return "  <property><name>{}</name><value>{}</value></property>\n".format(*said)
