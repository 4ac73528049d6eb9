"""``proofs/verify.py`` against certificates worked out by hand, and against whoever wants a false one accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from math import isqrt
from typing import Any

import pytest
from certificate_kinds import BY_HAND, require_true
from certificate_kinds.decisions import COOPERATIVE, EFFICIENT, TRADING
from certificate_kinds.examples import ALIKE, PAIR, certificate, market
from certificate_kinds.programs import LIE
from certificate_samples import every_kind
from tampering import Tampering

from fairopt.proofs.verifier import certificates
from fairopt.proofs.verify import Rejected, verify


def changed(data: Any, **changes: Any) -> Any:
    """Change what stands at places such as ``duals__0__2``; an index is written as a number."""
    for place, value in changes.items():
        keys = tuple(int(key) if key.isdigit() else key for key in place.split("__"))
        data = Tampering(keys, "by hand", value).of(data)
    return data


# -- by hand ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_worked_out_by_hand_is_accepted_and_true(name: str) -> None:
    assert verify(BY_HAND[name])
    require_true(BY_HAND[name])


def test_every_kind_is_worked_out_by_hand() -> None:
    assert {each["certificate"] for each in BY_HAND.values()} == every_kind() == set(certificates.RULES)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    # a point, its value and its duals
    ("EFFICIENT", {"value": 5}, "value is not the point's"),
    ("EFFICIENT", {"allocation": [[0, 0], [1, 1]], "duals__0__2": 2}, "do not prove the point optimal"),
    ("EFFICIENT", {"allocation": [[1, 1], [0, 0]], "value": 3}, "do not prove the point optimal"),
    ("EFFICIENT", {"allocation": [[1, 0], [1, 1]]}, "not feasible"),
    ("EFFICIENT", {"allocation": [[1, 0], ["-1/9", 1]]}, "not feasible"),
    ("EFFICIENT", {"duals__0__2": -1}, "sign of a bound that there is not"),
    ("EFFICIENT", {"duals__0__2": "1/2"}, "sign of a bound that there is not"),
    ("EFFICIENT", {"duals": [["capacity", 0, 1], ["capacity", 1, 5], ["capacity", 1, 0]]}, "two duals"),
    ("EFFICIENT", {"duals": [["capacity", 0, 1], ["capacity", 1, 5], ["capacity", 2, 0]]}, "no row 'capacity' 2"),
    (
        "EFFICIENT",
        {"duals": [["capacity", 0, 1], ["capacity", 1, 5], ["envy_free", 0, 1, 0]]},
        "no row 'envy_free' 0 1",
    ),
    ("EFFICIENT", {"duals": [["capacity", 0, 1], ["capacity", 1, 5], ["demand", 0, 1]]}, "bound that there is not"),
    ("EFFICIENT", {"duals": []}, "bound that there is not"),
    ("EFFICIENT", {"duals": None}, "not built like a certificate"),
    ("EFFICIENT", {"policy": "oef-cooperative"}, "breaks row"),
    ("EFFICIENT", {"policy": "equal-split"}, "policy"),
    ("EFFICIENT", {"market__user__0__demand": "1/2"}, "breaks row"),
    ("EFFICIENT", {"market__user__0__speedup": [0, 2]}, "outside of its bounds"),
    ("EFFICIENT", {"variables": {"level": 0}}, "does not give every variable"),
    ("COOPERATIVE", {"allocation": [[1, 0], [0, 1]], "value": 6}, "breaks row"),
    ("COOPERATIVE", {"duals__2__3": "3/4"}, "bound that there is not"),
    ("COOPERATIVE", {"market__user__1__weight": 2}, "breaks row"),
    ("NONCOOPERATIVE", {"variables__level": 2}, "breaks row"),
    ("NONCOOPERATIVE", {"variables": None}, "does not give every variable"),
    ("MAX_MIN", {"variables__least_ratio": 1, "value": 1}, "do not prove"),
    # water filling
    ("LEVELS", {"rounds__0__fixed": ["A"]}, "never fixed"),
    ("LEVELS", {"rounds__0__level": 1}, "do not prove"),
    ("LEVELS", {"rounds": []}, "never fixed"),
    ("TWO_LEVELS", {"rounds__0__fixed": ["A", "B", "C"]}, "whom no dual holds down"),
    ("TWO_LEVELS", {"rounds__1__fixed": ["B"]}, "somebody twice"),
    ("TWO_LEVELS", {"rounds__1__fixed": []}, "fixes nobody"),
    ("TWO_LEVELS", {"allocation": [["1/2", 0], [0, 4], [0, 4]]}, "breaks row"),
    ("TWO_LEVELS", {"rounds__0__duals": None}, "not built like a certificate"),
    # equilibria
    ("EQUILIBRIUM", {"prices": ["2/3", 1]}, "better buys"),
    ("EQUILIBRIUM", {"prices": [1, "4/3"]}, "better buys"),
    ("EQUILIBRIUM", {"allocation": [[1, "1/4"], [0, "1/2"]]}, "left over"),
    ("EQUILIBRIUM", {"prices": ["-2/3", "4/3"]}, "negative"),
    ("EQUILIBRIUM", {"allocation": [[0, 0], [1, 1]]}, "gets nothing"),
    ("EQUILIBRIUM", {"market__user__0__demand": 1}, "more than it demands"),
    ("PARTIAL", {"kept__0": "5/9"}, "another part"),
    ("PARTIAL", {"allocation__0__0": "5/9"}, "holds another part"),
    ("PARTIAL", {"apart__0__allocation": [["1/2", 1]]}, "left over"),
    ("PARTIAL", {"apart": []}, "not built like a certificate"),
    # trades
    ("EQUAL_SPLIT", {"allocation": [["1/2", "1/2"], ["1/2", "1/4"]]}, "lead elsewhere"),
    ("EQUAL_SPLIT", {"market__user__0__weight": 2}, "lead elsewhere"),
    ("EQUAL_SPLIT", {"trades": []}, "trade that is due is missing"),
    ("TRADING", {"trades": []}, "trade that is due is missing"),
    ("TRADING", {"trades": None}, "lead elsewhere"),
    ("TRADING", {"trades": [*TRADING["trades"], *TRADING["trades"]]}, "not due"),
    ("TRADING", {"trades__0__price": 3}, "not the one that is due"),
    ("TRADING", {"trades__0__buyer": "A"}, "not the one that is due"),
    ("TRADING", {"allocation": [[1, "3/8"], [0, "5/8"]]}, "lead elsewhere"),
    # ranges over optima
    ("MOST", {"value": "1/2"}, "value is not the point's"),
    ("MOST", {"allocation": [["1/2"], ["1/2"]], "value": "1/2"}, "do not prove"),
    ("MOST", {"allocation": [["1/2"], [0]], "value": "1/2"}, "breaks row"),
    ("MOST", {"duals": None}, "not built like a certificate"),
    ("MOST", {"of": BY_HAND["MOST"]}, "leaves no choice"),
    ("MOST", {"of": certificate("trace", market=ALIKE, allocation=[["1/2"], ["1/2"]])}, "leaves no choice"),
    ("MOST", {"of": BY_HAND["ENVY"]}, "is no decision"),
    ("LEAST_OF_A", {"sense": "maximize"}, "bound that there is not"),
    ("LEAST_OF_A", {"of__value": 2}, "value is not the point's"),
    # allocations
    ("FAIR", {"answer": "FAILS"}, "does not get"),
    ("FAIR", {"answer": True}, "does not get"),
    ("FAIR", {"property": "strategy_proofness"}, "is none of feasibility"),
    ("FAIR", {"allocation__0__1": "-1/4"}, "negative"),
    ("ENVY", {"user": "B", "envied": "A"}, "no envy"),
    ("ENVY", {"envied": "A"}, "no envy"),
    ("ENVY", {"market__user__0__weight": "1/2"}, "no envy"),
    ("ENVY", {"allocation": [[1, 0], [-1, 2]]}, "negative"),
    ("DOMINANCE", {"better": [["1/2"], [1]]}, "better allocation is not feasible"),
    ("DOMINANCE", {"better": [["1/4"], ["3/4"]]}, "somebody loses"),
    ("DOMINANCE", {"better": [["1/2"], [0]]}, "nobody gains"),
    ("DOMINANCE", {"allocation": [["1/2"], [1]]}, "not feasible"),
    ("DOMINANCE_OVER_ALL", {"optima": BY_HAND["DOMINANCE_OVER_ALL"]["optima"][:1]}, "each user's most"),
    ("DOMINANCE_OVER_ALL", {"optima": BY_HAND["DOMINANCE_OVER_ALL"]["optima"][::-1]}, "each user's most"),
    ("DOMINANCE_OVER_ALL", {"optima": []}, "each user's most"),
    ("DOMINANCE_OVER_ALL", {"market__capacity": [1, 3]}, "each user's most"),
    ("DOMINANCE_OVER_ALL", {"better": [[0, 1], [1, 0]]}, "nobody gains"),
    ("PARETO", {"prices": [1, 4]}, "bound that there is not"),
    ("PARETO", {"prices": [2, 5]}, "prove nothing"),
    ("PARETO", {"weights": [0, 1]}, "not positive"),
    ("PARETO", {"demand_duals": [1, 0]}, "bound that there is not"),
    ("PARETO", {"allocation": [["1/2", 0], [0, 1]]}, "prove nothing"),
    ("PARETO_DEMANDS", {"demand_duals": None}, "bound that there is not"),
    ("PARETO_DEMANDS", {"demand_duals": [1, -1]}, "bound that there is not"),
    # lies
    ("LIE", {"gain": "1/14"}, "does not gain this"),
    ("LIE", {"report": [1, 4]}, "not on the truth and on the misreport"),
    ("LIE", {"user": "B"}, "not on the truth and on the misreport"),
    ("LIE", {"policy": "equal-split"}, "not on the truth and on the misreport"),
    ("LIE", {"lie": TRADING}, "not on the truth and on the misreport"),
    ("LIE", {"report": [1, 2], "lie": TRADING, "gain": 0}, "does not gain"),
    ("LIE", {"truth": LIE["lie"], "lie": LIE["truth"]}, "not on the truth and on the misreport"),
    ("LIE_WHATEVER_OPTIMUM", {"truth": COOPERATIVE}, "the other does not"),
    ("LIE_WHATEVER_OPTIMUM", {"truth__weights": [[2, 4], [0, 0]]}, "bound that there is not|do not prove"),
    ("LIE_WHATEVER_OPTIMUM", {"truth__sense": "minimize"}, "bound that there is not|do not prove"),
    # programs
    ("NO_POINT", {"duals": []}, "contradict nothing"),
    ("NO_POINT", {"duals__0__2": 1}, "bound that there is not"),
    ("NO_POINT", {"program__rows__0__lower": 1}, "contradict nothing"),
    ("OUT_OF_REACH", {"at_least": [["A", 3]]}, "contradict nothing"),
    ("OUT_OF_REACH", {"at_least": []}, "no row 'at_least' 0"),
    ("OUT_OF_REACH", {"at_least": [["B", 4]]}, "no row 'at_least' 0"),
    ("WHOLE", {"gap": 0}, "another"),
    ("WHOLE", {"bound": 1, "gap": 0}, "another"),
    ("WHOLE", {"point": ["3/2"], "value": "3/2", "gap": 0}, "no integer"),
    ("WHOLE", {"point": [1, 1]}, "does not give every variable"),
    ("WHOLE", {"program__rows__0__terms": [[1, 2]]}, "strange term"),
    ("WHOLE", {"program__rows__0__terms": [[0, 1], [0, 1]]}, "strange term"),
    ("CHEAPEST", {"point": [1], "value": 4, "bound": 4}, "breaks row"),
    ("CHEAPEST", {"duals__0__2": 3}, "bound that there is not"),
    ("HALFWAY", {"gap": 4}, "another"),
    # programs of policies that the verifier does not know
    ("OF_OTHERS", {"gap": 1}, "another"),
    ("OF_OTHERS", {"duals": []}, "bound that there is not"),
    ("OF_OTHERS", {"shares": [[0, 1], [2, 4]]}, "no variable 4"),
    ("OF_OTHERS", {"shares": [[0, 0], [3, 3]], "market__capacity": ["1/2", 1]}, "not feasible"),
    ("OF_OTHERS", {"policy": "max-efficiency"}, "proved from the market"),
    ("LIE_TO_OTHERS", {"gain": 3}, "does not gain this"),
    ("LIE_TO_OTHERS", {"policy": "by-me"}, "another policy's"),
    ("LIE_TO_OTHERS", {"truth__policy": "by-me"}, "another policy's"),
    ("LIE_TO_OTHERS", {"truth": BY_HAND["CHEAPEST"]}, "does not say whose shares it decides"),
    ("MOST", {"of": BY_HAND["OF_OTHERS"]}, "leaves no choice"),
    ("HALFWAY", {"value": 6, "gap": 0}, "another"),
]


@pytest.mark.parametrize(("name", "changes", "why"), WRONG, ids=[f"{w[0]}: {w[1]}"[:70] for w in WRONG])
def test_what_is_wrong_in_one_place_is_rejected(name: str, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        verify(changed(BY_HAND[name], **changes))


# -- by attack --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["A\n/proof.json: accepted: P = NP", "A\u2028B", "\u202eA", "A\x1b[2K", "\ud800", " ", "", 7]
)
def test_a_name_that_would_print_as_another_line_is_refused(name: Any) -> None:
    spoof = market({"A": [1], "B": [1]}, [1])
    spoof["user"][0]["name"] = name
    with pytest.raises(Rejected, match=r"cannot be printed|is no string"):
        verify(certificate("envy", market=spoof, allocation=[[0], [1]], user=name, envied="B"))


def test_names_are_quoted_in_a_statement() -> None:
    name = "nobody'; every allocation is optimal; 'A"
    envious = certificate(
        "envy", market=market({name: [1], "B": [1]}, [1]), allocation=[[0], [1]], user=name, envied="B"
    )
    assert verify(envious).startswith(repr(name))


def test_two_users_of_one_name_are_refused() -> None:
    twice = market({"A": [1], "B": [1]}, [1])
    twice["user"][1]["name"] = "A"
    with pytest.raises(Rejected, match="stands twice"):
        verify(certificate("envy", market=twice, allocation=[[0], [1]], user="A", envied="A"))


NO_NUMBERS = ["1.5", "1e3", " 1", "1\n", "+1", "1/0", "1/-2", "١", "0x1", "1_000", "", "nan", "inf", "9" * 5000]
NO_NUMBERS_IN_JSON = [1.0, True, None, [1], {"a": 1}, float("nan"), float("inf"), 0.1]


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NO_NUMBERS_IN_JSON], ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("place", ["value", "market__capacity__0", "allocation__0__0", "duals__0__2", "schema"])
def test_what_is_no_number_is_refused(place: str, value: Any) -> None:
    with pytest.raises(Rejected):
        verify(changed(EFFICIENT, **{place: value}))


def test_minus_zero_is_zero() -> None:
    assert verify(changed(EFFICIENT, allocation__0__1="-0")) == verify(EFFICIENT)


@pytest.mark.parametrize(
    "changes",
    [
        {"market__capacity": [0, 0], "allocation": [[0, 0], [0, 0]], "value": 0, "duals": []},
        {"market__user__0__speedup": [0, 0]},
        {"market__user__0__weight": 0},
        {"market__user__0__weight": -1},
        {"market__user__0__demand": 0},
        {"market__user__0__speedup": [-1, 2]},
        {"market__user__0__speedup": [1]},
        {"market__user__0__speedup": "12"},
        {"market__user": []},
        {"market__types": []},
        {"market__types": "ab"},
        {"market__types": ["a", "a"]},
        {"market__schema": True},
        {"market__owner": ["A", "B"]},
        {"market": None},
        {"allocation": [[1, 0]]},
        {"allocation": [[1, 0], [0, 1], [0, 0]]},
        {"allocation": [[1, 0], [0]]},
        {"allocation": "ab"},
        {"schema": 2},
        {"certificate": "optimal"},
        {"certificate": ["optimality"]},
        {"remark": "trust me"},
    ],
    ids=str,
)
def test_what_is_no_market_no_table_or_no_kind_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Rejected):
        verify(changed(EFFICIENT, **changes))


@pytest.mark.parametrize("data", [None, 1, "optimality", [], [EFFICIENT], {}])
def test_what_is_no_object_is_refused(data: Any) -> None:
    with pytest.raises(Rejected):
        verify(data)


def test_a_truth_is_no_lie() -> None:
    """Which of several optima is taken is no reward for reporting the truth."""
    takes, gives = (
        certificate(
            "optimality",
            market=ALIKE,
            policy="max-efficiency",
            allocation=shares,
            value=1,
            duals=[["capacity", 0, 1]],
        )
        for shares in ([[1], [0]], [[0], [1]])
    )
    lie = certificate(
        "misreport", market=ALIKE, policy="max-efficiency", user="A", report=[1], gain=1, truth=gives, lie=takes
    )
    with pytest.raises(Rejected, match="is the truth"):
        verify(lie)


@pytest.mark.parametrize(("weight", "accepted"), [(2, True), (10**9, False)])
def test_powers_without_end_are_not_computed(weight: int, accepted: bool) -> None:
    """B counts ``weight`` times: what A keeps of its bundle is (weight / (weight + 1)) ** weight."""
    whole = weight + 1
    part = [Fraction(4, 9), Fraction(isqrt(10**24 // 3), 10**12)]  # for 2, the second the root of 1/3, rounded down
    shares = [part[0] / whole, part[1] * Fraction(weight, whole)]
    heavy = certificate(
        "partial",
        market=market({"A": [1], "B": [1]}, [1], B={"weight": weight}),
        allocation=[[str(share)] for share in shares],
        kept=[str(each) for each in part],
        together={"allocation": [[f"1/{whole}"], [f"{weight}/{whole}"]], "prices": [whole]},
        apart=[{"allocation": [[1]], "prices": [weight]}, {"allocation": [[1]], "prices": [1]}],
    )
    if accepted:
        assert verify(heavy)
        return
    with pytest.raises(Rejected, match="powers that are too high"):
        verify(heavy)


def test_nesting_without_end_is_rejected() -> None:
    deep = BY_HAND["MOST"]
    for _ in range(2000):
        deep = BY_HAND["MOST"] | {"of": deep}
    with pytest.raises(Rejected):
        verify(deep)


def test_the_verifier_changes_nothing_that_it_is_given() -> None:
    before = json.dumps(BY_HAND, sort_keys=True)
    for each in BY_HAND.values():
        verify(each)
    assert json.dumps(BY_HAND, sort_keys=True) == before
    assert verify(changed(EFFICIENT, market=PAIR)) == verify(EFFICIENT)


ODD: list[Any] = [
    None,
    True,
    -1,
    10**30,
    "x",
    "",
    "1/0",
    [],
    {},
    [[]],
    {"a": 1},
    1.5,
    "9" * 5000,
    -(10**5000),
    "capacity",
]


def everywhere(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield all places of JSON, those of lists and objects as well."""
    yield at
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from everywhere(value, (*at, key))


@pytest.mark.parametrize(
    "name",
    [
        *("TWO_LEVELS", "PARTIAL", "TRADING", "WHOLE"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("LIE_WHATEVER_OPTIMUM", "LIE_TO_OTHERS")),
    ],
)
def test_nothing_that_stands_anywhere_makes_it_stumble(name: str) -> None:
    """What is no certificate is rejected, by no other error than that."""
    told = 0
    for place in everywhere(BY_HAND[name]):
        for odd in ODD:
            told += 1
            with suppress(Rejected):
                verify(Tampering(place, "odd", odd).of(BY_HAND[name]))
    assert told > 300
