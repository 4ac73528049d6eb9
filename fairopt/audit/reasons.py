"""Why a gang waits: which cap, gang, type, reserve or other user stops it, found without any scheduler's rule."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from fairopt.audit.accounts import BOUNDLESS, Borrowed, EntitlementAccounts
from fairopt.program import Number, number_text
from fairopt.report import SAYS, Key, ResultForm

#: The most users that a sentence names, and of how many it is said at which priority they run.
NAMED, MOST_HOLDERS = 3, 50


class Cause(enum.Enum):
    """What stops a gang on a type, the first in this order."""

    TOO_LARGE = "too large"  # the cluster has fewer GPUs of the type
    CAP = "cap"  # of the user, or of a group that it is in
    GOOD = "good"  # CPU, memory
    OPEN = "nothing"  # GPUs are free for it
    RESERVED = "reserved"  # GPUs are free, and others keep them
    HELD = "held"  # it is owed the GPUs, and others hold more than they are owed
    PROMISED = "promised"  # it is owed the GPUs, and everybody else holds no more than it is owed
    GANG = "gang"  # it needs more together than are free
    FULL = "full"  # none is free, and it is owed no more


def are(count: Number) -> str:
    """Return the verb for so many GPUs."""
    return "is" if count in (0, 1) else "are"


@dataclass(frozen=True)
class Stop:
    """What stops a gang on one type: ``who`` is the user, group or good that does; ``words`` has the numbers."""

    type: str
    cause: Cause
    words: str
    who: str = ""

    form = ResultForm(
        "What stops a gang on a type.",
        Key("type", str, "The type."),
        Key("cause", Cause, "What it is."),
        Key("who", str, "The user, group or good that does."),
        Key("says", str, "The same in words.", lambda stop: stop.words),
    )


@dataclass(frozen=True)
class Reason:
    """Why a gang waits: a stop for each type on which it may run; ``owed`` says whether it fits into what is owed.

    ``elsewhere``: types on which enough GPUs are free and where it may not run.
    """

    gang: str
    user: str
    gpus: int
    owed: bool
    stops: tuple[Stop, ...]
    elsewhere: tuple[str, ...] = ()

    form = ResultForm(
        "Why a gang waits.",
        Key("gang", str, "The gang."),
        Key("gpus", int, "Its GPUs."),
        Key("owed", bool, "Whether it fits into what is owed."),
        Key("stops", list[Stop], "What stops it, on each type on which it may run."),
        Key("elsewhere", list[str], "Types on which enough GPUs are free and where it may not run."),
        SAYS,
    )

    def __str__(self) -> str:
        said = "; ".join(dict.fromkeys(each.words for each in self.stops)) or "it may run on no type that there is"
        some = [*self.elsewhere[:NAMED], *[f"{len(self.elsewhere) - NAMED} more types"] * (len(self.elsewhere) > NAMED)]
        other = f". It may not run on {', nor on '.join(some)}" if some else ""
        return f"{self.gang} ({self.gpus} GPU{'s' * (self.gpus != 1)}) waits: {said}{other}"


@dataclass(frozen=True, eq=False)
class Reasons:
    """Answers why gangs wait, from the books alone.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"], names=["a", "b"], on=[None, "H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(Reasons(EntitlementAccounts(market)).of(0))
    a (4 GPUs) waits: A is owed 4 more H100, 2 are free, and B holds 2 more than it is owed
    """

    books: EntitlementAccounts

    def of(self, gang: int) -> Reason:
        """Return why a pending gang waits."""
        books, gangs = self.books, self.books.gangs
        user, gpus = int(gangs.user[gang]), int(gangs.gpus[gang])
        where = [j for j in range(books.k) if gangs.allowed[gang, j]]
        types = books.market.types
        place = books.owed_at.get(gang)
        stops = sorted((self._stop(gang, j) for j in where), key=lambda stop: _NEAREST[stop.cause])
        if place is not None:  # where it is owed comes first
            stops.sort(key=lambda stop: stop.type != types[place[1]])
        elsewhere = [
            f"{types[j]}, of which {books.free[j]} {are(books.free[j])} free"
            for j in range(books.k)
            if j not in where and books.free[j] >= gpus > 0
        ]
        name = books.market.users[user]
        return Reason(gangs.names[gang], name, gpus, place is not None, tuple(stops), tuple(elsewhere))

    def is_owed(self, gang: int, gpu_type: int) -> bool:
        """Return whether a gang fits on a type into what its user, or a group, is owed."""
        return gang in self.books.owed_at and self.books.owed_at[gang][1] == gpu_type

    def _stop(self, gang: int, j: int) -> Stop:
        books, gangs, kind = self.books, self.books.gangs, self.books.market.types[j]
        gpus, free = int(gangs.gpus[gang]), int(books.free[j])
        there = books.market.capacity[j]
        if gpus > there:
            words = f"it needs {gpus} {kind} together, and there {are(there)} {number_text(there)}"
            return Stop(kind, Cause.TOO_LARGE, words)
        return self._by_cap(gang, j) or self._by_good(gang, j) or self._by_others(gang, j, gpus, free)

    def _by_cap(self, gang: int, j: int) -> Stop | None:
        books, kind = self.books, self.books.market.types[j]
        user, gpus = int(books.gangs.user[gang]), int(books.gangs.gpus[gang])
        for node in (user, *books.above(user)):
            room = int(books.cap_room[node, j])
            if gpus > room:
                name, most = books.said.nodes[node], books.said.cap[node, j]
                held = number_text(books.held[node, j])
                who = name if node == user else f"the group {name}"
                return Stop(kind, Cause.CAP, f"{who} holds {held} {kind} and may hold {number_text(most)}", name)
        return None

    def _by_good(self, gang: int, j: int) -> Stop | None:
        books = self.books
        for column, amount in books.goods(gang, j):
            name = books.said.columns[column]
            user = int(books.gangs.user[gang])
            for node in (user, *books.above(user)):
                held, most = books.held[node, column], books.said.cap[node, column]
                if held + amount > most:
                    words = f"it takes {number_text(amount)} {name}, of which {books.said.nodes[node]} holds "
                    return Stop(
                        books.market.types[j],
                        Cause.GOOD,
                        f"{words}{number_text(held)} and may hold {number_text(most)}",
                        name,
                    )
            left = max(0, books.said.stock[column - books.k] - books.said.held[:, column].sum())
            if amount > left:
                words = f"it takes {number_text(amount)} {name}, and {number_text(left)} {are(left)} free"
                return Stop(books.market.types[j], Cause.GOOD, words, name)
        return None

    def _by_others(self, gang: int, j: int, gpus: int, free: int) -> Stop:
        books, kind = self.books, self.books.market.types[j]
        user = int(books.gangs.user[gang])
        owed = self.is_owed(gang, j)
        if owed and gang in books.served:
            words = f"{free} {kind} {are(free)} free and it is owed them: nothing in the file stops it"
            return Stop(kind, Cause.OPEN, words)
        if owed:
            return self._by_holders(gang, j)
        kept = books.kept_by_others(user, j)
        open_to_all = free - sum(each.gpus for each in kept)
        if gpus <= open_to_all:
            first = self._before(gang, j)
            words = f"{free} {kind} {are(free)} free: nothing in the file stops it{first}"
            return Stop(kind, Cause.OPEN, words)
        if gpus <= free:
            words = f"{free} {kind} {are(free)} free, and others keep theirs: {self._few(kept)}"
            return Stop(kind, Cause.RESERVED, words, books.said.nodes[kept[0].user])
        if free:
            words = f"it needs {gpus} {kind} together, and {free} {are(free)} free"
            return Stop(kind, Cause.GANG, words)
        held, due = (number_text(each[user, j] // 1) for each in (books.held, np.minimum(books.owed, BOUNDLESS)))
        words = f"no {kind} is free, and {books.market.users[user]} holds {held} of {due} that it is owed"
        return Stop(kind, Cause.FULL, words)

    def _by_holders(self, gang: int, j: int) -> Stop:
        books, kind = self.books, self.books.market.types[j]
        node = books.owed_at[gang][0]
        room, free = int(books.owed_room[node, j]), int(books.free[j])
        more = f"{room} more {kind}" if room < BOUNDLESS else f"all {kind} that it asks for"
        owed = f"{books.said.nodes[node]} is owed {more}, {free or 'none'} {are(free)} free"
        owed += " and others are before it" * bool(books.gangs.gpus[gang] <= free)
        holders = books.borrowers(node, j)
        if not holders:
            return Stop(kind, Cause.PROMISED, f"{owed}, and nobody else holds more than it is owed")
        higher, fixed = self._out_of_reach(gang, j, holders)
        notes = [f"{higher} of them at a higher priority"] * bool(higher) + [f"{fixed} not preemptible"] * bool(fixed)
        said = f" ({', '.join(notes)})" if notes else ""
        names = self._few(holders, "{} holds {} more than {} owed", j)
        return Stop(kind, Cause.HELD, f"{owed}, and {names}{said}", books.said.nodes[holders[0].user])

    def _out_of_reach(self, gang: int, j: int, holders: list[Borrowed]) -> tuple[int, int]:
        """Return how many of the borrowed GPUs run at a higher priority than a gang, and how many may not be stopped.

        Of a user's gangs, those of low priority count as what it borrows.
        """
        books, gangs, higher, fixed = self.books, self.books.gangs, 0, 0
        for user, borrowed in holders if len(holders) <= MOST_HOLDERS else ():
            runs = books.running.get((user, j), [])
            above = sum(int(gangs.gpus[each]) for each in runs if gangs.tier[each] > gangs.tier[gang])
            higher += max(0, above - int(books.held[user, j]) + borrowed)
            fixed += max(0, int(books.fixed[user, j]) - int(books.held[user, j]) + borrowed)
        return higher, fixed

    def _before(self, gang: int, j: int) -> str:
        """Return how many pending gangs of a higher priority may run on a type, in words; "" for none."""
        gangs = self.books.gangs
        ahead = int((gangs.pending & gangs.allowed[:, j] & (gangs.tier > gangs.tier[gang])).sum())
        who = "a gang of a higher priority waits" if ahead == 1 else f"{ahead} gangs of a higher priority wait"
        return f", but {who} for them too" if ahead else ""

    def _few(self, rows: list[Borrowed], form: str = "{} {}", j: int = 0) -> str:
        books = self.books
        names = [
            form.format(books.said.nodes[node], gpus, "it is" if gpus == books.borrowed[node, j] else "its group is")
            for node, gpus in rows[:NAMED]
        ]
        more = sum(each.gpus for each in rows[NAMED:])
        return ", ".join(names) + (f" and {len(rows) - NAMED} others {more}" if more else "")


#: Which of several types is said first: where least is missing.
_NEAREST = {
    cause: number
    for number, cause in enumerate(
        (
            *(Cause.OPEN, Cause.HELD, Cause.PROMISED, Cause.RESERVED, Cause.GANG, Cause.FULL),
            *(Cause.CAP, Cause.GOOD, Cause.TOO_LARGE),
        )
    )
}
