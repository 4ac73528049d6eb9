"""Kueue's Workloads as gangs: what each pod set takes, on which flavor it runs, and which flavors it tolerates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.fields import ObjectPart
from fairopt.importing.kueue_quotas import counted
from fairopt.problem.numbers import MOST_GPUS, shown

Amounts = dict[str, Fraction]


class Flavor(NamedTuple):
    """A ResourceFlavor: the labels and taints of its nodes, and what it tolerates itself."""

    labels: Mapping[str, Any]
    taints: Sequence[Mapping[str, Any]]
    tolerations: Sequence[Mapping[str, Any]]


class PodSet(NamedTuple):
    """Pods that are alike: what all of them take, the flavor by resource where they run, and the pods' own spec."""

    name: str
    amounts: Amounts
    flavors: Mapping[str, str]
    pod: ObjectPart

    def fits(self, flavor: Flavor) -> bool:
        """Return whether the pods may run on nodes of a flavor.

        Source: flavorassigner.go, checkFlavorForPodSets and flavorSelector: only labels that the flavor has count.
        """
        tolerated = [*(each.value for each in self.pod.parts("tolerations")), *flavor.tolerations]
        hard = [taint for taint in flavor.taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
        if not all(any(_tolerates(each, taint) for each in tolerated) for taint in hard):
            return False
        selector = self.pod.part("nodeSelector").value
        if any(flavor.labels.get(key) != value for key, value in selector.items() if key in flavor.labels):
            return False
        required = self.pod.part("affinity").part("nodeAffinity").part("requiredDuringSchedulingIgnoredDuringExecution")
        terms = []
        for term in required.parts("nodeSelectorTerms"):
            about = [each for each in term.parts("matchExpressions") if each.text("key") in flavor.labels]
            if not about:
                return True  # such a term matches every node
            terms.append(about)
        return not terms or any(all(_matches(each, flavor.labels) for each in term) for term in terms)


class ReadWorkload(NamedTuple):
    """A Workload: whose it is, what it takes and where it is; ``let_run``: no admission check holds it any more."""

    name: str
    local_queue: tuple[str, str]
    admitted: str
    priority: int
    since: int
    pod_sets: tuple[PodSet, ...]
    let_run: bool = True


def read_workload(part: ObjectPart) -> ReadWorkload | str:
    """Return a Workload, or why it neither runs nor waits. Errors: `BadInput` that names the place."""
    metadata, spec, status = part.part("metadata"), part.part("spec"), part.part("status")
    if any(each.text("type") == "Finished" and each.text("status") == "True" for each in status.parts("conditions")):
        return "it is finished"
    admission = status.part("admission")
    assigned = {each.text("name", "main"): each for each in admission.parts("podSetAssignments")}
    admitted = admission.text("clusterQueue")
    if not admitted and not spec.flag("active", True):
        return "it is deactivated, and not queued"
    done = {each.text("name", "main"): each.whole("count", 0) for each in status.parts("reclaimablePods")}
    told = {each.text("name", "main"): each.amounts("resources") for each in status.parts("resourceRequests")}
    found = []
    for each in spec.parts("podSets"):
        name, count = each.text("name", "main"), each.whole("count", 1)
        left = max(0, count - done.get(name, 0))
        pod = each.part("template").part("spec")
        if admitted:
            # pkg/workload/workload.go, totalRequestsFromAdmission: pods that are done give their part back
            own = assigned.get(name, ObjectPart(each.place, {}))
            count = own.whole("count", count)
            amounts, flavors = own.amounts("resourceUsage"), own.part("flavors").value
            for resource, flavor in flavors.items():
                require(isinstance(flavor, str), shown(flavor), f"{own.place}, flavors, {resource}", "Give a name")
        elif name in told:
            amounts, flavors, count = told[name], {}, left
        else:
            takes = {key: counted(key, value) or Fraction(0) for key, value in _pod_requests(pod).items()}
            amounts, flavors = {key: value * left for key, value in takes.items()}, {}
            amounts["pods"] = Fraction(left)
            count = left
        if left < count:
            amounts = {resource: amount / count * left for resource, amount in amounts.items()}
        found.append(PodSet(name, amounts, flavors, pod))
    namespace = metadata.text("namespace")
    return ReadWorkload(
        f"{namespace}/{metadata.text('name')}".lstrip("/"),
        (namespace, spec.text("queueName")),
        admitted,
        spec.whole("priority", 0, least=-(2**31)),
        metadata.seconds("creationTimestamp"),
        tuple(found),
        all(each.text("status") == "True" for each in status.parts("conditions") if each.text("type") == "Admitted"),
    )


def _pod_requests(pod: ObjectPart) -> Amounts:
    """Return what one pod takes: its containers together, or its largest init container, and its overhead.

    Source: Kubernetes, component-helpers/resource/helpers.go, PodRequests; a limit stands in for a missing request.
    """
    total: Amounts = {}
    for each in pod.parts("containers"):
        _add(total, _requests(each))
    peak: Amounts = {}
    beside: Amounts = {}
    for each in pod.parts("initContainers"):
        own = _requests(each)
        if each.text("restartPolicy") == "Always":  # it runs on beside the containers
            _add(beside, own)
            own = {}
        for resource in {*own, *beside}:
            at_once = own.get(resource, Fraction(0)) + beside.get(resource, Fraction(0))
            peak[resource] = max(peak.get(resource, Fraction(0)), at_once)
    _add(total, beside)
    total = {key: max(total.get(key, Fraction(0)), peak.get(key, Fraction(0))) for key in (*total, *peak)}
    total |= _requests(pod)
    _add(total, pod.amounts("overhead"))
    return total


def _requests(part: ObjectPart) -> Amounts:
    own = part.part("resources")
    return own.amounts("limits") | own.amounts("requests")


def _add(total: Amounts, more: Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Fraction(0)) + amount


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Source: Kubernetes, component-helpers/scheduling/corev1/helpers.go."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value") == taint.get("value")


def _matches(expression: ObjectPart, labels: Mapping[str, Any]) -> bool:
    """Return whether labels, which have the key, match an expression of a node selector."""
    own, operator = labels[expression.text("key")], expression.text("operator")
    values = expression.value.get("values") or []
    require(isinstance(values, list), shown(values), f"{expression.place}, values", "Give a list")
    if operator in ("Gt", "Lt"):
        numbers = [str(each) for each in (own, *values[:1])]
        if len(numbers) < 2 or not all(re.fullmatch(r"-?\d{1,18}", each) for each in numbers):
            return False
        return int(numbers[0]) > int(numbers[1]) if operator == "Gt" else int(numbers[0]) < int(numbers[1])
    known = {"In": own in values, "NotIn": own not in values, "Exists": True, "DoesNotExist": False}
    if operator not in known:
        remedy = "Give In, NotIn, Exists, DoesNotExist, Gt or Lt"
        raise BadInput(f"got {shown(operator)}", place=f"{expression.place}, operator", remedy=remedy)
    return known[operator]


def whole_gpus(amount: Fraction, place: str) -> int:
    """Return a number of GPUs. Errors: `BadInput` for parts of one, and for absurdly many."""
    if amount.denominator != 1 or amount > MOST_GPUS:
        remedy = f"A gang takes whole units, at most {MOST_GPUS}; resource= names another resource to share"
        raise BadInput(f"got {shown(amount)}", place=place, remedy=remedy)
    return int(amount)
