"""How users and groups stand, step by step: what counts as nothing, who asks, what serves, and what others lend."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
from one_type import now, one_type

from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.properties.entitlements.guarantee_kept import GuaranteeKept
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, _sum, asks, says_who_asks, uses_of
from fairopt.properties.entitlements.whole_gpu_conservation import WholeGpuConservation


def waits_for_goods(cpus: Any, *stock: Any, gpus: int = 1, exact: bool = True) -> Market:
    """Return a, which holds a GPU and waits with a gang that takes so many CPUs; there are 4 GPUs, and these CPUs."""
    gangs = Gangs.of(["a", "a"], [1, gpus], users=["a"], types=["H100"], on=["H100", None], other={"cpu": [0, cpus]})
    names = ("all", "more", "most")
    goods = {Good("cpu", name): amount for name, amount in zip(names, stock, strict=False)}
    owed = Entitlements.of(["a"], ["H100"], goods=goods, gangs=gangs)
    market = Market.of([[1]], [4], users=["a"], types=["H100"], entitlements=owed)
    return market if exact else market.as_(float)


def test_half_a_gpu_below_the_guarantee_is_below_it() -> None:
    market = one_type(4, {"a": 2, "b": 2}, {"a": 1}, guarantee={"a": [4]})
    below = GuaranteeKept().case(-1, 4, node="a", type="H100", held=2, owed=3, sources=())
    assert below.refutes(market, now(market))
    assert below.refutes(market, np.array([[F(5, 2)], [0]]))
    assert not below.refutes(market, np.array([[F(3)], [0]]))


def test_goods_that_suffice_exactly_are_free() -> None:
    for exact in (True, False):
        market = waits_for_goods(6, 6, exact=exact)
        stands = HeldAndOwed.of(market, now(market))
        assert stands.goods(1, 0) == [(1, 6)]
        assert stands.goods_are_free(1, 0)
    short = waits_for_goods(6, 5)
    assert not HeldAndOwed.of(short, now(short)).goods_are_free(1, 0)
    assert HeldAndOwed.of(short, np.array([[F(1, 2)]])).goods(1, 0) == []  # such shares do not say who has CPUs


def test_only_in_floats_a_little_counts_as_nothing() -> None:
    exact, floats = (waits_for_goods(2, 8, exact=exact) for exact in (True, False))
    assert HeldAndOwed.of(exact, now(exact)).noise.tolist() == [0, 0]
    assert HeldAndOwed.of(floats, now(floats)).noise.tolist() == [4e-9, 8e-9]


def test_a_tolerance_is_relative_to_what_there_is_or_to_one() -> None:
    market = waits_for_goods(0, 8, 0, F(1, 2))
    assert HeldAndOwed.of(market, now(market)).size.tolist() == [4, 8, 1, F(1, 2)]


def test_who_has_more_than_it_is_owed_is_short_of_nothing() -> None:
    market = one_type(8, {"a": 1, "b": 3}, {"a": 4, "b": 4}, guarantee={"a": [4], "b": [2]})
    assert HeldAndOwed.of(market, now(market)).short.tolist() == [[3], [0]]


def test_one_gpu_held_or_asked_for_says_who_asks_and_a_gang_without_gpus_does_not() -> None:
    users, types = ["a"], ["H100"]
    owed = [
        Entitlements.of(users, types, held={"a": [held]}, gangs=Gangs.of(["a"], [gpus], users=users, types=types))
        for held, gpus in ((0, 0), (F(1, 2), 0), (0, 1))
    ]
    assert [says_who_asks(each) for each in owed] == [False, True, True]


def test_where_nobody_asks_everybody_wants_the_types_that_it_may_run_on() -> None:
    owed = Entitlements.of(["a"], ["T1", "T2"], guarantee={"a": [1, 1]})
    market = Market.of(
        [[1, 0]], [2, 2], users=["a"], types=["T1", "T2"], least=[[0, 0]], most=[[1, 0]], demand=[3], entitlements=owed
    )
    assert asks(market) == [{(0,): 3}]


def test_the_fastest_gpus_serve_first_and_those_of_no_use_never() -> None:
    asked: Any = {(0, 1, 2): 4}
    assert uses_of(asked, np.array([1, 3, 0]), np.array([3, 2, 9])).tolist() == [2, 2, 0]
    assert uses_of({(0, 1, 2): 9}, np.array([1, 3, 0]), np.array([3, 2, 9])).tolist() == [3, 2, 0]


def test_who_can_give_most_within_its_group_comes_first() -> None:
    """b holds more than c, of which its group lends one."""
    market = one_type(8, {"a": 0, "b": 5, "c": 3}, {"a": 9}, group={"b": "g"}, guarantee={"g": [4]})
    assert HeldAndOwed.of(market, now(market)).sources(0, 0, 9) == (("c", 3), ("b", 1))


def test_a_sum_of_halves_is_a_sum() -> None:
    assert [_sum(list(range(1, count + 1))) for count in range(6)] == [0, 1, 3, 6, 10, 15]


def test_who_is_over_its_cap_or_below_nothing_could_use_what_it_asks_for_and_no_more() -> None:
    over = one_type(8, {"a": 3, "b": 3}, {"a": 2, "b": 1}, cap={"a": [2]})
    assert HeldAndOwed.of(over, now(over)).more.tolist() == [[0], [1]]
    owing = one_type(8, {"a": 1, "b": 1}, {"a": 2})
    assert HeldAndOwed.of(owing, np.array([[F(-1)], [F(0)]])).more.tolist() == [[3], [1]]


# -- what could start -------------------------------------------------------------------------------------------------
def test_a_gang_fits_within_the_tolerance() -> None:
    gangs = Gangs.of(["a"], [10], users=["a"], types=["H100"])
    owed = Entitlements.of(["a"], ["H100"], gangs=gangs)
    market = Market.of([[1]], [10], users=["a"], types=["H100"], entitlements=owed)
    margins = [
        WholeGpuConservation().check(market, [[F(part, 1000)]], tolerance=F(1, 1000)).margin for part in (10, 11)
    ]
    assert margins == [-10, 1]


def test_where_nothing_waits_or_takes_gpus_nothing_could_start() -> None:
    full = one_type(4, {"a": 4}, {})
    assert WholeGpuConservation().check(full, now(full)).margin == 0
    over = one_type(8, {"a": 3}, {"a": 2}, cap={"a": [2]})
    assert WholeGpuConservation().check(over, now(over)).margin == 2
    assert over.entitlements is not None
    gangs = Gangs.of([*"aaa"], [3, 2, 0], users=["a"], types=["H100"], on=["H100", None, None])
    none = replace(over, entitlements=Entitlements.of(["a"], ["H100"], cap={"a": [2]}, gangs=gangs))
    assert WholeGpuConservation().check(none, now(none)).margin == 2


def test_a_gang_that_lacks_goods_on_one_type_may_start_on_the_next() -> None:
    users, types = ["a"], ["T1", "T2"]
    gangs = Gangs.of(["a"], [1], users=users, types=types, other={"cpu": [2]})
    goods = {Good("cpu", "T1"): 1, Good("cpu", "T2"): 2}
    owed = Entitlements.of(users, types, goods=goods, gangs=gangs)
    market = Market.of([[1, 1]], [1, 1], users=users, types=types, entitlements=owed)
    assert str(WholeGpuConservation().check(market, now(market)).witness) == "start g1 of a on 1 idle T2"
