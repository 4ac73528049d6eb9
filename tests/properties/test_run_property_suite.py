"""The suite of properties of runs catches what is wrong with a property."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from fairopt.properties import Answer, Verdict
from fairopt.properties.property import SlackCase
from fairopt.properties.runs.lease_kept import LeaseKept
from fairopt.properties.runs.run_property import RunProperty
from fairopt.properties.runs.work_conservation_over_time import WorkConservationOverTime
from fairopt.simulation import History
from fairopt.testing.run_property_suite import run_property_suite
from fairopt.testing.suite import Outcome


class Optimist(WorkConservationOverTime):
    """Says that all is well."""

    def check(self, history: History, *, tolerance: Any = None) -> Verdict:
        return replace(super().check(history), answer=Answer.HOLDS, witness=None, reason="")


class Hasty(LeaseKept):
    """Takes a job that is not done yet for one that never will be."""

    def cases(self, history: History) -> Iterator[SlackCase]:
        yield from super().cases(history)
        for name, done in history.completion.items():
            if done is None:
                yield self.case(Fraction(-1), 1, job=name, begin=0, until=0, lease=1)


class Vague(WorkConservationOverTime):
    """Shows another round than the one that fails."""

    def cases(self, history: History) -> Iterator[SlackCase]:
        for case in super().cases(history):
            yield case.but(free=case.free + 1) if case.parts else case


class Silent(LeaseKept):
    """Does not say where it is from."""

    source = ""


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Optimist, "instances hold and fail"),
        (Optimist, "a run that was cut is undecided unless it fails"),
        (Hasty, "no failure is undone by what comes later"),
        (Vague, "witness refutes by the bare definition"),
        (Silent, "says what it is"),
    ],
)
def test_the_suite_catches(kind: type[RunProperty], check: str) -> None:
    suite = run_property_suite()
    row = suite.run_one(kind(), next(each for each in suite.checks if each.name == check))
    assert row.outcome is Outcome.FAILED, row
