"""The classic fair-share factor: its worked example, what a factor of 0.5 means, and the half-life."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from fairopt.models.slurm.tree import ROOT, AssociationTree, classic_factors
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

#: PriorityDecayHalfLife, by default 7 days, and shorter ones, in seconds.
HALF_LIVES = (7 * 86400, 86400, 3600, 60, 10, 1)


def example() -> Finding:
    """The page's example: accounts A to F, users 1 to 5; shares 40 and 60, 30 and 10, 25 and 35."""
    # users 1 to 5 in B, C, C, E, F (7, 8, 8, 9, 10); A 5, D 6; usage in hundredths of the machine
    tree = AssociationTree.of(
        (7, 8, 8, 9, 10, ROOT, ROOT, 5, 5, 6, 6),
        (1, 1, 1, 1, 1, 40, 60, 30, 10, 25, 35),
        (20, 25, 0, 25, 0, 45, 25, 20, 25, 25, 0),
        users=5,
        total=Fraction(100),
    )
    used, factors = tree.effective, classic_factors(tree)
    shares = [str(each) for each in tree.machine_part[:5]]
    usage = [f"{float(each):.4f}" for each in used[:5]]
    printed = [f"{float(each):.6f}" for each in factors[:5]]
    require(usage == ["0.3875", "0.2750", "0.1500", "0.2500", "0.1458"], "effective usage as printed")
    require(printed == ["0.408479", "0.022097", "0.125000", "0.500000", "0.749154"], "factors as printed")
    return Finding(
        Ruling.REPRODUCED,
        f"Normalized shares {', '.join(shares)}; effective usage {', '.join(usage)}; factors {', '.join(printed)} of "
        "users 1 to 5: all 15 numbers as printed, and the effective usage of the six accounts. "
        "testsuite/expect/test24.1 of Slurm expects the same.",
    )


def one_half() -> Finding:
    """'A fair-share factor of 0.5 indicates that the user's jobs have used exactly the portion of the machine'."""
    # two accounts of equal shares; u has half of the first one's shares, and a tenth of the machine was its
    tree = AssociationTree.of((2, 2, ROOT, ROOT), (1, 1, 1, 1), (10, 30, 40, 60), users=2, total=Fraction(100))
    share, used, factor = tree.machine_part[0], tree.usage[0] / tree.total, classic_factors(tree)[0]
    require(factor.exponent == 1 and used < share, "a factor of one half with less than its share used")
    flat = AssociationTree.of((ROOT, ROOT), (1, 1), (1, 1), users=2)
    damped = classic_factors(flat, 2)[0]
    require(damped.exponent == Fraction(1, 2), "with a damping of 2 the exact share gives another factor")
    return Finding(
        Ruling.QUALIFIED,
        "By the simplified formula with d = 1 it is so: U = S gives 1/2, and nothing else does. By the formula that is "
        "'actually used' it says so of effective usage, which counts what others in the account used: a user with half "
        f"of the shares of an account, one of two with equal shares, is entitled to {share} of the machine, has used "
        f"{used}, and has the factor 1/2, since its neighbour has used 3/10. And with FairShareDampeningFactor=2 a "
        f"user that used exactly its share has 2 ** -1/2 = {float(damped):.6f}.",
    )


def half_life() -> Finding:
    """'Without accruing additional usage, a user's U_H usage will decay to half its original value'."""
    told = []
    with localcontext() as context:
        context.prec = 40
        for seconds in HALF_LIVES:
            left = (1 - Decimal("0.693") / seconds) ** seconds
            told.append((seconds, left))
    require(all(abs(left - Decimal("0.5")) > Decimal("0.00001") for _, left in told), "never quite a half")
    words = ", ".join(f"{seconds} s {left:.6f}" for seconds, left in told)
    return Finding(
        Ruling.REFUTED,
        "The code's factor for a second is 1 - 0.693 / half-life, the first two terms of the power series, with ln 2 "
        f"cut to three places (priority_multifactor.c, _init_decay_vars). What is left after one half-life: {words}. "
        "With the default of 7 days the error is 0.015% of the usage, which changes no order, since all usage decays "
        "alike; with 'a matter of seconds', which the page allows, it is large. Computed to 40 digits; usage that "
        "comes in between is not looked at. Read at 284c3b95.",
    )
