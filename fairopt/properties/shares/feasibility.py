"""Feasibility: nothing is given out twice."""

from __future__ import annotations

import numpy as np

from fairopt.numbers import counted
from fairopt.problem import Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.shares.cited import EQUATION_1, OEF_EXAMPLE
from fairopt.properties.verdict import Answer, Verdict


def sizes(market: Market) -> Array:
    """Return the size (k,) to which a tolerance on each type is relative: its GPUs.

    For a type without GPUs it is one GPU, or the least capacity of the others if that is smaller.
    """
    there = market.capacity > 0
    return np.where(there, market.capacity, min(1, market.capacity[there].min()))


class Feasibility(AllocationProperty):
    """No negative share, and of no type more than there is.

    A failure shows the type, how much of it is given out and how much there is; of a negative share, whose it is.

    Source: OEF Eq. (9b), (10b).

    >>> verdict = Feasibility().check(Market.of([[1, 2]], capacity=[1, 1]), [[2, 0]], tolerance=0)
    >>> print(verdict.answer, verdict.margin)
    Answer.FAILS -1
    """

    name = "feasibility"
    head = "no more than there is"
    broken = "more is given out than there is"
    source = "OEF Eq. (9b)"
    definition = "sum_l x_lj <= m_j for every type j, and no share is negative"
    needs_speedups = False
    instances = (
        CitedInstance("OEF Eq. (1)", OEF_EXAMPLE, EQUATION_1, Answer.HOLDS),
        CitedInstance(
            "a tenth of a GPU more than OEF Sec. 2.4 trades",
            OEF_EXAMPLE,
            [[1, "0.045"], [0, "0.595"], [0, "5/11"]],
            Answer.FAILS,
        ),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        left = market.capacity - shares.sum(axis=0)
        size = sizes(market)
        tight = int(np.argmin(left / size))
        i, j = divmod(int(np.argmin(shares / size)), len(size))
        negative = shares[i, j] / size[j] < min(0, left[tight] / size[tight])
        case = self.at(market, shares, j, i) if negative else self.at(market, shares, tight)
        unit, effort = f"GPUs of {case.type}", f"{counted(shares.size, 'share')} and {counted(len(left), 'type')}"
        return self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)

    def at(self, market: Market, shares: Array, column: int, user: int | None = None) -> SlackCase:
        """Return the case of a type: of all that is given out of it, or of one user's share."""
        there, name = market.capacity[column], None if user is None else market.users[user]
        left = there - shares[:, column].sum() if user is None else shares[user, column]
        given = there - left if user is None else left
        return self.case(left, sizes(market)[column], type=market.types[column], given=given, capacity=there, user=name)

    def says(self, case: SlackCase) -> str:
        """Return what is given out of a type, or the negative share, in a sentence."""
        given, there = number_text(case.given), number_text(case.capacity)
        if case.user is not None:
            return f"{case.user} is given {given} GPUs of {case.type}"
        if given == there:
            more = number_text(case.given - case.capacity)
            return f"{more} GPUs of {case.type} are given out beyond the {there} that there are"
        return f"{given} GPUs of {case.type} are given out, and there are {there}"

    def fails_so(self, verdict: Verdict) -> str:
        """Return that too much is given out, or whose share is negative."""
        user = None if verdict.witness is None else verdict.witness.parts.get("user")
        return super().fails_so(verdict) if user is None else f"{user} is given a negative share"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the type is overbooked, or the user's share is negative."""
        j = market.types.index(case.type)
        if case.user is not None:
            return bool(shares[market.users.index(case.user), j] < 0)
        return bool(sum(shares[:, j].tolist()) > market.capacity[j])
