"""What `fairopt.compare` returns: its rows as they are computed, and their table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from fairopt.problem.tables import Grid, Tabular, few

R = TypeVar("R", bound=Tabular)


class Compared(Iterator[R], Tabular, Generic[R]):
    """The rows of a comparison, each as soon as it is known.

    They can be asked for once, as of any iterator. The table has all of them, and computes those that are left.

    >>> from fairopt import compare
    >>> from fairopt.datasets import oef_example
    >>> compare(oef_example(), ["equal-split", "max-min"], ["envy_freeness"]).to_frame()["envy_freeness"].to_dict()
    {'equal-split': 'HOLDS', 'max-min': 'FAILS'}
    """

    def __init__(self, problem: object, rows: Iterator[R]) -> None:
        self._problem, self._coming, self._known = problem, rows, list[R]()

    def __next__(self) -> R:
        self._known.append(next(self._coming))
        return self._known[-1]

    def __repr__(self) -> str:
        known = few([label for row in self._known for label in row._table().rows]) or "nothing yet"
        return f"<Comparison on {self._problem!r}; computed: {known}>"

    @property
    def rows(self) -> tuple[R, ...]:
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
