"""Who is owed more, for whole gangs, while others are lent it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np

from fairopt.program import Array, Number
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, says_who_asks
from fairopt.properties.entitlements.whole_gangs import Chooser, Ways

#: What all gangs take is rounded up to such parts, to see whether it can bound a choice.
GRAIN = 2**20


class Waiting(NamedTuple):
    """A gang that waits, a type (its column) on which it may run, and what it then takes of each column."""

    gang: int
    type: int
    needs: Mapping[int, Number]


@dataclass(frozen=True)
class Start:
    """How much more of a column a user is owed that can be had, and the gangs that run with it.

    ``others`` is what these take of other columns.
    """

    amount: Number
    gangs: tuple[Waiting, ...] = ()
    others: Mapping[int, Number] = field(default_factory=dict)


class Starving:
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

    def of(self, user: int, column: int) -> Start:
        """Return what a user is owed of a column."""
        noise, held, sure = self.stands.noise[column], self.stands.held[user, column], self._sure[user, column]
        if self.stands.lent_in_all[user, column] <= noise or sure <= noise:
            return Start(0 * held)
        if not self._whole:
            return Start(sure)
        first = min(self.owed.held[user, column], held + sure)
        gangs = self._chosen(user, column, held + sure - first)
        taken: dict[int, Number] = {}
        for gang in gangs:
            for each, more in gang.needs.items():
                taken[each] = taken.get(each, 0) + more
        amount = first - held + taken.pop(column, 0)
        return Start(amount, gangs, taken) if amount > noise else Start(0 * held)

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
            return self._fullest(gangs, int(can[column] // 1))
        return self._best(gangs, [column, *tight], can)

    def _fullest(self, gangs: list[list[Waiting]], room: int) -> tuple[Waiting, ...]:
        """Return those of gangs, for one type and with nothing else that bounds them, that take most of its room."""
        alike: dict[int, list[Waiting]] = defaultdict(list)
        for (gang,) in reversed(gangs):
            alike[int(gang.needs[gang.type])].append(gang)
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
            gpus = {j: int(gangs.gpus[gang])} if gangs.gpus[gang] else {}
            found[int(gangs.user[gang])].append(Waiting(gang, j, gpus | dict(self.stands.goods(gang, j))))
        return found
