"""Kueue's rule on markets: the stories, the tournament, waits and their reasons, what it refuses, and loops."""

from __future__ import annotations

from fractions import Fraction
from importlib.resources import files
from random import Random
from typing import Any

import pytest
from drawn_seeds import seeds

from fairopt import allocate
from fairopt.errors import BadInput, NotCapable
from fairopt.importing.kueue import read
from fairopt.models import Kueue
from fairopt.models.kueue.cycles import Cycles
from fairopt.models.kueue.flavors import Assignment, Mode
from fairopt.models.kueue.quotas import MOST_SHARE, CohortQuotas
from fairopt.models.kueue.state import Preempts, Rules, Search, State, Strategy, Target
from fairopt.models.kueue.work import QueuedWork
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good

SAMPLES = files("fairopt.datasets") / "clusters" / "kueue"
FAIR = Kueue(fair_sharing=True, reclaim_within_cohort=Preempts.ANY)


def market(
    quota: dict[str, list[int]],
    asked: list[tuple[str, int, str | None]],
    types: tuple[str, ...] = ("A", "B"),
    *,
    tier: list[int] | None = None,
    allowed: list[list[str] | None] | None = None,
    other: dict[str, list[object]] | None = None,
    **owed: Any,
) -> Market:
    users = list(quota)
    gangs = Gangs.of(
        [user for user, _, _ in asked],
        [gpus for _, gpus, _ in asked],
        users=users,
        types=types,
        on=[on for _, _, on in asked],
        tier=tier,
        allowed=allowed,
        other=other,
    )
    entitled = Entitlements.of(
        users, types, guarantee=quota, gangs=gangs, **{"group": dict.fromkeys(users, "all")} | owed
    )
    capacity = [max(1, sum(row[at] for row in quota.values())) for at in range(len(types))]
    return Market.of([[1] * len(types)] * len(users), capacity, users=users, types=types, entitlements=entitled)


def play(policy: Kueue, given: Market) -> tuple[list[list[int]], DecisionReason]:
    decision = allocate(policy, given)
    assert isinstance(decision.evidence, DecisionReason)
    return decision.shares.tolist(), decision.evidence


def test_story_3_by_the_sample() -> None:
    given = read(SAMPLES / "story3.yaml").problem
    assert play(FAIR, given)[0] == [[0], [30], [30], [90], [150]]


def test_the_status_of_the_sample_has_the_shares_that_the_rule_computes() -> None:
    found = read(SAMPLES / "cluster.json")
    owed = found.problem.entitlements
    assert owed is not None
    running = found.problem.entitlements.gangs.select([at for at, on in enumerate(owed.gangs.on) if on >= 0])
    given = Market.of(
        found.problem.speedup,
        found.problem.capacity,
        users=owed.users,
        types=owed.types,
        entitlements=owed.running(running),
    )
    stated = play(FAIR, given)[1].stated["weightedShare"]
    assert stated == {name: own["weightedShare"] for name, own in found.declared.items()}
    assert stated["nlp"] == 167


def test_classic_admits_who_need_not_borrow_first_then_priority_then_age() -> None:
    # 4 free; x asked first and would borrow, y and z need not, z has the higher priority
    given = market(
        {"x": [0], "y": [2], "z": [2]}, [("x", 2, None), ("y", 2, None), ("z", 2, None)], ("A",), tier=[9, 0, 1]
    )
    shares, grounds = play(Kueue(), given)
    assert grounds.order == ("g3", "g2")
    assert shares == [[0], [2], [2]]
    assert grounds.waits == {"g1": "A: asks for 2, 0 left; 'x' uses 0 of a quota of 0"}


def test_limits_bind() -> None:
    asked = [("x", 1, None)] * 9
    quota = {"x": [2], "y": [6]}
    assert play(Kueue(), market(quota, asked, ("A",)))[0][0] == [8]
    assert play(Kueue(), market(quota, asked, ("A",), cap={"x": [5]}))[0][0] == [5]
    assert play(Kueue(), market(quota, asked, ("A",), reserve={"y": [5]}))[0][0] == [3]
    assert play(Kueue(), market(quota, asked, ("A",), group={}))[0][0] == [2], "nothing is lent without a Cohort"


def test_a_gang_takes_the_first_flavor_and_searches_on_where_told() -> None:
    quota = {"x": [2, 2], "y": [4, 0]}
    given = market(quota, [("x", 2, None), ("x", 2, None)])
    assert play(Kueue(), given)[0][0] == [4, 0], "it may borrow A"
    assert play(Kueue(when_can_borrow=Search.TRY_NEXT), given)[0][0] == [2, 2], "B needs no borrowing"
    only_b = market(quota, [("x", 2, None)], allowed=[["B"]])
    assert play(Kueue(), only_b)[0][0] == [0, 2]


def test_other_resources_bind_too() -> None:
    goods = {Good("cpu", "A"): 8, Good("memory", "any"): 64}
    quota = {"x": [8, 0, 8, 32], "y": [0, 0, 0, 32]}
    given = market(
        {name: row[:2] for name, row in quota.items()},
        [("x", 2, None)] * 4,
        other={"cpu": [4] * 4, "memory": ["0.5"] * 4},
        goods=goods,
    )
    owed = given.entitlements
    assert owed is not None
    full = Entitlements.of(
        owed.users, owed.types, guarantee=quota, gangs=owed.gangs, goods=goods, group=dict.fromkeys(owed.users, "all")
    )
    shares, grounds = play(
        Kueue(), Market.of([[1, 1]] * 2, [8, 1], users=owed.users, types=owed.types, entitlements=full)
    )
    assert shares[0] == [4, 0]
    assert grounds.waits["g3"].startswith("cpu:A: asks for 4, 0 left")


def test_preempted_gangs_are_named_with_the_reason() -> None:
    given = market({"x": [4], "y": [0]}, [("y", 4, "A"), ("x", 4, None)], ("A",))
    assert play(Kueue(), given)[0] == [[0], [4]]
    shares, grounds = play(FAIR, given)
    assert shares == [[4], [0]]
    assert grounds.stopped == {"g1": "stopped for 'g2' of 'x': reclamation within the cohort"}
    fixed = Gangs.of(["y", "x"], [4, 4], users=["x", "y"], types=["A"], on=["A", None], preemptible=[False, True])
    owed = Entitlements.of(["x", "y"], ["A"], guarantee={"x": [4]}, group={"x": "all", "y": "all"}, gangs=fixed)
    kept = Market.of([[1], [1]], [4], users=["x", "y"], types=["A"], entitlements=owed)
    assert play(FAIR, kept)[0] == [[0], [4]]


def test_a_circle_of_preemptions_ends_and_is_named() -> None:
    """Two queues with equal shares by GPUs, and one CPU that both want."""
    quota = {"x": [0, 1], "y": [0, 1]}
    gangs = Gangs.of(
        ["x", "y", "x", "y"],
        [5, 5, 0, 0],
        users=["x", "y"],
        types=["A"],
        on=["A", "A", None, None],
        tier=[9, 9, 0, 0],
        other={"cpu": [1, 1, 1, 1]},
    )
    owed = Entitlements.of(
        ["x", "y"],
        ["A"],
        guarantee={**quota, "all": [10, 3]},
        group={"x": "all", "y": "all"},
        goods={Good("cpu", "A"): 3},
        gangs=gangs,
    )
    given = Market.of([[1], [1]], [10], users=["x", "y"], types=["A"], entitlements=owed)
    _, grounds = play(FAIR, given)
    assert {name: str(share) for name, share in grounds.share.items()} == {"x": "500", "y": "500", "all": "0"}
    assert "circle" in "".join(grounds.waits.values())


def test_the_same_preempted_three_times_or_any_twelve_times_are_a_circle() -> None:
    quotas = CohortQuotas([-1], ["gpu"], [[1]], [[None]], [[None]], [Fraction(1)])
    state = State(quotas, lambda _: Rules(), False)
    first, second, *others = (QueuedWork(f"w{number}", 0, 0, 0, number, {}) for number in range(14))
    same = [state.goes_round(first, [Target(second, "")]) for _ in range(3)]
    assert same == [False, False, True]
    assert [state.goes_round(second, [Target(other, "")]) for other in others] == [False] * 11 + [True]
    assert state.barred == {first.number, second.number}
    assert state.since_circle == {0: 12}


@pytest.mark.parametrize(
    "options",
    [
        {"reclaim_within_cohort": Preempts.LOWER_OR_NEWER},
        {"within_cluster_queue": Preempts.ANY},
        {"fair_sharing": True, "borrow_within_cohort": Preempts.LOWER_PRIORITY},
        {"strategies": (Strategy.INITIAL_SHARE, Strategy.FINAL_SHARE)},
    ],
)
def test_options_that_kueue_refuses_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"got .*(Give|leave out)"):
        Kueue(**options)


def test_what_no_cohort_says_is_refused() -> None:
    given = market({"x": [4]}, [], ("A",), group={"x": "all"}, cap={"x": [2]})
    with pytest.raises(NotCapable, match="a cap below it"):
        allocate(Kueue(), given)


def test_weight_zero_has_an_infinite_share_and_goes_last() -> None:
    given = market(
        {"x": [0], "y": [0], "z": [2]}, [("x", 1, None), ("y", 1, None), ("y", 1, None)], ("A",), borrow_weight={"x": 0}
    )
    _, grounds = play(Kueue(fair_sharing=True), given)
    assert grounds.order[0] == "g2"
    assert grounds.share["x"] == float("inf")
    assert grounds.stated["weightedShare"]["x"] == MOST_SHARE


def naive(state: State, heads: list[Assignment]) -> Assignment:
    """Return the winner as the source finds it: every share anew, down the tree (runTournament)."""
    quotas = state.quotas

    def nominee(node: int) -> tuple[tuple[Any, ...], Assignment] | None:
        own = [(node, each) for each in heads if each.work.queue == node]
        below = [(child, found[1]) for child in quotas.children[node] if (found := nominee(child)) is not None]
        ranked = []
        for child, head in [*own, *below]:
            quotas.add(head.work.queue, head.needs)
            borrows = any(quotas.over(child, column) for column, _ in head.needs)
            share = quotas.share(child)
            quotas.remove(head.work.queue, head.needs)
            ranked.append(((borrows, share.infinite, share.value, -head.work.priority, head.work.since, child), head))
        return min(ranked, key=lambda each: each[0]) if ranked else None

    found = nominee(len(quotas.parent) - 1)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("seed", seeds(14, 40))
def test_the_tournament_chooses_as_one_that_computes_all_shares_anew(seed: int) -> None:
    dice = Random(seed)
    cohorts = dice.randint(1, 3)
    queues = dice.randint(2, 7)
    top = queues + cohorts
    parent = [queues + dice.randrange(cohorts) for _ in range(queues)] + [top] * cohorts + [-1]
    width = 3
    nominal = [[dice.randint(0, 4) for _ in range(width)] for _ in parent]
    limits = [[[dice.choice([None, None, 0, 1, 2]) for _ in range(width)] for _ in parent] for _ in range(2)]
    weight = [Fraction(dice.choice([0, 1, 1, 2, "1/3"])) for _ in parent]
    quotas = CohortQuotas(parent, ["gpu", "gpu", "cpu"], nominal, *limits, weight)
    state = State(quotas, lambda _: Rules(), True)
    heads = []
    for queue in range(queues):
        quotas.add(queue, [(column, dice.randint(0, 5)) for column in range(width)])
        needs = [(column, dice.randint(1, 3)) for column in range(width) if dice.random() < 0.7]
        work = QueuedWork(f"w{queue}", queue, dice.randint(0, 1), dice.randint(0, 2), queue, {})
        heads.append(Assignment(work, Mode.FIT, 0, 0, needs))
    left = list(heads)
    for head in Cycles(state, {})._in_order(heads):
        assert head is naive(state, left)
        left.remove(head)
        if dice.random() < 0.6:  # some are admitted, and change the shares above them
            quotas.add(head.work.queue, head.needs)
    assert not left


def test_a_cycle_is_one_in_each_tree() -> None:
    """A ClusterQueue of a tree that has had its cycles is not asked again in those of the next tree."""
    asked = [("x", 1, None), ("x", 1, None), ("y", 1, None), ("y", 1, None)]
    given = market({"x": [4], "y": [4]}, asked, ("A",), group={"x": "one", "y": "two"})
    assert play(Kueue(cycles=1), given)[1].order == ("g1", "g3")
