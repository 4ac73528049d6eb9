"""The conformance suites of properties: of allocations, and of policies.

>>> from fairopt.properties import Feasibility
>>> property_suite().run([Feasibility()]).require_complete()
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from fairopt.by_name import allocate
from fairopt.discovery import policy, properties
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import AllocationProperty, Answer, Effort, MechanismProperty, Verdict
from fairopt.properties.lattice import contradictions
from fairopt.testing.samples import entitled_markets, sample_markets
from fairopt.testing.suite import Suite, Traits, checks_of

__all__ = ["mechanism_suite", "property_suite"]


def property_suite() -> Suite[AllocationProperty]:
    """Return the suite of properties of allocations.

    >>> [each.name for each in property_suite().checks][:2]
    ['says what it is', 'instances hold and fail']
    """
    return Suite("properties of allocations", checks_of(AllocationChecks()), lambda each: Traits(each.name))


def mechanism_suite() -> Suite[MechanismProperty]:
    """Return the suite of properties of policies.

    >>> [each.name for each in mechanism_suite().checks][:2]
    ['finds a known misreport', 'does not refute what ignores reports']
    """
    return Suite("properties of policies", checks_of(MechanismChecks()), lambda each: Traits(each.name))


class VerdictChecks(ABC):
    """Checks of properties of outcomes; a case is what such a property checks."""

    @abstractmethod
    def _cases(self, each: Any) -> Iterable[tuple[Any, ...]]:
        """Return exact cases on which the property is asked, on some of which it fails."""

    @abstractmethod
    def _case(self, instance: Any) -> tuple[Any, ...]:
        """Return the case of an instance that the property brings along."""

    def says_what_it_is(self, each: Any) -> None:
        """Guards against properties without a definition that a reader could check."""
        assert each.name
        assert each.definition
        assert each.source

    def instances_hold_and_fail(self, each: Any) -> None:
        """Guards against a checker that always says the same: known instances, one that holds and one that fails."""
        answers = set()
        for instance in each.instances:
            verdict = each.check(*self._case(instance))
            assert verdict.answer is instance.answer, f"{instance.source}: {verdict}"
            assert verdict.exact, f"{instance.source}: exact numbers, but a verdict that is not"
            answers.add(verdict.answer)
        assert answers == {Answer.HOLDS, Answer.FAILS}

    def witness_refutes_by_the_bare_definition(self, each: Any) -> None:
        """Guards against witnesses that do not show what they are said to show."""
        failed = 0
        for case in (*self._cases(each), *map(self._case, each.instances)):
            verdict = each.check(*case)
            if verdict.answer is Answer.FAILS:
                failed += 1
                assert verdict.witness.refutes(*case), f"{verdict.witness} does not refute {case}"
                assert len(str(verdict.witness)) > 10
            else:
                assert verdict.witness is None
        assert failed, "none of the cases fails, so that no witness was looked at"

    def margin_agrees_with_answer(self, each: Any) -> None:
        """Guards against margins whose sign says something else than the answer."""
        for case in self._cases(each):
            verdict = each.check(*case)
            fails = verdict.margin is not None and verdict.margin < 0
            assert fails == (verdict.answer is Answer.FAILS), verdict

    def verdict_is_json(self, each: Any) -> None:
        """Guards against witnesses that cannot be printed, and against NaN in JSON."""
        for case in self._cases(each):
            verdict = each.check(*case)
            for exact in (False, True):
                text = json.dumps(verdict.to_json(exact=exact), allow_nan=False)
                assert json.loads(text)["answer"] == verdict.answer.value

    def tolerance_is_honoured(self, each: Any) -> None:
        """Guards against a tolerance that is taken and ignored."""
        for instance in each.instances:
            if instance.answer is Answer.FAILS:
                loose = each.check(*self._case(instance), tolerance=1000)
                assert loose.answer is Answer.HOLDS, loose
                assert not loose.exact, "an answer that a tolerance decided is not exact"


class AllocationChecks(VerdictChecks):
    """The checks of properties of allocations."""

    def _cases(self, each: AllocationProperty) -> Iterator[tuple[Market, Array]]:
        return (case for case in cases() if each.asked_of(case[0]))

    def _case(self, instance: Any) -> tuple[Market, Array]:
        return instance.market, instance.allocation

    def exact_and_float_agree_away_from_the_boundary(self, each: AllocationProperty) -> None:
        """Guards against strict float comparisons: 28 of 40 right HiGHS answers were once called envious by 2.7e-15."""
        compared = 0
        for market, shares in self._cases(each):
            exact, rounded = each.check(market, shares), each.check(market, shares.astype(float))
            assert exact.exact
            assert exact.margin is not None
            if exact.margin == 0 or abs(float(exact.margin)) > 1e-3:
                compared += 1
                assert exact.answer is rounded.answer, f"{exact} in Fractions, {rounded} in floats"
        assert compared

    def units_do_not_matter(self, each: AllocationProperty) -> None:
        """Guards against checkers that compare throughputs of different users, who have units of their own."""
        for market, shares in self._cases(each):
            factors = {user: Fraction(10 ** (3 * i), 7) for i, user in enumerate(market.users)}
            assert each.check(market, shares).answer is each.check(market.rescaled(factors), shares).answer

    def is_undecided_where_it_is_not_asked(self, each: AllocationProperty) -> None:
        """Guards against a property that holds of what the market says nothing of."""
        for market, shares in cases():
            if not each.asked_of(market):
                assert each.check(market, shares).answer is Answer.UNDECIDED

    def lattice_is_respected(self, each: AllocationProperty) -> None:
        """Guards against one checker contradicting another (no envy and nothing left over give sharing incentive)."""
        for (market, shares), others in zip(cases(), _verdicts_of_all(), strict=True):
            if not each.asked_of(market):
                continue
            verdicts = {**others, each.name: each.check(market, shares)}
            broken = contradictions(verdicts, demands=market.demand is not None)
            assert not broken, f"{broken} on {shares.tolist()}"

    def leaves_the_allocation_alone(self, each: AllocationProperty) -> None:
        """Guards against checkers that normalise in place."""
        for market, shares in self._cases(each):
            before = shares.copy()
            each.check(market, shares)
            assert np.array_equal(before, shares)


@cache
def _verdicts_of_all() -> tuple[dict[str, Verdict], ...]:
    """Return what all installed properties say of `cases`: asked once, for every property that is held against them."""
    return tuple({each.name: each.check(*case) for each in of_allocations()} for case in cases())


def cases() -> Iterator[tuple[Market, Array]]:
    """Yield exact markets with exact allocations: fair, lopsided, wasteful, traded, with demands, and entitled."""
    random = np.random.default_rng(7)
    for market in sample_markets(25, seed=21, users=(2, 4), types=(1, 3), demands=True):
        n, k = market.shape
        parts = random.integers(0, 4, (n, k)).astype(object)
        total = np.maximum(parts.sum(axis=0), 1)
        yield market, parts * Fraction(1) / total * market.capacity
        yield market, market.equal_split() * Fraction(1, 2)
        yield market, market.equal_split()
    for market in sample_markets(10, seed=22, users=(2, 4), types=(2, 3)):
        yield market, allocate(policy("second-price-trading"), market).shares
        over = market.equal_split().copy()
        over[0, 0] = over[0, 0] + Fraction(1, 3)
        yield market, over
    for market in entitled_markets(40, seed=23):
        held, k = market.entitlements.held, len(market.types)  # type: ignore[union-attr]
        yield market, held[:, :k]
        yield market, np.asarray(held[::-1, :k] * Fraction(1))
        yield market, market.equal_split()


_SMALL = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])


class MechanismChecks:
    """The checks of properties of policies."""

    def finds_a_known_misreport(self, each: MechanismProperty) -> None:
        """Guards against a search that finds nothing: OEF Sec. 2.4, user 1 gains under trading by reporting 2.8."""
        verdict = each.search(policy("second-price-trading"), _SMALL, effort=Effort(evaluations=300))
        assert verdict.answer is Answer.FAILS
        assert verdict.by_misreport["larger"].answer is Answer.FAILS
        assert verdict.margin is not None
        assert verdict.margin < 0

    def does_not_refute_what_ignores_reports(self, each: MechanismProperty) -> None:
        """Guards against gains made of rounding errors, and against calling a search a proof."""
        verdict = each.search(policy("equal-split"), _SMALL, effort=Effort(evaluations=300))
        assert verdict.answer is Answer.NOT_REFUTED
        assert verdict.witness is None

    def witness_replays(self, each: MechanismProperty) -> None:
        """Guards against gains that the policy does not really give: the misreport is made again, in exact numbers."""
        for decider in (policy("second-price-trading"), policy("max-efficiency")):
            found = each.search(decider, _SMALL, effort=Effort(evaluations=300)).witness
            i = _SMALL.index(found.user)
            reports = (_SMALL, _SMALL.misreport(i, found.report))
            honest, misreported = (_SMALL.utility(allocate(decider, one, exact=True).shares)[i] for one in reports)
            gain = misreported - honest
            assert gain == found.gain > 0

    def kinds_of_misreport_are_kept(self, each: MechanismProperty) -> None:
        """Guards against a "larger" misreport with a smaller entry: the papers' theorems differ in just this."""
        verdict = each.search(policy("second-price-trading"), _SMALL, effort=Effort(evaluations=300))
        assert set(verdict.by_misreport) == {"larger", "smaller", "any"}
        larger, smaller = verdict.by_misreport["larger"].witness, verdict.by_misreport["smaller"].witness
        assert larger is None or all(told >= true for told, true in zip(larger.report, larger.truth, strict=True))
        assert smaller is None or all(told <= true for told, true in zip(smaller.report, smaller.truth, strict=True))

    def same_seed_same_search(self, each: MechanismProperty) -> None:
        """Guards against searches that cannot be repeated."""
        trading, effort = policy("second-price-trading"), Effort(120, seed=5)
        first, second = (each.search(trading, _SMALL, effort=effort) for _ in range(2))
        assert json.dumps(first.to_json()) == json.dumps(second.to_json())

    def effort_is_a_limit(self, each: MechanismProperty) -> None:
        """Guards against a search that never ends: with one user and one type there is little to try."""
        single = Market.of([[1]], capacity=[1])
        for market, effort in ((single, Effort(evaluations=30)), (_SMALL, Effort(evaluations=10**9, seconds=0.2))):
            assert each.search(policy("equal-split"), market, effort=effort).answer is Answer.NOT_REFUTED


def of_allocations() -> list[AllocationProperty]:
    """Return one of each installed property of allocations."""
    return [each for each in properties(Market) if isinstance(each, AllocationProperty)]


def of_policies() -> list[MechanismProperty]:
    """Return one of each installed property of policies of shares."""
    return [each for each in properties(Market) if isinstance(each, MechanismProperty)]
