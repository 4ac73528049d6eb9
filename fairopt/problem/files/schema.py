"""The schema of files as data: what reads, writes and describes (as JSON Schema) every table of every file.

A `Column` has a name, what may stand there, what it says, and what leaving it out means. A table of a document (a
dictionary), a line of a CSV text and an object of another tool become an `ObjectPart`, which knows where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.checks import MOST_ROWS, MOST_TYPES, check_name, listed
from fairopt.problem.files.storage import check_file_type
from fairopt.problem.labels import check_keys
from fairopt.problem.numbers import MOST_GPUS, WRITTEN, exact, shown, whole, written

VERSION = 1
#: The default of a column that must be there.
REQUIRED = object()
TOP = "the top level"


@dataclass(frozen=True)
class ValueType:
    """What may stand in a column: how it is read (with its place) and written, its JSON Schema, and tables in it."""

    read: Callable[[Any, str], Any]
    write: Callable[[Any, str], Any] = lambda value, _: value
    schema: Mapping[str, Any] = field(default_factory=dict)
    tables: TableType | None = None


@dataclass(frozen=True)
class Column:
    """A column or key: its name, what it holds, what it says, its value where left out, the remedy for a blank."""

    name: str
    value: ValueType
    about: str
    default: Any = REQUIRED
    blank: str = ""


@dataclass(frozen=True)
class TableType:
    """A kind of table: its columns, what messages call several, and how many there may be.

    ``label``: messages call a table by the first of these columns that is a text. ``one_of``: two columns of which
    exactly one must be there, and what to do about both or neither. ``rules``: what else its JSON Schema says.
    """

    columns: tuple[Column, ...]
    called: str = "tables"
    most: int = MOST_ROWS
    label: tuple[str, ...] = ("name",)
    one_of: tuple[str, str, str] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names of the columns that must be there."""
        return tuple(column.name for column in self.columns if column.default is REQUIRED)

    def check_one_of(self, given: Sequence[str] | Mapping[str, object], place: str) -> None:
        """Refuse both and neither of two columns that exclude each other."""
        if self.one_of is not None:
            one, other, remedy = self.one_of
            if (one in given) == (other in given):
                found = f"both {one!r} and {other!r}" if one in given else f"neither {one!r} nor {other!r}"
                raise BadInput(found, place=place, remedy=remedy)


class ObjectPart:
    """An object of a document, or a part or a table of one, or a line of ``cells``: what it holds, and where it stands.

    ``place`` is that of the object; of a part the object that it is in, the key, and which item of a list (0: none).

    Errors of all methods: `BadInput` that names the place.

    >>> ObjectPart("queue a", {"spec": {"weight": 2}}).part("spec").whole("weight", 1)
    2
    """

    __slots__ = ("_place", "cells", "name", "value")

    def __init__(
        self, place: str | tuple[ObjectPart, str, int], value: Mapping[str, Any], name: Any = None, cells: bool = False
    ) -> None:
        self._place, self.value, self.name, self.cells = place, value, name, cells

    @property
    def place(self) -> str:
        """Where it stands, in words; that of a part is put together when somebody asks, which is where it is wrong."""
        if not isinstance(self._place, str):
            inside, key, number = self._place
            self._place = inside.place_of(key) + (f" {number}" if number else "")
        return self._place

    def __getitem__(self, key: str) -> Any:
        return self.value[key]

    def place_of(self, key: str) -> str:
        """Return the place of a key or a column."""
        return f"{self.place}, column {shown(key)}" if self.cells else _at(self.place, key)

    def read(self, key: str, value: ValueType, blank: Any) -> Any:
        """Return what stands there, as ``value`` reads it; ``blank`` for nothing."""
        found = self.value.get(key)
        try:
            return blank if found is None else value.read(found, "")
        except BadInput:
            return value.read(found, self.place_of(key))  # now with its place

    # in each of the following, what is nearly always there is looked for first
    def part(self, key: str) -> ObjectPart:
        """Return the object there, an empty one where there is none."""
        found = self.value.get(key)
        if type(found) is not dict:
            found = {} if found is None else _OBJECT.read(found, self.place_of(key))
        return ObjectPart((self, key, 0), found)

    def values(self, key: str) -> Mapping[str, Any]:
        """Return what the object there holds, nothing where there is none."""
        found = self.value.get(key)
        return found if type(found) is dict else self.part(key).value

    def at(self, path: str) -> ObjectPart:
        """Return the object at a dotted path, such as "metadata.labels"."""
        return reduce(ObjectPart.part, path.split("."), self)

    def parts(self, key: str) -> list[ObjectPart]:
        """Return the objects in the list there."""
        found = self.value.get(key)
        if not found and (found is None or type(found) is list):
            return []
        if type(found) is not list:
            found = _OBJECTS.read(found, self.place_of(key))
        return [
            ObjectPart((self, key, n), each if type(each) is dict else _OBJECT.read(each, f"{self.place_of(key)} {n}"))
            for n, each in enumerate(found, start=1)
        ]

    def text(self, key: str, blank: str = "") -> str:
        """Return the text there."""
        found = self.value.get(key)
        return found if type(found) is str else str(self.read(key, _WORDS, blank))

    def flag(self, key: str, blank: bool) -> bool:
        """Return the truth value there."""
        found = self.value.get(key)
        return found if type(found) is bool else bool(self.read(key, FLAG, blank))

    def whole(self, key: str, blank: int, *, least: int = 0) -> int:
        """Return the integer there, at least ``least``."""
        found = self.value.get(key)
        if type(found) is not int:
            found = int(self.read(key, _INTEGER, blank))
        if not least <= found < 2**63:
            raise BadInput(f"got {shown(found)}", place=self.place_of(key), remedy=f"Give an integer from {least}")
        return found


# -- what may stand in a column ------------------------------------------------------------------------------------
def _as_it_is(value: Any, place: str) -> Any:
    return value


def kind_of(kind: type | tuple[type, ...], wanted: str, called: str = "") -> ValueType:
    """Return what a key holds that is a value of a class as it is; ``wanted`` is what messages call one.

    ``called``: the class's name in JSON Schema, for columns.
    """

    def read(value: Any, place: str) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give {wanted}")
        return value

    return ValueType(read, schema={"type": called} if called else {})


# a dict is looked for first: asking an abstract class takes many times as long
_OBJECT, _OBJECTS = kind_of((dict, Mapping), "an object of keys and values"), kind_of(list, "a list of objects")
_WORDS, _INTEGER = kind_of(str, "text"), kind_of(int, "an integer")


def number_schema(**numbers: int) -> dict[str, Any]:
    """Return the JSON Schema of a number, or of one in a string; ``numbers`` are the bounds in JSON Schema's words."""
    return {"anyOf": [{"type": "number", **numbers}, {"type": "string", "pattern": f"^({WRITTEN})$"}]}


def _name_list(values: Any, place: str) -> list[str]:
    names = enumerate(listed(values, place, "names"), 1)
    return [check_name(name, f"{place}, entry {number}") for number, name in names]


_NAME = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "\\S"}
_AMOUNT = number_schema(minimum=0)
_LIST = {"type": "array", "minItems": 1, "maxItems": MOST_TYPES}

NAME = ValueType(check_name, _as_it_is, _NAME)
TEXT, FLAG = kind_of(str, "a string", "string"), kind_of(bool, "true or false", "boolean")
NAMES = ValueType(_name_list, lambda names, _: list(names), {**_LIST, "uniqueItems": True, "items": _NAME})
NUMBER = ValueType(exact, written, _AMOUNT)
#: A number, and a list of numbers by type, that are checked where the problem is made.
UNCHECKED = ValueType(_as_it_is, written, _AMOUNT)
NUMBERS = ValueType(listed, lambda given, place: [written(each, place) for each in given], {**_LIST, "items": _AMOUNT})


def positive(what: str = "number", remedy: str = "Give a positive {what}, or leave the key out") -> ValueType:
    """Return what a column of positive numbers holds; ``what`` is what messages call one."""

    def read(value: Any, place: str) -> Any:
        number = exact(value, place)
        if number <= 0:
            raise BadInput(f"got {shown(number)}", place=place, remedy=remedy.format(what=what))
        return number

    return ValueType(read, written, number_schema(exclusiveMinimum=0))


def count(least: int = 1) -> ValueType:
    """Return what a column of whole numbers of at least ``least`` holds."""
    schema = {"type": ["integer", "string"], "minimum": least, "maximum": MOST_GPUS}
    return ValueType(lambda value, place: whole(value, place, least=least), lambda value, _: int(value), schema)


def by_type(each: ValueType, types: Sequence[str]) -> ValueType:
    """Return what a column holds that has one ``each`` for all ``types``, or a list with one for every type."""

    def read(value: Any, place: str) -> list[Any]:
        given = list(value) if isinstance(value, list | tuple) else [value] * len(types)
        if len(given) != len(types):
            remedy = f"Give one number, or one for each of {', '.join(types)}"
            raise BadInput(
                f"{counted(len(given), 'value')} for {counted(len(types), 'type')}", place=place, remedy=remedy
            )
        called = [f"{place}, type {name!r}" if len(types) > 1 else place for name in types]
        return [each.read(entry, where) for entry, where in zip(given, called, strict=True)]

    def write(values: Any, place: str) -> Any:
        entries = [each.write(value, place) for value in values]
        return entries[0] if len(entries) == 1 else entries

    return ValueType(read, write, {"anyOf": [each.schema, {**_LIST, "items": each.schema}]})


def nested(table: TableType) -> ValueType:
    """Return what a column holds that is one table, read as an `ObjectPart`."""
    return ValueType(
        lambda value, place: read_table(value, place, table),
        lambda row, place: write_table(row, table, place),
        {},
        table,
    )


def tables(table: TableType) -> ValueType:
    """Return what a column holds that is a list of tables, each read as an `ObjectPart`."""

    def read(value: Any, place: str) -> list[ObjectPart]:
        given = _listed_tables(value, place, table)
        return [read_table(each, f"{place} {number}", table) for number, each in enumerate(given, start=1)]

    def write(rows: Any, place: str) -> list[dict[str, Any]]:
        return [
            write_table(row, table, _called(row, f"{place} {number}", table))
            for number, row in enumerate(rows, start=1)
        ]

    return ValueType(read, write, {**_LIST, "maxItems": table.most}, table)


def _listed_tables(value: object, place: str, table: TableType) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        remedy = f"Give a list of {table.called}, each a table"
        raise BadInput(f"got {shown(value)}", place=place, remedy=remedy)
    if not value:
        raise BadInput(f"no {table.called}", place=place, remedy="Give at least one")
    if len(value) > table.most:
        raise BadInput(f"{len(value)} {table.called}", place=place, remedy=f"Give at most {table.most}")
    return value


# -- reading and writing -------------------------------------------------------------------------------------------
def read_table(table: object, place: str, table_type: TableType) -> ObjectPart:
    """Return what a table of a document holds; `BadInput` for unknown keys, missing ones, and what cannot be read."""
    if not isinstance(table, Mapping):
        raise BadInput(f"got {shown(table)}", place=place, remedy="Give a table of keys and values")
    called = _called(table, place, table_type)
    check_keys(table, table_type.names, table_type.required, called)
    table_type.check_one_of(table, called)

    values = {
        each.name: each.value.read(table[each.name], _at(called, each.name)) if each.name in table else each.default
        for each in table_type.columns
    }
    return ObjectPart(called, values, values.get("name"))


def read_document(data: object, file_type: str, table: TableType) -> ObjectPart:
    """Return what the top level of a document of ``file_type`` holds; errors as `read_table`."""
    if isinstance(data, Mapping):
        check_file_type(data, file_type, TOP)
        check_version(data)
    return read_table(data, TOP, table)


def write_document(values: Mapping[str, Any], table: TableType) -> dict[str, Any]:
    """Return the document that `read_document` turns back into ``values``."""
    return write_table({"schema": VERSION, **values}, table, TOP)


def check_version(data: Mapping[str, object]) -> None:
    """Refuse a file of another version of the schema."""
    if "schema" not in data:
        raise BadInput("the key 'schema' is missing", place=TOP, remedy=f"Add schema = {VERSION}")
    version = data["schema"]
    if isinstance(version, bool) or not isinstance(version, int) or version != VERSION:
        remedy = f"This fairopt understands schema {VERSION}; write the integer {VERSION}"
        raise BadInput(f"got version {shown(version)}", place="schema", remedy=remedy)


_SCHEMA = Column("schema", ValueType(_as_it_is, _as_it_is, {"const": VERSION}), "The version of this schema.")


def document_type(*columns: Column) -> TableType:
    """Return the kind of the top level of a document: the version of its schema, and ``columns``."""
    return TableType((_SCHEMA, *columns))


def _called(table: Mapping[str, Any], place: str, table_type: TableType) -> str:
    """Return what messages call a table: by position, and by name where it has one."""
    label = next((table[name] for name in table_type.label if isinstance(table.get(name), str)), None)
    return place if label is None else f"{place} ({shown(label)})"


def write_table(values: Mapping[str, Any], table_type: TableType, place: str) -> dict[str, Any]:
    """Return the table that `read_table` turns back into ``values``; what may be left out is."""
    written_columns = (column for column in table_type.columns if column.name in values)
    return {
        column.name: column.value.write(values[column.name], _at(place, column.name))
        for column in written_columns
        if column.default is REQUIRED or values[column.name] != column.default
    }


def _at(place: str, column: str) -> str:
    return column if place == TOP else f"{place}, {column}"


def check_unique(rows: Sequence[ObjectPart], key: str) -> None:
    """Refuse two rows of one name; ``key`` is what messages call a row."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if first.setdefault(row.name, number) != number:
            remedy = "Give each a name of its own"
            raise BadInput(f"{key} {first[row.name]} has the same name", place=row.place, remedy=remedy)


# -- JSON Schema ---------------------------------------------------------------------------------------------------
def json_schema(table: TableType, title: str, about: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file whose top level is ``table``."""
    definitions: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://fairopt.invalid/{title}.schema.json",
        "title": f"fairopt {title}, version {VERSION}",
        "description": about,
        **_object_schema(table, definitions),
        "$defs": definitions,
    }


def _object_schema(table: TableType, definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {}
    for column in table.columns:
        schema = {"description": column.about, **column.value.schema}
        if column.value.tables is not None:
            definitions[column.name] = _object_schema(column.value.tables, definitions)
            reference = {"$ref": f"#/$defs/{column.name}"}
            schema |= {"items": reference} if schema.get("type") == "array" else reference
        properties[column.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": list(table.required),
        "additionalProperties": False,
        **({} if table.one_of is None else {"oneOf": [{"required": [name]} for name in table.one_of[:2]]}),
        **table.rules,
    }
