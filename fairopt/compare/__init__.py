"""The main job: policies side by side, and which properties hold for each, by how much, shown by what."""

from fairopt.compare.rows import AllocationRow, Compared, PlanRow, Row, RunRow
from fairopt.compare.side_by_side import DECISION, answered, asked_of, compare, left_out, verify

__all__ = [
    "DECISION",
    "AllocationRow",
    "Compared",
    "PlanRow",
    "Row",
    "RunRow",
    "answered",
    "asked_of",
    "compare",
    "left_out",
    "verify",
]
