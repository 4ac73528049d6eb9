"""`compare`: what policies decide on one problem, and which properties it has.

A problem is a `Market`, a `Setting` (a trace on a cluster) or a `Batch`. A property that cannot be decided is UNDECIDED
in its own cell, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from time import perf_counter
from typing import Any, overload

from fairopt import discovery
from fairopt.backends import Backend, Method
from fairopt.compare.answer import answer
from fairopt.compare.rows import Compared, Row
from fairopt.compare.verifying import asked_properties, measured
from fairopt.deadline import time_limit
from fairopt.discovery import AnyPolicy, AnyProperty, AnySolver
from fairopt.errors import BadInput, FairoptError, require, type_of
from fairopt.policy import Allocation, Plan, Policy, Trait, decide, uniqueness, unsupported
from fairopt.policy.decide import exact_or_floats
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch
from fairopt.properties import AllocationProperty, Answer, Effort, MechanismProperty, Property, Verdict
from fairopt.properties.metrics import metrics
from fairopt.simulation import History, Setting, run
from fairopt.simulation.gpu_time import IdealTime, time_on_own_part
from fairopt.simulation.measures import measure

_log = logging.getLogger(__name__)
#: How long misreports are searched for under each policy, where nobody says.
SEARCH = Effort(seconds=60.0)
#: The first cell of a row.
DECISION = "decision"


def answered(problem: Any, policy: AnyPolicy, **how: Any) -> Row[Any]:
    """Return a row without verdicts; how each kind of problem is decided stands in `compare`, errors in the row.

    ``policy`` and ``backend`` may be names. Errors: `BadInput` for what is no problem, policy or backend.

    >>> from fairopt.datasets import oef_example
    >>> answered(oef_example(), "max-min").outcome.objective
    Fraction(54, 49)
    """
    chosen = discovery.policy_of(policy)
    return _row_of(problem, chosen, **how | {"backend": discovery.solver_of(chosen, how.get("backend"))})


@singledispatch
def _row_of(problem: Any, policy: Policy, **how: Any) -> Row[Any]:
    raise BadInput(f"got {type_of(problem)}", place="problem", remedy="Give a Market, a Setting or a Batch")


@_row_of.register
def _on_market(
    problem: Market,
    policy: Policy,
    *,
    backend: Backend | Method | None = None,
    exact: bool | None = None,
    unique: bool = False,
    every_optimum: bool = False,
) -> Row[Allocation]:
    row: Row[Allocation] = Row(policy=policy, every_optimum=every_optimum)
    try:
        wanted = backend is None if exact is None else exact
        decision = (exact_or_floats if wanted else decide)(policy, problem, backend)
        found = metrics(problem, decision.shares)
        numbers = {name: getattr(found, name) for name in ("total_efficiency", "price_of_fairness", "jain_index")}
        row = replace(row, outcome=decision, metrics=found, numbers=numbers)
        return replace(row, unique=uniqueness(policy, decision)) if unique or every_optimum else row
    except FairoptError as error:
        return replace(row, error=error)


@_row_of.register
def _on_setting(
    problem: Setting,
    policy: Policy,
    *,
    backend: Backend | Method | None = None,
    exact: bool = False,
    rounds: int | None = None,
    ideal: IdealTime = time_on_own_part,
) -> Row[History]:
    trace, cluster, stopped, records = problem.trace, problem.cluster, None, []
    how: dict[str, Any] = {"length": problem.length, "mechanics": problem.mechanics}
    try:
        for record in run(policy, trace, cluster, backend=backend, exact=exact, rounds=rounds, **how):
            records.append(record)
    except FairoptError as error:
        stopped = error
    history = History.of(trace, cluster, records)
    found = measure(history, ideal=ideal)
    return Row(policy=policy, outcome=history, metrics=found, numbers=found.row(), error=stopped)


@_row_of.register
def _on_batch(
    problem: Batch, policy: Policy, *, backend: Backend | Method | None = None, exact: bool = False
) -> Row[Plan]:
    try:
        plan = decide(policy, problem, backend, exact=exact)
        return Row(policy=policy, outcome=plan, numbers={"jobs_run": len(plan.schedules), "revenue": plan.revenue})
    except FairoptError as error:
        return Row(policy=policy, error=error)


@overload
def compare(problem: Market, *asked: Any, **how: Any) -> Compared[Allocation]: ...
@overload
def compare(problem: Setting, *asked: Any, **how: Any) -> Compared[History]: ...
@overload
def compare(problem: Batch, *asked: Any, **how: Any) -> Compared[Plan]: ...
def compare(
    problem: Any,
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    *,
    effort: Effort = SEARCH,
    limit: float | None = None,
    watch: Callable[[Policy, str], None] = lambda policy, cell: None,
    backend: AnySolver = None,
    error: object = None,
    **how: Any,
) -> Compared[Any]:
    """Yield a `Row` for each policy as soon as it is known.

    ``policies`` and ``properties``: objects, classes or names, one or several; None for all that are installed for such
    a problem, except those in the result's ``left_out``, see `left_out`.

    ``how`` says how a problem is decided. All kinds take ``backend``, which may be a name, and ``exact``. A `Market` of
    rationals is decided in rationals unless a ``backend`` is named; with ``exact`` False it becomes one of floats:
    faster, and within a tolerance. ``unique`` asks whether each decision is the only optimum; ``every_optimum`` asks
    this too and, where an exact decision is not, what holds over all optima. Of a `Setting` at most ``rounds`` are
    played, all by default; ``ideal`` is what finish-time fairness compares with.

    ``error`` says how exactly the speedups of a `Market` were measured, such as "5%". Policies decide by the speedups
    that are stated, robust ones by the ranges; verdicts are then for all true speedups within them.

    A policy that cannot answer does not stop the others. Searches come last, so that the cheap verdicts are there when
    one is stopped; each ends after a minute, or as ``effort`` says. ``limit``: most seconds for a decision, and for
    each property, which is UNDECIDED after them; a search has those of its ``effort`` as well. ``watch`` is told of
    each cell before it is computed. ``.to_frame()`` of the result is the table of all rows. Errors: `BadInput` for
    unknown names, and for properties of another kind of problem. Source: those of the policies and properties.

    >>> from fairopt.datasets import oef_example
    >>> for row in compare(oef_example(), ["equal-split", "max-efficiency"], ["envy_freeness", "sharing_incentive"]):
    ...     print(row)
    <Row: equal-split: HOLDS envy_freeness, sharing_incentive>
    <Row: max-efficiency: FAILS envy_freeness, sharing_incentive>
    """
    decided = decided_on(problem)
    problem = measured(problem, error)
    others: dict[str, str] = {}
    if policies is None:
        installed = discovery.policies(decided)
        others = left_out(installed, problem)
        policies = [each for each in installed if asked_of(each, problem)]
    chosen = discovery.policies_of(policies, decided)
    solvers = [discovery.solver_of(each, backend) for each in chosen]
    asked = sorted(asked_properties(problem, properties), key=lambda each: isinstance(each, MechanismProperty))
    require(isinstance(effort, Effort), effort, "effort", "Give an Effort(evaluations=..., seconds=...)")
    if isinstance(problem, Market) and how.get("exact") is False:
        problem = problem.as_(float)
    rows = _rows(problem, zip(chosen, solvers, strict=True), asked, effort, limit, watch, **how)
    return Compared(problem, rows, lambda known: answer(problem, known, asked), others)


def decided_on(problem: object) -> type:
    """Return what policies decide on, where they are compared on ``problem``: a Queue of a Setting, else the same.

    >>> from fairopt.datasets import oef_example
    >>> decided_on(oef_example()).__name__
    'Market'
    """
    return Queue if isinstance(problem, Setting) else type(problem)


def asked_of(policy: AnyPolicy, problem: Any) -> bool:
    """Whether a policy, which may be a name, is compared on a problem where nobody names it.

    >>> from fairopt.datasets import oef_example
    >>> asked_of("max-min", oef_example())
    True
    """
    made = discovery.policy_of(policy)
    return made.asked_of(problem) and not _why_not(made, problem)


def left_out(policies: AnyPolicy | Iterable[AnyPolicy], problem: Any) -> dict[str, str]:
    """Return by name those of ``policies`` that are not compared on a problem where nobody names them, and why.

    Such take long, or do not support what a market states. Rules of schedulers where nobody states entitlements, and
    policies for ranges where there are none, are not told: the question does not arise.

    >>> from fairopt.problem import Market
    >>> market = Market.of([[i + j * j + 1 for j in range(11)] for i in range(10)], capacity=[1] * 11)
    >>> list(left_out(discovery.policies(Market), market))
    ['oef-efficient']
    """
    unentitled = isinstance(problem, Market) and problem.entitlements is None
    arises = [
        each
        for each in discovery.policies_of(policies)
        if each.asked_of(problem) and not (unentitled and Trait.ENTITLED in each.traits)
    ]
    return {each.name: why for each in arises if (why := _why_not(each, problem))}


def _why_not(policy: Policy, problem: Any) -> str:
    return unsupported(policy, problem) or policy.only_named(problem)


def _rows(
    problem: Any,
    chosen: Iterable[tuple[Policy, Backend | Method | None]],
    ordered: Sequence[Property],
    effort: Effort,
    limit: float | None,
    watch: Callable[[Policy, str], None],
    **how: Any,
) -> Iterator[Any]:
    decided: list[tuple[Allocation, dict[str, Verdict]]] = []
    for policy, solver in chosen:
        watch(policy, DECISION)
        began = perf_counter()
        with time_limit(limit):
            row = _row_of(problem, policy, backend=solver, **how)
        seconds = {DECISION: perf_counter() - began}
        _log.debug("%r in %.3f s", row.outcome, seconds[DECISION])
        known = next((found for other, found in decided if _same(other, row.outcome, problem)), {})
        if not known and isinstance(row.outcome, Allocation):
            decided.append((row.outcome, known))
        for each in ordered if row.outcome is not None else ():
            watch(policy, each.name)
            began = perf_counter()
            searches = (effort.seconds or 0) if isinstance(each, MechanismProperty) else 0
            with time_limit(None if limit is None else limit + searches):
                try:
                    found = known.get(each.name)
                    verdict = each.judge(policy, problem, row.outcome, effort=effort) if found is None else found
                except FairoptError as error:
                    verdict = Verdict.undecided(each.name, str(error))
                if isinstance(each, AllocationProperty) and verdict.answer is not Answer.UNDECIDED:
                    known[each.name] = verdict
                row = row.with_verdict(each, verdict)
            seconds[each.name] = perf_counter() - began
            _log.debug("%s: %r in %.3f s", policy.name, verdict, seconds[each.name])
        _log.info("%r in %.2f s", row, sum(seconds.values()))
        yield replace(row, seconds=seconds)


def _same(decision: Allocation, outcome: Any, problem: Market) -> bool:
    """Whether what is said of the shares of one decision is so of another outcome, without being computed again."""
    return (
        isinstance(outcome, Allocation)
        and all(each.leaves(problem) is problem and not each.error for each in (decision, outcome))
        and decision.arithmetic is outcome.arithmetic
        and bool((decision.shares == outcome.shares).all())
    )
