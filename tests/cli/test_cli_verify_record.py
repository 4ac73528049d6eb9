"""`fairopt verify RECORD`: the properties of a run as it is recorded, whoever played it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

DATA = Path(__file__).parents[2] / "fairopt" / "datasets"


@pytest.fixture
def record(fairopt: Callable[..., Ran], tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl.gz"
    run = ["run", DATA / "philly_1000.csv", "--cluster", DATA / "philly_cluster.toml", "--policy", "fifo-quota"]
    assert fairopt(*run, "--rounds", 30, "--record", path).status == 0
    return path


def test_a_record_has_the_verdicts_that_a_comparison_gives_of_the_run(
    record: Path, fairopt: Callable[..., Ran]
) -> None:
    verified = fairopt("verify", record, "--json")
    assert verified.status == 1
    told = verified.data["properties"]
    trace = ["compare", DATA / "philly_1000.csv", "--cluster", DATA / "philly_cluster.toml", "--rounds", 30]
    compared = fairopt(*trace, "--policy", "fifo-quota", "--json")
    assert told == compared.data["policies"]["fifo-quota"]["properties"]
    assert told["work_conservation_over_time"]["answer"] == "FAILS"
    assert told["lease_kept"]["answer"] == "UNDECIDED"
    assert "not done" in told["lease_kept"]["reason"]


def test_what_is_undecided_alone_has_a_status_of_its_own(record: Path, fairopt: Callable[..., Ran]) -> None:
    status, out, _ = fairopt("verify", record, "--property", "lease_kept")
    assert status == 4
    assert "undecided: the run ends at 9000" in out
    assert "`fairopt check" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["RECORD", "allocation.csv"], "OUTCOME: got allocation.csv"),
        (["RECORD", "--property", "envy_freeness"], "envy_freeness is a property of an allocation"),
        (["nothing.jsonl"], "there is no such file"),
        ([DATA / "oef_example.toml"], "OUTCOME: nothing says what is to be checked"),
    ],
)
def test_mistakes_are_named(words: list[object], said: str, record: Path, fairopt: Callable[..., Ran]) -> None:
    status, out, err = fairopt("verify", *(record if word == "RECORD" else word for word in words))
    assert (status, out) == (2, "")
    assert said in err
