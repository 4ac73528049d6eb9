"""Audits of real clusters: who is starved, who borrows, why, and what would mend it.

>>> from fairopt.audit import EntitlementStatus
>>> [each.value for each in EntitlementStatus]
['STARVED', 'BORROWING', 'WITHIN', 'IDLE']
"""

from fairopt.audit.auditing import Audit, audit
from fairopt.audit.explaining import Explanation, explain
from fairopt.audit.planning import SchedulerPlan, plan
from fairopt.audit.reasons import Cause, Reason, Stop
from fairopt.audit.status import EntitlementStatus, NodeStatus, TypeStatus
from fairopt.audit.whatif import WhatIf, whatif

__all__ = [
    "Audit",
    "Cause",
    "EntitlementStatus",
    "Explanation",
    "NodeStatus",
    "Reason",
    "SchedulerPlan",
    "Stop",
    "TypeStatus",
    "WhatIf",
    "audit",
    "explain",
    "plan",
    "whatif",
]
