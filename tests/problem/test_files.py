from __future__ import annotations

import copy
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from fairopt.errors import BadInput
from fairopt.problem import Market, market_from_dict, market_schema, market_to_dict, read_market, write_market
from fairopt.problem.files.batch import batch_schema
from fairopt.problem.files.cluster import cluster_schema
from fairopt.problem.files.documents import json_text, toml_text
from fairopt.problem.files.trace import trace_schema
from fairopt.problem.labels import nearest
from fairopt.testing.strategies import markets

CONTRACT = """\
schema   = 1
types    = ["K80", "V100"]
capacity = [60, 12]

[[user]]
name    = "A"
speedup = [1, 1.25]
weight  = 1
demand  = 4

[[user]]
name = "B"
[[user.job]]
name = "train"
speedup = [1, 5]
[[user.job]]
name = "tune"
speedup = [1, 3]
"""
TABLE = "user,weight,demand,K80,V100\nA,2,4,1,1.25\nB,,,0.1,5/3\ncapacity,,,60,12\n"
VALIDATOR = jsonschema.Draft202012Validator(market_schema())
round_trip = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(folder: Path, suffix: str, text: str | bytes) -> Market:
    path = folder / f"market{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_market(path)


def refused(folder: Path, suffix: str, text: str | bytes) -> str:
    with pytest.raises(BadInput) as caught:
        read(folder, suffix, text)
    name = str(folder / f"market{suffix}")
    assert str(caught.value).startswith(f"{name}: ")
    return str(caught.value).removeprefix(f"{name}: ")


# -- what is read -------------------------------------------------------------------------------------------------
def test_the_contract_s_example_is_read(tmp_path: Path) -> None:
    expected = Market.of(
        [[1, "5/4"], [1, 5], [1, 3]],
        [60, 12],
        weight=[1, "1/2", "1/2"],
        demand=[4, None, None],
        users=["A", "B/train", "B/tune"],
        types=["K80", "V100"],
        owner=["A", "B", "B"],
    )
    assert read(tmp_path, ".toml", CONTRACT) == expected
    assert read_market(tmp_path / "market.toml") == expected
    assert read_market(str(tmp_path / "market.toml")) == expected


@pytest.mark.parametrize("literal", ["0.1", "1e-1", '"1/10"', '"0.1"', '" 1 / 10 "'])
@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_decimals_are_exact(tmp_path: Path, suffix: str, literal: str) -> None:
    texts = {
        ".toml": 'schema = 1\ntypes = ["a"]\ncapacity = [@]\nuser = [{name = "A", speedup = [1]}]\n',
        ".json": '{"schema": 1, "types": ["a"], "capacity": [@], "user": [{"name": "A", "speedup": [1]}]}',
    }
    assert read(tmp_path, suffix, texts[suffix].replace("@", literal)).capacity[0] == Fraction(1, 10)


def test_weights_and_demands_are_divided_among_jobs_in_proportion() -> None:
    data: dict[str, Any] = {"schema": 1, "types": ["a"], "capacity": [9]}
    jobs = [{"name": "x", "speedup": [1], "weight": 2}, {"name": "y", "speedup": [1]}]
    market = market_from_dict(data | {"user": [{"name": "B", "weight": 6, "demand": 9, "job": jobs}]})
    assert market.weight.tolist() == [4, 2]
    assert market.limit.tolist() == [6, 3]
    own = [job | {"demand": 5} for job in jobs]
    market = market_from_dict(data | {"user": [{"name": "B", "job": own}]})
    assert market.weight.tolist() == [Fraction(2, 3), Fraction(1, 3)]
    assert market.limit.tolist() == [5, 5]


def test_a_user_of_one_job_may_be_written_either_way() -> None:
    data: dict[str, Any] = {"schema": 1, "types": ["a"], "capacity": [9]}
    plain = market_from_dict(data | {"user": [{"name": "A", "speedup": [2], "weight": 3}]})
    job = market_from_dict(data | {"user": [{"name": "A", "weight": 3, "job": [{"name": "x", "speedup": [2]}]}]})
    assert (plain.users, job.users, job.owner) == (("A",), ("A/x",), ("A",))
    assert plain.weight.tolist() == job.weight.tolist() == [3]
    assert plain.speedup.tolist() == job.speedup.tolist()


@pytest.mark.parametrize("change", [lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n"), lambda t: t + "\n\n"])
def test_byte_order_marks_and_line_ends_are_tolerated(tmp_path: Path, change: Callable[[str], str]) -> None:
    assert read(tmp_path, ".toml", change(CONTRACT)) == read(tmp_path, ".toml", CONTRACT)
    assert read(tmp_path, ".csv", change(TABLE)) == read(tmp_path, ".csv", TABLE)


def test_a_table_is_read_with_columns_and_rows_in_any_order(tmp_path: Path) -> None:
    expected = Market.of(
        [[1, "1.25"], ["0.1", "5/3"]],
        [60, 12],
        weight=[2, 1],
        demand=[4, None],
        users=["A", "B"],
        types=["K80", "V100"],
    )
    assert read(tmp_path, ".csv", TABLE) == expected
    other = 'user,K80,demand,V100,weight\ncapacity,60,,12,\n"A", 1,4,1.25,2\nB,0.1,,5/3,\n'
    assert read(tmp_path, ".csv", other) == expected


# -- round trips --------------------------------------------------------------------------------------------------
@given(market=markets(demands=True, jobs=True, max_value=1000))
@round_trip
def test_toml_and_json_give_a_market_back_exactly(market: Market, tmp_path: Path) -> None:
    data = market_to_dict(market)
    assert market_from_dict(data) == market
    assert market_from_dict(json.loads(json.dumps(data))) == market
    assert not list(VALIDATOR.iter_errors(data))
    for suffix in (".toml", ".json"):
        path = tmp_path / f"market{suffix}"
        write_market(market, path)
        again = read_market(path)
        assert again == market
        assert all(type(value) is Fraction for value in again.speedup.ravel())
        text = path.read_bytes()
        write_market(again, path)
        assert path.read_bytes() == text


@given(market=markets(demands=True))
@round_trip
def test_csv_gives_a_market_back_exactly(market: Market, tmp_path: Path) -> None:
    write_market(market, tmp_path / "market.csv")
    assert read_market(tmp_path / "market.csv") == market


def test_names_survive(tmp_path: Path) -> None:
    names = ['say "hi"', "back\\slash", "comma, semicolon;", "Ωμέγα", "a/b", "# no comment", "'single'", "=1+1", "[x]"]
    market = Market.of([[1]] * len(names), [1], users=names, types=['T"1'])
    for suffix in (".toml", ".json", ".csv"):
        write_market(market, tmp_path / f"market{suffix}")
        assert read_market(tmp_path / f"market{suffix}") == market


def test_numbers_are_written_plainly() -> None:
    data = market_to_dict(Market.of([["3", "1.25", "1/3", "0.00001"]], [2**63, 1, 1, 1]).as_(Fraction))
    assert data["user"][0]["speedup"] == [3, 1.25, "1/3", 0.00001]
    assert [type(value) for value in data["user"][0]["speedup"]] == [int, float, str, float]
    assert data["capacity"][0] == str(2**63)


def test_a_market_in_floats_is_written_as_its_decimals(tmp_path: Path) -> None:
    market = Market.of([["0.1", "1.25"]], [1, 1])
    write_market(market.as_(float), tmp_path / "m.toml")
    assert read_market(tmp_path / "m.toml") == market


@pytest.mark.parametrize(
    ("market", "suffix", "words"),
    [
        (Market.of([[1]], [1], users=["B/x"], owner=["B"]), ".csv", "job types"),
        (Market.of([[1]], [1], users=["capacity"]), ".csv", "'capacity'"),
        (Market.of([[1]], [1], types=["Weight"]), ".csv", "'Weight'"),
        (Market.of([[1]], [1], users=[" A"]), ".csv", "' A'"),
        (Market.of([[1]], [1], users=["x"], owner=["B"]), ".toml", "belongs to 'B'"),
        (Market.of([[1]] * 3, [1], users=["B/x", "A", "B/y"], owner=["B", "A", "B"]), ".toml", "stand together"),
        (Market.of([[1]], [1]), ".yaml", ".toml, .json, .csv"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path: Path, market: Market, suffix: str, words: str) -> None:
    path = tmp_path / f"market{suffix}"
    with pytest.raises(BadInput) as caught:
        write_market(market, path)
    assert words in str(caught.value)
    assert not path.exists()


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot write"):
        write_market(Market.of([[1]], [1]), tmp_path / "no" / "folder.toml")


# -- messages -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema   = 1\n", "", "the top level: the key 'schema' is missing. Add schema = 1"),
        ("= 1\n", "= 2\n", "schema: got version 2. This fairopt understands schema 1; write the integer 1"),
        ("types ", "type ", "the top level: unknown key 'type'. Did you mean 'types'?"),
        ("capacity = [60, 12]", "", "the top level: the key 'capacity' is missing. Add capacity"),
        ("speedup = [1, 1.25]", "speedups = [1, 2]", "user 1 ('A'): unknown key 'speedups'. Did you mean 'speedup'?"),
        ("[1, 5]", "[1, nan]", "user 2 ('B'), job 1 ('train'), speedup on 'V100': got NaN. Give a finite number"),
        (
            "[1, 5]",
            "[1]",
            "user 2 ('B'), job 1 ('train'), speedup: 1 speedup for 2 types. "
            "Give one for each of K80, V100; 0 where the user cannot run",
        ),
        ('"tune"', '"train"', "user 2 ('B'), job 2 ('train'): job 1 has the same name. Give each a name of its own"),
        ("weight  = 1", "weight  = 0", "user 1 ('A'), weight: got 0. Give a positive weight, or leave the key out"),
        (
            "demand  = 4",
            "demand  = 0",
            "user 1 ('A'), demand: got 0. Give a positive demand, or leave out who demands nothing",
        ),
        (
            "demand  = 4",
            "job = []",
            "user 1 ('A'): both 'speedup' and 'job'. "
            "Give speedup for a user of one job type, and job, a list, for one of several",
        ),
        ("[60, 12]", "[60, 12", "line 5, column 1: not TOML: Unclosed array. Correct the syntax there"),
        (
            "1.25",
            "1e99999999999999999999",
            "line 7: got '1e99999999999999999999'. Choose units in which the numbers are of ordinary size",
        ),
    ],
)
def test_toml_messages(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CONTRACT
    assert refused(tmp_path, ".toml", CONTRACT.replace(old, new, 1)) == message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("B,,,0.1,5/3", "B,,,0.1", "line 3 ('B'): 4 cells for 5 columns"),
        ("5/3", "", "line 3 ('B'), column 'V100': the cell is blank"),
        ("5/3", "1e400", "line 3 ('B'), column 'V100': got '1e400'"),
        ("0.1,5/3", "0,0", "line 3 ('B'), speedup: the user can run nowhere"),
        ("A,2", "A,0", "line 2 ('A'), weight: got 0"),
        ("K80,V100", "K80,K80", "line 1, column 5: the column 'K80' stands twice"),
        ("capacity", "total", "line 4: no row is called 'capacity'"),
        ("B,", "capacity,", "'capacity' stands in line 3 too"),
        ("user,weight", "user,Weight", "line 1, column 2: unknown column 'Weight'"),
        ("user,", "name,", "line 1: the first column is 'name'"),
        ("B,", '"B,', "line 4: not CSV"),
        ("60", "x", "line 4 ('capacity'), column 'K80': got 'x', not a number"),
    ],
)
def test_csv_messages(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in TABLE
    assert words in refused(tmp_path, ".csv", TABLE.replace(old, new, 1))


def test_json_messages(tmp_path: Path) -> None:
    assert refused(tmp_path, ".json", '{"schema": 1,\n "types": }').startswith("line 2, column 11: not JSON")
    assert "key 'types': the key stands twice" in refused(tmp_path, ".json", '{"types": 1, "types": 2}')
    assert "got [1]. Give an object" in refused(tmp_path, ".json", "[1]")
    assert "nested too deeply" in refused(tmp_path, ".json", "[" * 100_000)
    assert "byte 0xff is not UTF-8" in refused(tmp_path, ".json", b'{\n"\xff"}')


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "market.toml").write_text(CONTRACT)
    (tmp_path / "folder.toml").mkdir()
    for other in ("notes", "notes.yaml"):
        (tmp_path / other).write_text(CONTRACT)
    for name, words in [
        ("markte.toml", "there is no such file. Did you mean 'market.toml'?"),
        ("none/market.toml", "There is no folder"),
        ("folder.toml", "this is a directory"),
        ("market.yml", "there is no such file. Did you mean 'market.toml'?"),
        ("notes.yaml", "its name: it ends in '.yaml'. Give a file that ends in .toml, .json, .csv"),
        ("notes", "its name: it has no suffix"),
        ("nul\0.toml", "cannot read"),
    ]:
        with pytest.raises(BadInput) as caught:
            read_market(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name))
        assert words in str(caught.value)


# -- the published schema -----------------------------------------------------------------------------------------
def data() -> dict[str, Any]:
    return {
        "schema": 1,
        "types": ["K80", "V100"],
        "capacity": [60, "12"],
        "user": [
            {"name": "A", "speedup": [1, 1.25], "weight": "4/3", "demand": 4},
            {
                "name": "B",
                "job": [{"name": "x", "speedup": [0, " 1e3 "], "demand": 2}, {"name": "y", "speedup": [1, 2]}],
            },
        ],
    }


STRUCTURE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no types": lambda d: d.pop("types"),
    "no schema": lambda d: d.pop("schema"),
    "version": lambda d: d.update(schema=2),
    "version in words": lambda d: d.update(schema="1"),
    "version true": lambda d: d.update(schema=True),
    "unknown key": lambda d: d.update(gpus=1),
    "unknown user key": lambda d: d["user"][0].update(tickets=1),
    "unknown job key": lambda d: d["user"][1]["job"][0].update(priority=1),
    "no name": lambda d: d["user"][0].pop("name"),
    "blank name": lambda d: d["user"][0].update(name=" "),
    "long name": lambda d: d["user"][0].update(name="n" * 201),
    "neither": lambda d: d["user"][0].pop("speedup"),
    "both": lambda d: d["user"][1].update(speedup=[1, 1]),
    "no jobs": lambda d: d["user"][1].update(job=[]),
    "no users": lambda d: d.update(user=[]),
    "users in a table": lambda d: d.update(user={"A": 1}),
    "negative": lambda d: d.update(capacity=[-1, 1]),
    "text": lambda d: d["user"][0].update(speedup=[1, "fast"]),
    "truth": lambda d: d["user"][0].update(speedup=[1, True]),
    "nothing": lambda d: d["user"][0].update(demand=None),
    "no weight": lambda d: d["user"][0].update(weight=0),
    "two demands": lambda d: d["user"][1].update(demand=3),
    "number for a list": lambda d: d.update(capacity=12),
    "same types": lambda d: d.update(types=["K80", "K80"]),
}


def test_the_schema_is_one_and_accepts_what_the_reader_accepts() -> None:
    jsonschema.Draft202012Validator.check_schema(market_schema())
    assert not list(VALIDATOR.iter_errors(data()))
    market_from_dict(data())


@pytest.mark.parametrize("error", STRUCTURE)
def test_structural_errors_are_rejected_by_schema_and_reader(error: str) -> None:
    broken = copy.deepcopy(data())
    STRUCTURE[error](broken)
    assert list(VALIDATOR.iter_errors(broken))
    with pytest.raises(BadInput) as caught:
        market_from_dict(broken, file="given.json")
    assert str(caught.value).startswith("given.json: ")


def test_two_users_of_one_name_are_refused_even_where_their_rows_differ() -> None:
    broken = data()
    broken["user"].append({"name": "B", "job": [{"name": "z", "speedup": [1, 2]}]})
    with pytest.raises(BadInput, match=r"user 3 \('B'\): user 2 has the same name"):
        market_from_dict(broken)


@pytest.mark.parametrize("made", [market_schema, cluster_schema, trace_schema, batch_schema])
def test_every_key_of_a_schema_is_described(made: Callable[[], dict[str, Any]]) -> None:
    schema = made()
    jsonschema.Draft202012Validator.check_schema(schema)
    for table in (schema, *schema["$defs"].values()):
        assert table["properties"]
        assert all(value["description"].endswith(".") for value in table["properties"].values())


def test_a_list_of_numbers_stands_in_one_line_whatever_is_in_the_names() -> None:
    data = {
        "names": ["a ], b,", "[", '{"q', "x\\", "#"],
        "lists": [[1, 0.5], ["1/3"]],
        "empty": [],
        "table": [{"a": [1, 2]}],
    }
    assert tomllib.loads(toml_text(data)) == json.loads(json_text(data)) == data
    assert '"names": ["a ], b,", "[", ' in json_text(data)
    assert "a = [1, 2]" in toml_text(data)


def test_reading_imports_neither_pandas_nor_a_solver(tmp_path: Path) -> None:
    (tmp_path / "market.toml").write_text(CONTRACT)
    code = (
        "import sys; from fairopt.problem import read_market; read_market(sys.argv[1]); "
        "print({'pandas', 'highspy', 'cvxpy', 'pyomo', 'hypothesis'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "market.toml")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(("given_", "meant"), [("GOOD.CSV", "good.csv"), ("k80", "K80"), ("Goood.csv", "good.csv")])
def test_what_is_meant_is_told_whatever_the_case_of_letters(given_: str, meant: str) -> None:
    assert nearest(given_, ["good.csv", "K80", "other"]) == f"Did you mean {meant!r}?"
