"""Every installed policy passes the conformance suite, and the suite catches policies that should not pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.backends import Session
from fairopt.backends.solution import Solution, Status
from fairopt.deadline import left
from fairopt.errors import OutOfTime
from fairopt.models import EqualSplit, MaxMin, NonCooperativeOEF, WaterFilling
from fairopt.policy import Allocation, Claim, Example, Trait
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.testing.policy_suite import installed, policy_suite
from fairopt.testing.suite import Outcome


@pytest.mark.parametrize("markets", counts(2, 30))
@pytest.mark.parametrize("policy", installed(), ids=lambda policy: policy.name)
def test_policy_conforms(policy: Any, markets: int, conformance: Callable[[object], None]) -> None:
    report = policy_suite(markets=markets).run([policy])
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    conformance(f"policy {policy.name}: {counts} of {len(report.rows)} checks ('-' is not declared)")
    report.require_complete()


@pytest.mark.slow
@pytest.mark.parametrize("policy", installed(), ids=lambda policy: policy.name)
def test_policy_conforms_where_many_misreports_are_searched_for(policy: Any) -> None:
    policy_suite(searches=12).run([policy]).require_complete()


class FirstComeFirstServed(EqualSplit):
    """Gives everything to the first user: no sharing incentive, and the order of users matters."""

    name = "first-come"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        shares = problem.equal_split() * 0
        shares[0] = problem.capacity
        return shares, None


class Overbooking(EqualSplit):
    """Gives out a little more than there is."""

    name = "overbooking"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        return problem.equal_split() * 1.001, None


class Normalising(EqualSplit):
    """Changes the market that it is given."""

    name = "normalising"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        problem.capacity.setflags(write=True)
        problem.capacity[0] = problem.capacity[0] * 2
        return super().compute(problem, state)


class Deaf(EqualSplit):
    """Never looks at the clock."""

    name = "deaf"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        for number in range(1_500_000 if len(problem.users) == 100 else 0):
            abs(number)
        return super().compute(problem, state)


class Hasty(EqualSplit):
    """Decides otherwise where there is a limit."""

    name = "hasty"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        shares, evidence = super().compute(problem, state)
        return shares if left() is None else shares * 0, evidence


class Boasting(MaxMin):
    """Says that it was nearer to the optimum than it was when time was over."""

    name = "boasting"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        try:
            left()
            return super().decide(problem, state, solve)
        except OutOfTime as over:
            over.solution = Solution(Status.LIMIT, "so far", "auto", objective=0.0, bound=1e-3)
            raise


class Undecided(EqualSplit):
    """Decides at random."""

    name = "undecided"

    def compute(self, problem: Market, state: Any) -> tuple[Array, None]:
        random = np.random.default_rng()
        return problem.equal_split() * random.random(), None


def less_than_there_is(decision: Allocation) -> Allocation:
    """Return the decision with an upper bound that is wrong, where it has one."""
    solution = decision.solution
    if solution is None or solution.lower is None:
        return decision
    return replace(decision, solution=replace(solution, upper=solution.lower * 0.9))


class Unbracketed(MaxMin):
    """Proves less than there is."""

    name = "unbracketed"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        return less_than_there_is(super().decide(problem, state, solve))


class UnbracketedLevels(WaterFilling):
    """Proves less than there is of the least level."""

    name = "unbracketed-levels"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        return less_than_there_is(super().decide(problem, state, solve))


class Unproven(WaterFilling):
    """Proves nothing."""

    name = "unproven"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        return replace(super().decide(problem, state, solve), solution=None)


class Forgetful(EqualSplit):
    """Starts with a state and keeps none."""

    name = "forgetful"

    def start(self, problem: Market) -> Any:
        return 0


class Unwritable(Forgetful):
    """Has a state that cannot be stored: what is read is another object."""

    name = "unwritable"

    def start(self, problem: Market) -> Any:
        return object()

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        return replace(super().decide(problem, state, solve), state=object())


class Overclaiming(MaxMin):
    """Claims what max-min does not have, and an example that it does not give."""

    name = "overclaiming"
    claims = (Claim("envy_freeness", "nobody"),)
    examples = (Example("nobody", Market.of([[1, 2], [1, 3]], capacity=[1, 1]), shares=[[1, 0], [0, 1]]),)


class Unrefuted(NonCooperativeOEF):
    """Calls a claim refuted by a market on which it holds."""

    name = "unrefuted"
    claims = (Claim("pareto_efficiency", "nobody", refuted_by=Market.of([[1, 2], [1, 3]], capacity=[1, 1])),)


class UnitFree(NonCooperativeOEF):
    """Declares that units do not matter, which they do."""

    name = "unit-free"
    traits = NonCooperativeOEF.traits | {Trait.UNIT_FREE}


class Halved(MaxMin):
    """Decides half of what its program says, which then is no evidence for it."""

    name = "halved"
    verifier_knows_program = False

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        found = super().decide(problem, state, solve)
        return replace(found, shares=found.shares / 2)


class Misquoting(MaxMin):
    """Certifies its program under a name of which the verifier writes another program."""

    name = "max-efficiency"


@pytest.mark.parametrize(
    ("policy", "check"),
    [
        (Halved, "evidence is accepted"),
        (Halved, "keeps what it supports"),
        (Misquoting, "evidence is accepted"),
        (FirstComeFirstServed, "claims hold"),
        (FirstComeFirstServed, "order of users and types does not matter"),
        (FirstComeFirstServed, "examples hold exactly"),
        (Overbooking, "keeps capacity and shape"),
        (Normalising, "leaves the market alone"),
        (Undecided, "decides the same twice"),
        (Overclaiming, "claims hold"),
        (Overclaiming, "examples hold exactly"),
        (Unrefuted, "refuted claims stay refuted"),
        (UnitFree, "units do not matter"),
        (Deaf, "looks often at the clock"),
        (Hasty, "keeps time limits"),
        (Boasting, "what was proven by then is true"),
        (Unbracketed, "methods bracket the exact optimum"),
        (UnbracketedLevels, "methods bracket the exact optimum"),
        (Unproven, "methods bracket the exact optimum"),
        (Forgetful, "state survives serialisation"),
        (Unwritable, "state survives serialisation"),
    ],
)
def test_the_suite_catches(policy: Any, check: str) -> None:
    suite = policy_suite()
    one = next(each for each in suite.checks if each.name == check)
    assert suite.run_one(policy(), one).outcome is Outcome.FAILED


def test_an_undeclared_trait_is_skipped_and_said_so() -> None:
    class Silent(EqualSplit):
        name = "silent"
        traits = frozenset()
        claims = ()
        examples = ()

    report = policy_suite().run([Silent()])
    report.require_complete()
    assert report.counts[Outcome.SKIPPED] >= 6
    assert "does not declare" in str(report)


def test_a_failure_expected_and_absent_is_a_failure() -> None:
    report = policy_suite({"equal-split": {"keeps demands": "it does not"}}).run([EqualSplit()])
    with pytest.raises(AssertionError, match="delete the record"):
        report.require_complete()


def test_canonical_choice_is_optimal_and_the_first_user_gets_most() -> None:
    from fairopt.models import MaxEfficiency

    market = Market.of([[1, 2], [1, 2]], capacity=[3, 1])
    decision = allocate(MaxEfficiency(), market, canonical=True)
    assert decision.shares.tolist() == [[3, 1], [0, 0]]
