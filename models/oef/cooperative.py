"""Cooperative OEF: the largest total throughput among envy-free allocations."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.backends import ProgramMethod
from fairopt.backends.solution import OnDemand, Solution, Status
from fairopt.certificates import MarketBound
from fairopt.errors import NotCapable
from fairopt.methods.eisenberg_gale.solve import maximal_nash_welfare
from fairopt.methods.envy_free import EnvyFreeResult, envy_free_shares
from fairopt.models.oef.envy_bound import exact_bound
from fairopt.policy import Allocation, Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Program

#: The residual of the equilibrium from whose prices the method starts.
BEGIN = 1e-7

#: The optimum is unique. A trade that hurts nobody is still possible, but its result would be envied.
NOT_PARETO_EFFICIENT = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
#: At the optimum user 1 holds all of the first type and half of the third, and nothing of the second.
NOT_ADJACENT = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class EnvyFreeMethod(ProgramMethod):
    """Envy-free shares with few of the n^2 rows (`fairopt.methods.envy_free`), and bounds on the optimum.

    Its values include "bundle" (n, k), each user's shares per weight. Bundles that should be equal are equal to the
    last bit.
    """

    name = "envy-free"
    number = float

    def solve(self, policy: Formulated, problem: Market, start: Any = None) -> Solution:
        """Return the solution in floats, from the rows and basis of ``start``; duals are computed on demand.

        Errors: `NotSolved`; `NotCapable` where numbers are too far apart for floats.
        """
        market = problem.as_(float)
        speedup, capacity, weight, demand = market.speedup, market.capacity, market.weight, market.demand
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                answer = envy_free_shares(market.users, speedup, capacity, weight, demand, _equilibrium_prices, start)
        except ArithmeticError as error:
            raise NotCapable(
                f"numbers of this market are too far apart for floats ({error}); decide with the exact back end"
            ) from error
        seconds = answer.seconds
        return Solution(
            status=Status.OPTIMAL,
            raw_status="proved by multipliers",
            backend="auto",
            objective=float((speedup * answer.shares).sum()),
            bound=answer.upper,
            lower=answer.lower,
            upper=answer.upper,
            values=OnDemand({"share": lambda: answer.shares, "bundle": lambda: answer.bundle}),
            duals=OnDemand(
                {
                    "capacity": lambda: answer.prices,
                    "demand": lambda: answer.demand_duals,
                    "envy_free": lambda: _against_envy(answer, weight),
                }
            ),
            effort={**answer.effort, "prepare": seconds["build"], "certify": seconds["certify"]},
            seconds=seconds["solve"],
            warm_start=answer.warm_start,
        )

    def certify(self, policy: Formulated, decision: Allocation) -> MarketBound:
        """Return an exactly envy-free allocation near the decision's, a bound, and the gap."""
        return exact_bound(decision)


class CooperativeOEF(Formulated):
    """Maximise total throughput subject to envy-freeness, by weight, between all pairs of users.

    As printed, Eq. (10c) compares a user with itself. It is read as in the proof of Theorem 5.1, with the other user's
    shares on the right. Throughputs of different users are added up: give speedups in common units
    (`Market.normalised`). With demands, (10c) counts all GPUs of the other user, also those beyond the user's demand.
    That is stricter than envy-freeness, and GPUs may stay idle.

    The program has n^2 rows. Its own method (`EnvyFreeMethod`) needs few of them, and proves bounds on the optimum. Its
    shares are envy-free up to rounding.

    Source: OEF Eq. (10); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.
    """

    name = "oef-cooperative"
    source = "OEF, Middleware 2024, Eq. (10)"
    verifier_knows_program = True
    methods = (EnvyFreeMethod(),)
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (
        Claim("envy_freeness", "OEF Theorem 5.1"),
        Claim("sharing_incentive", "OEF Theorem 5.1", assumes="no demands"),
        Claim("pareto_efficiency", "OEF Theorem 5.3", refuted_by=NOT_PARETO_EFFICIENT),
        Claim("adjacent_types", "OEF Theorem 5.2", refuted_by=NOT_ADJACENT),
    )
    examples = (
        Example(
            "OEF Eq. (2)",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, 0], [0, "1/2"], [0, "1/2"]],
            utilities=[1, "3/2", 2],
        ),
        Example(
            "OEF Eq. (6), total 5.25",
            Market.of([[1, 2], [1, 5]], capacity=[1, 1]),
            shares=[[1, "1/4"], [0, "3/4"]],
            utilities=["3/2", "15/4"],
        ),
        Example(
            "OEF Sec. 3.1, user 1 reports 4",
            Market.of([[1, 4], [1, 5]], capacity=[1, 1]),
            shares=[[1, "3/8"], [0, "5/8"]],
        ),
        Example("OEF Fig. 2", Market.of([[1, 2], [1, 4]], capacity=[1, 1]), shares=[[1, "1/4"], [0, "3/4"]]),
        Example(
            "OEF Fig. 2, user 1 reports 3",
            Market.of([[1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, "1/3"], [0, "2/3"]],
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (10)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        own = (problem.speedup * share).sum(axis=1)
        p.maximize(own.sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (10a)")
        of_others = problem.speedup @ share.T  # entry (l, i): user l's throughput from i's shares
        p.constrain(
            "envy_free",
            (own[:, None] >= of_others * by_weight(problem)).where(~np.eye(len(problem.users), dtype=bool)),
            equation="sum_j w_lj x_lj >= pi_l/pi_i sum_j w_lj x_ij",
            source="OEF Eq. (10c), Sec. 4.2.3",
            labels=(problem.users, problem.users),
        )
        return p.program()


def by_weight(problem: Market) -> Any:
    """Return (n, n): the weight of user l over that of user i, pi_l / pi_i."""
    return problem.weight[:, None] / problem.weight[None, :]


def _against_envy(answer: EnvyFreeResult, weight: Array) -> tuple[Array, Array]:
    """Return the pairs (2, m) of envious and envied users, and the duals (m,) of their rows."""
    envious, envied, multiplier = answer.multipliers()
    # the program's row is the weight times the row for bundles per weight
    return np.stack([envious, envied]), multiplier / weight[envious]


def _equilibrium_prices(speedup: Array, capacity: Array, weight: Array) -> Array:
    """Return the prices (k,) of a competitive equilibrium whose incomes are the weights."""
    market = Market.of_arrays(speedup, capacity, weight=weight)
    *_, equilibrium = maximal_nash_welfare(market, (BEGIN,))
    utility = (speedup * equilibrium.shares).sum(axis=1)
    return np.asarray((speedup * (weight / utility)[:, None]).max(axis=0))
