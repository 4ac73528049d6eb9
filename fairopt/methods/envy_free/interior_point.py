"""Envy-free shares by an interior-point method that keeps the tightest rows against envy: for many users with demands.

Where demands bind, every user holds a bundle of its own, and many rows matter. Of the n^2 rows, those stand in the
program that were among the tightest of their two users, or violated, after some step; far from the end each user meets
some tens of others. Given what each bundle is worth to its holder, the bundles depend on each other by the capacities
only. So a Newton step eliminates the bundles, k unknowns each, and leaves one equation for each user
(`fairopt.methods.envy_free.interior_step`).

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
from fairopt.deadline import remaining
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.interior_program import CLOSE, InteriorProgram
from fairopt.methods.envy_free.interior_step import NEAR, NewtonStep
from fairopt.methods.envy_free.problem import Users
from fairopt.program import INFINITY, Array

#: A first step is taken to last at least so many seconds, times users to the third power, times types.
EACH = 1e-10
#: Most steps; most without the gap halving once it is below `CLOSE`, or products are as small as they
#: are to be, and once it is below `SMALL`.
MOST_STEPS, STALLED, ENDING, SMALL = 250, 30, 5, 3e-8
#: Most steps from where the gap is `SMALL` but for envy that is worth next to nothing, which the proof may remove.
LAST = 5
#: How hard a step holds what it changes is divided by `SOFTER` after it, down to `SOFTEST` times what it was, and is
#: multiplied by `HARDER` where the equations have no solution.
HARDER, SOFTER, HARDEST, SOFTEST = 100.0, 3.0, 1e5, 1e-5


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
