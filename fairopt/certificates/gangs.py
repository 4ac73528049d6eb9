"""Certificates about gangs of GPUs: what a round of FFT costs at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from fairopt.certificates.certificate import Certificate
from fairopt.certificates.parts import Gap, Objective, Part, UpTo
from fairopt.program import Array

_WHOLE = {"type": "array", "items": {"type": "integer"}}
_COSTS = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]}}
_TOLL = [{"type": "integer"}, {"type": "integer"}, {"$ref": "#/$defs/number"}]
_BOUNDED = {
    "prices": {"type": "array", "items": {"$ref": "#/$defs/amount"}},
    "reward": {"$ref": "#/$defs/amount"},
    "tolls": {"type": "array", "items": {"type": "array", "prefixItems": _TOLL, "items": False, "minItems": 3}},
}
_SPLIT = {"split": _WHOLE | {"minItems": 3, "maxItems": 3}}
_CASE = {"type": "object", "properties": _BOUNDED | _SPLIT, "additionalProperties": False}


@dataclass(frozen=True, eq=False)
class GangProof(Certificate):
    """Jobs run on ``types`` at a cost of ``value``; no assignment costs less than ``bound``.

    A job asks for a gang of GPUs of one type, or waits; ``least`` GPUs must be busy. With a gap of 0 the assignment is
    optimal. ``root``: prices of GPUs and a reward for busy ones; ``cases`` are split into at most so many gangs of a
    size on a type, and more than that, one after the other, until prices, reward and tolls bound each.

    >>> GangProof.kind
    'gangs'
    """

    kind: ClassVar[str] = "gangs"
    gangs: Annotated[Array, Part(_WHOLE, "GPUs that each job asks for.")]
    capacity: Annotated[Array, Part(_WHOLE, "GPUs of each type.")]
    least: Annotated[int, Part({"type": "integer"}, "How many GPUs must be busy.")]
    cost: Annotated[
        Sequence[Sequence[Fraction | None]],
        Part({"type": "array", "items": _COSTS}, "The cost of each job on each type; null where it may not run."),
    ]
    types: Annotated[Array, Part(_WHOLE, "The type of each job by position, -1 where it waits.")]
    value: Objective
    bound: UpTo
    gap: Gap
    root: Annotated[Mapping[str, Any], Part(_CASE, "Prices by type, and the reward of a busy GPU.")]
    cases: Annotated[
        Sequence[Mapping[str, Any]],
        Part(
            {"type": "array", "items": _CASE},
            "In order: split is [gang, type, number], for at most so many and then for more; others bound a case.",
        ),
    ]
    grain: Annotated[Fraction | None, Part("amount", "What all costs, and the bound, are multiples of.")] = None
