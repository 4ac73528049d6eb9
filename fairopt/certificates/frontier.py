"""The certificate of a trade-off: points that are reached, and lines that nothing is above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fairopt.certificates.certificate import Certificate
from fairopt.certificates.parts import Gap, Part, Prices, rows_of
from fairopt.problem import Market
from fairopt.program import Array


@dataclass(frozen=True, eq=False)
class FrontierProof(Certificate):
    """The largest ``goal`` where ``property`` fails by epsilon at most, for every epsilon from that of the first point.

    ``points`` are {"epsilon", "value", "allocation", "variables"}: what an allocation reaches. ``lines`` are
    {"constant", "slope", "duals", "factors"}, one for each span from a point to the next and for what comes after the
    last: nothing is above it. ``gap`` is the largest distance between the two.

    >>> FrontierProof.kind
    'frontier'
    """

    kind: ClassVar[str] = "frontier"
    market: Market
    goal: Annotated[str, Part({"enum": ["total_efficiency", "nash_welfare", "least_gain"]}, "What is largest.")]
    property: Annotated[
        str,
        Part(
            {"enum": ["envy_freeness", "sharing_incentive", "equal_throughput", "pareto_efficiency"]},
            "What may fail by epsilon.",
        ),
    ]
    points: Annotated[Sequence[Mapping[str, Any]], Part(rows_of("reached"), "What is reached, by rising epsilon.")]
    lines: Annotated[Sequence[Mapping[str, Any]], Part(rows_of("above"), "What nothing is above, span by span.")]
    gap: Gap


@dataclass(frozen=True, eq=False)
class EfficientFrontierProof(FrontierProof):
    """The same of Pareto-efficient allocations: all points have the largest sum of throughputs by positive ``weights``.

    Their mixtures have it too. ``prices`` (k,) of GPUs, and ``demand_duals`` (n,), the duals of demands, prove it.

    >>> EfficientFrontierProof.kind
    'frontier'
    """

    weights: Annotated[Array, Part("numbers", "A weight for each user.")]
    prices: Prices
    demand_duals: Annotated[Array, Part("numbers", "What a right to one more GPU is worth to each user.")] | None = None
