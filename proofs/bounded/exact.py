"""Re-verification by fairopt in exact arithmetic: the optima of a policy on a market given in numbers.

Nothing here knows of Z3: a counterexample counts only if these functions, which speak of every optimum, confirm it.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.policy import Formulated
from fairopt.policy.optima import Optima as AllOptima
from fairopt.problem import Market
from fairopt.program import Array

Place = tuple[int, int]


class ExactOptima:
    """All optimal allocations of a policy on a market; every question about them is an exact linear program."""

    def __init__(self, policy: Formulated, market: Market) -> None:
        self.policy, self.market = policy, market
        decision = allocate(policy, market, Exact())
        face = policy.optimal_face(decision)
        assert face is not None
        self.shares = decision.shares
        self._face = AllOptima(market, face, decision.shares)

    def most(self, weight: Array, zero: Collection[Place] = ()) -> Array | None:
        """Return an optimum of the largest sum of ``weight`` times shares, with no shares at ``zero``, if there is one.

        Shapes: ``weight`` and the result (n, k).
        """
        face = self._face
        objective = {face.column(u, j): Fraction(value) for (u, j), value in np.ndenumerate(weight)}
        found = face.most(objective, face.without([face.column(u, j) for u, j in zero], face.choices))
        return None if found is None else face.allocation(found[1])

    def having(self, positive: Collection[Place], zero: Collection[Place] = ()) -> Array | None:
        """Return an optimum with shares at every place of ``positive`` and none at ``zero``, if there is one."""
        found = []
        for place in positive:
            shares = self.most(self._unit(place), zero)
            if shares is None or not shares[place] > 0:
                return None
            found.append(shares)
        return np.asarray(sum(found) / Fraction(len(found))) if found else self.most(0 * self.shares, zero)

    def throughput(self, user: int, speedup: Array | None = None) -> tuple[Fraction, Fraction]:
        """Return the least and the largest throughput of a user over all optima, by the market's speedups or others."""
        weight = 0 * self.shares
        weight[user] = self.market.speedup[user] if speedup is None else speedup
        ends = []
        for sign in (-1, 1):
            shares = self.most(sign * weight)
            assert shares is not None
            ends.append((weight * shares).sum())
        return ends[0], ends[1]

    @property
    def same_throughputs(self) -> bool:
        """Whether every optimum gives every user the same."""
        return all(low == high for low, high in map(self.throughput, range(len(self.market.users))))

    def without_gaps(self) -> Array | None:
        """Return an optimum in which every user's types follow one another, if there is one."""
        n, k = self.market.shape
        places = set(product(range(n), range(k)))
        most = {place: self._end(place, 1) for place in places}
        ever = {place for place in places if most[place] > 0}
        always = {place for place in ever if self._end(place, -1) > 0}
        runs = [set(), *(set(range(a, b + 1)) for a, b in combinations_with_replacement(range(k), 2))]
        of_user = []
        for u in range(n):
            at_least, at_most = ({j for j in range(k) if (u, j) in held} for held in (always, ever))
            of_user.append([run for run in runs if at_least <= run <= at_most])
        for choice in product(*of_user):
            held = {(u, j) for u, run in enumerate(choice) for j in run}
            shares = self.having(held, places - held)
            if shares is not None:
                return shares
        return None

    def _end(self, place: Place, sign: int) -> Fraction:
        """Return the largest (sign 1) or least (sign -1) share at a place over all optima."""
        shares = self.most(sign * self._unit(place))
        assert shares is not None
        return Fraction(shares[place])

    def _unit(self, place: Place) -> Array:
        weight = 0 * self.shares
        weight[place] = Fraction(1)
        return weight


def improving_cycle(market: Market, cycle: Collection[Place]) -> bool:
    """Whether the users of ``cycle`` gain if each passes a little of its type to the one before it in the cycle."""
    gain = Fraction(1)
    for (u, own), (_, wanted) in pairwise([*cycle, next(iter(cycle))]):
        gain *= market.speedup[u, wanted] / market.speedup[u, own]
    return gain > 1


def float_shares(policy: Formulated, market: Market) -> Array:
    """Return an optimum in floats (n, k), by HiGHS: good for suspicion, not for evidence."""
    return allocate(policy, market).shares
