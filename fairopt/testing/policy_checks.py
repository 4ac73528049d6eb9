"""What the suites ask of all policies, whatever they decide: of what they declare and claim, and of their solvers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from fairopt.backends import Backend, Options
from fairopt.backends.solution import Status
from fairopt.codec import origin
from fairopt.compare import answered
from fairopt.discovery import BACKENDS, PROPERTIES, backend, names, property_
from fairopt.errors import NotCapable, NotSolved
from fairopt.policy import Claim, Policy, Trait, decide
from fairopt.properties import Answer, Effort, Verdict
from fairopt.testing.suite import Suite, Traits, checks_of, requires

#: The relative difference allowed between two computations: ten times the tolerance of the loosest backend.
AGREE = 1e-6
#: Seconds in which any policy decides on a small problem.
AMPLE = 600.0
#: What a suite is told of failures: a policy's name to {check: measured reason}.
Known = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class PolicySamples:
    """What a suite asks of policies: on which problems, what they make of these, and who judges that.

    ``some(policy)`` is a problem on which it decides; ``tried(policy, claim)`` are problems on which a claim must hold,
    with what it makes of them; ``decided(policy, problem)`` is that of a problem, ``shown(problem)`` the problem in
    words. ``sampled(policy)`` makes outcomes of sampled problems, ``count`` of them where the suite says how many;
    ``outcomes(policy)`` are these, made once and kept. ``judge`` decides of the document of an outcome. So many
    misreports are tried in ``searches`` where a claim is said to hold, and where it is said to be refuted.
    """

    some: Callable[[Policy], Any]
    tried: Callable[[Policy, Claim], Iterable[tuple[Any, Any]]]
    decided: Callable[[Policy, Any], Any] = lambda policy, problem: answered(problem, policy).outcome
    sampled: Callable[[Policy], Iterable[Any]] = lambda policy: ()
    judge: Callable[..., tuple[Sequence[str], str]] = lambda *_: ((), "")
    count: int = 12
    shown: Callable[[Any], str] = repr
    searches: tuple[int, int] = (15, 150)
    _made: dict[int, tuple[Policy, list[Any]]] = field(default_factory=dict, init=False)

    def outcomes(self, policy: Policy) -> list[Any]:
        """Return what the policy makes of the sampled problems."""
        if id(policy) not in self._made:
            self._made[id(policy)] = policy, list(self.sampled(policy))
        return self._made[id(policy)][1]


def says_what_it_is(policy: Policy) -> None:
    """Guards against plug-ins without a name or source, and against claims about properties that nobody defines."""
    assert policy.name
    assert policy.source
    assert all(isinstance(trait, Trait) for trait in policy.traits)
    unknown = {claim.property for claim in policy.checkable_claims} - set(names(PROPERTIES))
    assert not unknown, f"claims about {unknown}, which no installed property is called"
    assert all(claim.source and claim.said() for claim in policy.claims), "a claim without source, or without words"


@requires("claims")
def claims_hold(policy: Policy, given: PolicySamples) -> None:
    """Guards against claims that are taken over from a paper and do not hold: they do on generated problems."""
    for claim in policy.checkable_claims:
        for problem, outcome in given.tried(policy, claim) if claim.refuted_by is None else ():
            verdict = _verdict(claim, policy, problem, outcome, Effort(given.searches[0]))
            where = f"{claim.property} ({claim.source}) fails on {given.shown(problem)}"
            assert verdict.answer is not Answer.FAILS, f"{where}: {verdict.witness}"


@requires("refuted claims")
def refuted_claims_stay_refuted(policy: Policy, given: PolicySamples) -> None:
    """Guards against counterexamples that a change of the policy made meaningless."""
    for claim in policy.checkable_claims:
        if claim.refuted_by is not None:
            outcome = given.decided(policy, claim.refuted_by)
            verdict = _verdict(claim, policy, claim.refuted_by, outcome, Effort(given.searches[1]))
            assert verdict.answer is Answer.FAILS, f"{claim.source} was refuted, and now: {verdict}"


def keeps_time_limits(policy: Policy, given: PolicySamples) -> None:
    """Guards against options that are refused, and against a solver that is another, where there is a limit."""
    problem, status = given.some(policy), None
    try:
        decide(policy, problem, options=Options(time_limit=0))
    except NotSolved as over:
        status = over.solution.status
    assert status is Status.LIMIT, f"without any time: {status}"
    free, limited = decide(policy, problem), decide(policy, problem, options=Options(time_limit=AMPLE))
    assert repr(limited) == repr(free), f"{limited} with a limit, {free} without"


def check_written_down(policy: Policy) -> None:
    """Fail where an option has no default, or what is kept of a run of the policy cannot be written down."""
    kinds: list[Any] = [type(policy), *map(origin, policy.states)]
    for kind in kinds:
        assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
        assert kind.__dataclass_params__.frozen, f"{kind.__name__} is not frozen"  # type: ignore[union-attr]
    bare = [each.name for each in fields(policy) if each.default is each.default_factory is MISSING]  # type: ignore[arg-type]
    assert not bare, f"options without default: {bare}"


def suite_of(
    title: str,
    module: str,
    given: PolicySamples,
    expected_failures: Known | None,
    declared: Callable[[Policy], Iterable[Any]] = lambda policy: (),
) -> Suite[Policy]:
    """Return the suite of the checks of all policies and those of a module, on what is ``given``.

    ``declared`` returns what a policy declares besides its traits and claims, which checks may require.
    """
    known = expected_failures or {}

    def traits(policy: Policy) -> Traits:
        claims = ("claims" if claim.refuted_by is None else "refuted claims" for claim in policy.checkable_claims)
        capabilities = frozenset({*policy.traits, *claims, *declared(policy)})
        return Traits(policy.name, capabilities, "", known.get(policy.name, {}))

    return Suite(title, checks_of(sys.modules[__name__], sys.modules[module], given=given), traits)


def decided(policy: Policy, problem: Any, state: Any = None) -> Any:
    """Return what a pristine copy of a policy decides, after its own first state where none is given."""
    return decide(copy.deepcopy(policy), problem, state=state)


def solvers() -> Iterator[Backend]:
    """Yield the backends that are installed."""
    for name in names(BACKENDS):
        made = backend(name)
        if made.available():
            yield made


def answers(policy: Policy, problem: Any, *, state: Any = None) -> Iterator[Any]:
    """Yield what the installed backends and the policy's own methods make of a problem; who cannot is not asked."""
    for way in (*solvers(), *policy.methods):
        with suppress(NotCapable):
            yield decide(policy, problem, way, state=state)


def check_agreement(found: Mapping[str, float], problem: object) -> None:
    """Fail where answers to one problem, by the name of who gave them, differ."""
    least, most = min(found.values(), default=0.0), max(found.values(), default=0.0)
    assert most - least <= AGREE * (1 + abs(most)), f"{problem!r}: {found}"


def check_unchanged(now: Any, before: Any, name: str) -> None:
    """Fail where what a policy was given can be written or is not what it was."""
    if isinstance(now, np.ndarray):
        assert not now.flags.writeable, f"{name} can be written"
        assert now.dtype == before.dtype, f"{name} has changed"
        assert np.array_equal(now, before), f"{name} has changed"
    elif is_dataclass(now):
        for each in fields(now):
            check_unchanged(getattr(now, each.name), getattr(before, each.name), f"{name}.{each.name}")
    else:
        assert now == before, f"{name} has changed"


def backwards(found: Sequence[str], letter: str) -> tuple[str, ...]:
    """Return as many names, in the reverse of alphabetical order where the names were in order."""
    return tuple(f"{letter}{len(found) - at:04}" for at in range(len(found)))


def _verdict(claim: Claim, policy: Policy, problem: Any, outcome: Any, effort: Effort) -> Verdict:
    verdict = property_(claim.property).judge(policy, problem, outcome, effort=effort)
    return verdict.by_misreport.get(claim.misreport, verdict)
