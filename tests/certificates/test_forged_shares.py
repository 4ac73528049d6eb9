"""Shares, what is owed, and trades, said by somebody who knows the verifier, and what is just right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairopt import allocate
from fairopt.models import SecondPriceTrading
from fairopt.problem import Market
from fairopt.proofs.verify import Rejected, verify
from fairopt.testing.certificate_kinds import BY_HAND
from fairopt.testing.certificate_kinds.entitlements import NOW, ONE, OWED, of
from fairopt.testing.certificate_kinds.examples import Json, certificate, market

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


def two_goods(first: str, second: str, answer: str) -> Json:
    """Whether C's gang of one fits, which takes six CPUs; there are five, and a hundred of the other good."""
    stock = [8 if good == "cpu" else 100 for good in (first, second)]
    wide: Json = {
        key: [[*row[:2], *[row[2]] * 2] for row in OWED[key]] for key in ("guarantee", "cap", "held", "fixed")
    }
    goods = [{"resource": good, "flavor": "all"} for good in (first, second)]
    waits = [ONE[0], ONE[1] | {"other": {"cpu": 6}}]
    return of("whole_gpu_conservation", NOW, answer, goods=goods, stock=stock, pending=waits, **wide)


RIGHT: dict[str, Json] = {
    "of two goods the first": two_goods("cpu", "ram", "HOLDS"),
    "of two goods the second": two_goods("air", "cpu", "HOLDS"),
    "of two goods the first, from the end": two_goods("cpu", "air", "HOLDS"),
    "short of CPUs": WAITS,
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


def loans(answer: str, *, a: int, b: int, waits: int, weight: int = 1, stays: int = 0) -> Json:
    """Whether it is fair what two alone hold, who are guaranteed nothing, and of whom A waits for GPUs."""
    told = market({"A": [1], "B": [1]}, [20])
    nothing = [[0], [0]]
    owed: Json = {"groups": [], "in": [None, None], "goods": [], "stock": [], "guarantee": nothing}
    owed |= {"cap": [[None], [None]], "borrow_weight": [weight, 1], "tier": [0, 0], "held": [[a], [b]]}
    owed |= {"fixed": [[0], [stays]], "pending": [{"user": "A", "gpus": waits, "types": ["T0"], "other": {}}]}
    body: Json = {"allocation": [[a], [b]], "property": "group_fairness", "answer": answer}
    return certificate("property", market=told | {"entitlements": owed}, **body)


@pytest.mark.parametrize(
    "data",
    [
        loans("FAILS", a=1, b=3, waits=1),
        loans("HOLDS", a=1, b=2, waits=1),
        loans("HOLDS", a=1, b=3, waits=0),
        loans("FAILS", a=2, b=3, waits=1, weight=2),
        loans("FAILS", a=1, b=3, waits=1, stays=2),
        loans("HOLDS", a=1, b=3, waits=1, stays=3),
    ],
    ids=["one more", "even", "nobody waits", "by weight", "one that can move", "none that can move"],
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


def test_the_fastest_gpus_serve_first() -> None:
    """C asks for four of five: one at 3 and three at 1 are worth more than its guarantee, which is worth 5."""
    assert verify(incentive("HOLDS", [4, 1], 2, 1, known=True))


PARETO = BY_HAND["PARETO"]
WRONG: dict[str, tuple[Json, str]] = {
    "no better": (better(ANY, ["1/2", 0], ["1/2", 0]), "nobody gains"),
    "no better at the least speedups": (better(SOME, [0, 1], [1, 0]), "nobody gains"),
    "which GPUs serve": (incentive("HOLDS", [4, 1], 1, 1), "in use depends"),
    "inefficient at some speedups": (
        certificate(
            "property", market=CLOSE, allocation=[[0, 1], [1, 0]], property="pareto_efficiency", answer="FAILS"
        ),
        "shown by an allocation that is better",
    ),
    "no caps": (of("cap_kept", NOW, "HOLDS", cap=NOBODY), "the market says no caps"),
    "efficient, and not there": (PARETO | {"allocation": [[0, 3], [0, 0]]}, "not feasible"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_forged_is_rejected(what: str) -> None:
    data, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_the_second_of_three_bids_is_the_price_and_demands_end_trades() -> None:
    four = [[1, 2], [1, 3], [1, 4], [1, 6]]
    markets = [Market.of(four, [4, 4], demand=demand) for demand in (None, [3, "5/2", 2, "3/2"], [2, 2, 2, 2])]
    for decided in (*markets, Market.of([[300, 200], [1, 3]], [1, 1])):  # the second type is faster by the mean
        found = SecondPriceTrading().certify(allocate("second-price-trading", decided, exact=True))
        assert "second-price-trading" in verify(json.loads(json.dumps(found.to_json())))
