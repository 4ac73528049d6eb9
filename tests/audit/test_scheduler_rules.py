"""An audit of a scheduler's files says which of its rules make it so that gangs wait; that of a market has none."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
from clusters import cluster

from fairopt.audit import Cause, audit, explain

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
