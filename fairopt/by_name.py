"""What people call: policies and solvers by name, as a class, or as an object."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack, overload

from fairopt import discovery
from fairopt.backends import Options
from fairopt.deadline import only_a_part
from fairopt.discovery import AnyPolicy, AnySolver
from fairopt.errors import BadInput, type_of
from fairopt.policy import Allocation, Decision
from fairopt.policy import decide as decide_with
from fairopt.policy import uniqueness as uniqueness_with
from fairopt.policy.decide import How, within
from fairopt.policy.optima import lexicographic
from fairopt.problem import Market
from fairopt.report import Statement

if TYPE_CHECKING:
    from fairopt.policy import Plan, Schedule
    from fairopt.problem import Cluster, Queue, Trace
    from fairopt.problem.batch import Batch
    from fairopt.simulation import Mechanics, Round, Snapshot

_log = logging.getLogger(__name__)


def allocate(
    policy: AnyPolicy,
    problem: Market,
    backend: AnySolver = None,
    *,
    canonical: bool = False,
    exact: bool = False,
    time_limit: float | None = None,
    gap: float | None = None,
    tolerance: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Allocation:
    """Return what a share policy decides on a market: shares (n, k) in GPUs, for n users and k types.

    ``policy`` and ``backend`` may be names, as `fairopt policies` and `fairopt backends` list them. ``exact`` asks for
    rational numbers, by whatever solver has them; with one that computes in floats it is refused.
    ``time_limit``: seconds for all of it. The last four are the solver's, as `fairopt.backends.Options` has them.

    ``canonical`` asks for the lexicographic choice where several allocations are optimal: the largest utility for the
    first user, then for the second, and so on, then the largest shares in the same order. It does not depend on the
    solver. A policy that is a program is then solved to a vertex, by HiGHS or exactly.

    Errors: `BadInput` for unknown names; `NotCapable`, `NotInstalled`; `NotSolved`, which carries what was found.
    Source: that of the policy.

    >>> from fairopt import Market, allocate
    >>> allocate("oef-cooperative", Market.of([[1, 2], [1, 5]], capacity=[1, 1]), exact=True).utilities.tolist()
    [Fraction(3, 2), Fraction(15, 4)]
    """
    chosen = discovery.policy_of(policy, Market)
    solver = discovery.solver_of(chosen, backend)
    options = Options(time_limit=time_limit, gap=gap, tolerance=tolerance, seed=seed, threads=threads)
    with within(time_limit, solver.name if solver else chosen.name):
        decision = decide_with(chosen, problem, solver, options=options, exact=exact, vertex=canonical)
        _log.info("%r in %.3f s", decision, sum(vars(decision.seconds).values()))
        if not canonical:
            return decision
        begun = perf_counter()
        with only_a_part():
            shares = lexicographic(chosen, decision)
    seconds = replace(decision.seconds, solve=decision.seconds.solve + perf_counter() - begun)
    return replace(decision, shares=shares, seconds=seconds)


@overload
def decide(
    policy: AnyPolicy, problem: Market, solver: AnySolver = ..., state: Any = ..., **how: Unpack[How]
) -> Allocation: ...
@overload
def decide(
    policy: AnyPolicy, problem: Queue, solver: AnySolver = ..., state: Any = ..., **how: Unpack[How]
) -> Schedule: ...
@overload
def decide(
    policy: AnyPolicy, problem: Batch, solver: AnySolver = ..., state: Any = ..., **how: Unpack[How]
) -> Plan: ...
def decide(
    policy: AnyPolicy, problem: Any, solver: AnySolver = None, state: Any = None, **how: Unpack[How]
) -> Decision:
    """Return what a policy decides on a market (`Allocation`), a queue (`Schedule`) or a batch (`Plan`).

    ``policy`` and ``solver`` may be names. ``state`` is what the decision before left, None for none; ``how``:
    ``exact`` for rational numbers, and what `fairopt.policy.decide.How` has. Errors: as `allocate`.
    Source: that of the policy.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> decide("fcfs", astraea_example())
    <Plan: fcfs on <Batch: 4 jobs of 2 tenants on 4 servers>: 4 of 4 jobs run>
    """
    chosen = discovery.policy_of(policy)
    found: Decision = decide_with(chosen, problem, discovery.solver_of(chosen, solver), state, **how)
    return found


def uniqueness(policy: AnyPolicy, decision: Allocation, *, seed: int = 0) -> Statement:
    """Say whether all optima of a decision have the same utilities, and the same shares; None where it is not known.

    ``policy`` is who decided. Errors: `BadInput` for an unknown name, and for a policy that did not. Source: ours; a
    random linear function has equal extremes over all optima only where there is one, with probability 1.

    >>> from fairopt import Market, allocate, uniqueness
    >>> decision = allocate("max-efficiency", Market.of([[1, 2], [1, 2]], capacity=[1, 1]), exact=True)
    >>> print(uniqueness("max-efficiency", decision))
    unique utilities: no, another optimum has others; unique shares: no, another optimum has others
    """
    chosen = discovery.policy_of(policy, Market)
    if not isinstance(decision, Allocation) or decision.policy != chosen.name:
        got = f"one of {decision.policy}" if isinstance(decision, Decision) else f"a {type(decision).__name__}"
        raise BadInput(f"got {got}", place="decision", remedy=f"Give an allocation that {chosen.name} decided")
    return uniqueness_with(chosen, decision, seed=seed)


def run(
    policy: AnyPolicy,
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics | None = None,
    backend: AnySolver = None,
    exact: bool = False,
    rounds: int | None = None,
    after: Snapshot | None = None,
) -> Iterator[Round]:
    """Yield the record of each round of a trace of jobs on a cluster under a policy of rounds.

    ``policy`` and ``backend`` may be names. ``length`` is that of a round, in the trace's unit of time (seconds in
    files). ``exact`` decides in rational numbers, as in `allocate`. ``rounds`` is the most that are played, ``after`` a
    snapshot to go on from, ``mechanics`` what starting and moving jobs costs (nothing, by default). `History.of` holds
    the rounds of a run, for measures and tables.

    Errors: `BadInput` where trace and cluster do not fit; `WrongReturn` for an impossible decision; `NotSolved`.
    Source: that of the policy.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> next(run("srtf", philly_trace(), philly_cluster(), length=300))
    <Round: 0 of srtf, 0 to 300: 1 ran, 0 waited, 1 completed>
    """
    from fairopt.problem import Queue, Trace  # here, so that who shares a market loads no simulation
    from fairopt.simulation import run as run_with

    chosen = discovery.policy_of(policy, Queue)
    if not isinstance(trace, Trace):
        remedy = "Give a Trace; for one market after another there is fairopt.policy.decide_each"
        raise BadInput(f"got {type_of(trace)}", place="trace", remedy=remedy)
    if rounds is not None and not (isinstance(rounds, Integral) and rounds >= 0):
        raise BadInput(f"got {rounds}", place="rounds", remedy="Give a whole number, or None to play all of them")
    how: dict[str, Any] = {"mechanics": mechanics, "exact": exact, "rounds": rounds, "after": after}
    return run_with(chosen, trace, cluster, length=length, backend=discovery.solver_of(chosen, backend), **how)
