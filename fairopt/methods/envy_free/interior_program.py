"""The program of the interior-point method for envy-free shares: its rows, its points, and what a point proves.

Units are those of `fairopt.methods.envy_free.restricted_lp.Users`. Users whose speedups are in proportion share one
*direction*: they must value their bundles alike, and rows against envy stand between directions and users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairopt.methods.envy_free.restricted_lp import Users
from fairopt.program import INFINITY, Array

#: Down to this gap tight rows are added too, and the gap must go on halving.
CLOSE = 1e-2
#: So many of the tightest rows of each user, as envious and as envied.
TIGHTEST = 12
#: The first products, as a part of what balances the capacities; the least slack at first, as a part of a user's own.
FIRST, SLACK = 1e-3, 1e-3


class Point(NamedTuple):
    """Numbers, or by how much they change. Each of the first four times its dual below is a product that falls to 0.

    ``slack`` (p,) of rows against envy, ``bundle`` (n, k), ``spare`` (n,) of demands, ``over`` (k,) of capacities;
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


class EnvyPairs:
    """Rows against envy, by the user that is envied: ``envious`` (p,) directions, ``envied`` (p,) users.

    ``rows`` (p, k): the speedups of the envious; those against user i are ``begins[i]`` to ``begins[i + 1]``.
    """

    def __init__(self, envious: Array, envied: Array, rows: Array, n: int) -> None:
        self.envious, self.envied, self.rows, self.directions = envious, envied, rows[envious], len(rows)
        self.begins = np.searchsorted(envied, np.arange(n + 1))
        self._some = np.flatnonzero(np.diff(self.begins))

    def of_envious(self, amount: Array) -> Array:
        """Return the sum (c,) of amounts (p,) for each envious direction."""
        return np.bincount(self.envious, amount, minlength=self.directions)

    def of_envied(self, amount: Array) -> Array:
        """Return the sum (n, k) of amounts (p,) of the envious users' speedups for each user that is envied."""
        taken = np.zeros((len(self.begins) - 1, self.rows.shape[1]))
        if len(self._some):
            taken[self._some] = np.add.reduceat(amount[:, None] * self.rows, self.begins[self._some], axis=0)
        return taken

    def worth(self, bundle: Array) -> Array:
        """Return what the bundles (n, k) of the envied are worth to the envious (p,)."""
        return np.asarray(np.einsum("pk,pk->p", self.rows, bundle[self.envied]))


@dataclass(frozen=True, eq=False)
class Interior:
    """A point after some ``steps``: ``bundle`` (n, k), ``prices`` (k,), ``demand_duals`` (n,), ``envy`` of ``pairs``.

    ``gain`` (n,): what a unit of value counts for each user, with what its direction's users give each other.
    """

    bundle: Array
    prices: Array
    demand_duals: Array
    pairs: EnvyPairs
    envy: Array
    gain: Array
    gap: float
    steps: int


class InteriorProgram:
    """The program's numbers: who may hold what, the rows, and what counts."""

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
        #: which numbers of the four kinds are there: all slacks of the pairs
        self.there = (np.array(True), self.able, self.limited, np.array(True))

    def together(self, amount: Array) -> Array:
        """Return the sum (c,) of amounts (n,) for each direction."""
        return np.bincount(self.direction, amount, minlength=len(self.first))

    def mean(self, products: tuple[Array, ...]) -> float:
        """Return the mean of those products that are there."""
        there = [each[which] for each, which in zip(products, self.there, strict=True)]
        return float(sum(each.sum() for each in there) / sum(each.size for each in there))

    def start(self) -> tuple[Point, EnvyPairs]:
        """Return a first point: bundles that only their holders would choose, and products that are all alike."""
        value, weight, k = self.value, self.weight, self.value.shape[1]
        bundle = value / np.sqrt((value * value).sum(axis=1, keepdims=True))
        bundle = bundle / (1.25 * (weight @ bundle).max())
        worth = (self.rows * bundle[self.first]).sum(axis=1)
        bundle = bundle * (worth[self.direction] / (value * bundle).sum(axis=1))[:, None]
        #: of these bundles; nobody envies its own direction: their bundles are worth the same
        self.strict = self._slacks(bundle)
        envious, envied = self._tightest(self.strict, worth)
        pairs = EnvyPairs(envious, envied, self.rows, len(value))
        slack = np.maximum(self.strict[envious, envied], SLACK * worth[envious])
        spare = np.where(self.limited, np.maximum(1 - (self.part * bundle).sum(axis=1), 0.2), 1.0)
        over = 1 - weight @ bundle
        aim = FIRST * over.mean() / k
        envy = aim / slack
        reduced = np.where(self.able, aim / np.where(self.able, bundle, 1.0), 1.0)
        bundle = np.where(self.able, bundle, 1.0)  # times a dual of 1 that never changes: left out of everything
        demand = np.where(self.limited, aim / spare, 0.0)
        price = np.maximum(1 / k, aim / over)
        gain = ((self.counts + pairs.of_envious(envy)) / self.alike)[self.direction]
        return Point(slack, bundle, spare, over, envy, reduced, demand, price, worth, gain), pairs

    def slacks(self, point: Point) -> Array:
        """Return the slack (c, n) that the bundles leave in every row against envy."""
        return self._slacks(self.held(point))

    def _slacks(self, bundle: Array) -> Array:
        worth = (self.rows * bundle[self.first]).sum(axis=1)
        slacks: Array = worth[:, None] - self.rows @ bundle.T
        slacks[self.direction, np.arange(len(self.direction))] = INFINITY
        return slacks

    def _tightest(self, slacks: Array, worth: Array) -> tuple[Array, Array]:
        """Return the tightest rows of each user, as envious and as envied, by the envied."""
        tight = np.zeros(slacks.shape[::-1], dtype=bool)
        relative = slacks.T / worth
        for axis in (0, 1):
            count = min(TIGHTEST, relative.shape[axis]) - 1
            nearest = np.argpartition(relative, count, axis=axis).take(np.arange(count + 1), axis=axis)
            np.put_along_axis(tight, nearest, True, axis=axis)
        envied, envious = np.nonzero(tight & (relative < INFINITY))
        return envious, envied

    def joined(self, point: Point, pairs: EnvyPairs, slacks: Array, best: float) -> tuple[Point, EnvyPairs]:
        """Return the point and the pairs with rows that are violated or, until a gap of `CLOSE`, tight."""
        new = slacks < 0
        if best > CLOSE:
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
        return point, EnvyPairs(envious[order], envied[order], self.rows, len(self.value))

    def held(self, point: Point) -> Array:
        """Return the bundles, nothing where a user does not run."""
        return np.where(self.able, point.bundle, 0.0)

    def seen(self, point: Point, pairs: EnvyPairs, slacks: Array, steps: int) -> Interior:
        """Return what the point proves, but for rounding: the gap of its total and the bound by its multipliers.

        Envy is mixed away with the first bundles, whose part is added to the gap.
        """
        bundle, weight, limited = self.held(point), self.weight, self.limited
        # what each direction's users count adds up to what its rows say, to the last digit
        short = (self.counts + pairs.of_envious(point.envy) - self.together(point.gain)) / self.alike
        gain = point.gain + short[self.direction]
        pays = (self.value * gain[:, None] - pairs.of_envied(point.envy)) / weight[:, None]
        dearest = (pays - (point.demand / weight)[:, None] * self.part).max(axis=0)
        bound = float(np.maximum(dearest, 0.0).sum() + point.demand.sum())
        # or demand duals are raised, where there are any
        price = np.maximum(point.price, pays[~limited].max(axis=0, initial=0.0))
        raised = np.where(self.part > 0, (pays - price) / np.where(self.part > 0, self.part, 1.0), 0.0).max(axis=1)
        bound = min(bound, float(price.sum() + (weight * np.maximum(raised, 0.0))[limited].sum()))
        fits = max(1.0, float((weight @ bundle).max()), float((self.part * bundle).sum(axis=1).max()))
        worth = (self.value * bundle).sum(axis=1)
        envied = slacks < 0
        mixed = (-slacks[envied] / (self.strict[envied] - slacks[envied])).max(initial=0.0)
        gap = (bound - float(self.users.gain @ worth) / fits) / bound + float(mixed)
        gap = gap if np.isfinite(gap) else INFINITY
        return Interior(bundle, point.price, point.demand, pairs, point.envy, gain, gap, steps)
