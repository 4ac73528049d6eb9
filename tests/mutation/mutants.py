"""The mutants of a file: operators of cosmic-ray, and three of our own for what verifiers are made of, checks.

What a mutant is called (its operator, and which occurrence in the file) does not change as long as the file does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

#: Of cosmic-ray's operators those no two of which are nearly the same: the other side of a boundary, and the opposite.
COMPARED = (
    "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq Eq_LtE Eq_GtE NotEq_Eq NotEq_Lt NotEq_Gt "
    "Is_IsNot IsNot_Is"
)
COUNTED = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul BitOr_BitAnd BitAnd_BitOr"
OTHERS = (
    "ReplaceUnaryOperator_Delete_USub ReplaceUnaryOperator_Delete_Not AddNot ReplaceTrueWithFalse "
    "ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue ReplaceContinueWithBreak "
    "NumberReplacer RemoveDecorator ZeroIterationForLoop"
)


class NeverDone(Operator):  # type: ignore[misc]
    """What stands under an ``if`` is never done."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if isinstance(node, parso.python.tree.IfStmt):
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(" False")
        return node

    @classmethod
    def examples(cls) -> Any:
        return ()


class LeftOut(NeverDone):
    """A statement that is a call, such as ``require(...)``, is left out."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and node.children[0].type == "atom_expr":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = parso.parse(node.get_first_leaf().prefix + "pass")
        return node


class OtherEnd(NeverDone):
    """All for any, the least for the most."""

    NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}  # noqa: RUF012

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "name" and node.value in self.NAMES and node.parent.type == "atom_expr":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self.NAMES[node.value]
        return node


OPERATORS: dict[str, Any] = {
    **{name: get_operator(f"core/ReplaceComparisonOperator_{name}")() for name in COMPARED.split()},
    **{name: get_operator(f"core/ReplaceBinaryOperator_{name}")() for name in COUNTED.split()},
    **{name: get_operator(f"core/{name}")() for name in OTHERS.split()},
    **{each.__name__: each() for each in (NeverDone, LeftOut, OtherEnd)},
}


@dataclass(frozen=True)
class Mutant:
    """A file with one change, which is inside of ``around``, from the module inwards.

    ``lines`` are those of the statement that it is in, None outside of functions.
    """

    file: str
    operator: str
    occurrence: int
    source: str
    line: int
    change: str
    lines: range | None
    around: tuple[ast.AST, ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.operator} {self.occurrence}"


def mutants(path: Path, file: str) -> Iterator[Mutant]:
    """Yield the mutants of a file by operator; annotations, which are not run, stay as they are."""
    source = path.read_text(encoding="utf-8")
    tree, program = parso.parse(source), ast.parse(source)
    statements, annotated = list(_statements(program)), list(_annotations(program))
    if not statements:  # examples and names alone decide nothing
        return
    for name, operator in OPERATORS.items():
        for occurrence, (node, index, (line, column)) in enumerate(list(_positions(tree, operator))):
            if any(begin <= (line, column) < end for begin, end in annotated):
                continue
            if node.parent is not None and node.parent.type == "parameters":  # the sign between parameters
                continue
            mutated = _mutated(tree, operator, node, index)
            if not _runs(mutated):
                continue
            around = tuple(_around(program, (line, column)))
            own = min((lines for lines in statements if line in lines), key=len, default=None)
            yield Mutant(file, name, occurrence, mutated, line, _change(source, mutated), own, around)


def _positions(node: Any, operator: Any) -> Iterator[tuple[Any, int, tuple[int, int]]]:
    for index, (begin, _) in enumerate(operator.mutation_positions(node)):
        yield node, index, begin
    for child in getattr(node, "children", ()):
        yield from _positions(child, operator)


def _mutated(tree: Any, operator: Any, node: Any, index: int) -> str:
    """Return the program with one node changed; the tree is left as it was, since to parse anew takes long."""
    before, place = _state(node), node.parent.children if node.parent else []
    siblings = list(place)
    after = operator.mutate(node, index)
    place[:] = [after if each is node else each for each in siblings if each is not node or after is not None]
    code: str = tree.get_code()
    place[:] = siblings
    for each, was in before:
        if isinstance(was, list):
            each.children[:] = was
        else:
            each.value = was
    return code


def _state(node: Any) -> list[tuple[Any, Any]]:
    children = getattr(node, "children", None)
    own = [(node, node.value if children is None else list(children))]
    return own + [each for child in children or () for each in _state(child)]


def _statements(program: ast.AST) -> Iterator[range]:
    """Yield the lines of each lambda and of each statement in a function; those before the body of one that has it."""
    for each in (node for node in ast.walk(program) if isinstance(node, ast.Lambda)):
        yield range(each.lineno, (each.end_lineno or 0) + 1)
    for function in (node for node in ast.walk(program) if isinstance(node, ast.FunctionDef)):
        for each in (node for inside in function.body for node in ast.walk(inside) if isinstance(node, ast.stmt)):
            body = getattr(each, "body", None)
            end = max(each.lineno + 1, body[0].lineno) if body else (each.end_lineno or 0) + 1
            yield range(each.lineno, end)


def _around(node: ast.AST, place: tuple[int, int]) -> Iterator[ast.AST]:
    """Yield what a place is inside of; Python does not tell where the parts of an f-string stand."""
    yield node
    for each in ast.iter_child_nodes(node) if not isinstance(node, ast.JoinedStr) else ():
        first = (*getattr(each, "decorator_list", ()), each)[0]
        begin = getattr(first, "lineno", None), getattr(first, "col_offset", 0)
        if begin[0] is None:
            yield from (found for found in _around(each, place) if found is not each)
        elif begin <= place < (each.end_lineno, each.end_col_offset):  # type: ignore[attr-defined]
            yield from _around(each, place)


def _annotations(program: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(program):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if each is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset)


def _runs(source: str) -> bool:
    """Return whether this is Python: some operators do not know every use of a sign."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _change(source: str, mutated: str) -> str:
    """Return the lines that differ, and what stands there."""
    was, now = source.splitlines(), mutated.splitlines()
    while was and now and was[0] == now[0]:
        del was[0], now[0]
    while was and now and was[-1] == now[-1]:
        del was[-1], now[-1]
    return f"{' '.join(each.strip() for each in was)} -> {' '.join(each.strip() for each in now)}"
