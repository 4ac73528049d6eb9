"""What entitlements make of a market's shares: the least and the most that users and groups hold of each type."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.entitlements import Entitled, Entitlements
from fairopt.problem.market import NEAR, Market
from fairopt.problem.throughput import usable
from fairopt.program import INFINITY, Array, cast, number_text

#: What programs support that take their shares from `shares_of`: all but priorities.
FLOORS_AND_CAPS = frozenset({Entitled.GUARANTEES, Entitled.CAPS, Entitled.GROUPS})
#: What programs support that floors would leave without a solution.
CAPS_ONLY = frozenset({Entitled.CAPS, Entitled.GROUPS})


class Floors(NamedTuple):
    """``floor`` and ``cap`` (N, k): the least and the most GPUs of each type for every user and group.

    ``lendable`` (k,) are the GPUs that may be held at all: capacity, less what is reserved for users that cannot use
    it. Shares between these exist, also within demands: `floors_of` has found some.
    """

    floor: Array
    cap: Array
    lendable: Array


def is_entitled(problem: object) -> bool:
    """Whether a problem is a market whose entitlements say something of who gets what."""
    return isinstance(problem, Market) and problem.entitlements is not None and bool(problem.entitlements.said)


def floors_of(market: Market) -> Floors:
    """Return what the entitlements of a market allow and ask for, in its numbers.

    A user's floor is the part of its guarantee that it can use: at most its cap and its demand, on its fastest types
    first, nothing where it cannot run. A group's floor is the part of its guarantee that its members can use within
    their caps and demands, type by type, the fastest first. A guarantee without bound promises no number, and is no
    floor. Errors: `BadInput` of the place "guarantee" where the floors, and what is reserved, exceed a group's cap or
    the capacity.

    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [6], "B": [2]}, group={"A": "ml", "B": "ml"})
    >>> market = Market.of([[1], [1]], [8], demand=[3, 9], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*floors_of(market).floor.ravel())  # what A leaves of the group's 8 is for B
    3 2 8
    """
    slack = market.arithmetic.tolerance(NEAR)
    exact = market.as_(Fraction)
    owed, (n, k) = exact.entitlements, market.shape
    assert owed is not None
    cap = np.minimum(owed.cap[:, :k], exact.capacity)
    promised = owed.guarantee[:, :k]
    most = np.minimum(np.where(promised < INFINITY, promised, 0), owed.cap[:, :k])
    filling = _Filling(exact, owed, cap, slack, usable(exact.speedup, most[:n], exact.limit))
    for group in (node for node in owed.upwards if node >= n):
        filling.fill(group, most[group])
        filling.floor[group] = np.minimum(most[group], filling.total[group])
    kept = filling.total.copy()
    for node in owed.upwards:
        idle = np.maximum(np.minimum(owed.reserve[node, :k], exact.capacity) - kept[node], 0)
        for above in owed.path(node):
            kept[above] += idle
    tops = list(owed.tops)
    needed = kept[tops].sum(axis=0)
    _require_room(needed, exact.capacity, exact, "guarantees and reserves", "there are only", slack)
    lendable = exact.capacity - (needed - filling.total[tops].sum(axis=0))
    return Floors(*(each if market.exact else cast(each, float) for each in (filling.floor, cap, lendable)))


class _Filling:
    """Shares that keep all guarantees so far, in ``total`` (N, k); they show that the floors can be kept together.

    ``left`` (n,): how many more GPUs each user demands.
    """

    def __init__(self, market: Market, owed: Entitlements, cap: Array, slack: float, held: Array) -> None:
        self.market, self.owed, self.cap, self.slack = market, owed, cap, slack
        self.total, self.floor = cap * 0, cap * 0
        self.total[: len(held)] = self.floor[: len(held)] = held
        self.left = market.limit - held.sum(axis=1)
        self.order = market.type_order()[::-1] if len(owed.groups) else ()

    def fill(self, group: int, most: Array) -> None:
        """Give the members of a group what they can use of its guarantee ``most`` (k,), beyond what they have."""
        self.total[group] = sum((self.total[child] for child in self.owed.children[group]), self.cap[group] * 0)
        members_of = f"guarantees of the members of {self.owed.nodes[group]!r}"
        _require_room(
            self.total[group], self.owed.cap[group, : len(most)], self.market, members_of, "its cap is", self.slack
        )
        short = most - self.total[group]
        members = self._members(group) if (short > 0).any() else []
        for j in self.order if members else ():
            for user in members:
                self._move(group, most, [(user, j, None)])
            while most[j] > self.total[group, j] and (moves := self._moves(group, members, j)):
                self._move(group, most, moves)

    def _move(self, group: int, most: Array, moves: list[tuple[int, int, int | None]]) -> None:
        """Let members take and leave types, as much as there is room for."""
        (_, j, _), (last, _, _) = moves[0], moves[-1]
        by = min(most[j] - self.total[group, j], self.left[last])
        by = min([by, *(self._up(user, group, into) for user, into, _ in moves)]) if by > 0 else 0
        by = min([by, *(self._down(user, group, out) for user, _, out in moves if out is not None)])
        if by > 0:
            for user, into, out in moves:
                for node in self._path(user, group):
                    self.total[node, into] += by
                    if out is not None:
                        self.total[node, out] -= by
            self.total[group, j] += by
            self.left[last] -= by

    def _moves(self, group: int, members: list[int], j: int) -> list[tuple[int, int, int | None]]:
        """Return the shortest moves (user, into, out of) by which members hold more of type ``j``, as much of others.

        A user whose demand is met moves to the type and leaves another, which the next one takes; the last has room.
        """
        came: dict[int, tuple[int, int] | None] = {j: None}
        if not any(self.left[user] > 0 for user in members):
            return []
        for into in (queue := [j]):
            able = [user for user in members if self._up(user, group, into) > 0]
            for user in able:
                if self.left[user] > 0:
                    moves: list[tuple[int, int, int | None]] = [(user, into, None)]
                    while (step := came[into]) is not None:
                        mover, before = step
                        moves.insert(0, (mover, before, into))
                        into = before
                    return moves
            for out in [out for out in self.order if out not in came]:
                for user in [user for user in able if self._down(user, group, out) > 0][:1]:
                    came[out] = (user, into)
                    queue.append(out)
        return []

    def _members(self, group: int) -> list[int]:
        """Return the users below a group, those that run on fewer types first."""
        below, users = [group], []
        while below:
            node = below.pop()
            below += self.owed.children[node]
            users += [node] if node < len(self.market.users) else []
        return sorted(users, key=lambda user: (sum(self.market.speedup[user] > 0), user))

    def _path(self, user: int, group: int) -> list[int]:
        path = list(self.owed.path(user))
        return path[: path.index(group)]

    def _up(self, user: int, group: int, j: int) -> Any:
        """Return how many more GPUs of a type a member may hold."""
        if not self.market.speedup[user, j] > 0:
            return 0
        return min(self.cap[node, j] - self.total[node, j] for node in self._path(user, group))

    def _down(self, user: int, group: int, j: int) -> Any:
        """Return how many GPUs of a type a member can do without: no floor below the group needs them."""
        return min(self.total[node, j] - self.floor[node, j] for node in self._path(user, group))


def _require_room(needed: Array, there: Array, market: Market, what: str, most: str, slack: float) -> None:
    """Refuse floors that do not fit; ``slack`` is for markets in floats, relative."""
    for j in np.flatnonzero(needed > there * (1 + Fraction(slack)))[:1]:
        got = f"{what} add up to {number_text(needed[j])}, and {most} {number_text(there[j])}"
        remedy = "Give smaller guarantees, or leave entitlements out with Market.plain()"
        raise BadInput(got, place=f"guarantee, {market.types[j]!r}", remedy=remedy)
