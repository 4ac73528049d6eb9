"""A step of the interior-point method for envy-free shares: its equations, with the bundles eliminated, and its length.

The equations are those of the least of a sum of squares: bundles x (n, k) that are worth what ``worth`` (c,) says to
their holders' directions, rows against envy that pull at both with ``steep`` (p,), amounts with ``firm`` (n, k),
demands with ``tight`` (n,), and capacities with ``dear`` (k,).

A bundle is told by its worth and by all amounts but that of one type, its *pivot*, which gives way most easily. A row
of an envious user who is nearly like the holder says almost the same as the worth, and what else it says is a small
difference: in these coordinates that difference stands alone, so that rounding does not drown it where rows are steep.

Source: null-space method; Nocedal and Wright, Numerical Optimization, 2006, Sec. 16.2. Saad and Schultz, GMRES, 1986.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fairopt.deadline import left
from fairopt.methods.envy_free.interior_program import EnvyPairs, InteriorProgram, Point
from fairopt.program import Array

#: A step goes at least this part of the way to where the first number would be 0; more the smaller the gap is.
SHORT = 0.9
#: The relative gap that is asked for.
NEAR = 1e-9
#: Most corrections of a step towards the central path, each aiming this much farther, at products within `EVEN` times
#: their aim.
CORRECTIONS, FARTHER, EVEN = 4, 0.3, 10.0
#: Below the gap `LOOSE`, multipliers are held less the smaller it is, down to `LEAST_HELD` times as much: rows against
#: envy fall short by what changes of multipliers cost.
LOOSE, LEAST_HELD = 3e-7, 1e-5
#: Products that add up to less than this part of the gap that is asked for are not aimed at: points would be too near
#: to the boundary for the next step.
LEAST = 0.1
#: What a step pays for each bundle and each multiplier against envy that it changes, times how hard it holds them.
HOLD_BUNDLE, HOLD_ENVY = 1e-8, 1e-6
#: What may be left of the equations of a step, as a part of a user's weight, and most steps of GMRES.
LEFT, KRYLOV = 1e-8, 8
#: Equations of which more than this part of the right sides is left have no solution in floats.
WRONG = 1e-6
#: Added to the diagonal of scaled matrices, and by what it grows where a factor does not exist, up to `GIVE_UP`.
RIDGE, GROWS, GIVE_UP = 1e-14, 100.0, 1e-2
#: A triangular matrix of at most so many rows is inverted in one piece.
PIECE = 96


class NewtonStep:
    """The equations of a step from ``point``, with the bundles eliminated.

    Their number of operations is n m^2 k where each user is envied by m others, and n^3 / 3. Errors: `LinAlgError`
    where floats have no solution.
    """

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
        self._set_coordinates()
        self._eliminate(*self._worths())

    def stepped(self, gap: float) -> Point:
        """Return the point after a predictor, a corrector, and corrections towards the central path.

        The smaller the ``gap``, the nearer it may go to where a number is 0.
        """
        point, program = self.point, self.program
        products, mean = point.products(), program.mean(point.products())
        ahead = self.step([-each for each in products])
        primal, dual = self.lengths(ahead)
        rest = program.mean(point.along(ahead, primal, dual).products())
        aim = max(min(1.0, max(rest / mean, 1e-8)) ** 3 * mean, min(LEAST * NEAR / program.count(products), mean))
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
        bundle, worth, gain = self.solved(
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

    # -- the equations -------------------------------------------------------------------------------------------------
    def _set_coordinates(self) -> None:
        """Set each bundle's pivot, and rows and demands in coordinates."""
        value, able, firm = self.program.value, self.program.able, self.firm
        self.users = np.arange(len(value))
        self.pivot = np.where(able, value * value / np.where(able, firm, 1.0), -1.0).argmax(axis=1)
        self.main = value[self.users, self.pivot]
        self.others = able.copy()
        self.others[self.users, self.pivot] = False
        self.ratio = np.where(self.others, value / self.main[:, None], 0.0)
        self.rows = self._told(self.pairs.rows, self.pairs.envied)
        self.part = self._told(self.program.part, self.users)
        self.one = -self.ratio  # what a unit of each coordinate adds to the amount of the pivot
        self.one[self.users, self.pivot] = 1 / self.main

    def _told(self, rows: Array, which: Array) -> Array:
        """Return rows of amounts, each of one of the users ``which``, as rows of coordinates."""
        at = np.arange(len(rows)), self.pivot[which]
        given = rows[at]
        rows = np.where(self.others[which], rows - given[:, None] * self.ratio[which], 0.0)
        rows[at] = given / self.main[which]
        return rows

    def _bundles(self, told: Array) -> Array:
        """Return the bundles (n, k) of these coordinates."""
        bundle = np.where(self.others, told, 0.0)
        bundle[self.users, self.pivot] = (self.one * told).sum(axis=1)
        return bundle

    def _worths(self) -> tuple[Array, Array, Array]:
        """Set the inverse factors of the blocks of bundles at given worths, and return what a worth changes.

        That is what a bundle becomes when it must be worth more by one (n, k), how hard that is (n,), and what it is
        worth to the envious (p,).
        """
        program, pairs = self.program, self.pairs
        n, k = self.others.shape
        diagonal = np.arange(k)
        self.steep_rows = self.steep[:, None] * self.rows
        self.at_pivot = self.rows[np.arange(len(self.rows)), self.pivot[pairs.envied]]
        self.against = [slice(*ends) for ends in pairwise(pairs.begins.tolist())]
        block = np.array([self.rows[each].T @ self.steep_rows[each] for each in self.against])
        block += (self.tight[:, None] * self.part)[:, :, None] * self.part[:, None, :]
        block += (self.firm[self.users, self.pivot][:, None] * self.one)[:, :, None] * self.one[:, None, :]
        by_worth = np.where(self.others, block[self.users, :, self.pivot], 0.0)
        block[:, diagonal, diagonal] += self.firm
        block = np.where(self.others[:, :, None] & self.others[:, None, :], block, 0.0)
        block[:, diagonal, diagonal] += ~self.others
        scale = 1 / np.sqrt(block[:, diagonal, diagonal])
        block = block * scale[:, :, None] * scale[:, None, :]
        block[:, diagonal, diagonal] += RIDGE
        self.apart = np.linalg.inv(np.linalg.cholesky(block)) * (scale * self.others)[:, None, :]
        more = -np.einsum("nij,ni->nj", self.apart, np.einsum("nij,nj->ni", self.apart, by_worth))
        more[self.users, self.pivot] = 1.0
        envied, more = np.einsum("pk,pk->p", self.rows, more[pairs.envied]), self._bundles(more)
        each = (self.firm * more**2).sum(axis=1) + self.tight * (program.part * more).sum(axis=1) ** 2
        each += np.bincount(pairs.envied, self.steep * envied**2, minlength=n)
        return more, each, envied

    def _eliminate(self, more: Array, each: Array, envied: Array) -> None:
        """Set what brings back worths from prices, and the inverse factor of the matrix of worths."""
        program, pairs, weight = self.program, self.pairs, self.program.weight
        n, k = self.others.shape
        c = len(program.first)
        half = self.apart.copy()
        half[self.users, :, self.pivot] = -np.einsum("nij,nj->ni", self.apart, self.ratio)
        matrix, self.by_price = np.zeros((c, c)), np.zeros((c, k))
        flat = matrix.reshape(-1)
        np.add.at(self.by_price, program.direction, weight[:, None] * more)
        for i, rows in enumerate(self.against):
            envious, wide = pairs.envious[rows], self.steep_rows[rows] @ self.apart[i].T
            flat[envious[:, None] * c + envious] -= wide @ wide.T  # faster than with two indices
            self.by_price[envious] += wide @ (half[i] * weight[i])
        place = pairs.envious * c + program.direction[pairs.envied]
        table = np.bincount(place, self.steep * envied, minlength=c * c).reshape(c, c)
        matrix -= table + table.T
        every = np.arange(c)
        matrix[every, every] += pairs.of_envious(self.steep) + program.together(each)
        half = (weight[:, None, None] * half).reshape(n * k, k)
        self.of_price = np.linalg.inv(np.diag(1 / self.dear) + half.T @ half)
        matrix += self.by_price @ self.of_price @ self.by_price.T
        scale = 1 / np.sqrt(np.abs(np.diagonal(matrix)))
        self.root = _inverse_factor(matrix * scale[:, None] * scale) * scale

    def _told_bundles(self, bundle: Array, worth: Array, own: Array) -> tuple[Array, Array, Array]:
        """Return the bundles of least sum at these worths, their duals, and what rows against envy pull with.

        ``bundle`` (n, k): the right sides; ``worth`` (c,) of the envious; ``own`` (n,): what bundles are to be worth.
        The bundles are in coordinates.
        """
        pairs, at = self.pairs, (self.users, self.pivot)
        given, mine = bundle[at], own[pairs.envied]
        # what is large is subtracted before it is multiplied by what is steep
        side = pairs.summed((worth[pairs.envious] - self.at_pivot * mine)[:, None] * self.steep_rows)
        side += bundle - given[:, None] * self.ratio
        side -= (self.firm[at] * own / self.main)[:, None] * self.one
        side -= (self.tight * self.part[at] * own)[:, None] * self.part
        told = np.einsum("nij,ni->nj", self.apart, np.einsum("nij,nj->ni", self.apart, side))
        told[at] = own
        pull = self.steep * (worth[pairs.envious] - np.einsum("pk,pk->p", self.rows, told[pairs.envied]))
        gain = (self.firm[at] * (self.one * told).sum(axis=1) - given) / self.main
        gain += self.tight * self.part[at] * (self.part * told).sum(axis=1)
        gain -= np.bincount(pairs.envied, pull * self.at_pivot, minlength=len(own))
        return told, gain, pull

    def _roughly(self, bundle: Array, worth: Array, gain: Array) -> tuple[Array, Array, Array]:
        """Return what solves the equations with these right sides, but for what the elimination rounded."""
        program, weight = self.program, self.program.weight
        told, rest, pull = self._told_bundles(bundle, np.zeros_like(worth), gain)
        side = worth - program.together(rest) - self.pairs.of_envious(pull)
        sold = -(weight @ self._bundles(told))
        worth = self.root.T @ (self.root @ (side + self.by_price @ (self.of_price @ sold)))
        price = self.of_price @ (self.by_price.T @ worth - sold)
        bundle = np.where(program.able, bundle - weight[:, None] * price, 0.0)
        told, gain, _ = self._told_bundles(bundle, worth, worth[program.direction] + gain)
        return self._bundles(told), worth, gain

    def _applied(self, bundle: Array, worth: Array, gain: Array) -> Array:
        """Return the left sides of the equations, of bundles, worths and gains, in one row."""
        program, pairs, weight, part = self.program, self.pairs, self.program.weight, self.program.part
        envy = self.steep * (worth[pairs.envious] - pairs.worth(bundle))
        demand, price = self.tight * (part * bundle).sum(axis=1), self.dear * (weight @ bundle)
        paid = weight[:, None] * price + demand[:, None] * part + self.firm * bundle - pairs.of_envied(envy)
        left = np.where(program.able, paid - gain[:, None] * program.value, 0.0)
        own = (program.value * bundle).sum(axis=1) - worth[program.direction]
        return np.concatenate([left.ravel(), program.together(gain) + pairs.of_envious(envy), own])

    def solved(self, bundle: Array, worth: Array, gain: Array) -> tuple[Array, Array, Array]:
        """Return the solution of the equations: `_roughly` it, and what GMRES with that finds for the rest."""
        shapes = bundle.shape, worth.shape, gain.shape
        ends = np.cumsum([bundle.size, worth.size])
        found = self._roughly(bundle, worth, gain)
        sides = np.concatenate([bundle.ravel(), worth, gain])
        rest, whole = sides - self._applied(*found), float(np.linalg.norm(sides))
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
            rest_norm = float(np.linalg.norm(matrix[: j + 2, : j + 1] @ parts - side))
            if length == 0 or rest_norm <= small:
                break
            basis.append(new / length)
        if not rest_norm <= WRONG * whole:
            raise np.linalg.LinAlgError("the equations of a step have no solution in floats")
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
    """Return the inverse of a lower triangular matrix, in halves: numpy's own does not use the zeros."""
    n = len(factor)
    if n <= PIECE:
        return np.asarray(np.linalg.inv(factor))
    first, second = _inverse_lower(factor[: n // 2, : n // 2]), _inverse_lower(factor[n // 2 :, n // 2 :])
    inverse = np.zeros_like(factor)
    inverse[: n // 2, : n // 2], inverse[n // 2 :, n // 2 :] = first, second
    inverse[n // 2 :, : n // 2] = -second @ (factor[n // 2 :, : n // 2] @ first)
    return inverse
