"""Whole-GPU conservation: no gang waits that fits into whole GPUs that nobody holds."""

from __future__ import annotations

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import INFINITY, Array, Number
from fairopt.properties.entitlements.cited import NOW, TEAMS
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, says_who_asks
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict


class WholeGpuConservation(AllocationProperty):
    """No pending gang fits free whole GPUs of a type where it may run, its user's caps and those of its groups.

    In a market whose shares are what users hold now, further goods must suffice too. In other shares, a user's gang
    waits where the shares leave at least so many GPUs of what the user asks for unserved. Hosts are not looked at.
    A failure shows a gang, its user and GPUs, and the type of which enough are free.

    Source: work conservation (Gandiva_fair Sec. 3.3) with gangs.

    >>> print(WholeGpuConservation().check(TEAMS, [[0, 2], [4, 0], [0, 2]]).witness)
    start tune of team-a on 6 idle H100
    """

    name = "whole_gpu_conservation"
    head = "no gang waits that fits"
    broken = "a gang of {who} waits that would fit"
    source = "Gandiva_fair Sec. 3.3, with gangs"
    definition = "no pending gang fits the free whole GPUs of a type where it may run, and the caps above it"
    needs = frozenset[Entitled]()
    needs_speedups = False
    instances = (
        CitedInstance("made by hand: nothing is free", TEAMS, NOW, Answer.HOLDS),
        CitedInstance("made by hand: the sweep was stopped", TEAMS, ((0, 2), (4, 0), (0, 2)), Answer.FAILS),
    )

    def missing(self, market: Market) -> str:
        """Return that nobody is said to hold or ask for GPUs, where that is so."""
        owed = market.entitlements
        told = owed is not None and says_who_asks(owed)
        return super().missing(market) or ("" if told else "the market does not say who holds or asks for GPUs")

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        gangs, types = stands.entitlements.gangs, len(market.types)
        slop = tolerance * stands.size[:types]
        free = (stands.free[:types] + slop) // 1
        rooms: dict[int, Array] = {}
        nearest: Number = INFINITY
        largest = None
        for gang in np.flatnonzero(gangs.pending & (gangs.gpus > 0)).tolist():
            user, gpus = int(gangs.user[gang]), gangs.size(gang)
            if user not in rooms:
                rooms[user] = np.minimum(free, np.minimum(stands.room(user)[:types], stands.more[user, :types]) + slop)
            for j in np.flatnonzero(gangs.allowed[gang]).tolist():
                if not stands.goods_are_free(gang, j):
                    continue
                if gpus > rooms[user][j]:
                    nearest = min(nearest, gpus - max(rooms[user][j], 0))
                elif largest is None or gpus > largest.gpus:
                    shown = {"user": market.users[user], "gpus": gpus, "type": market.types[j]}
                    largest = self.case(-gpus, stands.size[j], gang=gangs.names[gang], **shown)
        case = largest or self.case(nearest if nearest < INFINITY else 0 * stands.free[0], stands.size[0])
        effort = f"{int(gangs.pending.sum())} pending gangs"
        return self._by_tightest(case, tolerance, exact=market.exact, unit="GPUs", effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return which gang to start where, in a sentence."""
        return f"start {case.gang} of {case.user} on {case.gpus} idle {case.type}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the gang is pending and may run there, and neither free GPUs nor a cap nor another share stops it."""
        stands = HeldAndOwed.of(market, shares)
        gangs = stands.entitlements.gangs
        gang, j = gangs.names.index(case.gang), market.types.index(case.type)
        user = int(gangs.user[gang])
        waits = gangs.pending[gang] and gangs.allowed[gang, j] and gangs.gpus[gang] <= stands.more[user, j]
        fits = gangs.gpus[gang] <= min(stands.free[j] // 1, stands.room(user)[j])
        return bool(waits and fits and stands.goods_are_free(gang, j))
