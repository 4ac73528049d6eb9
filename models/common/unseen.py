"""Rules that do not look at the reports of speedups."""

from __future__ import annotations

from fairopt.policy import Computed
from fairopt.problem import Market
from fairopt.program import Array, Number


class ReportsUnseen(Computed):
    """A rule whose shares are the same whatever users report."""

    def least_in_range(self, problem: Market, user: int, truth: Array) -> Number:
        """Return what the user has, which is the same for all reports."""
        shares, _ = self.compute(problem, None)
        worth: Number = (truth * shares[user]).sum()
        return worth
