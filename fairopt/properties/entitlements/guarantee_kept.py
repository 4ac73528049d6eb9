"""Guarantee kept: every user and group holds what it is guaranteed, or all that it asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty, action
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import CitedInstance
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class BelowGuarantee:
    """A user or group below what it is owed of a type or good, and from whom to take the difference ("" for idle)."""

    node: str
    type: str
    held: Number
    owed: Number
    sources: tuple[tuple[str, Number], ...]

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether it holds less than its guarantee, and could use more within its caps."""
        stands = HeldAndOwed.of(market, shares)
        node, column = stands.entitlements.node(self.node), stands.entitlements.columns.index(self.type)
        below = stands.held[node, column] < stands.guarantee[node, column]
        return bool(below and stands.more[node, column] > 0)

    def __str__(self) -> str:
        holds = f"holds {number_text(self.held)} {self.type} and is owed {number_text(self.owed)}"
        if not self.sources:
            return f"{self.node} {holds}; nobody has any that can be taken back"
        return f"{action(self.sources, self.type, self.node)}, which {holds}"


class GuaranteeKept(EntitlementProperty):
    """Each user and group holds its guarantee of every type and good, or as much as it could use of it if that is less.

    It could use what it asks for (`asks`) beside what it holds of other types, within the caps; gangs count as if they
    could be divided, as a policy's shares are. `NobodyStarvesWhileLent` counts whole gangs. Guarantees are at most what
    there is.

    Source: Kueue's nominalQuota, KAI's quota, Volcano's deserved; the definition is ours.

    >>> verdict = GuaranteeKept().check(TEAMS, NOW)
    >>> print(verdict.answer.value, verdict.margin, "|", verdict.witness)
    FAILS -6 | reclaim 6 H100 from batch for team-a, which holds 2 H100 and is owed 8
    """

    name = "guarantee_kept"
    head = "guarantees kept"
    broken = "{who} has less than its guarantee"
    source = "Kueue's nominalQuota, KAI's quota; ours"
    definition = "each user and group holds of every type its guarantee, or all that it could use if that is less"
    needs = Entitled.GUARANTEES
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        short, owed = stands.short, stands.entitlements
        slack = np.where(short > 0, -short, np.maximum(stands.held - stands.guarantee, 0))
        node, column = divmod(int(np.argmin(slack / stands.size)), slack.shape[1])
        held = stands.held[node, column]
        witness = BelowGuarantee(
            owed.nodes[node],
            owed.columns[column],
            held,
            held + short[node, column],
            stands.sources(node, column, short[node, column]),
        )
        return self._by_slack(
            market,
            slack[node, column],
            stands.size[column],
            tolerance,
            unit=f"GPUs of {witness.type}" if column < len(market.types) else witness.type,
            effort=f"{len(owed.nodes)} users and groups, {slack.shape[1]} types and goods",
            witness=witness,
        )
