"""What reports that are too small gain under non-cooperative OEF."""

from __future__ import annotations

from fractions import Fraction

from fairopt.proofs.claims.oef.theorems import factor_of_under_reporting
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import both

#: Sizes on which the factor is computed, with a true speedup and what is reported.
SIZES, TRUE, TOLD = ((2, 2), (2, 4), (3, 2), (4, 3)), 100, Fraction(11, 10)


def under_reporting() -> Finding:
    """The gain of under-reporting, exactly, for all sizes from two on."""
    exact, unbounded = (theorem("UnderReporting", f"under_reporting_{each}") for each in ("gain", "without_bound"))
    found = {}
    for n, k in SIZES:
        wanted = (1 + TRUE * (n - 1)) / (1 + TOLD * (n - 1))
        found[n, k] = factor_of_under_reporting(n, k, TRUE, TOLD)
        require(found[n, k] == wanted, f"{n} users on {k} types: {wanted}")
    said = "; ".join(f"{n}x{k}: {both(factor)}" for (n, k), factor in found.items())
    return Finding(
        Ruling.PROVED,
        f"The factor is (1 + b (n - 1)) / (1 + r (n - 1)) for reporting r, 1 < r <= b, in every optimum before and "
        f"after ({exact}); so there is no bound for any n and k from two on ({unbounded}). For r near 1 it is near "
        f"(1 + b (n - 1)) / n, (b + 1) / 2 for two users.\nComputed by exact programs over all optima, b = {TRUE}, r = "
        f"{TOLD}: {said}.",
    )
