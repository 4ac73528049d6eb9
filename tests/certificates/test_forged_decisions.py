"""Decisions, misreports and markets that somebody made who knows the verifier, and some that are just right."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.decisions import LEAST_OF_A
from certificate_kinds.entitled_decisions import GUARANTEED
from certificate_kinds.entitlements import MENDED, OWED
from certificate_kinds.examples import (
    ALIKE,
    PAIR,
    Json,
    certificate,
    extreme,
    market,
    optimality,
    prices,
)
from certificate_kinds.programs import LIE, OF_OTHERS, SAYS_6, misreport, of_others

from fairopt import allocate
from fairopt.models import PartialAllocation
from fairopt.problem import Market
from fairopt.proofs.verifier.decisions import equal_time, isolated
from fairopt.proofs.verifier.market import read_market
from fairopt.proofs.verifier.nash import GRAIN
from fairopt.proofs.verifier.reading import Entry
from fairopt.proofs.verify import Rejected, verify

EQUILIBRIUM, PARTIAL, TWO_LEVELS = BY_HAND["EQUILIBRIUM"], BY_HAND["PARTIAL"], BY_HAND["TWO_LEVELS"]


def weighted(*weight: Any) -> Json:
    """What partial allocation decides on two users with these weights."""
    decision = allocate(PartialAllocation(), Market.of([[1, 2], [1, 5]], [1, 1], weight=weight), exact=True)
    found: Json = json.loads(json.dumps(PartialAllocation().certify(decision).to_json()))
    return found


def keeping(found: Json, part: Fraction, i: int = 0) -> Json:
    """The same, where A (or B) keeps another part of its bundle."""
    kept, shares = list(found["kept"]), list(found["allocation"])
    kept[i] = str(part)
    shares[i] = [str(part * Fraction(share)) for share in found["together"]["allocation"][i]]
    return found | {"kept": kept, "allocation": shares}


HALF_AND_ONE = weighted("1/2", 1)
KEPT = Fraction(HALF_AND_ONE["kept"][1])
#: Each holds a fifth more than the part that it keeps; there is so much.
MORE = [[str(Fraction(share) * Fraction(6, 5)) for share in row] for row in HALF_AND_ONE["allocation"]]
#: As `TWO_LEVELS`, with a type before the others of which there is none: its price bounds nothing.
EMPTY_FIRST = market({"A": [1, 1, 0], "B": [1, 0, 1], "C": [1, 0, 1]}, [0, 1, 8])
BY_A_PRICE = [
    ["capacity", 0, 1],
    ["capacity", 2, "3/16"],
    ["least_ratio", 1, "-1/2"],
    ["least_ratio", 2, "-1/2"],
]
#: Whoever needs one GPU has it, of the slow type: the fast one would be better.
SLOW = certificate(
    "equilibrium",
    market=market({"A": [1, 2]}, [1, 1], A={"demand": 1}),
    allocation=[[1, 0]],
    prices=[-1, 0],
    demand_duals=[2],
)


def on(told: Json, *, owns: bool = True) -> Json:
    """A feasible allocation of whatever market: the property is the simplest there is."""
    rows = [[0] * len(told["types"]) for _ in told["user"]] if owns else []
    return certificate("property", market=told, allocation=rows, property="feasibility", answer="HOLDS")


def rewarded(grains: Fraction) -> Json:
    """A keeps less by so many grains on the truth, which all is rounding, and says twice as much, which is the same."""
    said = market({"A": [2, 4], "B": [1, 5]}, [1, 1])
    bundle = [Fraction(share) for share in PARTIAL["together"]["allocation"][0]]
    gain = grains * GRAIN * (bundle[0] + 2 * bundle[1])
    truth = keeping(PARTIAL, Fraction(5, 8) - grains * GRAIN)
    return misreport("partial-allocation", [2, 4], str(gain), truth, PARTIAL | {"market": said})


def bounded(told: Json, name: str) -> Json:
    """The market, where the speedups of one user are known within bounds."""
    users = [
        user | {"least": user["speedup"], "most": [1, 9]} if user["name"] == name else user for user in told["user"]
    ]
    return told | {"user": users}


def lie(truth: Json, said: Json, name: str = "A", gain: Any = 2) -> Json:
    """A (or B) says that it runs at 6 on the second type, and gets all of both."""
    told, point = {"A": ([1, 6, 1, 5], [1, 1, 0, 0]), "B": ([1, 2, 2, 6], [0, 0, 1, 1])}[name]
    own = {"market": truth, "user": name, "report": told[:2] if name == "A" else told[2:]}
    found = misreport(
        "by-somebody-else", [], gain, of_others(truth, [1, 2, 1, 5], [1, 0, 0, 1]), of_others(said, told, point)
    )
    return found | own


def ranging(told: Json, truth: Json, said: Json, sense: str, duals: list[Any]) -> Json:
    """A says that it runs at 2, and where optima tie may have the GPU then, and may have had it before."""
    lie = optimality("max-efficiency", said, [[1], [0]], 2, prices(2))
    after = extreme(lie, sense, [[1], [0]], [[1], [0]], 1, duals)
    return misreport("max-efficiency", [2], 1, truth, after) | {"market": told}


SLOWER = market({"A": [1], "B": [2]}, [1])
NEVER_OF_A = extreme(
    optimality("max-efficiency", SLOWER, [[0], [1]], 2, prices(2)),
    *("maximize", [[1], [0]], [[0], [1]], 0),
    duals=[*prices(2), ["optimum", -1]],
)


def promised(most: int, floor: int, tier: int = 0) -> Json:
    """An even split of four GPUs between A and B, whose group is guaranteed so many, and gets a floor as told."""
    owed = GUARANTEED["market"]["entitlements"]
    changed = {"guarantee": [[0], [0], [most]], "cap": [[None]] * 3, "tier": [tier, 0, 0]}
    duals = [["capacity", 0, "1/4"], ["least_ratio", 0, "-1/2"], ["least_ratio", 1, "-1/2"]]
    return GUARANTEED | {
        "market": GUARANTEED["market"] | {"entitlements": owed | changed},
        "allocation": [[2], [2]],
        "owed": {"floors": [[floor]]},
        "rounds": [{"level": 1, "fixed": ["A", "B"], "duals": duals}],
    }


SAYS = {"A": SAYS_6, "B": market({"A": [1, 2], "B": [2, 6]}, [1, 1])}
OWING = market({"A": [1, 1], "B": [1, 2], "C": [1, 3]}, [6, 1]) | {"entitlements": OWED}
WRONG: dict[str, tuple[Json, str]] = {
    "a smaller part where weights are powers": (keeping(HALF_AND_ONE, KEPT * Fraction(9, 10), 1), "keeps another part"),
    "a larger part where weights are powers": (keeping(HALF_AND_ONE, KEPT * Fraction(11, 10), 1), "keeps another part"),
    "fixed by the price of a type of which there is none": (
        TWO_LEVELS
        | {
            "market": EMPTY_FIRST,
            "allocation": [[0, "1/2", 0], [0, 0, 4], [0, 0, 4]],
            "rounds": [{"level": "3/2", "fixed": ["A", "B", "C"], "duals": BY_A_PRICE}],
        },
        "whom no dual holds down",
    ),
    "a negative price where there is a rent": (SLOW, "a price is negative"),
    "a demand dual of who gets less than it demands": (
        certificate(
            "equilibrium",
            market=market({"A": [1], "B": [1]}, [2], A={"demand": 1}),
            allocation=[["1/2"], ["3/2"]],
            prices=["2/3"],
            demand_duals=["4/3", 0],
        ),
        "has a demand dual, and gets less than it demands",
    ),
    "more than the part that is kept": (HALF_AND_ONE | {"allocation": MORE}, "holds another part"),
    "a price that is too low for B": (
        certificate(
            "pareto_weights",
            market=market({"A": [1, 2], "B": [1, 5]}, [1, 1]),
            allocation=[[0, 1], [1, 0]],
            weights=[1, 1],
            prices=[1, 2],
        ),
        "a dual has the sign of a bound that there is not",
    ),
    "a rate below nothing": (
        certificate(
            "levels",
            market=market({"A": [1], "B": [1]}, [1]),
            allocation=[[1], [0]],
            rates=[[1, -1], [0, 1]],
            rounds=[
                {"level": 2, "fixed": ["A"], "duals": [["capacity", 0, 2], ["least_ratio", 0, -1]]},
                {
                    "level": 2,
                    "fixed": ["B"],
                    "duals": [["capacity", 0, 2], ["least_ratio", 0, -1], ["least_ratio", 1, -1]],
                },
            ],
        ),
        "a round fixes nobody",
    ),
    "a demand dual below nothing": (
        certificate(
            "equilibrium",
            market=market({"A": [1], "B": [1]}, [2], A={"demand": "6/5"}),
            allocation=[["6/5"], ["4/5"]],
            prices=["5/4"],
            demand_duals=["-5/12", 0],
        ),
        "a demand dual is negative",
    ),
    "a gain by rounding": (rewarded(Fraction(9, 10)), "does not gain this"),
    "no gain": (
        misreport(
            "by-somebody-else",
            [1, 3],
            0,
            OF_OTHERS,
            of_others(market({"A": [1, 3], "B": [1, 5]}, [1, 1]), [1, 2, 1, 5], [1, 0, 0, 1]),
        ),
        "does not gain this",
    ),
    "less than a group is guaranteed": (promised(3, 0), "breaks guarantees"),
    "a floor above the guarantee": (promised(1, 2), "a floor is above the guarantee"),
    "tiers in water filling": (promised(2, 2, tier=1), "floors and caps know no tiers"),
    "a dual of nothing": (
        optimality("max-efficiency", PAIR, [[1, 0], [0, 1]], 6, [*prices(1, 5), []]),
        r"it is no \[row, \.\.\., number\]",
    ),
    "a smaller gain than there is": (LIE | {"gain": "1/29"}, "does not gain this"),
    "the worst before": (
        ranging(ALIKE, LEAST_OF_A, market({"A": [2], "B": [1]}, [1]), "minimize", [*prices(1), ["optimum", -1]]),
        "the best at any optimum before and the worst after",
    ),
    "the best after": (
        ranging(SLOWER, NEVER_OF_A, market({"A": [2], "B": [2]}, [1]), "maximize", prices(1)),
        "the best at any optimum before and the worst after",
    ),
    "without the bounds of another": (lie(bounded(PAIR, "B"), SAYS["A"]), "not on the truth and on the misreport"),
    "better, and not what is owed": (
        certificate("dominance", market=OWING, allocation=[[0, 0]] * 3, better=MENDED),
        "what users are entitled to is not supported",
    ),
    "an equilibrium at speedups that are not known": (
        EQUILIBRIUM | {"market": bounded(PAIR, "A")},
        "unknown keys: .*least",
    ),
    "an equilibrium of who is owed something": (
        EQUILIBRIUM | {"market": PAIR | {"entitlements": None}},
        "unknown keys: .*entitlements",
    ),
    "a user who can run nowhere": (on(market({"A": [1, 2], "B": [0, 0]}, [1, 1])), "'B' can run nowhere"),
    "a weight of nothing": (on(market({"A": [1, 2]}, [1, 1], A={"weight": 0})), "too little"),
    "a demand of nothing": (on(market({"A": [1, 2]}, [1, 1], A={"demand": 0})), "too little"),
    "a speedup below nothing": (on(market({"A": [1, "-1/2"], "B": [1, 1]}, [1, 1])), "a speedup is negative"),
    "less than no GPU": (on(market({"A": [1, 2]}, [3, -1])) | {"answer": "FAILS"}, "a capacity is negative"),
    "a speedup of 0 that may be any": (
        on(market({"A": [1, 0]}, [1, 1], A={"least": [1, 0], "most": [1, 4]})),
        "a speedup is 0 that may be any positive one",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_forged_is_rejected(what: str) -> None:
    data, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_a_group_may_have_just_what_it_is_guaranteed() -> None:
    assert verify(promised(2, 2))


def test_weights_are_powers() -> None:
    assert verify(HALF_AND_ONE)
    assert verify(weighted(1, 2))


@pytest.mark.parametrize("name", ["A", "B"])
def test_a_misreport_is_on_what_is_known_of_others(name: str) -> None:
    other = "AB"[name == "A"]
    found = lie(bounded(PAIR, other), bounded(SAYS[name], other), name, 2 if name == "A" else 1)
    assert "rewards" in verify(found)


def test_the_equal_split_gives_first_to_whose_demand_is_least_by_weight() -> None:
    told = market({"A": [1], "B": [1]}, [4], A={"demand": 1}, B={"demand": 2, "weight": 4})
    assert verify(certificate("trace", market=told, allocation=[[1], [2]]))


def test_how_envy_is_read_is_said_where_one_demand_is_limited() -> None:
    told = market({"A": [1], "B": [1]}, [2], A={"demand": 1})
    found = verify(optimality("oef-cooperative", told, [[1], [1]], 2, prices(1)))
    assert "read so that envy counts all GPUs of the other" in found


def test_what_is_idle_at_some_speedups_neither_holds_nor_fails() -> None:
    told = market({"A": [1, 2], "B": [1, 3]}, [1, 1], A={"least": [1, 1], "most": [2, 2], "demand": 1})
    for answer in ("HOLDS", "FAILS"):
        body: Json = {"property": "work_conservation", "answer": answer, "allocation": [[1, "1/2"], [0, "1/2"]]}
        with pytest.raises(Rejected, match="in use depends"):
            verify(certificate("property", market=told, **body))


def test_what_a_part_of_every_type_is_worth_goes_by_weight_and_demand() -> None:
    """A's part is 6 of 9 GPUs, and it demands 2 of these; B's is 3, of which it demands 9."""
    told = market({"A": [1, 2], "B": [1, 1]}, [6, 3], A={"weight": 2, "demand": 2}, B={"demand": 9})
    asked = read_market(Entry(told))
    assert [equal_time(asked, i) for i in (0, 1)] == [8, 3]
    assert [isolated(asked, i) for i in (0, 1)] == [Fraction(8, 3), 3]
