"""Entitlements in a market's CSV table and in pandas tables; what CSV cannot say is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairopt import read_market, write_market
from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.program import INFINITY

TABLE = """user,H100,A100,weight,group,tier,guarantee:H100,cap:H100,cap:A100,held:A100,reserve:H100,usage
train,3,1,2,ml,1,8,16,unlimited,2,1,100
serve,2,1,,ml,,4,,,,,
batch,1,1,,,-1,,4,0,1,,
capacity,12,4,,,,,,,,,
"""
USERS, TYPES = ("train", "serve", "batch"), ("H100", "A100")


def expected() -> Market:
    owed = Entitlements.of(
        USERS,
        TYPES,
        group={"train": "ml", "serve": "ml"},
        tier={"train": 1, "batch": -1},
        guarantee={"train": {"H100": 8}, "serve": {"H100": 4}},
        cap={"train": {"H100": 16}, "batch": {"H100": 4, "A100": 0}},
        held={"train": {"A100": 2}, "batch": {"A100": 1}},
        reserve={"train": {"H100": 1}},
        usage={"train": 100},
    )
    rows = [[3, 1], [2, 1], [1, 1]]
    return Market.of(rows, [12, 4], users=USERS, types=TYPES, weight=[2, 1, 1], entitlements=owed)


def test_columns_say_what_users_are_entitled_to(tmp_path: Path) -> None:
    (tmp_path / "market.csv").write_text(TABLE)
    market = read_market(tmp_path / "market.csv")
    assert market == expected()
    write_market(market, tmp_path / "again.csv")
    assert read_market(tmp_path / "again.csv") == market


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("guarantee:H100", "guarantee:H10"), "column 'guarantee:H10': there is no type 'H10'"),
        (("ml,1,8", "ml,high,8"), "line 2 .'train'., column 'tier': got 'high'"),
        (("ml,1,8", "ml,1,-8"), "column 'guarantee:H100'.*got -8"),
        (("ml,1,8", "ml,1,1/0"), "division by zero"),
        (("ml,1,8", "serve,1,8"), "a user and a group are both called 'serve'"),
        (("12,4,,,", "12,4,,,7"), "line 5 .'capacity'., column 'tier'.*Leave the cell blank"),
        (("2,1,100", "2,9,100"), "reserve.*got 9.*Reserve at most the guarantee"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    (tmp_path / "market.csv").write_text(TABLE.replace(*change))
    with pytest.raises(BadInput, match=says):
        read_market(tmp_path / "market.csv")


def test_a_type_may_still_have_such_a_name_where_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "market.csv").write_text("user,tier\na,1\ncapacity,4\n")
    assert read_market(tmp_path / "market.csv", ["tier"]).types == ("tier",)


GANG = Gangs.of(["train"], [2], users=USERS, types=TYPES)
GROUP = {"train": "ml", "serve": "ml"}


@pytest.mark.parametrize(
    ("owed", "says"),
    [
        (Entitlements.of(USERS, TYPES, gangs=GANG), "gangs"),
        (Entitlements.of(USERS, TYPES, goods={Good("cpu", "all"): 8}), "further goods"),
        (Entitlements.of(USERS, TYPES, rate=[2, 1]), "rates of types"),
        (Entitlements.of(USERS, TYPES, half_life=60), "half_life"),
        (Entitlements.of(USERS, TYPES, group=GROUP, guarantee={"ml": [2, 0]}), "the group 'ml'"),
        (Entitlements.of(USERS, TYPES, group=GROUP, cap={"ml": [2, 0]}), "the group 'ml'"),
        (Entitlements.of(USERS, TYPES, group={**GROUP, "ml": "org"}), "the group 'ml'"),
        (Entitlements.of(USERS, TYPES, groups=["ml"]), "groups without users"),
    ],
)
def test_what_csv_cannot_say_is_refused(tmp_path: Path, owed: Entitlements, says: str) -> None:
    market = replace(expected(), entitlements=owed)
    with pytest.raises(BadInput, match=f"CSV has no place for {says}"):
        write_market(market, tmp_path / "market.csv")
    write_market(market, tmp_path / "market.toml")
    assert read_market(tmp_path / "market.toml") == market


def test_pandas_tables_are_by_user_and_type() -> None:
    cap = pd.DataFrame({"H100": [16, 4], "A100": [None, 0]}, index=["train", "batch"])
    owed = Entitlements.of(
        USERS,
        TYPES,
        group=pd.Series({"train": "ml", "serve": "ml", "batch": None}),
        tier=pd.Series({"train": 1, "batch": -1}),
        guarantee=pd.DataFrame({"H100": [8.0, 4.0]}, index=["train", "serve"]),
        cap=cap,
        held={"train": {"A100": 2}, "batch": {"A100": 1}},
        reserve={"train": {"H100": 1}},
        usage=pd.Series({"train": 100}),
    )
    assert owed == expected().entitlements
    assert owed.cap[0, 1] == INFINITY
    with pytest.raises(BadInput, match="there is no user or group 'trains'"):
        Entitlements.of(USERS, TYPES, cap=cap.rename(index={"train": "trains"}))
