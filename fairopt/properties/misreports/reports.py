"""A policy's decisions on misreports: one at a time, or thousands of programs side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from fairopt.backends import Highs, ProgramMethod
from fairopt.backends.batched import solve_many
from fairopt.backends.solution import Basis, not_negative
from fairopt.errors import NotSolved, require_returned
from fairopt.policy import Allocation, Formulated, Policy, chosen, decide, session
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.problem.throughput import capped_value
from fairopt.program import Array, Program
from fairopt.program.batched import formulated, numbers_of

#: Programs with larger dictionaries (in numbers) are solved faster one by one, from HiGHS's sparse matrices. The second
#: limit is for programs with more rows than variables, which take more steps.
LARGEST_DICTIONARY, LARGEST_TALL = 2**16, 10_000
#: The most numbers of programs held at a time.
HELD = 2**22
#: The relative difference allowed between a program formulated for many cases and the same one formulated alone.
SAME = 1e-12


class Reports:
    """What misreports gain under a policy, on a market in floats.

    ``truth`` is the decision when all tell the truth (to a vertex, where none is given); all others are made by the
    same solver. ``own`` (n,) is each user's throughput in it, ``fair`` (n,) that on its equal share.
    """

    def __init__(self, policy: Policy, problem: Market, truth: Allocation | None = None) -> None:
        self.policy, self.market = policy, problem.as_(float)
        known = None if truth is None else truth.solver
        self._solver = known or chosen(policy, vertex=truth is None, entitled=is_entitled(problem))
        self.truth = decide(policy, self.market, self._solver) if truth is None else truth
        self.own = self.market.utility(self.truth.shares.astype(float))
        self.fair = self.market.fair_utility()
        self._like = self._template()

    @property
    def chunk(self) -> int:
        """How many misreports are best decided at once."""
        if self._like is None:
            return 16
        return min(1024, max(16, HELD // max(1, len(self._like[0].rows.value))))

    @property
    def screened(self) -> bool:
        """Whether gains may come from another optimum than the one that `misreported` finds, where optima tie."""
        return self._like is not None or isinstance(self._solver, ProgramMethod)

    def misreported(self, user: int, report: Array) -> Allocation:
        """Return the decision on a market in which one user misreports, by the solver of the truth."""
        return decide(self.policy, self.market.misreport(user, report), self._solver)

    def gain(self, user: int, report: Array) -> float:
        """Return what one misreport (k,) gains, decided like the truth."""
        decision = self.misreported(user, report)
        return float(self.market.utility(decision.shares.astype(float))[user] - self.own[user])

    def gains(self, users: Array, reports: Array, over: Callable[[], bool] = lambda: False) -> Array:
        """Return what each of the misreports (cases, k) by ``users`` (cases,) gains, in the user's own units.

        NaN where the policy has no answer. When ``over`` returns True no more are decided, and the result is shorter.
        """
        reached = np.full(len(users), np.nan)
        if self._like is not None:
            reached = self._solved_together(*self._like, users, reports)
        found: Array = reached - self.own[users]
        for place in np.flatnonzero(np.isnan(found)):
            if over():
                return found[:place]
            user = int(users[place])
            market = self.market.misreport(user, reports[place])
            near = session(self.policy, self._solver, start=self.truth.solution)
            with suppress(NotSolved):  # a report that the policy cannot answer gains nothing
                bundle = self.policy.bundle(user, market, self.truth, near)
                fits = isinstance(bundle, np.ndarray) and bundle.shape == market.capacity.shape
                method = f"{type(self.policy).__name__}.bundle"
                require_returned(fits, bundle, method, "an array (k,): GPUs of each type")
                bundle = bundle.astype(float)
                demand = None if self.market.demand is None else self.market.demand[user]
                found[place] = capped_value(self.market.speedup[user], bundle, demand) - self.own[user]
        return found

    def _template(self) -> tuple[Program, Basis] | None:
        """Return the truth's program with an optimal basis to solve the others from; None where that is no use."""
        policy = self.policy
        if not isinstance(policy, Formulated) or type(policy).decide is not Formulated.decide:
            return None  # more than one program
        made = self.truth if isinstance(self._solver, Highs) else None
        if made is None and self._solver != chosen(policy, entitled=is_entitled(self.market)):
            return None  # another back end was asked for
        made = made or decide(policy, self.market, vertex=True)
        program, solution = made.program, made.solution
        if program is None or solution is None or solution.basis is None or program.logarithms is not None:
            return None
        rows, variables = program.shape
        small = rows * variables <= (LARGEST_TALL if rows > variables else LARGEST_DICTIONARY)
        return (program, solution.basis) if small and not program.integer.any() else None

    def _solved_together(self, like: Program, basis: Basis, users: Array, reports: Array) -> Array:
        """Return what each misreporting user gets (cases,), NaN where its program must be solved alone."""
        reached = np.full(len(users), np.nan)
        speedups = np.repeat(self.market.speedup[None], len(users), axis=0)
        speedups[np.arange(len(users)), users] = reports
        try:
            groups = list(formulated(self._written, speedups))
        except (TypeError, AttributeError, ValueError):
            # the formulation needs more than arithmetic and comparisons of its numbers: these are solved one at a time
            self._like = None
            return reached
        for programs in groups:
            if programs.template.shape != like.shape:
                continue
            if not _same(programs.program(0), self._written(speedups[programs.cases[0]])):
                self._like = None
                return np.full(len(users), np.nan)
            block = programs.template.variable_block("share")
            points, who = solve_many(programs, like, basis), users[programs.cases]
            shares = not_negative(points[:, block.span].reshape(-1, *block.shape)[np.arange(len(who)), who])
            demand = None if self.market.demand is None else self.market.demand[who]
            reached[programs.cases] = capped_value(self.market.speedup[who], shares, demand)
        return reached

    def _written(self, speedup: Array) -> Program:
        policy = self.policy
        assert isinstance(policy, Formulated)
        market = replace(self.market, speedup=speedup)
        return policy.formulate(market, policy.start(market))


def _same(one: Program, other: Program) -> bool:
    """Whether two programs have the same structure and, up to rounding, the same numbers."""
    mine, theirs = (np.concatenate(numbers_of(each)).astype(float) for each in (one, other))
    return one.same_structure(other) and np.allclose(mine, theirs, rtol=SAME, atol=0)
