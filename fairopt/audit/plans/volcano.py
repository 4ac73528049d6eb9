"""Volcano: what queues deserve, in whole GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.audit.plans.planner import Planner, Realised, entitled, whole_quotas
from fairopt.problem import Entitled, Market
from fairopt.program import Array


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return what queues deserve; a guarantee is at most that, and a capability at least."""
    found = whole_quotas(market, nodes, shares)
    lost = list(found.lost)
    if Entitled.GUARANTEES not in entitled(market).said:
        lost.append("no queue deserves anything today: the plugin proportion reads weights only; turn on capacity")
    return found._replace(lost=tuple(lost))


VOLCANO = Planner(_realise, ".json", "kubectl apply --server-side --force-conflicts -f {file}")
