"""Checkers against their definitions, written down again: on random small markets every case is looked at.

Margins are compared too, and what each conceivable witness says, in rational numbers, in floats and with a tolerance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn_seeds import seeds
from scipy.optimize import linprog

from fairopt.problem import Market
from fairopt.program import INFINITY
from fairopt.properties import (
    AdjacentTypes,
    AllocationProperty,
    Answer,
    EnvyFreeness,
    Feasibility,
    ParetoEfficiency,
    SharingIncentive,
    WorkConservation,
)
from fairopt.properties.property import SlackCase
from fairopt.properties.shares.pareto_efficiency import dominates
from fairopt.testing.samples import sample_markets

F = Fraction


def drawn(count: int, seed: int, *, below: bool = False, most: int = 3) -> Iterator[tuple[Market, Any]]:
    """Yield markets of up to three users and ``most`` types, and shares: of all GPUs, of some, of more than there are.

    ``below``: some of the shares are below 0, which is not feasible, and is worth nothing that papers speak of.
    """
    random = np.random.default_rng(seed)
    for market in sample_markets(count, seed=seed, users=(1, 3), types=(1, most), demands=True, alike=True):
        parts = random.integers(0, 4, market.shape).astype(object) * F(1)
        total = np.maximum(parts.sum(axis=0), 1)
        scale = random.choice([F(1), F(1), F(1), F(2, 3), F(4, 3)], len(total))
        shares = parts / total * market.capacity * scale
        if below and random.random() < 0.15:
            shares[random.integers(market.shape[0]), random.integers(market.shape[1])] -= F(1, 2)
        yield market, shares


def used(market: Market, i: int, bundle: Any) -> list[Fraction]:
    """Return which of a bundle's GPUs a user uses: the fastest ones, as far as its demand goes."""
    left, out = market.limit[i], [F(0)] * len(bundle)
    for j in sorted(range(len(bundle)), key=lambda j: -market.speedup[i, j]):
        if market.speedup[i, j] > 0:
            out[j] = min(bundle[j], left)
            left -= out[j]
    return out


def worth(market: Market, i: int, bundle: Any) -> Fraction:
    return sum((v * x for v, x in zip(market.speedup[i], used(market, i, bundle), strict=True)), F(0))


def part(market: Market, i: int) -> list[Fraction]:
    return [m * market.weight[i] / sum(market.weight) for m in market.capacity]


def sizes(market: Market) -> list[Fraction]:
    """Return what a tolerance is relative to: the GPUs of the type; without any, one, or the least number of others."""
    least = min(m for m in market.capacity if m > 0)
    return [m if m > 0 else min(F(1), least) for m in market.capacity]


def envy(market: Market, shares: Any) -> Iterator[SlackCase]:
    users = range(len(market.users))
    for i, other in itertools.product(users, users):
        theirs = [x * market.weight[i] / market.weight[other] for x in shares[other]]
        own, value = worth(market, i, shares[i]), worth(market, i, theirs)
        if i != other or len(users) == 1:
            shown = {"envied": market.users[other], "throughput": own, "with_others_shares": value}
            yield EnvyFreeness().case(own - value, worth(market, i, part(market, i)), user=market.users[i], **shown)


def incentive(market: Market, shares: Any) -> Iterator[SlackCase]:
    for i, user in enumerate(market.users):
        own, fair = worth(market, i, shares[i]), worth(market, i, part(market, i))
        yield SharingIncentive().case(own - fair, fair, user=user, throughput=own, own_partition=fair)


def overbooked(slack: Any, size: Any, kind: str, given: Any, there: Any, user: str | None = None) -> SlackCase:
    return Feasibility().case(slack, size, type=kind, given=given, capacity=there, user=user)


def gap(slack: Any, user: str, slower: str, skipped: str, faster: str, order: tuple[str, ...]) -> SlackCase:
    shown = {"user": user, "slower": slower, "skipped": skipped, "faster": faster, "order": order}
    return AdjacentTypes().case(slack, 1, **shown)


def feasible(market: Market, shares: Any) -> Iterator[SlackCase]:
    for j, (name, size) in enumerate(zip(market.types, sizes(market), strict=True)):
        given = sum(shares[:, j].tolist())
        yield overbooked(market.capacity[j] - given, size, name, given, market.capacity[j])
        for i, user in enumerate(market.users):
            if shares[i, j] < 0:
                yield overbooked(shares[i, j], size, name, shares[i, j], market.capacity[j], user)


def conserving(market: Market, shares: Any) -> Iterator[SlackCase]:
    """A GPU is idle that nobody uses; what a user could do with it is limited by what it still asks for."""
    uses = [used(market, i, row) for i, row in enumerate(shares)]
    for j, (name, size) in enumerate(zip(market.types, sizes(market), strict=True)):
        idle = market.capacity[j] - sum(row[j] for row in uses)
        for i, user in enumerate(market.users):
            if market.speedup[i, j] > 0:
                room = market.limit[i] - sum(uses[i])
                wasted = min(idle, room)
                shown = {"type": name, "idle": idle, "user": user, "could_use": wasted}
                relative = min(idle / size, room / market.limit[i] if market.limit[i] < INFINITY else idle / size)
                yield WorkConservation().case(-wasted, wasted / relative if relative else F(1), **shown)


def adjacent(market: Market, shares: Any) -> Iterator[SlackCase]:
    """A gap is between two types that are held, and none of a type between them; the poorer side is what is missing."""
    there = [j for j, m in enumerate(market.capacity) if m > 0]
    for i, user in enumerate(market.users):
        for a, b, c in itertools.combinations(range(len(there)), 3):
            row = [shares[i, j] for j in there]
            if row[a] > 0 and row[c] > 0 and all(x <= 0 for x in row[a + 1 : c]) and b == a + 1:
                names = tuple(market.types[j] for j in there)
                side = min(sum(row[: a + 1], F(0)), sum(row[c:], F(0)))
                yield gap(-side, user, names[a], names[b], names[c], names)


DEFINITIONS: list[tuple[AllocationProperty, Callable[[Market, Any], Iterator[SlackCase]]]] = [
    (EnvyFreeness(), envy),
    (SharingIncentive(), incentive),
    (Feasibility(), feasible),
    (WorkConservation(), conserving),
    (AdjacentTypes(), adjacent),
]


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize(("asked", "definition"), DEFINITIONS, ids=[each.name for each, _ in DEFINITIONS])
def test_answer_and_margin_are_those_of_the_worst_case(
    asked: AllocationProperty, definition: Callable[[Market, Any], Iterator[SlackCase]], seed: int
) -> None:
    answers = set()
    for market, shares in drawn(
        60, seed, below=asked.name == "feasibility", most=5 if asked.name == "adjacent_types" else 3
    ):
        cases = list(definition(market, shares))
        worst = min((case.slack / case.size for case in cases), default=F(0))
        verdict = asked.check(market, shares)
        answers.add(verdict.answer)
        assert verdict.exact
        assert (verdict.answer is Answer.FAILS) == (worst < 0), (market, shares)
        margins = {case.slack for case in cases if case.slack / case.size == worst} or {0}
        if asked.name in ("work_conservation", "adjacent_types"):  # what is not lacking is no slack
            margins = {min(margin, F(0)) for margin in margins}
        assert verdict.margin in margins, (market, shares, cases)
        if verdict.answer is Answer.FAILS:
            assert verdict.witness.parts in [case.parts for case in cases if case.slack == verdict.margin]
            assert verdict.witness.refutes(market, shares)
        if asked.name == "adjacent_types":
            continue
        for tolerance in (F(0), F(1, 100), F(1, 4), F(1), -worst):
            if tolerance >= 0:
                loose = asked.check(market, shares, tolerance=tolerance)
                assert (loose.answer is Answer.FAILS) == (worst < -tolerance)
                assert loose.exact == (worst >= 0 or worst < -tolerance)
                assert loose.margin == verdict.margin
        if worst == 0 or abs(worst) > F(1, 10**4):
            rounded = asked.check(market, shares.astype(float))
            assert rounded.answer is verdict.answer
            assert not rounded.exact
            assert min(abs(float(margin - Fraction(rounded.margin or 0))) for margin in margins) < 1e-9
    assert answers == {Answer.HOLDS, Answer.FAILS}


@pytest.mark.parametrize(("asked", "definition"), DEFINITIONS[:3], ids=[each.name for each, _ in DEFINITIONS[:3]])
def test_a_witness_refutes_where_its_case_fails_and_nowhere_else(
    asked: AllocationProperty, definition: Callable[[Market, Any], Iterator[SlackCase]]
) -> None:
    said = set()
    for market, shares in drawn(60, 7, below=asked.name == "feasibility"):
        for case in definition(market, shares):
            said.add(case.refutes(market, shares))
            assert case.refutes(market, shares) == (case.slack < 0)
    assert said == {True, False}
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    # every GPU is given out, and u2 has none of the first type: no type is overbooked, no share is negative
    shares = market.shares([[1, "1/2"], [0, "1/2"]])
    assert not any(overbooked(0, 1, name, F(1), F(1)).refutes(market, shares) for name in market.types)
    assert not overbooked(0, 1, "T1", F(0), F(1), "u2").refutes(market, shares)


def test_an_idle_gpu_refutes_only_where_the_user_gains_from_it() -> None:
    said = set()
    for market, shares in drawn(60, 8):
        for case in conserving(market, shares):
            said.add(case.refutes(market, shares))
            assert case.refutes(market, shares) == (case.slack < 0), (market, shares, case)
    assert said == {True, False}


def test_a_gap_refutes_only_where_both_sides_are_held_in_order_and_the_middle_is_not() -> None:
    market = Market.of([[1, 2, 3], [1, 2, 3]], capacity=[1, 1, 1])
    order = market.types
    for row in itertools.product((F(0), F(1, 2)), repeat=3):
        shares = np.array([row, [1 - x for x in row]], dtype=object)
        for slower, skipped, faster in itertools.product(order, repeat=3):
            said = gap(-1, "u1", slower, skipped, faster, order).refutes(market, shares)
            held = dict(zip(order, row, strict=True))
            inside = slower < skipped < faster
            assert said == (inside and held[slower] > 0 and held[skipped] == 0 and held[faster] > 0) or not inside


@pytest.mark.parametrize("bit", [F(1, 10**9), F(1, 10**17), F(1, 10**40)])
def test_envy_that_floats_cannot_see_is_found(bit: Fraction) -> None:
    """All shares are equal but for a bit that one user lacks: of many pairs at 0, the one below 0 is the margin."""
    random = np.random.default_rng(2)
    for market in sample_markets(25, seed=3, users=(4, 5), types=(2, 4), zeros=False):
        speedup = market.speedup * np.array(random.integers(1, 1000, market.shape), dtype=object) / F(997)
        awkward = replace(market, speedup=speedup * F(1))
        shares = awkward.equal_split()
        loser, winner = random.choice(len(market.users), 2, replace=False)
        shares[loser, 0], shares[winner, 0] = shares[loser, 0] - bit, shares[winner, 0] + bit
        worst = min(envy(awkward, shares), key=lambda case: case.slack / case.size)
        verdict = EnvyFreeness().check(awkward, shares)
        assert (verdict.answer, verdict.margin) == (Answer.FAILS, worst.slack)
        assert verdict.witness.parts == worst.parts


def test_what_is_within_the_tolerance_is_not_held() -> None:
    """u1 holds T1, T2 and T4 of five; T3 lies between, and the poorer side is T4. Half a GPU of ten is a twentieth."""
    market = Market.of([[1, 2, 3, 4, 5]], capacity=[10, 10, 10, 10, 10])
    verdict = AdjacentTypes().check(market, [[3, 1, 0, "1/2", 0]])
    assert (verdict.answer, verdict.margin, verdict.exact) == (Answer.FAILS, F(-1, 2), True)
    assert str(verdict.witness) == "u1 holds T2 and T4, but no T3, which lies between them"
    twice = AdjacentTypes().check(market, [[3, 0, 4, 0, 1]])
    assert (twice.margin, twice.witness.skipped) == (-3, "T2")
    again = AdjacentTypes().check(market, [[1, 0, 4, 0, 3]])
    assert (again.margin, again.witness.skipped) == (-3, "T4")
    for tolerance, answer in ((F(1, 20), Answer.HOLDS), (F(1, 21), Answer.FAILS), (F(1, 10), Answer.HOLDS)):
        loose = AdjacentTypes().check(market, [[3, 2, 0, "1/2", 0]], tolerance=tolerance)
        assert (loose.answer, loose.exact) == (answer, answer is Answer.FAILS)
    assert AdjacentTypes().check(market, [[3, 2, "1/2", 5, 0]], tolerance=F(1, 20)).answer is Answer.FAILS


# -- efficiency --------------------------------------------------------------------------------------------------------
def most_gained(market: Market, shares: Any) -> float:
    """Return the largest sum of gains, each in units of the equal share, by a program of another hand and solver."""
    n, k = market.shape
    speed, own = market.speedup.astype(float), [float(worth(market, i, shares[i])) for i in range(n)]
    fair = [float(worth(market, i, part(market, i))) for i in range(n)]
    rows, most = [], []
    for j in range(k):
        rows.append([float(column % k == j) for column in range(n * k)])
        most.append(float(market.capacity[j]))
    for i in range(n):
        mine = [speed[i, column % k] if column // k == i else 0.0 for column in range(n * k)]
        rows.append([-each for each in mine])
        most.append(-own[i])
        if market.limit[i] < INFINITY:
            rows.append([float(column // k == i) for column in range(n * k)])
            most.append(float(market.limit[i]))
    cost = [-speed[column // k, column % k] / fair[column // k] for column in range(n * k)]
    found = linprog(cost, rows, most, method="highs")
    return -float(found.fun) - sum(a / b for a, b in zip(own, fair, strict=True))


def test_the_gain_without_a_loser_is_what_another_solver_finds() -> None:
    answers = set()
    for market, shares in drawn(120, 5, below=True):
        verdict = ParetoEfficiency().check(market, shares)
        answers.add((verdict.answer, dominates(verdict)))
        over = [sum(column) - m for column, m in zip(shares.T.tolist(), market.capacity, strict=True)]
        if max(over) > 0 or (shares < 0).any():
            assert verdict.answer is Answer.FAILS
            assert verdict.witness.of.name == "feasibility"
            assert verdict.margin == min(-max(over), min(shares.ravel()))
            continue
        gained = most_gained(market, shares)
        assert (verdict.answer is Answer.FAILS) == (gained > 1e-9), (market, shares)
        assert float(verdict.margin or 0) == pytest.approx(-gained, abs=1e-9)
        if verdict.answer is Answer.FAILS:
            assert verdict.witness.refutes(market, shares)
            rounded = ParetoEfficiency().check(market, shares.astype(float))
            assert rounded.answer is Answer.FAILS
            assert float(rounded.margin or 0) == pytest.approx(-gained, abs=1e-7)
        else:
            assert verdict.evidence.violations(market, shares) == []
    assert len(answers) == 3


def test_what_does_not_dominate_does_not_refute() -> None:
    """Another allocation refutes where it is feasible, hurts nobody and helps somebody."""
    random, said = np.random.default_rng(3), set()
    for market, shares in drawn(80, 6, below=True):
        for _ in range(6):
            better = random.integers(0, 3, market.shape).astype(object) * F(1, 2) - F(1, 2) * (random.random() < 0.2)
            gains = [
                worth(market, i, b) - worth(market, i, a) for i, (a, b) in enumerate(zip(shares, better, strict=True))
            ]
            fits = (better >= 0).all() and (better.sum(axis=0) <= market.capacity).all()
            right = bool(fits and min(gains) >= 0 and max(gains) > 0)
            said.add(right)
            shown = {"allocation": better, "gains": np.array(gains, dtype=object), "users": market.users}
            witness = ParetoEfficiency().case(0, 1, **shown)
            assert witness.refutes(market, shares) == right
        for j, name in enumerate(market.types):
            shown = Feasibility().at(market, shares, j)
            assert (shown.type, shown.refutes(market, shares)) == (name, sum(shares[:, j]) > market.capacity[j])
            for i, share in enumerate(shares[:, j]):
                assert Feasibility().at(market, shares, j, i).refutes(market, shares) == (share < 0)
    assert said == {True, False}


def test_weights_prove_only_what_they_say() -> None:
    """Each condition of the proof is broken in turn, by as little as can be."""
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=[3, None])
    shares = market.shares([[1, 0], [0, 1]])
    proof = ParetoEfficiency().check(market, shares).evidence
    assert proof.violations(market, shares) == []
    one, none = np.array([F(1), F(1)], dtype=object), np.array([F(0), F(0)], dtype=object)
    least = F(1, 10**9)
    plain = replace(proof, weights=one * 1, prices=np.array([F(1), F(5)], dtype=object), demand_prices=none)
    assert plain.violations(market, shares) == []
    broken = {
        "a weight is not positive": replace(plain, weights=np.array([F(0), F(1)], dtype=object)),
        "a price is negative": replace(plain, prices=np.array([-least, F(5)], dtype=object)),
        "a price is put on a demand that there is not": replace(
            plain, demand_prices=np.array([F(0), F(1)], dtype=object)
        ),
        "a GPU is worth more to a user than its prices": replace(
            plain, prices=np.array([F(1), 5 - least], dtype=object)
        ),
        "the weighted throughput is below the dual bound": replace(
            plain, prices=np.array([F(1), 5 + least], dtype=object)
        ),
    }
    for condition, wrong in broken.items():
        assert condition in wrong.violations(market, shares), condition
    assert broken["the weighted throughput is below the dual bound"].violations(market, shares, tolerance=least) == []
    assert "a price is negative" not in broken["a price is negative"].violations(market, shares, tolerance=least)
