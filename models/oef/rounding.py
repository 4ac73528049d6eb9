"""Rounds shares to whole GPUs, round after round, and carries the deviations over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import ceil

from fairopt.program import Number

#: Numbers (n, k): a row for each user, a column for each type.
Table = Sequence[Sequence[Number]]
#: Whole GPUs in the same shape.
Whole = tuple[tuple[int, ...], ...]


def whole_gpus(
    target: Table,
    capacity: Sequence[int],
    least: Sequence[Sequence[int]] | None = None,
    *,
    together: bool = False,
    held: Sequence[Sequence[int]] | None = None,
    slack: Number = 0,
) -> Whole:
    """Return how many GPUs of each type each user gets in this round: ``target`` (n, k) rounded, within ``capacity``.

    ``target`` is ideal plus deviation. GPUs are given out one at a time, each to the user that is furthest behind on
    its type (target minus GPUs received), as long as it is behind at all. Ties go to the first user, then the first
    type. A user's first GPUs of a type come together, ``least`` (n, k) of them, 1 by default; with ``together`` those
    of all types on which it has a least, the same for each, count as one. A user that cannot have all of them, or would
    be ahead before the last of them, gets none and is further behind in the next round. Where it is 0 the user gets
    nothing of the type. ``held`` (n, k) are the GPUs that users keep in any case. ``slack`` is the tolerance for
    floats: a user that is behind by less gets no GPU.

    If rounding each target to the nearest integer gives out exactly ``capacity``, and nothing negative, the result is
    the same. Else such rounding gives out too many GPUs, or too few; this never gives out too many.

    Bounds on the ``deviation`` (positive: behind), for any ideals within capacity in each round:

    * With a least of 1: more than -1 and at most H_n - 1 = 1/2 + ... + 1/n, for n users that stay. No rule that decides
      round by round can guarantee less. At most H_n if users come (at deviation 0) and go, n at a time. (The k users
      most behind are behind by at most 1/(k+1) + ... + 1/n on average, as in cup-emptying games.)
    * With more, up to the type's capacity m, one type at a time: more than -1 and less than n m + n - 1. Each user
      whose ideals have an unbounded sum gets GPUs again and again. (After a round in which GPUs stay idle, no user is
      behind by more than m; every other round does not increase the sum of deviations.)

    Source: OEF Sec. 4.3, which says neither how users are kept within capacity nor how ties are broken; the first bound
    is that of Adler et al., A Proportionate Fair Scheduling Rule with Good Worst-case Performance, SPAA 2003.
    """
    real = [list(row) for row in held] if held is not None else [[0] * len(capacity) for _ in target]
    left = [int(total) - sum(row[gpu_type] for row in real) for gpu_type, total in enumerate(capacity)]
    level = [[goal - got for goal, got in zip(*rows, strict=True)] for rows in zip(target, real, strict=True)]
    first = [[1] * len(capacity) for _ in target] if least is None else least

    def types_of(user: int, gpu_type: int) -> list[int]:
        """Return the types whose GPUs count as one for a user's least, with this one."""
        return [each for each, gpus in enumerate(first[user]) if gpus] if together else [gpu_type]

    def missing(user: int, gpu_type: int) -> int:
        return first[user][gpu_type] - sum(real[user][each] for each in types_of(user, gpu_type))

    pairs = [(user, each) for user, row in enumerate(first) for each, gpus in enumerate(row) if gpus]
    open_ = {(user, each) for user, each in pairs if level[user][each] > slack}
    again = True
    while again:
        again = False
        _give_uncontested(real, level, left, {pair: missing(*pair) for pair in open_}, slack)
        queue = [(-level[user][each], user, each) for user, each in open_ if level[user][each] > slack]
        heapify(queue)
        while queue and not again:
            below, user, gpu_type = heappop(queue)
            if left[gpu_type] <= 0 or level[user][gpu_type] != -below:  # no GPU left, or an outdated entry
                continue
            wanted = missing(user, gpu_type)
            again = wanted > 1
            types = types_of(user, gpu_type)
            bundle = _drawn(level[user], left, types, wanted, slack) if again else {gpu_type: 1}
            if not bundle:
                open_.remove((user, gpu_type))
            for each, gpus in bundle.items():
                real[user][each] += gpus
                left[each] -= gpus
                level[user][each] -= gpus
                if level[user][each] > slack and left[each] > 0:
                    heappush(queue, (-level[user][each], user, each))
    return tuple(tuple(row) for row in real)


def _give_uncontested(
    real: list[list[int]],
    level: list[list[Number]],
    left: list[int],
    missing: Mapping[tuple[int, int], int],
    slack: Number,
) -> None:
    """Give out at once, in place, the GPUs of each type that nobody can contest: those down to a level that all reach.

    ``missing`` has the pairs of user and type that still ask, with what they lack of their least. Users to whom more
    than one is missing are waited for, since where they are served changes what is left.
    """
    open_ = [pair for pair in missing if level[pair[0]][pair[1]] > slack]
    bottom = max((level[user][each] for user, each in open_ if missing[user, each] > 1), default=slack)
    for gpu_type, there in enumerate(left):
        own = [user for user, each in open_ if each == gpu_type and level[user][gpu_type] > bottom]
        levels = [level[user][gpu_type] for user in own]
        steps = range(max(0, ceil(max(levels, default=bottom) - bottom)) + 1)
        above = bottom + bisect_left(steps, True, key=lambda step: _down_to(levels, bottom + step) <= there)
        for user, high in zip(own, levels, strict=True):
            if high > above:
                gpus = ceil(high - above)
                real[user][gpu_type] += gpus
                left[gpu_type] -= gpus
                level[user][gpu_type] -= gpus


def _down_to(levels: Sequence[Number], above: Number) -> int:
    """Return how many GPUs bring all ``levels`` down to ``above``, or just below."""
    return sum([ceil(each - above) for each in levels if each > above])


def _drawn(
    level: Sequence[Number], left: Sequence[int], types: Sequence[int], wanted: int, slack: Number
) -> dict[int, int]:
    """Return ``wanted`` GPUs for one user, each of the type on which it is furthest behind; {} if it is not behind."""
    bundle: dict[int, int] = {}
    for _ in range(wanted):
        open_ = [
            gpu_type
            for gpu_type in types
            if left[gpu_type] > bundle.get(gpu_type, 0) and level[gpu_type] - bundle.get(gpu_type, 0) > slack
        ]
        if not open_:
            return {}
        best = max(open_, key=lambda gpu_type: (level[gpu_type] - bundle.get(gpu_type, 0), -gpu_type))
        bundle[best] = bundle.get(best, 0) + 1
    return bundle


def carried(target: Table, real: Whole) -> tuple[tuple[Number, ...], ...]:
    """Return the deviations (n, k) after a round: target minus GPUs received. Source: OEF Sec. 4.3 (dev(t+1))."""
    return tuple(
        tuple(goal - got for goal, got in zip(goals, gots, strict=True))
        for goals, gots in zip(target, real, strict=True)
    )


def to_the_nearest(target: Table) -> Whole:
    """Return each target rounded to the nearest integer, halves up, as the source prints it, without capacities."""
    return tuple(tuple(int((2 * goal + 1) // 2) for goal in row) for row in target)
