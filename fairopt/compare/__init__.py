"""The main job: policies side by side, and which properties hold for each, by how much, shown by what."""

from fairopt.compare.rows import Compared, Row
from fairopt.compare.side_by_side import DECISION, answered, asked_of, compare, decided_on, left_out, verify

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
