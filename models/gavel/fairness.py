"""Gavel's objectives that need several linear programs: finish-time fairness, and the sum of completion times.

Both answers have a proven bound: no shares are better than ``bound``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import NotCapable, NotSolved
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.objectives import Objective, Shared, answered, throughput
from fairopt.models.gavel.partitions import Normaliser
from fairopt.numbers import arithmetic, objects
from fairopt.problem.share_variables import shares_of
from fairopt.problem.throughput import usable
from fairopt.program import Array, Formulation, Number, Program

#: The most programs for one answer; if they do not suffice, the numbers are too ill-conditioned for the tolerance.
MOST_PROGRAMS = 200
#: Steps of Newton's method between two programs.
STEPS = 20
#: Lower ends are rounded down to this many binary digits, so that Fractions stay short.
DIGITS = 60


@dataclass(frozen=True)
class FinishTimeFairness(Objective):
    """The least largest finish-time ratio: min over X of max_m rho_m.

    rho_m(X) = (elapsed_m + remaining_m / throughput_m(X)) / isolated_m, with elapsed the time since the job arrived.
    With ``whole`` False isolated_m is elapsed_m plus the time that the remaining work would take on the job's equal
    share of the cluster, by weight among the jobs present. With True it is the time that all of its work would take
    there. Both agree for a job that has just arrived. ``normaliser`` says what it gets there where its share has more
    GPUs than its gang; the source's scheduler has "isolated", and takes another time: to that for the remaining work it
    adds what the work done so far would have taken on the equal shares of then (docs/validation.md).

    For a ratio r given, "rho_m <= r for all m" is "throughput_m >= remaining_m / (r isolated_m - elapsed_m)": linear.
    If no job has waited yet, that is one exact program. Otherwise the least r is a root of a rational function, and in
    general irrational. Each program gives shares, whose largest ratio is an upper bound. It also gives duals, from
    which Newton's method on a convex function finds a lower bound. In Fractions both are proven. The search ends when
    they are within ``tolerance`` of each other. Value: the largest ratio of the shares; bound: the lower bound.

    Source: Gavel, OSDI 2020, Sec. 4.2 (there without weights, by a general convex solver); FFT Sec. 2.4, 6.1.5.
    """

    tolerance: Fraction = Fraction(1, 10**6)
    whole: bool = False
    normaliser: Normaliser = Normaliser.OWN_PARTITION

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return shares within ``tolerance`` of the least largest ratio. Errors: `NotCapable` without duals."""
        isolated, waited = self.isolated(jobs), any(jobs.elapsed > 0)
        low = least = self._alone(jobs)
        for count in range(1, MOST_PROGRAMS + 1):
            program = self.formulate(jobs, low)
            solution = solve.optimum(program)
            shares = self.read(jobs, program, solution.point)
            rho, part = self.largest(jobs, shares, isolated), program.value(solution.point)
            # if no job has waited the program is linear in 1/r, and its answer gives the least r itself
            raised = low / part if not waited else self._raised(jobs, isolated, low, part, program, solution.dual)
            if count == 1 or rho < least:
                least, best, of_best = rho, answered(solution, shares, rho, rho), program
            bound = min(raised, least)
            if not waited or raised <= low or least - bound <= self.tolerance * least:
                # in floats, the lower bound stops rising at the solver's own tolerance
                return of_best, replace(best, bound=bound, effort={"programs": count})
            low = raised
        raise NotSolved(f"finish-time fairness is not within {self.tolerance} after {MOST_PROGRAMS} programs", solution)

    def _alone(self, jobs: JobMarket) -> Number:
        """Return the largest ratio that a job would have alone: nobody can do better."""
        ratio: Number = ((jobs.elapsed + jobs.remaining / jobs.fastest()) / self.isolated(jobs)).max()
        return ratio

    def formulate(self, jobs: JobMarket, ratio: Number | None = None) -> Program:
        """Return the program of one step: the largest part that all jobs reach of what they need for a ``ratio`` r."""
        need = jobs.remaining / ((self._alone(jobs) if ratio is None else ratio) * self.isolated(jobs) - jobs.elapsed)
        p = Formulation("gavel, finish-time fairness")
        share = shares_of(p, jobs.market)
        part = p.variable("part")
        p.maximize(
            part, equation="min_m throughput_m (r isolated_m - elapsed_m) / remaining_m", source="Gavel Sec. 4.2"
        )
        p.constrain(
            "in_time",
            throughput(jobs.market, share) / need >= part,
            equation="rho_m <= r",
            source="Gavel Sec. 4.2",
            labels=(jobs.market.users,),
        )
        return p.program()

    def isolated(self, jobs: JobMarket) -> Array:
        """Return the time (n,) from arrival to completion that each job is compared with."""
        alone = self.normaliser.of(jobs.market)
        return np.asarray(jobs.work / alone if self.whole else jobs.elapsed + jobs.remaining / alone)

    @staticmethod
    def largest(jobs: JobMarket, shares: Array, isolated: Array) -> Number:
        """Return max_m rho_m at the given shares; infinity where a job gets nothing."""
        speed = jobs.market.utility(shares)
        if any(speed <= 0):
            return float("inf")
        ratio: Number = ((jobs.elapsed + jobs.remaining / speed) / isolated).max()
        return ratio

    def _raised(
        self, jobs: JobMarket, isolated: Array, low: Number, part: Number, program: Program, dual: Array | None
    ) -> Number:
        """Return a lower bound that is at least ``low``.

        With p_m the duals, which add up to one, every ratio r that can be reached has sum p_m need_m(r) / need_m(low)
        <= part. The left side is convex and falls with r, so Newton's steps from the left stay below the root.
        """
        if dual is None:
            raise NotCapable("finish-time fairness is searched by duals, and this backend returns none")
        push = np.abs(dual[program.row_block("in_time").span])
        push = push / push.sum() * (low * isolated - jobs.elapsed)
        at = low
        for _ in range(STEPS):
            room = at * isolated - jobs.elapsed
            step = ((push / room).sum() - part) / (push * isolated / room**2).sum()
            if step <= 0:
                break
            at = _down(at + step) if arithmetic(at).exact else at + step
            if step <= self.tolerance * at / 10:
                break
        return max(at, low)


@dataclass(frozen=True)
class LeastTotalTime(Objective):
    """The least sum of completion times from now on: min over X of sum_m weight_m remaining_m / throughput_m(X).

    FFT's Sec. 2.3 gives this as Gavel's way to minimise job completion times. It is convex, but not linear. Tangents
    that bound each job's time from below make it a linear program; its shares give an upper bound and new tangents. It
    begins with the equal shares, and ends when the bounds are within ``tolerance`` of each other; many jobs take tens
    of programs. Value: the sum for the shares; bound: that of the last program.

    Source: FFT Sec. 2.3; Kelley, The Cutting-Plane Method for Solving Convex Programs, 1960.
    """

    tolerance: Fraction = Fraction(1, 10**3)

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return shares within ``tolerance`` of the least sum."""
        fastest, worth = jobs.fastest(), self._worth(jobs)
        shares = self._first(jobs)
        best, total = shares, self._sum(jobs, shares, worth, fastest)
        tangents = [_short(jobs.market.utility(shares) / fastest)]
        for count in range(1, MOST_PROGRAMS + 1):
            program = self.formulate(jobs, tangents)
            solution = solve.optimum(program)
            shares = self.read(jobs, program, solution.point)
            reached, bound = self._sum(jobs, shares, worth, fastest), program.value(solution.point) * worth.max()
            if reached < total:
                best, total = shares, reached
            if total - bound <= self.tolerance * total:
                return program, answered(solution, best, total, min(bound, total), count)
            least = np.minimum.reduce(tangents) / 4
            tangents.append(_short(np.maximum(jobs.market.utility(shares) / fastest, least)))
        raise NotSolved(f"the sum of times is not within {self.tolerance} after {MOST_PROGRAMS} programs", solution)

    @staticmethod
    def _worth(jobs: JobMarket) -> Array:
        """Return the time (n,) of each job at its best, times its weight."""
        return np.asarray(jobs.remaining / jobs.fastest() * jobs.market.weight)

    @staticmethod
    def _first(jobs: JobMarket) -> Array:
        """Return what jobs can use of the equal shares (n, k), with which the search begins."""
        return usable(jobs.market.speedup, jobs.market.equal_split(), jobs.market.demand)

    def formulate(self, jobs: JobMarket, tangents: Sequence[Array] = ()) -> Program:
        """Return the program of one step, with u_m the part of its best throughput that a job has."""
        fastest, worth = jobs.fastest(), self._worth(jobs)
        worth = worth / worth.max()
        p = Formulation("gavel, least total time")
        share = shares_of(p, jobs.market)
        time = p.variable("time", (len(jobs.rows),), lower=0, labels=(jobs.market.users,))
        part = throughput(jobs.market, share) / fastest
        p.minimize(time.sum(), equation="sum_m remaining_m / throughput_m", source="FFT Sec. 2.3")
        first = [_short(jobs.market.utility(self._first(jobs)) / fastest)]
        for number, at in enumerate(tangents or first, start=1):
            p.constrain(
                f"tangent_{number}",
                part + time * (at**2 / worth) >= 2 * at,
                equation="time_m >= c_m (2/v - u_m/v^2)",
                source="Kelley 1960",
                labels=(jobs.market.users,),
            )
        return p.program()

    @staticmethod
    def _sum(jobs: JobMarket, shares: Array, worth: Array, fastest: Array) -> Number:
        part = jobs.market.utility(shares) / fastest
        if any(part <= 0):
            return float("inf")
        total: Number = (worth / part).sum()
        return total


def _down(value: Fraction) -> Fraction:
    """Return a Fraction with a short denominator, just below or equal to ``value``."""
    size = Fraction(2) ** (DIGITS - value.numerator.bit_length() + value.denominator.bit_length())
    return floor(value * size) / size


def _short(values: Array) -> Array:
    """Return positive numbers near ``values`` with short denominators; a tangent is valid at any point."""
    if not arithmetic(values).exact:
        return values
    return objects(map(_down, values))
