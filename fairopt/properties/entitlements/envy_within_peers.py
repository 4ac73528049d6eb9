"""Envy within peers: nobody prefers the shares of another of its group and tier."""

from __future__ import annotations

import numpy as np

from fairopt.certificates import Certificate
from fairopt.policy import Optima
from fairopt.problem import Entitlements, Market
from fairopt.program import Array, Number
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty
from fairopt.properties.property import AllocationProperty, CitedInstance, OverOptima
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups

_USERS, _TYPES = ("A", "B", "chief"), ("T1", "T2")
#: A and B are of one group; the chief is of a higher tier.
_OFFICE = Market.of(
    [[1, 2], [1, 5], [1, 1]],
    capacity=[2, 2],
    users=_USERS,
    types=_TYPES,
    entitlements=Entitlements.of(_USERS, _TYPES, group=dict.fromkeys(_USERS, "office"), tier={"chief": 1}),
)


class EnvyWithinPeers(EntitlementProperty, EnvyFreeness):
    """Nobody gets more out of the shares of another of its group and tier, scaled by weight, than out of its own.

    Source: OEF Sec. 2.3.1 (2), among users of equal priority in one group.

    >>> print(EnvyWithinPeers().check(_OFFICE, [[1, "1/4"], [0, "3/4"], [1, 1]]).answer.value)
    HOLDS
    """

    name = "envy_within_peers"
    short = "EP"
    source = "OEF Sec. 2.3.1 (2), within a group and tier"
    definition = "E_l(x_l) >= E_l(pi_l / pi_i * x_i) for all users l, i in one group and of one tier"
    needs_speedups = True
    instances = (
        CitedInstance("OEF Eq. (6), beside a chief", _OFFICE, ((1, "1/4"), (0, "3/4"), (1, 1)), Answer.HOLDS),
        CitedInstance("A envies B of its own tier", _OFFICE, ((1, 0), (0, 1), (1, 1)), Answer.FAILS),
    )

    def over(self, optima: Optima) -> OverOptima:
        """Decide for the optimum that is there."""
        return AllocationProperty.over(self, optima)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        return LinearInSpeedups._certificate(self, market, shares, verdict)

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        return EnvyFreeness._check(self, market, shares, tolerance)

    def pairs(self, market: Market) -> Array:
        """Return which users (n, n) are compared with which."""
        owed, n = market.entitlements, len(market.users)
        assert owed is not None
        parent, tier = owed.parent[:n], owed.tier[:n]
        alike = (parent[:, None] == parent) & (tier[:, None] == tier)
        return np.asarray(super().pairs(market) & alike)
