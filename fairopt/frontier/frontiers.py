"""`frontier`: what every property costs of every goal, for all epsilons, and where policies are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias, TypeVar

from fairopt.certificates import EFFICIENT_FRONTIER, FRONTIER, Certificate
from fairopt.compare import Row, compare
from fairopt.deadline import time_limit
from fairopt.discovery import AnyPolicy, several
from fairopt.errors import BadInput, FairoptError, NotCapable, OutOfTime, require
from fairopt.frontier.curve import Curve
from fairopt.frontier.goals import GOALS, Welfare
from fairopt.frontier.relaxed import RELAXED, Relaxed
from fairopt.frontier.tracing import face_of, on_faces, trace
from fairopt.numbers import counted
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.problem.ranges import part_of
from fairopt.program import Array, Number
from fairopt.properties import TOLERANCE, ParetoWeights
from fairopt.report import ABSENT, LEFT_OUT, SCHEMA_KEY, Grid, Key, ResultForm, Statement, Tabular, few, listed

_log = logging.getLogger(__name__)
T = TypeVar("T", Welfare, Relaxed)
AnyGoal: TypeAlias = str | Welfare
AnyRelaxed: TypeAlias = str | Relaxed


#: ``distances`` are by (goal, property), in the goal's unit; ``error`` is None where it decided.
POLICY_POINT = ResultForm(
    "A policy beside the curves.",
    Key("policy", str, "Who decided."),
    Key("exact", bool, "Whether its decision is in rational numbers."),
    Key("values", dict[str, Number], "Each goal at its decision."),
    Key("epsilons", dict[str, Number], "The least epsilon of each property."),
    Key(
        "distances",
        dict[str, dict[str, Number]],
        "How far it is below the curve there, at most, by goal and property.",
        lambda point: {
            goal: {name: far for (other, name), far in point.distances.items() if other == goal}
            for goal, _ in point.distances
        },
    ),
    Key("reasons", dict[str, str], "Why a number is not there."),
    beside=[
        Key("error", str, "Why it decided nothing.", lambda point: ABSENT if point.error is None else str(point.error))
    ],
)


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Tabular):
    """The trade-offs of a market: ``curves``, those that could not be had (``failed``), and ``policies`` beside them.

    ``left_out`` says by name which policies are not there since nobody named them, and why.

    >>> from fairopt import frontier
    >>> from fairopt.datasets import oef_example
    >>> frontier(oef_example(), "total_efficiency", policies=["max-min"])
    <Frontier on 3 users: 4 curves, 1 policy>
    """

    market: Market
    curves: tuple[Curve, ...]
    policies: tuple[Statement, ...]
    failed: Mapping[tuple[str, str], FairoptError] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    form = ResultForm(
        "Trade-offs of a market.",
        SCHEMA_KEY,
        Key("users", list[str], "The users, in the order of the rows.", lambda found: found.market.users),
        Key("types", list[str], "The GPU types, in the order of the columns.", lambda found: found.market.types),
        Key("curves", list[Curve], "A curve for each goal and property."),
        Key(
            "failed",
            listed(ResultForm("No curve.", *(Key(name, str, "Text.") for name in ("goal", "property", "error")))),
            "Why.",
            lambda found: [
                {"goal": goal, "property": name, "error": str(why)} for (goal, name), why in found.failed.items()
            ],
        ),
        Key("policies", listed(POLICY_POINT), "The policies."),
        beside=[LEFT_OUT],
    )

    def curve(self, goal: str, against: str) -> Curve:
        """Return the curve of a goal against a property, by name. Errors: `BadInput` where there is none."""
        for each in self.curves:
            if (each.goal, each.against) == (goal, against):
                return each
        raise BadInput(f"there is no curve of {goal} against {against}", remedy="See .curves, and .failed")

    def certificates(self) -> Iterator[Statement]:
        """Yield the evidence of each curve by a name for its file; for each efficient face a further one."""
        from fairopt.evidence import EVIDENCE  # here, so that who only draws curves begins sooner

        for curve in self.curves:
            name, alone = f"{curve.goal}/{curve.against}", curve.against == "pareto_efficiency"
            if not alone:
                yield EVIDENCE.of(name=name, certificate=_proof(self.market, curve, curve.points), reason="")
            for number, (face, points) in enumerate(curve.efficient.items(), 1):
                of_face = _proof(self.market, curve, points, face)
                called = f"{name}{'' if alone else f'-efficient-{number}'}"
                yield EVIDENCE.of(name=called, certificate=of_face, reason="")

    def to_json(self, *, exact: bool = True) -> dict[str, Any]:
        """Return JSON types: numbers that are exact as "p/q"."""
        return super().to_json(exact=exact)

    def __repr__(self) -> str:
        curves = counted(len(self.curves), "curve")
        policies = counted(len(self.policies), "policy")
        others = f"; left out: {few(list(self.left_out))}" if self.left_out else ""
        return f"<Frontier on {counted(len(self.market.users), 'user')}: {curves}, {policies}{others}>"

    def _table(self) -> Grid:
        columns: dict[str, list[Any]] = {}
        for goal in dict.fromkeys(curve.goal for curve in self.curves):
            columns[goal] = [each.values.get(goal) for each in self.policies]
        for name in dict.fromkeys(curve.against for curve in self.curves):
            columns[f"{name}_epsilon"] = [each.epsilons.get(name) for each in self.policies]
        for key in ((curve.goal, curve.against) for curve in self.curves):
            columns["_below_".join(key)] = [each.distances.get(key) for each in self.policies]
        return Grid("policy", [each.policy for each in self.policies], columns)


def frontier(
    market: Market,
    goals: AnyGoal | Sequence[AnyGoal] | None = None,
    properties: AnyRelaxed | Sequence[AnyRelaxed] | None = None,
    *,
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    gap: Number | str | None = None,
    limit: float | None = None,
    watch: Callable[[str, str], None] = lambda what, part: None,
    keep: Callable[[Frontier], None] = lambda found: None,
) -> Frontier:
    """Return what each property costs of each goal, as a function of the epsilon by which it may fail.

    ``goals`` and ``properties``: names or objects, one or more; None for all of `fairopt.frontier.GOALS` and
    `fairopt.frontier.RELAXED`. Curves of linear goals are exact: all breakpoints, in Fractions. The others are known up
    to the part ``gap`` of their largest value, by default 1/1000, with proven bounds on both sides; where ``gap`` is
    given, linear ones are followed only so far, too. ``efficient`` of a curve says what Pareto-efficient allocations
    reach at least.

    ``policies`` are placed beside the curves: names, classes or objects, None for those that `fairopt.compare` asks.
    For one that cannot decide there is a reason. ``limit``: most seconds for each curve, for its efficient faces, and
    for each policy. ``watch`` is told of each before it is computed, and ``keep`` is given all that is known after it,
    which is there then after an interruption. Errors: `BadInput` for unknown names; `NotCapable` for a market with
    entitlements, or with speedups that are not known.

    Source: parametric programs, Gass and Saaty 1955; trade-offs, Bertsimas, Farias and Trichakis, On the
    efficiency-fairness trade-off, 2012.

    >>> from fairopt.datasets import oef_example
    >>> found = frontier(oef_example(), "total_efficiency", "envy_freeness", policies=["max-min", "oef-cooperative"])
    >>> found.curves
    (<Curve: total_efficiency against envy_freeness, exact: 4.5 at 0, 5 at 12/7>,)
    >>> [float(each.distances["total_efficiency", "envy_freeness"]) for each in found.policies]
    [0.11326530612244898, 0.0]
    """
    require(isinstance(market, Market), f"a {type(market).__name__}", "market", "Give a Market")
    _require_plain(market)
    remedy = "Give a part that is not negative, such as 1% or 0.01"
    near = None if gap is None else part_of(gap, "gap", remedy)
    require(near is None or near >= 0, gap, "gap", remedy)
    rational = market.as_(Fraction)
    asked = list(product(_named(GOALS, goals, "goal"), _named(RELAXED, properties, "property")))
    found: dict[tuple[str, str], Curve] = {}
    failed: dict[tuple[str, str], FairoptError] = {}
    for goal, relaxed in asked:
        watch(goal.name, relaxed.name)
        try:
            with time_limit(limit):
                found[goal.name, relaxed.name] = trace(rational, goal, relaxed, goal.near if near is None else near)
        except FairoptError as error:
            failed[goal.name, relaxed.name] = error
        keep(Frontier(rational, tuple(found.values()), (), dict(failed)))
    compared = compare(market, policies, [], limit=limit, watch=lambda policy, cell: watch(policy.name, cell))
    faces = _faces(rational, found.values(), compared.rows, limit)
    for goal, relaxed in asked:
        if not relaxed.efficient and (curve := found.get((goal.name, relaxed.name))) is not None:
            watch(f"efficient {goal.name}", relaxed.name)
            with time_limit(limit):
                found[goal.name, relaxed.name] = on_faces(rational, goal, relaxed, faces, curve)
            keep(Frontier(rational, tuple(found.values()), (), failed, compared.left_out))
    placed: list[Statement] = []
    for row in compared.rows:
        with time_limit(limit):
            placed.append(_placed(row, asked, found))
        keep(Frontier(rational, tuple(found.values()), tuple(placed), failed, compared.left_out))
    return Frontier(rational, tuple(found.values()), tuple(placed), failed, compared.left_out)


def decimal(value: Number | None) -> str:
    """Return a number to six digits; "-" for none."""
    return "-" if value is None else f"{float(value):.6g}"


def _require_plain(market: Market) -> None:
    if is_entitled(market) and market.entitlements is not None:
        said = ", ".join(sorted(each.value for each in market.entitlements.said))
        remedy = "Market.plain() leaves entitlements out"
        raise NotCapable(f"frontier does not support {said}, which this market has; {remedy}")
    if not market.known.all():
        unknown = few([name for name, known in zip(market.users, market.known, strict=True) if not known])
        raise NotCapable(f"frontier needs speedups that are known, and those of {unknown} are not; give them")


def _named(known: Sequence[T], given: Any, place: str) -> list[T]:
    """Return those that are given by name or as they are; all where nothing is given."""
    if given is None:
        return list(known)
    by_name = {each.name: each for each in known}
    found: list[T] = []
    for each in several(given):
        made: Any = by_name.get(each) if isinstance(each, str) else each
        if not isinstance(made, type(known[0])):
            near = (isinstance(each, str) and " or ".join(get_close_matches(each, by_name))) or ", ".join(by_name)
            raise BadInput(f"got {each!r}", place=place, remedy=f"Give {near}")
        found.append(made)
    return list(dict.fromkeys(found))


def _faces(
    market: Market, curves: Iterable[Curve], rows: Iterable[Row[Any]], limit: float | None
) -> dict[ParetoWeights, list[Array]]:
    """Return efficient faces: those of the best points of curves, and of policies' decisions that are exact.

    With each come the allocations that are known of it.
    """
    decided = [row.outcome.shares for row in rows if row.outcome is not None and row.outcome.arithmetic.exact]
    points = [point.allocation for curve in curves for point in curve.points]
    faces: dict[ParetoWeights, list[Array]] = {}
    by_direction: dict[Any, ParetoWeights] = {}
    try:
        with time_limit(limit):
            for shares in {tuple(market.utility(each)): each for each in [*decided, *points]}.values():
                efficient, face = face_of(market, shares)
                face = by_direction.setdefault(tuple(face.weights / face.weights.sum()), face)
                faces.setdefault(face, []).append(efficient)
    except OutOfTime as error:  # fewer faces bound less, and are no mistake
        _log.info("%s: %d efficient faces are known", error, len(faces))
    return faces


def _placed(
    row: Row[Any], asked: Sequence[tuple[Welfare, Relaxed]], curves: Mapping[tuple[str, str], Curve]
) -> Statement:
    decision = row.outcome
    if decision is None:
        nothing: dict[str, Any] = {each: {} for each in ("values", "epsilons", "distances", "reasons")}
        return POLICY_POINT.of(policy=row.policy.name, exact=True, error=row.error, **nothing)
    market, shares = decision.market.as_(decision.arithmetic), decision.shares
    numbers: dict[str, Number] = {}
    reasons: dict[str, str] = {}
    goals, relaxed = (list(dict.fromkeys(pair[part] for pair in asked)) for part in (0, 1))
    measures: dict[str, Callable[[], Number]] = {
        **{each.name: lambda each=each: each.value(market, market.utility(shares)) for each in goals},  # type: ignore[misc]
        **{each.name: lambda each=each: each.epsilon(market, shares) for each in relaxed},  # type: ignore[misc]
    }
    for name, measure in measures.items():
        try:
            numbers[name] = measure()
        except FairoptError as error:
            reasons[name] = str(error)
    values, epsilons = (
        {each.name: numbers[each.name] for each in group if each.name in numbers} for group in (goals, relaxed)
    )
    distances = {
        (goal, name): _distance(curve, values[goal], epsilons[name], exact=decision.arithmetic.exact)
        for (goal, name), curve in curves.items()
        if goal in values and name in epsilons
    }
    measured = {"values": values, "epsilons": epsilons, "distances": distances, "reasons": reasons}
    return POLICY_POINT.of(policy=row.policy.name, exact=decision.arithmetic.exact, error=None, **measured)


def _distance(curve: Curve, value: Number, epsilon: Number, *, exact: bool) -> Number:
    """Return how far a value is below the curve at most; in floats, without what is below any tolerance."""
    above = curve.below(max(epsilon, 0))
    if exact:
        return above - Fraction(value)
    distance = float(above) - float(value)
    return distance if abs(distance) > TOLERANCE * float(above) else 0.0


def _proof(market: Market, curve: Curve, points: Sequence[Statement], face: ParetoWeights | None = None) -> Certificate:
    """Return the certificate of a curve, or of what an efficient face reaches of it."""
    told = Curve(curve.goal, curve.against, tuple(points), tuple(curve.covering(points)))
    reached = [{**point.parts} for point in points]
    above = [{**vars(line)} for line in told.lines]
    about = (market, curve.goal, curve.against, reached, above, told.gap)
    if face is None:
        return Certificate(FRONTIER, *about)
    demand_duals = None if market.demand is None else face.demand_prices
    return Certificate(EFFICIENT_FRONTIER, *about, face.weights, face.prices, demand_duals)
