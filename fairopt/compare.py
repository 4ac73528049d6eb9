"""The main job: every policy on one market, and which properties hold for each, with margins and witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairopt.backends import Solver
from fairopt.errors import FairoptError
from fairopt.metrics import Metrics, metrics
from fairopt.policy import Allocation, Policy, Uniqueness, decide, uniqueness
from fairopt.problem import Market
from fairopt.program import Array, Number
from fairopt.properties import Effort, MechanismProperty, OverOptima, Property, Verdict, over_optima


@dataclass(frozen=True, eq=False)
class Row:
    """One policy's line of the table: its decision, the verdicts, and the error that stopped it, if any.

    ``over_optima`` says of each property whether it holds for some and for every optimum, where that was asked for and
    the policy had a choice.
    """

    policy: Policy
    decision: Allocation | None = None
    unique: Uniqueness = field(default_factory=Uniqueness)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    over_optima: Mapping[str, OverOptima] = field(default_factory=dict)
    metrics: Metrics | None = None
    error: FairoptError | None = None


def verify(
    market: Market, shares: Array, properties: Sequence[Property], *, tolerance: Number | None = None
) -> dict[str, Verdict]:
    """Return the verdicts on an allocation (n, k) by anyone, by property name."""
    return {each.name: each.check(market, shares, tolerance=tolerance) for each in properties}


def compare(
    market: Market,
    policies: Sequence[Policy],
    properties: Sequence[Property | MechanismProperty],
    *,
    backend: Solver | None = None,
    effort: Effort | None = None,
    exact: bool = True,
    every_optimum: bool = False,
) -> Iterator[Row]:
    """Yield a `Row` for each policy as soon as it is known.

    Programs are decided in rationals, so that verdicts are exact, unless a ``backend`` is named or ``exact`` is False.
    With ``every_optimum`` an exact decision that is not unique is looked at through all that it could have been.
    A policy that cannot answer does not stop the others, and a check that cannot be made leaves what was found before
    it: the row then holds both that and the error. The answer of one row is a line of OEF's Table 1, recomputed.
    What searches the policy comes after what looks at its answer, so that the cheap verdicts are there when a search
    is stopped.
    """
    properties = sorted(properties, key=lambda each: isinstance(each, MechanismProperty))
    for policy in policies:
        row = Row(policy)
        try:
            decision = decide(policy, market, backend, exact=exact and market.exact and backend is None)
            row = replace(row, decision=decision, metrics=metrics(market, decision.shares))
            row = replace(row, unique=uniqueness(policy, decision))
            for each in properties:
                verdict = (
                    each.check(market, decision.shares)
                    if isinstance(each, Property)
                    else each.search(policy, market, effort=effort, truth=decision)
                )
                row = replace(row, verdicts={**row.verdicts, each.name: verdict})
                if every_optimum and isinstance(each, Property) and decision.exact and row.unique.shares is False:
                    over = over_optima(policy, decision, each)
                    row = replace(row, over_optima={**row.over_optima, each.name: over})
        except FairoptError as error:
            row = replace(row, error=error)
        yield row
