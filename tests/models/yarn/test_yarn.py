"""YARN's ideal allocation against its own tests, and the rule on the sample cluster."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from importlib.resources import files
from math import ceil, inf
from pathlib import Path
from typing import Any

import pytest

from fairopt import decide
from fairopt.importing import yarn
from fairopt.models.yarn.capacity import YarnCapacity, _CapacityTree, ideal, order
from fairopt.problem import Entitlements, Gangs, Market

CASES = tomllib.loads((Path(__file__).parent / "preemption.toml").read_text())["case"]


def tree_of(case: dict[str, Any]) -> tuple[_CapacityTree, list[str]]:
    """Return the queues of a case without its root; they are listed in depth first order, and called A, B, C ..."""
    parent: list[int] = []
    open_ = [[-1, case["below"][0]]]
    for node, count in enumerate(case["below"][1:]):
        while not open_[-1][1]:
            open_.pop()
        open_[-1][1] -= 1
        parent.append(open_[-1][0])
        if count:
            open_.append([node, count])
    names = [chr(ord("A") + node) for node in range(len(parent))]
    kept = [name in case.get("kept", []) for name in names]
    columns = [case[key][1:] for key in ("capacity", "most", "used", "pending")]
    return _CapacityTree(parent, *columns, kept, [0] * len(parent), case["capacity"][0]), names


def preempted(case: dict[str, Any]) -> dict[str, int]:
    """Return how much is taken of each leaf, as PreemptableResourceCalculator's last step has it."""
    tree, names = tree_of(case)
    taken = ideal(tree, nearest=True)[1]  # the tests have a DefaultResourceCalculator
    factor = Fraction(case.get("factor", 1))
    out = {}
    for node, name in enumerate(names):
        far = tree.used[node] > tree.guaranteed[node] * (1 + Fraction(1, 10))
        if not tree.below[node] and not tree.kept[node] and far and taken[node]:
            out[name] = ceil(taken[node] * factor)
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["test"])
def test_preemption_is_that_of_yarns_own_tests(case: dict[str, Any]) -> None:
    found = preempted(case)
    found = {name: count for name, count in found.items() if name in case.get("only", found)}
    assert found == case["preempted"]


def test_how_many_cases_there_are() -> None:
    assert len(CASES) == 25  # what docs/schedulers/yarn.md says


def test_under_served_queues_go_first_whatever_their_priority() -> None:
    """The comment on PriorityUtilizationQueueOrderingPolicy: same priority; both under; both over; one of each."""
    assert order(0.2, 0) < order(0.5, 0)
    assert order(0.5, 1) < order(0.2, 0)
    assert order(1.5, 1) < order(1.2, 0)
    assert order(0.9, 0) < order(1, 9) < order(inf, 9)


def small(pending: list[int]) -> Market:
    """Return a market of team a (with a1 and a2) and b on 10 GPUs."""
    users = ["a1", "a2", "b"]
    held = [("a1", 4), ("a2", 0), ("b", 0)]
    rows = [(user, "T") for user, count in held for _ in range(count)]
    rows += [(user, "") for user, count in zip(users, pending, strict=True) for _ in range(count)]
    gangs = Gangs.of(
        [user for user, _ in rows], [1] * len(rows), users=users, types=["T"], on=[on or None for _, on in rows]
    )
    quota = {"a1": [3], "a2": [3], "b": [4], "a": [6]}
    owed = Entitlements.of(users, ["T"], group={"a1": "a", "a2": "a"}, guarantee=quota, cap={"b": [5]}, gangs=gangs)
    return Market.of([[1]] * 3, [10], users=users, types=["T"], entitlements=owed)


@pytest.mark.parametrize(
    ("pending", "shares"),
    [
        ([0, 0, 9], [4, 0, 5]),  # up to its maximum
        ([9, 9, 9], [4, 2, 4]),  # a1 is over its capacity; a as a whole gets its 6
        ([9, 0, 9], [6, 0, 4]),  # what a2 leaves goes to a1 before b goes over its capacity
    ],
)
def test_sub_queues_come_before_other_queues(pending: list[int], shares: list[int]) -> None:
    """CapacityScheduler.md, Features: resources are shared among the sub-queues before others use what is free."""
    assert decide(YarnCapacity(), small(pending)).shares[:, 0].tolist() == shares


def test_preemption_gives_a_queue_its_capacity_back() -> None:
    """In one round a fifth of what is above is taken, and all of it where the factors are 1."""
    users = ["a", "b"]
    gangs = Gangs.of(["a"] * 10 + ["b"] * 6, [1] * 16, users=users, types=["T"], on=["T"] * 10 + [None] * 6)
    owed = Entitlements.of(users, ["T"], guarantee={"a": [5], "b": [5]}, gangs=gangs)
    market = Market.of([[1]] * 2, [10], users=users, types=["T"], entitlements=owed)
    assert decide(YarnCapacity(), market).shares[:, 0].tolist() == [10, 0]
    one, all_ = Fraction(1), YarnCapacity(True, Fraction(0), Fraction(1), Fraction(1))
    assert decide(all_, market).shares[:, 0].tolist() == [5, 5]
    assert decide(YarnCapacity(True, total_preemption_per_round=one), market).shares[:, 0].tolist() == [9, 1]
    assert decide(all_, market).evidence.stopped["g10"] == "'a' uses 10 T of 5"


def test_the_sample_cluster() -> None:
    folder = Path(str(files("fairopt.datasets") / "clusters" / "yarn"))
    market = yarn.read(*(folder / name for name in ("capacity-scheduler.xml", "scheduler.json"))).problem
    decision = decide(YarnCapacity(), market)
    assert decision.shares.tolist() == [[10, 0], [4, 3], [2, 5], [0, 0]]
    assert decision.evidence.waits["root.research.language h100 pending 4"] == "0 h100 free, and it takes 1"
