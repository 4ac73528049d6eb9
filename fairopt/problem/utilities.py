"""What completing a job is worth, as a function of the time that it takes; never rising."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

from fairopt.errors import BadInput, type_of
from fairopt.problem.numbers import exact
from fairopt.program import Number


class CompletionUtility(ABC):
    """A utility f of a completion time, in slots from an origin that the caller chooses; never rising in it."""

    @abstractmethod
    def value(self, time: Number) -> Number:
        """Return f(time); a Fraction where it is rational and ``time`` is a Fraction or an int, else a float."""

    def floats(self, slots: int) -> list[float]:
        """Return f at 1, ..., ``slots`` as the nearest floats."""
        return [float(self.value(Fraction(slot))) for slot in range(1, slots + 1)]


@dataclass(frozen=True)
class Linear(CompletionUtility):
    """k t + g, with k at most 0; it may fall below 0.

    Source: Astraea (posted prices) Theorem 1 (i).

    >>> Linear(-2, 100).value(2)
    Fraction(96, 1)
    """

    slope: Fraction
    height: Fraction

    def __post_init__(self) -> None:
        for name in ("slope", "height"):
            object.__setattr__(self, name, exact(getattr(self, name), f"linear utility, {name}"))
        if self.slope > 0:
            remedy = "Give a slope that is not positive"
            raise BadInput(f"got {self.slope}", place="linear utility, slope", remedy=remedy)

    def value(self, time: Number) -> Number:
        """Return k t + g."""
        if isinstance(time, float):
            return float(self.slope) * time + float(self.height)
        return self.slope * time + self.height

    def floats(self, slots: int) -> list[float]:
        """Return k t + g at 1, ..., ``slots``; quotients of integers, which round once only."""
        rise = self.slope.numerator * self.height.denominator
        at_zero = self.height.numerator * self.slope.denominator
        common = self.slope.denominator * self.height.denominator
        return [(rise * slot + at_zero) / common for slot in range(1, slots + 1)]


@dataclass(frozen=True)
class Power(CompletionUtility):
    """(e / t) to the power kappa, with e and kappa positive; rational where kappa is a whole number.

    Source: Astraea (posted prices) Theorem 1 (ii), "convex".
    """

    scale: Fraction
    exponent: Fraction

    def __post_init__(self) -> None:
        for name in ("scale", "exponent"):
            value = exact(getattr(self, name), f"convex utility, {name}")
            if value <= 0:
                raise BadInput(f"got {value}", place=f"convex utility, {name}", remedy="Give a positive number")
            object.__setattr__(self, name, value)

    def value(self, time: Number) -> Number:
        """Return (e / t) ** kappa; infinite at 0 is refused by the caller's slots, which start at 1."""
        if isinstance(time, float):
            return float((float(self.scale) / time) ** float(self.exponent))
        if self.exponent.denominator == 1:
            return Fraction(self.scale / time) ** int(self.exponent)
        return float((float(self.scale) / float(time)) ** float(self.exponent))


@dataclass(frozen=True)
class Steps(CompletionUtility):
    """Any function that never rises, slot by slot: ``values[t]`` for completion after t slots, then the last."""

    values: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise BadInput("no values", place="utility, values", remedy="Give one value at least")
        values = tuple(exact(value, f"utility, value {number}") for number, value in enumerate(self.values))
        for number, (a, b) in enumerate(pairwise(values), start=1):
            if b > a:
                remedy = "Give values that never rise"
                raise BadInput(f"value {number} is {b}, after {a}", place="utility, values", remedy=remedy)
        object.__setattr__(self, "values", values)

    def value(self, time: Number) -> Number:
        """Return the value for the whole slots that ``time`` takes."""
        slots = -int(-time // 1)
        return self.values[min(max(slots, 0), len(self.values) - 1)]


#: What files and documents call the forms of utility.
FORMS: Mapping[str, type[CompletionUtility]] = MappingProxyType({"linear": Linear, "power": Power, "steps": Steps})


def form_of(utility: object, place: str, why: str) -> str:
    """Return what files call the form of a utility; `BadInput`, which says ``why``, for one of another class."""
    form = next((name for name, kind in FORMS.items() if type(utility) is kind), None)
    if form is None:
        remedy = f"Write it as Steps, slot by slot: {why}"
        raise BadInput(f"got {type_of(utility)}", place=place, remedy=remedy)
    return form
