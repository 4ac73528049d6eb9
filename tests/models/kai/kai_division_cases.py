"""The published cases of KAI Scheduler's division of resources: 70 of its 71, as numbers.

Source: pkg/scheduler/plugins/proportion/resource_division/resource_division_test.go at d5bc503a; ``line`` is where a
case stands there. The 71st (line 2023) sorts five queues by priority, without amounts; it is in `test_division.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.models.kai.pool import QueueClaim
from fairopt.program import INFINITY


class Case(NamedTuple):
    """A case: what is divided among whom, the shares that the source prints (None: it prints none), what is left.

    ``given``: the shares from which it divides what is over quota only; None where it divides all.
    """

    line: int
    name: str
    total: Any
    claims: list[QueueClaim]
    shares: list[Any]
    left: Any = None
    given: list[Any] | None = None


def one(line: int, name: str, total: Any, share: Any, left: Any, **more: Any) -> Case:
    """Return a case of a queue within its quota of 3 that asks for 2 and has no weight (lines 31-48)."""
    return Case(line, name, total, [QueueClaim(**({"deserved": 3, "request": 2, "weight": 0} | more))], [share], left)


def over(line: int, name: str, total: Any, share: Any, left: Any, given: Any = 3, **more: Any) -> Case:
    """Return a case of a queue with its quota of 3 in hand that asks for 5 (lines 102-119)."""
    return Case(line, name, total, [QueueClaim(**({"deserved": 3, "request": 5} | more))], [share], left, [given])


def two(line: int, name: str, total: Any, shares: list[Any], left: Any, *more: dict[str, Any]) -> Case:
    """Return a case of two queues with a quota of 2 and a weight of 2 that ask for 6 (lines 236-269)."""
    claims = [
        QueueClaim(**({"deserved": 2, "request": 6, "weight": 2, "created": q} | own))
        for q, own in enumerate(more or ({}, {}))
    ]
    return Case(line, name, total, claims, shares, left)


def three(
    lines: tuple[int, int],
    name: str,
    shares: list[Any],
    *asks: int,
    total: int = 10000,
    quota: int = 5000,
    limit: Any = -1,
) -> list[Case]:
    """Return a case of three queues with quotas of 5000, for CPU and for memory (lines 561-615 and 879-933)."""
    quotas, limits = (5000, quota, 5000), (limit if limit > 0 else INFINITY, INFINITY, INFINITY)
    claims = [QueueClaim(d, r, most, 5000) for d, r, most in zip(quotas, asks, limits, strict=True)]
    return [Case(line, f"{kind}: {name}", total, claims, shares, 0) for kind, line in zip(KINDS, lines, strict=True)]


def all_three(line: int, name: str, totals: tuple[Any, Any, Any], *queues: tuple[Any, ...]) -> list[Case]:
    """Return a case for GPUs, CPU and memory; a queue is a claim and a share for each of the three."""
    return [
        Case(line, f"{name}: {kind}", total, [QueueClaim(*q[r][:-1]) for q in queues], [q[r][-1] for q in queues])
        for r, (kind, total) in enumerate(zip(("GPU", *KINDS), totals, strict=True))
    ]


KINDS = ("CPU", "memory")
HALF, UNLIMITED = Fraction(1, 2), INFINITY
W1, W2, W3, W6 = ((UNLIMITED, weight) for weight in (1, 2, 3, 6))

GPU = [
    one(50, "gives requested GPUs - no remaining", 2, 2, 0),
    one(55, "gives requested GPUs with remaining", 3, 2, 1),
    one(60, "doesn't give more GPUs than allowed", 3, 2, 1, limit=2),
    one(66, "gives up to deserved when over subscribed", 1, 2, 0),
    one(71, "gives up to full quota", 7, 3, 4, request=5),
    one(77, "gives with fraction, if stated in deserved", 2, 3 * HALF, HALF, deserved=3 * HALF),
    one(83, "gives with fraction, if stated in request", 2, 3 * HALF, HALF, request=3 * HALF),
    one(89, "doesn't give if deserved is zero", 2, 0, 2, deserved=0),
    over(121, "gives requested GPUs no remaining", 2, 5, 0),
    over(126, "gives requested GPUs with remaining", 3, 5, 1),
    over(131, "doesn't give more GPUs than allowed", 2, 4, 1, limit=4),
    over(137, "doesn't give when over quota weight is zero", 2, 3, 2, weight=0),
    over(143, "gives with fraction if requested", 2, 9 * HALF, HALF, request=9 * HALF),
    over(149, "gives remainder fraction", HALF, 7 * HALF, 0),
    over(154, "gives when deserved is zero", 6, 5, 1, 0, deserved=0),
    over(161, "doesn't break when there are zero resources to divide", 0, 3, 0),
    over(167, "doesn't give when over quota weight is zero (again)", 10, 3, 10, weight=0),
    Case(
        216,
        "two queues: no weight, no request",
        10,
        [QueueClaim(3, 5, weight=0), QueueClaim(3, 3)],
        [3, None],
        10,
        [3, 3],
    ),
    two(295, "allocates many available gpus", 15, [6, 6], 3),
    two(303, "allocates exact requested amount gpus", 12, [6, 6], 0),
    two(311, "allocates GPUs proportionally", 8, [3, 5], 0, {"weight": 1}, {"weight": 3}),
    two(323, "doesn't allocate more than allowed", 12, [5, 6], 1, {"limit": 5}, {}),
    two(334, "largest remaining", 11, [3, 8], 0, {"weight": 1, "request": 10}, {"weight": 4, "request": 10}),
    two(350, "creation time", 11, [6, 5], 0),
    two(358, "priority doesn't affect deserved", 4, [2, 2], 0, {"tier": 1}, {"tier": 2}),
    two(370, "priority does affect over-quota", 6, [2, 4], 0, {"tier": 1}, {"tier": 2}),
    two(382, "... even when a weight is set", 6, [2, 4], 0, {"tier": 1, "weight": 100}, {"tier": 2, "weight": 1}),
    Case(
        401,
        "divides the remainder even when using priorities",
        5,
        [
            QueueClaim(2, 5, weight=2, tier=2, created=0),
            QueueClaim(2, 5, weight=2, tier=2, created=1),
            QueueClaim(1, 0, weight=2, tier=1),
        ],
        [3, 2, 0],
        0,
    ),
]
ONE_QUEUE = [
    Case(line, f"{kind}: {name}", total, [QueueClaim(3000, 2000, weight=3000)], [2000], left)
    for kind, lines in zip(KINDS, ((498, 503), (816, 821)), strict=True)
    for line, name, total, left in zip(lines, ("requested", "over subscription"), (3000, 1000), (1000, 0), strict=True)
]
TWO_QUEUES = [
    Case(
        line,
        f"{kind}: reclaims all of queue 2",
        10000,
        [QueueClaim(5000, 10000, weight=5000), QueueClaim(0, 5000, weight=0)],
        [10000, 0],
        0,
    )
    for kind, line in zip(KINDS, (551, 869), strict=True)
]
THREE_QUEUES = [
    *three((619, 937), "over subscription", [5000, 5000, 5000], 5000, 5000, 5000),
    *three((633, 951), "over quota", [6000, 6000, 6000], 6000, 6000, 6000, total=18000),
    *three((647, 965), "reclaims unneeded", [6000, 2000, 2000], 7000, 2000, 2000),
    *three((655, 973), "reclaims from both", [5000, 5000, 2000], 7000, 5000, 2000),
    *three((671, 989), "reclaims unneeded, limited", [6000, 2000, 2000], 7000, 2000, 2000, limit=7000),
    *three((689, 1007), "queue 2 has no quota", [5000, 0, 5000], 5000, 5000, 5000, quota=0),
    *three((706, 1024), "allocated: compete", [5000, 5000, 5000], 5000, 5000, 5000),
    *three((720, 1038), "allocated: reclaims unneeded", [6000, 2000, 2000], 7000, 2000, 2000),
    *three((727, 1045), "allocated: reclaims from both", [5000, 5000, 2000], 7000, 5000, 2000),
    *three((743, 1062), "allocated, limited: reclaims unneeded", [6000, 2000, 2000], 7000, 2000, 2000, limit=7000),
    *three((750, 1069), "allocated, limited: reclaims from both", [5000, 5000, 2000], 7000, 5000, 2000, limit=7000),
    *three((773, 0), "no quota: reclaims all of queue 2", [5000, None, 5000], 10000, 5000, 10000, quota=0)[:1],
    *three((780, 0), "no quota: reclaims all of queue 2", [5000, None, 5000], 5000, 5000, 5000, quota=0)[:1],
    *three((0, 1094), "reclaims all of queue 2", [5000, None, 5000], 10000, 5000, 10000)[1:],
    *three((0, 1101), "reclaims all of queue 2", [5000, None, 5000], 5000, 5000, 5000)[1:],
]
_ENOUGH = ((1, 1, *W1, 1), (200, 500, *W1, 500), (1000, 500, *W1, 500))
_SAME = ((1, 8, *W1, 5), (2000, 3000, *W1, 2000), (1000, 5000, *W1, 1000))
ALL_THREE = [
    *all_three(1119, "one queue, enough", (10, 2500, 1000), _ENOUGH),
    *all_three(
        1171, "one, not enough", (1, 1000, 3000), ((2, 3, *W1, 2), (20000, 2500, *W1, 2500), (1000, 5000, *W1, 3000))
    ),
    *all_three(1227, "two queues, enough", (10, 2500, 1000), _ENOUGH, _ENOUGH),
    *all_three(1320, "two queues alike", (10, 3000, 1000), _SAME, _SAME),
    *all_three(1414, "different weights", (1000,) * 3, ((250, 5000, *W1, 450),) * 3, ((150, 5000, *W2, 550),) * 3),
    *all_three(1507, "weights and limits", (1000,) * 3, ((250, 5000, *W1, 600),) * 3, ((150, 5000, 400, 2, 400),) * 3),
    *all_three(1602, "three alike", (9999,) * 3, *[((1000, 10000, *W1, 3333),) * 3] * 3),
    *all_three(
        1736,
        "three weights",
        (9999,) * 3,
        ((0, 10000, *W6, 6666),) * 3,
        ((0, 10000, *W2, 2222),) * 3,
        ((0, 10000, *W1, 1111),) * 3,
    ),
    Case(
        1872,
        "fractional fair share",
        45,
        [
            QueueClaim(12, Fraction("32.54999999999996"), weight=12),
            QueueClaim(7, Fraction("9.5"), weight=7),
            QueueClaim(2, Fraction("1.65"), 2, 2),
        ],
        [Fraction("32.54999999999996"), Fraction("9.5"), Fraction("1.65")],
    ),
    Case(
        1938,
        "last remaining GPU",
        5,
        [QueueClaim(2, 3, weight=2, created=0), QueueClaim(2, 3, weight=2, created=1)],
        [3, 2],
    ),
]
CASES = [*GPU, *ONE_QUEUE, *TWO_QUEUES, *THREE_QUEUES, *ALL_THREE]
