"""Whom a reclaiming job of KAI's cannot do without, against every choice of those that are lost."""

from __future__ import annotations

from itertools import combinations
from pkgutil import resolve_name
from random import Random
from typing import Any

import pytest

from fairopt.models.common.holdings import QueuedGang
from fairopt.models.kai.cycle import Cycle
from fairopt.models.kai.pool import NodePool
from fairopt.models.kai.reclaiming import Reach
from fairopt.problem import Entitlements, Gangs, Market


def pool(seed: int) -> NodePool:
    draw = Random(seed)
    users = [f"q{i}" for i in range(6)]
    groups = {user: f"g{i // 2}" for i, user in enumerate(users)} | {"g0": "top", "g1": "top"}
    owner = [draw.choice(users) for _ in range(16)]
    gangs = Gangs.of(
        owner,
        [draw.choice([1, 2, 3]) for _ in owner],
        users=users,
        types=["T"],
        on=["T" if at < 12 else None for at in range(16)],
        tier=[draw.randrange(2) for _ in owner],
    )
    guarantee = {user: [draw.randint(0, 3)] for user in users}
    owed = Entitlements.of(users, ["T"], group=groups, guarantee=guarantee, gangs=gangs)
    market = Market.of([[1]] * 6, [int(owed.held.sum())], users=users, types=["T"], entitlements=owed)
    return NodePool(market, owed, gangs, 0, 1)


def test_those_that_are_spared_are_in_no_choice_that_is_allowed() -> None:
    spared = allowed = 0
    for seed in range(120):
        own = pool(seed)
        for job in own.waiting[:2]:
            others = [each for each in own.running if each.queue != job.queue]
            taken = Random(seed).sample(others, min(5, len(others)))
            reach = Reach(own, job, 1)
            for each in taken:
                own.stop(each)
            kept = reach.spared(taken)
            for count in range(1, len(taken) + 1):
                for lost in combinations(taken, count):
                    back = [each for each in taken if each not in lost]
                    for each in back:
                        own.start(each)
                    fine = reach.bounded(list(lost))
                    for each in back:
                        own.stop(each)
                    assert not (fine and set(lost) & set(kept))
                    allowed += fine
            for each in taken:
                own.start(each)
            spared += len(kept)
    assert spared > 50
    assert allowed > 50


def test_what_ends_as_the_last_time_is_decided_as_if_it_were_played_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def played() -> list[tuple[list[int], dict[int, str]]]:
        cycles = [Cycle(pool(seed), 1) for seed in range(120)]
        for cycle in cycles:
            cycle.run()
        return [(list(cycle.started), cycle.stopped) for cycle in cycles]

    alike: list[bool] = []
    asked = "fairopt.models.kai.reclaiming._Trial._as_then"
    as_then = resolve_name(asked)

    def noted(trial: Any, kept: set[QueuedGang]) -> bool:
        alike.append(as_then(trial, kept))
        return alike[-1]

    monkeypatch.setattr(asked, noted)
    found = played()
    monkeypatch.setattr(asked, lambda trial, kept: False)
    assert found == played()
    assert any(stopped for _, stopped in found)
    assert any(alike)
