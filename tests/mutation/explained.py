"""Why mutants may survive: by a rule, for those whose form says it, or read one by one, in ``read.toml``.

A rule says in words why no false statement can come of such a change. What a rule explains is not tried.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mutants import Mutant

READ = Path(__file__).with_name("read.toml")
#: What is called to refuse too much work, and how constants are called that say how much that is; one says more.
LIMITS, MOST, NO_LIMIT = ("within", "_require_short"), ("MOST_", "DEEPEST"), "MOST_TOLERANCE"
#: What infinity is called.
INFINITE = ("inf", "INFINITY")
#: What puts something into words for a refusal.
WORDS = ("brief", "odd", "happened", "key_shown")
Nodes = Sequence[Any]  #: what a change is in, from the module inwards


def _name(call: ast.AST) -> str:
    function = getattr(call, "func", None)
    return str(getattr(function, "id", getattr(function, "attr", "")))


def _length(operator: str, around: Nodes) -> bool:
    calls = {_name(each) for each in around[-3:]}
    return operator == "ReplaceTrueWithFalse" and "zip" in calls and around[-2].arg == "strict"


def _limit(operator: str, around: Nodes) -> bool:
    if any(isinstance(each, ast.Expr) and _name(each.value) in LIMITS for each in around):
        return True
    assigned = [name for each in around if isinstance(each, ast.Assign) for name in ast.walk(each.targets[0])]
    return any(isinstance(each, ast.Name) and each.id.startswith(MOST) and each.id != NO_LIMIT for each in assigned)


def _words_of_a_refusal(operator: str, around: Nodes) -> bool:
    if any(isinstance(each, ast.FunctionDef) and each.name in WORDS for each in around):
        return True
    for outer, inner in pairwise(around):
        if isinstance(outer, ast.Raise) or (isinstance(outer, ast.Yield) and isinstance(inner, ast.JoinedStr)):
            return True
        if _name(outer) == "require" and any(inner is each for each in outer.args[1:]):
            return True
    return False


def _order_of_words(operator: str, around: Nodes) -> bool:
    sides = [each for node in around if isinstance(node, ast.Compare) for each in (node.left, *node.comparators)]
    words = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in sides)
    return words and operator in ("Eq_LtE", "Eq_GtE", "NotEq_Lt", "NotEq_Gt")


def _beyond_infinity(operator: str, around: Nodes) -> bool:
    sides = [each for node in around[-1:] if isinstance(node, ast.Compare) for each in node.comparators]
    return operator in ("Eq_GtE", "NotEq_Lt") and any(
        isinstance(each, ast.Name) and each.id in INFINITE for each in sides
    )


def _frozen(operator: str, around: Nodes) -> bool:
    return operator == "ReplaceTrueWithFalse" and any(_name(each) == "dataclass" for each in around)


def _compared(operator: str, around: Nodes) -> bool:
    return operator == "ReplaceFalseWithTrue" and any(getattr(each, "arg", None) == "eq" for each in around[-2:])


#: Why a mutant of this form does no harm, and which form that is.
RULES: dict[str, Callable[[str, Nodes], bool]] = {
    "lengths that differ would end the verifier, and reading has made sure that they do not": _length,
    "a limit of work says how long a file may take, not what it states": _limit,
    "a refusal is put in other words, and stays one": _words_of_a_refusal,
    "of two words which comes first is asked by nobody; that they are equal is another mutant": _order_of_words,
    "nothing is beyond infinity": _beyond_infinity,
    "nobody writes to what is frozen": _frozen,
    "nobody asks whether two records that hold arrays are the same: Python could not say": _compared,
}


def by_rule(mutant: Mutant) -> str | None:
    """Return why a mutant need not be tried, None where no rule says so."""
    return next((why for why, fits in RULES.items() if fits(mutant.operator, mutant.around)), None)


def read_ones() -> dict[tuple[str, str], str]:
    """Return why survivors that have been read do no harm, by file and change."""
    groups = tomllib.loads(READ.read_text(encoding="utf-8")) if READ.exists() else {}
    return {
        (file, change): why for file, group in groups.items() for why, changes in group.items() for change in changes
    }
