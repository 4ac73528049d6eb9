"""Merging users: users with the same row are one user with the sum of their weights, and how to part them again."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from fairopt.program import Array

#: Users are told apart by a random mixture of their numbers first.
SEED = 7
#: So many numbers of the mixture are drawn at once: to begin a generator takes longer than to draw them.
DRAWN = 64


def equal_users(keys: Array) -> tuple[Array, Array]:
    """Return the first user of each group that `equal_runs` finds, in its order, and the group of each user (n,)."""
    order, starts = equal_runs(keys)
    group = np.empty_like(order)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return order[starts], group


def equal_runs(keys: Array) -> tuple[Array, Array]:
    """Return an order of users in which those equal in all ``keys`` (q, n) stand together, and where each run begins.

    They are sorted by a random mixture of the keys, then compared; if others have the same, equal ones may be apart.
    """
    # summed one after the other, so that equal users have equal sums
    mixed = np.add.reduce(np.where(np.isfinite(keys), keys, 0.0) * _mixture(len(keys)), axis=0)
    order = np.argsort(mixed, kind="stable")
    rising, new = mixed[order], np.ones(len(order), dtype=bool)
    if len(close := np.flatnonzero(rising[1:] == rising[:-1]) + 1):
        new[close] = (keys[:, order[close]] != keys[:, order[close - 1]]).any(axis=0)
    return order, np.flatnonzero(new)


def _mixture(count: int) -> Array:
    return _drawn(-(-count // DRAWN) * DRAWN)[:count]


@lru_cache(maxsize=64)
def _drawn(count: int) -> Array:
    return np.random.default_rng(SEED).uniform(1, 2, (count, 1))


def identical_rows(table: Array) -> tuple[Array, Array]:
    """Return where each distinct row of ``table`` (n, k) stands first, and which of these each row is (n,)."""
    rows = np.ascontiguousarray(table)
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(as_bytes, return_index=True, return_inverse=True)
    # in the order in which they stand, so that nothing depends on the bytes
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[group.ravel()]


def alike_rows(table: Array, within: float) -> tuple[Array, Array]:
    """Return the same as `identical_rows` where rows that differ by less than about ``within`` everywhere are the same.

    They share a cell of one of two grids: rows on two sides of a line of one grid share a cell of the other.
    """
    label = np.arange(len(table))
    cells = [identical_rows(np.round(table / within + shift))[1] for shift in (0.0, 0.5)]
    while True:
        before = label
        for cell in cells:
            least = np.full(cell.max() + 1, len(table))
            np.minimum.at(least, cell, label)
            label = least[cell]
        if (label == before).all():
            return identical_rows(label[:, None])


def sums(group: Array, amount: Array) -> Array:
    """Return the sum of ``amount`` (n,) in each ``group`` (n,), rounded once, as bounds rest on it."""
    count = int(group.max()) + 1
    if count == len(group):  # every user is a group of its own
        return np.bincount(group, amount)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count + 1)).tolist()
    ordered = amount[order].tolist()
    return np.array([math.fsum(ordered[begin:end]) for begin, end in pairwise(starts)])


def shared_out(group: Array, part: Array, givers: Array, takers: Array, amount: Array) -> tuple[Array, Array, Array]:
    """Return amounts between groups as amounts between their members: giver, taker and amount of each.

    Shapes: ``group`` (n,) of each member, ``part`` (n,) of its group's whole, adding up to 1; ``givers``, ``takers``,
    ``amount`` (q,). Each member gives and takes its part of what its group does. Members are matched in order, which
    takes no more pairs than there are members in both groups.
    """
    # small parts first: their sums keep more digits
    order = np.lexsort((part, group))
    starts = np.searchsorted(group[order], np.arange(group.max() + 2))
    if len(order) == starts[-1] == group.max() + 1:  # every user is a group of its own
        return order[givers], order[takers], amount
    ends = np.empty(len(group))
    for begin, end in pairwise(starts):
        ends[begin:end] = np.cumsum(part[order[begin:end]])
    # each pair's members cut the unit interval where they end; of cuts that are equal the first counts
    both, pairs = np.concatenate([givers, takers]), np.arange(len(amount))
    sizes = starts[both + 1] - starts[both]
    pair, gives = (
        np.repeat(np.tile(pairs, 2), sizes),
        np.repeat([True, False], [sizes[: len(pairs)].sum(), sizes[len(pairs) :].sum()]),
    )
    cuts = np.minimum(ends[np.arange(len(pair)) + np.repeat(starts[both] - np.cumsum(sizes) + sizes, sizes)], 1.0)
    rising = np.lexsort((cuts, pair))
    pair, gives, cuts = pair[rising], gives[rising], cuts[rising]
    begun = np.searchsorted(pair, pairs)
    given = np.cumsum(gives) - gives  # givers that end before
    given -= given[begun][pair]
    taken = np.arange(len(pair)) - begun[pair] - given
    counts = (np.diff(pair, prepend=-1) != 0) | (np.diff(cuts, prepend=-1.0) != 0)
    pair, cuts, given, taken = pair[counts], cuts[counts], given[counts], taken[counts]
    cuts[np.diff(pair, append=-1) != 0] = 1.0
    begins = np.where(np.diff(pair, prepend=-1) != 0, 0.0, np.roll(cuts, 1))
    g, h = givers[pair], takers[pair]
    giver, taker = (
        order[np.minimum(starts[group] + ended, starts[group + 1] - 1)] for group, ended in ((g, given), (h, taken))
    )
    return giver, taker, (cuts - begins) * amount[pair]


def evened_out(group: Array, amount: Array) -> tuple[Array, Array, Array]:
    """Return transfers (from, to, how much) that bring ``amount`` (n,), which adds up to 0 in each group, to zero."""
    order = np.lexsort((amount, group))
    giver_at, taker_at = (order[amount[order] * sign > 0] for sign in (1, -1))
    pieces: list[tuple[int, int, float]] = []
    left = amount.copy()
    takers = iter(taker_at.tolist())
    taker = next(takers, None)
    for giver in giver_at.tolist():
        while taker is not None and left[giver] > 0 and group[taker] <= group[giver]:
            if group[taker] == group[giver]:
                moved = min(left[giver], -left[taker])
                pieces.append((giver, taker, moved))
                left[giver] -= moved
                left[taker] += moved
                if left[taker] < 0:
                    break
            taker = next(takers, None)
    from_, to, size = (np.array(each) for each in zip(*pieces, strict=True)) if pieces else (np.zeros(0),) * 3
    return from_.astype(np.int64), to.astype(np.int64), size.astype(float)
