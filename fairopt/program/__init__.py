"""The modelling language: affine arrays, named blocks of constraints, and the resulting program as data.

>>> p = Formulation("one machine")
>>> share = p.variable("share", (2,), lower=0)
>>> p.maximize(3 * share[0] + 2 * share[1])
>>> p.constrain("capacity", share.sum() <= 1)
>>> p.program()
<Program 'one machine': 2 variables, 1 row, 2 non-zeros>
"""

from fairopt.later import offered
from fairopt.numbers import INFINITY as INFINITY
from fairopt.numbers import ROUNDING as ROUNDING
from fairopt.numbers import Array as Array
from fairopt.numbers import ArrayLike as ArrayLike
from fairopt.numbers import Number as Number
from fairopt.numbers import cast as cast
from fairopt.numbers import fractions as fractions
from fairopt.numbers import more_text as more_text
from fairopt.numbers import number_text as number_text
from fairopt.numbers import objects as objects
from fairopt.numbers import short_text as short_text
from fairopt.program.affine import Affine as Affine
from fairopt.program.affine import Comparison as Comparison
from fairopt.program.affine import between as between
from fairopt.program.formulation import Formulation as Formulation
from fairopt.program.formulation import log_sum as log_sum
from fairopt.program.program import Block as Block
from fairopt.program.program import Logarithms as Logarithms
from fairopt.program.program import Program as Program
from fairopt.program.program import Rows as Rows
from fairopt.program.program import Sense as Sense
from fairopt.program.program import describe as describe
from fairopt.program.program import entry_name as entry_name
from fairopt.program.program import entry_names as entry_names
from fairopt.program.program import on_shares as on_shares

__all__ = offered(__name__)
