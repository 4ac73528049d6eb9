"""Whole GPUs and gangs out of shares: nothing is given out twice, and nobody falls below its share rounded down."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt import allocate, verify
from fairopt.errors import NotSolved
from fairopt.methods.whole_gpus import whole
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.floors import FLOORS_AND_CAPS
from fairopt.testing.samples import entitled_markets, guaranteed_market, only, sample_markets, stated


def no_gangs(market: Market) -> Market:
    owed = market.entitlements
    assert owed is not None
    return replace(market, entitlements=replace(owed, gangs=owed.gangs.select([]), held=owed.held * 0))


@pytest.mark.parametrize("market", [no_gangs(each) for each in entitled_markets(30, seed=5)], ids=range(30))
def test_everybody_gets_its_share_rounded_up_or_down(market: Market) -> None:
    owed = market.entitlements
    assert owed is not None
    for part in (Fraction(1), Fraction(5, 7)):
        shares = np.minimum(market.equal_split() * part, owed.cap[: len(market.users), : len(market.types)])
        found = whole(market, shares)[1]
        assert all(each.denominator == 1 for each in found.ravel())
        assert (found.sum(axis=0) <= market.capacity).all()
        before, after = owed.total(shares), owed.total(found)
        kept = (before <= owed.cap[:, : len(market.types)]).all(axis=1)
        for node, j in product(np.flatnonzero(kept), range(len(market.types))):
            assert after[node, j] <= min(ceil(before[node, j]), owed.cap[node, j])
        if kept.all():
            assert all(after[node, j] >= floor(before[node, j]) for node, j in np.ndindex(after.shape))


def test_of_each_type_as_many_are_given_out_as_before() -> None:
    for market in sample_markets(20, seed=3, users=(2, 5)):
        found = whole(market, market.equal_split())[1]
        assert (found.sum(axis=0) == market.capacity).all()
        again = whole(market, market.equal_split())[1]
        assert (found == again).all()
        floats = allocate("max-min", market.as_(float)).shares
        assert (whole(market, floats)[1].sum(axis=0) <= market.capacity).all()


def test_a_group_keeps_its_guarantee_though_the_remainders_of_its_users_are_small() -> None:
    users, group = [f"u{i}" for i in range(5)], {"u0": "team", "u1": "team", "u2": "team"}
    shares = [["2/5"], ["3/10"], ["3/10"], ["1/2"], ["1/2"]]
    owed = Entitlements.of(users, ["H100"], group=group, guarantee={"team": [1]})
    market = Market.of([[1]] * 5, [2], users=users, types=["H100"], entitlements=owed)
    assert whole(market, shares)[1].ravel().tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize("seed", seeds(10, 30))
@pytest.mark.parametrize("name", ["max-min", "oef-cooperative"])
def test_answers_on_entitled_markets_are_rounded_within_all_limits(name: str, seed: int) -> None:
    market = only(guaranteed_market(200 + seed), FLOORS_AND_CAPS)
    try:
        given = allocate(name, market, exact=True).shares
    except NotSolved:  # a group's guarantee that cannot be divided without envy
        assert name == "oef-cooperative"
        return
    owed, found = stated(market), whole(market, given)[1]
    before, held, k = owed.total(given), owed.total(found), len(market.types)
    assert all(each.denominator == 1 and each >= 0 for each in found.ravel())
    assert (found.sum(axis=0) <= market.capacity).all()
    assert (held <= owed.cap[:, :k]).all()
    assert (found.sum(axis=1) <= market.limit).all()
    for node, j in np.ndindex(held.shape):  # guarantees that were kept are kept, rounded down
        assert held[node, j] >= floor(min(before[node, j], owed.guarantee[node, j]))


@pytest.mark.parametrize("seed", seeds(6, 12))
def test_tiny_answers_are_the_best_of_all_whole_ones(seed: int) -> None:
    """Of all divisions in which nobody is off by a GPU, it gives out most, and then goes by largest remainders."""
    random = np.random.default_rng(seed)
    users, group = ["a", "b", "c", "d"], {"a": "ml", "b": "ml"}
    owed = Entitlements.of(users, ["H100"], group=group, cap={"a": [int(random.integers(1, 4))], "ml": [4]})
    market = Market.of([[1]] * 4, [7], users=users, types=["H100"], entitlements=owed)
    cap, share = owed.cap[:, 0], np.full(4, Fraction(0), dtype=object)
    while not 0 < sum(share) <= 7 or (owed.total(share) > cap).any():
        share = np.array([Fraction(int(each), 4) for each in random.integers(0, 12, 4)], dtype=object)
    whole_share, least, most = owed.total(share), *(owed.total(share * 0) for _ in range(2))
    for node, each in enumerate(whole_share):
        least[node], most[node] = floor(each), min(ceil(each), cap[node])
    possible = [
        row
        for row in product(range(5), repeat=4)
        if sum(row) <= floor(sum(share))
        and all(low <= own <= high for low, own, high in zip(least, owed.total(np.array(row)), most, strict=True))
    ]
    found = whole(market, [[each] for each in share])[1].ravel().tolist()
    assert tuple(found) in possible
    assert sum(found) == max(map(sum, possible))
    # no top gets a GPU more in the place of one with a larger remainder, nor does a member of the group
    held = owed.total(np.array(found))
    for family in (owed.tops, *(owed.children[node] for node in range(4, len(cap)))):
        for up, down in product(family, family):
            larger = whole_share[down] - least[down] > whole_share[up] - least[up]
            if held[up] > least[up] and held[down] == least[down] and larger:
                moved = [row for row in possible if _only_moves(owed, row, held, up, down)]
                assert not moved


def _only_moves(owed: Entitlements, row: tuple[int, ...], held: np.ndarray, up: int, down: int) -> bool:
    """Whether a division differs from what is held in a GPU of ``up`` that ``down`` has, among their siblings."""
    other = owed.total(np.array(row))
    siblings = [node for node in range(len(other)) if owed.parent[node] == owed.parent[up]]
    change = {node: other[node] - held[node] for node in siblings}
    return change == dict.fromkeys(siblings, 0) | {up: -1, down: 1}


TYPES, USERS = ["A100", "H100"], ["a", "b"]


def cluster(**more: object) -> Market:
    gangs = Gangs.of(
        ["a", "a", "b", "b"],
        [2, 4, 2, 3],
        users=USERS,
        types=TYPES,
        names=["a-runs", "a-waits", "b-runs", "b-stays"],
        allowed=[["H100"], ["H100"], ["H100"], None],
        on=["H100", None, "H100", "H100"],
        preemptible=[True, True, True, False],
        **more,  # type: ignore[arg-type]
    )
    owed = Entitlements.of(USERS, TYPES, guarantee={"a": [0, 4]}, gangs=gangs)
    return Market.of([[1, 2]] * 2, [2, 8], users=USERS, types=TYPES, entitlements=owed)


def ran(market: Market, shares: list[list[object]]) -> set[str]:
    found = whole(market, shares)[0].entitlements
    assert found is not None
    return {name for name, waits in zip(found.gangs.names, found.gangs.pending, strict=True) if not waits}


def test_gangs_run_within_what_their_user_has_all_or_nothing() -> None:
    assert ran(cluster(), [[0, 4], [0, 4]]) == {"a-runs", "b-stays", "b-runs"}  # 4 for a: 2 run, and 4 do not fit
    assert ran(cluster(), [[0, 5], [0, 3]]) == {"a-runs", "b-stays", "b-runs"}
    assert ran(cluster(tier=[0, 1, 0, 0]), [[0, 5], [0, 3]]) == {"a-waits", "b-stays"}
    assert ran(cluster(), [[0, 8], [0, 0]]) == {"a-runs", "b-stays", "b-runs"}  # what cannot be stopped stays


def test_what_was_rounded_is_asked_again() -> None:
    market, found = whole(cluster(tier=[0, 1, 0, 0]), [[0, "4.5"], [0, "3.5"]])
    verdicts = verify(market, found)
    assert found.tolist() == [[0, 4], [0, 3]]
    assert verdicts["guarantee_kept"].holds
    assert verdicts["whole_gpu_conservation"].holds
    for market in entitled_markets(40, seed=9):
        after, again = whole(market, market.equal_split())
        verdicts = verify(after, again)
        mine = after.entitlements
        assert mine is not None
        assert verdicts["feasibility"].holds or (mine.fixed > 0).any()
        assert not len(mine.gangs) or (mine.held[:, : len(market.types)] == again).all()
