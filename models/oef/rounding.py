"""Whole GPUs instead of shares, round after round: what a user is short of, or ahead by, is carried over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from fairopt.program import Number

#: Numbers, one row for each user and one column for each type.
Table = Sequence[Sequence[Number]]
#: Whole GPUs in the same shape.
Whole = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Minimum:
    """A user gets at least ``least`` GPUs of ``types`` together, or none of them."""

    user: int
    types: tuple[int, ...]
    least: int


def minima_of_ones(users: int, types: int) -> list[Minimum]:
    """Return the minima that bind nobody: one GPU, for each user and type."""
    return [Minimum(user, (kind,), 1) for user in range(users) for kind in range(types)]


def whole_gpus(
    target: Table,
    capacity: Sequence[int],
    minima: Sequence[Minimum],
    *,
    held: Sequence[Sequence[int]] | None = None,
    slack: Number = 0,
) -> Whole:
    """Return how many GPUs of each type each user gets in this round: ``target`` (n, k) rounded, within ``capacity``.

    ``target`` is ideal plus deviation. GPUs are given out one at a time, each to the user that is furthest behind on
    its type (target less what it has got), as long as it is behind at all. Ties go to the first user, then the first
    type. The first GPUs of a user come together, the ``least`` of its `Minimum`; a user that cannot have all of them,
    or would be ahead before the last of them, gets none and is further behind in the next round. A pair of user and
    type that stands in no minimum gets nothing. ``held`` (n, k) is what users keep from before, whatever they are owed.
    ``slack`` is what floats may be off by: nobody who is behind by less gets a GPU.

    Where rounding each target to the nearest integer hands out exactly ``capacity`` and nothing negative, this is it.
    Else that rounding gives out GPUs that are not there, or keeps some that are owed; this never gives out more.

    How far behind or ahead (``deviation``) users may come, whatever the ideals are in each round, within capacity:

    * With minima of 1, more than -1 and at most H_n - 1 = 1/2 + ... + 1/n, for n users that stay; nothing that decides
      round by round can promise less. At most H_n where users come, at deviation 0, and go, n at a time.
      (The k users most behind are so by at most 1/(k+1) + ... + 1/n in the mean: as for emptying the fullest cup.)
    * With minima up to the type's capacity m, one type at a time: more than -1 and less than n m + n - 1; each user
      whose ideals add up without end gets GPUs again and again. (A round in which GPUs stay leaves nobody behind by
      more than m, and every other round leaves the sum of deviations no larger than it was.)

    Source: OEF Sec. 4.3, which says neither how users are kept within capacity nor how ties are broken; the first bound
    is that of Adler et al., A Proportionate Fair Scheduling Rule with Good Worst-case Performance, SPAA 2003.
    """
    real = [list(row) for row in held] if held is not None else [[0] * len(capacity) for _ in target]
    left = [int(total) - sum(row[kind] for row in real) for kind, total in enumerate(capacity)]
    level = [[goal - got for goal, got in zip(*rows, strict=True)] for rows in zip(target, real, strict=True)]
    line_of = {(line.user, kind): line for line in minima for kind in line.types}
    queue = [(-level[user][kind], user, kind) for user, kind in line_of if level[user][kind] > slack]
    heapify(queue)
    while queue:
        below, user, kind = heappop(queue)
        if left[kind] <= 0 or level[user][kind] != -below:  # nothing there, or an entry that a bundle made old
            continue
        line = line_of[user, kind]
        missing = line.least - sum(real[user][each] for each in line.types)
        bundle = _drawn(level[user], left, line.types, missing, slack) if missing > 1 else {kind: 1}
        for each, gpus in bundle.items():
            real[user][each] += gpus
            left[each] -= gpus
            level[user][each] -= gpus
            if level[user][each] > slack and left[each] > 0:
                heappush(queue, (-level[user][each], user, each))
    return tuple(tuple(row) for row in real)


def _drawn(
    level: Sequence[Number], left: Sequence[int], types: Sequence[int], wanted: int, slack: Number
) -> dict[int, int]:
    """Return ``wanted`` GPUs of one user, each of the type on which it is furthest behind; {} where it is not owed."""
    bundle: dict[int, int] = {}
    for _ in range(wanted):
        open_ = [
            kind for kind in types if left[kind] > bundle.get(kind, 0) and level[kind] - bundle.get(kind, 0) > slack
        ]
        if not open_:
            return {}
        best = max(open_, key=lambda kind: (level[kind] - bundle.get(kind, 0), -kind))
        bundle[best] = bundle.get(best, 0) + 1
    return bundle


def carried(target: Table, real: Whole) -> tuple[tuple[Number, ...], ...]:
    """Return the deviations (n, k) after a round: what was due, less what was got.

    Source: OEF Sec. 4.3 (dev(t+1) = dev(t) + ideal(t) - real(t)).
    """
    return tuple(
        tuple(goal - got for goal, got in zip(goals, gots, strict=True))
        for goals, gots in zip(target, real, strict=True)
    )


def to_the_nearest(target: Table) -> Whole:
    """Return each target rounded by itself, halves up, as the source prints it: capacities are not looked at."""
    return tuple(tuple(int((2 * goal + 1) // 2) for goal in row) for row in target)
