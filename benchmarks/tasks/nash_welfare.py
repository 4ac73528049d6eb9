"""The task of Nash welfare: the largest sum of w_l log u_l."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.benchmarks.tasks.shares import ROUNDED, Duals, Floats, ShareTask, cheapest, limits, spent, told_duals
from fairopt.errors import NotCapable
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import Program


class NashWelfare(ShareTask):
    """The Eisenberg-Gale program: the largest product of throughputs, each to the power of its user's weight.

    For any prices p and demand duals q a unit of throughput costs user l at least c_l = min_j (p_j + q_l) / s_lj, and
    w_l log u_l - c_l u_l is largest at u_l = w_l / c_l; so the optimum is at most
    p . m + q . d + sum_l w_l (log(w_l / c_l) - 1).

    The gap is the difference over the sum of weights: how far the weighted geometric mean of utilities is below the
    best, as a part of it. Units of utilities do not matter to it.

    Source: Eisenberg and Gale 1959.
    """

    name = "nash-welfare"

    def objective(self, market: Market, shares: Floats) -> float:
        """Return sum_l w_l log u_l; minus infinity where somebody gets nothing."""
        with np.errstate(divide="ignore"):
            return float(market.weight @ np.log(np.maximum((market.speedup * shares).sum(axis=1), 0.0)))

    def upper(self, market: Market, duals: Duals) -> float:
        """Return the bound of prices and demand duals, at the best common factor on both."""
        cost, money = cheapest(market, duals), float(market.weight.sum())
        if not (cost > 0).all():
            return np.inf
        # with both multiplied by f the bound is f (p . m + q . d) - W log f + ...: least where f (p . m + q . d) = W
        factor = money / spent(market, duals)
        terms = market.weight * np.log(market.weight / (cost * factor))
        return float(terms.sum()) + ROUNDED * float(np.abs(terms).sum() + money)

    def distance(self, market: Market, upper: float, objective: float) -> float:
        """Return the difference over the sum of weights."""
        return (upper - objective) / float(market.weight.sum())

    def exact_up_to(self) -> int:
        """Return 0: the program is not linear."""
        return 0

    def rows(self, market: Market) -> int:
        """Return a number that keeps HiGHS out, which takes no logarithms."""
        return 10**12

    def program(self, problem: Market) -> Program:
        """Refuse: the program is not linear."""
        raise NotCapable("the objective of nash-welfare has logarithms, which no MPS file holds; choose another task")

    def duals(self, market: Market, decision: Allocation) -> Duals | None:
        """Return the prices and demand duals of the equilibrium that the policy found."""
        evidence: Any = decision.evidence
        told = (decision.solution.duals if decision.solution else None) or {"capacity": evidence.prices}
        found = told_duals(market, told)
        if found is not None and "demand" not in told and getattr(evidence, "demand_duals", None) is not None:
            demand_duals = np.where(
                np.isfinite(limits(market)), np.maximum(np.asarray(evidence.demand_duals, dtype=float), 0.0), 0.0
            )
            return Duals(found.capacity, demand_duals, found.envy)
        return found
