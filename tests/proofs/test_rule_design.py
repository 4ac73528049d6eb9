"""Linear programs of truthful rules: what their optima are, and that they lose nothing by symmetry or few lies."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from fairopt.backends.exact import Exact
from fairopt.errors import BadInput
from fairopt.program import Array
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.profiles import Profiles, grid, ranges

QUARTERS = ranges([0, "1/4", "1/2", "3/4", 1])
GOALS = pytest.mark.parametrize("maximise", [Design.proportionally_fair, Design.large_total])


def solved(profiles: Profiles, *asked: Callable[[Design], None], symmetric: bool = True) -> tuple[Fraction, Array]:
    design = Design(profiles, symmetric=symmetric)
    for ask in asked:
        ask(design)
    program = design.program()
    solution = Exact().solve(program).require_optimal()
    return Fraction(program.value(solution.point)), design.rule(solution.point)


@GOALS
@pytest.mark.parametrize(("cells", "users"), [(grid(2, 4, positive=False), 2), (QUARTERS, 2), (grid(3, 4), 2)])
def test_a_symmetric_rule_is_as_good(cells: Array, users: int, maximise: Callable[[Design], None]) -> None:
    profiles = Profiles.every(cells, users)
    level, rule = solved(profiles, Design.strategy_proof, Design.envy_free, maximise)
    assert level == solved(profiles, Design.strategy_proof, Design.envy_free, maximise, symmetric=False)[0]
    at = {tuple(told): x for told, x in zip(profiles.told.tolist(), rule, strict=True)}
    for told, x in at.items():
        assert (at[told[::-1]] == x[::-1]).all()


def test_what_is_asked_can_be_had_by_hand() -> None:
    # one market: no lies, so that all of the Nash welfare can be had
    one = Profiles.of([[[1, 2], [1, 5]]])
    level, [rule] = solved(one, Design.strategy_proof, Design.proportionally_fair)
    assert level == 1
    assert ((rule * [[1, 2], [1, 5]]).sum(axis=1) == [Fraction(3, 2), Fraction(15, 4)]).all()
    # equal split is truthful; two users who want different types could have twice of it
    apart = Profiles.every(grid(2, 1, positive=False), 2)
    assert solved(apart, Design.strategy_proof, Design.large_total)[0] == 1


@GOALS
@pytest.mark.parametrize("cells", [grid(2, 5, positive=False), QUARTERS])
def test_lies_to_the_next_report_suffice(cells: Array, maximise: Callable[[Design], None]) -> None:
    profiles = Profiles.every(cells, 2)
    _, rule = solved(profiles, Design.strategy_proof, maximise)
    at = {tuple(told): x for told, x in zip(profiles.told.tolist(), rule, strict=True)}
    for (one, other), lie in product(at, range(len(cells))):
        for truth in cells[one]:
            assert truth @ at[one, other][0] >= truth @ at[lie, other][0]


def test_each_property_is_what_it_says() -> None:
    profiles = Profiles.every(grid(2, 4, positive=False), 2)
    asked = (Design.strategy_proof, Design.envy_free, Design.sharing_incentive, Design.nothing_left_over)
    level, rule = solved(profiles, *asked, Design.proportionally_fair)
    for told, x in zip(profiles.told, rule, strict=True):
        speedup = profiles.cells[told, 0]
        worth = speedup @ x.T  # of bundle l to user i
        assert (worth.diagonal()[:, None] >= worth).all()
        assert (worth.diagonal() >= Fraction(1, 2)).all()
        assert (x.sum(axis=0) == 1).all()
    # each leaves fewer rules
    levels = [solved(profiles, *asked[:count], Design.proportionally_fair)[0] for count in (1, 2, 3, 4)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == Fraction(12, 13)
    assert levels[-1] == level < levels[0]


def test_equal_throughput_is_that_at_every_corner() -> None:
    profiles = Profiles.every(QUARTERS, 3)
    level, rule = solved(profiles, Design.strategy_proof, Design.equal_throughput, Design.large_total)
    assert level == Fraction(1, 2)  # who want different types could have twice of it
    own = (profiles.corners * rule[:, :, None, :]).sum(axis=3)
    assert (own == own[:, :1, :1]).all()


def test_less_of_the_fair_share_is_asked_for() -> None:
    profiles = Profiles.every(QUARTERS, 2)

    def at_least(part: Fraction) -> Fraction:
        return solved(profiles, Design.strategy_proof, lambda d: d.sharing_incentive(part), Design.large_total)[0]

    assert at_least(Fraction(1)) < at_least(Fraction(1, 2)) == at_least(Fraction(0))


def test_capacities_count_and_break_the_symmetry_of_types() -> None:
    cells, many = grid(2, 4, positive=False), [3, 1]
    profiles = Profiles.every(cells, 2, many)
    assert {types for _, types, _ in profiles.symmetries()} == {(0, 1)}
    _, rule = solved(profiles, Design.strategy_proof, Design.sharing_incentive, Design.nothing_left_over)
    assert (rule.sum(axis=1) == many).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: grid(3, 2), "grid: no report on 3 types has 2 parts"),
        (lambda: ranges([0, "1/2"]), "breaks: got 0, 1/2"),
        (lambda: ranges([0, "1/2", "1/4", 1]), "breaks: got 0, 1/2, 1/4, 1"),
        (lambda: Profiles.every(grid(2, 4), 2, [1, 1, 1]), "profiles: cells"),
        (lambda: Profiles.of([[[1, -1], [1, 1]]]), "profiles: a speedup is negative"),
        (lambda: Profiles.every(grid(2, 4), 2, [1, 0]), "or a capacity is not positive"),
        (lambda: Profiles.every(grid(2, 4), 0), "told: "),
        (lambda: Profiles.of([[1, 2], [3, 4]]), "speedups: their shape is"),
        (lambda: Profiles.of([[[1, "x"], [1, 1]]]), "not a number"),
        (lambda: Profiles(grid(2, 4), np.array([[0, 7]]), np.array([1, 1])), "told: "),
        (lambda: Design(Profiles.every(grid(2, 4), 2)).efficient(0, np.ones((2, 2), dtype=bool)), "symmetric"),
        (
            lambda: Design(Profiles.every(np.ones((1, 2, 3), dtype=object), 2)).proportionally_fair(),
            "more than two types",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()
