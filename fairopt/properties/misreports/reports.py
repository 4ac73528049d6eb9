"""What a policy gives the users that misreport: one decision at a time, or thousands of programs side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fairopt.backends import Highs, Options, Solver
from fairopt.backends.batched import solve_many
from fairopt.backends.solution import not_negative
from fairopt.errors import NotSolved
from fairopt.policy import Decision, Formulated, Policy, Solve
from fairopt.problem import Market
from fairopt.problem.utility import capped_value
from fairopt.program import Array, Program
from fairopt.program.many import Programs, formulated

#: Programs with more numbers than this in a dictionary are faster solved one by one, from HiGHS's sparse matrices;
#: those with more rows than variables take more steps, and so are from the second number on.
LARGEST_DICTIONARY, LARGEST_TALL = 2**16, 10_000
#: So many numbers of programs are held at a time.
HELD = 2**22
#: Relative difference by which a program written for many cases may differ from the same one written by itself.
SAME = 1e-12


class Replies:
    """A policy on a market in floats, asked what each misreport would bring.

    ``own`` (n,) is each user's throughput when all tell the truth, ``fair`` (n,) that on its own partition.
    """

    def __init__(self, policy: Policy, problem: Market, backend: Solver | None) -> None:
        self.policy, self.market = policy, problem.as_(float)
        self._solver = Highs() if backend is None and not policy.own_algorithm else backend
        self.truth = self.decide(self.market)
        self.own = self.market.utility(self.truth.shares.astype(float))
        self.fair = self.market.fair_utility()
        self._together = self._can_be_solved_together()

    @property
    def chunk(self) -> int:
        """How many misreports are best asked about at once."""
        if not self._together or self.truth.program is None:
            return 16
        return min(1024, max(16, HELD // max(1, len(self.truth.program.rows.value))))

    @property
    def screened(self) -> bool:
        """Whether answers are some optimum's: where optima tie, maybe another one than `decide` finds."""
        return self._together

    def decide(self, market: Market) -> Decision:
        """Return the policy's decision on ``market``, as `fairopt.policy.allocate` makes it."""
        # a solver of its own each time, as `allocate` has: where optima tie, a warm start would choose among them
        solve = None if self._solver is None else Solve(self._solver, Options())
        return self.policy.decide(market, self.policy.start(market), solve)

    def lying(self, user: int, report: Array) -> Decision:
        """Return the decision on a market in which one user misreports."""
        return self.decide(self.market.misreport(user, report))

    def gains(self, users: Array, reports: Array, over: Callable[[], bool] = lambda: False) -> Array:
        """Return what each of the misreports (cases, k) by ``users`` (cases,) gains, in the user's own units.

        NaN where the policy has no answer. When ``over`` says so no further one is decided: the answer is then shorter.
        """
        found = self._solved_together(users, reports) if self._together else np.full(len(users), np.nan)
        for place in np.flatnonzero(np.isnan(found)):
            if over():
                return found[:place] - self.own[users[:place]]
            try:
                decision = self.lying(int(users[place]), reports[place])
            except NotSolved:
                continue  # a report that the policy cannot answer gains nothing
            found[place] = self.market.utility(decision.shares.astype(float))[users[place]]
        return np.asarray(found - self.own[users])

    def _can_be_solved_together(self) -> bool:
        program, solution = self.truth.program, self.truth.solution
        rows, variables = (0, 0) if program is None else program.shape
        return (
            isinstance(self._solver, Highs)
            and isinstance(self.policy, Formulated)
            and type(self.policy).decide is Formulated.decide  # one program, and nothing around it
            and program is not None
            and solution is not None
            and solution.basis is not None
            and program.logarithms is None
            and not program.integer.any()
            and rows * variables <= (LARGEST_TALL if rows > variables else LARGEST_DICTIONARY)
        )

    def _solved_together(self, users: Array, reports: Array) -> Array:
        """Return what each liar gets (cases,), NaN where its program must be solved by itself."""
        like, solution = self.truth.program, self.truth.solution
        assert like is not None
        assert solution is not None
        assert solution.basis is not None
        reached = np.full(len(users), np.nan)
        speedups = np.repeat(self.market.speedup[None], len(users), axis=0)
        speedups[np.arange(len(users)), users] = reports
        try:
            groups = list(formulated(self._written, speedups))
        except (TypeError, AttributeError, ValueError):
            # the formulation wants more of its numbers than arithmetic and comparisons; by itself it will be heard
            self._together = False
            return reached
        for programs in groups:
            if programs.template.shape != like.shape:
                continue
            if not _same(programs.program(0), self._written(speedups[programs.cases[0]])):
                self._together = False
                return np.full(len(users), np.nan)
            shares = self._liars_shares(programs, solve_many(programs, like, solution.basis), users)
            who = users[programs.cases]
            demand = None if self.market.demand is None else self.market.demand[who]
            reached[programs.cases] = capped_value(self.market.speedup[who], shares, demand)
        return reached

    def _written(self, speedup: Array) -> Program:
        policy = self.policy
        assert isinstance(policy, Formulated)
        market = replace(self.market, speedup=speedup)
        return policy.formulate(market, policy.start(market))

    def _liars_shares(self, programs: Programs, points: Array, users: Array) -> Array:
        block = next(block for block in programs.template.variable_blocks if block.name == "share")
        shares = points[:, block.span].reshape(len(points), *block.shape)
        return not_negative(shares[np.arange(len(points)), users[programs.cases]])


def _same(one: Program, other: Program) -> bool:
    """Whether two programs have the same structure and, but for rounding, the same numbers."""
    pairs = (
        (one.cost, other.cost),
        (one.lower, other.lower),
        (one.upper, other.upper),
        (one.rows.value, other.rows.value),
        (one.rows.lower, other.rows.lower),
        (one.rows.upper, other.rows.upper),
    )
    return one.same_structure(other) and all(
        np.allclose(a.astype(float), b.astype(float), rtol=SAME, atol=0) for a, b in pairs
    )
