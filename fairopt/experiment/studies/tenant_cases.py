"""How often tenants are served unfairly: the part of cases, a tenant in an interval, in which rho is below 1.

ASTRAEA calculates rho of tenants "at multiple fixed intervals" and tells "the ratio of cases whose metric value is
smaller than 1" (Sec. 6.1.4, 6.3). Which intervals these are it does not say: each reading is a measure. All end at full
hours, from the first arrival to the last.

Source: ASTRAEA, TPDS 2022, Eq. (8), (12), (16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.program import Array

HOUR = 3600.0
#: What rho may miss by, in floats, and still be 1.
NOISE = 1e-6


@dataclass(frozen=True)
class UnfairCases:
    """A reading: the interval is the last ``hours`` (None: all since the first arrival).

    ``capped``: Eq. (8), and intervals in which nothing is due are no cases; else Eq. (16).
    """

    hours: int | None
    capped: bool = True


#: By the name of the measure. The published simulator has the last 24 hours, and Eq. (8).
CASES = {
    "tenant_loss_hour": UnfairCases(1),
    "tenant_loss_day": UnfairCases(24),
    "tenant_loss_begun": UnfairCases(None),
    "tenant_loss_quota": UnfairCases(24, capped=False),
}


def tenant_loss(cases: UnfairCases, edges: Array, held: Sequence[Array], due: Sequence[Array]) -> float | None:
    """Return the part of the cases in which less was held than was due; None without cases.

    ``edges`` (m,) are hours; ``held`` and ``due`` are GPU-time up to each (m,), for each tenant.

    >>> hours = 3600.0 * np.arange(4)
    >>> tenant_loss(UnfairCases(1), hours, [np.array([0, 1, 2, 2])], [np.array([0, 1, 3, 3])])
    0.5
    """
    below = count = 0
    for got, owed in zip(held, due, strict=True):
        back = len(edges) if cases.hours is None else cases.hours
        since = np.maximum(np.arange(1, len(edges)) - back, 0)
        had, wanted = got[1:] - got[since], owed[1:] - owed[since]
        some = wanted > NOISE
        below += int((had[some] < wanted[some] * (1 - NOISE)).sum())
        count += int(some.sum())
    return below / count if count else None
