"""Answers as files, on their way from a contender's process to the judge: data only, nothing that could be executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import arithmetic
from fairopt.problem.numbers import shown

#: The keys that stand for an array, with its number, and for a dictionary, with its pairs.
_ARRAY, _ITEMS = "array", "items"


def write_answer(answer: Any, folder: Path) -> None:
    """Write an answer of arrays, numbers, strings, None, and lists, tuples and dictionaries of these.

    Errors: `BadInput` for anything else; an array of objects is none of these.
    """
    arrays: list[Any] = []
    (folder / "answer.json").write_text(json.dumps(_put(answer, arrays)))
    np.savez(folder / "answer.npz", **{str(number): array for number, array in enumerate(arrays)})


def read_answer(folder: Path) -> Any:
    """Return what `write_answer` wrote; tuples come out as lists."""
    with np.load(folder / "answer.npz", allow_pickle=False) as arrays:

        def taken(found: dict[str, Any]) -> Any:
            return arrays[str(found[_ARRAY])] if _ARRAY in found else dict(found[_ITEMS])

        return json.loads((folder / "answer.json").read_text(), object_hook=taken)


def _put(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, np.ndarray):
        if arithmetic(value).exact:
            raise BadInput("an array of objects is no answer that can be judged", remedy="Return an array of floats")
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_put(each, arrays) for each in value]
    if isinstance(value, Mapping):
        return {_ITEMS: [[_put(key, arrays), _put(each, arrays)] for key, each in value.items()]}
    remedy = "Return arrays, numbers, strings, and lists and dictionaries of these"
    raise BadInput(f"got {shown(value)} of type {type(value).__name__}", place="the answer", remedy=remedy)
