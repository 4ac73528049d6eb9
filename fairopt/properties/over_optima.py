"""Properties over all optima of a policy: whether some optimum has it, and whether all have it.

The optima form a polyhedron (`fairopt.policy.optima.Optima`). A property's ``over`` decides exactly, without vertices:

* a property made of linear inequalities holds for every optimum if no slack is negative anywhere, and for some optimum
  if the smallest slack can be made non-negative (`linear`);
* the others depend only on which shares are positive. If the largest set of shares that can be positive together breaks
  the property, some of them must be 0, and the search goes on in each of the smaller sets (`by_support`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput, NotCapable, type_of
from fairopt.policy import Allocation, Optima, Policy
from fairopt.policy.optima import Terms, extended
from fairopt.policy.policy import require_policy
from fairopt.program import INFINITY, Array, Program
from fairopt.properties.property import AllocationProperty, by_optimum
from fairopt.properties.verdict import Answer
from fairopt.report import Statement

#: A search stops, undecided, after this many faces.
MOST_FACES = 2000


def over_optima(policy: Policy, decision: Allocation, property: AllocationProperty) -> Statement:
    """Decide ``property`` for some optimum and for every optimum that ``policy`` could have chosen as ``decision``.

    Errors: `BadInput` for names; `NotCapable` where the decision is in floats, or stands for an irrational one;
    `NotSolved` where the exact backend finds no optimum.

    >>> from fairopt.backends.exact import Exact
    >>> from fairopt import allocate
    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.problem import Market
    >>> from fairopt.properties import SharingIncentive
    >>> market = Market.of([[1, 2], [1, 2]], capacity=[1, 1])
    >>> found = over_optima(MaxEfficiency(), allocate(MaxEfficiency(), market, Exact()), SharingIncentive())
    >>> found.some.answer.value, found.every.answer.value
    ('HOLDS', 'FAILS')
    """
    require_policy(policy)
    if not isinstance(property, AllocationProperty):
        got = f"the name {property!r}" if isinstance(property, str) else type_of(property)
        remedy = "Give a property of allocations; fairopt.discovery.property_of makes one of a name or a class"
        raise BadInput(f"got {got}", place="property", remedy=remedy)
    if not decision.arithmetic.exact:
        raise NotCapable(f"this decision of {policy.name} is in floats, and floats prove nothing; decide exactly")
    if decision.error:
        raise NotCapable(f"the optima of {policy.name} are irrational here, and no linear program says what they are")
    optima = Optima.of(policy, decision)
    if optima is None:
        verdict = property.check(decision.market, decision.shares)
        verdict = replace(verdict, effort="the only allocation: nothing is optimised")
        holds = verdict.answer is Answer.HOLDS
        return by_optimum(verdict, verdict, *((decision.shares, None) if holds else (None, decision.shares)))
    # where throughputs are not linear on the face, only what follows from one optimum is known
    known = decision.market.known.all() or not property.needs_speedups
    return property.over(optima) if optima.uses_all() and known else AllocationProperty.over(property, optima)


@dataclass(frozen=True)
class Slack:
    """A property requires ``terms >= constant``; where a demand makes this too strict, ``used >= constant``.

    The terms ``used`` may be about more ``variables`` and ``rows``: the part of another's shares that a user would use.
    """

    terms: Terms
    constant: Fraction
    used: Terms | None = None
    variables: Sequence[tuple[Any, Any]] = ()
    rows: Sequence[tuple[Terms, Any, Any]] = ()


def linear(property: AllocationProperty, optima: Optima, slacks: list[Slack], effort: str) -> Statement:
    """Decide a property that consists of ``slacks``."""
    if not slacks:
        return found(property, optima, optima.shares, None, effort, effort)
    ends = []
    for slack in slacks:
        terms = slack.terms if slack.used is None else slack.used
        program = extended(optima.choices, slack.variables, slack.rows)
        least = optima.most({column: -rate for column, rate in terms.items()}, program)
        assert least is not None
        ends.append((-least[0] - slack.constant, least[1]))
    worst, point = min(ends, key=lambda end: end[0])
    lacking = optima.allocation(point)
    t = len(optima.choices.cost)
    rows = [(slack.terms | {t: -1}, slack.constant, INFINITY) for slack in slacks]
    best = optima.most({t: 1}, extended(optima.choices, [(-INFINITY, INFINITY)], rows))
    assert best is not None
    shown = optima.allocation(best[1])
    having = shown if property.check(optima.market, shown).answer is Answer.HOLDS else None
    # with demands, an optimum may have the property without meeting the stricter inequalities
    complete = best[0] >= 0 or all(slack.used is None for slack in slacks)
    without = lacking if worst < 0 else None
    return found(property, optima, having, without, effort, effort, shown=(shown, lacking), complete=complete)


def by_support(
    property: AllocationProperty,
    optima: Optima,
    lacking: Array | None,
    for_every: str,
    program: Program,
    columns: set[int],
    ways_out: Callable[[set[int]], list[set[int]] | None],
) -> Statement:
    """Decide a property that depends on which of ``columns`` are positive, given an optimum without it, if any.

    ``ways_out`` takes the variables that are positive together. It returns sets of them, at least one of which must be
    all 0, or None where the property holds. After `MOST_FACES` faces it is not decided.
    """
    waiting: list[frozenset[int]] = [frozenset()]
    seen, count, having = set(waiting), 0, None
    while waiting and having is None:
        count += 1
        if count > MOST_FACES:
            break
        zero = waiting.pop()
        inner = optima.inner_point(optima.without(zero, program), columns - zero)
        if inner is None:
            continue
        ways = ways_out(inner[1])
        if ways is None:
            having = optima.allocation(inner[0])
        fresh = {zero | way for way in ways or ()} - seen
        seen |= fresh
        waiting += sorted(fresh, key=sorted, reverse=True)
    return found(property, optima, having, lacking, f"{count} faces", for_every, complete=count <= MOST_FACES)


def found(
    property: AllocationProperty,
    optima: Optima,
    having: Array | None,
    lacking: Array | None,
    for_some: str,
    for_every: str,
    *,
    shown: tuple[Array | None, Array | None] = (None, None),
    complete: bool = True,
) -> Statement:
    """Return the verdicts, given an optimum with the property and one without it (None where none was found).

    ``complete``: whether ``having`` None proves that there is no such optimum; of ``lacking`` it always does.
    ``shown``: the optima to show in place of None, which come nearest.
    """
    best, worst = (
        next(each for each in (found, instead, having, lacking, optima.shares) if each is not None)
        for found, instead in zip((having, lacking), shown, strict=True)
    )
    some, every = property.check(optima.market, best), property.check(optima.market, worst)
    if having is None and not complete:
        some = replace(some, answer=Answer.NOT_REFUTED, exact=False)
    for verdict, wanted in ((some, having is not None), (every, lacking is None)):
        assert verdict.answer is Answer.NOT_REFUTED or (verdict.answer is Answer.HOLDS) is wanted, verdict
    some = replace(some, effort=f"some optimum: {for_some}")
    return by_optimum(some, replace(every, effort=f"every optimum: {for_every}"), having, lacking)
