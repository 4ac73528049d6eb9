"""A change of entitlements as the Queue objects that Volcano takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput, NotCapable
from fairopt.importing.volcano import CLUSTER, ROOT
from fairopt.numbers import in_full
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY


def emit(before: Market, after: Market) -> str:
    """Return the changed Queue objects as JSON that ``kubectl apply --server-side -f`` takes.

    A queue that is the same in both markets is left out. ``guarantee`` becomes ``deserved``, ``cap`` ``capability``,
    ``reserve`` ``guarantee.resource``; an amount that is not there any more is written as null. What the queue "root"
    deserves is left out: Volcano adds it up itself. Errors: `BadInput` for a market without entitlements, for other
    queues or resources, and for a weight that is no whole number; `NotCapable` for the paths of hierarchical DRF, and
    for amounts that no quantity says.

    Source: volcano-sh/volcano at ed72c7c8, staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go.
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or old.nodes != new.nodes or old.columns != new.columns:
        remedy = "Import both from the same cluster's files, or change one of them"
        raise BadInput("not the same queues and resources", place="the markets", remedy=remedy)
    items = []
    for node, name in enumerate(new.nodes):
        was, now = (_spec(owed, node) for owed in (old, new))
        if was != now:
            spec = now | {key: _merged(was[key], now[key]) for key in ("deserved", "capability")}
            spec["guarantee"] = {"resource": _merged(was["guarantee"]["resource"], now["guarantee"]["resource"])}
            items.append(
                {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def _merged(was: dict[str, str], now: dict[str, str]) -> dict[str, str | None]:
    return {name: now.get(name) for name in dict.fromkeys((*was, *now))}


def _spec(owed: Entitlements, node: int) -> dict[str, Any]:
    name, parent = owed.nodes[node], int(owed.parent[node])
    if "/" in name:
        raise NotCapable(f"the group {name!r} is a path in annotations of hierarchical DRF, which has no such quotas")
    weight = Fraction(owed.borrow_weight[node])
    if weight.denominator != 1 or weight < 1:
        place = f"queue {name!r}, weight"
        raise BadInput(f"got {weight}", place=place, remedy="Volcano's weights are whole numbers from 1")
    parents = {} if parent == TOP else {"parent": owed.nodes[parent]}
    deserved = {} if name == ROOT else _amounts(owed, owed.guarantee[node])
    reserve = {} if name == ROOT else _amounts(owed, owed.reserve[node])
    cap = _amounts(owed, owed.cap[node], most=True)
    quotas = {"deserved": deserved, "capability": cap, "guarantee": {"resource": reserve}}
    return {"weight": int(weight), "priority": int(owed.tier[node]), **parents, **quotas}


def _amounts(owed: Entitlements, row: Iterable[Any], *, most: bool = False) -> dict[str, str]:
    """Return quantities by resource: what is guaranteed, or with ``most`` what there is a limit of."""
    names = [column.removesuffix(f":{CLUSTER}") for column in owed.columns]
    pairs = zip(names, row, strict=True)
    return {name: _quantity(amount) for name, amount in pairs if (amount != INFINITY if most else amount > 0)}


def _quantity(amount: Any) -> str:
    exact = Fraction(amount)
    if (exact * 1000).denominator != 1:
        raise NotCapable(f"{exact} is no quantity: those are multiples of 1/1000")
    return in_full(exact) if exact.denominator == 1 else f"{in_full(exact * 1000)}m"
