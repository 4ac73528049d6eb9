"""The program that a policy asks a solver, as data or as a file: nothing is solved."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairopt.backends.highs import SMALLEST_COEFFICIENT, as_written, write, written_digits
from fairopt.backends.solution import Solution
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.errors import FairoptError, NotCapable, NotSolved
from fairopt.program import Program


class FirstProgram(Backend):
    """A backend that keeps the first program that it is given, in fractions, and answers none.

    >>> from fairopt import Market, allocate
    >>> program = FirstProgram.of(lambda solver: allocate("max-min", Market.of([[1, 2]], [1, 1]), solver), "max-min")
    >>> program.shape, program.exact
    ((3, 3), True)
    """

    name = "file"
    modules = ()
    capabilities = frozenset(Capability)
    number: ClassVar[type] = Fraction

    def __init__(self) -> None:
        self.program: Program | None = None

    def solve(self, program: Program, **options: Any) -> Any:
        """Keep the program. Errors: `NotSolved`, always, so that whoever asks goes no further."""
        self.program = self.program or program
        return self._solve(program, Options())

    def _solve(self, program: Program, options: Options) -> Solution:
        raise NotSolved("the program is kept, and not solved")

    @classmethod
    def of(cls, decide: Callable[[Any], object], who: str) -> Program:
        """Return the first program that ``decide``, given this solver, asks it; ``who`` decides.

        Errors: `NotCapable` where it asks none; those of ``decide``.
        """
        asked = cls()
        try:
            decide(asked)
        except FairoptError:
            if asked.program is None:
                raise
        if asked.program is None:
            raise NotCapable(f"{who} asks for no program on this problem: nothing is written")
        return asked.program


def written(program: Program, path: str | Path) -> str:
    """Write a program as `fairopt.backends.write` does; return in words what the file holds, and what is rounded.

    Errors: those of `write`.

    >>> from tempfile import TemporaryDirectory
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=Fraction(1, 3)))
    >>> with TemporaryDirectory() as folder:
    ...     written(p.program(), f"{folder}/one.lp")
    'rows: 0, variables: 1; numbers rounded to 15 digits: 1'
    """
    if program.logarithms is not None:
        wrong = f"{program.name} has logarithms in its objective, which LP and MPS files cannot hold"
        raise NotCapable(f"{wrong}: ask a policy that is a linear program")
    write(program, path)
    rows, variables = program.shape
    whole = int(program.integer.sum())
    said = f"rows: {rows:,}, variables: {variables:,}" + (f" (whole: {whole:,})" if whole else "")
    small = int((np.abs(program.rows.value) < SMALLEST_COEFFICIENT).sum())
    left_out = f"; coefficients left out, since below {SMALLEST_COEFFICIENT:g}: {small:,}" if small else ""
    return f"{said}; {_rounded(program)}{left_out}"


def _rounded(program: Program) -> str:
    """Return how many numbers of an exact program are others in its file."""
    asked, held = program.as_(Fraction), as_written(program)
    pairs = (
        (asked.cost, held.cost),
        (asked.offset, held.offset),
        (asked.lower, held.lower),
        (asked.upper, held.upper),
        (asked.rows.value, held.rows.value),
        (asked.rows.lower, held.rows.lower),
        (asked.rows.upper, held.rows.upper),
    )
    count = sum(int(np.sum(np.asarray(old) != np.asarray(new))) for old, new in pairs)
    return f"numbers rounded to {written_digits()} digits: {count:,}" if count else "every number is exact"
