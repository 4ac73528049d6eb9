"""Mends of clusters that count CPU too, beside every other set of gangs."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from fairopt.audit import audit, explain, goods_search
from fairopt.audit.books import Books
from fairopt.audit.spare_goods import unlooked
from fairopt.audit.violations import Mend, mends
from fairopt.datasets import dataset_path
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good

CLUSTERS = Path(dataset_path("SOURCES.md")).parent / "clusters"
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
def clusters(draw: st.DrawFn) -> Books:
    """A user that is owed what others run, in groups or not, with caps on CPU or without."""
    waiting = draw(st.lists(st.tuples(st.just("a"), st.integers(1, 4), SMALL, st.none()), min_size=1, max_size=2))
    others = st.tuples(st.sampled_from(["b", "c"]), st.integers(1, 4), SMALL, st.just("T"))
    running = draw(st.lists(others, min_size=1, max_size=6))
    users = {user for user, *_ in running}
    names = sorted({"a"} | users)
    group = {name: draw(st.sampled_from(["g", "h"])) for name in names} if draw(st.booleans()) else None
    capped = draw(st.sampled_from([[], ["a"], sorted(set(group.values())) if group else []]))
    guarantee = {"a": {"T": 8, "cpu:all": 12}} | {each: {"T": draw(st.integers(0, 3))} for each in users}
    return Books(
        market(
            [*waiting, *running],
            cpu=max(0, sum(needs for _, _, needs, _ in running) + draw(st.integers(-2, 4))),
            gpus=sum(count for _, count, *_ in running) + draw(st.integers(0, 1)),
            group=group,
            guarantee=guarantee,
            cap={each: {"T": 99, "cpu:all": draw(st.integers(4, 16))} for each in capped},
        )
    )


def cost(books: Books, stopped: tuple[int, ...], started: list[int]) -> tuple[int, int, int]:
    """GPUs below what nodes are owed and hold, GPUs stopped, gangs stopped: by the definition."""
    said, gangs = books.said, books.gangs
    less, more = np.zeros(len(said.nodes), dtype=int), np.zeros(len(said.nodes), dtype=int)
    for taken, of in ((less, stopped), (more, started)):
        for gang in of:
            taken[list(said.path(int(gangs.user[gang])))] += gangs.gpus[gang]
    slack = [max(0, books.held[node, 0] - books.owed[node, 0]) + more[node] for node in range(len(said.nodes))]
    below = sum(max(0, int(less[node] - slack[node])) for node in range(len(said.nodes)))
    return below, int(gangs.gpus[list(stopped)].sum()), len(stopped)


def fits(books: Books, stopped: tuple[int, ...], started: list[int]) -> bool:
    """Whether it does, in the cluster and below the caps of those whose gangs start: of the entitlements after it."""
    if not started:
        return True
    on = books.gangs.on.copy()
    on[list(stopped)], on[started] = -1, 0
    after = books.said.running(books.gangs.placed(on))
    held = after.total(after.held)
    takes = [each for each in started if books.gangs.other.size and books.gangs.other[each, 0]]
    nodes = {node for each in takes for node in after.path(int(books.gangs.user[each]))}
    gpus = after.held[:, 0].sum() <= books.market.capacity[0]
    cpu = not takes or after.held[:, 1].sum() <= after.stock[0]
    return bool(gpus and cpu and all(held[node, 1] <= after.cap[node, 1] for node in nodes))


@given(clusters())
@settings(max_examples=6, deadline=None)
def test_no_other_set_of_gangs_that_leaves_enough_cpu_is_smaller(books: Books) -> None:
    require_the_smallest(books)


@pytest.mark.slow
@given(clusters())
@settings(max_examples=500, deadline=None)
def test_nor_in_five_hundred_clusters(books: Books) -> None:
    require_the_smallest(books)


def require_the_smallest(books: Books) -> None:
    """Compare the mend with the best of all sets of gangs."""
    found = next(mends(books), None)
    assume(found is not None)
    assert isinstance(found, Mend)
    waiting = sorted(books.owed_at, key=books.place.__getitem__)
    borrowers = {user for gang in waiting for user, _ in books.borrowers(books.owed_at[gang][0], 0)}
    running = [g for g in range(len(books.gangs)) if books.gangs.on[g] == 0 and books.gangs.user[g] in borrowers]
    helped: list[int] = []
    for gang in waiting:  # all that is possible, each before those that come later
        granted = sum(int(books.gangs.gpus[each]) for each in [*helped, gang])
        if granted <= books.cap_room[books.gangs.user[gang], 0] and fits(books, tuple(running), [*helped, gang]):
            helped.append(gang)
    assert found.gangs == tuple(books.gangs.names[each] for each in helped)
    if not helped:
        assert found.reclaim.stops is None
        return
    sets = chain.from_iterable(combinations(running, size) for size in range(len(running) + 1))
    best = min(cost(books, each, helped) for each in sets if fits(books, each, helped))
    chosen = tuple(books.gang_called[each.gang] for each in found.reclaim.stops or ())
    assert fits(books, chosen, helped)
    assert cost(books, chosen, helped) == best
    assert (sum(found.reclaim.below.values()), found.reclaim.gpus) == best[:2]


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


def test_of_too_many_choices_the_one_by_gpus_is_said_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goods_search, "MOST_PAIRS", 1)
    [mend] = audit(short_of_cpu(cpu=8), policies=[]).mends
    words = "By GPUs alone: after it, cpu:all is short by"
    assert words in str(mend)
    assert str(mend).endswith("too many other choices to try all. It is for A0")


def test_loans_name_the_cpu_too() -> None:
    found = explain(short_of_cpu(guarantee={"B": [8]}, cap={"A": {"T": 9, "cpu:all": 5}}), "A", policies=[])
    assert found.loans[0].steps == (
        "free or add 6 cpu:all",
        "raise the cap of A on cpu:all from 5 to 8",
        "free or add 4 T",
    )


def test_resources_of_which_the_file_has_no_stock_or_no_needs_are_not_looked_at() -> None:
    gangs = Gangs.of(["A"], [1], users=["A"], types=["T"], other={"memory": [4]})
    owed = Entitlements.of(["A"], ["T"], goods={Good("cpu", "all"): 8}, gangs=gangs)
    books = Books(Market.of([[1]], [1], users=["A"], types=["T"], entitlements=owed))
    assert unlooked(books) == ["cpu", "memory"]


@pytest.mark.parametrize("sample", ["kueue/cluster.json", "kai/cluster.yaml", "armada/cluster.json"])
def test_what_the_bundled_samples_start_fits(sample: str) -> None:
    found = audit(CLUSTERS / sample, policies=[], properties=[])
    books = found.books
    on = books.gangs.on.copy()
    for mend in found.mends:
        on[[books.gang_called[each.gang] for each in mend.reclaim.stops or () if each.gang]] = -1
        on[[books.gang_called[each] for each in mend.gangs]] = found.market.types.index(mend.type)
    after = books.said.running(books.gangs.placed(on))
    assert (after.held.sum(axis=0) <= [*found.market.capacity, *after.stock]).all()
    assert (after.total(after.held) <= np.maximum(after.cap, books.held)).all()
