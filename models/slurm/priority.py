"""The order of Slurm's queue: the fair-share factor first, or the weighted sum of multifactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor

from fairopt.errors import BadInput
from fairopt.problem import Gangs
from fairopt.program import Number

#: Priorities are whole numbers of 32 bits, from 1. Source: priority_multifactor.c, _get_priority_internal.
LOWEST, HIGHEST = 1, 0xFFFFFFFF


@dataclass(frozen=True)
class Exponential:
    """The number 2 ** -``exponent``, for an exponent that is rational and not negative: irrational, and exact.

    >>> Exponential(Fraction(1, 2)) > Exponential(Fraction(2, 3)), float(Exponential(Fraction(2)))
    (True, 0.25)
    """

    exponent: Number

    def __lt__(self, other: Exponential) -> bool:
        return self.exponent > other.exponent

    def __float__(self) -> float:
        return float(2.0 ** -float(self.exponent))

    @lru_cache(maxsize=2**16)  # noqa: B019  small, and asked for again with every job of a user
    def within(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return ends between which the number lies, closer the more ``digits``."""
        if self.exponent == float("inf"):
            return Fraction(0), Fraction(0)
        if self.exponent == int(self.exponent) and self.exponent < 1000:
            exact = Fraction(1, 2 ** int(self.exponent))
            return exact, exact
        if self.exponent >= 1000:
            return Fraction(0), Fraction(1, 2**1000)
        with localcontext() as context:
            context.prec = digits + 10
            top, bottom = Fraction(self.exponent).as_integer_ratio()
            near = Fraction((-(Decimal(top) / Decimal(bottom)) * Decimal(2).ln()).exp())
        off = Fraction(1, 10**digits)
        return max(near - off, Fraction(0)), near + off


def weighted(weight: int, factor: Fraction | Exponential, rest: Fraction) -> int:
    """Return the whole part of weight x factor + rest, exactly: more digits are taken until no doubt is left.

    >>> weighted(1000, Exponential(Fraction(1, 2)), Fraction(1, 3))
    707
    """
    if not isinstance(factor, Exponential):
        return floor(weight * factor + rest)
    digits = 30
    while True:
        low, high = (floor(weight * end + rest) for end in factor.within(digits))
        if low == high:  # an irrational number is no whole one, so that this ends
            return low
        digits *= 2


@dataclass(frozen=True)
class PriorityWeights:
    """PriorityWeightFairshare, -QOS and -Age, and PriorityMaxAge in seconds; all weights 0: no sum is made."""

    fairshare: int = 0
    qos: int = 0
    age: int = 0
    max_age: int = 604_800

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = int(name == "max_age")
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= HIGHEST:
                raise BadInput(f"got {value!r}", place=name, remedy=f"Give a whole number from {least} to {HIGHEST}")


def order(gangs: Gangs, factor: Sequence[Fraction | Exponential], weights: PriorityWeights) -> list[int]:
    """Return the pending gangs, the one that goes first before the others; ``factor`` (n,) is by user.

    Without weights: by fair-share factor, then tier, then when they were asked for. With weights: by the whole part of
    the weighted sum of fair-share, QOS (the tier over the highest) and age, then when they were asked for. "Now" is
    when the last job was asked for.

    Source: Slurm 284c3b95, src/plugins/priority/multifactor/priority_multifactor.c, _get_priority_internal and
    set_priority_factors; src/slurmctld/job_scheduler.c, sort_job_queue2.
    """
    pending = [gang for gang, on in enumerate(gangs.on.tolist()) if on < 0]
    user, tier, since = gangs.user.tolist(), gangs.tier.tolist(), gangs.since.tolist()
    if not (weights.fairshare or weights.qos or weights.age):
        place = _places(factor)
        return sorted(pending, key=lambda gang: (place[user[gang]], -tier[gang], since[gang]))
    now = max(since, default=0)
    top = max([*tier, 1])
    priority: dict[tuple[int, int, Number], int] = {}
    for gang in pending:
        key = (user[gang], tier[gang], since[gang])
        if key not in priority:
            age = min(Fraction(now - since[gang]) / weights.max_age, Fraction(1))
            rest = weights.age * age + weights.qos * Fraction(max(tier[gang], 0), top)
            found = weighted(weights.fairshare, factor[user[gang]], rest)
            priority[key] = min(max(found, LOWEST), HIGHEST)
    return sorted(pending, key=lambda gang: (-priority[user[gang], tier[gang], since[gang]], since[gang]))


def _places(factor: Sequence[Fraction | Exponential]) -> list[int]:
    """Return each user's place (n,) by factor, the highest 0; equal ones share a place."""
    falling: list[Number] = [each.exponent if isinstance(each, Exponential) else -each for each in factor]
    places = {each: at for at, each in enumerate(sorted(set(falling)))}
    return [places[each] for each in falling]
