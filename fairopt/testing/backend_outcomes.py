"""Small programs that have no optimum, have integers or logarithms, or are too hard to finish."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fairopt.backends.solution import Status
from fairopt.program import Affine, Formulation, Program, between, log_sum
from fairopt.testing.backend_programs import Aim, Case, case, maximize, minimize, written


# -- no optimum --------------------------------------------------------------------------------------------------
@case(Status.INFEASIBLE)
def infeasible_by_rows(x: Affine) -> Aim:
    """Guards against an infeasible program reported optimal, or with a conflict that names an innocent row."""
    return maximize(x[0], most=x[0] + x[1] <= 1, innocent=x[0] - x[1] <= 5, least=x[0] + x[1] >= 2)


@case(Status.INFEASIBLE, size=3, upper=1)
def infeasible_by_row_and_bounds(x: Affine) -> Aim:
    """Guards against conflicts that forget the bounds of variables that take part."""
    return minimize(x.sum(), much=x[0] + x[1] >= 3, innocent=x[2] <= 1)


@case(Status.INFEASIBLE, upper=9)
def infeasible_by_range(x: Affine) -> Aim:
    """Guards against a row with lower > upper, on which Pyomo raises."""
    return maximize(x[0] + x[1], crossed=between(4, x[0] + x[1], 3))


@case(Status.INFEASIBLE, lower=[0, 3], upper=[5, 2])
def infeasible_by_bounds(x: Affine) -> Aim:
    """Guards against a variable with lower > upper, which some libraries swap."""
    return maximize(x[0], sum=x[0] + x[1] <= 6)


@case(Status.INFEASIBLE, size=3, lower=None)
def infeasible_by_equalities(x: Affine) -> Aim:
    """Guards against inconsistent equalities among free variables, where no bound helps to see it."""
    return minimize(0 * x.sum(), first=x[0] + x[1] == 1, second=x[1] + x[2] == 1, third=x[0] + 2 * x[1] + x[2] == 3)


@case(Status.INFEASIBLE)
def infeasible_with_a_ray(x: Affine) -> Aim:
    """Guards against "unbounded" for a program without a point: conic solvers stop at the ray, which it has as well."""
    return maximize(x.sum(), at_most=x[0] - x[1] <= 1, at_least=x[0] - x[1] >= 2)


@case(Status.UNBOUNDED)
def unbounded(x: Affine) -> Aim:
    """Guards against an unbounded program reported optimal at some large number."""
    return maximize(x[0] + x[1], difference=x[0] - x[1] <= 1)


@case(Status.UNBOUNDED, lower=None)
def unbounded_free_variable(x: Affine) -> Aim:
    """Guards against a free variable taken for a non-negative one: from 0 on this program has an optimum."""
    return minimize(x[0], sum=x[0] + x[1] >= 1, second=x[1] >= 0)


@case(Status.UNBOUNDED, size=3)
def unbounded_between_parallel_rows(x: Affine) -> Aim:
    """Guards against a presolve that finds two parallel rows infeasible (HiGHS 1.15.1); the origin is a point."""
    return maximize(x[2], least=-x[0] - x[1] + x[2] >= -1, most=-x[0] - x[1] + x[2] <= 0)


@case(Status.UNBOUNDED, lower=None)
def unbounded_without_rows(x: Affine) -> Aim:
    """Guards against empty matrices on which a library fails before it looks at the objective."""
    return minimize(x[0] - x[1])


# -- integers ----------------------------------------------------------------------------------------------------
@case(20, integer=True)
def integers(x: Affine) -> Aim:
    """Guards against integrality that is dropped: the relaxation gives 21."""
    return maximize(5 * x[0] + 4 * x[1], first=6 * x[0] + 4 * x[1] <= 24, second=x[0] + 2 * x[1] <= 6)


@case(15, size=5, upper=1, integer=True)
def integers_binary(x: Affine) -> Aim:
    """Guards against binaries passed on as integers without their bounds, and duals asked of a MILP."""
    return maximize((np.array([4, 2, 10, 1, 2]) * x).sum(), weight=(np.array([12, 2, 4, 1, 1]) * x).sum() <= 15)


@written(Fraction(9, 2))
def integers_mixed(p: Formulation) -> None:
    """Guards against all variables made integer because one is."""
    count = p.variable("count", lower=0, integer=True)
    share = p.variable("share", lower=0)
    p.maximize(count + share)
    p.constrain("sum", 2 * count + 2 * share <= 9)
    p.constrain("count", 2 * count <= 7)


@case(Status.INFEASIBLE, upper=5, integer=True)
def integers_infeasible(x: Affine) -> Aim:
    """Guards against a MILP without points whose relaxation has some."""
    return maximize(x[0], odd=2 * x[0] - 2 * x[1] == 1)


# -- logarithms --------------------------------------------------------------------------------------------------
@case(math.log(1) + 2 * math.log(2) + 3 * math.log(3), size=3)
def logarithms(x: Affine) -> Aim:
    """Guards against weights of logarithms that are dropped, and multipliers in the wrong units (1 here)."""
    return maximize(log_sum(np.array([1, 2, 3]), x), sum=x.sum() <= 6)


@case(2 * math.log(3))
def logarithms_of_sums(x: Affine) -> Aim:
    """Guards against the constant inside a logarithm, and its matrix passed on transposed."""
    return maximize(log_sum(1, x + np.array([1, 0])), sum=x.sum() <= 5)


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
