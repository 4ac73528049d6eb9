"""Claims about "the" allocation where a policy leaves a choice: decided for some optimum and for every optimum.

The optima of a policy on a market are the shares of a polyhedron, its optimal face. Here a property is decided over all
of it in exact arithmetic: sharing incentive, envy-freeness, adjacent types and Pareto efficiency; of another property
only what one optimum shows is said. No vertex is enumerated:

* a property made of linear inequalities holds for every optimum if the least slack of each over the face is not
  negative, and for some optimum if the largest least slack is not;
* the others depend on which shares are positive only. Where all positive shares of a face together break the property,
  some of them must vanish: the search goes on in each of the smaller faces (`_search`). It is finite and complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from itertools import combinations, permutations
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.optima import Face, Terms, extended
from fairopt.policy import Decision, Policy
from fairopt.program import INFINITY, Array, Program, Rows
from fairopt.properties.shares.adjacent_types import AdjacentTypes
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency
from fairopt.properties.shares.sharing_incentive import SharingIncentive
from fairopt.properties.verdict import Answer, Property, Verdict

#: A search over smaller and smaller faces stops, undecided, after so many of them.
MOST_FACES = 2000


@dataclass(frozen=True, eq=False)
class OverOptima:
    """A property decided over all optima of a policy on a market.

    ``some``: there is an optimum with the property; ``having`` (n, k) is one. ``every``: there is none without it;
    ``lacking`` is one. HOLDS and FAILS are proved; what is not proved is NOT_REFUTED. Margins and witnesses are those
    of the optimum that is shown, or of the worst one.
    """

    some: Verdict
    every: Verdict
    having: Array | None = None
    lacking: Array | None = None


def over_optima(policy: Policy, decision: Decision, property: Property) -> OverOptima:
    """Decide ``property`` for some optimum and for every optimum that ``policy`` could have chosen as ``decision``.

    Errors: `NotCapable` where the decision is in floats; `NotSolved` where the exact back end finds no optimum.

    >>> from fairopt.backends.exact import Exact
    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.policy import allocate
    >>> from fairopt.problem import Market
    >>> from fairopt.properties import SharingIncentive
    >>> market = Market.of([[1, 2], [1, 2]], capacity=[1, 1])
    >>> found = over_optima(MaxEfficiency(), allocate(MaxEfficiency(), market, Exact()), SharingIncentive())
    >>> found.some.answer.value, found.every.answer.value
    ('HOLDS', 'FAILS')
    """
    if not decision.exact:
        raise NotCapable(f"this decision of {policy.name} is in floats, and floats prove nothing; decide exactly")
    choices = policy.optimal_face(decision)
    if choices is None:  # nothing was optimised: there is one allocation
        return _of_one(property, decision)
    face = Face(decision.market.as_(Fraction), choices, decision.shares)
    if not face.uses_all():
        return _undecided(property, face)
    return _decide(property, face)


@singledispatch
def _decide(property: Property, face: Face) -> OverOptima:
    """Decide a property over a face; a property that is not known here is decided by what one optimum shows."""
    return _undecided(property, face)


@_decide.register
def _(property: SharingIncentive, face: Face) -> OverOptima:
    users = range(len(face.market.users))
    slacks = [_Slack(face.worth(i, i, 1 / face.fair[i]), Fraction(1)) for i in users]
    return _linear(property, face, slacks, f"{len(users)} users")


@_decide.register
def _(property: EnvyFreeness, face: Face) -> OverOptima:
    market, limited = face.market, face.limited()
    slacks = []
    for i, other in permutations(range(len(market.users)), 2):
        own, scale = face.worth(i, i, 1 / face.fair[i]), market.weight[i] / market.weight[other]
        slack = _Slack(own | face.worth(i, other, -scale / face.fair[i]), Fraction(0))
        slacks.append(replace(slack, used=_used(face, i, other, scale)) if i in limited else slack)
    return _linear(property, face, slacks, f"{len(slacks)} pairs of users")


@_decide.register
def _(property: AdjacentTypes, face: Face) -> OverOptima:
    columns = [j for j in map(face.market.types.index, property.order or face.market.types) if face.market.capacity[j]]
    users = range(len(face.market.users))
    gaps = [(i, *types) for i in users for types in combinations(columns, 3)]
    lacking = next((shares for gap in gaps if (shares := _with_gap(face, *gap)) is not None), None)

    def ways_out(positive: set[int]) -> list[set[int]] | None:
        for i, a, b, c in gaps:
            place = columns.index(b)
            if {face.column(i, a), face.column(i, c)} <= positive and face.column(i, b) not in positive:
                sides = (columns[:place], columns[place + 1 :])
                return [{face.column(i, j) for j in side} for side in sides]
        return None

    places = {face.column(i, j) for i in users for j in columns}
    having, count = _search(face, face.choices, places, ways_out)
    return _found(
        property, face, having, lacking, f"{count} faces", f"{len(gaps)} gaps", complete=(count <= MOST_FACES, True)
    )


@_decide.register
def _(property: ParetoEfficiency, face: Face) -> OverOptima:
    lacking = _dominated(face)
    program, places = _with_slacks(face)

    def ways_out(positive: set[int]) -> list[set[int]] | None:
        given_up = _improving(face, program, places, positive)
        return [{column} for column in given_up] or None

    having, count = _search(face, program, places, ways_out)
    every = "all pairs of an optimum and an allocation that gives nobody less (a linear program)"
    return _found(property, face, having, lacking, f"{count} faces", every, complete=(count <= MOST_FACES, True))


# -- properties that are linear inequalities -----------------------------------------------------------------------
@dataclass(frozen=True)
class _Used:
    """What a user with a demand would use of another's shares: variables, rows that bound them, and its slack then."""

    terms: Terms
    variables: list[tuple[Any, Any]]
    rows: list[tuple[Terms, Any, Any]]


@dataclass(frozen=True)
class _Slack:
    """A property says ``terms >= constant``, in the unit of all slacks; with ``used``, more than it says."""

    terms: Terms
    constant: Fraction
    used: _Used | None = None


def _used(face: Face, user: int, other: int, scale: Any) -> _Used:
    """Return the slack of a pair: own throughput minus that of the best part of the other's shares within demand."""
    first, types = len(face.choices.cost), range(face.market.shape[1])
    rows: list[tuple[Terms, Any, Any]] = [({first + j: 1, face.column(other, j): -scale}, -INFINITY, 0) for j in types]
    rows.append(({first + j: 1 for j in types}, -INFINITY, face.market.limit[user]))
    theirs = {first + j: -speed / face.fair[user] for j, speed in enumerate(face.market.speedup[user]) if speed}
    return _Used(face.worth(user, user, 1 / face.fair[user]) | theirs, [(0, INFINITY)] * len(types), rows)


def _linear(property: Property, face: Face, slacks: list[_Slack], effort: str) -> OverOptima:
    """Decide a property that consists of ``slacks``."""
    if not slacks:
        return _found(property, face, face.shares, None, effort, effort)
    worst, lacking = None, face.shares
    for slack in slacks:
        terms, program = slack.terms, face.choices
        if slack.used is not None:
            terms, program = slack.used.terms, extended(face.choices, slack.used.variables, slack.used.rows)
        least = face.most({column: -rate for column, rate in terms.items()}, program)
        assert least is not None
        if worst is None or -least[0] - slack.constant < worst:
            worst, lacking = -least[0] - slack.constant, face.allocation(least[1])
    t = len(face.choices.cost)
    rows = [(slack.terms | {t: -1}, slack.constant, INFINITY) for slack in slacks]
    best = face.most({t: 1}, extended(face.choices, [(-INFINITY, INFINITY)], rows))
    assert best is not None
    assert worst is not None
    shown = face.allocation(best[1])
    having = shown if _check(property, face, shown).answer is Answer.HOLDS else None
    # with demands, an optimum may have the property without keeping all of what is more than it says
    complete = best[0] >= 0 or all(slack.used is None for slack in slacks)
    return _found(
        property,
        face,
        having,
        lacking if worst < 0 else None,
        effort,
        effort,
        shown=(shown, lacking),
        complete=(complete, True),
    )


# -- properties of which shares are positive -----------------------------------------------------------------------
def _search(
    face: Face, program: Program, columns: set[int], ways_out: Callable[[set[int]], list[set[int]] | None]
) -> tuple[Array | None, int]:
    """Return an optimum with the property, None where there is none, and the number of faces looked at.

    ``ways_out`` says, of the variables that are positive together, which sets of them, one at least, must vanish; None
    where the property holds. More faces than `MOST_FACES` mean that nothing was decided.
    """
    waiting: list[frozenset[int]] = [frozenset()]
    seen = set(waiting)
    count = 0
    while waiting:
        count += 1
        if count > MOST_FACES:
            return None, count
        zero = waiting.pop()
        inner = face.inner_point(face.without(zero, program), columns - zero)
        if inner is None:
            continue
        ways = ways_out(inner[1])
        if ways is None:
            return face.allocation(inner[0]), count
        fresh = {zero | way for way in ways} - seen
        seen |= fresh
        waiting += sorted(fresh, key=sorted, reverse=True)
    return None, count


def _with_gap(face: Face, user: int, left: int, skipped: int, right: int) -> Array | None:
    """Return an optimum in which the user holds the outer types and not the one between, None where there is none."""
    t = len(face.choices.cost)
    low, high = face.column(user, left), face.column(user, right)
    part = face.without([face.column(user, skipped)], face.choices)
    rows = [({low: 1, t: -1}, 0, INFINITY), ({high: 1, t: -1}, 0, INFINITY)]
    found = face.most({t: 1}, extended(part, [(0, INFINITY)], rows))
    return face.allocation(found[1]) if found is not None and found[0] > 0 else None


def _dominated(face: Face) -> Array | None:
    """Return the optimum that leaves most to gain without a loser, None where none leaves anything."""
    market, (n, k) = face.market, face.market.shape
    first = len(face.choices.cost)
    better = [[first + i * k + j for j in range(k)] for i in range(n)]
    objective: Terms = {}
    rows = [({better[i][j]: 1 for i in range(n)}, -INFINITY, market.capacity[j]) for j in range(k)]
    rows += [(dict.fromkeys(better[i], 1), -INFINITY, market.limit[i]) for i in face.limited()]
    for i in range(n):
        gain = {better[i][j]: speed / face.fair[i] for j, speed in enumerate(market.speedup[i]) if speed}
        gain |= face.worth(i, i, -1 / face.fair[i])
        rows.append((gain, 0, INFINITY))
        objective |= gain
    found = face.most(objective, extended(face.choices, [(0, INFINITY)] * (n * k), rows))
    assert found is not None
    return face.allocation(found[1]) if found[0] > 0 else None


def _with_slacks(face: Face) -> tuple[Program, set[int]]:
    """Return the face with what is left of each type, and of each demand, as variables, and what may be positive."""
    (n, k), first = face.market.shape, len(face.choices.cost)
    limited = face.limited()
    rows = []
    for j in range(k):
        rows.append(({face.column(i, j): 1 for i in range(n)} | {first + j: 1}, *[face.market.capacity[j]] * 2))
    for place, i in enumerate(limited):
        rows.append(({face.column(i, j): 1 for j in range(k)} | {first + k + place: 1}, *[face.market.limit[i]] * 2))
    extra = range(first, first + k + len(limited))
    shares = {face.column(i, j) for i in range(n) for j in range(k) if face.market.speedup[i, j]}
    return extended(face.choices, [(0, INFINITY)] * len(extra), rows), shares | set(extra)


def _improving(face: Face, program: Program, places: set[int], positive: set[int]) -> list[int]:
    """Return what must be given up in some trade that hurts nobody and helps somebody, none where there is no trade.

    A trade is a direction: it may lower what is positive. Where an allocation that is positive there can carry it out a
    little way, and it is dominated; where there is no such direction, it is Pareto-efficient.
    """
    (n, k), first = face.market.shape, len(face.choices.cost)
    order = sorted(places)
    at = {column: number for number, column in enumerate(order)}
    rows: list[tuple[Terms, Any, Any]] = []
    for j in range(k):
        terms = {at[face.column(i, j)]: 1 for i in range(n) if face.column(i, j) in at}
        rows.append((terms | {at[first + j]: 1}, 0, 0))
    for place, i in enumerate(face.limited()):
        terms = {at[face.column(i, j)]: 1 for j in range(k) if face.column(i, j) in at}
        rows.append((terms | {at[first + k + place]: 1}, 0, 0))
    objective: Terms = {}
    for i in range(n):
        gain = {at[column]: rate for column, rate in face.worth(i, i, 1 / face.fair[i]).items()}
        rows.append((gain, 0, INFINITY))
        objective |= gain
    bounds = [(Fraction(-1 if column in positive else 0), INFINITY) for column in order]
    empty = np.array([], dtype=int)
    none = np.array([], dtype=object)
    start = replace(
        program,
        name="trades that hurt nobody",
        cost=none,
        lower=none,
        upper=none,
        integer=np.array([], dtype=bool),
        rows=Rows(empty, empty, none, none, none),
        variable_blocks=(),
        row_blocks=(),
    )
    found = face.most(objective, extended(start, bounds, rows))
    assert found is not None
    if not found[0] > 0:
        return []
    return [column for column, change in zip(order, found[1], strict=True) if change < 0]


# -- verdicts --------------------------------------------------------------------------------------------------------
def _found(
    property: Property,
    face: Face,
    having: Array | None,
    lacking: Array | None,
    for_some: str,
    for_every: str,
    *,
    shown: tuple[Array | None, Array | None] = (None, None),
    complete: tuple[bool, bool] = (True, True),
) -> OverOptima:
    """Return the verdicts, given an optimum with and one without the property, None where there is none.

    ``complete``: whether None proves that there is none, with the property and without it; else none was found.
    ``shown``: what to show instead, the nearest to one with the property and to one without it.
    """
    best, worst = (
        next(each for each in (found, instead, having, lacking, face.shares) if each is not None)
        for found, instead in zip((having, lacking), shown, strict=True)
    )
    some, every = _check(property, face, best), _check(property, face, worst)
    if having is None and not complete[0]:
        some = replace(some, answer=Answer.NOT_REFUTED, exact=False)
    if lacking is None and not complete[1]:
        every = replace(every, answer=Answer.NOT_REFUTED, exact=False)
    for verdict, wanted in ((some, having is not None), (every, lacking is None)):
        assert verdict.answer is Answer.NOT_REFUTED or (verdict.answer is Answer.HOLDS) is wanted, verdict
    return OverOptima(
        some=replace(some, effort=f"some optimum: {for_some}"),
        every=replace(every, effort=f"every optimum: {for_every}"),
        having=having,
        lacking=lacking,
    )


def _check(property: Property, face: Face, shares: Array) -> Verdict:
    return property.check(face.market, shares)


def _of_one(property: Property, decision: Decision) -> OverOptima:
    verdict = replace(
        property.check(decision.market, decision.shares), effort="the only allocation: nothing is optimised"
    )
    holds = verdict.answer is Answer.HOLDS
    shares = decision.shares
    return OverOptima(verdict, verdict, shares if holds else None, None if holds else shares)


def _undecided(property: Property, face: Face) -> OverOptima:
    """Return what one optimum shows of a property that is not decided over all."""
    verdict = replace(_check(property, face, face.shares), effort="one optimum")
    other = replace(verdict, answer=Answer.NOT_REFUTED, exact=False)
    if verdict.answer is Answer.HOLDS:
        return OverOptima(verdict, other, having=face.shares)
    return OverOptima(other, verdict, lacking=face.shares)
