"""A market with entitlements as Kueue's quotas and workloads, in integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.kueue.quotas import UNLIMITED, CohortQuotas, Needs
from fairopt.models.kueue.state import QueuedWork
from fairopt.problem import Entitlements
from fairopt.problem.entitled_rows import Good, own_part
from fairopt.program import INFINITY, Array

#: What the GPUs of all types are called, as the resource that they are.
GPU = "gpu"


def quotas_of(owed: Entitlements) -> tuple[CohortQuotas, Array]:
    """Return the quotas, with what is held besides gangs in use, and the units of each column.

    A guarantee is a nominal quota (a group's less that of its members), a cap less the guarantee a borrowing limit, a
    guarantee less the reserve a lending limit. An amount times its column's unit is an integer; flavors of a resource
    have one unit. Errors: `NotCapable` for what no ClusterQueue or Cohort says.
    """
    own = own_part(owed.guarantee, owed.children)
    for broken, what in ((own < 0, "less than its members together"), (owed.cap < owed.guarantee, "a cap below it")):
        for node, column in np.argwhere(broken)[:1]:
            said = f"{owed.nodes[node]!r} has a guarantee of {owed.guarantee[node, column]} {owed.columns[column]}"
            raise NotCapable(f"Kueue has no such quota: {said}, and {what}")
    resource = [GPU] * len(owed.types) + [good.resource for good in owed.goods]
    tables = (own, owed.cap, owed.reserve, owed.held)
    unit_of = dict.fromkeys(resource, 1)
    for column, name in enumerate(resource):
        parts = {each.denominator for table in tables for each in table[:, column] if each != INFINITY}
        unit_of[name] = lcm(unit_of[name], *parts)
    for at, name in enumerate(owed.gangs.resources):
        if name in unit_of:
            unit_of[name] = lcm(unit_of[name], *{each.denominator for each in owed.gangs.other[:, at]})
    units = [unit_of[name] for name in resource]

    def whole(row: Array) -> list[int]:
        return [UNLIMITED if each == INFINITY else int(each * unit) for each, unit in zip(row, units, strict=True)]

    rows = range(len(owed.nodes))
    guaranteed, caps, reserves = (
        [whole(table[node]) for node in rows] for table in (owed.guarantee, owed.cap, owed.reserve)
    )
    quotas = CohortQuotas(
        owed.parent.tolist(),
        resource,
        [whole(own[node]) for node in rows],
        [
            [None if limit == UNLIMITED else limit - least for limit, least in zip(caps[n], guaranteed[n], strict=True)]
            for n in rows
        ],
        [
            [None if kept == 0 else least - kept for kept, least in zip(reserves[n], guaranteed[n], strict=True)]
            for n in rows
        ],
        [Fraction(each) for each in owed.borrow_weight],
    )
    for user, row in enumerate(owed.held):
        quotas.add(user, [(column, amount) for column, amount in enumerate(whole(row)) if amount])
    return quotas, np.array(units, dtype=object)


def works_of(owed: Entitlements, units: Array) -> list[QueuedWork]:
    """Return the gangs as workloads, in their order."""
    gangs = owed.gangs
    at = {good: len(owed.types) + column for column, good in enumerate(owed.goods)}
    # of each resource and type: the column, and whether it is of another flavor
    column_of = [
        [(owed.good(resource, kind), at.get(Good(resource, name)) is None) for kind, name in enumerate(owed.types)]
        for resource in gangs.resources
    ]
    moments = {moment: place for place, moment in enumerate(sorted(set(gangs.since)))}
    asked: dict[tuple[object, ...], Mapping[int, tuple[Needs, Needs]]] = {}
    kinds: dict[tuple[object, ...], int] = {}
    works = []
    columns = (gangs.user, gangs.gpus, gangs.other, gangs.on, gangs.tier, gangs.preemptible)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (user, gpus, other, on, tier, preemptible) in enumerate(rows):
        same = (gpus, tuple(other), gangs.allowed[number].tobytes())
        if same not in asked:
            allowed = np.flatnonzero(gangs.allowed[number]).tolist()
            asked[same] = {kind: _needs(kind, gpus, other, column_of, units) for kind in allowed}
        since = moments[gangs.since[number]]
        works.append(
            QueuedWork(
                gangs.names[number],
                user,
                tier,
                since,
                number,
                asked[same],
                kind=kinds.setdefault((user, *same), len(kinds)),
                preemptible=preemptible,
                admitted=since,
                flavor=on if on >= 0 else None,
            )
        )
    return works


def _needs(
    kind: int, gpus: int, other: Sequence[Any], column_of: list[list[tuple[int | None, bool]]], units: Array
) -> tuple[Needs, Needs]:
    """Return what a gang takes on a type: of the flavor, and elsewhere."""
    own: list[tuple[int, int]] = [(kind, gpus * units[kind])] if gpus else []
    apart: list[tuple[int, int]] = []
    for place, amount in enumerate(other):
        column, elsewhere = column_of[place][kind]
        if column is not None and amount:
            (apart if elsewhere else own).append((column, int(amount * units[column])))
    return tuple(own), tuple(apart)
