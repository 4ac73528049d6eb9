"""How results describe themselves: what each says has a name, a type and words once; JSON, schema and tables follow.

A class of results has a `ResultForm`: the keys of its JSON in order. A key's value is the attribute of its name, or
what a function makes of the result:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Gain:
...     user: str
...     gain: Fraction
...     form = ResultForm("What a user gains.", Key("user", str, "Who."), Key("gain", Number, "How much, in GPUs."))
>>> plain([Gain("A", Fraction(1, 3))], exact=True)
[{'user': 'A', 'gain': '1/3'}]
>>> Gain.form.schema()["properties"]["user"]
{'type': 'string', 'description': 'Who.'}
"""

from __future__ import annotations

import copyreg
import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from html import escape
from itertools import islice
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, Union, get_args, get_origin

import numpy as np

from fairopt.later import library
from fairopt.numbers import Number, in_full, is_number, is_rational, short_text

if TYPE_CHECKING:
    from pandas import DataFrame

Schema: TypeAlias = dict[str, Any]
#: The version of the JSON of results: keys are added, never renamed or dropped.
VERSION = 1
#: What stands for the value of a key that a result does not have.
ABSENT = object()


#: Types and their schemas; a number may be exact, and `object` is anything.
_SCHEMAS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    dict: {"type": "object"},
    object: {},
    Number: {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?\d+(/\d+)?$"}]},
}


def schema_of(kind: Any) -> Schema:
    """Return the JSON Schema of a type: plain, a number, a list, a mapping by name, a choice, or a class with a form.

    A form that has a name is referred to by it. A schema stands for itself.

    >>> schema_of(dict[str, int | None])
    {'type': 'object', 'additionalProperties': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}}
    """
    form = kind if isinstance(kind, ResultForm) else getattr(kind, "form", None)
    if isinstance(form, ResultForm):
        return part(form.name) if form.name else form.schema()
    if isinstance(kind, dict):
        return kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    if kind in _SCHEMAS:
        return _SCHEMAS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin is list:
        return listed(arguments[0])
    if origin is dict:
        return by_name(arguments[1])
    some: Any = Union.__getitem__(tuple(each for each in arguments if each is not NoneType))
    return {"anyOf": [schema_of(some), {"type": "null"}]}


def listed(of: Any) -> Schema:
    """Return the schema of a list of a type, or of what has a form."""
    return {"type": "array", "items": schema_of(of)}


def by_name(of: Any) -> Schema:
    """Return the schema of an object whose keys are names, and values of a type, or of what has a form."""
    return {"type": "object", "additionalProperties": schema_of(of)}


def part(name: str) -> Schema:
    """Return what stands for the schema of that name."""
    return {"$ref": f"#/$defs/{name}"}


class Key(NamedTuple):
    """One thing that a result says: its name, its type, and what it means. ``value`` makes it of the result.

    Without ``value`` it is the attribute of that name, or the entry of a mapping, or what `ResultForm.json` is given.
    """

    name: str
    kind: Any
    says: str
    value: Callable[[Any], Any] | None = None

    def of(self, result: Any) -> Any:
        """Return the value in a result; `ABSENT` where it has none."""
        if self.value is not None:
            return self.value(result)
        return result.get(self.name, ABSENT) if isinstance(result, Mapping) else getattr(result, self.name, ABSENT)


def keys_of(kind: Any, names: str, says: str) -> list[Key]:
    """Return keys of one type and one meaning; ``names``: their names, with spaces between."""
    return [Key(name, kind, says) for name in names.split()]


class ResultForm:
    """What results of one kind say: ``keys``, in order, and ``beside`` them those that not every such result has.

    The value of a key beside them is never an attribute: it is what its function returns, or what `json` is given.
    ``in_full``: all parts of the result, a `Statement` or a dataclass, stand there as well, by their own names.
    ``name``: by which other schemas refer to this one; "" where it stands in them. ``sentence`` puts a result into
    words; by default its parts.
    """

    def __init__(
        self,
        says: str,
        *keys: Key,
        beside: Sequence[Key] = (),
        name: str = "",
        in_full: bool = False,
        sentence: Callable[[Any], str] | None = None,
    ) -> None:
        self.says, self.keys, self.beside, self.name, self.in_full = says, keys, tuple(beside), name, in_full
        self.sentence = sentence or _of_parts
        self.__module__ = sys._getframe(1).f_globals["__name__"]

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Say what it is where it is sent: the constant of the module that made it, or all that it says."""
        names = (name for name, value in vars(sys.modules[self.__module__]).items() if value is self)
        return next(names, (copyreg.__newobj__, (ResultForm,), vars(self)))  # type: ignore[attr-defined]

    def of(self, **parts: Any) -> Statement:
        """Return a result of this form that has no class of its own."""
        return Statement(self, parts)

    def json(self, result: Any, *, exact: bool = False, **others: Any) -> dict[str, Any]:
        """Return a result in the types of JSON; ``others`` are values of keys that it does not have itself.

        ``exact`` writes Fractions as "p/q" instead of as decimals. Errors: `TypeError` where a key has no value.
        """
        found = {}
        for name, value in _parts(result) if self.in_full else ():
            found[name] = plain(value, exact=exact)
        for each in (*self.keys, *self.beside):
            if each.name in others:
                value = others[each.name]
            else:
                value = ABSENT if each in self.beside and each.value is None else each.of(result)
            if value is not ABSENT:
                found[each.name] = plain(value, exact=exact)
            elif each in self.keys:
                raise TypeError(f"{type(result).__name__} has no {each.name}")
        return found

    def list(self, results: Iterable[Any]) -> list[dict[str, Any]]:
        """Return results, each as `json` does."""
        return [self.json(each) for each in results]

    def schema(self) -> Schema:
        """Return the JSON Schema of such a result; keys of later versions may stand beside those that are listed."""
        properties = {
            each.name: {**schema_of(each.kind), "description": each.says} for each in (*self.keys, *self.beside)
        }
        required = [each.name for each in self.keys]
        return {"type": "object", "description": self.says, "properties": properties, "required": required}


@dataclass(frozen=True, repr=False)
class Statement:
    """One thing that a result says: its ``parts`` by name, which are attributes of it too. As text it is a sentence.

    >>> loan = ResultForm("A loan.", SAYS, in_full=True, sentence=lambda it: f"{it.to} has {it.gpus} GPUs of others")
    >>> one = loan.of(to="A", gpus=2)
    >>> print(one.gpus, "|", one, "|", plain(one))
    2 | A has 2 GPUs of others | {'to': 'A', 'gpus': 2, 'says': 'A has 2 GPUs of others'}
    """

    form: ResultForm = field(compare=False)
    parts: Mapping[str, Any] = field(hash=False)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("parts", {})  # of what is being copied nothing is known yet
        if name in parts:
            return parts[name]
        raise AttributeError(f"it says no {name}" if parts else name)

    def but(self, **parts: Any) -> Self:
        """Return the same with other parts."""
        return replace(self, parts={**self.parts, **parts})

    def __str__(self) -> str:
        return self.form.sentence(self)

    def __repr__(self) -> str:
        return f"<{self.form.says.rstrip('.')}: {self}>"


def _of_parts(it: Statement) -> str:
    return ", ".join(f"{name} {_SHORT.repr(value)}" for name, value in it.parts.items())


def _parts(result: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(result, Statement):
        return result.parts.items()
    return [(each.name, getattr(result, each.name)) for each in fields(result)]


LEFT_OUT = Key(
    "left_out",
    dict[str, str],
    "Which policies are left out where nobody names any, by name, and why.",
    lambda found: found.left_out or ABSENT,
)
#: A result in a sentence.
SAYS = Key("says", str, "The same in words.", str)
SCHEMA_KEY = Key("schema", {"const": VERSION}, "The version of this schema.", lambda _: VERSION)


def plain(value: Any, *, exact: bool = False) -> Any:
    """Return JSON types: numbers that are not finite as null, Fractions as "p/q" where ``exact``, else as decimals.

    Results are written by their form; other dataclasses with all of their fields, or what their ``summary()`` returns.

    >>> plain([Fraction(1, 3), float("inf")], exact=True)
    ['1/3', None]
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), exact=exact)
    if is_rational(value):
        return in_full(value) if exact else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(entry, exact=exact) for key, entry in value.items()}
    form = value.form if isinstance(value, Statement) else getattr(type(value), "form", None)
    if isinstance(form, ResultForm):
        return form.json(value, exact=exact)
    if isinstance(value, list | tuple):
        return [plain(entry, exact=exact) for entry in value]
    if summary := getattr(value, "summary", None):
        return plain(summary(), exact=exact)
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name), exact=exact) for entry in fields(value)}
    return value


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

    def text(self) -> str:
        """Return the table as plain text with few digits: at most `MOST_ROWS` rows, and how many more there are.

        >>> print(Grid("user", ["A", "B"], {"K80": [Fraction(1, 3), 2], "throughput": [1, 20]}).text())
        user  K80  throughput
        A     1/3           1
        B       2          20
        """
        columns = [[name, *(_words(each) for each in values[:MOST_ROWS])] for name, values in self.columns.items()]
        widths = [max(map(len, column)) for column in columns]
        labels = [self.kind, *self.rows[:MOST_ROWS]]
        wide = max(map(len, labels))
        lines = [
            "  ".join([label.ljust(wide), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))])
            for label, *cells in zip(labels, *columns, strict=True)
        ]
        more = len(self.rows) - MOST_ROWS
        return "\n".join([*lines, *([f"... {more} more rows: to_frame() has all"] if more > 0 else [])])


class Tabular(ABC):
    """A base of results that are a table: who derives from it says `_table`, `__repr__` on one line, and ``form``."""

    form: ClassVar[ResultForm]

    @abstractmethod
    def _table(self) -> Grid:
        """Return the table, with numbers as they are."""

    def _shown(self) -> Grid:
        """Return the table that a notebook shows; by default the same."""
        return self._table()

    def to_json(self, *, exact: bool = False) -> dict[str, Any]:
        """Return the result in the types of JSON; ``exact`` writes Fractions as "p/q" instead of as decimals."""
        return self.form.json(self, exact=exact)

    def to_frame(self, *, exact: bool = False) -> DataFrame:
        """Return the table in pandas; Fractions become floats unless ``exact``. Errors: `NotInstalled`."""
        pandas = library("pandas", "to_frame", "tables")
        kind, rows, columns = self._table()
        plain = {
            name: [float(each) if is_rational(each) and not exact else each for each in values]
            for name, values in columns.items()
        }
        frame: DataFrame = pandas.DataFrame(plain, index=pandas.Index(rows, name=kind))
        return frame

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


def short_repr(of: Any) -> str:
    """Return a dataclass with numbers on one line, long fractions rounded, as "≈0.333333": its ``__repr__``.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Gain:
    ...     user: str
    ...     gain: Fraction
    ...     __repr__ = short_repr
    >>> Gain("A", Fraction(10**70, 3 * 10**70 + 1))
    Gain(user='A', gain=≈0.333333)
    """
    shown = (f"{each.name}={_SHORT.repr(getattr(of, each.name))}" for each in fields(of) if each.repr)
    return f"{type(of).__name__}({', '.join(shown)})"


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


def _words(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else "yes" if value else "no"
    return short_text(value) if is_number(value) else str(value)


def _cell(value: object, tag: str, *, left: bool = False) -> str:
    style = ' style="text-align: left"' if left else ""
    return f"<{tag}{style}>{escape(_words(value))}</{tag}>"
