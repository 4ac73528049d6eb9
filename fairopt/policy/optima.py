"""All optima of a policy on a market, as a program: every question about them is a linear program.

`Optima` answers how large or small a linear function can be on them, whether there is only one, and which is
lexicographically largest.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends import Backend, Highs
from fairopt.backends.exact import Exact
from fairopt.backends.optimal_face import cut_to_optima
from fairopt.backends.solution import Status, not_negative
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.policy.allocation import Allocation
from fairopt.policy.policy import Policy, require_policy
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Block, Number, Program, Rows, Sense, on_shares
from fairopt.report import ResultForm, Statement

_log = logging.getLogger(__name__)
#: The terms of a row: coefficients by column.
Terms = dict[int, Any]

#: Two optimal allocations in floats that differ by less than this, relative to capacity, count as the same.
SAME = 1e-6


#: What is said of one: whether ``utilities`` and ``shares`` are the same in every optimum.
SAID = {True: "yes", False: "no, another optimum has others", None: "nothing is optimised, or not known"}
UNIQUENESS = ResultForm(
    "Whether the optimum is the only one.",
    sentence=lambda it: f"unique utilities: {SAID[it.utilities]}; unique shares: {SAID[it.shares]}",
)
#: Nothing was optimised, or it is not known.
UNKNOWN = UNIQUENESS.of(utilities=None, shares=None)


class Optima:
    """Everything that a policy could have decided on a market, in the numbers of its decision.

    ``choices`` is a program whose feasible points are the optima; its variables include a block "share" (n, k).
    ``shares`` is the optimum that was decided. ``fair`` (n,) is each user's throughput on its equal share.

    Errors: `NotSolved` of the questions.

    >>> from fairopt import allocate
    >>> from fairopt.models import MaxEfficiency
    >>> decision = allocate(MaxEfficiency(), Market.of([[1, 2], [1, 2]], capacity=[1, 1]), exact=True)
    >>> optima = Optima.of(MaxEfficiency(), decision)
    >>> first = np.array([[1, 2], [0, 0]])  # the throughput of the first user
    >>> print(optima.extreme(first, Sense.MINIMIZE), optima.extreme(first))
    0 3
    """

    def __init__(self, market: Market, choices: Program, shares: Array) -> None:
        self.market, self.choices, self.shares = market, choices, shares
        self.first = choices.variable_block("share").first
        self.fair = market.fair_utility()

    @classmethod
    def of(cls, policy: Policy, decision: Allocation) -> Optima | None:
        """Return the optima of a decision; None where nothing was optimised, so that there is no choice."""
        face = policy.optimal_face(decision)
        number = decision.arithmetic.number
        return None if face is None else cls(decision.market.as_(number), face.as_(number), decision.shares)

    # -- questions ---------------------------------------------------------------------------------------------------
    def extreme(self, weight: Array, sense: Sense = Sense.MAXIMIZE) -> Number:
        """Return the largest or least sum of ``weight`` (n, k) times shares over the optima. Errors: `NotSolved`."""
        sign = 1 if sense is Sense.MAXIMIZE else -1
        program = on_shares(self.choices, weight * sign)
        return sign * program.value(self._solver().optimum(program).point)

    def unique(self, *, seed: int = 0) -> Statement:
        """Say whether every optimum has the same utilities, and the same shares; decided in floats.

        A random linear function is maximised and minimised: equal values mean uniqueness with probability one.
        """
        if self.choices.exact:
            market = self.market.as_(float)
            return Optima(market, self.choices.as_(float), self.shares.astype(float)).unique(seed=seed)
        random = np.random.default_rng(seed)
        market, there = self.market, self.market.capacity > 0
        # relative weights, so that users who count in thousands do not drown the others
        per_user = random.uniform(1, 2, len(market.users)) / self.fair
        per_share = random.uniform(1, 2, market.shape) * np.where(there, 1 / np.where(there, market.capacity, 1), 0)
        same = []
        for weight in (per_user[:, None] * market.speedup, per_share):
            spread: Any = self.extreme(weight) - self.extreme(weight, Sense.MINIMIZE)
            same.append(bool(abs(spread) <= SAME * (1 + abs(float((weight * self.shares).sum())))))
        return UNIQUENESS.of(utilities=same[0], shares=same[0] and same[1])

    def lexicographic(self) -> Array:
        """Return the lexicographically largest optimum: by utilities in the order of the users, then by shares."""
        n, k = self.market.shape
        weights = [np.zeros_like(self.market.speedup) for _ in range(n + n * k)]
        for i, row in enumerate(self.market.speedup):
            weights[i][i] = row / row.max()
        for place in range(n * k):
            weights[n + place].flat[place] += 1
        solver, left = self._solver(), self.choices
        for weight in weights:
            program = on_shares(left, weight)
            solution = solver.optimum(program)
            left = replace(cut_to_optima(program, solution), name=self.choices.name)
        return self.allocation(solution.point)

    def allocation(self, point: Array) -> Array:
        """Return the shares (n, k) of a point."""
        n, k = self.market.shape
        return not_negative(point[self.first : self.first + n * k].reshape(n, k))

    def _solver(self) -> Backend:
        return Exact() if self.choices.exact else Highs()

    # -- parts of questions, for properties that are asked over all optima (exact) ------------------------------------
    def column(self, user: int, type: int) -> int:
        """Return where a share stands among the variables."""
        return self.first + user * self.market.shape[1] + type

    def worth(self, user: int, holder: int, factor: Any = 1) -> Terms:
        """Return the terms of the throughput that the shares of ``holder`` would give ``user``, times ``factor``."""
        speedup = self.market.speedup[user]
        return {self.column(holder, j): factor * speed for j, speed in enumerate(speedup) if speed}

    def most(self, objective: Terms, program: Program | None = None) -> tuple[Fraction, Array] | None:
        """Return the largest value of ``objective``, and the point; None where no point is left in ``program``.

        Errors: `NotSolved`, also where the objective is unbounded.
        """
        program = program or self.choices
        cost = np.full(len(program.cost), Fraction(0), dtype=object)
        for column, rate in objective.items():
            cost[column] = Fraction(rate)
        asked = replace(program, sense=Sense.MAXIMIZE, cost=cost, offset=Fraction(0), logarithms=None)
        solution = Exact().solve(asked)
        if solution.status is Status.INFEASIBLE:
            return None
        point = solution.require_optimal().point
        return Fraction(asked.value(point)), point

    def limited(self) -> list[int]:
        """Return the users with a demand."""
        return [i for i, limit in enumerate(self.market.limit) if limit < INFINITY]

    def uses_all(self) -> bool:
        """Whether no optimum gives a user more GPUs than it demands, so that throughputs are linear on the face."""
        types = range(self.market.shape[1])
        most = ((self.most({self.column(i, j): 1 for j in types}), self.market.limit[i]) for i in self.limited())
        return all(found is not None and found[0] <= limit for found, limit in most)

    def without(self, zero: Collection[int], program: Program) -> Program:
        """Return the part of the face on which the variables in ``zero`` are 0."""
        upper = program.upper.copy()
        upper[list(zero)] = Fraction(0)
        return replace(program, upper=upper)

    def inner_point(self, program: Program, columns: Collection[int]) -> tuple[Array, set[int]] | None:
        """Return a point with as many of ``columns`` positive as possible, and these; None where no point is left.

        The set is unique: variables positive at either of two points are all positive half-way between them.
        """
        found, points, zero = self.most({}, program), [], set(columns)
        if found is None:
            return None
        while True:
            points.append(found[1])
            zero = {column for column in zero if not found[1][column] > 0}
            found = self.most(dict.fromkeys(zero, 1), program) if zero else None
            if found is None or not found[0] > 0:
                return np.asarray(sum(points) / Fraction(len(points))), set(columns) - zero


def uniqueness(policy: Policy, decision: Allocation, *, seed: int = 0) -> Statement:
    """Say whether all optima of a decision have the same utilities, and the same shares.

    Errors: `BadInput` for the name of a policy.

    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.policy import decide
    >>> print(uniqueness(MaxEfficiency(), decide(MaxEfficiency(), Market.of([[1, 2], [1, 5]], capacity=[1, 1]))))
    unique utilities: no, another optimum has others; unique shares: no, another optimum has others
    """
    require_policy(policy)
    try:
        optima = Optima.of(policy, decision)
        return UNKNOWN if optima is None else optima.unique(seed=seed)
    except (NotSolved, NotCapable) as failure:  # rounding may leave no point of the optima; this may be none of them
        _log.info("%s: whether the optimum is unique is not known (%s)", policy.name, failure)
        return UNKNOWN


def lexicographic(policy: Policy, decision: Allocation) -> Array:
    """Return the lexicographically largest of the shares (n, k) that could have been decided."""
    optima = Optima.of(policy, decision)
    return decision.shares if optima is None else optima.lexicographic()


def extended(
    program: Program, variables: Collection[tuple[Any, Any]], rows: Collection[tuple[Terms, Any, Any]]
) -> Program:
    """Return a program with more variables (lower, upper) and more rows (terms by column, lower, upper)."""
    columns, count, old = len(program.cost), len(program.rows), program.rows
    entries = [
        (count + r, column, Fraction(terms[column])) for r, (terms, _, _) in enumerate(rows) for column in sorted(terms)
    ]
    at, of, rate = (list(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    return replace(
        program,
        cost=_more(program.cost, [Fraction(0)] * len(variables)),
        lower=_more(program.lower, [low for low, _ in variables]),
        upper=_more(program.upper, [high for _, high in variables]),
        integer=np.concatenate([program.integer, np.zeros(len(variables), dtype=bool)]),
        rows=Rows(
            row=np.concatenate([old.row, np.array(at, dtype=int)]),
            column=np.concatenate([old.column, np.array(of, dtype=int)]),
            value=_more(old.value, rate),
            lower=_more(old.lower, [low for _, low, _ in rows]),
            upper=_more(old.upper, [high for _, _, high in rows]),
        ),
        variable_blocks=(*program.variable_blocks, Block("extra", (len(variables),), columns, len(variables))),
        row_blocks=(*program.row_blocks, Block("extra", (len(rows),), count, len(rows))),
    )


def is_extreme(program: Program, x: Array) -> bool:
    """Whether a feasible point is an extreme point: its tight constraints have full rank.

    The program and ``x`` must be exact. Errors: `BadInput` where the point breaks a constraint.
    """
    from flint import fmpq, fmpq_mat

    broken = program.violations(x)
    if broken:
        raise BadInput(f"the point breaks {', '.join(broken)}", place=program.name, remedy="Give a feasible point")
    rows, activity = program.rows, program.rows.activity(x)
    matrix = np.zeros((len(rows), len(x)), dtype=object)
    matrix[rows.row, rows.column] = rows.value
    of_rows = matrix[(activity == rows.lower) | (activity == rows.upper)]
    of_bounds = np.eye(len(x), dtype=int)[np.asarray((x == program.lower) | (x == program.upper), dtype=bool)]
    tight = [*of_rows.tolist(), *of_bounds.tolist()]
    entries = [fmpq(Fraction(value).numerator, Fraction(value).denominator) for row in tight for value in row]
    return int(fmpq_mat(len(tight), len(x), entries).rank()) == len(x)


def _more(array: Array, values: list[Any]) -> Array:
    more = [value if abs(value) == INFINITY else Fraction(value) for value in values]
    return np.array([*array, *more], dtype=object)
