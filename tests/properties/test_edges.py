"""Where a verdict changes: at the very number, and what is said on either side of it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt import allocate
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.problem import Market
from fairopt.program import INFINITY, fractions
from fairopt.proofs.verify import verify
from fairopt.properties import (
    TOLERANCE,
    Answer,
    Effort,
    EnvyFreeness,
    Feasibility,
    ParetoEfficiency,
    SharingIncentive,
    WorkConservation,
)
from fairopt.properties.shares import pareto_efficiency

PAIR = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
NINTH, THIRD, BIT = Fraction(1, 9), Fraction(1, 3), Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("shares", "error", "answer"),
    [
        # max-min: both get a ninth more than their half is worth
        ([[1, "1/3"], [0, "2/3"]], NINTH, Answer.UNDECIDED),
        ([[1, "1/3"], [0, "2/3"]], NINTH - BIT, Answer.HOLDS),
        ([[1, "1/3"], [0, "2/3"]], 2 * NINTH, Answer.UNDECIDED),
        # u1 gets 1, and its half is worth 3/2: a third less
        ([[1, 0], [0, 1]], THIRD, Answer.UNDECIDED),
        ([[1, 0], [0, 1]], THIRD - BIT, Answer.FAILS),
        ([[1, 0], [0, 1]], 1, Answer.UNDECIDED),
        # a margin of 0 is that of numbers that are rational
        ([["1/2", "1/2"], ["1/2", "1/2"]], 1, Answer.HOLDS),
    ],
)
def test_irrational_shares_decide_only_what_is_further_off_than_they_are_known(
    shares: list[list[object]], error: Fraction, answer: Answer
) -> None:
    decision = replace(allocate("max-min", PAIR, exact=True), shares=PAIR.shares(shares), error=error)
    verdict = SharingIncentive().verify(PAIR, decision)
    assert verdict.answer is answer
    assert (verdict.reason != "") == (answer is Answer.UNDECIDED)
    if verdict.reason:
        assert "the shares are known to within" in verdict.reason
        scaled = PAIR.rescaled({"u1": Fraction(1000), "u2": Fraction(1, 7)})
        assert SharingIncentive().verify(scaled, decision).answer is answer


def test_a_tolerance_is_met_exactly_or_not() -> None:
    """Half of a GPU of two is missing: a quarter."""
    market, shares = Market.of([[1]], capacity=[2]), [["3/2"]]
    quarter = Fraction(1, 4)
    for tolerance, answer in ((quarter, Answer.HOLDS), (quarter - BIT, Answer.FAILS), (quarter + BIT, Answer.HOLDS)):
        for asked in (WorkConservation(), SharingIncentive(), ParetoEfficiency()):
            verdict = asked.check(market, shares, tolerance=tolerance)
            assert (verdict.answer, verdict.exact) == (answer, answer is Answer.FAILS), asked.name
    over = [["5/2"]]
    for tolerance, answer in ((quarter, Answer.HOLDS), (quarter - BIT, Answer.FAILS)):
        assert Feasibility().check(market, over, tolerance=tolerance).answer is answer
        assert ParetoEfficiency().check(market, over, tolerance=tolerance).answer is answer
    less = [["-1/2"], ["5/2"]]
    two = Market.of([[1], [1]], capacity=[2])
    for tolerance, answer in ((quarter, Answer.HOLDS), (quarter - BIT, Answer.FAILS)):
        assert Feasibility().check(two, less, tolerance=tolerance).answer is answer
        assert ParetoEfficiency().check(two, less, tolerance=tolerance).answer is answer


def test_floats_are_given_a_millionth() -> None:
    market = Market.of([[1]], capacity=[2])
    for asked, part, answer in (
        *((WorkConservation(), 0.9 * TOLERANCE, Answer.HOLDS), (WorkConservation(), 1.1 * TOLERANCE, Answer.FAILS)),
        *((SharingIncentive(), 0.9 * TOLERANCE, Answer.HOLDS), (SharingIncentive(), 1.1 * TOLERANCE, Answer.FAILS)),
        *((Feasibility(), -0.9 * TOLERANCE, Answer.HOLDS), (Feasibility(), -1.1 * TOLERANCE, Answer.FAILS)),
        *((ParetoEfficiency(), 0.9 * TOLERANCE, Answer.HOLDS), (ParetoEfficiency(), 1.1 * TOLERANCE, Answer.FAILS)),
    ):
        assert asked.check(market, np.array([[2 * (1 - part)]])).answer is answer, (asked.name, part)
    assert TOLERANCE == 1e-6


def test_a_speedup_that_may_be_any_from_0_on_is_positive() -> None:
    """A is stated not to run on T2, and may: it idles. Where it is known not to run there, nothing does."""
    known = Market.of([[1, 0], [1, 0]], capacity=[1, 1], users=["A", "B"])
    least, most = known.speedup.copy(), known.speedup.copy()
    most[0, 1] = Fraction(4)
    ranged, shares = replace(known, least=least, most=most), [["1/2", 0], ["1/2", 0]]
    assert WorkConservation().check(known, shares).answer is Answer.HOLDS
    assert WorkConservation().check(ranged, shares).answer is Answer.FAILS
    given = [["1/2", 1], ["1/2", 0]]
    assert WorkConservation().check(ranged, given).answer is Answer.HOLDS
    certificate = Feasibility().certify(ranged, ranged.shares(given), Feasibility().check(ranged, given))
    assert certificate.to_json()["answer"] == "HOLDS"


@pytest.mark.parametrize(("users", "names"), [(5, "u1, u2, u3, u4, u5"), (6, "u1, u2, u3, u4, u5 and 1 others")])
def test_of_whom_nothing_is_known_is_said(users: int, names: str) -> None:
    market = Market.of([[1, 2]] * users, capacity=[1, 1])
    unknown = replace(market, least=0 * market.speedup, most=market.speedup * INFINITY)
    shares = [[1, 0]] * users  # of more than there is; it is a question of T2 whether that is worth an equal share
    assert SharingIncentive().check(unknown, shares).reason == f"not asked: the speedups of {names} are not known"
    half = replace(market, least=market.speedup / 2, most=market.speedup * INFINITY)
    assert SharingIncentive().check(half, shares).answer is not Answer.UNDECIDED


def test_what_is_no_evidence_is_not_certified() -> None:
    shares = PAIR.shares([[1, 0], [0, 1]])
    verdict = EnvyFreeness().check(PAIR, shares)
    assert EnvyFreeness().certify(PAIR, shares, verdict)
    for wrong, said in (
        ((shares.astype(float), verdict), "floats"),
        ((shares, replace(verdict, exact=False)), "floats"),
        ((shares, replace(verdict, answer=Answer.UNDECIDED, reason="time")), "undecided: time"),
    ):
        with pytest.raises(NotCapable, match=said):
            EnvyFreeness().certify(PAIR, *wrong)


@pytest.mark.parametrize("shares", [[[1, "1/4"], [0, "3/4"]], [[1, 0], [0, 1]], [["1/2", 0], ["1/2", 1]]])
def test_every_answer_has_a_certificate_that_says_so(shares: list[list[object]]) -> None:
    kinds = {"envy": "FAILS", "dominance": "FAILS", "pareto_weights": "HOLDS"}
    for asked in (EnvyFreeness(), SharingIncentive(), ParetoEfficiency(), Feasibility(), WorkConservation()):
        verdict = asked.check(PAIR, shares)
        told = json.loads(json.dumps(asked.certify(PAIR, PAIR.shares(shares), verdict).to_json()))
        assert told.get("answer", kinds.get(told["certificate"])) == verdict.answer.value
        assert verify(told)


def test_what_is_worst_of_shares_below_0_and_of_types_that_are_overbooked() -> None:
    """Each is measured by the GPUs of its type: a quarter below 0 of one is worse than half of four."""
    below = Feasibility().check(Market.of([[1, 1], [1, 1]], capacity=[4, 1]), [["-1/2", 1], [4, "-1/4"]])
    assert (below.margin, below.witness.type, below.witness.user) == (Fraction(-1, 4), "T2", "u2")
    market = Market.of([[1, 1], [1, 1]], capacity=[4, "1/2"])
    both = Feasibility().check(market, [["22/5", "1/2"], [0, "-1/10"]])
    assert (both.margin, both.witness.type, both.witness.user) == (Fraction(-1, 10), "T2", "u2")
    over = Feasibility().check(market, [[5, "1/2"], [0, "-1/10"]])
    assert (over.margin, over.witness.type, over.witness.user) == (-1, "T1", None)
    holds = Feasibility().check(market, [[4, "1/2"], [0, 0]])
    told = "more is given out than there is"
    assert list(map(Feasibility().fails_so, (below, over, holds))) == ["u2 is given a negative share", told, told]


def test_limits_of_a_search_are_positive_and_its_parts_add_up() -> None:
    for evaluations in (1, 2, 3, 4, 5, 600):
        assert sum(Effort(evaluations).part(number) for number in range(3)) == evaluations
        assert Effort(evaluations).part(0) >= Effort(evaluations).part(2)
    assert Effort(1).ends() == INFINITY
    assert Effort(1, seconds=1e-9).seconds == 1e-9
    for wrong in ({"evaluations": 0}, {"seconds": 0}, {"seconds": -1}):
        with pytest.raises(BadInput):
            Effort(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "exact"), [("1/2", True), ("501/1000", False), ("-1/1000", False)])
def test_what_fails_exactly_was_not_changed_before_and_is_certified(first: str, exact: bool) -> None:
    """Shares feasible within a tolerance are made feasible first: what dominates these proves nothing of those."""
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    shares = np.array([[Fraction(first), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 2)]], dtype=object)
    verdict = ParetoEfficiency().check(market, shares, tolerance=Fraction(1, 100))
    assert (verdict.answer, verdict.exact) == (Answer.FAILS, exact)
    if exact:
        assert verdict.witness.refutes(market, shares)
        certificate = ParetoEfficiency().certify(market, shares, verdict)
        assert verify(json.loads(json.dumps(certificate.to_json())))
    else:
        with pytest.raises(NotCapable, match="decided in floats"):
            ParetoEfficiency().certify(market, shares, verdict)


def test_a_user_is_not_said_to_use_more_idle_gpus_than_its_demand_leaves() -> None:
    """A demands 1/2, and has 1/4 of the two T2, which nobody else can use."""
    market = Market.of([[0, 1], [1, 0]], [1, 2], demand=["1/2", None], users=["A", "B"], types=["T1", "T2"])
    verdict = WorkConservation().check(market, [[0, "1/4"], [1, 1]], tolerance=0)
    assert (verdict.margin, str(verdict.witness)) == (Fraction(-1, 4), "1.75 GPUs of T2 idle; A could use 0.25 of them")


def chain(users: int, slow: float, fast: float) -> tuple[Market, list[list[float]]]:
    """Return users of two types each, the next user of the next two: one is worth many times the other."""
    speedup, shares = np.zeros((users, users + 1)), np.zeros((users, users + 1))
    for i in range(users):
        speedup[i, i : i + 2] = slow, fast
        shares[i, i : i + 2] = (1 + (i == 0)) / 2, (1 + (i == users - 1)) / 2
    return Market.of_arrays(speedup, np.ones(users + 1)), shares.tolist()


@pytest.mark.parametrize(("users", "slow", "fast"), [(2, 1.1e-30, 9e29), (7, 1.1e-30, 9e29), (7, 1, 2e5), (4, 1, 3e8)])
def test_what_floats_lose_is_not_called_a_gain(users: int, slow: float, fast: float) -> None:
    """Guards against trades that give somebody more and take from others what floats do not see beside the rest."""
    market, shares = chain(users, slow, fast)
    for order in (slice(None), slice(None, None, -1)):
        turned = replace(market, speedup=market.speedup[order])
        assert ParetoEfficiency().check(turned, shares[order]).answer is Answer.HOLDS
    told, held = market.as_(Fraction), fractions(np.array(shares))
    exact = ParetoEfficiency().check(told, held, tolerance=0)
    assert (exact.answer, exact.evidence.violations(told, held)) == (Answer.HOLDS, [])


#: Speedups, capacities, weights and shares of which nobody can gain a millionth, but by what floats do not see.
UNSEEN_BY_FLOATS = {
    "all of a type that is next to nothing to who gives it": (
        [[8e16, 9e18, 0, 0], [7e-14, 0, 3e-18, 7e6]], [7, 3, 8, 5], [1, 1], [[0, 3, 0, 0], [7, 0, 8, 5]],
    ),
    "one of which the solver gives out more than there is": (
        [[5e-10, 1e6, 2e-4], [1e7, 1e-5, 6e-10]], [1, 7, 3], [3e4, 0.1], [[0, 0, 0], [1, 7, 3]],
    ),
    "a loss within the solver's tolerance, to who weighs little": (
        [[3.4e-5, 1.9e-3, 0.29, 2.2e-4], [2.8e-5, 1.6e-3, 0.24, 0]], [67, 7.2e-3, 1.6e-6, 2765], [40, 5.7e-3],
        [[0, 0, 1.6e-11, 2765], [67, 7.2e-3, 1.6e-6 - 1.6e-11, 0]],
    ),
    "a part of a type that is fast to another": (
        [[4e-10, 0, 0], [2e4, 3e4, 0]], [3, 5, 8], [2e-4, 4e4], [[3 - 5e-8, 0, 0], [5e-8 - 1e-15, 5, 0]],
    ),
    "by way of one before the one who gains": (
        [[1e-7, 0, 0], [0, 5e6, 0.02], [10, 0, 1e5]], [300, 3e5, 200], [2, 0.4, 4e-5],
        [[297.029702970297, 0, 0], [0, 3e5, 9.9999950000025e-05], [2.97029702970297, 0, 199.99990000005]],
    ),
    "by way of two, and others gain more of smaller units": (
        [[0, 6e-4, 2e9, 0], [0, 0, 2e-5, 9e7], [1e-4, 3e8, 0, 0]], [1, 1, 1, 1], [100, 1e-3, 2],
        [[0, 0.5, 0.5, 0], [0, 0, 0.5, 1], [1, 0.5, 0, 0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSEEN_BY_FLOATS)
def test_what_others_lose_unseen_is_no_gain(what: str) -> None:
    """In rationals the margin is the same, but for rounding; floats alone took up to 26 for the gain."""
    speedup, capacity, weight, shares = (np.array(each, dtype=float) for each in UNSEEN_BY_FLOATS[what])
    market = Market.of_arrays(speedup, capacity, weight=weight)
    exact = ParetoEfficiency().check(market.as_(Fraction), fractions(shares), tolerance=Fraction(1, 10**6))
    verdict = ParetoEfficiency().check(market, shares)
    assert verdict.answer is exact.answer is Answer.HOLDS
    assert verdict.margin == pytest.approx(float(exact.margin), abs=1e-12)


def test_weights_of_a_proof_that_no_float_holds_are_left_out() -> None:
    verdict = ParetoEfficiency().check(*chain(7, 1.1e-30, 9e29))
    assert (verdict.answer, verdict.evidence) == (Answer.HOLDS, None)


def test_who_weighs_next_to_nothing_gains_too_little_to_tell() -> None:
    market = Market.of_arrays([[7e4, 0], [1e9, 0], [2e6, 0], [7e9, 0]], [4000, 1], weight=[1000, 9e4, 50, 6e-5])
    shares = [[39.5843641467706, 0], [3958.43641467706, 0], [1.97921820733853, 0], [2.9688273110078e-06, 0]]
    verdict = ParetoEfficiency().check(market, shares)
    assert (verdict.answer, verdict.reason) == (
        Answer.UNDECIDED,
        "what could be gained is as little as floats round shares",
    )


@pytest.mark.parametrize(("most", "answer"), [(20, Answer.HOLDS), (19, Answer.UNDECIDED)])
def test_rationals_decide_on_so_many_speedups(most: int, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pareto_efficiency, "MOST_EXACT", most)
    assert ParetoEfficiency().check(*chain(4, 1, 3e8)).answer is answer


def test_what_no_solver_answers_is_decided_in_rationals_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: object, program: object) -> None:
        raise NotSolved("no answer")

    market = Market.of([[1, 2], [1, 5]], [1, 1])
    assert "solved by highs" in ParetoEfficiency().check(market.as_(float), np.eye(2)).effort
    monkeypatch.setattr(pareto_efficiency.Highs, "optimum", none)
    for most, solved in ((4, True), (3, False)):
        monkeypatch.setattr(pareto_efficiency, "MOST_EXACT", most)
        if solved:
            assert ParetoEfficiency().check(market.as_(float), np.eye(2)).answer is Answer.HOLDS
        else:
            with pytest.raises(NotSolved, match="no answer"):
                ParetoEfficiency().check(market.as_(float), np.eye(2))
    monkeypatch.setattr(pareto_efficiency, "MOST_EXACT", 4)
    monkeypatch.setattr(pareto_efficiency.Exact, "optimum", none)
    with pytest.raises(NotSolved, match="no answer"):
        ParetoEfficiency().check(market, np.eye(2))
