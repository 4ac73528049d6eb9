"""Volcano's action "preempt": within a queue, by the priority of jobs and of pods, as few as are needed."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from fairopt import allocate
from fairopt.errors import BadInput
from fairopt.models.volcano.capacity import VolcanoCapacity
from fairopt.models.volcano.proportion import VolcanoProportion
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.testing.counted_steps import CountedSteps

USERS = ("A", "B")
#: The most steps: what takes time that grows with the square takes more.
STEPS = 5_000_000


def cluster(
    rows: list[tuple[Any, ...]], gpus: int = 8, cap: Any = None, actions: str = "", asked: str = "priority", **said: Any
) -> Market:
    """Return a cluster with gangs: name, queue, GPUs, priority, whether it runs, and settings."""
    names, users, sizes, tiers, runs, settings = zip(*((*row, {})[:6] for row in rows), strict=True)
    gangs = Gangs.of(
        users, sizes, users=USERS, types=["H100"], names=names, tier=tiers, settings=settings,
        on=["H100" if each else None for each in runs], **said,
    )  # fmt: skip
    own = {"": {"scheduler": "volcano", "actions": actions, "preemptable": asked}} if actions else {}
    owed = Entitlements.of(USERS, ["H100"], gangs=gangs, cap=cap or {}, settings=own)
    return Market.of([[1], [1]], [gpus], users=USERS, types=["H100"], entitlements=owed)


def decided(market: Market, policy: Any = VolcanoCapacity, **options: Any) -> DecisionReason:
    evidence = allocate(policy(**{"preempt": True, **options}), market, exact=True).evidence
    assert isinstance(evidence, DecisionReason)
    return evidence


@pytest.mark.parametrize("policy", [VolcanoCapacity, VolcanoProportion])
def test_a_job_takes_the_place_of_one_of_lower_priority_in_its_queue(policy: Any) -> None:
    rows = [("low", "A", 4, 1, True), ("mid", "A", 4, 5, True), ("high", "A", 4, 9, False)]
    found = decided(cluster(rows), policy)
    assert found.stopped == {"low": "'high' preempts it within 'A': it has priority 9, and this 1"}
    assert found.order == ("high",)
    assert not decided(cluster(rows), policy, preempt=False).stopped


def test_equal_priorities_and_other_queues_are_left_alone() -> None:
    rows = [("same", "A", 4, 9, True), ("other", "B", 4, 1, True), ("high", "A", 4, 9, False)]
    found = decided(cluster(rows))
    assert not found.stopped
    assert "high" in found.waits


def test_what_may_not_be_stopped_stays() -> None:
    rows = [("low", "A", 4, 1, True), ("lower", "A", 4, 0, True), ("high", "A", 4, 9, False)]
    assert set(decided(cluster(rows, preemptible=[True, False, True])).stopped) == {"low"}


def test_a_queue_at_its_limit_makes_room_for_itself() -> None:
    rows = [("low", "A", 3, 1, True), ("high", "A", 3, 9, False)]
    assert set(decided(cluster(rows, cap={"A": [4]})).stopped) == {"low"}
    assert not decided(cluster(rows, cap={"A": [6]})).stopped  # both fit
    assert not decided(cluster([*rows[:1], ("high", "A", 5, 9, False)], cap={"A": [4]})).stopped  # it never fits


def test_no_more_are_stopped_than_are_needed() -> None:
    rows = [("small", "A", 1, 1, True), ("large", "A", 7, 2, True), ("high", "A", 7, 9, False)]
    assert set(decided(cluster(rows)).stopped) == {"large"}


def test_pods_beyond_the_least_of_a_group_yield_where_the_plugin_gang_is_asked() -> None:
    group = {"job": "low"}
    rows = [
        ("low", "A", 4, 1, True, group),
        ("low+1", "A", 2, 1, True, {**group, "beyond": "true", "priority": "5"}),
        ("low+2", "A", 2, 1, True, {**group, "beyond": "true", "priority": "7"}),
        ("high", "A", 2, 9, False),
    ]
    assert set(decided(cluster(rows)).stopped) == {"low"}  # as configured by default, gang is not asked
    found = decided(cluster(rows, actions="allocate, preempt", asked="gang, priority"), preempt=None)
    assert set(found.stopped) == {"low+1"}  # of a group the pods of the lowest priority


def test_a_priority_that_is_no_number_is_refused() -> None:
    rows = [("low", "A", 8, 1, True, {"priority": "high"}), ("new", "A", 8, 9, False)]
    with pytest.raises(BadInput, match="settings of a gang, priority: got 'high', not a number"):
        decided(cluster(rows, actions="allocate, preempt"), preempt=None)


def test_who_is_beyond_the_least_or_may_never_preempt_waits() -> None:
    for own in ({"job": "h", "beyond": "true"}, {"preempts": "false"}):
        rows = [("low", "A", 8, 1, True), ("high", "A", 4, 9, False, own)]
        assert not decided(cluster(rows)).stopped


def test_the_settings_say_which_actions_are_played_and_in_which_order() -> None:
    rows = [("low", "A", 8, 1, True), ("high", "A", 4, 9, False)]
    assert decided(cluster(rows, actions="allocate, preempt"), preempt=None).stopped
    assert not decided(cluster(rows, actions="allocate, reclaim"), preempt=None).stopped
    assert not decided(cluster(rows), preempt=None).stopped


class Pod(NamedTuple):
    """A job of one pod: its queue, what it needs, its priority, whether it runs, and whether it may be stopped."""

    queue: str
    needs: tuple[int, int]
    tier: int
    runs: bool
    stops: bool


def after(pods: list[Pod], running: set[int], total: tuple[int, int], limit: dict[str, int]) -> set[int]:
    """Return which pods run after the action on one node, as SelectVictimsOnNode has it: slow, and independent.

    ``running``: those that run after the action "allocate"; ``limit``: of each queue, of the first resource.
    """

    def fits(on: set[int], number: int) -> bool:
        own = pods[number]
        free = [there - sum(pods[each].needs[k] for each in on) for k, there in enumerate(total)]
        held = sum(pods[each].needs[0] for each in on if pods[each].queue == own.queue)
        return own.needs[0] <= free[0] and own.needs[1] <= free[1] and held + own.needs[0] <= limit[own.queue]

    on, new = set(running), set[int]()
    waiting = sorted(set(range(len(pods))) - on, key=lambda each: (pods[each].queue, -pods[each].tier, each))
    for number in waiting:
        own = pods[number]
        able = [
            each
            for each in on - new
            if pods[each].runs and pods[each].stops and pods[each].queue == own.queue and pods[each].tier < own.tier
        ]
        left, taken = set(on), list[int]()
        for each in sorted(able, key=lambda each: (pods[each].tier, -each)):
            if fits(left, number):
                break
            left.discard(each)
            taken.append(each)
        if not able or not fits(left, number):
            continue
        for each in reversed(taken):
            left |= {each} if fits(left | {each}, number) else set()
        on = left | {number}
        new.add(number)
    return on


def test_sessions_on_one_node_are_as_in_the_code() -> None:
    dice, stopped = Random(5), 0
    for _ in range(300):
        total = left = dice.randint(4, 14), dice.randint(4, 14)
        pods = []
        for _ in range(dice.randint(2, 14)):
            needs = dice.randint(1, 4), dice.randint(1, 4)
            runs = dice.random() < 0.6 and needs[0] <= left[0] and needs[1] <= left[1]
            left = (left[0] - needs[0] * runs, left[1] - needs[1] * runs)
            pods.append(Pod(dice.choice(USERS), needs, dice.randint(0, 3), runs, dice.random() < 0.85))
        pods.sort(key=lambda pod: not pod.runs)  # what runs is older
        held = sum(pod.needs[0] for pod in pods if pod.queue == "A" and pod.runs)
        limit = {"A": max(held, dice.randint(2, total[0])), "B": total[0]}
        gangs = Gangs.of(
            [pod.queue for pod in pods],
            [pod.needs[0] for pod in pods],
            users=USERS,
            types=["H100"],
            tier=[pod.tier for pod in pods],
            preemptible=[pod.stops for pod in pods],
            on=["H100" if pod.runs else None for pod in pods],
            other={"memory": [pod.needs[1] for pod in pods]},
        )
        goods, cap = {Good("memory", "all"): total[1]}, {"A": [limit["A"], total[1]]}
        owed = Entitlements.of(USERS, ["H100"], goods=goods, gangs=gangs, cap=cap)
        market = Market.of([[1], [1]], [total[0]], users=USERS, types=["H100"], entitlements=owed)
        plain, found = (
            {at for at, on in enumerate(each.gangs.on) if on >= 0}
            for each in (decided(market, preempt=False), decided(market))
        )
        assert found == after(pods, plain, total, limit)
        stopped += len(plain - found)
    assert stopped > 100


def test_one_queue_of_many_gangs_is_decided_in_few_steps() -> None:
    dice = Random(1)
    sizes = [dice.choice([1, 2, 4]) for _ in range(6_000)]
    gangs = Gangs.of(
        ["A"] * 6_000, sizes, users=USERS, types=["H100"], tier=[dice.randint(0, 3) for _ in sizes],
        on=["H100"] * 2_000 + [None] * 4_000,
    )  # fmt: skip
    owed = Entitlements.of(USERS, ["H100"], gangs=gangs)
    market = Market.of([[1], [1]], [sum(sizes[:2_000])], users=USERS, types=["H100"], entitlements=owed)
    with CountedSteps(STEPS):
        found = decided(market)
    assert len(found.stopped) > 800
