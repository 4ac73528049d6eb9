"""The result of a check: an answer, a margin, and a witness or evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten
from typing import Any, NoReturn

from fairopt.program import Number, short_text
from fairopt.report import ABSENT, Grid, Key, ResultForm, Tabular, by_name, part

#: The relative tolerance for float allocations. HiGHS and the conic solvers are asked for 1e-7 to 1e-9, so a violation
#: beyond ten times that is the allocation's and not the solver's.
TOLERANCE = 1e-6


class Answer(enum.Enum):
    """The five answers; a search that finds nothing has not proved that there is nothing.

    Errors: none. Source: ours; papers have the first two.

    >>> from fairopt import Answer
    >>> [answer.value for answer in Answer]
    ['HOLDS', 'FAILS', 'NOT_REFUTED', 'UNDECIDED', 'DEPENDS']
    """

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    NOT_REFUTED = "NOT_REFUTED"
    UNDECIDED = "UNDECIDED"  # it could not be decided; the verdict says why
    DEPENDS = "DEPENDS"  # of a range of inputs: it holds for some and fails for others; the verdict says where


#: How an answer reads in a table.
MARKS: Mapping[Answer, str] = {
    Answer.HOLDS: "yes",
    Answer.FAILS: "NO",
    Answer.NOT_REFUTED: "not refuted",
    Answer.UNDECIDED: "undecided",
    Answer.DEPENDS: "depends",
}


def _shows(found: Verdict) -> Any:
    """Return the evidence; of one that depends on speedups those at which it holds."""
    holds = getattr(found.boundary, "ends", {}).get("holds")
    return found.evidence if holds is None or found.evidence is not None else {"speedups": holds.speedup}


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Tabular):
    """A property's verdict on what was decided, or on a policy.

    ``margin`` is the slack of the tightest case in the definition's own ``unit``, negative where the property fails.
    ``witness`` shows a failure, ``evidence`` proves that it holds, where the definition alone does not. ``exact``: it
    was decided in rational arithmetic with no tolerance; of a NOT_REFUTED only the margin was. ``effort`` says what was
    looked at, ``reason`` why an answer is UNDECIDED, ``boundary`` where one that DEPENDS changes.

    A verdict is neither true nor false, since there are more than two answers: ask `holds`.

    Errors: `TypeError` where a verdict is taken for a truth value. Source: that of the property.

    >>> verdict = Verdict.undecided("envy_freeness", "the time ran out")
    >>> verdict
    <Verdict: envy_freeness UNDECIDED, not exact; undecided: the time ran out>
    >>> print(verdict.holds)
    None
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

    form = ResultForm(
        "Whether a property holds.",
        Key("answer", Answer, "The verdict."),
        Key("margin", Number | None, "By how much; negative where it fails."),
        Key("unit", str, "The margin's unit."),
        Key("exact", bool, "Whether no tolerance was used."),
        Key("witness", object, "What shows that it fails; else null."),
        Key("evidence", object, "What shows that it holds; null where the definition does.", _shows),
        Key("effort", str, "What was looked at."),
        Key("reason", str | None, "Why it could not be decided.", lambda found: found.reason or None),
        Key("boundary", object, "On what it depends."),
        beside=(
            Key(
                "by_misreport",
                by_name(part("verdict")),
                "Of strategy-proofness: by kind of misreport.",
                lambda found: found.by_misreport or ABSENT,
            ),
            Key("by_optimum", by_name(part("verdict")), "With --every-optimum: for some optimum, and for every one."),
        ),
        name="verdict",
    )

    @classmethod
    def undecided(cls, property: str, reason: str, *, effort: str = "", unit: str = "") -> Verdict:
        """Return the verdict on what could not be decided, with the reason."""
        return cls(property, Answer.UNDECIDED, None, unit, exact=False, effort=effort, reason=reason)

    @cached_property  # the field `property` hides the other decorator from type checkers
    def holds(self) -> bool | None:
        """True for HOLDS, False for FAILS; None for NOT_REFUTED, UNDECIDED and DEPENDS, which are neither."""
        return {Answer.HOLDS: True, Answer.FAILS: False}.get(self.answer)

    @cached_property
    def shown_by(self) -> str:
        """What shows the answer: the witness, the reason why there is none, or the boundary; "" for nothing."""
        if self.answer is Answer.UNDECIDED:
            return f"undecided: {self.reason}"
        if self.answer is Answer.DEPENDS:
            return f"depends: {self.boundary}"
        return "" if self.witness is None else str(self.witness)

    @cached_property
    def who(self) -> str:
        """For whom the property fails: a user, group, job or tenant, as the witness names it; "" for nobody."""
        return str(getattr(self.witness, "who", ""))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"a verdict has no truth value (this one is {self.property} {self.answer.value}): ask its `.holds`, which "
            "is True, False, or None where it is UNDECIDED, NOT_REFUTED or DEPENDS"
        )

    def __repr__(self) -> str:
        of = f" ({self.unit})" if self.unit else ""
        margin = "" if self.margin is None else f", margin {short_text(self.margin)}{of}"
        said = f"{self.property} {self.answer.value}{margin}, {'exact' if self.exact else 'not exact'}"
        what = f"; {shorten(self.shown_by, 100, placeholder=' ...')}" if self.shown_by else ""
        return f"<Verdict: {said}{what}>"

    def _table(self) -> Grid:
        kinds = {self.property: self} | {f"{self.property}, {kind}": each for kind, each in self.by_misreport.items()}
        answers = {"answer": [each.answer.value for each in kinds.values()]}
        others = {name: [getattr(each, name) for each in kinds.values()] for name in ("margin", "unit", "exact")}
        return Grid(
            "property", list(kinds), answers | others | {"what shows it": [each.shown_by for each in kinds.values()]}
        )
