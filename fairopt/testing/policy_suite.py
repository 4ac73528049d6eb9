"""The conformance suite of policies: what every `Policy` must do, and what it declares and claims of itself.

>>> from fairopt.models import EqualSplit
>>> policy_suite().run([EqualSplit()]).require_complete()
"""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count, pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

from fairopt.backends import Backend
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.by_name import allocate
from fairopt.compare import compare
from fairopt.discovery import policies, property_
from fairopt.errors import NotCapable, NotSolved
from fairopt.evidence import evidence
from fairopt.policy import Allocation, Claim, Policy, Trait, decide, decide_each, session, unsupported
from fairopt.policy.decide import exact_or_floats
from fairopt.problem import Market, exact
from fairopt.problem.floors import floors_of
from fairopt.program import Array, Number, number_text, objects
from fairopt.proofs.verify import verify
from fairopt.properties import Answer, Effort, Feasibility, MechanismProperty
from fairopt.testing.counted_steps import CountedSteps
from fairopt.testing.policy_checks import AGREE, Known, PolicySamples, check_agreement, solvers, suite_of
from fairopt.testing.samples import guaranteed_market, only, sample_markets, stated
from fairopt.testing.suite import Suite, requires

__all__ = ["policy_suite"]

#: On a market of so many users a decision looks at the clock every so many steps, until it is stopped at look `LIMIT`.
MANY, APART, LIMIT = (100, 100), 1_000_000, 100
#: After so many looks at the clock a decision is stopped.
LOOKS = (2, 3, 5, 8, 13, 21, 34, 55, 89)
#: With these traits a decision is the exact optimum of a program, so that there is evidence for it.
TO_BE_PROVED = frozenset({Trait.PROGRAM, Trait.EXACT})


def policy_suite(expected_failures: Known | None = None, *, searches: int = 4, markets: int = 30) -> Suite[Policy]:
    """Return the suite; ``expected_failures`` maps a policy's name to {check: measured reason}.

    Each claim about misreports is tried on so many markets (``searches``); a check asks on at most ``markets``.

    >>> [each.name for each in policy_suite().checks][:2]
    ['says what it is', 'claims hold']
    """

    def tried(policy: Policy, claim: Claim) -> Iterator[tuple[Market, Allocation]]:
        count = searches if isinstance(property_(claim.property), MechanismProperty) else min(12, markets)
        for market in sample_markets(count, seed=13, weights=False, zeros=not claim.assumes, ties=False):
            yield market, _decided(policy, market)

    given = PolicySamples(
        some=lambda policy: next(sample_markets(1, seed=20)),
        tried=tried,
        decided=_decided,
        shown=_shown,
        searches=(120, 120),
        count=markets,
    )
    return suite_of("policies", __name__, given, expected_failures, _declared)


def installed() -> list[Policy]:
    """Return one of each installed policy that needs no entitlements; the others have `rule_suite`."""
    return [policy for policy in policies(Market) if Trait.ENTITLED not in policy.traits]


def _declared(policy: Policy) -> set[Any]:
    said = {
        "examples": policy.examples,
        "methods": policy.has_program and policy.needs <= Exact.capabilities and policy.methods,
        "entitlements": policy.supports,
        "a state": policy.start(next(sample_markets(1))) is not None,
    }
    return {what for what, there in said.items() if there}


def _decided(policy: Policy, problem: Market) -> Allocation:
    return (exact_or_floats if Trait.EXACT in policy.traits else decide)(policy, problem)


def _shown(problem: Market) -> str:
    speedups = "; ".join(" ".join(map(number_text, row)) for row in problem.speedup)
    return f"the market with speedups {speedups} and capacities {' '.join(map(number_text, problem.capacity))}"


def keeps_capacity_and_shape(policy: Policy, given: PolicySamples) -> None:
    """Guards against overbooked types: an SCS answer once gave out 2.5e-4 more than there was."""
    for market in sample_markets(min(30, given.count), seed=1):
        decision = allocate(policy, market)
        assert decision.shares.shape == market.shape
        verdict = Feasibility().check(market, decision.shares)
        assert verdict.answer is Answer.HOLDS, verdict
        cannot = np.asarray(market.speedup == 0)
        if Trait.PROGRAM in policy.traits:
            assert not decision.shares[cannot].astype(float).any(), "a user holds GPUs that it cannot run on"


def keeps_demands(policy: Policy, given: PolicySamples) -> None:
    """Guards against GPUs given to users that cannot use them while others could."""
    for market in sample_markets(min(20, given.count), seed=2, demands=True):
        if why := unsupported(policy, market):
            assert Trait.NO_DEMANDS in policy.traits, f"refuses demands that it declares nothing of: {why}"
            continue
        shares = allocate(policy, market).shares.astype(float)
        over = shares.sum(axis=1) - market.limit.astype(float)
        assert over.max() <= AGREE * float(market.capacity.sum()), f"{over.max()} GPUs beyond a demand on {market}"


def looks_often_at_the_clock(policy: Policy) -> None:
    """Guards against loops that never ask how much time is left."""
    market = next(sample_markets(1, seed=21, users=MANY, types=(5, 5)))
    with CountedSteps() as steps, patch("fairopt.deadline.monotonic", steps.look):
        _stopped(policy, market, LIMIT)
    assert steps.apart <= APART, f"{steps.apart} steps without a look at the clock"


def what_was_proven_by_then_is_true(policy: Policy) -> None:
    """Guards against wrong bounds of who is stopped, at any look at the clock: each takes a second here."""
    for market in (*sample_markets(2, seed=22), *sample_markets(2, seed=23, users=(8, 12), types=(3, 3))):
        best = float(_decided(policy, market).objective)
        for limit in LOOKS:
            with patch("fairopt.deadline.monotonic", partial(next, count())):
                found = _stopped(policy, market, limit)
            if found is not None and found.gap is not None:
                assert found.objective - AGREE <= best <= found.bound + AGREE, f"{found.summary()} on {market}"


def leaves_the_market_alone(policy: Policy) -> None:
    """Guards against policies that normalise their input in place."""
    for market in sample_markets(5, seed=3):
        before = copy.deepcopy(market)
        allocate(policy, market)
        assert market == before


def decides_the_same_twice(policy: Policy, given: PolicySamples) -> None:
    """Guards against unseeded randomness and against state kept in the object."""
    for market in sample_markets(min(10, given.count), seed=4):
        first, second = allocate(policy, market), allocate(policy, market)
        assert np.array_equal(first.shares, second.shares)


@requires(Trait.EXACT)
def float_agrees_with_fraction(policy: Policy, given: PolicySamples) -> None:
    """Guards against formulations that are right in one number type only."""
    for market in sample_markets(min(20, given.count), seed=5, weights=False):
        in_fractions = allocate(policy, market, exact=True)
        assert in_fractions.arithmetic.exact, f"declares exact decisions; got floats on {market}"
        _same_choice(policy, in_fractions, decide(policy, market.as_(float), vertex=True), market)


def order_of_users_and_types_does_not_matter(policy: Policy, given: PolicySamples) -> None:
    """Guards against index arithmetic, and against rules that favour the first user."""
    random = np.random.default_rng(6)
    for market in sample_markets(min(20, given.count), seed=6, ties=False):
        n, k = market.shape
        users, types = random.permutation(n), random.permutation(k)
        moved = market.select(users.tolist()).select_types(types.tolist())
        before, after = allocate(policy, market), allocate(policy, moved)
        _same(policy, after, before, before.utilities[users], f"on {market} after {users}, {types}")


@requires(Trait.UNIT_FREE)
def units_do_not_matter(policy: Policy, given: PolicySamples) -> None:
    """Guards against throughputs of different users being compared although each has units of its own."""
    for market in sample_markets(min(20, given.count), seed=7):
        factors = {user: Fraction(3 * i + 2, i + 1) for i, user in enumerate(market.users)}
        plain, scaled = allocate(policy, market), allocate(policy, market.rescaled(factors))
        by = objects(factors.values()).astype(plain.shares.dtype)
        _same(policy, scaled, plain, plain.utilities * by, f"on {market}")


@requires(Trait.COPIES)
def weight_is_copies(policy: Policy, given: PolicySamples) -> None:
    """Guards against weights that do not scale the entitlement (OEF Sec. 4.2.3: w copies of the user)."""
    for market in sample_markets(min(20, given.count), seed=8, weights=True):
        one, copies = allocate(policy, market), allocate(policy, market.replicated())
        ends = np.cumsum([0, *map(int, market.weight)])
        summed = np.array([copies.utilities[a:b].sum() for a, b in pairwise(ends)])
        _same(policy, one, copies, summed, f"on {market}")


def takes_any_positive_weight(policy: Policy) -> None:
    """Guards against weights that work only where they are integers."""
    for market in sample_markets(5, seed=9):
        weight = objects(Fraction(2 * i + 1, 7) for i in range(len(market.users)))
        decision = allocate(policy, replace(market, weight=weight))
        assert Feasibility().check(market, decision.shares).answer is Answer.HOLDS


def takes_job_types(policy: Policy) -> None:
    """Guards against virtual users that lose their owner (OEF Sec. 4.2.4)."""
    users, owner = ["A/train", "A/tune", "B"], ["A", "A", "B"]
    weight = ["1/2", "1/2", 1]
    market = Market.of([[1, 2], [1, 3], [1, 5]], capacity=[1, 1], weight=weight, users=users, owner=owner)
    decision = allocate(policy, market)
    assert decision.market.owner == ("A", "A", "B")
    assert Feasibility().check(market, decision.shares).answer is Answer.HOLDS


@requires(Trait.PROGRAM)
def backends_agree(policy: Policy) -> None:
    """Guards against answers that depend on the solver: every capable backend reaches the same objective."""
    able = list(capable(policy))
    assert able, "no installed backend can solve the program that the policy declares"
    for market in sample_markets(8, seed=10):
        check_agreement(_objectives(policy, able, market), market)


@requires("entitlements")
def keeps_what_it_supports(policy: Policy, given: PolicySamples) -> None:
    """Guards against floors and caps, of users and in the tree, that are kept nearly or only by one solver."""
    able, kept = list(capable(policy)), 0
    for number in range(6):
        market = only(guaranteed_market(40 + number), policy.supports)
        try:
            found = given.decided(policy, market)
        except NotSolved as none:
            if "these cannot hold together: " in str(none):  # there may be no solution, and it says why
                continue
            raise
        kept += 1
        floors, held = floors_of(market), stated(market).total(found.shares)
        room = found.arithmetic.tolerance(AGREE * float(market.capacity.sum()))
        for less, more, what in (
            (floors.floor, held, "less than a floor"),
            (held, floors.cap, "more than a cap"),
            (found.shares.sum(axis=0), floors.lendable, "what is reserved"),
        ):
            assert (less <= more + room).all(), f"{what}: {held} on {stated(market)}"
        if number < 2:
            check_agreement(
                {**_objectives(policy, able, market, inaccurate=True), "its own": float(found.objective)}, market
            )
    assert kept > 3, f"{kept} of 6 markets were decided"


@requires("methods")
def methods_bracket_the_exact_optimum(policy: Policy, given: PolicySamples) -> None:
    """Guards against a fast answer to another question, and against bounds that rounding has made false."""
    proven: Counter[str] = Counter()
    half = min(15, given.count)
    for market in (*sample_markets(half, seed=16), *sample_markets(half, seed=17, demands=True)):
        market = market.as_(float)  # what is proven is proven of the market in floats
        exact_ = allocate(policy, market.as_(Fraction), Exact())
        for method in policy.methods:
            own = allocate(policy, market, method)
            assert own.method == method
            _same_choice(policy, own, exact_, market)
            solution = own.solution
            if solution is None or solution.lower is None or solution.upper is None:
                assert not method.solves_programs, f"{method.name} proves nothing of its answer"
                continue
            lower, upper = Fraction(solution.lower), Fraction(solution.upper)
            assert lower <= exact_.objective <= upper, f"{solution.summary()} on {market}"
            proven[method.name] += 1
    for method in policy.methods:
        assert proven[method.name] > half, f"{method.name} proves {proven[method.name]} of {2 * half} answers"


@requires(Trait.PROGRAM)
def some_backend_can(policy: Policy) -> None:
    """Guards against a declared program that no installed backend can solve."""
    assert any(True for _ in capable(policy)), "declares a program"


@requires(Trait.PROGRAM, Trait.EXACT)
def canonical_choice_does_not_depend_on_the_solver(policy: Policy) -> None:
    """Guards against a canonical choice that is only what one solver happens to return."""
    for market in sample_markets(6, seed=12, users=(1, 3), types=(1, 3)):
        in_fractions = allocate(policy, market, exact=True, canonical=True)
        _close(allocate(policy, market, canonical=True).shares, in_fractions.shares, f"canonical shares on {market}")


@requires("examples")
def examples_hold_exactly(policy: Policy) -> None:
    """Guards against a formulation that is not the source's: its worked examples, in rational numbers."""
    for example in policy.examples:
        decision = allocate(policy, example.market, exact=True)
        assert decision.exact, f"{example.source}: the decision is not exact"
        found = decision.shares, decision.utilities, decision.utilities.sum()
        for told, value in zip((example.shares, example.utilities, example.total), found, strict=True):
            if told is not None:
                right = np.vectorize(partial(exact, place=example.source), otypes=[object])(told)
                assert np.array_equal(right, value), f"{example.source}: should be {right}, is {value}"


def evidence_is_accepted(policy: Policy, given: PolicySamples) -> None:
    """Guards against certificates that `proofs/verify.py` rejects, and against ones that are about other shares."""
    searched = [property_(name) for name in ("sharing_incentive", "pareto_efficiency", "strategy_proofness")]
    for market in sample_markets(2, seed=18, users=(2, 3), types=(2, 3), ties=False):
        [row] = compare(market, [policy], searched, effort=Effort(30))
        for item in evidence(row, searched):
            if item.certificate is not None:
                verify(json.loads(json.dumps(item.certificate.to_json())))
                assert row.outcome is not None
                about = getattr(item.certificate, "allocation", row.outcome.shares)
                assert np.array_equal(about, row.outcome.shares), f"{item.name} is about other shares, on {market}"
            elif item.name == "decision":
                assert not policy.traits >= TO_BE_PROVED, f"no certificate on {market}: {item.reason}"


def one_bundle_is_that_of_the_decision(policy: Policy) -> None:
    """Guards against a shortcut by which a search for misreports would judge other shares than are decided."""
    for market in (each.as_(float) for each in sample_markets(3, seed=19)):
        before = allocate(policy, market)
        for user, report in enumerate(np.roll(market.speedup, 1, axis=0) + market.speedup):
            lied = market.misreport(user, np.where(market.speedup[user] > 0, report, 0))
            bundle = policy.bundle(user, lied, before, session(policy))
            _close(bundle, allocate(policy, lied).shares[user], f"what {market.users[user]} gets on {lied}")


def deciding_each_is_a_fold_of_decide(policy: Policy) -> None:
    """Guards against a loop that carries more, or less, than the declared state."""
    markets = list(sample_markets(3, seed=14))
    state = policy.start(markets[0])
    for market, decision in zip(markets, decide_each(policy, markets), strict=True):
        alone = policy.decide(market, state, session(policy))
        assert isinstance(alone, Allocation)
        assert isinstance(decision, Allocation)
        state = alone.state
        _close(decision.objective, alone.objective, f"objective on {market}")


@requires("a state")
def state_survives_serialisation(policy: Policy) -> None:
    """Guards against states that cannot be stored between rounds."""
    market = next(sample_markets(1, seed=15))
    for state in (policy.start(market), allocate(policy, market).state):
        assert state is not None, "a policy that starts with a state keeps one"
        assert pickle.loads(pickle.dumps(state)) == state


def _objectives(
    policy: Policy, able: Iterable[Backend], market: Market, *, inaccurate: bool = False
) -> dict[str, float]:
    """Return what each backend reaches, by name; if asked for, not of one that says itself that it is ``inaccurate``.

    One that takes programs of some forms only may refuse this one.
    """
    found = {}
    for each in able:
        try:
            found[each.name] = float(allocate(policy, market, each).objective)
        except NotCapable:
            if type(each).unfit is Backend.unfit:
                raise
        except NotSolved as short:
            if not inaccurate or short.solution is None or short.solution.status is not Status.INACCURATE:
                raise
    return found


def _stopped(policy: Policy, market: Market, limit: float) -> Any:
    """Return the solution that was known when time was over; None where a decision was made in time."""
    try:
        allocate(policy, market, time_limit=limit)
    except NotSolved as over:
        return over.solution
    return None


def capable(policy: Policy) -> Iterator[Backend]:
    """Yield the installed backends that can solve the policy's program."""
    return (solver for solver in solvers() if policy.needs <= solver.capabilities)


def _same_choice(policy: Policy, one: Allocation, other: Allocation, market: Market) -> None:
    if Trait.DETERMINED in policy.traits:
        _close(one.utilities, other.utilities, f"utilities on {market}")
    _close(one.objective, other.objective, f"objective on {market}")


def _same(policy: Policy, one: Allocation, other: Allocation, utilities: Array, where: str) -> None:
    """Fail unless one decision has these utilities or, where they depend on a solver, the objective of another."""
    if Trait.DETERMINED in policy.traits:
        _close(one.utilities, utilities, f"utilities {where}")
    else:
        _close(one.objective, other.objective, f"objective {where}")


def _close(one: Array | Number, other: Array | Number, what: str) -> None:
    a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    assert np.allclose(a, b, rtol=AGREE, atol=AGREE), f"{what}: {a.tolist()} and {b.tolist()}"
