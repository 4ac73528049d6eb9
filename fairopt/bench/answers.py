"""Answers as files, on their way from a contender's process to the judge: data only, nothing that could be executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.numbers import shown

#: The key that stands for an array, with its number.
_ARRAY = "array"


def write_answer(answer: Any, folder: Path) -> None:
    """Write an answer of arrays, numbers, strings, None, and lists, tuples and dictionaries of these.

    Errors: `BadInput` for anything else; an array of objects is none of these.
    """
    arrays: list[Any] = []
    (folder / "answer.json").write_text(json.dumps(_put(answer, arrays)))
    np.savez(folder / "answer.npz", **{str(number): array for number, array in enumerate(arrays)})


def read_answer(folder: Path) -> Any:
    """Return what `write_answer` wrote; tuples come out as lists."""
    tree = json.loads((folder / "answer.json").read_text())
    with np.load(folder / "answer.npz", allow_pickle=False) as arrays:
        return _taken(tree, arrays)


def _put(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype == object:
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
        return {"items": [[_put(key, arrays), _put(each, arrays)] for key, each in value.items()]}
    remedy = "Return arrays, numbers, strings, and lists and dictionaries of these"
    raise BadInput(f"got {shown(value)} of type {type(value).__name__}", place="the answer", remedy=remedy)


def _taken(tree: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(tree, list):
        return [_taken(each, arrays) for each in tree]
    if isinstance(tree, dict):
        if _ARRAY in tree:
            return arrays[str(tree[_ARRAY])]
        return {_taken(key, arrays): _taken(each, arrays) for key, each in tree["items"]}
    return tree
