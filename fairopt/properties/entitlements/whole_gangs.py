"""Which gangs together take most of what there is, each with all that it takes or none: chosen exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, isqrt
from typing import NamedTuple, TypeAlias

from fairopt.program import Number

#: What all choices of one verdict may cost together: steps, each over sums of so many GPUs.
MOST_WORK = 2**32
#: For more GPUs than this, gangs are only taken one after the other.
MOST_ROOM = 2**24
#: What a step costs where several columns bound the choice.
STEP_OF_SEVERAL = 2**17


#: What a gang takes of each column that is looked at, in each of the ways in which it can run.
Ways: TypeAlias = tuple[tuple[Number, ...], ...]
#: Gangs that run in one of their ways: these, which way, and how many.
Chosen: TypeAlias = list[tuple[Ways, int, int]]


@dataclass
class Chooser:
    """Chooses gangs, exactly, until its ``work`` is used up: then it finds less than the most, and is not ``complete``.

    What can be taken one after the other comes first; where nothing is left, it is the most.

    Source: the dynamic program for knapsacks (Bellman 1957), with dominance where there are several bounds (Nemhauser
    and Ullmann 1969).

    >>> [Chooser().fullest(*each) for each in [([5, 4, 2], 8), ([4, 4], 6), ([4], 3)]]
    [(5, 2), (4,), ()]
    """

    work: int = MOST_WORK
    complete: bool = True

    def fullest(self, sizes: Iterable[int], room: int) -> tuple[int, ...]:
        """Return the sizes of gangs that together take the most of ``room`` GPUs, the largest gangs first.

        Which sums can be had is one bit each.
        """
        fitting = Counter(each for each in sizes if 0 < each <= room)
        if not fitting:
            return ()
        room = min(room - room % gcd(*fitting), sum(size * count for size, count in fitting.items()))
        large, left = list[int](), room
        for size in sorted(fitting, reverse=True):
            count = min(fitting[size], left // size)
            large += [size] * count
            left -= size * count
        if not left:
            return tuple(large)
        steps = [(size, count) for size in sorted(fitting) for count in _bundles(min(fitting[size], room // size))]
        every, sums, kept = isqrt(len(steps)), 1, list[int]()
        for at, step in enumerate(steps):
            if sums >> room or not self._may(room if room <= MOST_ROOM else self.work + 1):
                break
            if at % every == 0:
                kept.append(sums)  # all sums of all steps may be too many to remember
            sums = _after(sums, step, room)
        chosen = sorted(_traced(steps, every, kept, sums.bit_length() - 1, room), reverse=True)
        return tuple(max(large, chosen, key=sum))

    def best(self, gangs: Mapping[Ways, int], room: tuple[Number, ...]) -> Chosen:
        """Return which gangs, and how each runs, take most of the first column of ``room``, and no more than all of it.

        ``gangs`` says how many there are of each kind; every one fits the room. Of equal sums the one that takes less
        of every other column is remembered.

        >>> small, large = ((2, 3),), ((3, 7),)
        >>> [(ways[way][0], count) for ways, way, count in Chooser().best({small: 2, large: 1}, (5, 9))]
        [(2, 2)]
        """
        enough = min(room[0], sum(max(takes[0] for takes in ways) * count for ways, count in gangs.items()))
        order = sorted(gangs, key=lambda ways: min(_part(takes, room) for takes in ways))
        best = _one_after_the_other(gangs, order, room)
        states: dict[Number, list[_State]] = {0: [_State((0,) * len(room), None)]}
        # gangs that run in several ways go one by one
        steps = (
            (ways, count)
            for ways in order
            for count in (_bundles(gangs[ways]) if len(ways) == 1 else [1] * gangs[ways])
        )
        for ways, count in steps:
            for state in [each for alike in states.values() for each in alike]:
                for way in range(len(ways)):
                    if best.takes[0] >= enough or not self._may(STEP_OF_SEVERAL):
                        return best.chosen()
                    after = state.after(ways, way, count)
                    if all(more <= most for more, most in zip(after.takes, room, strict=True)):
                        self._may(STEP_OF_SEVERAL * _remember(states.setdefault(after.takes[0], []), after))
                        best = max(best, after, key=lambda each: each.takes[0])
        return best.chosen()

    def _may(self, work: int) -> bool:
        self.work -= work
        self.complete &= self.work >= 0
        return self.complete


class _State(NamedTuple):
    """What is taken of each column, and by which step that came."""

    takes: tuple[Number, ...]
    step: tuple[_State, tuple[Ways, int, int]] | None

    def after(self, ways: Ways, way: int, count: int) -> _State:
        takes = tuple(has + count * more for has, more in zip(self.takes, ways[way], strict=True))
        return _State(takes, (self, (ways, way, count)))

    def chosen(self) -> Chosen:
        found, step = [], self.step
        while step is not None:
            found.append(step[1])
            step = step[0].step
        return found


def _remember(alike: list[_State], new: _State) -> int:
    """Add a state to those of the same sum, unless one takes no more of anything; return how many were looked at."""
    looked = len(alike)
    if not any(_no_more(each, new) for each in alike):
        alike[:] = [new, *(each for each in alike if not _no_more(new, each))]
    return looked


def _no_more(one: _State, other: _State) -> bool:
    return all(a <= b for a, b in zip(one.takes, other.takes, strict=True))


def _part(takes: tuple[Number, ...], room: tuple[Number, ...]) -> float:
    """Return which part of the room beside the first column a way takes, for what it takes of that."""
    parts = (more / most for more, most in zip(takes[1:], room[1:], strict=True) if more)
    return float(sum(parts) / takes[0])


def _one_after_the_other(gangs: Mapping[Ways, int], order: list[Ways], room: tuple[Number, ...]) -> _State:
    """Return what is taken if gangs go in this order, as many of each as fit."""
    state = _State((0,) * len(room), None)
    for ways in order:
        waits = gangs[ways]
        for way, takes in enumerate(ways):
            left = zip(room, state.takes, takes, strict=True)
            count = min(waits, *(int((most - has) // more) for most, has, more in left if more))
            if count:
                state, waits = state.after(ways, way, count), waits - count
    return state


def _after(sums: int, step: tuple[int, int], room: int) -> int:
    size, count = step
    return sums | sums << size * count & (2 << room) - 1


def _traced(steps: list[tuple[int, int]], every: int, kept: list[int], best: int, room: int) -> Iterator[int]:
    """Yield the sizes that make the sum ``best``; ``kept`` are the sums before each so many steps."""
    for at in reversed(range(len(kept))):
        block, before = steps[at * every : (at + 1) * every], [kept[at]]
        for step in block[:-1]:
            before.append(_after(before[-1], step, room))
        for (size, count), sums in zip(reversed(block), reversed(before), strict=True):
            if not sums >> best & 1:
                yield from [size] * count
                best -= size * count


def _bundles(count: int) -> Iterator[int]:
    """Yield 1, 2, 4, ... and the rest: parts of ``count`` that make every number up to it."""
    together = 1
    while count:
        together = min(together, count)
        yield together
        count, together = count - together, 2 * together
