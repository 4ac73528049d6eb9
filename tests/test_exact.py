"""With ``exact=True`` the numbers are the optimum; else the proven interval is what is returned and said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import Market, allocate
from fairopt.errors import NotCapable
from fairopt.models import HierarchicalWaterFilling
from fairopt.proofs.verify import verify
from fairopt.testing.samples import sample_markets


@pytest.mark.parametrize("count", counts(15, 60))
def test_partial_allocation_never_returns_floats_where_rationals_are_asked_for(count: int) -> None:
    market = Market.of([[1, 2, 4]], capacity=[2, 3, 1], demand=[1])
    markets = [market, *sample_markets(count, seed=21), *sample_markets(count, seed=22, demands=True)]
    refused, said = 0, set[str]()
    for each in markets:
        try:
            found = allocate("partial-allocation", each, exact=True)
        except NotCapable as error:
            refused += 1
            said.add(str(error).split(";")[0])
            continue
        assert all(type(share) is Fraction for share in found.shares.ravel()), f"floats on {each}"
    assert 0 < refused < len(markets)
    assert said == {"no exact allocation of partial-allocation is known on this market"}


def test_a_part_that_is_an_irrational_root_is_not_called_exact() -> None:
    """User 2 keeps the root of 4/9 times what is no square."""
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], weight=[1, 2])
    found = allocate("partial-allocation", market, exact=True)
    assert found.arithmetic.exact
    assert found.error
    assert not found.exact
    assert "irrational" in repr(found)


def test_nash_welfare_that_is_irrational_is_an_interval() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[2, 1], demand=[1, 2])
    irrational = 0
    for each in (market, *sample_markets(40, seed=23, demands=True)):
        found = allocate("nash-welfare", each, exact=True)
        assert found.arithmetic.exact
        assert found.exact == (not found.error)
        if found.error:
            irrational += 1
            assert found.solution is not None
            assert found.solution.lower is not None
            assert found.solution.upper is not None
            assert found.solution.lower < found.objective < found.solution.upper
    assert irrational


@pytest.mark.parametrize("policy", ["hierarchical-water-filling", "water-filling"])
def test_what_has_an_exact_optimum_is_exact(policy: str) -> None:
    for each in sample_markets(10, seed=24, demands=True):
        assert allocate(policy, each, exact=True).exact


@pytest.mark.parametrize("count", counts(12, 40))
def test_without_groups_hierarchical_water_filling_is_water_filling(count: int) -> None:
    known = Market.of([[61, 68], [53, 91]], capacity=[5, 1], demand=[2, "5/2"])
    for each in (known, *sample_markets(count, seed=25), *sample_markets(count, seed=26, demands=True)):
        own, plain = (allocate(name, each, exact=True) for name in ("hierarchical-water-filling", "water-filling"))
        assert np.array_equal(own.utilities, plain.utilities), f"{own.utilities} and {plain.utilities} on {each}"
        assert "rise as far as they can" in verify(HierarchicalWaterFilling().certify(own).to_json())
