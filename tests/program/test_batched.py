"""Programs formulated at once for many arrays are those that are written for each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF
from fairopt.policy import Formulated
from fairopt.problem import Market
from fairopt.program import Array, Program
from fairopt.program.batched import formulated, numbers_of

MARKET = Market.of([[1, 2, 0], [1, 3, 4], [2, 1, 5]], capacity=[1, 2, 1], weight=[1, 2, 3]).as_(float)
POLICIES = [CooperativeOEF(), NonCooperativeOEF(), MaxEfficiency(), MaxMin()]


def written(policy: Formulated, market: Market, speedup: Array) -> Program:
    return policy.formulate(replace(market, speedup=speedup), None)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda each: each.name)
def test_the_programs_of_many_arrays_are_those_written_for_each(policy: Formulated) -> None:
    others = MARKET.speedup * np.random.default_rng(1).uniform(0.1, 10, (6, 3, 3))
    others[2, 1, 1], others[4, 0, 2] = 0.0, 1.0  # one zero more, and one fewer: other programs
    found = list(formulated(lambda speedup: written(policy, MARKET, speedup), others))
    assert sorted(sorted(each.cases.tolist()) for each in found) == [[0, 1, 3, 5], [2], [4]]
    for programs in found:
        for place, case in enumerate(programs.cases.tolist()):
            one, other = programs.program(place), written(policy, MARKET, others[case])
            assert one.same_structure(other)
            for mine, theirs in zip(numbers_of(one), numbers_of(other), strict=True):
                assert np.allclose(mine, theirs.astype(float), rtol=1e-14, atol=0)
