"""Certificates that somebody made who knows the verifier: each was accepted once, or by a verifier with one change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.bounds import QUARTER
from certificate_kinds.entitlements import OWED, of
from certificate_kinds.examples import PAIR, Json, certificate, extreme, market, optimality, prices
from certificate_kinds.programs import LIE, SAYS_6, of_others

from fairopt.proofs.verifier.nash import GRAIN
from fairopt.proofs.verify import Rejected, verify

# -- a tree of oef-efficient -------------------------------------------------------------------------------------------
#: Whoever holds this, A of the second type and B of the first, would gain by giving it to each other.
CIRCLE = [[0, 1], [1, 0]]
ENVIES = ["envy_free", 0, 1]


def efficient(part: str, rest: str, value: str, nodes: list[Json]) -> Json:
    """A has the first type, and this part of the second."""
    numbers = {"weights": [1, "2/5"], "value": value, "bound": value, "gap": 0}
    return certificate("efficient", market=PAIR, allocation=[[1, part], [0, rest]], nodes=nodes, **numbers)


MOST = efficient(
    "1/4",
    "3/4",
    "21/4",
    [
        {"without": [], "circle": CIRCLE},
        {"without": [[0, 1]], "duals": [*prices(5, "1/4"), [*ENVIES, -4]]},
        {"without": [[1, 0]], "duals": [*prices("7/4", "7/2"), [*ENVIES, "-3/4"]]},
    ],
)


def test_a_circle_that_leads_back_to_itself_bounds_nothing() -> None:
    """Where A lacks the second type there is no circle any more; only what lacks both was bounded."""
    assert "with the total 21/4; none with these three properties has more [" in verify(MOST)
    again = [
        {"without": [], "circle": CIRCLE},
        {"without": [[0, 1]], "circle": CIRCLE},
        {"without": [[1, 0]], "circle": CIRCLE},
        {"without": CIRCLE, "duals": [*prices("11/5", "13/5"), [*ENVIES, "-6/5"]]},
    ]
    with pytest.raises(Rejected, match="improves nobody"):
        verify(efficient("2/5", "3/5", "24/5", again))


def tree(first: Json) -> Json:
    """`MOST` with another node in the place of the one where A lacks the second type."""
    return MOST | {"nodes": [MOST["nodes"][0], first, MOST["nodes"][2]]}


def circle(*pairs: list[int]) -> Json:
    return MOST | {"nodes": [{"without": [], "circle": list(pairs)}, *MOST["nodes"][1:]]}


#: Each half of both types: nobody envies, and B would give some of the first for some of the second.
HALVES = [["1/2", "1/2"], ["1/2", "1/2"]]
LIMITED = market({"A": [1, 2], "B": [1, 5]}, [1, 1], B={"demand": 2})
#: A says twice as much, which changes nothing, and gets more of the second type: there is a gap.
UNSURE = efficient(
    "2/5",
    "3/5",
    "33/5",
    [
        {"without": [], "circle": CIRCLE},
        {"without": [[0, 1]], "duals": prices(2, 5)},
        {"without": [[1, 0]], "duals": prices(2, 5)},
    ],
) | {"market": market({"A": [2, 4], "B": [1, 5]}, [1, 1]), "weights": [1, "4/5"], "bound": 7, "gap": "2/5"}
EFFICIENT_WRONG: dict[str, tuple[Json, str]] = {
    "one user's demand": (MOST | {"market": LIMITED}, "with demands"),
    "weights of nothing": (
        MOST | {"allocation": HALVES, "weights": [0, 0], "value": "9/2", "gap": "3/4"},
        "a weight is not positive",
    ),
    "a circle that improves nobody": (circle([0, 0], [1, 1]), "improves nobody"),
    # with the rest bounded: whoever holds both is left out
    "a circle of one user": (
        efficient(
            "2/5",
            "3/5",
            "24/5",
            [
                {"without": [], "circle": [[0, 0], [0, 1]]},
                {"without": [[0, 0]], "duals": [*prices("1/4", "7/2"), [*ENVIES, "-3/4"]]},
                {"without": [[0, 1]], "duals": [*prices("11/5", "13/5"), [*ENVIES, "-6/5"]]},
            ],
        ),
        "improves nobody",
    ),
    "a user who is not there": (circle([2, 1], [1, 0]), "no such user or type"),
    "a type that is not there": (circle([0, 2], [1, 0]), "no such user or type"),
    "a part that stands twice": (MOST | {"nodes": [*MOST["nodes"], MOST["nodes"][2]]}, "stands twice"),
    "a share that is held at 0": (
        tree({"without": [[0, 1]], "duals": [*prices(5, 14), [*ENVIES, -4]]}) | {"bound": 15, "gap": "39/4"},
        "not bounded by its multipliers",
    ),
    "a gap where a decision is needed": (
        LIE | {"policy": "oef-efficient", "report": [2, 4], "gain": "3/10", "truth": MOST, "lie": UNSURE},
        "not proved to be the best",
    ),
}


@pytest.mark.parametrize("what", EFFICIENT_WRONG)
def test_a_tree_that_is_forged_is_rejected(what: str) -> None:
    data, why = EFFICIENT_WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_a_tree_may_leave_a_gap_and_a_type_that_nobody_can_use() -> None:
    assert "none with these three properties has more than 11/2 [" in verify(MOST | {"bound": "11/2", "gap": "1/4"})
    assert verify(UNSURE)
    useless = market({"A": [1, 2, 0], "B": [1, 5, 0]}, [1, 1, 1])
    assert verify(MOST | {"market": useless, "allocation": [[1, "1/4", 0], [0, "3/4", 0]]})


# -- a program in the place of a policy --------------------------------------------------------------------------------
def test_no_program_stands_in_for_oef_efficient() -> None:
    """The truth is proved, the lie is a program that somebody made up: the statement did not say so."""
    lie = of_others(SAYS_6, [1, 6, 1, 5], [1, 1, 0, 0]) | {"policy": "oef-efficient"}
    with pytest.raises(Rejected, match="proved from the market"):
        verify(LIE | {"policy": "oef-efficient", "report": [1, 6], "gain": "3/2", "truth": MOST, "lie": lie})


POLICIES = [
    *("max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling", "nash-welfare"),
    *("partial-allocation", "equal-split", "second-price-trading", "oef-efficient"),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_proved_from_the_market_is_proved_by_no_program(policy: str) -> None:
    with pytest.raises(Rejected, match="proved from the market"):
        verify(BY_HAND["OF_OTHERS"] | {"policy": policy})


# -- ranges of two policies --------------------------------------------------------------------------------------------
def test_the_optima_of_two_policies_are_those_of_neither() -> None:
    """A's most is by one policy, B's by another."""
    every = BY_HAND["DOMINANCE_OVER_ALL"]
    first, second = every["optima"]
    other = optimality("max-efficiency", every["market"], [[0, 2], [1, 0]], 3, prices(1, 1))
    most = extreme(other, "maximize", second["weights"], [[0, 2], [1, 0]], 1, prices(1))
    assert verify(most)
    with pytest.raises(Rejected, match="optimum of one policy"):
        verify(every | {"optima": [first, most]})


# -- speedups within bounds --------------------------------------------------------------------------------------------
def bounded(least: list[Any], most: list[Any], speedup: list[Any], demand: Any = None) -> Json:
    """A's speedups are known within bounds; B runs at 1 and 3."""
    own = {"least": least, "most": most} | ({} if demand is None else {"demand": demand})
    return market({"A": speedup, "B": [1, 3]}, [1, 1], A=own)


def held(name: str, told: Json, allocation: Any, answer: str, **more: Any) -> Json:
    return certificate("property", market=told, allocation=allocation, property=name, answer=answer, **more)


UP_TO_2, UP_TO_4 = BY_HAND["UP_TO_2"], BY_HAND["UP_TO_4"]
ANY = bounded([0, 0], [None, None], [1, 1])
#: Which of the two A uses first, where it demands one, its speedups decide.
ONE = bounded([1, 1], [2, 2], [1, 2], demand=1)
CLOSE = market({"A": [1, 1], "B": [1, "3/2"]}, [1, 1], A={"least": [1, 1], "most": [1, 2]})
#: A demands two of three, of which the third is the fastest, and either of the others the slowest: B wants the first.
TWO_OF_THREE = market(
    {"A": [1, 2, 3], "B": [1, 0, 0]}, [1, 1, 1], A={"least": [1, 1, 3], "most": [2, 2, 3], "demand": 2}
)
#: B is to have half as much as A, whose second speedup is not known.
HALF_OF_A = market({"A": [1, 1], "B": [1, 1]}, [2, 0], A={"least": [1, 1], "most": [1, 2]}, B={"weight": "1/2"})
WRONG: dict[str, tuple[Json, str]] = {
    "no speedups": ({key: value for key, value in UP_TO_4.items() if key != "speedups"}, "shown by speedups"),
    "speedups for nothing": (UP_TO_2 | {"speedups": [[1, 2], [1, 3]]}, "of no use here"),
    "speedups of 0": (
        held("sharing_incentive", bounded([1, 0], [1, 4], [1, 1]), QUARTER, "DEPENDS", speedups=[[1, 0], [1, 3]]),
        "not within the bounds",
    ),
    "speedups beyond": (UP_TO_4 | {"speedups": [[1, 5], [1, 3]]}, "not within the bounds"),
    "speedups at which it fails": (UP_TO_4 | {"speedups": [[1, 4], [1, 3]]}, "does not hold at these"),
    "nothing known": (
        held("sharing_incentive", ANY, QUARTER, "DEPENDS", speedups=[[1, 1], [1, 3]]),
        "nothing is known",
    ),
    "what is in use": (held("sharing_incentive", ONE, [["7/8", "1/4"], ["1/8", "3/4"]], "HOLDS"), "in use depends"),
    "idle or not": (held("work_conservation", ONE, [[1, "1/2"], [0, "1/2"]], "HOLDS"), "in use depends"),
    "idle or not, of three": (
        held("work_conservation", TWO_OF_THREE, [[1, 1, 1], [0, 0, 0]], "FAILS"),
        "in use depends",
    ),
    "no envy, by weights": (held("envy_freeness", HALF_OF_A, [[1, 0], [1, 0]], "HOLDS"), "does not get 'HOLDS'"),
    "who gains": (
        certificate("dominance", market=ONE, allocation=[["1/2", 0], [0, 0]], better=[[1, 1], [0, 0]]),
        "in use depends",
    ),
    "who gained": (
        certificate("dominance", market=ONE, allocation=[[1, 1], [0, 0]], better=[[1, 0], [0, 1]]),
        "in use depends",
    ),
    "efficient, and not there": (held("pareto_efficiency", PAIR, [[1, 1], [1, 1]], "HOLDS"), "not feasible"),
    "idle for who can run on it": (
        held("pareto_efficiency", market({"A": [1, 1], "B": [1, 0]}, [1, 1]), [[1, 0], [0, 0]], "HOLDS"),
        "shown by an allocation that is better",
    ),
    # at its least A's second type is worth less to it than B's first, which is worth more to B
    "a trade that pays at some speedups": (
        held("pareto_efficiency", CLOSE, [[0, 1], [1, 0]], "HOLDS"),
        "shown by an allocation that is better",
    ),
    # at its most A's second type is worth more to it than to B
    "a trade that pays at other speedups": (
        held("pareto_efficiency", CLOSE, [[1, 0], [0, 1]], "HOLDS"),
        "shown by an allocation that is better",
    ),
    "efficient or not": (held("pareto_efficiency", ONE, [[1, 1], [0, 0]], "HOLDS"), "in use depends"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_depends_on_speedups_is_not_said_without_them(what: str) -> None:
    data, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_what_is_the_same_at_all_speedups_is_said() -> None:
    """A holds just what it demands: in whatever order it uses that, it uses all of it."""
    two = bounded([1, 1], [2, 2], [1, 1], demand=2)
    for name in ("work_conservation", "pareto_efficiency"):
        assert verify(held(name, two, [[1, 1], [0, 0]], "HOLDS"))


def test_an_order_is_sure_where_bounds_touch() -> None:
    """A demands one of two: the second, which is at least as fast at all speedups. B could run on the first."""
    touch = bounded([1, 2], [2, 3], [1, 2], demand=1)
    assert verify(held("work_conservation", touch, [[1, 1], [0, 0]], "FAILS"))


# -- decisions ---------------------------------------------------------------------------------------------------------
EQUILIBRIUM, PARTIAL, TWO_LEVELS = BY_HAND["EQUILIBRIUM"], BY_HAND["PARTIAL"], BY_HAND["TWO_LEVELS"]
ALONE = market({"A": [1, 1]}, [1, 1])


def keeps(part: Fraction) -> Json:
    """A keeps this part of its bundle; 5/8 is right."""
    bundle = [Fraction(share) for share in PARTIAL["together"]["allocation"][0]]
    return PARTIAL | {
        "kept": [str(part), PARTIAL["kept"][1]],
        "allocation": [[str(part * share) for share in bundle], PARTIAL["allocation"][1]],
    }


#: `OWED` with two goods.
WIDE: Json = {key: [[*row, row[-1]] for row in OWED[key]] for key in ("guarantee", "cap", "held", "fixed")}


def rounds(**first: Any) -> Json:
    return TWO_LEVELS | {"rounds": [TWO_LEVELS["rounds"][0] | first, *TWO_LEVELS["rounds"][1:]]}


FORGED: dict[str, tuple[Json, str]] = {
    "a smaller part": (keeps(Fraction(1, 2)), "keeps another part"),
    "a larger part": (keeps(Fraction(3, 4)), "keeps another part"),
    "a part that is one grain short": (keeps(Fraction(5, 8) - GRAIN), "keeps another part"),
    "more than there is": (
        certificate("equilibrium", market=ALONE, allocation=[[2, 0]], prices=["1/2", "1/2"]),
        "not feasible",
    ),
    "a type of no use": (
        certificate("equilibrium", market=market({"A": [1, 0]}, [1, 1]), allocation=[[1, 1]], prices=[1, 0]),
        "cannot run on",
    ),
    "fixed by a dual of zero": (
        rounds(fixed=["A", "B", "C"], duals=[*TWO_LEVELS["rounds"][0]["duals"], ["least_ratio", 0, 0]]),
        "whom no dual holds down",
    ),
    "fixed by the price of a type": (
        rounds(fixed=["A", "B", "C"], duals=[*TWO_LEVELS["rounds"][0]["duals"], ["capacity", 0, 0]]),
        "whom no dual holds down",
    ),
    "no version": ({key: value for key, value in EQUILIBRIUM.items() if key != "schema"}, "no keys schema and"),
    # only A could run on the second type, of which nobody has anything
    "a weight of nothing": (
        certificate(
            "pareto_weights",
            market=market({"A": [1, 1], "B": [1, 0]}, [1, 1]),
            allocation=[[0, 0], [1, 0]],
            weights=[0, 1],
            prices=[1, 0],
        ),
        "a weight is not positive",
    ),
    **{
        f"a good that stands twice, and it {answer}": (
            of("guarantee_kept", [[6, 0], [0, 0], [0, 0]], answer, goods=[OWED["goods"][0]] * 2, stock=[8, 8], **WIDE),
            "a good stands twice",
        )
        for answer in ("HOLDS", "FAILS")
    },
}


@pytest.mark.parametrize("what", FORGED)
def test_a_decision_that_is_forged_is_rejected(what: str) -> None:
    data, why = FORGED[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_a_bundle_may_be_all_that_is_demanded() -> None:
    alone = market({"A": [1, 1]}, [1, 1], A={"demand": 2})
    assert verify(certificate("equilibrium", market=alone, allocation=[[1, 1]], prices=["1/2", "1/2"]))


def test_levels_are_ratios_to_what_equal_shares_are_worth() -> None:
    """Both run at 4: an equal share is worth 2, and at every optimum each has half."""
    both = market({"A": [4], "B": [4]}, [1])
    held_down = [["capacity", 0, 1], ["least_ratio", 0, "-1/2"], ["least_ratio", 1, "-1/2"]]
    found = certificate(
        "levels",
        market=both,
        allocation=[["1/2"], ["1/2"]],
        rounds=[{"level": 1, "fixed": ["A", "B"], "duals": held_down}],
    )
    most = extreme(
        found, "maximize", [[1], [0]], [["1/2"], ["1/2"]], "1/2", [["capacity", 0, 1], ["levels", 1, "-1/4"]]
    )
    assert "the maximum of 1 x['A', 'T0'] is 1/2 [" in verify(most)


# -- trade-offs ------------------------------------------------------------------------------------------------------
ENVY, NASH = BY_HAND["ENVY_COSTS"], BY_HAND["NASH_COSTS_NOTHING"]
(FREE, FULL), (RISING, LEVEL) = ENVY["points"], ENVY["lines"]


def tradeoff(points: list[Json], lines: list[Json], gap: Any) -> Json:
    return ENVY | {"points": points, "lines": lines, "gap": gap}


def nash(value: Any, gap: Any, *, halves: bool = False, **line: Any) -> Json:
    point = NASH["points"][0] | {"value": value} | ({"allocation": HALVES} if halves else {})
    return NASH | {"points": [point], "lines": [NASH["lines"][0] | line], "gap": gap}


TRADEOFFS: dict[str, tuple[Json, str]] = {
    "level where it rises": (tradeoff([FREE], [RISING], 0), "the last line rises"),
    "one epsilon twice": (tradeoff([FREE, FREE], [RISING, LEVEL], "3/4"), "out of order"),
    "epsilons that fall": (
        tradeoff([FREE, FULL, FREE | {"epsilon": "1/2"}], [RISING, LEVEL, LEVEL], "3/4"),
        "out of order",
    ),
    "nothing": (tradeoff([], [], 0), "there are no points"),
    "less than is reached": (tradeoff([FREE | {"value": 5}, FULL], [RISING, LEVEL], "1/4"), "not reach its value"),
    "a line that is too high": (
        tradeoff([FREE, FULL], [RISING | {"constant": "11/2"}, LEVEL], "1/4"),
        "do not prove a line",
    ),
    "a negative mean": (nash(-1, "17/8"), "not reach its value"),
    "a mean that is too large": (nash("5/4", "-1/8"), "not reach its value"),
    "negative factors": (
        nash("111/100", "-111/100", constant=0, duals=[], factors=["-9/8", "-9/10"]),
        "factors are not positive",
    ),
}


@pytest.mark.parametrize("what", TRADEOFFS)
def test_a_tradeoff_that_is_forged_is_rejected(what: str) -> None:
    data, why = TRADEOFFS[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


@pytest.mark.parametrize(
    "data",
    [
        nash(0, "9/8"),
        nash(1, "1/8", halves=True),
        nash("111/100", "17/300", constant="7/6", duals=prices("1/3", "5/6"), factors=[1, 1]),
    ],
    ids=["a mean of 0", "just the mean", "factors of 1"],
)
def test_a_tradeoff_may_be_at_its_limits(data: Json) -> None:
    assert verify(data)
