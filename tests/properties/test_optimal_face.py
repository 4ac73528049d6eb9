"""Properties over all optima, against all vertices of the optimal face: every set of tight constraints is tried."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from fractions import Fraction as F
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.errors import NotCapable
from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NashWelfare, NonCooperativeOEF, SecondPriceTrading
from fairopt.models.oef.cooperative import NOT_ADJACENT, NOT_PARETO_EFFICIENT
from fairopt.policy import Allocation, Formulated
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Program
from fairopt.properties import (
    AdjacentTypes,
    EnvyFreeness,
    ParetoEfficiency,
    SharingIncentive,
    WorkConservation,
    over_optima,
)
from fairopt.properties.property import AllocationProperty
from fairopt.properties.verdict import Answer
from fairopt.report import Statement
from fairopt.testing.samples import sample_markets

ADDITIVE = (SharingIncentive(), EnvyFreeness())
BY_SUPPORT = (AdjacentTypes(), ParetoEfficiency())
MARKETS = {
    "alike": Market.of([[1, 2], [1, 2]], [1, 1]),
    "alike on three types": Market.of([[1, 2, 3], [1, 2, 3]], [1, 1, 1]),
    "a tie on one type": Market.of([[1, 2, 2], [1, 3, 3]], [1, 1, 1]),
    "gaps in every optimum": NOT_ADJACENT,
    "cannot run everywhere": Market.of([[1, 1], [1, 0]], [1, 2]),
    "nobody runs on the second": Market.of([[1, 0, 2], [1, 0, 2]], [1, 1, 1]),
    "weights": Market.of([[1, 2, 2], [2, 4, 4]], [1, 2, 1], weight=[1, 2]),
    "three alike": Market.of([[1, 1], [1, 1], [1, 2]], [1, 1]),
    "demands": Market.of([[1, 2], [1, 2]], [2, 1], demand=[1, None]),
    "demands, alike": Market.of([[1, 2], [1, 2]], [2, 1], demand=[2, 1]),
}
MARKETS |= {
    f"drawn {seed}": next(sample_markets(1, seed=seed, users=(2, 3), types=(2, 2), most=3, demands=True, alike=True))
    for seed in (0, 3, 7, 9, 15, 21)
}
POLICIES = (MaxEfficiency(), MaxMin(), NonCooperativeOEF(), CooperativeOEF())


def decided(policy: Formulated, market: Market, property: AllocationProperty) -> Statement:
    return over_optima(policy, allocate(policy, market, Exact()), property)


def vertices(program: Program) -> list[tuple[F, ...]]:
    """Return all vertices of a program's feasible set: whatever as many tight constraints as variables meet in."""
    count = len(program.cost)
    sides: list[tuple[list[F], F, F]] = []  # a . x between low and high
    for j in range(count):
        sides.append(([F(int(i == j)) for i in range(count)], program.lower[j], program.upper[j]))
    rows = [[F(0)] * count for _ in range(len(program.rows))]
    for r, j, value in zip(program.rows.row, program.rows.column, program.rows.value, strict=True):
        rows[r][j] += value
    sides += list(zip(rows, program.rows.lower, program.rows.upper, strict=True))
    tight = [(a, F(side)) for a, low, high in sides for side in {low, high} if abs(side) != INFINITY]
    always = [(a, F(low)) for a, low, high in sides if low == high]
    found = set()
    for chosen in combinations([entry for entry in tight if entry not in always], count - _rank(always)):
        system = [*always, *chosen]
        x = _solution(system, count)
        if x is not None and all(low <= _product(a, x) <= high for a, low, high in sides):
            found.add(x)
    return sorted(found)


def _product(a: list[F], x: tuple[F, ...]) -> F:
    return sum((p * q for p, q in zip(a, x, strict=True)), F(0))


def _matrix(rows: list[list[F]]) -> fmpq_mat:
    entries = [fmpq(value.numerator, value.denominator) for row in rows for value in row]
    return fmpq_mat(len(rows), len(rows[0]), entries)


def _rank(system: list[tuple[list[F], F]]) -> int:
    return int(_matrix([a for a, _ in system]).rank()) if system else 0


def _solution(system: list[tuple[list[F], F]], count: int) -> tuple[F, ...] | None:
    reduced, rank = _matrix([[*a, side] for a, side in system]).rref()
    if rank != count or reduced[count - 1, count - 1] != 1:
        return None
    return tuple(F(int(reduced[j, count].p), int(reduced[j, count].q)) for j in range(count))


def corners(policy: Formulated, best: Allocation) -> list[Array]:
    face = policy.optimal_face(best)
    assert face is not None
    face = face.as_(Fraction)
    block = next(block for block in face.variable_blocks if block.name == "share")
    flat = {point[block.span] for point in vertices(face)}
    assert flat
    return [np.array(point, dtype=object).reshape(best.market.shape) for point in sorted(flat)]


def middles(found: list[Array]) -> Iterator[Array]:
    """Yield the middles of sets of vertices, of all sets where they are few: one is inside of every face."""
    sizes = range(1, len(found) + 1) if len(found) <= 5 else (1, 2, 3, len(found))
    for some in chain.from_iterable(combinations(found, size) for size in sizes):
        yield sum(some) / F(len(some))


def pairs() -> Iterator[Any]:
    """Yield each market with each policy: in every run with one of them in turn, in the campaign with all."""
    for number, (name, market) in enumerate(MARKETS.items()):
        for place, policy in enumerate(POLICIES):
            marks = [pytest.mark.slow] if (number + place) % len(POLICIES) else []
            yield pytest.param(policy, market, id=f"{name}-{policy.name}", marks=marks)


@pytest.mark.parametrize(("policy", "market"), [*pairs()])
def test_it_agrees_with_all_vertices_and_shows_optima(policy: Formulated, market: Market) -> None:
    best = allocate(policy, market, Exact())
    found = corners(policy, best)
    assert len(found) <= 10, "the middles of all sets of vertices are meant to be few"
    points = list(middles(found))
    for property in (*ADDITIVE, *BY_SUPPORT):
        at = [property.check(market, point).answer is Answer.HOLDS for point in points]
        answer = over_optima(policy, best, property)
        for verdict in (answer.some, answer.every):
            undecided = verdict.answer is Answer.NOT_REFUTED
            assert not undecided or (verdict is answer.some and market.demand is not None), property.name
            assert verdict.exact is not undecided
        if answer.every.answer is Answer.HOLDS:
            assert all(at), property.name
        if answer.every.answer is Answer.FAILS:
            # what breaks a property breaks it at a middle: linear slacks are least at vertices, capped ones need not be
            assert not all(at) or (property in ADDITIVE and market.demand is not None)
        if answer.every.answer is Answer.HOLDS and property in ADDITIVE and market.demand is None:
            assert answer.every.margin == min(property.check(market, point).margin for point in points)
        if answer.some.answer is Answer.FAILS:
            assert not any(at), property.name
        if answer.some.answer is Answer.HOLDS and property in BY_SUPPORT:
            assert any(at), property.name
        for shares, wanted in ((answer.having, Answer.HOLDS), (answer.lacking, Answer.FAILS)):
            if shares is not None:
                assert property.check(market, shares).answer is wanted, property.name
                if policy.name != "max-min":  # whose objective is not a sum of throughputs
                    assert market.utility(shares).sum() == best.utilities.sum(), property.name


def test_an_optimum_with_and_one_without() -> None:
    market = MARKETS["alike"]
    answer = decided(MaxEfficiency(), market, SharingIncentive())
    assert (answer.some.answer, answer.every.answer) == (Answer.HOLDS, Answer.FAILS)
    assert answer.every.margin == F(-3, 2)  # somebody can be left with nothing
    assert answer.every.witness.refutes(market, answer.lacking)
    adjacent = decided(MaxEfficiency(), MARKETS["alike on three types"], AdjacentTypes())
    assert (adjacent.some.answer, adjacent.every.answer) == (Answer.HOLDS, Answer.FAILS)


def test_no_optimum_is_adjacent_or_efficient() -> None:
    for policy in (CooperativeOEF(), NonCooperativeOEF()):
        assert decided(policy, NOT_ADJACENT, AdjacentTypes()).some.answer is Answer.FAILS
    assert decided(CooperativeOEF(), NOT_PARETO_EFFICIENT, ParetoEfficiency()).some.answer is Answer.FAILS


def test_pareto_efficiency_of_some_optimum_only() -> None:
    # max-min of the first two users leaves the third open: all of the second type is its to waste
    market = Market.of([[1, 0], [1, 0], [0, 1]], [1, 1])
    answer = decided(MaxMin(), market, ParetoEfficiency())
    assert (answer.some.answer, answer.every.answer) == (Answer.HOLDS, Answer.FAILS)
    assert answer.lacking is not None
    assert ParetoEfficiency().check(market, answer.lacking).witness.refutes(market, answer.lacking)


def test_what_optimises_nothing_has_one_allocation() -> None:
    policy = SecondPriceTrading()
    decision = allocate(policy, NOT_ADJACENT)
    answer = over_optima(policy, decision, AdjacentTypes())
    assert answer.some.answer is answer.every.answer is AdjacentTypes().check(NOT_ADJACENT, decision.shares).answer


def test_equilibria_are_ranged_over_too() -> None:
    policy = NashWelfare()
    decision = allocate(policy, MARKETS["alike"])
    assert decision.exact
    answer = over_optima(policy, decision, EnvyFreeness())
    assert answer.every.answer is Answer.HOLDS


def test_another_property_is_decided_by_the_one_optimum_only() -> None:
    answer = decided(MaxEfficiency(), MARKETS["alike"], WorkConservation())
    assert (answer.some.answer, answer.every.answer) == (Answer.HOLDS, Answer.NOT_REFUTED)


def test_floats_are_refused() -> None:
    policy = CooperativeOEF()
    with pytest.raises(NotCapable, match="floats"):
        over_optima(policy, allocate(policy, MARKETS["alike"], Highs()), EnvyFreeness())
