"""An interior-point method for the Eisenberg-Gale program: maximal weighted Nash welfare of a market, in floats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array

#: The method stops at this error (complementarity and residuals, as a part of all money), if it can be reached.
TARGET = 3e-15
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
#: The least value of variables that go to zero, as the rent of a demand that does not bind: they are divisors.
TINY = 1e-100
#: Added to the diagonal (ones, before what demands take off) of the reduced system: singular in the limit where
#: prices are not unique, and up to rounding where demands use everything up.
REGULAR = 1e-15


@dataclass(frozen=True, eq=False)
class NashOptimum:
    """What the method found: ``shares`` (n, k); ``rents`` (n,) duals of the demands, 0 where one is absent.

    ``residual`` is the worst of the KKT conditions, relative to prices, budgets and what there is, after ``steps``.
    """

    shares: Array
    rents: Array
    residual: float
    steps: int


class _Point(NamedTuple):
    """An iterate, or a step.

    Shapes: ``y`` parts of the types (n, k) and ``s`` their reduced costs; ``p``, ``z`` price and rest of each type
    (k,); ``q``, ``r`` rent of and room under each demand (n,); ``v`` what a unit of utility is worth to each user (n,),
    w / u at a solution. As an unknown of its own it leaves only products that are not linear.
    """

    y: Array
    s: Array
    p: Array
    z: Array
    q: Array
    r: Array
    v: Array

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(mine + length * its for mine, its in zip(self, step, strict=True)))


def maximal_nash_welfare(market: Market, targets: Sequence[float] = (TARGET,)) -> Iterator[NashOptimum]:
    """Maximise sum_i w_i log u_i over the shares of ``market`` by a primal-dual Newton method.

    Yields an answer for each of the falling ``targets``: the first with an error, as a part of all money, of at most
    that, or the best one where rounding allows no progress.

    The unknowns are the parts y_ij of each type that i can use. A Newton system splits by users: user i's block is
    diagonal plus one rank for the curvature of its logarithm, so that everything reduces to one equation for each
    type (a k x k Schur complement), O(n k^2) a step.

    Source: Eisenberg and Gale 1959; Wright, Primal-Dual Interior-Point Methods, 1997, Ch. 10 (predictor, corrector).
    """
    market = market.as_(float)
    columns = np.flatnonzero((market.capacity > 0) & (market.speedup > 0).any(axis=0))
    problem = _Problem.of(market, columns)
    limited = problem.limited
    point, steps, stalled = problem.start(), 0, 0
    best, best_error, least = point, problem.error(point), problem.slackness(point)
    for target in targets:
        while best_error > target and stalled <= STALLED and steps < MOST_STEPS:
            point = problem.advanced(point)
            steps, stalled = steps + 1, stalled + 1
            error = problem.error(point)
            if problem.slackness(point) < PROGRESS * least:
                least, stalled = problem.slackness(point), 0
            if error < best_error:
                best, best_error, stalled = point, error, 0
        found, shares = problem.polished(best), np.zeros(market.shape)
        shares[:, columns] = np.where(problem.usable, found.y, 0.0) * market.capacity[columns]
        rents = np.where(limited, found.q * market.weight.sum() / np.where(limited, market.limit, 1.0), 0.0)
        yield NashOptimum(shares, rents, problem.residual(found), steps)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The program in units of its own: parts of types, the best type worth 1, weights adding up to 1.

    ``a`` (n, k) is what all of a type is worth; ``g`` (n, k) all of a type as a part of the demand, 0 without one.

    Errors of a user are measured by its weight, as if it were so many copies: pairs of a user with ten times the weight
    have products ten times as large. Else a user of small weight would look solved from the start.
    """

    a: Array
    g: Array
    w: Array
    usable: Array
    limited: Array

    @classmethod
    def of(cls, market: Market, columns: Array) -> _Problem:
        capacity = market.capacity[columns]
        a = market.speedup[:, columns] * capacity
        usable = a > 0
        limited = market.limit < capacity.sum()
        g = np.where(limited[:, None] & usable, capacity / np.where(limited, market.limit, 1.0)[:, None], 0.0)
        return cls(a / a.max(axis=1, keepdims=True), g, market.weight / market.weight.sum(), usable, limited)

    def start(self) -> _Point:
        """Return a point that is strictly inside all constraints, those of the dual included.

        Products of pairs are of the order of the user's weight, however far apart capacities and demands are: a user
        uses its part of a type, or of its demand where that is less, and a rent, not the price, makes up for the rest.
        """
        count = self.usable.sum(axis=1)
        per_type = 1 / np.maximum(self.g * count[:, None], TINY)
        y = np.where(self.usable, 0.9 * np.minimum(self.w[:, None], per_type), 1.0)
        marginal = self.marginal(y)
        p = 1.5 * (self.a / (0.9 * self.a.sum(axis=1, keepdims=True))).max(axis=0)
        unpaid = np.where(self.g > 0, (1.5 * marginal - p) / np.where(self.g > 0, self.g, 1.0), 0.0)
        # the marginal worth of y_ij is at most w / y_ij. Where y_ij is a part of the demand that is at most 2 count w
        # g_ij, so that rents need not exceed 2 count w; where it is a part of the weight, it is at most 2
        enough = np.clip(unpaid.max(axis=1), self.w, 2 * count * self.w)
        p = np.maximum(p, (1.5 * marginal - enough[:, None] * self.g).max(axis=0))
        q = np.where(self.limited, enough, TINY)
        s = np.where(self.usable, p + q[:, None] * self.g - marginal, 1.0)
        return _Point(y, s, p, self.rest(y), q, self.room(y), self.w / self.value(y))

    @cached_property
    def copies(self) -> Array:
        """How many users of mean weight each user stands for (n,)."""
        return np.asarray(self.w * len(self.w))

    def value(self, y: Array) -> Array:
        return np.asarray((self.a * y).sum(axis=1))

    def marginal(self, y: Array) -> Array:
        """Return w_i a_ij / u_i."""
        return np.asarray(self.a * (self.w / self.value(y))[:, None])

    def rest(self, y: Array) -> Array:
        return np.asarray(1 - np.where(self.usable, y, 0.0).sum(axis=0))

    def room(self, y: Array) -> Array:
        return np.asarray(1 - (self.g * y).sum(axis=1))

    def dual_gap(self, point: _Point) -> Array:
        """Return by how much reduced costs are off: v a - p - q g + s, which is zero at a solution."""
        off = point.v[:, None] * self.a - point.p - point.q[:, None] * self.g + point.s
        return np.where(self.usable, off, 0.0)

    def error(self, point: _Point) -> float:
        """Return the error: complementarity, dual residuals and primal residuals, as parts of all money."""
        residuals = (
            point.y * self.dual_gap(point) / self.copies[:, None],
            (self.w - self.value(point.y) * point.v) / self.copies,
            point.p * (self.rest(point.y) - point.z),
            point.q * (self.room(point.y) - point.r) / self.copies,
        )
        return float(sum((np.abs(each).max() for each in residuals), start=self.slackness(point)))

    def products(self, point: _Point) -> Array:
        """Return the product of each pair, for one copy of its user: equal on the central path, 0 at a solution."""
        shares, demands = point.y * point.s / self.copies[:, None], point.q * point.r / self.copies
        return np.concatenate([shares[self.usable], point.p * point.z, demands[self.limited]])

    def slackness(self, point: _Point) -> float:
        return float(self.products(point).mean())

    def central(self, point: _Point) -> bool:
        products = self.products(point)
        return bool(products.min() >= CENTRAL * products.mean())

    def polished(self, point: _Point) -> _Point:
        """Return the point with the least prices at which no user would buy more of anything at the margin."""
        least = np.where(self.usable, self.marginal(point.y) - point.q[:, None] * self.g, 0.0).max(axis=0)
        return point._replace(p=np.maximum(least, 0.0))

    def residual(self, point: _Point) -> float:
        """Return the worst KKT residual of (y, p, q), with reduced costs, rests and rooms recomputed."""
        y = np.where(self.usable, point.y, 0.0)
        reduced = point.p + point.q[:, None] * self.g - self.marginal(point.y)  # must be >= 0, and 0 where y > 0
        relative = np.where(self.usable, reduced / self.marginal(point.y).max(axis=1, keepdims=True), 0.0)
        rest, room = self.rest(point.y), np.where(self.limited, self.room(point.y), 1.0)
        unmet = y * np.abs(reduced) / self.w[:, None], np.abs(point.p * rest), np.abs(point.q * room / self.w)
        return float(max(*(-each.min() for each in (relative, rest, room)), *(each.max() for each in unmet)))

    def advanced(self, point: _Point) -> _Point:
        """Return the next iterate: a predictor step tells how far to aim, a corrector step goes there."""
        system = _Newton(self, point)
        affine = system.step(0.0)
        mu = self.slackness(point)
        possible = min(1.0, self.longest(point, affine))
        reached = self.slackness(point.moved(affine, possible))
        target = mu * min(1.0, max(reached / mu, 0.0)) ** 3
        # where a full step is not possible, products of the full step say little about the one that is
        step = system.step(target, affine, possible**2)
        length = self.longest(point, step)
        if length < BLOCKED:  # too near the boundary somewhere: back to the central path, at the present mean product
            step = system.step(mu)
            length = self.longest(point, step)
        length = min(1.0, TO_BOUNDARY * length)
        while length > SHORTEST and not self.central(point.moved(step, length)):
            length *= SHORTER
        return _Point(*(np.maximum(part, TINY) for part in point.moved(step, length)))

    def longest(self, point: _Point, step: _Point) -> float:
        """Return the largest step, up to a little over 1, that keeps every variable positive."""
        # a step is zero where there is no such pair, price or demand
        return 1 / max(
            TO_BOUNDARY, *(float((-change / value).max()) for value, change in zip(point, step, strict=True))
        )


class _Newton:
    """The Newton system at one point, factored once.

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
        a, k = problem.a, problem.a.shape[1]
        self.u = problem.value(point.y)
        self.over_v = problem.w - self.u * point.v
        inverse = np.where(problem.usable, point.y / point.s, 0.0)
        weighted = a * inverse
        alpha = point.v / self.u
        self.whole = 1 + alpha * (weighted * a).sum(axis=1)
        self.inverse, self.pull = inverse / self.whole[:, None], alpha[:, None] * weighted
        squares = self.pull * a
        others = squares @ (1 - np.eye(k))
        # off the diagonal -alpha a_j a_l E_j E_l / (1 + S), on it E_j (1 + what S is without j) / (1 + S)
        schur = -(weighted / self.whole[:, None]).T @ self.pull
        np.fill_diagonal(schur, (self.inverse * (1 + others)).sum(axis=0) + point.z / point.p)
        self.limited = np.flatnonzero(problem.limited)
        self.g = problem.g[self.limited]
        self.held = self.apply(problem.g)[self.limited]
        self.gamma = (self.g * self.held).sum(axis=1) + (point.r / point.q)[self.limited]
        self.scale = 1 / np.sqrt(np.diag(schur))
        schur -= (self.held / self.gamma[:, None]).T @ self.held
        self.schur = schur * np.multiply.outer(self.scale, self.scale) + REGULAR * np.eye(k)

    def apply(self, x: Array) -> Array:
        """Return H^-1 times a vector (n, k), user by user, without the demands."""
        a = self.problem.a
        twist = np.einsum("il,ijl->ij", self.pull, a[:, None, :] * x[:, :, None] - a[:, :, None] * x[:, None, :])
        return np.asarray(self.inverse * (x + twist))

    def step(self, target: float, affine: _Point | None = None, part: float = 1.0) -> _Point:
        """Return the step that aims at complementarity ``target``, a ``part`` of ``affine``'s second-order terms in."""
        problem, at, limited = self.problem, self.point, self.limited
        of_user = target * problem.copies
        to_s, to_z, to_r = of_user[:, None] - at.y * at.s, target - at.p * at.z, of_user - at.q * at.r
        to_v = self.over_v
        if affine is not None:
            to_s, to_z = to_s - part * affine.y * affine.s, to_z - part * affine.p * affine.z
            to_r = to_r - part * affine.q * affine.r
            to_v = to_v - part * (problem.a * affine.y).sum(axis=1) * affine.v
        over_z, over_r = self.over_z, self.over_r
        right = self.dual_gap + problem.a * (to_v / self.u)[:, None] + to_s / at.y
        free = self.apply(np.where(problem.usable, right, 0.0))
        # g dy + dr = over_r and q dr + r dq = to_r, with dy = free - H^-1 (dp + g dq)
        need = (over_r - to_r / at.q)[limited]
        free_q = ((self.g * free[limited]).sum(axis=1) - need) / self.gamma
        right = free.sum(axis=0) - free_q @ self.held - over_z + to_z / at.p
        dp = np.linalg.solve(self.schur, right * self.scale) * self.scale
        dq = np.zeros_like(at.q)
        dq[limited] = free_q - (self.held @ dp) / self.gamma
        cost = np.where(problem.usable, dp + dq[:, None] * problem.g, 0.0)
        dy = free - self.apply(cost)
        dr = np.where(problem.limited, over_r - (problem.g * dy).sum(axis=1), 0.0)
        ds = np.where(problem.usable, (to_s - at.s * dy) / at.y, 0.0)
        dv = (to_v - at.v * (problem.a * dy).sum(axis=1)) / self.u
        return _Point(dy, ds, dp, over_z - dy.sum(axis=0), dq, dr, dv)
