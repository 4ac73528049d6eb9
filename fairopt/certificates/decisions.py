"""Certificates about a market: a policy's decision, the range of its choices, an allocation, or a lie that pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeAlias

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate, OfAllocation
from fairopt.certificates.parts import (
    DemandDuals,
    Duals,
    Gap,
    KnownPolicy,
    Objective,
    Part,
    Policy,
    Prices,
    Shares,
    UpTo,
    User,
    Variables,
    other_variables,
    row_duals,
    rows_of,
)
from fairopt.problem import Market
from fairopt.program import Array, Program, Sense, on_shares

#: The properties that are decided by evaluating their definition.
PROPERTIES = [
    "feasibility",
    "sharing_incentive",
    "envy_freeness",
    "work_conservation",
    "adjacent_types",
    "pareto_efficiency",
    "guarantee_kept",
    "cap_kept",
    "guarantee_incentive",
    "nobody_starves_while_lent",
    "whole_gpu_conservation",
    "group_fairness",
    "envy_within_peers",
]
MostOfEach: TypeAlias = Annotated[
    Sequence[Certificate], Part(rows_of("extreme"), "The most that each user gets at any optimum, in order.")
]
TRADES = {"type": "array", "items": {"$ref": "#/$defs/trade"}}


@dataclass(frozen=True, eq=False)
class PropertyProof(OfAllocation):
    """``property`` (a name) holds or fails for ``allocation`` by its definition; ``answer`` is HOLDS or FAILS.

    Where speedups of the market are known only within bounds, it is so for all of them, or it DEPENDS.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> PropertyProof(market, market.equal_split(), 'envy_freeness', 'HOLDS').to_json()['answer']
    'HOLDS'
    """

    kind: ClassVar[str] = "property"
    whole: ClassVar[bool] = True
    property: Annotated[str, Part({"enum": PROPERTIES}, "The property, by name.")]
    answer: Annotated[str, Part({"enum": ["HOLDS", "FAILS", "DEPENDS"]}, "Whether it holds, for all speedups.")]
    speedups: Annotated[Array, Part("table", "Speedups at which it holds, where it depends on them.")] | None = None


@dataclass(frozen=True, eq=False)
class EnvyProof(OfAllocation):
    """``user`` would get more out of the shares of ``envied``, by weight, than out of its own.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> all_to_u1 = [[1, 1], [0, 0], [0, 0]]
    >>> EnvyProof(market, all_to_u1, 'u2', 'u1').to_json()['envied']
    'u1'
    """

    kind: ClassVar[str] = "envy"
    user: User
    envied: Annotated[str, Part("name", "Whose shares the user would rather have.")]


@dataclass(frozen=True, eq=False)
class Dominance(OfAllocation):
    """``better`` is feasible and gives nobody less and somebody more: ``allocation`` is not Pareto-efficient.

    Where speedups of the market are known only within bounds, it is so for all of them.

    With ``optima``, no optimum of a policy is Pareto-efficient. These are an `Extreme` for each user, in order: the
    most that the user gets at any optimum.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> half = market.equal_split() / 2
    >>> Dominance(market, half, better=market.equal_split()).to_json()['certificate']
    'dominance'
    """

    kind: ClassVar[str] = "dominance"
    better: Annotated[Array, Part("table", "The better allocation.")]
    optima: MostOfEach | None = None

    def tells_whole(self) -> bool:
        """Whether the market is told with its bounds: where there are any."""
        return not self.market.known.all()


@dataclass(frozen=True, eq=False)
class ParetoProof(OfAllocation):
    """``allocation`` maximises the sum of throughputs by positive ``weights`` (n,): it is Pareto-efficient.

    The proof is the dual solution: ``prices`` (k,) of GPUs, and ``demand_duals`` (n,), the duals of the users' demands.

    >>> market = Market.of([[1, 2]], [1, 1])
    >>> ParetoProof(market, [[1, 1]], weights=[1], prices=[1, 2]).to_json()['prices']
    [1, 2]
    """

    kind: ClassVar[str] = "pareto_weights"
    weights: Annotated[Array, Part("numbers", "A weight for each user.")]
    prices: Prices
    demand_duals: DemandDuals | None = None


@dataclass(frozen=True, eq=False)
class Optimality(Certificate):
    """``allocation`` (n, k) is optimal for the program that ``policy`` makes of the market; ``value`` is its objective.

    ``duals`` are entries [block, index..., value]; ``variables`` are the values of the other variables.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> from fairopt import allocate
    >>> from fairopt.models import MaxMin
    >>> decision = allocate('max-min', market, 'exact')
    >>> print(MaxMin().certify(decision).value)
    54/49
    """

    kind: ClassVar[str] = "optimality"
    decision: ClassVar[bool] = True
    market: Market
    policy: KnownPolicy
    allocation: Shares
    value: Objective
    duals: Duals
    variables: Variables | None = None

    @classmethod
    def of(cls, market: Market, policy: str, program: Program, solution: Solution) -> Optimality:
        """Return the certificate of an exact optimum of the policy's program."""
        return cls(market=market, policy=policy, **_optimum(program, solution))


@dataclass(frozen=True, eq=False)
class MarketBound(Certificate):
    """``allocation`` is feasible for the policy's program, with objective ``value``; no other exceeds ``bound``.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> equal = market.equal_split()
    >>> MarketBound(market, 'max-efficiency', equal, value=3, bound=5, gap=2, duals=[]).to_json()['gap']
    2
    """

    kind: ClassVar[str] = "bound"
    market: Market
    policy: KnownPolicy
    allocation: Shares
    value: Objective
    bound: UpTo
    gap: Gap
    duals: Duals
    variables: Variables | None = None


@dataclass(frozen=True, eq=False)
class WaterFillingProof(OfAllocation):
    """``allocation`` is lexicographically max-min; ``rounds`` of water filling are {"level", "fixed", "duals"}.

    ``normaliser``: to what ratios are; own partitions where it is absent. ``owed``, where there are entitlements:
    floors of groups (G, k), and ``lent`` (k,) GPUs. With ``rates`` (rounds, n) users rise at these, from what they had.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> from fairopt import allocate
    >>> from fairopt.models import WaterFilling
    >>> len(WaterFilling().certify(allocate('water-filling', market, exact=True)).rounds)
    1
    """

    kind: ClassVar[str] = "levels"
    decision: ClassVar[bool] = True
    rounds: Annotated[Sequence[Mapping[str, Any]], Part(rows_of("level"), "The rounds, in order.")]
    normaliser: (
        Annotated[str, Part({"enum": ["equal-time", "isolated"]}, "What throughputs are compared with.")] | None
    ) = None
    owed: Annotated[Mapping[str, Any], Part("floors", "What entitlements make of the market's groups.")] | None = None
    rates: Annotated[Array, Part("table", "How fast each user rises in each round.")] | None = None

    def tells_whole(self) -> bool:
        """Whether the market is told with its entitlements: where it has any that count."""
        return self.owed is not None


@dataclass(frozen=True, eq=False)
class NashEquilibrium(OfAllocation):
    """``allocation`` maximises Nash welfare: at ``prices`` (k,), with weights as budgets, all buy their best bundle.

    With ``demand_duals`` (n,) of the users' demands, a GPU costs a user its price and the user's demand dual.

    >>> market = Market.of([[1, 2]], [1, 1])
    >>> NashEquilibrium(market, [[1, 1]], prices=['1/3', '2/3']).to_json()['prices']
    ['1/3', '2/3']
    """

    kind: ClassVar[str] = "equilibrium"
    decision: ClassVar[bool] = True
    prices: Prices
    demand_duals: DemandDuals | None = None


@dataclass(frozen=True, eq=False)
class NashBounds(OfAllocation):
    """Where Nash welfare is largest, the utility of each user lies between ``lower`` and ``upper`` (n,).

    ``allocation`` is feasible. By ``prices`` (k,) and ``demand_duals`` (n,), the duals of the users' demands, the sum
    of weight times log utility is less than ``gap`` below the largest.

    >>> market = Market.of([[1, 2]], [1, 1], demand=[1])
    >>> NashBounds(market, [[0, 1]], ['0', '1/2'], ['1/2'], '1/50', ['9/5'], ['49/20']).kind
    'nash_bounds'
    """

    kind: ClassVar[str] = "nash_bounds"
    prices: Prices
    demand_duals: DemandDuals
    gap: Annotated[Fraction, Part("amount", "The gap between the allocation and the largest Nash welfare, at most.")]
    lower: Annotated[Array, Part("numbers", "The least that each user's utility can be.")]
    upper: Annotated[Array, Part("numbers", "The most that each user's utility can be.")]


@dataclass(frozen=True, eq=False)
class NashWithin(OfAllocation):
    """Where Nash welfare within entitlements is largest, each utility lies between ``lower`` and ``upper`` (n,).

    ``allocation`` is one of those. With ``costs`` (n,) of a unit of utility, ``duals`` of the rows prove the most that
    all utilities together cost, and that the sum of weight times log utility is at most ``gap`` below the largest.
    ``owed`` holds the floors of groups.

    >>> NashWithin.kind, NashWithin.whole
    ('nash_bounds', True)
    """

    kind: ClassVar[str] = "nash_bounds"
    whole: ClassVar[bool] = True
    owed: Annotated[Mapping[str, Any], Part("floors", "What entitlements make of the market's groups.")]
    costs: Annotated[Array, Part("numbers", "What a unit of utility costs each user.")]
    duals: Duals
    gap: Annotated[Fraction, Part("amount", "The gap between the allocation and the largest Nash welfare, at most.")]
    lower: Annotated[Array, Part("numbers", "The least that each user's utility can be.")]
    upper: Annotated[Array, Part("numbers", "The most that each user's utility can be.")]


@dataclass(frozen=True, eq=False)
class PartialAllocationProof(OfAllocation):
    """``allocation`` is that of partial allocation: each user keeps the part ``kept`` (n,) of its bundle.

    ``together`` is {"allocation", "prices"} of the equilibrium with all users, ``apart`` the same without each user in
    turn.

    >>> PartialAllocationProof.kind, PartialAllocationProof.decision
    ('partial', True)
    """

    kind: ClassVar[str] = "partial"
    decision: ClassVar[bool] = True
    kept: Annotated[Array, Part("numbers", "What part of its bundle each user keeps.")]
    together: Annotated[Mapping[str, Array], Part("shared", "The bundles of all users.")]
    apart: Annotated[
        Sequence[Mapping[str, Array]], Part(rows_of("shared_or_none"), "The bundles without each user in turn.")
    ]


@dataclass(frozen=True, eq=False)
class ComputedAllocation(OfAllocation):
    """``allocation`` is the result of ``trades`` from the equal split; without trades (None) it is the equal split.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> ComputedAllocation(market, market.equal_split()).to_json()['certificate']
    'trace'
    """

    kind: ClassVar[str] = "trace"
    decision: ClassVar[bool] = True
    trades: Annotated[Sequence[Mapping[str, Any]], Part(TRADES, "The trades, in order.")] | None = None


@dataclass(frozen=True, eq=False)
class EfficientProof(OfAllocation):
    """``allocation`` is envy-free, sharing-incentive and Pareto-efficient; no such one has a total beyond ``bound``.

    ``value`` is its total, and ``weights`` (n,) are those of a sum of throughputs that it maximises. ``nodes`` are a
    tree of programs, each "without" some pairs of a user and a type. A "circle" of pairs would improve whoever holds
    them all, so that the programs without one of them more take its place; "duals" prove the bound at each end.

    >>> EfficientProof.kind, EfficientProof.decision
    ('efficient', True)
    """

    kind: ClassVar[str] = "efficient"
    decision: ClassVar[bool] = True
    weights: Annotated[Array, Part("numbers", "A positive weight for each user.")]
    value: Objective
    bound: UpTo
    gap: Gap
    nodes: Annotated[Sequence[Mapping[str, Any]], Part(rows_of("node"), "The tree, in any order.")]


@dataclass(frozen=True, eq=False)
class Extreme(Certificate):
    """Over all allocations that a policy may choose, the sum of ``weights`` (n, k) times shares is at most ``value``.

    With ``sense`` "minimize", instead of "maximize", it is at least ``value``. ``of`` certifies the decision;
    ``allocation`` attains the value.

    >>> Extreme.kind, Extreme.decision
    ('extreme', True)
    """

    kind: ClassVar[str] = "extreme"
    decision: ClassVar[bool] = True
    of: Annotated[Certificate, Part("decided", "The decision.")]
    sense: Annotated[str, Part("sense", "Which way the sum goes.")]
    weights: Annotated[Array, Part("table", "A weight for each share.")]
    allocation: Shares
    value: Objective
    duals: Duals
    variables: Variables | None = None

    @classmethod
    def over(cls, choices: Program, weights: Array, sense: Sense, decision: Certificate, solve: Any) -> Extreme:
        """Optimise over the program of all choices with an exact backend's ``solve``, and return the certificate."""
        program = on_shares(choices, weights, sense)
        return cls(
            of=decision, sense=sense.value, weights=weights, **_optimum(program, solve(program).require_optimal())
        )


@dataclass(frozen=True, eq=False)
class MisreportProof(Certificate):
    """On ``market``, ``user`` gains ``gain`` (by its true speedups) from ``policy`` by reporting ``report`` (k,).

    ``truth`` and ``lie`` certify the two decisions; or, as `Extreme` certificates, the most that the user gets at any
    optimum on the truth, and the least at any optimum on the lie.

    >>> MisreportProof.kind
    'misreport'
    """

    kind: ClassVar[str] = "misreport"
    market: Market
    policy: Policy
    user: User
    report: Annotated[Array, Part("numbers", "What it reports.")]
    gain: Annotated[Fraction, Part("number", "What it gains.")]
    truth: Annotated[Certificate, Part("decided", "The decision on the truth, or its best for the user.")]
    lie: Annotated[Certificate, Part("decided", "The decision on the lie, or its worst for the user.")]

    def tells_whole(self) -> bool:
        """Whether the market is told with its entitlements: as the decisions tell it."""
        return self.truth.tells_whole()


def _optimum(program: Program, solution: Solution) -> dict[str, Any]:
    """Return an exact optimum and its proof as fields; the verifier maximises: duals of a minimisation change sign."""
    assert solution.dual is not None
    return {
        "allocation": program.variable("share", solution.point),
        "value": Fraction(program.value(solution.point)),
        "duals": row_duals(program, solution.dual if program.sense is Sense.MAXIMIZE else -solution.dual),
        "variables": other_variables(program, solution.point),
    }
