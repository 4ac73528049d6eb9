"""Equal split: every user gets its part of every type."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.certificates import TRADES, Certificate
from fairopt.policy import Allocation, Claim, Computed, Example, Trait
from fairopt.problem import Market
from fairopt.program import Array, Number


class EqualSplit(Computed):
    """Each user gets the same part, by weight, of every type; GPUs beyond a demand are split among the others.

    Without demands this is each user's equal share of the cluster. With demands the numbers of GPUs are max-min fair by
    weight, and every user has the types in the same proportions.

    Source: Gandiva_fair Sec. 2.1 (inter-user fairness); OEF Sec. 2.3.1 (3).

    >>> from fairopt import allocate
    >>> print(*allocate(EqualSplit(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    3/2 3
    """

    name = "equal-split"
    source = "Gandiva_fair, EuroSys 2020, Sec. 2.1"
    looks_at_reports = False
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("sharing_incentive", "OEF Sec. 2.3.1 (3), by definition", assumes="no demands"),
        Claim("envy_freeness", "every bundle is the same by weight", assumes="no demands"),
        Claim("strategy_proofness", "the reports are not looked at"),
    )
    examples = (
        Example(
            "Gandiva_fair Fig. 1: two 4-GPU servers; A and B could use 4 GPUs each, C has one 2-GPU job",
            Market.of([[1], [1], [1]], capacity=[8], demand=[4, 4, 2], users=["A", "B", "C"]),
            shares=[[3], [3], [2]],
        ),
        Example(
            "Gandiva_fair Table 3, upper half",
            Market.of([[1, "1.25"], [1, 5], [1, "6.25"]], capacity=[60, 12], types=["K80", "V100"]),
            shares=[[20, 4], [20, 4], [20, 4]],
            utilities=[25, 40, 45],
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        """Return the shares (n, k)."""
        total = problem.capacity.sum()
        held = fill(problem.weight, problem.limit, total)
        return np.multiply.outer(held, problem.capacity / total), None

    def weight_ratio(self, part: Number, times: Number) -> Number:
        """Return the part that is claimed over the part that is the user's own."""
        return times / (1 + (times - 1) * part)

    def certify(self, decision: Allocation) -> Certificate:
        """Return the certificate of the shares, which needs no further evidence."""
        self._require_exact(decision)
        return Certificate(TRADES, decision.market, decision.shares)


def fill(weight: Array, limit: Array, total: Any) -> Array:
    """Split ``total`` in proportion to ``weight``, at most ``limit`` each; amounts above a limit are split again.

    Source: Gandiva_fair Sec. 2.1; progressive filling, Bertsekas and Gallager, Data Networks, Sec. 6.5.2.
    """
    held = weight * 0
    open_ = np.ones(len(weight), dtype=bool)
    left = total
    while open_.any():
        part = np.where(open_, weight, 0) * (left / weight[open_].sum())
        full = open_ & (limit <= part)
        if not full.any():
            return np.asarray(np.where(open_, part, held))
        held = np.where(full, limit, held)
        left = total - held.sum()
        open_ &= ~full
    return np.asarray(held)
