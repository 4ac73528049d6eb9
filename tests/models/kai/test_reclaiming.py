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
from fairopt.models.kai.reclaiming import Reach, trial, turns_of
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


def cycles() -> list[Cycle]:
    found = [Cycle(pool(seed), 1) for seed in range(120)]
    for cycle in found:
        cycle.run()
    return found


def test_what_ends_as_at_an_earlier_time_is_decided_as_if_it_were_played_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = "fairopt.models.kai.reclaiming._Trial._changed"
    changed, turns = resolve_name(asked), list[int]()

    def counted(trial: Any, queue: int) -> None:
        turns.append(queue)
        changed(trial, queue)

    def forgetful(trial: Any, queue: int) -> None:
        trial._seen.clear()
        counted(trial, queue)

    monkeypatch.setattr(asked, counted)
    found, count = [(list(cycle.started), cycle.stopped) for cycle in cycles()], len(turns)
    monkeypatch.setattr(asked, forgetful)
    assert found == [(list(cycle.started), cycle.stopped) for cycle in cycles()]
    assert any(stopped for _, stopped in found)
    assert len(turns) > 2 * count


def test_jobs_that_wait_ahead_are_turns_of_their_own_where_they_change_whose_turn_it_is() -> None:
    """Of some jobs that take 1, 2 or 3 some wait; who takes no more than the one before it is asked at once."""

    def asked(said: str) -> list[tuple[int, int]]:
        """Return by place whose takes count, and who is asked; "w2" waits, and "2" is one of its own."""
        row = [
            QueuedGang(place, each, 0, (int(each.strip("w")),), place=place) for place, each in enumerate(said.split())
        ]
        own = [each for each in row if not each.name.startswith("w")]
        return [(each.place, job.place) for each, job in turns_of(own, [each for each in row if each not in own])]

    assert asked("1 2") == [(0, 0), (1, 1)]
    assert asked("w3 1") == asked("w1 1") == [(0, 1)]
    assert asked("w1 3") == [(0, 0), (1, 1)]
    assert asked("w1 w2 2 1 w3") == [(1, 2), (3, 3)]


@pytest.mark.parametrize("actions", [("reclaim", "allocate"), ("preempt", "allocate", "reclaim")])
def test_what_another_action_started_is_not_allocated_again(actions: tuple[str, ...]) -> None:
    started = 0
    for seed in range(60):
        cycle = Cycle(pool(seed), 1)
        cycle.run(actions)
        assert not set(cycle.started) & {job.number for job in cycle.waiting}
        started += len(cycle.started)
    assert started > 20


def test_a_trial_that_fails_leaves_the_pool_as_it_was() -> None:
    failed = 0
    for seed in range(120):
        own = pool(seed)
        for job in own.waiting:
            victims = [each for each in own.running if each.queue != job.queue][-3:]
            for each in victims:
                own.stop(each)
            before = list(own.free), list(own.allocated), list(own.fixed)
            play = trial(own, job, lambda jobs: turns_of(jobs, []), lambda lost: False)
            assert play(victims) is None
            assert (list(own.free), own.allocated, own.fixed) == before
            failed += 1
            for each in victims:
                own.start(each)
    assert failed > 200
