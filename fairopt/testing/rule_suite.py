"""The conformance suite of policies that decide by entitlements: the rules of schedulers, and fair sharing in groups.

>>> from fairopt.testing.rule_suite import installed
>>> "kueue" in [policy.name for policy in installed()]
True
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.by_name import allocate
from fairopt.discovery import policies
from fairopt.errors import BadInput, NotCapable
from fairopt.policy import Allocation, DecisionReason, Policy, Trait
from fairopt.policy.decide import exact_or_floats
from fairopt.problem import Entitled, Market
from fairopt.problem.gangs import PENDING
from fairopt.program import Number
from fairopt.testing.policy_checks import Known, PolicySamples, suite_of
from fairopt.testing.samples import entitled_markets, only, stated
from fairopt.testing.suite import Suite, requires

__all__ = ["rule_suite"]


def rule_suite(expected_failures: Known | None = None) -> Suite[Policy]:
    """Return the suite; ``expected_failures`` maps a policy's name to {check: measured reason}.

    >>> [each.name for each in rule_suite().checks][:2]
    ['says what it is', 'claims hold']
    """
    given = PolicySamples(
        some=lambda policy: next(_decisions(policy, 40))[0],
        tried=lambda policy, claim: _decisions(policy, 12, seed=13),
    )
    return suite_of("rules", __name__, given, expected_failures, _declared)


def installed() -> list[Policy]:
    """Return one of each installed policy that decides by entitlements."""
    return [policy for policy in policies(Market) if Trait.ENTITLED in policy.traits]


def _markets(policy: Policy, count: int, seed: int) -> Iterator[Market]:
    """Yield markets that say what the policy supports; every second one has reserves as large as the guarantees."""
    for number, whole in enumerate(entitled_markets(count, seed=seed)):
        market = only(whole, policy.supports)
        owed = stated(market)
        yield market if number % 2 else replace(market, entitlements=replace(owed, reserve=owed.guarantee))


def _declared(policy: Policy) -> set[Any]:
    grounds = any(isinstance(found.evidence, DecisionReason) for _, found in _decisions(policy, 20))
    return set(policy.supports) | ({"grounds"} if grounds else set())


def _decisions(policy: Policy, count: int, seed: int = 0) -> Iterator[tuple[Market, Allocation]]:
    """Yield decisions; a rule starts from what is held, which may be more than it would ever give."""
    for market in _markets(policy, count, seed):
        with suppress(BadInput, NotCapable):  # guarantees that contradict caps, or that a rule cannot say
            yield market, (exact_or_floats if Trait.EXACT in policy.traits else allocate)(policy, market)


def refuses_a_market_without_entitlements(policy: Policy) -> None:
    """Guards against a rule that makes up what nobody said."""
    said = ""
    try:
        allocate(policy, next(entitled_markets(1)).plain())
    except NotCapable as refusal:
        said = str(refusal)
    assert policy.name in said, "it decides where nothing is said"


def refuses_what_it_does_not_support(policy: Policy) -> None:
    """Guards against an answer that breaks what the policy never looked at."""
    for market in entitled_markets(10, seed=9):
        missed, said = stated(market).said - policy.supports, ""
        if missed:
            try:
                allocate(policy, market)
            except NotCapable as refusal:
                said = str(refusal)
            assert all(each.value in said for each in missed), f"{said!r} on {market}"


def answers_some_market(policy: Policy) -> None:
    """Guards against a suite that checks nothing, since every market was refused."""
    assert len(list(_decisions(policy, 40))) >= 3


def gives_out_no_more_than_there_is(policy: Policy) -> None:
    """Guards against overbooked types; what was held before may stay."""
    for market, found in _decisions(policy, 30, seed=1):
        held = stated(market).held[:, : len(market.types)].sum(axis=0)
        given = found.shares.sum(axis=0)
        assert (given <= np.maximum(market.capacity, held) + _slack(found)).all(), f"{given} on {market}"
        assert (found.shares >= -_slack(found)).all()


@requires(Entitled.CAPS)
def keeps_caps(policy: Policy) -> None:
    """Guards against more than a user or a group may hold; what was held before may stay."""
    for market, found in _decisions(policy, 30, seed=2):
        owed, k = stated(market), len(market.types)
        given, held = owed.total(found.shares), owed.total(owed.held[:, :k])
        most = np.maximum(owed.cap[:, :k], held)
        assert (given <= most + _slack(found)).all(), f"{given.tolist()} over {most.tolist()} on {market}"


def leaves_the_market_alone(policy: Policy) -> None:
    """Guards against rules that write into their input."""
    for market in _markets(policy, 5, 3):
        before = copy.deepcopy(market)
        with suppress(BadInput, NotCapable):
            allocate(policy, market)
        assert market == before


def decides_the_same_twice(policy: Policy) -> None:
    """Guards against unseeded randomness, and against state kept in the object."""
    for market, found in _decisions(policy, 10, seed=4):
        again = exact_or_floats(policy, market)
        assert np.array_equal(again.shares, found.shares)


@requires("grounds")
def shares_are_what_the_gangs_and_the_rest_hold(policy: Policy) -> None:
    """Guards against an answer and grounds that speak of different decisions."""
    for market, found in _decisions(policy, 20, seed=5):
        owed, grounds = stated(market), found.evidence
        after = owed.running(grounds.gangs).held[:, : len(market.types)]
        assert np.array_equal(after, found.shares), f"{after.tolist()} and {found.shares.tolist()} on {market}"
        assert grounds.gangs.names == owed.gangs.names


@requires("grounds")
def says_why_a_gang_waits_or_was_stopped(policy: Policy) -> None:
    """Guards against users who are not told why they have nothing."""
    for market, found in _decisions(policy, 20, seed=6):
        before, after = stated(market).gangs, found.evidence.gangs
        for at, name in enumerate(before.names):
            ran, runs = before.on[at] != PENDING, after.on[at] != PENDING
            assert runs or ran or found.evidence.waits.get(name), f"{name} waits, and nobody says why: {market}"
            assert runs or not ran or found.evidence.stopped.get(name), f"{name} was stopped without a word"
            assert runs or before.preemptible[at] or not ran, f"{name} was stopped, and may not be"
            assert not runs or before.allowed[at, after.on[at]], f"{name} runs where it may not"


@requires("grounds")
def names_those_it_compares(policy: Policy) -> None:
    """Guards against values that nobody can look up, and against what is owed in another shape."""
    for market, found in _decisions(policy, 10, seed=7):
        owed, grounds = stated(market), found.evidence
        assert grounds.unit
        assert set(grounds.share) <= set(owed.nodes)
        assert grounds.owed is None or grounds.owed.shape == (len(owed.nodes), len(market.types))


@requires(Trait.EXACT)
def float_agrees_with_fraction(policy: Policy) -> None:
    """Guards against rules that are right in one number type only."""
    for market, found in _decisions(policy, 15, seed=8):
        assert found.exact, "declares exact decisions"
        floats = allocate(policy, market.as_(float))
        assert np.allclose(floats.utilities.astype(float), found.utilities.astype(float)), f"on {market}"


def _slack(found: Allocation) -> Number:
    return found.arithmetic.tolerance(1e-6) * (1 + float(np.abs(found.shares).max()))
