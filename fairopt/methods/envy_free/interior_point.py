"""Envy-free shares by an interior-point method that keeps all rows against envy: for many users with demands.

Where demands bind, every user holds a bundle of its own and nearly all rows matter at some time. Given what each
bundle is worth to its holder, the bundles depend on each other by the capacities only. So a Newton step eliminates the
bundles, k unknowns each, and leaves one equation for each user: n^3 k operations, all of them products of matrices.
What is left of the equations, since the elimination cancels near the end, is removed by a few steps of GMRES.

Units are those of `fairopt.methods.envy_free.restricted_lp.Users`. Users whose speedups are in proportion share one
*direction*: they must value their bundles alike, and rows against envy stand between directions and users.

Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992; Gondzio, Multiple centrality
corrections in a primal-dual method for linear programming, 1996; Saad and Schultz, GMRES, 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from fairopt.deadline import left, remaining
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.restricted_lp import Users
from fairopt.program import INFINITY, Array

#: A step goes this part of the way to where the first number would be 0.
SHORT = 0.9
#: A first step is taken to last at least so many seconds, times users to the third power, times types.
EACH = 1e-10
#: Most steps; and most without the gap halving once it is below `CLOSE`.
MOST_STEPS, STALLED, CLOSE = 250, 12, 1e-2
#: The relative gap that is asked for.
NEAR = 1e-9
#: Most corrections of a step towards the central path, each aiming this much farther, at products within `EVEN` times
#: their aim.
CORRECTIONS, FARTHER, EVEN = 4, 0.3, 10.0
#: What may be left of the equations of a step, as a part of a user's weight, and most steps of GMRES.
LEFT, KRYLOV = 1e-9, 8
#: The first products, as a part of what balances the capacities; the least slack at first, as a part of a user's own.
FIRST, SLACK = 1e-3, 1e-3
#: Added to the diagonal of scaled matrices, and by what it grows where a factor does not exist, up to `GIVE_UP`.
RIDGE, GROWS, GIVE_UP = 1e-14, 100.0, 1e-2


class Point(NamedTuple):
    """Numbers, or by how much they change. Each of the first four times its dual below is a product that falls to 0.

    ``slack`` (c, n) of rows against envy, ``bundle`` (n, k), ``spare`` (n,) of demands, ``over`` (k,) of capacities;
    ``envy``, ``reduced``, ``demand``, ``price`` are their duals. ``worth`` (c,) is what a direction's users hold to
    them, ``gain`` (n,) the dual of a user's row that says so.
    """

    slack: Array
    bundle: Array
    spare: Array
    over: Array
    envy: Array
    reduced: Array
    demand: Array
    price: Array
    worth: Array
    gain: Array

    def along(self, step: Point, primal: float, dual: float) -> Point:
        """Return the point after the parts ``primal`` and ``dual`` of a step."""
        parts = (primal,) * 4 + (dual,) * 4 + (primal, dual)
        return Point(*(each + part * by for each, by, part in zip(self, step, parts, strict=True)))

    def products(self) -> tuple[Array, ...]:
        """Return the products."""
        return tuple(each * dual for each, dual in zip(self[:4], self[4:8], strict=True))


@dataclass(frozen=True, eq=False)
class Interior:
    """The best point found: ``bundle`` (n, k), ``prices`` (k,), ``demand_duals`` (n,), ``envy`` (c, n), ``steps``.

    ``gain`` (n,): what a unit of value counts for each user, with what its direction's users give each other.
    """

    bundle: Array
    prices: Array
    demand_duals: Array
    envy: Array
    gain: Array
    gap: float
    steps: int


def interior(users: Users, direction: Array) -> Interior:
    """Return a point near the optimum; ``direction`` (n,) numbers the users' directions from 0.

    Where time is over, it is the best by then.
    """
    program = _Program(users, direction)
    point = program.start()
    best, since = program.seen(point, 0), 0
    step = EACH * len(direction) ** 3 * len(users.size)
    with np.errstate(all="ignore"):
        for steps in range(1, MOST_STEPS + 1):
            begun = perf_counter()
            if remaining() < 2 * step:  # what is long in it cannot be interrupted, and its proof takes time as well
                break
            try:
                point = _Newton(program, point).stepped()
            except (np.linalg.LinAlgError, OutOfTime):
                break
            found, since = program.seen(point, steps), since + 1
            step = max(step, perf_counter() - begun)
            if found.gap < 0.5 * best.gap:
                best, since = found, 0
            if found.gap == INFINITY or best.gap <= NEAR or (since > STALLED and best.gap < CLOSE):
                break
    return best


class _Program:
    """The program's numbers: who may hold what, the rows, and what counts."""

    def __init__(self, users: Users, direction: Array) -> None:
        n = len(direction)
        first = np.unique(direction, return_index=True)[1]
        self.users, self.direction, self.first = users, direction, first
        self.value, self.weight = users.value, users.weight
        self.able = users.value > 0
        self.rows = users.value[first]
        self.of = np.zeros((n, len(first)))
        self.of[np.arange(n), direction] = 1.0
        self.against = self.of.T == 0  # nobody envies its own direction: their bundles are worth the same
        self.limited = users.limit < INFINITY
        part = users.size / np.where(self.limited, users.limit, 1.0)[:, None]
        self.part = np.where(self.limited[:, None] & self.able, part, 0.0)
        self.counts = users.gain @ self.of
        ones = (self.against, self.able, self.limited, np.ones(users.value.shape[1], dtype=bool))
        self.there = ones
        self.pairs = sum(int(each.sum()) for each in ones)

    def start(self) -> Point:
        """Return a first point: bundles that only their holders would choose, and products that are all alike."""
        value, weight, k = self.value, self.weight, self.value.shape[1]
        bundle = value / np.sqrt((value * value).sum(axis=1, keepdims=True))
        bundle = bundle / (1.25 * (weight @ bundle).max())
        worth = (self.rows * bundle[self.first]).sum(axis=1)
        bundle = bundle * (worth[self.direction] / (value * bundle).sum(axis=1))[:, None]
        own = worth[:, None]
        slack = np.where(self.against, np.maximum(own - self.rows @ bundle.T, SLACK * own), 1.0)
        spare = np.where(self.limited, np.maximum(1 - (self.part * bundle).sum(axis=1), 0.2), 1.0)
        over = 1 - weight @ bundle
        aim = FIRST * over.mean() / k
        envy = np.where(self.against, aim / slack, 0.0)
        reduced = np.where(self.able, aim / np.where(self.able, bundle, 1.0), 1.0)
        bundle = np.where(self.able, bundle, 1.0)  # times a dual of 1 that never changes: left out of everything
        demand = np.where(self.limited, aim / spare, 0.0)
        price = np.maximum(1 / k, aim / over)
        gain = (self.counts + envy.sum(axis=1))[self.direction] / (self.of.sum(axis=0))[self.direction]
        return Point(slack, bundle, spare, over, envy, reduced, demand, price, worth, gain)

    def held(self, point: Point) -> Array:
        """Return the bundles, nothing where a user does not run."""
        return np.where(self.able, point.bundle, 0.0)

    def seen(self, point: Point, steps: int) -> Interior:
        """Return what the point proves, but for rounding: the gap of its total and the bound by its multipliers."""
        bundle, weight, price = self.held(point), self.weight, point.price
        # what each direction's users count adds up to what its rows say, to the last digit
        short = (self.counts + point.envy.sum(axis=1) - point.gain @ self.of) / self.of.sum(axis=0)
        gain = point.gain + short[self.direction]
        owed = self.value * gain[:, None] - point.envy.T @ self.rows
        dearest = ((owed - point.demand[:, None] * self.part) / weight[:, None]).max(axis=0)
        bound = float(np.maximum(dearest, 0.0).sum() + point.demand.sum())
        fits = max(1.0, float((weight @ bundle).max()), float((self.part * bundle).sum(axis=1).max()))
        worth = (self.value * bundle).sum(axis=1)
        envied = (self.rows @ bundle.T - worth[self.first][:, None])[self.against].max(initial=0.0)
        gap = (bound - float(self.users.gain @ worth) / fits) / bound + 1e3 * max(0.0, float(envied))
        return Interior(bundle, price, point.demand, point.envy, gain, gap if np.isfinite(gap) else INFINITY, steps)


class _Newton:
    """The equations of a step from ``point``, with the bundles eliminated."""

    def __init__(self, program: _Program, point: Point) -> None:
        self.program, self.point = program, point
        against, able, limited, _ = program.there
        bundle, part = program.held(point), program.part
        self.steep = np.where(against, point.envy / point.slack, 0.0)
        self.bound = np.where(able, point.reduced / point.bundle, 0.0)
        self.tight = np.where(limited, point.demand / point.spare, 0.0)
        self.dear = point.price / point.over
        # what the rows lack
        self.short_slack = np.where(against, point.worth[:, None] - program.rows @ bundle.T - point.slack, 0.0)
        self.short_spare = np.where(limited, 1 - (part * bundle).sum(axis=1) - point.spare, 0.0)
        self.short_over = 1 - program.weight @ bundle - point.over
        paid = program.weight[:, None] * point.price + point.demand[:, None] * part + point.envy.T @ program.rows
        lack = point.gain[:, None] * program.value + np.where(able, point.reduced, 0.0) - paid
        self.lack_bundle = np.where(able, lack, 0.0)
        self.lack_worth = program.counts + point.envy.sum(axis=1) - point.gain @ program.of
        self.lack_gain = point.worth[program.direction] - (program.value * bundle).sum(axis=1)
        self._eliminate()

    def stepped(self) -> Point:
        """Return the point after a predictor, a corrector, and corrections towards the central path."""
        point, program = self.point, self.program
        products = [np.where(there, each, 0.0) for each, there in zip(point.products(), program.there, strict=True)]
        total = sum(float(each.sum()) for each in products)
        ahead = self.step([-each for each in products])
        primal, dual = self.lengths(ahead)
        after = point.along(ahead, primal, dual).products()
        left = sum(float(each[there].sum()) for each, there in zip(after, program.there, strict=True))
        aim = min(1.0, max(left / total, 1e-8)) ** 3 * total / program.pairs
        second = [each * by for each, by in zip(ahead[:4], ahead[4:8], strict=True)]
        sides = [
            np.where(there, aim - each - more, 0.0)
            for each, more, there in zip(products, second, program.there, strict=True)
        ]
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
        return point.along(step, *(min(1.0, SHORT * each) if each < 1 else 1.0 for each in (primal, dual)))

    def lengths(self, step: Point) -> tuple[float, float]:
        """Return how far the numbers and their duals can go before the first is 0; 1 at most."""
        fastest = [
            max((float((-by[there] / now[there]).max(initial=0.0)) for now, by, there in part), default=0.0)
            for part in (
                zip(self.point[:4], step[:4], self.program.there, strict=True),
                zip(self.point[4:8], step[4:8], self.program.there, strict=True),
            )
        ]
        primal, dual = (1.0 / max(1.0, each) for each in fastest)
        return primal, dual

    def _evened(self, sides: list[Array], step: Point, primal: float, dual: float, aim: float) -> list[Array]:
        """Return right sides that bring products that would be far from the aim after a longer step nearer to it."""
        low, high = aim / EVEN, aim * EVEN
        after = self.point.along(step, primal, dual).products()
        moves = (np.where(v < low, low - v, np.where(v > high, np.maximum(high - v, -high), 0.0)) for v in after)
        return [
            side + np.where(there, move, 0.0)
            for side, move, there in zip(sides, moves, self.program.there, strict=True)
        ]

    def step(self, sides: list[Array]) -> Point:
        """Return the step that changes the four kinds of products by ``sides``, to first order."""
        left()
        point, program = self.point, self.program
        weight, part, rows = program.weight, program.part, program.rows
        change = [
            np.where(there, (side - dual * short) / now, 0.0)
            for side, dual, short, now, there in zip(
                sides,
                point[4:8],
                (self.short_slack, np.zeros(()), self.short_spare, self.short_over),
                point[:4],
                program.there,
                strict=True,
            )
        ]
        against, bounds, demand, price = change
        for_bundle = self.lack_bundle + bounds - demand[:, None] * part - weight[:, None] * price - against.T @ rows
        bundle, worth, gain = self._solved(
            np.where(program.able, for_bundle, 0.0), self.lack_worth + against.sum(axis=1), self.lack_gain
        )
        slack = np.where(program.against, worth[:, None] - rows @ bundle.T, 0.0)
        spare, over = (part * bundle).sum(axis=1), weight @ bundle
        return Point(
            slack + self.short_slack,
            bundle,
            self.short_spare - spare,
            self.short_over - over,
            against - self.steep * slack,
            bounds - self.bound * bundle,
            demand + self.tight * spare,
            price + self.dear * over,
            worth,
            gain,
        )

    def _eliminate(self) -> None:
        """Set what brings back bundles from worths and prices, and the inverse factor of the matrix of worths."""
        program, weight, value, rows, k = self.program, self.program.weight, self.program.value, self.program.rows, 0
        n, k = value.shape
        diagonal, able = np.arange(k), program.able
        outer = (rows[:, :, None] * rows[:, None, :]).reshape(-1, k * k)
        block = (self.steep.T @ outer).reshape(n, k, k)
        block = block + (self.tight[:, None] * program.part)[:, :, None] * program.part[:, None, :]
        block[:, diagonal, diagonal] += self.bound
        block = np.where(able[:, :, None] & able[:, None, :], block, 0.0)
        block[:, diagonal, diagonal] += ~able
        scale = 1 / np.sqrt(block[:, diagonal, diagonal])
        block = block * scale[:, :, None] * scale[:, None, :]
        block[:, diagonal, diagonal] += RIDGE
        half = np.linalg.inv(np.linalg.cholesky(block)) * (scale * able)[:, None, :]
        along = np.einsum("nij,nj->ni", half, value)
        size = (along * along).sum(axis=1)
        #: what a bundle becomes when it must be worth more by one
        self.more, self.each = np.einsum("nij,ni->nj", half, along) / size[:, None], 1 / size
        unit = along / np.sqrt(size)[:, None]
        half = half - unit[:, :, None] * np.einsum("ni,nij->nj", unit, half)[:, None, :]
        self.free = np.swapaxes(half, 1, 2) @ half  # at a fixed worth
        wide = (rows @ half.reshape(n * k, k).T).reshape(len(rows), n, k) * self.steep[:, :, None]
        wide = wide.reshape(len(rows), n * k)
        matrix = -(wide @ wide.T)
        cross = (self.steep * (rows @ self.more.T)) @ program.of
        matrix -= cross + cross.T
        every = np.arange(len(rows))
        matrix[every, every] += self.steep.sum(axis=1) + self.each @ program.of
        self.by_price = wide @ (half * weight[:, None, None]).reshape(n * k, k)
        self.by_price += program.of.T @ (weight[:, None] * self.more)
        self.of_price = np.linalg.inv(np.diag(1 / self.dear) + np.einsum("n,nij->ij", weight**2, self.free))
        matrix += self.by_price @ self.of_price @ self.by_price.T
        scale = 1 / np.sqrt(np.abs(np.diagonal(matrix)))
        self.root = _inverse_factor(matrix * scale[:, None] * scale) * scale

    def _roughly(self, bundle: Array, worth: Array, gain: Array) -> tuple[Array, Array, Array]:
        """Return what solves the equations with these right sides, but for what the elimination rounded."""
        program, weight = self.program, self.program.weight
        at_rest = np.einsum("nij,nj->ni", self.free, bundle) + self.more * gain[:, None]
        by_user = self.each * gain - (self.more * bundle).sum(axis=1)
        side = worth - by_user @ program.of + (self.steep * (program.rows @ at_rest.T)).sum(axis=1)
        sold = -(weight @ at_rest)
        worth = self.root.T @ (self.root @ (side + self.by_price @ (self.of_price @ sold)))
        price = self.of_price @ (self.by_price.T @ worth - sold)
        bundle = bundle + (self.steep * worth[:, None]).T @ program.rows - weight[:, None] * price
        bundle = np.where(program.able, bundle, 0.0)
        own = worth[program.direction] + gain
        held = np.einsum("nij,nj->ni", self.free, bundle) + self.more * own[:, None]
        return np.where(program.able, held, 0.0), worth, self.each * own - (self.more * bundle).sum(axis=1)

    def _applied(self, bundle: Array, worth: Array, gain: Array) -> Array:
        """Return the left sides of the equations, of bundles, worths and gains, in one row."""
        program, weight, part = self.program, self.program.weight, self.program.part
        envy = self.steep * (worth[:, None] - program.rows @ bundle.T)
        demand, price = self.tight * (part * bundle).sum(axis=1), self.dear * (weight @ bundle)
        paid = weight[:, None] * price + demand[:, None] * part + self.bound * bundle - envy.T @ program.rows
        left = np.where(program.able, paid - gain[:, None] * program.value, 0.0)
        own = (program.value * bundle).sum(axis=1) - worth[program.direction]
        return np.concatenate([left.ravel(), gain @ program.of + envy.sum(axis=1), own])

    def _solved(self, bundle: Array, worth: Array, gain: Array) -> tuple[Array, Array, Array]:
        """Return the solution of the equations: `_roughly` it, and what GMRES with that finds for the rest."""
        shapes = bundle.shape, worth.shape, gain.shape
        ends = np.cumsum([bundle.size, worth.size])
        found = self._roughly(bundle, worth, gain)
        rest = np.concatenate([bundle.ravel(), worth, gain]) - self._applied(*found)
        size, small = float(np.linalg.norm(rest)), LEFT * float(self.program.weight.mean())
        if not np.isfinite(size):
            raise np.linalg.LinAlgError("the equations of a step have no solution in floats")
        if size <= small:
            return found
        basis, tried, matrix = [rest / size], list[tuple[Array, Array, Array]](), np.zeros((KRYLOV + 1, KRYLOV))
        for j in range(KRYLOV):
            pieces = (each.reshape(shape) for each, shape in zip(np.split(basis[j], ends), shapes, strict=True))
            tried.append(self._roughly(*pieces))
            new = self._applied(*tried[j])
            for _ in range(2):  # twice, since once leaves rounding errors
                for i, other in enumerate(basis):
                    part = float(other @ new)
                    matrix[i, j] += part
                    new = new - part * other
            length = matrix[j + 1, j] = float(np.linalg.norm(new))
            side = np.zeros(j + 2)
            side[0] = size
            parts = np.linalg.lstsq(matrix[: j + 2, : j + 1], side, rcond=None)[0]
            if length == 0 or np.linalg.norm(matrix[: j + 2, : j + 1] @ parts - side) <= small:
                break
            basis.append(new / length)
        b, w, g = (sum(part * each for part, each in zip(parts, of, strict=True)) for of in zip(*tried, strict=True))
        return found[0] + b, found[1] + w, found[2] + g


def _inverse_factor(matrix: Array) -> Array:
    """Return the inverse of the Cholesky factor of a scaled matrix, with as much on its diagonal as that takes."""
    every, ridge = np.arange(len(matrix)), RIDGE
    while True:
        matrix[every, every] += ridge
        try:
            return np.asarray(np.linalg.inv(np.linalg.cholesky(matrix)))
        except np.linalg.LinAlgError:
            ridge *= GROWS
            if ridge > GIVE_UP:
                raise
