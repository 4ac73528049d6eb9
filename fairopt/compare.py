"""The main job: every policy on one market, and which properties hold for each, by how much, shown by what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairopt.backends import Solver
from fairopt.errors import FairoptError
from fairopt.metrics import Metrics, metrics
from fairopt.policy import Decision, Policy, allocate
from fairopt.problem import Market
from fairopt.program import Array, Number
from fairopt.properties import Effort, MechanismProperty, Property, Verdict
from fairopt.uniqueness import Uniqueness, uniqueness


@dataclass(frozen=True, eq=False)
class Row:
    """One policy's line of the table: what it decided and the verdicts, or why it decided nothing."""

    policy: Policy
    decision: Decision | None = None
    unique: Uniqueness | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    metrics: Metrics | None = None
    error: FairoptError | None = None


def audit(
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
) -> Iterator[Row]:
    """Yield a `Row` for each policy as soon as it is known; a policy that cannot answer does not stop the others.

    The answer of one row is a line of OEF's Table 1, recomputed.
    """
    of_allocations = [each for each in properties if isinstance(each, Property)]
    of_mechanisms = [each for each in properties if isinstance(each, MechanismProperty)]
    for policy in policies:
        try:
            decision = allocate(policy, market, backend)
            verdicts = audit(market, decision.shares, of_allocations)
            for each in of_mechanisms:
                verdicts[each.name] = each.search(policy, market, effort=effort, backend=backend)
            unique = uniqueness(policy, decision)
        except FairoptError as error:
            yield Row(policy, error=error)
            continue
        yield Row(policy, decision, unique, verdicts, metrics(market, decision.shares))
