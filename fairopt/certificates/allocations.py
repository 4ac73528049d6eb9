"""Certificates about an allocation, however it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from fairopt.certificates.certificate import Certificate, OfAllocation
from fairopt.certificates.parts import Part, Prices, User, rows_of
from fairopt.program import Array

#: The properties that are decided by evaluating their definition.
PROPERTIES = ["feasibility", "sharing_incentive", "envy_freeness", "work_conservation", "adjacent_types"]
MostOfEach: TypeAlias = Annotated[
    Sequence[Certificate], Part(rows_of("extreme"), "The most that each user gets at any optimum, in order.")
]


@dataclass(frozen=True, eq=False)
class PropertyProof(OfAllocation):
    """``property`` (a name) holds or fails for ``allocation`` by its definition; ``answer`` is HOLDS or FAILS."""

    kind: ClassVar[str] = "property"
    property: Annotated[str, Part({"enum": PROPERTIES}, "The property, by name.")]
    answer: Annotated[str, Part({"enum": ["HOLDS", "FAILS"]}, "Whether it holds.")]


@dataclass(frozen=True, eq=False)
class EnvyProof(OfAllocation):
    """``user`` would get more out of the shares of ``envied``, by weight, than out of its own."""

    kind: ClassVar[str] = "envy"
    user: User
    envied: Annotated[str, Part("name", "Whose shares the user would rather have.")]


@dataclass(frozen=True, eq=False)
class Dominance(OfAllocation):
    """``better`` is feasible and gives nobody less and somebody more: ``allocation`` is not Pareto-efficient.

    With ``optima``, no optimum of a policy is Pareto-efficient. These are an `Extreme` for each user, in order: the
    most that the user gets at any optimum.
    """

    kind: ClassVar[str] = "dominance"
    better: Annotated[Array, Part("table", "The better allocation.")]
    optima: MostOfEach | None = None


@dataclass(frozen=True, eq=False)
class ParetoProof(OfAllocation):
    """``allocation`` maximises the sum of throughputs by positive ``weights`` (n,): it is Pareto-efficient.

    The proof is the dual solution: ``prices`` (k,) of GPUs, and ``rents`` (n,), the duals of the users' demands.
    """

    kind: ClassVar[str] = "pareto_weights"
    weights: Annotated[Array, Part("numbers", "A weight for each user.")]
    prices: Prices
    rents: Annotated[Array, Part("numbers", "What a right to one more GPU is worth to each user.")] | None = None
