"""Nobody starves while lent: nobody waits below its guarantee for what another holds beyond its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fairopt.errors import NotCapable
from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty, action, taken
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import CitedInstance
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class StarvedWhileLent:
    """A user that is owed more of a type, for ``gangs`` of these sizes, and from whom to take it ("" for idle).

    ``gangs`` is empty where nobody says who asks, and of further goods.
    """

    user: str
    type: str
    amount: Number
    gangs: tuple[int, ...]
    sources: tuple[tuple[str, Number], ...]

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether the user is owed more that can be had, some of it from those who hold more than their guarantees."""
        stands = HeldAndOwed.of(market, shares)
        return bool(stands.starved(market.index(self.user), stands.entitlements.columns.index(self.type))[0] > 0)

    def __str__(self) -> str:
        how = action(self.sources, self.type, self.user)
        if not self.gangs:
            return f"{how}, which holds less than its guarantee and waits"
        said = [
            f"{f'{count} gangs' if count > 1 else 'a gang'} of {size}" for size, count in Counter(self.gangs).items()
        ]
        verb = "start" if self.amount == sum(self.gangs) else "run"  # some of their GPUs may be there already
        return f"{verb} {' and '.join(said)} of {self.user} on {self.type} within its guarantee: {how}"


class NobodyStarvesWhileLent(EntitlementProperty):
    """No user is owed more of a type while others hold more of it than their guarantees that could be taken back.

    Owed is what whole gangs take within the guarantee (`HeldAndOwed.starved`): with a guarantee of 6 and gangs of 4 it
    is 4, and nothing where what is idle or lent is too little for a gang. What another holds counts if it can be taken
    back, GPU by GPU, and if the groups that it is in and the user is not hold more than their guarantees too.

    Each type and good is looked at by itself; where the shares are what users hold now, a gang counts only if what it
    takes of the others can be had too. UNDECIDED where gangs are to be chosen for more than a million GPUs of a type.

    Source: Kueue's reclaimWithinCohort, KAI's reclaim; both reclaim for a whole gang within its quota. The definition
    is ours.

    >>> verdict = NobodyStarvesWhileLent().check(TEAMS, NOW)
    >>> print(verdict.margin, "|", verdict.witness)
    -6 | start a gang of 6 of team-a on H100 within its guarantee: reclaim 6 H100 from batch for team-a
    """

    name = "nobody_starves_while_lent"
    short = "NSL"
    source = "Kueue's reclaimWithinCohort, KAI's reclaim; ours"
    definition = (
        "no user's whole gangs could use more of its guarantee of a type, with what is idle and what others hold beyond "
        "their own and can be taken back"
    )
    needs = Entitled.GUARANTEES
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        pairs = np.argwhere(stands.short[: len(market.users)] > 0).tolist()
        worst, size, witness = 0 * stands.free[0], stands.size[0], None
        for user, column in pairs:
            try:
                amount, gangs = stands.starved(user, column)
            except NotCapable as error:
                return Verdict.undecided(self.name, f"{market.users[user]}: {error}")
            if amount / stands.size[column] > -worst / size:
                worst, size = -amount, stands.size[column]
                sources = taken(stands, user, column, amount)
                witness = StarvedWhileLent(
                    market.users[user], stands.entitlements.columns[column], amount, gangs, sources
                )
        unit = "GPUs" if witness is None else f"GPUs of {witness.type}"
        effort = f"{len(pairs)} pairs of a user and a type are below the guarantee"
        return self._by_slack(market, worst, size, tolerance, unit=unit, effort=effort, witness=witness)
