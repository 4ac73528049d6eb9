"""The result of a check: an answer, a margin, and a witness or evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fairopt.problem.numbers import in_full
from fairopt.program import Number

#: The relative tolerance for float allocations. HiGHS and the conic solvers are asked for 1e-7 to 1e-9, so a violation
#: beyond ten times that is the allocation's and not the solver's.
TOLERANCE = 1e-6


class Answer(enum.Enum):
    """The five answers; a search that finds nothing has not proved that there is nothing."""

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    NOT_REFUTED = "NOT_REFUTED"
    UNDECIDED = "UNDECIDED"  # it could not be decided; the verdict says why
    DEPENDS = "DEPENDS"  # of a range of inputs: it holds for some and fails for others; the verdict says where


@dataclass(frozen=True, eq=False)
class Verdict:
    """A property's verdict on what was decided, or on a policy.

    ``margin`` is the slack of the tightest case in the definition's own ``unit``, negative where the property fails.
    ``witness`` shows a failure, ``evidence`` proves that it holds, where the definition alone does not. ``exact``: it
    was decided in rational arithmetic with no tolerance; of a NOT_REFUTED only the margin was. ``effort`` says what was
    looked at, ``reason`` why an answer is UNDECIDED, ``boundary`` where one that DEPENDS changes.
    """

    property: str
    answer: Answer
    margin: Number | None
    unit: str
    exact: bool
    effort: str
    witness: Any = None
    evidence: Any = None
    by_misreport: Mapping[str, Verdict] = field(default_factory=dict)
    reason: str = ""
    boundary: Any = None

    @classmethod
    def undecided(cls, property: str, reason: str, *, effort: str = "", unit: str = "") -> Verdict:
        """Return the verdict on what could not be decided, with the reason."""
        return cls(property, Answer.UNDECIDED, None, unit, exact=False, effort=effort, reason=reason)

    def to_json(self, *, exact: bool = False) -> Mapping[str, Any]:
        """Return the verdict as JSON types; ``exact`` writes Fractions as "p/q" instead of as decimals."""
        keys = ("answer", "margin", "unit", "exact", "witness", "evidence", "effort", "reason", "boundary")
        out: dict[str, Any] = {key: plain(getattr(self, key), exact=exact) for key in keys}
        out |= {"answer": self.answer.value, "reason": self.reason or None}
        if self.by_misreport:
            out["by_misreport"] = {kind: verdict.to_json(exact=exact) for kind, verdict in self.by_misreport.items()}
        return out


@runtime_checkable
class Summarised(Protocol):
    """An object of which only some fields are shown."""

    def summary(self) -> Mapping[str, Any]:
        """Return the fields to show."""
        ...


def plain(value: Any, *, exact: bool = False) -> Any:
    """Return JSON types: numbers that are not finite as null, Fractions as "p/q" where ``exact``, else as decimals."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), exact=exact)
    if isinstance(value, Fraction):
        return in_full(value) if exact else float(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry, exact=exact) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, exact=exact) for entry in value]
    if isinstance(value, Summarised):
        return plain(value.summary(), exact=exact)
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name), exact=exact) for entry in fields(value)}
    return value
