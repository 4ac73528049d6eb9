"""Every installed policy that decides by entitlements passes the suite, which catches those that should not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fairopt.policy import Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Market
from fairopt.testing.rule_suite import installed, rule_suite, stated
from fairopt.testing.suite import Outcome

#: What a rule does on purpose and the suite does not like.
KNOWN = {
    "kueue": {
        "gives out no more than there is": "Kueue counts quotas, not GPUs: where quotas add up to more, it admits more"
    }
}


@pytest.mark.parametrize("policy", installed(), ids=lambda policy: policy.name)
def test_policy_conforms(policy: Any, conformance: Callable[[object], None]) -> None:
    report = rule_suite(KNOWN).run([policy])
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    conformance(f"rule {policy.name}: {counts} of {len(report.rows)} checks ('-' is not declared)")
    report.require_complete()


class Standing(Computed):
    """Leaves everything as it is, and says so; the base of what is wrong below."""

    name, source = "standing", "nobody"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset(Entitled)
    why: ClassVar[str] = "nothing is started"

    def compute(self, problem: Market, state: Any) -> tuple[Any, DecisionReason]:
        owed = stated(problem)
        waits = {name: self.why for name, on in zip(owed.gangs.names, owed.gangs.on, strict=True) if on < 0}
        return owed.held[:, : len(problem.types)], DecisionReason(owed.gangs, "nothing", waits=waits)


class Silent(Standing):
    """Does not say why a gang waits."""

    why = ""


class Overbooking(Standing):
    """Gives out more than there is."""

    def compute(self, problem: Market, state: Any) -> tuple[Any, None]:
        return super().compute(problem, state)[0] + problem.capacity, None  # type: ignore[return-value]


class Stopping(Standing):
    """Stops everything, also what may not be stopped."""

    def compute(self, problem: Market, state: Any) -> tuple[Any, DecisionReason]:
        owed = stated(problem)
        gangs = owed.gangs.placed(np.full(len(owed.gangs), -1))
        waits = dict.fromkeys(gangs.names, "stopped")
        shares = owed.running(gangs).held[:, : len(problem.types)]
        return shares, DecisionReason(gangs, "nothing", waits=waits, stopped=waits)


class Elsewhere(Standing):
    """Says one thing and does another."""

    def compute(self, problem: Market, state: Any) -> tuple[Any, DecisionReason]:
        shares, grounds = super().compute(problem, state)
        return shares * 0, replace(grounds, share={"nobody": 1})


def test_standing_still_conforms() -> None:
    rule_suite().run([Standing()]).require_complete()


@pytest.mark.parametrize(
    ("policy", "check"),
    [
        (Silent, "says why a gang waits or was stopped"),
        (Stopping, "says why a gang waits or was stopped"),
        (Overbooking, "gives out no more than there is"),
        (Overbooking, "keeps caps"),
        (Elsewhere, "shares are what the gangs and the rest hold"),
        (Elsewhere, "names those it compares"),
    ],
)
def test_the_suite_catches(policy: Any, check: str) -> None:
    suite = rule_suite()
    one = next(each for each in suite.checks if each.name == check)
    assert suite.run_one(policy(), one).outcome is Outcome.FAILED
