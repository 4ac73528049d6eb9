"""The conformance suites of properties: of allocations, and of policies.

>>> from fairopt.properties import Feasibility
>>> property_suite().run([Feasibility()]).require_complete()
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np

from fairopt.by_name import allocate
from fairopt.discovery import policy, properties
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import AllocationProperty, Answer, MechanismProperty, Verdict
from fairopt.properties.lattice import contradictions
from fairopt.testing import mechanism_checks, verdict_checks
from fairopt.testing.samples import entitled_markets, sample_markets
from fairopt.testing.suite import Suite, Traits, checks_of
from fairopt.testing.verdict_checks import Cases, asked_once

__all__ = ["mechanism_suite", "property_suite"]


def property_suite() -> Suite[AllocationProperty]:
    """Return the suite of properties of allocations.

    >>> [each.name for each in property_suite().checks][:2]
    ['says what it is', 'instances hold and fail']
    """
    return Suite(
        "properties of allocations",
        checks_of(verdict_checks, sys.modules[__name__], given=asked_once(_asked)),
        lambda each: Traits(each.name),
    )


def mechanism_suite() -> Suite[MechanismProperty]:
    """Return the suite of properties of policies.

    >>> [each.name for each in mechanism_suite().checks][:2]
    ['finds a known misreport', 'does not refute what ignores reports']
    """
    return Suite("properties of policies", checks_of(mechanism_checks), lambda each: Traits(each.name))


def exact_and_float_agree_away_from_the_boundary(each: AllocationProperty, given: Cases) -> None:
    """Guards against strict float comparisons: 28 of 40 right HiGHS answers were once called envious by 2.7e-15."""
    compared = 0
    for (market, shares), exact in given(each):
        rounded = each.check(market, shares.astype(float))
        assert exact.exact
        assert exact.margin is not None
        if exact.margin == 0 or abs(float(exact.margin)) > 1e-3:
            compared += 1
            assert exact.answer is rounded.answer, f"{exact} in Fractions, {rounded} in floats"
    assert compared


def units_do_not_matter(each: AllocationProperty, given: Cases) -> None:
    """Guards against checkers that compare throughputs of different users, who have units of their own."""
    for (market, shares), verdict in given(each):
        factors = {user: Fraction(10 ** (3 * i), 7) for i, user in enumerate(market.users)}
        assert verdict.answer is each.check(market.rescaled(factors), shares).answer


def is_undecided_where_it_is_not_asked(each: AllocationProperty) -> None:
    """Guards against a property that holds of what the market says nothing of."""
    for market, shares in cases():
        if not each.asked_of(market):
            assert each.check(market, shares).answer is Answer.UNDECIDED


def lattice_is_respected(each: AllocationProperty, given: Cases) -> None:
    """Guards against one checker contradicting another (no envy and nothing left over give sharing incentive)."""
    others = (said for case, said in zip(cases(), _verdicts_of_all(), strict=True) if each.asked_of(case[0]))
    for ((market, shares), verdict), said in zip(given(each), others, strict=True):
        verdicts = {**said, each.name: verdict}
        broken = contradictions(verdicts, demands=market.demand is not None)
        assert not broken, f"{broken} on {shares.tolist()}"


def leaves_the_allocation_alone(each: AllocationProperty) -> None:
    """Guards against checkers that normalise in place."""
    for market, shares in _asked(each):
        before = shares.copy()
        each.check(market, shares)
        assert np.array_equal(before, shares)


@cache
def _verdicts_of_all() -> tuple[dict[str, Verdict], ...]:
    """Return what all installed properties say of `cases`: asked once, for every property that is held against them."""
    return tuple({each.name: each.check(*case) for each in of_allocations()} for case in cases())


def _asked(each: AllocationProperty) -> Iterator[tuple[Market, Array]]:
    return (case for case in cases() if each.asked_of(case[0]))


def cases() -> Iterator[tuple[Market, Array]]:
    """Yield exact markets with exact allocations: fair, lopsided, wasteful, traded, with demands, and entitled."""
    return ((market, shares.copy()) for market, shares in _sampled())


@cache
def _sampled() -> tuple[tuple[Market, Array], ...]:
    """Return `cases`: drawing and trading take as long as most checks."""
    return tuple(_drawn())


def _drawn() -> Iterator[tuple[Market, Array]]:
    random = np.random.default_rng(7)
    for market in sample_markets(25, seed=21, users=(2, 4), types=(1, 3), demands=True):
        n, k = market.shape
        parts = random.integers(0, 4, (n, k)).astype(object)
        total = np.maximum(parts.sum(axis=0), 1)
        yield market, parts * Fraction(1) / total * market.capacity
        yield market, market.equal_split() * Fraction(1, 2)
        yield market, market.equal_split()
    for market in sample_markets(10, seed=22, users=(2, 4), types=(2, 3)):
        yield market, allocate(policy("second-price-trading"), market).shares
        over = market.equal_split().copy()
        over[0, 0] = over[0, 0] + Fraction(1, 3)
        yield market, over
    for market in entitled_markets(40, seed=23):
        held, k = market.entitlements.held, len(market.types)  # type: ignore[union-attr]
        yield market, held[:, :k]
        yield market, np.asarray(held[::-1, :k] * Fraction(1))
        yield market, market.equal_split()


def of_allocations() -> list[AllocationProperty]:
    """Return one of each installed property of allocations."""
    return [each for each in properties(Market) if isinstance(each, AllocationProperty)]


def of_policies() -> list[MechanismProperty]:
    """Return one of each installed property of policies of shares."""
    return [each for each in properties(Market) if isinstance(each, MechanismProperty)]
