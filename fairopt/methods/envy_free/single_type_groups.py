"""Whether a single-type group may stay one: multipliers against envy among its members, or who should leave it.

The members of the group of type j share one bundle of type j. They could hold bundles of their own, and whether that
helps is a question of duality. The bundle is right for all if there are multipliers y_li >= 0 of "l does not envy i"
among members, and a division of the multipliers of outsiders against the bundle over the members that hold it, such
that for every member i and type t

    gain_i v_it + v_it (its multipliers) - sum over l of y_li v_lt <= weight_i price_t.

That is a linear program with a non-negative excess for each (i, t), of which the sum is minimised. Where it is zero the
multipliers complete those of the restricted program; else the duals say which members would gain from which types.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.restricted_lp import RestrictedOptimum, Users
from fairopt.methods.incremental_lp import PRIMAL, TOLERANCE, IncrementalLP, Sparse, places, rowwise
from fairopt.program import INFINITY, Array

#: Each member's multipliers may go to so many others, and come from so many, before any are priced.
NEAR = 5
#: Up to so many pairs, all are there from the start.
FEW = 400
#: Reduced costs and duals below this count as zero.
ZERO = 1e-9
#: Where rows are divided by prices, no price is less than this part of the largest: a type may be free at first.
CHEAP = 1e-3
#: Most multipliers added in a round, for each member.
ADDED = 3


@dataclass(frozen=True, eq=False)
class GroupMultipliers:
    """Multipliers (envious user, envied user, value) within a group, and who should leave it.

    ``leaving`` are the members that should leave, ``takes`` (q, k) the types that each of them would gain from.
    """

    envious: Array
    envied: Array
    value: Array
    leaving: Array
    takes: Array


def high_price(found: RestrictedOptimum) -> float:
    """Return the largest price, but at least the one that all types have where all are as dear: all may be free."""
    return max(float(found.prices.max()), 1 / len(found.prices))


def group_multipliers(
    users: Users, single_type: Array, j: int, found: RestrictedOptimum, given: Array, near: tuple[Array, Array]
) -> GroupMultipliers:
    """Return the multipliers within the group of type ``j``; ``given`` (n,) are each user's own in ``found``.

    ``near``: pairs of users that carried multipliers in a program like this one; empty where none are known.
    """
    members = np.flatnonzero(single_type == j)
    from_outside = (found.envied == j) & (found.envy > 0)
    outside, amount = found.envious[from_outside], found.envy[from_outside]
    prices = np.maximum(found.prices, high_price(found) * CHEAP)
    scale = users.weight[members][:, None] * prices
    value = users.value[members]
    room = users.weight[members][:, None] * found.prices - value * (users.gain[members] + given[members])[:, None]
    unit = np.concatenate([scale.max(axis=1), amount])
    program = _GroupLP(np.concatenate([value, users.value[outside]]), unit, scale, room / scale)
    everyone = np.concatenate([members, outside])
    known = _known(everyone, len(members), near) if len(near[0]) else _near(program.speed, len(members), prices, j)
    program.add(*known)
    multipliers, excess, gains = program.solve()
    giver, taker = program.pairs
    positive = multipliers > 0
    takes = gains > ZERO
    takes[:, j] = False
    leaving = np.flatnonzero(takes.any(axis=1)) if excess.max() > ZERO else np.zeros(0, dtype=np.int64)
    return GroupMultipliers(
        everyone[giver[positive]],
        members[taker[positive]],
        (multipliers * unit[giver])[positive],
        members[leaving],
        takes[leaving],
    )


class _GroupLP:
    """The linear program of one group. Givers are the members, then the outsiders; takers are the members.

    A giver's multipliers count in its ``unit``: an outsider's add up to 1. Rows (i, t) are divided by ``scale``.
    """

    def __init__(self, speed: Array, unit: Array, scale: Array, room: Array) -> None:
        self.speed, self.unit, self.scale = speed, unit, scale
        self.q, self.k = scale.shape
        cells, outsiders = self.q * self.k, len(speed) - self.q
        # an excess for each (i, t); the rows that add up an outsider's multipliers are empty as yet
        start = np.minimum(np.arange(cells + outsiders), cells).astype(np.int32)
        rows = Sparse(start, np.arange(cells, dtype=np.int32), -np.ones(cells))
        lower = np.concatenate([np.full(cells, -INFINITY), np.ones(outsiders)])
        upper = np.concatenate([room.ravel(), np.ones(outsiders)])
        program = rowwise("the multipliers of a single-type group", -np.ones(cells), lower, upper, rows)
        self._program = IncrementalLP(program, strategy=PRIMAL, tolerance=TOLERANCE)
        self._known = np.eye(len(speed), self.q, dtype=bool)  # nobody envies itself
        self.pairs = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def add(self, giver: Array, taker: Array) -> bool:
        """Add the multipliers of these pairs that are not there; return whether there were any."""
        new = ~self._known[giver, taker]
        self._known[giver, taker] = True
        giver, taker = giver[new], taker[new]
        inside = giver < self.q
        amount = self.speed[giver] * self.unit[giver][:, None]
        cells = np.arange(self.k)
        own = np.where(inside, giver, 0)
        of_member = np.where(inside[:, None], own[:, None] * self.k + cells, -1)
        of_outsider = np.where(inside, -1, self.q * self.k + giver - self.q)[:, None]
        place = np.concatenate([of_member, taker[:, None] * self.k + cells, of_outsider], axis=1)
        one = np.ones((len(giver), 1))
        value = np.concatenate([amount / self.scale[own], -amount / self.scale[taker], one], axis=1)
        self._program.add_columns(np.zeros(len(giver)), Sparse.of(place, value))
        self.pairs = (np.concatenate([self.pairs[0], giver]), np.concatenate([self.pairs[1], taker]))
        return bool(len(giver))

    def solve(self) -> tuple[Array, Array, Array]:
        """Return the multipliers of all pairs, the excess (q, k), and what members would gain from types (q, k)."""
        cells = self.q * self.k
        while True:
            found = self._program.solve()
            x, dual = np.maximum(found.x, 0.0), found.dual
            gains = np.maximum(dual[:cells].reshape(self.q, self.k), 0.0)
            # a multiplier helps where its giver would rather have what the taker would get
            worth = (self.speed * self.unit[:, None]) @ (gains / self.scale).T
            own = np.concatenate([np.diagonal(worth), dual[cells:]])
            helps = np.where(self._known, 0.0, worth - own[:, None])
            best = np.argsort(-helps, axis=1, kind="stable")[:, :ADDED]
            giver, place = np.nonzero(np.take_along_axis(helps, best, axis=1) > ZERO)
            if not self.add(giver, best[giver, place]):
                return x[cells:], x[:cells].reshape(self.q, self.k), gains


def _known(everyone: Array, q: int, near: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pairs of ``near`` as places in ``everyone``, of whom the first q are takers.

    Every outsider has a pair: one that has none in ``near`` gets one, as its multipliers must go somewhere.
    """
    place = places(int(max(everyone.max(), near[0].max(), near[1].max())) + 1, everyone)
    giver, taker = place[near[0]], place[near[1]]
    there = (giver >= 0) & (taker >= 0) & (taker < q)
    giver, taker = giver[there], taker[there]
    left = np.setdiff1d(np.arange(q, len(everyone)), giver)
    return np.concatenate([giver, left]), np.concatenate([taker, left % q])


def _near(speed: Array, q: int, prices: Array, j: int) -> tuple[Array, Array]:
    """Return the pairs (giver, taker) that are likely to carry multipliers: all if few.

    What a taker gets by a multiplier in type j it pays for in the others, in proportion to the giver's speeds: givers
    that are relatively as fast as the taker elsewhere harm it least.
    """
    if len(speed) * q <= FEW:
        every = np.indices((len(speed), q)).reshape(2, -1)
        return every[0], every[1]
    on_j = speed[:, j]
    relative = speed / np.where(on_j > 0, on_j, 1.0)[:, None] * (prices[j] / prices)
    harm = (relative[None, :q, :] - relative[:, None, :]).max(axis=2)
    harm[np.arange(q), np.arange(q)] = INFINITY
    count = min(NEAR, q)
    takers = np.argpartition(harm, count - 1, axis=1)[:, :count]
    givers = np.argpartition(harm, count - 1, axis=0)[:count]
    giver = np.concatenate([np.repeat(np.arange(len(speed)), count), givers.ravel()])
    return giver, np.concatenate([takers.ravel(), np.tile(np.arange(q), count)])
