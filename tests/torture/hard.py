"""Hard numbers: degenerate, nearly alike, far apart, ties, nothing there: a decision in floats is near the exact one.

The judge of a decision in floats is the exact decision, and the judge of that is the definition (`plainly`), which
shares no code with it; its certificate, where it brings one, is accepted by the verifier. A message that the numbers
are too far apart is no fault, a wrong number is, and so is the word that there is no allocation: nobody having anything
is one.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import numpy as np
from definitions import cases, slack_of
from plain_market import Given, given, part
from plain_verdicts import DEFINITIONS
from trials import Ending, Fault, Kind

from fairopt import allocate, discovery, verify
from fairopt.backends.solution import Status
from fairopt.benchmarks.float_samples import odd_market
from fairopt.datasets import oef_example
from fairopt.errors import BadInput, FairoptError, NotCapable, NotSolved
from fairopt.models.gavel.water_filling import WaterLevels
from fairopt.policy import Policy
from fairopt.policy.decide import can_be_exact
from fairopt.problem import Market
from fairopt.proofs.verify import Rejected
from fairopt.proofs.verify import verify as accepted
from fairopt.properties.verdict import Answer

#: A decision in floats may miss the exact one by this, relative to what is compared.
CLOSE = 1e-7
#: Their objective is a sum of weights times logarithms, which may be 0.
LOGARITHMS = ("nash-welfare", "partial-allocation")


@cache
def policies() -> dict[str, Policy]:
    """Return the share policies that answer in rationals too, so that there is a judge."""
    exact = [each for each in discovery.policies(Market) if can_be_exact(each)]
    return {each.name: each for each in exact if _decides_without_entitlements(each)}


def _decides_without_entitlements(policy: Policy) -> bool:
    try:
        allocate(policy, oef_example())
    except NotCapable:
        return False
    return True


def drawn(draw: Random) -> tuple[Market, Given]:
    """Return a small market with numbers of a hard kind, and these; one that nobody can run in is drawn again."""
    while True:
        try:
            return _drawn(draw)
        except BadInput:
            continue


def _drawn(draw: Random) -> tuple[Market, Given]:
    seed, how = draw.randrange(2**32), draw.randrange(8)
    sizes: dict[str, Any] = {"users": (1, 4), "types": (1, 3)}
    market = odd_market(seed, **sizes, orders=draw.choice([3, 6, 9, 12]), near=draw.random() < 0.5)
    speedup, capacity = market.speedup.copy(), market.capacity.copy()
    if how == 0:  # all ties
        speedup[:] = 1.0
    elif how == 1:  # one type of which there is none
        capacity[draw.randrange(len(capacity))] = 0.0
    elif how == 2:  # near the least and the largest that are taken
        speedup *= draw.choice([1e-18, 1e-12, 1e12, 1e18])
    elif how == 3:  # alike but for the last digits
        speedup[:] = speedup[:1] * (1 + draw.choice([1e-16, 1e-12, 1e-9, 1e-6]) * np.arange(len(speedup))[:, None])
    elif how == 4:  # alike in pairs
        speedup[len(speedup) - len(speedup) // 2 :] = speedup[: len(speedup) // 2]
    elif how == 5:  # types alike to each user but for the last digits
        last, digits = draw.choice([1e-15, 1e-12, 1e-9, 1e-6]), [[draw.randint(-5, 5) for _ in row] for row in speedup]
        speedup[:] = speedup.max(axis=1, keepdims=True) * (1 + last * np.array(digits))
    weight, demand = market.weight, market.demand
    if draw.random() < 0.3:
        weight = np.array([draw.choice([1.0, 2.0, 3.0, 0.1]) for _ in weight])
    if draw.random() < 0.2:
        demand = np.array([draw.choice([0.25, 1.0, 3.0, np.inf]) for _ in weight])
    bare = given(speedup.tolist(), capacity.tolist(), weight.tolist(), None if demand is None else demand.tolist())
    return Market.of_arrays(speedup, capacity, weight=weight, demand=demand), bare


def attempt(draw: Random) -> Ending:
    """Decide a hard market in floats, and exactly; or find that it is refused with a reason."""
    name = draw.choice(sorted(policies()))
    policy, (market, bare) = policies()[name], drawn(draw)
    try:
        found = allocate(policy, market)
    except FairoptError as error:
        if isinstance(error, NotSolved) and error.solution is not None and error.solution.status is Status.INFEASIBLE:
            raise Fault(Ending.WRONG, f"{name}: {error}, but nobody need have anything: {told(market)}") from error
        return Ending.REFUSED
    judge(name, policy, market, bare, found)
    return Ending.RIGHT


def judge(name: str, policy: Policy, market: Market, bare: Given, found: Any) -> None:
    """Compare with the exact decision, hold that against the definition, and raise `Fault`."""
    shares = np.array(found.shares, dtype=float)
    over = shares.sum(axis=0) - market.capacity
    if (over > CLOSE * np.maximum(market.capacity, 1e-300)).any() or (shares < 0).any():
        raise Fault(Ending.WRONG, f"{name}: not feasible by {over.max()}: {told(market)}")
    try:
        exact = allocate(policy, market.as_(Fraction), exact=True)
    except FairoptError as error:
        raise Fault(Ending.WRONG, f"{name}: in floats there is a decision, exactly there is none: {error}") from error
    if (wrong := cases()[name].off(bare, exact)) > slack_of(name, bare, exact):
        raise Fault(Ending.WRONG, f"{name}: by definition off by {float(wrong):.3g}: {told(market)}")
    for decision in (found, exact):
        if decision.exact:
            _must_be_proved(name, policy, decision, market)
    pairs = [(found.objective, exact.objective)]
    if isinstance(found.evidence, WaterLevels):
        pairs += zip(found.evidence.level, exact.evidence.level, strict=True)
    least = float(market.weight.sum()) if name in LOGARITHMS else 1e-300
    for one, right in ((float(a), float(b)) for a, b in pairs):
        if not abs(one - right) <= CLOSE * max(abs(right), least):
            raise Fault(Ending.WRONG, f"{name}: {one} where {right} is right: {told(market)}")


def _must_be_proved(name: str, policy: Policy, decision: Any, market: Market) -> None:
    try:
        certificate = policy.certify(decision).to_json()
    except NotCapable:
        return
    try:
        accepted(certificate)
    except Rejected as error:
        raise Fault(Ending.WRONG, f"{name}: its certificate is rejected: {error}: {told(market)}") from error


def verdicts(draw: Random) -> Ending:
    """Judge an allocation of a hard market exactly, as the definitions do, and in floats: wrong by no clear margin."""
    market, bare = drawn(draw)
    shares = [part(bare, i) for i in bare.users] if draw.random() < 0.5 else _parts(bare, draw)
    try:
        floats = verify(market, np.array(shares, dtype=float))
        exact = verify(market.as_(Fraction), np.array(shares, dtype=object))
    except FairoptError:
        return Ending.REFUSED
    most = {"GPUs": float(market.capacity.max()), "throughput": float((market.speedup @ market.capacity).max())}
    for name, each in floats.items():
        other, right = exact[name], Answer.HOLDS if DEFINITIONS[name](bare, shares) else Answer.FAILS
        if other.answer is not right:
            raise Fault(Ending.WRONG, f"{name}: {other.answer}, but by definition {right}: {told(market)}, {shares}")
        # GPUs, and throughputs, are counted beside all there are
        clear = 1e-3 * max(1.0, most.get(other.unit.split()[0], 1.0))
        if {each.answer, other.answer} == {Answer.HOLDS, Answer.FAILS} and abs(float(other.margin)) > clear:
            says = f"{name}: {each.answer} in floats, {other.answer} by {other.margin}"
            raise Fault(Ending.WRONG, f"{says}: {told(market)}, {shares}")
    return Ending.RIGHT


def _parts(market: Given, draw: Random) -> list[list[Fraction]]:
    """Return shares of all GPUs, or of some, in few sizes, so that many are alike and many are none."""
    parts = [[draw.choice([0, 0, 1, 1, 2]) for _ in market.types] for _ in market.users]
    whole = [max(1, sum(row[j] for row in parts) + draw.choice([0, 0, 1])) for j in market.types]
    return [[m * x / of for x, of, m in zip(row, whole, market.capacity, strict=True)] for row in parts]


def told(market: Market) -> str:
    """Return the numbers of a market, to try it again."""
    return str([each.tolist() for each in (market.speedup, market.capacity, market.weight, market.limit)])


KINDS = [
    Kind("d", "decisions on hard numbers", attempt, 40, 12),
    Kind("d", "verdicts on hard numbers", verdicts, 20, 12),
]
