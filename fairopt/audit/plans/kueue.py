"""Kueue: nominal quotas, in whole GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairopt.audit.plans.planner import Planner, Realised, entitled, whole_quotas
from fairopt.problem import Market
from fairopt.problem.entitled_rows import TOP, own_part
from fairopt.program import INFINITY, Array


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return nominal quotas; borrowing and lending limits stay, and a Cohort has no quota of its own any more."""
    found, old = whole_quotas(market, nodes, shares, borrows=True), entitled(market)
    owed, n, k = entitled(found.after), len(market.users), len(market.types)
    total = owed.guarantee[list(owed.tops)].sum(axis=0)
    cap = owed.cap.copy()
    for node in owed.tops:
        if node >= n:  # the members of a cohort at the root have nothing but its quotas
            cap[node] = np.where(owed.guarantee[node] < total, owed.guarantee[node], INFINITY)
    lost = list(found.lost)
    if (own_part(old.guarantee, old.children)[n:, :k] > 0).any():
        lost.append("quotas that cohorts have beside those of their ClusterQueues are divided among ClusterQueues")
    if (new := (owed.guarantee[:n, :k] > 0) & (old.cap[:n, :k] == 0)).any():
        user, j = np.argwhere(new)[0]
        words = f"{owed.users[user]} gets {owed.types[j]}, which its ClusterQueue does not list: without borrowing"
        lost.append(f"{words} there ({int(new.sum())} in all)" if new.sum() > 1 else f"{words} there")
    lost.append("who has borrowed keeps it, unless the owner has preemption.reclaimWithinCohort, or nobody may borrow")
    apart = sum(owed.parent[node] == TOP and node < n for node in range(n))
    if apart and apart < n:
        lost.append(f"{apart} ClusterQueues are in no cohort: what they do not use stays idle")
    return Realised(replace(found.after, entitlements=replace(owed, cap=cap)), found.held, tuple(lost))


KUEUE = Planner(_realise, ".yaml", "kubectl apply --server-side --force-conflicts -f {file}")
