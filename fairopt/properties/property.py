"""What a property is: of an allocation, of a run, of a schedule, or of the policy that decides them.

All are found in one registry, the entry-point group ``fairopt.properties``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from fairopt.certificates import PROPERTY, Certificate
from fairopt.certificates.kinds import PROPERTIES
from fairopt.errors import BadInput, NotCapable, require, require_returned
from fairopt.numbers import arithmetic
from fairopt.policy import Allocation, Optima, Policy
from fairopt.problem import Entitled, Market, allocation_from, exact
from fairopt.problem.ranges import unknown_speedups
from fairopt.program import INFINITY, Array, Number
from fairopt.properties.verdict import TOLERANCE, Answer, Verdict
from fairopt.report import Key, ResultForm, Statement

#: The kinds of misreports; each gets an equal part of the effort.
KINDS = 3

#: By these names cases show whom they are about.
NAMING = ("user", "who", "job", "node", "borrower", "tenant")


@dataclass(frozen=True)
class Effort:
    """The limits of a search: at most ``evaluations`` misreports and ``seconds``, with random ``seed``.

    Only seconds depend on the machine. Decisions repeated to confirm a gain, or to make it exact, are not counted.

    Errors: `BadInput` for limits that are not positive.

    >>> Effort(evaluations=30, seconds=2)
    Effort(evaluations=30, seconds=2, seed=0)
    """

    evaluations: int = 600
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.evaluations >= 1, self.evaluations, "evaluations", "Allow at least one")
        require(self.seconds is None or self.seconds > 0, self.seconds, "seconds", "Give a time above 0")

    def ends(self, parts: float = 1) -> float:
        """Return when a part of a search that begins now must end, by `monotonic`; infinite where no time is set."""
        return INFINITY if self.seconds is None else monotonic() + self.seconds / parts

    def part(self, number: int) -> int:
        """Return the number of evaluations for kind ``number`` of misreport; the parts add up to all."""
        return (self.evaluations + KINDS - 1 - number) // KINDS


class Property(ABC):
    """A property: of what a policy decides on a problem, or of the policy itself.

    ``problem`` is what the policy decides on, `Market`, `Queue` or `Batch`. ``of`` says what has the property:
    "allocation", "run", "schedule" or "policy". ``head`` says in a few words what it asks, as the head of a column, and
    ``broken`` what is so where it fails, with ``{who}`` in the place of a user, tenant or job.

    >>> from fairopt.properties import StrategyProofness
    >>> StrategyProofness().of, StrategyProofness().problem.__name__
    ('policy', 'Market')
    """

    name: ClassVar[str]
    source: ClassVar[str]
    definition: ClassVar[str]
    problem: ClassVar[type]
    of: ClassVar[str]
    head: ClassVar[str] = ""
    broken: ClassVar[str] = ""
    #: Whether a case fails by the bare definition, of what was decided: of a market and shares, or of a run.
    fails: Callable[..., bool]
    #: Decides of an outcome that needs no problem beside it; who overrides `verify` needs none.
    check: Callable[..., Verdict]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.asks()}>"

    @classmethod
    def asks(cls) -> str:
        """Return what it asks in a few words: `head`, or its name."""
        return cls.head or cls.name.replace("_", " ")

    def fails_so(self, verdict: Verdict) -> str:
        """Return in words what is so where it fails, for whom the verdict's witness names: `broken`."""
        return self.broken.format(who=verdict.who or "somebody") if self.broken else f"not {self.asks()}"

    def asked_of(self, problem: object) -> bool:
        """Whether the property is asked on a problem where nobody names it."""
        return isinstance(problem, self.problem)

    def judge(self, policy: Policy, problem: Any, outcome: Any, *, effort: Effort | None = None) -> Verdict:
        """Decide of a `Market`'s `Allocation`, a `Setting`'s `History` or a `Batch`'s `Plan`, whoever decided it.

        One that is of the policy itself searches within ``effort``.
        """
        return self.verify(problem, outcome)

    def verify(self, problem: Any, outcome: Any, *, tolerance: Number | None = None) -> Verdict:
        """Decide of anybody's outcome: shares (n, k) of a `Market`, a `History` of a `Setting`, a `Plan` of a `Batch`.

        ``tolerance``: relative slack that counts as none; None for none in exact numbers, `TOLERANCE` in floats.
        """
        return self.check(outcome, tolerance=tolerance)

    def case(self, slack: Number, size: Number, **shown: Any) -> SlackCase:
        """Return a case; ``shown`` are its parts by name, as `says` and `fails` read them."""
        return SlackCase(self._form, shown, self, slack, size)

    @cached_property
    def _form(self) -> ResultForm:
        return ResultForm(self.name, in_full=True, sentence=self.says)

    def says(self, case: SlackCase) -> str:
        """Return a case in a sentence; by default its parts."""
        return ", ".join(f"{name} {value}" for name, value in case.parts.items())

    def about(self, case: SlackCase) -> str:
        """Return whom a case is about: a user, group, job or tenant."""
        return next((str(case.parts[name]) for name in NAMING if isinstance(case.parts.get(name), str)), "")

    def _by_tightest(
        self, case: SlackCase | None, tolerance: Number | None, *, exact: bool, unit: str, effort: str, reason: str = ""
    ) -> Verdict:
        """Return the verdict: the case fails below -tolerance times its size; else a ``reason`` makes it UNDECIDED."""
        allowed = slack_allowed(tolerance, exact=exact)
        fails = case is not None and bool(case.slack < -allowed * case.size)
        reason = "" if fails else reason
        answer = Answer.FAILS if fails else Answer.UNDECIDED if reason else Answer.HOLDS
        margin = None if case is None else case.slack + 0  # turns a float -0.0 into 0.0
        exact = exact and not reason and bool(fails or case is None or case.slack >= 0)
        return Verdict(self.name, answer, margin, unit, exact, effort, case if fails else None, reason=reason)


@dataclass(frozen=True, repr=False)
class SlackCase(Statement):
    """A case of a property, ``of``, and the witness of a verdict where it fails: where ``slack`` is negative.

    A tolerance is a part of ``size``. Its parts are what it shows, such as a user and what it gets.

    >>> from fairopt.properties import EnvyFreeness
    >>> shown = {"user": "A", "envied": "B", "throughput": 1, "with_others_shares": 3}
    >>> case = EnvyFreeness().case(-2, 1, **shown)
    >>> print(case.envied, "|", case)
    B | A gets 1; with the shares of B, by weight, it would get 3
    """

    of: Property = field(compare=False)
    slack: Number
    size: Number

    def refutes(self, *outcome: Any) -> bool:
        """Whether the case fails by the bare definition: of shares (n, k), after their market, or of a run."""
        return self.of.fails(self, *outcome)

    @property
    def who(self) -> str:
        """Whom the case is about: a user, group, job or tenant; "" for nobody."""
        return self.of.about(self)


def _positive(market: Market) -> Market:
    """Return the market with a speedup that may be any from 0 on stated as a positive one."""
    least, most = market.ends
    opened = (market.speedup == 0) & (least < most)
    return replace(market, speedup=np.where(opened, np.minimum(most, 1), market.speedup)) if opened.any() else market


def slack_allowed(tolerance: Number | None, *, exact: bool) -> Number:
    """Return the relative slack that counts as none. Errors: `BadInput` for what is no tolerance."""
    if tolerance is None:
        return 0 if exact else TOLERANCE
    if not (isinstance(tolerance, Number) and 0 <= tolerance < INFINITY):
        raise BadInput(f"got {tolerance}", place="tolerance", remedy="Give a finite number that is not negative")
    return tolerance


class MechanismProperty(Property):
    """A property of a policy on a problem: of what it would decide on others' reports too.

    >>> from fairopt.properties import StrategyProofness
    >>> isinstance(StrategyProofness(), MechanismProperty)
    True
    """

    of = "policy"
    #: Makes a case of a misreport and what it gives.
    told: Callable[..., SlackCase]

    def judge(self, policy: Policy, problem: Any, outcome: Any, *, effort: Effort | None = None) -> Verdict:
        """Search for a counterexample to what was decided; see `search`."""
        return self.search(policy, problem, effort=effort, truth=outcome)

    @abstractmethod
    def search(self, policy: Policy, problem: Any, *, effort: Effort | None = None, truth: Any = None) -> Verdict:
        """Look for a counterexample within ``effort`` to ``truth``, the policy's decision on the problem.

        Where none is given, decisions are exact if the problem is exact and the policy has exact decisions.
        """


@dataclass(frozen=True, eq=False)
class CitedInstance:
    """An instance on which a property's answer is known: where it is from, a problem, an outcome, and the answer.

    ``outcome`` are shares (n, k) of a market, or how a run is made, which needs no ``problem`` beside it.
    """

    source: str
    problem: Market | None
    outcome: Sequence[Sequence[object]] | Callable[[], Any]
    answer: Answer

    @cached_property
    def case(self) -> tuple[Any, ...]:
        """What the property checks: the market with shares as Fractions, or the run."""
        if callable(self.outcome):
            return (self.outcome(),)
        shares = [[exact(value, self.source) for value in row] for row in self.outcome]
        return self.problem, np.array(shares, dtype=object)


#: HOLDS and FAILS are proved. Margins and witnesses are those of the optimum shown, or of the worst one.
OVER_OPTIMA = ResultForm(
    "A property over all optima of a policy on a market.",
    Key("some", Verdict, "Whether an optimum has it."),
    Key("every", Verdict, "Whether all have it."),
    sentence=lambda it: f"some optimum: {it.some.answer.value}; every optimum: {it.every.answer.value}",
)


def by_optimum(some: Verdict, every: Verdict, having: Array | None = None, lacking: Array | None = None) -> Statement:
    """Return what is said over all optima: one ``having`` (n, k) the property, or one ``lacking`` it, or None."""
    return OVER_OPTIMA.of(some=some, every=every, having=having, lacking=lacking)


class AllocationProperty(Property):
    """A property of an allocation, however the allocation was made.

    ``instances`` are cited; the property holds for at least one and fails for at least one. `fails` of a case, a market
    and shares applies the definition directly.

    >>> from fairopt.properties import EnvyFreeness
    >>> EnvyFreeness().of, isinstance(EnvyFreeness(), AllocationProperty)
    ('allocation', True)
    """

    problem = Market
    of = "allocation"
    instances: ClassVar[tuple[CitedInstance, ...]]
    #: Whether it depends on how fast users are, and not only on where they run.
    needs_speedups: ClassVar[bool] = True
    #: What the market's entitlements must say, nothing in particular if empty; None where it is not about these.
    needs: ClassVar[frozenset[Entitled] | None] = None

    def asked_of(self, problem: object) -> bool:
        """Whether the property is asked on a problem where nobody names it: a market that says what it is about."""
        return isinstance(problem, self.problem) and not self.missing(problem)

    def missing(self, market: Market) -> str:
        """Return what the market does not say and must, so that the property is UNDECIDED; "" for nothing.

        >>> from fairopt.properties.entitlements.cap_kept import CapKept
        >>> CapKept().check(Market.of([[1]], capacity=[1]), [[1]]).reason
        'the market says no caps'
        """
        said = None if market.entitlements is None else market.entitlements.said
        if self.needs is None or (said is not None and self.needs <= said):
            return ""
        lacking = sorted(each.value for each in self.needs - (said or frozenset()))
        return f"the market says no {' or '.join(lacking) or 'entitlements'}"

    def verify(self, problem: Market, outcome: Any, *, tolerance: Number | None = None) -> Verdict:
        """Decide of anybody's shares, or of those of an `Allocation`; see `check`.

        Where an allocation stands for an irrational one, a margin that is not 0 and within `Allocation.error` of it, as
        a part of what equal shares are worth, decides nothing.
        """
        if not isinstance(outcome, Allocation):
            return self.check(problem, outcome, tolerance=tolerance)
        market = outcome.leaves(problem)
        verdict = self.check(market, outcome.shares, tolerance=tolerance)
        if not outcome.error or not verdict.margin:
            return verdict
        relative = market.speedup / market.fair_utility()[:, None]
        margin = self.check(replace(market, speedup=relative, least=None, most=None), outcome.shares).margin
        if margin is None or not -outcome.error <= margin <= outcome.error:
            return verdict
        near = f"margin {float(verdict.margin):.0e}; the shares are known to within {float(outcome.error):.0e}"
        return Verdict.undecided(self.name, near, effort=verdict.effort, unit=verdict.unit)

    def check(self, problem: Market, allocation: Any, *, tolerance: Number | None = None) -> Verdict:
        """Decide whether ``allocation`` (n, k) has the property: an array of floats or Fractions, or nested lists.

        Exact shares on an exact market are decided exactly unless a ``tolerance`` is given. Errors: `BadInput` for a
        wrong shape, and for a number that is not finite.
        """
        given = problem.shares(allocation)
        if arithmetic(given).exact:
            given = allocation_from(given.tolist(), problem)
        elif not np.isfinite(given).all():
            user, column = (int(place) for place in np.argwhere(~np.isfinite(given))[0])
            place = f"allocation, user {problem.users[user]!r}, type {problem.types[column]!r}"
            raise BadInput(f"got {given[user, column]}", place=place, remedy="Give a finite number")
        exact = problem.exact and arithmetic(given).exact
        market, shares = (problem, given) if exact else (problem.as_(float), given.astype(float))
        return self.decided(market, shares, slack_allowed(tolerance, exact=exact))

    def decided(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Decide as `check` does, of shares (n, k) that have been read, in the market's number type."""
        if reason := self.missing(market):
            return Verdict.undecided(self.name, reason)
        market = _positive(market)
        decide = self._within_bounds if self.needs_speedups and not market.known.all() else self._check
        verdict = decide(market, shares, tolerance)
        require_returned(isinstance(verdict, Verdict), verdict, f"{type(self).__name__}._check", "a Verdict")
        return verdict

    def over(self, optima: Optima) -> Statement:
        """Decide for some optimum and for every optimum, exactly; by default only what follows from the decided one."""
        verdict = replace(self.check(optima.market, optima.shares), effort="one optimum")
        other = replace(verdict, answer=Answer.NOT_REFUTED, exact=False)
        if verdict.answer is Answer.HOLDS:
            return by_optimum(verdict, other, having=optima.shares)
        return by_optimum(other, verdict, lacking=optima.shares)

    def certify(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        """Return the evidence of an exact ``verdict`` on exact ``shares``. Errors: `NotCapable` for one in floats."""
        if verdict.answer is Answer.UNDECIDED:
            raise NotCapable(f"{self.name} is undecided: {verdict.reason}")
        if not verdict.exact or not arithmetic(shares).exact:
            raise NotCapable(f"{self.name} was decided in floats, and floats prove nothing")
        return self._certificate(_positive(market.as_(Fraction)), shares, verdict)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        """Return the evidence; for most properties the verifier just evaluates the definition.

        Errors: `NotCapable` for a property that the verifier does not know, unless its class brings a certificate.
        """
        if self.name not in PROPERTIES:
            raise NotCapable(f"the verifier does not know {self.name}, and the property brings no certificate")
        return Certificate(PROPERTY, market, shares, self.name, verdict.answer.value)

    @abstractmethod
    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Decide; ``market`` and ``shares`` are both exact or both floats."""

    def _within_bounds(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Decide for all speedups that are possible, where not all are known."""
        return Verdict.undecided(self.name, unknown_speedups(market))
