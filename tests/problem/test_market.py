from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from fairopt import metrics
from fairopt.errors import BadInput
from fairopt.problem import Market, exact
from fairopt.problem.numbers import shown, written
from fairopt.program import INFINITY
from fairopt.testing.strategies import allocations, markets


# -- numbers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
        (" 5 / 4 ", Fraction(5, 4)),
        ("1e3", Fraction(1000)),
        ("-0", Fraction(0)),
    ],
)
def test_exact_reads_what_was_meant(value: object, meant: Fraction) -> None:
    assert exact(value, "here") == meant


@pytest.mark.parametrize(
    "value",
    [
        True,
        math.nan,
        math.inf,
        Decimal("sNaN"),
        "",
        "x",
        "1/0",
        "1e31",
        10**31,
        1e-31,
        "9" * 401,
        None,
        [1],
        np.bool_(1),
    ],
)
def test_exact_refuses_what_is_no_ordinary_number(value: object) -> None:
    with pytest.raises(BadInput) as caught:
        exact(value, "here")
    assert caught.value.place == "here"


def test_tiny_numbers_are_read_only_where_asked() -> None:
    assert exact(5e-324, "here", tiny=True) == Fraction("5e-324")
    with pytest.raises(BadInput):
        exact(1e31, "here", tiny=True)


@given(st.fractions(-(10**30), 10**30) | st.floats(-1e30, 1e30).map(lambda x: Fraction(str(x))))
def test_written_numbers_are_read_back_exactly(number: Fraction) -> None:
    if number and abs(number) < Fraction(1, 10**30):
        return
    form = written(number, "here")
    assert exact(form, "here") == number
    assert exact(repr(form) if isinstance(form, float) else str(form), "here") == number
    if number.denominator == 1 and abs(number) < 2**63:
        assert type(form) is int


def test_shown_is_short_whatever_it_is_given() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, 10**5000, Fraction(1, 10**5000), "x" * 10**6, ["x" * 100] * 100):
        assert len(shown(value)) <= 70
    while deep:  # take it apart by hand: freeing it at once would need as deep a stack
        deep = deep.pop()  # type: ignore[assignment]


# -- Market.of ----------------------------------------------------------------------------------------------------
def test_messages_name_the_row_by_position_and_name_the_column_and_the_value() -> None:
    with pytest.raises(BadInput) as caught:
        Market.of([[1, 2], [1, -3]], [1, 1], users=["A", "B"], types=["K80", "V100"])
    assert str(caught.value) == ("user 2 ('B'), speedup on 'V100': got -3. Give a number that is not negative")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"speedup": [[1, 2], [1]]}, "user 2 ('B'), speedup"),
        ({"speedup": [[1, 2], [0, 0]]}, "user 2 ('B'), speedup"),
        ({"speedup": [[1, 2], 3]}, "speedup, row 2"),
        ({"speedup": []}, "speedup"),
        ({"capacity": [0, 0]}, "capacity"),
        ({"capacity": [1, math.nan]}, "type 'V100', capacity"),
        ({"capacity": [1, 0], "speedup": [[1, 2], [0, 5]]}, "user 2 ('B'), speedup"),
        ({"weight": [1, 0]}, "user 2 ('B'), weight"),
        ({"weight": [1]}, "weight"),
        ({"demand": [None, 0]}, "user 2 ('B'), demand"),
        ({"demand": [math.nan, 1]}, "user 1 ('A'), demand"),
        ({"users": ["A", "A"]}, "users"),
        ({"users": ["A", " "]}, "user 2"),
        ({"users": "AB"}, "users"),
        ({"types": ["K80"]}, "types"),
        ({"owner": ["A"]}, "owner"),
    ],
)
def test_of_refuses_bad_data_with_a_place(change: dict[str, object], place: str) -> None:
    good: dict[str, object] = {
        "speedup": [[1, 2], [1, 3]],
        "capacity": [1, 1],
        "users": ["A", "B"],
        "types": ["K80", "V100"],
    }
    Market.of(**good)  # type: ignore[arg-type]
    with pytest.raises(BadInput) as caught:
        Market.of(**(good | change))  # type: ignore[arg-type]
    assert caught.value.place == place
    assert caught.value.remedy


def test_no_limit_is_none_or_infinity_and_a_market_s_own_demand_can_be_given_back() -> None:
    market = Market.of([[1], [1]], [1], demand=[None, 2])
    assert list(market.limit) == [INFINITY, 2]
    assert Market.of([[1], [1]], [1], demand=market.demand) == market


def test_arrays_are_frozen_and_the_input_is_not_touched() -> None:
    rows, capacity = [[1, 2], [1, 3]], [1, 1]
    market = Market.of(rows, capacity)
    with pytest.raises(ValueError, match="read-only"):
        market.speedup[0, 0] = 5
    assert rows == [[1, 2], [1, 3]]
    assert capacity == [1, 1]


def test_misreports_are_validated() -> None:
    market = Market.of([[1, 2], [1, 3]], [1, 1])
    assert list(market.misreport("u1", [1, "5/2"]).speedup[0]) == [1, Fraction(5, 2)]
    for row in ([1], [1, -1], [0, 0], [1, math.nan]):
        with pytest.raises(BadInput):
            market.misreport(0, row)
        with pytest.raises(BadInput):
            market.as_(float).misreport(0, row)


@pytest.mark.parametrize("number", [1e300, 1e-40])
def test_misreports_keep_within_the_numbers_of_a_market(number: float) -> None:
    market = Market.of([[1, 2], [1, 3]], [1, 1])
    for each in (market, market.as_(float)):
        with pytest.raises(BadInput, match=r"user 1 .*misreport.* which is beyond 1e±30. Choose units"):
            each.misreport(0, [1, number])
    assert market.as_(float).misreport(0, [0, 1e29]).speedup[0].tolist() == [0, 1e29]


def test_a_row_may_be_a_number_of_numpy() -> None:
    market = Market.of([[1, 2], [1, 3]], [1, 1])
    assert market.without(np.argmax(market.speedup[:, 1])).users == ("u1",)


def test_a_set_has_no_order() -> None:
    with pytest.raises(BadInput, match=r"capacity: got {1, 2}\. Give a list"):
        Market.of([[1, 2], [1, 3]], {1, 2})


def test_normalised_measures_on_the_reference_or_the_slowest_type_that_runs() -> None:
    market = Market.of([[2, 4, 8], [0, 3, 6]], [1, 1, 1], types=["K80", "P100", "V100"])
    assert market.normalised().speedup.tolist() == [[1, 2, 4], [0, 1, 2]]
    assert market.normalised("V100").speedup.tolist() == [[Fraction(1, 4), Fraction(1, 2), 1], [0, Fraction(1, 2), 1]]
    with pytest.raises(BadInput, match="no type 'A100'"):
        market.normalised("A100")


@given(markets(demands=True, jobs=True))
def test_equal_split_uses_every_gpu_and_is_worth_something(market: Market) -> None:
    assert market.equal_split().sum(axis=0).tolist() == market.capacity.tolist()
    assert all(market.fair_utility() > 0)
    assert market.as_(float).as_(float) is market.as_(float)
    assert np.allclose(market.fair_utility().astype(float), market.as_(float).fair_utility())


# -- pandas -------------------------------------------------------------------------------------------------------
def frame() -> pd.DataFrame:
    return pd.DataFrame({"K80": [1, 1], "V100": [1.25, 0.1]}, index=["A", "B"])


def test_a_frame_is_read_exactly_and_aligned_by_label() -> None:
    expected = Market.of(
        [[1, "1.25"], [1, "0.1"]], [60, 12], weight=[2, 1], demand=[None, 3], users=["A", "B"], types=["K80", "V100"]
    )
    for capacity in ([60, 12], {"V100": 12, "K80": 60}, pd.Series({"V100": 12, "K80": 60})):
        for weight in ([2, 1], {"B": 1, "A": 2}, pd.Series({"B": 1, "A": 2})):
            assert Market.of(frame(), capacity, weight=weight, demand={"B": 3, "A": None}) == expected
    assert Market.of(frame(), [60, 12], weight=[2, 1], demand=[math.inf, 3]) == expected


def test_arrays_keep_the_labels_that_they_have() -> None:
    market = Market.of_arrays(
        frame(), {"V100": 12, "K80": 60}, weight=pd.Series({"B": 1, "A": 2}), demand=[3, math.inf]
    )
    assert market == Market.of(frame(), [60, 12], weight=[2, 1], demand=[3, None]).as_(float)
    with pytest.raises(BadInput, match="users: the table has labels already"):
        Market.of_arrays(frame(), [60, 12], users=["x", "y"])
    with pytest.raises(BadInput, match="there is no type 'P100'"):
        Market.of_arrays(frame(), {"P100": 12, "K80": 60})


@pytest.mark.parametrize("where", ["speedup", "capacity", "weight", "demand"])
@pytest.mark.parametrize("number", [1e-300, 9e-31, 1e30, 1e300])
def test_numbers_of_any_size_are_refused_in_arrays_as_in_lists(where: str, number: float) -> None:
    """Guards against products and quotients of a market's numbers that no float holds."""
    given = {"speedup": np.ones((1, 2)), "capacity": np.ones(2), "weight": np.ones(1), "demand": np.ones(1)}
    given[where].flat[0] = number
    with pytest.raises(BadInput, match=rf"{where}.*beyond 1e±30"):
        Market.of_arrays(**given)


def test_what_is_no_array_is_quoted_in_short() -> None:
    with pytest.raises(BadInput, match="not an array of numbers") as refused:
        Market.of_arrays([["x" * 5000]], [1])
    assert len(str(refused.value)) < 400


def test_objects_that_hold_floats_are_not_exact() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    assert market.shares(np.array([[0.5, Fraction(1, 2)], [0, np.float64(0.5)]], dtype=object)).dtype == float
    assert market.shares(np.array([[1, Fraction(1, 2)], [0, 0]], dtype=object)).dtype == object
    assert market.shares(np.array([["1/3", 0], [0, 0]], dtype=object))[0, 0] == Fraction(1, 3)


def test_labels_are_matched_where_names_are_given_beside_lists() -> None:
    market = Market.of([[1, 2], [1, 5]], {"b": 1, "a": 2}, weight={"y": 3, "x": 1}, users=["x", "y"], types=["a", "b"])
    assert market.capacity.tolist() == [2, 1]
    assert market.misreport("y", {"b": 4, "a": 3}).speedup[1].tolist() == [3, 4]
    assert market.weight.tolist() == [1, 3]


def test_a_market_becomes_a_table_and_a_table_a_market() -> None:
    market = Market.of(frame(), [60, 12])
    assert market.to_frame().equals(frame().astype(float))
    assert Market.of(market.to_frame(exact=True), market.capacity) == market


def test_shares_may_be_lists_and_tables_whose_labels_are_in_any_order() -> None:
    market = Market.of(frame(), [60, 12])
    lists = [["1/3", 2], [0, 0.1]]
    table = pd.DataFrame(lists, ["A", "B"], ["K80", "V100"]).loc[["B", "A"], ["V100", "K80"]]
    array = np.array([[Fraction(1, 3), Fraction(2)], [Fraction(0), Fraction(1, 10)]])
    for shares in (lists, table):
        assert np.array_equal(market.utility(shares), market.utility(array))
        assert np.array_equal(market.values(shares), market.values(array))
        assert market.largest_multiple(shares) == market.largest_multiple(array)
        assert metrics(market, shares).jain_index == metrics(market, array).jain_index
    assert market.as_(float).utility(lists).dtype == float
    with pytest.raises(BadInput, match="1 row of 2 numbers for 2 users"):
        market.utility([[1, 2]])


def test_rows_that_pandas_counted_are_named_by_their_numbers() -> None:
    assert Market.of(frame().reset_index(drop=True), [1, 1]).users == ("0", "1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"capacity": {"K80": 1}}, "type 'V100' missing"),
        ({"capacity": {"K80": 1, "V100": 1, "V10": 1}}, "Did you mean 'V100'"),
        ({"capacity": pd.Series([1, 1, 1], index=["K80", "V100", "V100"])}, "stands twice"),
        ({"capacity": pd.Series([1, 1])}, "no type '0'"),
        ({"weight": {"A": 1}}, "user 'B' missing"),
        ({"weight": [1, 2, 3]}, "3 values for 2 users"),
        ({"weight": pd.Series({"A": 1.0, "B": math.nan})}, "got nan"),
        ({"demand": {"A": 1, "b": 2}}, "no user 'b'"),
        ({"speedup": frame().replace(1, math.nan)}, "user 1 ('A'), speedup on 'K80'"),
        ({"speedup": frame().rename(index={"B": "A"})}, "both called 'A'"),
        ({"speedup": frame().rename(columns={"K80": 1.5})}, "got the label 1.5"),
        ({"users": ["A", "B"]}, "the table has labels already"),
        ({"speedup": [[1, 2]], "capacity": {"K80": 1, "V100": 1}}, "name the types too: types=[...]"),
        ({"speedup": frame() > 0}, "truth value"),
    ],
)
def test_frames_that_do_not_fit_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        Market.of(**({"speedup": frame(), "capacity": [1, 1]} | arguments))  # type: ignore[arg-type]
    assert words in str(caught.value)


# -- strategies ---------------------------------------------------------------------------------------------------
@given(markets(min_users=2, max_users=3, min_types=2, max_types=2, weights=False, zeros=False, max_value=5))
def test_markets_keeps_to_its_bounds(market: Market) -> None:
    assert market.shape[0] in (2, 3)
    assert market.shape[1] == 2
    assert set(market.weight) == {1}
    assert market.demand is None
    assert market.owner == market.users
    assert all(0 < value <= 5 for value in [*market.speedup.ravel(), *market.capacity])


@given(markets(ties=False, min_types=2, max_value=7))
def test_markets_without_ties_rises_and_differs(market: Market) -> None:
    assert (np.diff(market.speedup, axis=1) > 0).all()
    assert market.speedup.max() <= 7
    ratios = market.speedup[:, 1:] / market.speedup[:, :-1]
    assert all(len(set(column)) == len(column) for column in ratios[:, :1].T)


@given(st.data(), markets(demands=True))
def test_allocations_are_feasible_or_not_as_asked(data: st.DataObject, market: Market) -> None:
    def feasible(shares: np.ndarray) -> bool:
        return bool((shares >= 0).all() and (shares.sum(axis=0) <= market.capacity).all())

    assert feasible(data.draw(allocations(market)))
    assert not feasible(data.draw(allocations(market, feasible=False)))


@pytest.mark.parametrize(
    "options",
    [
        {"min_users": 0},
        {"min_users": 3, "max_users": 2},
        {"max_types": 1.5},
        {"max_value": 0},
        {"ties": False, "max_value": 1},
    ],
)
def test_strategies_refuse_arguments_that_cannot_be_met(options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        markets(**options)  # type: ignore[arg-type]


def test_allocations_needs_an_exact_market() -> None:
    with pytest.raises(InvalidArgument):
        allocations(Market.of([[1]], [1]).as_(float))
