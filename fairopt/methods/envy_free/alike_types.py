"""Types that all users rank by one factor are one type: a GPU of the one is worth so many of the other to everybody.

Which of them a user holds matters to nobody, so that a program that tells them apart has many optima, and the simplex
method may go from one to the next without end. Each user gets the same part of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.methods.envy_free.restricted_lp import EnvyFreeOptimum
from fairopt.methods.grouping import alike_rows
from fairopt.program import Array

#: Factors that differ by less than this part are the same: they are quotients of speedups that were rounded.
ROUNDED = 1e-11
#: What stands for the logarithm of 0: no number in floats has such a one.
NEVER = -1e4


@dataclass(frozen=True, eq=False)
class AlikeTypes:
    """The g kinds that k types are of. ``first`` (g,): the first type of each, in whose GPUs the kind is counted.

    ``kind``, ``worth``, ``part`` (k,): the kind of each type, how many GPUs of the kind's first type one of it is
    worth, and how many of its GPUs go with one that the kind has. ``capacity`` (g,): of each kind.
    """

    first: Array
    kind: Array
    worth: Array
    part: Array
    capacity: Array

    @classmethod
    def of(cls, speedup: Array, capacity: Array, *, by_worth: bool) -> AlikeTypes:
        """Return the kinds of types of which each has a user that runs on it; ``speedup`` (n, k), ``capacity`` (k,).

        Where demands count GPUs, only types of the same speedups are alike: ``by_worth`` is False.

        >>> speedup = np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]])
        >>> AlikeTypes.of(speedup, np.array([1.0, 1.0, 2.0]), by_worth=True).capacity.tolist()
        [7.0, 1.0]
        """
        runs = speedup > 0
        logarithm = np.log(np.where(runs, speedup, 1.0))
        if by_worth:
            logarithm = logarithm - logarithm[runs.argmax(axis=0), np.arange(len(capacity))]
        first, kind = alike_rows(np.where(runs, logarithm, NEVER).T, ROUNDED)
        who = runs.argmax(axis=0)
        worth = speedup[who, np.arange(len(capacity))] / speedup[who, first[kind]]
        together = np.bincount(kind, worth * capacity)
        return cls(first, kind, worth, capacity / together[kind], together)

    def apart(self, found: EnvyFreeOptimum) -> EnvyFreeOptimum:
        """Return an optimum of the kinds as one of the types."""
        return replace(
            found, bundle=found.bundle[:, self.kind] * self.part, prices=found.prices[self.kind] * self.worth
        )

    def together(self, of_types: Array) -> Array:
        """Return sums over the types of each kind (g,) of an amount (k,)."""
        return np.bincount(self.kind, of_types)
