"""Changed entitlements as Kueue's objects, for ``kubectl apply --server-side``."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from fairopt.discovery import library
from fairopt.errors import BadInput, NotCapable
from fairopt.numbers import in_full
from fairopt.problem.entitled_rows import TOP, own_part
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.market import Market
from fairopt.program import INFINITY, Array

VERSION = "kueue.x-k8s.io/v1beta2"


def emit(before: Market, after: Market, resource: str = "nvidia.com/gpu") -> str:
    """Return the ClusterQueues and Cohorts whose quotas differ, as YAML; nothing where none does.

    The objects hold names, quotas, weights and parents only: ``kubectl apply --server-side`` leaves other fields as
    they are. ``resource`` is what GPUs are called. What is gone is a comment that says how to delete it. Errors:
    `NotCapable` for markets without entitlements, and for what no quota can say.

    >>> from fairopt.problem import Entitlements
    >>> def market(quota):
    ...     owed = Entitlements.of(["a"], ["H100"], guarantee={"a": [quota]}, group={"a": "ml"})
    ...     return Market.of([[1]], [8], users=["a"], types=["H100"], entitlements=owed)
    >>> print(emit(market(4), market(6)).splitlines()[-1].strip())
    nominalQuota: '6'
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None:
        raise NotCapable("Kueue's objects are made of entitlements, and this market says none")
    was, now = (_said(owed) for owed in (old, new))
    own = own_part(new.guarantee, new.children)
    yaml = library("yaml", "Kueue's objects", "import")
    made = [
        _object(new, node, own[node], resource) for node, name in enumerate(new.nodes) if was.get(name) != now[name]
    ]
    gone = [
        f"# gone: kubectl delete {'clusterqueue' if name in old.users else 'cohort'} {_called(name)}\n"
        for name in old.nodes
        if name not in now
    ]
    return "".join(gone) + (yaml.safe_dump_all(made, sort_keys=False) if made else "")


def _said(owed: Entitlements) -> dict[str, tuple[Any, ...]]:
    """Return what objects say of each node, by name."""
    own = own_part(owed.guarantee, owed.children)
    return {
        name: (
            None if owed.parent[node] == TOP else owed.nodes[owed.parent[node]],
            owed.borrow_weight[node],
            own[node].tolist(),
            *((_limit(owed, node, at), _lending(owed, node, at)) for at in range(len(owed.columns))),
        )
        for node, name in enumerate(owed.nodes)
    }


def _called(name: str) -> str:
    """Return the Cohort's own name: the importer writes "cohort NAME" where a ClusterQueue has the same."""
    return name.removeprefix("cohort ")


def _limit(owed: Entitlements, node: int, at: int) -> Fraction | None:
    """Return the borrowing limit."""
    if owed.parent[node] == TOP or owed.cap[node, at] == INFINITY:
        return None
    over: Fraction = owed.cap[node, at] - owed.guarantee[node, at]
    if over < 0:
        place = f"{owed.nodes[node]!r}, cap, {owed.columns[at]!r}"
        raise BadInput("a cap below the guarantee", place=place, remedy="Kueue borrows from 0 up: raise the cap")
    return over


def _lending(owed: Entitlements, node: int, at: int) -> Fraction | None:
    """Return the lending limit."""
    return owed.guarantee[node, at] - owed.reserve[node, at] if owed.reserve[node, at] > 0 else None


def _object(owed: Entitlements, node: int, own: Array, resource: str) -> dict[str, Any]:
    name, parent, user = owed.nodes[node], int(owed.parent[node]), node < len(owed.users)
    spec: dict[str, Any] = {}
    if parent != TOP:
        spec["cohortName" if user else "parentName"] = _called(owed.nodes[parent])
    spec["fairSharing"] = {"weight": _number(owed.borrow_weight[node])}
    spec["resourceGroups"] = list(_groups(owed, node, own, resource))
    kind = "ClusterQueue" if user else "Cohort"
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name if user else _called(name)}, "spec": spec}


def _groups(owed: Entitlements, node: int, own: Array, resource: str) -> Iterable[dict[str, Any]]:
    """Yield the resource groups: flavors that share a resource are in one group, and list the same resources."""
    pairs = [(resource, kind) for kind in owed.types] + [(good.resource, good.flavor) for good in owed.goods]
    user = node < len(owed.users)
    listed = {
        pair: at
        for at, pair in enumerate(pairs)
        if own[at] or (_limit(owed, node, at) != 0 if user else _limit(owed, node, at) is not None)
    }
    left = list(dict.fromkeys(flavor for _, flavor in listed))
    while left:
        group, grown = [left[0]], True
        while grown:
            covered = [each for each, flavor in listed if flavor in group]
            more = [each for each in left if each not in group and any((name, each) in listed for name in covered)]
            group, grown = group + more, bool(more)
        left = [each for each in left if each not in group]
        names = list(dict.fromkeys(each for each, flavor in listed if flavor in group))
        flavors = [
            {"name": flavor, "resources": [_quota(owed, node, listed.get((each, flavor)), each, own) for each in names]}
            for flavor in group
        ]
        yield {"coveredResources": names, "flavors": flavors}


def _quota(owed: Entitlements, node: int, at: int | None, name: str, own: Any) -> dict[str, Any]:
    if at is None:
        return {"name": name, "nominalQuota": "0", "borrowingLimit": "0"}
    quota = {"name": name, "nominalQuota": _number(own[at])}
    limits = {"borrowingLimit": _limit(owed, node, at), "lendingLimit": _lending(owed, node, at)}
    return quota | {key: _number(limit) for key, limit in limits.items() if limit is not None}


def _number(value: Fraction) -> str:
    """Return a quantity: whole, or in thousandths. Errors: `NotCapable` for what neither can say."""
    if value == INFINITY or value < 0 or (value * 1000).denominator != 1:
        raise NotCapable(f"a quota of {value} is no quantity: Kueue's are multiples of 1/1000")
    return in_full(value) if value.denominator == 1 else f"{in_full(value * 1000)}m"
