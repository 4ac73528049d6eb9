"""Envy-free shares by an interior-point method that keeps the tightest rows against envy: for many users with demands.

Where demands bind, every user holds a bundle of its own, and many rows matter. Of the n^2 rows, those stand in the
program that were among the tightest of their two users, or violated, after some step; far from the end each user meets
some tens of others. Given what each bundle is worth to its holder, the bundles depend on each other by the capacities
only. So a Newton step eliminates the bundles, k unknowns each, and leaves one equation for each user: n m^2 k
operations where each user is envied by m others, and n^3 / 3 to factor. What is left of the equations, since the
elimination cancels near the end, is removed by a few steps of GMRES.

Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992; Gondzio, Multiple centrality
corrections in a primal-dual method for linear programming, 1996; Saad and Schultz, GMRES, 1986.
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter

import numpy as np

from fairopt.deadline import left, remaining
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.interior_program import CLOSE, EnvyPairs, Interior, InteriorProgram, Point
from fairopt.methods.envy_free.restricted_lp import Users
from fairopt.program import INFINITY, Array

#: A step goes at least this part of the way to where the first number would be 0; more the smaller the gap is.
SHORT = 0.9
#: A first step is taken to last at least so many seconds, times users to the third power, times types.
EACH = 1e-10
#: Most steps; most without the gap halving once it is below `CLOSE`, and once it is below `SMALL`.
MOST_STEPS, STALLED, ENDING, SMALL = 250, 12, 5, 3e-8
#: The relative gap that is asked for.
NEAR = 1e-9
#: Most corrections of a step towards the central path, each aiming this much farther, at products within `EVEN` times
#: their aim.
CORRECTIONS, FARTHER, EVEN = 4, 0.3, 10.0
#: What may be left of the equations of a step, as a part of a user's weight, and most steps of GMRES.
LEFT, KRYLOV = 1e-9, 8
#: Added to the diagonal of scaled matrices, and by what it grows where a factor does not exist, up to `GIVE_UP`.
RIDGE, GROWS, GIVE_UP = 1e-14, 100.0, 1e-2
#: A triangular matrix of at most so many rows is inverted in one piece.
PIECE = 96


def interior(users: Users, direction: Array) -> Interior:
    """Return a point near the optimum; ``direction`` (n,) numbers the users' directions from 0.

    Where time is over, it is the best by then.
    """
    program = InteriorProgram(users, direction)
    point, pairs = program.start()
    best, since = program.proved(point, pairs, program.slacks(point), 0), 0
    step = EACH * len(direction) ** 3 * len(users.size)
    with np.errstate(all="ignore"):
        for steps in range(1, MOST_STEPS + 1):
            begun = perf_counter()
            if remaining() < 2 * step:  # what is long in it cannot be interrupted, and its proof takes time as well
                break
            try:
                point = _Newton(program, pairs, point).stepped(best.gap)
            except (np.linalg.LinAlgError, OutOfTime):
                break
            slacks = program.slacks(point)
            found, since = program.proved(point, pairs, slacks, steps), since + 1
            step = max(step, perf_counter() - begun)
            if found.gap < 0.5 * best.gap:
                best, since = found, 0
            if found.gap == INFINITY or best.gap <= NEAR or _stalled(best.gap, since):
                break
            point, pairs = program.joined(point, pairs, slacks, best.gap)
    return best


def _stalled(gap: float, since: int) -> bool:
    """Return whether the gap is small and has not halved in many steps; the last ones only gather rounding errors."""
    return gap < CLOSE and since > (ENDING if gap < SMALL else STALLED)


class _Newton:
    """The equations of a step from ``point``, with the bundles eliminated."""

    def __init__(self, program: InteriorProgram, pairs: EnvyPairs, point: Point) -> None:
        self.program, self.pairs, self.point = program, pairs, point
        able, limited = program.able, program.limited
        bundle, part = program.held(point), program.part
        self.steep = point.envy / point.slack
        self.bound = np.where(able, point.reduced / point.bundle, 0.0)
        self.tight = np.where(limited, point.demand / point.spare, 0.0)
        self.dear = point.price / point.over
        # what the rows lack
        self.short_slack = point.worth[pairs.envious] - pairs.worth(bundle) - point.slack
        self.short_spare = np.where(limited, 1 - (part * bundle).sum(axis=1) - point.spare, 0.0)
        self.short_over = 1 - program.weight @ bundle - point.over
        paid = program.weight[:, None] * point.price + point.demand[:, None] * part + pairs.of_envied(point.envy)
        lack = point.gain[:, None] * program.value + np.where(able, point.reduced, 0.0) - paid
        self.lack_bundle = np.where(able, lack, 0.0)
        self.lack_worth = program.counts + pairs.of_envious(point.envy) - program.together(point.gain)
        self.lack_gain = point.worth[program.direction] - (program.value * bundle).sum(axis=1)
        self._eliminate()

    def stepped(self, gap: float) -> Point:
        """Return the point after a predictor, a corrector, and corrections towards the central path.

        The smaller the ``gap``, the nearer it may go to where a number is 0.
        """
        point, program = self.point, self.program
        products, mean = point.products(), program.mean(point.products())
        ahead = self.step([-each for each in products])
        primal, dual = self.lengths(ahead)
        left = program.mean(point.along(ahead, primal, dual).products())
        aim = min(1.0, max(left / mean, 1e-8)) ** 3 * mean
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
                point[:4],
                program.present,
                strict=True,
            )
        ]
        against, bounds, demand, price = change
        for_bundle = self.lack_bundle + bounds - demand[:, None] * part - weight[:, None] * price
        bundle, worth, gain = self._solved(
            np.where(program.able, for_bundle - pairs.of_envied(against), 0.0),
            self.lack_worth + pairs.of_envious(against),
            self.lack_gain,
        )
        slack = worth[pairs.envious] - pairs.worth(bundle)
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
        program, pairs, weight, value = self.program, self.pairs, self.program.weight, self.program.value
        k = value.shape[1]
        c, diagonal, able = len(program.first), np.arange(k), program.able
        steep_rows = self.steep[:, None] * pairs.rows
        against = [slice(*ends) for ends in pairwise(pairs.begins.tolist())]
        block = np.array([pairs.rows[each].T @ steep_rows[each] for each in against])
        block += (self.tight[:, None] * program.part)[:, :, None] * program.part[:, None, :]
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
        matrix, self.by_price = np.zeros((c, c)), np.zeros((c, k))
        flat = matrix.reshape(-1)
        np.add.at(self.by_price, program.direction, weight[:, None] * self.more)
        for i, each in enumerate(against):
            envious, wide = pairs.envious[each], steep_rows[each] @ half[i].T
            flat[envious[:, None] * c + envious] -= wide @ wide.T  # faster than with two indices
            self.by_price[envious] += wide @ (half[i] * weight[i])
        cross = self.steep * pairs.worth(self.more)
        place = pairs.envious * c + program.direction[pairs.envied]
        table = np.bincount(place, cross, minlength=c * c).reshape(c, c)
        matrix -= table + table.T
        every = np.arange(c)
        matrix[every, every] += pairs.of_envious(self.steep) + program.together(self.each)
        self.of_price = np.linalg.inv(np.diag(1 / self.dear) + np.einsum("n,nij->ij", weight**2, self.free))
        matrix += self.by_price @ self.of_price @ self.by_price.T
        scale = 1 / np.sqrt(np.abs(np.diagonal(matrix)))
        self.root = _inverse_factor(matrix * scale[:, None] * scale) * scale

    def _roughly(self, bundle: Array, worth: Array, gain: Array) -> tuple[Array, Array, Array]:
        """Return what solves the equations with these right sides, but for what the elimination rounded."""
        program, pairs, weight = self.program, self.pairs, self.program.weight
        at_rest = np.einsum("nij,nj->ni", self.free, bundle) + self.more * gain[:, None]
        by_user = self.each * gain - (self.more * bundle).sum(axis=1)
        side = worth - program.together(by_user) + pairs.of_envious(self.steep * pairs.worth(at_rest))
        sold = -(weight @ at_rest)
        worth = self.root.T @ (self.root @ (side + self.by_price @ (self.of_price @ sold)))
        price = self.of_price @ (self.by_price.T @ worth - sold)
        bundle = bundle + pairs.of_envied(self.steep * worth[pairs.envious]) - weight[:, None] * price
        bundle = np.where(program.able, bundle, 0.0)
        own = worth[program.direction] + gain
        held = np.einsum("nij,nj->ni", self.free, bundle) + self.more * own[:, None]
        return np.where(program.able, held, 0.0), worth, self.each * own - (self.more * bundle).sum(axis=1)

    def _applied(self, bundle: Array, worth: Array, gain: Array) -> Array:
        """Return the left sides of the equations, of bundles, worths and gains, in one row."""
        program, pairs, weight, part = self.program, self.pairs, self.program.weight, self.program.part
        envy = self.steep * (worth[pairs.envious] - pairs.worth(bundle))
        demand, price = self.tight * (part * bundle).sum(axis=1), self.dear * (weight @ bundle)
        paid = weight[:, None] * price + demand[:, None] * part + self.bound * bundle - pairs.of_envied(envy)
        left = np.where(program.able, paid - gain[:, None] * program.value, 0.0)
        own = (program.value * bundle).sum(axis=1) - worth[program.direction]
        return np.concatenate([left.ravel(), program.together(gain) + pairs.of_envious(envy), own])

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
            return _inverse_lower(np.linalg.cholesky(matrix))
        except np.linalg.LinAlgError:
            ridge *= GROWS
            if ridge > GIVE_UP:
                raise


def _inverse_lower(factor: Array) -> Array:
    """Return the inverse of a lower triangular matrix, in halves: numpy's own takes no heed of the zeros."""
    n = len(factor)
    if n <= PIECE:
        return np.asarray(np.linalg.inv(factor))
    first, second = _inverse_lower(factor[: n // 2, : n // 2]), _inverse_lower(factor[n // 2 :, n // 2 :])
    inverse = np.zeros_like(factor)
    inverse[: n // 2, : n // 2], inverse[n // 2 :, n // 2 :] = first, second
    inverse[n // 2 :, : n // 2] = -second @ (factor[n // 2 :, : n // 2] @ first)
    return inverse
