"""Documents of other tools: JSON and YAML, from files that nobody vouches for, within stated limits, as objects.

A list of objects in JSON that kubectl printed is read piece by piece; another file of JSON at once, up to `WHOLE`
bytes, or else object by object.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO

from fairopt.discovery import library
from fairopt.errors import BadInput, require
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.schema import TOP, ObjectPart, ValueType, kind_of
from fairopt.problem.files.storage import PIECE, AnyPath, decoded, naming, read_text, read_up_to, reading
from fairopt.problem.numbers import MOST_DIGITS, exact, shown

#: The documents of a YAML text of so many characters are kept, for who reads it next.
KEPT = 200_000
#: The largest file that is read, unless a caller says otherwise, in bytes.
LARGEST = 2 * 1024**3
#: A larger YAML text is refused, since it cannot be streamed.
SMALL = 50 * 1024**2
#: A larger JSON text is read object by object.
WHOLE = 200 * 1024**2
#: About so many characters of a list of objects are parsed together.
AT_ONCE = 64 * 1024
#: How a list of objects begins that kubectl prints, and what is between two of them beside a comma.
_LIST = re.compile(rb'\s*\{(?:\s*"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,)*\s*"items"\s*:\s*\[([ \t\r]*\n\s*)(?=\{)')
#: Objects and lists inside each other.
DEEPEST = 100
#: A packed file may be this many times as large unpacked; text rarely packs better than 1 to 100.
PACKED = 200


@contextmanager
def in_files(paths: Sequence[AnyPath]) -> Iterator[None]:
    """Say in every `BadInput` that is raised inside which file it is about, where its place begins with one."""
    try:
        yield
    except BadInput as error:
        for path in paths:
            if not error.file and error.place.startswith(f"{path}: "):
                error.file, error.place = str(path), error.place.removeprefix(f"{path}: ")
        raise


def found_in(path: AnyPath, *, most: int = LARGEST) -> Iterator[ObjectPart]:
    """Yield the objects of a .json, .yaml or .yml file: those in the ``items`` of lists, and all others.

    Numbers are ints and Decimals. Errors: `BadInput` that names the file, the place, and what to do: for what cannot be
    read, for more than ``most`` bytes, `DEEPEST` levels or any YAML alias, and for what is no object.
    """
    with naming(path):
        size = _size(Path(path))
        if size > most:
            remedy = "Give a smaller one, or a larger limit"
            raise BadInput(f"{size} bytes, at most {most}", place="the file", remedy=remedy)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            if size > SMALL:
                remedy = "Write it as .json, which is read piece by piece"
                raise BadInput(f"{size} bytes of YAML, at most {SMALL}", place="the file", remedy=remedy)
            yield from _flat(ObjectPart(place or TOP, value) for place, value in yaml_documents(read_text(path)))
        elif not size or Path(path).suffix.lower() == ".gz":  # a pipe has no size
            data = read_text(path, WHOLE).encode()
            yield from _in_stream(io.BytesIO(data), len(data))
        else:
            with reading(path), open(path, "rb") as stream:
                yield from _in_stream(stream, size)


def json_documents(text: str) -> Iterator[ObjectPart]:
    """Yield the objects of a JSON text, as `found_in` does; errors as there, without the file."""
    return _flat([ObjectPart(TOP, _parsed(text, text.encode()))])


def _parsed(text: str, data: bytes) -> dict[str, Any]:
    """Return the object of a JSON text, which is ``data`` in UTF-8."""
    value = parse_json(text)
    return value if _is_shallow(data) else bounded(value)


def _in_stream(stream: BinaryIO, size: int) -> Iterator[ObjectPart]:
    """Yield the objects of a file of JSON of so many bytes."""
    read = 0
    try:
        for value, before in _pieces(stream):
            for part in _flat([ObjectPart(TOP, value)], before):
                yield part
                read += 1
    except BadInput:
        # it is no list that kubectl prints, or a piece is wrong: the whole text says which, and in which line
        stream.seek(0)
        yield from islice(_whole(stream, size) if size <= WHOLE else _streamed(stream), read, None)


def _whole(stream: BinaryIO, size: int) -> Iterator[ObjectPart]:
    data = read_up_to(stream, WHOLE, size + 1)
    return _flat([ObjectPart(TOP, _parsed(decoded(data), data))])


def _pieces(stream: IO[bytes]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield a list of objects that kubectl printed as several lists, and how many items come before each.

    It is cut between lines, where an object seems to begin that is in the list. What is made of a piece at once is had
    from the processor's own memory, where a whole text does not fit. Errors: `BadInput`, also for a wrong cut, and
    where there is none in `WHOLE` bytes.
    """
    data, before = stream.read(AT_ONCE), 0
    begins = _LIST.match(data)
    if begins is None:
        raise BadInput("no list of objects in lines", remedy="Read the whole")
    comma, held = b"," + begins[1] + b"{", [data[begins.end() :]]
    while data := stream.read(AT_ONCE):
        end = data.rfind(comma)
        if end >= 0:  # else no object ends here
            whole = b"".join((b'{"items": [', *held, data[:end], b"]}"))
            value = _parsed(decoded(whole), whole)
            require(len(value) == 1, "more than a list", "a piece", "Read the whole")
            yield value, before
            before += len(value["items"])
            held, data = [], data[end + 1 :]
        held.append(data)
        require(len(held) <= WHOLE // AT_ONCE, "no end of an object", "a piece", "Read the whole")
    whole = b"".join((begins[0], *held))
    yield _parsed(decoded(whole), whole), before


@contextmanager
def opened_zip(path: AnyPath, *, most: int = LARGEST) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """Open a zip file, and list the files in it.

    Errors: `BadInput` for what is no zip file, and for one that unpacks to too much, also while it is read.
    """
    with naming(path):
        size = _size(Path(path))
        try:
            with zipfile.ZipFile(path) as packed:
                entries = [entry for entry in packed.infolist() if not entry.is_dir()]
                whole = sum(entry.file_size for entry in entries)
                allowed = min(most, PACKED * max(size, 10_000))
                if len(entries) > 1000 or whole > allowed:
                    got = f"{len(entries)} files of {whole} bytes unpacked, at most 1000 of {allowed}"
                    raise BadInput(got, place="the zip file", remedy="Unpack it, and give the file in it")
                yield packed, entries
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            remedy = "Give the whole file, without a password"
            raise BadInput(f"not a zip file that can be read: {error}", place="the file", remedy=remedy) from error


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        read_text(path)  # says what is wrong
        raise


def _flat(found: Iterable[ObjectPart], before: int = 0) -> Iterator[ObjectPart]:
    """Yield objects, and in the place of lists their items; ``before``: how many items come before these."""
    for part in found:
        value = part.value
        if type(value) is not dict:
            remedy = "Give an object of keys and values, as kubectl get -o json prints"
            raise BadInput(f"got {shown(value)}", place=part.place, remedy=remedy)
        items = value.get("items")
        if type(items) is list:
            top = ObjectPart(part.place, {})  # else each of its items would keep all others
            yield from _flat(ObjectPart((top, "item", n), item) for n, item in enumerate(items, start=before + 1))
        else:
            yield part


def bounded(value: Any) -> Any:
    """Refuse what is nested too deeply, without descending deeper than allowed."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            each
            for entry in level
            for each in (entry.values() if isinstance(entry, dict) else entry)
            if isinstance(each, (dict, list))
        ]
        if not level:
            return value
    raise BadInput(f"more than {DEEPEST} levels", place="the file", remedy="Give what kubectl prints, which has fewer")


#: Of a JSON text, quotes and what opens and closes stay, lists as objects.
_AS_OBJECTS, _INSIDE = bytes.maketrans(b"[]", b"{}"), bytes(set(range(256)) - set(b'"[]{}'))


def _is_shallow(data: bytes) -> bool:
    """Return whether no character of a JSON text is more than `DEEPEST` levels deep, without looking at its objects."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    pieces = (data[first : first + PIECE] for first in range(0, len(data), PIECE))  # all at once takes longer
    data = b"".join(each.translate(_AS_OBJECTS, _INSIDE) for each in pieces)
    data = data.replace(b'""', b"")  # nearly all strings have nothing of these in them
    if b'"' in data:
        data = re.sub(rb'"[^"]*"', b"", data)
    depth = 0
    while data and depth < DEEPEST:
        data, depth = data.replace(b"{}", b""), depth + 1  # the innermost go
    return not data


def _streamed(stream: IO[bytes]) -> Iterator[ObjectPart]:
    """Yield the objects in the list ``items``, one at a time."""
    ijson = library("ijson", "a file of more than 200 MB", "import")
    number = 0
    try:
        for item in ijson.items(stream, "items.item"):
            number += 1
            yield from _flat([ObjectPart(f"item {number}", bounded(item))])
    except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
        place = f"after item {number}, near byte {stream.tell()}"
        raise BadInput(f"not JSON: {error}", place=place, remedy="Correct the syntax there") from error
    if not number:
        remedy = "Give a list with items, as kubectl get -o json prints"
        raise BadInput("a large file without items", place="the top level", remedy=remedy)


def yaml_documents(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the documents of a YAML text, with their places.

    Errors: `BadInput` with the line for what is no YAML, for aliases, more than `DEEPEST` levels, and keys
    that stand twice.
    """
    return iter(_kept_documents(text)) if len(text) <= KEPT else _yaml_documents(text)


@lru_cache(maxsize=4)
def _kept_documents(text: str) -> list[tuple[str, Any]]:
    """Return the same for a short text: each importer that may know the file reads it."""
    return list(_yaml_documents(text))


def _yaml_documents(text: str) -> Iterator[tuple[str, Any]]:
    yaml = library("yaml", "a YAML file", "import")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                remedy = "Write out what it stands for; an alias can stand for more than any memory holds"
                raise BadInput(f"the alias *{event.anchor}", place=f"line {line}", remedy=remedy)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise BadInput(f"more than {DEEPEST} levels", place=f"line {line}", remedy="Give a flatter file")
        for number, node in enumerate(yaml.compose_all(text, Loader=loader), start=1):
            made = _made(node, yaml)
            if made is not None:  # nothing between two lines of "---"
                yield f"document {number}" if number > 1 else "", made
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else "the file"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInput(f"not YAML: {problem}", place=place, remedy="Correct the syntax there") from error


#: Tags of what stays a text; a date is none of our numbers.
_TEXTS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "timestamp", "value", "merge")}


def _made(node: Any, yaml: Any) -> Any:
    """Return what a YAML node says: strings, ints, Decimals, booleans and None; dates stay text."""
    place = f"line {node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        made: dict[Any, Any] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None or name in made:
                what = "a key that is no text" if name is None else f"the key {shown(name)} stands twice"
                raise BadInput(what, place=place, remedy="Give each key once, as text")
            made[name] = _made(value, yaml)
        return made
    if isinstance(node, yaml.SequenceNode):
        return [_made(each, yaml) for each in node.value]
    kind, said = node.tag.rpartition(":")[2], node.value
    try:
        if kind == "int":
            digits = said.replace("_", "")
            if len(digits) > MOST_DIGITS:
                raise ValueError("an integer of so many digits")
            octal = digits.lstrip("+-").startswith("0") and digits.lstrip("+-0").isdigit()  # as YAML 1.1 has it
            return int(digits, 8 if octal else 0)
        if kind == "float":
            return Decimal(said.replace("_", "").replace(".inf", "Infinity").replace(".nan", "NaN"))
    except (ValueError, ArithmeticError) as error:
        raise BadInput(f"got {shown(said)}", place=place, remedy="Write an ordinary number") from error
    if kind == "bool":
        return said.lower() in ("true", "yes", "on")
    if kind == "null":
        return None
    if node.tag not in _TEXTS:
        raise BadInput(f"the tag {shown(node.tag)}", place=place, remedy="Leave it out")
    return said


#: Quantities of Kubernetes: 1500m CPU cores, 64Gi bytes, 2e3.
_FORM = re.compile(r"(?a)([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})?")
_TIMES: Mapping[str, Fraction] = MappingProxyType(
    {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    | {name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", start=1)}
    | {f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", start=1)}
)


def quantity(value: object, place: str) -> Fraction:
    """Return a Kubernetes quantity as an exact number; negative ones too.

    Errors: `BadInput` with the place for what is none. Source: Kubernetes, apimachinery/pkg/api/resource/quantity.go.

    >>> print(quantity("1500m", "cpu"), quantity("2Ki", "memory"), quantity(8, "gpu"))
    3/2 2048 8
    """
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return exact(value, place)
    found = _written(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a quantity such as 8, 1500m or 64Gi")
    return found


@lru_cache(10_000)  # the same few stand in every pod
def _written(text: str) -> Fraction | None:
    """Return the quantity that a text is; None for none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    number, suffix = Fraction(found[1].rstrip(".")), found[2] or ""
    return number * (_TIMES[suffix] if suffix in _TIMES else Fraction(10) ** int(suffix[1:]))


def _amounts(value: object, place: str) -> dict[str, Fraction]:
    if not isinstance(value, Mapping):
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give an object of keys and values")
    found: dict[str, Fraction] = {}
    for name, each in value.items():
        amount = _written(each) if type(each) is str else None  # nearly always; the place is not asked for then
        found[name] = amount = quantity(each, f"{place}, {name}") if amount is None else amount
        if amount.numerator < 0:
            remedy = "Give a quantity that is not negative"
            raise BadInput(f"got {shown(each)}", place=f"{place}, {name}", remedy=remedy)
    return found


_EPOCH = datetime.fromtimestamp(0, UTC)


def _seconds(value: object, place: str) -> int:
    found = value if type(value) is str else str(kind_of(str, "text").read(value, place))
    try:
        made = datetime.fromisoformat(found) if found else _EPOCH
        return int((made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp())  # without an offset it is in UTC
    except (ValueError, OverflowError) as error:
        remedy = "Give a time such as 2026-08-01T09:30:00Z"
        raise BadInput(f"got {shown(value)}", place=place, remedy=remedy) from error


#: Quantities by resource, and a time in seconds since 1970.
AMOUNTS, SECONDS = ValueType(_amounts), ValueType(_seconds)
