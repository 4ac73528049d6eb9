"""Who gets which part of its best buys where demands bind: one exact linear program."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.program import INFINITY, Array, Program, Sense
from fairopt.program.program import Block, Rows

ZERO, ONE = Fraction(0), Fraction(1)
_Row: TypeAlias = tuple[dict[int, Fraction], Fraction, Fraction | float]  # coefficients by variable, least, most


class BestParts:
    """The linear program of who buys which part of what: the least part of its worth that anybody gets is largest."""

    def __init__(self, capacity: Array, free: Array) -> None:
        self._capacity, self._free = capacity, free
        self._of_type: list[dict[int, Fraction]] = [{} for _ in capacity]
        self._rows: list[_Row] = []
        self._worth: list[dict[int, Fraction]] = []
        self._count = self._begun = 0

    def buy(self, type: int, gpus: Fraction) -> None:
        """Add a part of these GPUs of a type as a variable."""
        self._of_type[type][self._count] = gpus / self._capacity[type]
        self._count += 1

    def gpus(self, values: list[Fraction], least: Fraction) -> None:
        """Say that the last parts are GPUs of which there may be 1 in all, and must be ``least``."""
        self._rows.append((self._last(values), least, ONE))

    def worth(self, values: list[Fraction]) -> None:
        """Say what the last parts are worth to who buys them, whose money is 1."""
        self._worth.append(self._last(values))

    def _last(self, values: list[Fraction]) -> dict[int, Fraction]:
        return dict(zip(range(self._count - len(values), self._count), values, strict=True))

    def solved(self) -> list[Fraction] | None:
        """Return the parts; None where nobody can have them."""
        least = self._count
        types = zip(self._of_type, self._free, strict=True)
        rows: list[_Row] = [(row, ZERO if free else ONE, ONE) for row, free in types if row]
        rows += [(row | {least: -ONE}, ZERO, INFINITY) for row in self._worth] + self._rows
        if any(not row and not free for row, free in zip(self._of_type, self._free, strict=True)):
            return None  # something has a price, and nobody buys it
        entries = [(r, j, value) for r, (row, _, _) in enumerate(rows) for j, value in sorted(row.items())]
        at, of, value = (np.array(part) for part in zip(*entries, strict=True))
        low, high = (np.array([row[side] for row in rows], dtype=object) for side in (1, 2))
        cost, size = np.full(least + 1, ZERO, dtype=object), least + 1
        cost[least] = ONE
        program = Program(
            "shares of best buys",
            Sense.MAXIMIZE,
            cost,
            ZERO,
            np.full(size, ZERO, dtype=object),
            np.full(size, ONE, dtype=object),
            np.zeros(size, dtype=bool),
            Rows(at, of, value.astype(object), low, high),
            (Block("part", (size,), 0, size),),
            (Block("row", (len(rows),), 0, len(rows)),),
            Block("least", (), 0, 1),
        )
        solution = Exact().solve(program)
        return solution.point.tolist()[:least] if solution.status is Status.OPTIMAL else None
