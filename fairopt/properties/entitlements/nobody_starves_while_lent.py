"""Nobody starves while lent: nobody waits below its guarantee for what another holds beyond its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty, action
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.entitlements.starving import Start, Starving
from fairopt.properties.property import CitedInstance
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class StarvedWhileLent:
    """A user that is owed more of a type, the gangs to start with it, and from whom to take it ("" for what is idle).

    ``gangs``: name, GPUs and type of each; empty where nobody says who asks. ``others``: what these take of other
    columns and others must give back: the column, and from whom to take it.
    """

    user: str
    type: str
    amount: Number
    gangs: tuple[tuple[str, int, str], ...]
    sources: tuple[tuple[str, Number], ...]
    others: tuple[tuple[str, tuple[tuple[str, Number], ...]], ...] = ()

    @classmethod
    def of(cls, stands: HeldAndOwed, user: int, column: int, start: Start) -> StarvedWhileLent:
        """Return the witness for a user that is owed ``start`` of a column."""
        owed, gangs = stands.entitlements, stands.entitlements.gangs
        from_whom = {at: stands.sources(user, at, more) for at, more in {column: start.amount, **start.others}.items()}
        return cls(
            owed.users[user],
            owed.columns[column],
            start.amount,
            tuple((gangs.names[each.gang], int(gangs.gpus[each.gang]), owed.types[each.type]) for each in start.gangs),
            from_whom.pop(column),
            tuple((owed.columns[at], sources) for at, sources in from_whom.items() if any(name for name, _ in sources)),
        )

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether the user is owed more that can be had, some of it from those who hold more than their guarantees."""
        stands = HeldAndOwed.of(market, shares)
        return Starving(stands).of(market.index(self.user), stands.entitlements.columns.index(self.type)).amount > 0

    def __str__(self) -> str:
        told = [(self.type, self.sources), *self.others]
        how = " and ".join(action(sources, type_, self.user) for type_, sources in told)
        if not self.gangs:
            return f"{how}, which holds less than its guarantee and waits"
        kinds: dict[str, Counter[int]] = {}
        for _, gpus, on in self.gangs:
            kinds.setdefault(on, Counter())[gpus] += 1
        said = [f"{' and '.join(map(_gangs, sizes.items()))} of {self.user} on {on}" for on, sizes in kinds.items()]
        all_new = self.amount == sum(gpus for _, gpus, on in self.gangs if on == self.type)
        verb = "start" if all_new or self.type not in kinds else "run"  # some of their GPUs may be there already
        return f"{verb} {' and '.join(said)} within its guarantee: {how}"


def _gangs(alike: tuple[int, int]) -> str:
    size, count = alike
    return f"{count} gangs of {size}" if count > 1 else f"a gang of {size}"


class NobodyStarvesWhileLent(EntitlementProperty):
    """No user is owed more of a type while others hold more of it than their guarantees that could be taken back.

    Owed is what whole gangs take within the guarantee (`Starving`): with a guarantee of 6 and gangs of 4 it is 4, and
    nothing where what is idle or lent is too little for a gang. What another holds counts if it can be taken back, GPU
    by GPU, if the groups that it is in and the user is not hold more than their guarantees too, and if the caps of
    those that the user is in and the lender is not leave room.

    Each type and good is looked at by itself; where the shares are what users hold now, gangs count only if what they
    take of the others can be had too. Where there are too many ways to choose among gangs (`Chooser`),
    the margin is that of some choice, and UNDECIDED where no gang is found.

    Source: Kueue's reclaimWithinCohort, KAI's reclaim; both reclaim for a whole gang within its quota. The definition
    is ours.

    >>> verdict = NobodyStarvesWhileLent().check(TEAMS, NOW)
    >>> print(verdict.margin, "|", verdict.witness)
    -6 | start a gang of 6 of team-a on H100 within its guarantee: reclaim 6 H100 from batch for team-a
    """

    name = "nobody_starves_while_lent"
    head = "nobody starves while others borrow"
    broken = "{who} starves while others borrow"
    source = "Kueue's reclaimWithinCohort, KAI's reclaim; ours"
    definition = (
        "no user's whole gangs could use more of its guarantee of a type, with what is idle and what others hold "
        "beyond their own and can be taken back"
    )
    needs = Entitled.GUARANTEES
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        starving, pairs = Starving(stands), np.argwhere(stands.short[: len(market.users)] > 0).tolist()
        start, who = Start(0 * stands.free[0]), (0, 0)
        for user, column in pairs:
            found = starving.of(user, column)
            if found.amount / stands.size[column] > start.amount / stands.size[who[1]]:
                start, who = found, (user, column)
        witness = StarvedWhileLent.of(stands, *who, start) if start.amount > 0 else None
        unit = "GPUs" if witness is None else f"GPUs of {witness.type}" if who[1] < len(market.types) else witness.type
        effort = f"{len(pairs)} pairs of a user and a type are below the guarantee"
        more = "" if starving.complete else "there are too many ways to choose among the gangs that wait"
        verdict = self._by_slack(
            market,
            -start.amount,
            stands.size[who[1]],
            tolerance,
            unit=unit,
            effort=f"{effort}; more may starve: {more}" if more else effort,
            witness=witness,
        )
        return verdict if not more or verdict.holds is False else Verdict.undecided(self.name, more, effort=effort)
