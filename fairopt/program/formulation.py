"""A `Formulation` builds a program; `Formulation.program` freezes it into data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import (
    INFINITY,
    Array,
    ArrayLike,
    has_infinity,
    holds_objects,
    in_range,
    is_rational,
    look,
    numbers,
)
from fairopt.program.affine import Affine, Comparison
from fairopt.program.program import Block, Logarithms, Program, Rows, Sense


@dataclass(frozen=True)
class LogSum:
    """The concave objective ``sum(weight * log(body))``."""

    body: Affine
    weight: Array


def log_sum(weight: ArrayLike, body: Affine) -> LogSum:
    """Return the objective ``sum(weight * log(body))``; weights must be positive, which makes it concave.

    Errors: `BadInput` for a weight that is not positive.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("log")
    >>> p.maximize(log_sum([1, 2], p.variable("x", (2,), lower=0, upper=1)))
    >>> p.program().logarithms.weight.tolist()
    [1, 2]
    """
    wide = np.broadcast_to(numbers(weight), body.shape)
    if not (wide > 0).all():
        raise BadInput(f"weights of logarithms must be positive, got {wide[~(wide > 0)].ravel()[0]}")
    return LogSum(body, wide)


class Formulation:
    """Write a program as its source does: variables, an objective, named blocks of constraints.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("two machines")
    >>> x = p.variable("share", (2, 2), lower=0)
    >>> p.maximize((np.array([[1, 2], [1, 3]]) * x).sum(), equation="sum_lj w_lj x_lj")
    >>> p.constrain("capacity", x.sum(axis=0) <= 1, equation="sum_l x_lj <= m_j")
    >>> p.program()
    <Program 'two machines': 4 variables, 2 rows, 4 non-zeros>
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._sense = Sense.MAXIMIZE
        self._objective: Affine | LogSum | None = None
        self._objective_block = Block("objective", (), 0, 1)
        self._variables: list[Block] = []
        self._lower: list[Array] = []
        self._upper: list[Array] = []
        self._integer: list[Array] = []
        self._constraints: list[tuple[Block, Comparison]] = []
        self._rows = 0

    @property
    def _columns(self) -> int:
        return self._variables[-1].span.stop if self._variables else 0

    def variable(
        self,
        name: str,
        shape: tuple[int, ...] = (),
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        integer: bool = False,
        labels: tuple[Sequence[str], ...] = (),
    ) -> Affine:
        """Add an array of variables and return it; bounds broadcast to ``shape``, None means no bound."""
        self._fresh(name, self._variables)
        size = int(np.prod(shape, dtype=np.int64))
        block = Block(name, shape, self._columns, size, labels=labels)
        self._variables.append(block)
        self._lower.append(_bound(lower, shape, -INFINITY))
        self._upper.append(_bound(upper, shape, INFINITY))
        self._integer.append(np.full(size, integer))
        zeros, ones = np.zeros(shape, dtype=np.int64), np.ones(size, dtype=np.int64)
        return Affine(self, zeros, np.arange(size + 1), np.arange(block.first, block.first + size), ones)

    def maximize(self, objective: Affine | LogSum, *, equation: str = "", source: str = "") -> None:
        """Maximise a scalar expression, or a `log_sum`."""
        self._set_objective(Sense.MAXIMIZE, objective, equation, source)

    def minimize(self, objective: Affine, *, equation: str = "", source: str = "") -> None:
        """Minimise a scalar expression."""
        if isinstance(objective, LogSum):
            raise TypeError("a sum of logarithms is concave: it can be maximized, not minimized")
        self._set_objective(Sense.MINIMIZE, objective, equation, source)

    def _set_objective(self, sense: Sense, objective: Affine | LogSum, equation: str, source: str) -> None:
        body = objective.body if isinstance(objective, LogSum) else objective
        if body.owner is not self:
            raise ValueError(f"the objective belongs to {body.owner.name}, not to {self.name}")
        if isinstance(objective, Affine) and objective.size != 1:
            raise ValueError(f"an objective is one number; this expression has shape {objective.shape}: sum it")
        self._sense, self._objective = sense, objective
        self._objective_block = Block("objective", (), 0, 1, equation, source)

    def constrain(
        self,
        name: str,
        comparison: Comparison,
        *,
        equation: str = "",
        source: str = "",
        labels: tuple[Sequence[str], ...] = (),
    ) -> None:
        """Add a named block of rows, one per entry of ``comparison``, with the equation that it stands for."""
        if not isinstance(comparison, Comparison):
            raise TypeError(f"constraint {name!r} is {comparison!r}, not a comparison of expressions")
        if comparison.body.owner is not self:
            raise ValueError(f"constraint {name!r} uses variables of {comparison.body.owner.name}, not of {self.name}")
        self._fresh(name, [block for block, _ in self._constraints])
        size = comparison.body.size
        block = Block(name, comparison.full_shape, self._rows, size, equation, source, comparison.kept, labels)
        self._constraints.append((block, comparison))
        self._rows += size

    @staticmethod
    def _fresh(name: str, blocks: Sequence[Block]) -> None:
        if any(block.name == name for block in blocks):
            raise ValueError(f"there is a block called {name!r} already; each needs a name of its own")

    def program(self) -> Program:
        """Return the finished `Program`. Errors: `BadInput` for a number that is not finite; it names the block."""
        bodies = [comparison.body for _, comparison in self._constraints]
        lower = [_side(comparison.lower, comparison.body, -INFINITY) for _, comparison in self._constraints]
        upper = [_side(comparison.upper, comparison.body, INFINITY) for _, comparison in self._constraints]
        for (block, _), body, low, high in zip(self._constraints, bodies, lower, upper, strict=True):
            _refuse(f"constraint {block.name!r}", body.coefficient, low, high)
        with in_range(self.name):
            rows = _rows(bodies, lower, upper)
        blocks = tuple(block for block, _ in self._constraints)
        cost, offset, logarithms = self._frozen_objective()
        bounds, integer = (_chain(self._lower), _chain(self._upper)), _chain(self._integer).astype(bool)
        _refuse("a variable's bound", None, *bounds)
        objective = self._objective_block, logarithms
        return Program(
            self.name, self._sense, cost, offset, *bounds, integer, rows, tuple(self._variables), blocks, *objective
        )

    def _frozen_objective(self) -> tuple[Array, int | float, Logarithms | None]:
        cost = np.zeros(self._columns, dtype=np.int64)
        if self._objective is None:
            return cost, 0, None
        if isinstance(self._objective, LogSum):
            body = self._objective.body.reshape(self._objective.body.size)
            _refuse("the objective", None, body.coefficient, self._objective.weight.ravel())
            free = np.full(body.size, INFINITY)
            terms = _rows([body - body.constant], [-free], [free])
            return cost, 0, Logarithms(terms, body.constant, self._objective.weight.ravel())
        body = self._objective
        _refuse("the objective", body.coefficient, body.constant.ravel())
        cost = cost.astype(body.coefficient.dtype)
        np.add.at(cost, body.column, body.coefficient)
        return cost, body.constant.ravel().tolist()[0], None


def _rows(bodies: list[Affine], lower: list[Array], upper: list[Array]) -> Rows:
    """Stack blocks into canonical triplets: sorted, repeated columns added up, zeros dropped."""
    lengths = _chain([np.diff(body.start) for body in bodies]).astype(np.int64)
    look(len(lengths))
    row = np.repeat(np.arange(len(lengths)), lengths)
    column = _chain([body.column for body in bodies]).astype(np.int64)
    value = _chain([body.coefficient for body in bodies])
    key = row * (int(column.max()) + 1 if len(column) else 1) + column
    if len(key) > 1 and not (np.diff(key) > 0).all():
        order = np.argsort(key, kind="stable")
        row, column, value, key = row[order], column[order], value[order], key[order]
        first = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        value, row, column = np.add.reduceat(value, first), row[first], column[first]
    full = value != 0
    if not full.all():
        row, column, value = row[full], column[full], value[full]
    return Rows(row, column, value, _chain(lower), _chain(upper))


def _bound(bound: ArrayLike | None, shape: tuple[int, ...], infinite: float) -> Array:
    if bound is None:
        return np.full(int(np.prod(shape, dtype=np.int64)), infinite)
    return np.broadcast_to(numbers(bound), shape).ravel()


def _side(bound: ArrayLike | None, body: Affine, infinite: float) -> Array:
    """Return one bound of a block's rows, with the body's constant moved to it."""
    if bound is None:
        return np.full(body.size, infinite)
    return np.asarray(np.broadcast_to(numbers(bound), body.shape).ravel() - body.constant.ravel())


def _chain(arrays: list[Array]) -> Array:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _refuse(place: str, coefficient: Array | None, *others: Array) -> None:
    """Refuse infinite coefficients, and NaN anywhere."""
    broken = None
    if coefficient is not None and has_infinity(coefficient):
        broken = "a coefficient is infinite"
    elif any(_has_nan(each) for each in (coefficient, *others) if each is not None):
        broken = "a number is NaN"
    if broken:
        raise BadInput(broken, place=place, remedy="Check the data that the formulation was given")


def _has_nan(array: Array) -> bool:
    if not holds_objects(array):
        return bool((array != array).any())
    return any(value != value for value in array.ravel().tolist() if not is_rational(value))
