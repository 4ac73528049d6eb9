"""`fairopt frontier`, as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

from fairopt.datasets import oef_example
from fairopt.frontier import Frontier, frontier
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 50_000_000

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("market", ["@oef-example", pytest.param("@gavel-example", marks=pytest.mark.slow)])
def test_every_curve_of_a_demo_market_is_quick_and_accepted(
    fairopt: Callable[..., Ran], tmp_path: Path, market: str
) -> None:
    with CountedSteps(STEPS):
        ran = fairopt("frontier", market, "--certificates", tmp_path / "proofs")
    assert ran.status == 0, ran.err
    assert "oef-cooperative" in ran.out
    command = [sys.executable, str(ROOT / "proofs" / "verify.py"), str(tmp_path / "proofs")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count(": accepted: the largest ") >= 12


def test_one_curve_as_numbers(fairopt: Callable[..., Ran]) -> None:
    data = fairopt(
        "frontier", "@oef-eq6", "--goal", "total_efficiency", "--property", "sharing_incentive", "--json"
    ).data
    [curve] = data["curves"]
    assert [(point["epsilon"], point["value"]) for point in curve["points"]] == [("0", "21/4"), ("1/3", "6")]
    assert curve["exact"]
    placed = {each["policy"]: each for each in data["policies"]}
    assert placed["max-efficiency"]["epsilons"] == {"sharing_incentive": "1/3"}
    assert placed["max-efficiency"]["distances"] == {"total_efficiency": {"sharing_incentive": "0"}}


@pytest.mark.parametrize(("steps", "done"), [(1, "0 of 2 policies"), (3, "1 of 2 policies")])
def test_who_interrupts_is_told_what_is_known(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, steps: int, done: str
) -> None:
    def interrupted(*given: Any, keep: Callable[[Frontier], None], **named: Any) -> Frontier:
        kept: list[Frontier] = []
        frontier(*given, keep=kept.append, **named)
        keep(kept[steps - 1])
        raise KeyboardInterrupt

    monkeypatch.setattr("fairopt.cli.frontiers.frontier", interrupted)
    asked = ("--goal", "total_efficiency", "--property", "sharing_incentive", "--policy", "max-min")
    ran = fairopt("frontier", "@oef-eq6", *asked, "--policy", "equal-split", "--json")
    assert ran.status == 130
    assert ran.err == f"interrupted: 1 of 1 curve, {done} done\n"
    assert len(ran.data["curves"][0]["points"]) == 2


def test_who_interrupts_before_there_is_a_curve_is_told_just_that(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Guards against drawing nothing, which is refused; with these weights there is no exact Nash welfare."""

    def interrupted(*given: Any, keep: Callable[[Frontier], None], **named: Any) -> Frontier:
        keep(frontier(*given, **named))
        raise KeyboardInterrupt

    monkeypatch.setattr("fairopt.cli.frontiers.frontier", interrupted)
    market = tmp_path / "market.csv"
    market.write_text("user,weight,T\ncapacity,,1\na,1000,1\nb,999,1\n")
    asked = ("--goal", "nash_welfare", "--property", "sharing_incentive", "--policy", "max-min")
    ran = fairopt("frontier", market, *asked, "--html", tmp_path / "page.html")
    assert (ran.status, ran.out, ran.err) == (130, "", "fairopt: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--goal", "total"], "--goal: got 'total'. Give total_efficiency"),
        (["--property", "envy"], "--property: got 'envy'. Give envy_freeness"),
        (["--gap", "much"], "--gap"),
        (["--gap", "-1"], "not negative"),
        (["--out", "curves.doc"], ".png"),
        (["--policy", "max-mn"], "max-min"),
    ],
)
def test_a_mistake_is_named(fairopt: Callable[..., Ran], arguments: list[str], said: str) -> None:
    ran = fairopt("frontier", "@oef-eq6", *arguments)
    assert ran.status == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_gap_may_be_given_in_percent() -> None:
    percent, part = (
        frontier(oef_example(), "nash_welfare", "envy_freeness", policies=[], gap=each).curves[0]
        for each in ("1%", "0.01")
    )
    assert [each.value for each in percent.points] == [each.value for each in part.points]
    assert 0 < percent.gap <= 0.01


def test_one_page_with_all_of_it(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    page, nowhere = tmp_path / "page.html", tmp_path / "nowhere" / "page.html"
    asked = ("frontier", "@oef-eq6", "--goal", "least_gain", "--property", "envy_freeness", "--policy", "max-min")
    assert fairopt(*asked, "--html", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>Frontier of @oef-eq6</title>" in text
    assert text.count("<svg ") == 1
    refused = fairopt(*asked, "--html", nowhere)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--html: " in refused.err
