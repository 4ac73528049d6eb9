"""The main job: policies side by side on one problem, and which properties hold for each, by how much, shown by what.

A problem is a `Market`, a `Setting` (a trace on a cluster) or a `Batch`. A property that cannot be decided is UNDECIDED
in its own cell, with the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from time import perf_counter
from typing import Any, overload

from fairopt import discovery
from fairopt.backends import Method, Solver
from fairopt.deadline import time_limit
from fairopt.errors import BadInput, FairoptError
from fairopt.metrics import Metrics, metrics
from fairopt.policy import Allocation, Plan, Policy, Uniqueness, decide, uniqueness
from fairopt.policy.decide import can_be_exact
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch
from fairopt.program import Number
from fairopt.properties import (
    AllocationProperty,
    Effort,
    MechanismProperty,
    OutcomeProperty,
    OverOptima,
    Property,
    Verdict,
    over_optima,
)
from fairopt.simulation import History, Setting, run
from fairopt.simulation.measures import Measures, measure
from fairopt.simulation.measures_finish_time import Ideal

#: The first cell of a row.
DECISION = "decision"


@dataclass(frozen=True, eq=False, kw_only=True)
class Row(ABC):
    """One policy's line of the table: the verdicts on what it decided, and the error that stopped it, if one did."""

    policy: Policy
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    error: FairoptError | None = None
    #: What each cell took, in seconds: `DECISION`, and each property by its name.
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    @abstractmethod
    def outcome(self) -> Any:
        """What the policy made of the problem; None where that could not be had."""

    def with_verdict(self, asked: Property, verdict: Verdict) -> Row:
        """Return the row with one more verdict."""
        return replace(self, verdicts={**self.verdicts, asked.name: verdict})


@dataclass(frozen=True, eq=False, kw_only=True)
class AllocationRow(Row):
    """What a policy decided on a `Market`.

    ``over_optima``: whether each property holds for some and for every optimum, where that was asked for
    (``every_optimum``) and the policy had a choice.
    """

    decision: Allocation | None = None
    unique: Uniqueness = field(default_factory=Uniqueness)
    metrics: Metrics | None = None
    every_optimum: bool = False
    over_optima: Mapping[str, OverOptima] = field(default_factory=dict)

    @property
    def outcome(self) -> Allocation | None:
        """The allocation."""
        return self.decision

    def with_verdict(self, asked: Property, verdict: Verdict) -> Row:
        """Return the row with one more verdict; over all optima too, where that was asked for."""
        row = replace(self, verdicts={**self.verdicts, asked.name: verdict})
        if self.decision is None or not self.decision.exact or self.unique.shares is not False:
            return row  # nothing was left to choose, or it is not known
        if not (self.every_optimum and isinstance(asked, AllocationProperty)):
            return row
        try:
            over = over_optima(self.policy, self.decision, asked)
        except FairoptError as error:
            unknown = Verdict.undecided(asked.name, str(error), effort="over all optima")
            over = OverOptima(unknown, unknown)
        return replace(row, over_optima={**self.over_optima, asked.name: over})


@dataclass(frozen=True, eq=False, kw_only=True)
class RunRow(Row):
    """What came of a policy's run of a `Setting`; where it stopped, until then."""

    history: History
    measures: Measures

    @property
    def outcome(self) -> History:
        """The history."""
        return self.history


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanRow(Row):
    """What a policy decided on a `Batch`."""

    plan: Plan | None = None

    @property
    def outcome(self) -> Plan | None:
        """The plan."""
        return self.plan


@singledispatch
def answered(problem: Any, policy: Policy, **how: Any) -> Row:
    """Return a row without verdicts; each kind of problem registers how it is decided, and errors stand in the row."""
    raise BadInput(f"got a {type(problem).__name__}", place="problem", remedy="Give a Market, a Setting or a Batch")


@answered.register
def _(
    problem: Market,
    policy: Policy,
    *,
    backend: Solver | Method | None = None,
    exact: bool = True,
    unique: bool = False,
    every_optimum: bool = False,
) -> Row:
    row = AllocationRow(policy=policy, every_optimum=every_optimum)
    try:
        exact = exact and problem.exact and backend is None and can_be_exact(policy)
        decision = decide(policy, problem, backend, exact=exact)
        row = replace(row, decision=decision, metrics=metrics(problem, decision.shares))
        return replace(row, unique=uniqueness(policy, decision)) if unique or every_optimum else row
    except FairoptError as error:
        return replace(row, error=error)


@answered.register
def _(
    problem: Setting,
    policy: Policy,
    *,
    backend: Solver | Method | None = None,
    rounds: int | None = None,
    ideal: Ideal | None = None,
) -> Row:
    trace, cluster, stopped, records = problem.trace, problem.cluster, None, []
    how: dict[str, Any] = {"length": problem.length, "mechanics": problem.mechanics}
    try:
        for record in run(policy, trace, cluster, backend=backend, rounds=rounds, **how):
            records.append(record)
    except FairoptError as error:
        stopped = error
    history = History.of(trace, cluster, records)
    return RunRow(policy=policy, history=history, measures=measure(history, ideal=ideal), error=stopped)


@answered.register
def _(problem: Batch, policy: Policy, *, backend: Solver | Method | None = None) -> Row:
    try:
        return PlanRow(policy=policy, plan=decide(policy, problem, backend))
    except FairoptError as error:
        return PlanRow(policy=policy, error=error)


@overload
def compare(problem: Market, *asked: Any, **how: Any) -> Iterator[AllocationRow]: ...
@overload
def compare(problem: Setting, *asked: Any, **how: Any) -> Iterator[RunRow]: ...
@overload
def compare(problem: Batch, *asked: Any, **how: Any) -> Iterator[PlanRow]: ...
def compare(
    problem: Any,
    policies: Sequence[str | type[Policy] | Policy] | None = None,
    properties: Sequence[str | type[Property] | Property] | None = None,
    *,
    effort: Effort | None = None,
    limit: float | None = None,
    watch: Callable[[Policy, str], None] = lambda policy, cell: None,
    **how: Any,
) -> Iterator[Any]:
    """Yield a `Row` for each policy as soon as it is known: `AllocationRow`, `RunRow` or `PlanRow`.

    ``policies`` and ``properties``: objects, classes or names; None for all that are installed for such a problem.

    ``how`` says how a problem is decided. All kinds take ``backend``. A `Market` of rationals is decided in rationals
    unless a ``backend`` is named; with ``exact`` False it becomes one of floats: faster, and within a tolerance.
    ``unique`` asks whether each decision is the only optimum; ``every_optimum`` asks this too and, where an exact
    decision is not, what holds over all optima. Of a `Setting` at most ``rounds`` are played, all by default;
    ``ideal`` is what finish-time fairness compares with.

    A policy that cannot answer does not stop the others. Searches come last, so that the cheap verdicts are there when
    one is stopped. ``limit``: most seconds for a decision, and for each property, which is UNDECIDED after them; a
    search has those of its ``effort`` as well. ``watch`` is told of each cell before it is computed. Errors: `BadInput`
    for properties of another kind of problem.
    """
    decided = Queue if isinstance(problem, Setting) else type(problem)
    if policies is None:
        policies = discovery.policies(decided)
    chosen = [discovery.policy_of(each, decided) for each in policies]
    ordered = sorted(_asked(problem, properties), key=lambda each: isinstance(each, MechanismProperty))
    if isinstance(problem, Market) and not how.get("exact", True):
        problem = problem.as_(float)
    for policy in chosen:
        watch(policy, DECISION)
        began = perf_counter()
        with time_limit(limit):
            row = answered(problem, policy, **how)
        seconds = {DECISION: perf_counter() - began}
        for each in ordered if row.outcome is not None else ():
            watch(policy, each.name)
            began = perf_counter()
            searches = ((effort and effort.seconds) or 0) if isinstance(each, MechanismProperty) else 0
            with time_limit(None if limit is None else limit + searches):
                try:
                    verdict = each.judge(policy, problem, row.outcome, effort=effort)
                except FairoptError as error:
                    verdict = Verdict.undecided(each.name, str(error))
                row = row.with_verdict(each, verdict)
            seconds[each.name] = perf_counter() - began
        yield replace(row, seconds=seconds)


def verify(
    problem: Market | Setting | Batch,
    outcome: Any,
    properties: Sequence[str | type[Property] | Property] | None = None,
    *,
    tolerance: Number | None = None,
) -> dict[str, Verdict]:
    """Return the verdicts on anybody's outcome, by property name; ``properties`` as `compare` takes them.

    It is an allocation (n, k) of a `Market`, a `History` of a `Setting`, a `Plan` of a `Batch`. Errors: `BadInput` for
    an outcome that is none of this problem.
    """
    verdicts = {}
    for each in _asked(problem, properties):
        if not isinstance(each, OutcomeProperty):
            if properties is None:
                continue
            remedy = "Leave it out; `compare` asks it of a policy"
            raise BadInput(f"{each.name} is a property of a {each.of}", place="properties", remedy=remedy)
        try:
            verdicts[each.name] = each.verify(problem, outcome, tolerance=tolerance)
        except BadInput:  # the outcome is at fault, not the property
            raise
        except FairoptError as error:
            verdicts[each.name] = Verdict.undecided(each.name, str(error))
    return verdicts


def _asked(problem: object, given: Sequence[str | type[Property] | Property] | None) -> list[Property]:
    """Return the properties that are asked for: all on such a problem where none is given."""
    if given is None:
        return discovery.properties(type(problem))
    asked = [discovery.property_of(each) for each in given]
    for each in asked:
        if not isinstance(problem, each.problem):
            kind = each.problem.__name__
            wrong = f"{each.name} is a property on a {kind}, not on a {type(problem).__name__}"
            raise BadInput(wrong, place="properties", remedy=f"Leave it out, or give a {kind}")
    return asked
