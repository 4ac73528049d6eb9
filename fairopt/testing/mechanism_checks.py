"""What the suites ask of all properties of policies: a search for misreports of speedups that pay."""

from __future__ import annotations

import json

from fairopt.by_name import allocate
from fairopt.discovery import policy
from fairopt.problem import Market
from fairopt.properties import Answer, Effort, MechanismProperty

_SMALL = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])


def finds_a_known_misreport(each: MechanismProperty) -> None:
    """Guards against a search that finds nothing: OEF Sec. 2.4, user 1 gains under trading by reporting 2.8."""
    verdict = each.search(policy("second-price-trading"), _SMALL, effort=Effort(evaluations=300))
    assert verdict.answer is Answer.FAILS
    assert verdict.by_misreport["larger"].answer is Answer.FAILS
    assert verdict.margin is not None
    assert verdict.margin < 0


def does_not_refute_what_ignores_reports(each: MechanismProperty) -> None:
    """Guards against gains made of rounding errors, and against calling a search a proof."""
    verdict = each.search(policy("equal-split"), _SMALL, effort=Effort(evaluations=300))
    assert verdict.answer is Answer.NOT_REFUTED
    assert verdict.witness is None


def witness_replays(each: MechanismProperty) -> None:
    """Guards against gains that the policy does not really give: the misreport is made again, in exact numbers."""
    for decider in (policy("second-price-trading"), policy("max-efficiency")):
        found = each.search(decider, _SMALL, effort=Effort(evaluations=300)).witness
        i = _SMALL.index(found.user)
        reports = (_SMALL, _SMALL.misreport(i, found.report))
        honest, misreported = (_SMALL.utility(allocate(decider, one, exact=True).shares)[i] for one in reports)
        gain = misreported - honest
        assert gain == found.gain > 0


def kinds_of_misreport_are_kept(each: MechanismProperty) -> None:
    """Guards against a "larger" misreport with a smaller entry: the papers' theorems differ in just this."""
    verdict = each.search(policy("second-price-trading"), _SMALL, effort=Effort(evaluations=300))
    assert set(verdict.by_misreport) == {"larger", "smaller", "any"}
    larger, smaller = verdict.by_misreport["larger"].witness, verdict.by_misreport["smaller"].witness
    assert larger is None or all(told >= true for told, true in zip(larger.report, larger.truth, strict=True))
    assert smaller is None or all(told <= true for told, true in zip(smaller.report, smaller.truth, strict=True))


def same_seed_same_search(each: MechanismProperty) -> None:
    """Guards against searches that cannot be repeated."""
    trading, effort = policy("second-price-trading"), Effort(120, seed=5)
    first, second = (each.search(trading, _SMALL, effort=effort) for _ in range(2))
    assert json.dumps(first.to_json()) == json.dumps(second.to_json())


def effort_is_a_limit(each: MechanismProperty) -> None:
    """Guards against a search that never ends: with one user and one type there is little to try."""
    single = Market.of([[1]], capacity=[1])
    for market, effort in ((single, Effort(evaluations=30)), (_SMALL, Effort(evaluations=10**9, seconds=0.2))):
        assert each.search(policy("equal-split"), market, effort=effort).answer is Answer.NOT_REFUTED
