"""Nobody starves while lent: nobody waits below its guarantee for what another holds beyond its own."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.entitlement_property import EntitlementProperty, action
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.entitlements.starving import Start, Starving
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict


class NobodyStarvesWhileLent(EntitlementProperty):
    """No user is owed more of a type while others hold more of it than their guarantees that could be taken back.

    Owed is what whole gangs take within the guarantee (`Starving`): with a guarantee of 6 and gangs of 4 it is 4, and
    nothing where what is idle or lent is too little for a gang. What another holds counts if it can be taken back, GPU
    by GPU, if the groups that it is in and the user is not hold more than their guarantees too, and if the caps of
    those that the user is in and the lender is not leave room.

    Each type and good is looked at by itself; where the shares are what users hold now, gangs count only if what they
    take of the others can be had too. Where there are too many ways to choose among gangs (`Chooser`),
    the margin is that of some choice, and UNDECIDED where no gang is found.

    A failure shows a user that is owed more of a type, the ``gangs`` to start with it (name, GPUs and type of each;
    none where nobody says who asks) and the ``sources``: from whom to take it ("" for what is idle), and how much. What
    the gangs take of other columns, and others must give back, are ``others``: the column, and its sources.

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
        unit = stands.unit(who[1]) if start.amount > 0 else "GPUs"
        effort = f"{len(pairs)} pairs of a user and a type are below the guarantee"
        more = "" if starving.complete else "there are too many ways to choose among the gangs that wait"
        said = f"{effort}; more may starve: {more}" if more else effort
        case = self.owed(stands, *who, start)
        verdict = self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=said)
        return verdict if not more or verdict.holds is False else Verdict.undecided(self.name, more, effort=effort)

    def owed(self, stands: HeldAndOwed, user: int, column: int, start: Start) -> SlackCase:
        """Return the case of a user that is owed ``start`` of a column."""
        owed, gangs = stands.entitlements, stands.entitlements.gangs
        needed = {column: start.amount, **start.others}
        sources = {owed.columns[at]: stands.sources(user, at, more) for at, more in needed.items()}
        own, *others = sources.items()
        shown = {
            "user": owed.users[user],
            "type": own[0],
            "amount": start.amount,
            "gangs": tuple((gangs.names[g], int(gangs.gpus[g]), owed.types[j]) for g, j, _ in start.gangs),
            "sources": own[1],
            "others": tuple((name, found) for name, found in others if any(lender for lender, _ in found)),
        }
        return self.case(-start.amount, stands.size[column], **shown)

    def says(self, case: SlackCase) -> str:
        """Return which gangs to start, and from whom to take what for them, in a sentence."""
        told = [(case.type, case.sources), *case.others]
        how = " and ".join(action(sources, type_, case.user) for type_, sources in told)
        if not case.gangs:
            return f"{how}, which holds less than its guarantee and waits"
        kinds: dict[str, Counter[int]] = {}
        for _, gpus, on in case.gangs:
            kinds.setdefault(on, Counter())[gpus] += 1
        said = [f"{' and '.join(map(_gangs, sizes.items()))} of {case.user} on {on}" for on, sizes in kinds.items()]
        all_new = case.amount == sum(gpus for _, gpus, on in case.gangs if on == case.type)
        verb = "start" if all_new or case.type not in kinds else "run"  # some of their GPUs may be there already
        return f"{verb} {' and '.join(said)} within its guarantee: {how}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user is owed more that can be had, some of it from those who hold more than their guarantees."""
        stands = HeldAndOwed.of(market, shares)
        return Starving(stands).of(*stands.place(case.user, case.type)).amount > 0


def _gangs(alike: tuple[int, int]) -> str:
    size, count = alike
    return f"{count} gangs of {size}" if count > 1 else f"a gang of {size}"
