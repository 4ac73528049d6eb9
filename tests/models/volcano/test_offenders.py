"""Whom reclaiming asks first: the index of queues against a plain sort of all of them."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from fairopt.models.common.holdings import Holdings, QueuedGang
from fairopt.models.volcano.actions import Reclaiming

PARENT = [6, 6, 7, 7, 8, -1, 8, 8, -1]


class Told(Reclaiming):
    """A rule whose standings and offenders are told; every job has an amount of one column, on that type."""

    def __init__(self, parent: list[int], standing: dict[int, Any], over: set[int], columns: dict[int, list[int]]):
        self.ranks, self.offenders, self.parent = standing, over, parent
        super().__init__(Holdings([], [], parent, [], [], {}), [], standing.__getitem__)
        self.victims = {queue: jobs(queue, own) for queue, own in columns.items()}
        for queue in columns:
            self.place(queue)

    def may(self, *_: Any) -> bool:
        return True

    def over(self, node: int, left: Any = None) -> bool:
        return node in self.offenders

    def yields(self, *_: Any) -> bool:
        return True

    def standing(self, victim: int) -> tuple[Any, ...]:
        return tuple(self.ranks[victim])

    def path(self, queue: int) -> list[int]:
        return [queue, *(self.path(self.parent[queue]) if self.parent[queue] >= 0 else [])]


class Flat(Told):
    """The same, where the tree does not count."""

    def path(self, queue: int) -> list[int]:
        return []


def jobs(queue: int, columns: list[int]) -> list[QueuedGang]:
    """Return a job that runs for each column."""
    return [QueuedGang(0, "", queue, {column: {column: 1}}, on=column) for column in columns]


def test_queues_are_asked_from_the_nearest_group_outwards_in_the_order_of_their_standing() -> None:
    draw = random.Random(5)
    standing: dict[int, Any] = {}
    over = set(range(6))

    def drawn(queue: int) -> list[int]:
        standing[queue] = draw.randrange(2), (Fraction(draw.randrange(4), 3), False)
        (over.add if draw.random() < 0.7 else over.discard)(queue)
        return [column for column in range(3) if draw.random() < 0.5]

    columns_of = {queue: drawn(queue) for queue in range(6)}
    rule = Told(PARENT, standing, over, columns_of)
    for _ in range(60):
        queue = draw.randrange(6)
        columns_of[queue] = drawn(queue)
        rule.victims[queue] = jobs(queue, columns_of[queue])
        rule.place(queue)
        columns = {draw.randrange(3), draw.randrange(3)}
        asks = draw.randrange(6)
        able = [q for q in sorted(over) if columns & set(columns_of[q])]
        plain = sorted(able, key=lambda q: (-len({*rule.path(asks)} & {*rule.path(q)}), standing[q]))
        assert list(rule.nearest(asks, columns)) == plain


def test_shares_beyond_floats_are_in_order() -> None:
    huge = Fraction(10**400)
    standing = {0: (huge * 2, 0), 1: (huge, 1), 2: (-huge, 2)}
    rule = Flat([], standing, {0, 1, 2}, {queue: [0] for queue in standing})
    assert list(rule.nearest(0, {0})) == [2, 1, 0]
