"""Audits of real clusters: who is starved, who borrows, why, and what would mend it.

>>> from fairopt.audit import Footing
>>> [each.value for each in Footing]
['STARVED', 'BORROWING', 'WITHIN', 'IDLE']
"""

from fairopt.audit.auditing import Audit, audit
from fairopt.audit.explaining import Explanation, explain
from fairopt.audit.footing import Footing, NodeFooting, TypeFooting
from fairopt.audit.reasons import Cause, Reason, Stop
from fairopt.audit.whatif import WhatIf, whatif

__all__ = [
    "Audit",
    "Cause",
    "Explanation",
    "Footing",
    "NodeFooting",
    "Reason",
    "Stop",
    "TypeFooting",
    "WhatIf",
    "audit",
    "explain",
    "whatif",
]
