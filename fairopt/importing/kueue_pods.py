"""The pod sets of Kueue's Workloads: what they take, and on which flavors they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import require
from fairopt.importing.documents import AMOUNTS
from fairopt.importing.kubernetes import pod_requests, requests_text, some_of
from fairopt.importing.kueue_quotas import in_units
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import shown

Amounts = dict[str, Fraction]
#: What of a pod says where it may run.
PLACING = ("nodeSelector", "affinity", "tolerations")
#: What of a status says which pods are left, and what they take.
_LEFT = ("reclaimablePods", "resourceRequests")
#: What else is read of a pod set.
_POD_SET = ("name", "count", "minCount", "topologyRequest")


class PodSet(NamedTuple):
    """Pods that are alike: what all of them take, flavors by resource where they run, their own spec and topology.

    ``number``: how many there are; the workload may start without ``spare`` of them.
    """

    name: str
    amounts: Amounts
    flavors: Mapping[str, str]
    pod: ObjectPart
    topology: ObjectPart
    number: int
    spare: int


def pod_sets_of(spec: ObjectPart, status: ObjectPart, admitted: str, partial: bool) -> Iterator[PodSet]:
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
        yield PodSet(name, amounts, flavors, pod, each.part("topologyRequest"), left, spare)


def text_of(spec: ObjectPart, status: ObjectPart, admitted: str) -> str:
    """Return as a text all that decides which gangs a Workload is; errors as `pod_sets_of`."""
    sets, said = spec.value.get("podSets"), []
    for each in spec.parts("podSets"):
        pod = each.at("template.spec")
        said.append((requests_text(pod), [pod.value.get(key) for key in ("resources", *PLACING)]))
    assigned = status.part("admission").value.get("podSetAssignments") if admitted else None
    more = [some_of(status.value.get(each), "name", "count", "resources") for each in _LEFT]
    own = some_of(sets, *_POD_SET), some_of(assigned, "name", "count", "resourceUsage", "flavors")
    return repr((bool(admitted), said, own, more))
