"""Multipliers within a single-type group: they prove that its one bundle is right for all, or say who should leave.

The members of the group of type j share one bundle of type j. It is right for all if there are multipliers y_li >= 0 of
"l does not envy i" among members, and a division of the multipliers of outsiders against the bundle over the members
that hold it, such that for every member i and type t

    gain_i v_it + v_it (its multipliers) - sum over l of y_li v_lt <= weight_i price_t.

That is a linear program with a non-negative excess for each (i, t), of which the sum is minimised. Where it is zero the
multipliers complete those of the restricted program; else the duals say which members would gain from which types.

Pairs (l, i) come in where they help. In a large group so do rows: those of type j stand there from the start, and say
how much flows in and out of each member, since they are equations in the end. What flows in from l then takes
(v_it / v_ij - v_lt / v_lj) of what i has left of type t. That part counts a little in the objective until few other
rows are violated; so the first solutions violate few. Where a large group is far from right, so that its users and
prices will change, nearly all who should leave are known long before the optimum, which is not waited for.
"""

from __future__ import annotations

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.methods.envy_free.problem import Users, against_envy
from fairopt.methods.incremental_lp import (
    BASIC,
    LOWER,
    PRIMAL,
    TOLERANCE,
    UPPER,
    Blocks,
    IncrementalLP,
    entries_of,
    places,
)
from fairopt.program import INFINITY, Array

#: Each member's multipliers may go to so many others, and come from so many, before any are priced; in large groups.
NEAR, NEAR_LARGE = 10, 6
#: Up to so many pairs, all are there from the start.
FEW = 400
#: Up to so many members, all rows are there from the start.
FEW_MEMBERS = 400
#: Reduced costs and duals below this count as zero.
ZERO = 1e-9
#: Where rows are divided by prices, no price is less than this part of the largest: a type may be free at first.
CHEAP = 1e-3
#: Most multipliers added in a round, for each member.
ADDED = 3
#: What it costs to take all that a member has left of a type, which counts as at least `LEFT` of what it pays for all;
#: no pair costs more than `MOST` times that. There are no costs once the violated rows are at most so many a member.
COST, LEFT, MOST, SETTLED = 1e-3, 1e-3, 1e3, 0.02
#: A large group is far from right where the excess, in parts of what members pay, adds up to more. Members then leave
#: whose gains are above `CLEAR`.
FAR, CLEAR = 0.5, 1e-2
#: So many givers at a time are priced.
BLOCK = 500


def high_price(found: Solution) -> float:
    """Return the largest price, but at least the one that all types have where all are as dear: all may be free."""
    prices = np.asarray(found.duals["capacity"])
    return max(float(prices.max()), 1 / len(prices))


def group_multipliers(users: Users, single_type: Array, j: int, found: Solution, given: Array, near: Array) -> Solution:
    """Return the multipliers within group ``j``; ``given`` (n,) are each user's in ``found``, ``near`` likely pairs.

    The duals are those "envy_free", as of every optimum. The values are who should be "leaving" the group (q,), which
    types each of them "takes" (q, k), and the "excess" (q,): how much more than the prices each of them would pay, in
    parts of these.
    """
    members = np.flatnonzero(single_type == j)
    envious, envied, envy = against_envy(found)
    from_outside = (envied == j) & (envy > 0)
    outside, amount, known_prices = envious[from_outside], envy[from_outside], np.asarray(found.duals["capacity"])
    prices = np.maximum(known_prices, high_price(found) * CHEAP)
    scale = users.weight[members][:, None] * prices
    value = users.value[members]
    room = users.weight[members][:, None] * known_prices - value * (users.gain[members] + given[members])[:, None]
    if not len(outside) and (room >= -ZERO * scale).all():
        none = np.zeros(0, dtype=np.int64)
        return _of_group(none, none, np.zeros(0), none, np.zeros((0, len(prices)), dtype=bool), np.zeros(0))
    unit = np.concatenate([scale.max(axis=1), amount])
    known = len(near[0]) > 0
    large = len(members) > FEW_MEMBERS
    program = _GroupLP(np.concatenate([value, users.value[outside]]), unit, scale, room / scale, j, large=large)
    everyone = np.concatenate([members, outside])
    if large or not known:
        program.add(*program.near(prices))
    if known:
        program.add(*_known(everyone, len(members), near))
    multipliers, takes, excess = program.solve()
    giver, taker = program.pairs
    positive = multipliers > 0
    leaving = np.flatnonzero(takes.any(axis=1))
    return _of_group(
        everyone[giver[positive]],
        members[taker[positive]],
        (multipliers * unit[giver])[positive],
        members[leaving],
        takes[leaving],
        excess[leaving],
    )


def _of_group(envious: Array, envied: Array, envy: Array, leaving: Array, takes: Array, excess: Array) -> Solution:
    values = {"leaving": leaving, "takes": takes, "excess": excess}
    return Solution(Status.OPTIMAL, "", "auto", values=values, duals={"envy_free": (np.stack([envious, envied]), envy)})


class _GroupLP:
    """The linear program of the group of type ``j``. Givers are the members, then the outsiders; takers the members.

    A giver's multipliers count in its ``unit``: an outsider's add up to 1. Rows (i, t), in ``room`` (q, k), are divided
    by ``scale``. ``pairs``: the givers and takers of the multipliers that there are.
    """

    def __init__(self, speed: Array, unit: Array, scale: Array, room: Array, j: int, *, large: bool) -> None:
        self.speed, self.unit, self.scale, self.room, self.j = speed, unit, scale, room, j
        self.q, self.k = scale.shape
        self.pairs = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self._large, self._cost = large, COST if large else 0.0
        self._columns = np.zeros(0, dtype=np.int64)  # of the pairs
        self._known = np.eye(len(speed), self.q, dtype=bool)  # nobody envies itself
        on_j = speed[:, j]
        self._ratio = speed / np.where(on_j > 0, on_j, 1.0)[:, None]
        own = self._ratio[: self.q]
        #: what members have left of each type once the row of type j holds as an equation
        self._left = np.maximum(room * scale - own * (room * scale)[:, [j]], LEFT * scale)
        there = np.ones(scale.shape, dtype=bool)
        if self._large:  # the rows of type j, and those of which next to nothing is left
            there[:, np.arange(self.k) != j] = (self._left <= LEFT * scale)[:, np.arange(self.k) != j]
        #: the row of each (i, t), -1 where it is not in the program, and the variable of its excess
        self._row = np.full(scale.shape, -1)
        cells, outsiders = int(there.sum()), len(speed) - self.q
        self._row[there] = np.arange(cells)
        self._excess = self._row.copy()
        # the rows that add up an outsider's multipliers are empty as yet
        lp = Blocks()
        lp.entries(lp.rows(-INFINITY, room[there], cells), lp.columns(-np.ones(cells)), -np.ones(cells))
        lp.rows(1.0, 1.0, outsiders)
        program = lp.program("the multipliers of a single-type group")
        self._program = IncrementalLP(program, strategy=PRIMAL, tolerance=TOLERANCE)
        self._first_outsider, self._size = cells, (cells + outsiders, cells)

    def add(self, giver: Array, taker: Array) -> bool:
        """Add the multipliers of these pairs that are not there; return whether there were any."""
        new = ~self._known[giver, taker]
        self._known[giver, taker] = True
        giver, taker = giver[new], taker[new]
        inside = giver < self.q
        own = np.where(inside, giver, 0)
        of_outsider = np.where(inside, -1, self._first_outsider + giver - self.q)[:, None]
        place = np.concatenate([np.where(inside[:, None], self._row[own], -1), self._row[taker], of_outsider], axis=1)
        value = np.concatenate([*self._entries(giver, taker), np.ones((len(giver), 1))], axis=1)
        cost = self._taken(giver, taker) if self._cost else np.zeros(len(giver))
        self._program.add_columns(-self._cost * cost, entries_of(place, value))
        rows, columns = self._size
        self.pairs = (np.concatenate([self.pairs[0], giver]), np.concatenate([self.pairs[1], taker]))
        self._columns = np.concatenate([self._columns, columns + np.arange(len(giver))])
        self._size = rows, columns + len(giver)
        return bool(len(giver))

    def _entries(self, giver: Array, taker: Array) -> tuple[Array, Array]:
        """Return the entries of pairs (p,) in the rows of the giver and in those of the taker, (p, k) each."""
        amount = self.speed[giver] * self.unit[giver][:, None]
        return amount / self.scale[np.where(giver < self.q, giver, 0)], -amount / self.scale[taker]

    def _add_rows(self, member: Array, type_: Array) -> bool:
        """Add rows that the last solution violates, with their excess in the basis; return whether there were any."""
        if not len(member):
            return False
        new = np.full(self._row.shape, -1)
        new[member, type_] = np.arange(len(member))
        giver, taker = self.pairs
        rows = [np.where((giver < self.q)[:, None], new[np.where(giver < self.q, giver, 0)], -1), new[taker]]
        row, value = np.concatenate(rows, axis=1), np.concatenate(self._entries(giver, taker), axis=1)
        pair, _ = there = np.nonzero((row >= 0) & (value != 0))
        order = np.argsort(row[there], kind="stable")
        table = row[there][order], self._columns[pair][order], value[there][order]
        columns, positions = self._program.basis()
        self._program.add_rows(np.full(len(member), -INFINITY), self.room[member, type_], table)
        (first_row, first_column), each = self._size, np.arange(len(member), dtype=np.int32)
        self._row[member, type_], self._excess[member, type_] = first_row + each, first_column + each
        self._program.add_columns(-np.ones(len(member)), (each, first_row + each, -np.ones(len(member))))
        later = np.full(first_column + len(member) - len(columns), LOWER)  # pairs that were added since
        later[len(later) - len(member) :] = BASIC
        basis = np.concatenate([columns, later]), np.concatenate([positions, np.full(len(member), UPPER)])
        self._program.start(*basis)
        self._size = first_row + len(member), first_column + len(member)
        return True

    def solve(self) -> tuple[Array, Array, Array]:
        """Return the multipliers of all pairs, and which types each member would gain from and should take (q, k).

        A large group that is far from right is left so.
        """
        while True:
            self._program.solve()
            dual, x = self._program.dual, np.maximum(self._program.x, 0.0)
            excess = np.where(self._excess >= 0, x[self._excess], 0.0)
            gains = np.where(self._row >= 0, np.maximum(dual[self._row], 0.0), 0.0)
            missing = self._missing(x[self._columns])
            if excess.max() <= ZERO and not missing.any():
                takes = np.zeros(gains.shape, dtype=bool)
                break
            takes = self._takes(gains, ZERO)
            if self._large and excess.sum() > FAR and (clearly := self._takes(gains, CLEAR)).any():
                takes = clearly
                break
            settled = self._cost > 0 and missing.sum() <= SETTLED * self.q
            if settled:
                self._forget_costs()
            helps = self._helpful(gains, dual[self._first_outsider :])
            if not (self.add(*helps) | self._add_rows(*np.nonzero(missing)) | settled):
                break
        return x[self._columns], takes, excess.sum(axis=1)

    def _takes(self, gains: Array, least: float) -> Array:
        """Return which other types (q, k) members would gain from by more than the least."""
        takes = gains > least
        takes[:, self.j] = False
        return takes

    def _missing(self, multipliers: Array) -> Array:
        """Return which rows (q, k) are violated and not in the program."""
        if not self._large:
            return np.zeros(self._row.shape, dtype=bool)
        positive = multipliers > 0
        giver, taker = (each[positive] for each in self.pairs)
        amount = multipliers[positive] * self.unit[giver]
        inside = giver < self.q
        own = np.bincount(giver[inside], amount[inside], minlength=self.q)
        taken = [np.bincount(taker, amount * speed, minlength=self.q) for speed in self.speed[giver].T]
        paid = (self.speed[: self.q] * own[:, None] - np.transpose(taken)) / self.scale
        return np.asarray((paid - self.room > ZERO) & (self._row < 0))

    def _helpful(self, gains: Array, of_outsiders: Array) -> tuple[Array, Array]:
        """Return pairs whose multipliers help most: where a giver would rather have what the taker would get."""
        relative, found = (gains / self.scale).T, list[tuple[Array, Array]]()
        for begin in range(0, len(self.speed), BLOCK):
            giver = np.arange(begin, min(begin + BLOCK, len(self.speed)))
            worth = (self.speed[giver] * self.unit[giver][:, None]) @ relative
            inside = giver < self.q
            own = np.where(inside, worth[np.arange(len(giver)), np.where(inside, giver, 0)], 0.0)
            own[~inside] = of_outsiders[giver[~inside] - self.q]
            helps = worth - own[:, None]
            if self._cost:
                helps -= self._cost * self._taken(giver[:, None], np.arange(self.q)[None, :])
            helps[self._known[giver]] = 0.0
            rows, takers = _largest(helps)
            found.append((giver[rows], takers))
        givers, takers = (np.concatenate(each) for each in zip(*found, strict=True))
        return givers, takers

    def _taken(self, giver: Array, taker: Array) -> Array:
        """Return the largest part of what takers have left of a type that they give up for a unit of multipliers."""
        most = np.zeros(np.broadcast_shapes(giver.shape, taker.shape))
        for t in np.flatnonzero(np.arange(self.k) != self.j):
            most = np.maximum(most, (self._ratio[taker, t] - self._ratio[giver, t]) / self._left[taker, t])
        return np.asarray(np.minimum(most * (self.unit * self.speed[:, self.j])[giver], MOST))

    def _forget_costs(self) -> None:
        """Leave nothing but the excess in the objective."""
        self._cost = 0.0
        self._program.change_gains(self._columns, np.zeros(len(self._columns)))

    def near(self, prices: Array) -> tuple[Array, Array]:
        """Return the pairs (giver, taker) that are likely to carry multipliers: all if few.

        In a large group these are pairs that cost little, from any giver to any taker, and from those who must give.
        """
        if not self._large:
            return _near(self.speed, self.q, prices, self.j)
        cost = np.empty((len(self.speed), self.q), dtype=np.float32)
        for begin in range(0, len(cost), BLOCK):
            giver = np.arange(begin, min(begin + BLOCK, len(cost)))
            cost[giver] = self._taken(giver[:, None], np.arange(self.q)[None, :])
        cost /= (self.unit * self.speed[:, self.j])[:, None]
        cost[np.arange(self.q), np.arange(self.q)] = INFINITY
        must = self.room[:, self.j]
        gives, takes = np.append(must > 0, np.ones(len(cost) - self.q, dtype=bool)), must < 0
        every = _cheapest(cost, np.arange(len(cost)), np.arange(self.q))
        direct = _cheapest(cost, np.flatnonzero(gives), np.flatnonzero(takes))
        giver, taker = (np.concatenate(both) for both in zip(every, direct, strict=True))
        giver, taker = np.divmod(np.unique(giver * self.q + taker), self.q)
        return giver, taker


def _cheapest(cost: Array, givers: Array, takers: Array) -> tuple[Array, Array]:
    """Return the pairs of the least costs, `NEAR_LARGE` for each of the givers and of the takers."""
    if not len(givers) or not len(takers):
        return givers[:0], takers[:0]
    table = cost[np.ix_(givers, takers)]
    of_giver, of_taker = min(NEAR_LARGE, len(takers)), min(NEAR_LARGE, len(givers))
    to = takers[np.argpartition(table, of_giver - 1, axis=1)[:, :of_giver]]
    by = givers[np.argpartition(table, of_taker - 1, axis=0)[:of_taker]]
    return (
        np.concatenate([np.repeat(givers, of_giver), by.ravel()]),
        np.concatenate([to.ravel(), np.tile(takers, of_taker)]),
    )


def _largest(helps: Array) -> tuple[Array, Array]:
    """Return the places of the `ADDED` largest entries of each row, of those above `ZERO`; changes ``helps``."""
    rows = np.flatnonzero(helps.max(axis=1, initial=0.0) > ZERO)
    givers, takers = [], []
    for _ in range(ADDED):
        # the first of those that tie, whatever the processor: a part of a sort would not say
        best = helps[rows].argmax(axis=1)
        positive = helps[rows, best] > ZERO
        rows, best = rows[positive], best[positive]
        helps[rows, best] = 0.0
        givers.append(rows)
        takers.append(best)
    return np.concatenate(givers), np.concatenate(takers)


def _known(everyone: Array, q: int, near: Array) -> tuple[Array, Array]:
    """Return the pairs of ``near`` as places in ``everyone``, the first q takers; outsiders without a pair get one."""
    place = places(int(max(everyone.max(), near[0].max(), near[1].max())) + 1, everyone)
    giver, taker = place[near[0]], place[near[1]]
    there = (giver >= 0) & (taker >= 0) & (taker < q)
    giver, taker = giver[there], taker[there]
    left = np.setdiff1d(np.arange(q, len(everyone)), giver)
    return np.concatenate([giver, left]), np.concatenate([taker, left % q])


def _near(speed: Array, q: int, prices: Array, j: int) -> tuple[Array, Array]:
    """Return the pairs (giver, taker) that are likely to carry multipliers: all if few.

    A taker pays in other types for what it gets in type j, by the giver's speeds: those as fast there harm it least.
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
