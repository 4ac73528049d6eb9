"""Quotas of Kueue's ClusterQueues and Cohorts: which flavors are GPU types, and what their status declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from fairopt.errors import BadInput, require
from fairopt.importing.documents import quantity
from fairopt.importing.imported import ImportedQueue
from fairopt.importing.kueue_objects import OPTIONS
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import shown

#: Resources that are taken for GPUs and the like.
_GPUS = re.compile(r"gpu|/mig-|tpu|npu|gaudi|neuron|ascend|accelerator", re.IGNORECASE)


#: Which fields of a quota are which amounts of an `ImportedQueue`, here by `Good`: limits are of what goes over it.
_AMOUNTS = {"nominalQuota": "guarantee", "borrowingLimit": "cap", "lendingLimit": "reserve"}


def read_owner(part: ObjectPart) -> ImportedQueue:
    """Return a ClusterQueue or Cohort of any version, with what it has itself by `Good`, and limits where it has some.

    ``guarantee``: nominal quotas, ``cap``: limits of borrowing, ``reserve``: limits of lending. Errors: `BadInput` that
    names the place.
    """
    spec, status = part.part("spec"), part.part("status")
    found: dict[str, dict[Good, Fraction]] = {amounts: {} for amounts in (*_AMOUNTS.values(), "held")}
    quotas = found["guarantee"]
    for group in spec.parts("resourceGroups"):
        covered = group.value.get("coveredResources") or []
        for flavor in group.parts("flavors"):
            for own in flavor.parts("resources"):
                good = Good(_named(own), _named(flavor))
                require(good not in quotas, f"{good} twice", flavor.place, "Give each flavor and resource once")
                known = isinstance(covered, list) and good.resource in covered
                remedy = "List it in coveredResources of its group"
                require(known, shown(good.resource), f"{own.place}, name", remedy)
                quotas[good] = Fraction(0)
                for key, amounts in _AMOUNTS.items():
                    if (amount := _quantity(own, key)) is not None:
                        found[amounts][good] = in_units(good.resource, amount)
    sharing = status.part("fairSharing")
    declared: dict[str, Any] = {
        key: part.whole(key, 0)
        for part, key in [(sharing, "weightedShare")] * (sharing.value.get("weightedShare") is not None)
        + [(status, f"{each}Workloads") for each in ("pending", "reserving", "admitted")]
        if key in part.value
    }
    for key in ("flavorsUsage", "flavorsReservation"):
        for flavor in status.parts(key):
            for own in flavor.parts("resources"):
                good = Good(_named(own), _named(flavor))
                found["held"][good] = _quantity(own, "total") or Fraction(0)
                declared |= {f"{key} {good} total": found["held"][good]}
                declared |= {f"{key} {good} borrowed": _quantity(own, "borrowed") or Fraction(0)}
    weight = _quantity(spec.part("fairSharing"), "weight")
    return ImportedQueue(
        next((text for key in ("cohortName", "cohort", "parentName", "parent") if (text := spec.text(key))), ""),
        guarantee=found["guarantee"],
        cap=found["cap"],
        reserve=found["reserve"],
        held=found["held"],
        weight=Fraction(1) if weight is None else weight,
        declared=declared,
        settings=settings_of(part) if part.text("kind") == "ClusterQueue" else {},
    )


#: What each option may say; v1beta1 has two more words for one of them. Source: clusterqueue_types.go, enumerations.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "queueing": ("BestEffortFIFO", "StrictFIFO"),
    "when_can_borrow": ("MayStopSearch", "TryNextFlavor"),
    "when_can_preempt": ("MayStopSearch", "TryNextFlavor"),
    "preference": ("BorrowingOverPreemption", "PreemptionOverBorrowing"),
    "reclaim_within_cohort": ("Never", "LowerPriority", "Any"),
    "within_cluster_queue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "borrow_within_cohort": ("Never", "LowerPriority"),
}
_OLDER = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}


def settings_of(part: ObjectPart) -> dict[str, str]:
    """Return what a ClusterQueue sets beside quotas, as options of the policy kueue."""
    found: dict[str, str] = {}
    for path, option in OPTIONS.items():
        before, _, key = path.rpartition(".")
        spec = part.at(f"spec.{before}") if before else part.part("spec")
        if spec.value.get(key) in (None, ""):
            continue
        if option == "max_priority_threshold":
            found[option] = str(spec.whole(key, 0, least=-(2**31)))
            continue
        said = _OLDER.get(spec.text(key), spec.text(key))
        known = said in _WORDS[option]
        require(known, shown(said), f"{spec.place}, {key}", f"Give {', '.join(_WORDS[option])}")
        found[option] = said
    return found


def _named(part: ObjectPart) -> str:
    name = part.text("name")
    require(bool(name), shown(name), f"{part.place}, name", "Give a name")
    return name


def _quantity(part: ObjectPart, key: str) -> Fraction | None:
    found = part.value.get(key)
    if found is None:
        return None
    number = quantity(found, f"{part.place}, {key}")
    require(number >= 0, shown(found), f"{part.place}, {key}", "Give a quantity that is not negative")
    return number


def in_units(resource: str, amount: Fraction) -> Fraction:
    """Return an amount as Kueue counts it: CPU in thousandths, all else in whole units, rounded up.

    Source: Kueue, pkg/resources/requests.go, ResourceValue; Kubernetes, Quantity.Value, which rounds up.

    >>> print(in_units("nvidia.com/gpu", Fraction("1.5")), in_units("cpu", Fraction("1.5")))
    2 3/2
    """
    unit = 1000 if resource == "cpu" else 1
    return amount if unit % amount.denominator == 0 else Fraction(ceil(amount * unit), unit)


class FlavorColumns:
    """Which resource in which flavor is which GPU type, or else which further good.

    A type is a flavor with a resource that is shared (``resource``, else all that look like GPUs); where a flavor has
    several such, the type's name has the resource, too. Flavors of another resource that are no type are one good.
    """

    def __init__(self, owners: Sequence[ImportedQueue], resource: str | None) -> None:
        pairs = list(dict.fromkeys(good for owner in owners for good in owner.guarantee or ()))
        shared = [good for good in pairs if (good.resource == resource if resource else _GPUS.search(good.resource))]
        if not shared:
            known = ", ".join(sorted({good.resource for good in pairs})[:10]) or "nothing"
            asked = f"the resource {resource!r}" if resource else "a resource that looks like GPUs"
            remedy = f"Name the resource to share by resource=; there are quotas of {known}"
            raise BadInput(f"no quota of {asked}", place="ClusterQueue, spec.resourceGroups", remedy=remedy)
        several = {good.flavor for good in shared if sum(good.flavor == other.flavor for other in shared) > 1}
        self.type_of = {
            good: f"{good.flavor} {good.resource}" if good.flavor in several else good.flavor for good in shared
        }
        self.types = tuple(self.type_of.values())
        self.resources = sorted({good.resource for good in shared})
        others = [good for good in pairs if good not in self.type_of]
        elsewhere: dict[str, list[str]] = {}
        for good in others:
            if good.flavor not in self.types:
                elsewhere.setdefault(good.resource, []).append(good.flavor)
        self.merged = {resource: names for resource, names in elsewhere.items() if len(names) > 1}
        self.good_of = {
            good: good if good.flavor in self.types else Good(good.resource, "+".join(elsewhere[good.resource])[:150])
            for good in others
        }
        self.goods = tuple(dict.fromkeys(self.good_of.values()))
        self.counted = {good.resource for good in self.goods}

    def name(self, good: Good) -> str | None:
        """Return the name of the column of a resource in a flavor."""
        if good in self.type_of:
            return self.type_of[good]
        return str(self.good_of[good]) if good in self.good_of else None

    def row(self, amounts: Mapping[Any, Fraction] | None) -> dict[str, Fraction]:
        """Return amounts by column, added up where several goods are one column."""
        found: dict[str, Fraction] = {}
        for good, amount in (amounts or {}).items():
            if (name := self.name(good)) is not None:
                found[name] = found.get(name, Fraction(0)) + amount
        return found

    def limits(self, owner: ImportedQueue) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
        """Return an owner's limits of borrowing and of lending by column; one without a limit is left out.

        Of several goods that are one column, all must be limited in borrowing, or one in lending.
        """
        nominal, borrowing, lending = owner.guarantee or {}, owner.cap or {}, owner.reserve or {}
        free = {self.name(good) for good in nominal if good not in borrowing}
        limited = {self.name(good) for good in lending}
        lent = {good: lending.get(good, amount) for good, amount in nominal.items() if self.name(good) in limited}
        return {name: most for name, most in self.row(borrowing).items() if name not in free}, self.row(lent)
