"""Cooperative OEF: the largest total throughput among allocations that nobody envies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fairopt.certificates import Certificate
from fairopt.errors import NotCapable
from fairopt.methods.eisenberg_gale.solve import maximal_nash_welfare
from fairopt.methods.envy_free.problem import Answer, envy_free_shares
from fairopt.methods.envy_free.warm_start import Ended
from fairopt.models.common.shares import shares_of
from fairopt.models.oef.envy_bound import EnvyFreeProven, exact_bound
from fairopt.policy import Claim, Decision, Example, Formulated, Seconds, Trait
from fairopt.problem import Market
from fairopt.program import Affine, Array, Formulation, Program

#: To which residual the equilibrium is computed whose prices the algorithm begins with.
BEGIN = 1e-7
#: What a float total is lowered by before it becomes a constraint, so that rounding cannot make it infeasible.
FLOAT_SLACK = 1e-9

#: The optimum is unique; a trade that gains without hurting anybody is left out because somebody would envy it.
NOT_PARETO_EFFICIENT = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
#: At the optimum user 1 holds all of the first type and half of the third, and nothing of the second.
NOT_ADJACENT = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class CooperativeOEF(Formulated):
    """Maximise total throughput subject to envy-freeness, by weight, between all pairs of users.

    As printed, Eq. (10c) compares a user with itself; it is read as in the proof of Theorem 5.1, with the other user's
    shares on the right. Throughputs of different users are added up: give speedups in common units
    (`Market.normalised`). With demands, (10c) counts all GPUs of the other, also those that the user cannot use: that
    is stricter than envy-freeness, and GPUs may stay idle.

    The program has n^2 rows. Its own algorithm (`envy_free_shares`) needs few of them, and proves its answer between
    two numbers; the shares that it returns are envy-free but for rounding.

    Source: OEF Eq. (10); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.
    """

    name = "oef-cooperative"
    source = "OEF, Middleware 2024, Eq. (10)"
    rebuilt = True
    specialised = True
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
        Example(
            "OEF Fig. 2",
            Market.of([[1, 2], [1, 4]], capacity=[1, 1]),
            shares=[[1, "1/4"], [0, "3/4"]],
        ),
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
        self._envy_free(p, problem, share)
        return p.program()

    @staticmethod
    def _envy_free(p: Formulation, problem: Market, share: Affine) -> None:
        own = (problem.speedup * share).sum(axis=1)
        of_others = problem.speedup @ share.T  # entry (l, i): what l would get out of i's shares
        p.constrain(
            "envy_free",
            (own[:, None] >= of_others * by_weight(problem)).where(~np.eye(len(problem.users), dtype=bool)),
            equation="sum_j w_lj x_lj >= pi_l/pi_i sum_j w_lj x_ij",
            source="OEF Eq. (10c), Sec. 4.2.3",
            labels=(problem.users, problem.users),
        )

    def specialise(self, problem: Market, state: Any) -> Decision:
        """Return the answer of `envy_free_shares`; the evidence is `EnvyFreeProven`.

        Errors: `NotSolved`; `NotCapable` where numbers are too far apart for floats.
        """
        return self._decision(problem, _answer(problem, None))

    def follow(self) -> Callable[[Market], Decision]:
        """Return a function that decides market after market, each from the rows and the basis of the last."""
        ended: Ended | None = None

        def decide(problem: Market) -> Decision:
            nonlocal ended
            answer = _answer(problem, ended)
            ended = answer.ended
            return self._decision(problem, answer)

        return decide

    def _decision(self, problem: Market, answer: Answer) -> Decision:
        market, seconds = problem.as_(float), answer.seconds
        return Decision(
            policy=self.name,
            market=problem,
            shares=answer.shares,
            objective=float((market.speedup * answer.shares).sum()),
            backend="auto",
            evidence=EnvyFreeProven(
                answer.lower, answer.upper, _Duals(market.weight, answer), answer.effort, bundle=answer.bundles()
            ),
            seconds=Seconds(build=seconds["begin"], solve=seconds["solve"], certify=seconds["prove"]),
        )

    def optimal_face(self, decision: Decision) -> Program | None:
        """Return the program cut down to its optimal solutions, or the envy-free allocations with the same total."""
        if decision.program is not None:
            return super().optimal_face(decision)
        market = decision.market.as_(float)
        p = Formulation(f"optima of {self.name}")
        share = shares_of(p, market)
        self._envy_free(p, market, share)
        total = (market.speedup * share).sum()
        p.constrain("total", total >= float(decision.objective) * (1 - FLOAT_SLACK))
        return p.program()

    def certify(self, decision: Decision) -> Certificate:
        """Return the proof that the decision is optimal; of one by the algorithm, an exact allocation and its gap."""
        if decision.program is not None:
            return super().certify(decision)
        return exact_bound(decision)


def by_weight(problem: Market) -> Any:
    """Return (n, n): how large user l's claim is against user i's, pi_l / pi_i."""
    return problem.weight[:, None] / problem.weight[None, :]


def _answer(problem: Market, ended: Ended | None) -> Answer:
    market = problem.as_(float)
    speedup, capacity, weight, demand = market.speedup, market.capacity, market.weight, market.demand
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            return envy_free_shares(market.users, speedup, capacity, weight, demand, _equilibrium_prices, ended)
    except ArithmeticError as error:
        raise NotCapable(
            f"numbers of this market are too far apart for floats ({error}); decide with the exact back end"
        ) from error


def _equilibrium_prices(speedup: Array, capacity: Array, weight: Array) -> Array:
    """Return the prices (k,) of a competitive equilibrium whose incomes are the weights."""
    market = Market.of_arrays(speedup, capacity, weight=weight)
    *_, equilibrium = maximal_nash_welfare(market, (BEGIN,))
    utility = (speedup * equilibrium.shares).sum(axis=1)
    return np.asarray((speedup * (weight / utility)[:, None]).max(axis=0))


class _Duals(Mapping[str, Array | tuple[Array, Array]]):
    """The duals by the names of the program's rows; those against envy are shared out over users when asked for."""

    def __init__(self, weight: Array, answer: Answer) -> None:
        self._weight, self._answer = weight, answer

    def __iter__(self) -> Iterator[str]:
        return iter(("capacity", "demand", "envy_free"))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, name: str) -> Array | tuple[Array, Array]:
        of: dict[str, Callable[[], Array | tuple[Array, Array]]] = {
            "capacity": lambda: self._answer.prices,
            "demand": lambda: self._answer.rents,
            "envy_free": self._envy,
        }
        return of[name]()

    def _envy(self) -> tuple[Array, Array]:
        envious, envied, multiplier = self._answer.multipliers()
        # the program's row is weight times that in bundles per weight
        return np.stack([envious, envied]), multiplier / self._weight[envious]
