"""Feasibility: nothing is given out twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.property import AllocationProperty, CitedInstance
from fairopt.properties.shares.cited import EQUATION_1, OEF_EXAMPLE
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class Overbooked:
    """A type of which more GPUs are given out than there are, or a negative share."""

    type: str
    given: Number
    capacity: Number
    user: str | None = None

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether the type is overbooked, or the user's share is negative."""
        j = market.types.index(self.type)
        if self.user is not None:
            return bool(shares[market.users.index(self.user), j] < 0)
        return bool(sum(shares[:, j].tolist()) > market.capacity[j])

    def __str__(self) -> str:
        if self.user is not None:
            return f"{self.user} is given {number_text(self.given)} GPUs of {self.type}"
        given, there = number_text(self.given), number_text(self.capacity)
        if given == there:
            more = number_text(self.given - self.capacity)
            return f"{more} GPUs of {self.type} are given out beyond the {there} that there are"
        return f"{given} GPUs of {self.type} are given out, and there are {there}"


def sizes(market: Market) -> Array:
    """Return the size (k,) to which a tolerance on each type is relative: its GPUs.

    For a type without GPUs it is one GPU, or the least capacity of the others if that is smaller.
    """
    there = market.capacity > 0
    return np.where(there, market.capacity, min(1, market.capacity[there].min()))


class Feasibility(AllocationProperty):
    """No negative share, and of no type more than there is.

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
        user, slack, given = None, left[tight], market.capacity[tight] - left[tight]
        if shares[i, j] / size[j] < min(0, left[tight] / size[tight]):
            tight, user, slack, given = j, market.users[i], shares[i, j], shares[i, j]
        unit, effort = f"GPUs of {market.types[tight]}", f"{shares.size} shares and {len(left)} types"
        witness = Overbooked(market.types[tight], given, market.capacity[tight], user)
        return self._by_slack(market, slack, size[tight], tolerance, unit=unit, effort=effort, witness=witness)
