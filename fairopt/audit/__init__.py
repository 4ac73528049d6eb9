"""Audits of real clusters: who is starved, who borrows, why, and what would mend it.

>>> from fairopt.audit import EntitlementStatus
>>> [each.value for each in EntitlementStatus]
['STARVED', 'BORROWING', 'WITHIN', 'IDLE']
"""

from typing import TYPE_CHECKING

from fairopt.audit.auditing import Audit, audit
from fairopt.audit.reasons import Cause
from fairopt.audit.status import EntitlementStatus, NodeStatus
from fairopt.later import later

if TYPE_CHECKING:
    from fairopt.audit.explaining import Explanation as Explanation
    from fairopt.audit.explaining import explain as explain
    from fairopt.audit.planning import SchedulerPlan as SchedulerPlan
    from fairopt.audit.planning import plan as plan
    from fairopt.audit.whatif import WhatIf as WhatIf
    from fairopt.audit.whatif import whatif as whatif

#: Names by module, which is loaded when one is first used.
_NAMES = {"explaining": "Explanation explain", "planning": "SchedulerPlan plan", "whatif": "WhatIf whatif"}
__getattr__ = later(__name__, _NAMES)

__all__ = [
    "Audit",
    "Cause",
    "EntitlementStatus",
    "Explanation",
    "NodeStatus",
    "SchedulerPlan",
    "WhatIf",
    "audit",
    "explain",
    "plan",
    "whatif",
]
