"""The modelling language: affine arrays, named constraint blocks, and the program they make, as data."""

from fairopt.program.affine import Affine, Array, ArrayLike, Comparison, Number, between
from fairopt.program.display import describe, number_text
from fairopt.program.formulation import Formulation, log_sum
from fairopt.program.program import INFINITY, Block, Logarithms, Program, Rows, Sense, cast, entry_name, entry_names

__all__ = [
    "INFINITY",
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
    "log_sum",
    "number_text",
]
