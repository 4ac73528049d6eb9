"""Documents of other tools: what is read, and what is refused within a stated limit."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.importing import documents
from fairopt.importing.documents import found_in, opened_zip, quantity, yaml_documents
from fairopt.problem.files import storage


def _read(folder: Path, name: str, text: str) -> list[tuple[str, object]]:
    path = folder / name
    path.write_text(text)
    return [(each.place, each.value) for each in found_in(path)]


def test_lists_are_taken_apart(tmp_path: Path) -> None:
    inner = {"kind": "List", "items": [{"a": 1}, {"kind": "QueueList", "items": [{"b": 2}]}]}
    assert _read(tmp_path, "m.json", json.dumps(inner)) == [("item 1", {"a": 1}), ("item 2, item 1", {"b": 2})]


def test_a_file_that_is_too_large_for_a_market_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What kubectl prints of 70,000 workloads has 160 MB."""
    monkeypatch.setattr(storage, "LARGEST_FILE", 10)
    assert _read(tmp_path, "m.json", json.dumps({"items": [{"kind": "Queue"}]})) == [("item 1", {"kind": "Queue"})]


def test_yaml_has_several_documents_and_exact_numbers(tmp_path: Path) -> None:
    text = "a: 1.10\nb: 0x10\nc: 010\nd: no\ne: ~\nf: 2026-01-01\ng: '7'\nh: [1, {i: x}]\n---\n---\nkind: T\n"
    first = {"a": Decimal("1.10"), "b": 16, "c": 8, "d": False, "e": None, "f": "2026-01-01", "g": "7"}
    first["h"] = [1, {"i": "x"}]
    assert _read(tmp_path, "m.yaml", text) == [("the top level", first), ("document 3", {"kind": "T"})]


def test_a_large_file_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "WHOLE", 10)
    monkeypatch.setattr(documents, "SMALL", 10)
    text = json.dumps({"kind": "List", "items": [{"n": number} for number in range(50)]})
    assert _read(tmp_path, "m.json", text)[-1] == ("item 50", {"n": 49})
    with pytest.raises(BadInput, match=r"m\.json: after item 50.*not JSON"):
        _read(tmp_path, "m.json", text[:-2] + ", [}")
    with pytest.raises(BadInput, match="without items"):
        _read(tmp_path, "m.json", '{"kind": "Nothing at all"}')
    with pytest.raises(BadInput, match="bytes of YAML"):
        _read(tmp_path, "m.yaml", "a: 1234567890")


def laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.yaml", laughs(), r"m\.yaml: line 2: the alias \*a0"),
        ("m.yaml", "[" * 200 + "]" * 200, r"line 1: more than 100 levels"),
        ("m.yaml", "a: 1\na: 2", r"line 1: the key 'a' stands twice"),
        ("m.yaml", "a: [1", r"m\.yaml: line \d+, column \d+: not YAML"),
        ("m.yaml", "a: !!python/object:os.system x", r"the tag|not YAML"),
        ("m.yaml", "a: !secret x", r"the tag '!secret'"),
        ("m.yaml", "? [1, 2]\n: 3", r"a key that is no text"),
        ("m.yaml", "a: " + "9" * 5000, r"line 1: got '9+"),
        ("m.yaml", "a: \x01", r"not YAML"),
        ("m.yaml", "- 1", r"the top level: got \[1\]"),
        ("m.json", "[" * 100_000, r"nested too deeply|not JSON|levels"),
        ("m.json", '{"a": ' * 150 + "1" + "}" * 150, r"more than 100 levels"),
        ("m.json", '{"items": [1]}', r"item 1: got 1"),
        ("m.json", "{", r"m\.json: line 1, column 2: not JSON"),
        ("m.json", "", r"the file is empty"),
    ],
)
def test_what_is_hostile_or_broken_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        _read(tmp_path, name, text)


def test_limits_are_the_callers(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"a": 1}')
    with pytest.raises(BadInput, match="8 bytes, at most 7"):
        list(found_in(tmp_path / "m.json", most=7))


def test_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/b.json", "{}")
    with opened_zip(path) as (packed, entries):
        assert {each.filename: packed.read(each) for each in entries} == {"a/b.json": b"{}"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb", b"0" * 50_000_000)
    with pytest.raises(BadInput, match="50000000 bytes unpacked"), opened_zip(path):
        pass
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(BadInput, match="not a zip file"), opened_zip(path):
        pass


@given(st.text())
def test_any_text_is_read_as_yaml_or_refused(text: str) -> None:
    with suppress(BadInput):
        list(yaml_documents(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("1500m", Fraction(3, 2)), ("64Gi", 64 * 2**30), ("1e3", 1000), ("12E", 12 * 10**18), ("-.5k", -500)],
)
def test_quantities(text: str, value: Fraction) -> None:
    assert quantity(text, "cpu") == value


@pytest.mark.parametrize("text", ["", "8 GB", "1_000", "0x10", "1e9999", "Ki", "٣", "nan", None, True, [], 1.5])
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(BadInput, match="cpu"):
        quantity(text, "cpu")


@pytest.mark.parametrize("text", ["1970-01-01T01:00:00Z", "1970-01-01T01:00:00", "1970-01-01T03:30:00+02:30"])
def test_times_with_and_without_an_offset_from_utc(text: str) -> None:
    assert documents.SECONDS.read(text, "created") == 3600


# -- a list of objects is parsed in pieces ------------------------------------------------------------------------
_OBJECTS = [
    {
        "kind": "A",
        "metadata": {"name": f"a{number}", "labels": {"x}": '"{', "y": "\n{"}},
        "spec": {"list": [{}, {"n": 1}]},
    }
    for number in range(60)
]
_HEAD = {"apiVersion": "v1"}


def _in_pieces(text: str) -> Iterator[documents.ObjectPart]:
    return documents._in_stream(io.BytesIO(text.encode()), len(text.encode()))


@pytest.mark.parametrize("size", [1, 40, 200, 1_000, 10**6])
@pytest.mark.parametrize("indent", [None, 0, 1, 4])
@pytest.mark.parametrize("last", [True, False])
def test_pieces_of_a_list_are_the_list(
    size: int, indent: int | None, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the text is laid out, and wherever it is cut, its objects and their places are those of the whole."""
    whole = {**_HEAD, "items": _OBJECTS, "kind": "List"} if last else {**_HEAD, "kind": "List", "items": _OBJECTS}
    for text in (json.dumps(whole, indent=indent), json.dumps(whole).replace('{"kind": "A"', '\n{"kind": "A"')):
        monkeypatch.setattr(documents, "AT_ONCE", size)
        found = list(_in_pieces(text))
        assert [each.value for each in found] == _OBJECTS
        assert [each.place for each in found] == [f"item {number}" for number in range(1, 61)]


def test_a_list_that_kubectl_prints_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 1_000)
    text = json.dumps({**_HEAD, "items": _OBJECTS, "kind": "List"}, indent=4)
    pieces = list(documents._pieces(io.BytesIO(text.encode())))
    assert len(pieces) > len(text) // 2_000
    assert [before for _, before in pieces][:2] == [0, len(pieces[0][0]["items"])]


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"items": _OBJECTS}, indent=4))

    def fail(stream: object, size: int) -> Iterator[documents.ObjectPart]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(documents, "_in_stream", fail)
    with pytest.raises(BadInput, match="cannot read: Input/output error"):
        list(found_in(path))


def test_a_list_in_which_no_object_seems_to_end_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not held in memory: only the first two objects begin in a line of their own."""
    text = "{\n" + '"items": [\n{"n": 0},\n' + ", ".join(f'{{"n": {number}}}' for number in range(1, 400)) + "]}"
    path = tmp_path / "list.json"
    path.write_text(text)
    monkeypatch.setattr(documents, "AT_ONCE", 100)
    monkeypatch.setattr(documents, "WHOLE", 1_000)
    monkeypatch.setattr(documents, "_parsed", lambda text, data: pytest.fail("whole") if len(data) > 2_000 else {})
    assert [each.value["n"] for each in found_in(path)] == list(range(400))


def _outcome(read: Callable[[], Iterable[documents.ObjectPart]]) -> object:
    try:
        return [(each.place, each.value) for each in read()]
    except BadInput as error:
        return str(error)


@pytest.mark.parametrize("size", [1, 300, 10**6])
@pytest.mark.parametrize(
    "wrong",
    ['"n": 1,', '"n": 1, "n": 2', '"n": [', '"n": 1}, {"m": 2', '"n": 1\n}\n\n{', '"n": 1},\n    {"m": 1', '"n": 00'],
)
def test_what_is_wrong_in_a_piece_is_said_of_the_whole(wrong: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({**_HEAD, "items": _OBJECTS}, indent=4).replace('"n": 1', wrong, 31).replace(wrong, '"n": 1', 30)
    whole = _outcome(lambda: documents.json_documents(text))
    monkeypatch.setattr(documents, "AT_ONCE", size)
    assert _outcome(lambda: _in_pieces(text)) == whole


_LIST = {"kind": "QueueList", "items": [{"a": 1}, {"b": 2}]}


@pytest.mark.parametrize("size", [1, 300])
@pytest.mark.parametrize("indent", [0, 1, 4])
@pytest.mark.parametrize(
    "rest",
    [
        {"other": _OBJECTS},
        {"kind": "A", "other": _OBJECTS, "kinds": "B"},
        {"items": [_LIST, *_OBJECTS, {"items": []}, *_OBJECTS]},
        {"items": [{f"k{n}": [{"a": 1}, {"b": 2}] for n in range(40)}, *_OBJECTS]},
    ],
)
def test_whatever_stands_beside_the_list_or_in_it(
    rest: dict[str, Any], indent: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another list is no part of it, a key that stands twice is refused, and lists in it are one item each."""
    text = json.dumps({"items": _OBJECTS, **rest}, indent=indent).replace('"kinds"', '"kind"')
    whole = _outcome(lambda: documents.json_documents(text))
    monkeypatch.setattr(documents, "AT_ONCE", size)
    assert _outcome(lambda: _in_pieces(text)) == whole


def test_a_list_that_is_not_only_a_list_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys around the list are looked at, too: here one of them stands twice."""
    monkeypatch.setattr(documents, "AT_ONCE", 1)
    text = json.dumps({"items": _OBJECTS, "kind": "List"}, indent=1).replace(
        '"kind": "List"', '"kind": "A", "kind": "B"'
    )
    with pytest.raises(BadInput, match="stands twice"):
        list(_in_pieces(text))
