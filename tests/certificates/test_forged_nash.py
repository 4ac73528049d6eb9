"""Bounds of Nash welfare, where demands bind, that somebody made who knows the verifier."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from certificate_kinds.entitled_decisions import WITHIN
from certificate_kinds.examples import Json, certificate, market

from fairopt.proofs.verify import Rejected, verify

#: A has the second type and B the first, as is best; nobody can have the third. At these prices and demand duals t = 1.
THIRD = market({"A": [1, 2, 9], "B": [1, 0, 9]}, [1, 1, 0], A={"demand": 1, "weight": 3})
#: For B, of weight 1: (1 - 89/110)^2 / 2 and (121/100 - 1)^2 / (2 * 121/100) are this.
GAP = Fraction(441, 24200)
NEARLY = Fraction(1, 10**6)


def between(gap: Any, lower: list[Any], upper: list[Any], **more: Any) -> Json:
    numbers = {"prices": [1, 2, 0], "demand_duals": [1, 0], "gap": str(gap)}
    ends = {"lower": list(map(str, lower)), "upper": list(map(str, upper))}
    held = {"allocation": [[0, 1, 0], [1, 0, 0]]}
    return certificate("nash_bounds", market=THIRD, **held | numbers | ends | more)


L, H = Fraction(89, 110), Fraction(121, 100)
CLOSEST = [  # of B, and of A, of whom t is half the throughput
    (GAP, [1, L], [3, H]),
    (3 * GAP, [2 * L, "1/2"], [2 * H, "7/5"]),
]


@pytest.mark.parametrize(("gap", "lower", "upper"), CLOSEST)
def test_bounds_of_nash_welfare_are_as_close_as_is_proved_and_no_closer(gap: Fraction, lower: Any, upper: Any) -> None:
    i = 1 if gap == GAP else 0
    assert verify(between(gap, lower, upper))
    above, below = list(lower), list(upper)
    above[i], below[i] = lower[i] + NEARLY, upper[i] - NEARLY
    for ends in ((above, upper), (lower, below)):
        with pytest.raises(Rejected, match="closer than is proved"):
            verify(between(gap, *ends))


def test_a_lower_bound_may_be_nothing() -> None:
    assert verify(between(GAP, [0, 0], [3, 2]))


#: A demands half a GPU, and holds it; at a price and a demand dual of 1 the gap is 1/6, and of all bounds these are
#: far.
HALF = market({"A": [1], "B": [1]}, [2], A={"demand": "1/2"})
FAR: Json = {"allocation": [["1/2"], ["3/2"]], "lower": [0, 0], "upper": [9, 9]}


def test_the_gap_is_what_prices_and_rents_prove() -> None:
    told = certificate("nash_bounds", market=HALF, prices=[1], demand_duals=[1, 0], gap="1002/6000", **FAR)
    assert verify(told)
    with pytest.raises(Rejected, match="a larger gap"):
        verify(told | {"gap": "999/6000"})


#: Four GPUs for two, of whom B's group is guaranteed three, and has two; it is told that it may have none.
OWED = WITHIN["market"]["entitlements"] | {"guarantee": [[0], [0], [3]], "cap": [[None]] * 3}
SPLIT: Json = {"allocation": [[2], [2]], "owed": {"floors": [[0]]}, "costs": ["1/2", "1/2"], "gap": 0}
SPLIT |= {"duals": [["capacity", 0, "1/2"]], "lower": [2, 2], "upper": [2, 2]}
#: The same with less of everything: A has half a GPU of a quarter of the speed.
SLOW = market({"A": ["1/4"]}, ["1/2"])
NASH_WRONG: dict[str, tuple[Json, str]] = {
    "a negative price": (between(GAP, [1, L], [3, H], prices=[1, "2001/1000", "-1/1000"]), "a price is negative"),
    "more than A demands": (
        between(GAP, [1, L], [3, H], allocation=[["1/10", 1, 0], ["9/10", 0, 0]]),
        "more than it demands",
    ),
    "more than there is": (between(GAP, [1, L], [3, H], allocation=[[0, 1, 0], [2, 0, 0]]), "not feasible"),
    "nothing for B": (between(GAP, [1, L], [3, H], allocation=[[0, 1, 0], [0, 0, 0]]), "gets nothing, or pays nothing"),
    "all free for B": (between(4, [0, 0], [9, 9], prices=[0, 2, 0]), "gets nothing, or pays nothing"),
    "a lower bound below 0": (between(GAP, ["-1/10", L], [3, H]), "on one side"),
    "a lower bound above": (between(GAP, [1, "11/10"], [3, H]), "on one side"),
    "an upper bound below": (between(GAP, [1, L], [3, "9/10"]), "on one side"),
    "no gap": (between(0, [1, L], [3, H]), "too little"),
    "a larger gap": (between(GAP, [1, L], [3, H], prices=["6/5", 2, 0]), "a larger gap"),
    "costs where nobody is entitled to anything": (
        certificate("nash_bounds", market=HALF, costs=[2, 1], duals=[], owed=None, gap="1/6", **FAR),
        "there are no entitlements",
    ),
    "less than a group is guaranteed": (
        WITHIN | SPLIT | {"market": WITHIN["market"] | {"entitlements": OWED}},
        "breaks guarantees",
    ),
    "more than is lent": (WITHIN | {"owed": {"floors": [[1]], "lent": [3]}}, "breaks row .*capacity"),
    "a demand dual of who demands no limited number": (
        between(GAP, [1, "1/2"], [3, "3/2"], demand_duals=[1, "1/1000"]),
        "has no demand",
    ),
}


@pytest.mark.parametrize("what", NASH_WRONG)
def test_bounds_of_nash_welfare_that_are_forged_are_rejected(what: str) -> None:
    data, why = NASH_WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_throughputs_far_below_one_have_bounds() -> None:
    numbers = {"prices": [2], "gap": str(GAP), "lower": ["1/16"], "upper": ["1/2"]}
    assert verify(certificate("nash_bounds", market=SLOW, allocation=[["1/2"]], demand_duals=[0], **numbers))
