"""What commands are given: standard input, data sets by name, CSV of other tools, and options once."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ran_command import Ran
from typer import core

from fairopt import discovery
from fairopt.cli.given import suffix_told
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput
from fairopt.problem import Market

TOML = dataset_path("oef_example.toml").read_text()
CSV = "user,GPU1,GPU2\nu1,1,2\nu2,1,5\ncapacity,1,1\n"


@pytest.fixture
def piped(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run ``fairopt`` with arguments, and a text, or bytes, on standard input."""

    def run(given: str | bytes, *arguments: object) -> Ran:
        data = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return fairopt(*arguments)

    return run


# -- standard input ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("# a comment\nschema = 1\n", ".toml"),
        ("[[user]]\n", ".toml"),
        (' {"schema": 1,\n "types": []}', ".json"),
        ('{"schema": 1}', ".json"),
        ('{"schema": 2, "run": {}}\n{"end": 0}\n', ".jsonl"),
        ("\ufeffuser,K80\n", ".csv"),
        ("user;K80\n", ".csv"),
        ("user\tK80\n", ".csv"),
        ("# by kubectl\napiVersion: v1\nitems: []\n", ".yaml"),
        ("---\nkind: Queue\n", ".yaml"),
        ('<?xml version="1.0"?>\n', ".xml"),
        ("Account|User|RawShares\n", ".txt"),
        ("PK\x03\x04", ".zip"),
    ],
)
def test_content_tells_the_format(text: str, suffix: str) -> None:
    assert suffix_told(text.encode()) == suffix
    assert suffix_told(gzip.compress(text.encode())) == f"{suffix}.gz"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello\n", "'hello' begins no TOML, JSON, YAML or CSV. Save it as a file whose ending says what it is"),
        (b"", "it is empty. Send a file to it"),
        (gzip.compress(TOML.encode(), mtime=0)[:40], "not gzip"),
    ],
)
def test_content_that_tells_nothing(piped: Callable[..., Ran], data: bytes, says: str) -> None:
    ran = piped(data, "solve", "-", "--policy", "max-min")
    assert ran.status == 2
    assert ran.err.startswith("fairopt: standard input: ")
    assert says in ran.err


@pytest.mark.parametrize("text", [TOML, CSV, CSV.replace(",", ";"), CSV.replace(",", "\t")])
def test_a_market_on_standard_input(piped: Callable[..., Ran], text: str) -> None:
    assert piped(text, "solve", "-", "--policy", "max-min", "--json").data["status"] == "optimal"


@pytest.mark.parametrize(
    ("file", "reader"),
    [("kueue/story3.yaml", "kueue"), ("slurm/sshare.txt", "slurm"), ("slurm/nodes.txt", "slurm")],
)
def test_a_schedulers_file_on_standard_input(piped: Callable[..., Ran], file: str, reader: str) -> None:
    text = (dataset_path("gavel.toml").parent / "clusters" / file).read_text()
    ran = piped(text, "audit", "-")
    assert "begins no" not in ran.err
    assert f"read by {reader}" in ran.out or "no user associations" in ran.err


def test_a_zip_on_standard_input(piped: Callable[..., Ran]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("one.json", "{}")
        file.writestr("two.json", "{}")
    assert "2 files and no snapshot.json" in piped(packed.getvalue(), "audit", "-", "--from", "kai").err


def test_every_file_of_every_command_may_be_standard_input(piped: Callable[..., Ran], tmp_path: Path) -> None:
    solved = piped(
        TOML, "solve", "-", "--policy", "oef-cooperative", "--exact", "--json", "--certificate", tmp_path / "c.json"
    )
    assert piped(solved.out, "verify", "@oef-example", "-").status == 0
    assert piped(TOML, "lie", "-", "--policy", "equal-split", "--evaluations", 3).status == 0
    assert piped(TOML, "compare", "-", "--policy", "max-min", "--floats", "--evaluations", 3).status == 0
    plan = piped(dataset_path("astraea_example.toml").read_text(), "schedule", "-", "--policy", "fcfs", "--json")
    assert piped(plan.out, "verify", "@astraea-example", "-").status in (0, 1, 4)
    cluster = dataset_path("philly_cluster.toml").read_text()
    record = tmp_path / "run.jsonl"
    played = ("--policy", "srtf", "--rounds", 1, "--floats")
    assert piped(cluster, "run", "@philly", "--cluster", "-", *played, "--record", record).status == 0
    packed = gzip.compress(dataset_path("philly_1000.csv").read_bytes())
    state = tmp_path / "state.jsonl"
    assert piped(packed, "run", "-", "--cluster", "@philly", *played, "--state", state).status == 0
    assert piped(state.read_text(), "run", "@philly", "--cluster", "@philly", *played, "--resume", "-").status == 0
    assert piped(record.read_text(), "verify", "-", "--property", "lease_kept").status == 4
    checked = piped((tmp_path / "c.json").read_text(), "check", "-")
    assert checked.status == 0
    assert checked.out.startswith("standard input: accepted: ")


def test_messages_call_it_standard_input(piped: Callable[..., Ran]) -> None:
    ran = piped("schema = 1\nuser = 3\n", "solve", "-", "--policy", "max-min")
    assert ran.status == 2
    assert ran.err.startswith("fairopt: standard input: ")
    assert piped("schema = 1\n[[host]]\n", "compare", "-").err.startswith("fairopt: standard input: it is a cluster")
    toml = piped("schema = 1\n", "verify", "@oef-eq6", "-")
    assert toml.err == "fairopt: standard input: its content: it reads as .toml. Give .csv, .json\n"


def test_standard_input_is_one_file(piped: Callable[..., Ran]) -> None:
    ran = piped(TOML, "verify", "-", "-")
    assert ran.status == 2
    assert "allocation: standard input is taken already. Give a file" in ran.err


# -- data sets ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line",
    [
        "solve @gavel --policy max-min",
        "solve @oef-example --policy max-min",
        "compare @oef-eq6 --policy equal-split --evaluations 3",
        "lie @oef-example --policy equal-split --evaluations 3",
        "run @philly --cluster @philly --policy srtf --rounds 1 --floats",
        "run @philly-trace --cluster @philly-cluster --policy srtf --rounds 1 --floats",
        "schedule @astraea-small --policy fcfs",
        "compare @astraea-example --policy fcfs --property budget_balance",
    ],
)
def test_data_sets_by_name(fairopt: Callable[..., Ran], line: str) -> None:
    assert fairopt(*line.split()).status == 0


def test_a_data_set_of_another_package(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    def theirs() -> Market:
        """Return theirs."""
        return Market.of([[1, 3]], [2, 2], users=["only"])

    load, names = discovery.load, discovery.names
    monkeypatch.setattr(discovery, "names", lambda group: [*names(group), "theirs"])
    monkeypatch.setattr(discovery, "load", lambda group, name: theirs if name == "theirs" else load(group, name))
    assert fairopt("solve", "@theirs", "--policy", "max-min", "--json").data["users"] == ["only"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("solve @gavle --policy max-min", "@gavle: no data set of that name is a market. Did you mean @gavel?"),
        ("solve @oef --policy max-min", "@oef: 2 data sets begin so. Give @oef-eq6 or @oef-example"),
        ("solve @philly --policy max-min", "@philly: no data set of that name is a market. Give @"),
        ("solve @zzz --policy max-min", "`fairopt datasets` lists all"),
        ("solve @philly-trace --policy max-min", "@philly-trace: the top level: the key 'job' is that of a trace"),
        ("compare @philly", "@philly-trace is a trace, and nothing says on which cluster it is played"),
    ],
)
def test_what_is_no_data_set(fairopt: Callable[..., Ran], line: str, says: str) -> None:
    ran = fairopt(*line.split())
    assert ran.status == 2
    assert says in ran.err


def test_a_file_of_that_name_is_a_file(
    fairopt: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("@gavel.csv").write_text(CSV)
    assert fairopt("solve", "@gavel.csv", "--policy", "max-min", "--json").data["users"] == ["u1", "u2"]


# -- CSV of other tools ------------------------------------------------------------------------------------------------
def solved(fairopt: Callable[..., Ran], folder: Path, text: str, *options: str) -> Ran:
    (folder / "m.csv").write_text(text)
    return fairopt("solve", folder / "m.csv", "--policy", "max-min", "--json", *options)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(fairopt: Callable[..., Ran], tmp_path: Path, separator: str) -> None:
    text = f'user{separator}"a,b;c,d"{separator}V100\nx{separator}1{separator}2.5\ncapacity{separator}1{separator}1\n'
    data = solved(fairopt, tmp_path, text).data
    assert data["types"] == ["a,b;c,d", "V100"]
    shares = tmp_path / "shares.csv"
    shares.write_text(
        text.replace("capacity", "y").replace("y", "x", 0).splitlines()[0] + f"\nx{separator}1{separator}1\n"
    )
    assert fairopt("verify", tmp_path / "m.csv", shares).status == 0
    assert fairopt("compare", tmp_path / "m.csv", "--policy", "max-min", "--evaluations", 3).status == 0


def test_a_decimal_comma_is_named(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = solved(fairopt, tmp_path, "user;K80;V100\nx;1;2,5\ncapacity;1;1\n")
    assert ran.status == 2
    assert "line 2 ('x'), column 'V100': got '2,5', not a number. Write 3, 2.5" in ran.err


@pytest.mark.parametrize(
    ("column", "meant"),
    [("priority", "weight"), ("Tickets", "weight"), ("wieght", "weight"), ("demands", "demand"), ("gpus", "demand")],
)
def test_an_unknown_column_is_no_type(fairopt: Callable[..., Ran], tmp_path: Path, column: str, meant: str) -> None:
    text = f"user,{column},K80\nx,3,1\ny,1,2\ncapacity,1,4\n"
    ran = solved(fairopt, tmp_path, text)
    assert ran.status == 2
    assert f"unknown column {column!r}. Call it {meant}, or leave it out" in ran.err
    assert ran.err.endswith(f"--type {column}\n")
    assert solved(fairopt, tmp_path, text, "--type", column).data["types"] == [column, "K80"]


def test_a_column_without_gpus_is_no_type(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = solved(fairopt, tmp_path, "user,rank,K80\nx,3,1\ncapacity,,4\n")
    assert ran.status == 2
    assert (
        "column 'rank': the cell is blank. Write how many GPUs there are of this type; leave the column out" in ran.err
    )


@pytest.mark.parametrize("suffix", [".toml", ".csv"])
def test_types_that_are_not_there(fairopt: Callable[..., Ran], tmp_path: Path, suffix: str) -> None:
    market = tmp_path / f"m{suffix}"
    market.write_text(TOML if suffix == ".toml" else CSV)
    for command in (("solve", market), ("lie", market), ("compare", market), ("verify", market, market)):
        ran = fairopt(
            *command, *(() if command[0] in ("compare", "verify") else ("--policy", "max-min")), "--type", "x"
        )
        assert ran.status == 2
        assert "--type: " in ran.err


def test_what_is_written_as_csv_can_be_read() -> None:
    from fairopt.problem.files.market_csv import market_to_csv

    with pytest.raises(BadInput, match="the name 'priority'"):
        market_to_csv(Market.of([[1, 2]], [1, 1], types=["priority", "K80"]))


# -- options -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line",
    [
        "solve @gavel --policy max-min --policy equal-split",
        "run @philly --cluster @philly --policy srtf --policy=fft",
        "schedule @astraea-small --policy fcfs --policy fcfs",
        "solve @gavel --policy max-min --seed 1 --seed 2",
        "bench run max-min --workers 1 --workers 2",
    ],
)
def test_an_option_is_given_once(fairopt: Callable[..., Ran], line: str) -> None:
    ran = fairopt(*line.split())
    assert ran.status == 2
    assert "it is given twice. Give it once" in ran.err
    assert ran.out == ""


def test_options_that_may_be_repeated_are(fairopt: Callable[..., Ran]) -> None:
    asked = ("--policy", "equal-split", "--policy", "max-min", "--json", "--floats", "--floats", "--evaluations", 3)
    assert list(fairopt("compare", "@oef-eq6", *asked).data["policies"]) == ["equal-split", "max-min"]


def test_allocations_of_a_comparison(fairopt: Callable[..., Ran]) -> None:
    asked = ("compare", "@oef-eq6", "--policy", "equal-split", "--evaluations", 3)
    ran = fairopt(*asked, "--allocations")
    head, rows = ran.out.split("equal-split gives:")
    assert ["u1", "0.5", "0.5", "1.5", "1.5", "█" * 20, "1.00"] in [line.split() for line in rows.splitlines()]
    assert head.rstrip() == fairopt(*asked).out.rstrip()
    assert fairopt("compare", "@astraea-small", "--allocations").status == 2


# -- policies ----------------------------------------------------------------------------------------------------------
def test_what_a_policy_can_be_told(fairopt: Callable[..., Ran]) -> None:
    [told] = fairopt("policies", "fft", "--json").data
    options = {each["name"]: each for each in told["options"]}
    assert options["remaining"]["type"] == "true or false"
    assert options["remaining"]["default"] == "false"
    assert options["remaining"]["meaning"].startswith("the volume d_j W_j / theta counts the remaining work.")
    shown = fairopt("policies", "fft").out
    assert all(name in shown for name in options)
    assert fairopt("policies", "ftt").status == 2


def test_every_option_has_a_meaning(fairopt: Callable[..., Ran]) -> None:
    for policy in fairopt("policies", "--json").data:
        for option in policy["options"]:
            assert all(option.values()), (policy["name"], option)
            assert "object at" not in json.dumps(option)


@pytest.mark.parametrize("policy", ["gavel-rounds", "oef-rounds", "split-stride"])
def test_the_list_says_what_claims_assume(fairopt: Callable[..., Ran], policy: str) -> None:
    found: Any = discovery.policy(policy)
    out = " ".join(fairopt("policies").out.split())
    assert all(f"{claim.said()} if {claim.assumes}" in out for claim in found.claims if claim.assumes)


def test_a_data_set_is_written_by_the_names_that_other_commands_take(
    fairopt: Callable[..., Ran], tmp_path: Path
) -> None:
    for name in ("gavel", "@gavel", "gavel-example"):
        assert fairopt("datasets", name, "--out", tmp_path / "gavel.toml").status == 0
    unknown = fairopt("datasets", "nothing")
    assert unknown.status == 2
    assert "there is no such data set" in unknown.err


def test_values_are_read_where_typer_asks_for_them_in_another_way(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = next(each for each in core.TyperOption.__mro__ if "get_runtime_param" in vars(each))
    asks = owner.get_runtime_param
    monkeypatch.delattr(owner, "get_runtime_param")
    old = core.TyperOption.process_value

    def process(self: Any, ctx: Any, value: Any) -> Any:
        own = SimpleNamespace(**{name: getattr(self, name) for name in dir(self) if not name.startswith("__")})
        own.get_runtime_param = lambda: asks(self)
        return old(own, ctx, value)

    monkeypatch.setattr(owner, "process_value", process)
    assert fairopt("solve", dataset_path("oef_example.toml"), "--policy", "max-min").status == 0
