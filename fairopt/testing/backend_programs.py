"""Small programs with known answers, one for each thing a back end can get wrong.

Each is a documented function that writes a formulation; `case` says how it must end. Numbers are integers and
Fractions, so that an exact back end can be held to the same answers with no tolerance. Here stand the linear programs
that have an optimum; `fairopt.testing.backend_outcomes` holds the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.backends.solution import Status
from fairopt.program import Formulation, Number, Program, between


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


def case(
    optimum: Number | None = None, *, status: Status = Status.OPTIMAL
) -> Callable[[Callable[[Formulation], None]], Case]:
    """Make a `Case` of a documented function; ``optimum`` is needed unless there is none."""

    def made(write: Callable[[Formulation], None]) -> Case:
        if (optimum is None) is (status is Status.OPTIMAL):
            raise ValueError(f"{write.__name__}: an optimal program has an optimum, and no other has")
        return Case(write.__name__.replace("_", " "), write, status, optimum, str(write.__doc__))

    return made


# -- kinds of rows -----------------------------------------------------------------------------------------------
@case(21)
def rows_at_most(p: Formulation) -> None:
    """Guards against a wrong sign of the duals of <= rows in a maximisation (duals 3 and 1 here)."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(3 * x[0] + 4 * x[1])
    p.constrain("sum", x[0] + x[1] <= 6)
    p.constrain("second", x[1] <= 3)


@case(10)
def rows_at_least(p: Formulation) -> None:
    """Guards against a wrong sign of the duals of >= rows in a minimisation."""
    x = p.variable("x", (2,), lower=0)
    p.minimize(2 * x[0] + 3 * x[1])
    p.constrain("sum", x[0] + x[1] >= 4)
    p.constrain("second", x[1] >= 2)


@case(-10)
def rows_at_least_maximised(p: Formulation) -> None:
    """Guards against duals whose sign follows the sense: a lower side in a maximisation has dual <= 0."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(-2 * x[0] - 3 * x[1])
    p.constrain("sum", x[0] + x[1] >= 4)
    p.constrain("second", x[1] >= 2)


@case(-21)
def rows_at_most_minimised(p: Formulation) -> None:
    """Guards against duals whose sign follows the sense: an upper side in a minimisation has dual <= 0."""
    x = p.variable("x", (2,), lower=0)
    p.minimize(-3 * x[0] - 4 * x[1])
    p.constrain("sum", x[0] + x[1] <= 6)
    p.constrain("second", x[1] <= 3)


@case(7)
def rows_equal(p: Formulation) -> None:
    """Guards against equalities split into two rows with one dual lost."""
    x = p.variable("x", (2,))
    p.minimize(x[0] + 2 * x[1])
    p.constrain("sum", x[0] + x[1] == 5)
    p.constrain("difference", x[0] - x[1] == 1)


@case(8)
def rows_range_at_upper(p: Formulation) -> None:
    """Guards against a range row of which only one side is passed on (here the upper one binds)."""
    x = p.variable("x", (2,), lower=0, upper=5)
    p.maximize(x[0] + x[1])
    p.constrain("range", between(2, x[0] + x[1], 8))


@case(2)
def rows_range_at_lower(p: Formulation) -> None:
    """Guards against a range row of which only one side is passed on (here the lower one binds)."""
    x = p.variable("x", (2,), lower=0, upper=5)
    p.minimize(x[0] + x[1])
    p.constrain("range", between(2, x[0] + x[1], 8))


@case(5)
def rows_free(p: Formulation) -> None:
    """Guards against rows with no bound at all: dropping one must not shift the duals of those behind it."""
    x = p.variable("x", (2,), lower=0)
    infinite = float("inf")
    p.maximize(x[0] + x[1])
    p.constrain("free", between(-infinite, x[0] - x[1], infinite))
    p.constrain("sum", 2 * x[0] + 2 * x[1] <= 10)


@case(3)
def rows_empty(p: Formulation) -> None:
    """Guards against rows without variables that hold: 0 <= 1 is no error and has dual 0."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0])
    p.constrain("empty", x[0] - x[0] <= 1)
    p.constrain("cap", x[0] <= 3)
    p.constrain("none", x[1] - x[1] == 0)
    p.constrain("second", x[1] <= 1)


@case(status=Status.INFEASIBLE)
def rows_empty_infeasible(p: Formulation) -> None:
    """Guards against rows without variables that cannot hold: 0 <= -1 is infeasible, neither an error nor dropped."""
    x = p.variable("x", (2,), lower=0, upper=1)
    p.maximize(x[0])
    p.constrain("empty", x[0] - x[0] <= -1)
    p.constrain("sum", x[0] + x[1] <= 1)


@case(9)
def rows_none(p: Formulation) -> None:
    """Guards against programs without rows, on which several libraries fail on an empty matrix."""
    x = p.variable("x", (2,), lower=-1, upper=4)
    p.maximize(2 * x[0] - x[1])


@case(4)
def rows_redundant(p: Formulation) -> None:
    """Guards against dependent equalities, on which a solver without pivoting finds a singular matrix."""
    x = p.variable("x", (3,), lower=0)
    p.minimize(x[0] + x[1] + 2 * x[2])
    p.constrain("sum", x.sum() == 4)
    p.constrain("twice", 2 * x.sum() == 8)
    p.constrain("slack", x.sum() <= 100)


@case(6)
def rows_negative_sides(p: Formulation) -> None:
    """Guards against range rows with both sides negative, where a sign slip swaps the sides."""
    x = p.variable("x", (2,), upper=0)
    p.maximize(-x[0] - x[1])
    p.constrain("range", between(-6, x[0] + x[1], -2))
    p.constrain("difference", x[0] == x[1])


# -- kinds of variables ------------------------------------------------------------------------------------------
@case(-3)
def variables_free(p: Formulation) -> None:
    """Guards against a lower bound of 0 that some libraries assume where none is given."""
    x = p.variable("x", (2,))
    p.minimize(x[0])
    p.constrain("below", x[0] + x[1] >= -1)
    p.constrain("cap", x[1] <= 2)


@case(17)
def variables_fixed(p: Formulation) -> None:
    """Guards against fixed variables dropped together with their cost, and against barrier methods stuck on them."""
    x = p.variable("x", (2,), lower=np.array([5, 0]), upper=np.array([5, 10]))
    p.maximize(x[0] + 2 * x[1])
    p.constrain("sum", x[0] + x[1] <= 11)


@case(13)
def variables_bounded(p: Formulation) -> None:
    """Guards against reduced costs of variables at their upper bounds (3 and 2 here) that are lost or negated."""
    x = p.variable("x", (3,), lower=np.array([0, 0, -1]), upper=np.array([2, 4, 7]))
    p.maximize(3 * x[0] + 2 * x[1] - x[2])
    p.constrain("loose", x.sum() <= 100)
    p.constrain("third", x[2] >= 1)


@case(7)
def variables_unused(p: Formulation) -> None:
    """Guards against variables without cost or row, which Pyomo's solvers never hear of."""
    x = p.variable("x", (4,), lower=np.array([3, -2, 0, 0]), upper=np.array([5, -1, 7, 7]))
    p.maximize(x[2])
    p.constrain("sum", x[2] <= 9)


@case(0)
def variables_none_priced(p: Formulation) -> None:
    """Guards against an objective without terms: any feasible point is optimal, with value 0."""
    x = p.variable("x", (2,), lower=0)
    p.minimize(0 * x.sum())
    p.constrain("sum", x[0] + x[1] == 3)


# -- degeneracy, expressions, scaling ----------------------------------------------------------------------------
@case(2)
def degenerate_vertex(p: Formulation) -> None:
    """Guards against cycling and wrong duals where more rows meet in the optimum than there are variables."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + x[1])
    p.constrain("corner", np.array([[1, 1], [1, 0], [0, 1], [2, 1], [1, 2]]) @ x <= np.array([2, 1, 1, 3, 3]))


@case(6)
def degenerate_dual(p: Formulation) -> None:
    """Guards against tests and back ends that expect one x where a whole edge is optimal."""
    x = p.variable("x", (3,), lower=0)
    p.maximize(2 * x.sum())
    p.constrain("sum", x.sum() <= 3)


@case(Fraction(1, 20))
def degenerate_beale(p: Formulation) -> None:
    """Guards against Beale's example (1955), on which the simplex method with the textbook rule cycles for ever."""
    x = p.variable("x", (4,), lower=0)
    p.maximize((np.array([Fraction(3, 4), -150, Fraction(1, 50), -6]) * x).sum())
    quarter = np.array([Fraction(1, 4), -60, Fraction(-1, 25), 9])
    half = np.array([Fraction(1, 2), -90, Fraction(-1, 50), 3])
    p.constrain("first", (quarter * x).sum() <= 0)
    p.constrain("second", (half * x).sum() <= 0)
    p.constrain("third", x[2] <= 1)


@case(10)
def terms_repeated(p: Formulation) -> None:
    """Guards against a coefficient that is overwritten, not added to, when a variable occurs twice in a row."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + x[1] + x[0] - x[1])
    p.constrain("sum", x[0] + x[1] + x[0] - x[1] + 0 * x[1] <= 10)


@case(110)
def constants(p: Formulation) -> None:
    """Guards against constants in rows or objective that are dropped or counted twice."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(2 * x[0] + x[1] + 100)
    p.constrain("sum", x[0] + x[1] + 3 <= 9 - 1)
    p.constrain("first", x[0] <= 7)
    p.constrain("second", x[1] - 2 >= 0 - 2)
    p.constrain("extra", x[0] + 1 <= 6 + x[1] * 0)
    p.constrain("lift", x[0] >= 0)
    p.constrain("again", 1 + x[1] <= 3)


@case(1001)
def badly_scaled(p: Formulation) -> None:
    """Guards against numbers from 1e-6 to 1e6, on which a bounded LP was called unbounded (Clarabel, SCS)."""
    x = p.variable("x", (2,), lower=0)
    p.maximize(1000 * x[0] + Fraction(1, 10**6) * x[1])
    p.constrain("large", 10**6 * x[0] <= 10**6)
    p.constrain("small", Fraction(1, 10**6) * x[1] + Fraction(1, 10**6) * x[0] <= 1 + Fraction(1, 10**6))


# -- what fairopt is for -----------------------------------------------------------------------------------------
_SPEEDUP = np.array([[1, 2], [1, 5]])


@case(Fraction(21, 4))
def oef_cooperative(p: Formulation) -> None:
    """Guards against OEF's worked example coming out wrong: envy-free efficiency 5.25, Eq. (6) of OEF (2024)."""
    x = p.variable("share", (2, 2), lower=0)
    own = (_SPEEDUP * x).sum(axis=1)
    others = (_SPEEDUP[:, None, :] * x[None, :, :]).sum(axis=2)
    p.maximize(own.sum())
    p.constrain("capacity", x.sum(axis=0) <= 1)
    p.constrain("envy_free", (own[:, None] >= others).where(~np.eye(2, dtype=bool)))


@case(Fraction(30, 7))
def max_min_share(p: Formulation) -> None:
    """Guards against the lost variable of a maximin program; the two rates are equal in the optimum, 15/7 each."""
    x = p.variable("share", (2, 2), lower=0)
    least = p.variable("least")
    p.maximize(2 * least)
    p.constrain("capacity", x.sum(axis=0) <= 1)
    p.constrain("rate", (_SPEEDUP * x).sum(axis=1) >= least)


CASES: tuple[Case, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Case))
