"""Nobody starves while lent: nobody waits below its guarantee for what another holds beyond its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import CitedInstance
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class StarvedWhileLent:
    """A user below what it is owed of a type, and another that holds more than its own guarantee of it."""

    user: str
    type: str
    lender: str
    amount: Number

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether the one is owed more, and the other holds more than its guarantee that could be taken back."""
        stands = HeldAndOwed.of(market, shares)
        user, other = market.index(self.user), market.index(self.lender)
        column = stands.entitlements.columns.index(self.type)
        return bool(stands.short[user, column] > 0 and stands.lent(user, column).get(other, 0) > 0)

    def __str__(self) -> str:
        return (
            f"reclaim {number_text(self.amount)} {self.type} from {self.lender}, which holds more than its own "
            f"guarantee, for {self.user}, which holds less and waits"
        )


class NobodyStarvesWhileLent(EntitlementProperty):
    """No user is owed more of a type while another holds more of it than its guarantee that could be taken back.

    Owed: as in `GuaranteeKept`. What another holds counts if it can be taken back, and if the groups that it is in and
    the user is not hold more than their guarantees too.

    Source: Kueue's reclaimWithinCohort, KAI's reclaim; the definition is ours.

    >>> print(NobodyStarvesWhileLent().check(TEAMS, NOW).margin)
    -6
    """

    name = "nobody_starves_while_lent"
    short = "NSL"
    source = "Kueue's reclaimWithinCohort, KAI's reclaim; ours"
    definition = (
        "no user could use more of its guarantee of a type while another's use beyond its own can be taken back"
    )
    needs = Entitled.GUARANTEES
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        n = len(market.users)
        short, worst, size, witness = stands.short[:n], 0 * stands.free[0], stands.size[0], None
        amount = np.minimum(short, stands.most_lent[:n])
        user, column = divmod(int(np.argmax(amount / stands.size)), amount.shape[1])
        if amount[user, column] > 0:
            worst, size = -amount[user, column], stands.size[column]
            lender = market.users[next(iter(stands.lent(user, column)))]
            witness = StarvedWhileLent(market.users[user], stands.entitlements.columns[column], lender, -worst)
        unit = "GPUs" if witness is None else f"GPUs of {witness.type}"
        effort = f"{int((short > 0).sum())} of {short.size} pairs of a user and a type are owed more"
        return self._by_slack(market, worst, size, tolerance, unit=unit, effort=effort, witness=witness)
