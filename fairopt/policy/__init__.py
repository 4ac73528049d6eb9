"""Policies, what they decide, and who solves: one way for shares, rounds and schedules.

>>> from fairopt.datasets import oef_example
>>> from fairopt.models import MaxMin
>>> decide(MaxMin(), oef_example(), exact=True)
<Allocation: max-min on <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>: objective 54/49, by exact in rationals>
"""

from fairopt.policy.allocation import Allocation
from fairopt.policy.decide import chosen, decide, decide_each, exactly, follow, session, unsupported
from fairopt.policy.decision import Decision, Seconds
from fairopt.policy.formulated import Computed, Formulated, ReportsUnseen
from fairopt.policy.optima import Optima, Uniqueness, uniqueness
from fairopt.policy.plan import Admission, Payment, Plan
from fairopt.policy.policy import Claim, Example, Policy, Trait
from fairopt.policy.reason import DecisionReason
from fairopt.policy.schedule import BrokenSchedule, Schedule

__all__ = [
    "Admission",
    "Allocation",
    "BrokenSchedule",
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
    "ReportsUnseen",
    "Schedule",
    "Seconds",
    "Trait",
    "Uniqueness",
    "chosen",
    "decide",
    "decide_each",
    "exactly",
    "follow",
    "session",
    "uniqueness",
    "unsupported",
]
