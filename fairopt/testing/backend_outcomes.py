"""Small programs that have no optimum, have integers or logarithms, or are too hard to finish."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fairopt.backends.solution import Status
from fairopt.program import Formulation, Program, between, log_sum
from fairopt.testing.backend_programs import Case, case


# -- no optimum --------------------------------------------------------------------------------------------------
@case(status=Status.INFEASIBLE)
def infeasible_by_rows(p: Formulation) -> None:
    """Guards against an infeasible program reported optimal, or with a conflict that names an innocent row."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0])
    p.constrain("most", x[0] + x[1] <= 1)
    p.constrain("innocent", x[0] - x[1] <= 5)
    p.constrain("least", x[0] + x[1] >= 2)


@case(status=Status.INFEASIBLE)
def infeasible_by_row_and_bounds(p: Formulation) -> None:
    """Guards against conflicts that forget the bounds of variables that take part."""
    x = p.variable("x", (3,), lower=0, upper=1)
    p.minimize(x.sum())
    p.constrain("much", x[0] + x[1] >= 3)
    p.constrain("innocent", x[2] <= 1)


@case(status=Status.INFEASIBLE)
def infeasible_by_range(p: Formulation) -> None:
    """Guards against a row with lower > upper, on which Pyomo raises."""
    x = p.variable("x", (2,), lower=0, upper=9)
    p.maximize(x[0] + x[1])
    p.constrain("crossed", between(4, x[0] + x[1], 3))


@case(status=Status.INFEASIBLE)
def infeasible_by_bounds(p: Formulation) -> None:
    """Guards against a variable with lower > upper, which some libraries swap."""
    x = p.variable("x", (2,), lower=np.array([0, 3]), upper=np.array([5, 2]))
    p.maximize(x[0])
    p.constrain("sum", x[0] + x[1] <= 6)


@case(status=Status.INFEASIBLE)
def infeasible_by_equalities(p: Formulation) -> None:
    """Guards against inconsistent equalities among free variables, where no bound helps to see it."""
    x = p.variable("x", (3,))
    p.minimize(0 * x.sum())
    p.constrain("first", x[0] + x[1] == 1)
    p.constrain("second", x[1] + x[2] == 1)
    p.constrain("third", x[0] + 2 * x[1] + x[2] == 3)


@case(status=Status.INFEASIBLE)
def infeasible_with_a_ray(p: Formulation) -> None:
    """Guards against "unbounded" for a program without a point: conic solvers stop at the ray, which it has as well."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x.sum())
    p.constrain("at_most", x[0] - x[1] <= 1)
    p.constrain("at_least", x[0] - x[1] >= 2)


@case(status=Status.UNBOUNDED)
def unbounded(p: Formulation) -> None:
    """Guards against an unbounded program reported optimal at some large number."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + x[1])
    p.constrain("difference", x[0] - x[1] <= 1)


@case(status=Status.UNBOUNDED)
def unbounded_free_variable(p: Formulation) -> None:
    """Guards against a free variable taken for a non-negative one: from 0 on this program has an optimum."""
    x = p.variable("x", (2,))
    p.minimize(x[0])
    p.constrain("sum", x[0] + x[1] >= 1)
    p.constrain("second", x[1] >= 0)


@case(status=Status.UNBOUNDED)
def unbounded_between_parallel_rows(p: Formulation) -> None:
    """Guards against a presolve that finds two parallel rows infeasible (HiGHS 1.15.1); the origin is a point."""
    x = p.variable("x", (3,), lower=0)
    p.maximize(x[2])
    p.constrain("least", -x[0] - x[1] + x[2] >= -1)
    p.constrain("most", -x[0] - x[1] + x[2] <= 0)


@case(status=Status.UNBOUNDED)
def unbounded_without_rows(p: Formulation) -> None:
    """Guards against empty matrices on which a library fails before it looks at the objective."""
    x = p.variable("x", (2,))
    p.minimize(x[0] - x[1])


# -- integers ----------------------------------------------------------------------------------------------------
@case(20)
def integers(p: Formulation) -> None:
    """Guards against integrality that is dropped: the relaxation gives 21."""
    x = p.variable("x", (2,), lower=0, integer=True)
    p.maximize(5 * x[0] + 4 * x[1])
    p.constrain("first", 6 * x[0] + 4 * x[1] <= 24)
    p.constrain("second", x[0] + 2 * x[1] <= 6)


@case(15)
def integers_binary(p: Formulation) -> None:
    """Guards against binaries passed on as integers without their bounds, and duals asked of a MILP."""
    x = p.variable("x", (5,), lower=0, upper=1, integer=True)
    p.maximize((np.array([4, 2, 10, 1, 2]) * x).sum())
    p.constrain("weight", (np.array([12, 2, 4, 1, 1]) * x).sum() <= 15)


@case(Fraction(9, 2))
def integers_mixed(p: Formulation) -> None:
    """Guards against all variables made integer because one is."""
    count = p.variable("count", lower=0, integer=True)
    share = p.variable("share", lower=0)
    p.maximize(count + share)
    p.constrain("sum", 2 * count + 2 * share <= 9)
    p.constrain("count", 2 * count <= 7)


@case(status=Status.INFEASIBLE)
def integers_infeasible(p: Formulation) -> None:
    """Guards against a MILP without points whose relaxation has some."""
    x = p.variable("x", (2,), lower=0, upper=5, integer=True)
    p.maximize(x[0])
    p.constrain("odd", 2 * x[0] - 2 * x[1] == 1)


# -- logarithms --------------------------------------------------------------------------------------------------
@case(math.log(1) + 2 * math.log(2) + 3 * math.log(3))
def logarithms(p: Formulation) -> None:
    """Guards against weights of logarithms that are dropped, and multipliers in the wrong units (1 here)."""
    x = p.variable("x", (3,), lower=0)
    p.maximize(log_sum(np.array([1, 2, 3]), x))
    p.constrain("sum", x.sum() <= 6)


@case(2 * math.log(3))
def logarithms_of_sums(p: Formulation) -> None:
    """Guards against the constant inside a logarithm, and its matrix passed on transposed."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(log_sum(1, x + np.array([1, 0])))
    p.constrain("sum", x.sum() <= 5)


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
