"""What a property of schedules is: one of a `Plan`, decided case by case."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from fairopt.policy import Plan
from fairopt.problem.batch import Batch
from fairopt.program import Number
from fairopt.properties.property import OutcomeProperty, SlackCase
from fairopt.properties.verdict import Verdict

#: How papers' properties of schedules are cited.
SOURCE = "Astraea (posted prices)"


@dataclass(frozen=True)
class Shortfall:
    """Who has what where there should be more: ``who`` a job or a tenant, ``slot`` 0 where it is about all of them."""

    who: str
    has: Number
    needs: Number
    slot: int = 0

    def __str__(self) -> str:
        at = f" in slot {self.slot}" if self.slot else ""
        return f"{self.who} has {self.has}{at} where it should have {self.needs}"


class PlanProperty(OutcomeProperty):
    """A property of a plan: anybody's, however it came about."""

    problem = Batch
    of = "schedule"
    unit: ClassVar[str] = "revenue"

    def check(self, plan: Plan, *, tolerance: Number | None = None) -> Verdict:
        """Decide whether a plan has the property; the margin is the slack of the tightest case.

        What is in fractions is decided exactly unless a ``tolerance`` is given, relative to what a case compares.
        Errors: `NotCapable` where the plan lacks what the property is about.
        """
        cases = list(self.cases(plan))
        worst = None
        if cases:
            slack, case = min(cases, key=lambda case: case[0])
            worst = SlackCase(slack, max(case.has, -case.has, case.needs, -case.needs), case)
        exact = worst is None or not isinstance(worst.slack, float)
        return self._by_tightest(worst, tolerance, exact=exact, unit=self.unit, effort=f"{len(cases)} cases")

    @abstractmethod
    def cases(self, plan: Plan) -> Iterable[tuple[Number, Shortfall]]:
        """Yield for each case its slack, negative where it fails, and what it is."""
