"""The smallest reclaim, beside every other set of gangs."""

from __future__ import annotations

from itertools import chain, combinations
from math import ceil

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairopt.audit import mending
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.mending import reclaim, smallest
from fairopt.problem import Entitlements, Gangs, Market


@st.composite
def clusters(draw: st.DrawFn) -> tuple[EntitlementAccounts, int, list[int]]:
    """Users in groups inside groups, with at most nine running gangs of one type, and how many GPUs are needed."""
    users = [f"u{i}" for i in range(draw(st.integers(1, 4)))]
    groups = {user: draw(st.sampled_from(["g", "h", "top"])) for user in users} | {"g": "top", "h": "top"}
    own = draw(st.lists(st.tuples(st.sampled_from(users), st.integers(1, 5), st.booleans()), min_size=1, max_size=9))
    gangs = Gangs.of(
        [user for user, _, _ in own],
        [gpus for _, gpus, _ in own],
        users=users,
        types=["T"],
        on=["T"] * len(own),
        preemptible=[may for _, _, may in own],
    )
    guarantee = {name: [draw(st.integers(0, 8))] for name in [*users, "g", "h"] if draw(st.booleans())}
    owed = Entitlements.of(users, ["T"], group=groups, groups=["g", "h", "top"], guarantee=guarantee, gangs=gangs)
    there = sum(gpus for _, gpus, _ in own)
    market = Market.of([[1]] * len(users), [there], users=users, types=["T"], entitlements=owed)
    return (
        EntitlementAccounts(market),
        draw(st.integers(1, there)),
        [i for i in range(len(users)) if draw(st.booleans())] or [0],
    )


def cost(accounts: EntitlementAccounts, stopped: tuple[int, ...]) -> tuple[int, int, int]:
    """GPUs below what nodes are owed and hold, GPUs stopped, gangs stopped: by the definition."""
    taken = [0] * len(accounts.said.nodes)
    for gang in stopped:
        for node in accounts.said.path(int(accounts.gangs.user[gang])):
            taken[node] += int(accounts.gangs.gpus[gang])
    below = 0
    for node, gpus in enumerate(taken):
        held, owed = accounts.held[node, 0], accounts.owed[node, 0]
        below += ceil(max(0, min(held, owed) - (held - gpus)))  # a part of a GPU counts as one
    return below, sum(int(accounts.gangs.gpus[gang]) for gang in stopped), len(stopped)


@given(clusters())
def test_no_other_set_of_gangs_is_smaller(given_: tuple[EntitlementAccounts, int, list[int]]) -> None:
    accounts, needed, users = given_
    gangs = accounts.gangs
    may = [g for g in range(len(gangs)) if gangs.preemptible[g] and gangs.user[g] in users]
    sets = chain.from_iterable(combinations(may, size) for size in range(len(may) + 1))
    best = min((cost(accounts, each) for each in sets if sum(gangs.gpus[list(each)]) >= needed), default=None)
    found = smallest(accounts, 0, needed, users, {})
    if best is None:
        assert found.stops is None
        return
    assert found.stops is not None
    chosen = tuple(gangs.names.index(each.gang) for each in found.stops)
    assert set(chosen) <= set(may)
    assert cost(accounts, chosen) == best
    assert (sum(found.below.values()), found.gpus) == best[:2]


def test_gpus_of_no_listed_gang_are_taken_one_by_one() -> None:
    owed = Entitlements.of(["A"], ["T"], guarantee={"A": [1]}, held={"A": [6]}, fixed={"A": [2]})
    accounts = EntitlementAccounts(Market.of([[1]], [6], users=["A"], types=["T"], entitlements=owed))
    assert str(smallest(accounts, 0, 3, [0], {})) == "reclaim 3 T: stop 3 GPUs of no listed gang of A"
    assert smallest(accounts, 0, 5, [0], {}) == reclaim("T", 5, None)


def test_of_equal_gangs_the_one_of_low_priority_stops() -> None:
    gangs = Gangs.of(
        ["A"] * 3, [2] * 3, users=["A"], types=["T"], on=["T"] * 3, tier=[5, 1, 5], names=["high", "low", "other"]
    )
    accounts = EntitlementAccounts(
        Market.of([[1]], [6], users=["A"], types=["T"], entitlements=Entitlements.of(["A"], ["T"], gangs=gangs))
    )
    [stopped] = smallest(accounts, 0, 1, [0], {}).stops or ()
    assert stopped.gang == "low"


def test_of_equal_gangs_the_one_listed_last_stops() -> None:
    names = ["b", "b+1", "b+2"]
    gangs = Gangs.of(["B"] * 3, [4] * 3, users=["B"], types=["T"], names=names, on=["T"] * 3, since=[0] * 3)
    owed = Entitlements.of(["B"], ["T"], guarantee={"B": [4]}, gangs=gangs)
    accounts = EntitlementAccounts(Market.of([[1]], [12], users=["B"], types=["T"], entitlements=owed))
    assert str(smallest(accounts, 0, 8, [0], {})) == "reclaim 8 T: stop b+1, b+2 of B"


def test_of_choices_that_are_alike_least_is_taken_from_who_is_listed_last() -> None:
    users = ["A", "B", "C"]
    gangs = Gangs.of([*users, *users], [2] * 6, users=users, types=["T"], on=["T"] * 6, names=[*"abcdef"])
    owed = Entitlements.of(users, ["T"], guarantee={"A": [2]}, gangs=gangs)
    accounts = EntitlementAccounts(Market.of([[1]] * 3, [12], users=users, types=["T"], entitlements=owed))
    assert str(smallest(accounts, 0, 5, range(3), {})) == "reclaim 6 T: stop d of A; b, e of B"


def test_no_program_is_solved_where_goods_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*asked: object, **how: object) -> None:
        raise AssertionError("HiGHS was asked")

    monkeypatch.setattr(mending, "Highs", refuse)
    users = [f"u{i}" for i in range(300)]
    gangs = Gangs.of([each for each in users for _ in "ab"], [1, 8] * 300, users=users, types=["T"], on=["T"] * 600)
    group = {user: f"g{i // 10}" for i, user in enumerate(users)}
    owed = Entitlements.of(users, ["T"], group=group, guarantee={user: [4] for user in users}, gangs=gangs)
    accounts = EntitlementAccounts(Market.of([[1]] * 300, [2700], users=users, types=["T"], entitlements=owed))
    found = smallest(accounts, 0, 1000, range(300), {})
    # each can lose 5 without harm: an 8 of a hundred of them takes 3 of what they are owed, a 1 of the others nothing
    assert (found.gpus, sum(found.below.values()), len(found.stops or ())) == (1000, 300, 300)
    assert found.is_smallest
