"""``--write FILE``: the program that a policy asks a solver, as a file for any other solver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import highspy
import pytest
from ran_command import Ran

from fairopt import discovery
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch

THIRDS = 'schema = 1\ntypes = ["A"]\ncapacity = [1]\n[[user]]\nname = "u"\nspeedup = ["1/3"]\n'


def optimum(file: Path) -> float:
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(file))
    highs.run()
    return float(highs.getInfo().objective_function_value)


def with_programs(problem: type) -> list[str]:
    return [each.name for each in discovery.policies(problem) if each.has_program]


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_the_file_has_the_optimum_that_is_printed(fairopt: Callable[..., Ran], tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"oef{suffix}"
    ran = fairopt("solve", "@oef-example", "--policy", "oef-cooperative", "--write", file)
    assert ran.status == 0
    assert ran.out == (
        f"{file}: the program that oef-cooperative asks a solver: rows: 8, variables: 6; every number is exact.\n"
    )
    objective = fairopt("solve", "@oef-example", "--policy", "oef-cooperative", "--json").data["objective"]
    assert optimum(file) == pytest.approx(objective)


def test_numbers_that_are_no_decimals_are_counted(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    market, file = tmp_path / "market.toml", tmp_path / "x.mps"
    market.write_text(THIRDS)
    ran = fairopt("solve", market, "--policy", "max-efficiency", "--write", file, "--json")
    assert ran.data["kind"] == "program"
    assert "rounded to" in ran.data["holds"]


@pytest.mark.parametrize("policy", with_programs(Market))
def test_every_program_of_shares_is_written(fairopt: Callable[..., Ran], tmp_path: Path, policy: str) -> None:
    file = tmp_path / "x.mps"
    market = ["@oef-example"] + (["--error", "5%"] if "robust" in policy else [])
    ran = fairopt("solve", *market, "--policy", policy, "--write", file)
    if policy in ("nash-welfare", "partial-allocation"):
        assert ran.status == 3
        assert "logarithms in its objective, which LP and MPS files cannot hold" in ran.err
    else:
        assert ran.status == 0, ran.err
        assert file.exists()


@pytest.mark.parametrize("policy", with_programs(Queue))
def test_the_first_program_of_rounds_is_written(fairopt: Callable[..., Ran], tmp_path: Path, policy: str) -> None:
    file = tmp_path / "x.mps"
    ran = fairopt("run", "@philly-trace", "--cluster", "@philly-cluster", "--policy", policy, "--write", file)
    assert ran.status == 0, ran.err
    assert f"the first program that {policy} asks a solver" in ran.out
    assert file.exists()


@pytest.mark.parametrize("policy", with_programs(Batch))
def test_the_program_of_a_batch_is_written(fairopt: Callable[..., Ran], tmp_path: Path, policy: str) -> None:
    file = tmp_path / "x.lp"
    assert fairopt("schedule", "@astraea-example", "--policy", policy, "--write", file).status == 0
    assert file.read_text().startswith("\\")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["solve", "@oef-example", "--policy", "equal-split"], "equal-split is a rule and not a program"),
        (["schedule", "@astraea-example", "--policy", "fcfs"], "These ask a solver for one: offline-optimum, packing"),
        (["run", "@philly-trace", "--cluster", "@philly-cluster", "--policy", "srtf"], "srtf is a rule"),
    ],
)
def test_a_rule_has_no_program(fairopt: Callable[..., Ran], tmp_path: Path, command: list[str], says: str) -> None:
    ran = fairopt(*command, "--write", tmp_path / "x.mps")
    assert ran.status == 3
    assert says in ran.err
    assert not (tmp_path / "x.mps").exists()


def test_another_suffix_and_options_that_mean_nothing_are_refused(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", "max-min", "--write", tmp_path / "x.txt")
    assert ran.status == 2
    assert ".mps" in ran.err
    ran = fairopt("solve", "@oef-example", "--policy", "max-min", "--write", tmp_path / "x.mps", "--unique")
    assert ran.status == 2
    assert "--unique" in ran.err
