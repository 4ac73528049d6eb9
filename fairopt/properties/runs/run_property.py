"""What a property of runs is: one of a `History`, decided case by case."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from fairopt.program import Number
from fairopt.properties.property import OutcomeProperty, SlackCase
from fairopt.properties.verdict import Answer, Verdict
from fairopt.simulation import History, Setting

#: How many names of jobs a reason shows.
SHOWN = 5


@dataclass(frozen=True, eq=False)
class RunInstance:
    """A run on which a property's answer is known: where it is from, how it is made, and the answer."""

    source: str
    make: Callable[[], History]
    answer: Answer

    @cached_property
    def history(self) -> History:
        """The run."""
        return self.make()


class RunProperty(OutcomeProperty):
    """A property of a run: anybody's, however its rounds were decided.

    It fails where a case fails: no failure is undone by what comes later. Where none has failed and not all jobs are
    done, it is UNDECIDED. A witness has a method ``refutes(history)`` that decides by the bare definition.
    ``instances``: at least one holds and one fails. ``looked_at`` says what the cases are; their sizes are positive.
    """

    problem = Setting
    of = "run"
    unit: ClassVar[str]
    looked_at: ClassVar[str] = "cases"
    instances: ClassVar[tuple[RunInstance, ...]]

    def verify(self, problem: Setting, outcome: History, *, tolerance: Number | None = None) -> Verdict:
        """Decide of a history; see `check`."""
        return self.check(outcome, tolerance=tolerance)

    def check(self, history: History, *, tolerance: Number | None = None) -> Verdict:
        """Decide whether a run has the property; the margin is the slack of the tightest case, for its size.

        Exact runs are decided exactly unless a ``tolerance`` is given, relative to each case's own size.
        """
        cases = list(self.cases(history))
        worst = min(cases, key=lambda case: case.slack / case.size, default=None)
        exact, effort = history.trace.jobs.exact, f"{len(cases)} {self.looked_at}"
        why = why_not_over(history)
        return self._by_tightest(worst, tolerance, exact=exact, unit=self.unit, effort=effort, reason=why)

    @abstractmethod
    def cases(self, history: History) -> Iterable[SlackCase]:
        """Yield the cases; those that cannot be the tightest may be left out."""


def why_not_over(history: History) -> str:
    """Return why a run may go on: who is not done, and how many have not arrived; "" where all are done."""
    left = [name for name, done in history.completion.items() if done is None and name not in history.misfits]
    coming = len(history.trace.jobs) - len(history.ran)
    parts = []
    if left:
        more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        parts.append(f"{', '.join(left[:SHOWN])}{more} not done")
    if coming:
        parts.append(f"{coming} jobs not arrived")
    return f"the run ends at {float(history.until):g} with {', '.join(parts)}" if parts else ""
