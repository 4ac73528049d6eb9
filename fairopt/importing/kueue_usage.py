"""Admission fair sharing: past use of LocalQueues, by which Kueue orders the workloads of one ClusterQueue.

Source: kubernetes-sigs/kueue ff69552e, pkg/util/admissionfairsharing/admission_fair_sharing.go; apis/config/v1beta2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.importing.documents import AMOUNTS, quantity
from fairopt.importing.kubernetes import Objects
from fairopt.importing.unplaced import Places
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import amount, shown
from fairopt.program import INFINITY, Number

#: What the rule reads of a workload, by its ClusterQueue, its LocalQueue, and what it takes.
Settings = Callable[[str, str, Mapping[str, Fraction]], dict[str, str]]
MODE = "UsageBasedAdmissionFairSharing"
_SECONDS: Mapping[str, Fraction] = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(h|ms|us|µs|ns|m|s)", re.ASCII)


def duration(text: str, place: str) -> Fraction:
    """Return the seconds of a duration as Go writes it. Errors: `BadInput` with the place.

    >>> print(duration("1h30m", "here"), duration("500ms", "here"))
    5400 1/2
    """
    parts = _DURATION.findall(text)
    if text != "0" and (not parts or "".join(number + unit for number, unit in parts) != text):
        raise BadInput(f"got {shown(text)}", place=place, remedy="Give a duration such as 168h or 5m0s")
    return sum((Fraction(number) * _SECONDS[unit] for number, unit in parts), Fraction(0))


@dataclass
class _PastUse:
    """What orders the workloads of ClusterQueues with admission fair sharing.

    ``queues``: those ClusterQueues. ``weight``: of each resource, 1 where it is not named. ``rate``: the part of what a
    workload takes that counts as used when it is admitted. ``used``: by LocalQueue, over its weight (``weights``).
    """

    queues: frozenset[str] = frozenset()
    weight: Mapping[str, Fraction] = field(default_factory=dict)
    rate: Fraction = Fraction(0)
    used: Mapping[str, Number] = field(default_factory=dict)
    weights: Mapping[str, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Objects, places: Places) -> _PastUse:
        """Return what objects say; note what is not known, and what is not modelled. Errors: `BadInput`."""
        queues = [
            name
            for name, part in found["ClusterQueue"].items()
            if part.part("spec").part("admissionScope").text("admissionMode") == MODE
        ]
        stated = any(_status(part).value for part in found["LocalQueue"].values())
        where, given = "ClusterQueue, spec.admissionScope.admissionMode", found["Configuration"]
        sharing = next((part.part("admissionFairSharing") for part in given.values()), None)
        gates = [part.part("featureGates").flag("AdmissionFairSharing", True) for part in given.values()]
        if not queues or (sharing is not None and not (sharing.value and all(gates))):
            return cls()
        if sharing is None and not stated:
            why = "no Configuration is given, and no LocalQueue states past use: taken not to be in force"
            places.note(where, queues[0], MODE, why)
            return cls()
        if sharing is None:
            why = "no Configuration says how fast past use decays: an admission adds nothing to it here"
            places.note(where, queues[0], MODE, why)
            sharing = ObjectPart("Configuration", {})
        for name in queues:
            preemption = found["ClusterQueue"][name].part("spec").part("preemption")
            if preemption.text("withinClusterQueue", "Never") != "Never":
                places.note(where, name, MODE, "who is stopped does not depend on past use here")
        weight = {
            name: amount(each, f"{sharing.place}, resourceWeights, {name}")
            for name, each in sharing.part("resourceWeights").value.items()
        }
        half, step = (
            duration(text, f"{sharing.place}, {key}") if (text := sharing.text(key, blank)) else Fraction(0)
            for key, blank in (("usageHalfLifeTime", ""), ("usageSamplingInterval", "5m"))
        )
        rate = Fraction(1 - 0.5 ** float(step / half)) if half else Fraction(0)
        weights = {
            name: Fraction(1) if each is None else quantity(each, f"{part.place}, spec, fairSharing, weight")
            for name, part in found["LocalQueue"].items()
            for each in [part.at("spec.fairSharing").value.get("weight")]
        }
        known = cls(frozenset(queues), weight, rate, weights=weights)
        known.used = {
            name: known._counted(_status(part).read("consumedResources", AMOUNTS, {}), name)
            for name, part in found["LocalQueue"].items()
        }
        return known

    def _counted(self, amounts: Mapping[str, Fraction], local: str) -> Number:
        """Return amounts as past use of a LocalQueue, over its weight: infinite at weight 0."""
        weight = self.weights.get(local, Fraction(1))
        total = sum((self.weight.get(each, Fraction(1)) * value for each, value in amounts.items()), Fraction(0))
        return total / weight if weight > 0 else INFINITY

    def settings(self, queue: str, local: str, takes: Mapping[str, Fraction]) -> dict[str, str]:
        """Return what the rule reads of a workload of a LocalQueue: this, its past use, and what admission adds.

        Nothing where its ClusterQueue orders by priority and age alone. ``takes``: by resource.
        """
        if queue not in self.queues:
            return {}
        used, adds = self.used.get(local, Fraction(0)), self._counted(takes, local)
        more = adds if adds == INFINITY else Fraction(adds) * self.rate
        return {"local_queue": local, "local_used": str(used), "local_adds": str(more)}


def _status(local: ObjectPart) -> ObjectPart:
    return local.at("status.fairSharing.admissionFairSharingStatus")


def past_use(found: Objects, places: Places) -> tuple[frozenset[str], Settings]:
    """Return which ClusterQueues go by past use, and what of it the rule reads of a workload of theirs."""
    known = _PastUse.of(found, places)
    return known.queues, known.settings
