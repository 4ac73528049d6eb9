"""The best among efficient points: against an enumeration of all efficient faces, and by the independent verifier."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.deadline import time_limit
from fairopt.errors import NotCapable, NotSolved, OutOfTime
from fairopt.methods import efficient_faces as search
from fairopt.methods.efficient_faces import best_efficient, efficient_weights, giving_out_all, improving_circle
from fairopt.models import CooperativeOEF, EfficientOEF, MaxEfficiency, NashWelfare
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import Array, Program
from fairopt.proofs.verifier.certificates import verify
from fairopt.proofs.verifier.reading import Rejected
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency
from fairopt.testing.samples import sample_markets

#: Cooperative OEF's optimum is dominated here.
DOMINATED = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
#: The first descent is not enough here.
SEARCHED_LONG = Market.of(
    [[26, 13, 12, 17], [25, 27, 9, 8], [16, 18, 8, 11], [27, 22, 25, 16], [11, 6, 20, 15]], [1] * 4
)


def envy_free(market: Market) -> Program:
    return giving_out_all(CooperativeOEF().formulate(market, None), market.speedup)


def efficient_faces(speedup: Array) -> Iterator[Array]:
    """Yield the maximal sets of pairs that somebody's weights make best: each has a spanning forest of ties."""
    n, k = speedup.shape
    pairs = [(i, j) for i in range(n) for j in range(k) if speedup[i, j]]
    trees = len(_components(n, k, pairs))
    seen = set()
    for edges in combinations(pairs, n + k - trees):
        if len(_components(n, k, edges)) > trees:
            continue
        weight: list[Fraction | None] = [None] * n
        for part in _components(n, k, edges):
            weight = _tied(speedup, edges, part, weight)
        worth = speedup * np.array(weight, dtype=object)[:, None]
        best = (worth == worth.max(axis=0)) & (speedup > 0)
        if all(best[edge] for edge in edges) and best.tobytes() not in seen:
            seen.add(best.tobytes())
            yield best


def _components(n: int, k: int, edges: object) -> list[set[int]]:
    parts = [{each} for each in range(n + k)]
    for i, j in edges:  # type: ignore[attr-defined]
        one, other = (next(part for part in parts if node in part) for node in (i, n + j))
        if one is not other:
            parts.remove(other)
            one |= other
    return parts


def _tied(speedup: Array, edges: object, part: set[int], weight: list[Fraction | None]) -> list[Fraction | None]:
    n = len(weight)
    users = [node for node in part if node < n]
    price: dict[int, Fraction] = {}
    if users:
        weight[users[0]] = Fraction(1)
    for _ in part:
        for i, j in edges:  # type: ignore[attr-defined]
            if weight[i] is not None and j not in price:
                price[j] = weight[i] * speedup[i, j]
            if weight[i] is None and j in price:
                weight[i] = price[j] / speedup[i, j]
    return weight


def by_enumeration(market: Market) -> Fraction:
    """Return the largest total on any efficient face, a linear program for each."""
    program = envy_free(market).as_(Fraction)
    found = []
    for best in efficient_faces(market.speedup):
        solution = Exact().solve(replace(program, upper=np.where(best.ravel(), program.upper, Fraction(0))))
        if solution.status is Status.OPTIMAL:
            found.append(Fraction(program.value(solution.point)))
    return max(found)


def searched(market: Market, **limits: int) -> Allocation:
    found = best_efficient(envy_free(market), market.speedup, partial(equilibrium, market), **limits)
    return Allocation("oef-efficient", market, found.shares, found.value, evidence=found)


def equilibrium(market: Market) -> Array:
    return allocate(NashWelfare(), market, exact=True).shares


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_best_of_all_efficient_faces(seed: int) -> None:
    branched = 0
    for market in (DOMINATED, *sample_markets(12, seed=seed, users=(2, 3), types=(2, 3))):
        found = searched(market).evidence
        assert found.value == found.bound == by_enumeration(market), market
        branched += bool(found.branched)
    assert branched


def test_a_circle_improves_exactly_where_shares_are_dominated() -> None:
    random, answers = np.random.default_rng(0), set()
    for market in sample_markets(40, seed=5, zeros=False, weights=False):
        holders = random.random(market.shape) < 0.6
        holders[0] |= ~holders.any(axis=0)
        shares = np.where(holders, market.capacity / holders.sum(axis=0), Fraction(0))
        circle, weights = improving_circle(market.speedup, shares), efficient_weights(market.speedup, shares)
        efficient = ParetoEfficiency().check(market, shares).answer.value == "HOLDS"
        assert (circle is None) == (weights is not None) == efficient
        answers.add(efficient)
    assert answers == {True, False}


def verdict_of(data: Any) -> tuple[list[str], str]:
    """Return why a certificate is rejected, if it is, and what it proves."""
    try:
        return [], verify(data)
    except Rejected as why:
        return [str(why)], ""


def test_the_verifier_accepts_the_tree_and_one_that_was_cut_short_with_its_gap() -> None:
    whole, cut = searched(SEARCHED_LONG), searched(SEARCHED_LONG, nodes=1)
    assert cut.evidence.value <= whole.evidence.value == whole.evidence.bound < cut.evidence.bound
    for decision in (whole, cut):
        data = json.loads(json.dumps(EfficientOEF().certify(decision).to_json()))
        rejected, said = verdict_of(data)
        assert not rejected
        assert f"with the total {decision.evidence.value}" in said
        data["bound"] = str(decision.evidence.bound - Fraction(1, 10**6))
        data["gap"] = str(decision.evidence.bound - Fraction(1, 10**6) - decision.evidence.value)
        assert verdict_of(data)[0]


def test_a_tree_with_a_part_missing_proves_nothing() -> None:
    data = EfficientOEF().certify(searched(DOMINATED)).to_json()
    for at in range(len(data["nodes"])):
        less = data | {"nodes": data["nodes"][:at] + data["nodes"][at + 1 :]}
        assert verdict_of(json.loads(json.dumps(less)))[0] == ["a part of the tree is missing"]


def test_the_first_descent_keeps_what_the_equilibrium_reaches() -> None:
    for market in sample_markets(20, seed=11, users=(4, 5), types=(3, 4)):
        held = allocate(NashWelfare(), market, exact=True)
        assert searched(market, nodes=1).evidence.value >= held.utilities.sum()


def test_without_an_efficient_point_to_begin_with_it_is_found_too() -> None:
    found = best_efficient(envy_free(DOMINATED), DOMINATED.speedup, lambda: DOMINATED.speedup * 0)
    assert found.value == by_enumeration(DOMINATED)
    # of all feasible allocations the most efficient one is the best
    everything = giving_out_all(MaxEfficiency().formulate(DOMINATED, None), DOMINATED.speedup)
    assert best_efficient(everything, DOMINATED.speedup, lambda: DOMINATED.speedup * 0).value == 9


def test_what_has_no_efficient_point_is_said_so() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    program = giving_out_all(MaxEfficiency().formulate(market, None), market.speedup)
    upper = program.upper.copy()
    upper[[0, 3]] = 0  # nobody may hold what it is relatively better on
    with pytest.raises(NotSolved, match="no point of the program is efficient"):
        best_efficient(replace(program, upper=upper), market.speedup, lambda: market.speedup * 0)
    upper[2] = 0  # nor may anybody hold the first type
    with pytest.raises(NotSolved, match="no point satisfies all constraints"):
        best_efficient(replace(program, upper=upper), market.speedup, lambda: market.speedup * 0)


def test_without_time_nothing_is_found() -> None:
    with time_limit(0), pytest.raises(OutOfTime):
        best_efficient(envy_free(DOMINATED), DOMINATED.speedup, lambda: DOMINATED.speedup * 0)


@pytest.mark.parametrize("calls", range(2, 9))
def test_wherever_time_runs_out_the_bound_is_one(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    best, asked = searched(SEARCHED_LONG).evidence.value, count(1)

    def left() -> None:
        if next(asked) >= calls:
            raise OutOfTime("now")

    monkeypatch.setattr(search, "left", left)
    try:
        decision = searched(SEARCHED_LONG)
    except OutOfTime:
        return  # before anything was found
    assert decision.evidence.value <= best <= decision.evidence.bound
    assert not verdict_of(json.loads(json.dumps(EfficientOEF().certify(decision).to_json())))[0]


def test_demands_entitlements_and_many_users_are_refused_by_name() -> None:
    with pytest.raises(NotCapable, match="oef-efficient does not support demands, and u2 has one; leave demands out"):
        allocate("oef-efficient", Market.of([[1, 2], [1, 5]], [1, 1], demand=[float("inf"), 1]))
    with pytest.raises(NotCapable, match="of 100 at most; got 101"):
        allocate("oef-efficient", Market.of([[1, 2]] * 101, [1, 1]))
