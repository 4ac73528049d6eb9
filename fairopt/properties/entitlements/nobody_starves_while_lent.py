"""Nobody starves while lent: nobody waits below its guarantee for what another holds beyond its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, action, says_who_asks
from fairopt.properties.entitlements.whole_gangs import Chooser, Ways
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict

#: What all gangs take is rounded up to such parts, to see whether it can bound a choice.
GRAIN = 2**20


class Waiting(NamedTuple):
    """A gang that waits, a type (its column) on which it may run, and what it then takes of each column."""

    gang: int
    type: int
    needs: Mapping[int, Number]


class _Starving:
    """What each user is owed of the guarantees that others are lent.

    Nothing is, unless something can be taken back for it. It is owed no more than its guarantee, its cap, what it could
    use, and what it would have with all that is idle or lent. Within that, what it holds now comes first, GPU by GPU,
    and then pending gangs that may run on the type, each with all of its GPUs: those that take most together. So of a
    guarantee of 6 a user with gangs of 4 is owed 4. Where nobody says who asks, it is owed any part. What the gangs
    take of other columns can be had too: it is idle, or within the user's guarantee and idle or lent.

    ``complete``: all choices were made exactly (`Chooser`); where not, more may be owed.
    """

    def __init__(self, stands: HeldAndOwed) -> None:
        self.stands, self.owed, self.chooser = stands, stands.entitlements, Chooser()
        self._whole = says_who_asks(self.owed)

    @property
    def complete(self) -> bool:
        """Whether all choices so far were made exactly."""
        return self.chooser.complete

    def of(self, user: int, column: int) -> tuple[Number, tuple[Waiting, ...]]:
        """Return how much more of a column a user is owed that can be had, and the gangs that run with it."""
        noise, held, sure = self.stands.noise[column], self.stands.held[user, column], self._sure[user, column]
        if self.stands.lent_in_all[user, column] <= noise or sure <= noise:
            return 0 * held, ()
        if not self._whole:
            return sure, ()
        first = min(self.owed.held[user, column], held + sure)
        gangs = self._chosen(user, column, held + sure - first)
        amount = first - held + _taken(gangs).get(column, 0)
        return (amount, gangs) if amount > noise else (0 * held, ())

    def _chosen(self, user: int, column: int, room: Number) -> tuple[Waiting, ...]:
        """Return the pending gangs that take most of ``room`` together, and on which type each runs."""
        can = self._can[user] + self.stands.noise
        can[column] = room + self.stands.noise[column]
        ways: dict[int, list[Waiting]] = defaultdict(list)
        for each in self._waiting[user]:
            if each.needs.get(column, 0) and all(more <= can[at] for at, more in each.needs.items()):
                ways[each.gang].append(each)
        gangs = list(ways.values())
        most: dict[int, int] = defaultdict(int)
        for gang in gangs:
            for at in {at for way in gang for at in way.needs}:
                most[at] += ceil(GRAIN * max(way.needs.get(at, 0) for way in gang))  # the sum of fractions may be long
        tight = [at for at, more in most.items() if at != column and more > GRAIN * can[at]]
        if column < len(self.owed.types) and not tight:
            return self._fullest(gangs, int(can[column] * self.owed.gangs.parts // 1))
        return self._best(gangs, [column, *tight], can)

    def _fullest(self, gangs: list[list[Waiting]], room: int) -> tuple[Waiting, ...]:
        """Return those of gangs, for one type and with nothing else that bounds them, that take most of its room."""
        alike: dict[int, list[Waiting]] = defaultdict(list)
        for (gang,) in reversed(gangs):
            alike[round(gang.needs[gang.type] * self.owed.gangs.parts)].append(gang)
        sizes = self.chooser.fullest((size for size, each in alike.items() for _ in each), room)
        return tuple(alike[size].pop() for size in sizes)

    def _best(self, gangs: list[list[Waiting]], columns: list[int], can: Array) -> tuple[Waiting, ...]:
        """Return those of gangs that take most of the first column, within what can be had of all columns."""
        alike: dict[Ways, list[list[Waiting]]] = defaultdict(list)
        for gang in reversed(gangs):
            ways = tuple(tuple(way.needs.get(at, 0) for at in columns) for way in gang)
            alike[ways].append(gang)
        counts = {ways: len(each) for ways, each in alike.items()}
        chosen = self.chooser.best(counts, tuple(can[columns]))
        return tuple(alike[ways].pop()[way] for ways, way, count in chosen for _ in range(count))

    @cached_property
    def _sure(self) -> Array:
        """How much more of its guarantee each user (n, c) could use and have, of what is idle and lent."""
        stands = self.stands
        bounds = (stands.guarantee - stands.held, stands.cap - stands.held, stands.more, stands.reach)
        return np.asarray(np.maximum(np.minimum.reduce(bounds), 0)[: len(self.owed.users)])

    @cached_property
    def _can(self) -> Array:
        """How much more each user (n, c) can have: what is idle within the caps above it, or more of its guarantee."""
        idle = [np.minimum(self.stands.free, self.stands.room(user)) for user in range(len(self.owed.users))]
        return np.asarray(np.maximum(np.array(idle), self._sure))

    @cached_property
    def _waiting(self) -> Mapping[int, list[Waiting]]:
        """The pending gangs of each user, with each type on which they may run."""
        gangs, found = self.owed.gangs, defaultdict[int, list[Waiting]](list)
        for gang, j in np.argwhere(gangs.allowed & gangs.pending[:, None]).tolist():
            gpus = {j: gangs.size(gang)} if gangs.gpus[gang] else {}
            found[int(gangs.user[gang])].append(Waiting(gang, j, gpus | dict(self.stands.goods(gang, j))))
        return found


def _taken(gangs: tuple[Waiting, ...]) -> dict[int, Number]:
    """Return what gangs take together, of each column."""
    taken: dict[int, Number] = {}
    for gang in gangs:
        for column, more in gang.needs.items():
            taken[column] = taken.get(column, 0) + more
    return taken


class NobodyStarvesWhileLent(AllocationProperty):
    """No user is owed more of a type while others hold more of it than their guarantees that could be taken back.

    Owed is what whole gangs take within the guarantee: with a guarantee of 6 and gangs of 4 it is 4, and
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
    needs = frozenset({Entitled.GUARANTEES})
    needs_speedups = False
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        starving, pairs = _Starving(stands), np.argwhere(stands.short[: len(market.users)] > 0).tolist()
        owed, gangs, who = 0 * stands.free[0], tuple[Waiting, ...](), (0, 0)
        for user, column in pairs:
            more, needed = starving.of(user, column)
            if more / stands.size[column] > owed / stands.size[who[1]]:
                owed, gangs, who = more, needed, (user, column)
        unit = stands.unit(who[1]) if owed > 0 else "GPUs"
        effort = f"{len(pairs)} pairs of a user and a type are below the guarantee"
        why = "" if starving.complete else "there are too many ways to choose among the gangs that wait"
        said = f"{effort}; more may starve: {why}" if why else effort
        case = self.owed(stands, *who, owed, gangs)
        verdict = self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=said)
        return verdict if not why or verdict.holds is False else Verdict.undecided(self.name, why, effort=effort)

    def owed(
        self, stands: HeldAndOwed, user: int, column: int, amount: Number, gangs: tuple[Waiting, ...]
    ) -> SlackCase:
        """Return the case of a user that is owed an ``amount`` of a column, to start ``gangs``."""
        owed, names = stands.entitlements, stands.entitlements.gangs
        needed = {column: amount} | {at: more for at, more in _taken(gangs).items() if at != column}
        sources = {owed.columns[at]: stands.sources(user, at, more) for at, more in needed.items()}
        own, *others = sources.items()
        shown = {
            "user": owed.users[user],
            "type": own[0],
            "amount": amount,
            "gangs": tuple((names.names[g], names.size(g), owed.types[j]) for g, j, _ in gangs),
            "sources": own[1],
            "others": tuple((name, found) for name, found in others if any(lender for lender, _ in found)),
        }
        return self.case(-amount, stands.size[column], **shown)

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
        return _Starving(stands).of(*stands.place(case.user, case.type))[0] > 0


def _gangs(alike: tuple[int, int]) -> str:
    size, count = alike
    return f"{count} gangs of {size}" if count > 1 else f"a gang of {size}"
