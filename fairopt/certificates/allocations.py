"""Certificates about an allocation, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairopt.certificates.certificate import Certificate
from fairopt.problem import Market
from fairopt.program import Array


@dataclass(frozen=True, eq=False)
class Judgement(Certificate):
    """``property`` (by name) holds or fails for ``allocation`` by its bare definition; ``answer`` is HOLDS or FAILS."""

    kind: ClassVar[str] = "property"
    market: Market
    allocation: Array
    property: str
    answer: str


@dataclass(frozen=True, eq=False)
class Envy(Certificate):
    """``user`` would get more out of the shares of ``envied``, by weight, than out of its own."""

    kind: ClassVar[str] = "envy"
    market: Market
    allocation: Array
    user: str
    envied: str


@dataclass(frozen=True, eq=False)
class Dominance(Certificate):
    """``better`` is feasible and gives nobody less and somebody more: ``allocation`` is not Pareto-efficient.

    With ``optima`` (an `Extreme` for each user, in order: the most that it gets at any optimum of a policy), no optimum
    of that policy is.
    """

    kind: ClassVar[str] = "dominance"
    market: Market
    allocation: Array
    better: Array
    optima: Sequence[Certificate] | None = None


@dataclass(frozen=True, eq=False)
class ParetoProof(Certificate):
    """``allocation`` maximises the sum of throughputs by positive ``weights`` (n,): it is Pareto-efficient.

    ``prices`` (k,) of GPUs, and ``rents`` (n,) of a user's right to use one more, prove it.
    """

    kind: ClassVar[str] = "pareto_weights"
    market: Market
    allocation: Array
    weights: Array
    prices: Array
    rents: Array | None = None
