"""How the verifiers read a file: numbers exactly, limits with a message, packed or not, and nothing twice."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairopt.problem.files.storage import read_text
from fairopt.proofs.verifier import front, reading
from fairopt.proofs.verifier.reading import Entry, Unreadable


@pytest.mark.parametrize(
    ("value", "means"),
    [(3, 3), ("3", 3), ("-3/4", Fraction(-3, 4)), ("006/008", Fraction(3, 4)), ("-0", 0)],
)
def test_a_number_is_what_it_says(value: Any, means: object) -> None:
    assert Entry(value, "here").number() == means


@pytest.mark.parametrize(
    "value", ["1.5", "1e3", " 1", "1\n", "+1", "1/0", "1/-2", "١", "0x1", "", "nan", True, None, [1], 0.5, {}]
)
def test_what_is_no_number_is_refused_by_place(value: Any) -> None:
    with pytest.raises(Unreadable, match="market, capacity: "):
        Entry(value, "market, capacity").number()


def test_floats_stand_for_the_fractions_that_they_are_where_they_are_allowed() -> None:
    assert Entry(0.1, "here", floats=True).number() == Fraction(0.1)
    for value in (float("nan"), float("inf")):
        with pytest.raises(Unreadable, match="no exact number"):
            Entry(value, "here", floats=True).number()


def test_long_numbers_are_read_and_only_absurd_ones_refused() -> None:
    """Python itself stops at 4,300 digits; an exact allocation may have more."""
    digits = "123456789" * 1000
    assert Entry(f"-{digits}/7", "here").number() * -7 == reading.whole(digits, "here")
    assert reading.whole(digits, "here") % 10**9 == 123456789
    assert reading.parsed(digits[:4000]) == reading.whole(digits[:4000], "here")
    with pytest.raises(Unreadable, match="an integer that is no string: 9000 digits"):
        reading.parsed(digits)
    with pytest.raises(Unreadable, match=r"here: 20001 digits .* the limit is 20000"):
        Entry("9" * 20_001, "here").number()


def test_long_numbers_are_printed_rounded_and_short_ones_exactly() -> None:
    assert reading.shown(Fraction(22, 7)) == "22/7"
    assert reading.shown(reading.whole("2" * 9000, "here")) == "about 2.222222222e8999 (9000 digits)"
    assert reading.shown(Fraction(1, 10**999)).startswith("about 1.000000000e-999 ")
    assert reading.shown(Fraction(-(10**999) - 1, 10**999)).startswith("about -1.000000000e0 ")


def refusals() -> dict[str, Callable[[], object]]:
    return {
        "here: 2 is no integer of at least 3": lambda: Entry(2, "here").integer(3),
        "here: True is no integer": lambda: Entry(True, "here").integer(),
        "here: 0 is too little": lambda: Entry(0, "here").amount(positive=True),
        "here: -1 is too little": lambda: Entry(-1, "here").amount(),
        "here: 7 is no string": lambda: Entry(7, "here").text(),
        "here: 1 is neither true nor false": lambda: Entry(1, "here").truth(),
        "here: 'c' is none of a, b": lambda: Entry("c", "here").choice(["a", "b"]),
        "here: 'ab' is no list": lambda: Entry("ab", "here").items(),
        "here: it has 1 entries and needs 2": lambda: Entry([1], "here").items(2),
        "here: missing keys: b; unknown keys: ..c..": lambda: Entry({"a": 1, "c": 1}, "here").fields("a b"),
        "here: None is no object": lambda: Entry(None, "here").fields("a"),
        "schema: True is not 1": lambda: Entry({"schema": True})["schema"].version(),
        "here: the name .*cannot be printed": lambda: Entry("a\nb", "here").name(),
        "here: the name ' ' cannot be printed": lambda: Entry(" ", "here").name(),
        "here: 201 characters of a name are too many": lambda: Entry("a" * 201, "here").name(),
        "here: a name stands twice": lambda: reading.distinct(["a", "a"], "here"),
        "here: 'c' is unknown": lambda: Entry("c", "here").position(["a", "b"]),
        "here: 0 is unknown": lambda: Entry(0, "here").position({"a": 0}),
        "here: 1000001 slots are too many": lambda: reading.within(1_000_001, 10**6, "here", "slots"),
        "document: not JSON": lambda: reading.parsed("{"),
        "document: not JSON that can be read: maximum recursion": lambda: reading.parsed("[" * 100_000),
        "document: 901 lists and objects in each other are too many": lambda: reading.parsed("[" * 901 + "]" * 901),
        "a key stands twice": lambda: reading.parsed('{"a": {"b": 1, "b": 2}}'),
    }


@pytest.mark.parametrize("says", refusals())
def test_a_refusal_names_the_place_and_the_value(says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        refusals()[says]()


def test_absent_optional_keys_are_none() -> None:
    assert Entry({"a": 1}, "here").fields("a", "b").value == {"a": 1, "b": None}


def test_messages_stay_short() -> None:
    for value in ("x" * 10**6, list(range(10**5)), 10**5000, ["x" * 10**5]):
        assert len(reading.brief(value)) <= 90


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_files_are_read_packed_or_not(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "whatever it is called"
    path.write_bytes(pack(b'{"a":\n 1}'))
    assert reading.document(path) == {"a": 1}
    assert reading.first(path) == ({"a": 1}, True)
    path.write_bytes(pack(b'{"a": 1}\n\n{"b": 2}\n'))
    assert list(reading.lines(path)) == [{"a": 1}, {"b": 2}]
    assert reading.first(path) == ({"a": 1}, False)
    path.write_bytes(pack(b'\n\n{"a": 1}'))
    assert reading.first(path) == ({"a": 1}, True)
    path.write_bytes(pack(b'{"a": 1}\n\n \n'))
    assert reading.first(path) == ({"a": 1}, True)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"", b"{", gzip.compress(b"{}", mtime=0)[:-4], gzip.compress(b"{}" * 99, mtime=0)[:30] + b"\0" * 30],
    ids=["no UTF-8", "empty", "cut", "packed and cut", "packed and damaged"],
)
def test_files_that_cannot_be_read_say_so(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for read in (reading.document, reading.first):
        with pytest.raises(Unreadable):
            read(path)
    with pytest.raises(Unreadable):
        reading.document(tmp_path / "absent")
    with pytest.raises(Unreadable):
        reading.document(tmp_path)


def test_what_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_TEXT", 10**6)
    monkeypatch.setattr(reading, "MOST_LINE", 10**5)
    path = tmp_path / "long.json"
    path.write_bytes(b" " * (10**6 + 1))
    with pytest.raises(Unreadable, match=r"1000001 characters are too many to decide; the limit is 1000000"):
        reading.document(path)
    with pytest.raises(Unreadable, match=r"line 1: 100001 characters"):
        list(reading.lines(path))


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    """All that a file may hold was made room for: 512 MB for one of two bytes, so that a memory limit refused it."""
    path, packed = tmp_path / "small.json", tmp_path / "small.json.gz"
    path.write_bytes(b"[]" + b" " * (3 * reading.PIECE))
    packed.write_bytes(gzip.compress(b"[]"))
    tracemalloc.start()
    found = [reading.document(each) for each in (path, packed)]
    read = [read_text(path).strip(), read_text(packed).strip()]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, read) == ([[], []], ["[]", "[]"])
    assert most < 20 * reading.PIECE


def test_where_there_is_not_enough_memory_a_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(front, "first", no_room)
    assert front.report(tmp_path / "one.json") == (front.UNREADABLE, ["cannot be read: there is not enough memory"])


def test_what_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory and time that a file takes go with its size, packed as it is."""
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1000)
    path = tmp_path / "bomb.json.gz"
    for written in (b" " * 99_999 + b"1", (b"1" + b" " * 98 + b"\n") * 2_000):
        packed = gzip.compress(written)
        path.write_bytes(packed)
        for read in (reading.document, lambda path: list(reading.lines(path))):
            with pytest.raises(Unreadable, match=f"characters.* the limit is {1000 + 100 * len(packed)}$"):
                read(path)
    for written in (b" " * 999 + b"1", b" " * 998 + b"1\n"):
        path.write_bytes(gzip.compress(written))
        assert (reading.document(path), [*reading.lines(path)]) == (1, [1])


def test_long_numbers_that_repeat_themselves_in_a_packed_file_are_refused(tmp_path: Path) -> None:
    """Packed, ten of 9,999 digits have 200 bytes, and arithmetic with them takes long; digits of chance do not pack."""
    path, random = tmp_path / "numbers.json", Random(1)
    for fine in (["9" * 399] * 60, [str(random.getrandbits(13_000)) for _ in range(10)]):
        path.write_bytes(gzip.compress(json.dumps(fine).encode()))
        assert reading.document(path) == next(reading.lines(path)) == fine
    path.write_text(json.dumps(["9" * 9_999] * 10))
    assert len(reading.document(path)) == 10
    path.write_bytes(gzip.compress(path.read_bytes()))
    for read in (reading.document, lambda path: next(reading.lines(path))):
        with pytest.raises(Unreadable, match="99990 digits of long numbers that repeat themselves are too many"):
            read(path)


def test_what_a_packed_file_may_hold_goes_for_its_first_line_and_for_blank_lines_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of 16 kB, packed, took 450 MB; 250 million blank lines in 243 kB took minutes."""
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1000)
    path = tmp_path / "bomb.json.gz"

    def refused(written: bytes, what: str, comment: int, read: Callable[[Path], object]) -> None:
        packed = gzip.compress(written)  # a comment of the packer makes it as large as one likes
        path.write_bytes(packed[:3] + b"\x10" + packed[4:10] + b"x" * comment + b"\0" + packed[10:])
        with pytest.raises(Unreadable, match=f"{what} are too many to decide"):
            read(path)

    refused(b"[" + b"[]," * 7_000 + b"1]", "characters", 0, reading.first)
    refused(json.dumps(["9" * 9_999] * 10).encode(), reading.REPEATED, 2_000, reading.first)
    for read in (reading.first, reading.document):
        refused(b"[" + b"[]," * 2_500 + b"1]", "values and lines", 100, read)
    for read in (reading.first, lambda path: list(reading.lines(path))):
        refused(b"1" + b"\n" * 4_000, "values and lines", 100, read)
