"""Mends of clusters that count CPU and memory too, beside every other set of gangs."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fairopt.audit import audit, explain, mending
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.mending import reclaim
from fairopt.audit.spare_goods import unlooked
from fairopt.audit.violations import MEND, mends
from fairopt.backends.solution import Solution, Status
from fairopt.datasets import dataset_path
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.program import Program
from fairopt.report import Statement

CLUSTERS = Path(dataset_path("SOURCES.md")).parent / "clusters"
TYPES = ["T", "U"]
SMALL = st.integers(0, 6)


def market(gangs: list[tuple[str, int, int, str | None]], *, cpu: int, gpus: int, **how: Any) -> Market:
    """Gangs (user, GPUs, CPU, the type on which it runs) on one type T, with ``cpu`` in all."""
    users = sorted({user for user, *_ in gangs})
    made = Gangs.of(
        [user for user, *_ in gangs],
        [count for _, count, *_ in gangs],
        users=users,
        types=["T"],
        names=[f"{user}{number}" for number, (user, *_) in enumerate(gangs)],
        on=[on for *_, on in gangs],
        other={"cpu": [needs for _, _, needs, _ in gangs]},
    )
    owed = Entitlements.of(users, ["T"], goods={Good("cpu", "all"): cpu}, gangs=made, **how)
    return Market.of([[1]] * len(users), [gpus], users=users, types=["T"], entitlements=owed)


@st.composite
def clusters(draw: st.DrawFn) -> EntitlementAccounts:
    """Two types that share CPU or not: gangs of users in groups or not, with caps on goods or without."""
    one = st.tuples(st.integers(1, 4), SMALL, SMALL, st.sampled_from([1, 2]), st.booleans())
    waits = draw(st.lists(st.tuples(st.sampled_from("ab"), one, st.none()), min_size=1, max_size=3))
    runs = draw(st.lists(st.tuples(st.sampled_from("bcd"), one, st.sampled_from(TYPES)), min_size=1, max_size=6))
    rows = [*waits, *runs]
    users = sorted({user for user, *_ in rows} | {"a"})
    gangs = Gangs.of(
        [user for user, *_ in rows],
        [own[0] for _, own, _ in rows],
        users=users,
        types=TYPES,
        on=[on for *_, on in rows],
        allowed=[None if own[4] or on else ["T"] for _, own, on in rows],
        preemptible=[own[1] < 6 for _, own, _ in rows],
        other={"cpu": [f"{own[1]}/{own[3]}" for _, own, _ in rows], "memory": [own[2] for _, own, _ in rows]},
    )
    counted = draw(st.sampled_from([("all",), ("T",), ("T", "U")]))
    goods = {Good(name, flavor): 0 for name in ("cpu", "memory") for flavor in counted}
    groups = {name: draw(st.sampled_from(["g", "h"])) for name in users} if draw(st.booleans()) else {}
    bare = Entitlements.of(users, TYPES, goods=goods, group=groups, gangs=gangs)
    held = bare.total(bare.held)
    spare = {name: draw(st.integers(-2, 4)) for name in bare.nodes if draw(st.booleans())}
    owed = Entitlements.of(
        users,
        TYPES,
        goods={good: max(0, bare.held[:, 2 + at].sum() + draw(st.integers(-2, 4))) for at, good in enumerate(goods)},
        group=groups,
        gangs=gangs,
        guarantee={name: {kind: draw(st.integers(0, 5)) for kind in TYPES} for name in users} | {"a": [8, 8]},
        cap={
            name: {str(good): max(0, held[bare.node(name), 2 + at] + more) for at, good in enumerate(goods)}
            for name, more in spare.items()
        },
        held={"b": {"T": bare.held[users.index("b"), 0] + 2}} if "b" in users and draw(st.booleans()) else None,
    )
    there = [owed.held[:, j].sum() + draw(st.integers(0, 1)) for j in range(2)]
    return EntitlementAccounts(Market.of([[1, 1]] * len(users), there, users=users, types=TYPES, entitlements=owed))


def cost(
    accounts: EntitlementAccounts, j: int, stopped: tuple[int, ...], single: dict[int, int], started: list[int]
) -> tuple[int, ...]:
    """GPUs below what nodes are owed and hold, GPUs stopped, gangs and single GPUs stopped: by the definition."""
    said, gangs = accounts.said, accounts.gangs
    less, more = np.zeros(len(said.nodes), dtype=int), np.zeros(len(said.nodes), dtype=int)
    for taken, of in ((less, stopped), (more, started)):
        for gang in of:
            taken[list(said.path(int(gangs.user[gang])))] += gangs.gpus[gang]
    for user, gpus in single.items():
        less[list(said.path(user))] += gpus
    slack = [max(0, accounts.held[node, j] - accounts.owed[node, j]) + more[node] for node in range(len(said.nodes))]
    below = sum(max(0, int(less[node] - slack[node])) for node in range(len(said.nodes)))
    singles = sum(single.values())
    return below, int(gangs.gpus[list(stopped)].sum()) + singles, len(stopped) + singles


def fits(accounts: EntitlementAccounts, on: Any, started: list[int]) -> bool:
    """Whether goods are enough in the cluster and below caps for gangs that started: of the entitlements after it."""
    after = accounts.said.running(accounts.gangs.placed(on))
    held = after.total(after.held)
    for gang in started:
        for at, resource in enumerate(after.gangs.resources):
            column = after.good(resource, int(on[gang]))
            if column is None or not after.gangs.other[gang, at]:
                continue
            nodes = list(after.path(int(after.gangs.user[gang])))
            if (
                after.held[:, column].sum() > after.stock[column - 2]
                or (held[nodes] > after.cap[nodes])[:, column].any()
            ):
                return False
    return True


def moved(on: Any, gangs: Any, to: int) -> Any:
    new = on.copy()
    new[list(gangs)] = to
    return new


@given(clusters())
@settings(max_examples=10, deadline=None)
def test_no_other_set_of_gangs_that_leaves_enough_is_smaller(accounts: EntitlementAccounts) -> None:
    require_the_smallest(accounts)


@pytest.mark.slow
@given(clusters())
@settings(max_examples=1000, deadline=None)
def test_nor_in_a_thousand_clusters(accounts: EntitlementAccounts) -> None:
    require_the_smallest(accounts)


def require_the_smallest(accounts: EntitlementAccounts) -> None:
    """Play the mends, type by type, and compare each with the best of all sets of gangs; all of it fits at the end."""
    gangs, on, free = accounts.gangs, accounts.gangs.on, []
    found = {mend.type: mend for mend in mends(accounts)}
    for gang in sorted(accounts.served, key=accounts.place.__getitem__):
        if fits(accounts, moved(on, [gang], accounts.owed_at[gang][1]), [gang]):
            on, free = moved(on, [gang], accounts.owed_at[gang][1]), [*free, gang]
    for j, kind in enumerate(accounts.market.types):
        waits = [
            gang
            for gang in accounts.order
            if accounts.owed_at.get(gang, (0, -1))[1] == j and accounts.below_caps(gang, j)
        ]
        users = {user for gang in waits for user in accounts.borrowers(accounts.owed_at[gang][0], j)}
        if users:
            now = moved(on, set(free) & set(waits), -1)
            on = require_smallest_on(accounts, j, now, waits, users, found.pop(kind, None))
    assert not found
    assert fits(accounts, on, [gang for gang in np.flatnonzero(on >= 0).tolist() if gangs.on[gang] < 0])


def require_smallest_on(
    accounts: EntitlementAccounts, j: int, on: Any, waits: list[int], users: set[int], mend: Statement | None
) -> Any:
    """Compare the mend on a type with the best; return where gangs run then."""
    gangs = accounts.gangs
    runs = [gang for gang in np.flatnonzero(gangs.on == j).tolist() if gangs.user[gang] in users]
    may = [gang for gang in runs if gangs.preemptible[gang]]
    beside = {
        user: 2 for user in users if accounts.held[user, j] > sum(gangs.gpus[g] for g in runs if gangs.user[g] == user)
    }
    free = int(accounts.free[j])
    helped: list[int] = []
    lacks = []
    for gang in waits:  # all that is possible, each before those that come later
        gpus = int(gangs.gpus[[*helped, gang]].sum())
        if gpus > free + gangs.gpus[may].sum() + sum(beside.values()):
            continue
        if not fits(accounts, moved(moved(on, may, -1), [*helped, gang], j), [gang]):
            lacks.append(gangs.names[gang])
            continue
        helped.append(gang)
    on, needed = moved(on, helped, j), max(0, int(gangs.gpus[helped].sum()) - free)
    if not lacks and helped and not needed and fits(accounts, on, helped):
        assert mend is None
        return on
    assert mend is not None
    assert [each.gang for each in mend.lacks] == lacks
    if not helped or (not needed and fits(accounts, on, helped)):
        assert (mend.gangs, mend.reclaim.stops) == ((), None)
        return on
    assert mend.gangs == tuple(gangs.names[each] for each in helped)
    best = min(
        cost(accounts, j, chosen, single, helped)
        for chosen in chain.from_iterable(combinations(may, size) for size in range(len(may) + 1))
        for single in [dict.fromkeys(beside, count) for count in range(3 if beside else 1)]
        if gangs.gpus[list(chosen)].sum() + sum(single.values()) >= needed
        and fits(accounts, moved(on, chosen, -1), helped)
    )
    stops = mend.reclaim.stops or ()
    chosen = tuple(accounts.gang_called[each.gang] for each in stops if each.gang)
    single = {accounts.market.users.index(each.user): each.gpus for each in stops if not each.gang}
    assert set(chosen) <= set(may)
    assert single.keys() <= beside.keys()
    assert fits(accounts, moved(on, chosen, -1), helped)
    own = cost(accounts, j, chosen, single, helped)
    assert own == best if mend.reclaim.is_smallest else own >= best
    assert own[1] >= needed
    assert (sum(mend.reclaim.below.values()), mend.reclaim.gpus) == own[:2]
    return moved(on, chosen, -1)


def short_of_cpu(**how: Any) -> Market:
    """A waits for 4 GPUs and 8 CPU, of which 2 are free; B runs two gangs of 4 GPUs, one with little CPU."""
    gangs = [("A", 4, 8, None), ("B", 4, 6, "T"), ("B", 4, 2, "T")]
    given_: dict[str, Any] = {"cpu": 10, "gpus": 8, "guarantee": {"A": {"T": 4, "cpu:all": 8}}}
    return market(gangs, **(given_ | how))


def test_the_gang_with_enough_cpu_is_stopped() -> None:
    assert [str(each) for each in audit(short_of_cpu(cpu=10), policies=[]).mends] == [
        "reclaim 4 T: stop B1 of B. Then A0 runs, with enough cpu"
    ]
    both = audit(short_of_cpu(cpu=8), policies=[])
    assert str(both.mends[0]) == "reclaim 8 T: stop B1, B2 of B. Then A0 runs, with enough cpu"
    assert both.unlooked == ""


def test_what_cannot_be_set_free_is_said() -> None:
    [mend] = audit(short_of_cpu(cpu=7), policies=[]).mends
    assert str(mend) == "T: A0 waits still: it takes 8 cpu:all, and at most 7 can be free for it"
    [mend] = audit(short_of_cpu(cap={"A": {"T": 9, "cpu:all": 5}}), policies=[]).mends
    assert str(mend).endswith("at most 5 can be free for it below the cap of A")
    assert mend.reclaim.stops is None


class Stopped:
    """A backend whose branch and bound is stopped before it knows any point."""

    def __init__(self, nodes: int, *, thorough: bool) -> None:
        assert nodes > 0
        assert not thorough

    def solve(self, program: Program, *, gap: float) -> Solution:
        return Solution(Status.LIMIT, "no node is left", "highs")


def test_where_it_takes_too_long_what_is_said_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mending, "Highs", Stopped)
    words = "there are too many other choices to know whether one takes less"
    [mend] = audit(short_of_cpu(cpu=8), policies=[]).mends
    assert str(mend) == f"reclaim 8 T: stop B1, B2 of B; {words}. Then A0 runs, with enough cpu"
    [mend] = audit(short_of_cpu(cpu=8, guarantee={"A": [4], "B": [4]}), policies=[]).mends
    assert f"Gangs are whole, so this takes 4 of what B is owed; {words}. Then" in str(mend)
    [mend] = audit(short_of_cpu(cpu=10), policies=[]).mends
    assert (str(mend), mend.reclaim.is_smallest) == (
        f"reclaim 4 T: stop B1 of B; {words}. Then A0 runs, with enough cpu",
        False,
    )


@given(accounts=clusters())
@settings(max_examples=10, deadline=None)
def test_what_is_said_then_is_enough_everywhere(accounts: EntitlementAccounts) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mending, "Highs", Stopped)
        require_the_smallest(accounts)


def test_as_many_gpus_as_there_may_be_are_no_trouble() -> None:
    many = short_of_cpu(cpu=8, gpus=10**12, held={"B": {"T": 10**12}}, guarantee={"A": [4]})
    [mend] = audit(many, policies=[], properties=[]).mends
    assert str(mend) == "reclaim 8 T: stop B1, B2 of B. Then A0 runs, with enough cpu"


def test_a_gang_that_lacks_cpu_beside_free_gpus_gets_it_from_those_who_borrow() -> None:
    [mend] = explain(short_of_cpu(gpus=12), "A", policies=[]).mends
    assert str(mend) == "reclaim 4 T: stop B1 of B. Then A0 runs, with enough cpu"


def test_that_one_lacks_cpu_is_said_where_free_gpus_serve_the_other() -> None:
    gangs = [("A", 2, 1, None), ("A", 4, 99, None), ("B", 4, 6, "T")]
    [mend] = audit(market(gangs, cpu=9, gpus=6, guarantee={"A": {"T": 6}}), policies=[]).mends
    assert str(mend) == "T: A1 waits still: it takes 99 cpu:all, and at most 8 can be free for it"
    many = market([("A", 1, 99, None)] * 5 + [("B", 5, 6, "T")], cpu=9, gpus=5, guarantee={"A": {"T": 6}})
    [mend] = audit(many, policies=[]).mends
    assert str(mend).endswith("; and 2 more wait for such goods")


def test_mends_of_later_types_find_the_cpu_that_earlier_ones_leave() -> None:
    kinds = ["T", "U"]
    gangs = Gangs.of(
        ["A", "A", "B", "B"],
        [4] * 4,
        users=["A", "B"],
        types=kinds,
        names=["a", "b", "c", "d"],
        on=[None, None, "T", "U"],
        allowed=[["T"], ["U"], None, None],
        other={"cpu": [8, 8, 4, 4]},
    )
    owed = Entitlements.of(["A", "B"], kinds, goods={Good("cpu", "all"): 12}, guarantee={"A": [4, 4]}, gangs=gangs)
    found = mends(
        EntitlementAccounts(Market.of([[1, 1]] * 2, [4, 4], users=["A", "B"], types=kinds, entitlements=owed))
    )
    assert list(map(str, found)) == [
        "reclaim 4 T: stop c of B. Then a runs, with enough cpu",
        "U: b waits still: it takes 8 cpu:all, and at most 4 can be free for it",
    ]


def test_several_resources_are_listed() -> None:
    one = {"type": "T", "gangs": ("a",), "of": 1, "reclaim": reclaim("T", 1, (), 1), "lacks": ()}
    words = [str(MEND.of(**one, resources=names, unread=())) for names in (("x",), ("x", "y"), ("x", "y", "z"))]
    assert [each.partition("enough ")[2] for each in words] == ["x", "x and y", "x, y and z"]


def test_loans_name_the_cpu_too() -> None:
    found = explain(short_of_cpu(guarantee={"B": [8]}, cap={"A": {"T": 9, "cpu:all": 5}}), "A", policies=[])
    assert found.loans[0].steps == (
        "free or add 6 cpu:all",
        "raise the cap of A on cpu:all from 5 to 8",
        "free or add 4 T",
    )


def test_loans_leave_the_cpu_to_those_that_free_gpus_serve() -> None:
    gangs = [("A", 2, 3, None), ("B", 2, 3, None), ("C", 2, 0, "T")]
    found = explain(market(gangs, cpu=4, gpus=6, guarantee={"A": [2], "B": [2]}), "B", policies=[])
    assert found.loans[0].steps == ("free or add 2 cpu:all",)
    first = explain(market(gangs, cpu=4, gpus=6, guarantee={"A": [2], "B": [2]}), "A", policies=[])
    assert first.loans[0].steps == ("nothing in the file stops it",)


def test_what_a_gang_lacks_is_written_by_name() -> None:
    [mend] = audit(short_of_cpu(cpu=7), policies=[]).to_json()["mends"]
    assert mend["lacks"] == [{"gang": "A0", "good": "cpu:all", "amount": 8, "most": 7, "who": ""}]
    assert explain(short_of_cpu(cpu=7), "A", policies=[]).to_json()["mends_leave_aside"] == ""


def test_resources_of_which_the_file_has_no_stock_or_no_needs_are_not_looked_at() -> None:
    gangs = Gangs.of(["A"], [1], users=["A"], types=["T"], other={"memory": [4]})
    owed = Entitlements.of(["A"], ["T"], goods={Good("cpu", "all"): 8}, gangs=gangs)
    accounts = EntitlementAccounts(Market.of([[1]], [1], users=["A"], types=["T"], entitlements=owed))
    assert list(unlooked(accounts)) == ["cpu", "memory"]


def test_a_type_on_which_nobody_counts_a_resource_is_named() -> None:
    gangs = Gangs.of(["A"], [1], users=["A"], types=["T", "U"], other={"cpu": [4]})
    owed = Entitlements.of(["A"], ["T", "U"], goods={Good("cpu", "T"): 8}, gangs=gangs)
    accounts = EntitlementAccounts(Market.of([[1, 1]], [1, 1], users=["A"], types=["T", "U"], entitlements=owed))
    assert list(unlooked(accounts)) == ["cpu on U"]


@pytest.mark.parametrize("sample", ["kueue/cluster.json", "kai/cluster.yaml", "armada/cluster.json"])
def test_what_the_bundled_samples_start_fits(sample: str) -> None:
    found = audit(CLUSTERS / sample, policies=[], properties=[])
    accounts = found.accounts
    on = accounts.gangs.on.copy()
    for mend in found.mends:
        on[[accounts.gang_called[each.gang] for each in mend.reclaim.stops or () if each.gang]] = -1
        on[[accounts.gang_called[each] for each in mend.gangs]] = found.market.types.index(mend.type)
    after = accounts.said.running(accounts.gangs.placed(on))
    assert (after.held.sum(axis=0) <= [*found.market.capacity, *after.stock]).all()
    assert (after.total(after.held) <= np.maximum(after.cap, accounts.held)).all()
