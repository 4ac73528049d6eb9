"""Evidence for a line of the comparison: a certificate of the decision and of each verdict, or why there is none.

``proofs/verify.py`` decides what these certificates prove; nothing here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.certificates import Certificate, Extreme, Lie
from fairopt.compare import Row
from fairopt.errors import FairoptError, NotCapable
from fairopt.policy import Decision, Policy
from fairopt.problem import Market
from fairopt.program import Array, Sense
from fairopt.properties import Answer, MechanismProperty, Misreport, Property, Verdict
from fairopt.properties.witnesses import exactly


@dataclass(frozen=True)
class Piece:
    """What is certified ("decision", or a property by name) with its certificate, or the reason why it has none."""

    name: str
    certificate: Certificate | None = None
    reason: str = ""


def evidence(row: Row, properties: Sequence[Property | MechanismProperty]) -> Iterator[Piece]:
    """Yield the evidence for a row of the comparison: of the decision first, then of each verdict."""
    decision = row.decision
    if decision is None:
        yield Piece("decision", reason=f"nothing was decided: {row.error}")
        return
    yield _piece("decision", partial(row.policy.certify, decision))
    by_name = {each.name: each for each in properties}
    for name, verdict in row.verdicts.items():
        asked = by_name[name]
        if isinstance(asked, Property):
            yield _piece(name, partial(asked.certify, decision.market, decision.shares, verdict))
            continue
        for kind, each in (verdict.by_misreport or {"any": verdict}).items():
            yield _piece(f"{name}-{kind}", partial(certify_lie, row.policy, decision.market, each))


def certify_lie(policy: Policy, market: Market, verdict: Verdict) -> Lie:
    """Return the evidence that a lie pays: two certified decisions, or ranges over all optima where it always pays.

    Errors: `NotCapable` where nothing was refuted, or the decisions have no exact form or no certificate.
    """
    if verdict.answer is not Answer.FAILS:
        raise NotCapable("a search that finds nothing proves nothing")
    witness: Misreport = verdict.witness
    user = market.index(witness.user)
    truth, lying = exactly(policy, market), exactly(policy, market.misreport(user, witness.report))
    if not verdict.exact or truth is None or lying is None:
        raise NotCapable("the gain is that of decisions in floats, and floats prove nothing")
    if witness.every_optimum and policy.choices(truth) is not None:
        of_user = throughput_of(market, user)
        best = extreme(policy, truth, of_user, Sense.MAXIMIZE)
        worst = extreme(policy, lying, of_user, Sense.MINIMIZE)
        return Lie(market, policy.name, witness.user, witness.report, worst.value - best.value, best, worst)
    gain = market.utility(lying.shares)[user] - market.utility(truth.shares)[user]
    return Lie(market, policy.name, witness.user, witness.report, gain, policy.certify(truth), policy.certify(lying))


def extreme(policy: Policy, decision: Decision, weights: Array, sense: Sense) -> Extreme:
    """Return how far the sum of ``weights`` (n, k) times shares goes over all that an exact decision could have been.

    Errors: `NotCapable` where the policy has no choice or no certificate; those of the exact back end.
    """
    choices = policy.choices(decision)
    if choices is None:
        raise NotCapable(f"{policy.name} leaves no choice to range over")
    return Extreme.over(choices, weights, sense, policy.certify(decision), Exact().solve)


def throughput_of(market: Market, user: int) -> Array:
    """Return the weights (n, k) on shares whose sum is a user's throughput."""
    weights = np.full(market.shape, Fraction(0), dtype=object)
    weights[user] = market.speedup[user]
    return weights


def _piece(name: str, certify: Callable[[], Certificate]) -> Piece:
    try:
        return Piece(name, certify())
    except FairoptError as error:  # a line without a proof is said to have none, with the reason
        return Piece(name, reason=str(error))
