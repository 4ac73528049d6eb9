"""What a policy is, and what it decides.

One class serves for all three levels: shares of a `Market`, rounds of a `Queue`, schedules of a `Batch`. Most share
policies are `Formulated`: they give a program, and a solver solves it. Only `fairopt.policy.decide` chooses the solver.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from fairopt.backends import Capability, Method, Options, Session
from fairopt.errors import BadInput, NotCapable, type_of
from fairopt.policy.allocation import Allocation, same_utilities
from fairopt.policy.decision import Decision
from fairopt.problem import Entitled, Market
from fairopt.problem.floors import is_entitled
from fairopt.problem.numbers import check_within
from fairopt.program import Array, Number, Program

if TYPE_CHECKING:
    from fairopt.certificates import Certificate

#: What users get (cases, k) where each of users (cases,) alone makes a report (cases, k); NaN where a case must be
#: decided alone. See `Policy.many_bundles`.
ManyBundles: TypeAlias = Callable[[Array, Array], Array]

#: Claims that say this of what they assume hold on a market without demands.
NO_DEMANDS = "no demands"


@dataclass(frozen=True)
class Claim:
    """What a source claims of a policy: the property, the assumption, and the place in the source.

    ``property`` is the name of a registered property; "" where none says it, and then ``words`` do. ``misreport``
    narrows strategy-proofness to a kind of misreport ("larger", "smaller"). ``refuted_by`` is a problem on which the
    property fails, where one is known: the claim as stated is false.

    >>> Claim("envy_freeness", "Theorem 3.1").said(), Claim("", "Sec. 5", words="it is fast").said()
    ('envy_freeness', 'it is fast')
    """

    property: str
    source: str
    assumes: str = ""
    misreport: str = "any"
    refuted_by: Any = None
    words: str = ""

    def said(self) -> str:
        """What is claimed: the property's name, or the words."""
        return self.property or self.words

    def known(self, market: Any, misreport: str = "any") -> bool:
        """Whether it is proved on ``market``, and on those with another report of that kind.

        Sources speak of no guarantees, caps and groups: with these it is not known.

        >>> from fairopt import Market
        >>> Claim("sharing_incentive", "Theorem 1", assumes="no demands").known(Market.of([[1]], [1], demand=[1]))
        False
        """
        assumed = not self.assumes or (self.assumes == NO_DEMANDS and market.demand is None)
        assumed = assumed and not is_entitled(market)
        return self.refuted_by is None and assumed and self.misreport in ("any", misreport)


@dataclass(frozen=True)
class Example:
    """A worked example of a source: a market, and what the policy decides on it.

    ``shares``, ``utilities`` or their ``total`` are exact; ``printed`` says what the source prints where that differs.

    >>> example = Example("by hand", Market.of([[1, 2]], capacity=[1, 1]), utilities=[3])
    >>> example.market.utility(example.market.equal_split()).tolist() == example.utilities
    True
    """

    source: str
    market: Market
    shares: Sequence[Sequence[object]] | None = None
    utilities: Sequence[object] | None = None
    total: object = None
    printed: str = ""


class Trait(enum.Enum):
    """What a policy declares of itself beyond its claims. The conformance suites test it, and fail closed.

    >>> from fairopt.models import NashWelfare
    >>> Trait.UNIT_FREE in NashWelfare.traits
    True
    """

    PROGRAM = "a program that backends solve"
    # of shares
    UNIT_FREE = "rescaling a user's units leaves the allocation as it is"
    COPIES = "a user of weight w is w copies of itself"
    EXACT = "exact decisions on exact markets"
    DETERMINED = "utilities that do not depend on a solver's choice among optima"
    NO_DEMANDS = "no demands: a market that states one is refused by name"
    ENTITLED = "entitlements that say who is owed what"
    # of rounds
    SAME_IN_FLOATS = "the same placements in floats as in Fractions, where no two numbers are alike by accident"
    WORK_CONSERVING = "no job waits for which GPUs of one type, all free, would do"
    ONE_TYPE = "the GPUs of a gang are of one type"
    RUNS_TO_COMPLETION = "a job that runs stays where it is until it is done or its host fails"
    EVENTS = "how long a round takes does not matter, and each schedule says how long it stands"
    NAMELESS = "what jobs, tenants and hosts are called does not matter"


class Policy(ABC):
    """A rule that says who gets what.

    ``problem`` is what it decides on: `Market`, `Queue` or `Batch`. Its options, if it has any, are the fields of a
    frozen dataclass, each with a default. Its state is None or a frozen dataclass (the first of ``states``), which
    `fairopt.codec` writes down and reads back by the type hints. Nothing is kept in the object. The same problem and
    state give the same decision: randomness is seeded from the options and the problem.

    ``methods`` are its own algorithms, the best first. A policy that backends can solve declares `Trait.PROGRAM` and
    needs none.

    Errors: those of `decide`. Source: each policy names its own in ``source``.

    >>> from fairopt.models import MaxMin
    >>> MaxMin().name, MaxMin().problem.__name__, [method.name for method in MaxMin().methods]
    ('max-min', 'Market', ['prices'])
    """

    name: ClassVar[str]
    source: ClassVar[str]
    problem: ClassVar[type] = Market
    traits: ClassVar[frozenset[Trait]] = frozenset()
    claims: ClassVar[tuple[Claim, ...]] = ()
    examples: ClassVar[tuple[Example, ...]] = ()
    states: ClassVar[tuple[type, ...]] = ()
    methods: ClassVar[tuple[Method, ...]] = (Method(),)
    #: What its program needs of a backend, beyond linear constraints.
    needs: ClassVar[frozenset[Capability]] = frozenset()
    #: Which entitlements it supports; a market that says others is refused, since its answer would break them.
    supports: ClassVar[frozenset[Entitled]] = frozenset()
    #: The relative error of utilities in an exact decision, where a policy rounds irrational numbers.
    rounding: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        check_within(self, lambda option: f"{self.name}, {option}")

    @property
    def solver_options(self) -> Options:
        """Options for the default backend, where none were given."""
        return Options()

    @property
    def checkable_claims(self) -> tuple[Claim, ...]:
        """The claims that name a property, which the conformance suites check."""
        return tuple(claim for claim in self.claims if claim.property)

    @property
    def has_program(self) -> bool:
        """Whether backends can solve it."""
        return Trait.PROGRAM in self.traits

    def start(self, problem: Any) -> Any:
        """Return the state before the first decision: the first of ``states``, empty; None for a policy without any."""
        return self.states[0]() if self.states else None

    def asked_of(self, problem: Any) -> bool:
        """Whether it is compared on a problem where nobody names it; else the question does not arise there."""
        return True

    def only_named(self, problem: Any) -> str:
        """Return why it is compared on a problem only where it is named, such as that it takes long; "" else."""
        return ""

    @abstractmethod
    def decide(self, problem: Any, state: Any, solve: Session) -> Decision:
        """Return the decision on ``problem`` in ``state``; ``solve`` is a session of the chosen backend or method.

        Callers use `fairopt.policy.decide.decide`, which chooses the solver. Errors: `NotSolved`, `NotCapable`,
        `NotInstalled`.
        """

    def parts(self, problem: Any) -> list[list[int]]:
        """Return the users (rows) of a market in parts, each decided as if the users of the others were not there.

        All users stand in exactly one. Groups belong to the users in them: those of two parts share none. The one part
        of all is right for every policy; a policy overrides this where there are more.
        """
        return [list(range(len(problem.users)))]

    def bundle(self, user: int, problem: Any, before: Any, solve: Session) -> Array:
        """Return what ``user`` gets (k,) in the decision on ``problem``, a market.

        It differs from the market of ``before``, an earlier decision, in this user's numbers only. A policy overrides
        this where one bundle is much less work than the whole decision: the search for misreports asks for thousands.
        """
        decision = self.decide(problem, self.start(problem), solve)
        assert isinstance(decision, Allocation)
        bundle: Array = decision.shares[user]
        return bundle

    def incentive_ratio(self, part: Number) -> Number | None:
        """Return a theorem's bound on the factor that lies about speedups give a user with ``part`` of all weight.

        It speaks of markets without demands. None where there is none.
        """
        return None

    def weight_ratio(self, part: Number, times: Number) -> Number | None:
        """Return a theorem's bound on what a user with ``part`` of all weight gains that claims ``times`` its own.

        It speaks of markets without demands, where all speedups are positive. None where there is none.
        """
        return None

    def least_in_range(self, problem: Market, user: int, truth: Array) -> Number | None:
        """Return what a user truly gets at least, by ``truth`` (k,), at any optimum for any reports in a range.

        The ranges are those of ``problem``, in Fractions and without demands. None where nothing is proved.
        """
        return None

    def many_bundles(self, problem: Any, before: Any) -> ManyBundles | None:
        """Return what decides on thousands of misreports on ``problem`` at once, a market in floats; None for nothing.

        ``before`` is the decision on the truth. The bundles are those of `decide` up to about 1e-8, relatively; where
        optima tie they may be those of another optimum. A policy overrides this where its algorithm can be run on
        arrays of markets: the search for misreports then tries so many more.
        """
        return None

    def optimal_face(self, decision: Any) -> Program | None:
        """Return a program of all allocations that the policy could have chosen; None where it optimises nothing.

        Its variables include a block "share" (n, k).
        """
        if not self.has_program or Trait.DETERMINED not in self.traits:
            return None
        return same_utilities(decision, f"optima of {self.name}")

    def choices(self, decision: Any) -> Program | None:
        """Return the same set of allocations as `optimal_face`, with the rows that ``proofs/verify.py`` expects."""
        return self.optimal_face(decision)

    def told(self, market: Market) -> str:
        """Return the name under which certificates speak of its decisions on ``market``.

        The verifier knows policies of the house by their names, with their own options and without entitlements.
        """
        return f"{self.name} with entitlements" if is_entitled(market) else self.name

    def certify(self, decision: Any) -> Certificate:
        """Return the evidence that an exact ``decision`` is this policy's, for ``proofs/verify.py`` to check.

        Errors: `NotCapable` where the decision is in floats, or the policy brings no certificate.
        """
        raise NotCapable(f"{self.name} brings no certificate of its decisions")

    def _require_exact(self, decision: Allocation, otherwise: str = "decide with the exact backend") -> None:
        if not decision.arithmetic.exact:
            raise NotCapable(f"this decision of {self.name} is in floats, and floats prove nothing: {otherwise}")


def require_policy(policy: object) -> None:
    """Raise `BadInput` unless ``policy`` is one: what policies are made with takes no names, and says who does."""
    if isinstance(policy, Policy):
        return
    got = f"the class {policy.__name__}" if isinstance(policy, type) else type_of(policy)
    got = f"the name {policy!r}" if isinstance(policy, str) else got
    remedy = "Give a policy; fairopt.discovery.policy_of makes one of a name or a class, and fairopt.decide takes all"
    raise BadInput(f"got {got}", place="policy", remedy=remedy)
