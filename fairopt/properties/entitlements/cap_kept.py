"""Cap kept: nobody holds more than it may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.properties.entitlements.cited import NOW, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import CitedInstance
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class OverCap:
    """A user or group that holds more of a type or good than its cap."""

    node: str
    type: str
    held: Number
    cap: Number

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether it, or all of its members together, hold more than its cap."""
        stands = HeldAndOwed.of(market, shares)
        at = stands.entitlements.node(self.node), stands.entitlements.columns.index(self.type)
        return bool(stands.held[at] > stands.cap[at])

    def __str__(self) -> str:
        over = number_text(self.held - self.cap)
        return f"take {over} {self.type} from {self.node}, which holds {number_text(self.held)} and may hold " + (
            number_text(self.cap)
        )


class CapKept(EntitlementProperty):
    """No user and no group holds more of a type or good than its cap.

    Source: Kueue's borrowingLimit (nominalQuota and it are the cap), KAI's limit, Volcano's capability.

    >>> print(CapKept().check(TEAMS, [[0, 2], [0, 5], [0, 3]]).witness)
    take 1 H100 from team-b, which holds 5 and may hold 4
    """

    name = "cap_kept"
    head = "caps kept"
    broken = "{who} has more than its cap"
    source = "Kueue's borrowingLimit, KAI's limit, Volcano's capability"
    definition = "no user and no group holds more of a type than its cap"
    needs = Entitled.CAPS
    instances = (
        CitedInstance("made by hand: batch holds all that it may", TEAMS, NOW, Answer.HOLDS),
        CitedInstance("made by hand: team-b holds one H100 too many", TEAMS, ((0, 2), (0, 5), (0, 3)), Answer.FAILS),
    )

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        owed, slack = stands.entitlements, stands.cap - stands.held
        node, column = divmod(int(np.argmin(slack / stands.size)), slack.shape[1])
        witness = OverCap(owed.nodes[node], owed.columns[column], stands.held[node, column], stands.cap[node, column])
        return self._by_slack(
            market,
            slack[node, column],
            stands.size[column],
            tolerance,
            unit=f"GPUs of {witness.type}" if column < len(market.types) else witness.type,
            effort=f"{int((stands.cap < INFINITY).sum())} caps",
            witness=witness,
        )
