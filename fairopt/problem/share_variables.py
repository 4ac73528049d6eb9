"""What every program that shares a market has in common: the shares, the capacities, the demands."""

from __future__ import annotations

import numpy as np

from fairopt.problem import Market
from fairopt.program import INFINITY, Affine, Array, Formulation


def shares_of(p: Formulation, market: Market, part: Array | None = None) -> Affine:
    """Add the shares (n, k) to ``p``, within capacities and demands, and return them.

    A user holds nothing where it cannot run. With ``part`` (n,) the shares are that part of what counts.
    Source: OEF Eq. (9b), (10b); the demands are Gavel's bound on a job's time fractions, Sec. 3.1 there.
    """
    names = (market.users, market.types)
    share = p.variable("share", market.shape, lower=0, upper=np.where(market.speedup > 0, INFINITY, 0), labels=names)
    bundle = share if part is None else share / part[:, None]
    p.constrain(
        "capacity",
        bundle.sum(axis=0) <= market.capacity,
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
    return share
