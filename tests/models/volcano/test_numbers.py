"""Worked numbers of Volcano's documents and tests, on the arithmetic itself."""

from __future__ import annotations

from collections import Counter, deque
from fractions import Fraction
from typing import Any

import pytest

from fairopt.models.common.holdings import Holdings, QueuedGang, TreeTurns
from fairopt.models.volcano.actions import allocate, share
from fairopt.models.volcano.capacity import quotas
from fairopt.models.volcano.hdrf import QueueTree
from fairopt.models.volcano.proportion import deserved
from fairopt.program import INFINITY


def started(
    parent: list[int], weight: list[float], total: list[int], pods: list[tuple[int, str, int, dict[int, int]]],
    *, saturation: bool = True,
) -> Counter[str]:  # fmt: skip
    """Return how many pods of each group start; a row of ``pods``: queue, group, how many, what each takes."""
    n, width = len(parent), len(total)
    waits: dict[int, deque[QueuedGang]] = {}
    groups: dict[int, dict[str, tuple[list[float], list[float]]]] = {}
    for queue, name, count, takes in pods:
        waits.setdefault(queue, deque()).extend([QueuedGang(0, name, queue, {0: takes})] * count)
        asks = [float(takes.get(column, 0) * count) for column in range(width)]
        groups.setdefault(queue, {})[name] = ([0.0] * width, asks)
    names = [str(node) for node in range(n)]
    room = Holdings(names, ["cpu", "gpu"], parent, list(total), [[0] * width for _ in names], waits)
    tree = QueueTree(parent, weight, total, saturation=saturation)
    for queue, jobs in groups.items():
        tree.add(queue, jobs)
    tree.settle()
    allocate(room, tree.turns(waits), runs=tree.runs)
    return Counter(room.started)


def test_hdrf_rescales_children() -> None:
    """hdrf_test.go "rescaling test": root/sci beside root/eng with dev (CPU) and prod (memory): 5 each of 10."""
    found = started(
        [-1, -1, 1, 1],
        [50, 50, 50, 50],
        [10, 10],
        [(0, "pg1", 10, {0: 1, 1: 1}), (2, "pg21", 10, {0: 1}), (3, "pg22", 10, {1: 1})],
    )
    assert found == {"pg1": 5, "pg21": 5, "pg22": 5}


@pytest.mark.parametrize("scale", [30, 3000])
@pytest.mark.parametrize("misspelt", [False, True])
def test_hdrf_ignores_blocked_nodes_and_the_naive_version_does_not(scale: int, misspelt: bool) -> None:
    """hdrf_test.go "blocking nodes test", docs/design/hdrf.md: a third of the CPUs each, and half of the GPUs each.

    The test puts pg32 into the queue of pg31; where the document has it, the outcome is the same. The naive version
    gives n3,2 two thirds: it goes on until n4 has one more than a third.
    """
    parent, weight = [-1, -1, -1, 2, 2, -1], [25.0, 25.0, 25.0, 50.0, 50.0, 25.0]
    pods: list[tuple[int, str, int, dict[int, int]]] = [
        (0, "n1", scale, {0: 1}),
        (1, "n2", scale, {0: 1}),
        (3, "n3,1", scale, {0: 1}),
        (3 if misspelt else 4, "n3,2", scale, {1: 1}),
        (5, "n4", scale, {1: 1}),
    ]
    third = scale // 3
    fair = started(parent, weight, [scale, scale], pods)
    assert fair == {"n1": third, "n2": third, "n3,1": third, "n3,2": scale // 2, "n4": scale // 2}
    naive = started(parent, weight, [scale, scale], pods, saturation=False)
    assert (naive["n3,2"], naive["n4"]) == (2 * third - 1, third + 1)


SHARES: list[tuple[list[Any], list[Any], Any]] = [
    ([0, 0], [1, 1], 1),
    ([0, 0], [0, 0], 1),
    ([0, 0], [1, 0], 1),
    ([0, 0], [0, 1], 1),
    ([2, 2], [0, 0], 0),
    ([2, 2], [1, 1], Fraction(1, 2)),
    ([2, 2], [2, 2], 1),
    ([2, 2], [3, 2], Fraction(3, 2)),
    ([2, 4], [1, 3], Fraction(3, 4)),
    ([2, 4], [Fraction(3, 2), 2], Fraction(3, 4)),
    ([2, 2], [3, 3], Fraction(3, 2)),
]


@pytest.mark.parametrize(("owed", "held", "wanted"), SHARES)
def test_shares_of_queues(owed: list[Any], held: list[Any], wanted: Any) -> None:
    """capacity_test.go, Test_updateQueueAttrShare: 17 rows; some differ in the request only, which is unused."""
    assert (share(held, owed) if any(owed) else 1) == wanted


def test_queues_go_by_priority_where_nothing_limits_them() -> None:
    """proportion_test.go, TestAllocate case0 switches the limits off: the queue of priority 10 gets the node."""
    jobs = {queue: deque([QueuedGang(0, f"p{queue + 1}", queue, {0: {0: 2}})]) for queue in (1, 2)}
    room = Holdings(["q1", "q2", "q3"], ["cpu"], [-1] * 3, [2], [[2], [0], [0]], jobs)
    allocate(room, TreeTurns.flat(jobs, lambda queue: (-[5, 1, 10][queue],)))
    assert room.started == ["p3"]


def test_what_queues_deserve_is_split_again_in_rounds() -> None:
    free = [[INFINITY]] * 3
    # by weight 1:1:2; the first asks for 2 of its 3, and what it leaves goes to the others by weight
    assert deserved([12], [1, 1, 2], [[2], [9], [9]], [[0]] * 3, free) == [[2], [Fraction(10, 3)], [Fraction(20, 3)]]
    # the others' guarantees are out of reach: 12 - 6 at most, though the second asks for nothing
    assert deserved([12], [1, 1], [[12], [0]], [[0], [6]], free[:2]) == [[6], [6]]
    # a queue without jobs takes no part, and its guarantee is kept for it all the same
    assert deserved([12], [1], [[12]], [[0]], free[:1], absent=[5]) == [[7]]
    # capability
    assert deserved([12], [1, 1], [[12], [12]], [[0], [0]], [[2], [INFINITY]]) == [[2], [10]]


def test_story_4_a_queue_cannot_take_the_others_guarantee() -> None:
    """docs/design/capacity-scheduling.md, Story 4: 20 A100 of 60 are guaranteed to one; the other has 40."""
    assert quotas([60], [-1, -1], [0, 1], [[20], [40]], [[20], [0]], [[60], [INFINITY]])[1] == [[60], [40]]


def test_what_queues_deserve_where_nobody_wants_one_of_the_types() -> None:
    """The first two types are halved without end, the third stays as it is: the rounds end all the same."""
    none, never = [[0, 0, 0]] * 2, [[INFINITY] * 3] * 2
    rows = deserved([10, 10, 10], [1, 1], [[20, 0, 0], [0, 20, 0]], none, never)
    assert rows == [[rows[0][0], 0, 0], [0, rows[0][0], 0]]
    assert 10 - Fraction(1, 10_000) < rows[0][0] < 10
