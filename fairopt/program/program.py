"""A `Program`: a linear, mixed-integer or log-linear program as data, in floats or in Fractions alike.

Arrays hold what a solver needs, and blocks what a reader needs: which rows are which constraint of which paper.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.numbers import (
    INFINITY,
    RATIONALS,
    Arithmetic,
    Array,
    Number,
    arithmetic,
    arithmetic_of_all,
    at_in_pieces,
    cast,
    counted,
    holds_objects,
    in_pieces,
    number_text,
)
from fairopt.program.affine import distinct


class Sense(enum.Enum):
    """Whether a program maximises or minimises.

    >>> [each.name for each in Sense]
    ['MAXIMIZE', 'MINIMIZE']
    """

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


@dataclass(frozen=True)
class Block:
    """A named array of variables or of rows, and its meaning in the source.

    ``shape`` is the one formulated, ``kept`` the flat positions of the entries that exist (None: all). ``labels`` names
    the positions along each axis (users, types), which gives every row a name.

    >>> Block("share", (2,), 0, 2, labels=(["A", "B"],)).name
    'share'
    """

    name: str
    shape: tuple[int, ...]
    first: int
    size: int
    equation: str = ""
    source: str = ""
    kept: Array | None = None
    labels: tuple[Sequence[str], ...] = ()

    @property
    def span(self) -> slice:
        """The positions of the block among the program's variables or rows."""
        return slice(self.first, self.first + self.size)

    def entry(self, position: int) -> str:
        """Return the name of one entry, ``capacity[V100]`` or ``share[0,1]``."""
        flat = position if self.kept is None else int(self.kept[position])
        index = np.unravel_index(flat, self.shape) if self.shape else ()
        parts = [
            str(self.labels[axis][i]) if axis < len(self.labels) and self.labels[axis] else str(i)
            for axis, i in enumerate(map(int, index))
        ]
        return f"{self.name}[{','.join(parts)}]" if parts else self.name


@dataclass(frozen=True)
class Rows:
    """A sparse matrix with bounds: row r reads ``lower[r] <= sum of value * x[column] <= upper[r]``.

    The triplets are canonical: sorted by row and column, no pair twice, no zero value.

    Shapes, for z entries and m rows: ``row``, ``column``, ``value`` (z,); ``lower``, ``upper`` (m,).

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> x = p.variable("x", (2,))
    >>> p.constrain("sum", x.sum() <= 1)
    >>> p.program().rows.column.tolist()
    [0, 1]
    """

    row: Array
    column: Array
    value: Array
    lower: Array
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def start(self) -> Array:
        """The position of each row's first triplet, and the number of triplets at the end (CSR)."""
        return np.searchsorted(self.row, np.arange(len(self) + 1))

    def activity(self, x: Array) -> Array:
        """Return the value of each row's sum at ``x``; in rationals, where many take seconds, within the time limit."""
        at = x[self.column]
        if not arithmetic(self.value).exact and not arithmetic(at).exact:
            return np.bincount(self.row, weights=self.value * at, minlength=len(self)).astype(float)
        total = np.zeros(len(self), dtype=RATIONALS.dtype)
        held = np.flatnonzero(at)  # in rationals a product takes longer than to see that it is zero
        at_in_pieces(np.add, total, self.row[held], in_pieces(np.multiply, self.value[held], at[held]))
        return total

    def as_(self, number: type | Arithmetic) -> Rows:
        """Return the rows in another number type."""
        some, at = distinct(self.value) if holds_objects(self.value) else (self.value, ...)
        ends = {name: cast(getattr(self, name), number) for name in ("lower", "upper")}
        return replace(self, value=cast(some, number)[at], **ends)


@dataclass(frozen=True)
class Logarithms:
    """A concave term of the objective: the sum of ``weight[t] * log(argument[t] @ x + constant[t])``.

    Shapes, for t terms: ``constant`` (t,), ``weight`` (t,).

    >>> from fairopt.program import Formulation, log_sum
    >>> p = Formulation("log")
    >>> p.maximize(log_sum([2], p.variable("x", (1,), upper=1)))
    >>> p.program().logarithms.weight.tolist()
    [2]
    """

    argument: Rows
    constant: Array
    weight: Array

    def values(self, x: Array) -> Array:
        """Return the arguments of the logarithms at ``x``."""
        return np.asarray(self.argument.activity(x) + self.constant)

    def as_(self, number: type | Arithmetic) -> Logarithms:
        """Return the term in another number type."""
        return Logarithms(self.argument.as_(number), cast(self.constant, number), cast(self.weight, number))


@dataclass(frozen=True, eq=False)
class Program:
    """Optimise ``cost @ x + offset`` (+ logarithms) subject to rows, bounds and integrality.

    Shapes: ``cost``, ``lower``, ``upper``, ``integer`` have one entry per variable; ``rows`` one per row. Infinite
    bounds are float infinities, also among Fractions.

    Shapes, for v variables: each of these (v,).

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> p.program().value(np.array([2]))
    2.0
    """

    name: str
    sense: Sense
    cost: Array
    offset: Number
    lower: Array
    upper: Array
    integer: Array
    rows: Rows
    variable_blocks: tuple[Block, ...]
    row_blocks: tuple[Block, ...]
    objective: Block
    logarithms: Logarithms | None = None

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: rationals where none is a float (infinite bounds apart)."""
        return arithmetic_of_all((self.cost, self.rows.value, self.offset))

    @property
    def exact(self) -> bool:
        """Whether the numbers of the program are rationals."""
        return self.arithmetic.exact

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, variables)."""
        return len(self.rows), len(self.cost)

    def as_(self, number: type | Arithmetic) -> Program:
        """Return the program in floats or, by the exact value of each float, in Fractions."""
        arrays: dict[str, Any] = {name: cast(getattr(self, name), number) for name in ("cost", "lower", "upper")}
        offset = cast(np.asarray(self.offset), number).item()
        logarithms = self.logarithms and self.logarithms.as_(number)
        return replace(self, **arrays, offset=offset, rows=self.rows.as_(number), logarithms=logarithms)

    def value(self, x: Array) -> Number:
        """Return the objective at ``x``, in the number type of ``x`` (a float if there are logarithms)."""
        linear = (self.cost * x).sum() + self.offset
        if self.logarithms is None:
            return arithmetic(linear).number(linear)  # type: ignore[no-any-return]
        inside = self.logarithms.values(x).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(linear) + float(self.logarithms.weight.astype(float) @ np.log(inside))

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the objective at ``x``, one entry per variable."""
        if self.logarithms is None:
            return self.cost.copy()
        out = self.cost.astype(float)
        terms = self.logarithms
        rate = terms.weight / terms.values(x)
        np.add.at(out, terms.argument.column, terms.argument.value * rate[terms.argument.row])
        return out

    def reduced_cost(self, x: Array, dual: Array) -> Array:
        """Return the reduced costs that belong to row duals: the gradient at ``x`` minus ``A.T @ dual``."""
        gradient = self.gradient(x)
        reduced = gradient.astype(np.result_type(gradient, dual, self.rows.value))
        value, each = self.rows.value, dual[self.rows.row]
        if not arithmetic(reduced).exact:
            np.subtract.at(reduced, self.rows.column, value * each)
        else:
            held = np.flatnonzero(each)
            products = in_pieces(np.multiply, value[held], each[held])
            at_in_pieces(np.subtract, reduced, self.rows.column[held], products)
        return reduced

    def violations(self, x: Array, tolerance: Number = 0) -> dict[str, Number]:
        """Return how far ``x`` breaks each row, bound or integrality, by name; empty if it breaks none."""
        activity = self.rows.activity(x)
        found: dict[str, Number] = {}
        for blocks, low, value, high in (
            (self.row_blocks, self.rows.lower, activity, self.rows.upper),
            (self.variable_blocks, self.lower, x, self.upper),
        ):
            excess = np.maximum(low - value, value - high)
            for position in np.flatnonzero(excess > tolerance):
                found[entry_name(blocks, int(position))] = excess[position]
        for position in np.flatnonzero(self.integer):
            distance = abs(x[position] - round(x[position]))
            if distance > tolerance:
                found[entry_name(self.variable_blocks, int(position)) + " integral"] = distance
        return found

    def variable(self, name: str, x: Array) -> Array:
        """Return the values that ``x`` gives to the block of variables called ``name``, in its shape."""
        block = self.variable_block(name)
        return x[block.span].reshape(block.shape)

    def variable_block(self, name: str) -> Block:
        """Return the block of variables called ``name``; its ``span`` selects its values in a point."""
        return _called(name, self.variable_blocks, "variables")

    def row_block(self, name: str) -> Block:
        """Return the block of rows called ``name``; its ``span`` selects its duals in a solution."""
        return _called(name, self.row_blocks, "rows")

    def row_name(self, row: int) -> str:
        """Return the name of one row."""
        return entry_name(self.row_blocks, row)

    def column_name(self, column: int) -> str:
        """Return the name of one variable."""
        return entry_name(self.variable_blocks, column)

    def same_structure(self, other: Program) -> bool:
        """Whether the programs differ only in numbers: same variables, rows and positions of the non-zeros."""
        return (
            self.shape == other.shape
            and len(self.rows.value) == len(other.rows.value)
            and np.array_equal(self.rows.row, other.rows.row)
            and np.array_equal(self.rows.column, other.rows.column)
            and np.array_equal(self.integer, other.integer)
            and (self.logarithms is None) == (other.logarithms is None)
        )

    def __str__(self) -> str:
        return describe(self)

    def __repr__(self) -> str:
        rows, variables = self.shape
        non_zeros = counted(len(self.rows.value), "non-zero")
        return f"<Program {self.name!r}: {counted(variables, 'variable')}, {counted(rows, 'row')}, {non_zeros}>"


def on_shares(program: Program, weights: Array, sense: Sense = Sense.MAXIMIZE) -> Program:
    """Return the program with another objective: the sum of ``weights`` (n, k) times the shares.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("share", (1, 2), upper=1).sum())
    >>> on_shares(p.program(), np.array([[1, 3]])).cost.tolist()
    [1, 3]
    """
    block = program.variable_block("share")
    cost = np.zeros(len(program.cost), dtype=weights.dtype)
    cost[block.span] = weights.ravel()
    return replace(program, sense=sense, cost=cost, offset=0, logarithms=None)


def _called(name: str, blocks: Sequence[Block], what: str) -> Block:
    for block in blocks:
        if block.name == name:
            return block
    raise KeyError(f"no {what} called {name!r}; there are {[block.name for block in blocks]}")


def entry_name(blocks: Sequence[Block], position: int) -> str:
    """Return the name of entry ``position`` among consecutive blocks.

    >>> entry_name([Block("share", (2,), 0, 2, labels=(["A", "B"],))], 1)
    'share[B]'
    """
    for block in blocks:
        if block.first <= position < block.first + block.size:
            return block.entry(position - block.first)
    raise IndexError(f"no entry {position} in {[block.name for block in blocks]}")


def entry_names(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the name of every entry in order.

    >>> list(entry_names([Block("share", (2,), 0, 2, labels=(["A", "B"],))]))
    ['share[A]', 'share[B]']
    """
    for block in blocks:
        yield from (block.entry(position) for position in range(block.size))


def describe(program: Program, rows_per_block: int = 1) -> str:
    """Return the program as text: a line for the objective and for each block, and ``rows_per_block`` of its rows.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> print(describe(p.program()))
    one: 1 variable, 0 rows, 0 non-zeros, floats
      maximize   objective
      variables  x          <= 2
    """
    rows, variables = program.shape
    size = f"{counted(variables, 'variable')}, {counted(rows, 'row')}, {counted(len(program.rows.value), 'non-zero')}"
    head = f"{program.name}: {size}, {program.arithmetic}"
    goal = program.objective
    lines = [(program.sense.value, goal.name, goal.equation, goal.source)]
    for block in program.variable_blocks:
        where = "integer" if program.integer[block.span].any() else ""
        bounds = _bounds(program, block.first) if block.size else ""
        lines.append(("variables", _sized(block.name, block.shape), f"{bounds} {where}".strip(), ""))
    for block in program.row_blocks:
        title = _sized(block.name, block.shape) + (f" ({counted(block.size, 'row')})" if block.kept is not None else "")
        lines.append(("rows", title, block.equation, block.source))
        for position in range(min(rows_per_block, block.size)):
            lines.append(("", "", f"{block.entry(position)}: {row_text(program, block.first + position)}", ""))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    body = [
        "  " + "  ".join(part.ljust(width) for part, width in zip(line, [*widths, 0], strict=True)) for line in lines
    ]
    return "\n".join([head, *(line.rstrip() for line in body)])


def row_text(program: Program, row: int, most_terms: int = 6) -> str:
    """Return one row written out with the names of its variables."""
    rows, terms = program.rows, list[str]()
    first, last = rows.start[row], rows.start[row + 1]
    for place in range(first, min(last, first + most_terms)):
        value = rows.value[place]
        sign = "-" if value < 0 else "+"
        size = "" if abs(value) == 1 else f"{number_text(abs(value))} "
        terms.append(f"{sign} {size}{program.column_name(int(rows.column[place]))}")
    if last - first > most_terms:
        terms.append(f"+ ... ({last - first} terms)")
    body = " ".join(terms).removeprefix("+ ") or "0"
    lower, upper = rows.lower[row], rows.upper[row]
    if lower == upper:
        return f"{body} = {number_text(lower)}"
    left = f"{number_text(lower)} <= " if lower > -INFINITY and upper < INFINITY else ""
    if upper < INFINITY:
        return f"{left}{body} <= {number_text(upper)}"
    return f"{body} >= {number_text(lower)}" if lower > -INFINITY else f"{body} free"


def _sized(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, shape))}]" if shape else name


def _bounds(program: Program, column: int) -> str:
    lower, upper = program.lower[column], program.upper[column]
    left = f">= {number_text(lower)}" if lower > -INFINITY else ""
    right = f"<= {number_text(upper)}" if upper < INFINITY else ""
    return ", ".join(part for part in (left, right) if part) or "free"
