"""Measured throughputs and a table of who runs what, as a market."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fairopt.datasets import gavel_throughputs
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.importing.throughputs import read
from fairopt.testing.data_suites import importer_suite

USERS = """team,job_type,scale_factor,priority,K80,V100,note
capacity,,,,16,8,
ann,LM (batch size 5),1,2,,,x
bob,A3C,1,1,,,
bob,LM (batch size 5),2,1,,,
"""
#: Throughputs by type, job and GPUs.
MEASURED = {
    ("K80", "LM (batch size 5)", 1): 10.5,
    ("K80", "LM (batch size 5)", 2): 19,
    ("K80", "A3C", 1): 3.25,
    ("V100", "LM (batch size 5)", 1): 45.123456789,
    ("V100", "LM (batch size 5)", 2): 80,
    ("V100", "A3C", 1): 0,
}


def gavel_json() -> str:
    """Return the throughputs as Gavel has them: by type, job and partner; of two jobs on one GPU both."""
    data: dict[str, Any] = {}
    for (kind, job, gpus), value in MEASURED.items():
        inside = {"null": value, "('A3C', 1)": [1.5, 2.5]}
        data.setdefault(kind.lower(), {})[repr((job, gpus))] = inside
        data.setdefault(f"{kind.lower()}_unconsolidated", {})[repr((job, gpus))] = {"null": 1}
    return json.dumps(data)


def long_table() -> str:
    rows = [f"{job},{gpus},{kind},{value}" for (kind, job, gpus), value in MEASURED.items()]
    return "\n".join(["job_type,scale_factor,gpu_type,steps_per_s", *rows])


def wide_table() -> str:
    jobs = dict.fromkeys((job, gpus) for _, job, gpus in MEASURED)
    rows = [f"{job},{gpus},{MEASURED['V100', job, gpus]},{MEASURED['K80', job, gpus]}" for job, gpus in jobs]
    return "\n".join(["model,gpus,v100,k80", *rows])


def with_batch_sizes() -> str:
    return (
        "model;batch_size;scale_factor;placement;gpu_type;throughput\n"
        "LM;5;1;consolidated;K80;10.5\nLM;5;1;unconsolidated;K80;7\nLM;5;1;consolidated;V100;45.123456789\n"
        "LM;5;2;consolidated;K80;19\nLM;5;2;consolidated;V100;80\nA3C;;1;consolidated;K80;3.25\nA3C;;1;;V100;0\n"
    )


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.csv"
    path.write_text(USERS)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("measured.json", gavel_json()),
        ("measured.csv", long_table()),
        ("measured.csv", wide_table()),
        ("measured.csv", with_batch_sizes()),
    ],
)
def test_every_form_gives_the_same_market(tmp_path: Path, users: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    market, unplaced = read(path, users)[:2]
    assert market.users == ("ann", "bob/A3C", "bob/LM (batch size 5)")
    assert market.types == ("K80", "V100")
    assert market.capacity.tolist() == [16, 8]
    assert market.speedup.tolist() == [[10.5, Fraction("45.1235")], [3.25, 0], [9.5, 40]]
    assert market.weight.tolist() == [2, Fraction(1, 2), Fraction(1, 2)]
    said = "\n".join(map(str, unplaced))
    assert "throughputs, note" in said
    assert "rounded to 6 digits" in said


@pytest.mark.parametrize(
    "text",
    [
        '{"K80": {"LM": 2, "A3C": 1}, "V100": {"LM": 3, "A3C": 0}}',
        '{"LM": {"k80": 2, "v100": 3}, "A3C": {"k80": 1, "v100": 0}}',
    ],
)
def test_plain_json_is_by_job_or_by_type(tmp_path: Path, text: str) -> None:
    path, users = tmp_path / "m.json", tmp_path / "u.csv"
    path.write_text(text)
    users.write_text("user,job,K80,V100\nann,LM,,\nbob,A3C,,\ncapacity,,1,1\n")
    assert read(path, users).problem.speedup.tolist() == [[2, 3], [1, 0]]


def test_the_numbers_are_those_of_the_data_set(tmp_path: Path) -> None:
    names = [each.name for each in gavel_throughputs() if None not in each.steps_per_s.values()]
    path, users = tmp_path / "m.json", tmp_path / "u.csv"
    data: dict[str, Any] = {}
    for each in gavel_throughputs():
        for kind, value in each.steps_per_s.items():
            if value is not None:
                data.setdefault(kind, {})[repr((each.name, 1))] = {"null": float(value)}
    path.write_text(json.dumps(data))
    users.write_text(
        "user,job,K80,P100,V100\ncapacity,,1,1,1\n" + "".join(f"{at},{name},,,\n" for at, name in enumerate(names))
    )
    market = read(path, users).problem
    known = {each.name: each.steps_per_s for each in gavel_throughputs()}
    for name, row in zip(names, market.speedup, strict=True):
        assert [float(each) for each in row] == pytest.approx(
            [float(known[name][kind] or 0) for kind in market.types], rel=1e-5
        )


def test_the_command(fairopt: Callable[..., Any], tmp_path: Path, users: Path) -> None:
    measured, out = tmp_path / "m.csv", tmp_path / "market.toml"
    measured.write_text(long_table().replace("job_type", "what").replace("steps_per_s", "rate"))
    named = ["--column", "throughput=rate", "--column", "job=what"]
    users.write_text(USERS.replace("job_type", "what"))
    ran = fairopt("import", "throughputs", measured, users, "--out", out)
    assert "no column holds 'job'. Say which one does: --column job=NAME" in ran.err
    ran = fairopt("import", "throughputs", measured, users, "--out", out, *named)
    assert ran.status == 0, ran.err
    assert fairopt("solve", out, "--policy", "max-min").status == 0
    ran = fairopt("import", "throughputs", measured, "--out", out)
    assert "1 files. Give it 2: throughputs, users" in ran.err


def test_it_conforms(tmp_path: Path, users: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(gavel_json())

    def of_users(given: str) -> Imported:
        return read(path, given)

    def of_throughputs(given: str) -> Imported:
        return read(given, users)

    of_users.__doc__ = of_throughputs.__doc__ = read.__doc__
    importer_suite(users).run([of_users]).require_complete()
    importer_suite(path).run([of_throughputs]).require_complete()


@pytest.mark.parametrize(
    ("table", "text", "says"),
    [
        ("users", USERS.replace("capacity", "total"), "no row is called 'capacity'. Add the row capacity"),
        (
            "users",
            USERS.replace("A3C", "A3"),
            r"line 3|line 4: A3 was not measured on 1 together. Did you mean 'A3C'\?",
        ),
        ("users", USERS.replace("size 5),2", "size 5),4"), "was not measured on 4 together. It was on 1, 2"),
        ("users", USERS.replace("bob,A3C,1,1", "bob,A3C,1,3"), "bob has the weight 1, and 3 above"),
        ("users", USERS.replace("16,8", ","), "no GPU types"),
        ("users", USERS.replace("V100", "H100"), r"was not measured on H100. Give a throughput, 0 where it cannot run"),
        ("users", "user,job,K80\ncapacity,,1\n", "no users"),
        ("users", "user,job,K80\ncapacity,,1\na,b\n", "line 3: 2 cells for 3 columns"),
        (
            "measured",
            "{}",
            "no throughput is on a GPU type that there is. Name the types of the row capacity: K80, V100",
        ),
        ("measured", '{"K80": 3}', "got 3. Give {type: {job: throughput}}"),
        ("measured", '{"K80": {"A3C": "fast"}}', "K80, A3C: got 'fast'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, users: Path, table: str, text: str, says: str) -> None:
    path = tmp_path / "measured.json"
    path.write_text(text if table == "measured" else gavel_json())
    if table == "users":
        users.write_text(text)
    with pytest.raises(BadInput, match=rf"{table}.*{says}"):
        read(path, users)


def test_two_measurements_of_one_thing_are_refused(tmp_path: Path, users: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(long_table() + "\nA3C,1,K80,4\n")
    with pytest.raises(BadInput, match=r"line 8: A3C has 4 on k80, and 3.25 above. Keep one measurement"):
        read(path, users)
    path.write_text("job_type,speed of light\nA3C,1\n")
    with pytest.raises(
        BadInput, match=r"no column holds a throughput. Give a column for each of K80, V100. Or: Say which"
    ):
        read(path, users)
