"""Guarantee kept: every user and group holds what it is guaranteed, or all that it asks for."""

from __future__ import annotations

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, action
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict


class GuaranteeKept(AllocationProperty):
    """Each user and group holds its guarantee of every type and good, or as much as it could use of it if that is less.

    It could use what it asks for (`asks`) beside what it holds of other types, within the caps; gangs count as if they
    could be divided, as a policy's shares are. `NobodyStarvesWhileLent` counts whole gangs. Guarantees are at most what
    there is. A failure shows who is below, of which type or good, what it holds and is owed, and the ``sources``: from
    whom to take the difference ("" for what is idle), and how much.

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
    needs = frozenset({Entitled.GUARANTEES})
    needs_speedups = False
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        short, owed = stands.short, stands.entitlements
        slack = np.where(short > 0, -short, np.maximum(stands.held - stands.guarantee, 0))
        at = node, column = stands.tightest(slack)
        held, sources = stands.held[at], stands.sources(node, column, short[at])
        shown = {"type": owed.columns[column], "held": held, "owed": held + short[at], "sources": sources}
        case = self.case(slack[at], stands.size[column], node=owed.nodes[node], **shown)
        effort = f"{len(owed.nodes)} users and groups, {slack.shape[1]} types and goods"
        return self._by_tightest(case, tolerance, exact=market.exact, unit=stands.unit(column), effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return who is below its guarantee, and what to do, in a sentence."""
        holds = f"holds {number_text(case.held)} {case.type} and is owed {number_text(case.owed)}"
        if not case.sources:
            return f"{case.node} {holds}; nobody has any that can be taken back"
        return f"{action(case.sources, case.type, case.node)}, which {holds}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether it holds less than its guarantee, and could use more within its caps."""
        stands = HeldAndOwed.of(market, shares)
        at = stands.place(case.node, case.type)
        return bool(stands.held[at] < stands.guarantee[at] and stands.more[at] > 0)
