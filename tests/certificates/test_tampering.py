"""Certificates with one thing changed: what the verifier still accepts must be true, whoever decides that.

``certificate_kinds`` decides it without the verifier and without the proof: by exact optima, by the
properties' own checks, by solving programs. Counts stand at the end of a test run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from math import inf
from random import Random
from typing import Any

import pytest
from certificate_kinds import BY_HAND, require_true
from certificate_kinds.examples import Untrue
from certificate_samples import Sample, of_entitlements, of_market, of_programs
from tampering import Tampering, changes, places, tampered

from fairopt.certificates import MISREPORT, Certificate
from fairopt.models.oef.cooperative import NOT_PARETO_EFFICIENT
from fairopt.models.oef.efficient import EfficientOEF
from fairopt.policy import decide
from fairopt.problem import Market
from fairopt.program import fractions
from fairopt.proofs.verifier import bounds, certificates, entitled, frontier, market, programs, reading, standing
from fairopt.proofs.verify import Rejected, verify
from fairopt.testing.samples import entitled_markets, sample_markets

#: A certificate with at most so many places has all of them changed where a run is thorough.
SMALL = 40
FAST, SLOW = 1, 12


def hold_to_the_truth(certificate: Any, changed: Iterable[Tampering], counted: Counter[str]) -> None:
    """Verify each change of a certificate; `Untrue` where a false one is accepted."""
    for change in changed:
        counted["changes"] += 1
        other = change.of(certificate)
        try:
            verify(other)
        except Rejected:
            counted["rejected"] += 1
            continue
        try:
            require_true(other)
        except Untrue as reason:
            raise Untrue(f"{reason}: {change.kind} at {change.place} in {json.dumps(certificate)}") from reason
        counted["accepted and true"] += 1


def attack(samples: Iterable[Sample], random: Random, most: int, *, thorough: bool = False) -> Counter[str]:
    """Change every certificate ``most`` times; where thorough, small ones once at every place."""
    counted: Counter[str] = Counter()
    for sample in samples:
        certificate = json.loads(json.dumps(sample.certificate.to_json()))  # what is read is what was written
        verify(certificate)
        counted["certificates"] += 1
        counted[f"kind {certificate['certificate']}"] += 1
        everywhere = list(places(certificate))
        if thorough and len(everywhere) <= SMALL:
            possible = [changes(certificate, place, random) for place in everywhere]
            chosen = iter([random.choice(each) for each in possible if each])
        else:
            chosen = tampered(certificate, random, most)
        hold_to_the_truth(certificate, chosen, counted)
    return counted


def told(title: str, counted: Counter[str]) -> str:
    assert counted["changes"] == counted["rejected"] + counted["accepted and true"]
    kinds = sum(name.startswith("kind ") for name in counted)
    of = f" of {kinds} kinds" if kinds else ""
    return (
        f"tampering, {title}: {counted['certificates']} certificates{of}, {counted['changes']} changes: "
        f"{counted['rejected']} rejected, {counted['accepted and true']} accepted and true, 0 accepted and false"
    )


@pytest.mark.parametrize("part", range(FAST))
def test_a_change_is_rejected_or_leaves_the_statement_true(part: int, conformance: Callable[[object], None]) -> None:
    random = Random(part)
    markets = list(sample_markets(1, seed=30 + part, users=(2, 3), types=(2, 3), demands=True))
    if part == 0:
        markets.append(NOT_PARETO_EFFICIENT)
    samples = [*(sample for market in markets for sample in of_market(market, random)), *of_programs(random, 20)]
    samples += [each for market in entitled_markets(4, seed=part) for each in of_entitlements(market, random)]
    counted = attack(samples, random, 2)
    assert counted["certificates"] >= 50
    assert counted["rejected"] > counted["accepted and true"] > 0
    conformance(told(f"{part + 1}/{FAST}", counted))


@pytest.mark.parametrize("part", range(2))
def test_a_change_of_what_is_worked_out_by_hand(part: int, conformance: Callable[[object], None]) -> None:
    random = Random(part)
    counted: Counter[str] = Counter(certificates=len(list(BY_HAND)[part::2]))
    for certificate in list(BY_HAND.values())[part::2]:
        everywhere = [change for place in places(certificate) for change in changes(certificate, place, random)]
        hold_to_the_truth(certificate, random.sample(everywhere, min(5, len(everywhere))), counted)
    conformance(told(f"by hand {part + 1}/2", counted))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW))
def test_a_thousand_certificates(part: int, conformance: Callable[[object], None]) -> None:
    random = Random(100 + part)
    markets = sample_markets(2, seed=200 + part, users=(2, 5), types=(2, 4), most=9, demands=True)
    samples = [sample for market in markets for sample in of_market(market, random)]
    samples += [each for market in entitled_markets(20, seed=100 + part) for each in of_entitlements(market, random)]
    counted = attack([*samples, *of_programs(random, 20)], random, 6, thorough=True)
    assert counted["certificates"] >= 84  # a twelfth of a thousand
    conformance(told(f"campaign {part + 1:2}/{SLOW}", counted))


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_HAND)
def test_every_change_of_what_is_worked_out_by_hand(name: str, conformance: Callable[[object], None]) -> None:
    counted: Counter[str] = Counter(certificates=1)
    hold_to_the_truth(BY_HAND[name], tampered(BY_HAND[name], Random(0)), counted)
    conformance(told(f"every change of {name}", counted))


# -- the tests themselves: a verifier with a hole is found out --------------------------------------------------------
def no_duals(self: programs.Program, x: Any, duals: Any) -> Any:
    return self.value(x)


def no_signs(rate: Any, low: Any, high: Any) -> Any:
    side = high if rate > 0 else low
    return rate * side if abs(side) != inf else market.ZERO


def no_capacity(self: market.Market, shares: Any) -> bool:
    return min(map(min, shares)) >= 0


def no_demand(self: market.Market, i: int, bundle: Any) -> Any:
    return [x if s else reading.ZERO for s, x in zip(self.speedup[i], bundle, strict=True)]


def no_weights(row: Any, weight: Any) -> Any:
    return list(row), 1


def nobody_waits(self: entitled.Entitled, speedup: Any, demand: Any) -> Any:
    return [{frozenset([j]): x for j, x in enumerate(row[: len(speedup[0])])} for row in self.held]


def no_caps(self: standing.Standing, node: int, column: int) -> Any:
    return inf


def no_guarantees(self: standing.Standing, node: int, column: int) -> Any:
    return self.held[node][column]


def no_bounds(market: market.Market, user: int, before: Any, after: Any) -> Any:
    return 0, False


def no_proof(self: frontier.Tradeoff, told: Any) -> Any:
    return told["constant"].number(), told["slope"].number()


#: What is broken in the verifier, and a certificate that shows it.
HOLES: list[tuple[Any, str, Any, str]] = [
    (programs.Program, "optimum", no_duals, "EFFICIENT"),
    (programs.Program, "optimum", no_duals, "MOST"),
    (programs, "at_most", no_signs, "LEAST_OF_A"),
    (programs, "at_most", no_signs, "WHOLE"),
    (market.Market, "feasible", no_capacity, "DOMINANCE"),
    (market.Market, "used", no_demand, "DEMANDING"),
    (certificates, "in_integers", no_weights, "WEIGHTED"),
    (entitled.Entitled, "asks", nobody_waits, "LENT"),
    (standing.Standing, "room", no_caps, "OVER"),
    (standing.Standing, "above", no_guarantees, "RECLAIMED"),
    (bounds, "_gain", no_bounds, "UP_TO_2"),
    (frontier.Tradeoff, "line", no_proof, "ENVY_COSTS"),
]


@pytest.mark.parametrize(("of", "name", "hole", "shown_by"), HOLES, ids=[f"{h[2].__name__} {h[3]}" for h in HOLES])
def test_a_verifier_with_a_hole_is_found_out(
    of: Any, name: str, hole: Any, shown_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = BY_HAND[shown_by]
    with monkeypatch.context() as broken:
        broken.setattr(of, name, hole)
        shows_it = next(change for change in tampered(certificate, Random(1)) if is_untrue(certificate, change))
    assert not is_untrue(certificate, shows_it)  # without the hole


def is_untrue(certificate: dict[str, Any], change: Tampering) -> bool:
    """Return whether the verifier accepts what is not true where this is changed."""
    try:
        hold_to_the_truth(certificate, [change], Counter())
    except Untrue:
        return True
    return False


def test_a_lie_to_the_most_efficient_without_envy_is_judged() -> None:
    policy, market = EfficientOEF(), Market.of([[6, 1], [3, 6], [5, 4]], capacity=[3, 3])
    report = fractions([12, 1])
    truth, lie = (decide(policy, each, exact=True) for each in (market, market.misreport("u1", report)))
    gain = market.utility(lie.shares)[0] - market.utility(truth.shares)[0]
    proofs = policy.certify(truth), policy.certify(lie)
    require_true(Certificate(MISREPORT, market, policy.name, "u1", report, gain, *proofs).to_json())
