"""Re-verification by fairopt in exact arithmetic: the optima of a policy on a market given in numbers.

Nothing here knows of Z3: a counterexample counts only if these functions, which speak of every optimum, confirm it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product

import flint
import numpy as np

from fairopt.backends.exact import Exact
from fairopt.models.shares import shares_of
from fairopt.policy import Formulated, allocate
from fairopt.problem import Market
from fairopt.program import Array, Formulation, Program, Sense

Place = tuple[int, int]


class SharingIncentiveEfficiency(Formulated):
    """The largest total throughput among allocations that give everybody at least its own partition's.

    Source: OEF Sec. 3.1, Theorem 3.3.
    """

    name = "sharing-incentive-efficiency"
    source = "OEF Sec. 3.1"

    def formulate(self, problem: Market, state: object) -> Program:
        """Return Eq. (4) with the sharing-incentive constraints."""
        p = Formulation(self.name)
        own = (problem.speedup * shares_of(p, problem)).sum(axis=1)
        p.maximize(own.sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (4)")
        p.constrain("sharing_incentive", own >= problem.fair_utility(), equation="E_l >= E_l(equal)")
        return p.program()


class Optima:
    """All optimal allocations of a policy on a market; every question about them is an exact linear program."""

    def __init__(self, policy: Formulated, market: Market) -> None:
        self.policy, self.market = policy, market
        decision = allocate(policy, market, Exact())
        assert decision.exact
        self.shares = decision.shares
        face = policy.optimal_face(decision)
        assert face is not None
        self._face = face
        self._span = next(block.span for block in face.variable_blocks if block.name == "share")

    def most(self, weight: Array, zero: Collection[Place] = ()) -> Array | None:
        """Return an optimum of the largest sum of ``weight`` times shares, with no shares at ``zero``, if there is one.

        Shapes: ``weight`` and the result (n, k).
        """
        n, k = self.market.shape
        cost = np.array([Fraction(0)] * len(self._face.cost), dtype=object)
        cost[self._span] = [Fraction(value) for value in np.asarray(weight, dtype=object).ravel()]
        upper = self._face.upper.copy()
        for u, j in zero:
            upper[self._span.start + u * k + j] = Fraction(0)
        program = replace(self._face, sense=Sense.MAXIMIZE, cost=cost, offset=0, upper=upper)
        solution = Exact().solve(program)
        if solution.status.name == "INFEASIBLE":
            return None
        return np.asarray(solution.require_optimal().point[self._span]).reshape(n, k)

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


def is_extreme(market: Market, shares: Array) -> bool:
    """Whether the shares are an extreme point of Eq. (10): no other shares keep all that is tight there."""
    n, k = shares.shape
    held = [(u, j) for u, j in product(range(n), range(k)) if shares[u, j] > 0]
    rows = [[int(other == j) for _, other in held] for j in range(k) if shares[:, j].sum() == market.capacity[j]]
    for u, i in permutations(range(n), 2):
        if (market.speedup[u] * (shares[u] - shares[i])).sum() == 0:
            sign = [(owner == u) - (owner == i) for owner, _ in held]
            rows.append([s * market.speedup[u, j] for s, (_, j) in zip(sign, held, strict=True)])
    entries = [[flint.fmpq(Fraction(v).numerator, Fraction(v).denominator) for v in row] for row in rows]
    return bool(flint.fmpq_mat(entries).rank() == len(held))


def float_shares(policy: Formulated, market: Market) -> Array:
    """Return an optimum in floats (n, k), by HiGHS: good for suspicion, not for evidence."""
    return allocate(policy, market).shares
