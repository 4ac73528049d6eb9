"""The fields of certificates: how each is written in the published JSON Schema, and how rows and variables are named.

A name is that of a block with a position in it; indices begin at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np

from fairopt.problem import Market
from fairopt.problem.floors import floors_of
from fairopt.program import Array, Program


@dataclass(frozen=True, eq=False)
class Part:
    """How a field is written (a definition of the published schema by name, or a JSON Schema), and its meaning."""

    form: str | Mapping[str, Any]
    says: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON Schema of the field."""
        form = {"$ref": f"#/$defs/{self.form}"} if isinstance(self.form, str) else dict(self.form)
        return {"description": self.says} | form


def rows_of(form: str) -> dict[str, Any]:
    """Return the JSON Schema of a non-empty list of a named definition."""
    return {"type": "array", "items": {"$ref": f"#/$defs/{form}"}, "minItems": 1}


Shares: TypeAlias = Annotated[Array, Part("table", "GPUs of each type for each user.")]
Duals: TypeAlias = Annotated[
    Sequence[Sequence[Any]],
    Part("duals", "Multipliers of the program's rows, those that are not zero, for the objective maximised."),
]
BareDuals: TypeAlias = Annotated[
    Sequence[Sequence[Any]],
    Part("bare_duals", 'Multipliers of the program\'s rows, ["row", number, value], for the objective maximised.'),
]
Variables: TypeAlias = Annotated[
    Mapping[str, Fraction], Part("variables", "The values of the program's variables other than shares.")
]
Prices: TypeAlias = Annotated[Array, Part("numbers", "A price for each type.")]
DemandDuals: TypeAlias = Annotated[Array, Part("numbers", "What a right to one more GPU is worth to each user.")]
Policy: TypeAlias = Annotated[str, Part("name", "The policy.")]
KnownPolicy: TypeAlias = Annotated[
    str,
    Part(
        {"enum": ["max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min"]},
        "The policy, one that the verifier writes the program of.",
    ),
]
User: TypeAlias = Annotated[str, Part("name", "The user.")]
Objective: TypeAlias = Annotated[Fraction, Part("number", "The objective.")]
UpTo: TypeAlias = Annotated[Fraction, Part("number", "The bound.")]
Gap: TypeAlias = Annotated[Fraction, Part("amount", "The gap; 0 proves the point optimal.")]


def row_duals(program: Program, dual: Array) -> list[list[Any]]:
    """Return the duals that are not zero as entries [block, index..., value].

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation('one')
    >>> x = p.variable('x')
    >>> p.constrain('most', x <= 3)
    >>> p.maximize(x)
    >>> row_duals(p.program(), np.array([Fraction(1)]))
    [['most', Fraction(1, 1)]]
    """
    entries: list[list[Any]] = []
    for block in program.row_blocks:
        for position, value in enumerate(dual[block.span]):
            if value:
                flat = position if block.kept is None else int(block.kept[position])
                index = [int(i) for i in np.unravel_index(flat, block.shape)] if block.shape else []
                entries.append([block.name, *index, value])
    return entries


def floors_told(market: Market) -> dict[str, Array]:
    """Return what a certificate says of entitlements: floors of groups (G, k), and what is lent where some is not.

    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["A"], ["H100"], group={"A": "ml"}, guarantee={"ml": [3]})
    >>> floors_told(Market.of([[1]], [4], users=["A"], types=["H100"], entitlements=owed))["floors"].tolist()
    [[Fraction(3, 1)]]
    """
    own = floors_of(market)
    lent = {"lent": own.lendable} if (own.lendable < market.capacity).any() else {}
    return {"floors": own.floor[len(market.users) :], **lent}


def bare_duals(dual: Array) -> list[list[Any]]:
    """Return the duals of a bare program that are not zero as entries ["row", number, value].

    >>> import numpy as np
    >>> bare_duals(np.array([Fraction(0), Fraction(2)]))
    [['row', 1, Fraction(2, 1)]]
    """
    return [["row", r, value] for r, value in enumerate(dual) if value]


def other_variables(program: Program, x: Array) -> dict[str, Fraction] | None:
    """Return the values of the variables beside the shares, by name; None where there are none.

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation('one')
    >>> x = p.variable('x')
    >>> p.maximize(x)
    >>> other_variables(p.program(), np.array([Fraction(1)]))
    {'x': Fraction(1, 1)}
    """
    found = {block.name: x[block.first] for block in program.variable_blocks if block.name != "share"}
    return found or None
