"""Envy-free shares by an interior-point method that keeps the tightest rows against envy: for many users with demands.

Where demands bind, every user holds a bundle of its own, and many rows matter. Of the n^2 rows, those stand in the
program that were among the tightest of their two users, or violated, after some step; far from the end each user meets
some tens of others. Given what each bundle is worth to its holder, the bundles depend on each other by the capacities
only. So a Newton step eliminates the bundles, k unknowns each, and leaves one equation for each user
(`fairopt.methods.envy_free.interior_equations`).

Users who are nearly alike leave each other hardly any room: the multipliers between them may grow without changing
much, and bundles that are worth the same to all may be moved about. What floats cannot tell is held where it is: a step
pays for the square of what it changes, the less the nearer the end is. That changes which way the point goes, not where
it ends, since each step pays anew from where it is (a proximal method).

Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992; Gondzio, Multiple centrality
corrections in a primal-dual method for linear programming, 1996; Friedlander and Orban, A primal-dual regularized
interior-point method for convex quadratic programs, Mathematical Programming Computation 4, 2012.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.deadline import left, remaining
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.interior_equations import StepEquations
from fairopt.methods.envy_free.interior_program import CLOSE, EnvyPairs, InteriorProgram, Point
from fairopt.methods.envy_free.problem import Users
from fairopt.program import INFINITY, Array

#: A step goes at least this part of the way to where the first number would be 0; more the smaller the gap is.
SHORT = 0.9
#: A first step is taken to last at least so many seconds, times users to the third power, times types.
EACH = 1e-10
#: Most steps; most without the gap halving once it is below `CLOSE`, or products are as small as they
#: are to be, and once it is below `SMALL`.
MOST_STEPS, STALLED, ENDING, SMALL = 250, 30, 5, 3e-8
#: Most steps from where the gap is `SMALL` but for envy that is worth next to nothing, which the proof may remove.
LAST = 5
#: The relative gap that is asked for.
NEAR = 1e-9
#: Most corrections of a step towards the central path, each aiming this much farther, at products within `EVEN` times
#: their aim.
CORRECTIONS, FARTHER, EVEN = 4, 0.3, 10.0
#: What a step pays for each bundle and each multiplier against envy that it changes. Both are divided by `SOFTER` after
#: each step, down to `SOFTEST` times what they were, and multiplied by `HARDER` where the equations have no solution.
HOLD_BUNDLE, HOLD_ENVY = 1e-8, 1e-6
HARDER, SOFTER, HARDEST, SOFTEST = 100.0, 3.0, 1e5, 1e-5
#: Below the gap `LOOSE`, multipliers are held less the smaller it is, down to `LEAST_HELD` times as much: rows against
#: envy fall short by what changes of multipliers cost.
LOOSE, LEAST_HELD = 3e-7, 1e-5
#: Products that add up to less than this part of the gap that is asked for are not aimed at: points would be too near
#: to the boundary for the next step.
LEAST = 0.1


def interior(users: Users, direction: Array) -> Solution:
    """Return a point near the optimum; ``direction`` (n,) numbers the users' directions from 0.

    Where time is over, it is the best by then.
    """
    program = InteriorProgram(users, direction)
    point, pairs = program.start()
    slacks = program.slacks(point)
    best, since = program.proved(point, pairs, slacks, 0), 0
    loosely, ending = best, 0
    step, hold, least = EACH * len(direction) ** 3 * len(users.size), 1.0, SOFTEST
    with np.errstate(all="ignore"):
        for steps in range(1, MOST_STEPS + 1):
            begun = perf_counter()
            if remaining() < 2 * step:  # what is long in it cannot be interrupted, and its proof takes time as well
                break
            try:
                ahead = NewtonStep(program, pairs, point, hold, loosely.effort["loose"]).stepped(best.effort["gap"])
            except OutOfTime:
                break
            except np.linalg.LinAlgError:
                hold, least = hold * HARDER, hold * HARDER / SOFTER
                if hold > HARDEST:
                    break
                continue
            hold = max(least, hold / SOFTER)
            point, slacks, joins = program.held_back(point, ahead, pairs, slacks)
            found, since = program.proved(point, pairs, slacks, steps), since + 1
            step = max(step, perf_counter() - begun)
            if found.effort["gap"] < 0.5 * best.effort["gap"]:
                best, since = found, 0
            if found.effort["loose"] < 0.5 * loosely.effort["loose"]:
                loosely, since = found, 0
            ending += loosely.effort["loose"] <= SMALL
            if found.effort["gap"] == INFINITY or best.effort["gap"] <= NEAR or ending > LAST:
                break
            if _stalled(min(best.effort["gap"], loosely.effort["loose"]), since, program.total(point.products())):
                break
            point, pairs = program.joined(point, pairs, slacks, joins, best.effort["gap"])
    return best if best.effort["gap"] <= SMALL else loosely


def _stalled(gap: float, since: int, total: float) -> bool:
    """Return whether the gap, or the ``total`` of products, is small, and the gap has not halved in many steps."""
    return (gap < CLOSE or total < NEAR) and since > (ENDING if gap < SMALL else STALLED)


class NewtonStep:
    """The equations of a step from ``point``, with the bundles eliminated."""

    def __init__(self, program: InteriorProgram, pairs: EnvyPairs, point: Point, hold: float, gap: float) -> None:
        self.program, self.pairs, self.point = program, pairs, point
        able, limited = program.able, program.limited
        bundle, part = program.held(point), program.part
        least = np.minimum(program.together(program.weight)[pairs.envious], program.weight[pairs.envied])
        # by how much a row against envy gives way for each unit that its multiplier changes
        self.gives = hold * HOLD_ENVY * min(1.0, max(LEAST_HELD, gap / LOOSE)) / (least * len(program.weight))
        self.yielding = point.slack + self.gives * point.envy
        self.steep = point.envy / self.yielding
        self.bound = np.where(able, point.reduced / point.bundle, 0.0)
        held = hold * HOLD_BUNDLE * len(program.weight) * program.weight
        self.firm = np.where(able, self.bound + held[:, None], 0.0)
        self.tight = np.where(limited, point.demand / point.spare, 0.0)
        self.dear = point.price / point.over
        # what the rows lack
        self.short_slack = point.worth[pairs.envious] - pairs.worth(bundle) - pairs.margin - point.slack
        self.short_spare = np.where(limited, 1 - (part * bundle).sum(axis=1) - point.spare, 0.0)
        self.short_over = 1 - program.weight @ bundle - point.over
        paid = program.weight[:, None] * point.price + point.demand[:, None] * part + pairs.of_envied(point.envy)
        lack = point.gain[:, None] * program.value + np.where(able, point.reduced, 0.0) - paid
        self.lack_bundle = np.where(able, lack, 0.0)
        self.lack_worth = program.counts + pairs.of_envious(point.envy) - program.together(point.gain)
        self.lack_gain = point.worth[program.direction] - (program.value * bundle).sum(axis=1)
        self.equations = StepEquations(program, pairs, self.steep, self.firm, self.tight, self.dear)

    def stepped(self, gap: float) -> Point:
        """Return the point after a predictor, a corrector, and corrections towards the central path.

        The smaller the ``gap``, the nearer it may go to where a number is 0.
        """
        point, program = self.point, self.program
        products, mean = point.products(), program.mean(point.products())
        ahead = self.step([-each for each in products])
        primal, dual = self.lengths(ahead)
        left = program.mean(point.along(ahead, primal, dual).products())
        aim = max(min(1.0, max(left / mean, 1e-8)) ** 3 * mean, min(LEAST * NEAR / program.count(products), mean))
        second = [each * by for each, by in zip(ahead[:4], ahead[4:8], strict=True)]
        sides = [aim - each - more for each, more in zip(products, second, strict=True)]
        step = self.step(sides)
        primal, dual = self.lengths(step)
        for _ in range(CORRECTIONS):
            if min(primal, dual) >= 0.9:
                break
            sides = self._evened(sides, step, min(1.0, primal + FARTHER), min(1.0, dual + FARTHER), aim)
            other = self.step(sides)
            lengths = self.lengths(other)
            if sum(lengths) < primal + dual + 0.02:
                break
            step, (primal, dual) = other, lengths
        part = max(SHORT, 1 - gap)
        return point.along(step, *(part * each if each < 1 else 1.0 for each in (primal, dual)))

    def lengths(self, step: Point) -> tuple[float, float]:
        """Return how far the numbers and their duals can go before the first is 0; 1 at most."""
        fastest = [
            max((float((-by[there] / now[there]).max(initial=0.0)) for now, by, there in part), default=0.0)
            for part in (
                zip(self.point[:4], step[:4], self.program.present, strict=True),
                zip(self.point[4:8], step[4:8], self.program.present, strict=True),
            )
        ]
        primal, dual = (1.0 / max(1.0, each) for each in fastest)
        return primal, dual

    def _evened(self, sides: list[Array], step: Point, primal: float, dual: float, aim: float) -> list[Array]:
        """Return right sides that bring products that would be far from the aim after a longer step nearer to it."""
        low, high = aim / EVEN, aim * EVEN
        after = self.point.along(step, primal, dual).products()
        moves = (np.where(v < low, low - v, np.where(v > high, np.maximum(high - v, -high), 0.0)) for v in after)
        return [side + move for side, move in zip(sides, moves, strict=True)]

    def step(self, sides: list[Array]) -> Point:
        """Return the step that changes the four kinds of products by ``sides``, to first order."""
        left()
        point, program = self.point, self.program
        pairs, weight, part = self.pairs, program.weight, program.part
        change = [
            np.where(there, (side - dual * short) / now, 0.0)
            for side, dual, short, now, there in zip(
                sides,
                point[4:8],
                (self.short_slack, np.zeros(()), self.short_spare, self.short_over),
                (self.yielding, *point[1:4]),
                program.present,
                strict=True,
            )
        ]
        against, bounds, demand, price = change
        for_bundle = self.lack_bundle + bounds - demand[:, None] * part - weight[:, None] * price
        bundle, worth, gain = self.equations.solved(
            np.where(program.able, for_bundle - pairs.of_envied(against), 0.0),
            self.lack_worth + pairs.of_envious(against),
            self.lack_gain,
        )
        slack = worth[pairs.envious] - pairs.worth(bundle)
        spare, over = (part * bundle).sum(axis=1), weight @ bundle
        envy = against - self.steep * slack
        return Point(
            slack + self.short_slack + self.gives * envy,
            bundle,
            self.short_spare - spare,
            self.short_over - over,
            envy,
            bounds - self.bound * bundle,
            demand + self.tight * spare,
            price + self.dear * over,
            worth,
            gain,
        )
