"""_Many programs in one: formulated once for many markets that differ in some numbers.

``_Many`` is a number with a value in each of several cases. A formulation takes a market with these like any other, and
then gives the programs of all cases at once; where the cases answer a comparison differently, once for each answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.numbers import Array, holds_objects, objects
from fairopt.program.program import Program


class _CasesDiffer(Exception):
    """No error: a comparison is true in some cases only (``answer``, one entry per case); the caller splits them."""

    def __init__(self, answer: Array) -> None:
        super().__init__("the cases differ in the answer to a comparison")
        self.answer = answer


def _each(operation: Callable[[Any, Any], Any]) -> Callable[[_Many, Any], _Many]:
    return lambda number, other: _Many(operation(number.values, _values(other)))


def _for_all(comparison: Callable[[Any, Any], Any]) -> Callable[[_Many, Any], bool]:
    return lambda number, other: _one(comparison(number.values, _values(other)))


class _Many:
    """A number with a value in each case; a comparison is for all. Errors: `_CasesDiffer` where answers differ."""

    __slots__ = ("values",)
    __array_ufunc__ = None  # so that NumPy's own scalars leave the arithmetic to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Array) -> None:
        self.values = values

    __add__ = __radd__ = _each(lambda mine, other: mine + other)
    __sub__ = _each(lambda mine, other: mine - other)
    __rsub__ = _each(lambda mine, other: other - mine)
    __mul__ = __rmul__ = _each(lambda mine, other: mine * other)
    __truediv__ = _each(lambda mine, other: mine / other)
    __rtruediv__ = _each(lambda mine, other: other / mine)
    __lt__, __le__, __gt__, __ge__ = map(_for_all, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__ = _for_all(operator.eq)
    __ne__ = _for_all(operator.ne)

    def __neg__(self) -> _Many:
        return _Many(-self.values)

    def __bool__(self) -> bool:
        return _one(self.values != 0)

    def __repr__(self) -> str:
        return f"<a number with {len(self.values)} values>"


def _values(number: Any) -> Any:
    return number.values if isinstance(number, _Many) else float(number)


def _one(answer: Array) -> bool:
    if answer.all():
        return True
    if answer.any():
        raise _CasesDiffer(answer)
    return False


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of one structure: ``template`` has the variables and rows, the arrays have the numbers.

    Shapes: ``cost``, ``lower``, ``upper`` (cases, variables), ``value`` (cases, non-zeros), ``row_lower``,
    ``row_upper`` (cases, rows). ``cases`` are the positions among those asked for; ``template``'s numbers mean nothing.
    """

    template: Program
    cases: Array
    cost: Array
    lower: Array
    upper: Array
    value: Array
    row_lower: Array
    row_upper: Array

    def program(self, place: int) -> Program:
        """Return one of the programs."""
        lower, upper = self.row_lower[place], self.row_upper[place]
        rows = replace(self.template.rows, value=self.value[place], lower=lower, upper=upper)
        cost, lower, upper = self.cost[place], self.lower[place], self.upper[place]
        return replace(self.template, cost=cost, offset=0.0, lower=lower, upper=upper, rows=rows)


def formulated(write: Callable[[Array], Program], numbers: Array) -> Iterator[Programs]:
    """Yield the programs that ``write`` makes of many arrays of numbers (cases, ...), in as few groups as possible.

    ``write`` takes the array of a case and may use only arithmetic and comparisons. The objective's offset is left out.
    """
    groups = [np.arange(len(numbers))]
    while groups:
        cases = groups.pop()
        if len(cases):
            try:
                program = write(_together(numbers[cases]))
            except _CasesDiffer as found:
                groups += [cases[~found.answer], cases[found.answer]]
            else:
                yield _apart(program, cases)


def _together(numbers: Array) -> Array:
    """Return one array of ``_Many`` for (cases, ...) numbers; a number that is the same in all cases stays ordinary."""
    flat = numbers.reshape(len(numbers), -1)
    same = (flat == flat[0]).all(axis=0)
    columns = zip(flat.T, same, strict=True)
    return objects(float(column[0]) if alike else _Many(column) for column, alike in columns).reshape(numbers.shape[1:])


def _apart(program: Program, cases: Array) -> Programs:
    return Programs(program, cases, *(_stacked(part, len(cases)) for part in numbers_of(program)))


def numbers_of(program: Program) -> tuple[Array, ...]:
    """Return the arrays of a program's numbers, in the order of the fields of `Programs`."""
    rows = program.rows
    return program.cost, program.lower, program.upper, rows.value, rows.lower, rows.upper


def _stacked(array: Array, cases: int) -> Array:
    """Return (cases, entries) floats for an array of ordinary numbers and ``_Many``."""
    if not holds_objects(array):
        return np.broadcast_to(array.astype(float), (cases, len(array)))
    varies = [place for place, number in enumerate(array) if isinstance(number, _Many)]
    ordinary = array.copy()
    ordinary[varies] = 0.0
    out = np.repeat(ordinary.astype(float)[None], cases, axis=0)
    if varies:
        out[:, varies] = np.stack([array[place].values for place in varies], axis=1)
    return out
