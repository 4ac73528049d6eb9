"""Trees of oef-efficient, and Pareto efficiency around circles of types, that somebody made who knows the verifier."""

from __future__ import annotations

from typing import Any

import pytest
from certificate_kinds.examples import PAIR, Json, certificate, market, prices
from certificate_kinds.programs import LIE

from fairopt.proofs.verify import Rejected, verify

ENVIES = ["envy_free", 0, 1]
#: Whoever holds the first pair and the second would gain by giving these to each other.
ROOT, WITHOUT_A, WITHOUT_C = [[0, 1], [2, 0]], [[1, 1], [2, 0]], [[0, 1], [1, 0]]
#: Two ways lead to where A lacks the second type and C the first.
MEETS: list[Json] = [
    {"without": [], "circle": ROOT},
    {"without": [[0, 1]], "circle": WITHOUT_A},
    {"without": [[2, 0]], "circle": WITHOUT_C},
    {"without": [[2, 0], [1, 0]], "duals": [*prices(1, 6), ["envy_free", 1, 2, "-1/2"]]},
    {"without": [[2, 0], [0, 1]], "duals": [*prices("9/7", "40/7"), [*ENVIES, "-2/7"], ["envy_free", 1, 2, "-4/7"]]},
]
LAST = {"without": [[0, 1], [1, 1]], "duals": [*prices(3, 4), ["envy_free", 0, 2, -2]]}


def efficient(told: Json, allocation: Any, weights: list[Any], value: Any, nodes: list[Json], **more: Any) -> Json:
    numbers = {"weights": weights, "value": value, "bound": value, "gap": 0, "nodes": nodes}
    return certificate("efficient", market=told, allocation=allocation, **numbers | more)


def meeting(*more: Json) -> Json:
    told = market({"A": [1, 2], "B": [1, 4], "C": [1, 8]}, [1, 1])
    return efficient(told, [[1, 0], [0, "1/2"], [0, "1/2"]], [1, "1/2", "1/4"], 7, [*MEETS, *more])


def test_what_stands_beside_a_part_that_two_ways_lead_to_is_looked_at() -> None:
    assert "with the total 7; none with these three properties has more [" in verify(meeting(LAST))
    with pytest.raises(Rejected, match="a part of the tree is missing"):
        verify(meeting())
    with pytest.raises(Rejected, match="not bounded by its multipliers"):
        verify(meeting(LAST | {"duals": prices(1, 8)}))


CIRCLE = {"without": [], "circle": [[0, 1], [1, 0]]}
FIRST = {"without": [[0, 1]], "duals": [*prices(5, "1/4"), [*ENVIES, -4]]}
SECOND = {"without": [[1, 0]], "duals": [*prices("7/4", "7/2"), [*ENVIES, "-3/4"]]}
TRUTH = efficient(PAIR, [[1, "1/4"], [0, "3/4"]], [1, "2/5"], "21/4", [CIRCLE, FIRST, SECOND])
HALVES = [["1/2", "1/2"], ["1/2", "1/2"]]
#: Half of both types for A and B, who would trade; C has a type of its own, and is the only one whose weight counts.
APART = market({"A": [1, 2, 0], "B": [1, 5, 0], "C": [0, 0, 1]}, [1, 1, 1])
OF_C = ["capacity", 2, 1]
NO_WEIGHT = efficient(
    APART,
    [["1/2", "1/2", 0], ["1/2", "1/2", 0], [0, 0, 1]],
    [0, 0, 1],
    "11/2",
    [CIRCLE, *({**node, "duals": [*node["duals"], OF_C]} for node in (FIRST, SECOND))],
    bound="25/4",
    gap="3/4",
)
#: The most is 39/10. What B lacks would be worth 8 more to it than its price, and is not there to be given back.
LESS = efficient(
    market({"A": [1, "1/5"], "B": [9, 5]}, ["1/10", 1]),
    [["1/10", "2/5"], [0, "3/5"]],
    [25, 1],
    "159/50",
    [
        CIRCLE,
        {"without": [[0, 1]], "duals": [*prices(21, 1), [*ENVIES, -20]]},
        {"without": [[1, 0]], "duals": prices(1, 5)},
    ],
)
WRONG: dict[str, tuple[Json, str]] = {
    "a share below nothing": (LESS, "not bounded by its multipliers"),
    "two weights of nothing": (NO_WEIGHT, "a weight is not positive"),
    "not efficient": (
        TRUTH | {"allocation": HALVES, "weights": [1, 1], "value": "9/2", "gap": "3/4"},
        "do not show that the allocation is Pareto-efficient",
    ),
    "another value": (TRUTH | {"value": 5, "gap": "1/4"}, "value, bound or gap is another"),
    "another gap": (TRUTH | {"bound": 6, "gap": "1/4"}, "value, bound or gap is another"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_shown_to_be_efficient_is_rejected(what: str) -> None:
    data, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(data)


def test_a_misreport_pays_that_changes_the_best_efficient_allocation() -> None:
    """A says 4 for 2, and gets 3/8 for 1/4 of the second type."""
    said = market({"A": [1, 4], "B": [1, 5]}, [1, 1])
    duals = [*prices("9/8", "9/2"), [*ENVIES, "-1/8"]]
    lie = efficient(said, [[1, "3/8"], [0, "5/8"]], [1, "4/5"], "45/8", [{"without": [], "duals": duals}])
    pays = LIE | {"policy": "oef-efficient", "report": [1, 4], "gain": "1/4", "truth": TRUTH, "lie": lie}
    assert verify(pays).startswith("oef-efficient rewards 'A' for reporting (1, 4): 1/4 more, ")
    gap = lie | {"bound": 6, "gap": "3/8"}
    with pytest.raises(Rejected, match="not proved to be the best"):
        verify(pays | {"lie": gap})


# -- trades around three types -----------------------------------------------------------------------------------------
def test_of_several_ways_around_three_types_the_least_counts() -> None:
    """No two types can be traded, but three can: where two users may give one of them, by the one who gives less."""
    users = {"A": [3, 8, 1], "B": [3, 2, 1], "C": [2, 3, 4], "D": [8, 3, 8]}
    held = [[0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
    efficiency = {"allocation": held, "property": "pareto_efficiency", "answer": "HOLDS"}
    with pytest.raises(Rejected, match="shown by an allocation that is better"):
        verify(certificate("property", market=market(users, [2, 3, 2]), **efficiency))


def test_what_somebody_holds_who_cannot_run_on_it_is_idle() -> None:
    """B could run on the first type, and has nothing to give for it."""
    told = market({"A": [0, 1], "B": [1, 0]}, [1, 1])
    efficiency = {"allocation": [[1, 1], [0, 0]], "property": "pareto_efficiency", "answer": "HOLDS"}
    with pytest.raises(Rejected, match="shown by an allocation that is better"):
        verify(certificate("property", market=told, **efficiency))


def test_a_circle_of_more_pairs_than_types_is_refused_at_once() -> None:
    """It improves where one of its parts does; 30,000 pairs of numbers of 20,000 digits took for ever."""
    long = TRUTH | {"nodes": [CIRCLE | {"circle": [*CIRCLE["circle"], *CIRCLE["circle"]]}]}
    with pytest.raises(Rejected, match="4 pairs in a circle are too many"):
        verify(long)
