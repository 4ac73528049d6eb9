"""What goes between two processes: JSON and the bytes of arrays. It can name classes of ours, and carries no code.

>>> from fractions import Fraction
>>> unpack(*pack([1, (2.5, Fraction(1, 3)), {"a": np.arange(3)}]))
[1, (2.5, Fraction(1, 3)), {'a': array([0, 1, 2])}]
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from fairopt.errors import FairoptError
from fairopt.numbers import arithmetic, in_pieces, is_rational
from fairopt.program import INFINITY, objects
from fairopt.program.affine import distinct

#: Whose classes may be named, besides the values below.
OURS = ("fairopt.",)
#: Whole numbers of more bits are written in hexadecimal: Python refuses to read thousands of decimal digits.
SHORT = 60
#: Before a message stand the number of its parts and the length of each.
COUNT = struct.Struct("<Q")
_WORDS = {"inf": INFINITY, "-inf": -INFINITY}


def framed(value: object) -> bytes:
    """Return a value as a message: one who reads it need not know its length. Errors: as `pack`."""
    text, buffers = pack(value)
    parts = [text, *buffers]
    return b"".join([COUNT.pack(len(parts)), *(COUNT.pack(len(part)) for part in parts), *parts])


def taken_from(take: Callable[[int], bytes]) -> Any:
    """Return the value of a message, of which ``take`` returns the next so many bytes. Errors: as `unpack`."""
    sizes = [COUNT.unpack(take(COUNT.size))[0] for _ in range(COUNT.unpack(take(COUNT.size))[0])]
    text, *buffers = [take(size) for size in sizes]
    return unpack(text, buffers)


def pack(value: object) -> tuple[bytes, list[bytes]]:
    """Return a value as JSON, and the bytes of its arrays. Errors: `TypeError` for a value of another kind."""
    buffers: list[bytes] = []
    return json.dumps(_tree(value, buffers)).encode(), buffers


def unpack(text: bytes, buffers: Sequence[bytes]) -> Any:
    """Return the value that `pack` was given. Errors: `TypeError` for a class that is not ours."""
    return _value(json.loads(text), buffers)


def ours(module: str, name: str) -> Any:
    """Return what a module of fairopt, or highspy, calls so. Errors: `TypeError` for another module."""
    if module != "highspy" and not module.startswith(OURS):
        raise TypeError(f"{module}.{name} is not fairopt's")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _tree(value: Any, buffers: list[bytes]) -> Any:
    if value is None or type(value) in (bool, str, float):
        return value
    if isinstance(value, int) and not isinstance(value, Enum):
        return value if value.bit_length() <= SHORT else ["whole", hex(value)]
    if isinstance(value, np.generic):
        return _tree(value.item(), buffers)
    if is_rational(value):
        return ["ratio", _ratio(value)]
    if isinstance(value, np.ndarray):
        if arithmetic(value).exact:
            some, place = distinct(value)
            texts = in_pieces(lambda piece: objects(map(_ratio, piece.tolist())), some)
            return ["ratios", value.shape, texts.tolist(), _tree(place, buffers)]
        buffers.append(value.tobytes())
        return ["array", value.dtype.str, value.shape, len(buffers) - 1]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *(_tree(each, buffers) for each in value)]
    if isinstance(value, Mapping):
        return ["dict", [[_tree(key, buffers), _tree(each, buffers)] for key, each in value.items()]]
    kind = type(value)
    if isinstance(value, Enum) or (_highs(kind) and _has_name(value)):
        return ["member", *_named(kind), value.name]
    if is_dataclass(value) and not isinstance(value, type):
        return ["made", *_named(kind), {each.name: _tree(getattr(value, each.name), buffers) for each in fields(value)}]
    if isinstance(value, FairoptError):
        return ["made", *_named(kind), {"args": _tree(value.args, buffers)} | _all(vars(value), buffers)]
    if _highs(kind):
        parts = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
        plain = {name: _listed(each) for name, each in parts.items() if _plain(each)}
        return ["made", *_named(kind), _all(plain, buffers)]
    remedy = "Give arrays, numbers, texts, and lists, tuples and dictionaries of these"
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} does not go to another process. {remedy}")


def _all(parts: Mapping[str, Any], buffers: list[bytes]) -> dict[str, Any]:
    return {name: _tree(each, buffers) for name, each in parts.items()}


def _highs(kind: type) -> bool:
    return kind.__module__.startswith("highspy")


def _has_name(value: object) -> bool:
    return hasattr(value, "name") and hasattr(type(value), "__members__") and not isinstance(value, Enum)


def _plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str | list | np.ndarray) or _has_name(value)


def _listed(value: Any) -> Any:
    """Return a list of HiGHS's, one entry for each of thousands of rows, as an array."""
    if not isinstance(value, list):
        return value
    return np.array([int(each) for each in value] if value and _has_name(value[0]) else value)


def _named(kind: type) -> tuple[str, str]:
    return ("highspy" if _highs(kind) else kind.__module__), kind.__qualname__


def _ratio(value: Any) -> str:
    if not is_rational(value) and value in (INFINITY, -INFINITY):
        return "inf" if value > 0 else "-inf"
    return f"{value.numerator:x}/{value.denominator:x}"


def _fraction(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    above, _, below = text.partition("/")
    return Fraction(int(above, 16), int(below, 16))


def _value(tree: Any, buffers: Sequence[bytes]) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *parts = tree
    if kind in ("list", "tuple"):
        found = [_value(each, buffers) for each in parts]
        return found if kind == "list" else tuple(found)
    return _READ[kind](buffers, *parts)


def _array(buffers: Sequence[bytes], kind: str, shape: Sequence[int], place: int) -> Any:
    return np.frombuffer(buffers[place], dtype=np.dtype(kind)).reshape(shape).copy()


def _made(buffers: Sequence[bytes], module: str, name: str, parts: Mapping[str, Any]) -> Any:
    found, kind = {part: _value(each, buffers) for part, each in parts.items()}, ours(module, name)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**found)
    if isinstance(kind, type) and issubclass(kind, FairoptError):
        error = kind.__new__(kind, *found.pop("args"))
        vars(error).update(found)
        return error
    if module != "highspy":
        raise TypeError(f"{module}.{name} is no record")
    made = kind()
    for part, each in found.items():
        status = name == "HighsBasis" and part.endswith("_status")
        setattr(made, part, list(map(ours(module, "HighsBasisStatus"), each.tolist())) if status else each)
    return made


_READ: Mapping[str, Any] = {
    "whole": lambda buffers, text: int(text, 16),
    "ratio": lambda buffers, text: _fraction(text),
    "ratios": lambda buffers, shape, texts, place: objects(map(_fraction, texts))[_value(place, buffers)].reshape(
        shape
    ),
    "array": _array,
    "dict": lambda buffers, pairs: {_value(key, buffers): _value(each, buffers) for key, each in pairs},
    "member": lambda buffers, module, name, member: getattr(ours(module, name), member),
    "made": _made,
}
