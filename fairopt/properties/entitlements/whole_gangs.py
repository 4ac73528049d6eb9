"""Which gangs together take most of so many GPUs, each with all of its own or none: sums of subsets, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairopt.errors import NotCapable

#: For more GPUs than this no gangs are chosen.
MOST_ROOM = 1_000_000


def fullest(sizes: Iterable[int], room: int) -> tuple[int, ...]:
    """Return the sizes of gangs that together take the most of ``room`` GPUs, the largest gangs first.

    Exact: which sums can be had is one bit each. Gangs of one size are taken 1, 2, 4, ... at a time, so many alike cost
    little. Errors: `NotCapable` for a choice among gangs for more than `MOST_ROOM` GPUs.

    Source: the subset-sum dynamic program (Bellman 1957).

    >>> fullest([5, 4, 2], 8), fullest([4, 4], 6), fullest([4], 3)
    ((5, 2), (4,), ())
    """
    fitting = Counter(each for each in sizes if 0 < each <= room)
    if sum(size * count for size, count in fitting.items()) <= room:
        return tuple(sorted(fitting.elements(), reverse=True))
    if room > MOST_ROOM:
        raise NotCapable(f"gangs are to be chosen for {room} GPUs, and they are for {MOST_ROOM} at most")
    steps: list[tuple[int, int, int]] = []  # the sums before, the size, and how many at a time
    sums, all_ = 1, (2 << room) - 1
    for size, alike in sorted(fitting.items()):
        together, count = 1, min(alike, room // size)
        while count:
            together = min(together, count)
            steps.append((sums, size, together))
            sums |= sums << size * together & all_
            count, together = count - together, 2 * together
    best, chosen = sums.bit_length() - 1, []
    for before, size, together in reversed(steps):
        if not before >> best & 1:
            chosen += [size] * together
            best -= size * together
    return tuple(sorted(chosen, reverse=True))
