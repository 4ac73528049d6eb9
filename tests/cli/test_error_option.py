"""`--error`: verdicts for all speedups within an error of measurement, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

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
def given(tmp_path: Path) -> tuple[Path, Path]:
    """Return a market, and shares that nobody envies up to an error of 20%."""
    market, shares = tmp_path / "market.toml", tmp_path / "shares.csv"
    market.write_text(MARKET, encoding="utf-8")
    shares.write_text("user,K80,V100\nA,1,1/3\nB,0,2/3\n", encoding="utf-8")
    return market, shares


def test_verify_says_up_to_which_error_it_holds(
    fairopt: Callable[..., Ran], given: tuple[Path, Path], tmp_path: Path
) -> None:
    ran = fairopt("verify", *given, "--error", "10%")
    assert ran.status == 0
    assert "Verdicts are for all speedups within an error of 10%." in ran.out
    ran = fairopt("verify", *given, "--error", "0.3", "--certificates", tmp_path / "c")
    assert ran.status == 4
    assert "depends: it holds up to an error of 20%; it changes where A runs at 0.8 on K80 and 2.4 on V100" in ran.out
    assert "it holds up to an error of 22.51%; beyond, trades may make all better off: A gives K80 to B" in ran.out
    ran = fairopt("check", tmp_path / "c")
    assert ran.status == 0
    assert {f"pareto_efficiency-{end}.json: accepted" in ran.out for end in ("holds", "fails")} == {True}
    found = fairopt("verify", *given, "--error", "30%", "--exact", "--json").data["properties"]
    boundary = found["sharing_incentive"]["boundary"]
    assert (boundary["error"], boundary["part"], boundary["user"]) == ("1/5", "2/3", "A")
    assert set(found["pareto_efficiency"]["boundary"]) == {"part", "error", "trades"}


def test_compare_says_who_keeps_what_up_to_which_error(fairopt: Callable[..., Ran], given: tuple[Path, Path]) -> None:
    policies = [f"--policy={name}" for name in ("max-min", "oef-cooperative", "oef-cooperative-robust")]
    ran = fairopt("compare", given[0], "--error", "30%", "--property", "envy_freeness", *policies)
    assert ran.status == 4
    assert "Verdicts are for all true speedups within an error of 30%" in ran.out
    cells = {
        line.split()[0]: line
        for line in ran.out.splitlines()
        if line.startswith(" ") and line.strip() and ": " not in line
    }
    assert "to 20%" in cells["max-min"]
    assert "to 0%" in cells["oef-cooperative"]
    assert " yes " in cells["oef-cooperative-robust"]


def test_solve_decides_for_the_worst(fairopt: Callable[..., Ran], given: tuple[Path, Path]) -> None:
    ran = fairopt("solve", given[0], "--policy=oef-cooperative-robust", "--error=10%", "--exact", "--json")
    assert ran.data["allocation"] == [["1", "13/44"], ["0", "31/44"]]


@pytest.mark.parametrize(
    ("error", "wrong"), [("150%", "got 1.5. "), ("-5%", "got -0.05. "), ("five", "got 'five', not a number. ")]
)
def test_what_is_no_error_is_refused(
    fairopt: Callable[..., Ran], given: tuple[Path, Path], error: str, wrong: str
) -> None:
    ran = fairopt("verify", *given, f"--error={error}")
    assert (ran.status, ran.out) == (2, "")
    assert f"--error: {wrong}" in ran.err


def test_a_batch_has_no_such_error(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt("compare", "@astraea-example", "--error", "5%")
    assert ran.status == 2
    assert "--error: it means nothing for a batch" in ran.err


def test_solve_bounds_what_a_user_has_at_worst(fairopt: Callable[..., Ran], given: tuple[Path, Path]) -> None:
    asked = ("solve", given[0], "--policy", "equal-split", "--error", "10%", "--at-worst")
    assert (
        "A truly gets, at worst, 1 of its equal share, whatever is reported in the range (exact"
        in fairopt(*asked, "A").out
    )
    worst = fairopt(*asked, "A", "--exact", "--json").data["at_worst"]
    assert (worst["least"], worst["most"], worst["exact"]) == ("1", "1", True)
    refused = fairopt(*asked, "C")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "C" in refused.err
