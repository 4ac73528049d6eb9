"""Checks of a market given as arrays of floats: the same refusals as for lists, for whole arrays at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairopt.errors import BadInput
from fairopt.problem.checks import MOST_TYPES
from fairopt.program import INFINITY, Array

#: A table of speedups larger than this (4 GB) is taken for a mistake.
MOST_CELLS = 500_000_000


def float_table(values: ArrayLike, name: str, dimensions: int) -> Array:
    """Return ``values`` as floats, a copy nobody else holds; `BadInput` where they are no array of numbers."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise BadInput(f"not an array of numbers: {error}", place=name, remedy="Give an array of floats") from error
    if array.ndim != dimensions:
        remedy = "Speedups are (n, k), the others flat"
        raise BadInput(f"got {array.ndim} dimensions for {dimensions}", place=name, remedy=remedy)
    return array


def check_arrays(
    speedup: Array, capacity: Array, weight: Array, demand: Array | None, called: Callable[[int], str]
) -> None:
    """Refuse what is not a market; ``called`` says what a row is called."""
    n, k = speedup.shape
    for name, array, size, unit in (
        ("capacity", capacity, k, "type"),
        ("weight", weight, n, "user"),
        *((("demand", demand, n, "user"),) if demand is not None else ()),
    ):
        if len(array) != size:
            raise BadInput(f"{len(array)} values for {size} {unit}s", place=name, remedy=f"Give one for each {unit}")
    if not n or not k or k > MOST_TYPES or n * k > MOST_CELLS:
        remedy = f"Give 1 to {MOST_TYPES} types, {MOST_CELLS} speedups"
        raise BadInput(f"{n} users with {k} types", place="speedup", remedy=remedy)
    remedy = "Give numbers, not negative"
    _refuse(~np.isfinite(speedup) | (speedup < 0), speedup, "speedup", called, remedy)
    _refuse(~np.isfinite(capacity) | (capacity < 0), capacity, "capacity", lambda j: f"type {j + 1}", remedy)
    _refuse(~np.isfinite(weight) | (weight <= 0), weight, "weight", called, "Give a positive weight")
    if demand is not None:
        _refuse(~(demand > 0), demand, "demand", called, "Give a positive demand; infinity is none")
    if not (capacity > 0).any():
        raise BadInput("no type has any GPUs", place="capacity", remedy="Give at least one type a positive capacity")
    idle = ~((speedup > 0) & (capacity > 0)).any(axis=1)
    _refuse(idle, speedup.max(axis=1), "speedup", called, "The user can run nowhere: give it a type that has GPUs")


def demands(values: ArrayLike | None) -> Array | None:
    """Return demands as floats; NaN is refused later, infinity says that there is no limit, and None that none has."""
    table = None if values is None else float_table(values, "demand", 1)
    return None if table is None or (table == INFINITY).all() else table


def _refuse(broken: Any, values: Array, name: str, called: Callable[[int], str], remedy: str) -> None:
    if broken.any():
        place = tuple(int(at) for at in np.argwhere(broken)[0])
        column = f" {place[1] + 1}" if len(place) > 1 else ""
        raise BadInput(f"got {values[place]}", place=f"{called(place[0])}, {name}{column}", remedy=remedy)
