"""Policies, what they decide, and who solves: one way for shares, rounds and schedules.

>>> from fairopt.datasets import oef_example
>>> from fairopt.models import MaxMin
>>> decide(MaxMin(), oef_example(), exact=True)
<Allocation: max-min on <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>: objective 54/49, by exact in rationals>
"""

from typing import TYPE_CHECKING

from fairopt.later import later, offered
from fairopt.policy.allocation import Allocation as Allocation
from fairopt.policy.decide import chosen as chosen
from fairopt.policy.decide import decide as decide
from fairopt.policy.decide import decide_each as decide_each
from fairopt.policy.decide import follow as follow
from fairopt.policy.decide import session as session
from fairopt.policy.decide import unsupported as unsupported
from fairopt.policy.decision import Decision as Decision
from fairopt.policy.decision import DecisionReason as DecisionReason
from fairopt.policy.decision import Seconds as Seconds
from fairopt.policy.formulated import Computed as Computed
from fairopt.policy.formulated import Formulated as Formulated
from fairopt.policy.optima import Optima as Optima
from fairopt.policy.optima import uniqueness as uniqueness
from fairopt.policy.policy import Claim as Claim
from fairopt.policy.policy import Example as Example
from fairopt.policy.policy import Policy as Policy
from fairopt.policy.policy import Trait as Trait

if TYPE_CHECKING:
    from fairopt.policy.plan import Admission as Admission
    from fairopt.policy.plan import Payment as Payment
    from fairopt.policy.plan import Plan as Plan
    from fairopt.policy.schedule import Schedule as Schedule

# a module is loaded when a name of it is first used: who shares a market needs no rounds and no schedules
__getattr__ = later(__name__)
__all__ = offered(__name__)
