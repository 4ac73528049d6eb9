from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.problem import Market, allocation_from, read_allocation
from fairopt.testing.strategies import allocations, markets

MARKET = Market.of([[1, 2], [1, 3], [1, 4]], [1, 1], users=["A", "B", "C"], types=["K80", "V100"])
SHARES = [[Fraction(1), Fraction(1, 10)], [Fraction(0), Fraction(4, 10)], [Fraction(0), Fraction(1, 2)]]
TABLE = "user,K80,V100\nA,1,0.1\nB,0,2/5\nC,0,0.5\n"


def read(folder: Path, suffix: str, text: str) -> list[list[Fraction]]:
    path = folder / f"shares{suffix}"
    path.write_text(text, encoding="utf-8")
    return read_allocation(path, MARKET).tolist()


def refused(folder: Path, suffix: str, text: str) -> str:
    with pytest.raises(BadInput) as caught:
        read(folder, suffix, text)
    assert caught.value.file == str(folder / f"shares{suffix}")
    assert caught.value.place
    return str(caught.value)


def test_a_table_is_matched_by_name_whatever_its_order(tmp_path: Path) -> None:
    assert read(tmp_path, ".csv", TABLE) == SHARES
    assert read(tmp_path, ".csv", "user,V100,K80\nC,0.5,0\nA,0.1,1\nB,2/5,0\n") == SHARES


def test_json_is_in_the_market_s_order_or_in_its_own_names_order(tmp_path: Path) -> None:
    plain = {"allocation": [[1, 0.1], [0, "2/5"], ["0", 0.5]]}
    assert read(tmp_path, ".json", json.dumps(plain)) == SHARES
    named = {"users": ["C", "A", "B"], "types": ["V100", "K80"], "allocation": [[0.5, 0], [0.1, 1], ["2/5", 0]]}
    assert read(tmp_path, ".json", json.dumps(named)) == SHARES


def test_what_solve_prints_is_read(tmp_path: Path) -> None:
    printed = {
        "schema": 1,
        "policy": "oef-cooperative",
        "backend": "highs",
        "status": "OPTIMAL",
        "objective": 4.5,
        "users": ["A", "B", "C"],
        "types": ["K80", "V100"],
        "allocation": [[1.0, 0.1], [0.0, 0.4], [0.0, 0.5]],
        "utilities": [1.2, 1.2, 2.0],
        "unique": True,
        "seconds": {"build": 0.1, "solve": 0.1, "certify": None},
    }
    assert read(tmp_path, ".json", json.dumps(printed)) == SHARES


@given(data=st.data(), market=markets(jobs=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_exact_shares_survive_both_formats(data: st.DataObject, market: Market, tmp_path: Path) -> None:
    shares = data.draw(allocations(market) | allocations(market, feasible=False))
    text = json.dumps({"allocation": [[str(value) for value in row] for row in shares]})
    (tmp_path / "s.json").write_text(text)
    assert (read_allocation(tmp_path / "s.json", market) == shares).all()
    rows = [["user", *market.types], *([user, *map(str, row)] for user, row in zip(market.users, shares, strict=True))]
    (tmp_path / "s.csv").write_text("\n".join(",".join(row) for row in [rows[0], *reversed(rows[1:])]))
    assert (read_allocation(tmp_path / "s.csv", market) == shares).all()
    assert (allocation_from(shares, market) == shares).all()


def test_infeasible_shares_are_read_for_the_audit(tmp_path: Path) -> None:
    assert read(tmp_path, ".csv", TABLE.replace("A,1,0.1", "A,-1,99"))[0] == [-1, 99]
    assert read(tmp_path, ".csv", TABLE.replace("A,1,0.1", "A,-2.7e-15,5e-324"))[0][0] == Fraction("-2.7e-15")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("B,0,2/5\n", "", "user 'B' missing"),
        ("B,", "Bob,", "line 3 ('Bob'): there is no such user in the market"),
        ("B,", "A,", "line 3, column 'user': 'A' stands in line 2 too"),
        ("V100", "V10", "there is no type 'V10' in the market. Did you mean 'V100'?"),
        ("V100", "K80", "stands twice"),
        ("user,", "tenant,", "the first column is 'tenant'"),
        ("user,K80,V100\n", "", "the first column is 'A'"),
        ("2/5", "", "line 3 ('B'), column 'V100': the cell is blank"),
        ("2/5", "nan", "line 3 ('B'), column 'V100': got 'nan'"),
        ("2/5", "1e400", "beyond"),
        (",2/5", "", "2 cells for 3 columns"),
        (TABLE, "", "empty"),
    ],
)
def test_tables_that_do_not_match_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in TABLE
    assert words in refused(tmp_path, ".csv", TABLE.replace(old, new, 1))


ROWS: list[list[Any]] = [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "the key 'allocation' is missing"),
        ({"alocation": ROWS}, "Did you mean 'allocation'?"),
        ({"allocation": ROWS, "comment": "x"}, "unknown key 'comment'"),
        ({"allocation": ROWS[:2]}, "2 rows of 2 numbers for 3 users and 2 types"),
        ({"allocation": [[1], [1], [1]]}, "3 rows of 1 number for 3 users and 2 types"),
        ({"allocation": [[1, 0], [0], [0, 0]]}, "3 rows of 1 or 2 numbers"),
        ({"allocation": []}, "0 rows of 0 numbers"),
        ({"allocation": [1, 2, 3]}, "allocation, row 1: got 1"),
        ({"allocation": {"A": [1, 0]}}, "allocation: got {"),
        ({"allocation": None, "status": "infeasible"}, "the status is 'infeasible'"),
        ({"allocation": [[1, 0], [0, math.nan], [0, 0]]}, "allocation, user 2 ('B'), type 'V100': got NaN"),
        ({"allocation": [[1, 0], [0, math.inf], [0, 0]]}, "got Infinity"),
        ({"allocation": [[1, 0], [0, "x"], [0, 0]]}, "got 'x', not a number"),
        ({"allocation": [[1, 0], [0, True], [0, 0]]}, "truth value"),
        ({"allocation": ROWS, "users": ["A", "B"]}, "users: user 'C' missing"),
        ({"allocation": ROWS, "users": ["A", "B", "D"]}, "there is no user 'D'"),
        ({"allocation": ROWS, "users": ["A", "B", "B"]}, "stands twice"),
        ({"allocation": ROWS, "types": "K80"}, "Give a list of the types' names"),
        ({"allocation": ROWS, "schema": 2}, "schema: got version 2"),
    ],
)
def test_json_that_does_not_match_is_refused(tmp_path: Path, data: dict[str, Any], words: str) -> None:
    assert words in refused(tmp_path, ".json", json.dumps(data))


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert ".csv, .json" in refused(tmp_path, ".toml", TABLE)
    assert "not JSON" in refused(tmp_path, ".json", TABLE)
    with pytest.raises(BadInput, match="no such file"):
        read_allocation(tmp_path / "none.csv", MARKET)


# -- Python input -------------------------------------------------------------------------------------------------
def test_python_values_are_read_exactly() -> None:
    for values in ([[1, 0.1], [0, 0.4], [0, 0.5]], np.array([[1, 0.1], [0, 0.4], [0, 0.5]]), SHARES):
        shares = allocation_from(values, MARKET)
        assert shares.tolist() == SHARES
        assert all(type(value) is Fraction for value in shares.ravel())


def test_a_frame_is_aligned_by_label() -> None:
    frame = pd.DataFrame({"V100": [0.5, 0.1, 0.4], "K80": [0, 1, 0]}, index=["C", "A", "B"])
    assert allocation_from(frame, MARKET).tolist() == SHARES
    for broken in (
        frame.iloc[:2],
        frame.rename(index={"C": "D"}),
        frame[["V100"]],
        frame.rename(columns={"K80": "V100"}),
    ):
        with pytest.raises(BadInput):
            allocation_from(broken, MARKET)


@pytest.mark.parametrize(
    "values", [[1, 2, 3], np.zeros(3), np.zeros((2, 3)), "x", {"A": 1}, None, np.full((3, 2), np.nan)]
)
def test_other_python_values_are_refused(values: object) -> None:
    with pytest.raises(BadInput):
        allocation_from(values, MARKET)
