"""What a policy is, what it decides, and how it is run.

A policy is a declarative object: a name, the source that published it, what that source claims of it, and `decide`.
Most are `Formulated`: they write down a program and a solver answers it. A policy may bring an algorithm of its own; it
is used unless the caller names a back end.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

from fairopt.backends import Highs, Options, Solver
from fairopt.backends.solution import Solution, Status, not_negative, refuse_broken
from fairopt.certificates import Certificate, Optimality, OutsideDecision
from fairopt.errors import BadInput, NotCapable
from fairopt.problem import Market
from fairopt.program import Array, Number, Program
from fairopt.uniqueness import cut_to_optima, lexicographic, with_optimum


@dataclass(frozen=True)
class Claim:
    """What a source says of a policy: that it has a property, under which assumption, and where it says so.

    ``misreport`` narrows strategy-proofness to a kind of misreport ("larger", "smaller"). ``refuted_by`` is a market on
    which the property fails, where one is known: the claim as stated is then false.
    """

    property: str
    source: str
    assumes: str = ""
    misreport: str = "any"
    refuted_by: Market | None = None


@dataclass(frozen=True)
class Example:
    """A worked example of a source: a market, and what the policy decides on it.

    ``shares``, ``utilities`` or their ``total`` are the right numbers, exact; ``printed`` says what the source prints
    where that differs.
    """

    source: str
    market: Market
    shares: Sequence[Sequence[object]] | None = None
    utilities: Sequence[object] | None = None
    total: object = None
    printed: str = ""


class Trait(enum.Enum):
    """What a policy declares of itself beyond its claims; the conformance suite holds it to it, and fails closed."""

    UNIT_FREE = "rescaling a user's units leaves the allocation as it is"
    COPIES = "a user of weight w is w copies of itself"
    PROGRAM = "a program that back ends solve"
    EXACT = "exact decisions on exact markets"
    DETERMINED = "utilities that do not depend on a solver's choice among optima"


@dataclass(frozen=True)
class Seconds:
    """Where the time went: writing programs down, inside the solver, making evidence exact."""

    build: float = 0.0
    solve: float = 0.0
    certify: float = 0.0


@dataclass(frozen=True, eq=False)
class Decision:
    """What a policy decided on a market.

    Shapes: ``shares`` (n, k) GPUs of each type for each user. ``objective`` is the policy's own, in its own unit.
    ``evidence`` is what the policy's algorithm can show beyond the shares (trades, prices, levels), None for a plain
    program, whose evidence is ``solution``. ``state`` is what the policy carries to the next round.
    """

    policy: str
    market: Market
    shares: Array
    objective: Number
    backend: str
    status: Status = Status.OPTIMAL
    state: Any = None
    program: Program | None = None
    solution: Solution | None = None
    evidence: Any = None
    seconds: Seconds = field(default_factory=Seconds)

    @property
    def exact(self) -> bool:
        """Whether the shares are Fractions."""
        return self.shares.dtype == object

    @property
    def utilities(self) -> Array:
        """Each user's throughput (n,) in its own units."""
        return self.market.as_(Fraction if self.exact else float).utility(self.shares)


class Solve:
    """A back end with its options, ready to be called with programs; keeps the model loaded where the back end can."""

    def __init__(self, backend: Solver, options: Options) -> None:
        self.backend, self.number = backend, backend.number
        self._options = options
        self._session = backend.session(options) if isinstance(backend, Highs) else None
        self.seconds = 0.0

    def __call__(self, program: Program) -> Solution:
        """Return the back end's answer to ``program``, whatever it is."""
        options = self._options
        solution = (
            self._session.solve(program)
            if self._session is not None
            else self.backend.solve(
                program,
                tolerance=options.tolerance,
                time_limit=options.time_limit,
                gap=options.gap,
                seed=options.seed,
                threads=options.threads,
            )
        )
        self.seconds += solution.seconds
        return solution


class Policy(ABC):
    """A rule that says who gets what.

    ``own_algorithm`` says that `decide` can do without a solver; it is then called with ``solve=None`` by default.
    ``specialised`` says that a policy that is a program has an algorithm of its own besides, in floats: `allocate`
    takes it where neither a back end nor an option of one is named. Exact decisions are still a solver's.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    traits: ClassVar[frozenset[Trait]] = frozenset()
    claims: ClassVar[tuple[Claim, ...]] = ()
    examples: ClassVar[tuple[Example, ...]] = ()
    own_algorithm: ClassVar[bool] = False
    specialised: ClassVar[bool] = False
    #: By which part of themselves utilities may be off in an exact decision, where a policy rounds what is irrational.
    rounding: ClassVar[Fraction] = Fraction(0)

    def start(self, problem: Market) -> Any:
        """Return the state before the first round; a policy without memory has none."""
        return None

    @abstractmethod
    def decide(self, problem: Market, state: Any, solve: Solve | None) -> Decision:
        """Return the decision on ``problem`` after ``state``; ``solve`` None asks for the policy's own algorithm.

        Errors: `NotSolved`, `NotCapable`, `NotInstalled`.
        """

    def follow(self) -> Callable[[Market], Decision]:
        """Return a function that decides market after market, as `allocate` does, for nearby markets.

        A policy with an algorithm of its own may begin where the last answer ended, if that saves time: users are
        known by their names, and some may have changed, come or gone. Where optima tie it may choose another.
        """
        return partial(allocate, self)

    def optimal_face(self, decision: Decision) -> Program | None:
        """Return a program whose feasible points are all allocations that the policy could have chosen as well.

        Its variables include a block "share" (n, k). None where nothing is optimised, so that there is no choice.
        """
        return None

    def choices(self, decision: Decision) -> Program | None:
        """Return the same set of allocations as `optimal_face`, in the rows that ``proofs/verify.py`` knows it by."""
        return self.optimal_face(decision)

    def certify(self, decision: Decision) -> Certificate:
        """Return the evidence that an exact ``decision`` is this policy's; ``proofs/verify.py`` decides whether it is.

        Errors: `NotCapable` where the decision is in floats, or the policy brings no certificate.
        """
        raise NotCapable(f"{self.name} brings no certificate of its decisions")

    def _require_exact(self, decision: Decision, otherwise: str = "decide with the exact back end") -> None:
        if not decision.exact:
            raise NotCapable(f"this decision of {self.name} is in floats, and floats prove nothing: {otherwise}")


class Formulated(Policy):
    """A policy that is a program: `formulate` writes it down, `decide` is written once, here.

    ``rebuilt`` says that ``proofs/verify.py`` makes the program from the market itself, under the names that
    `formulate` gives to rows and variables. Where it does not, a certificate holds the program as it was written.
    """

    rebuilt: ClassVar[bool] = False

    def __init_subclass__(cls, **named: Any) -> None:
        """A subclass that writes another program down does not inherit the algorithm made for the first."""
        super().__init_subclass__(**named)
        if "formulate" in vars(cls) and "specialise" not in vars(cls):
            cls.specialised = False

    def specialise(self, problem: Market, state: Any) -> Decision:
        """Return what `decide` would, in floats, by an algorithm made for this program; the evidence is `Proven`.

        Only policies that say so in ``specialised`` have one.
        """
        raise NotCapable(f"{self.name} has no algorithm of its own; name a back end")

    @abstractmethod
    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program in the numbers of ``problem``; its shares are a block of variables called "share"."""

    def decide(self, problem: Market, state: Any, solve: Solve | None) -> Decision:
        """Formulate, solve, check that the answer keeps the constraints, and read off the shares."""
        if solve is None:
            return self.specialise(problem, state)
        begun = perf_counter()
        program = self.formulate(problem.as_(solve.number), state)
        built = perf_counter()
        solution = solve(program).require_optimal()
        refuse_broken(program, solution)
        return Decision(
            policy=self.name,
            market=problem,
            shares=not_negative(program.variable("share", solution.point)),
            objective=program.value(solution.point),
            backend=solve.backend.name,
            program=program,
            solution=solution,
            seconds=Seconds(build=built - begun, solve=perf_counter() - built),
        )

    def solved(self, decision: Decision) -> tuple[Program, Solution] | None:
        """Return the program that a decision solves and its solution; None where neither is known."""
        if decision.program is None or decision.solution is None:
            return None
        return decision.program, decision.solution

    def optimal_face(self, decision: Decision) -> Program | None:
        """Return the program cut down to its optimal solutions."""
        found = self.solved(decision)
        return None if found is None or found[1].dual is None else cut_to_optima(*found)

    def choices(self, decision: Decision) -> Program | None:
        """Return the program with its objective kept at the optimum."""
        found = self.solved(decision)
        return None if found is None else with_optimum(*found)

    def certify(self, decision: Decision) -> Certificate:
        """Return the primal and dual solutions that prove each other optimal."""
        self._require_exact(decision)
        program, solution = decision.program, decision.solution
        if program is None or solution is None or solution.dual is None:
            raise NotCapable(f"this decision of {self.name} was made without duals; decide with the exact back end")
        if self.rebuilt:
            return Optimality.of(decision.market, self.name, program, solution)
        return OutsideDecision.of(decision.market, self.name, program, solution)


class Computed(Policy):
    """A policy that is an algorithm and no program: there is nothing for a back end to solve."""

    own_algorithm = True

    @abstractmethod
    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        """Return the shares (n, k) in the numbers of ``problem``, and the evidence."""

    def decide(self, problem: Market, state: Any, solve: Solve | None) -> Decision:
        """Compute; `NotCapable` where a back end was named, since it would have to be ignored."""
        if solve is not None:
            raise NotCapable(f"{self.name} is an algorithm of its own; it has no program for {solve.backend.name}")
        begun = perf_counter()
        shares, evidence = self.compute(problem, state)
        return Decision(
            policy=self.name,
            market=problem,
            shares=shares,
            objective=problem.utility(shares).sum(),
            backend="auto",
            evidence=evidence,
            seconds=Seconds(solve=perf_counter() - begun),
        )


def allocate(
    policy: Policy,
    problem: Market,
    backend: Solver | None = None,
    *,
    canonical: bool = False,
    time_limit: float | None = None,
    gap: float | None = None,
    tolerance: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Decision:
    """Return what ``policy`` decides on ``problem``.

    ``backend`` None means the policy's own algorithm where it has one, else HiGHS; HiGHS as well where an option of a
    solver is given to a policy that is a program, and where ``canonical`` is asked of it.

    ``canonical`` asks, where several allocations are optimal, for the lexicographic choice: the largest utility for the
    first user, then for the second, and so on, then the same over the shares; it depends on the order of the users,
    but not on the solver.

    Errors: `NotSolved` (carries what was found), `NotCapable`, `NotInstalled`, `BadInput`.

    >>> from fairopt.models import CooperativeOEF
    >>> decision = allocate(CooperativeOEF(), Market.of([[1, 2], [1, 5]], capacity=[1, 1]))
    >>> decision.shares.round(6).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """
    if isinstance(backend, str):
        raise BadInput(
            f"got the name {backend!r}", place="backend", remedy="Give a back end: Highs(), or discovery.backend(name)"
        )
    options = Options(time_limit=time_limit, gap=gap, tolerance=tolerance, seed=seed, threads=threads)
    own = policy.own_algorithm or (policy.specialised and not options.given() and not canonical)
    chosen = Highs() if backend is None and not own else backend
    if chosen is None and options.given():
        ignored = ", ".join(capability.value for capability in options.given())
        raise NotCapable(f"{policy.name} is computed by its own algorithm, which has no use for {ignored}")
    solve = None if chosen is None else Solve(chosen, options)
    decision = policy.decide(problem, policy.start(problem), solve)
    if not canonical:
        return decision
    begun = perf_counter()
    shares = lexicographic(policy, decision)
    seconds = replace(decision.seconds, solve=decision.seconds.solve + perf_counter() - begun)
    return replace(decision, shares=shares, seconds=seconds)


def run(policy: Policy, problems: Iterable[Market], backend: Solver | None = None) -> Iterator[Decision]:
    """Yield the decisions of successive rounds: a fold of `Policy.decide` over the problems."""
    state: Any = None
    started = False
    solver = Highs() if backend is None and not policy.own_algorithm else backend
    for problem in problems:
        # a solver of its own each round, as `allocate` has: where optima tie, a warm start would choose among them
        solve = None if solver is None else Solve(solver, Options())
        if not started:
            state, started = policy.start(problem), True
        decision = policy.decide(problem, state, solve)
        state = decision.state
        yield decision
