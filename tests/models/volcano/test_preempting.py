"""Volcano's action "preempt": within a queue, by the priority of jobs and of pods, as few as are needed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairopt import allocate
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


def test_who_is_beyond_the_least_or_may_never_preempt_waits() -> None:
    for own in ({"job": "h", "beyond": "true"}, {"preempts": "false"}):
        rows = [("low", "A", 8, 1, True), ("high", "A", 4, 9, False, own)]
        assert not decided(cluster(rows)).stopped


def test_the_settings_say_which_actions_are_played_and_in_which_order() -> None:
    rows = [("low", "A", 8, 1, True), ("high", "A", 4, 9, False)]
    assert decided(cluster(rows, actions="allocate, preempt"), preempt=None).stopped
    assert not decided(cluster(rows, actions="allocate, reclaim"), preempt=None).stopped
    assert not decided(cluster(rows), preempt=None).stopped


def test_random_sessions_stop_nobody_without_need() -> None:
    dice, stopped = Random(5), 0
    for _ in range(300):
        gpus, memory = dice.randint(4, 12), dice.randint(4, 20)
        left, rows = [gpus, memory], []
        for at in range(dice.randint(1, 10)):
            size, takes, tier = dice.randint(0, 4), dice.randint(0, 5), dice.randint(0, 3)
            runs = dice.random() < 0.6 and size <= left[0] and takes <= left[1]
            left = [left[0] - size * runs, left[1] - takes * runs]
            rows.append((f"g{at}", dice.choice(USERS), size, takes, tier, runs, dice.random() < 0.8))
        gangs = Gangs.of(
            [row[1] for row in rows],
            [row[2] for row in rows],
            users=USERS,
            types=["H100"],
            names=[row[0] for row in rows],
            tier=[row[4] for row in rows],
            preemptible=[row[6] for row in rows],
            on=["H100" if row[5] else None for row in rows],
            other={"memory": [row[3] for row in rows]},
        )
        cap = {"A": [dice.randint(gpus // 2, gpus), memory]} if dice.random() < 0.3 else {}
        owed = Entitlements.of(USERS, ["H100"], goods={Good("memory", "all"): memory}, gangs=gangs, cap=cap)
        market = Market.of([[1], [1]], [gpus], users=USERS, types=["H100"], entitlements=owed)
        plain, found = decided(market, preempt=False), decided(market)
        new = set(found.order) - set(plain.order)
        by_name = {row[0]: row for row in rows}
        assert set(plain.order) <= set(found.order)  # what starts beside others is not stopped again
        assert not found.stopped or new
        for name in found.stopped:
            _, queue, _, _, tier, runs, may = by_name[name]
            assert runs
            assert may
            assert any(by_name[each][1] == queue and by_name[each][4] > tier for each in new)
        held = sum(by_name[name][2] for name, on in zip(gangs.names, found.gangs.on, strict=True) if on >= 0)
        used = sum(by_name[name][3] for name, on in zip(gangs.names, found.gangs.on, strict=True) if on >= 0)
        assert held <= gpus
        assert used <= memory
        if len(new) == 1:  # then whoever was stopped could not be left
            (name,) = new
            for victim in found.stopped:
                more = held + by_name[victim][2], used + by_name[victim][3]
                queue = by_name[name][1]
                of_queue = sum(
                    by_name[each][2]
                    for each, on in zip(gangs.names, found.gangs.on, strict=True)
                    if on >= 0 and by_name[each][1] == queue
                )
                limit = cap.get(queue, [gpus])[0]
                assert more[0] > gpus or more[1] > memory or of_queue + by_name[victim][2] > limit
        stopped += len(found.stopped)
    assert stopped > 30


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
