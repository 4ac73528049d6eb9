"""What is not searched, solved or multiplied out in full gives what it gave: proofs, equal optima, rounded parts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairopt import Answer, Market, allocate, compare, decide
from fairopt.benchmarks.misreports import random_market
from fairopt.discovery import policy as named
from fairopt.models import CooperativeOEF, EqualSplit, HierarchicalWaterFilling, MaxEfficiency, PartialAllocation
from fairopt.models.nash import partial_allocation
from fairopt.policy import Claim, session
from fairopt.proofs.verify import verify
from fairopt.properties import Effort, StrategyProofness
from fairopt.properties.misreports import exact_reports
from fairopt.properties.misreports.kinds import ANYTHING
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import CandidateReports

SMALL = Market.of([[1, 2], [1, 5], [2, 3]], capacity=[2, 1])


@pytest.mark.parametrize("name", ["equal-split", "gavel-isolated", "gavel-proportional", "partial-allocation"])
def test_of_a_policy_that_is_proved_to_be_truthful_a_part_of_the_reports_is_tried(name: str) -> None:
    [row] = compare(SMALL, name, "strategy_proofness", effort=Effort(100))
    verdict = row.verdicts["strategy_proofness"]
    assert (verdict.answer, verdict.exact) == (Answer.HOLDS, True)
    assert {each.answer for each in verdict.by_misreport.values()} == {Answer.HOLDS}
    assert "10 of them were tried, none pays" in verdict.effort
    searched = StrategyProofness().search(named(name), SMALL, effort=Effort(100))
    assert searched.answer is Answer.NOT_REFUTED  # who asks for a search gets one


def test_where_nothing_is_proved_there_is_a_search() -> None:
    limited = Market.of([[1, 2], [1, 5], [2, 3]], capacity=[2, 1], demand=[1, 1, 2])
    [row] = compare(limited, "partial-allocation", "strategy_proofness", effort=Effort(60))
    assert row.verdicts["strategy_proofness"].answer is not Answer.HOLDS


def test_a_false_claim_is_refuted_all_the_same() -> None:
    class Boastful(MaxEfficiency):
        claims = (Claim("strategy_proofness", "its author"),)

    [row] = compare(SMALL, Boastful(), "strategy_proofness", effort=Effort(100))
    assert row.verdicts["strategy_proofness"].answer is Answer.FAILS


def test_in_floats_a_proof_is_not_exact() -> None:
    [row] = compare(SMALL, EqualSplit(), "strategy_proofness", exact=False)
    assert (row.verdicts["strategy_proofness"].answer, row.verdicts["strategy_proofness"].exact) == (
        Answer.HOLDS,
        False,
    )


def test_long_parts_are_rounded_down_and_the_verifier_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = decide(PartialAllocation(), SMALL, exact=True)
    monkeypatch.setattr(partial_allocation, "LONG", 1)
    rounded = decide(PartialAllocation(), SMALL, exact=True)
    assert not rounded.exact
    assert rounded.error == PartialAllocation.rounding
    for exact, near in zip(whole.evidence.kept, rounded.evidence.kept, strict=True):
        assert 0 <= exact - near < partial_allocation.GRAIN
    assert "partial-allocation" in str(verify(json.loads(json.dumps(PartialAllocation().certify(rounded).to_json()))))


@pytest.mark.parametrize("seed", range(3))
def test_a_report_after_which_the_same_shares_are_an_optimum_needs_no_program(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = random_market(12, 4, seed).as_(float)
    asked, rule = Reports(CooperativeOEF(), market, decide(CooperativeOEF(), market)), CooperativeOEF()
    stayed, moved = 0, 0
    for user in range(12):
        moves = CandidateReports(market, user, None)
        for report in [*moves.structured(ANYTHING)][:8]:
            lied = market.misreport(user, report)
            decided = decide(rule, lied, asked.truth.solver)
            bundle = rule.bundle(user, lied, asked.truth, session(rule, asked.truth.solver))
            got, right = (float(market.speedup[user] @ each) for each in (bundle, decided.shares[user]))
            assert got == pytest.approx(right, rel=1e-7)
            same = rule._stays(user, lied, asked.truth)
            stayed, moved = stayed + same, moved + (not same)
            if not np.allclose(decided.utilities, market.utility(asked.truth.shares), rtol=1e-6):
                assert not same or np.allclose(bundle, asked.truth.shares[user])
    assert stayed > 0
    assert moved > 0


def test_without_groups_one_bundle_is_that_of_water_filling() -> None:
    market, rule = random_market(8, 3, 1).as_(float), HierarchicalWaterFilling()
    before = allocate(rule, market)
    for user in range(8):
        lied = market.misreport(user, market.speedup[user][::-1].copy())
        bundle = rule.bundle(user, lied, before, session(rule))
        worth = lied.speedup[user]
        assert worth @ bundle == pytest.approx(worth @ allocate(rule, lied).shares[user], rel=1e-7)


def test_on_a_large_market_the_misreport_that_pays_most_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    small = StrategyProofness().search(MaxEfficiency(), SMALL, effort=Effort(200))
    monkeypatch.setattr(exact_reports, "EACH_KIND_UP_TO", 0)
    monkeypatch.setattr(exact_reports, "EXACT_UP_TO", 0)
    large = StrategyProofness().search(MaxEfficiency(), SMALL, effort=Effort(200))
    assert (small.answer, large.answer, large.exact) == (Answer.FAILS, Answer.FAILS, True)
    assert large.margin == min(each.margin for each in large.by_misreport.values() if each.exact)
    assert any(not each.exact for each in large.by_misreport.values())
