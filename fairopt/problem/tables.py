"""How results show themselves: on one line, as a table in a notebook, and as a pandas table."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from fairopt.errors import NotInstalled
from fairopt.numbers import NUMBERS, is_rational
from fairopt.program import short_text

if TYPE_CHECKING:
    from pandas import DataFrame

#: The most rows and columns of a table in a notebook, and names in a line; the rest is counted.
MOST_ROWS, MOST_COLUMNS, MOST_NAMES = 20, 20, 5


class Grid(NamedTuple):
    """A table: what a row is, such as "user", the label of each, and the columns by name."""

    kind: str
    rows: Sequence[str]
    columns: Mapping[str, Sequence[Any]]

    def beside(self, more: Mapping[str, Sequence[Any]]) -> Grid:
        """Return the table with more columns; one whose name is taken, say by a GPU type, gets a star."""
        starred = {f"{name}*" if name in self.columns else name: values for name, values in more.items()}
        return self._replace(columns={**self.columns, **starred})


class Tabular(ABC):
    """A base of what is a table; who derives from it says `_table`, and `__repr__` on one line."""

    @abstractmethod
    def _table(self) -> Grid:
        """Return the table, with numbers as they are."""

    def _shown(self) -> Grid:
        """Return the table that a notebook shows; by default the same."""
        return self._table()

    def to_frame(self, *, exact: bool = False) -> DataFrame:
        """Return the table in pandas; Fractions become floats unless ``exact``. Errors: `NotInstalled`."""
        try:
            from pandas import DataFrame, Index
        except ImportError as error:
            raise NotInstalled("to_frame needs pandas: pip install 'fairopt[tables]'") from error
        kind, rows, columns = self._table()
        plain = {
            name: [float(each) if is_rational(each) and not exact else each for each in values]
            for name, values in columns.items()
        }
        return DataFrame(plain, index=Index(rows, name=kind))

    def _repr_html_(self) -> str:
        kind, rows, columns = self._shown()
        some = dict(islice(columns.items(), MOST_COLUMNS))
        head = "".join(_cell(name, "th", left=all(map(_is_text, values))) for name, values in some.items())
        body = "".join(
            f"<tr>{_cell(label, 'th')}{''.join(_cell(each, 'td', left=_is_text(each)) for each in cells)}</tr>"
            for label, *cells in islice(zip(rows, *some.values(), strict=True), MOST_ROWS)
        )
        left = [(len(rows) - MOST_ROWS, "rows"), (len(columns) - MOST_COLUMNS, "columns")]
        more = " and ".join(f"{count} more {what}" for count, what in left if count > 0)
        return (
            f"<p>{escape(repr(self))}</p>"
            f'<table class="dataframe"><thead><tr>{_cell(kind, "th")}{head}</tr></thead><tbody>{body}</tbody></table>'
            + (f"<p>… {more}: <code>to_frame()</code> has all</p>" if more else "")
        )


class Short:
    """A base of dataclasses with numbers: `repr` is on one line, and long fractions in it are rounded, as "≈0.333333".

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Gain(Short):
    ...     user: str
    ...     gain: Fraction
    >>> Gain("A", Fraction(10**70, 3 * 10**70 + 1))
    Gain(user='A', gain=≈0.333333)
    """

    def __repr__(self) -> str:
        shown = (f"{each.name}={_SHORT.repr(getattr(self, each.name))}" for each in fields(self) if each.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


class _ShortNumbers(reprlib.Repr):
    def repr_Fraction(self, value: Fraction, level: int) -> str:
        return short_text(value)

    def repr_float(self, value: float, level: int) -> str:
        return short_text(value)


_SHORT = _ShortNumbers()
_SHORT.maxstring = _SHORT.maxother = 100


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _is_text(value: object) -> bool:
    return isinstance(value, str | bool) or value is None


def _cell(value: object, tag: str, *, left: bool = False) -> str:
    if value is None or isinstance(value, bool):
        value = "" if value is None else "yes" if value else "no"
    shown = short_text(value) if isinstance(value, NUMBERS) else escape(str(value))
    style = ' style="text-align: left"' if left else ""
    return f"<{tag}{style}>{shown}</{tag}>"
