"""The program of the interior-point method for envy-free shares: its rows, its points, and what a point proves.

Units are those of `fairopt.methods.envy_free.restricted_lp.Users`. Users whose speedups are in proportion have the same
*direction*. Nobody envies its own direction, so their bundles are worth the same to all of them. The other rows against
envy say, for a direction and a user, that nobody of the direction envies the user.

Shapes: n users, k types, c directions, p rows against envy that are in the program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.methods.envy_free.problem import Users, optimum_of
from fairopt.program import INFINITY, ROUNDING, Array

#: Above this gap tight rows join the program, besides violated ones. Below it, the gap must keep halving.
CLOSE = 1e-2
#: How many rows of each user count as tight: so many in which it is envious, and so many in which it is envied.
TIGHTEST = 12
#: The first products of a number and its dual, as a part of a mean product of capacities and prices.
FIRST = 1e-3
#: The least slack at first, as a part of what the envious user's own bundle is worth.
SLACK = 1e-3
#: A proof in floats takes it for envy where a user prefers its own bundle by some roundings only. So rows against envy
#: are to hold with so many roundings for each term of a sum to spare, but at most with this part of what strictly
#: envy-free bundles would spare.
SPARE, ATTAINED = 20.0, 0.5
#: Where a step would violate at most so many rows that are not in the program, as a part of the users, bundles go this
#: part of the way to the first of them, and these rows join the program while they hold.
FEW, SHORT_OF = 0.1, 0.9


class Point(NamedTuple):
    """A point of the method, or a step: by how much each of its numbers changes.

    ``slack`` (p,) of rows against envy, ``bundle`` (n, k), ``spare`` (n,) of demands, ``over`` (k,) of capacities.
    Their duals in this order: ``envy``, ``reduced``, ``demand``, ``price``. At an optimum a number times its dual is 0.
    ``worth`` (c,): what the bundle of each user of a direction is worth to it. ``gain`` (n,): the dual of the row that
    says so for one user.
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
        """Return the point after this part of a step: ``primal`` of the numbers, ``dual`` of the duals."""
        parts = (primal,) * 4 + (dual,) * 4 + (primal, dual)
        return Point(*(each + part * by for each, by, part in zip(self, step, parts, strict=True)))

    def products(self) -> tuple[Array, ...]:
        """Return each number times its dual."""
        return tuple(each * dual for each, dual in zip(self[:4], self[4:8], strict=True))


class EnvyPairs:
    """The rows against envy, ordered by the user that is envied: ``envious`` (p,) directions, ``envied`` (p,) users.

    ``rows`` (p, k): the speedups of the envious. ``margin`` (p,): what a row is to spare, of those of all (c, n). Rows
    ``begins[i]`` to ``begins[i + 1]`` are about envy of user i.
    """

    def __init__(self, envious: Array, envied: Array, rows: Array, margin: Array) -> None:
        n = margin.shape[1]
        self.margin = margin[envious, envied]
        self.envious, self.envied, self.rows, self.directions = envious, envied, rows[envious], len(rows)
        self.begins = np.searchsorted(envied, np.arange(n + 1))
        self._some = np.flatnonzero(np.diff(self.begins))

    def of_envious(self, amount: Array) -> Array:
        """Return for each direction the sum (c,) of the amounts (p,) of rows in which it is envious."""
        return np.bincount(self.envious, amount, minlength=self.directions)

    def of_envied(self, amount: Array) -> Array:
        """Return for each user the sum (n, k), over rows in which it is envied, of amount times envious speedups."""
        return self.summed(amount[:, None] * self.rows)

    def summed(self, rows: Array) -> Array:
        """Return for each user the sum (n, k) of these rows (p, k), over those in which it is envied."""
        taken = np.zeros((len(self.begins) - 1, rows.shape[1]))
        if len(self._some):
            taken[self._some] = np.add.reduceat(rows, self.begins[self._some], axis=0)
        return taken

    def worth(self, bundle: Array) -> Array:
        """Return what the bundles (n, k) of the envied are worth to the envious (p,)."""
        return np.asarray(np.einsum("pk,pk->p", self.rows, bundle[self.envied]))


class InteriorProgram:
    """The numbers of the program: who may hold what, speedups by direction, demands, and the objective."""

    def __init__(self, users: Users, direction: Array) -> None:
        self.users, self.direction = users, direction
        self.first = np.unique(direction, return_index=True)[1]
        self.value, self.weight = users.value, users.weight
        self.able = users.value > 0
        self.rows = users.value[self.first]
        self.alike = self.together(np.ones(len(direction)))
        self.limited = users.limit < INFINITY
        part = users.size / np.where(self.limited, users.limit, 1.0)[:, None]
        self.part = np.where(self.limited[:, None] & self.able, part, 0.0)
        self.counts = self.together(users.gain)
        #: which numbers of the four kinds the program has: a bundle only of types that run, a spare only of demands
        self.present = (np.array(True), self.able, self.limited, np.array(True))

    def together(self, amount: Array) -> Array:
        """Return the sum (c,) of amounts (n,) for each direction."""
        return np.bincount(self.direction, amount, minlength=len(self.first))

    def count(self, products: tuple[Array, ...]) -> int:
        """Return how many of the products are of numbers that the program has."""
        return sum(int(each[which].size) for each, which in zip(products, self.present, strict=True))

    def total(self, products: tuple[Array, ...]) -> float:
        """Return the sum of the products of numbers that the program has."""
        return float(sum(each[which].sum() for each, which in zip(products, self.present, strict=True)))

    def mean(self, products: tuple[Array, ...]) -> float:
        """Return the mean of the products of numbers that the program has."""
        return self.total(products) / self.count(products)

    def start(self) -> tuple[Point, EnvyPairs]:
        """Return a first point: each bundle is worth most to its holder's direction, and products are about equal."""
        value, weight, k = self.value, self.weight, self.value.shape[1]
        bundle = value / np.sqrt((value * value).sum(axis=1, keepdims=True))
        bundle = bundle / (1.25 * (weight @ bundle).max())
        worth = (self.rows * bundle[self.first]).sum(axis=1)
        bundle = bundle * (worth[self.direction] / (value * bundle).sum(axis=1))[:, None]
        #: the slacks of these first bundles, in which nobody envies another
        self.strict = self._slacks(bundle)
        envious, envied = self._tightest(self.strict, worth)
        rounded = (2 * k + 20) * ROUNDING * worth[:, None]
        self.margin = np.minimum(SPARE * rounded, ATTAINED * np.maximum(self.strict, 0.0))
        pairs = EnvyPairs(envious, envied, self.rows, self.margin)
        slack = np.maximum(self.strict[envious, envied], SLACK * worth[envious])
        spare = np.where(self.limited, np.maximum(1 - (self.part * bundle).sum(axis=1), 0.2), 1.0)
        over = 1 - weight @ bundle
        aim = FIRST * over.mean() / k
        envy = aim / slack
        reduced = np.where(self.able, aim / np.where(self.able, bundle, 1.0), 1.0)
        bundle = np.where(self.able, bundle, 1.0)  # where a user cannot run: 1, as is its dual, and used nowhere
        demand = np.where(self.limited, aim / spare, 0.0)
        price = np.maximum(1 / k, aim / over)
        gain = ((self.counts + pairs.of_envious(envy)) / self.alike)[self.direction]
        return Point(slack, bundle, spare, over, envy, reduced, demand, price, worth, gain), pairs

    def slacks(self, point: Point) -> Array:
        """Return the slack (c, n) of every row against envy beyond its margin, in the program or not.

        It is infinite for the own direction.
        """
        beyond: Array = self._slacks(self.held(point)) - self.margin
        return beyond

    def _slacks(self, bundle: Array) -> Array:
        worth = (self.rows * bundle[self.first]).sum(axis=1)
        slacks: Array = worth[:, None] - self.rows @ bundle.T
        slacks[self.direction, np.arange(len(self.direction))] = INFINITY
        return slacks

    def _tightest(self, slacks: Array, worth: Array) -> tuple[Array, Array]:
        """Return the tightest rows of each direction as envious and of each user as envied, ordered by the envied."""
        tight = np.zeros(slacks.shape[::-1], dtype=bool)
        relative = slacks.T / worth
        for axis in (0, 1):
            count = min(TIGHTEST, relative.shape[axis]) - 1
            nearest = np.argpartition(relative, count, axis=axis).take(np.arange(count + 1), axis=axis)
            np.put_along_axis(tight, nearest, True, axis=axis)
        envied, envious = np.nonzero(tight & (relative < INFINITY))
        return envious, envied

    def held_back(self, old: Point, new: Point, pairs: EnvyPairs, slacks: Array) -> tuple[Point, Array, Array]:
        """Return the ``new`` point, its slacks (c, n), and which rows (c, n) are to join the program.

        Those are violated, or would be, had not the bundles been held back on the way from the ``old`` point, whose
        ``slacks`` (c, n) are given.
        """
        after = self.slacks(new)
        joins, held = after < 0, slacks > 0
        held[pairs.envious, pairs.envied] = False
        ends = joins & held
        if not 0 < np.count_nonzero(ends) <= FEW * len(self.value):
            return new, after, joins
        part = SHORT_OF * float((slacks[ends] / (slacks[ends] - after[ends])).min())
        names = ("slack", "bundle", "spare", "over", "worth")
        new = new._replace(**{each: (1 - part) * getattr(old, each) + part * getattr(new, each) for each in names})
        after = self.slacks(new)
        return new, after, ends | (after < 0)

    def joined(
        self, point: Point, pairs: EnvyPairs, slacks: Array, joins: Array, best: float
    ) -> tuple[Point, EnvyPairs]:
        """Return the point and the pairs with rows ``joins`` (c, n) added, and tight ones too if ``best`` > `CLOSE`.

        Of very many such rows, the tightest are added: the next step ends most of the others.
        """
        many = np.count_nonzero(joins) > TIGHTEST * len(self.value)
        new = np.zeros_like(joins) if many else joins.copy()
        if many or best > CLOSE:
            new[self._tightest(slacks, point.worth)] = True
        new[pairs.envious, pairs.envied] = False
        envied, envious = np.nonzero(new.T)
        if not len(envied):
            return point, pairs
        mean = self.mean(point.products())
        large = point.envy[point.envy >= np.quantile(point.envy, 0.9)]
        slack = np.maximum(np.abs(slacks[envious, envied]), mean / np.median(large))
        envious, envied = (np.concatenate(each) for each in ((pairs.envious, envious), (pairs.envied, envied)))
        order = np.lexsort((envious, envied))
        point = point._replace(
            slack=np.concatenate([point.slack, slack])[order], envy=np.concatenate([point.envy, mean / slack])[order]
        )
        return point, EnvyPairs(envious[order], envied[order], self.rows, self.margin)

    def held(self, point: Point) -> Array:
        """Return the bundles (n, k), 0 where a user cannot run."""
        return np.where(self.able, point.bundle, 0.0)

    def proved(self, point: Point, pairs: EnvyPairs, slacks: Array, steps: int) -> Solution:
        """Return the point after some ``steps``, and the gap that it proves, but for rounding, in its effort.

        The "gap" is the part between its total and a bound by its duals. Where users envy, mixing in a part of the
        first bundles would end that; that part is added to it. It is "loose" where envy counts by what it is worth, and
        not by what it takes to remove it. The dual "worth" (n,) says what a unit of value counts for each user, after
        users of one direction have shared it out; those against envy are between directions and users.
        """
        bundle, weight, limited = self.held(point), self.weight, self.limited
        # the gains of a direction's users must add up to exactly what its rows say; what is short is spread evenly
        short = (self.counts + pairs.of_envious(point.envy) - self.together(point.gain)) / self.alike
        gain = point.gain + short[self.direction]
        pays = (self.value * gain[:, None] - pairs.of_envied(point.envy)) / weight[:, None]
        dearest = (pays - (point.demand / weight)[:, None] * self.part).max(axis=0)
        bound = float(np.maximum(dearest, 0.0).sum() + point.demand.sum())
        # a second bound: prices that suffice for users without demands, and larger demand duals for the others
        price = np.maximum(point.price, pays[~limited].max(axis=0, initial=0.0))
        raised = np.where(self.part > 0, (pays - price) / np.where(self.part > 0, self.part, 1.0), 0.0).max(axis=1)
        bound = min(bound, float(price.sum() + (weight * np.maximum(raised, 0.0))[limited].sum()))
        fits = max(1.0, float((weight @ bundle).max()), float((self.part * bundle).sum(axis=1).max()))
        worth = (self.value * bundle).sum(axis=1)
        slacks = slacks + self.margin
        envied = slacks < 0
        mixed = float((-slacks[envied] / (self.strict[envied] - slacks[envied])).max(initial=0.0))
        apart = (bound - float(self.users.gain @ worth) / fits) / bound
        loose = apart + float((-slacks / worth[self.first][:, None]).max(initial=0.0))
        gap, loose = (each if np.isfinite(each) else INFINITY for each in (apart + mixed, loose))
        against, effort = (pairs.envious, pairs.envied, point.envy), {"gap": gap, "loose": loose, "steps": float(steps)}
        found = optimum_of(bundle, np.arange(len(bundle)), point.price, point.demand, against, effort=effort)
        return replace(found, duals={**found.duals, "worth": gain})
