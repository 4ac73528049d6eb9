"""What a search for misreports says: verdicts, margins and witnesses, of policies made for it whose gains are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.errors import BadInput, NotSolved
from fairopt.models import MaxEfficiency, MaxMin, NashWelfare
from fairopt.policy import Computed, decide
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import Answer, Effort, StrategyProofness
from fairopt.properties.misreports.exact_reports import ExactReports
from fairopt.properties.misreports.kinds import ANYTHING
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import Found

F = Fraction
TRUTH = Market.of([[1, 2], [1, 2]], capacity=[1, 1])


class Told(Computed):
    """Gives u1 as much of the first type as it is paid for what it says, and nobody anything else."""

    name = "told"
    source = "these tests"

    def __init__(self, pay: Callable[[Any], Any]) -> None:
        self._pay = pay

    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        shares = 0 * problem.speedup * problem.capacity
        paid = F(self._pay(problem.speedup[0]))
        shares[0, 0] = paid if problem.exact else float(paid)
        return shares, None


class Rough(Told):
    """Decides up to a hundredth."""

    rounding = F(1, 100)


class Swap(Computed):
    """u1 has the first type, and the second in its place if it says that it is faster there than 2."""

    name = "swap"
    source = "these tests"

    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        shares = 0 * problem.speedup * problem.capacity
        j = int(problem.speedup[0, 1] > 2)
        shares[0, j] = problem.capacity[j]
        return shares, None


class InRanges(Swap):
    """Decides by what the speedups may be."""

    def asked_of(self, problem: Any) -> bool:
        return not problem.known.all()


def step(at: Any, gain: Any) -> Told:
    return Told(lambda row: F(1, 2) + (F(gain) if row[0] >= F(at) else 0))


def searched(policy: Any, market: Market, evaluations: int = 90, **options: Any) -> Any:
    own = {name: options.pop(name) for name in ("normalised", "tolerance") if name in options}
    return StrategyProofness(**own).search(policy, market, effort=Effort(evaluations=evaluations), **options)


# -- the verdict -------------------------------------------------------------------------------------------------
def test_a_lie_that_pays_is_proved_by_two_exact_decisions() -> None:
    verdict = searched(step(2, "1/4"), TRUTH)
    assert (verdict.answer, verdict.margin, verdict.unit, verdict.exact) == (
        Answer.FAILS,
        F(-1, 4),
        "throughput of u1",
        True,
    )
    assert verdict.effort == "90 misreports in all; 30 misreports (any; all speedups), seed 0"
    assert {name: each.answer for name, each in verdict.by_misreport.items()} == {
        "larger": Answer.FAILS,
        "smaller": Answer.NOT_REFUTED,
        "any": Answer.FAILS,
    }
    assert verdict.by_misreport["smaller"].margin == 0
    assert verdict.by_misreport["smaller"].exact
    assert verdict.by_misreport["smaller"].witness is None
    assert verdict.by_misreport["larger"].effort == "30 misreports (larger; all speedups), seed 0"
    lie = verdict.witness
    assert (lie.user, lie.report.tolist(), lie.gain, lie.every_optimum, lie.least_gain) == (
        "u1",
        [2, 2],
        F(1, 4),
        True,
        F(1, 4),
    )


def test_in_floats_it_says_so() -> None:
    verdict = searched(step(2, "1/4"), TRUTH.as_(float))
    assert (verdict.answer, verdict.margin, verdict.exact) == (Answer.FAILS, -0.25, False)
    assert verdict.effort.endswith(
        "seed 0; the gain is that of float decisions: where optima tie, of the solver's choice among them"
    )
    given = allocate(step(2, "1/4"), TRUTH.as_(float))
    assert not searched(step(2, "1/4"), TRUTH, truth=given).exact


def test_the_slowest_type_is_kept_where_speedups_are_relative_to_it() -> None:
    assert searched(step(2, "1/4"), TRUTH, normalised=True).answer is Answer.NOT_REFUTED
    verdict = searched(Swap(), Market.of([[1, 2], [1, 2]], capacity=[1, 3]), normalised=True)
    assert verdict.answer is Answer.FAILS
    assert verdict.witness.report[0] == 1
    assert "(any; the slowest type's speedup kept)" in verdict.effort
    one = searched(step(2, "1/4"), Market.of([[1], [1]], capacity=[1]), normalised=True)
    assert (one.answer, one.margin, one.unit, one.exact) == (Answer.NOT_REFUTED, None, "", False)
    assert one.effort == "0 misreports in all; 0 misreports (any; the slowest type's speedup kept), seed 0"


def test_a_search_that_is_stopped_says_so() -> None:
    verdict = StrategyProofness().search(step(2, "1/4"), TRUTH, effort=Effort(evaluations=90, seconds=1e-9))
    assert ", stopped by the time limit" in verdict.effort


@pytest.mark.parametrize(
    ("tolerance", "gain", "market", "answer"),
    [
        (F(1, 10), "1/4", TRUTH.as_(float), Answer.FAILS),
        (0.2, "1/4", TRUTH.as_(float), Answer.NOT_REFUTED),  # 0.25 of an equal share's 1.5 is 0.17
        (1e-6, "1/100000000", TRUTH.as_(float), Answer.NOT_REFUTED),
        (1e-6, "1/100000000", TRUTH, Answer.FAILS),
        (0.9, "1/4", TRUTH, Answer.FAILS),  # what is exact needs no tolerance
    ],
)
def test_a_tolerance_is_for_gains_in_floats(tolerance: Any, gain: str, market: Market, answer: Answer) -> None:
    verdict = searched(step(2, gain), market, tolerance=tolerance)
    assert (verdict.answer, verdict.exact) == (answer, market.exact)
    assert float(verdict.margin) == pytest.approx(-float(F(gain)), rel=1e-6)


def test_a_policy_that_rounds_does_so_in_exact_decisions_too() -> None:
    for gain, answer in ((F(1, 300), Answer.NOT_REFUTED), (F(1, 90), Answer.FAILS)):
        verdict = searched(Rough(lambda row, gain=gain: F(1, 2) + (gain if row[0] > 1 else 0)), TRUTH)
        assert (verdict.answer, verdict.margin) == (answer, -gain)


# -- which report is shown ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("near_by", "report"), [("1/4", 2), ("3/16", 2), ("1/8", 5)])
def test_a_simpler_report_is_shown_if_it_gains_half_as_much(near_by: str, report: int) -> None:
    policy = Told(lambda row: F(1, 2) + (F(3, 8) if row[0] >= 5 else F(near_by) if row[0] >= 2 else 0))
    lie = searched(policy, TRUTH).by_misreport["larger"].witness
    assert lie.report.tolist() == [report, 2]


@pytest.mark.parametrize(("types", "simple"), [(125, True), (126, False)])
def test_on_large_markets_only_the_nearest_report_is_decided(types: int, simple: bool) -> None:
    """1.05 is tried first, and too few follow for a climb; 14/13 is as good, and simpler than 21/20."""
    market = Market.of([[1] * types] * 2, capacity=[1] * types)
    verdict = searched(step("1.04", "1/4"), market, evaluations=6).by_misreport["larger"]
    assert verdict.exact
    assert verdict.witness.report[0] == (F(14, 13) if simple else F(21, 20))


def test_a_lie_that_pays_with_every_optimum_is_preferred() -> None:
    """u1 has the GPU for sure where it says more than 2; where it says 2, it may."""
    lie = searched(MaxEfficiency(), Market.of([[1], [2]], capacity=[1])).witness
    assert lie.report[0] > 2
    assert (lie.every_optimum, lie.least_gain, lie.user) == (True, 1, "u1")


def test_where_none_pays_the_margin_is_the_least_loss_of_those_decided() -> None:
    verdict = searched(Told(lambda row: F(1, 2) - abs(row[0] - 1) / 100 - abs(row[1] - 2) / 100), TRUTH)
    assert verdict.answer is Answer.NOT_REFUTED
    assert verdict.exact
    kinds = verdict.by_misreport.values()
    assert 0 <= verdict.margin == min(each.margin for each in kinds) < F(1, 10_000)
    assert all(each.answer is Answer.NOT_REFUTED and each.witness is None for each in kinds)


def test_the_verdict_for_any_is_that_of_the_lie_that_gains_most() -> None:
    down = Told(lambda row: F(1, 2) + (F(1, 3) if row[0] <= F(1, 2) else F(1, 8) if row[0] >= 2 else 0))
    verdict = searched(down, TRUTH)
    assert [verdict.by_misreport[each].margin for each in ("larger", "smaller", "any")] == [
        F(-1, 8),
        F(-1, 3),
        F(-1, 3),
    ]
    assert verdict.margin == F(-1, 3)


def test_a_gain_that_only_floats_see_is_none() -> None:
    """The float nearest to 21/20 is a little larger: it pays, and 21/20 does not."""
    policy = Told(lambda row: F(1, 2) + (F(1, 4) if F(1.05) <= F(row[0]) < F(106, 100) else 0))
    assert F(1.05) > F(21, 20)
    narrow = Told(lambda row: F(1, 2) + (F(1, 4) if F(1.05) <= F(row[0]) < F(10500001, 10**7) else 0))
    exact = searched(narrow, TRUTH).by_misreport["larger"]
    assert (exact.answer, exact.margin, exact.exact, exact.witness) == (Answer.NOT_REFUTED, 0, True, None)
    assert searched(narrow, TRUTH.as_(float)).answer is Answer.FAILS
    assert searched(policy, TRUTH).answer is Answer.FAILS


def test_what_has_no_decision_is_not_among_the_promising() -> None:
    """All lies lose, 21/20 the least of those that are decided; nearer to the truth there is no decision."""

    def pay(row: Any) -> Any:
        if F(102, 100) < F(row[0]) < F(10499, 10000):
            raise NotSolved("no answer")
        return F(1, 2) - abs(F(row[0]) - 1) / 100

    verdict = searched(Told(pay), Market.of([[1, 2]], capacity=[1, 1]), evaluations=12).by_misreport["larger"]
    assert verdict.exact
    assert 0 <= verdict.margin <= F(5, 10_000)


def test_where_lies_have_no_exact_decision_the_witness_is_in_floats() -> None:
    def pay(row: Any) -> Any:
        if isinstance(row[0], Fraction) and row[0] > 1:
            raise NotSolved("not in rationals")
        return F(1, 2) + (F(1, 4) if row[0] >= 2 else 0)

    verdict = searched(Told(pay), TRUTH)
    assert (verdict.answer, verdict.margin, verdict.exact) == (Answer.FAILS, -0.25, False)


def test_a_margin_of_nothing_has_no_sign() -> None:
    verdict = searched(Told(lambda row: F(1, 2)), TRUTH.as_(float))
    assert (verdict.answer, str(verdict.margin)) == (Answer.NOT_REFUTED, "0.0")


def test_reports_without_a_decision_gain_nothing() -> None:
    def pay(row: Any) -> Any:
        if row[0] >= 3:
            raise NotSolved("too much")
        return F(1, 2) + (F(1, 4) if row[0] >= 2 else 0)

    verdict = searched(Told(pay), TRUTH)
    assert (verdict.answer, verdict.margin, verdict.exact) == (Answer.FAILS, F(-1, 4), True)
    efforts = [each.effort for each in verdict.by_misreport.values()]
    assert any(" of them without an answer" in effort for effort in efforts)
    assert "without" not in searched(Told(lambda row: F(1, 2)), TRUTH).effort


def test_a_report_that_is_not_decided_near_the_truth_is_decided_from_nothing() -> None:
    class Near(MaxMin):
        """It has no answer where it begins at an earlier one."""

        def bundle(self, user: int, problem: Market, truth: Any, session: Any) -> Any:
            if session._last is not None:
                raise NotSolved("no answer from here")
            return super().bundle(user, problem, truth, session)

    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1]).as_(float)
    asked = Reports(Near(), market, decide(Near(), market, Highs()))
    asked._together = None
    plain = Reports(MaxMin(), market, decide(MaxMin(), market, Highs()))
    reports = np.array([[1.0, 3.0], [1.0, 4.0]])
    assert asked.gains(np.array([0, 1]), reports) == pytest.approx(plain.gains(np.array([0, 1]), reports))


def test_an_irrational_truth_is_decided_in_floats() -> None:
    market = Market.of([[2, 3], [1, 2], [2, 3]], [2, 1], demand=[1, 1, None])
    truth = allocate(NashWelfare(), market, exact=True)
    assert truth.error
    verdict = searched(NashWelfare(), market, truth=truth)
    assert not verdict.exact
    assert isinstance(verdict.margin, float)


# -- speedups within bounds --------------------------------------------------------------------------------------
def within(least: Any, most: Any) -> Market:
    return Market.of([[1, 2], [1, 2]], [1, 1], least=[[1, least], [1, 2]], most=[[1, most], [1, 2]])


def test_a_lie_pays_for_all_true_speedups_or_it_is_open() -> None:
    """Having the second type in place of the first gains as much as it is faster: the least counts."""
    verdict = searched(Swap(), within("3/2", 3))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, F(-1, 2))
    assert verdict.effort.endswith(", at the speedups that are stated; lies that pay, for all true ones in the range")
    assert verdict.by_misreport["larger"].margin == F(-1, 2)
    for least in (1, "1/2"):
        unsure = searched(Swap(), within(least, 3))
        assert unsure.answer is Answer.UNDECIDED
        assert unsure.reason.startswith("at the speedups that are stated, u1 has speedups 1, 2, reports 1, ")
        assert unsure.reason.endswith("; at others in the range this was not decided")
        assert unsure.by_misreport["larger"].answer is Answer.UNDECIDED
        none = "at the speedups that are stated, no misreport was found that pays; "
        assert unsure.by_misreport["smaller"].reason == none + "at others in the range this was not decided"


def test_what_is_lost_counts_at_its_most() -> None:
    market = Market.of([[1, 2], [1, 2]], [1, 1], least=[["1/2", 2], [1, 2]], most=[["3/2", 2], [1, 2]])
    assert searched(Swap(), market).margin == F(-1, 2)


def test_another_lie_may_pay_at_all_true_speedups() -> None:
    """The second type gains u1 most at what is stated; more of the first gains at all speedups."""

    class Both(Swap):
        def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
            shares, told = 0 * problem.speedup * problem.capacity, problem.speedup[0]
            shares[0, 0] = problem.capacity[0] * (F(3, 4) if told[0] < 1 else F(1, 2)) if told[1] <= 2 else 0 * told[0]
            shares[0, 1] = problem.capacity[1] * (told[1] > 2)
            return shares if problem.exact else shares.astype(float), None

    verdict = searched(Both(), within("1/4", 3))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, F(-1, 4))
    assert verdict.by_misreport["any"] is verdict.by_misreport["smaller"]
    assert verdict.by_misreport["larger"].answer is Answer.UNDECIDED
    assert verdict.witness.report[0] < 1


@pytest.mark.parametrize("honest", [[1, 0, 0], [1, 1, 0]])
def test_where_speedups_decide_which_gpus_are_used_it_is_open(honest: list[int]) -> None:
    """u1 wants one GPU, and has two at the truth or after the lie; which is the faster one is not known."""
    after = [0, 0, 1] if honest[1] else [1, 1, 0]

    class Between(Swap):
        def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
            shares = 0 * problem.speedup * problem.capacity
            shares[0] += np.array(after if problem.speedup[0, 1] > 2 else honest)
            return shares, None

    bounds = {"least": [[1, "1/2", 5], [1, 2, 5]], "most": [[1, 3, 5], [1, 2, 5]], "demand": [1, None]}
    market = Market.of([[1, 2, 5], [1, 2, 5]], [1, 1, 1], **bounds)
    unsure = searched(Between(), market)
    assert unsure.answer is Answer.UNDECIDED
    assert "instead of" in unsure.reason


def test_who_decides_by_ranges_is_not_asked() -> None:
    verdict = searched(InRanges(), within(1, 3))
    assert (verdict.answer, verdict.effort) == (Answer.UNDECIDED, "nothing")
    assert "decides by the ranges" in verdict.reason
    assert {name: each.reason for name, each in verdict.by_misreport.items()} == dict.fromkeys(
        ("larger", "smaller", "any"), verdict.reason
    )
    unknown = Market.of([[1, 2], [1, 2]], [1, 1], least=[[0, 0], [1, 2]], most=[[None, None], [1, 2]])
    nothing = searched(Swap(), unknown)
    assert (nothing.answer, nothing.effort) == (Answer.UNDECIDED, "nothing")
    assert nothing.reason == "not asked: the speedups of u1 are not known"


def test_the_truth_that_is_given_is_the_truth() -> None:
    market = within("3/2", 3)
    stated = replace(market, least=None, most=None)
    truth = allocate(Swap(), stated, exact=True)
    assert searched(Swap(), market, truth=truth).margin == F(-1, 2)
    assert searched(Swap(), stated, truth=truth).margin == -1


@pytest.mark.parametrize("given", [True, False])
def test_the_truth_that_is_given_is_that_of_the_stated_speedups(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(policy: Any, market: Market, search: Any, name: str) -> None:
        asked.append(search)

    monkeypatch.setattr("fairopt.properties.misreports.strategy_proofness.in_range", ask)
    market = within("3/2", 3)
    stated = replace(market, least=None, most=None)
    truth = allocate(Swap(), stated, exact=True) if given else None
    StrategyProofness().search(Swap(), market, truth=truth)
    monkeypatch.setattr(StrategyProofness, "search", lambda *known, **options: options["truth"])
    same = asked[0](stated)
    assert same is None if truth is None else (same.shares is truth.shares and same.market is stated)
    for factor in (F(1, 2), F(2)):
        assert asked[0](replace(stated, speedup=stated.speedup * factor)) is None


def test_a_class_is_no_policy() -> None:
    with pytest.raises(BadInput, match="got the class MaxEfficiency"):
        StrategyProofness().search(MaxEfficiency, TRUTH)  # type: ignore[arg-type]


def test_without_a_rational_report_nothing_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairopt.properties.misreports.exact_reports.candidates", lambda *given: [])
    exactly, asked = ExactReports(StrategyProofness(), MaxEfficiency(), TRUTH), Reports(MaxEfficiency(), TRUTH)
    assert exactly.best(asked, Found(0, TRUTH.speedup[0], 0.0, 0.0), [], ANYTHING, 1.0) is None
