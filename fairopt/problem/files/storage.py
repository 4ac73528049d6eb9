"""Text in files: read and written by suffix, every error with the file's name."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, TypeVar

from fairopt.errors import BadInput
from fairopt.problem.files.documents import json_text, parse_json, parse_toml, toml_text
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown
from fairopt.replacing import replacing

T = TypeVar("T")
AnyPath: TypeAlias = str | PathLike[str]

#: A larger file is taken for a mistake; 5 million speedups of 16 digits fit.
LARGEST_FILE = 100 * 1024 * 1024
#: So many bytes are read at once.
PIECE = 1 << 20


#: The suffixes of files that hold what can be written as a dictionary.
DOCUMENTS = (".toml", ".json")


def read_file(
    path: AnyPath,
    from_dict: Callable[[Mapping[str, Any]], T],
    texts: Mapping[str, Callable[[str], T]] = MappingProxyType({}),
) -> T:
    """Return what a file holds, read by its suffix: a dictionary, or one of the ``texts`` that is another format.

    Errors: `BadInput` that names the file and the place.
    """
    with naming(path):
        suffix = suffix_to_read(path, (*DOCUMENTS, *texts))
        text = read_text(path)
        if suffix in texts:
            return texts[suffix](text)
        return from_dict(parse_toml(text) if suffix == ".toml" else parse_json(text))


def write_file(
    path: AnyPath,
    value: T,
    to_dict: Callable[[T], dict[str, Any]],
    texts: Mapping[str, Callable[[T], str]] = MappingProxyType({}),
) -> None:
    """Write a file in the format of its suffix; an existing one is replaced. Errors: `BadInput` that names the file."""
    with naming(path):
        write_text(path, text_for(path, value, to_dict, texts))


def text_for(
    path: AnyPath, value: T, to_dict: Callable[[T], dict[str, Any]], texts: Mapping[str, Callable[[T], str]]
) -> str:
    """Return the text that `write_file` writes; errors as there, without the file."""
    suffix = suffix_of(path, (*DOCUMENTS, *texts))
    if suffix in texts:
        return texts[suffix](value)
    return (toml_text if suffix == ".toml" else json_text)(to_dict(value))


@contextmanager
def naming(file: AnyPath = "", place: str = "", only: str = "") -> Iterator[None]:
    """Name the file, and the place, in every `BadInput` that is raised inside and names none.

    With ``only`` the file is named where the place begins so.
    """
    try:
        yield
    except BadInput as error:
        if error.place.startswith(only):
            # a path may be called otherwise than it is opened
            called = str(file) if isinstance(file, Path) else fspath(file)
            error.file, error.place = error.file or called, error.place or place
        raise


def suffix_of(path: AnyPath, accepted: Collection[str]) -> str:
    """Return the suffix of a path, in small letters, where it is one of the accepted."""
    name = Path(path).name.lower()
    suffix = next((each for each in accepted if name.endswith(each)), None)
    if suffix is None or name == suffix:
        if Path(path).is_dir():
            raise BadInput("this is a directory", remedy=f"Give a file that ends in {', '.join(accepted)}")
        if str(path) != fspath(path):  # it stands for something else, whose content told the suffix
            wrong = f"it reads as {Path(path).suffix}"
            raise BadInput(wrong, place="its content", remedy=f"Give {', '.join(accepted)}")
        found = f"it ends in {shown(Path(path).suffix.lower())}" if Path(path).suffix else "it has no suffix"
        raise BadInput(found, place="its name", remedy=f"Give a file that ends in {', '.join(accepted)}")
    return suffix


def suffix_to_read(path: AnyPath, accepted: Collection[str]) -> str:
    """Return the suffix as `suffix_of`; of a file that is not there, that is what is wrong."""
    if not Path(path).exists():
        read_bytes(path)
    return suffix_of(path, accepted)


def read_text(path: AnyPath, most: int | None = None) -> str:
    """Return the text of a UTF-8 file, packed where it ends in .gz; `BadInput` where there is none.

    ``most``: so many bytes it may have, `LARGEST_FILE` unless a caller says otherwise.
    """
    data = read_bytes(path, most)
    return decoded(unpacked(data) if Path(path).suffix.lower() == ".gz" else data)


def write_text(path: AnyPath, text: str) -> None:
    """Write a text file, packed where it ends in .gz; it is there whole, or the one before stays.

    Errors: `BadInput` where it cannot be written.
    """
    data = text.encode("utf-8")
    if Path(path).suffix.lower() == ".gz":
        data = gzip.compress(data, mtime=0)  # no time in it, so that the same text gives the same bytes
    with replacing(path) as file:
        file.write(data)


def require_place(path: Path | None, place: str, formats: Collection[str] = ()) -> None:
    """Refuse, before anything is computed, a file that cannot be written; ``place`` is the option that names it.

    ``formats``: the suffixes that it may have; empty, where it may have any.
    """
    if path is not None and formats:
        with naming(path):
            suffix_of(path, formats)
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise BadInput(f"{path} cannot be written", place=place, remedy="Name a file in a folder that exists")


def read_bytes(path: AnyPath, most: int | None = None) -> bytes:
    """Return what a file holds. Errors: `BadInput`, also for more than ``most`` bytes, which are not read."""
    most = most or LARGEST_FILE
    try:
        with reading(path), open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            data = b"" if size > most else read_up_to(stream, most + 1, max(PIECE, size + 1))
    except BadInput:  # a ValueError too, and already said well
        raise
    except ValueError as error:  # a name that no file can have
        raise BadInput(f"cannot read: {error}", remedy="Check the file's name and permissions") from error
    require_size(max(size, len(data)), most=most)
    return data


@contextmanager
def reading(path: AnyPath) -> Iterator[None]:
    """Say as `BadInput` why a file cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise BadInput("there is no such file", remedy=_neighbours(Path(path))) from error
    except IsADirectoryError as error:
        raise BadInput("this is a directory", remedy="Give the files in it") from error
    except OSError as error:
        raise BadInput(f"cannot read: {error.strerror}", remedy="Check the file's name and permissions") from error


def read_up_to(stream: BinaryIO | io.BufferedIOBase, most: int, piece: int = PIECE) -> bytes:
    """Return at most so many bytes of a stream, in pieces; asked for at once they would take that memory for any file.

    >>> read_up_to(io.BytesIO(b"market"), 4)
    b'mark'
    """
    pieces: list[bytes] = []
    while most > 0 and (found := stream.read(min(most, piece))):
        pieces.append(found)
        most -= len(found)
    return b"".join(pieces)


def unpacked(data: bytes) -> bytes:
    """Return what gzip has packed, at most `LARGEST_FILE` bytes. Errors: `BadInput`."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            found = read_up_to(stream, LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"not gzip: {error}", place="the file", remedy="Give the whole file, or unpack it") from error
    require_size(len(found), " unpacked")
    return found


def require_size(size: int, how: str = "", most: int | None = None) -> None:
    """Refuse more than ``most`` bytes, by default `LARGEST_FILE`. Errors: `BadInput`."""
    most = most or LARGEST_FILE
    if size > most:
        raise BadInput(f"more than {most >> 20} MB{how}", place="the file", remedy="Give a smaller one")


def decoded(data: bytes) -> str:
    """Return UTF-8 text without a byte-order mark; `BadInput` where it is none, or empty."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"byte 0x{data[error.start]:02x} is not UTF-8 text", place=f"line {line}", remedy="Save the file as UTF-8"
        ) from error
    if not text or text.isspace():
        remedy = "Give one that is not; `fairopt datasets` lists examples, and writes them to files"
        raise BadInput("the file is empty", place="line 1", remedy=remedy)
    return text


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {str(path.parent)!r} either"
    files = [entry for entry in path.parent.iterdir() if entry.is_file()]
    names = sorted(each.name for each in files)
    alike = [name for name in names if Path(name).suffix.lower() == path.suffix.lower() or not path.suffix]
    if not alike and get_close_matches(path.name.casefold(), map(str.casefold, names)):
        return nearest(path.name, names)
    return nearest(path.name, alike, f"{path.suffix} file".strip())


# -- what a file describes, told by a key that no other type of file has: for commands that take several types -------
MARKET = "market"
#: By key at the top level: the type of file that has it, and who takes such a file. Of several keys the first tells.
TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "user": (MARKET, "`fairopt solve` and `fairopt compare` take it"),
        "host": ("cluster", "`fairopt run` and `fairopt compare` take it by --cluster"),
        "server": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "bandwidth": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "job": ("trace", "`fairopt run` and `fairopt compare` take it"),
    }
)


def check_file_type(data: Mapping[str, object], wanted: str, place: str) -> None:
    """Refuse what is plainly a file of another type than ``wanted``, and say what it is for."""
    for key, (file_type, taker) in TYPES.items():
        if key not in data:
            continue
        if file_type == wanted:
            return
        raise BadInput(f"the key {key!r} is that of a {file_type}", place=place, remedy=f"Give a {wanted}; {taker}")


#: What tells the type of a CSV text: the column that names its rows.
_COLUMNS: Mapping[str, str] = MappingProxyType({"user": MARKET, "job_id": "trace"})
#: What may stand between two cells of a CSV text; of several the one that the header has most.
SEPARATORS = (",", ";", "\t")
_SUFFIXES = dict.fromkeys((".toml", ".json", ".csv", ".csv.gz"))


def file_type(path: AnyPath) -> str:
    """Return what a file describes: "trace", "batch", "cluster", or "market" where nothing tells; else `BadInput`."""
    with naming(path):
        suffix, text = suffix_to_read(path, _SUFFIXES), read_text(path)
        if suffix.startswith(".csv"):
            header = next(csv.reader(text.splitlines()[:1], delimiter=separator(text)), [])
            if (found := next((_COLUMNS[name.strip()] for name in header if name.strip() in _COLUMNS), None)) is None:
                first = " or ".join(f"{name} (a {kind})" for name, kind in _COLUMNS.items())
                there = ", ".join(name.strip() for name in header)[:200]
                remedy = f"Call the first one {first}, or say which is which: --column user=NAME (a market), "
                remedy += f"--column submit=NAME (a trace); there are {there}"
                raise BadInput("no column says what the rows are", place="line 1", remedy=remedy)
            return found
        possible = {key: TYPES[key][0] for key in TYPES if key in text}
        if set(possible.values()) <= {MARKET}:  # so that a large file is not read twice
            return MARKET
        data = {".toml": parse_toml, ".json": parse_json}[suffix](text)
        return next((possible[key] for key in possible if key in data), MARKET)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV text."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def separator(text: str) -> str:
    """Return what stands between the cells of a CSV text: a comma, a semicolon or a tab, as its header says."""
    header = re.sub(r'"[^"]*"', "", next((line for line in text.splitlines() if line.strip()), ""))
    return max(SEPARATORS, key=header.count)
