"""Envy within peers: nobody prefers what another of its group and tier holds beyond its guarantee."""

from __future__ import annotations

import numpy as np

from fairopt.certificates import Certificate
from fairopt.policy import Optima
from fairopt.problem import Entitled, Entitlements, Market
from fairopt.program import INFINITY, Array, more_text, number_text
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups
from fairopt.report import Statement

_USERS, _TYPES = ("A", "B", "chief"), ("T1", "T2")
#: A and B are of one group; the chief is of a higher tier.
_OFFICE = Market.of(
    [[1, 2], [1, 5], [1, 1]],
    capacity=[2, 2],
    users=_USERS,
    types=_TYPES,
    entitlements=Entitlements.of(_USERS, _TYPES, group=dict.fromkeys(_USERS, "office"), tier={"chief": 1}),
)


#: B is guaranteed a GPU of the second type; C of the same group is guaranteed nothing.
_GUARANTEED = Market.of(
    [[1, 2], [1, 2]],
    capacity=[2, 2],
    users=["B", "C"],
    types=_TYPES,
    entitlements=Entitlements.of(["B", "C"], _TYPES, guarantee={"B": [0, 1]}),
)


class EnvyWithinPeers(EnvyFreeness):
    """Nobody would get more with what a peer holds beyond its guarantee in the place of what it holds so itself.

    Peers are users of one group and tier. What the peer holds is scaled by weight, and a user counts no more of a type
    than its own cap, and no more in all than its demand. Guarantees are no reason for envy; without any, a user
    compares its shares with the peer's. A guarantee without bound is no number, and counts as none.

    Source: OEF Sec. 2.3.1 (2), among users of equal priority in one group; guarantees set apart is ours.

    >>> print(EnvyWithinPeers().check(_OFFICE, [[1, "1/4"], [0, "3/4"], [1, 1]]).answer.value)
    HOLDS
    """

    name = "envy_within_peers"
    head = "envies no peer"
    broken = "{who} envies a peer"
    source = "OEF Sec. 2.3.1 (2), within a group and tier"
    definition = (
        "E_l(x_l) >= E_l(min(g_l + pi_l / pi_i * b_i, cap_l)) for all users l, i in one group and of one tier;"
        " x = g + b, g within the guarantee"
    )
    needs = frozenset[Entitled]()
    instances = (
        CitedInstance("OEF Eq. (6), beside a chief", _OFFICE, ((1, "1/4"), (0, "3/4"), (1, 1)), Answer.HOLDS),
        CitedInstance("A envies B of its own tier", _OFFICE, ((1, 0), (0, 1), (1, 1)), Answer.FAILS),
        CitedInstance(
            "B has its guarantee, and the rest is split", _GUARANTEED, ((1, "3/2"), (1, "1/2")), Answer.HOLDS
        ),
        CitedInstance("B takes all of the second type", _GUARANTEED, ((1, 2), (1, 0)), Answer.FAILS),
    )

    def over(self, optima: Optima) -> Statement:
        """Decide for the optimum that is there."""
        return AllocationProperty.over(self, optima)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        return LinearInSpeedups._certificate(self, market, shares, verdict)

    def pairs(self, market: Market) -> Array:
        """Return which users (n, n) are compared with which."""
        owed, n = market.entitlements, len(market.users)
        assert owed is not None
        parent, tier = owed.parent[:n], owed.tier[:n]
        alike = (parent[:, None] == parent) & (tier[:, None] == tier)
        return np.asarray(super().pairs(market) & alike)

    def in_place(self, market: Market, shares: Array, users: Array, others: Array) -> Array:
        """Return what ``users`` (m,) would hold (m, k): beside their guarantees what others hold beyond theirs."""
        owed, (n, k) = market.entitlements, market.shape
        assert owed is not None
        guarantee, cap = owed.guarantee[:n, :k], owed.cap[:n, :k]
        sure = np.minimum(np.where(guarantee < INFINITY, guarantee, 0), cap)
        within = np.minimum(shares, sure)
        beyond = (shares - within)[others] * (market.weight[users] / market.weight[others])[:, None]
        theirs = np.minimum(within[users] + beyond, cap[users])
        return np.where((users == others)[:, None], shares[users], theirs)  # who has no peer is compared with itself

    def says(self, case: SlackCase) -> str:
        """Return who envies which peer, and what it would get, in a sentence."""
        got, theirs = number_text(case.throughput), more_text(case.with_others_shares, case.throughput)
        beyond = f"with what {case.envied} holds beyond its guarantee, by weight"
        return f"{case.user} gets {got}; {beyond}, in the place of what it holds so itself, it would get {theirs}"
