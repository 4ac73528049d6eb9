"""Linear equations between prices, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fairopt.program import Array

if TYPE_CHECKING:
    from flint import fmpq, fmpq_mat

ZERO, ONE = Fraction(0), Fraction(1)


def matrix(rows: list[list[Fraction]], width: int) -> fmpq_mat:
    """Return a matrix of flint with these rows."""
    from flint import fmpq, fmpq_mat

    return fmpq_mat(len(rows), width, [fmpq(x.numerator, x.denominator) for row in rows for x in row])


def fraction(number: fmpq) -> Fraction:
    """Return a number of flint as a Fraction."""
    return Fraction(int(number.p), int(number.q))


def echelon(rows: list[list[Fraction]], width: int) -> tuple[fmpq_mat, list[int]]:
    """Return the reduced row echelon form, and its pivots."""
    reduced, rank = matrix(rows, width).rref()
    return reduced, [next(j for j in range(width) if reduced[r, j]) for r in range(rank)]


def solutions(width: int, equations: Iterable[tuple[tuple[int, Fraction], ...]]) -> tuple[Array, list[int]]:
    """Return a basis (width, dimensions) of what solves linear equations, and the places where it is the identity."""
    rows = []
    for equation in equations:
        rows.append([ZERO] * width)
        for at, value in equation:
            rows[-1][at] = value
    reduced, pivots = echelon(rows, width)
    loose = [j for j in range(width) if j not in pivots]
    basis = np.full((width, len(loose)), ZERO, dtype=object)
    for at, j in enumerate(loose):
        basis[j, at] = ONE
        for r, pivot in enumerate(pivots):
            basis[pivot, at] = -fraction(reduced[r, j])
    return basis, loose
