"""What `fairopt.compare` returns: a row for each policy as it is computed, and the table of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from fairopt.errors import FairoptError
from fairopt.policy import Allocation, Policy
from fairopt.policy.optima import UNKNOWN
from fairopt.program import Number, short_text
from fairopt.properties import AllocationProperty, Answer, Property, Verdict, over_optima
from fairopt.properties.property import by_optimum
from fairopt.report import Grid, Statement, Tabular, few

#: What a policy makes of a problem: an `Allocation` of a `Market`, a `History` of a `Setting`, a `Plan` of a `Batch`.
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Row(Tabular, Generic[O]):
    """One policy's line of the table: what it decided, the verdicts on that, and the error that stopped it, if one did.

    ``outcome`` is an `Allocation`, a `History` (of a run that stopped, until then) or a `Plan`; None where there is
    none. ``metrics`` are the `Metrics` of an allocation or the `Measures` of a run; ``numbers`` describe the outcome in
    the table. Of an allocation, ``unique`` says whether it is the only optimum, and ``over_optima`` whether each
    property holds for some and for every optimum, where that was asked for (``every_optimum``) and the policy had a
    choice.

    >>> from fairopt import compare
    >>> from fairopt.datasets import oef_example
    >>> [row] = compare(oef_example(), ["max-min"], ["envy_freeness"])
    >>> row.policy.name, row.verdicts["envy_freeness"].holds, row.error
    ('max-min', False, None)
    >>> row.outcome
    <Allocation: max-min on <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>: objective 54/49, by exact in rationals>
    """

    policy: Policy
    outcome: O | None = None
    metrics: Any = None
    numbers: Mapping[str, Number | None] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    error: FairoptError | None = None
    #: What each cell took, in seconds: `DECISION`, and each property by its name.
    seconds: Mapping[str, float] = field(default_factory=dict)
    unique: Statement = UNKNOWN
    every_optimum: bool = False
    over_optima: Mapping[str, Statement] = field(default_factory=dict)

    def with_verdict(self, asked: Property, verdict: Verdict) -> Row[O]:
        """Return the row with one more verdict; over all optima too, where that was asked for."""
        row = replace(self, verdicts={**self.verdicts, asked.name: verdict})
        if not (self.every_optimum and isinstance(asked, AllocationProperty) and isinstance(self.outcome, Allocation)):
            return row
        if not self.outcome.arithmetic.exact or self.unique.shares is not False:
            return row  # nothing was left to choose, or it is not known
        try:
            over = over_optima(self.policy, self.outcome, asked)
        except FairoptError as error:
            unknown = Verdict.undecided(asked.name, str(error), effort="over all optima")
            over = by_optimum(unknown, unknown)
        return replace(row, over_optima={**self.over_optima, asked.name: over})

    def __repr__(self) -> str:
        said = [] if self.error is None else [f"stopped: {self.error}"]
        for answer in reversed(Answer):  # what fails stands before what holds
            if names := [name for name, verdict in self.verdicts.items() if verdict.answer is answer]:
                said.append(f"{answer.value} {', '.join(names)}")
        words = f": {shorten('; '.join(said), 120)}" if said else ""
        return f"<{type(self).__name__}: {self.policy.name}{words}>"

    def _table(self) -> Grid:
        answers = {name: verdict.answer.value for name, verdict in self.verdicts.items()}
        margins = {f"{name}_margin": verdict.margin for name, verdict in self.verdicts.items()}
        return self._line({**answers, **margins, **self.numbers})

    def _shown(self) -> Grid:
        answers = {
            name: f"FAILS by {short_text(-each.margin)}" if each.holds is False and each.margin else each.answer.value
            for name, each in self.verdicts.items()
        }
        return self._line({**answers, **self.numbers})

    def _line(self, cells: Mapping[str, Any]) -> Grid:
        cells = cells if self.error is None else {**cells, "stopped": str(self.error)}
        return Grid("policy", [self.policy.name], {name: [cell] for name, cell in cells.items()})


class Compared(Iterator[Row[O]], Tabular, Generic[O]):
    """The rows of a comparison, each as soon as it is known.

    They can be asked for once, as of any iterator. The table has all of them, and computes those that are left.
    ``left_out`` says by name which policies were not asked since nobody named them, and why.

    >>> from fairopt import compare
    >>> from fairopt.datasets import oef_example
    >>> compare(oef_example(), ["equal-split", "max-min"], ["envy_freeness"]).to_frame()["envy_freeness"].to_dict()
    {'equal-split': 'HOLDS', 'max-min': 'FAILS'}
    """

    def __init__(
        self,
        problem: object,
        rows: Iterator[Row[O]],
        answer: Callable[[Sequence[Row[O]]], Sequence[str]],
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._problem, self._coming, self._answer, self._known = problem, rows, answer, list[Row[O]]()
        self.left_out = left_out

    def __next__(self) -> Row[O]:
        self._known.append(next(self._coming))
        return self._known[-1]

    def __repr__(self) -> str:
        names = [label for row in self._known for label in row._table().rows]
        known = few(names) or "nothing yet; print it for the answer"
        others = f"; left out: {few(list(self.left_out))}" if self.left_out else ""
        return f"<Comparison on {self._problem!r}; computed: {known}{others}>"

    def __str__(self) -> str:
        """Return the answer in sentences; rows that are left are computed."""
        return "\n".join(self._answer(self.rows))

    @property
    def rows(self) -> tuple[Row[O], ...]:
        """All rows."""
        self._known.extend(self._coming)
        return tuple(self._known)

    def _table(self) -> Grid:
        return self._joined([row._table() for row in self.rows])

    def _shown(self) -> Grid:
        return self._joined([row._shown() for row in self.rows])

    def _joined(self, tables: list[Grid]) -> Grid:
        names = list(dict.fromkeys(name for table in tables for name in table.columns))
        columns = {name: [table.columns.get(name, [None])[0] for table in tables] for name in names}
        return Grid("policy", [label for table in tables for label in table.rows], columns)
