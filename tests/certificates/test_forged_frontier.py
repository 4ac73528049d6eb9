"""Trade-offs that somebody made who knows the verifier: each was accepted by a verifier with one change."""

from __future__ import annotations

import pytest
from certificate_kinds.examples import Json, prices
from certificate_kinds.frontiers import (
    EFFICIENCY_COSTS_NOTHING,
    EFFICIENT_TOO,
    ENVY_COSTS,
    MOST,
    NASH_COSTS_NOTHING,
    line,
    point,
)

from fairopt.proofs.verify import Rejected, verify

HALVES = [["1/2", "1/2"], ["1/2", "1/2"]]
LEVEL = EFFICIENCY_COSTS_NOTHING["points"][0]
LESS = {"gap": "1/9"}
#: Nothing is above it; where epsilon is 0 it is 3/4 above what is reached, and 1 at 2/3.
LOOSE = line(6, "3/2", [*prices(2, 4), ["envy_free", 0, 1, -1]])
WRONG: dict[str, tuple[Json, str]] = {
    "a line that rises above what is reached": (
        ENVY_COSTS | {"lines": [LOOSE, MOST], "gap": "3/4"},
        "the gap is another",
    ),
    "a gap larger than it is": (EFFICIENT_TOO | {"gap": 1}, "the gap is another"),
    "less than is reached": (
        EFFICIENCY_COSTS_NOTHING | {"points": [LEVEL | {"value": 1}]} | LESS,
        "a point does not reach its value",
    ),
    "a point that is not efficient": (
        EFFICIENCY_COSTS_NOTHING | {"points": [point(0, 1, HALVES, least_ratio=1)]} | LESS,
        "or is not efficient",
    ),
    "factors whose product is below 1": (
        NASH_COSTS_NOTHING | {"lines": [line(1, 0, prices("1/3", "2/3"), factors=[1, "4/5"])], "gap": "-11/100"},
        "their product is below 1",
    ),
    "prices that are too low": (
        NASH_COSTS_NOTHING | {"lines": [line("3/4", 0, prices("1/4", "1/2"), factors=["9/8", "9/10"])], "gap": "-9/25"},
        "the sign of a bound that there is not",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_tradeoff_with_one_thing_wrong_is_rejected(what: str) -> None:
    told, why = WRONG[what]
    with pytest.raises(Rejected, match=why):
        verify(told)


def test_a_line_may_be_above_what_is_reached() -> None:
    assert verify(ENVY_COSTS | {"lines": [LOOSE, MOST], "gap": 1})
