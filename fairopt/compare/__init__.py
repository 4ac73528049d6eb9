"""The main job: policies side by side, and which properties hold for each, by how much, shown by what."""

from typing import TYPE_CHECKING

from fairopt.compare.verifying import verify
from fairopt.later import later

if TYPE_CHECKING:
    from fairopt.compare.rows import Compared as Compared
    from fairopt.compare.rows import Row as Row
    from fairopt.compare.side_by_side import DECISION as DECISION
    from fairopt.compare.side_by_side import answered as answered
    from fairopt.compare.side_by_side import asked_of as asked_of
    from fairopt.compare.side_by_side import compare as compare
    from fairopt.compare.side_by_side import decided_on as decided_on
    from fairopt.compare.side_by_side import left_out as left_out

#: Names by module, which is loaded when one is first used: who verifies an allocation compares no policies.
_NAMES = {"rows": "Compared Row", "side_by_side": "DECISION answered asked_of compare decided_on left_out"}
__getattr__ = later(__name__, _NAMES)

__all__ = [
    "DECISION",
    "Compared",
    "Row",
    "answered",
    "asked_of",
    "compare",
    "decided_on",
    "left_out",
    "verify",
]
