"""Speedups may be in any unit and capacities of any size: floats agree with the exact optimum all the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.scaling import scaled
from fairopt.backends.trust import refuse_broken, refuse_unsure
from fairopt.errors import NotSolved
from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF, WaterFilling
from fairopt.policy import Policy, uniqueness
from fairopt.problem import Market
from fairopt.program import Formulation
from fairopt.testing.backend_programs import CASES

POLICIES: list[Policy] = [MaxEfficiency(), NonCooperativeOEF(), CooperativeOEF(), MaxMin(), WaterFilling()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("unit", [-9, -6, -3, 0, 3, 6])
@pytest.mark.parametrize("gpus", [-4, 0, 6])
def test_units_and_sizes_do_not_matter(policy: Policy, unit: int, gpus: int) -> None:
    speedup = [
        [Fraction(s) * Fraction(10) ** unit for s in row] for row in ((1, 2, 5), (1, 3, 4), (2, 4, 5), (1, 1, 2))
    ]
    market = Market.of(speedup, capacity=[Fraction(c) * Fraction(10) ** gpus for c in (4, 2, 3)])
    floats, exact = allocate(policy, market), allocate(policy, market, Exact())
    assert float(floats.objective) == pytest.approx(float(exact.objective), rel=1e-6)


@pytest.mark.parametrize("unit", ["1e4", "1e6", "1e8"])
def test_a_user_in_large_units_does_not_drown_the_others(unit: str) -> None:
    market = Market.of([[unit, 0], [0, 1], [0, 2]], capacity=[1, 1])
    assert allocate(MaxEfficiency(), market).shares.tolist() == [[1, 0], [0, 0], [0, 1]]


def test_an_overbooked_answer_is_refused_beside_a_large_type() -> None:
    decision = allocate(MaxEfficiency(), Market.of([[1, 0], [0, 1]], capacity=[1, 10**6]))
    assert decision.program is not None
    assert decision.solution is not None
    x = decision.solution.point.copy()
    x[0] = 1.1
    with pytest.raises(NotSolved, match=r"capacity\[T1\]"):
        refuse_broken(decision.program, replace(decision.solution, x=x))


@pytest.mark.parametrize("weight", [1, 10**4, 10**6])
def test_water_filling_does_not_drift_with_the_weights(weight: int) -> None:
    decision = allocate(WaterFilling(), Market.of([[1], [1]], capacity=[2], weight=[1, weight]))
    assert decision.utilities == pytest.approx([2 / (1 + weight), 2 * weight / (1 + weight)], rel=1e-9)


def test_a_type_without_gpus_leaves_no_choice() -> None:
    policy, market = WaterFilling(), Market.of([[4, 2]], capacity=[5, 0])
    assert uniqueness(policy, allocate(policy, market)).shares is True


def test_speedups_on_a_type_of_which_there_is_none_do_not_count() -> None:
    """They were the measure of their rows, so that the others were noise."""
    speedup = np.array([[3.09, 0], [4.3e-4, 679897.0], [7.8e-6, 0.845], [16.55, 0]])
    market = Market.of_arrays(speedup, np.array([7.0, 0.0]), weight=np.array([1.0, 3.0, 3.0, 1.0]))
    for asked in (WaterFilling(), MaxMin(), MaxEfficiency()):
        found, right = allocate(asked, market, Highs()), allocate(asked, market, exact=True)
        assert float(found.objective) == pytest.approx(float(right.objective), rel=1e-9)
        assert found.program is not None
        assert found.solution is not None
        refuse_unsure(found.program, found.solution)  # its duals are those of the program itself


def test_scaling_ships_its_inverse() -> None:
    """Scale each linear program of the conformance suite by hand into odd units: the way back gives the same answer."""
    odd = 0
    for case in CASES:
        program = case.program().as_(float)
        if program.logarithms is not None or program.integer.any() or not program.shape[0]:
            continue
        ordinary = scaled(program)
        odd += ordinary.program is not program
        plain, back = Highs()._solve(program, options()), ordinary.back(Highs()._solve(ordinary.program, options()))
        assert plain.status is back.status, case.name
        if plain.x is not None and plain.dual is not None:
            assert back.objective == pytest.approx(plain.objective)
            assert np.allclose(program.reduced_cost(back.x, back.dual), back.reduced_cost, atol=1e-9)
    assert odd


def options() -> object:
    from fairopt.backends import Options

    return Options()


def test_a_market_is_frozen_in_every_form() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=[1, None])
    for form in (market, market.as_(float), market.misreport(0, [1, 3]), market.select([1, 0]), market.normalised()):
        for array in (form.speedup, form.capacity, form.weight, form.demand):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7


@pytest.mark.parametrize("part", [0.9, 1 - 2e-5])
def test_a_part_of_what_is_whole_is_no_answer(part: float) -> None:
    p = Formulation("knapsack")
    take = p.variable("take", 3, lower=0, upper=1, integer=True)
    p.maximize((np.array([3.0, 4.0, 2.0]) * take).sum())
    p.constrain("room", (np.array([3.0, 4.0, 2.0]) * take).sum() <= 7)
    best = Highs().optimum(p.program())
    refuse_broken(p.program(), best)
    with pytest.raises(NotSolved, match=r"highs calls a point optimal where take\[1\] is"):
        refuse_broken(p.program(), replace(best, x=np.array([1.0, part, 0.0])))
