"""Armada's round: classes across queues, preemption to fair share and by urgency; beside it its code on one node."""

from __future__ import annotations

from fractions import Fraction as F
from random import Random
from typing import Any

import pytest
from one_node import Job, runs_after

from fairopt import allocate
from fairopt.errors import BadInput
from fairopt.models.armada.armada import Armada
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 60_000_000
#: Jobs of two queues: queue, CPUs, priority of the class, preemptible, running.
Row = tuple[str, int, int, bool, bool]


def cluster(rows: list[Row], cpus: int = 8, settings: Any = None, cap: Any = None) -> Market:
    """Return a pool of CPUs with jobs, named by queue and place: a1, a2, b3."""
    users = ("A", "B", "C")
    gangs = Gangs.of(
        [row[0] for row in rows],
        [row[1] for row in rows],
        users=users,
        types=["cpu"],
        names=[f"{row[0].lower()}{at}" for at, row in enumerate(rows, start=1)],
        tier=[row[2] for row in rows],
        preemptible=[row[3] for row in rows],
        on=["cpu" if row[4] else None for row in rows],
    )
    owed = Entitlements.of(users, ["cpu"], gangs=gangs, settings={"": settings or {}}, cap=cap or {})
    return Market.of([[1]] * 3, [cpus], users=users, types=["cpu"], entitlements=owed)


def decided(market: Market, **options: Any) -> DecisionReason:
    decision = allocate(Armada(**options), market, exact=True)
    assert isinstance(decision.evidence, DecisionReason)
    return decision.evidence


def waits(queue: str, cpus: int, tier: int = 0, *, preemptible: bool = True) -> Row:
    return queue, cpus, tier, preemptible, False


def runs(queue: str, cpus: int, tier: int = 0, *, preemptible: bool = True) -> Row:
    return queue, cpus, tier, preemptible, True


def test_the_higher_class_goes_first_whatever_its_queue_holds() -> None:
    found = decided(cluster([waits("A", 4), waits("B", 4, 1), waits("B", 4, 1)]))
    assert found.order == ("b2", "b3")
    assert found.waits == {"a1": "cpu: needs 4, 0 are free"}


def test_who_is_above_its_fair_share_is_stopped_for_who_is_below() -> None:
    rows = [*[runs("A", 1)] * 8, waits("B", 4)]
    found = decided(cluster(rows))
    assert sorted(found.stopped) == ["a5", "a6", "a7", "a8"]
    assert found.order == ("a1", "a2", "a3", "a4", "b9")
    assert found.stopped["a8"] == (
        "preemption to fair share: 'A' held 1 of the pool, its fair share is 0.5; 'b9' of 'B' takes its place"
    )


def test_who_holds_no_more_than_the_protected_part_of_its_fair_share_is_not_stopped() -> None:
    rows = [*[runs("A", 1)] * 3, *[runs("B", 1, preemptible=False)] * 5, waits("C", 1)]
    assert not decided(cluster(rows)).stopped  # A's demand is 3/8 of the pool, and it is given that
    assert set(decided(cluster(rows), protected_fraction_of_fair_share=F(1, 2)).stopped) == {"a3"}
    assert not decided(cluster(rows, settings={"protectedFractionOfFairShare": "1"})).stopped
    assert decided(cluster(rows, settings={"protectedFractionOfFairShare": "0"})).stopped


def test_what_is_protected_yields_to_a_more_urgent_job() -> None:
    rows = [*[runs("A", 1)] * 4, *[runs("B", 1)] * 4, waits("C", 2, 1)]
    found = decided(cluster(rows), protected_fraction_of_fair_share=F(5))
    assert set(found.stopped) == {"a4", "b8"}  # of the lowest class, from whoever has most
    assert found.stopped["a4"] == (
        "urgency-based preemption: 'c9' of 'C', of priority 1, took its place, and it has priority 0"
    )


def test_classes_that_are_not_preemptible_stay_and_the_lowest_class_goes_first() -> None:
    rows = [runs("A", 4, preemptible=False), runs("B", 2, 1), runs("B", 2, 0), waits("C", 2, 2)]
    assert set(decided(cluster(rows), protected_fraction_of_fair_share=F(5)).stopped) == {"b3"}
    only = [runs("A", 4, preemptible=False), runs("B", 4, preemptible=False), waits("C", 2, 2)]
    found = decided(cluster(only))
    assert not found.stopped
    assert found.waits["c3"] == "cpu: needs 2, 0 are free"


def test_as_few_go_as_are_needed_and_nobody_goes_for_what_does_not_fit() -> None:
    rows = [runs("A", 3), runs("B", 3), waits("C", 9, 1), waits("C", 4, 1)]
    found = decided(cluster(rows), protected_fraction_of_fair_share=F(5))
    assert len(found.stopped) == 1
    assert "c3" in found.waits


def test_a_job_that_runs_comes_before_a_better_one_that_waits_in_its_queue() -> None:
    market = cluster([waits("A", 8), runs("A", 8)])
    assert not decided(market, protected_fraction_of_fair_share=F(0)).stopped


def test_a_limit_is_for_new_jobs() -> None:
    rows = [runs("A", 3), waits("A", 3)]
    found = decided(cluster(rows, cap={"A": [2]}), protected_fraction_of_fair_share=F(0))
    assert not found.stopped
    assert found.waits["a2"] == "cpu: needs 3, 'A' has 3 of at most 2"


def test_larger_jobs_go_first_below_the_fair_share_where_that_is_configured() -> None:
    rows = [waits("A", 1), waits("A", 1), waits("B", 4), waits("B", 1)]
    assert decided(cluster(rows)).order == ("a1", "a2", "b3", "b4")
    assert decided(cluster(rows), enable_prefer_large_job_ordering=True).order == ("b3", "a1", "a2", "b4")
    assert decided(cluster(rows, settings={"enablePreferLargeJobOrdering": "true"})).order[0] == "b3"


def test_types_of_one_resource_count_together() -> None:
    gangs = Gangs.of(["A", "B"], [3, 3], users=["A", "B"], types=["K80", "V100"], allowed=[["K80"], None])
    for settings, share in (({}, F(3, 4)), ({"resource": '{"K80": "gpu", "V100": "gpu"}'}, F(3, 24))):
        owed = Entitlements.of(["A", "B"], ["K80", "V100"], gangs=gangs, settings={"": settings})
        market = Market.of([[1, 2]] * 2, [4, 20], users=["A", "B"], types=["K80", "V100"], entitlements=owed)
        assert decided(market).share["A"] == share


def test_settings_that_are_none_are_refused() -> None:
    for text in ("[1]", "{", '{"K80": 1}'):
        with pytest.raises(BadInput, match="resource"):
            decided(cluster([waits("A", 1)], settings={"resource": text}))
    with pytest.raises(BadInput, match="protectedFractionOfFairShare"):
        decided(cluster([waits("A", 1)], settings={"protectedFractionOfFairShare": "much"}))


@pytest.mark.parametrize(("classes", "sizes"), [(1, (1, 4)), (2, (1, 1)), (3, (1, 4))])
def test_a_round_on_one_node_is_as_in_the_code(classes: int, sizes: tuple[int, int]) -> None:
    """Every job needs something of each resource: else the code stops some that have nothing of what is short."""
    dice, stopped = Random(classes), 0
    for _ in range(300):
        total = dice.randint(3, 10), dice.randint(3, 10)
        preemptible = [dice.random() < 0.6 for _ in range(classes)]
        jobs, left = [], total
        for _ in range(dice.randint(2, 11)):
            needs = dice.randint(*sizes), dice.randint(*sizes)
            runs = dice.random() < 0.55 and all(need <= has for need, has in zip(needs, left, strict=True))
            left = (left[0] - needs[0] * runs, left[1] - needs[1] * runs)
            tier = dice.randrange(classes)
            jobs.append(Job(dice.randrange(3), needs, tier, preemptible[tier], runs))
        jobs.sort(key=lambda job: not job.runs)  # what runs is older
        weight, protected = [dice.randint(1, 3) for _ in range(3)], dice.choice([F(0), F(1, 2), F(1), F(5)])
        gangs = Gangs.of(
            ["ABC"[job.queue] for job in jobs],
            [job.needs[0] for job in jobs],
            users=["A", "B", "C"],
            types=["cpu"],
            tier=[job.tier for job in jobs],
            preemptible=[job.preemptible for job in jobs],
            on=["cpu" if job.runs else None for job in jobs],
            other={"memory": [job.needs[1] for job in jobs]},
        )
        weights, goods = dict(zip("ABC", weight, strict=True)), {Good("memory", "all"): total[1]}
        owed = Entitlements.of(["A", "B", "C"], ["cpu"], goods=goods, gangs=gangs, borrow_weight=weights)
        market = Market.of([[1]] * 3, [total[0]], users=["A", "B", "C"], types=["cpu"], entitlements=owed)
        found = decided(market, protected_fraction_of_fair_share=protected)
        assert {at for at, on in enumerate(found.gangs.on) if on >= 0} == runs_after(jobs, total, weight, protected)
        stopped += len(found.stopped)
    assert stopped > 30


@pytest.mark.slow
def test_many_queues_and_classes_are_decided_in_few_steps() -> None:
    dice = Random(1)
    users, count = [f"u{i:04}" for i in range(1000)], 20_000
    owners = [dice.choice(users) for _ in range(count)]
    running = [dice.random() < 0.4 for _ in owners]
    gangs = Gangs.of(
        owners,
        [1 if on else dice.choice([1, 2, 4]) for on in running],
        users=users,
        types=["H100"],
        tier=[dice.randint(0, 1) if on else dice.randint(0, 3) for on in running],
        on=["H100" if on else None for on in running],
    )
    owed = Entitlements.of(users, ["H100"], gangs=gangs)
    market = Market.of([[1]] * 1000, [8200], users=users, types=["H100"], entitlements=owed)
    with CountedSteps(STEPS):
        found = decided(market)
    assert len(found.stopped) > 1000
