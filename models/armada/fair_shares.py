"""Armada's fair shares of queues: by weight, with what a queue does not demand shared again in rounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

#: Exact numbers.
Exact = int | Fraction

#: The code's own: at most so many rounds, and none for less than this part of the pool.
ROUNDS, REST = 10, Fraction(1, 100)
#: Parts of the pool (n,).
Shares = tuple[Fraction, ...]


def fair_shares(
    weight: Sequence[Exact],
    demand: Sequence[Exact],
    *,
    rounds: int = ROUNDS,
    rest: Exact = REST,
) -> tuple[Shares, Shares, Shares]:
    """Return the fair shares of queues (n,), all of weight above 0 and ``demand`` as parts of the pool.

    These are three: by weight alone, capped by demands, and as if the queue's own demand had no end.

    What is left is shared by weight among the queues whose demand is not met; what that gives them beyond their demand
    is left for the next round. It ends after ``rounds``, or when no more than ``rest`` is left, which nobody gets.

    Source: armadaproject/armada, internal/scheduler/scheduling/context/scheduling.go, ``updateQueueShares``, 207cc9e0.

    >>> print(*fair_shares([1, 1], [Fraction(1, 100), 10])[1])
    1/100 99/100
    """
    n, left = len(weight), Fraction(1)
    capped, uncapped, spare = ([Fraction(0)] * n for _ in range(3))
    met = [False] * n
    for _ in range(rounds):
        if left <= rest:
            break
        weights = sum(own for own, done in zip(weight, met, strict=True) if not done)
        for i, own in enumerate(weight):
            # what this queue left over is not given back to it: with more demand it would have left nothing
            uncapped[i] += own / Fraction(weights + own if met[i] else weights) * (left - spare[i])
        if weights <= 0:
            break
        for i, own in enumerate(weight):
            if not met[i]:
                capped[i] += own / Fraction(weights) * left
        spare = [max(Fraction(0), has - wants) for has, wants in zip(capped, demand, strict=True)]
        met = [done or over > 0 for done, over in zip(met, spare, strict=True)]
        capped = [has - over for has, over in zip(capped, spare, strict=True)]
        left = sum(spare, Fraction(0))
    whole = sum(weight)
    return tuple(Fraction(own) / whole for own in weight), tuple(capped), tuple(uncapped)
