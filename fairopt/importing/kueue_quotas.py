"""Quotas of Kueue's ClusterQueues and Cohorts: which flavors are GPU types, and what their status declares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.documents import ObjectPart, quantity
from fairopt.problem.entitled_rows import Good
from fairopt.problem.numbers import shown

#: Resources that are taken for GPUs and the like.
_GPUS = re.compile(r"gpu|/mig-|tpu|npu|gaudi|neuron|ascend|accelerator", re.IGNORECASE)


class Quota(NamedTuple):
    """What a ClusterQueue or Cohort has of one resource in one flavor; None for no limit."""

    nominal: Fraction = Fraction(0)
    borrowing: Fraction | None = None
    lending: Fraction | None = None

    def __add__(self, other: Quota) -> Quota:  # type: ignore[override]
        """Return both together."""
        return Quota(
            self.nominal + other.nominal,
            None if self.borrowing is None or other.borrowing is None else self.borrowing + other.borrowing,
            None
            if self.lending is None and other.lending is None
            else sum((each.nominal if each.lending is None else each.lending for each in (self, other)), Fraction(0)),
        )


class QuotaOwner(NamedTuple):
    """A ClusterQueue or a Cohort."""

    name: str
    parent: str
    quotas: dict[Good, Quota]
    weight: Fraction
    stopped: str
    declared: dict[str, Any]
    reserved: dict[Good, Fraction]


def read_owner(part: ObjectPart) -> QuotaOwner:
    """Return a ClusterQueue or Cohort of any version. Errors: `BadInput` that names the place."""
    spec, status = part.part("spec"), part.part("status")
    quotas: dict[Good, Quota] = {}
    for group in spec.parts("resourceGroups"):
        covered = group.value.get("coveredResources") or []
        for flavor in group.parts("flavors"):
            for own in flavor.parts("resources"):
                good = Good(_named(own), _named(flavor))
                require(good not in quotas, f"{good} twice", flavor.place, "Give each flavor and resource once")
                known = isinstance(covered, list) and good.resource in covered
                remedy = "List it in coveredResources of its group"
                require(known, shown(good.resource), f"{own.place}, name", remedy)
                keys = ("nominalQuota", "borrowingLimit", "lendingLimit")
                nominal, *limits = (in_units(good.resource, _quantity(own, key)) for key in keys)
                quotas[good] = Quota(nominal or Fraction(0), *limits)
    sharing = status.part("fairSharing")
    declared: dict[str, Any] = {
        key: part.whole(key, 0)
        for part, key in [(sharing, "weightedShare")] * (sharing.value.get("weightedShare") is not None)
        + [(status, f"{each}Workloads") for each in ("pending", "reserving", "admitted")]
        if key in part.value
    }
    reserved: dict[Good, Fraction] = {}
    for key in ("flavorsUsage", "flavorsReservation"):
        for flavor in status.parts(key):
            for own in flavor.parts("resources"):
                good = Good(_named(own), _named(flavor))
                reserved[good] = _quantity(own, "total") or Fraction(0)
                declared |= {f"{key} {good} total": reserved[good]}
                declared |= {f"{key} {good} borrowed": _quantity(own, "borrowed") or Fraction(0)}
    weight = _quantity(spec.part("fairSharing"), "weight")
    policy = spec.text("stopPolicy", "None")
    return QuotaOwner(
        part.part("metadata").text("name"),
        next((text for key in ("cohortName", "cohort", "parentName", "parent") if (text := spec.text(key))), ""),
        quotas,
        Fraction(1) if weight is None else weight,
        "" if policy == "None" else policy,
        declared,
        reserved,
    )


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


def in_units(resource: str, amount: Fraction | None) -> Fraction | None:
    """Return an amount as Kueue counts it: CPU in thousandths, all else in whole units, rounded up.

    Source: Kueue, pkg/resources/requests.go, ResourceValue; Kubernetes, Quantity.Value, which rounds up.

    >>> print(in_units("nvidia.com/gpu", Fraction("1.5")), in_units("cpu", Fraction("1.5")))
    2 3/2
    """
    unit = 1000 if resource == "cpu" else 1
    return None if amount is None else Fraction(ceil(amount * unit), unit)


class FlavorColumns:
    """Which resource in which flavor is which GPU type, or else which further good.

    A type is a flavor with a resource that is shared (``resource``, else all that look like GPUs); where a flavor has
    several such, the type's name has the resource, too. Flavors of another resource that are no type are one good.
    """

    def __init__(self, owners: Sequence[QuotaOwner], resource: str | None) -> None:
        pairs = list(dict.fromkeys(good for owner in owners for good in owner.quotas))
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

    def quotas(self, owner: QuotaOwner) -> dict[str, Quota]:
        """Return an owner's quotas by column."""
        found: dict[str, Quota] = {}
        for good, own in owner.quotas.items():
            name = self.name(good)
            assert name is not None
            found[name] = found[name] + own if name in found else own
        return found

    def sums(self, owners: Iterable[QuotaOwner]) -> dict[str, Fraction]:
        """Return the nominal quota of all owners together by column."""
        total = dict.fromkeys((*self.types, *map(str, self.goods)), Fraction(0))
        for owner in owners:
            for good, own in owner.quotas.items():
                total[str(self.name(good))] += own.nominal
        return total
