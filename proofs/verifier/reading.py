"""How a file becomes numbers, names and lists. All verifiers read through this module.

Whoever wrote the file is not trusted. What is not of the expected form raises `Unreadable`, and the message
names the place. Limits protect memory and time: they are far above anything that fairopt writes.

Numbers are exact. In JSON a number is an integer or a string "p/q" (or "p"). A float is refused, except where
the entry allows ``floats``; it then stands for the fraction that it is.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import sha256
from io import BufferedIOBase
from itertools import islice
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
#: So many are read at once.
PIECE = 2**20
#: The most lists and objects in each other, which is less than Python's own limit.
MOST_DEPTH = 900
#: The most characters in a packed file: so many, and so many for each of its own; runs have up to 30.
MOST_UNPACKED, MOST_RATIO = 2**18, 100
#: The most digits of long numbers for each character of a packed file: of digits of chance there are 2.4.
MOST_PACKED_DIGITS, REPEATED = 8, "digits of long numbers that repeat themselves"
#: The most values, and twice the lines, for each character of a packed file: of runs there are up to 3.
MOST_PACKED_VALUES = 6
#: The most steps of comparisons of all with all: 1,000 users and 10 types in bounds take most of a minute.
MOST_COMPARED, STEPS = 65 * 10**6, "steps of comparisons"
#: The most characters of a name; it is printed.
MOST_NAME = 200
#: What may stand between values in JSON.
BLANKS = b" \t\r\n"
_WHOLE = re.compile(r"-?[0-9]+")
_RATIO = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?")
_LONG = re.compile(rb"[0-9]{400,}")

Number = Fraction | float  #: an exact number; the only floats among them are the two infinities
Table = list[list[Fraction]]  #: a row for each user, a column for each type
ZERO, ONE = Fraction(0), Fraction(1)


class Unreadable(Exception):
    """The file is not of the form that can be decided; the message says where and why."""


class Rejected(Exception):
    """The file can be read, and it does not prove what it states."""


def require(holds: object, place: str, otherwise: str) -> None:
    """Raise `Unreadable`, naming the place, unless ``holds``."""
    if not holds:
        raise Unreadable(f"{place}: {otherwise}")


def within(amount: int, most: Number, place: str, what: str) -> None:
    """Refuse work beyond a limit: ``amount`` of ``what``, of which at most ``most`` are decided."""
    if amount > most:  # a message costs more than the comparison
        raise Unreadable(f"{place}: {shown(amount)} {what} are too many to decide; the limit is {most}")


@dataclass
class Budget:
    """What deciding one file takes, however much is nested in it: each limit alone would use all of it up."""

    spent: Fraction = ZERO

    def spend(self, amount: int, most: int, place: str, what: str) -> None:
        """Take ``amount`` of ``what``, or refuse it where the file has not so much left."""
        beside = " beside what was decided before" if self.spent else ""
        self.spent += Fraction(amount, most)
        otherwise = f"{shown(amount)} {what} are too many to decide{beside}; the limit is {most}"
        require(self.spent <= 1, place, otherwise)


def whole(written: str, place: str, most: int = MOST_DIGITS) -> int:
    """Return the integer that a string of at most so many digits stands for."""
    if not _WHOLE.fullmatch(written):
        raise Unreadable(f"{place}: {brief(written)} is no integer")
    within(len(written), most, place, "digits of a number")
    return int(Decimal(written))  # unlike int(written), not limited to 4,300 digits


def summed(values: Iterable[Fraction]) -> Fraction:
    """Return a sum; one of too many digits is refused, since every further step would take a second."""
    found = ZERO
    for value in values:
        found += value
        if (bits := found.denominator.bit_length()) > MOST_BITS:
            within(bits, MOST_BITS, "arithmetic", "bits of a sum")
    return found


@dataclass(slots=True)
class Entry:
    """Something that a file says, and where. Every method returns what it is, or raises `Unreadable`."""

    value: Any
    place: str = ""
    floats: bool = False  #: whether numbers in it may be floats
    budget: Budget = field(default_factory=Budget)  #: that of the file

    def __getitem__(self, key: str) -> Entry:
        """Return what stands under a key of an object that `fields` has checked."""
        return self.of(self.value[key], f"{self.place}, {key}" if self.place else key)

    def of(self, value: Any, place: str) -> Entry:
        """Return something else that the same file says, and where."""
        return Entry(value, place, self.floats, self.budget)

    def at(self, place: str) -> Entry:
        """Return the same under the name of another place."""
        return self.of(self.value, place)

    def odd(self, what: str) -> Unreadable:
        """Return the error that the entry is not what it should be."""
        return Unreadable(f"{self.place or 'document'}: {brief(self.value)} {what}")

    def _of(self, kind: type, what: str) -> Any:
        if type(self.value) is not kind:
            raise self.odd(f"is {what}")
        return self.value

    # -- numbers -------------------------------------------------------------------------------------------
    def number(self) -> Fraction:
        """Return an integer, a string "p/q" or, where ``floats`` are allowed, a float, as a fraction."""
        if type(self.value) is int:
            return Fraction(self.value)
        if type(self.value) is float:
            require(self.floats and isfinite(self.value), self.place, f"{self.value!r} is no exact number")
            return Fraction(self.value)
        parts = _RATIO.fullmatch(self.value) if type(self.value) is str else None
        if parts is None:
            raise self.odd("is no number")
        denominator = whole(parts[2], self.place) if parts[2] else 1
        if not denominator:
            raise self.odd("divides by zero")
        return Fraction(whole(parts[1], self.place), denominator)

    def amount(self, *, positive: bool = False) -> Fraction:
        """Return a number that is not negative or, where asked, ``positive``."""
        found = self.number()
        require(found > 0 or (found == 0 and not positive), self.place, f"{shown(found)} is too little")
        return found

    def or_infinity(self, infinity: float = inf) -> Number:
        """Return a number, or infinity for null."""
        return infinity if self.value is None else self.number()

    def integer(self, least: int = 0) -> int:
        """Return an integer, at least ``least``."""
        if type(self.value) is not int or self.value < least:
            raise self.odd(f"is no integer of at least {least}")
        return self.value

    def numbers(self, length: int | None = None) -> list[Fraction]:
        """Return a list of numbers, of ``length`` where it is given."""
        return [each.number() for each in self._each(length)]

    # -- words, lists and objects --------------------------------------------------------------------------
    def text(self) -> str:
        """Return a string."""
        return str(self._of(str, "no string"))

    def truth(self) -> bool:
        """Return true or false."""
        return bool(self._of(bool, "neither true nor false"))

    def choice(self, known: Collection[str]) -> str:
        """Return a word that must be one of those ``known``."""
        if type(self.value) is not str or self.value not in known:
            raise self.odd(f"is none of {', '.join(known)}")
        return self.value

    def position(self, known: Sequence[str] | dict[str, int]) -> int:
        """Return where a name stands among those ``known``: a list, or a dictionary of positions for many."""
        if type(self.value) is not str or self.value not in known:
            raise self.odd("is unknown")
        return known[self.value] if isinstance(known, dict) else known.index(self.value)

    def items(self, length: int | None = None) -> list[Entry]:
        """Return the entries of a list, of ``length`` where it is given."""
        return list(self._each(length))

    def _each(self, length: int | None) -> Iterator[Entry]:
        found = self._of(list, "no list")
        require(length in (None, len(found)), self.place, f"it has {len(found)} entries and needs {length}")
        return (self.of(each, f"{self.place}[{at}]") for at, each in enumerate(found))

    def by_name(self) -> dict[str, Entry]:
        """Return what an object with any keys holds; nothing for null."""
        data = {} if self.value is None else self._of(dict, "no object")
        return {key: self.of(each, f"{self.place}, {brief(key)}") for key, each in data.items()}

    def or_none(self) -> list[Entry]:
        """Return the entries of a list; none for null."""
        return [] if self.value is None else self.items()

    def fields(self, needed: str, optional: str = "") -> Entry:
        """Return an object with the keys ``needed`` and no other but the ``optional``, null where absent."""
        data = self._of(dict, "no object")
        must, may = needed.split(), optional.split()
        missing = [key for key in must if key not in data]
        unknown = [key for key in data if key not in must and key not in may]
        if missing or unknown:
            said = f"missing keys: {', '.join(missing)}; unknown keys: {brief(unknown)}"
            raise Unreadable(f"{self.place or 'document'}: {said}")
        return self.of(dict.fromkeys(may) | data, self.place)

    def version(self, known: int = 1) -> None:
        """Refuse a version of the format that is not the one ``known``."""
        if type(self.value) is not int or self.value != known:
            raise self.odd(f"is not {known}")

    def name(self) -> str:
        """Return a name: a string that can be printed, neither blank nor long."""
        found = self.text()
        printable = found.isprintable() and found.strip()
        require(printable, self.place, f"the name {brief(found)} cannot be printed")
        within(len(found), MOST_NAME, self.place, "characters of a name")
        return found


def distinct(names: list[str], place: str) -> list[str]:
    """Return names, no two of which may be the same."""
    require(len(set(names)) == len(names), place, "a name stands twice")
    return names


# -- files -------------------------------------------------------------------------------------------------
def parsed(written: str, place: str = "document") -> Any:
    """Return what a JSON text says; no object may have a key twice."""
    try:
        found = _JSON.decode(written)
    except (ValueError, RecursionError) as error:
        what = "give a certificate, a recorded run or a schedule"
        raise Unreadable(f"{place}: not JSON that can be read: {brief(error)}; {what}") from error
    level, depth = [found], 0
    while level := [each for each in level if type(each) in (dict, list)]:
        depth += 1
        within(depth, MOST_DEPTH, place, "lists and objects in each other")
        level = [inner for each in level for inner in (each.values() if type(each) is dict else each)]
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable(f"an object: a key stands twice among {brief([key for key, _ in pairs])}")
    return found


_plain = partial(whole, place="an integer that is no string", most=MOST_PLAIN_DIGITS)
_JSON = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_int=_plain)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BufferedIOBase, Number]]:
    """Open a file, packed or not, and return its size where it is packed; errors become `Unreadable`."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if packed else raw as stream:
                yield stream, path.stat().st_size if packed else inf
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable((isinstance(error, OSError) and error.strerror) or str(error)) from error


@dataclass
class Packed:
    """What a packed file of a size may still hold; one that is not packed has no limits but its own size."""

    size: Number
    read: int = 0
    digits: int = 0
    values: int = 0

    def holds(self, written: bytes, place: str) -> bytes:
        """Return a piece, unless the file holds too much with it: long numbers take time, values room."""
        self.read += len(written)
        within(self.read, MOST_UNPACKED + MOST_RATIO * self.size, place, "characters")
        if self.size != inf:
            self.digits += sum(map(len, _LONG.findall(written)))
            self.values += sum(map(written.count, (b",", b"[", b"{", b"\n", b"\n")))
            within(self.digits, MOST_DIGITS + MOST_PACKED_DIGITS * self.size, place, REPEATED)
            within(self.values, MOST_UNPACKED + MOST_PACKED_VALUES * self.size, place, "values and lines")
        return written


def document(path: Path) -> Any:
    """Return what a file with one JSON document says."""
    with opened(path) as (stream, size):
        # piece by piece: asked for at once, all that may come would be made room for
        packed, pieces = Packed(size), iter(lambda: stream.read(PIECE), b"")
        written = b"".join(packed.holds(each, "document") for each in islice(pieces, MOST_TEXT // PIECE + 1))
        within(len(written), MOST_TEXT, "document", "characters")
        return parsed(written.decode("utf-8"))


def lines(path: Path) -> Iterator[Any]:
    """Yield what each line of a file of JSON lines says, one at a time: a long file needs no more memory."""
    with opened(path) as (stream, size):
        packed = Packed(size)
        for at, line in enumerate(iter(lambda: stream.readline(MOST_LINE + 1), b""), 1):
            within(len(line), MOST_LINE, f"line {at}", "characters")
            if packed.holds(line, f"line {at}").strip(BLANKS):
                yield parsed(line.decode("utf-8"), f"line {at}")


def first(path: Path) -> tuple[Any, bool]:
    """Return the first JSON value in a file, and whether it is all that there is.

    It is the first line where that is JSON by itself, as in a file of JSON lines; else the whole file.
    """
    with opened(path) as (stream, size):
        packed = Packed(size)
        line = stream.readline(MOST_LINE + 1)
        try:
            begins = parsed(packed.holds(line, "line 1").decode("utf-8"), "line 1")
        except (Unreadable, UnicodeDecodeError):
            return document(path), True
        pieces = iter(lambda: packed.holds(stream.read(PIECE), "document"), b"")
        return begins, not any(piece.strip(BLANKS) for piece in pieces)


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


def exactly(value: Number) -> str | None:
    """Return a number in lowest terms, with all its digits; None for infinity."""
    if abs(value) == inf:
        return None
    top, bottom = Decimal(Fraction(value).numerator), Decimal(Fraction(value).denominator)
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def row_exactly(row: list[Fraction]) -> list[str | None]:
    """Return a row of numbers for a digest."""
    return [exactly(value) for value in row]


def brief(value: Any) -> str:
    """Return anything for an error message: short, and on one line."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return shown(value)
    if isinstance(value, str):
        value = value[:80]  # before it is quoted, since it may be long
    try:
        text = repr(value) if not isinstance(value, Exception) else str(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 80 else text[:77] + "..."


def one_line(said: str) -> str:
    """Return text in printable ASCII on one line, so that no name can pass for a line of its own."""
    return "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in said)


def digest(data: Any) -> str:
    """Return a name for numbers and words, 128 bits of their SHA-256: no two can be made that share it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, sort_keys=True)
    return sha256(text.encode("ascii")).hexdigest()[:32]
