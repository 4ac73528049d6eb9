"""A method of one's own: a policy that is a program, and a way to solve that program which is faster than a solver."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fairopt.backends import Method
from fairopt.backends.solution import Solution, Status
from fairopt.policy import Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program


class Slices(NamedTuple):
    """What the program and the method are both made of, for n users; all in the numbers of the market.

    ``gpus`` (n, k): what a user holds while the cluster is its own. ``worth`` (n,): its throughput then. ``least`` and
    ``most`` (n,): between these lies its part of the time.
    """

    gpus: Array
    worth: Array
    least: Array
    most: Array

    @classmethod
    def of(cls, market: Market) -> Slices:
        """Return the slices of a market."""
        gpus = np.where(market.speedup > 0, market.capacity, market.capacity * 0)
        most = np.minimum(market.limit / gpus.sum(axis=1), 1)
        least = np.minimum(most, market.weight / market.weight.sum() / 2)
        return cls(gpus, (market.speedup * gpus).sum(axis=1), least, most)


class Greedy(Method):
    """Give everybody the least part of the time, and what is left to those who make the most of it."""

    name = "greedy"
    number = float

    def solve(self, policy: Any, problem: Market, start: Any = None) -> Solution:
        """Return the slices, and the two numbers between which the optimum is proved to lie."""
        slices = Slices.of(problem.as_(float))
        order = np.argsort(-slices.worth, kind="stable")
        room = (slices.most - slices.least)[order]
        given = np.clip(1 - slices.least.sum() - np.cumsum(room) + room, 0, room)
        slice_ = slices.least.copy()
        slice_[order] += given
        unfilled = np.flatnonzero(given < room)
        price = float(slices.worth[order[unfilled[0]]]) if len(unfilled) else 0.0  # of all the time
        lower, upper = bounds(problem, slice_, price)
        return Solution(
            status=Status.OPTIMAL,
            raw_status="proved by the price of time",
            backend="auto",
            objective=float(lower),
            lower=lower,
            upper=upper,
            values={"slice": slice_, "share": slices.gpus * slice_[:, None]},
            duals={"time": np.array(price)},
        )


def bounds(problem: Market, slice_: Array, price: float) -> tuple[Number, Number]:
    """Return what slices reach, and what nothing exceeds by weak duality, both in Fractions: no rounding counts.

    At a price of time, each user is worth at most what it gains beyond the price on the slice that is best for it.
    """
    slices = Slices.of(problem.as_(Fraction))
    part = np.array([Fraction(value) for value in slice_.tolist()], dtype=object)
    part = np.minimum(np.maximum(part, slices.least), slices.most)
    spare, over = part - slices.least, part.sum() - 1
    if over > 0:  # by rounding
        part = part - spare * (over / spare.sum())
    gain = slices.worth - Fraction(price)
    best = np.where(gain > 0, slices.most, slices.least)
    return (slices.worth * part).sum(), Fraction(price) + (gain * best).sum()


class TimeSlices(Formulated):
    """The whole cluster to one user at a time: the largest total throughput with half of everybody's part or more.

    A user holds only what it can run on. Who has a demand gets no more time than keeps it within its demand on average.

    Source: the paper, venue, year, its equation.
    """

    name = "time-slices"
    source = "Example of a method"
    traits = frozenset({Trait.PROGRAM, Trait.EXACT})
    methods = (Greedy(),)  # this line registers the method; the first one is the default

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program, for backends; the method never writes it down."""
        slices = Slices.of(problem)
        p = Formulation(self.name)
        share = shares_of(p, problem)
        part = p.variable("slice", (len(problem.users),), lower=slices.least, upper=slices.most)
        p.maximize((slices.worth * part).sum(), equation="sum_l V_l y_l")
        p.constrain("time", part.sum() <= 1, equation="sum_l y_l <= 1")
        p.constrain("whole", share == slices.gpus * part.reshape(-1, 1), equation="x_lj = m_j y_l")
        return p.program()
