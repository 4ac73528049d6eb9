"""That there is no point is told as a fact where multipliers prove it, and as a solver's word elsewhere."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import highspy
import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.highs import load, run
from fairopt.backends.solution import Solution, Status
from fairopt.backends.trust import trusted
from fairopt.errors import NotSolved
from fairopt.program import INFINITY, Formulation, Program

FACT, WORD = "says: no point satisfies all constraints", "says: it finds no point"


def program(most: int, upper: float = INFINITY) -> Program:
    """x + y is at most ``most`` and at least 2."""
    p = Formulation("pair")
    x = p.variable("x", (2,), lower=0, upper=upper)
    p.maximize(x.sum())
    p.constrain("most", x.sum() <= most)
    p.constrain("least", x.sum() >= 2)
    return p.program()


def claims(given: Program, *farkas: object) -> str:
    multipliers = np.array(farkas, dtype=object if given.exact else float)
    solution = Solution(Status.INFEASIBLE, "no", "somebody", farkas=multipliers, conflict=("most", "least"))
    with pytest.raises(NotSolved) as raised:
        trusted(given, solution)
    return str(raised.value).replace("somebody", "says")


@pytest.mark.parametrize("number", [float, Fraction])
def test_multipliers_must_contradict_the_constraints(number: type) -> None:
    one = number(1)
    assert claims(program(1).as_(number), -one, one).startswith(f"{FACT}: these cannot hold together: most, least")
    for given, farkas in [
        (program(3), (-one, one)),  # there are points
        (program(1), (one, one)),  # the row has no lower bound
        (program(1), (-one, 2 * one)),  # one variable has no upper bound
        (program(1), (-one,)),
        (program(1), (0 * one, 0 * one)),
    ]:
        said = claims(given.as_(number), *farkas)
        assert said.startswith(WORD), farkas
        assert "most" not in said
    assert claims(program(3, upper=0.5).as_(number), 0 * one, one).startswith(FACT)  # by bounds of variables


def test_rounding_proves_nothing() -> None:
    assert claims(replace(program(2), name="near"), -1 - 1e-15, 1 + 1e-15).startswith(WORD)


def test_a_back_end_without_a_proof_is_quoted() -> None:
    with pytest.raises(NotSolved, match=r"highs: it finds no point that .*; by its word these cannot .*: most"):
        Highs().optimum(program(1))
    with pytest.raises(NotSolved, match="exact: no point satisfies all constraints: these cannot hold together: most"):
        Exact().optimum(program(1))


@pytest.mark.parametrize(("most", "status"), [(1, Status.INFEASIBLE), (3, Status.OPTIMAL)])
@pytest.mark.parametrize("times", [1, 2])
def test_what_highs_does_not_know_is_asked_in_other_ways(most: int, status: Status, times: int) -> None:
    class Unknowing(highspy.Highs):
        asked = 0

        def run(self) -> object:
            self.asked += 1
            return super().run()

        def getModelStatus(self) -> highspy.HighsModelStatus:
            return highspy.HighsModelStatus.kUnknown if self.asked <= times else super().getModelStatus()

    highs = Unknowing()
    highs.setOptionValue("output_flag", False)
    options = ("solver", "simplex_strategy")
    before = [highs.getOptionValue(option) for option in options]
    load(highs, program(most))
    assert run(highs, program(most), None, thorough=False).status is status
    assert highs.asked == times + 1
    assert [highs.getOptionValue(option) for option in options] == before
