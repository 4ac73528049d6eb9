"""Many users alike: copies of a few sorts of users, decided in floats, are near the exact decision of the sorts.

A market of copies is decided as if each sort were one user with the weight, and the demand, of all its copies. So say
the definitions of the policies that are asked (`plainly`): their programs do not change where bundles of equal users
are added up, or are divided evenly. The judge is the exact decision of these few users, of which each copy must have
its part. Where bundles are not unique, what they come to must agree, and copies must envy nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import log
from random import Random
from typing import Any

import numpy as np
from definitions import cases
from definitions import drawn as small
from hard import CLOSE
from plain_market import Given, given, utilities
from plainly import compared_with
from trials import Ending, Fault, Kind

from fairopt import allocate
from fairopt.backends.solution import Status
from fairopt.errors import FairoptError, NotSolved
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Array

#: At most so many copies of a sort, by how long decisions take: seldom over a second, three hundredths on average.
MANY, SOME, FEW, HANDFUL = 100_000, 10_000, 300, 30


@dataclass(frozen=True, eq=False)
class Copies:
    """A market of copies: ``sorts`` is one copy of each sort, ``count`` of each how many, ``of`` (n,) a copy's sort."""

    sorts: Given
    count: list[int]
    of: Array

    def market(self) -> Market:
        """Return all copies as users."""
        speedup, weight = (np.array(each, dtype=float)[self.of] for each in (self.sorts.speedup, self.sorts.weight))
        limit = np.array([np.inf if d is None else float(d) for d in self.sorts.limit])[self.of]
        demand = limit if np.isfinite(limit).any() else None
        return Market.of_arrays(speedup, np.array(self.sorts.capacity, dtype=float), weight=weight, demand=demand)

    def together(self) -> Given:
        """Return the market in which each sort is one user."""
        limit = [None if d is None else d * n for d, n in zip(self.sorts.limit, self.count, strict=True)]
        weight = [w * n for w, n in zip(self.sorts.weight, self.count, strict=True)]
        return self.sorts._replace(weight=weight, limit=limit)

    def parts(self, amounts: list[Fraction]) -> Array:
        """Return a copy's part of what each sort has, for each sort."""
        return np.array([float(amount / n) for amount, n in zip(amounts, self.count, strict=True)])

    def __str__(self) -> str:
        """Show the numbers, to try them again."""
        return f"{self.count} copies of {self.sorts}"


Judge = Callable[[Copies, Given, Array, Any], None]


@dataclass(frozen=True)
class Asked:
    """A policy, how many copies of a sort it is asked on at most, and the judges of a decision.

    A judge is given the copies, the sorts as users, the shares, and the exact decision of these; it raises `Fault`.
    ``objective`` is what the objective of the exact decision is for the copies; None where it is another amount.
    """

    policy: Policy
    most: int
    judges: tuple[Judge, ...]
    objective: Callable[[Copies, float], float] | None = lambda copies, exact: exact


# -- judges ------------------------------------------------------------------------------------------------------------
def same_parts(copies: Copies, together: Given, shares: Array, exact: Any) -> None:
    """Each copy has its part of what its sort has."""
    right = copies.parts(utilities(together, exact.shares.tolist()))
    off = np.abs(worths(copies, shares) - right[copies.of])
    agree(copies, "a copy's utility", off, np.maximum(right, usual(copies, together))[copies.of])


def same_total(copies: Copies, together: Given, shares: Array, exact: Any) -> None:
    """All copies together have what all sorts have."""
    right = float(sum(utilities(together, exact.shares.tolist())))
    agree(copies, "the total", np.abs(worths(copies, shares).sum() - right), right)


def no_less(copies: Copies, together: Given, shares: Array, exact: Any, normaliser: str = "own-partition") -> None:
    """Each copy has at least the least ratio of what is compared with."""
    least = Fraction(exact.objective)
    right = copies.parts([least * compared_with(together, i, normaliser) for i in together.users])
    agree(copies, "a copy's lack", (right[copies.of] - worths(copies, shares)), right[copies.of])


def no_envy(copies: Copies, together: Given, shares: Array, exact: Any) -> None:
    """No copy would exchange with another, by weight: the worst off of each sort with all of each sort."""
    rows, weight = (np.array(each, dtype=float) for each in (copies.sorts.speedup, copies.sorts.weight))
    size = usual(copies, together)
    by_weight = shares / weight[copies.of][:, None]
    for i, row in enumerate(rows):
        value = by_weight @ row
        own = value[copies.of == i].min()
        agree(copies, "envy", (value - own) * weight[i], max(size[i], own * weight[i]))


def worths(copies: Copies, shares: Array) -> Array:
    """Return the utility of each copy (n,)."""
    return np.asarray((np.array(copies.sorts.speedup, dtype=float)[copies.of] * shares).sum(axis=1))


def usual(copies: Copies, together: Given) -> Array:
    """Return what a copy of each sort would use of an equal part: what is compared is compared beside that."""
    return copies.parts([compared_with(together, i) for i in together.users])


def feasible(copies: Copies, shares: Array) -> None:
    """Shares keep within what there is, and within demands."""
    capacity = np.array(copies.sorts.capacity, dtype=float)
    agree(copies, "more of a type than there is", shares.sum(axis=0) - capacity, capacity)
    agree(copies, "a share below nothing", -shares, 0.0)
    limit = np.array([capacity.sum() if d is None else float(d) for d in copies.sorts.limit])[copies.of]
    agree(copies, "more than a demand", shares.sum(axis=1) - limit, limit)


def agree(copies: Copies, what: str, off: Any, size: Any) -> None:
    """Raise `Fault` where something is off by more than rounding beside ``size``, or is no number."""
    if not np.all(off <= CLOSE * size):
        raise Fault(Ending.WRONG, f"{what}: off by {np.max(off):.3g}: {copies}")


# -- policies ----------------------------------------------------------------------------------------------------------
def by_logarithms(copies: Copies, exact: float) -> float:
    """Return the sum of weights times logarithms where each sort's utility is divided by its copies."""
    return exact - sum(float(w) * n * log(n) for w, n in zip(copies.sorts.weight, copies.count, strict=True))


@cache
def asked() -> Mapping[str, Asked]:
    """Return the policies for which copies count as weight.

    Not those of which another number of users is another question: trading (each has one weight's GPUs to sell), parts
    that are kept (each without itself), and efficient envy-freeness (of users, not of weight).
    """
    found = {name: Asked(cases()[name].policy, MANY, (same_parts,), None) for name in RULES}
    found |= {name: Asked(cases()[name].policy, most, judges) for name, (most, judges) in TOTALS.items()}
    for normaliser in Normaliser:
        name = f"max-min, {normaliser.value}"
        found[name] = Asked(cases()[name].policy, MANY, (partial(no_less, normaliser=normaliser.value),))
        name = f"water-filling, {normaliser.value}"
        found[name] = Asked(cases()[name].policy, MANY, (same_parts,))
    found["max-min-robust"] = Asked(cases()["max-min-robust"].policy, FEW, (no_less,))
    found["nash-welfare"] = Asked(cases()["nash-welfare"].policy, SOME, (same_parts,), by_logarithms)
    # its ratios are of an equal part for each user, whatever the weight: another amount for sorts
    rounds = cases()["hierarchical-water-filling"].policy
    found["hierarchical-water-filling"] = Asked(rounds, HANDFUL, (same_parts,), None)
    return found


RULES = ("equal-split", "gavel-isolated", "gavel-proportional")
TOTALS: Mapping[str, tuple[int, tuple[Judge, ...]]] = {
    "max-efficiency": (SOME // 10, (same_total,)),
    "oef-noncooperative": (MANY, (same_parts,)),
    "oef-cooperative": (MANY, (same_total, no_envy)),
    "oef-cooperative-robust": (HANDFUL, (same_total, no_envy)),
}


# -- trials ------------------------------------------------------------------------------------------------------------
def drawn(draw: Random, most: int) -> Copies:
    """Return copies of the users of a small market, who share out what one would have and demand, or have more GPUs."""
    sorts = small(draw, demands=True)
    count = [round(most ** draw.random()) for _ in sorts.users]
    more = draw.choice([1, 1, sum(count)])
    capacity = [float(m * more) for m in sorts.capacity]
    limit = [None if d is None else float(d * more / n) for d, n in zip(sorts.limit, count, strict=True)]
    of = np.repeat(np.arange(len(count)), count)
    if draw.random() < 0.5:
        of = np.random.default_rng(draw.randrange(2**32)).permutation(of)
    speedup = [[float(v) for v in row] for row in sorts.speedup]
    return Copies(given(speedup, capacity, sorts.weight, limit), count, of)


def attempt(draw: Random) -> Ending:
    """Decide copies in floats, and hold that against the sorts; or find that it is refused with a reason."""
    name = draw.choice(sorted(asked()))
    case = asked()[name]
    copies = drawn(draw, case.most)
    try:
        found = allocate(case.policy, copies.market())
    except FairoptError as error:
        if isinstance(error, NotSolved) and error.solution is not None and error.solution.status is Status.INFEASIBLE:
            raise Fault(Ending.WRONG, f"{name}: {error}, but nobody need have anything: {copies}") from error
        return Ending.REFUSED
    try:
        judge(case, copies, found)
    except Fault as fault:
        raise Fault(fault.ending, f"{name}: {fault.says}") from fault
    return Ending.RIGHT


def judge(case: Asked, copies: Copies, found: Any) -> None:
    """Compare with the exact decision of the sorts, and raise `Fault`."""
    together, shares = copies.together(), np.array(found.shares, dtype=float)
    feasible(copies, shares)
    demand = None if not any(together.limit) else together.limit
    sorts = Market.of(together.speedup, together.capacity, weight=together.weight, demand=demand)
    exact = allocate(case.policy, sorts, exact=True)
    for each in case.judges:
        each(copies, together, shares, exact)
    if case.objective is not None:
        right = case.objective(copies, float(exact.objective))
        least = float(sum(together.weight)) if case.objective is by_logarithms else 0.0
        agree(copies, f"the objective {right}", abs(float(found.objective) - right), max(abs(right), least))


KINDS = [Kind("d", "many users alike", attempt, 40, 50, cases, most=3_000)]
