"""An interior-point method for the Eisenberg-Gale program: maximal weighted Nash welfare of a market, in floats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.deadline import left, remaining
from fairopt.problem import Market
from fairopt.program import INFINITY, Array

#: The method stops at this error (complementarity and residuals, as a part of all money), if it can be reached.
TARGET = 3e-15
#: The same where many markets are solved at once, each as well as all others.
MANY_TARGET = 1e-13
#: So many speedups of many markets are in one array: more do not stay near the processor, and take half as long again.
AT_ONCE = 100_000
#: An answer counts as optimal up to this relative KKT residual.
ACCURATE = 1e-7
#: A step goes this part of the way to the boundary.
TO_BOUNDARY = 0.995
MOST_STEPS = 100
#: The method stops after so many steps without progress; the first steps may increase the error. Where weights are far
#: apart the error rises for long while the mean product falls: if that falls to this part, it is progress as well.
STALLED, PROGRESS = 12, 0.9
#: A step shorter than this is replaced by a centering step.
BLOCKED = 0.1
#: No product of a pair may be less than this part of their mean: else steps are shortened (by `SHORTER`, down to
#: `SHORTEST`), since far from the central path iterates may cycle.
CENTRAL = 1e-3
SHORTER, SHORTEST = 0.8, 1e-3
#: The least value of variables that go to zero, as the demand dual of a demand that does not bind: they are divisors.
TINY = 1e-100
#: Added to the diagonal (ones, before what demands take off) of the reduced system: singular in the limit where
#: prices are not unique, and up to rounding where demands use everything up.
REGULAR = 1e-15


class _Point(NamedTuple):
    """An iterate, or a step, for each of several markets.

    Shapes: ``y`` parts of the types (cases, n, k) and ``s`` their reduced costs; ``p``, ``z`` price and rest of each
    type (cases, k); ``q``, ``r`` demand dual of and room under each demand (cases, n); ``v`` what a unit of utility is
    worth to each user (cases, n), w / u at a solution. As an unknown of its own it leaves only products that are not
    linear.
    """

    y: Array
    s: Array
    p: Array
    z: Array
    q: Array
    r: Array
    v: Array

    def moved(self, step: _Point, length: Array) -> _Point:
        return _Point(*(mine + along(length, its) * its for mine, its in zip(self, step, strict=True)))

    def of(self, which: Array) -> _Point:
        return _Point(*(part[which] for part in self))


def along(number: Array, like: Array) -> Array:
    """Return a number of each case (cases,), to be multiplied by arrays ``like`` (cases, ...)."""
    return number.reshape(-1, *[1] * (like.ndim - 1))


def maximal_nash_welfare(market: Market, targets: Sequence[float] = (TARGET,)) -> Iterator[Solution]:
    """Maximise sum_i w_i log u_i over the shares of ``market`` by a primal-dual Newton method.

    Yields an answer for each of the falling ``targets``: the first with an error, as a part of all money, of at most
    that, or the best one where rounding allows no progress or time is over. Its values are "share" (n, k), its duals
    "demand" (n,), 0 where there is none, and its effort has the "residual", the worst of the KKT conditions relative to
    prices, budgets and what there is: it counts as optimal up to `ACCURATE`.

    The unknowns are the parts y_ij of each type that i can use. A Newton system splits by users: user i's block is
    diagonal plus one rank for the curvature of its logarithm, so that everything reduces to one equation for each
    type (a k x k Schur complement), O(n k^2) a step.

    Source: Eisenberg and Gale 1959; Wright, Primal-Dual Interior-Point Methods, 1997, Ch. 10 (predictor, corrector).

    >>> (found,) = maximal_nash_welfare(Market.of([[1, 2], [1, 5]], [1, 1]))
    >>> found.values["share"].round(3).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """
    market = market.as_(float)
    columns = np.flatnonzero((market.capacity > 0) & (market.speedup > 0).any(axis=0))
    problem = _Problem.of(market.speedup[None][:, :, columns], market.capacity[columns], market.weight, market.limit)
    limited = problem.limited
    point, steps, stalled = problem.start(), 0, 0
    best, best_error, least = point, float(problem.error(point)[0]), float(problem.slackness(point)[0])
    for target in targets:
        while best_error > target and stalled <= STALLED and steps < MOST_STEPS and remaining() > 0:
            point = problem.advanced(point)
            steps, stalled = steps + 1, stalled + 1
            error, slackness = float(problem.error(point)[0]), float(problem.slackness(point)[0])
            if slackness < PROGRESS * least:
                least, stalled = slackness, 0
            if error < best_error:
                best, best_error, stalled = point, error, 0
        found, shares = problem.polished(best), np.zeros(market.shape)
        shares[:, columns] = (np.where(problem.usable, found.y, 0.0) * market.capacity[columns])[0]
        demand_duals = np.where(limited, found.q[0] * market.weight.sum() / np.where(limited, market.limit, 1.0), 0.0)
        residual = float(problem.residual(found)[0])
        yield Solution(
            Status.OPTIMAL if residual <= ACCURATE else Status.INACCURATE,
            f"KKT residual {residual:.2g} after {steps} steps",
            "auto",
            x=shares.ravel(),
            values={"share": shares},
            duals={"demand": demand_duals},
            effort={"residual": residual, "steps": float(steps)},
        )


def many_maximal_nash_welfare(
    speedups: Array, capacity: Array, weight: Array, limit: Array, target: float = MANY_TARGET
) -> Array:
    """Return shares (cases, n, k) of maximal Nash welfare on markets with other ``speedups`` (cases, n, k) each.

    The method is that of `maximal_nash_welfare`, one step for all markets at once. The error of each answer is at most
    ``target``, as a part of all money; an answer is NaN where that was not reached. ``weight`` is (n,) or (cases, n),
    ``capacity`` (k,) and ``limit`` (n,) are common to all.
    """
    weights, shares = np.broadcast_to(weight, speedups.shape[:2]), np.full(speedups.shape, np.nan)
    each = max(1, AT_ONCE // speedups[0].size) if len(speedups) else 1
    for part in (slice(first, first + each) for first in range(0, len(speedups), each)):
        shares[part] = _side_by_side(speedups[part], capacity, weights[part], limit, target)
    return shares


def _side_by_side(speedups: Array, capacity: Array, weight: Array, limit: Array, target: float) -> Array:
    shares = np.full(speedups.shape, np.nan)
    wanted = (capacity > 0) & (speedups > 0).any(axis=1)
    columns = np.flatnonzero(wanted[0])
    case = np.flatnonzero((wanted == wanted[0]).all(axis=1))
    problem = _Problem.of(speedups[case][:, :, columns], capacity[columns], weight[case], limit)
    point = problem.start()
    for _ in range(MOST_STEPS):
        left()
        done = problem.error(point) <= target
        if done.any():
            parts = np.where(problem.usable[done], point.y[done], 0.0) * capacity[columns]
            shares[case[done]] = 0.0
            shares[np.ix_(case[done], np.arange(speedups.shape[1]), columns)] = parts
            case, point, problem = case[~done], point.of(~done), problem.of_cases(~done)
        if not len(case):
            break
        point = problem.advanced(point)
    return shares


@dataclass(frozen=True, eq=False)
class _Problem:
    """The program in units of its own, for several markets: parts of types, the best type worth 1, weights that add up.

    ``a`` (cases, n, k) is what all of a type is worth; ``g`` (cases, n, k) all of a type as a part of the demand, 0
    without one; ``usable`` (cases, n, k); weights ``w`` (cases, n), 1 in all. Who is ``limited`` (n,) is common to all.

    Errors of a user are measured by its weight, as if it were so many copies: pairs of a user with ten times the weight
    have products ten times as large. Else a user of small weight would look solved from the start.
    """

    a: Array
    g: Array
    w: Array
    usable: Array
    limited: Array

    @classmethod
    def of(cls, speedups: Array, capacity: Array, weight: Array, limit: Array) -> _Problem:
        a = speedups * capacity
        usable, limited = a > 0, limit < capacity.sum()
        g = np.where(limited[:, None] & usable, capacity / np.where(limited, limit, 1.0)[:, None], 0.0)
        w = np.broadcast_to(weight / weight.sum(axis=-1, keepdims=True), a.shape[:2])
        return cls(a / a.max(axis=2, keepdims=True), g, w, usable, limited)

    def of_cases(self, which: Array) -> _Problem:
        return _Problem(self.a[which], self.g[which], self.w[which], self.usable[which], self.limited)

    def start(self) -> _Point:
        """Return a point that is strictly inside all constraints, those of the dual included.

        Products of pairs are of the order of the user's weight, however far apart capacities and demands are: a user
        uses its part of a type, or of its demand where that is less, and a demand dual, not the price, makes up for the
        rest.
        """
        count = self.usable.sum(axis=2)
        per_type = 1 / np.maximum(self.g * count[:, :, None], TINY)
        y = np.where(self.usable, 0.9 * np.minimum(self.w[:, :, None], per_type), 1.0)
        marginal = self.marginal(y)
        p = 1.5 * (self.a / (0.9 * self.a.sum(axis=2, keepdims=True))).max(axis=1)
        over = 1.5 * marginal - p[:, None, :]
        unpaid = np.where(self.g > 0, over / np.where(self.g > 0, self.g, 1.0), 0.0)
        # the marginal worth of y_ij is at most w / y_ij. Where y_ij is a part of the demand that is at most 2 count w
        # g_ij, so that demand duals need not exceed 2 count w; where it is a part of the weight, it is at most 2
        enough = np.clip(unpaid.max(axis=2), self.w, 2 * count * self.w)
        p = np.maximum(p, (1.5 * marginal - enough[:, :, None] * self.g).max(axis=1))
        q = np.where(self.limited, enough, TINY)
        s = np.where(self.usable, p[:, None, :] + q[:, :, None] * self.g - marginal, 1.0)
        return _Point(y, s, p, self.rest(y), q, self.room(y), self.w / self.value(y))

    @cached_property
    def copies(self) -> Array:
        """How many users of mean weight each user stands for (cases, n)."""
        return np.asarray(self.w * self.w.shape[1])

    def value(self, y: Array) -> Array:
        return np.asarray((self.a * y).sum(axis=2))

    def marginal(self, y: Array) -> Array:
        """Return w_i a_ij / u_i."""
        return np.asarray(self.a * (self.w / self.value(y))[:, :, None])

    def rest(self, y: Array) -> Array:
        return np.asarray(1 - np.where(self.usable, y, 0.0).sum(axis=1))

    def room(self, y: Array) -> Array:
        return np.asarray(1 - (self.g * y).sum(axis=2))

    def dual_gap(self, point: _Point) -> Array:
        """Return by how much reduced costs are off: v a - p - q g + s, which is zero at a solution."""
        off = point.v[:, :, None] * self.a - point.p[:, None, :] - point.q[:, :, None] * self.g + point.s
        return np.where(self.usable, off, 0.0)

    def error(self, point: _Point) -> Array:
        """Return the errors (cases,): complementarity, dual residuals and primal residuals, as parts of all money."""
        residuals = (
            point.y * self.dual_gap(point) / self.copies[:, :, None],
            (self.w - self.value(point.y) * point.v) / self.copies,
            point.p * (self.rest(point.y) - point.z),
            point.q * (self.room(point.y) - point.r) / self.copies,
        )
        worst = (np.abs(each).reshape(len(each), -1).max(axis=1) for each in residuals)
        return np.asarray(sum(worst, start=self.slackness(point)))

    def products(self, point: _Point, none: float) -> Array:
        """Return the product of each pair (cases, pairs), for one copy of its user; ``none`` where there is no pair.

        They are equal on the central path, 0 at a solution.
        """
        shares = np.where(self.usable, point.y * point.s / self.copies[:, :, None], none)
        demands = (point.q * point.r / self.copies)[:, self.limited]
        return np.concatenate([shares.reshape(len(shares), -1), point.p * point.z, demands], axis=1)

    @cached_property
    def pairs(self) -> Array:
        """How many pairs there are (cases,)."""
        return np.asarray(self.usable.sum(axis=(1, 2)) + self.usable.shape[2] + self.limited.sum())

    def slackness(self, point: _Point) -> Array:
        return np.asarray(self.products(point, 0.0).sum(axis=1) / self.pairs)

    def central(self, point: _Point) -> Array:
        products = self.products(point, INFINITY)
        mean = np.where(products < INFINITY, products, 0.0).sum(axis=1) / self.pairs
        return np.asarray(products.min(axis=1) >= CENTRAL * mean)

    def polished(self, point: _Point) -> _Point:
        """Return the point with the least prices at which no user would buy more of anything at the margin."""
        least = np.where(self.usable, self.marginal(point.y) - point.q[:, :, None] * self.g, 0.0).max(axis=1)
        return point._replace(p=np.maximum(least, 0.0))

    def residual(self, point: _Point) -> Array:
        """Return the worst KKT residual (cases,) of (y, p, q), with reduced costs, rests and rooms recomputed."""
        y, marginal = np.where(self.usable, point.y, 0.0), self.marginal(point.y)
        # must be >= 0, and 0 where y > 0
        reduced = point.p[:, None, :] + point.q[:, :, None] * self.g - marginal
        relative = np.where(self.usable, reduced / marginal.max(axis=2, keepdims=True), 0.0)
        rest, room = self.rest(point.y), np.where(self.limited, self.room(point.y), 1.0)
        unmet = y * np.abs(reduced) / self.w[:, :, None], np.abs(point.p * rest), np.abs(point.q * room / self.w)
        parts = [-relative, -rest, -room, *unmet]
        return np.asarray(np.max([each.reshape(len(each), -1).max(axis=1) for each in parts], axis=0))

    def advanced(self, point: _Point) -> _Point:
        """Return the next iterates: a predictor step tells how far to aim, a corrector step goes there."""
        system, mu = _Newton(self, point), self.slackness(point)
        affine = system.step(np.zeros_like(mu))
        possible = np.minimum(1.0, self.longest(point, affine))
        reached = self.slackness(point.moved(affine, possible))
        target = mu * np.clip(reached / mu, 0.0, 1.0) ** 3
        # where a full step is not possible, products of the full step say little about the one that is
        step = system.step(target, affine, possible**2)
        length = self.longest(point, step)
        blocked = length < BLOCKED
        if blocked.any():  # too near the boundary somewhere: back to the central path, at the present mean product
            centred = system.step(mu)
            step = _Point(*(np.where(along(blocked, its), its, mine) for mine, its in zip(step, centred, strict=True)))
            length = self.longest(point, step)
        length = np.minimum(1.0, TO_BOUNDARY * length)
        while (far := (length > SHORTEST) & ~self.central(point.moved(step, length))).any():
            length = np.where(far, length * SHORTER, length)
        return _Point(*(np.maximum(part, TINY) for part in point.moved(step, length)))

    def longest(self, point: _Point, step: _Point) -> Array:
        """Return the largest steps (cases,), up to a little over 1, that keep every variable positive."""
        # a step is zero where there is no such pair, price or demand
        pairs = zip(point, step, strict=True)
        most = [(-change / value).reshape(len(value), -1).max(axis=1) for value, change in pairs]
        return np.asarray(1 / np.maximum(TO_BOUNDARY, np.max(most, axis=0)))


class _Newton:
    """The Newton system at one point, factored once, for several markets.

    User i's block of second derivatives is H = D + alpha a a' with D = s / y and alpha = v / u. With E = 1 / D and
    S = alpha a' E a its inverse is, entry by entry,

        (H^-1 x)_j = E_j (x_j + alpha sum_l a_l E_l (a_l x_j - a_j x_l)) / (1 + S),

    which loses no digits where E is huge (near the optimum, for types that the user holds), unlike the textbook's
    E x - E a (...) a' E x. Each demand adds a row, eliminated next: gamma = g' H^-1 g + r / q.
    """

    def __init__(self, problem: _Problem, point: _Point) -> None:
        self.problem, self.point = problem, point
        self.dual_gap = problem.dual_gap(point)
        self.over_z, self.over_r = problem.rest(point.y) - point.z, problem.room(point.y) - point.r
        a, k = problem.a, problem.a.shape[2]
        self.u = problem.value(point.y)
        self.over_v = problem.w - self.u * point.v
        inverse = np.where(problem.usable, point.y / point.s, 0.0)
        weighted = a * inverse
        alpha = point.v / self.u
        self.whole = 1 + alpha * (weighted * a).sum(axis=2)
        self.inverse, self.pull = inverse / self.whole[:, :, None], alpha[:, :, None] * weighted
        self.apart = 1 - np.eye(k)  # sums over the other types: a type's own terms cancel, and would take digits along
        self.whole_apart = 1 + (self.pull * a) @ self.apart
        # off the diagonal -alpha a_j a_l E_j E_l / (1 + S), on it E_j (1 + what S is without j) / (1 + S)
        schur = -(weighted / self.whole[:, :, None]).transpose(0, 2, 1) @ self.pull
        own = (self.inverse * self.whole_apart).sum(axis=1) + point.z / point.p
        schur[:, range(k), range(k)] = own
        self.limited = np.flatnonzero(problem.limited)
        self.g = problem.g[:, self.limited]
        self.held = self.apply(problem.g)[:, self.limited]
        self.gamma = (self.g * self.held).sum(axis=2) + (point.r / point.q)[:, self.limited]
        self.scale = 1 / np.sqrt(own)
        schur -= (self.held / self.gamma[:, :, None]).transpose(0, 2, 1) @ self.held
        self.schur = schur * (self.scale[:, :, None] * self.scale[:, None, :]) + REGULAR * np.eye(k)

    def apply(self, x: Array) -> Array:
        """Return H^-1 times a vector (cases, n, k), user by user, without the demands."""
        others = (self.pull * x) @ self.apart
        return np.asarray(self.inverse * (x * self.whole_apart - self.problem.a * others))

    def step(self, target: Array, affine: _Point | None = None, part: Array | None = None) -> _Point:
        """Return the step that aims at complementarity ``target`` (cases,).

        A ``part`` (cases,) of the second-order terms of ``affine`` is in it.
        """
        problem, at, limited = self.problem, self.point, self.limited
        of_user = along(target, at.q) * problem.copies
        to_s, to_z, to_r = of_user[:, :, None] - at.y * at.s, along(target, at.p) - at.p * at.z, of_user - at.q * at.r
        to_v = self.over_v
        if affine is not None and part is not None:
            of_two = along(part, at.p)
            to_s, to_z = to_s - along(part, at.y) * affine.y * affine.s, to_z - of_two * affine.p * affine.z
            to_r = to_r - of_two * affine.q * affine.r
            to_v = to_v - of_two * (problem.a * affine.y).sum(axis=2) * affine.v
        over_z, over_r = self.over_z, self.over_r
        right = self.dual_gap + problem.a * (to_v / self.u)[:, :, None] + to_s / at.y
        free = self.apply(np.where(problem.usable, right, 0.0))
        # g dy + dr = over_r and q dr + r dq = to_r, with dy = free - H^-1 (dp + g dq)
        need = (over_r - to_r / at.q)[:, limited]
        free_q = ((self.g * free[:, limited]).sum(axis=2) - need) / self.gamma
        right = free.sum(axis=1) - (free_q[:, None, :] @ self.held)[:, 0] - over_z + to_z / at.p
        dp = np.linalg.solve(self.schur, (right * self.scale)[:, :, None])[:, :, 0] * self.scale
        dq = np.zeros_like(at.q)
        dq[:, limited] = free_q - (self.held @ dp[:, :, None])[:, :, 0] / self.gamma
        cost = np.where(problem.usable, dp[:, None, :] + dq[:, :, None] * problem.g, 0.0)
        dy = free - self.apply(cost)
        dr = np.where(problem.limited, over_r - (problem.g * dy).sum(axis=2), 0.0)
        ds = np.where(problem.usable, (to_s - at.s * dy) / at.y, 0.0)
        dv = (to_v - at.v * (problem.a * dy).sum(axis=2)) / self.u
        return _Point(dy, ds, dp, over_z - dy.sum(axis=1), dq, dr, dv)
