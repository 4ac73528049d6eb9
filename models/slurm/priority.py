"""Multifactor priority: the classic fair-share factor, a power of two, exactly; and the weighted sum of factors."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor

from fairopt.models.slurm.tree import ROOT, AssociationTree
from fairopt.program import INFINITY, Number


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


def effective_usage(tree: AssociationTree) -> list[Fraction]:
    """Return effective usage (N,): usage of the machine, corrected by what the account's other members used.

    Source: Slurm, doc/html/classic_fair_share.shtml, "The Slurm Fair-Share Formula": U_E = U_A + (U_E of the parent -
    U_A) x S / S of all siblings; priority_multifactor.c, _set_assoc_usage_efctv and _set_usage_efctv.
    """
    found: list[Fraction | None] = [None] * len(tree.above)
    usage = tree.machine_usage()

    def effective(node: int) -> Fraction:
        own = found[node]
        if own is None:
            used = usage[node]
            above, share = tree.above[node], tree.share[node]
            siblings = tree.level_shares(node)
            if above == ROOT:
                own = used
            elif share is None or not siblings:
                own = effective(above)
            else:
                own = used + (effective(above) - used) * Fraction(share) / Fraction(siblings)
            found[node] = own
        return own

    return [effective(node) for node in range(len(tree.above))]


def classic_factors(tree: AssociationTree, dampening: int = 1) -> list[Exponential]:
    """Return the fair-share factor F = 2 ** (-U_E / S / d) of every association (N,).

    Source: Slurm, doc/html/classic_fair_share.shtml; priority_multifactor.c, _set_assoc_fs_factor: with
    Fairshare=parent the account's values, 0 without shares.

    >>> two = AssociationTree.of((ROOT, ROOT), (3, 1), (30, 10), users=2)
    >>> [float(each) for each in classic_factors(two)]
    [0.5, 0.5]
    """
    used, part = effective_usage(tree), tree.machine_part()
    factors = []
    for node in range(len(tree.above)):
        over = node if tree.share[node] is not None else tree.above[node]
        usage, shares = (Fraction(1), Fraction(1)) if over == ROOT else (used[over], part[over])
        factors.append(Exponential(usage / shares / dampening if shares > 0 else INFINITY))
    return factors
