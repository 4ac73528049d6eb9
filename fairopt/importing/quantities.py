"""Quantities as Kubernetes writes them: 1500m CPU cores, 64Gi bytes, 2e3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from fairopt.errors import BadInput
from fairopt.problem.numbers import exact, shown

_FORM = re.compile(r"(?a)([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})?")
_TIMES: Mapping[str, Fraction] = MappingProxyType(
    {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    | {name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", start=1)}
    | {f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", start=1)}
)


def quantity(value: object, place: str) -> Fraction:
    """Return a Kubernetes quantity as an exact number; negative ones too.

    Errors: `BadInput` with the place for what is none. Source: Kubernetes, apimachinery/pkg/api/resource/quantity.go.

    >>> print(quantity("1500m", "cpu"), quantity("2Ki", "memory"), quantity(8, "gpu"))
    3/2 2048 8
    """
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return exact(value, place)
    found = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a quantity such as 8, 1500m or 64Gi")
    number, suffix = Fraction(found[1].rstrip(".")), found[2] or ""
    return number * (_TIMES[suffix] if suffix in _TIMES else Fraction(10) ** int(suffix[1:]))
