"""How far cooperative OEF can be above Gavel for all speedups in a range: a bound on Fig. 8, proved.

`most_above_gavel` is for any number of tenants with equal weights on three types with equally many GPUs. A tenant's
speedups are (1, a, b) with 1 <= a <= b and b between two numbers, as OEF prints for the RTX 3090; nobody is bounded.

1. Let t be Gavel's least ratio, and (lambda, price) an optimum of its dual: lambda_i s_ij <= price_j, with the largest
   lambda for these prices, scaled so that the least is 1. F is the sum of fair shares f_i. A sharing-incentive total is
   at most Gavel's + (t - 1) sum_i (lambda_i - 1) f_i (Coq: sharing_incentive_above_gavel), and Gavel's is at least t F.
   So the ratio of the totals is at most 1 + (1 - 1/t)(R - 1), where R = sum_i lambda_i f_i / F.
2. t <= sum_j max_i s_ij / (1 + a_i + b_i), by the dual point lambda_i = 1 / f_i. That is at most
   1 / (2 + low) + high / (1 + 2 high) + high / (2 + high), the largest t.
3. The user l of the least lambda has it by some type j, price_j = s_lj; so lambda_i <= s_lj / s_ij for all i. Where j
   is the first type, R <= 1, where it is the third, R <= high / low, and always R <= high.
4. So if R > cut >= high / low, j is the second type and lambda_i <= high / a_i. Then sum_i f_i / a_i > (cut / high) F,
   and the mean of 1 / a_i is above alpha = 1 - (1 - cut / high)(1 + 2 high) / (2 + low), because all 1 + a_i + b_i lie
   between 2 + low and 1 + 2 high. The dual point of prices (1, 1, q), q = (2 + low) high / (2 + high), has
   lambda_i >= min(1, q / b_i) / a_i, where (2 + b) min(1, q / b) >= 2 + low; so t <= (2 + q) / ((2 + low) alpha).
5. Hence the ratio is at most 1 + (1 - 1/t)(cut - 1) with t of step 2, or 1 + (1 - 1/t)(high - 1) with t of step 4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.models import MaxMin
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import require

#: What the paper prints of the RTX 3090 (Sec. 2.2), and where step 4 cuts: near where both cases of step 5 are alike.
PRINTED_LOW, PRINTED_HIGH, CUT = Fraction("1.39"), Fraction("2.15"), Fraction("2.05")


def most_above_gavel(low: Fraction, high: Fraction, cut: Fraction) -> Fraction:
    """Return by how much, relatively, a sharing-incentive total can be above Gavel's at most; any ``cut`` is sound.

    >>> round(float(most_above_gavel(Fraction("1.39"), Fraction("2.15"), Fraction("2.05"))), 4)
    0.1884
    """
    require(high / low <= cut <= high, "the cut is between high / low and high")
    largest = 1 / (2 + low) + high / (1 + 2 * high) + high / (2 + high)
    alpha = 1 - (1 - cut / high) * (1 + 2 * high) / (2 + low)
    require(alpha > 0, "the cut is large enough for step 4")
    q = (2 + low) * high / (2 + high)
    other = min(largest, (2 + q) / ((2 + low) * alpha))
    return max((1 - 1 / largest) * (cut - 1), (1 - 1 / other) * (high - 1))


class GavelDual(NamedTuple):
    """What steps 1 to 4 speak of, of one market: Gavel's least ``ratio`` t, the ``spread`` R, and each lambda."""

    ratio: Fraction
    spread: Fraction
    weights: list[Fraction]

    @classmethod
    def of(cls, market: Market) -> GavelDual:
        """Return it, exact; speedups are positive."""
        decision = allocate(MaxMin(), market, Exact())
        duals = MaxMin().certify(decision).to_json()["duals"]
        worth = {row: -Fraction(value) for name, row, value in duals if name == "least_ratio"}
        fair = market.fair_utility()
        raw = [worth[user] / fair[user] for user in range(len(market.users))]
        weights = [each / min(raw) for each in raw]
        spread = sum(weight * own for weight, own in zip(weights, fair, strict=True)) / sum(fair)
        return cls(Fraction(decision.objective), Fraction(spread), weights)

    @property
    def most_above(self) -> Fraction:
        """By how much, relatively, a sharing-incentive total is above Gavel's at most, by step 1."""
        return (1 - 1 / self.ratio) * (self.spread - 1)
