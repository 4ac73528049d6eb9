"""Gavel's own policies on one instance, as its code (commit c4fa4009) answers it, and what fairopt decides there.

Five gangs on two GPUs of each of three types; ``benchmarks/against_gavel_policies.py`` compares hundreds.
"""

from __future__ import annotations

from fractions import Fraction as F
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt.backends import Highs, Session
from fairopt.backends.exact import Exact
from fairopt.by_name import allocate
from fairopt.configuring import configured
from fairopt.errors import BadInput, NotCapable
from fairopt.models import (
    GavelIsolated,
    GavelProportional,
    HierarchicalWaterFilling,
    MaxMin,
    PartialAllocation,
    WaterFilling,
)
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import LeastMakespan, ThroughputByCost
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import decide
from fairopt.problem import Entitlements, Market
from fairopt.program import Array
from fairopt.proofs.verify import Rejected, verify

SPEED = np.array([[1, 2, 4], [2, 3, 3], [1, 4, 8], [3, 4, 5], [2, 2, 9]], dtype=object)
GANG = np.array([1, 2, 4, 1, 2], dtype=object)
WEIGHT = [2, 1, 1, 3, 1]
LEFT = np.array([1000, 4000, 9000, 2000, 3000])
COST = {"k80": F(4, 5), "p100": 2, "v100": F(31, 10)}
NAMES, TYPES = ["j0", "j1", "j2", "j3", "j4"], ["k80", "p100", "v100"]
EXACTLY = {"abs": 1e-8}


def jobs(weight: Any = WEIGHT, entitlements: Entitlements | None = None) -> Market:
    """Return the market of the five: speedups are of one GPU, demands are the gangs' sizes."""
    speed = [[F(each, size) for each in row] for row, size in zip(SPEED, GANG, strict=True)]
    more: dict[str, Any] = {"demand": GANG.tolist(), "users": NAMES, "types": TYPES, "entitlements": entitlements}
    return Market.of(speed, [2, 2, 2], weight=weight, **more)


def job_market() -> JobMarket:
    return JobMarket(tuple(range(5)), jobs([1] * 5).as_(float), LEFT.astype(float), LEFT.astype(float), np.zeros(5))


def ratios(decision: Any) -> list[float]:
    """Return throughputs over those of X_equal, times the gangs."""
    return (decision.utilities * GANG / SPEED.mean(axis=1) * F(1)).astype(float).tolist()


def test_max_min_has_gavels_least_ratio() -> None:
    found = decide(MaxMin(Normaliser.EQUAL_TIME), jobs(), exact=True)
    assert min(np.array(ratios(found)) / WEIGHT) == pytest.approx(0.416666667, **EXACTLY)
    # j3 cannot use the part of its weight, and holds all down; with own partitions it is not asked to
    assert (np.array(ratios(found)) / WEIGHT).tolist() == pytest.approx([5 / 12] * 5)
    own = decide(MaxMin(), jobs(), exact=True)
    assert (np.array(ratios(own)) / WEIGHT).tolist() == pytest.approx([90 / 133, 15 / 19, 15 / 19, 5 / 12, 15 / 19])


def test_water_filling_has_gavels_levels() -> None:
    for found in (decide(WaterFilling(Normaliser.EQUAL_TIME), jobs(), Exact()), allocate(equal_time(), jobs())):
        assert ratios(found) == pytest.approx([12 / 7, 72 / 71, 72 / 71, 5 / 4, 12 / 13], **EXACTLY)


def equal_time() -> WaterFilling:
    return configured(WaterFilling(), ["normaliser=equal-time"])


def grouped(**more: Any) -> Market:
    group = {"j0": "e0", "j1": "e0", "j2": "e1", "j3": "e1", "j4": "e1"}
    return jobs([2, 1, 1, 1, 1], Entitlements.of(NAMES, TYPES, group=group, groups=["e0", "e1"], **more))


def test_hierarchical_water_filling_has_gavels_levels() -> None:
    """Entity 0 of weight 1 is fair, entity 1 of weight 2 is first in, first out."""
    policy = HierarchicalWaterFilling(Normaliser.EQUAL_TIME, fifo=("e1",))
    found = decide(policy, grouped(borrow_weight={"e1": 2}), exact=True)
    assert ratios(found) == pytest.approx([1.427710843, 0.725903614, 4.283132530, 0.024096386, 0], **EXACTLY)


def test_one_group_is_water_filling() -> None:
    owed = Entitlements.of(NAMES, TYPES, group=dict.fromkeys(NAMES, "all"))
    for normaliser in Normaliser:
        flat = decide(WaterFilling(normaliser), jobs(), exact=True)
        for market in (jobs(entitlements=owed), jobs()):
            tree = decide(HierarchicalWaterFilling(normaliser), market, exact=True)
            assert (tree.utilities == flat.utilities).all()


def test_a_group_of_weight_0_rises_when_its_siblings_are_done() -> None:
    group = {"A": "ml", "B": "bio", "C": "bio"}
    owed = Entitlements.of(list("ABC"), ["H100"], group=group, borrow_weight={"ml": 1, "bio": 0})
    market = Market.of([[1], [1], [1]], [9], demand=[5, 9, 1], users=list("ABC"), types=["H100"], entitlements=owed)
    assert decide(HierarchicalWaterFilling(), market, exact=True).shares.ravel().tolist() == [5, 3, 1]


def test_groups_lie_inside_each_other_and_floors_are_kept() -> None:
    group = {"A": "vision", "B": "vision", "C": "ml", "vision": "ml", "D": "bio"}
    more: dict[str, Any] = {"users": list("ABCD"), "types": ["H100"]}
    owed = Entitlements.of(list("ABCD"), ["H100"], group=group, borrow_weight={"bio": 3})
    market = Market.of([[1], [1], [1], [1]], [16], entitlements=owed, **more)
    assert decide(HierarchicalWaterFilling(), market, exact=True).shares.ravel().tolist() == [1, 1, 2, 12]
    owed = Entitlements.of(list("ABCD"), ["H100"], group=group, borrow_weight={"bio": 3}, guarantee={"B": [4]})
    market = Market.of([[1], [1], [1], [1]], [16], entitlements=owed, **more)
    shares = decide(HierarchicalWaterFilling(), market, exact=True).shares.ravel().tolist()
    assert shares[1] == 4
    assert [shares[3] / shares[2], shares[2] / shares[0]] == [6, 2]  # the others as fast as before


def test_hierarchical_water_filling_of_floats_in_rationals_is_proved() -> None:
    """Guards against rates in floats, in the certificate of what was decided in rationals since floats failed."""
    market = Market.of_arrays([[1e-30, 1.0], [1e20, 1.0]], [1, 1], weight=[1, 0.1])
    decision = allocate(HierarchicalWaterFilling(), market)
    assert decision.exact
    assert "as far as they can" in verify(HierarchicalWaterFilling().certify(decision).to_json())


def test_hierarchical_water_filling_refuses_what_it_cannot_read() -> None:
    with pytest.raises(BadInput, match=r"fifo: got 'e9'"):
        allocate(HierarchicalWaterFilling(fifo=("e9",)), grouped())
    with pytest.raises(BadInput, match=r"fifo: got 'e0'"):
        allocate(HierarchicalWaterFilling(fifo=("e0",)), jobs())
    by_time = HierarchicalWaterFilling(Normaliser.EQUAL_TIME)
    filled = by_time.certify(decide(by_time, grouped(), exact=True))
    assert "as hierarchical-water-filling at rates that are told with entitlements, equal-time" in verify(
        filled.to_json()
    )


def test_objectives_have_gavels_values() -> None:
    market, highs = job_market(), Session(Highs())
    own = FinishTimeFairness(normaliser=Normaliser.ISOLATED)
    assert own.isolated(market) == pytest.approx(LEFT / [2.333333333, 1.6, 1.3, 4, 2.6])
    theirs = np.array([2.770448549, 1.899736148, 1.54353562, 4.749340369, 3.08707124])  # its throughputs
    assert own.shares(market, highs)[1].objective == pytest.approx((LEFT / theirs / own.isolated(market)).max())
    theirs = np.array([0.5332771, 2.080196904, 4.667332645, 1.074012226, 1.560421074])
    longest = (LEFT / theirs).max()
    assert 0.95 * longest < LeastMakespan().shares(market, highs)[1].objective < longest  # Gavel searches within 5%


def test_throughput_by_cost_has_gavels_value_and_keeps_deadlines_where_it_can() -> None:
    market, highs = job_market(), Session(Highs())
    deadline = {"j1": 3 * 4000 / 3, "j3": 3 * 2000 / 5}
    _, found = ThroughputByCost(COST, deadline).shares(market, highs)
    rates = market.market.utility(found.values["share"])
    assert rates == pytest.approx([2, 2.5, 0, 3, 9])
    _, least = ThroughputByCost(COST, {"j2": 1800}).shares(market, highs)  # 5 steps a second
    assert market.market.utility(least.values["share"])[2] == pytest.approx(5)
    _, free = ThroughputByCost(COST).shares(market, highs)
    _, too_soon = ThroughputByCost(COST, {"j2": 1200}).shares(market, highs)  # 7.5, and it has 6 at most
    assert too_soon.objective == free.objective > least.objective
    with pytest.raises(BadInput, match="cost: got 'a100'"):
        ThroughputByCost({"a100": 1}).shares(market, highs)


def test_rules_without_an_optimiser_have_gavels_throughputs() -> None:
    found = allocate(GavelIsolated(), jobs([1] * 5), exact=True)
    assert found.utilities.astype(float).tolist() == pytest.approx([2.333333333, 1.6, 1.3, 4, 2.6])
    found = allocate(GavelProportional(), jobs(), exact=True)
    theirs = np.array([2.333333333, 2.666666667, 4.333333333, 4.0, 4.333333333])  # 10 GPUs, where there are 6
    assert found.utilities.astype(float).tolist() == pytest.approx((theirs * 6 / 10).tolist())


def test_partial_allocation_is_gavels_strategy_proof_policy() -> None:
    found = decide(PartialAllocation(), jobs([1] * 5))
    theirs = [1.474738278, 1.231974848, 0.757575757, 2.314814814, 1.736111112]
    assert found.utilities.astype(float).tolist() == pytest.approx(theirs, abs=1e-7)


def test_other_normalisers_are_not_certified_as_the_verifiers_own() -> None:
    policy = MaxMin(Normaliser.EQUAL_TIME)
    told = policy.certify(decide(policy, jobs(), exact=True)).to_json()
    assert "author of 'max-min, equal-time' wrote" in verify(told)
    with pytest.raises(NotCapable, match="the verifier has no program of max-min, equal-time"):
        policy.certify(allocate(policy, jobs()))
    filled = equal_time().certify(decide(equal_time(), jobs(), exact=True)).to_json()
    assert "ratios to equal-time throughputs are lexicographically max-min" in verify(filled)
    with pytest.raises(Rejected):  # own partitions are others where demands bind
        verify({key: value for key, value in filled.items() if key != "normaliser"})


def test_a_normaliser_is_given_by_name() -> None:
    assert configured(MaxMin(), ["normaliser=equal-time"]) == MaxMin(Normaliser.EQUAL_TIME)
    with pytest.raises(BadInput, match="normaliser: got 'equal'"):
        configured(MaxMin(), ["normaliser=equal"])


def drawn(entities: int) -> tuple[Market, Array, dict[str, Any]]:
    """Return the first market of Gavel's own test with 300 jobs, seed 0: (market, throughputs of X_equal, options)."""
    random = Random(0)
    drew = [(random.randint(0, 1) == 0, random.randint(1, 5)) for _ in range(entities)]
    names = [f"entity{e}" for e in range(entities)]
    speed, gang, weight, group = [], [], [], {}
    for i in range(300):
        speed.append(sorted(random.random() for _ in range(3)))
        gang.append(2 ** random.randint(0, 2))
        entity = random.randint(0, entities - 1) if entities else None
        own = random.randint(1, 5)
        weight.append(1 if entity is not None and drew[entity][0] else own)
        if entity is not None:
            group[f"j{i}"] = names[entity]
    users = [f"j{i}" for i in range(300)]
    weights = {name: each for name, (_, each) in zip(names, drew, strict=True)}
    owed = Entitlements.of(users, TYPES, group=group, groups=names, borrow_weight=weights) if entities else None
    per_gpu = np.array(speed) / np.array(gang)[:, None]
    more: dict[str, Any] = {"weight": weight, "demand": gang, "users": users, "types": TYPES, "entitlements": owed}
    market = Market.of(per_gpu.tolist(), [64] * 3, **more).as_(float)
    fifo = [name for name, (first, _) in zip(names, drew, strict=True) if first]
    return market, np.array(speed).mean(axis=1) / np.array(gang), {"fifo": fifo}


@pytest.mark.parametrize(
    ("entities", "total", "squares", "some"),
    [
        (0, 241.079986, 240.899447, [1.396862, 0.838117, 0.558745, 1.396862]),
        pytest.param(10, 216.949512, 536.997347, [4.988216, 1.599516, 0.200462, 1.002308], marks=pytest.mark.slow),
    ],
)
def test_gavels_own_tests_of_water_filling(entities: int, total: float, squares: float, some: list[float]) -> None:
    """water_filling_tests.py and water_filling_tests_hierarchical.py, which assert nothing: what its code finds."""
    market, equal, options = drawn(entities)
    policy = HierarchicalWaterFilling(Normaliser.EQUAL_TIME, **options) if entities else equal_time()
    found = decide(policy, market).utilities / equal
    assert [found.sum(), (found**2).sum()] == pytest.approx([total, squares], abs=1e-5)
    assert found[:4].tolist() == pytest.approx(some, abs=1e-6)
