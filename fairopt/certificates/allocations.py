"""Certificates about an allocation, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from fairopt.certificates.certificate import Certificate
from fairopt.certificates.parts import Part, Prices, Shares, User, rows_of
from fairopt.problem import Market
from fairopt.program import Array

#: The properties that are decided by computing them.
PROPERTIES = ["feasibility", "sharing_incentive", "envy_freeness", "work_conservation", "adjacent_types"]
MostOfEach: TypeAlias = Annotated[
    Sequence[Certificate], Part(rows_of("extreme"), "The most that each user gets at any optimum, in order.")
]


@dataclass(frozen=True, eq=False)
class Judgement(Certificate):
    """``property`` (by name) holds or fails for ``allocation`` by its bare definition; ``answer`` is HOLDS or FAILS."""

    kind: ClassVar[str] = "property"
    market: Market
    allocation: Shares
    property: Annotated[str, Part({"enum": PROPERTIES}, "The property, by name.")]
    answer: Annotated[str, Part({"enum": ["HOLDS", "FAILS"]}, "Whether it holds.")]


@dataclass(frozen=True, eq=False)
class Envy(Certificate):
    """``user`` would get more out of the shares of ``envied``, by weight, than out of its own."""

    kind: ClassVar[str] = "envy"
    market: Market
    allocation: Shares
    user: User
    envied: Annotated[str, Part("name", "Whose shares the user would rather have.")]


@dataclass(frozen=True, eq=False)
class Dominance(Certificate):
    """``better`` is feasible and gives nobody less and somebody more: ``allocation`` is not Pareto-efficient.

    With ``optima`` (an `Extreme` for each user, in order: the most that it gets at any optimum of a policy), no optimum
    of that policy is.
    """

    kind: ClassVar[str] = "dominance"
    market: Market
    allocation: Shares
    better: Annotated[Array, Part("table", "The better allocation.")]
    optima: MostOfEach | None = None


@dataclass(frozen=True, eq=False)
class ParetoProof(Certificate):
    """``allocation`` maximises the sum of throughputs by positive ``weights`` (n,): it is Pareto-efficient.

    ``prices`` (k,) of GPUs, and ``rents`` (n,) of a user's right to use one more, prove it.
    """

    kind: ClassVar[str] = "pareto_weights"
    market: Market
    allocation: Shares
    weights: Annotated[Array, Part("numbers", "A weight for each user.")]
    prices: Prices
    rents: Annotated[Array, Part("numbers", "What a right to one more GPU is worth to each user.")] | None = None
