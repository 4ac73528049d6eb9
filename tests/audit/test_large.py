"""Large clusters: nothing is done that nobody asked for, and nothing takes a time that grows with the square."""

from __future__ import annotations

import random

import pytest

from fairopt.audit import audit
from fairopt.models import Kueue
from fairopt.models.kueue.state import Preempts
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 200_000_000


def cluster(queues: int, running: int, pending: int, types: int = 10) -> Market:
    draw = random.Random(1)
    users, kinds = [f"q{i}" for i in range(queues)], [f"T{j}" for j in range(types)]
    groups = {user: f"g{i // 10}" for i, user in enumerate(users)}
    groups |= {f"g{i}": f"top{i // 10}" for i in range(-(-queues // 10))}
    count = running + pending
    on = [draw.choice(kinds) if i < running else None for i in range(count)]
    gangs = Gangs.of(
        [draw.choice(users) for _ in range(count)],
        [draw.choice([1, 1, 2, 4, 8]) for _ in range(count)],
        users=users,
        types=kinds,
        on=on,
        allowed=[None if each else draw.sample(kinds, draw.choice([1, 2])) for each in on],
        tier=[draw.randrange(3) for _ in range(count)],
        preemptible=[draw.random() < 0.8 for _ in range(count)],
    )
    guarantee = {user: [draw.choice([0, 4, 8, 16]) for _ in kinds] for user in users}
    owed = Entitlements.of(users, kinds, group=groups, guarantee=guarantee, gangs=gangs)
    capacity = [int(each) + 20 for each in owed.held.sum(axis=0)]
    return Market.of([[1] * types] * queues, capacity, users=users, types=kinds, entitlements=owed)


def test_of_many_users_only_what_is_asked_for_is_done() -> None:
    found = audit(cluster(201, 100, 100, types=2))
    assert (found.alternatives, found.verdicts) == ((), {})
    assert set(audit(cluster(201, 100, 100, types=2), properties=["cap_kept"]).verdicts) == {"cap_kept"}


@pytest.mark.slow
def test_two_thousand_queues_with_fifty_thousand_gangs_that_wait() -> None:
    market = cluster(2_000, 20_000, 50_000)
    with CountedSteps(STEPS):
        found = audit(market, importer="kueue")
    assert [each.policy for each in found.alternatives] == ["kueue"]
    assert found.guarantees


@pytest.mark.slow
@pytest.mark.parametrize("fair", [False, True])
def test_kueue_preempts_on_two_thousand_queues(fair: bool) -> None:
    market = cluster(2_000, 20_000, 50_000)
    policy = Kueue(fair_sharing=fair, reclaim_within_cohort=Preempts.ANY, within_cluster_queue=Preempts.LOWER_PRIORITY)
    with CountedSteps(STEPS):
        _, grounds = policy.compute(market, None)
    assert len(grounds.stopped) > 1_000
