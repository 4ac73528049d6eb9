"""Shares, what is owed, and trades, said by somebody who knows the verifier, and what is just right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.entitlements import NOW, ONE, OWED, of
from certificate_kinds.examples import Json, certificate, market

from fairopt import allocate
from fairopt.models import SecondPriceTrading
from fairopt.problem import Market
from fairopt.proofs.verify import Rejected, verify

NOBODY: list[list[Any]] = [[None, None, None]] * 4
#: B waits for two CPUs, of which it holds two and is guaranteed four; of GPUs all have their guarantees.
WAITS = of(
    "guarantee_kept",
    NOW,
    "FAILS",
    guarantee=[[1, 0, 0], [2, 0, 4], [0, 0, 0], [0, 0, 4]],
    pending=[{"user": "B", "gpus": 0, "types": ["T0"], "other": {"cpu": 2}}],
)
STAYS = [[0, 0, 0], [5, 0, 2], [0, 0, 0]]


def widened(**more: Any) -> Json:
    """What is owed, with another good before or behind the CPUs, of which there is as much."""
    return {
        key: [[*row[:2], *[row[2]] * 2] for row in OWED[key]] for key in ("guarantee", "cap", "held", "fixed")
    } | more


#: The same where the CPUs are the second of two goods, and nobody is guaranteed anything of the first.
WAITS_FOR_THE_SECOND = of(
    "guarantee_kept",
    NOW,
    "FAILS",
    goods=[{"resource": good, "flavor": "all"} for good in ("air", "cpu")],
    stock=[8, 8],
    pending=[{"user": "B", "gpus": 0, "types": ["T0"], "other": {"cpu": 2}}],
    **widened(guarantee=[[1, 0, 0, 0], [2, 0, 0, 4], [0, 0, 0, 0], [0, 0, 0, 4]]),
)
#: A asks for two GPUs, has five of the second type, and could not use the one of the first that it is owed.
SERVED_ELSEWHERE = of(
    "guarantee_kept",
    [[0, 5], [0, 0], [0, 0]],
    "HOLDS",
    guarantee=[[1, 0, 0], *[[0, 0, 0]] * 3],
    held=[[0, 0, 0]] * 3,
    fixed=[[0, 0, 0]] * 3,
    pending=[{"user": "A", "gpus": 1, "types": types} for types in (["T0", "T1"], ["T1"])],
)
SERVED_ELSEWHERE["market"]["capacity"] = [6, 5]


def two_goods(first: str, second: str, answer: str) -> Json:
    """Whether C's gang of one fits, which takes six CPUs; there are five, and a hundred of the other good."""
    stock = [8 if good == "cpu" else 100 for good in (first, second)]
    goods = [{"resource": good, "flavor": "all"} for good in (first, second)]
    waits = [ONE[0], ONE[1] | {"other": {"cpu": 6}}]
    return of("whole_gpu_conservation", NOW, answer, goods=goods, stock=stock, pending=waits, **widened())


RIGHT: dict[str, Json] = {
    "of two goods the first": two_goods("cpu", "ram", "HOLDS"),
    "of two goods the second": two_goods("air", "cpu", "HOLDS"),
    "of two goods the first, from the end": two_goods("cpu", "air", "HOLDS"),
    "short of CPUs": WAITS,
    "short of the second of two goods": WAITS_FOR_THE_SECOND,
    "served on the other type": SERVED_ELSEWHERE,
    "nothing that could be taken back": of("nobody_starves_while_lent", NOW, "HOLDS", fixed=STAYS),
    "just as many CPUs as are free": of(
        "whole_gpu_conservation", NOW, "FAILS", pending=[ONE[0], ONE[1] | {"other": {"cpu": 5}}]
    ),
    "a CPU more than is free": of(
        "whole_gpu_conservation", NOW, "HOLDS", pending=[ONE[0], ONE[1] | {"other": {"cpu": 6}}]
    ),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_owed_is_decided_at_its_limits(what: str) -> None:
    assert verify(RIGHT[what])


def loans(answer: str, *, a: int, b: int, waits: int, weight: int = 1, stays: int = 0, both: bool = False) -> Json:
    """Whether it is fair what two alone hold, who are guaranteed nothing, and of whom A (or both) waits for GPUs."""
    told = market({"A": [1], "B": [1]}, [20])
    nothing = [[0], [0]]
    owed: Json = {"groups": [], "in": [None, None], "goods": [], "stock": [], "guarantee": nothing}
    owed |= {"cap": [[None], [None]], "borrow_weight": [weight, 1], "tier": [0, 0], "held": [[a], [b]]}
    asked = [{"user": user, "gpus": waits, "types": ["T0"], "other": {}} for user in "AB"[: 1 + both]]
    owed |= {"fixed": [[0], [stays]], "pending": asked}
    body: Json = {"allocation": [[a], [b]], "property": "group_fairness", "answer": answer}
    return certificate("property", market=told | {"entitlements": owed}, **body)


@pytest.mark.parametrize(
    "data",
    [
        loans("FAILS", a=1, b=3, waits=1),
        loans("HOLDS", a=1, b=2, waits=1),
        loans("HOLDS", a=1, b=3, waits=0),
        loans("FAILS", a=2, b=3, waits=1, weight=2),
        loans("FAILS", a=1, b=3, waits=1, both=True),
        loans("FAILS", a=1, b=3, waits=1, stays=2),
        loans("HOLDS", a=1, b=3, waits=1, stays=3),
    ],
    ids=[
        "one more",
        "even",
        "nobody waits",
        "by weight",
        "who has more waits, too",
        "one that can move",
        "none that can move",
    ],
)
def test_loans_are_fair_up_to_one_gpu(data: Json) -> None:
    assert verify(data)


#: A's first speedup may be any positive one up to 4; or it is 1 at least, and the second is 1.
ANY, SOME = ({"A": {"least": least, "most": most}} for least, most in (([0, 1], [4, 1]), ([1, 1], [2, 1])))
CLOSE = market({"A": [1, 1], "B": [1, "3/2"]}, [1, 1], A={"least": [1, 1], "most": [1, 2]})


def better(known: Json, had: Any, gets: Any) -> Json:
    told = market({"A": [1, 1], "B": [1, 3]}, [1, 1], **known)
    return certificate("dominance", market=told, allocation=[had, [0, 0]], better=[gets, [0, 0]])


def incentive(answer: str, gpus: Any, *guarantee: Any, known: bool = False) -> Json:
    """Whether C's guarantee is worth less to it than GPUs of both types; its speedups are known within bounds."""
    rows: Any = [[0, 0, 0], [0, 0, 0], [*guarantee, 0], [0, 0, 0]]
    found = of(
        "guarantee_incentive",
        [[0, 0], [0, 0], gpus],
        answer,
        guarantee=rows,
        held=[[0, 0, 0]] * 3,
        fixed=[[0, 0, 0]] * 3,
    )
    found["market"]["user"][2] |= {} if known else {"least": [1, 1], "most": [1, 3]}
    return found


@pytest.mark.parametrize(
    "data", [incentive("HOLDS", [3, 1], 1, 1), incentive("FAILS", [1, 0], 3, 1)], ids=["worth it", "not worth it"]
)
def test_what_serves_a_gang_at_all_speedups(data: Json) -> None:
    assert "at all speedups within the bounds" in verify(data)


def test_gangs_that_may_run_on_the_same_type_are_served_together() -> None:
    gangs = [{"user": "C", "gpus": gpus, "types": types} for gpus, types in ((4, ["T0", "T1"]), (1, ["T1"]))]
    less = incentive("FAILS", [2, 1], 4, 1, known=True)
    less["market"]["entitlements"]["pending"] = gangs
    assert verify(less)


def test_the_fastest_gpus_serve_first() -> None:
    """C asks for four of five: one at 3 and three at 1 are worth more than its guarantee, which is worth 5."""
    assert verify(incentive("HOLDS", [4, 1], 2, 1, known=True))


def welfare(by: list[int], shares: list[Any], value: Any, gap: Any, name: str, line: Json, **more: Any) -> Json:
    """The most Nash welfare where a property fails by epsilon; all run at 1, on a GPU for each weight."""
    users = {f"u{i}": {"weight": weight} for i, weight in enumerate(by)}
    told = market({user: [1] for user in users}, [sum(by)], **users)
    point = {"epsilon": 0, "value": value, "allocation": [[share] for share in shares]}
    body = {"goal": "nash_welfare", "property": name, "points": [point], "lines": [line], "gap": gap}
    return certificate("frontier", market=told, **body, **more)


EVEN = {"constant": 1, "slope": 0, "duals": [["capacity", 0, "1/3"]], "factors": [1, 1]}
SIGNS = {"constant": 2, "slope": 0, "duals": [["capacity", 0, "2/3"]], "factors": ["-9/10", "-9/10", 2]}
SHARING = [["sharing_incentive", i, "-1/6"] for i in range(3)]
RISES = {"constant": 1, "slope": "1/2", "duals": [["capacity", 0, "1/2"], *SHARING], "factors": [1, 1, 1]}
PARETO = BY_HAND["PARETO"]
#: A demands two GPUs: it would get more with B's, and with C's only if it could use all four of them.
ONE_IS_ENVIED: Json = {
    "market": market({"A": [1, 2], "B": [0, 1], "C": [1, 0]}, [5, 3], A={"demand": 2}),
    "allocation": [[1, 1], [0, 2], [4, 0]],
    "property": "envy_freeness",
}
WRONG: dict[str, tuple[Json, str]] = {
    **{
        f"a user in a user, and it {answer}": (
            of("cap_kept", NOW, answer, **{"in": ["G", "A", None, None]}),
            "no group",
        )
        for answer in ("HOLDS", "FAILS")
    },
    "a group in itself": (of("cap_kept", NOW, "HOLDS", **{"in": ["G", "G", None, "G"]}), "groups in a circle"),
    # 3/2 by the power of 1/3 and 3/4 by that of 2/3 are less than 95/100
    "a mean that forgets weights": (
        welfare([1, 2], ["3/2", "3/2"], "19/20", "1/20", "pareto_efficiency", EVEN, weights=[1, 1], prices=[1]),
        "does not reach its value",
    ),
    "negative factors of two of three": (
        welfare([1, 1, 1], [1, 1, 1], 1, 1, "sharing_incentive", SIGNS),
        "factors are not positive",
    ),
    "a line that rises by a half": (
        welfare([1, 1, 1], [1, 1, 1], 1, 0, "sharing_incentive", RISES),
        "the last line rises",
    ),
    "no better": (better(ANY, ["1/2", 0], ["1/2", 0]), "nobody gains"),
    "no better at the least speedups": (better(SOME, [0, 1], [1, 0]), "nobody gains"),
    # a half at 1 and one at 3 are less than four at 1
    "worth less than what is owed": (incentive("HOLDS", ["1/2", 1], 4, 0, known=True), "does not get 'HOLDS'"),
    # of six at 1 it can use four; two at 1 and one at 3 are more
    "more than it can use": (incentive("HOLDS", [6, 0], 2, 1, known=True), "does not get 'HOLDS'"),
    "which GPUs serve": (incentive("HOLDS", [4, 1], 1, 1), "in use depends"),
    "inefficient at some speedups": (
        certificate(
            "property", market=CLOSE, allocation=[[0, 1], [1, 0]], property="pareto_efficiency", answer="FAILS"
        ),
        "shown by an allocation that is better",
    ),
    "no caps": (of("cap_kept", NOW, "HOLDS", cap=NOBODY), "the market says no caps"),
    "efficient, and not there": (PARETO | {"allocation": [[0, 3], [0, 0]]}, "not feasible"),
    "envied is one of two": (certificate("property", **ONE_IS_ENVIED, answer="HOLDS"), "does not get 'HOLDS'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_forged_is_rejected(what: str) -> None:
    data, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_the_second_of_three_bids_is_the_price_and_demands_end_trades() -> None:
    four = [[1, 2], [1, 3], [1, 4], [1, 6]]
    markets = [Market.of(four, [4, 4], demand=demand) for demand in (None, [3, "5/2", 2, "3/2"], [2, 2, 2, 2])]
    markets.append(Market.of([[300, 200], [1, 3]], [1, 1]))  # the second type is faster by the mean
    markets += [Market.of([[0, 2], [0, 3], [1, 2]], [3, 3])]  # two cannot run on the first at all
    markets += [Market.of([[1, 2], [1, 3]], capacity) for capacity in ([1, 0], [0, 1])]  # there is one type only
    # the third buys at 5/6 from the first until it holds all that it demands, then the second does
    markets += [Market.of([[300, 200], [300, 250], [1, 9]], [3, 3], demand=[9, 9, "25/12"])]
    # each runs on what the other cannot: all is exchanged; and one runs on the third type alone
    markets += [Market.of([[0, 2], [1, 0]], [4, 6]), Market.of([[0, 0, 1], [1, 3, 1], [1, 2, 2]], [3, 3, "1/10"])]
    # a price of 1: however much is traded, nobody holds more
    markets += [Market.of([[1, 3], [1, 1], [2, 1]], [3, 3], demand=[9, 9, 2])]
    for decided in markets:
        found = SecondPriceTrading().certify(allocate("second-price-trading", decided, exact=True))
        assert "second-price-trading" in verify(json.loads(json.dumps(found.to_json())))


def test_who_is_said_to_gain_is_who_gains() -> None:
    """B gets a GPU that may be worth as little to it as you like, and A nothing: "A could get 0 more" was said."""
    told = market({"A": [1, 1], "B": [1, 3]}, [1, 1], B={"least": [0, 0], "most": [None, None]})
    given = certificate("dominance", market=told, allocation=[[1, 0], [0, 0]], better=[[1, 0], [0, 1]])
    assert "not Pareto-efficient: 'B' could get 0 more, or any more, at all speedups" in verify(given)
