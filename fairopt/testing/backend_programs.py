"""Small programs with known answers, one for each thing a backend can get wrong.

Each is a documented function of the program's variables that returns its objective and rows; `case` says how it must
end. Numbers are integers and Fractions, so that an exact backend can be held to the same answers with no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any

import numpy as np

from fairopt.backends.solution import Status
from fairopt.program import Affine, Comparison, Formulation, Number, Program, between, log_sum
from fairopt.program.formulation import LogSum


@dataclass(frozen=True)
class Case:
    """A program and how it must end; ``guards`` says which bug it was made for."""

    name: str
    write: Callable[[Formulation], None]
    status: Status
    optimum: Number | None
    guards: str

    def program(self) -> Program:
        """Return the program, made anew."""
        formulation = Formulation(self.name)
        self.write(formulation)
        return formulation.program()


def maximize(goal: Affine | LogSum, **rows: Comparison) -> None:
    """Ask for the most of a goal, with rows by name."""
    p = goal.body.owner if isinstance(goal, LogSum) else goal.owner
    p.maximize(goal)
    _constrain(p, rows)


def minimize(goal: Affine, **rows: Comparison) -> None:
    """Ask for the least of a goal, with rows by name."""
    goal.owner.minimize(goal)
    _constrain(goal.owner, rows)


def _constrain(p: Formulation, rows: dict[str, Comparison]) -> None:
    for name, row in rows.items():
        p.constrain(name, row)


def written(end: Number | Status) -> Callable[[Callable[[Formulation], None]], Case]:
    """Make a `Case` of a documented function that writes a formulation; ``end`` is the optimum, or how else it ends."""
    status, optimum = (end, None) if isinstance(end, Status) else (Status.OPTIMAL, end)
    return lambda write: Case(write.__name__.replace("_", " "), write, status, optimum, str(write.__doc__))


def case(end: Number | Status, *, size: int = 2, **bounds: Any) -> Callable[[Callable[[Affine], None]], Case]:
    """Make a `Case` of a documented function of ``size`` variables; they are not negative if ``bounds`` do not say."""

    def made(asked: Callable[[Affine], None]) -> Case:
        return written(end)(wraps(asked)(lambda p: asked(p.variable("x", (size,), **{"lower": 0} | bounds))))

    return made


# -- kinds of rows -----------------------------------------------------------------------------------------------
@case(21)
def rows_at_most(x: Affine) -> None:
    """Guards against a wrong sign of the duals of <= rows in a maximisation (duals 3 and 1 here)."""
    maximize(3 * x[0] + 4 * x[1], sum=x[0] + x[1] <= 6, second=x[1] <= 3)


@case(10)
def rows_at_least(x: Affine) -> None:
    """Guards against a wrong sign of the duals of >= rows in a minimisation."""
    minimize(2 * x[0] + 3 * x[1], sum=x[0] + x[1] >= 4, second=x[1] >= 2)


@case(-10)
def rows_at_least_maximised(x: Affine) -> None:
    """Guards against duals whose sign follows the sense: a lower side in a maximisation has dual <= 0."""
    maximize(-2 * x[0] - 3 * x[1], sum=x[0] + x[1] >= 4, second=x[1] >= 2)


@case(-21)
def rows_at_most_minimised(x: Affine) -> None:
    """Guards against duals whose sign follows the sense: an upper side in a minimisation has dual <= 0."""
    minimize(-3 * x[0] - 4 * x[1], sum=x[0] + x[1] <= 6, second=x[1] <= 3)


@case(7, lower=None)
def rows_equal(x: Affine) -> None:
    """Guards against equalities split into two rows with one dual lost."""
    minimize(x[0] + 2 * x[1], sum=x[0] + x[1] == 5, difference=x[0] - x[1] == 1)


@case(8, upper=5)
def rows_range_at_upper(x: Affine) -> None:
    """Guards against a range row of which only one side is passed on (here the upper one binds)."""
    maximize(x[0] + x[1], range=between(2, x[0] + x[1], 8))


@case(2, upper=5)
def rows_range_at_lower(x: Affine) -> None:
    """Guards against a range row of which only one side is passed on (here the lower one binds)."""
    minimize(x[0] + x[1], range=between(2, x[0] + x[1], 8))


@case(5)
def rows_free(x: Affine) -> None:
    """Guards against rows with no bound at all: dropping one must not shift the duals of those behind it."""
    infinite = float("inf")
    maximize(x[0] + x[1], free=between(-infinite, x[0] - x[1], infinite), sum=2 * x[0] + 2 * x[1] <= 10)


@case(3)
def rows_empty(x: Affine) -> None:
    """Guards against rows without variables that hold: 0 <= 1 is no error and has dual 0."""
    maximize(x[0], empty=x[0] - x[0] <= 1, cap=x[0] <= 3, none=x[1] - x[1] == 0, second=x[1] <= 1)


@case(Status.INFEASIBLE, upper=1)
def rows_empty_infeasible(x: Affine) -> None:
    """Guards against rows without variables that cannot hold: 0 <= -1 is infeasible, neither an error nor dropped."""
    maximize(x[0], empty=x[0] - x[0] <= -1, sum=x[0] + x[1] <= 1)


@case(9, lower=-1, upper=4)
def rows_none(x: Affine) -> None:
    """Guards against programs without rows, on which several libraries fail on an empty matrix."""
    maximize(2 * x[0] - x[1])


@case(4, size=3)
def rows_redundant(x: Affine) -> None:
    """Guards against dependent equalities, on which a solver without pivoting finds a singular matrix."""
    minimize(x[0] + x[1] + 2 * x[2], sum=x.sum() == 4, twice=2 * x.sum() == 8, slack=x.sum() <= 100)


@case(6, lower=None, upper=0)
def rows_negative_sides(x: Affine) -> None:
    """Guards against range rows with both sides negative, where a sign slip swaps the sides."""
    maximize(-x[0] - x[1], range=between(-6, x[0] + x[1], -2), difference=x[0] == x[1])


# -- kinds of variables ------------------------------------------------------------------------------------------
@case(-3, lower=None)
def variables_free(x: Affine) -> None:
    """Guards against a lower bound of 0 that some libraries assume where none is given."""
    minimize(x[0], below=x[0] + x[1] >= -1, cap=x[1] <= 2)


@case(17, lower=[5, 0], upper=[5, 10])
def variables_fixed(x: Affine) -> None:
    """Guards against fixed variables dropped together with their cost, and against barrier methods stuck on them."""
    maximize(x[0] + 2 * x[1], sum=x[0] + x[1] <= 11)


@case(13, size=3, lower=[0, 0, -1], upper=[2, 4, 7])
def variables_bounded(x: Affine) -> None:
    """Guards against reduced costs of variables at their upper bounds (3 and 2 here) that are lost or negated."""
    maximize(3 * x[0] + 2 * x[1] - x[2], loose=x.sum() <= 100, third=x[2] >= 1)


@case(7, size=4, lower=[3, -2, 0, 0], upper=[5, -1, 7, 7])
def variables_unused(x: Affine) -> None:
    """Guards against variables without cost or row, which Pyomo's solvers never hear of."""
    maximize(x[2], sum=x[2] <= 9)


@case(0)
def variables_none_priced(x: Affine) -> None:
    """Guards against an objective without terms: any feasible point is optimal, with value 0."""
    minimize(0 * x.sum(), sum=x[0] + x[1] == 3)


# -- degeneracy, expressions, scaling ----------------------------------------------------------------------------
@case(2)
def degenerate_vertex(x: Affine) -> None:
    """Guards against cycling and wrong duals where more rows meet in the optimum than there are variables."""
    meeting = np.array([[1, 1], [1, 0], [0, 1], [2, 1], [1, 2]])
    maximize(x[0] + x[1], corner=meeting @ x <= np.array([2, 1, 1, 3, 3]))


@case(6, size=3)
def degenerate_dual(x: Affine) -> None:
    """Guards against tests and backends that expect one x where a whole edge is optimal."""
    maximize(2 * x.sum(), sum=x.sum() <= 3)


@case(Fraction(1, 20), size=4)
def degenerate_beale(x: Affine) -> None:
    """Guards against Beale's example (1955), on which the simplex method with the textbook rule cycles for ever."""
    quarter = np.array([Fraction(1, 4), -60, Fraction(-1, 25), 9])
    half = np.array([Fraction(1, 2), -90, Fraction(-1, 50), 3])
    goal = (np.array([Fraction(3, 4), -150, Fraction(1, 50), -6]) * x).sum()
    maximize(goal, first=(quarter * x).sum() <= 0, second=(half * x).sum() <= 0, third=x[2] <= 1)


@case(10)
def terms_repeated(x: Affine) -> None:
    """Guards against a coefficient that is overwritten, not added to, when a variable occurs twice in a row."""
    maximize(x[0] + x[1] + x[0] - x[1], sum=x[0] + x[1] + x[0] - x[1] + 0 * x[1] <= 10)


@case(110)
def constants(x: Affine) -> None:
    """Guards against constants in rows or objective that are dropped or counted twice."""
    maximize(
        2 * x[0] + x[1] + 100,
        sum=x[0] + x[1] + 3 <= 9 - 1,
        first=x[0] <= 7,
        second=x[1] - 2 >= 0 - 2,
        extra=x[0] + 1 <= 6 + x[1] * 0,
        lift=x[0] >= 0,
        again=1 + x[1] <= 3,
    )


@case(1001)
def badly_scaled(x: Affine) -> None:
    """Guards against numbers from 1e-6 to 1e6, on which a bounded LP was called unbounded (Clarabel, SCS)."""
    tiny = Fraction(1, 10**6)
    maximize(1000 * x[0] + tiny * x[1], large=10**6 * x[0] <= 10**6, small=tiny * x[1] + tiny * x[0] <= 1 + tiny)


# -- what fairopt is for -----------------------------------------------------------------------------------------
_SPEEDUP = np.array([[1, 2], [1, 5]])


@written(Fraction(21, 4))
def oef_cooperative(p: Formulation) -> None:
    """Guards against OEF's worked example coming out wrong: envy-free efficiency 5.25, Eq. (6) of OEF (2024)."""
    x = p.variable("share", (2, 2), lower=0)
    own = (_SPEEDUP * x).sum(axis=1)
    others = (_SPEEDUP[:, None, :] * x[None, :, :]).sum(axis=2)
    p.maximize(own.sum())
    p.constrain("capacity", x.sum(axis=0) <= 1)
    p.constrain("envy_free", (own[:, None] >= others).where(~np.eye(2, dtype=bool)))


@written(Fraction(30, 7))
def max_min_share(p: Formulation) -> None:
    """Guards against the lost variable of a maximin program; the two rates are equal in the optimum, 15/7 each."""
    x = p.variable("share", (2, 2), lower=0)
    least = p.variable("least")
    p.maximize(2 * least)
    p.constrain("capacity", x.sum(axis=0) <= 1)
    p.constrain("rate", (_SPEEDUP * x).sum(axis=1) >= least)


# -- no optimum --------------------------------------------------------------------------------------------------
@case(Status.INFEASIBLE)
def infeasible_by_rows(x: Affine) -> None:
    """Guards against an infeasible program reported optimal, or with a conflict that names an innocent row."""
    maximize(x[0], most=x[0] + x[1] <= 1, innocent=x[0] - x[1] <= 5, least=x[0] + x[1] >= 2)


@case(Status.INFEASIBLE, size=3, upper=1)
def infeasible_by_row_and_bounds(x: Affine) -> None:
    """Guards against conflicts that forget the bounds of variables that take part."""
    minimize(x.sum(), much=x[0] + x[1] >= 3, innocent=x[2] <= 1)


@case(Status.INFEASIBLE, upper=9)
def infeasible_by_range(x: Affine) -> None:
    """Guards against a row with lower > upper, on which Pyomo raises."""
    maximize(x[0] + x[1], crossed=between(4, x[0] + x[1], 3))


@case(Status.INFEASIBLE, lower=[0, 3], upper=[5, 2])
def infeasible_by_bounds(x: Affine) -> None:
    """Guards against a variable with lower > upper, which some libraries swap."""
    maximize(x[0], sum=x[0] + x[1] <= 6)


@case(Status.INFEASIBLE, size=3, lower=None)
def infeasible_by_equalities(x: Affine) -> None:
    """Guards against inconsistent equalities among free variables, where no bound helps to see it."""
    minimize(0 * x.sum(), first=x[0] + x[1] == 1, second=x[1] + x[2] == 1, third=x[0] + 2 * x[1] + x[2] == 3)


@case(Status.INFEASIBLE)
def infeasible_with_a_ray(x: Affine) -> None:
    """Guards against "unbounded" for a program without a point: conic solvers stop at the ray, which it has as well."""
    maximize(x.sum(), at_most=x[0] - x[1] <= 1, at_least=x[0] - x[1] >= 2)


@case(Status.UNBOUNDED)
def unbounded(x: Affine) -> None:
    """Guards against an unbounded program reported optimal at some large number."""
    maximize(x[0] + x[1], difference=x[0] - x[1] <= 1)


@case(Status.UNBOUNDED, lower=None)
def unbounded_free_variable(x: Affine) -> None:
    """Guards against a free variable taken for a non-negative one: from 0 on this program has an optimum."""
    minimize(x[0], sum=x[0] + x[1] >= 1, second=x[1] >= 0)


@case(Status.UNBOUNDED, size=3)
def unbounded_between_parallel_rows(x: Affine) -> None:
    """Guards against a presolve that finds two parallel rows infeasible (HiGHS before 1.16); the origin is a point."""
    maximize(x[2], least=-x[0] - x[1] + x[2] >= -1, most=-x[0] - x[1] + x[2] <= 0)


@case(Status.UNBOUNDED, lower=None)
def unbounded_without_rows(x: Affine) -> None:
    """Guards against empty matrices on which a library fails before it looks at the objective."""
    minimize(x[0] - x[1])


# -- integers ----------------------------------------------------------------------------------------------------
@case(20, integer=True)
def integers(x: Affine) -> None:
    """Guards against integrality that is dropped: the relaxation gives 21."""
    maximize(5 * x[0] + 4 * x[1], first=6 * x[0] + 4 * x[1] <= 24, second=x[0] + 2 * x[1] <= 6)


@case(15, size=5, upper=1, integer=True)
def integers_binary(x: Affine) -> None:
    """Guards against binaries passed on as integers without their bounds, and duals asked of a MILP."""
    maximize((np.array([4, 2, 10, 1, 2]) * x).sum(), weight=(np.array([12, 2, 4, 1, 1]) * x).sum() <= 15)


@written(Fraction(9, 2))
def integers_mixed(p: Formulation) -> None:
    """Guards against all variables made integer because one is."""
    count = p.variable("count", lower=0, integer=True)
    share = p.variable("share", lower=0)
    p.maximize(count + share)
    p.constrain("sum", 2 * count + 2 * share <= 9)
    p.constrain("count", 2 * count <= 7)


@case(Status.INFEASIBLE, upper=5, integer=True)
def integers_infeasible(x: Affine) -> None:
    """Guards against a MILP without points whose relaxation has some."""
    maximize(x[0], odd=2 * x[0] - 2 * x[1] == 1)


# -- logarithms --------------------------------------------------------------------------------------------------
@case(math.log(1) + 2 * math.log(2) + 3 * math.log(3), size=3)
def logarithms(x: Affine) -> None:
    """Guards against weights of logarithms that are dropped, and multipliers in the wrong units (1 here)."""
    maximize(log_sum(np.array([1, 2, 3]), x), sum=x.sum() <= 6)


@case(2 * math.log(3))
def logarithms_of_sums(x: Affine) -> None:
    """Guards against the constant inside a logarithm, and its matrix passed on transposed."""
    maximize(log_sum(1, x + np.array([1, 0])), sum=x.sum() <= 5)


CASES: tuple[Case, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Case))


def hard(size: int = 40, rows: int = 5) -> Program:
    """Return a market-split program: a MILP with points that are easy to find and an optimum that is not.

    Source: Cornuejols and Dawande, A class of hard small 0-1 programs, 1999.
    """
    weight = np.array([[(37 * r * r + 101 * j * (r + 3) + 53 * j * j) % 100 for j in range(size)] for r in range(rows)])
    p = Formulation("hard")
    x = p.variable("x", (size,), lower=0, upper=1, integer=True)
    over, under = p.variable("over", (rows,), lower=0), p.variable("under", (rows,), lower=0)
    p.minimize(over.sum() + under.sum())
    p.constrain("split", weight @ x + under - over == weight.sum(axis=1) // 2)
    return p.program()
