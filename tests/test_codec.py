"""What is written by the codec is read back as it was, and nothing is taken for something else."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from fairopt.codec import decode, encode
from fairopt.errors import BadInput
from fairopt.program import Number


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    value: Number


@dataclass(frozen=True, slots=True)
class Outer:
    """Something of everything that a state may hold."""

    number: Number
    maybe: Number | None = None
    by_name: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)
    by_pair: Mapping[tuple[int, str], Inner] = field(default_factory=dict)
    by_row: Mapping[int, Inner] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    either: int | str = 0
    real: float = 1.0
    listed: Sequence[int] = ()
    colour: Colour = Colour.RED
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    pair: tuple[int, str] = (1, "a")
    whatever: Any = None


FULL = Outer(
    Fraction(3),
    maybe=Fraction(-1, 2),
    by_name={"a": (1, 2.5, Fraction(10**40, 3))},
    by_pair={(1, "x"): Inner(Fraction(1, 3))},
    by_row={7: Inner(0)},
    names=frozenset("ba"),
    either="x",
    real=inf,
    listed=(3, 4),
    colour=Colour.BLUE,
    inner=Inner(2),
    inners=(Inner(2), Inner(Fraction(7, 2))),
    whatever=[1, {"a": None}],
)


def test_what_is_written_is_read_back_with_its_types() -> None:
    back = decode(Outer, json.loads(json.dumps(encode(FULL))))
    assert back == FULL
    assert [type(value) for value in (back.number, *back.by_name["a"])] == [Fraction, int, float, Fraction]
    assert decode(Outer, {"number": 1}) == Outer(1)


def test_numpy_numbers_are_written_as_numbers() -> None:
    given = Outer(np.float64(0.1), listed=tuple(np.arange(2)), by_row={np.int64(1): Inner(np.int32(5))})  # type: ignore[arg-type,dict-item]
    data = json.loads(json.dumps(encode(given)))
    assert (data["number"], data["listed"], data["by_row"]) == (0.1, [0, 1], [[1, {"value": 5}]])
    assert encode(np.array([[0.5, 1.0]])) == [[0.5, 1.0]]


def test_floats_that_are_not_finite_may_be_written_as_null() -> None:
    assert encode((inf, nan, 1.0), finite=True) == [None, None, 1.0]
    assert isnan(decode(float, None))
    assert encode(inf) == inf


def test_what_cannot_be_read_back_is_not_written() -> None:
    with pytest.raises(TypeError, match="cannot write object"):
        encode({"a": (object(),)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"number": True}, "state, key 'number': got True. Give a whole number or a string"),
        ({"number": "1e400000000"}, "key 'number': got '1e400000000'"),
        ({"number": "1/0"}, "key 'number': got '1/0'"),
        ({"inners": [{"value": 1}, {"value": "x"}]}, "key 'inners', entry 2, key 'value': got 'x'"),
        ({"inners": [[]]}, r"entry 1: got \[\]. Give an object"),
        ({"inner": {}}, "key 'inner': the key 'value' is missing"),
        ({"names": "abc"}, "key 'names': got 'abc'. Give a list"),
        ({"listed": "12"}, "key 'listed': got '12'. Give a list"),
        ({"pair": [1]}, r"key 'pair': got \[1\]. Give a list of 2"),
        ({"pair": ["1", "a"]}, "key 'pair'.*: got '1'. Give a whole number"),
        ({"by_name": []}, r"key 'by_name': got \[\]. Give an object"),
        ({"by_name": {"u": ["x"]}}, "key 'by_name', key 'u', entry 1: got 'x'"),
        ({"by_pair": [[1]]}, r"key 'by_pair', entry 1: got \[1\]"),
        ({"either": 1.5}, "key 'either': got 1.5"),
        ({"real": "1"}, "key 'real': got '1'. Give a number"),
        ({"colour": "rde"}, "key 'colour': got 'rde'. Did you mean 'red'"),
        ({"nubmer": 1}, "unknown key 'nubmer'. Did you mean 'number'"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        decode(Outer, {"number": 1} | change, "state")


def test_the_library_behind_it_is_imported_when_it_is_needed() -> None:
    command = "import sys, fairopt.cli, fairopt.codec; sys.exit('cattrs' in sys.modules)"
    subprocess.run([sys.executable, "-c", command], check=True)


def as_named(text: str, kind: Any) -> Any:
    return kind(Fraction(text.removeprefix("inner:")))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int | float | Fraction, "1/3", 1 / 3),
        (int | float | Fraction, "3", 3),
        (Fraction, "0.1", Fraction(1, 10)),
        (Fraction, "2", Fraction(2)),
        (float, "2", 2.0),
        (bool, "no", False),
        (str, "1", "1"),
        (int | None, "None", None),
        (Sequence[object] | None, "1, 0.5", (1, Fraction(1, 2))),
        (tuple[int, str], "1, a", (1, "a")),
        (Colour, "blue", Colour.BLUE),
        (tuple[Inner, ...], "inner:1/2, inner:3", (Inner(Fraction(1, 2)), Inner(Fraction(3)))),
    ],
)
def test_a_text_is_read_by_the_type_of_its_option(kind: Any, text: str, value: object) -> None:
    read = decode(kind, text, named=as_named)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (int, "1.5", "--set x: got '1.5'. Give a whole number"),
        (Sequence[Fraction], "1, b", "--set x, entry 2: got 'b'"),
        (Colour, "rde", "--set x: got 'rde'. Did you mean 'red'"),
        (object, "high", "--set x: got 'high', not a number"),
    ],
)
def test_a_text_that_does_not_fit_is_named(kind: Any, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        decode(kind, text, "--set x", named=as_named)
