"""Decisions that rest on rates or floors only told by the certificate: what is concluded from two of them says so."""

from __future__ import annotations

import json

import pytest
from certificate_kinds import BY_HAND, require_true
from certificate_kinds.examples import Json, certificate, extreme, market
from certificate_kinds.programs import misreport, of_others

from fairopt import allocate
from fairopt.models import WaterFilling
from fairopt.models.gavel.partitions import Normaliser
from fairopt.problem import Market
from fairopt.proofs.verify import Rejected, verify

AT_RATES = "hierarchical-water-filling at rates that are told"
SLOW, FAST = (["1/4", "3/4"], [[1], [3]]), (["3/4", "1/4"], [[3], [1]])


def at(rates: list[str], shares: list[list[int]], speedup: int = 1) -> Json:
    """4 GPUs of one type; A rises as fast as the first of the rates says, B as the second."""
    round_ = {"level": 2, "fixed": ["A", "B"], "duals": [["capacity", 0, "1/2"], *held(-1)]}
    told = market({"A": [speedup], "B": [1]}, [4])
    return certificate("levels", market=told, allocation=shares, rates=[rates], rounds=[round_])


def held(push: int) -> list[list[object]]:
    return [["least_ratio", 0, push], ["least_ratio", 1, push]]


def most(of: Json, user: int) -> Json:
    """The most that a user has at any optimum: what it has."""
    shares = of["allocation"]
    duals = [["capacity", 0, 1], ["levels", 1 - user, -1]]
    return extreme(of, "maximize", [[int(i == user)] for i in (0, 1)], shares, shares[user][0], duals)


def test_a_gain_at_other_rates_is_not_said_to_be_the_policys() -> None:
    """A reports twice its speedup, which changes nothing: what it gains is all of the rates that the second tells."""
    lie = misreport(AT_RATES, [2], 2, at(*SLOW), at(*FAST, speedup=2))
    found = verify(lie | {"market": lie["truth"]["market"]})
    assert found.startswith("by what each of the two decisions tells, ")
    assert "whether the policy's is not decided here" in found


def test_the_most_of_each_user_at_rates_of_its_own_is_no_optimum_of_one_policy() -> None:
    """A and B could both have 2, and each has 1 at the rates that are worst for it."""
    users = market({"A": [1], "B": [1]}, [4])
    body = {"market": users, "allocation": [[1], [3]], "better": [[2], [2]]}
    for worst in ((SLOW, FAST), (SLOW, SLOW)):
        ranges = [most(at(*rates), user) for user, rates in enumerate(worst)]
        assert all(verify(each) for each in ranges)
        with pytest.raises(Rejected, match="told alike" if worst == (SLOW, FAST) else "somebody loses"):
            verify(certificate("dominance", **body, optima=ranges))


def test_floors_that_are_told_are_said_to_be_told() -> None:
    every = BY_HAND["GUARANTEED"]
    floor = [["capacity", 0, 1], ["group_floor", 0, 0, -1]]
    found = extreme(every, "maximize", [[1], [0]], [[3], [1]], 3, floor)
    assert "floors of groups, and GPUs that are lent, are as told" in verify(found)


def test_a_lie_to_water_filling_is_judged() -> None:
    """The judge of the trials did not know decisions by levels inside of misreports."""
    truth = Market.of([[6, 1], [3, 6], [5, 4]], [3, 3])
    lie = truth.misreport("u1", [3, 1])
    decided = [allocate(WaterFilling(), each, exact=True) for each in (truth, lie)]
    gain = truth.utility(decided[1].shares)[0] - truth.utility(decided[0].shares)[0]
    assert gain > 0
    parts = [WaterFilling().certify(each).to_json() for each in decided]
    of = {"market": parts[0]["market"], "user": "u1"}
    found = misreport("water-filling", [3, 1], str(gain), *parts) | of
    assert "rewards 'u1'" in verify(found)
    require_true(found)


def test_a_decision_from_the_market_is_not_compared_with_a_program_that_somebody_wrote() -> None:
    """Names with a normaliser are no policy's of the verifier, so that a program may be said to be of such a one."""
    policy, name = WaterFilling(normaliser=Normaliser("equal-time")), "water-filling, equal-time"
    market_ = Market.of([[1, 1], [1, 1]], [1, 1], users=["A", "B"], types=["T0", "T1"])
    truth = json.loads(json.dumps(policy.certify(allocate(policy, market_, exact=True)).to_json()))
    all_to_a = of_others(market({"A": [2, 1], "B": [1, 1]}, [1, 1]), [2, 1, 1, 1], [1, 1, 0, 0]) | {"policy": name}
    assert verify(truth)
    assert verify(all_to_a)
    with pytest.raises(Rejected, match="one decision is proved from the market"):
        verify(misreport(name, [2, 1], 1, truth, all_to_a) | {"market": truth["market"]})
    lied = allocate(policy, market_.misreport("A", [2, 1]), exact=True)
    all_to_b = of_others(truth["market"], [1, 1, 2, 1], [0, 0, 1, 1]) | {"policy": name}
    lie = json.loads(json.dumps(policy.certify(lied).to_json()))
    with pytest.raises(Rejected, match="one decision is proved from the market"):
        verify(misreport(name, [2, 1], str(sum(lied.shares[0])), all_to_b, lie) | {"market": truth["market"]})


def test_a_statement_names_the_rates_the_floors_and_what_is_lent_that_it_rests_on() -> None:
    """Two allocations were both "lexicographically max-min ... as told" on one market: the lines contradicted."""
    lines = [verify(at(*SLOW)), verify(at(*FAST))]
    assert "the rates are, in each round, (1/4, 3/4); market" in lines[0]
    assert "the rates are, in each round, (3/4, 1/4); market" in lines[1]
    every = BY_HAND["GUARANTEED"]
    free = every | {"owed": {"floors": [["1/2"]]}}
    assert "are as told: (1) and (4); market" in verify(every)
    assert "are as told: (1/2) and (4); market" in verify(free)
    lent = every | {"owed": {"floors": [[1]], "lent": ["9/2"]}}
    assert "are as told: (1) and (9/2); market" in verify(lent)
    inside = BY_HAND["WITHIN"]
    assert "within entitlements; floors of groups, and GPUs that are lent, are as told: (" in verify(inside)


def test_a_decision_at_speedups_known_within_bounds_is_said_to_be_of_those_stated() -> None:
    """What holds at all of them is said otherwise; the line of a decision said nothing."""
    known = json.loads(json.dumps(BY_HAND["LEVELS"]))
    assert "by the speedups that are stated" not in verify(known)
    known["market"]["user"][0] |= {"least": ["1/2", 1], "most": [3, None]}
    assert "[by the speedups that are stated, not at all within the bounds; market" in verify(known)
