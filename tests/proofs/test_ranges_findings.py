"""The branch and bound over reports holds the closed form between its bounds."""

from __future__ import annotations

from fractions import Fraction

from fairopt.problem import Market
from fairopt.proofs.findings.ranges.bilevel import worst


def test_the_worst_report_is_between_the_bounds() -> None:
    error, market = Fraction(1, 20), Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    found = worst(market, 0, error, gap=Fraction(1, 20))
    assert found.least <= (4 - 1 / (1 - error)) / 3 <= found.most <= found.least + Fraction(1, 20)
    assert found.cells > 2
