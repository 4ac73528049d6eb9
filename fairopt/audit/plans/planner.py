"""`Planner`: what a scheduler is told so that it gives what a policy gives; and whole quotas, which most of them take.

A share goes to a node: a user, or a group as a whole, whose members then have it in the proportions of today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairopt.audit.accounts import users_in
from fairopt.errors import BadInput
from fairopt.methods.whole_gpus import whole
from fairopt.numbers import counted
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.files.storage import AnyPath
from fairopt.program import INFINITY, Array, objects

NONE = Fraction(0)
#: How finely a resource beside GPUs is divided; a whole unit where nothing else is said.
UNITS: Mapping[str, Fraction] = MappingProxyType({"cpu": Fraction(1, 1000)})


class Realised(NamedTuple):
    """What a scheduler is told, and what comes of it where everybody has jobs enough.

    ``after``: the market with the entitlements that it is told. ``held`` (m, k): what m nodes then hold of k types.
    ``lost``: in words, what of the policy's allocation it cannot be told.

    >>> from fairopt.audit.plans.kueue import KUEUE
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]})
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> KUEUE.realise(market, [0, 1], np.array([[Fraction(11, 2)], [Fraction(5, 2)]])).held.astype(int).tolist()
    [[6], [2]]
    """

    after: Market
    held: Array
    lost: tuple[str, ...]


class Planner(NamedTuple):
    """How a scheduler is told.

    * ``realise(market, nodes, shares)``: of the cluster as it is, the nodes (m,) and their GPUs of each type (m, k),
      Fractions; nodes do not lie in each other.
    * ``suffix``: of the file that its emitter (group ``fairopt.emitters``) writes. ``how``: the command that hands that
      over, with {file} for its name.
    * ``fixed``: whether a user may hold only those types that its cap lets it hold today.
    * ``undo(files, told)``: what undoes what the scheduler was ``told``, from the cluster's own files; None where the
      emitter writes it, from the plan back to what was.

    >>> from fairopt.discovery import PLANNERS, load
    >>> load(PLANNERS, "slurm").how
    'sh {file}'
    """

    realise: Callable[[Market, Sequence[int], Array], Realised]
    suffix: str
    how: str
    fixed: bool = False
    undo: Callable[[Sequence[AnyPath], str], str] | None = None


def entitled(market: Market) -> Entitlements:
    """Return the entitlements in Fractions. Errors: `BadInput` for a market without."""
    if market.entitlements is None:
        raise BadInput("it says nothing of entitlements", place="the market", remedy="Give a scheduler's own files")
    return market.entitlements.as_(Fraction)


def reachable(market: Market, *, fixed: bool) -> Array:
    """Return which types each user may hold (n, k): with ``fixed`` those of which its cap is not 0, else all."""
    owed, k = entitled(market), len(market.types)
    caps = owed.cap[: len(owed.users), :k]
    return np.asarray(caps > 0) if fixed else np.ones(caps.shape, dtype=bool)


def divided(market: Market, nodes: Sequence[int], shares: Array, may: Array) -> Array:
    """Return the shares (m, k) of nodes as shares of their users (n, k).

    They are in proportion to what those that ``may`` hold the type (n, k) are guaranteed of it, or else to weights.
    What nobody in a node may hold is left out.
    """
    owed, k = entitled(market), len(market.types)
    out = np.full((len(owed.users), k), NONE, dtype=object)
    weight = _within(owed)
    for node, row in zip(nodes, shares, strict=True):
        for j in range(k):
            users = [user for user in users_in(owed, node) if may[user, j]]
            parts = [owed.guarantee[user, j] for user in users]
            if INFINITY in parts or not any(parts):
                parts = [weight[user] for user in users]
            if not any(parts):
                parts = [Fraction(1) for _ in users]
            for user, part in zip(users, parts, strict=True):
                out[user, j] = row[j] * part / sum(parts, NONE)
    return out


def _within(owed: Entitlements) -> list[Fraction]:
    """Return for each user the product of its and its groups' parts by weight."""
    part: list[Fraction] = [Fraction(1)] * len(owed.nodes)
    for node in reversed(owed.upwards):
        beside = owed.tops if owed.parent[node] == TOP else owed.children[owed.parent[node]]
        total = sum((owed.borrow_weight[each] for each in beside), NONE)
        own = owed.borrow_weight[node] / total if total else Fraction(1, len(beside))
        part[node] = own * (Fraction(1) if owed.parent[node] == TOP else part[owed.parent[node]])
    return part[: len(owed.users)]


def whole_quotas(
    market: Market,
    nodes: Sequence[int],
    shares: Array,
    *,
    fixed: bool = False,
    borrows: bool = False,
    units: Mapping[str, Fraction] = UNITS,
) -> Realised:
    """Return quotas in whole GPUs: rounded down, and one more for the largest remainders, in each group on its own.

    What is counted beside GPUs in a flavor of a type's name (CPU, memory) is divided as its GPUs are, in whole
    ``units``. A cap stays, and is raised to the quota where that is more; with ``borrows`` it stays as far above the
    quota as it was. What is reserved is at most the quota. A group has the sum of its members' quotas.
    """
    owed, k, n = entitled(market), len(market.types), len(market.users)
    may = reachable(market, fixed=fixed)
    tree = Entitlements.of(
        owed.users,
        owed.types,
        group={owed.nodes[node]: owed.nodes[over] for node, over in enumerate(owed.parent.tolist()) if over != TOP},
        groups=owed.groups,
    )
    plain = replace(market.as_(Fraction), entitlements=tree, demand=None)
    quota = owed.guarantee.copy()
    quota[:n, :k] = whole(plain, divided(market, nodes, shares, may))[1]
    for column, good in enumerate(owed.goods, start=k):
        if good.flavor in owed.types and INFINITY not in owed.guarantee[:n, column]:
            gpus = quota[:n, owed.types.index(good.flavor)]
            there, all_gpus = owed.guarantee[:n, column].sum(), gpus.sum()
            unit = units.get(good.resource, Fraction(1))
            if there and all_gpus:
                quota[:n, column] = [floor(there * each / all_gpus / unit) * unit for each in gpus]
    for node in owed.upwards:
        if node >= n:
            quota[node] = sum((quota[child] for child in owed.children[node]), objects([NONE] * quota.shape[1]))
    cap, reserve = np.maximum(owed.cap, quota), np.minimum(owed.reserve, quota)
    for at in np.ndindex(*quota.shape) if borrows else ():
        if owed.cap[at] < INFINITY:
            cap[at] = quota[at] + max(owed.cap[at] - owed.guarantee[at], NONE)
        if owed.reserve[at] > 0:  # the rest may be lent, as before
            reserve[at] = max(quota[at] - (owed.guarantee[at] - owed.reserve[at]), NONE)
    after = replace(market, entitlements=replace(owed, guarantee=quota, cap=cap, reserve=reserve))
    held = objects([quota[users_in(owed, node), :k].sum(axis=0) for node in nodes])
    held = np.array([row.tolist() for row in held], dtype=object).reshape(len(nodes), k)
    return Realised(after, held, tuple(_lost(owed, nodes, held)))


def _lost(owed: Entitlements, nodes: Sequence[int], held: Array) -> Iterator[str]:
    """Yield what nodes lose that hold ``held`` (m, k): gangs that fit into no quota of their user."""
    yield from too_large(owed, nodes, held, "it runs only on what others leave")


def too_large(owed: Entitlements, nodes: Sequence[int], held: Array, then: str) -> Iterator[str]:
    """Yield, of each node, the gangs that take more together than it has of any type on which they may run."""
    gangs = owed.gangs
    for node, row in zip(nodes, held, strict=True):
        own = np.flatnonzero(np.isin(gangs.user, users_in(owed, node)) & (gangs.gpus > 0))
        large = [gang for gang in own.tolist() if not (_types(owed, gang) & (row >= gangs.gpus[gang])).any()]
        if large:
            most = max(large, key=lambda gang: gangs.gpus[gang])
            many = f" ({counted(len(large), 'such gang')})" if len(large) > 1 else ""
            gpus = counted(gangs.size(most), "GPU")
            name = f"{owed.nodes[node]}: {gangs.names[most]}"
            yield f"{name} needs {gpus} at once, more than its part of any type{many}: {then}"


def _types(owed: Entitlements, gang: int) -> Array:
    gangs = owed.gangs
    row = np.asarray(gangs.allowed[gang]).copy()
    if not gangs.pending[gang]:
        row[gangs.on[gang]] = True
    return row
