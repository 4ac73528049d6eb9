"""Karma's arithmetic: who gets how many slices in a quantum, and what that does to everybody's credits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple


class Slices(NamedTuple):
    """How a cluster is cut: ``guaranteed`` slices of each user, ``shared`` ones, ``free`` credits of each a quantum."""

    guaranteed: tuple[int, ...]
    shared: int
    free: tuple[int, ...]


class Quantum(NamedTuple):
    """What a quantum gives to each user: ``given`` slices, and ``credits`` after it."""

    given: tuple[int, ...]
    credits: tuple[int, ...]


def cut(fair: Sequence[int], alpha: Fraction) -> Slices:
    """Cut a cluster by fair shares (n,): each user keeps ``alpha`` of its own, rounded down, and the rest is shared.

    A user's free credits are its part of the shared slices, so that no slice and no credit is lost.

    Source: Karma, OSDI 2023 (guaranteed share, shared slices); the rounding and unequal shares are ours.

    >>> cut([2, 2, 2], Fraction(1, 2))
    Slices(guaranteed=(1, 1, 1), shared=3, free=(1, 1, 1))
    """
    guaranteed = tuple(int(alpha * own) for own in fair)
    return Slices(guaranteed, sum(fair) - sum(guaranteed), tuple(f - g for f, g in zip(fair, guaranteed, strict=True)))


def cut_as_published(total: int, users: int, public: Fraction) -> Slices:
    """Cut ``total`` slices as the published library does: ``public`` is the part that is shared, which it calls alpha.

    It rounds down three times: the shared slices, each user's share of the others, and the free credits. Slices and
    credits that do not divide are lost.

    Source: resource-disaggregation/karma, algorithm/src/karma_allocator.cpp, constructor and ``allocate``, 510cdd94.

    >>> cut_as_published(7, 3, Fraction(1, 2))
    Slices(guaranteed=(1, 1, 1), shared=3, free=(1, 1, 1))
    """
    shared = int(public * total)
    return Slices(((total - shared) // users,) * users, shared, (shared // users,) * users)


def quantum(demand: Sequence[int], credits: Sequence[int], slices: Slices) -> Quantum:
    """Return what users (n,) get in one quantum.

    Each gets its demand up to its guaranteed slices. Those who want more borrow slice by slice, the one with the most
    credits first, for a credit a slice. Slices come from those who want less than is guaranteed, the one with the
    fewest credits first, who earns the credit; shared slices, which pay nobody, come last. Ties go to whoever has the
    least left to borrow or lend, then to the first.

    Source: Karma, OSDI 2023 (Algorithm 1); the same, faster, and the ties: karma_allocator.cpp,
    ``borrow_from_poorest_fast`` and ``give_to_richest_fast``, 510cdd94.

    >>> quantum([2, 2, 5], [8, 3, 6], cut([2, 2, 2], Fraction(1, 2)))
    Quantum(given=(2, 1, 3), credits=(8, 4, 5))
    """
    rows = list(zip(demand, slices.guaranteed, strict=True))
    purse = [own + free for own, free in zip(credits, slices.free, strict=True)]
    given = [min(wanted, own) for wanted, own in rows]
    lends = [(purse[i], own - wanted, i) for i, (wanted, own) in enumerate(rows) if wanted < own]
    wants = [(-purse[i], min(wanted - own, purse[i]), i) for i, (wanted, own) in enumerate(rows) if wanted > own]
    wants = [each for each in wants if each[1] > 0]
    supply = sum(left for _, left, _ in lends) + slices.shared
    borrowed = min(supply, sum(left for _, left, _ in wants))
    for i in _in_turn(wants, borrowed):
        given[i] += 1
        purse[i] -= 1
    for i in _in_turn(lends, borrowed):
        purse[i] += 1
    return Quantum(tuple(given), tuple(purse))


def _in_turn(heap: list[tuple[int, int, int]], count: int) -> list[int]:
    """Return whose turn it is, at most ``count`` times; a turn raises the key, and one less is left."""
    heapify(heap)
    turns: list[int] = []
    while heap and len(turns) < count:
        key, left, i = heap[0]
        turns.append(i)
        if left == 1:
            heappop(heap)
        else:
            heapreplace(heap, (key + 1, left - 1, i))
    return turns


def played(demands: Sequence[Sequence[int]], slices: Slices, credits: int) -> list[Quantum]:
    """Return the quanta of users who begin with ``credits`` each and want ``demands`` (quanta, n).

    >>> [each.given for each in played([[4, 1, 1], [0, 3, 0], [2, 2, 5]], cut([2, 2, 2], Fraction(1, 2)), 100)]
    [(4, 1, 1), (0, 3, 0), (1, 1, 4)]
    """
    out: list[Quantum] = []
    for wanted in demands:
        before = out[-1].credits if out else (credits,) * len(wanted)
        out.append(quantum(wanted, before, slices))
    return out
