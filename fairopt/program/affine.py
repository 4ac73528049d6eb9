"""Affine arrays: NumPy-like arrays whose entries are affine expressions in the variables of one program.

An `Affine` is stored as a constant array plus its terms in row order: entry ``e`` (position in the flattened array)
owns the terms ``start[e]:start[e + 1]``, each a column and a coefficient. Every operation is a few NumPy calls, the
same for integers, floats and Fractions (in object arrays).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.deadline import left
from fairopt.numbers import (
    Array,
    ArrayLike,
    holds_objects,
    in_pieces,
    in_range,
    is_number,
    is_rational,
    look,
    numbers,
    objects,
    one_over,
)


class Affine:
    """An array of affine expressions; made by `Formulation.variable`, combined with NumPy's broadcasting.

    It supports ``+ - * /``, ``@`` with an array of numbers on the left, indexing, ``sum``, ``reshape``, ``T`` and
    the comparisons ``>= <= ==``, which give a `Comparison` for `Formulation.constrain`.

    ``owner`` is the `Formulation` of its variables; an expression cannot mix those of two.

    Shapes: ``constant`` has the shape of the array, and ``start`` one more entry than the array has elements;
    ``column`` and ``coefficient`` are aligned, one entry per term.

    >>> from fairopt.program import Formulation
    >>> x = Formulation("one").variable("x", (2, 3))
    >>> (2 * x).sum(axis=1).shape
    (2,)
    """

    __slots__ = ("coefficient", "column", "constant", "owner", "start")
    __array_ufunc__ = None  # so that NumPy leaves ``array + affine`` and ``array >= affine`` to this class
    __hash__ = None  # type: ignore[assignment]  # == makes a constraint, as in every modelling language

    def __init__(self, owner: Any, constant: Array, start: Array, column: Array, coefficient: Array) -> None:
        left()  # each step on a large array of fractions takes a second
        self.owner, self.constant = owner, constant
        self.start, self.column, self.coefficient = start, column, coefficient

    # -- shape ---------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.constant.shape

    @property
    def size(self) -> int:
        """The number of its entries."""
        return self.constant.size

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.constant.ndim

    @property
    def T(self) -> Affine:
        """The array with its axes reversed."""
        return self._take(self._positions().T)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar expression has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Affine:
        return self._take(np.asarray(self._positions()[key]))

    def reshape(self, *shape: int) -> Affine:
        """Return the same entries in another shape."""
        return self._take(self._positions().reshape(*shape))

    def broadcast_to(self, shape: tuple[int, ...]) -> Affine:
        """Return the array repeated to ``shape`` by NumPy's rules."""
        return self if shape == self.shape else self._take(np.broadcast_to(self._positions(), shape))

    def _positions(self) -> Array:
        return np.arange(self.size).reshape(self.shape)

    def _take(self, positions: Array) -> Affine:
        """Gather entries by their flat position: indexing, broadcasting, transposing and reshaping in one."""
        flat = positions.ravel()
        look(len(flat))
        length = self.start[flat + 1] - self.start[flat]
        start = _offsets(length)
        look(start[-1])
        # term t of the result is as far from the start of its entry as its original from the start of that entry
        source = np.repeat(self.start[flat] - start[:-1], length) + np.arange(start[-1])
        look(len(source))
        constant = self.constant.ravel()[flat].reshape(positions.shape)
        return Affine(self.owner, constant, start, self.column[source], self.coefficient[source])

    # -- arithmetic ----------------------------------------------------------------------------------------------
    def __neg__(self) -> Affine:
        constant, coefficient = (_negative(each) for each in (self.constant, self.coefficient))
        return Affine(self.owner, constant, self.start, self.column, coefficient)

    def __pos__(self) -> Affine:
        return self

    def __add__(self, other: Affine | ArrayLike) -> Affine:
        if not isinstance(other, Affine):
            with in_range(self.owner.name):
                constant = np.asarray(self.constant + numbers(other))
            wide = self.broadcast_to(constant.shape)
            return Affine(self.owner, constant, wide.start, wide.column, wide.coefficient)
        if other.owner is not self.owner:
            raise ValueError(f"variables of two programs in one expression: {self.owner.name} and {other.owner.name}")
        shape = np.broadcast_shapes(self.shape, other.shape)
        return _add(self.broadcast_to(shape), other.broadcast_to(shape))

    __radd__ = __add__

    def __sub__(self, other: Affine | ArrayLike) -> Affine:
        return self + (-other if isinstance(other, Affine) else np.asarray(-numbers(other)))

    def __rsub__(self, other: ArrayLike) -> Affine:
        return -self + other

    def __mul__(self, other: ArrayLike) -> Affine:
        if isinstance(other, Affine):
            raise TypeError("a product of two variables is not affine")
        given = numbers(other)
        shape = np.broadcast_shapes(self.shape, given.shape)
        wide = self.broadcast_to(shape)
        kind = np.result_type(self.coefficient, given)  # in rationals it is much quicker to look than to multiply
        if kind == self.coefficient.dtype and _are_one(given):
            return wide
        factor = np.broadcast_to(given, shape)
        each = np.repeat(factor.ravel(), np.diff(wide.start))
        with np.errstate(invalid="ignore"), in_range(self.owner.name):  # infinity times 0 is refused with the program
            same = _are_zero(self.constant) and _are_exact(given)
            constant = wide.constant if same else in_pieces(np.multiply, wide.constant, factor)
            alone = kind == given.dtype and _are_one(self.coefficient)
            coefficient = each if alone else in_pieces(np.multiply, wide.coefficient, each)
        return Affine(self.owner, constant, wide.start, wide.column, coefficient)

    __rmul__ = __mul__

    def __truediv__(self, other: ArrayLike) -> Affine:
        with in_range(self.owner.name):
            return self * one_over(numbers(other))

    def __rmatmul__(self, matrix: ArrayLike) -> Affine:
        left = numbers(matrix)
        if not (left.ndim and self.ndim) or left.shape[-1] != self.shape[-2 if self.ndim > 1 else 0]:
            raise ValueError(f"shapes {left.shape} and {self.shape} do not match in a matrix product")
        if self.ndim == 1:
            return (self * left).sum(axis=-1)
        if left.ndim == 1:
            return (self * left[:, None]).sum(axis=-2)
        return (self[..., None, :, :] * left[..., None]).sum(axis=-2)

    def sum(self, axis: int | None = None) -> Affine:
        """Return the sum over one axis, or over all entries."""
        if axis is None:
            return self.reshape(self.size).sum(axis=0)
        last = np.moveaxis(self._positions(), axis, -1)
        ordered = self._take(last)
        rows, width = last.shape[:-1], last.shape[-1]
        if width and _are_zero(ordered.constant):  # in rationals it is much quicker to look than to add
            constant = ordered.constant[..., 0].reshape(rows)
        else:
            constant = np.asarray(ordered.constant.sum(axis=-1)).reshape(rows)
        start = ordered.start[::width] if width else np.zeros(constant.size + 1, dtype=np.int64)
        return Affine(self.owner, constant, start, ordered.column, ordered.coefficient)

    # -- comparisons ---------------------------------------------------------------------------------------------
    def __ge__(self, other: Affine | ArrayLike) -> Comparison:
        return _compare(self, other, lower=0, upper=None)

    def __le__(self, other: Affine | ArrayLike) -> Comparison:
        return _compare(self, other, lower=None, upper=0)

    def __eq__(self, other: Affine | ArrayLike) -> Comparison:  # type: ignore[override]
        return _compare(self, other, lower=0, upper=0)

    def __ne__(self, other: object) -> Any:
        raise TypeError("!= is not a constraint of a linear program")

    def __repr__(self) -> str:
        return f"<affine array of shape {self.shape}, {len(self.column)} terms>"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A block of rows ``lower <= body <= upper``, entrywise; None means no bound on that side.

    ``kept`` holds the flat positions, in an array of ``full_shape``, of the rows that `where` has kept.

    Shapes: ``kept`` (rows,), the others that of ``body``.

    >>> from fairopt.program import Formulation
    >>> x = Formulation("one").variable("x", (3,))
    >>> (x <= 1).full_shape
    (3,)
    """

    body: Affine
    lower: ArrayLike | None
    upper: ArrayLike | None
    full_shape: tuple[int, ...]
    kept: Array | None = None

    def __bool__(self) -> bool:
        raise TypeError(
            "a comparison of expressions is a constraint, not a truth value; "
            "for lower <= expression <= upper write between(lower, expression, upper)"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the block: one row per entry."""
        return self.body.shape

    def where(self, mask: Array) -> Comparison:
        """Return only the rows where ``mask`` is true, in one axis (pairs l != i, say); they keep their names."""
        if self.kept is not None:
            raise ValueError("where() was applied already; combine the masks with &")
        kept = np.flatnonzero(np.broadcast_to(mask, self.shape))

        def side(bound: ArrayLike | None) -> ArrayLike | None:
            return None if bound is None else np.broadcast_to(numbers(bound), self.shape).ravel()[kept]

        body = self.body.reshape(self.body.size)[kept]
        return Comparison(body, side(self.lower), side(self.upper), self.shape, kept)

    def among(self, rows: Array, count: int) -> Comparison:
        """Return the same rows named as ``rows`` (r,) of ``count`` along the first axis, of which this has r.

        >>> from fairopt.program import Formulation
        >>> x = Formulation("one").variable("x", (2,))
        >>> (x <= 1).among(np.array([1, 3]), 4).kept.tolist()
        [1, 3]
        """
        whole = (count, *self.full_shape[1:])
        kept = np.arange(int(np.prod(self.full_shape))) if self.kept is None else self.kept
        first, *rest = np.unravel_index(kept, self.full_shape)
        body = self.body.reshape(self.body.size)
        return Comparison(body, self.lower, self.upper, whole, np.ravel_multi_index((rows[first], *rest), whole))


def between(lower: ArrayLike, body: Affine, upper: ArrayLike) -> Comparison:
    """Return the block of rows ``lower <= body <= upper``.

    >>> from fairopt.program import Formulation
    >>> between(0, Formulation("one").variable("x", (3,)), 1).full_shape
    (3,)
    """
    shape = np.broadcast_shapes(body.shape, numbers(lower).shape, numbers(upper).shape)
    return Comparison(body.broadcast_to(shape), lower, upper, shape)


def _compare(left: Affine, right: Affine | ArrayLike, lower: int | None, upper: int | None) -> Comparison:
    body = left - right
    return Comparison(body, lower, upper, body.shape)


def distinct(values: Array) -> tuple[Array, Array]:
    """Return the objects (d,) that are in an array of objects, each once, and for each entry its place among them.

    A program in rationals has a few thousand numbers, many times each, and to work with one of them takes as long as to
    look at a hundred.

    >>> from fractions import Fraction
    >>> one, two = Fraction(1, 3), Fraction(2, 3)
    >>> distinct(np.array([two, one, two], dtype=object))
    (array([Fraction(2, 3), Fraction(1, 3)], dtype=object), array([0, 1, 0]))
    """
    flat = values.ravel().tolist()
    there = {id(value): value for value in flat}
    place = dict(zip(there, range(len(there)), strict=True))
    return objects(there.values()), np.fromiter(map(place.__getitem__, map(id, flat)), np.int64, len(flat))


def _negative(values: Array) -> Array:
    if not holds_objects(values):
        return in_pieces(np.negative, values)
    some, place = distinct(values)
    return np.asarray(in_pieces(np.negative, some)[place].reshape(values.shape))


def _are_one(values: Array) -> bool:
    """Whether all are 1; a number with a value in each of many cases is not, whatever they are."""
    if not holds_objects(values):
        return bool((values == 1).all())
    return all(is_number(value) and value == 1 for value in values.flat)


def _are_exact(values: Array) -> bool:
    """Whether all are rationals: zero times any of them is zero."""
    return holds_objects(values) and all(is_rational(value) for value in values.flat)


def _are_zero(values: Array) -> bool:
    """Whether all are rationals, and zero."""
    return holds_objects(values) and all(is_rational(value) and not value for value in values.flat)


def _offsets(length: Array) -> Array:
    start = np.zeros(len(length) + 1, dtype=np.int64)
    np.cumsum(length, out=start[1:])
    return start


def _add(left: Affine, right: Affine) -> Affine:
    """Add two arrays of one shape; each entry has the terms of the left array, then those of the right."""
    left_length, right_length = np.diff(left.start), np.diff(right.start)
    start = _offsets(left_length + right_length)
    look(len(start))
    column = np.empty(start[-1], dtype=np.int64)
    coefficient = np.empty(start[-1], dtype=np.result_type(left.coefficient.dtype, right.coefficient.dtype))
    for part, length, first in ((left, left_length, start[:-1]), (right, right_length, start[:-1] + left_length)):
        place = np.repeat(first - part.start[:-1], length) + np.arange(len(part.column))
        column[place], coefficient[place] = part.column, part.coefficient
    with in_range(left.owner.name):
        return Affine(left.owner, np.asarray(left.constant + right.constant), start, column, coefficient)
