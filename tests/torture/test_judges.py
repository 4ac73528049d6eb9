"""The judges of the trials: that they are right where it is known, and that they share no code with what they judge."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import alike
import hard
import numpy as np
import pytest
from definitions import cases
from plain_lp import NoEnd, NoPoint, Row, exactly, largest
from plain_market import given
from plain_verdicts import DEFINITIONS
from plainly import JUDGES, off
from scipy.optimize import linprog
from trials import Fault

from fairopt import allocate, verify
from fairopt.datasets import oef_example

HERE = Path(__file__).parent
F = Fraction


def random_program(draw: Random) -> tuple[dict[Any, Fraction], list[Row]]:
    n, m = draw.randint(1, 5), draw.randint(1, 6)
    rows = [
        Row({j: F(draw.randint(-3, 4), draw.choice([1, 2, 3])) for j in range(n)}, F(draw.randint(-3, 6)))
        for _ in range(m)
    ]
    return {j: F(draw.randint(-2, 4)) for j in range(n)}, rows


def test_linear_programs_end_as_those_of_another_solver() -> None:
    ends = set()
    for seed in range(40):
        gain, rows = random_program(Random(seed))
        table = [[float(row.terms[j]) for j in gain] for row in rows]
        bound = [float(row.most) for row in rows]
        other = linprog([-float(gain[j]) for j in gain], A_ub=table, b_ub=bound)
        there = linprog([0.0 for _ in gain], A_ub=table, b_ub=bound).status == 0
        try:
            assert float(largest(gain, rows).value) == pytest.approx(-other.fun)
            ends.add("optimum")
        except NoPoint:
            assert not there
            ends.add("no point")
        except NoEnd:
            assert there
            assert other.status != 0
            ends.add("no end")
    assert ends == {"optimum", "no point", "no end"}


def test_a_program_by_hand() -> None:
    found = largest({"x": F(1), "y": F(1)}, [Row({"x": F(1), "y": F(3)}, F(3)), *exactly({"x": F(2)}, F(3))])
    assert found.value == F(2)
    assert found.point == {"x": F(3, 2), "y": F(1, 2)}


def test_every_policy_that_is_tried_has_a_definition() -> None:
    assert set(hard.policies()) <= set(cases())
    assert set(verify(oef_example(), oef_example().equal_split())) == set(DEFINITIONS)


def test_judges_import_nothing_of_fairopt() -> None:
    judges = sorted(HERE.glob("plain*.py"))
    assert len(judges) == 7
    for path in judges:
        names = [
            each.module or "" if isinstance(each, ast.ImportFrom) else each.names[0].name
            for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(each, ast.Import | ast.ImportFrom)
        ]
        assert names
        assert not [name for name in names if name.startswith("fairopt")], path


#: OEF Eq. (1), with what its papers print or what can be worked out by hand: shares of each policy, a weight of 2.
MARKET = given([[1, 2], [1, 5]], [1, 1])
EQUAL = [["1/2", "1/2"], ["1/2", "1/2"]]
RIGHT = {
    "max-efficiency": [[1, 0], [0, 1]],
    "max-min": [[1, "1/3"], [0, "2/3"]],
    "oef-cooperative": [[1, "1/4"], [0, "3/4"]],
    "oef-noncooperative": [[1, "4/7"], [0, "3/7"]],
    "nash-welfare": [[1, "1/4"], [0, "3/4"]],
    "equal-split": EQUAL,
    "gavel-isolated": EQUAL,
    "gavel-proportional": EQUAL,
    "second-price-trading": [[1, "5/14"], [0, "9/14"]],
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_known_by_hand_is_right_and_another_is_not(name: str) -> None:
    def found(shares: list[list[object]]) -> Any:
        return SimpleNamespace(shares=np.array([[F(x) for x in row] for row in shares]), objective=None, evidence=None)

    assert name in JUDGES
    assert off(name, MARKET, found(RIGHT[name])) == 0
    assert off(name, MARKET, found([["1/2", 0], ["1/4", 1]])) > F(1, 100)


@pytest.mark.parametrize("name", sorted(cases()))
def test_each_case_agrees_on_the_example(name: str) -> None:
    case = cases()[name]
    found = allocate(case.policy, oef_example(), exact=True)
    wrong = case.off(given([[1, 2], [1, 3], [1, 4]], [1, 1]), found)
    assert wrong <= (F(1, 10**9) if found.exact else F(1, 10**4))


@pytest.mark.parametrize("name", sorted(alike.asked()))
def test_copies_are_right_as_decided_and_wrong_where_one_has_less_or_the_objective_is_another(name: str) -> None:
    case, copies = alike.asked()[name], alike.Copies(MARKET, [3, 2], np.array([0, 1, 0, 1, 0]))
    found = allocate(case.policy, copies.market())
    alike.judge(case, copies, found)
    less = found.shares * np.array([0.999999, 1, 1, 1, 1])[:, None]
    with pytest.raises(Fault, match=r"a copy's|total"):
        alike.judge(case, copies, SimpleNamespace(shares=less, objective=found.objective))
    if case.objective is not None:
        with pytest.raises(Fault, match="the objective"):
            alike.judge(case, copies, SimpleNamespace(shares=found.shares, objective=found.objective * 1.000001))


def test_a_copy_that_has_less_than_another_envies_it() -> None:
    case, copies = alike.asked()["oef-cooperative"], alike.Copies(MARKET, [3, 2], np.array([0, 1, 0, 1, 0]))
    found = allocate(case.policy, copies.market())
    other = found.shares.copy()
    other[[0, 2]] *= np.array([0.9, 1.1])[:, None]
    with pytest.raises(Fault, match="envy"):
        alike.judge(case, copies, SimpleNamespace(shares=other, objective=found.objective))


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], "more of a type"),
        ([[0.5, 0.5], [0.5, -0.1]], "below nothing"),
        ([[1.0, 0.5], [0.0, 0.5]], "demand"),
        ([[0.5, 0.5], [0.5, np.nan]], "more of a type"),
    ],
)
def test_copies_keep_within_what_there_is(shares: list[list[float]], says: str) -> None:
    copies = alike.Copies(given([[1, 2]], [1, 1], None, [1]), [2], np.array([0, 0]))
    with pytest.raises(Fault, match=says):
        alike.feasible(copies, np.array(shares))
