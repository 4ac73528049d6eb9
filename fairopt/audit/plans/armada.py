"""Armada: priority factors, one number for each queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.audit.accounts import users_in
from fairopt.audit.plans.planner import NONE, Planner, Realised, divided, entitled, reachable
from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.program import Array

#: Digits of a priority factor after the point.
DIGITS = 6


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return weights in proportion to the GPUs that queues are given, of whatever type."""
    owed, n, k = entitled(market), len(market.users), len(market.types)
    gpus = divided(market, nodes, shares, reachable(market, fixed=False)).sum(axis=1)
    weight, least = owed.borrow_weight.copy(), min((each for each in gpus if each), default=NONE)
    planned = [user for node in nodes for user in users_in(owed, node)]
    for user in planned:
        if not gpus[user]:
            remedy = "Take the row out of the table, or cordon the queue"
            raise BadInput("the policy gives it no GPUs", place=f"queue {owed.users[user]!r}", remedy=remedy)
        weight[user] = 1 / Fraction(f"{float(least / gpus[user]):.{DIGITS}f}")
    total = sum((weight[user] for user in planned), NONE)
    rows = [[sum((weight[u] for u in users_in(owed, node)), NONE) / total] * k for node in nodes]
    there = np.array([Fraction(each) for each in market.capacity.tolist()], dtype=object)
    held = np.array(rows, dtype=object).reshape(len(nodes), k) * there
    lost = ["Armada's fair share is one number for each queue: it is the same part of every type"]
    lost.append("Armada guarantees nothing: shares are reached where queues have jobs that wait")
    if left := n - len(planned):
        lost.append(f"{left} queues without a row keep their priority factor, and are not counted")
    return Realised(replace(market, entitlements=replace(owed, borrow_weight=weight)), held, tuple(lost))


ARMADA = Planner(_realise, ".yaml", "armadactl update queue  # once for each queue in {file}, with its priorityFactor")
