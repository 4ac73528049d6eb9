"""What the computations behind the ledger have in common: exact decisions, and how far shares go over all optima."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.certificates import Certificate, bound_of_optimum
from fairopt.evidence import extreme, throughput_of
from fairopt.policy import Allocation, Formulated, Policy
from fairopt.problem import Market
from fairopt.program import Array, Sense, on_shares
from fairopt.proofs.ledger.checking import found, proved
from fairopt.properties import AllocationProperty, Answer, Verdict


def exactly(policy: Policy, market: Market) -> Allocation:
    """Return a policy's exact decision."""
    return allocate(policy, market, exact=True)


def decide(policy: Policy, market: Market) -> Allocation:
    """Return the exact decision; its certificate has been accepted by ``proofs/verify.py``, else `NoLongerFollows`."""
    decision = exactly(policy, market)
    proved(policy.certify(decision))
    return decision


def extent(policy: Policy, decision: Allocation, weights: Array) -> tuple[Fraction, Fraction]:
    """Return the least and the largest sum of ``weights`` (n, k) times shares over all optima of an exact decision.

    Both ends are certified, and accepted by ``proofs/verify.py``. A policy that optimises nothing has one decision.
    """
    if policy.choices(decision) is None:
        value = Fraction((weights * decision.shares).sum())
        return value, value
    written = isinstance(policy, Formulated) and not policy.verifier_knows_program
    ends = extreme_as_written if written else extreme
    proofs = [ends(policy, decision, weights, sense) for sense in (Sense.MINIMIZE, Sense.MAXIMIZE)]
    for proof in proofs:
        proved(proof)
    return proofs[0].value, proofs[1].value


def extreme_as_written(policy: Policy, decision: Allocation, weights: Array, sense: Sense) -> Certificate:
    """Return how far the sum of ``weights`` times shares goes over all optima of a policy unknown to the verifier.

    The certificate holds the program as it was written, so that what it means is for its reader to see.
    """
    program = on_shares(found(policy.choices(decision), f"the optima of {policy.name}"), weights, sense)
    return bound_of_optimum(program, Exact().solve(program).require_optimal())


def of_share(market: Market, user: int, type: int) -> Array:
    """Return the weights (n, k) on shares whose sum is one share."""
    weights = np.full(market.shape, Fraction(0), dtype=object)
    weights[user, type] = Fraction(1)
    return weights


def extents(policy: Policy, decision: Allocation) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the least and the largest of every share, user by user and type by type, over all optima."""
    for user, type in np.ndindex(decision.market.shape):
        yield extent(policy, decision, of_share(decision.market, user, type))


def only_optimum(policy: Policy, decision: Allocation) -> bool:
    """Whether no other allocation is optimal: every share has the same value in all optima."""
    return all(low == high for low, high in extents(policy, decision))


def gains_of_lie(policy: Policy, market: Market, user: int, report: Sequence[Any]) -> tuple[Fraction, Fraction]:
    """Return what a report gains a user, by its true speedups: the least and the largest, whatever optima are chosen.

    The market has no demands that bind below what a user may hold.
    """
    true = throughput_of(market, user)
    before = extent(policy, decide(policy, market), true)
    after = extent(policy, decide(policy, market.misreport(user, report)), true)
    return after[0] - before[1], after[1] - before[0]


def with_demand(market: Market, most: object) -> Market:
    """Return the market in which nobody can use more than ``most`` GPUs at once, as Gavel's time fractions have it."""
    return replace(market, demand=np.full(len(market.users), Fraction(str(most)), dtype=object))


def checked(asked: AllocationProperty, market: Market, shares: Array) -> Verdict:
    """Return the exact verdict on exact shares; its certificate has been accepted by ``proofs/verify.py``."""
    verdict = asked.check(market, shares)
    proved(asked.certify(market, shares, verdict))
    return verdict


def holds(asked: AllocationProperty, market: Market, shares: Array) -> bool:
    """Whether shares have a property, exactly and certified."""
    return checked(asked, market, shares).answer is Answer.HOLDS
