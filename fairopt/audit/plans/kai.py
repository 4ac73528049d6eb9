"""KAI Scheduler: quotas of queues, in whole GPUs; a queue is in one node pool."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fairopt.audit.plans.planner import Planner, Realised, whole_quotas
from fairopt.problem import Market
from fairopt.program import Array

#: A Queue counts thousandths of a core, and 10^6 bytes.
_UNITS = {"cpu": Fraction(1, 1000), "memory": Fraction(10**6)}


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return quotas; weights of what is borrowed stay, and so do limits that are not below the quota."""
    found = whole_quotas(market, nodes, shares, fixed=True, units=_UNITS)
    why = "what a queue leaves is lent by overQuotaWeight, which stays as it is"
    return found._replace(lost=(*found.lost, why))


KAI = Planner(_realise, ".json", "kubectl apply --server-side --force-conflicts -f {file}", fixed=True)
