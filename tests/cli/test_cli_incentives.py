"""The command ``incentives``."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from ran_command import Ran

from fairopt.compare.incentives import Incentives, incentives
from fairopt.errors import NotSolved
from fairopt.policy import Policy


def test_the_table_has_what_was_found_and_what_is_proved(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt(
        "incentives", "@oef-eq6", "--policy", "oef-noncooperative", "--policy", "nash-welfare", "--kind", "larger"
    )
    assert ran.status == 0
    line = next(line.split() for line in ran.out.splitlines() if line.strip().startswith("oef-noncooperative"))
    assert line == ["oef-noncooperative", "-", "1"]
    assert "proved of all such lies" in ran.out


def test_an_interrupted_search_prints_what_it_has(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_at_the_second(policy: Policy, *given: Any) -> Incentives:
        if policy.name == "max-min":
            raise KeyboardInterrupt
        return incentives(policy, *given)

    monkeypatch.setattr("fairopt.cli.incentives.incentives", interrupted_at_the_second)
    asked = ("--policy", "equal-split", "--policy", "max-min", "--kind", "larger", "--evaluations", 1)
    ran = fairopt("incentives", "@oef-eq6", *asked, "--json")
    assert (ran.status, list(ran.data["policies"])) == (130, ["equal-split"])
    assert ran.err == "interrupted: 1 of 2 policies done\n"


def test_json_has_the_lie_exactly(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt(
        "incentives", "@oef-eq6", "--policy", "oef-noncooperative", "--kind", "any", "--evaluations", 30, "--json"
    )
    said = json.loads(ran.out)["policies"]["oef-noncooperative"]
    assert Fraction(said["lies"]["any"]["factor"]) > 1
    assert said["lies"]["any"]["told"]["user"]
    assert Fraction(said["at_most"]["any"]["factor"]) >= Fraction(said["lies"]["any"]["factor"])


def test_a_rule_that_decides_by_entitlements_is_asked_only_by_name(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("incentives", "@oef-eq6", "--kind", "weight", "--evaluations", 1)
    assert (ran.status, "drf" in ran.out + ran.err) == (0, False)
    named = fairopt("incentives", "@oef-eq6", "--policy", "drf")
    assert (named.status, "drf decides by entitlements" in named.err) == (3, True)


@pytest.mark.parametrize(
    ("kind", "said"), [("demand", "--kind: nobody states a demand"), ("bigger", "--kind: got 'bigger'. Here: larger,")]
)
def test_a_kind_that_there_is_not(fairopt: Callable[..., Ran], kind: str, said: str) -> None:
    ran = fairopt("incentives", "@oef-eq6", "--kind", kind)
    assert ran.status == 2
    assert said in ran.err


def test_a_policy_that_cannot_be_decided_leaves_the_rows_of_others(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(policy: Policy, *arguments: Any) -> Incentives:
        if policy.name == "max-min":
            raise NotSolved("highs: it stopped short of its tolerance")
        return incentives(policy, *arguments)

    monkeypatch.setattr("fairopt.cli.incentives.incentives", failing)
    words = ("incentives", "@oef-eq6", "--kind", "weight", "--evaluations", 4)
    ran = fairopt(*words, "--policy", "max-min", "--policy", "equal-split", "--json")
    assert ran.status == 3
    assert list(ran.data["policies"]) == ["equal-split"]
    assert "Stopped:\n  max-min: highs: it stopped short of its tolerance" in ran.err
    alone = fairopt(*words, "--policy", "max-min")
    assert (alone.status, alone.out) == (3, "")


def test_a_command_that_has_nothing_yet_says_that_it_was_interrupted(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards against an end without a word, which is what typer makes of Ctrl-C."""

    def interrupt(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("fairopt.cli.frontiers.frontier", interrupt)
    ran = fairopt("frontier", "@oef-eq6")
    assert (ran.status, ran.out, ran.err) == (130, "", "fairopt: interrupted\n")
