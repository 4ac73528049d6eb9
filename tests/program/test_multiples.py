"""A program written once for all arrays with the same zeros is the one that is written for each."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest

from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF
from fairopt.policy import Formulated
from fairopt.problem import Market
from fairopt.program import Array, Program
from fairopt.program.batched import Multiple, Multiples, numbers_of

MARKET = Market.of([[1, 2, 0], [1, 3, 4], [2, 1, 5]], capacity=[1, 2, 1], weight=[1, 2, 3]).as_(float)


def written(policy: Formulated, market: Market, speedup: Array) -> Program:
    return policy.formulate(replace(market, speedup=speedup), None)


@pytest.mark.parametrize("policy", [CooperativeOEF(), NonCooperativeOEF(), MaxEfficiency()], ids=lambda each: each.name)
def test_the_programs_of_many_arrays_are_those_written_for_each(policy: Formulated) -> None:
    known = Multiples.written(lambda speedup: written(policy, MARKET, speedup), MARKET.speedup)
    others = MARKET.speedup * np.random.default_rng(1).uniform(0.1, 10, (6, 3, 3))
    others[2, 1, 1], others[4, 0, 2] = 0.0, 1.0  # one zero more, and one fewer: another program
    assert known.fits(others).tolist() == [True, True, False, True, False, True]
    programs = known.programs(others, np.array([0, 3, 5]))
    for place, case in enumerate([0, 3, 5]):
        one, other = programs.program(place), written(policy, MARKET, others[case])
        assert one.same_structure(other)
        for mine, theirs in zip(numbers_of(one), numbers_of(other), strict=True):
            assert np.allclose(mine, theirs.astype(float), rtol=1e-14, atol=0)


def test_a_program_whose_numbers_mix_entries_is_not_written_so() -> None:
    with pytest.raises(TypeError):
        Multiples.written(lambda speedup: written(MaxMin(), MARKET, speedup), MARKET.speedup)


def test_a_multiple_is_what_its_entry_makes_of_it() -> None:
    entry, value = Multiple(3, 2.0), 2.0 * 7
    for made, number in [
        (entry * 3, value * 3), (3 * entry, value * 3), (entry / 4, value / 4), (-entry, -value), (entry + 0, value),
        (0 - entry, -value), (entry + entry, 2 * value), (entry - Multiple(3, 0.5), value - 3.5),
    ]:  # fmt: skip
        assert isinstance(made, Multiple)
        assert (made.place, made.factor * 7) == (3, number)
    assert entry * 0 == 0.0
    assert entry - entry == 0.0


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_a_multiple_compares_with_zero_and_with_its_own_entry_only(compare: object) -> None:
    assert callable(compare)
    for factor in (2.0, -2.0):
        assert compare(Multiple(0, factor), 0) == compare(factor, 0)
        assert compare(Multiple(0, factor), Multiple(0, 2.0)) == compare(factor, 2.0)
    for other in (1.0, Multiple(1, 2.0)):
        with pytest.raises(TypeError):
            compare(Multiple(0, 2.0), other)


@pytest.mark.parametrize(
    "use", [lambda one: one + 1.0, lambda one: one * one, lambda one: 1.0 / one, lambda one: one - Multiple(1, 1.0)]
)
def test_what_is_no_multiple_of_one_entry_is_refused(use: object) -> None:
    assert callable(use)
    with pytest.raises(TypeError):
        use(Multiple(0, 2.0))
