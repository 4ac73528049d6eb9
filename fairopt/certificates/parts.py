"""The types of the fields of certificates, and how each is written in the published JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from fairopt.program import Array


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
