"""What the rule does faster decides as the plain form does, on random clusters; and the usage is that of who runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from drawn_seeds import seeds
from plain import plain_fits, plain_targets

from fairopt.models import Kueue
from fairopt.models.kueue import cycles, flavors
from fairopt.models.kueue import kueue as rule
from fairopt.models.kueue.preemption import targets_of
from fairopt.models.kueue.quotas import CohortQuotas
from fairopt.models.kueue.state import FlavorPreference, Preempts, Queueing, Rules, Search, State, Strategy
from fairopt.models.kueue.work import QueuedWork
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good

BOTH = (Strategy.FINAL_SHARE, Strategy.INITIAL_SHARE)


def cluster(dice: Random) -> Market:
    """Return up to eight ClusterQueues in a tree of up to four levels, with gangs that run and wait."""
    users, types = [f"q{at}" for at in range(dice.randint(1, 8))], ["A", "B", "C"][: dice.randint(1, 3)]
    group = {user: f"g{dice.randrange(4)}" for user in users if dice.random() < 0.95}
    group |= {name: dice.choice(["top", "middle"]) for name in sorted(set(group.values())) if dice.random() < 0.8}
    if "middle" in group.values():
        group["middle"] = "top"
    count, runs = dice.randint(0, 50), dice.randint(0, 25)
    on = [dice.choice(types) if at < runs else None for at in range(count)]
    cpu, past_use = dice.random() < 0.4, dice.random() < 0.3
    asking = [dice.choice(users) for _ in on]
    # each ClusterQueue has two LocalQueues
    local = [
        {"local_queue": f"{user}/{at % 2}", "local_used": str(at % 2 * 3), "local_adds": dice.choice("012")}
        for at, user in enumerate(asking)
    ]
    gangs = Gangs.of(
        asking,
        [dice.choice([1, 1, 2, 3, 4]) for _ in on],
        users=users,
        types=types,
        on=on,
        allowed=[None if each else dice.sample(types, dice.randint(1, len(types))) for each in on],
        tier=[dice.randrange(3) for _ in on],
        preemptible=[dice.random() < 0.85 for _ in on],
        since=[dice.randrange(5) for _ in on],
        other={"cpu": [dice.choice([0, 1, 2, 4]) for _ in on]} if cpu else None,
        settings=local if past_use else None,
    )
    flavors_of_cpu = dice.choice([types, ["any"]]) if cpu else []
    width = len(types) + len(flavors_of_cpu)
    quota = {user: [dice.choice([0, 1, 2, 4, 6]) for _ in range(width)] for user in users}
    nodes = [*users, *sorted(set(group.values()))]

    def total(node: str) -> list[int]:
        if node not in quota:
            inside = [total(child) for child, over in group.items() if over == node]
            quota[node] = [dice.choice([0, 0, 1, 3]) + sum(each) for each in zip(*inside, strict=True)]
        return quota[node]

    for node in nodes:
        total(node)
    inner = [node for node in nodes if node in group]
    owed = Entitlements.of(
        users,
        types,
        group=group,
        guarantee=quota,
        cap={
            name: [most + dice.choice([0, 1, 3, 99]) for most in quota[name]] for name in inner if dice.random() < 0.3
        },
        reserve={name: [dice.randint(0, most) for most in quota[name]] for name in inner if dice.random() < 0.3},
        borrow_weight={name: dice.choice([0, 1, 1, 2, "1/3"]) for name in nodes if dice.random() < 0.4},
        goods={Good("cpu", flavor): 20 for flavor in flavors_of_cpu},
        gangs=gangs,
    )
    return Market.of([[1] * len(types)] * len(users), [100] * len(types), users=users, types=types, entitlements=owed)


def options(dice: Random) -> Kueue:
    fair = dice.random() < 0.6
    return Kueue(
        fair_sharing=fair,
        strategies=dice.choice([BOTH, BOTH[:1], BOTH[1:]]),
        reclaim_within_cohort=dice.choice([Preempts.ANY, Preempts.ANY, Preempts.LOWER_PRIORITY, Preempts.NEVER]),
        within_cluster_queue=dice.choice([Preempts.NEVER, Preempts.LOWER_PRIORITY, Preempts.LOWER_OR_NEWER]),
        borrow_within_cohort=Preempts.NEVER if fair else dice.choice([Preempts.NEVER, Preempts.LOWER_PRIORITY]),
        max_priority_threshold=dice.choice([None, 0, 1]),
        when_can_borrow=dice.choice([*Search]),
        when_can_preempt=dice.choice([*Search]),
        preference=dice.choice([*FlavorPreference]),
        queueing=dice.choice([*Queueing]),
        prioritize_non_borrowing=dice.random() < 0.7,
        preempt_within_nominal=dice.random() < 0.6,
    )


def decided(policy: Kueue, market: Market) -> tuple[Any, ...]:
    shares, grounds = policy.compute(market, None)
    return shares.tolist(), grounds.order, grounds.waits, grounds.stopped, grounds.share


def simulating(form: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: form(*given[:-1], True)


#: Who waits for its preemptions can get nothing any more, since another went before it by past use.
OVERTAKEN = 171_504
#: Of a workload whose victims another one takes, the same flavor is asked for again, and the search stops there.
STOPS_AGAIN = 2_767


@pytest.mark.parametrize(
    "seeds", [[*range(60), OVERTAKEN, STOPS_AGAIN], pytest.param([*range(60, 3000)], marks=pytest.mark.slow)]
)
def test_decides_as_the_plain_form(seeds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = 0
    for seed in seeds:
        dice = Random(f"kueue {seed}")
        market, policy = cluster(dice), options(dice)
        fast = decided(policy, market)
        with monkeypatch.context() as patched:
            patched.setattr(flavors, "targets_of", plain_targets)
            patched.setattr(cycles.Cycles, "_fits", plain_fits)
            patched.setattr(cycles, "nominate", lambda state, work, _: flavors.assign(state, work))
            for each in ("_try", "_add_elsewhere"):  # each resource is simulated alone, also where that cannot matter
                patched.setattr(flavors, each, simulating(getattr(flavors, each)))
            assert decided(policy, market) == fast, seed
        stopped += len(fast[3])
    assert stopped > len(seeds) / 4


@pytest.mark.parametrize("seed", seeds(20, 60))
def test_afterwards_the_usage_is_that_of_who_runs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a ClusterQueue is beyond its limit already, so that less than nothing is held back for it."""
    grounds, seen = rule._grounds, []

    def compared(owed: Entitlements, gangs: Gangs, state: State, *rest: Any) -> DecisionReason:
        quotas = state.quotas
        before = [list(row) for row in quotas.usage]
        again, _ = rule.quotas_of(owed.running(gangs))
        seen.append(before == again.usage and quotas.borrowed == again.borrowed)
        return grounds(owed, gangs, state, *rest)

    monkeypatch.setattr(rule, "_grounds", compared)
    dice = Random(f"kueue {seed}")
    market, policy = cluster(dice), options(dice)
    policy.compute(market, None)
    assert seen == [True]


def test_one_resource_may_be_borrowed_while_another_is_preempted_for() -> None:
    """PreemptionOverBorrowing calls the one that fits and borrows the worse; the workload must preempt all the same."""
    goods = {Good("cpu", "A"): 4}
    gangs = Gangs.of(
        ["x", "x"], [0, 1], users=["x", "y"], types=["A"], on=["A", None], tier=[0, 1], other={"cpu": [4, 4]}
    )
    owed = Entitlements.of(
        ["x", "y"],
        ["A"],
        group={"x": "all", "y": "all"},
        guarantee={"x": [0, 4], "y": [1, 0], "all": [1, 4]},
        goods=goods,
        gangs=gangs,
    )
    market = Market.of([[1], [1]], [1], users=["x", "y"], types=["A"], entitlements=owed)
    policy = Kueue(
        within_cluster_queue=Preempts.LOWER_PRIORITY,
        preference=FlavorPreference.PREEMPTION,
        when_can_borrow=Search.TRY_NEXT,
    )
    shares, grounds = policy.compute(market, None)
    assert shares.tolist() == [[1], [0]]
    assert list(grounds.stopped) == ["g1"]


def test_what_is_known_for_one_queue_is_not_told_to_another_with_other_rules() -> None:
    quotas = CohortQuotas([3, 3, 3, -1], ["gpu"], [[0], [2], [2], [0]], [[None]] * 4, [[None]] * 4, [Fraction(1)] * 4)
    rules = [Rules(), Rules(), Rules(reclaim_within_cohort=Preempts.LOWER_PRIORITY)]
    state = State(quotas, rules.__getitem__, fair=True)
    state.add(QueuedWork("runs", 0, 0, 0, 0, {0: ([(0, 4)], [])}, flavor=0))
    asking = [QueuedWork(f"of {queue}", queue, 1, 1, queue, {0: ([(0, 2)], [])}) for queue in (1, 2)]
    found = [targets_of(state, work, [(0, 2)], {0}) for work in asking]
    assert [[target.work.name for target in each] for each in found] == [[], ["runs"]]
