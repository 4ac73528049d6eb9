"""The quick form of the findings on liars that are measured at length."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.models import EqualSplit, FirstInFirstOut, NashWelfare, NonCooperativeOEF, SecondPriceTrading, Themis
from fairopt.proofs.findings.liars import many
from fairopt.proofs.findings.liars.others import searched
from fairopt.proofs.findings.liars.rounds import Lying, completion, small
from fairopt.properties.misreports.kinds import DEMAND, SPLIT


def test_who_tells_the_truth_in_every_round_changes_nothing_and_who_lies_may_gain() -> None:
    trace, cluster = small(0)
    for policy in (FirstInFirstOut(), Themis()):
        assert completion(Lying(policy, (1.0, 1.0)), trace, cluster) == completion(policy, trace, cluster)
    assert completion(Lying(Themis(), (1.0, 10.0)), trace, cluster) < 0.9 * completion(Themis(), trace, cluster)


def test_gains_of_many_users() -> None:
    def gain(policy: object, n: int) -> float:
        given = many.market(many.rows(np.random.default_rng([n, 0]), n))
        return many.best(policy, given, np.random.default_rng(0)) - 1  # type: ignore[arg-type]

    assert gain(EqualSplit(), 2) == 0
    assert gain(NonCooperativeOEF(), 2) < gain(NonCooperativeOEF(), 8)  # they grow, as in the worst case
    assert 0 <= gain(NashWelfare(), 2) <= 1 / 2


def test_the_search_of_small_markets_finds_who_gains_and_stays_below_what_is_proved() -> None:
    found = searched(SecondPriceTrading(), SPLIT, markets=6)
    assert found is not None
    assert 1 < found.factor < 3
    assert searched(EqualSplit(), SPLIT, markets=3) is None
    greedy = searched(EqualSplit(), DEMAND, markets=4)
    assert greedy is not None
    assert greedy.exact


def test_what_changes_by_rounding_only_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_ratios", lambda policy, given, reports: np.full(len(reports), 1 - 1e-12))
    losing = many.knowledge(liars=1, learned=1, fresh=1, reports=2).evidence.splitlines()[-1]
    assert losing.count(" 0%") == len(many.POLICIES)


def test_what_is_gained_by_rounding_only_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "best", lambda policy, given, random: 1 + 1e-11)
    assert "nash-welfare 0.0% and 0.0%" in many.many_users(counts=(2, 3), markets=1).evidence
