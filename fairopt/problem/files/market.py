"""Market files: .toml, .json and .csv, read and written by suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from fairopt.errors import BadInput
from fairopt.problem.files.market_csv import market_from_csv, market_to_csv
from fairopt.problem.files.market_schema import market_from_dict, market_to_dict, naming
from fairopt.problem.files.toml_json import json_text, parse_json, parse_toml, toml_text
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market
from fairopt.problem.numbers import shown

#: A larger file is taken for a mistake; 5 million speedups of 16 digits fit.
LARGEST_FILE = 100 * 1024 * 1024


class Format(NamedTuple):
    """How markets are read from text and written to it."""

    read: Callable[[str], Market]
    write: Callable[[Market], str]


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".toml": Format(
            lambda text: market_from_dict(parse_toml(text)), lambda market: toml_text(market_to_dict(market))
        ),
        ".json": Format(
            lambda text: market_from_dict(parse_json(text)), lambda market: json_text(market_to_dict(market))
        ),
        ".csv": Format(market_from_csv, market_to_csv),
    }
)


def read_market(path: str | PathLike[str]) -> Market:
    """Return the market in a .toml, .json or .csv file; decimals are read exactly.

    Errors: `BadInput` that names the file, the place in it, the value and what to do.
    """
    with naming(_file(path)):
        form = _format(path)
        return form.read(read_text(path))


def write_market(market: Market, path: str | PathLike[str]) -> None:
    """Write a market so that `read_market` gives it back exactly; an existing file is replaced.

    Errors: `BadInput` for another suffix, for what the format cannot hold (CSV has no job types), and for a path that
    cannot be written.
    """
    with naming(_file(path)):
        write_text(path, _format(path).write(market))


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text file; an existing one is replaced. Errors: `BadInput` where it cannot be written."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | PathLike[str], data: bytes) -> None:
    """Write a file; errors as `write_text`."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise BadInput(
            f"cannot write: {error.strerror or error}", remedy="Check that the folder exists and is yours to write"
        ) from error


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a UTF-8 file of ordinary size, without a byte-order mark; `BadInput` where there is none."""
    return decoded(read_bytes(path))


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a file of ordinary size; `BadInput` where there is none."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError as error:
        raise BadInput("there is no such file", remedy=_neighbours(path)) from error
    except IsADirectoryError as error:
        raise BadInput("this is a directory", remedy="Give the file in it") from error
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read: {reason}", remedy="Check the file's name and permissions") from error
    if len(data) > LARGEST_FILE:
        raise BadInput(f"more than {LARGEST_FILE >> 20} MB", place="the file", remedy="Give a smaller one")
    return data


def decoded(data: bytes) -> str:
    """Return UTF-8 text without a byte-order mark; `BadInput` where it is none, or empty."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"byte 0x{data[error.start]:02x} is not UTF-8 text",
            place=f"line {line}",
            remedy="Save the file as UTF-8",
        ) from error
    if not text.strip():
        raise BadInput("the file is empty", place="line 1", remedy="See the file formats in the documentation")
    return text


def suffix_of(path: str | PathLike[str], accepted: Mapping[str, object]) -> str:
    """Return the suffix of a path, in small letters, where it is one of the accepted."""
    suffix = Path(path).suffix.lower()
    if suffix not in accepted:
        found = f"the suffix {shown(suffix)}" if suffix else "no suffix"
        raise BadInput(found, place="the file's name", remedy=f"Give a file that ends in {', '.join(accepted)}")
    return suffix


def _format(path: str | PathLike[str]) -> Format:
    return FORMATS[suffix_of(path, FORMATS)]


def _file(path: str | PathLike[str]) -> str:
    return str(fspath(path))


def _neighbours(path: str | PathLike[str]) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"There is no folder {str(folder)!r} either"
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in FORMATS)
    return nearest(Path(path).name, names, "file")
