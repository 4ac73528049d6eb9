"""The main job: policies side by side, and which properties hold for each, by how much, shown by what."""

from typing import TYPE_CHECKING

from fairopt.compare.verifying import verify as verify
from fairopt.later import later, offered

if TYPE_CHECKING:
    from fairopt.compare.rows import Compared as Compared
    from fairopt.compare.rows import Row as Row
    from fairopt.compare.side_by_side import DECISION as DECISION
    from fairopt.compare.side_by_side import answered as answered
    from fairopt.compare.side_by_side import asked_of as asked_of
    from fairopt.compare.side_by_side import compare as compare
    from fairopt.compare.side_by_side import decided_on as decided_on
    from fairopt.compare.side_by_side import left_out as left_out

# a module is loaded when a name of it is first used: who verifies an allocation compares no policies
__getattr__ = later(__name__)
__all__ = offered(__name__)
