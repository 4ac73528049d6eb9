"""Speedups measured with an error: verdicts for all in the range, the boundary, certificates on both sides of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from fairopt import allocate, verify
from fairopt.compare import compare
from fairopt.errors import BadInput, NotCapable
from fairopt.evidence import certify_search, evidence_of_verdicts
from fairopt.models import CooperativeOEF, EqualSplit, MaxEfficiency, MaxMin, NonCooperativeOEF
from fairopt.policy import decide
from fairopt.problem import Entitlements, Market
from fairopt.problem.ranges import error_of, shrunk, with_error
from fairopt.program import INFINITY
from fairopt.proofs.verify import verify as proved
from fairopt.properties import Answer, Effort, EnvyFreeness, ParetoEfficiency, SharingIncentive, StrategyProofness
from fairopt.properties.misreports.strategy_proofness import alike_in_range
from fairopt.properties.shares.pareto_within_bounds import worst_cycle
from fairopt.testing.samples import sample_markets

PAIR = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
#: What max-min gives: at an error of 1/5 user 1 is down to its equal share.
LEVELLED = [[1, "1/3"], [0, "2/3"]]


def test_the_error_at_which_a_verdict_changes_is_exact() -> None:
    """By hand: at error e user 1 has 1 (1 - e) + (2/3 - 1) (1 + e) 2 more than user 2's share: 0 at e = 1/5."""
    for asked in (EnvyFreeness(), SharingIncentive()):
        assert asked.check(with_error(PAIR, "1/5"), LEVELLED).answer is Answer.HOLDS
        verdict = asked.check(with_error(PAIR, "30%"), LEVELLED)
        assert (verdict.answer, verdict.boundary.error) == (Answer.DEPENDS, Fraction(1, 5))
        assert verdict.boundary.shown["speedups"] == (("T1", Fraction(4, 5)), ("T2", Fraction(12, 5)))
        assert verdict.margin < 0
        assert "it holds up to an error of 20%; it changes where u1 runs at 0.8 on T1 and 2.4 on T2" in verdict.shown_by


def test_efficiency_holds_up_to_the_error_at_which_two_would_trade() -> None:
    """By hand: u1 gives T1, u2 gives T2: ((1 + e) / (1 - e))^2 = 5 / 2."""
    verdict = ParetoEfficiency().check(with_error(PAIR, "30%"), LEVELLED)
    error = verdict.boundary.error
    assert verdict.answer is Answer.DEPENDS
    assert ((1 + error) / (1 - error)) ** 2 <= Fraction(5, 2)
    error += Fraction(1, 2**30)
    assert ((1 + error) / (1 - error)) ** 2 > Fraction(5, 2)
    assert verdict.boundary.shown["trades"] == (("u1", "T1", "u2"), ("u2", "T2", "u1"))


@pytest.mark.parametrize("shares", [LEVELLED, [["1/2", "1/2"], ["1/2", "1/2"]], [[1, 0], [0, 1]]])
def test_a_verdict_that_depends_is_certified_at_both_ends(shares: list[list[object]]) -> None:
    ranged, seen = with_error(PAIR, "40%"), 0
    asked = [EnvyFreeness(), SharingIncentive(), ParetoEfficiency()]
    verdicts = verify(ranged, shares, asked)
    found = {each.name: each for each in evidence_of_verdicts(ranged, ranged.shares(shares), verdicts, asked)}
    for name, verdict in verdicts.items():
        if verdict.answer is Answer.DEPENDS:
            seen += 1
            for end in ("holds", "fails"):
                certificate = found[f"{name}-{end}"].certificate
                assert certificate is not None
                assert proved(told := json.loads(json.dumps(certificate.to_json())))
                kinds = {"envy": "FAILS", "dominance": "FAILS", "pareto_weights": "HOLDS"}
                assert told.get("answer", kinds.get(told["certificate"])) == end.upper()
    assert seen


def test_what_fails_at_all_speedups_is_shown_by_one_allocation() -> None:
    verdict = ParetoEfficiency().check(with_error(PAIR, "5%"), PAIR.equal_split())
    assert verdict.answer is Answer.FAILS
    certificate = ParetoEfficiency().certify(with_error(PAIR, "5%"), PAIR.equal_split(), verdict).to_json()
    assert "at all speedups within the bounds" in proved(json.loads(json.dumps(certificate)))
    far = with_error(PAIR, "60%")
    assert ParetoEfficiency().check(far, PAIR.equal_split()).answer is Answer.DEPENDS
    with pytest.raises(Exception, match="somebody loses, or nobody gains"):
        proved(certificate | {"market": _told(far)})


def _told(market: Market) -> dict[str, object]:
    held = [[1, 0], [0, 1]]
    certificate = EnvyFreeness().certify(market, market.shares(held), EnvyFreeness().check(market, held))
    told: dict[str, object] = json.loads(json.dumps(certificate.to_json()))["market"]
    return told


def ranged_market(random: np.random.Generator) -> tuple[Market, np.ndarray]:
    n, k = random.integers(2, 4, 2).tolist()
    third = Fraction(1, 3)
    speedup = np.array(random.choice([0, 1, 1, 2, 3], (n, k)), dtype=object) * Fraction(1)
    speedup[:, 0] = np.maximum(speedup[:, 0], 1)
    least = speedup * np.array(random.choice([0, 1, 2, 3, 3, 3], (n, k)), dtype=object) * third
    most = speedup * np.array(random.choice([3, 3, 3, 4, 6], (n, k)), dtype=object) * third
    if random.random() < 0.2:
        most[0, 0] = INFINITY
    shares = np.zeros((n, k), dtype=object) * Fraction(1)
    for j in range(k):
        holders = random.choice(n, random.choice([1, 1, 1, 2]), replace=False)
        shares[holders, j] = Fraction(1, len(holders))
    market = Market.of(speedup.tolist(), [1] * k)
    return replace(market, least=least, most=most), shares


@pytest.mark.parametrize("seed", range(2))
def test_efficiency_in_a_range_is_that_at_its_corners(seed: int) -> None:
    random, seen = np.random.default_rng(seed), Counter[Answer]()
    asked = ParetoEfficiency()
    for _ in range(25):
        market, shares = ranged_market(random)
        verdict, known = asked.check(market, shares), replace(market, least=None, most=None)
        seen[verdict.answer] += 1
        assert verdict.exact
        if verdict.holds is not None:
            assert proved(json.loads(json.dumps(asked.certify(market, shares, verdict).to_json())))
            low, high = (np.where(e > 0, np.minimum(e, 10**6), market.speedup / 1000) for e in market.ends)
            for _ in range(6):
                corner = np.where(random.random(market.shape) < 0.5, low, high)
                assert asked.check(replace(known, speedup=corner), shares).answer is verdict.answer
        else:
            assert verdict.answer is Answer.DEPENDS
            for end, there in verdict.boundary.ends.items():
                found = asked.check(there, shares)
                assert found.answer.value == end.upper()
                assert ((there.ends[0] >= market.ends[0]) & (there.ends[1] <= market.ends[1])).all()
                assert proved(json.loads(json.dumps(asked.certify(there, shares, found).to_json())))
    assert {Answer.HOLDS, Answer.FAILS, Answer.DEPENDS} == set(seen)


def test_the_worst_cycle_is_the_worst_of_all_cycles_of_users_and_types() -> None:
    random = np.random.default_rng(5)
    for _ in range(40):
        least = random.integers(1, 9, (4, 3)) * Fraction(1)
        most, held = least + random.integers(0, 5, (4, 3)), random.random((4, 3)) < 0.6
        found = worst_cycle(least, most, held)
        every = [
            prod(least[i, types[at]] / most[i, types[at - 1]] for at, i in enumerate(users))
            for length in (2, 3)
            for types in permutations(range(3), length)
            for users in permutations(range(4), length)
            if all(held[i, types[at]] for at, i in enumerate(users))
        ]
        # the best for a cycle of types may meet a user twice: then two shorter cycles have the same product
        assert (found is None) == (not every)
        if found is not None:
            assert (found[0] < 1) == (min(every) < 1)
            assert min(every) >= found[0]


def test_more_types_than_can_be_decided_are_refused() -> None:
    held = np.ones((2, 9), dtype=bool)
    with pytest.raises(NotCapable, match="9 types make too many cycles of trades; 8 are decided"):
        worst_cycle(held * 1, held * 1, held)


def test_a_demand_binds_in_a_range_as_at_its_corners() -> None:
    seen = Counter[Answer]()
    for market in sample_markets(12, seed=7, users=(2, 3), types=(2, 2), demands=True):
        ranged = with_error(market, "30%")
        shares = allocate("max-efficiency", market, exact=True).shares
        verdict = ParetoEfficiency().check(ranged, shares)
        seen[verdict.answer] += 1
        if verdict.answer is Answer.HOLDS:
            for signs in product((7, 13), repeat=4):
                factor = np.resize(np.array(signs, dtype=object), market.shape) * Fraction(1, 10)
                corner = replace(market, speedup=market.speedup * factor)
                assert ParetoEfficiency().check(corner, shares).answer is Answer.HOLDS
        if verdict.answer is Answer.DEPENDS:
            for end, there in verdict.boundary.ends.items():
                assert ParetoEfficiency().check(there, shares).answer.value == end.upper()
    assert seen[Answer.DEPENDS]


def test_a_lie_that_pays_at_all_true_speedups_fails_for_all() -> None:
    effort = Effort(evaluations=30)
    near = StrategyProofness().search(MaxEfficiency(), with_error(PAIR, "5%"), effort=effort)
    assert near.answer is Answer.FAILS
    assert "lies that pay, for all true ones in the range" in near.effort
    known = StrategyProofness().search(EqualSplit(), with_error(PAIR, "5%"), effort=effort)
    assert {known.answer, *(each.answer for each in known.by_misreport.values())} == {Answer.HOLDS}
    assert "the reports are not looked at" in known.effort
    none = StrategyProofness().search(MaxMin(), with_error(ALIKE, "0%"), effort=effort)
    assert none.answer is Answer.NOT_REFUTED  # nothing is in a range


#: Two users that speed up alike: under policies that promise fair shares no lie pays.
ALIKE = Market.of([[1, 2], [2, 4]], capacity=[1, 1])


def test_lies_depend_on_the_speedups_where_all_may_speed_up_alike() -> None:
    """Within 50% all three may have the same ratio; at what is stated u2 gains by another report."""
    effort = Effort(evaluations=30)
    wide = with_error(Market.of([["2.9", "2.3"], ["1.3", "1.1"], ["1.7", "1.9"]], [5, 5]), "50%")
    verdict = StrategyProofness().search(CooperativeOEF(), wide, effort=effort)
    assert verdict.answer is Answer.DEPENDS
    assert verdict.boundary.shown["stated"]
    assert "instead of" in verdict.shown_by
    holds, fails = verdict.boundary.ends["holds"], verdict.boundary.ends["fails"]
    low, high = wide.ends
    for there in (holds, fails):
        assert ((low <= there.speedup) & (there.speedup <= high)).all()
    ratios = holds.speedup[:, 1] / holds.speedup[:, 0]
    assert (ratios == ratios[0]).all()
    assert StrategyProofness().search(CooperativeOEF(), holds, effort=effort).answer is Answer.NOT_REFUTED
    assert proved(json.loads(json.dumps(certify_search(CooperativeOEF(), wide, verdict).to_json())))


def test_what_is_proved_without_guarantees_is_not_proved_with_them() -> None:
    """B's group is guaranteed a T1, so that A is compared with nobody and has nothing, until it claims to run fast."""
    owed = Entitlements.of(["A", "B"], ["T1", "T2"], group={"B": "g"}, guarantee={"g": [1, 0]})
    known = Market.of([[3, 2], [6, 4]], [4, 1], users=owed.users, types=owed.types, entitlements=owed)
    policy, claim = NonCooperativeOEF(), NonCooperativeOEF.claims[0]
    truth, lie = (decide(policy, each, exact=True) for each in (known, known.misreport("A", [3, 6])))
    assert (truth.utilities[0], known.utility(lie.shares)[0]) == (0, 2)
    assert claim.known(known.plain(), "larger")
    assert not claim.known(known, "larger")
    for market in (known, with_error(known, "10%")):
        verdict = StrategyProofness().search(policy, market, effort=Effort(evaluations=100))
        assert verdict.by_misreport["larger"].answer is Answer.FAILS


def test_a_lie_may_pay_at_a_corner_only() -> None:
    verdict = StrategyProofness().search(MaxMin(), with_error(ALIKE, "30%"), effort=Effort(evaluations=60))
    assert verdict.answer is Answer.DEPENDS
    assert not verdict.boundary.shown["stated"]
    assert "at others in the range" in verdict.shown_by
    assert StrategyProofness().search(MaxMin(), verdict.boundary.ends["fails"]).answer is Answer.FAILS


def test_speedups_that_are_alike_lie_in_the_range_or_there_are_none() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        market = Market.of([*random.integers(1, 4, (3, 3)).tolist(), [1, 2, 3]], [1, 1, 1])
        ranged = with_error(market, Fraction(int(random.integers(1, 9)), 10))
        found, (least, most) = alike_in_range(ranged), ranged.ends
        if found is not None:
            assert ((least <= found.speedup) & (found.speedup <= most)).all()
            assert np.linalg.matrix_rank(found.speedup.astype(float)) == 1
    assert alike_in_range(with_error(ALIKE, "1%")) is not None
    assert alike_in_range(with_error(Market.of([[1, 0], [1, 1]], [1, 1]), "50%")) is None


def test_arguments_of_compare_and_verify() -> None:
    [row] = compare(PAIR, "max-min", ["envy_freeness"], error="30%")
    assert row.outcome.shares.tolist() == [[1, Fraction(1, 3)], [0, Fraction(2, 3)]]  # by the speedups as stated
    assert row.verdicts["envy_freeness"].boundary.error == Fraction(1, 5)
    [row] = compare(PAIR, "max-min", ["envy_freeness"], error="30%", exact=False)
    assert float(row.verdicts["envy_freeness"].boundary.error) == pytest.approx(0.2)
    assert verify(PAIR, LEVELLED, "envy_freeness", error=0.1)["envy_freeness"].holds
    for wrong in ("100%", -1, "much", "5%%"):
        with pytest.raises(BadInput, match="error"):
            verify(PAIR, LEVELLED, error=wrong)


def test_ranges_around_the_speedups() -> None:
    own = replace(PAIR, least=PAIR.speedup / [[2, 1], [1, 1]], most=PAIR.speedup)
    ranged = with_error(own, "10%")
    assert ranged.ends[0].tolist() == [[Fraction(1, 2), Fraction(9, 5)], [Fraction(9, 10), Fraction(9, 2)]]
    assert error_of(ranged) is None
    assert error_of(shrunk(with_error(PAIR, "10%"), Fraction(1, 2))) == Fraction(1, 20)
    assert with_error(Market.of([[0, 1]], [1, 1]), "5%").ends[1][0].tolist() == [0, Fraction(21, 20)]
