"""Where one sign, one number or one line decides what a checker says: numbers at the very limit, and what is worded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from one_type import now, one_type

from fairopt import allocate
from fairopt.certificates import PROPERTY
from fairopt.errors import BadInput, NotCapable, WrongReturn
from fairopt.models import MaxEfficiency
from fairopt.policy import Optima
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.market import NEAR
from fairopt.program import INFINITY
from fairopt.properties import (
    AdjacentTypes,
    AllocationProperty,
    Answer,
    Effort,
    EnvyFreeness,
    Feasibility,
    SharingIncentive,
    over_optima,
)
from fairopt.properties import property as property_module
from fairopt.properties.entitlements import guarantee_incentive
from fairopt.properties.entitlements.envy_within_peers import EnvyWithinPeers
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, asks
from fairopt.properties.over_optima import Slack
from fairopt.properties.property import MechanismProperty, SlackCase
from fairopt.properties.runs.run_property import RunProperty
from fairopt.properties.schedules.misreports import ScheduleStrategyProofness
from fairopt.properties.schedules.plan_property import PlanProperty
from fairopt.properties.shares.envy_freeness import _within_demand
from fairopt.properties.shares.feasibility import sizes
from fairopt.properties.within_bounds import Boundary, _reach, percent

THREE = Market.of([[1, 2, 3]], capacity=[2, 2, 2], types=["a", "b", "c"])


def test_a_reach_that_is_near_nothing_is_none() -> None:
    assert (percent(NEAR), percent(0), percent(F(1, 3))) == ("0%", "0%", "33.33%")
    assert _reach(F(1, 2), NEAR) == "any error may break it"
    assert Boundary("", 1, 2, {"holds": THREE}).summary() == {"part": 1, "error": 2}


def test_what_a_property_must_write_is_asked_for() -> None:
    assert AllocationProperty.__abstractmethods__ == {"_check"}
    assert PlanProperty.__abstractmethods__ == {"cases"}
    assert RunProperty.__abstractmethods__ == {"cases"}
    assert MechanismProperty.__abstractmethods__ == {"search"}


class Forgetful(AllocationProperty):
    """A property that the verifier does not know, and that may forget to answer."""

    name = "forgetful"
    source = definition = "made by hand"
    said: Any = None

    def _check(self, market: Market, shares: Any, tolerance: Any) -> Any:
        return self.said


def test_a_checker_must_answer_and_bring_evidence() -> None:
    with pytest.raises(WrongReturn, match="a Verdict"):
        Forgetful().check(THREE, [[1, 1, 1]])
    verdict = Feasibility().check(THREE, [[1, 1, 1]])
    with pytest.raises(NotCapable, match="the verifier does not know forgetful"):
        Forgetful().certify(THREE, THREE.shares([[1, 1, 1]]), verdict)
    assert Forgetful.needs_speedups
    for given in ([[1.0, np.nan, np.inf]], np.array([[1.0, np.nan, np.inf]])):
        with pytest.raises(BadInput, match=r"type 'b'.*got nan"):
            Feasibility().check(THREE, given)


def test_a_search_ends_after_its_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Effort() == Effort(evaluations=600, seconds=None, seed=0)
    monkeypatch.setattr(property_module, "monotonic", lambda: 10.0)
    assert (Effort(seconds=2).ends(), Effort(seconds=2).ends(4)) == (12, 10.5)


def test_a_speedup_that_may_be_positive_is_stated_as_one_at_most() -> None:
    for most, stated in ((4, 1), (F(1, 2), F(1, 2))):
        opened = Market.of([[1, 0]], [1, 1], least=[[1, 0]], most=[[1, most]])
        shares = opened.shares([[1, 1]])
        told = Feasibility().certify(opened, shares, Feasibility().check(opened, shares))
        assert told.kind is PROPERTY
        assert told.market.speedup[0, 1] == stated


# -- shares ----------------------------------------------------------------------------------------------------------
def test_shares_below_0_are_no_way_across_a_gap() -> None:
    """The definition asks for more than 0 of the type between; the verifier and the witness say so, too."""
    market, shares = THREE, THREE.shares([[1, "-1/2", 1]])
    verdict = AdjacentTypes().check(market, shares)
    assert verdict.answer is Answer.FAILS
    assert verdict.witness.refutes(market, shares)
    for row in ([1, "1/2", 1], [0, 0, 1], [1, 0, 0], [1, "-1/2", "-1/4"], ["-1/4", "-1/2", 1]):
        assert not verdict.witness.refutes(market, market.shares([row]))


def test_the_poorer_side_of_a_gap_ends_before_it() -> None:
    verdict = AdjacentTypes().check(THREE, [[1, "1/100", 2]], tolerance=F(1, 10))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -1)
    for names in ("abz", "aac"):
        with pytest.raises(BadInput, match="Name each of"):
            AdjacentTypes(order=list(names)).check(THREE, [[1, 1, 1]])


@pytest.mark.parametrize(("order", "answer"), [(None, Answer.FAILS), (["b", "a", "c"], Answer.HOLDS)])
def test_a_gap_is_certified_in_the_order_that_was_asked(order: list[str] | None, answer: Answer) -> None:
    shares = THREE.shares([[1, 0, 1]])
    verdict = AdjacentTypes(order).check(THREE, shares)
    assert verdict.answer is answer
    told = AdjacentTypes(order).certify(THREE, shares, verdict)
    assert told.kind is PROPERTY
    assert told.market.types == tuple(order or "abc")
    assert (told.allocation == [[0, 1, 1]]).all() if order else (told.allocation == [[1, 0, 1]]).all()


def test_the_only_optimum_within_a_demand_has_a_gap() -> None:
    market = Market.of([[2, 1, 2]], [1, 1, 1], demand=[2])
    found = over_optima(MaxEfficiency(), allocate(MaxEfficiency(), market, exact=True), AdjacentTypes())
    assert (found.some.answer, found.every.answer) == (Answer.FAILS, Answer.FAILS)
    assert found.having is None


@pytest.mark.parametrize("weights", [(1, 1000, 1), (F(1, 1000), 1, F(1, 1000)), (10**6, 1, 10**6)])
@pytest.mark.parametrize("scale", [F(1, 10**9), 1, 10**9])
def test_envy_that_floats_cannot_see_between_users_of_any_weight(weights: tuple[Any, ...], scale: Any) -> None:
    """Shares by weight, but for a bit that the third user lacks: it envies the first by the most."""
    speedup = [[F(i + 3, 7) * (j + 1) + F(1, 3 + i) for j in range(3)] for i in range(3)]
    market = Market.of(speedup, [scale, scale / F(3), scale / F(7)], weight=list(weights))
    shares, bit = market.equal_split(), F(scale, 10**30)
    shares[2, 0], shares[0, 0] = shares[2, 0] - bit, shares[0, 0] + bit
    fair = market.fair_utility()
    envied = {
        (i, other): market.speedup[i] @ (shares[i] - shares[other] * (market.weight[i] / market.weight[other]))
        for i in range(3)
        for other in range(3)
        if i != other
    }
    worst = min(envied, key=lambda pair: envied[pair] / fair[pair[0]])
    verdict = EnvyFreeness().check(market, shares)
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, envied[worst])


def test_of_many_who_hold_nothing_the_one_that_envies_most_is_found() -> None:
    """All but the first hold nothing of a small worth, by a large weight; one wants its GPUs by a bit more."""
    for most in range(1, 9):
        worth = [F(at * at + 7, 997 * 10**9) for at in range(1, 9)]
        speedup = [[F(1), F(1)], *([each, each / 3] for each in worth)]
        speedup[most][0] *= 1 + F(1, 10**25)
        market = Market.of(speedup, [F(1), F(1)], weight=[F(1, 1000), *[1000] * 8])
        verdict = EnvyFreeness().check(market, [[1, 0], *[[0, 0]] * 8], tolerance=0)
        assert (verdict.answer, verdict.witness.user) == (Answer.FAILS, f"u{most + 1}")


def test_within_a_demand_at_most_what_the_other_holds_of_each_type_is_used() -> None:
    market = Market.of([[1, 2, 3], [1, 2, 3]], [1, 1, 1], demand=[1, None])
    optima = Optima.of(MaxEfficiency(), allocate(MaxEfficiency(), market, exact=True))
    assert optima is not None
    slack = _within_demand(optima, Slack({}, F(0)), 0, 1, F(1))
    assert slack.variables == [(0, INFINITY)] * 3
    assert slack.used is not None
    first = len(optima.choices.cost)
    assert {first, first + 1, first + 2} <= set(slack.used)
    assert len(slack.rows) == 4


def overbooked(kind: str, given: Any, capacity: int, user: str | None = None) -> Any:
    return Feasibility().case(capacity - given, 1, type=kind, given=given, capacity=capacity, user=user)


def test_a_share_is_refuted_below_0_and_a_type_without_gpus_is_measured_by_one() -> None:
    market = Market.of([[1, 1]], [3, 0], types=["T", "none"])
    said = [overbooked("T", each, 3, "u1").refutes(market, market.shares([[each, 0]])) for each in (-1, 0, F(1, 2))]
    assert said == [True, False, False]
    assert sizes(market).tolist() == [3, 1]
    assert sizes(Market.of([[1, 1]], [F(1, 2), 0])).tolist() == [F(1, 2), F(1, 2)]


def test_pairs_that_floats_cannot_tell_apart_are_both_looked_at() -> None:
    """Sums of 12 terms, and one of the pairs is tighter by 2000 of the smallest steps: by 4000 it would be seen."""
    market, pairs = Market.of(np.ones((2, 12)), np.ones(12)).as_(float), ~np.eye(2, dtype=bool)
    for steps, seen in ((1000, 2), (4000, 1)):
        shares = np.full((2, 12), 1 / 16)
        shares[1, 0] += steps * np.finfo(float).eps
        assert len(EnvyFreeness()._closest(market, shares, pairs)[0]) == seen


def test_of_pairs_that_are_compared_piece_by_piece_the_tightest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A and B envy C by what floats cannot tell apart."""
    monkeypatch.setattr("fairopt.properties.shares.envy_freeness.PAIRS", 1)
    market = Market.of([[1], [1], [2]], capacity=[4], users=["A", "B", "C"])
    verdict = EnvyFreeness().check(market, [[1], [F(1) - F(1, 10**20)], [2]], tolerance=0)
    assert (verdict.witness.user, verdict.witness.envied) == ("B", "C")
    assert verdict.margin == -1 - F(1, 10**20)


def test_envy_of_who_is_not_known_is_proved_by_the_definition() -> None:
    known = Market.of([[1, 2], [1, 2]], [1, 1])
    ranged = replace(known, least=known.speedup, most=known.speedup * 2)
    fails, holds = known.shares([[0, 0], [1, 1]]), known.shares([["1/2", "1/2"], ["1/2", "1/2"]])
    for market, shares, kind in (
        (known, fails, "envy"),
        (ranged, fails, "property"),
        (known, holds, "property"),
    ):
        verdict = EnvyFreeness().check(market, shares)
        assert EnvyFreeness().certify(market, shares, verdict).to_json()["certificate"] == kind


def test_shares_are_feasible_at_whatever_speedups() -> None:
    unknown = Market.of([[1, 2]], [1, 1], least=[[0, 0]], most=[[None, None]])
    verdict = Feasibility().check(unknown, [[1, 1]])
    assert (verdict.answer, verdict.exact) == (Answer.HOLDS, True)


# -- entitlements ----------------------------------------------------------------------------------------------------
def test_what_is_taken_from_each_is_taken_off_once() -> None:
    market = one_type(6, {"a": 0, "b": 2, "c": 3}, {"a": 9})
    stands = HeldAndOwed.of(market, now(market))
    assert stands.sources(0, 0, 5) == (("", 1), ("c", 3), ("b", 1))
    assert stands.sources(0, 0, 9) == (("", 1), ("c", 3), ("b", 2))


def test_what_is_too_small_to_print_is_told_apart() -> None:
    """Guards against "1 GPUs of T1 are given out, and there are 1"."""
    market, bit = Market.of([[1], [1]], [2], users=["A", "B"], types=["T1"]), F(1, 10**20)
    much = Feasibility().check(market, [[1 + bit], [1]], tolerance=0)
    assert str(much.witness) == "1e-20 GPUs of T1 are given out beyond the 2 that there are"
    little = SharingIncentive().check(market, [[1 - bit], [1]], tolerance=0)
    assert str(little.witness) == "A gets 1; its equal share is worth 1e-20 more"


def peer_envy(theirs: F) -> Any:
    """Return the case of A, which gets 1 and would get ``theirs``."""
    return EnvyWithinPeers().case(1 - theirs, 1, user="A", envied="B", throughput=F(1), with_others_shares=theirs)


def test_envy_of_a_peer_that_is_too_small_to_print_is_told_apart() -> None:
    bit = F(1, 10**20)
    assert "it would get 1e-20 more" in str(peer_envy(F(1) + bit))
    users, types = ("A", "B"), ("T1",)
    owed = Entitlements.of(users, types, group=dict.fromkeys(users, "office"))
    market = Market.of([[1], [1]], [2], users=users, types=types, entitlements=owed)
    envy = peer_envy(F(1))
    assert not envy.refutes(market, market.shares([[1], [1]]))
    assert envy.refutes(market, market.shares([[1 - bit], [1]]))
    assert EnvyWithinPeers().check(market, [[1], [1]]).answer is Answer.HOLDS
    # a guarantee without bound is none: all that A holds is beyond it
    endless = Entitlements.of(users, types, group=dict.fromkeys(users, "office"), guarantee={"A": [None]})
    market = Market.of([[1], [1]], [2], users=users, types=types, entitlements=endless)
    assert EnvyWithinPeers().check(market, [[2], [0]]).margin == -2


def _one(asked: list[tuple[int, Any]], **more: Any) -> Market:
    """Return one user of three types, the last of which it cannot run on, with gangs that wait."""
    types = ("a", "b", "c")
    gangs = Gangs.of(["u"] * len(asked), [gpus for gpus, _ in asked], users=["u"], types=types, on=[None] * len(asked))
    owed = Entitlements.of(["u"], types, gangs=replace(gangs, **more) if more else gangs)
    return Market.of([[1, 2, 0]], [4, 4, 4], users=["u"], types=types, entitlements=owed)


def test_which_gpus_serve_what_is_asked_for() -> None:
    market = _one([(2, None)])
    for asked, bundle, served in (
        ({(0,): 1}, [F(1), F(1), F(0)], [1, 0, 0]),  # nobody asks for the second
        ({(0,): 1}, [F(-1, 2), F(1), F(1)], [0, 0, 0]),
        ({(0, 1): 2}, [F(1), F(1), F(1)], [1, 1, 0]),  # it does not run on the third
    ):
        found = guarantee_incentive._served(market, 0, asked, np.array(bundle, dtype=object))
        assert found is not None
        assert found.tolist() == served
    unknown = replace(market, least=market.speedup / 2, most=market.speedup * 2)
    found = guarantee_incentive._served(unknown, 0, {(0, 1): 2}, np.array([F(1), F(1), F(0)], dtype=object))
    assert found is not None
    assert found.tolist() == [1, 1, 0]
    silent = Market.of([[1, 2]], [4, 4], demand=[2], entitlements=Entitlements.of(["u1"], ["T1", "T2"]))
    silent = replace(silent, least=silent.speedup * F(9, 10), most=silent.speedup)  # the second is faster at any
    found = guarantee_incentive._served(silent, 0, asks(silent)[0], np.array([F(1), F(2)], dtype=object))
    assert found is not None
    assert found.tolist() == [0, 2]


# -- schedules -------------------------------------------------------------------------------------------------------
class Told(ScheduleStrategyProofness):
    """What lies gain is told."""

    def __init__(self, *lies: tuple[Any, Any]) -> None:
        super().__init__()
        object.__setattr__(self, "lies", lies)

    def gains(self, truth: Any, plan: Any) -> tuple[Any, ...]:
        return ()

    def misreport(self, policy: Any, batch: Any, misreport: Any, honest: Any = None) -> SlackCase:
        return self.told("t", misreport, *misreport, "a lie")


@pytest.mark.parametrize(
    ("honest", "misreported", "pays"),
    [
        (F(3), F(3), False),
        (F(3), F(3) + F(1, 10**30), True),
        (F(0), F(1, 10**30), True),
        (100.0, 100.00001, False),
        (-100.0, -99.99999, False),
        (100.0, 100.01, True),
        (-100.0, -99.99, True),
    ],
)
def test_a_lie_pays_by_more_than_floats_are_off(honest: Any, misreported: Any, pays: bool) -> None:
    verdict = Told().check(None, None, [(honest, misreported)], truth="told")  # type: ignore[arg-type]
    assert verdict.answer is (Answer.FAILS if pays else Answer.NOT_REFUTED)
    assert verdict.exact is isinstance(honest, F)


class Cases(PlanProperty):
    """Cases that are given."""

    name = "cases"
    source = definition = "made by hand"

    def __init__(self, has: Any, needs: Any) -> None:
        self.has, self.needs = has, needs

    def cases(self, plan: Any) -> Any:
        return [self.compared("t", self.has, self.needs)]


@pytest.mark.parametrize(("has", "needs"), [(-10, -9), (-1, 0), (9, 10), (0, 1), (-1, -F(1, 10))])
def test_a_tolerance_is_a_part_of_the_larger_number(has: Any, needs: Any) -> None:
    size = max(abs(has), abs(needs))
    part = F(needs - has, size)
    assert Cases(has, needs).check(None, tolerance=part).answer is Answer.HOLDS  # type: ignore[arg-type]
    less = Cases(has, needs).check(None, tolerance=part - F(1, 10**9))  # type: ignore[arg-type]
    assert less.answer is Answer.FAILS
