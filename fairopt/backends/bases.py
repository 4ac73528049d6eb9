"""Bases of HiGHS: where it ended, and where it is to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.backends.solution import Basis, Position
from fairopt.program import Program

if TYPE_CHECKING:
    import highspy

#: HiGHS's number for what is non-basic at an unknown place; the others are those of `Position`.
_SOMEWHERE = 4


def basis_of(highs: highspy.Highs) -> Basis | None:
    """Return the basis that HiGHS ended with, None where it has none."""
    basis = highs.getBasis()
    if not basis.valid:
        return None
    columns, rows = (np.array(list(map(int, each)), dtype=np.int8) for each in (basis.col_status, basis.row_status))
    for positions in (columns, rows):
        positions[positions == _SOMEWHERE] = Position.LOWER
    return Basis(columns, rows)


def set_basis(highs: highspy.Highs, basis: Basis) -> None:
    """Have HiGHS begin at a basis of the program that it holds."""
    import highspy

    words = highspy.HighsBasisStatus
    known = (words.kLower, words.kBasic, words.kUpper, words.kZero)  # in the order of `Position`
    start = highspy.HighsBasis()
    start.col_status, start.row_status = (
        list(map(known.__getitem__, each.tolist())) for each in (basis.columns, basis.rows)
    )
    start.valid = True
    highs.setBasis(start)


def begin_at(highs: highspy.Highs, program: Program, basis: Basis) -> None:
    """Have HiGHS begin at the basis of a program like the one that it holds; from nothing where it is of another."""
    if (len(basis.rows), len(basis.columns)) == program.shape:
        set_basis(highs, basis)
