"""The names of a program's rows and variables in certificates: by block and position, with indices from 0."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.program import Array, Program


def row_duals(program: Program, dual: Array) -> list[list[Any]]:
    """Return the duals that are not zero as entries [block, index..., value]."""
    entries: list[list[Any]] = []
    for block in program.row_blocks:
        for position, value in enumerate(dual[block.span]):
            if value:
                flat = position if block.kept is None else int(block.kept[position])
                index = [int(i) for i in np.unravel_index(flat, block.shape)] if block.shape else []
                entries.append([block.name, *index, value])
    return entries


def bare_duals(dual: Array) -> list[list[Any]]:
    """Return the duals of a bare program that are not zero as entries ["row", number, value]."""
    return [["row", r, value] for r, value in enumerate(dual) if value]


def other_variables(program: Program, x: Array) -> dict[str, Fraction] | None:
    """Return the values of the variables beside the shares, by name; None where there are none."""
    found = {block.name: x[block.first] for block in program.variable_blocks if block.name != "share"}
    return found or None
