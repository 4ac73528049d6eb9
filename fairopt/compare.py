"""The main job: policies side by side on one problem, and which properties hold for each, by how much, shown by what.

A problem is a `Market`, a `Setting` (a trace on a cluster) or a `Batch`. A property that cannot be decided is UNDECIDED
in its own cell, with the reason.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from textwrap import shorten
from time import perf_counter
from typing import Any, TypeAlias, overload

from fairopt import discovery
from fairopt.backends import Method, Solver
from fairopt.by_name import AnyPolicy
from fairopt.compared import Compared
from fairopt.errors import BadInput, FairoptError
from fairopt.metrics import Metrics, metrics
from fairopt.policy import Allocation, Plan, Policy, Uniqueness, decide, uniqueness
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch
from fairopt.problem.tables import Grid, Tabular
from fairopt.program import Number, short_text
from fairopt.properties import (
    AllocationProperty,
    Answer,
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

_log = logging.getLogger(__name__)
#: How a property may be given.
AnyProperty: TypeAlias = str | type[Property] | Property


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Row(Tabular, ABC):
    """One policy's line of the table: the verdicts on what it decided, and the error that stopped it, if one did.

    >>> from fairopt.datasets import oef_example
    >>> [row] = compare(oef_example(), ["max-min"], ["envy_freeness"])
    >>> row.policy.name, row.verdicts["envy_freeness"].holds, row.error
    ('max-min', False, None)
    """

    policy: Policy
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    error: FairoptError | None = None

    @property
    @abstractmethod
    def outcome(self) -> Any:
        """What the policy made of the problem; None where that could not be had."""

    def with_verdict(self, asked: Property, verdict: Verdict) -> Row:
        """Return the row with one more verdict."""
        return replace(self, verdicts={**self.verdicts, asked.name: verdict})

    @abstractmethod
    def _measured(self) -> Mapping[str, Number | None]:
        """Return the numbers that describe the outcome."""

    def __repr__(self) -> str:
        said = [] if self.error is None else [f"stopped: {self.error}"]
        for answer in reversed(Answer):  # what fails stands before what holds
            if names := [name for name, verdict in self.verdicts.items() if verdict.answer is answer]:
                said.append(f"{answer.value} {', '.join(names)}")
        words = f": {shorten('; '.join(said), 120)}" if said else ""
        return f"<{type(self).__name__}: {self.policy.name}{words}>"

    def _table(self) -> Grid:
        answers = {name: verdict.answer.value for name, verdict in self.verdicts.items()}
        margins = {f"{name}_margin": verdict.margin for name, verdict in self.verdicts.items()}
        return self._line({**answers, **margins, **self._measured()})

    def _shown(self) -> Grid:
        answers = {
            name: f"FAILS by {short_text(-each.margin)}" if each.holds is False and each.margin else each.answer.value
            for name, each in self.verdicts.items()
        }
        return self._line({**answers, **self._measured()})

    def _line(self, cells: Mapping[str, Any]) -> Grid:
        cells = cells if self.error is None else {**cells, "stopped": str(self.error)}
        return Grid("policy", [self.policy.name], {name: [cell] for name, cell in cells.items()})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AllocationRow(Row):
    """What a policy decided on a `Market`.

    ``over_optima``: whether each property holds for some and for every optimum, where that was asked for
    (``every_optimum``) and the policy had a choice.

    >>> from fairopt.datasets import oef_example
    >>> [row] = compare(oef_example(), ["max-min"], ["envy_freeness"])
    >>> row.decision
    <Allocation: max-min on <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>: objective 54/49, by exact in rationals>
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

    def _measured(self) -> Mapping[str, Number | None]:
        names = ("total_efficiency", "price_of_fairness", "jain_index") if self.metrics is not None else ()
        return {name: getattr(self.metrics, name) for name in names}

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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunRow(Row):
    """What came of a policy's run of a `Setting`; where it stopped, until then.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> [row] = compare(Setting(philly_cluster(), philly_trace()), ["srtf"], ["lease_kept"], rounds=3)
    >>> row.measures
    <Measures: 9 of 9 jobs completed in 3 rounds, jct_mean ≈105.466, finish_time_mean ≈2.69874, utilisation ≈0.00866662>
    """

    history: History
    measures: Measures

    @property
    def outcome(self) -> History:
        """The history."""
        return self.history

    def _measured(self) -> Mapping[str, Number | None]:
        return self.measures.row()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlanRow(Row):
    """What a policy decided on a `Batch`.

    >>> from fairopt.datasets import astraea_example
    >>> [row] = compare(astraea_example(), ["fcfs"], ["budget_balance"])
    >>> row.plan
    <Plan: fcfs on <Batch: 4 jobs of 2 tenants on 4 servers>: 4 of 4 jobs run>
    """

    plan: Plan | None = None

    @property
    def outcome(self) -> Plan | None:
        """The plan."""
        return self.plan

    def _measured(self) -> Mapping[str, Number | None]:
        return {} if self.plan is None else {"jobs_run": len(self.plan.schedules), "revenue": self.plan.revenue}


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
    exact: bool | None = None,
    every_optimum: bool = False,
) -> Row:
    row = AllocationRow(policy=policy, every_optimum=every_optimum)
    try:
        rational = problem.exact and (backend is None if exact is None else exact)
        decision = decide(policy, problem, backend, exact=rational)
        row = replace(row, decision=decision, metrics=metrics(problem, decision.shares))
        return replace(row, unique=uniqueness(policy, decision))
    except FairoptError as error:
        return replace(row, error=error)


@answered.register
def _(
    problem: Setting,
    policy: Policy,
    *,
    backend: Solver | Method | None = None,
    exact: bool = False,
    rounds: int | None = None,
    ideal: Ideal | None = None,
) -> Row:
    trace, cluster, stopped, records = problem.trace, problem.cluster, None, []
    how: dict[str, Any] = {"length": problem.length, "mechanics": problem.mechanics}
    try:
        for record in run(policy, trace, cluster, backend=backend, exact=exact, rounds=rounds, **how):
            records.append(record)
    except FairoptError as error:
        stopped = error
    history = History.of(trace, cluster, records)
    return RunRow(policy=policy, history=history, measures=measure(history, ideal=ideal), error=stopped)


@answered.register
def _(problem: Batch, policy: Policy, *, backend: Solver | Method | None = None, exact: bool = False) -> Row:
    try:
        return PlanRow(policy=policy, plan=decide(policy, problem, backend, exact=exact))
    except FairoptError as error:
        return PlanRow(policy=policy, error=error)


@overload
def compare(problem: Market, *asked: Any, **how: Any) -> Compared[AllocationRow]: ...
@overload
def compare(problem: Setting, *asked: Any, **how: Any) -> Compared[RunRow]: ...
@overload
def compare(problem: Batch, *asked: Any, **how: Any) -> Compared[PlanRow]: ...
def compare(
    problem: Any,
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    *,
    effort: Effort | None = None,
    **how: Any,
) -> Compared[Any]:
    """Yield a `Row` for each policy as soon as it is known: `AllocationRow`, `RunRow` or `PlanRow`.

    ``policies`` and ``properties``: objects, classes or names, one or several; None for all that are installed for such
    a problem.

    ``how`` says how a problem is decided. All kinds take ``backend``, which may be a name, and ``exact``. On a
    `Market`, programs are decided in rationals unless a ``backend`` is named or ``exact`` is False; ``every_optimum``
    asks of an exact decision that is not unique what holds over all optima. Of a `Setting` at most ``rounds`` are
    played, all by default; ``ideal`` is what finish-time fairness compares with.

    A policy that cannot answer does not stop the others. Searches come last, so that the cheap verdicts are there when
    one is stopped. ``.to_frame()`` of the result is the table of all rows. Errors: `BadInput` for unknown names, and
    for properties of another kind of problem. Source: those of the policies and properties.

    >>> from fairopt.datasets import oef_example
    >>> for row in compare(oef_example(), ["equal-split", "max-efficiency"], ["envy_freeness", "sharing_incentive"]):
    ...     print(row)
    <AllocationRow: equal-split: HOLDS envy_freeness, sharing_incentive>
    <AllocationRow: max-efficiency: FAILS envy_freeness, sharing_incentive>
    """
    return Compared(problem, _rows(problem, policies, properties, effort, how))


def _rows(problem: Any, policies: Any, properties: Any, effort: Effort | None, how: dict[str, Any]) -> Iterator[Any]:
    decided = Queue if isinstance(problem, Setting) else type(problem)
    if policies is None:
        policies = discovery.policies(decided)
    chosen = [discovery.policy_of(each, decided) for each in _several(policies)]
    backend = how.pop("backend", None)
    ordered = sorted(_asked(problem, properties), key=lambda each: isinstance(each, MechanismProperty))
    for policy in chosen:
        begun = perf_counter()
        row = answered(problem, policy, backend=discovery.solver_of(policy, backend), **how)
        for each in ordered if row.outcome is not None else ():
            try:
                verdict = each.judge(policy, problem, row.outcome, effort=effort)
            except FairoptError as error:
                verdict = Verdict.undecided(each.name, str(error))
            _log.debug("%s: %r", policy.name, verdict)
            row = row.with_verdict(each, verdict)
        _log.debug("%r", row.outcome)
        _log.info("%r in %.2f s", row, perf_counter() - begun)
        yield row


def verify(
    problem: Market | Setting | Batch,
    outcome: Any,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    *,
    tolerance: Number | None = None,
) -> dict[str, Verdict]:
    """Return the verdicts on anybody's outcome, by property name; ``properties`` as `compare` takes them.

    It is an allocation of a `Market` (or shares (n, k): an array, lists, a pandas table), a `History` of a `Setting`, a
    `Plan` of a `Batch`. Errors: `BadInput` for an outcome that is none of this problem. Source: those of the
    properties.

    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> verify(market, [[1, 0], [0, 1]], ["pareto_efficiency"])["pareto_efficiency"].holds
    True
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


def _several(given: Any) -> Iterable[Any]:
    """Return several policies or properties; one alone serves too."""
    return given if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _asked(problem: object, given: AnyProperty | Sequence[AnyProperty] | None) -> list[Property]:
    """Return the properties that are asked for: all on such a problem where none is given."""
    if given is None:
        if known := discovery.properties(type(problem)):
            return known
        remedy = "Give a Market, a Setting or a Batch"
        raise BadInput(f"got a {type(problem).__name__}", place="problem", remedy=remedy)
    asked = [discovery.property_of(each) for each in _several(given)]
    for each in asked:
        if not isinstance(problem, each.problem):
            kind = each.problem.__name__
            wrong = f"{each.name} is a property on a {kind}, not on a {type(problem).__name__}"
            raise BadInput(wrong, place="properties", remedy=f"Leave it out, or give a {kind}")
    return asked
