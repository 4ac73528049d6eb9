"""What every program that shares a market has in common: the shares, the capacities, the demands."""

from __future__ import annotations

import numpy as np

from fairopt.problem.floors import Floors, floors_of, is_entitled
from fairopt.problem.market import Market
from fairopt.program import INFINITY, Affine, Array, Formulation


def shares_of(p: Formulation, market: Market, part: Array | None = None) -> Affine:
    """Add the shares (n, k) to ``p``, within capacities and demands, and return them.

    A user holds nothing where it cannot run. With ``part`` (n,) the shares are that part of what counts. A market with
    entitlements adds the floors and caps of users and groups (`floors_of`), and keeps out what is reserved; who asks
    must support them. Errors: `BadInput` where guarantees do not fit.

    Source: OEF Eq. (9b), (10b); the demands are Gavel's bound on a job's time fractions, Sec. 3.1 there; floors and
    caps are quotas and limits of Kueue's ClusterQueues and Cohorts, and of KAI's and Volcano's Queues.

    >>> p, market = Formulation("most in all"), Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> p.maximize((market.speedup * shares_of(p, market)).sum())
    >>> p.program()
    <Program 'most in all': 4 variables, 2 rows, 4 non-zeros>
    """
    names, n = (market.users, market.types), len(market.users)
    own = floors_of(market) if is_entitled(market) else None
    plain = np.zeros(market.shape, dtype=np.int64), np.full(market.shape, INFINITY), market.capacity
    lower, most, capacity = plain if own is None else (own.floor[:n], own.cap[:n], own.lendable)
    share = p.variable("share", market.shape, lower=lower, upper=np.where(market.speedup > 0, most, 0), labels=names)
    bundle = share if part is None else share / part[:, None]
    p.constrain(
        "capacity",
        bundle.sum(axis=0) <= capacity,
        equation="sum_l x_lj <= m_j",
        source="OEF Eq. (9b), (10b)",
        labels=(market.types,),
    )
    if market.demand is not None:
        p.constrain(
            "demand",
            (bundle.sum(axis=1) <= market.demand).where(market.demand < INFINITY),
            equation="sum_j x_lj <= d_l",
            source="Gavel Sec. 3.1",
            labels=(market.users,),
        )
    if own is not None:
        _bind_groups(p, market, bundle, own)
    return share


def _bind_groups(p: Formulation, market: Market, bundle: Affine, own: Floors) -> None:
    """Add the floors and caps of groups that say more than those of their members."""
    owed, n = market.entitlements, len(market.users)
    assert owed is not None
    below = owed.total(np.eye(n, dtype=np.int64))[n:]
    more, less = own.floor[n:] > below @ own.floor[:n], own.cap[n:] < np.minimum(below @ own.cap[:n], market.capacity)
    source = "Kueue's Cohorts, KAI's and Volcano's parent queues"
    if (rows := np.flatnonzero(more.any(axis=1))).size:
        p.constrain(
            "group_floor",
            (below[rows] @ bundle >= own.floor[n:][rows]).where(more[rows]).among(rows, len(owed.groups)),
            equation="sum_(l in g) x_lj >= q_gj",
            source=source,
            labels=(owed.groups, market.types),
        )
    if (rows := np.flatnonzero(less.any(axis=1))).size:
        p.constrain(
            "group_cap",
            (below[rows] @ bundle <= own.cap[n:][rows]).where(less[rows]).among(rows, len(owed.groups)),
            equation="sum_(l in g) x_lj <= c_gj",
            source=source,
            labels=(owed.groups, market.types),
        )
