"""The pod sets of Kueue's Workloads: what they take, and on which flavors they run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.documents import AMOUNTS
from fairopt.importing.kubernetes import key_of, pod_requests, requests_in, some_of
from fairopt.importing.kueue_quotas import in_units
from fairopt.numbers import in_full
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import shown

Amounts = dict[str, Fraction]
#: What of a pod says where it may run.
PLACING = ("nodeSelector", "affinity", "tolerations")
#: What of a status says which pods are left, and what they take.
_LEFT = ("reclaimablePods", "resourceRequests")
#: What else is read of a pod set, of its pods, and of where it was let run.
_POD_SET, _OF_POD = ("name", "count", "minCount", "topologyRequest"), ("resources", *PLACING)
_ASSIGNED = ("name", "count", "resourceUsage", "flavors", "topologyAssignment")


class PodSet(NamedTuple):
    """Pods that are alike: what all of them take, flavors by resource where they run, their own spec and topology.

    ``number``: how many there are; the workload may start without ``spare`` of them. ``placed``: where they are in the
    topology.
    """

    name: str
    amounts: Amounts
    flavors: Mapping[str, str]
    pod: ObjectPart
    topology: ObjectPart
    number: int
    spare: int
    placed: ObjectPart


def pod_sets_of(spec: ObjectPart, status: ObjectPart, admitted: bool, partial: bool) -> Iterator[PodSet]:
    """Yield the pod sets of a Workload; ``partial``: whether it may start with fewer pods."""
    assigned = {each.text("name", "main"): each for each in status.part("admission").parts("podSetAssignments")}
    done = {each.text("name", "main"): each.whole("count", 0) for each in status.parts("reclaimablePods")}
    told = {each.text("name", "main"): each.read("resources", AMOUNTS, {}) for each in status.parts("resourceRequests")}
    for each in spec.parts("podSets"):
        name, count = each.text("name", "main"), each.whole("count", 1)
        left = max(0, count - done.get(name, 0))
        pod = each.at("template.spec")
        flavors: Mapping[str, Any] = {}
        if admitted:
            # pkg/workload/workload.go, totalRequestsFromAdmission: pods that are done give their part back
            own = assigned.get(name, ObjectPart(each.place, {}))
            count = own.whole("count", count)
            amounts, flavors = own.read("resourceUsage", AMOUNTS, {}), own.part("flavors").value
            for resource, flavor in flavors.items():
                require(isinstance(flavor, str), shown(flavor), f"{own.place}, flavors, {resource}", "Give a name")
        elif name in told:
            amounts, count = told[name], left
        else:
            takes = pod_requests(pod)
            own = pod.part("resources")  # of the whole pod
            takes |= own.read("limits", AMOUNTS, {}) | own.read("requests", AMOUNTS, {})
            amounts = {key: in_units(key, value) for key, value in takes.items()}
            amounts = amounts if left == 1 else {key: value * left for key, value in amounts.items()}
            amounts["pods"], count = Fraction(left), left
        if left < count:
            amounts = {resource: amount / count * left for resource, amount in amounts.items()}
        spare = 0 if admitted or not partial else max(0, left - each.whole("minCount", left))
        placed = assigned.get(name, ObjectPart(each.place, {})).part("topologyAssignment")
        yield PodSet(name, amounts, flavors, pod, each.part("topologyRequest"), left, spare, placed)


def conditions_of(status: ObjectPart) -> dict[str, str]:
    """Return the status of each condition by its type."""
    found = status.value.get("conditions")
    if type(found) is list and all(
        type(each) is dict and type(each.get("type")) is type(each.get("status")) is str for each in found
    ):  # nearly always
        return {each["type"]: each["status"] for each in found}
    return {each.text("type"): each.text("status") for each in status.parts("conditions")}


def text_of(spec: ObjectPart, status: ObjectPart, admitted: str, *, in_full: bool = False) -> str | bytes:
    """Return what stands for all that decides which gangs a Workload is; errors as `pod_sets_of`.

    ``in_full``: for its pods as they are written, too, which takes less long.
    """
    sets = spec.value.get("podSets")
    assigned = status.part("admission").value.get("podSetAssignments") if admitted else None
    left = list(map(status.value.get, _LEFT))
    if in_full:
        return key_of([bool(admitted), sets, assigned, left])
    said = []
    for each in spec.parts("podSets"):
        pod = each.at("template.spec").value
        said.append([*requests_in(pod), *map(pod.get, _OF_POD)])
    more = [some_of(each, ("name", "count", "resources")) for each in left]
    return key_of([bool(admitted), said, some_of(sets, _POD_SET), some_of(assigned, _ASSIGNED), more])


def fewer_pods_of(
    pod_sets: Iterable[PodSet], shared_ones: Sequence[str], notes: list[tuple[str, str, str]]
) -> dict[str, str]:
    """Return without how many pods a Workload may start, and what one of them takes, as the rule's setting.

    ``shared_ones``: the resources that are GPUs here. ``notes`` get what has no place.

    Source: pkg/scheduler/flavorassigner/podset_reducer.go.
    """
    said = []
    for pods in pod_sets:
        one = {each: amount / pods.number for each, amount in pods.amounts.items() if pods.spare}
        shared = {"gpu": sum((one.pop(each) for each in shared_ones if each in one), Fraction(0))}
        if shared["gpu"].denominator != 1:
            why = "partial admission is not modelled where one pod takes a part of what is shared"
            notes.append(("Workload, spec.podSets[].minCount", in_full(shared["gpu"]), why))
            return {}
        takes = ", ".join(f"{each} {amount}" for each, amount in (shared | one).items() if amount)
        said += [f"{pods.spare}: {takes}"] * bool(pods.spare)
    return {"fewer_pods": "; ".join(said)} if said else {}


def beyond_limits(pod: ObjectPart) -> str:
    """Return a resource of which a container of a pod asks for more than its limit; "" where there is none.

    Source: pkg/workload/validation.go, requests must not exceed limits.
    """
    for kind in ("containers", "initContainers"):
        for container in pod.parts(kind):
            own = container.part("resources")
            asked, most = own.read("requests", AMOUNTS, {}), own.read("limits", AMOUNTS, {})
            if over := next((each for each, limit in most.items() if asked.get(each, 0) > limit), ""):
                return over
    return ""


def fits_flavor(pod: ObjectPart, flavor: ObjectPart) -> bool:
    """Return whether pods may run on nodes of a flavor.

    Source: flavorassigner.go, checkFlavorForPodSets and flavorSelector: only labels that the flavor has count.
    """
    spec = flavor.part("spec")
    labels, tolerated = spec.part("nodeLabels").value, [*pod.parts("tolerations"), *spec.parts("tolerations")]
    taints = [
        each.value for each in spec.parts("nodeTaints") if each.value.get("effect") in ("NoSchedule", "NoExecute")
    ]
    if not all(any(tolerates(each.value, taint) for each in tolerated) for taint in taints):
        return False
    selector = pod.part("nodeSelector").value
    if any(labels.get(key) != value for key, value in selector.items() if key in labels):
        return False
    terms = []
    required = pod.at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    for term in required.parts("nodeSelectorTerms"):
        about = [each for each in term.parts("matchExpressions") if each.text("key") in labels]
        if not about:
            return True  # such a term matches every node
        terms.append(about)
    return not terms or any(all(matches(each, labels) for each in term) for term in terms)


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Source: Kubernetes, component-helpers/scheduling/corev1/helpers.go."""
    if any(toleration.get(key) not in (None, "", taint.get(key)) for key in ("effect", "key")):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value") == taint.get("value")


def matches(expression: ObjectPart, labels: Mapping[str, Any]) -> bool:
    """Return whether labels match an expression of a node selector."""
    key, operator = expression.text("key"), expression.text("operator")
    if key not in labels:
        return operator in ("NotIn", "DoesNotExist")
    own = labels[key]
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
