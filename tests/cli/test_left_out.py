"""Commands that ask all policies say which they leave out, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator
from ran_command import Ran

from fairopt.cli.output_schema import output_schema

#: What is asked is little, so that the policies left take milliseconds.
COMMANDS = {
    "compare": ("--property", "feasibility"),
    "frontier": ("--goal", "total_efficiency", "--property", "sharing_incentive"),
    "incentives": ("--kind", "weight", "--evaluations", 1),
}
WHY = "oef-efficient may take minutes on more than 3 speedups; name it, and it is asked"


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a market of four speedups be a large one."""
    monkeypatch.setattr("fairopt.models.oef.efficient.ASKED_UP_TO", 3)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_says_who_is_left_out(fairopt: Callable[..., Ran], command: str) -> None:
    ran = fairopt(command, "@oef-eq6", *COMMANDS[command])
    assert ran.status == 0, ran.err
    assert f"Left out:\n  {WHY}\n" in ran.out
    named = fairopt(command, "@oef-eq6", *COMMANDS[command], "--policy", "oef-efficient")
    assert (named.status, "Left out" in named.out) == (0, False), named.err


@pytest.mark.parametrize("command", COMMANDS)
def test_json_says_who_is_left_out_by_its_schema(fairopt: Callable[..., Ran], command: str) -> None:
    data = fairopt(command, "@oef-eq6", *COMMANDS[command], "--json").data
    assert data["left_out"] == {"oef-efficient": WHY}
    validator = Draft202012Validator(output_schema(command))
    assert [error.message for error in validator.iter_errors(data)] == []
    assert not validator.is_valid(data | {"left_out": ["oef-efficient"]})
    named = fairopt(command, "@oef-eq6", *COMMANDS[command], "--policy", "max-min", "--json").data
    assert "left_out" not in named
