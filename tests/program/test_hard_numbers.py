"""Programs of numbers that take long, or are beyond floats."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt.backends.exact import Exact, sums
from fairopt.backends.trust import trusted
from fairopt.deadline import time_limit
from fairopt.errors import BadInput, NotSolved, OutOfTime
from fairopt.models.oef.cooperative import by_weight
from fairopt.models.robust.robust import RobustCooperativeOEF
from fairopt.numbers import in_pieces
from fairopt.problem import Market
from fairopt.program import Formulation, Program


def test_rationals_of_a_large_program_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an optimum in rationals came just before the end, to judge it took two seconds more."""
    monkeypatch.setattr("fairopt.numbers.PIECE", 20)
    count = 30
    p = Formulation("large")
    p.maximize((x := p.variable("x", (count,), lower=0)).sum())
    p.constrain("room", Fraction(1, 3) * x <= 1)
    program, ones = p.program(), np.full(count, Fraction(1))
    steps = (
        lambda: program.rows.activity(ones),
        lambda: program.reduced_cost(ones, ones),
        lambda: (x - 1) * ones,
        lambda: -(x - ones),
    )
    for step in steps:
        with pytest.raises(OutOfTime), time_limit(0):
            step()
    assert program.rows.activity(ones).tolist() == [Fraction(1, 3)] * count
    assert program.reduced_cost(ones, ones).tolist() == [Fraction(2, 3)] * count


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x / 1e-310,
        lambda x: x / 0.0,
        lambda x: x * 1e300 * 1e300,
        lambda x: (x - 1e300) * 1e300,
        lambda x: (x - 1e308) - 1e308,
        lambda x: 1.5e308 * x + 1.5e308 * x,
    ],
)
def test_what_is_beyond_floats_is_refused(body) -> None:
    """A constant of minus infinity would make a row that says nothing."""
    p = Formulation("far")
    x = p.variable("x", lower=0)

    def written() -> Program:
        p.constrain("row", body(x) <= 1)
        return p.program()

    with pytest.raises(BadInput, match="program 'far': a number is beyond floats"):
        written()


def test_tens_of_thousands_of_numbers_are_not_one_step() -> None:
    """45,500 fractions were: to judge the optimum of 91 users took a second between two looks at the clock."""
    p = Formulation("looks")
    x = p.variable("x", (11_000,))
    at = np.ones(len(x), dtype=object)
    for step in (lambda: in_pieces(np.add, at, at), lambda: x[::-1], lambda: x + x, lambda: x * at):
        with pytest.raises(OutOfTime), time_limit(0):
            step()
    ends = []
    in_pieces(lambda piece: ends.append(len(piece)) or piece, at)
    assert max(ends) <= 5_000


def test_an_exact_optimum_is_put_into_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    p = Formulation("thirds")
    p.maximize((x := p.variable("x", (3,), lower=0)).sum())
    p.constrain("room", Fraction(1, 3) * x <= 1)
    program, asked, plain = p.program().as_(Fraction), [], sums.activity
    found = Exact().solve(program)
    monkeypatch.setattr(sums, "activity", lambda whole, at: asked.append(at) or plain(whole, at))
    assert trusted(program, found).objective == 9
    assert len(asked) == 1
    for wrong in ({"x": found.point / 2}, {"x": found.point * 2}, {"dual": found.dual * 2}, {"dual": found.dual * 0}):
        with pytest.raises(NotSolved, match="calls a point optimal"):
            trusted(program, replace(found, **wrong))
    with pytest.raises(NotSolved, match="from the optimum"):
        trusted(program, replace(found, dual=found.dual / 2))


def test_programs_of_all_pairs_of_users_are_written_within_a_limit() -> None:
    """The ratios of 1,500 users' weights, in rationals, took 2.5 s in one step."""
    market = Market.of([[1, 2]] * 80, [1, 1], weight=range(1, 81))
    pairs = market.weight[:, None] / market.weight
    assert (by_weight(market) == pairs).all()
    for step in (lambda: by_weight(market), lambda: RobustCooperativeOEF().formulate(market, None)):
        with pytest.raises(OutOfTime), time_limit(0):
            step()
