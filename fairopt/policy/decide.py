"""Who solves: `decide` chooses a backend or a method for a policy, and nothing else does.

So a verdict is always about the decision that is shown beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from fairopt.backends import Backend, Capability, Highs, Method, Options, Session
from fairopt.backends.exact import MOST_EXACT, Exact
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import answers_in_floats
from fairopt.deadline import left, remaining, time_limit
from fairopt.errors import BadInput, NotCapable, NotSolved, OutOfTime, require_returned, type_of
from fairopt.numbers import RATIONALS
from fairopt.policy.allocation import Allocation
from fairopt.policy.decision import Decision
from fairopt.policy.policy import Policy, Trait, require_policy
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.problem.ranges import unmeasured
from fairopt.program import INFINITY

if TYPE_CHECKING:
    from fairopt.policy.plan import Plan
    from fairopt.policy.schedule import Schedule
    from fairopt.problem import Queue
    from fairopt.problem.batch import Batch

_log = logging.getLogger(__name__)
#: Who may solve: a backend, or one of the policy's methods.
Chosen = Backend | Method


def chosen(
    policy: Policy,
    solver: Chosen | None = None,
    options: Options | None = None,
    *,
    exact: bool = False,
    vertex: bool = False,
    entitled: bool = False,
) -> Chosen:
    """Return who solves: ``solver`` if the policy can use it, else the policy's best way.

    The best way is the first of its methods that supports the ``options`` and, with ``exact``, does not answer in
    floats; else HiGHS, or `Exact` with ``exact``. A time limit does not count here, since `decide` keeps it. With
    ``vertex`` these two are tried first, because their answers have a basis. With ``entitled`` the problem has
    entitlements: a policy's methods solve its program without them, so that a backend is the best way (Clarabel, where
    HiGHS cannot).

    Errors: `NotCapable`; `BadInput` for a name in place of a solver.

    >>> from fairopt.models import MaxMin
    >>> chosen(MaxMin()).name, chosen(MaxMin(), exact=True).name, chosen(MaxMin(), Highs()).name
    ('prices', 'exact', 'highs')
    """
    require_policy(policy)
    given = (options or Options()).given().keys() - {Capability.TIME_LIMIT}
    if solver is not None:
        _refuse_unfit(policy, solver, given, exact=exact, entitled=entitled)
        return solver
    own = () if entitled and policy.has_program else policy.methods
    methods = [each for each in own if each.capabilities >= given and not (exact and answers_in_floats(each))]
    backends = _backends(policy, exact=exact, entitled=entitled)
    ways: list[Chosen] = [*backends, *methods] if vertex else [*methods, *backends]
    if ways:
        return ways[0]
    if policy.methods:
        _supports(policy, policy.methods[0], given)
    raise NotCapable(f"{policy.name} answers in floats only; do not ask for rational numbers")


def _backends(policy: Policy, *, exact: bool, entitled: bool) -> list[Backend]:
    """Return the backend that solves the policy's program where nobody names one; none where it has no program."""
    able: list[Backend] = [Exact() if exact else Highs()]
    if entitled and not policy.needs <= able[0].capabilities:
        from fairopt.backends.cvxpy import CLARABEL  # here, since few ask for it

        able = [CLARABEL]  # an answer in floats is refused by `decide`
    return [each for each in able if policy.has_program and policy.needs <= each.capabilities]


def _refuse_unfit(
    policy: Policy, solver: Chosen, given: AbstractSet[Capability], *, exact: bool, entitled: bool
) -> None:
    """Raise `NotCapable` where a policy cannot use the solver that somebody gave; `BadInput` for a name."""
    if isinstance(solver, str):
        remedy = "Give a backend: Highs(), or discovery.backend(name)"
        raise BadInput(f"got the name {solver!r}", place="backend", remedy=remedy)
    if isinstance(solver, Method):
        if solver not in policy.methods:
            known = ", ".join(method.name for method in policy.methods) or "none"
            raise NotCapable(f"{policy.name} has no method {solver!r}; it has {known}")
        if entitled and policy.has_program:
            remedy = "leave it out, or give a backend"
            raise NotCapable(f"{solver.name}, {policy.name}'s own method, supports no entitlements: {remedy}")
        _supports(policy, solver, given)
    elif not policy.has_program:
        without = f"it has no program for {solver.name}, so leave it out"
        raise NotCapable(f"{policy.name} is an algorithm of its own; {without}")
    if exact and answers_in_floats(solver):
        raise NotCapable(f"exact=True asks for rational numbers, and {solver.name} has floats: leave out one of them")


def can_be_exact(policy: Policy) -> bool:
    """Return whether a method of the policy, or the exact backend, answers in rational numbers."""
    by_program = policy.has_program and policy.needs <= Exact.capabilities
    return by_program or not all(map(answers_in_floats, policy.methods))


def session(
    policy: Policy,
    solver: Chosen | None = None,
    options: Options | None = None,
    *,
    exact: bool = False,
    vertex: bool = False,
    entitled: bool = False,
    warm: bool = False,
    start: Solution | None = None,
) -> Session:
    """Return a session of the `chosen` solver: for one decision or, with ``warm``, for many similar problems.

    Each begins near ``start``, an earlier answer.

    Errors: those of `chosen`.

    >>> from fairopt.models import MaxMin
    >>> session(MaxMin()).solver.name
    'prices'
    """
    found = chosen(policy, solver, options, exact=exact, vertex=vertex, entitled=entitled)
    _log.debug("%s: %s solves, %s", policy.name, found.name, "its best way" if solver is None else "as asked")
    if solver is None and not (options or Options()).given().keys() - {Capability.TIME_LIMIT}:
        options = replace(policy.solver_options, time_limit=options.time_limit if options else None)
    return Session(found, options, warm=warm, start=start)


class How(TypedDict, total=False):
    """How to decide: everything but the choice of solver.

    ``exact`` asks for rational numbers. ``vertex`` prefers a solver whose answers have a basis. ``at`` is an open
    session; it replaces the other settings.
    """

    options: Options | None
    exact: bool
    vertex: bool
    at: Session | None


@overload
def decide(policy: Policy, problem: Market, solver: Any = ..., state: Any = ..., **how: Unpack[How]) -> Allocation: ...
@overload
def decide(policy: Policy, problem: Queue, solver: Any = ..., state: Any = ..., **how: Unpack[How]) -> Schedule: ...
@overload
def decide(policy: Policy, problem: Batch, solver: Any = ..., state: Any = ..., **how: Unpack[How]) -> Plan: ...
def decide(
    policy: Policy, problem: Any, solver: Chosen | None = None, state: Any = None, **how: Unpack[How]
) -> Decision:
    """Return what ``policy`` decides on ``problem`` in ``state`` (None: its initial state).

    ``solver`` None means the policy's best way. Where that fails in floats, or may be wrong by more than rounding, a
    market of at most `MOST_EXACT` speedups is decided in rationals. `How` says what else may be asked.

    With ``exact`` the shares on a market are rationals: the policy's own (`Allocation.exact`) or, where these are
    irrational, as near to them as `Allocation.error` says. Where the policy has neither, that is refused.

    The time limit of the options is kept for every policy and whoever solves. Errors: `NotSolved` (carries what was
    found), `NotCapable`, `NotInstalled`, `BadInput`; `OutOfTime` at the end of a block of
    `fairopt.deadline.time_limit`.

    Source: that of the policy.

    >>> from fairopt.models import MaxMin
    >>> decide(MaxMin(), Market.of([[1, 2], [1, 5]], capacity=[1, 1]), exact=True).utilities.tolist()
    [Fraction(5, 3), Fraction(10, 3)]
    """
    if how.get("exact") and isinstance(problem, Market):
        problem = problem.as_(RATIONALS)  # floats are binary numbers, and these have an optimum
    decision: Decision = _decided(policy, problem, solver, state, **how)
    if how.get("exact") and isinstance(decision, Allocation) and not decision.arithmetic.exact:
        remedy = "leave out exact, or certificates, to get one in floats"
        raise NotCapable(f"no exact allocation of {policy.name} is known on this market; {remedy}")
    return decision


def exact_or_floats(policy: Policy, problem: Market, solver: Chosen | None = None) -> Allocation:
    """Return the decision in rationals where market and policy have one, else in floats; errors: those of `decide`.

    >>> from fairopt.models import MaxMin
    >>> exact_or_floats(MaxMin(), Market.of([[1, 2], [1, 5]], capacity=[1, 1])).utilities.tolist()
    [Fraction(5, 3), Fraction(10, 3)]
    """
    require_policy(policy)
    exact = isinstance(problem, Market) and problem.exact and can_be_exact(policy)
    decision: Allocation = _decided(policy, problem, solver, exact=exact)
    return decision


def _decided(policy: Policy, problem: Any, solver: Chosen | None = None, state: Any = None, **how: Any) -> Any:
    """Return what `decide` does, and an allocation in floats where ``exact`` finds no other."""
    require_policy(policy)
    if not isinstance(problem, policy.problem):
        remedy = f"Give a {policy.problem.__name__}, which is what it decides on"
        raise BadInput(f"got {type_of(problem)}", place=policy.name, remedy=remedy)
    if unknown := how.keys() - How.__annotations__.keys():
        raise TypeError(f"decide() got an unexpected keyword argument {min(unknown)!r}")
    if why := unsupported(policy, problem):
        raise NotCapable(why)
    at, entitled = how.get("at"), is_entitled(problem)
    options = how.get("options")
    asked = solver or at or (options or Options()).given().keys() - {Capability.TIME_LIMIT}
    if at is None:
        exact, vertex = how.get("exact", False), how.get("vertex", False)
        at = session(policy, solver, options, exact=exact, vertex=vertex, entitled=entitled)
    elif entitled:
        chosen(policy, at.solver, entitled=True)
    by_program = not entitled or policy.needs <= Exact.capabilities
    if not asked and by_program and answers_in_floats(at.solver) and Trait.EXACT in policy.traits:
        at.exact_fallback = isinstance(problem, Market) and problem.speedup.size <= MOST_EXACT
    with within(at.options.time_limit, solver.name if solver else policy.name):
        left()
        state = policy.start(problem) if state is None else state
        try:
            decision = policy.decide(problem, state, at)
        except (NotSolved, NotCapable) as failure:
            if not at.exact_fallback or remaining() <= 0:
                raise
            # nobody asked for this solver, and what floats say of numbers far apart is no fact about the market
            _log.info("%s: %s failed in floats (%s); now in rationals", policy.name, at.solver.name, failure)
            try:
                decision, at = _in_rationals(policy, problem, state, at, options)
            except (NotSolved, OutOfTime) as late:
                if (known := _until(failure, late)) is None:
                    raise
                if isinstance(late, NotSolved):
                    known.require_optimal()
                late.solution = known
                raise
    wanted = "an Allocation of a Market, a Schedule of a Queue, a Plan of a Batch"
    require_returned(isinstance(decision, Decision), decision, f"{type(policy).__name__}.decide", wanted)
    return replace(decision, solver=at.solver, asked=bool(asked or how.get("exact") or how.get("vertex")))


def _in_rationals(
    policy: Policy, problem: Any, state: Any, floats: Session, options: Options | None
) -> tuple[Decision, Session]:
    """Return the decision in rationals, and the session that made it.

    Guarantees in floats may add up to more than there is by rounding, which rationals do not allow; ``floats`` do.
    """
    entitled = is_entitled(problem)
    at = session(policy, options=options, exact=True, entitled=entitled)
    try:
        return policy.decide(problem, state, at), at
    except (BadInput, NotSolved) as failure:
        if not entitled or problem.exact:
            raise
        _log.info("%s: rationals fail, too (%s); now in floats, whatever rounding does", policy.name, failure)
    floats.exact_fallback = False
    return policy.decide(problem, state, floats), floats


def _until(floats: NotSolved | NotCapable, late: NotSolved | OutOfTime) -> Solution | None:
    """Return what ``floats`` have proven where rationals came to a limit before an answer; None where nothing."""
    known: Solution | None = floats.solution if isinstance(floats, NotSolved) else None
    found = late.solution
    # the optimum of one of several programs is none of the market's
    open_ = found is None or found.status in (Status.LIMIT, Status.OPTIMAL)
    if known is None or known.lower is None or not open_:
        return None
    return replace(known, status=Status.LIMIT, raw_status=f"bounds in floats; in rationals: {late}")


@contextmanager
def within(seconds: float | None, who: str) -> Iterator[None]:
    """Stop a decision of ``who`` after so many seconds with `NotSolved`, which carries what was found by then.

    Where the end is that of a block around this one, it stays `OutOfTime`.
    """
    try:
        with time_limit(seconds):
            yield
    except OutOfTime as over:
        if remaining() <= 0:
            raise
        found = over.solution
        if found is None or found.status is Status.OPTIMAL:  # of one of several programs
            found = Solution(Status.LIMIT, str(over), who)
        found.require_optimal()
        raise


def unsupported(policy: Policy, problem: Any) -> str:
    """Return why ``policy`` does not decide on a market with these entitlements or demands; "" where it does.

    >>> from fairopt.models import MaxMin
    >>> unsupported(MaxMin(), Market.of([[1, 2]], capacity=[1, 1]))
    ''
    """
    require_policy(policy)
    needs_some = Trait.ENTITLED in policy.traits
    if not isinstance(problem, Market):
        return ""
    if Trait.NO_DEMANDS in policy.traits and (problem.limit < INFINITY).any():
        user = problem.users[int(np.argmax(problem.limit < INFINITY))]
        return f"{policy.name} does not support demands, and {user} has one; leave demands out"
    if problem.entitlements is None:
        why = f"{policy.name} decides by entitlements, and this market says none; give guarantees, caps or gangs"
        return why if needs_some else ""
    if missed := sorted(each.value for each in problem.entitlements.said - policy.supports):
        remedy = "leave these out" if needs_some else "Market.plain() leaves entitlements out"
        return f"{policy.name} does not support {', '.join(missed)}, which this market has; {remedy}"
    if not needs_some and problem.entitlements.rate is None and (unknown := unmeasured(problem)):
        remedy = "give them, bounds, or a rate of each type"
        return f"{policy.name} decides by speedups, and those of {unknown[0]} are not known; {remedy}"
    return ""


def follow(policy: Policy, solver: Chosen | None = None, *, exact: bool = False) -> Callable[[Market], Allocation]:
    """Return a function that decides one market after another, each with a warm start from the one before.

    Users are matched by name. Where optima tie, its choice may differ from that of `decide`.

    Errors: those of `decide`.

    >>> from fairopt.models import CooperativeOEF
    >>> decide_next = follow(CooperativeOEF(), exact=True)
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> print(decide_next(market).objective, decide_next(market.misreport("u1", [1, 3])).objective)
    21/4 16/3
    """
    opened: list[Session] = []

    def decide_next(problem: Market) -> Allocation:
        if not opened:
            opened.append(session(policy, solver, exact=exact, entitled=is_entitled(problem), warm=True))
        return decide(policy, problem, at=opened[0])

    return decide_next


def decide_each(
    policy: Policy, problems: Iterable[Any], solver: Chosen | None = None, *, exact: bool = False
) -> Iterator[Decision]:
    """Yield the decisions on successive problems; each starts from the state that the one before left.

    Errors: those of `decide`.

    >>> from fairopt.models import EqualSplit
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> [len(each.shares) for each in decide_each(EqualSplit(), [market, market.without("u1")])]
    [2, 1]
    """
    state = None
    for problem in problems:
        decision = decide(policy, problem, solver, state, exact=exact)
        yield decision
        state = decision.state


def _supports(policy: Policy, method: Method, given: AbstractSet[Capability]) -> None:
    if ignored := sorted(capability.value for capability in given - method.capabilities):
        raise NotCapable(f"{policy.name} is computed by its own algorithm, which has no use for {', '.join(ignored)}")
