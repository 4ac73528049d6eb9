"""Policies, what they decide, and who solves: one way for shares, rounds and schedules.

>>> from fairopt.datasets import oef_example
>>> from fairopt.models import MaxMin
>>> decide(MaxMin(), oef_example(), exact=True)
<Allocation: max-min on <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>: objective 54/49, by exact in rationals>
"""

from typing import TYPE_CHECKING

from fairopt.later import later
from fairopt.policy.allocation import Allocation
from fairopt.policy.decide import chosen, decide, decide_each, follow, session, unsupported
from fairopt.policy.decision import Decision, DecisionReason, Seconds
from fairopt.policy.formulated import Computed, Formulated
from fairopt.policy.optima import Optima, uniqueness
from fairopt.policy.policy import Claim, Example, Policy, Trait

if TYPE_CHECKING:
    from fairopt.policy.plan import Admission as Admission
    from fairopt.policy.plan import Payment as Payment
    from fairopt.policy.plan import Plan as Plan
    from fairopt.policy.schedule import Schedule as Schedule

#: Names by module, which is loaded when one is first used: who shares a market needs no rounds and no schedules.
__getattr__ = later(__name__, {"plan": "Admission Payment Plan", "schedule": "Schedule"})

__all__ = [
    "Admission",
    "Allocation",
    "Claim",
    "Computed",
    "Decision",
    "DecisionReason",
    "Example",
    "Formulated",
    "Optima",
    "Payment",
    "Plan",
    "Policy",
    "Schedule",
    "Seconds",
    "Trait",
    "chosen",
    "decide",
    "decide_each",
    "follow",
    "session",
    "uniqueness",
    "unsupported",
]
