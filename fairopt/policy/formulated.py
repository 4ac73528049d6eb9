"""Share policies that are given as a program, and those that are computed by a rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairopt.backends import Method, Session
from fairopt.backends.exact import Exact
from fairopt.backends.optimal_face import cut_to_optima, with_optimum
from fairopt.backends.solution import Solution, without_noise, written_out
from fairopt.errors import NotCapable, require_returned
from fairopt.numbers import arithmetic
from fairopt.policy.allocation import Allocation
from fairopt.policy.decision import Seconds
from fairopt.policy.policy import ManyBundles, Policy
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.program import Array, Number, Program

if TYPE_CHECKING:
    from fairopt.certificates import Certificate


class Formulated(Policy):
    """A share policy that is a program: a subclass implements `formulate`; `decide` is the same for all.

    ``verifier_knows_program`` says that ``proofs/verify.py`` builds the program from the market itself, with the names
    that `formulate` gives to rows and variables. Otherwise, and where the market has entitlements, a certificate holds
    the program itself. The policy's ``methods`` solve the same program, without entitlements.

    >>> from fairopt import allocate
    >>> from fairopt.problem.share_variables import shares_of
    >>> from fairopt.program import Formulation
    >>> class MostOfAll(Formulated):
    ...     name, source = "most-of-all", "none"
    ...     def formulate(self, problem, state):
    ...         p = Formulation(self.name)
    ...         p.maximize((problem.speedup * shares_of(p, problem)).sum())
    ...         return p.program()
    >>> float(allocate(MostOfAll(), Market.of([[1, 2], [1, 5]], capacity=[1, 1])).objective)
    6.0
    """

    methods: ClassVar[tuple[Method, ...]] = ()
    verifier_knows_program: ClassVar[bool] = False

    def __init_subclass__(cls, **named: Any) -> None:
        """A subclass with its own `formulate` does not inherit methods, which solve its base's program."""
        super().__init_subclass__(**named)
        if "formulate" in vars(cls) and "methods" not in vars(cls):
            cls.methods = ()

    @property
    def has_program(self) -> bool:
        """Whether backends can solve it: they can."""
        return True

    @abstractmethod
    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program in the number type of ``problem``; its shares are a block of variables called "share"."""

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Solve, check that the answer keeps the constraints, and read off the shares."""
        if solve.method is not None:
            return self._by_method(problem, solve)
        begun = perf_counter()
        program = self.formulate(problem.as_(solve.number), state)
        fits = isinstance(program, Program) and ("share", problem.shape) in (
            (block.name, block.shape) for block in program.variable_blocks
        )
        wanted = 'a Program: p.program() of a Formulation p, with variables "share", one for each user and type'
        require_returned(fits, program, f"{type(self).__name__}.formulate", wanted)
        return self.at_optimum(problem, program, solve.optimum, begun)

    def at_optimum(
        self, problem: Market, program: Program, optimum: Callable[[Program], Solution], begun: float
    ) -> Allocation:
        """Return the shares at the optimum of a program of this policy; ``begun`` is when it began to write it."""
        built = perf_counter()
        solution = optimum(program)
        return Allocation(
            self.name,
            problem,
            shares=without_noise(program.variable("share", solution.point), problem.capacity),
            objective=program.value(solution.point),
            program=program,
            solution=solution,
            seconds=Seconds(build=built - begun, solve=perf_counter() - built),
        )

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles | None:
        """Return who solves the programs of many misreports side by side; None where each takes more than one."""
        if type(self).decide is not Formulated.decide:
            return None
        from fairopt.policy.many_programs import ManyPrograms  # here, since few callers search for misreports

        def write(speedup: Array) -> Program:
            market = replace(problem, speedup=speedup)
            return self.formulate(market, self.start(market))

        return ManyPrograms.of(write, problem)

    def _by_method(self, problem: Market, solve: Session) -> Allocation:
        """Return the answer of a method, which proves its answer without formulating the program."""
        begun = perf_counter()
        solution = solve.answer(self, problem)
        assert solution.objective is not None
        took = Seconds(solution.effort.get("prepare", 0.0), solution.seconds, solution.effort.get("certify", 0.0))
        return Allocation(
            self.name,
            problem,
            shares=solution.values["share"],
            objective=solution.objective,
            solution=solution,
            seconds=took if took.solve else Seconds(solve=perf_counter() - begun),
        )

    def solved(self, decision: Allocation) -> tuple[Program, Solution] | None:
        """Return the program of a decision and its solution by position; None where they are not known."""
        program, solution = decision.program, decision.solution
        if solution is None:
            return None
        if program is None:
            program = self.formulate(decision.market.as_(float), self.start(decision.market))
            solution = written_out(program, solution)
        return program, self._with_its_shares(decision, program, solution) if decision.arithmetic.exact else solution

    def _with_its_shares(self, decision: Allocation, program: Program, solution: Solution) -> Solution:
        """Return the exact solution with the shares that were decided, which may be another optimum than the solver's.

        Errors: `NotCapable` where they belong to no optimum, so that the program says nothing about the decision.
        """
        if np.array_equal(program.variable("share", solution.point), decision.shares):
            return solution
        block = program.variable_block("share")
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[block.span] = upper[block.span] = decision.shares.ravel()
        found = Exact().solve(replace(program, lower=lower, upper=upper))
        if found.x is None or program.violations(found.x) or found.objective != solution.objective:
            raise NotCapable(
                f"the shares that {self.name} decided are no optimum of its program; what shows that they are right, "
                "its own `certify` must say"
            )
        return replace(solution, x=found.x)

    def optimal_face(self, decision: Allocation) -> Program | None:
        """Return the program restricted to its optimal solutions."""
        found = self.solved(decision)
        if found is None:
            return None
        return with_optimum(*found) if found[1].dual is None else cut_to_optima(*found)

    def choices(self, decision: Allocation) -> Program | None:
        """Return the program with its objective kept at the optimum."""
        found = self.solved(decision)
        return None if found is None else with_optimum(*found)

    def verifier_knows(self, market: Market) -> bool:
        """Whether ``proofs/verify.py`` builds the program of this market: never one with floors and caps."""
        return self.verifier_knows_program and not is_entitled(market)

    def certify(self, decision: Allocation) -> Certificate:
        """Return the primal and dual solutions, which prove each other optimal, or the method's own exact evidence."""
        method = decision.solver
        if isinstance(method, Method) and method.solves_programs:
            certificate: Certificate = method.certify(self, decision)
            return certificate
        from fairopt.certificates import optimality, outside_decision  # here, since who decides need not certify

        self._require_exact(decision)
        program, solution = decision.program, decision.solution
        if program is None or solution is None or solution.dual is None:
            integer = program is not None and program.integer.any()
            why = "and programs with integers have none" if integer else "decide with the exact backend"
            raise NotCapable(f"this decision of {self.name} was made without duals; {why}")
        solution = self._with_its_shares(decision, program, solution)
        if self.verifier_knows(decision.market):
            return optimality(decision.market, self.name, program, solution)
        return outside_decision(decision.market, self.told(decision.market), program, solution)


class Computed(Policy):
    """A share policy that is a rule, not a program, so that a backend has nothing to solve.

    ``looks_at_reports`` says whether the shares depend on what users report.

    >>> class Everything(Computed):
    ...     name, source = "everything", "none"
    ...     def compute(self, problem, state):
    ...         return [problem.capacity.tolist()], None  # to the only user
    >>> from fairopt import allocate
    >>> allocate(Everything(), Market.of([[1, 2]], capacity=[1, 1])).utilities.tolist()
    [Fraction(3, 1)]
    """

    looks_at_reports: ClassVar[bool] = True

    @abstractmethod
    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        """Return the shares (n, k) in the number type of ``problem``, and the evidence."""

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Return the shares that `compute` gives, as a decision."""
        begun = perf_counter()
        found = self.compute(problem, state)
        pair = isinstance(found, tuple) and len(found) == 2
        wanted = "a pair: shares (n, k), and evidence or None"
        require_returned(pair, found, f"{type(self).__name__}.compute", wanted)
        shares, evidence = problem.shares(found[0]), found[1]
        market = problem.as_(Fraction) if arithmetic(shares).exact else problem
        return Allocation(
            self.name,
            problem,
            shares=shares,
            objective=market.utility(shares).sum(),
            evidence=evidence,
            seconds=Seconds(solve=perf_counter() - begun),
        )

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles | None:
        """Return what gives all who report anything what they have, where reports are not looked at; None else."""
        held = before.shares.astype(float)
        return None if self.looks_at_reports else lambda users, reports: held[users]

    def least_in_range(self, problem: Market, user: int, truth: Array) -> Number | None:
        """Return what the user has where it is the same for all reports; None else."""
        if self.looks_at_reports:
            return None
        shares, _ = self.compute(problem, None)
        worth: Number = (truth * shares[user]).sum()
        return worth
