"""Audits of real clusters: who is starved, who borrows, why, and what would mend it.

>>> from fairopt.audit import EntitlementStatus
>>> [each.value for each in EntitlementStatus]
['STARVED', 'BORROWING', 'WITHIN', 'IDLE']
"""

from typing import TYPE_CHECKING

from fairopt.audit.auditing import Audit as Audit
from fairopt.audit.auditing import audit as audit
from fairopt.audit.reasons import Cause as Cause
from fairopt.audit.status import EntitlementStatus as EntitlementStatus
from fairopt.audit.status import NodeStatus as NodeStatus
from fairopt.later import later, offered

if TYPE_CHECKING:
    from fairopt.audit.explaining import Explanation as Explanation
    from fairopt.audit.explaining import explain as explain
    from fairopt.audit.planning import SchedulerPlan as SchedulerPlan
    from fairopt.audit.planning import plan as plan
    from fairopt.audit.whatif import WhatIf as WhatIf
    from fairopt.audit.whatif import whatif as whatif

# a module is loaded when a name of it is first used
__getattr__ = later(__name__)
__all__ = offered(__name__)
