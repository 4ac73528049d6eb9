"""How a program is printed: its blocks, the equation each stands for, and one row of each written out."""

from __future__ import annotations

from fractions import Fraction

from fairopt.program.affine import Number
from fairopt.program.program import INFINITY, Program, Rows

#: A longer fraction says less to a reader than its first digits do.
LONGEST_FRACTION = 9
LARGEST_WRITTEN_OUT = 10**12


def describe(program: Program, rows_per_block: int = 1) -> str:
    """Return the program as text: a line for the objective and for each block, then ``rows_per_block`` rows of it."""
    rows, variables = program.shape
    kind = "exact rationals" if program.exact else "floats"
    head = f"{program.name}: {variables} variables, {rows} rows, {len(program.rows.value)} non-zeros, {kind}"
    lines: list[tuple[str, str, str, str]] = []
    goal = program.objective
    lines.append((program.sense.value, goal.name, goal.equation, goal.source))
    for block in program.variable_blocks:
        where = "integer" if program.integer[block.span].any() else ""
        bounds = _bounds(program, block.first) if block.size else ""
        lines.append(("variables", _sized(block.name, block.shape), f"{bounds} {where}".strip(), ""))
    for block in program.row_blocks:
        title = _sized(block.name, block.shape) + (f" ({block.size} rows)" if block.kept is not None else "")
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
    rows: Rows = program.rows
    first, last = rows.start[row], rows.start[row + 1]
    terms = []
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


def number_text(value: Number) -> str:
    """Return a number as a person would write it: ``5/3``, ``4.993``, and six digits of what is longer than that.

    >>> [number_text(value) for value in (Fraction(5, 3), Fraction(4993, 1000), Fraction(10**9 + 7, 10**9), 1 / 3)]
    ['5/3', '4.993', '1', '0.333333']
    """
    if abs(float(value)) < LARGEST_WRITTEN_OUT and value == int(value):
        return str(int(value))
    short = f"{float(value):.6g}"
    if not isinstance(value, Fraction) or Fraction(short) == value:
        return short
    return str(value) if len(str(value)) <= LONGEST_FRACTION else short


def _sized(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, shape))}]" if shape else name


def _bounds(program: Program, column: int) -> str:
    lower, upper = program.lower[column], program.upper[column]
    left = f">= {number_text(lower)}" if lower > -INFINITY else ""
    right = f"<= {number_text(upper)}" if upper < INFINITY else ""
    return ", ".join(part for part in (left, right) if part) or "free"
