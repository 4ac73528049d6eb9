"""What a property of schedules is: one of a `Plan`, decided case by case."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from fairopt.policy import Plan
from fairopt.problem.batch import Batch
from fairopt.program import Number
from fairopt.properties.property import Property, SlackCase
from fairopt.properties.verdict import Verdict

#: How papers' properties of schedules are cited.
SOURCE = "Astraea (posted prices)"


class PlanProperty(Property):
    """A property of a plan: anybody's, however it came about.

    A failure shows ``who`` has what where there should be more, a job or a tenant, and the ``slot``, 0 for all of them.
    """

    problem = Batch
    of = "schedule"
    unit: ClassVar[str] = "revenue"

    def check(self, plan: Plan, *, tolerance: Number | None = None) -> Verdict:
        """Decide whether a plan has the property; the margin is the slack of the tightest case.

        What is in fractions is decided exactly unless a ``tolerance`` is given, relative to what a case compares.
        Errors: `NotCapable` where the plan lacks what the property is about.
        """
        cases = list(self.cases(plan))
        worst = min(cases, key=lambda case: case.slack, default=None)
        exact = worst is None or not isinstance(worst.slack, float)
        return self._by_tightest(worst, tolerance, exact=exact, unit=self.unit, effort=f"{len(cases)} cases")

    @abstractmethod
    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield the cases."""

    def compared(self, who: str, has: Number, needs: Number, slot: int = 0, *, equal: bool = False) -> SlackCase:
        """Return the case of who has what, and needs as much or more, or, where they must be ``equal``, the same."""
        slack = min(has - needs, needs - has) if equal else has - needs
        return self.case(slack, max(has, -has, needs, -needs), who=who, has=has, needs=needs, slot=slot)

    def says(self, case: SlackCase) -> str:
        """Return who has what, and should have, in a sentence."""
        at = f" in slot {case.slot}" if case.slot else ""
        return f"{case.who} has {case.has}{at} where it should have {case.needs}"
