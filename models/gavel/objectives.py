"""The objectives by which Gavel computes time fractions: one small class for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fairopt.backends import Method, Session
from fairopt.backends.solution import Solution, Status, not_negative
from fairopt.errors import BadInput, require
from fairopt.models.common.levels import PriceMethod
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.max_min import MaxMin
from fairopt.models.gavel.partitions import Normaliser
from fairopt.problem import Market
from fairopt.problem.numbers import exact
from fairopt.problem.share_variables import shares_of
from fairopt.program import Affine, Array, Formulation, Number, Program

#: The last program that was solved, None where a method of the objective's own needs none, and the answer: its values
#: are "share" (n, k), mean numbers of GPUs over time. ``objective`` is that of these shares, in the unit that the class
#: names; no shares are better than ``bound``. ``effort`` counts the programs. The next answer may begin at
#: ``warm_start``.
Shared: TypeAlias = tuple[Program | None, Solution]


class Objective(ABC):
    """A way to share GPUs among jobs over time: one linear program, whose block "share" they are, unless it says so.

    It may have a ``method`` of its own, for where no backend is asked.
    """

    method: ClassVar[Method | None] = None

    @abstractmethod
    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program in the numbers of ``jobs``; where there are several, the first."""

    def value(self, jobs: JobMarket, program: Program, point: Array) -> Number:
        """Return the objective at a point, in its unit; that of the program unless a class says otherwise."""
        return program.value(point)

    def read(self, jobs: JobMarket, program: Program, point: Array) -> Array:
        """Return the shares (n, k) at a point."""
        return not_negative(program.variable("share", point))

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Formulate, solve, check, and read off the shares; ``jobs`` are in the numbers of ``solve``.

        ``start``: the ``warm_start`` of the last answer. Errors: `NotSolved`, `NotCapable`.
        """
        program = self.formulate(jobs)
        solution = solve.optimum(program)
        found = self.value(jobs, program, solution.point)
        return program, answered(solution, self.read(jobs, program, solution.point), found, found)


def answered(solution: Solution, shares: Array, value: Number, bound: Number, programs: int = 1) -> Solution:
    """Return the answer that the last of so many ``programs`` led to."""
    effort = {"programs": programs}
    values = {"share": shares}
    return replace(solution, objective=value, bound=bound, values=values, effort=effort, warm_start=None)


def throughput(market: Market, share: Affine) -> Affine:
    """Return each job's effective throughput (n,): sum_j T_mj X_mj, with X in GPUs over the size of the gang."""
    own: Affine = (market.speedup * share).sum(axis=1)
    return own


@dataclass(frozen=True)
class MaxMinShare(Objective):
    """Least attained service, aware of types: max-min of throughput relative to the job's equal share.

    Weights scale the equal share. Value: the least ratio. Where no backend is asked for it is found by prices of the
    types, without a program of all jobs (`fairopt.methods.level`). Of several optima, that gives nobody more than the
    least ratio as long as it can be raised for all. ``normaliser`` is that of `MaxMin`.

    Source: Gavel, OSDI 2020, Sec. 4.1.
    """

    method = PriceMethod()
    normaliser: Normaliser = Normaliser.OWN_PARTITION

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the max-min program on the jobs."""
        return MaxMin(self.normaliser).formulate(jobs.market, None)

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return the shares, found by prices of the types where no backend is asked for."""
        if solve.method is None:
            return super().shares(jobs, solve)
        found = solve.answer(MaxMin(self.normaliser), jobs.market, start)
        return None, replace(found, effort={"programs": 0})


@dataclass(frozen=True)
class LeastMakespan(Objective):
    """The least makespan: min over X of max_m remaining_m / throughput_m(X); one program, and exact.

    With t the reciprocal, it maximises t such that throughput_m >= t remaining_m, without search. Value: time until the
    end.

    Source: Gavel, OSDI 2020, Sec. 4.2; FFT Sec. 2.3.
    """

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program; its objective is the makespan's reciprocal times the longest job's best time."""
        p = Formulation("gavel, least makespan")
        share = shares_of(p, jobs.market)
        rate = p.variable("rate", lower=0)
        need = jobs.remaining / self._unit(jobs)
        p.maximize(rate, equation="1 / max_m (remaining_m / throughput_m)", source="Gavel Sec. 4.2")
        p.constrain(
            "in_time",
            throughput(jobs.market, share) / need >= rate,
            equation="throughput_m >= t remaining_m",
            source="Gavel Sec. 4.2",
            labels=(jobs.market.users,),
        )
        return p.program()

    def value(self, jobs: JobMarket, program: Program, point: Array) -> Number:
        """Return the makespan from now on."""
        return self._unit(jobs) / program.value(point)

    @staticmethod
    def _unit(jobs: JobMarket) -> Number:
        """A time of the right size, so that no number of the program is much larger than another."""
        longest: Number = (jobs.remaining / jobs.fastest()).max()
        return longest


@dataclass(frozen=True)
class ShortestFirst(Objective):
    """Like shortest job first: throughputs relative to the job's best, summed with larger weights for shorter jobs.

    Jobs are ranked by their remaining time at best throughput; the r-th of n weighs n + 1 - r, times its own weight.
    The source uses such weights for FIFO (by arrival). For shortest job first it minimises the time of the shortest
    job, and does not mention the others. FFT calls the policy SJF-like and gives no formula. Value: the weighted sum.

    Source: Gavel, OSDI 2020, Sec. 4.2, Table 1; FFT Sec. 6.1.4.
    """

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program."""
        p = Formulation("gavel, shortest first")
        market = jobs.market
        share = shares_of(p, market)
        best = jobs.fastest()
        left = (jobs.remaining / best).tolist()
        rank = np.empty(len(left), dtype=np.int64)
        rank[sorted(range(len(left)), key=lambda row: (left[row], row))] = np.arange(len(left))
        p.maximize(
            (throughput(market, share) / best * market.weight * (len(left) - rank)).sum(),
            equation="sum_m (M + 1 - rank_m) throughput_m / throughput_m(fastest)",
            source="Gavel Sec. 4.2",
        )
        return p.program()


@dataclass(frozen=True)
class LeastCost(Objective):
    """The most throughput for the money: max over X of sum_m throughput_m / sum_mj cost_j GPUs_mj.

    Throughputs of different jobs are added up relative to each job's best, times its weight. ``cost``: of a GPU for a
    unit of time, by the type's name; 1 by default. ``least``: the part of its equal share's throughput that each job is
    promised (the source's service-level objectives). With 0, jobs that are poor value for money get nothing, and run on
    left-over GPUs.

    A quotient of linear functions; with s the reciprocal of the cost and y = s x it is one program (Charnes and Cooper
    1962). The quotient does not depend on the scale of the shares; the largest multiple that fits is taken. Value:
    throughput for a unit of money.

    Source: Gavel, OSDI 2020, Sec. 4.2.
    """

    cost: Mapping[str, object] = field(default_factory=dict)
    least: object = 0

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program in y = s x; its block "share" is y."""
        p = Formulation("gavel, least cost")
        market = jobs.market
        y = p.variable("share", market.shape, lower=0, labels=(market.users, market.types))
        s = p.variable("scale", lower=0)
        gained = throughput(market, y) / jobs.fastest() * market.weight
        price = _prices(market, self.cost)
        p.maximize(gained.sum(), equation="sum_m throughput_m(y)", source="Gavel Sec. 4.2")
        p.constrain("money", (price * y).sum() == 1, equation="sum_mj c_j y_mj = 1", source="Charnes and Cooper 1962")
        p.constrain("capacity", y.sum(axis=0) - market.capacity * s <= 0, labels=(market.types,))
        p.constrain("demand", y.sum(axis=1) - market.limit * s <= 0, labels=(market.users,))
        runs = market.speedup > 0
        p.constrain("runs", (y <= 0).where(~runs), labels=(market.users, market.types))
        promised = market.fair_utility() * _number(market, self.least, "least")
        p.constrain("promised", throughput(market, y) - promised * s >= 0, labels=(market.users,))
        return p.program()

    def read(self, jobs: JobMarket, program: Program, point: Array) -> Array:
        """Return the largest multiple of y that is within capacities and demands."""
        y = not_negative(program.variable("share", point))
        return np.asarray(y * jobs.market.largest_multiple(y))


@dataclass(frozen=True)
class ThroughputByCost(Objective):
    """The most throughput, a GPU's counted over its price: max over X of sum_mj T_mj X_mj / cost_j.

    Throughputs of different jobs are added up in the jobs' own units, as in the source's scheduler; its paper has the
    quotient of the sums, which is `LeastCost`. ``cost``: of a GPU for a unit of time, by the type's name; 1 by default.
    ``deadline``: seconds from arrival, by the job's name (the source's service-level objectives); a job whose deadline
    has not passed gets the throughput that meets it. Where not all can be met, none is promised, as in the source.
    Value: the weighted sum.

    Source: scheduler/policies/max_sum_throughput.py, `ThroughputNormalizedByCostSumWithPerfSLOs` (commit c4fa4009).
    """

    cost: Mapping[str, object] = field(default_factory=dict)
    deadline: Mapping[str, object] = field(default_factory=dict)

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return the shares that keep all deadlines, else those without."""
        kept = not self.deadline or solve(self.formulate(jobs)).status is not Status.INFEASIBLE
        return super().shares(jobs, solve) if kept else replace(self, deadline={}).shares(jobs, solve)

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program."""
        p = Formulation("gavel, throughput by cost")
        market = jobs.market
        share = shares_of(p, market)
        worth = market.speedup / _prices(market, self.cost)
        p.maximize((worth * share).sum(), equation="sum_mj T_mj X_mj / c_j", source="Gavel's max_sum_throughput.py")
        known = zip(market.users, jobs.elapsed, strict=True)
        left = [_number(market, self.deadline.get(name, 0), f"deadline of {name!r}") - gone for name, gone in known]
        late = np.array([0 if each <= 0 else each for each in left], dtype=market.speedup.dtype)
        need = np.where(late > 0, jobs.remaining / np.where(late > 0, late, 1), 0)
        p.constrain(
            "in_time",
            (throughput(market, share) >= need).where(late > 0),
            equation="throughput_m >= remaining_m / time left_m",
            source="Gavel's max_sum_throughput.py",
            labels=(market.users,),
        )
        return p.program()


def _prices(market: Market, cost: Mapping[str, object]) -> Array:
    strange = cost.keys() - set(market.types)
    if strange:
        raise BadInput(f"got {min(strange)!r}", place="cost", remedy=f"The types are {', '.join(market.types)}")
    prices = [_number(market, cost.get(name, 1), f"cost of {name!r}") for name in market.types]
    require(min(prices) > 0, min(prices), "cost", "Give a positive cost for each type")
    return np.array(prices, dtype=market.arithmetic.dtype)


def _number(market: Market, value: object, place: str) -> Number:
    number = exact(value, place)
    return number if market.exact else float(number)
