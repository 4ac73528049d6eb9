"""What a solver (a backend or a method) returns, and the conventions that all solvers keep.

The dual convention, for every backend and both senses
-------------------------------------------------------
1. The dual of a row is the rate at which the *objective as stated* changes when the row's active bound is raised:
   d objective / d bound. It does not matter whether the program maximises or minimises.
2. The reduced cost of a variable is the same rate for the variable's active bound.
3. Hence, with A the rows and c the cost: ``reduced_cost = c - A.T @ dual``; in a maximisation a row held at its upper
   bound has dual >= 0 and one held at its lower bound has dual <= 0; in a minimisation the signs swap. A row or
   variable strictly between its bounds has dual 0.
4. Where a program is degenerate, duals are not unique: compare objectives and residuals, never duals entry by entry.
5. A program with integer variables has no duals here (None).
6. With logarithms in the objective, c is the gradient of the objective at x.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairopt.errors import NotSolved
from fairopt.numbers import arithmetic, counted, short_text
from fairopt.program import Array, Number, Program, number_text


class Status(enum.Enum):
    """How solving ended, in the same words for all backends; `Solution.raw_status` has the solver's own."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"
    LIMIT = "limit"
    INACCURATE = "inaccurate"
    FAILED = "failed"


class Position(enum.IntEnum):
    """Where the basis puts a variable or row."""

    LOWER = 0
    BASIC = 1
    UPPER = 2
    ZERO = 3


@dataclass(frozen=True, eq=False)
class Basis:
    """A simplex basis: a `Position` for each variable and each row."""

    columns: Array
    rows: Array


@dataclass(frozen=True)
class Interval:
    """What is largest, or least, is proven to lie from ``lower`` to ``upper``; ``by`` says who, or what, proves it.

    ``of_file``: it is the optimum of a program as it stands in a file, where numbers are rounded to decimals.

    >>> Interval(3.4999, 3.5001, "prices").by
    'prices'
    """

    lower: Number
    upper: Number
    by: str
    of_file: bool = False


class OnDemand(Mapping[str, Any]):
    """A mapping whose values are computed on each access."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Any:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """An answer to one program, from a backend or a method.

    Shapes: ``x`` and ``reduced_cost`` have one entry per variable, ``dual`` one per row; each is None when the solver
    gives none. ``x`` is present whenever any point was found, also at a limit: an incumbent is never discarded.
    ``bound`` is the best bound on the objective that the solver proved. ``conflict`` names constraints that cannot hold
    together (irreducible where the backend says so); for a library that names none, HiGHS has sought them. ``seconds``
    is the time inside the solver.

    ``farkas`` proves infeasibility, where the backend has a proof: one multiplier per row, which goes with the row's
    lower bound where it is positive and with the upper bound where it is negative. For every point that satisfies the
    rows, ``farkas @ A @ x`` is at least the sum of multiplier times bound. For every point within the variables'
    bounds, it is less. ``ray`` proves unboundedness together with ``x``: a direction, one entry per variable, that
    improves the objective and stays feasible from ``x`` without limit.

    The optimum lies between ``lower`` and ``upper`` where these are known, proven bounds that count rounding. ``lower``
    is the value of a point that keeps every constraint exactly and differs from the returned one by rounding only.

    A method answers without formulating the program. Its point, ``values``, is given by the names of the variables'
    blocks, its multipliers, ``duals``, by those of the rows' blocks: arrays in the shape of the block, or (indices,
    values) where most entries are zero. `written_out` turns them into ``x`` and ``dual``. A later solve of a similar
    problem can begin at ``warm_start``, ``evidence`` is what a certificate holds beside all this, and ``effort`` counts
    what was done.
    """

    status: Status
    raw_status: str
    backend: str
    objective: Number | None = None
    bound: Number | None = None
    x: Array | None = None
    dual: Array | None = None
    reduced_cost: Array | None = None
    basis: Basis | None = None
    conflict: tuple[str, ...] = ()
    farkas: Array | None = None
    ray: Array | None = None
    seconds: float = 0.0
    lower: Number | None = None
    upper: Number | None = None
    values: Mapping[str, Array] = field(default_factory=dict)
    duals: Mapping[str, Array | tuple[Array, Array]] = field(default_factory=dict)
    effort: Mapping[str, float] = field(default_factory=dict)
    warm_start: Any = None
    evidence: Any = None

    def __repr__(self) -> str:
        found = "" if self.objective is None else f", objective {short_text(self.objective)}"
        size = "" if self.x is None else f"; {counted(len(self.x), 'variable')}"
        return f"<Solution: {self.status.value} by {self.backend}{found}{size}>"

    @property
    def gap(self) -> float | None:
        """The relative gap between this answer and the optimum; None where it is not known.

        It is the distance between ``lower`` and ``upper`` where they are known, else between objective and bound.
        """
        if self.lower is not None and self.upper is not None:
            distance = float(self.upper - self.lower)
            return distance / abs(float(self.upper)) if self.upper else distance
        if self.objective is None or self.bound is None:
            return None
        distance = abs(float(self.bound) - float(self.objective))
        return distance / abs(float(self.objective)) if distance and self.objective else distance

    def summary(self) -> dict[str, Any]:
        """Return the parts of a proof that a reader wants to see: the bounds and the multipliers."""
        return {"lower": self.lower, "upper": self.upper, "duals": dict(self.duals), "effort": self.effort}

    def require_optimal(self) -> Solution:
        """Return the solution itself if it is optimal, else raise `NotSolved`, which carries it, with its point."""
        if self.status is Status.OPTIMAL:
            return self
        raise NotSolved(f"{self.backend}: {self._why()} (the solver's own word: {self.raw_status})", self)

    @property
    def point(self) -> Array:
        """``x``, for callers that need a point; errors: `NotSolved` where there is none."""
        if self.x is None:
            raise NotSolved(f"{self.backend} found no point: {self._why()} ({self.raw_status})", self)
        return self.x

    def _why(self) -> str:
        if self.status is Status.INFEASIBLE:
            together = f"these cannot hold together: {', '.join(self.conflict)}" if self.conflict else ""
            if self.farkas is not None:
                return "no point satisfies all constraints" + (together and f": {together}")
            # there is no proof: this is what the solver says
            return "it finds no point that satisfies all constraints" + (together and f"; by its word {together}")
        found = ", nothing found"
        if self.objective is not None:
            best = "no bound is known"
            if self.bound is not None:
                best = f"none is better than {number_text(self.bound)} (gap {self.gap:.2g})"
            found = f"; the best point so far has objective {number_text(self.objective)}, and {best}"
        return {
            Status.UNBOUNDED: "the objective has no limit; a constraint is missing",
            Status.INFEASIBLE_OR_UNBOUNDED: "the constraints contradict each other or the objective has no limit",
            Status.LIMIT: f"a limit was reached{found}",
            Status.INACCURATE: "it stopped short of its tolerance; rational numbers, another backend or a looser "
            "tolerance may do",
        }.get(self.status, "the solver failed")


def written_out(program: Program, solution: Solution) -> Solution:
    """Return a method's ``solution`` with ``x``, ``dual``, ``reduced_cost``; errors: `KeyError` for a missing block."""
    x = np.zeros(len(program.cost))
    for block in program.variable_blocks:
        x[block.span] = np.ravel(solution.values[block.name])
    if not all(isinstance(solution.duals.get(block.name), np.ndarray) for block in program.row_blocks):
        return replace(solution, x=x)
    dual = np.zeros(len(program.rows))
    for block in program.row_blocks:
        values = np.ravel(solution.duals[block.name])
        dual[block.span] = values if block.kept is None else values[block.kept]
    rows = program.rows
    against = np.bincount(rows.column, weights=rows.value * dual[rows.row], minlength=len(x))
    return replace(solution, x=x, dual=dual, reduced_cost=program.cost - against)


def without_noise(shares: Array, capacity: Array) -> Array:
    """Return shares (n, k) in floats without noise: none is negative, no type is overbooked. Exact ones have none.

    >>> without_noise(np.array([[1.0, 1e-17], [1.0 + 1e-12, -1e-17]]), np.array([2.0, 0.0])).sum(axis=0) <= [2, 0]
    array([ True,  True])
    """
    if arithmetic(shares).exact:
        return shares
    shares = np.maximum(shares, 0.0)
    booked, there = shares.sum(axis=0), capacity.astype(float)
    over = booked > there
    shares[:, over] *= np.nextafter(there[over] / booked[over], 0.0)
    return shares


def not_negative(shares: Array) -> Array:
    """Return shares with a float solver's tiny negatives set to zero; exact ones have none."""
    return shares if arithmetic(shares).exact else np.maximum(shares, 0.0)
