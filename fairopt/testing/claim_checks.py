"""What suites ask of the declarations and claims of policies of rounds and of schedules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from fairopt.compare import answered
from fairopt.discovery import PROPERTIES, names, property_
from fairopt.policy import Claim, Policy, Trait
from fairopt.properties import Answer, Effort, Verdict

#: How many misreports a claim is searched with, where it is said to hold and where it is said to be refuted.
WHERE_IT_HOLDS, WHERE_IT_FAILS = Effort(15), Effort(150)


def declared(policy: Policy) -> frozenset[Any]:
    """Return the traits of a policy, and "claims" where it has some that can be checked."""
    return frozenset({*policy.traits, *(("claims",) if policy.checkable_claims else ())})


def check_declaration(policy: Policy) -> None:
    """Fail where a policy lacks name, source or defaults, can be changed, or claims what nobody defines."""
    assert policy.name
    assert policy.source
    assert all(isinstance(trait, Trait) for trait in policy.traits)
    for kind in (type(policy), *policy.states):
        assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
        assert kind.__dataclass_params__.frozen, f"{kind.__name__} is not frozen"  # type: ignore[attr-defined]
    bare = [each.name for each in fields(policy) if each.default is each.default_factory is MISSING]  # type: ignore[arg-type]
    assert not bare, f"options without default: {bare}"
    check_names(policy)


def check_names(policy: Policy) -> None:
    """Fail unless claims have a source, and either name an installed property or say what they are in words."""
    unknown = {claim.property for claim in policy.checkable_claims} - set(names(PROPERTIES))
    assert not unknown, f"claims about {unknown}, which no installed property is called"
    assert all(claim.source and claim.said() for claim in policy.claims), "a claim without source, or without words"


def check_claims(policy: Policy, decided: Iterable[tuple[Any, Any]]) -> None:
    """Fail where a claim does not hold on a problem, given with what the policy made of it."""
    for problem, outcome in decided:
        for claim in policy.checkable_claims:
            if claim.refuted_by is None:
                verdict = _verdict(claim, policy, problem, outcome, WHERE_IT_HOLDS)
                assert verdict.answer is not Answer.FAILS, f"{claim.source} fails on {problem!r}: {verdict}"


def check_refuted(policy: Policy) -> None:
    """Fail where what is said to refute a claim does not."""
    for claim in policy.checkable_claims:
        if claim.refuted_by is not None:
            row = answered(claim.refuted_by, policy)
            verdict = _verdict(claim, policy, claim.refuted_by, row.outcome, WHERE_IT_FAILS)
            assert verdict.answer is Answer.FAILS, f"{claim.source} was refuted, and now: {verdict}"


def _verdict(claim: Claim, policy: Policy, problem: Any, outcome: Any, effort: Effort) -> Verdict:
    return property_(claim.property).judge(policy, problem, outcome, effort=effort)
