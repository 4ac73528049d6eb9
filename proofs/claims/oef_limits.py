"""OEF Sec. 3.1.2: what optimal efficiency costs. An impossibility is proved by a market on which every choice fails."""

from __future__ import annotations

import json
from fractions import Fraction

from fairopt.backends.exact import Exact
from fairopt.ledger import Finding, Ruling
from fairopt.models import CooperativeOEF, MaxEfficiency
from fairopt.policy import Formulated, allocate
from fairopt.problem import Market
from fairopt.program import Sense
from fairopt.proofs.claims.citing import bounded, counterexample, rows, speedups, theorem
from fairopt.proofs.claims.measuring import extent, gains_of_lie
from fairopt.proofs.claims.proving import (
    SharingIncentiveEfficiency,
    below_fair_share,
    envious,
    extreme_of_bare,
    of_share,
    rewarded_above_fair_shares,
)
from fairopt.proofs.claims.searching import Untruth
from fairopt.proofs.verify import verify

ENVY_FREE, FAIR_SHARES, ALONE = CooperativeOEF(), SharingIncentiveEfficiency(), MaxEfficiency()
LARGER = "reports nowhere smaller than the truth, as Sec. 2.3.1 (1) has it"


def not_envy_free_and_strategy_proof() -> Finding:
    """Theorem 3.2: envy-freeness and strategy-proofness exclude each other at optimal efficiency."""
    stored = counterexample("oef-thm3.2")
    market, report = stored.market, stored.table("report").tolist()
    user = market.index(stored.data["user"])
    least, most = gains_of_lie(ENVY_FREE, market, user, report)
    nobody = envious(ALONE)(market)
    assert stored.policy == ENVY_FREE.name
    assert all(told >= true for told, true in zip(report, market.speedup[user], strict=True))
    if nobody is None or least != stored.number("gain") or least <= 0:
        return Finding(Ruling.OPEN, "The stored certificate and the decisions disagree.")
    verify(nobody[""].to_json())
    return Finding(
        Ruling.PROVED,
        f"By one market that no such rule can pass: {speedups(market)}. If optimal means the largest total among "
        f"envy-free allocations, {market.users[user]} gains {_span(least, most)} by reporting {rows([report])}, "
        f"whatever optimum the rule takes before and after (oef-thm3.2; {LARGER}). If it means the largest total of "
        "all, Eq. (4), no optimum is envy-free there to begin with (certified). The printed proof argues from Lemma "
        "3.1, which is false as stated.",
    )


def not_sharing_incentive_and_strategy_proof() -> Finding:
    """Theorem 3.3: the same for sharing incentive."""
    truth, lie = (counterexample(f"oef-thm3.3-{which}") for which in ("truth-most", "lie-least"))
    market, user, report = Market.of([[1, 2], [1, 4]], [1, 1]), 0, (1, 3)
    again = rewarded_above_fair_shares(Untruth(market, user, report))
    if again is None:
        return Finding(Ruling.OPEN, "The lie is not rewarded.")
    for name, certificate in again.items():  # the stored bare programs are those of this market and this lie
        written = json.loads(json.dumps(certificate.to_json()))
        stored = counterexample(f"oef-thm3.3-{name}").data
        assert written["program"] == stored["program"], name
        assert written["value"] == stored["value"], name
    gain = lie.number("value") - truth.number("value")
    below = below_fair_share(ALONE)(market)
    if below is None or gain <= 0:
        return Finding(Ruling.OPEN, "The stored certificates and the decisions disagree.")
    verify(below[""].to_json())
    return Finding(
        Ruling.PROVED,
        f"By one market that no such rule can pass: {speedups(market)}. If optimal means the largest total among "
        f"allocations that give everybody its fair share, {market.users[user]} truly gets at most "
        f"{truth.number('value')} by telling the truth and at least {lie.number('value')} by reporting "
        f"{rows([report])}, whatever optimum the rule takes (oef-thm3.3-truth-total, -truth-most, -lie-total, "
        f"-lie-least; {LARGER}). If it means the largest total of all, Eq. (4), every optimum leaves somebody below "
        "its fair share there to begin with (certified).",
    )


def from_the_left() -> Finding:
    """Lemma 3.1: the slowest user fills the types from the slowest on."""
    some, most = (counterexample(f"oef-lemma3.1-cooperative-{which}") for which in ("least-T3", "most-T2"))
    market = some.market
    assert most.market == market
    assert some.policy == most.policy == ENVY_FREE.name
    assert (some.table("weights") == of_share(market, 0, 2)).all()
    assert (most.table("weights") == of_share(market, 0, 1)).all()
    found = {policy.name: _ends(policy, market) for policy in (ENVY_FREE, FAIR_SHARES)}
    false = all(least > 0 and high < market.capacity[1] for least, high in found.values())
    if not false or found[ENVY_FREE.name] != (some.number("value"), most.number("value")):
        return Finding(Ruling.OPEN, "The stored certificates and the decisions disagree.")
    alone = theorem("Exchange", "max_total_held_by_fastest")
    ratios = theorem("Exchange", "least_ratios_fill_from_left")
    shares = theorem("Exchange", "max_total_sharing_incentive_pareto_efficient")
    equal = theorem("EqualEfficiency", "noncooperative_oef_pareto_efficient")
    envy_free = bounded("lemma3.1-coop-ratios", "2x2", "2x3", "3x2")
    sizes = {name: f"{least} of T3 and at most {high} of T2" for name, (least, high) in found.items()}
    return Finding(
        Ruling.QUALIFIED,
        "It depends on what is optimal and on who is slowest. Slowest meaning the least speedup on every type, as "
        "the proof says: at the largest total alone, Eq. (4), it holds emptily, since that user gets nothing on "
        f"which another is faster ({alone}); with the constraints for which the lemma is used it is false. On "
        f"{speedups(market)}, u1 is the slowest and holds, in every optimum, at least {sizes[ENVY_FREE.name]} among "
        f"envy-free allocations (oef-lemma3.1-cooperative-least-T3, -most-T2), at least {sizes[FAIR_SHARES.name]} "
        "with sharing incentive. Slowest meaning the strictly least ratio between any two types, it is true of every "
        f"Pareto-efficient allocation, with positive speedups ({ratios}), so of the largest total with sharing "
        f"incentive ({shares}) and of the non-cooperative mode ({equal}); among envy-free allocations for two users "
        "and up to three types, and for three users and two types with one GPU of each type and speedups that rise "
        f"({envy_free}).",
    )


def _ends(policy: Formulated, market: Market) -> tuple[Fraction, Fraction]:
    """Return the least that the first user holds of the third type, and the most of the second, over all optima."""
    decision = allocate(policy, market, Exact())
    if policy.rebuilt:
        third, second = (extent(policy, decision, of_share(market, 0, j)) for j in (2, 1))
        return third[0], second[1]
    least = extreme_of_bare(policy, decision, of_share(market, 0, 2), Sense.MINIMIZE)
    most = extreme_of_bare(policy, decision, of_share(market, 0, 1), Sense.MAXIMIZE)
    for proof in (policy.certify(decision), least, most):
        verify(proof.to_json())
    return least.value, most.value


def _span(least: Fraction, most: Fraction) -> str:
    return str(least) if least == most else f"{least} to {most}"
