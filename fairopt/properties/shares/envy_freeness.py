"""Envy-freeness: nobody prefers another user's shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from fairopt.certificates import ENVY, Certificate
from fairopt.deadline import left
from fairopt.policy import Optima
from fairopt.policy.optima import Terms
from fairopt.problem import Market, worth
from fairopt.problem.ranges import in_use
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array, Number, more_text, number_text
from fairopt.properties.over_optima import Slack, linear
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.shares.cited import EQUATION_1, EQUATION_2, OEF_EXAMPLE
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups
from fairopt.report import Statement

#: So many pairs of users are compared at once, in rationals in about a tenth of a second.
PAIRS = 10_000


class EnvyFreeness(LinearInSpeedups):
    """Nobody gets more out of another's shares, scaled by the two weights, than out of its own.

    A failure shows the user, the one that is envied, its throughput, and that of the other's shares, by weight.

    Source: OEF Sec. 2.3.1 (2), Eq. (10c); weights Sec. 4.2.3 (weight w is w copies).

    >>> verdict = EnvyFreeness().check(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), [[1, 0], [0, 1]], tolerance=0)
    >>> print(verdict.answer, verdict.margin)
    Answer.FAILS -1
    """

    name = "envy_freeness"
    head = "envies nobody"
    broken = "{who} envies another"
    source = "OEF Sec. 2.3.1 (2)"
    definition = "E_l(x_l) >= E_l(pi_l / pi_i * x_i) for all users l, i"
    instances: ClassVar[tuple[CitedInstance, ...]] = (
        CitedInstance("OEF Eq. (2)", OEF_EXAMPLE, EQUATION_2, Answer.HOLDS),
        CitedInstance("OEF Eq. (1): u3 envies u2", OEF_EXAMPLE, EQUATION_1, Answer.FAILS),
    )

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        if verdict.answer is not Answer.FAILS or not market.known.all():
            return super()._certificate(market, shares, verdict)
        return Certificate(ENVY, market, shares, verdict.witness.user, verdict.witness.envied)

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        own, fair = market.utility(shares), market.fair_utility()
        left()
        users, others = self._closest(market.as_(float), shares.astype(float), self.pairs(market))
        if market.exact and market.entitlements is None and len(users) > len(own):  # many tie
            users, others = _apart(users, others, shares / market.weight[:, None])
        tightest: list[Any] = []  # of each piece: where many tie, 1,000 users have a million pairs
        for part in _pieces(len(users)):
            value = self._value(market, shares, users[part], others[part])
            slack = (own[users[part]] - value) / fair[users[part]]
            at = int(np.argmin(slack))
            tightest.append((slack[at], users[part][at], others[part][at], value[at]))
        _, i, other, value = tightest[int(np.argmin([each[0] for each in tightest]))]
        shown = {"envied": market.users[other], "throughput": own[i], "with_others_shares": value}
        case = self.case(own[i] - value, fair[i], user=market.users[i], **shown)
        unit, effort = f"throughput of {case.user}", f"{int(self.pairs(market).sum())} pairs of users"
        return self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return who envies whom, and what it would get, in a sentence."""
        got, theirs = number_text(case.throughput), more_text(case.with_others_shares, case.throughput)
        return f"{case.user} gets {got}; with the shares of {case.envied}, by weight, it would get {theirs}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user gets less out of its own shares than out of the other's, by weight."""
        i, other = market.users.index(case.user), market.users.index(case.envied)
        theirs = self.in_place(market, shares, np.array([i]), np.array([other]))[0]
        return worth(market, i, shares[i]) < worth(market, i, theirs)

    def pairs(self, market: Market) -> Array:
        """Return which users (n, n) are compared with which: everybody with everybody else."""
        return ~np.eye(len(market.users), dtype=bool)

    def in_place(self, market: Market, shares: Array, users: Array, others: Array) -> Array:
        """Return what ``users`` (m,) would hold (m, k), each in the place of one of ``others`` (m,), by weight."""
        scale = market.weight[users] / market.weight[others]
        return np.asarray(shares[others] if (scale == 1).all() else shares[others] * scale[:, None])

    def compared(self, market: Market, shares: Array) -> Iterator[tuple[int, Array | None, Array | None]]:
        """Yield each user with its shares and those of another, scaled by weight, both as far as it uses them."""
        for i, row in enumerate(self.pairs(market)):
            own, others = in_use(market, i, shares[i]), np.flatnonzero(row)
            for theirs in self.in_place(market, shares, np.full(len(others), i), others):
                yield i, own, in_use(market, i, theirs)

    def _value(self, market: Market, shares: Array, users: Array, others: Array) -> Array:
        """Return what each of ``users`` (m,) would get in the place of the one of ``others`` (m,), by weight."""
        found = []
        for part in _pieces(len(users)):
            theirs, who = self.in_place(market, shares, users[part], others[part]), users[part]
            found.append(
                capped_value(market.speedup[who], theirs, None if market.demand is None else market.demand[who])
            )
        return np.concatenate(found)

    def _closest(self, market: Market, shares: Array, pairs: Array) -> tuple[Array, Array]:
        """Return those of ``pairs`` (n, n) among which that with the least relative slack is, whatever was rounded.

        Exact shares may have thousands of digits; floats say of most pairs that another is tighter.
        """
        k = shares.shape[1]
        users, others = np.nonzero(pairs)
        if not len(users):  # a user is compared with itself where there is no other
            return np.array([0]), np.array([0])
        own, value = market.utility(shares)[users], self._value(market, shares, users, others)
        # sums of k terms, a few roundings each; with demands, differences of sums of GPUs at the fastest speed
        held = np.abs(shares).sum(axis=1)
        most = held[users] + held[others] * (market.weight[users] / market.weight[others])
        rounding = 4 * (k + 4) ** 2 * np.finfo(float).eps * market.speedup.max(axis=1)[users] * most
        fair = market.fair_utility()[users]
        slack, error = (own - value) / fair, rounding / fair + np.finfo(float).tiny
        kept = slack - error <= (slack + error).min()
        if not np.isfinite(slack).all():  # beyond the range of floats
            kept[:] = True
        return users[kept], others[kept]

    def over(self, optima: Optima) -> Statement:
        """Decide over all optima; see `fairopt.properties.over_optima`."""
        market, limited = optima.market, optima.limited()
        slacks = []
        for i, other in permutations(range(len(market.users)), 2):
            own, scale = optima.worth(i, i, 1 / optima.fair[i]), market.weight[i] / market.weight[other]
            slack = Slack(own | optima.worth(i, other, -scale / optima.fair[i]), Fraction(0))
            slacks.append(_within_demand(optima, slack, i, other, scale) if i in limited else slack)
        return linear(self, optima, slacks, f"{len(slacks)} pairs of users")


def _pieces(pairs: int) -> Iterator[slice]:
    """Yield parts of so many pairs, and look at the time limit before each."""
    for first in range(0, pairs, PAIRS):
        left()
        yield slice(first, first + PAIRS)


def _apart(users: Array, others: Array, bundles: Array) -> tuple[Array, Array]:
    """Return pairs of ``users`` and ``others`` (m,), without those whose other holds what a former one does.

    ``bundles`` (n, k) are what everybody holds, by weight.
    """
    like: dict[tuple[Any, ...], int] = {}
    kind = np.array([like.setdefault(tuple(row), at) for at, row in enumerate(bundles.tolist())])
    first = np.sort(np.unique(users * len(bundles) + kind[others], return_index=True)[1])
    return users[first], others[first]


def _within_demand(optima: Optima, slack: Slack, user: int, other: int, scale: Any) -> Slack:
    """Return the slack with own throughput minus that of the best use of the other's shares within the demand."""
    first, types = len(optima.choices.cost), range(optima.market.shape[1])
    rows: list[tuple[Terms, Any, Any]] = [
        ({first + j: 1, optima.column(other, j): -scale}, -INFINITY, 0) for j in types
    ]
    rows.append(({first + j: 1 for j in types}, -INFINITY, optima.market.limit[user]))
    theirs = {first + j: -speed / optima.fair[user] for j, speed in enumerate(optima.market.speedup[user]) if speed}
    used = optima.worth(user, user, 1 / optima.fair[user]) | theirs
    return replace(slack, used=used, variables=[(0, INFINITY)] * len(types), rows=rows)
