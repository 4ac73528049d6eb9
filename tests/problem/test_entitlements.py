"""Entitlements: what users and groups are owed, hold and ask for; in Python and in files."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.by_name import allocate
from fairopt.errors import BadInput, NotCapable
from fairopt.problem import (
    Entitled,
    Entitlements,
    Gangs,
    Good,
    Market,
    market_from_dict,
    market_schema,
    market_to_dict,
    read_market,
    write_market,
)

TYPES = ("A100", "H100")


def told() -> dict[str, Any]:
    """Return a market file with every key of entitlements."""
    return {
        "schema": 1,
        "types": list(TYPES),
        "capacity": [32, 16],
        "rate": [1, "5/2"],
        "half_life": 3600,
        "user": [
            {
                "name": "train",
                "speedup": "unknown",
                "group": "team-a",
                "guarantee": {"H100": 8, "cpu:H100": 64},
                "cap": {"H100": 16},
                "reserve": {"H100": 2},
                "tier": 1,
                "usage": "1/3",
            },
            {"name": "tune", "speedup": [1, [2, 3]], "group": "team-a", "guarantee": [8, 0], "borrow_weight": 0},
            {"name": "batch", "speedup": [0, ["3/2", 2, "unlimited"]], "held": {"A100": 20}, "fixed": {"A100": 4}},
        ],
        "group": [{"name": "team-a", "group": "org"}, {"name": "org", "tier": -3, "guarantee": ["unlimited", 9]}],
        "good": [{"resource": "cpu", "flavor": "H100", "stock": 640}],
        "gang": [
            {"name": "j1", "user": "train", "gpus": 8, "on": "H100", "other": {"cpu": 64}, "preemptible": False},
            {"name": "j2", "user": "train", "gpus": 8, "types": ["H100"], "tier": 100, "since": 7},
        ],
    }


def test_a_file_says_what_users_and_groups_are_owed() -> None:
    market = market_from_dict(told())
    owed = market.entitlements
    assert owed is not None
    assert owed.nodes == ("train", "tune", "batch", "team-a", "org")
    team, org = owed.node("team-a"), owed.node("org")
    assert owed.parent.tolist() == [team, team, -1, org, -1]
    assert owed.guarantee[team].tolist() == [8, 8, 64]  # its members' sum
    assert owed.guarantee[org].tolist() == [float("inf"), 9, 0]  # its own word
    assert owed.cap[owed.node("train")].tolist() == [float("inf"), 16, float("inf")]
    assert owed.held.tolist() == [[0, 8, 64], [0, 0, 0], [20, 0, 0]]
    assert owed.fixed.tolist() == [[0, 8, 64], [0, 0, 0], [4, 0, 0]]
    assert owed.total(owed.held)[org].tolist() == [0, 8, 64]
    assert owed.said == frozenset(Entitled)
    assert owed.gangs.order().tolist() == [1, 0]
    assert [*owed.path(0)] == [0, team, org]
    assert market.known.tolist() == [False, False, False]
    assert market.ends[0].tolist() == [[0, 0], [1, 2], [0, Fraction(3, 2)]]
    assert market.speedup.tolist() == [[1, Fraction(5, 2)], [1, Fraction(5, 2)], [0, 2]]


MISGIVEN: dict[str, tuple[dict[str, Any], str]] = {
    "a list for a mapping": ({"guarantee": [[1], [2]]}, "guarantee: got a list. Give a mapping"),
    "a name for a mapping": ({"cap": "A"}, "cap: got a str. Give a mapping"),
    "an array for a mapping": ({"tier": np.ones(2)}, "tier: got a ndarray. Give a mapping"),
    "a list of groups for a mapping": ({"group": ["x"]}, "group: got a list. Give a mapping"),
    "one name of a group": ({"groups": "ml"}, "groups: got 'ml'. Give a list of names"),
    "a group twice": ({"groups": ["ml", "ml"]}, "groups: got .*Give each group once"),
    "goods by text": ({"goods": {"cpu:all": 3}}, "goods: got 'cpu:all'. Give Good"),
    "goods in a list": ({"goods": [Good("cpu", "all")]}, "goods: got .* Give a mapping from Good"),
    "gangs as text": ({"gangs": "train"}, "gangs: got 'train'. Make them with Gangs.of"),
    "a group in itself": ({"group": {"A": "ml", "ml": "ml"}}, "'ml' is in a circle of groups"),
    "a tier of 21 digits": ({"tier": {"A": 10**20}}, "at most 18 digits"),
}


@pytest.mark.parametrize("name", MISGIVEN)
def test_what_is_given_as_something_else_is_named(name: str) -> None:
    given, message = MISGIVEN[name]
    with pytest.raises(BadInput, match=message):
        Entitlements.of(["A", "B"], ["H100"], **given)


def test_a_name_that_stands_twice_in_a_table_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    for table, twice in (
        (pandas.DataFrame({"H100": [1, 2]}, index=["A", "A"]), "'A'"),
        (pandas.DataFrame([[1, 2]], columns=["H100", "H100"], index=["A"]), "'H100'"),
        (pandas.Series([1, 2], index=["B", "B"]), "'B'"),
    ):
        with pytest.raises(BadInput, match=f"{twice} stands twice"):
            Entitlements.of(["A", "B"], ["H100"], guarantee=table)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_what_is_written_is_read_back(tmp_path: Path, suffix: str) -> None:
    market = market_from_dict(told())
    write_market(market, tmp_path / f"m{suffix}")
    assert read_market(tmp_path / f"m{suffix}") == market


def test_the_published_schema_describes_it() -> None:
    jsonschema.validate(told(), market_schema())
    jsonschema.validate(json.loads(json.dumps(market_to_dict(market_from_dict(told())))), market_schema())


def test_csv_says_what_it_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"toml"):
        write_market(market_from_dict(told()), tmp_path / "m.csv")


def test_floats_and_back() -> None:
    market = market_from_dict(told())
    floats = market.as_(float)
    assert floats.entitlements is not None
    assert floats.entitlements.guarantee.dtype == float
    assert floats.least is not None
    assert floats.least.dtype == float


def test_a_policy_refuses_what_it_does_not_support() -> None:
    market = market_from_dict(told())
    with pytest.raises(NotCapable, match=r"equal-split does not support caps, groups, guarantees, tiers"):
        allocate("equal-split", market)
    assert market.plain().entitlements is None
    allocate("equal-split", market.plain())


def test_what_stands_in_for_an_unknown_speedup_is_not_decided_by() -> None:
    """A rate for each type is somebody's word; without one, the number 1 is nobody's."""
    data = {"schema": 1, "types": ["H100"], "capacity": [8], "user": [{"name": "a", "speedup": "unknown", "tier": 0}]}
    named = data | {"gang": [{"name": "g", "user": "a", "gpus": 1}]}
    with pytest.raises(NotCapable, match=r"max-min decides by speedups, and those of a are not known; give them"):
        allocate("max-min", market_from_dict(named))
    assert allocate("max-min", market_from_dict(named | {"rate": [2]}), exact=True).shares.tolist() == [[8]]


def test_users_that_are_chosen_keep_what_is_theirs() -> None:
    market = market_from_dict(told()).select([2, 0])
    owed = market.entitlements
    assert owed is not None
    assert (owed.users, owed.nodes[owed.parent[1]]) == (("batch", "train"), "team-a")
    assert owed.gangs.user.tolist() == [1, 1]
    assert owed.held.tolist() == [[20, 0, 0], [0, 8, 64]]


def test_gangs_that_move_change_what_is_held() -> None:
    owed = market_from_dict(told()).entitlements
    assert owed is not None
    after = owed.running(owed.gangs.placed([-1, 1]))
    assert after.held.tolist() == [[0, 8, 0], [0, 0, 0], [20, 0, 0]]


def _without(key: str, place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    data: Any = told()
    at = data
    for step in place:
        at = at[step]
    at[key] = value
    return data  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_without("group", ("group", 1), "team-a"), r"circle of groups"),
        (_without("name", ("group", 1), "train"), r"both called 'train'"),
        (_without("guarantee", ("user", 0), {"T4": 1}), r"'train', guarantee.*'T4'"),
        (_without("guarantee", ("user", 0), [1, 2, 3, 4]), r"4 numbers for 2 types"),
        (_without("guarantee", ("user", 0), {"H100": -1}), r"user 1 \('train'\), guarantee, 'H100'.*-1"),
        (_without("guarantee", ("user", 0), 8), r"Give a table"),
        (_without("reserve", ("user", 0), {"H100": 9}), r"'train', reserve, 'H100'.*at most the guarantee"),
        (_without("fixed", ("user", 2), {"A100": 21}), r"'batch', fixed, 'A100'"),
        (_without("held", ("user", 0), {"H100": 7}), r"'train', held, 'H100'.*running gangs"),
        (_without("user", ("gang", 0), "trane"), r"gang 1 \('j1'\), user.*'train'"),
        (_without("on", ("gang", 1), "A100"), r"gang 2 \('j2'\), allowed"),
        (_without("gpus", ("gang", 0), "-1/2"), r"gang 1 \('j1'\), gpus.*-1/2"),
        (_without("tier", ("gang", 0), "1/2"), r"gang 1 \('j1'\), tier.*whole number"),
        (_without("preemptible", ("gang", 0), 1), r"gang 1 \('j1'\), preemptible"),
        (_without("name", ("gang", 0), "j2"), r"gang 1 has the same name"),
        (_without("speedup", ("user", 1), [1, [3, 2]]), r"speedup"),
        (_without("speedup", ("user", 1), [1, [3, "unlimited"]]), r"it has no upper end"),
        (_without("speedup", ("user", 1), "unknwon"), r"Give a list of numbers, or 'unknown'"),
    ],
)
def test_bad_input_names_the_place_the_value_and_the_remedy(data: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        market_from_dict(data)


names = st.sampled_from(["a", "b", "c", "d"])
amounts = st.fractions(0, 20, max_denominator=6)


@st.composite
def entitled(draw: st.DrawFn) -> Market:
    users = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    groups = draw(st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True))
    goods = {Good("cpu", flavor): draw(amounts) for flavor in draw(st.sets(st.sampled_from(["H100", "any"])))}
    over = {user: draw(st.sampled_from(groups)) for user in users if groups and draw(st.booleans())}
    over |= {low: high for low, high in pairwise(groups) if draw(st.booleans())}
    count = draw(st.integers(0, 4))
    gangs = Gangs.of(
        [draw(st.sampled_from(users)) for _ in range(count)],
        [draw(st.integers(0, 8)) for _ in range(count)],
        users=users,
        types=TYPES,
        on=[draw(st.sampled_from([None, *TYPES])) for _ in range(count)],
        tier=[draw(st.integers(-5, 5)) for _ in range(count)],
        preemptible=[draw(st.booleans()) for _ in range(count)],
        other={"cpu": [draw(amounts) for _ in range(count)]} if draw(st.booleans()) else None,
        settings=[{"qos": draw(st.sampled_from(["high", "low"]))} if draw(st.booleans()) else {} for _ in range(count)],
    )
    columns = [*TYPES, *map(str, goods)]
    rows = st.dictionaries(st.sampled_from(columns), amounts | st.just(float("inf")))
    owed = Entitlements.of(
        users,
        TYPES,
        group=over,
        groups=groups,
        goods=goods,
        gangs=gangs,
        guarantee={name: draw(rows) for name in draw(st.sets(st.sampled_from(users + groups)))},
        cap={name: draw(rows) for name in draw(st.sets(st.sampled_from(users + groups)))},
        borrow_weight={name: draw(amounts) for name in draw(st.sets(st.sampled_from(users + groups)))},
        usage={name: draw(amounts) for name in draw(st.sets(st.sampled_from(users + groups)))},
    )
    return Market.of([[1, 2]] * len(users), [8, 8], users=users, types=TYPES, entitlements=owed)


@given(entitled())
def test_any_entitlements_survive_a_file(market: Market) -> None:
    assert market_from_dict(json.loads(json.dumps(market_to_dict(market)))) == market


@given(entitled())
def test_groups_hold_what_their_members_hold(market: Market) -> None:
    owed = market.entitlements
    assert owed is not None
    total = owed.total(owed.held)
    for node in range(len(owed.nodes)):
        below = [user for user in range(len(owed.users)) if node in owed.path(user)]
        expected = owed.held[below].sum(axis=0) if below else owed.held[0] * 0
        assert np.array_equal(total[node], expected)


def test_the_same_priority_for_all_is_nothing_to_support() -> None:
    """KAI's queues have priority 100 where nobody says."""
    for tiers, said in (({"A": 100, "B": 100}, False), ({"A": 100, "B": 50}, True), ({"A": 1}, True)):
        assert (Entitled.TIERS in Entitlements.of(["A", "B"], ["H100"], tier=tiers).said) is said
