"""`--error`: verdicts for all speedups within an error of measurement, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairopt.cli.app import app
from fairopt.errors import BadInput

MARKET = """
schema = 1
types = ["K80", "V100"]
capacity = [1, 1]
[[user]]
name = "A"
speedup = [1, 2]
[[user]]
name = "B"
speedup = [1, 5]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    market, shares = tmp_path / "market.toml", tmp_path / "shares.csv"
    market.write_text(MARKET, encoding="utf-8")
    shares.write_text("user,K80,V100\nA,1,1/3\nB,0,2/3\n", encoding="utf-8")
    return str(market), str(shares)


def ran(*arguments: str, status: int) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == status, done.output
    return done.output


def test_verify_says_up_to_which_error_it_holds(files: tuple[str, str], tmp_path: Path) -> None:
    assert "Verdicts are for all speedups within an error of 10%" in ran("verify", *files, "--error", "10%", status=0)
    said = ran("verify", *files, "--error", "0.3", "--certificates", str(tmp_path / "c"), status=4)
    assert "depends: it holds up to an error of 20%; it changes where A runs at 0.8 on K80 and 2.4 on V100" in said
    assert "it holds up to an error of 22.51%; beyond, trades may make all better off: A gives K80 to B" in said
    checked = ran("check", str(tmp_path / "c"), status=0)
    assert {f"pareto_efficiency-{end}.json" in checked for end in ("holds", "fails")} == {True}
    told = json.loads(ran("verify", *files, "--error", "30%", "--exact", "--json", status=4))["properties"]
    boundary = told["sharing_incentive"]["boundary"]
    assert (boundary["error"], boundary["part"], boundary["user"]) == ("1/5", "2/3", "A")
    assert set(told["pareto_efficiency"]["boundary"]) == {"part", "error", "trades"}


def test_compare_says_who_keeps_what_up_to_which_error(files: tuple[str, str]) -> None:
    policies = [f"--policy={name}" for name in ("max-min", "oef-cooperative", "oef-cooperative-robust")]
    said = ran("compare", files[0], "--error", "30%", "--property", "envy_freeness", *policies, status=4)
    assert "Verdicts are for all true speedups within an error of 30%" in said
    cells = {line.split()[0]: line for line in said.splitlines() if line.strip() and not line.startswith("  ")}
    assert "to 20%" in cells["max-min"]
    assert "to 0%" in cells["oef-cooperative"]
    assert "yes" in cells["oef-cooperative-robust"]


def test_solve_decides_for_the_worst(files: tuple[str, str]) -> None:
    told = json.loads(
        ran("solve", files[0], "--policy=oef-cooperative-robust", "--error=10%", "--exact", "--json", status=0)
    )
    assert told["allocation"] == [["1", "13/44"], ["0", "31/44"]]


@pytest.mark.parametrize(
    ("error", "wrong"), [("150%", "got 1.5"), ("-5%", "got -0.05"), ("five", "got 'five', not a number")]
)
def test_what_is_no_error_is_refused(files: tuple[str, str], error: str, wrong: str) -> None:
    refused = CliRunner().invoke(app, ["verify", *files, f"--error={error}"]).exception
    assert isinstance(refused, BadInput)
    assert wrong in str(refused)
    assert refused.place == "--error"
