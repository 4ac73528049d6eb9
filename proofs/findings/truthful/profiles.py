"""Profiles: what all users report at once, for each combination that a rule is asked about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import exact
from fairopt.program import Array, ArrayLike, fractions


def grid(types: int, parts: int, *, positive: bool = True) -> Array:
    """Return the reports (m, 1, k) that are multiples of 1/``parts`` and sum to 1: one GPU of each type is worth 1.

    ``positive`` leaves out those with a zero. They come in lexicographic order. Errors: `BadInput` where there is none.

    >>> print(*(' '.join(map(str, report)) for [report] in grid(2, 3, positive=False)), sep=', ')
    0 1, 1/3 2/3, 2/3 1/3, 1 0
    """
    between = range(1, parts) if positive else range(parts + 1)
    rows = [row for row in product(between, repeat=types) if sum(row) == parts]
    if not rows:
        remedy = "Give at least as many parts as types, and at least two, or positive=False"
        raise BadInput(f"no report on {types} types has {parts} parts", place="grid", remedy=remedy)
    return np.array([[[Fraction(each, parts) for each in row]] for row in rows], dtype=object)


def ranges(breaks: Sequence[Fraction | int | str]) -> Array:
    """Return cells (m, 2, 2) that cover all reports of two types: between neighbours of ``breaks``.

    ``breaks`` rise from 0 to 1; b stands for the speedups (b, 1 - b). Errors: `BadInput` where they do not.

    >>> print(*(' '.join(map(str, corner)) for corner in ranges([0, '1/4', 1])[0]), sep=', ')
    0 1, 1/4 3/4
    """
    ends = [Fraction(exact(each, "breaks")) for each in breaks]
    if len(ends) < 2 or ends[0] != 0 or ends[-1] != 1 or any(a >= b for a, b in pairwise(ends)):
        raise BadInput(f"got {', '.join(map(str, ends))}", place="breaks", remedy="Give rising numbers from 0 to 1")
    cells = [[[a, 1 - a], [b, 1 - b]] for a, b in pairwise(ends)]
    return np.array(cells, dtype=object)


@dataclass(frozen=True, eq=False)
class Profiles:
    """Profiles (P of them) of what n users can report about k types, and how many GPUs of each type there are.

    ``cells`` (m, c, k) are the reports that exist, each by the speedups at its c corners: a single report has one, a
    range of reports several, between which it is convex. A rule does not tell the reports of one cell apart. ``told``
    (P, n) is the cell that each user reports; ``capacity`` (k,).

    Errors: `BadInput` where shapes do not match, or where a number is negative.

    >>> Profiles.every(grid(2, 4), users=2).told.tolist()[:4]
    [[0, 0], [0, 1], [0, 2], [1, 0]]
    """

    cells: Array
    told: Array
    capacity: Array

    def __post_init__(self) -> None:
        if self.cells.ndim != 3 or self.capacity.shape != self.cells.shape[2:]:
            shapes = f"cells {self.cells.shape}, capacity {self.capacity.shape}"
            raise BadInput(shapes, place="profiles", remedy="Give cells (m, c, k) and a capacity for each of k types")
        if (self.cells < 0).any() or (self.capacity <= 0).any():
            what = "a speedup is negative, or a capacity is not positive"
            raise BadInput(what, place="profiles", remedy="Give speedups >= 0 and capacities > 0")
        if self.told.ndim != 2 or not self.told.size or not ((self.told >= 0) & (self.told < len(self.cells))).all():
            remedy = f"Give for each profile a row of cells, from 0 to {len(self.cells) - 1}"
            raise BadInput(f"it is {self.told.tolist()}", place="told", remedy=remedy)

    @classmethod
    def every(cls, cells: Array, users: int, capacity: ArrayLike | None = None) -> Profiles:
        """Return all combinations of what each of the users may report; one GPU of each type by default."""
        told = np.array(list(product(range(len(cells)), repeat=users)))
        return cls(fractions(cells), told, _capacity(capacity, cells))

    @classmethod
    def of(cls, speedups: ArrayLike, capacity: ArrayLike | None = None) -> Profiles:
        """Return the profiles (P, n, k) that are listed, each report a single one."""
        rows = _exact(speedups, "speedups")
        if rows.ndim != 3:
            remedy = "Give for each profile a row of speedups for each user"
            raise BadInput(f"their shape is {rows.shape}, not (P, n, k)", place="speedups", remedy=remedy)
        distinct = sorted({tuple(row) for profile in rows for row in profile})
        told = np.array([[distinct.index(tuple(row)) for row in profile] for profile in rows])
        return cls(np.array(distinct)[:, None, :], told, _capacity(capacity, rows))

    def some(self, kept: Sequence[int]) -> Profiles:
        """Return the profiles with these numbers only."""
        return Profiles(self.cells, self.told[list(kept)], self.capacity)

    @property
    def corners(self) -> Array:
        """Speedups (P, n, c, k) at the corners of what each user reports."""
        return np.asarray(self.cells[self.told])

    def lies(self) -> Array:
        """Return (L, 3): in profile p user i may lie so that profile q is seen, as rows p, q, i.

        With two types only lies to the next report by the ratio of speedups: these suffice. At both reports one is
        content, so that who is sped up more by a type gets no less of it and no more of the other; and what pays for
        nobody at one step pays for nobody further away.
        """
        lines: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for p, told in enumerate(self.told.tolist()):
            for i in range(len(told)):
                lines[i, *told[:i], -1, *told[i + 1 :]].append(p)
        found = []
        for (i, *_), line in lines.items():
            if self.cells.shape[2] == 2:
                line.sort(key=lambda p: self._rank(int(self.told[p, i])))
                pairs = [(p, q) for a, b in pairwise(line) for p, q in ((a, b), (b, a))]
            else:
                pairs = list(permutations(line, 2))
            found += [(p, q, i) for p, q in pairs]
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def _rank(self, cell: int) -> Fraction:
        middle = self.cells[cell].sum(axis=0)
        return Fraction(middle[0] / middle.sum())

    def symmetries(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Array]]:
        """Yield how users and types can be renamed so that the profiles are the same ones: users, types, where to.

        The last is (P,): the profile that each becomes.
        """
        names = {_unordered(cell): c for c, cell in enumerate(self.cells)}
        numbers = {tuple(told): p for p, told in enumerate(self.told.tolist())}
        (_, n), k = self.told.shape, len(self.capacity)
        for types in permutations(range(k)):
            renamed = [names.get(_unordered(cell[:, types])) for cell in self.cells]
            if None in renamed or (self.capacity[list(types)] != self.capacity).any():
                continue
            for users in permutations(range(n)):
                told = np.array(renamed)[self.told[:, users]]
                where = [numbers.get(tuple(each)) for each in told.tolist()]
                if None not in where:
                    yield users, types, np.array(where)

    def joint_corners(self) -> Array:
        """Return (J, n): a corner for each user, in all combinations."""
        return np.array(list(product(range(self.cells.shape[1]), repeat=self.told.shape[1])))


def _capacity(capacity: ArrayLike | None, rows: Array) -> Array:
    return _exact([1] * rows.shape[-1] if capacity is None else capacity, "capacity")


def _exact(values: ArrayLike, place: str) -> Array:
    array = np.asarray(values, dtype=object)
    return fractions(np.array([exact(each, place) for each in array.ravel()], dtype=object).reshape(array.shape))


def _unordered(cell: Array) -> frozenset[tuple[Fraction, ...]]:
    return frozenset(map(tuple, cell))
