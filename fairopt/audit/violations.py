"""What is broken: guarantees by others' borrowing, and caps; with the smallest reclaim that mends it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from fairopt.audit.books import Books
from fairopt.audit.mending import Reclaim, reclaimable, smallest
from fairopt.audit.reasons import MOST_HOLDERS, NAMED
from fairopt.program import Number, number_text


@dataclass(frozen=True)
class BrokenGuarantee:
    """A user or group whose gangs wait for GPUs that it is owed, while others hold more than they are owed.

    ``holders``: those that hold most beyond that, of ``of``.
    """

    name: str
    type: str
    short: int
    holders: tuple[tuple[str, int], ...]
    of: int

    def __str__(self) -> str:
        some = ", ".join(f"{name} holds {gpus}" for name, gpus in self.holders[:NAMED])
        more = f", and {self.of - NAMED} others hold some" if self.of > NAMED else ""
        owed = f"{self.name} waits for {self.short} {self.type} that it is owed"
        return f"{owed}; beyond what they are owed, {some}{more}"


@dataclass(frozen=True)
class BrokenCap:
    """A user or group that holds more of a type or good than it may; ``mend`` is None for a good."""

    name: str
    type: str
    holds: Number
    cap: Number
    mend: Reclaim | None = None

    def __str__(self) -> str:
        return f"{self.name} holds {number_text(self.holds)} {self.type} and may hold {number_text(self.cap)}"


@dataclass(frozen=True)
class Mend:
    """The smallest reclaim on a type that lets starving gangs run: ``gangs``, of all that could (``of``)."""

    type: str
    gangs: tuple[str, ...]
    of: int
    reclaim: Reclaim

    def __str__(self) -> str:
        if self.reclaim.stops is None or not self.gangs:
            return f"{self.type}: {self.reclaim}"
        some = ", ".join(self.gangs[:NAMED]) + (f" and {len(self.gangs) - NAMED} more" * (len(self.gangs) > NAMED))
        runs = "runs" if len(self.gangs) == 1 else "run"
        count = f" ({len(self.gangs)} of {self.of} that starve)" if len(self.gangs) < self.of else ""
        return f"{self.reclaim}. Then {some} {runs}{count}"


def broken_guarantees(books: Books) -> Iterator[BrokenGuarantee]:
    """Yield the guarantees that others' borrowing breaks.

    A starving gang that no free GPUs serve and that no cap stops counts for its user where it fits into what that is
    owed, else for the first group around it. A part by weight is no promise.
    """
    if books.by_weight:
        return
    short: dict[tuple[int, int], int] = {}
    for gang, (node, j) in books.owed_at.items():
        if gang not in books.served and books.below_caps(gang, j) and books.borrowers(node, j):
            short[node, j] = short.get((node, j), 0) + int(books.gangs.gpus[gang])
    for (node, j), gpus in sorted(short.items()):
        holders = books.borrowers(node, j)
        names = tuple((books.said.nodes[user], borrowed) for user, borrowed in holders[:MOST_HOLDERS])
        yield BrokenGuarantee(books.said.nodes[node], books.market.types[j], gpus, names, len(holders))


def broken_caps(books: Books) -> Iterator[BrokenCap]:
    """Yield the caps that are broken, each with the smallest reclaim inside that mends it."""
    said = books.said
    for node, column in np.argwhere(books.over_cap).tolist():
        holds, cap = books.held[node, column], said.cap[node, column]
        mend = None
        if column < books.k:
            inside = books.users_in(node)
            mend = smallest(books, column, ceil(holds - cap), inside, {})
        yield BrokenCap(said.nodes[node], said.columns[column], holds, cap, mend)


def mends(books: Books, only: int | None = None) -> Iterator[Mend]:
    """Yield, type by type, the smallest reclaim that lets all starving gangs run; of the gangs of one node, ``only``.

    Where not enough can be reclaimed for all, or caps leave no room for all, gangs of high priority, and then those
    that asked first, come first.
    """
    for j in range(books.k):
        gangs = [
            gang
            for gang, (node, on) in books.owed_at.items()
            if on == j and only in (None, node) and books.below_caps(gang, j)
        ]
        gangs.sort(key=books.place.__getitem__)
        users = sorted({user for gang in gangs for user, _ in books.borrowers(books.owed_at[gang][0], j)})
        free = int(books.free[j]) if only is None else books.free_for(only, j)
        if not users:
            continue
        helped: list[int] = []
        total, there = 0, free + reclaimable(books, j, users)
        granted: dict[int, int] = defaultdict(int)
        for gang in gangs:
            gpus, user = int(books.gangs.gpus[gang]), int(books.gangs.user[gang])
            path = (user, *books.above(user))
            if total + gpus <= there and all(granted[node] + gpus <= books.cap_room[node, j] for node in path):
                helped, total = [*helped, gang], total + gpus
                granted |= {node: granted[node] + gpus for node in path}
        if helped and total <= free:
            continue
        needed = (total if helped else int(books.gangs.gpus[gangs[0]])) - free
        found = smallest(books, j, needed, users, granted)
        yield Mend(books.market.types[j], tuple(books.gangs.names[gang] for gang in helped), len(gangs), found)
