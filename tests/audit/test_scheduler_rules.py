"""An audit of a scheduler's files says which of its rules make it so that gangs wait; that of a market has none."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
from clusters import cluster

from fairopt.audit import Cause, audit, explain, whatif
from fairopt.cli import audit_tables

SAMPLES = Path(str(files("fairopt.datasets") / "clusters"))
#: What no scheduler has a rule for: there are fewer GPUs than a gang asks for.
WITHOUT = {Cause.TOO_LARGE}


@pytest.mark.parametrize("scheduler", sorted(each.name for each in SAMPLES.iterdir() if each.is_dir()))
def test_each_scheduler_has_a_rule_for_each_cause_that_its_files_can_show(scheduler: str) -> None:
    module = import_module(f"fairopt.importing.{scheduler}")
    assert set(module.RULES) <= {each.value for each in Cause}
    assert {"cap", "held", "promised", "gang", "full", "good", "nothing"} <= set(module.RULES)


@pytest.mark.parametrize("scheduler", ["kueue", "kai", "slurm"])
def test_rules_are_said_of_the_causes_that_stand_there(scheduler: str) -> None:
    found = audit(SAMPLES / scheduler, policies=[])
    causes = {stop.cause for reason in found.reasons.values() for stop in reason.stops} - WITHOUT
    assert set(found.rules_behind(found.reasons.values())) == {each.value for each in causes}
    assert found.to_json()["rules"] == found.rules_behind(found.reasons.values())


def test_an_explanation_says_the_rules_of_its_own_reasons() -> None:
    found = explain(SAMPLES / "kueue", "search", policies=[])
    assert list(found.to_json()["rules"]) == list(found.found.rules_behind(found.waits))
    assert "held" in found.to_json()["rules"]


def test_a_market_has_no_scheduler() -> None:
    assert audit(cluster(), policies=[]).to_json()["rules"] == {}


def test_whom_the_scheduler_would_stop_is_said_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    found = audit(SAMPLES / "armada")
    assert list(found.stops) == ["armada"]
    assert found.stops["armada"]["01j003"].startswith("preemption to fair share: 'research' held 0.5833 of the pool")
    audit_tables.audit(found, in_full=False)
    assert "armada would stop:\n  01j003: preemption to fair share" in capsys.readouterr().out
    changed = whatif(SAMPLES / "armada", ["research.weight=9"])
    urgent = (
        "urgency-based preemption: '01j008' of 'serving', of priority 2000, took its place, and it has priority 1000"
    )
    assert changed.stops == {"armada, 01j003": (found.stops["armada"]["01j003"], urgent)}
    audit_tables.what_if(changed)
    assert f"armada, 01j003, after:  stopped: {urgent}" in capsys.readouterr().out


def test_without_a_policy_nobody_is_said_to_be_stopped() -> None:
    assert audit(SAMPLES / "armada", policies=[]).stops == {}
