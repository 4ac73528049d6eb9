"""Slurm: fair-share numbers, and GrpTRES limits by GPU type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from fairopt.audit.accounts import users_in
from fairopt.audit.plans.planner import NONE, Planner, Realised, entitled, too_large
from fairopt.importing.slurm import ANYWHERE
from fairopt.importing.slurm_values import GPUS
from fairopt.numbers import number_text
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Array

#: The largest sum of the fair-share numbers beside each other.
MOST = 1_000_000
#: How many times the numbers of those that have no part the sum of the others is at least.
TIMES = 1_000


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return limits on each type, rounded up, and fair-share numbers in proportion to what the parts are billed.

    The limits say on which types an account may run, and fair-share who is next where these leave room: where parts
    are whole, nothing is left, and everybody holds exactly its part. Ancestors whose limits are lower get higher ones.
    """
    owed, k = entitled(market), len(market.types)
    rate = [Fraction(1)] * k if owed.rate is None else [Fraction(each) for each in owed.rate]
    billed, limit = [NONE] * len(owed.nodes), [[NONE] * k for _ in owed.nodes]
    for node, row in zip(nodes, shares, strict=True):
        for each in owed.path(node):
            billed[each] += sum((one * gpus for one, gpus in zip(rate, row, strict=True)), NONE)
            limit[each] = [most + ceil(gpus) for most, gpus in zip(limit[each], row, strict=True)]
    around = {each for node in nodes for each in owed.path(node)}
    weight, tier = owed.borrow_weight.copy(), owed.tier.copy()
    for node, number in _numbers(owed, billed, around):
        weight[node], tier[node] = number, 0
    cap = owed.cap.copy()
    total = owed.columns.index(f"{GPUS}:{ANYWHERE}") if f"{GPUS}:{ANYWHERE}" in owed.columns else None
    for node in around:
        own = limit[node] if node in nodes else [max(pair) for pair in zip(limit[node], cap[node, :k], strict=True)]
        cap[node, :k] = own
        if total is not None:
            cap[node, total] = max(cap[node, total], sum(limit[node], NONE))
    after = replace(market, entitlements=replace(owed, borrow_weight=weight, tier=tier, cap=cap))
    return Realised(after, shares, tuple(_lost(owed, nodes, shares)))


def _numbers(owed: Entitlements, billed: Sequence[Fraction], around: set[int]) -> Iterator[tuple[int, Fraction]]:
    """Yield the fair-share number of each node that has a part, or has such nodes in it, beside others."""
    for family in (owed.tops, *owed.children):
        own = [node for node in family if node in around]
        others = sum((owed.borrow_weight[node] for node in family if node not in around), NONE)
        total = sum((billed[node] for node in own), NONE)
        if not total or len(family) == 1:
            continue
        parts = [billed[node] / total for node in own]
        scale = lcm(*(part.denominator for part in parts))
        scale = MOST if scale > MOST else scale * max(1, ceil(others * TIMES / scale))
        for node, part in zip(own, parts, strict=True):
            yield node, Fraction(round(part * scale))


def _lost(owed: Entitlements, nodes: Sequence[int], shares: Array) -> Iterator[str]:
    k = shares.shape[1]
    yield (
        "Slurm guarantees nothing. GrpTRES limits each type, and what an account leaves of its part stays idle "
        "(AccountingStorageTRES must name gres/gpu:TYPE, AccountingStorageEnforce limits)"
    )
    parts = [(i, j) for i in range(len(nodes)) for j in range(k) if shares[i, j] != int(shares[i, j])]
    if parts:
        said = ", ".join(
            f"{owed.nodes[nodes[i]]} {number_text(shares[i, j])} {owed.types[j]}" for i, j in parts[:5]
        ) + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")
        yield f"parts of GPUs are reached over time only, by fair-share below limits that are rounded up: {said}"
        if not _forest(parts):
            yield "fair-share counts what is billed on all types: it does not settle who has which of these types"
    yield from too_large(
        owed,
        nodes,
        np.array([[Fraction(ceil(each)) for each in row] for row in shares], dtype=object).reshape(shares.shape),
        "it never starts below the limit; raise that",
    )
    if (owed.usage > 0).any():
        yield "past use counts until it has decayed: who used more than its new part is behind at first"
    for node, row in zip(nodes, shares, strict=True):
        for j in range(k):
            inside = sum((owed.cap[user, j] for user in users_in(owed, node)), NONE)
            if node >= len(owed.users) and inside < INFINITY and inside < row[j]:
                yield f"{owed.nodes[node]}: its users may hold {number_text(inside)} {owed.types[j]} together"
    left = [
        owed.nodes[each]
        for family in (owed.tops, *owed.children)
        for each in family
        if each not in {over for node in nodes for over in owed.path(node)}
        and not any(over != TOP and over in nodes for over in owed.path(each))
    ]
    if left:
        named = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        yield f"these have no part, and keep their fair-share and limits: {named}"


def _forest(pairs: Sequence[tuple[int, int]]) -> bool:
    """Return whether the graph of nodes and types has no circle: what is billed then settles each part."""
    root: dict[tuple[str, int], tuple[str, int]] = {}

    def top(each: tuple[str, int]) -> tuple[str, int]:
        while root.get(each, each) != each:
            each = root[each]
        return each

    for i, j in pairs:
        one, other = top(("node", i)), top(("type", j))
        if one == other:
            return False
        root[one] = other
    return True


SLURM = Planner(_realise, ".sh", "sh {file}")
