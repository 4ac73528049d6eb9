"""Whom reclaiming asks first: the index of queues against a plain sort of all of them."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from fairopt.models.volcano.actions import Offenders, Rule
from fairopt.models.volcano.cluster import VolcanoJob

PARENT = [6, 6, 7, 7, 8, -1, 8, 8, -1]


def path(queue: int) -> list[int]:
    """Return a queue and the groups above it."""
    return [queue, *(path(PARENT[queue]) if PARENT[queue] >= 0 else [])]


def test_queues_are_asked_from_the_nearest_group_outwards_in_the_order_of_their_standing() -> None:
    draw = random.Random(5)
    standing: dict[int, Any] = {}
    over = set(range(6))
    rule = Rule(
        may=lambda queue, takes: True,
        over=lambda queue: queue in over,
        yields=lambda queue, takes, job, has, left: True,
        standing=lambda queue: standing[queue],
        path=path,
    )

    def change(queue: int) -> None:
        standing[queue] = draw.randrange(2), (Fraction(draw.randrange(4), 3), False)
        (over.add if draw.random() < 0.7 else over.discard)(queue)
        running[queue] = [(VolcanoJob("", queue, {}), {column: 1}) for column in range(3) if draw.random() < 0.5]

    running: dict[int, Any] = {}
    for queue in range(6):
        change(queue)
    offenders = Offenders(rule, running)
    for _ in range(60):
        queue = draw.randrange(6)
        change(queue)
        offenders.place(queue)
        columns = {draw.randrange(3), draw.randrange(3)}
        asks = draw.randrange(6)
        able = [q for q in sorted(over) if any(columns & has.keys() for _, has in running[q])]
        plain = sorted(able, key=lambda q: (-len({*path(asks)} & {*path(q)}), standing[q]))
        assert list(offenders.nearest(asks, columns)) == plain


def test_shares_beyond_floats_are_in_order() -> None:
    huge = Fraction(10**400)
    standing = {0: (huge * 2, 0), 1: (huge, 1), 2: (-huge, 2)}
    rule = Rule(
        may=lambda queue, takes: True,
        over=lambda queue: True,
        yields=lambda queue, takes, job, has, left: True,
        standing=lambda queue: standing[queue],
        path=lambda _: (),
    )
    running: dict[int, Any] = {queue: [(VolcanoJob("", queue, {}), {0: 1})] for queue in standing}
    assert list(Offenders(rule, running).nearest(0, {0})) == [2, 1, 0]
