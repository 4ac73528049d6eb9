"""How a file becomes numbers, names and lists. All verifiers read through this module.

Whoever wrote the file is not trusted. What is not of the expected form raises `Unreadable`, and the message
names the place. Limits protect memory and time: they are far above anything that fairopt writes, and each has
a message.

Numbers are exact. In JSON a number is an integer or a string "p/q" (or "p"). A float is refused, except where
the caller allows ``floats``; it then stands for the fraction that it is.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from io import BufferedIOBase
from math import inf, isfinite
from pathlib import Path
from typing import Any

#: The most digits of one numerator or denominator. Exact allocations of 200 users have about 1,600.
#: A number of more digits than Python prints, which is 4,300, must be a string.
MOST_DIGITS = 20_000
MOST_PLAIN_DIGITS = 4_000
#: The most bits of a sum's denominator, about 60,000 digits: a short packed file can hold many long numbers.
MOST_BITS = 200_000
#: The most characters of one JSON document, and of one line of a file of JSON lines, after unpacking.
MOST_TEXT = 2**29
MOST_LINE = 2**24
#: The most characters of a name; it is printed.
MOST_NAME = 200
_WHOLE = re.compile(r"-?[0-9]+")
_RATIO = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?")

Number = Fraction | float  #: an exact number; the only floats among them are the two infinities


class Unreadable(Exception):
    """The file is not of the form that can be decided; the message says where and why."""


class Rejected(Exception):
    """The file can be read, and it does not prove what it states."""


def require(holds: object, place: str, otherwise: str) -> None:
    """Raise `Unreadable`, naming the place, unless ``holds``."""
    if not holds:
        raise Unreadable(f"{place}: {otherwise}")


def within(amount: int, most: int, place: str, what: str) -> None:
    """Refuse work beyond a limit: ``amount`` of ``what``, of which at most ``most`` are decided."""
    require(amount <= most, place, f"{shown(amount)} {what} are too many to decide; the limit is {most}")


# -- numbers -----------------------------------------------------------------------------------------------
def whole(written: str, place: str, most: int = MOST_DIGITS) -> int:
    """Return the integer that a string of at most so many digits stands for."""
    require(_WHOLE.fullmatch(written), place, f"{brief(written)} is no integer")
    within(len(written), most, place, "digits of a number")
    return int(Decimal(written))  # unlike int(written), not limited to 4,300 digits


def number(value: Any, place: str, *, floats: bool = False) -> Fraction:
    """Return an integer, a string "p/q" or, where ``floats`` are allowed, a float, as a fraction."""
    if type(value) is int:
        return Fraction(value)
    if type(value) is float:
        require(floats and isfinite(value), place, f"{value!r} is no exact number")
        return Fraction(value)
    parts = _RATIO.fullmatch(value) if type(value) is str else None
    if parts is None:
        raise Unreadable(f"{place}: {brief(value)} is no number")
    denominator = whole(parts[2], place) if parts[2] else 1
    require(denominator, place, f"{brief(value)} divides by zero")
    return Fraction(whole(parts[1], place), denominator)


def amount(value: Any, place: str, *, positive: bool = False, floats: bool = False) -> Fraction:
    """Return a number that is not negative or, where asked, ``positive``."""
    found = number(value, place, floats=floats)
    require(found > 0 or (found == 0 and not positive), place, f"{shown(found)} is too little")
    return found


def or_infinity(value: Any, place: str, *, floats: bool = False) -> Number:
    """Return a number, or infinity for null."""
    return inf if value is None else number(value, place, floats=floats)


def integer(value: Any, place: str, *, least: int = 0) -> int:
    """Return an integer, at least ``least``."""
    if type(value) is not int or value < least:
        raise Unreadable(f"{place}: {brief(value)} is no integer of at least {least}")
    return value


def numbers(value: Any, place: str, length: int | None = None, *, floats: bool = False) -> list[Fraction]:
    """Return a list of numbers, of ``length`` where it is given."""
    return [
        number(each, f"{place}[{at}]", floats=floats) for at, each in enumerate(items(value, place, length))
    ]


def summed(values: Iterable[Fraction]) -> Fraction:
    """Return a sum; one of too many digits is refused, since every further step would take a second."""
    found = Fraction(0)
    for value in values:
        found += value
        within(found.denominator.bit_length(), MOST_BITS, "arithmetic", "bits of a sum")
    return found


# -- words, lists and objects ------------------------------------------------------------------------------
def text(value: Any, place: str) -> str:
    """Return a string."""
    if type(value) is not str:
        raise Unreadable(f"{place}: {brief(value)} is no string")
    return value


def truth(value: Any, place: str) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        raise Unreadable(f"{place}: {brief(value)} is neither true nor false")
    return value


def choice(value: Any, place: str, known: Sequence[str]) -> str:
    """Return a word that must be one of those ``known``."""
    require(type(value) is str and value in known, place, f"{brief(value)} is none of {', '.join(known)}")
    return str(value)


def items(value: Any, place: str, length: int | None = None) -> list[Any]:
    """Return a list, of ``length`` where it is given."""
    if type(value) is not list:
        raise Unreadable(f"{place}: {brief(value)} is no list")
    require(length in (None, len(value)), place, f"it has {len(value)} entries and needs {length}")
    return value


def fields(data: Any, place: str, needed: str, optional: str = "") -> dict[str, Any]:
    """Return an object with the keys ``needed`` and no other but those ``optional``, None where absent."""
    if type(data) is not dict:
        raise Unreadable(f"{place}: {brief(data)} is no object")
    must, may = needed.split(), optional.split()
    missing, unknown = (
        [key for key in must if key not in data],
        [key for key in data if key not in must + may],
    )
    if missing or unknown:
        raise Unreadable(f"{place}: missing keys: {', '.join(missing)}; unknown keys: {brief(unknown)}")
    return dict.fromkeys(may) | data


def schema(data: Any, place: str, known: int = 1) -> None:
    """Refuse a version of the format that is not the one ``known``."""
    require(type(data) is int and data == known, f"{place}schema", f"{brief(data)} is not {known}")


def names(values: Any, place: str) -> list[str]:
    """Return names: strings that can be printed, neither blank nor long, no two the same."""
    found = [text(each, place) for each in items(values, place)]
    for name in found:
        require(name.isprintable() and name.strip(), place, f"the name {brief(name)} cannot be printed")
        within(len(name), MOST_NAME, place, "characters of a name")
    twice = len(set(found)) < len(found)
    require(not twice, place, "a name stands twice")
    return found


def position(name: Any, known: Sequence[str] | dict[str, int], place: str) -> int:
    """Return where a name stands among those ``known``: a list, or a dictionary of positions for many."""
    if type(name) is not str or name not in known:
        raise Unreadable(f"{place}: {brief(name)} is unknown")
    return known[name] if isinstance(known, dict) else known.index(name)


# -- files -------------------------------------------------------------------------------------------------
def parsed(written: str, place: str = "document") -> Any:
    """Return what a JSON text says; no object may have a key twice."""
    try:
        return _JSON.decode(written)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{place}: not JSON that can be read: {brief(error)}") from error


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    require(
        len(found) == len(pairs), "an object", f"a key stands twice among {brief([key for key, _ in pairs])}"
    )
    return found


def _plain_integer(digits: str) -> int:
    return whole(digits, "an integer that is no string", MOST_PLAIN_DIGITS)


_JSON = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_int=_plain_integer)


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file, packed by gzip or not, whatever it is called; errors of either become `Unreadable`."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if packed else raw as stream:
                yield stream
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(str(error)) from error


def document(path: Path) -> Any:
    """Return what a file with one JSON document says."""
    with opened(path) as stream:
        written = stream.read(MOST_TEXT + 1)
        within(len(written), MOST_TEXT, "document", "characters")
        return parsed(written.decode("utf-8"))


def lines(path: Path) -> Iterator[Any]:
    """Yield what each line of a file of JSON lines says, one at a time: a long file needs no more memory."""
    with opened(path) as stream:
        at = 0
        while line := stream.readline(MOST_LINE + 1):
            at += 1
            within(len(line), MOST_LINE, f"line {at}", "characters")
            if line.strip():
                yield parsed(line.decode("utf-8"), f"line {at}")


def first(path: Path) -> tuple[Any, bool]:
    """Return the first JSON value in a file, and whether it is all that there is.

    It is the first line where that is JSON by itself, as in a file of JSON lines; else the whole file.
    """
    with opened(path) as stream:
        line = stream.readline(MOST_LINE + 1)
        try:
            begins = parsed(line.decode("utf-8"), "line 1")
        except (Unreadable, UnicodeDecodeError):
            return document(path), True
        return begins, not any(more.strip() for more in iter(lambda: stream.readline(MOST_LINE + 1), b""))


# -- what is printed ---------------------------------------------------------------------------------------
def shown(value: Number) -> str:
    """Return a number for print: exactly where it is short, else rounded, with its number of digits."""
    if not isinstance(value, (int, Fraction)):
        return str(value)
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits <= 400:
        return str(value)
    exponent = (value.numerator.bit_length() - value.denominator.bit_length()) * 30103 // 100_000  # log10(2)
    leading = float(value / Fraction(10) ** exponent)
    return f"about {leading:.9f}e{exponent} ({bits * 30103 // 100_000 + 1} digits)"


def brief(value: Any) -> str:
    """Return anything for an error message: short, and on one line."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return shown(value)
    if isinstance(value, str):
        value = value[:80]  # before it is quoted, since it may be long
    try:
        told = repr(value) if not isinstance(value, Exception) else str(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to show"
    return told if len(told) <= 80 else told[:77] + "..."


def one_line(said: str) -> str:
    """Return text in printable ASCII on one line, so that no name can pass for a line of its own."""
    return "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in said)


def digest(data: Any) -> str:
    """Return a name for numbers and words, 128 bits of their SHA-256: no two can be made that share it."""
    told = json.dumps(data, separators=(",", ":"), ensure_ascii=True, sort_keys=True)
    return sha256(told.encode("ascii")).hexdigest()[:32]
