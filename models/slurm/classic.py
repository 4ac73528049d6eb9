"""The classic fair-share factor: effective usage over normalized shares, as a power of two."""

from __future__ import annotations

from fractions import Fraction

from fairopt.models.slurm.priority import Exponential
from fairopt.models.slurm.tree import ROOT, AssociationTree
from fairopt.program import INFINITY


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
