"""The modelling language: affine arrays, named blocks of constraints, and the resulting program as data.

>>> p = Formulation("one machine")
>>> share = p.variable("share", (2,), lower=0)
>>> p.maximize(3 * share[0] + 2 * share[1])
>>> p.constrain("capacity", share.sum() <= 1)
>>> p.program()
<Program 'one machine': 2 variables, 1 row, 2 non-zeros>
"""

from fairopt.numbers import (
    INFINITY,
    ROUNDING,
    Array,
    ArrayLike,
    Number,
    cast,
    fractions,
    more_text,
    number_text,
    objects,
    short_text,
)
from fairopt.program.affine import Affine, Comparison, between
from fairopt.program.formulation import Formulation, log_sum
from fairopt.program.program import (
    Block,
    Logarithms,
    Program,
    Rows,
    Sense,
    describe,
    entry_name,
    entry_names,
    on_shares,
)

__all__ = [
    "INFINITY",
    "ROUNDING",
    "Affine",
    "Array",
    "ArrayLike",
    "Block",
    "Comparison",
    "Formulation",
    "Logarithms",
    "Number",
    "Program",
    "Rows",
    "Sense",
    "between",
    "cast",
    "describe",
    "entry_name",
    "entry_names",
    "fractions",
    "log_sum",
    "more_text",
    "number_text",
    "objects",
    "on_shares",
    "short_text",
]
