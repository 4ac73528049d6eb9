"""Our own mathematics in quick form, and the table of policies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import z3
from drawn_seeds import counts

from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.proofs.findings.mathematics import adjacency
from fairopt.proofs.findings.mathematics.losses import family, improved
from fairopt.proofs.findings.mathematics.two_types import POLICY, Users, smallest, some_users
from fairopt.proofs.ledger.entries import Entry, Figure, Measure, Ruling
from fairopt.proofs.ledger.figures import HEADS, cells
from fairopt.proofs.ledger.measuring import decide, holds, only_optimum
from fairopt.properties import ParetoEfficiency

ROW = Entry("own-x", "own", "policies", "bound", "s", Ruling.PROVED, "e", "p")


def test_of_four_ratios_one_gpu_of_each_type_is_enough_against_pareto_efficiency() -> None:
    market = smallest()
    decision = decide(POLICY, market)
    assert market.speedup.tolist() == [[1, 1], [1, 8], [1, 9], [1, 19]]
    assert market.capacity.tolist() == [1, 1]
    assert only_optimum(POLICY, decision)
    assert not holds(ParetoEfficiency(), market, decision.shares)


def test_with_three_users_every_step_is_on_the_hull() -> None:
    assert all(
        len(users.hull()) == len({*users.ratio}) for users, *_ in some_users(300, 3, seed=4) if len(users.ratio) == 3
    )


def test_a_larger_ratio_than_all_leaves_slow_gpus_which_all_have_alike() -> None:
    assert Users.of([1, 2]).optimum(6, 1).tolist() == [[Fraction(7, 2), 0], [Fraction(5, 2), 1]]


def test_the_pareto_loss_grows_with_the_family() -> None:
    losses = []
    for m in (2, 10, 50):
        users, *gpus = family(m)
        held = users.optimum(*gpus)
        losses.append(1 - (users.market(*gpus).speedup * held).sum() / improved(users, held))
    assert losses[0] < losses[1] < losses[2] < 1
    assert losses[2] > 0.8


@pytest.mark.parametrize("supports", counts(1, 3))
def test_gaps_that_rising_speedups_exclude_are_excluded_and_that_of_the_paper_is_not(supports: int) -> None:
    left = list(adjacency.supports())
    assert len(left) == 20
    for user, held in left[1 : 1 + supports]:
        assert not list(adjacency.undecided(user, held))
    # not by an error in the conditions: where 8 slow GPUs make speedups fall, they hold
    held = ((1, 0, 0), (1, 0, 1), (0, 1, 1))
    market = Market.of([["1", "1/2", "5/8"], ["1", "5/8", "1"], ["1", "1", "13/8"]], [1, 1, 1])
    shares = decide(CooperativeOEF(), market).shares
    assert [[int(share > 0) for share in row] for row in shares] == [list(row) for row in held]
    tight = [(i, o) for i, o in adjacency.ENVY if (market.speedup[i] * (shares[i] - shares[o])).sum() == 0]
    solver = z3.Solver()
    primal, dual, fair = adjacency.conditions(held, tight)
    solver.add(*primal, *dual, *fair)
    first, second = market.speedup[:, 1] - 1, market.speedup[:, 2] - market.speedup[0, 1]
    for name, steps in (("a", first), ("b", second)):
        for i in range(3):
            step = steps[i] - (steps[i - 1] if i else 0)
            solver.add(z3.Real(f"{name}{i}") == z3.Q(step.numerator, step.denominator))
    assert solver.check() == z3.sat


def test_the_table_has_the_sharpest_number_of_each_scope_and_names_its_row() -> None:
    def figure(value: str, scope: str) -> tuple[Figure, ...]:
        return (Figure("max-min", Measure.INCENTIVE_AT_LEAST, value, scope),)

    rows = [
        replace(ROW, id=f"own-{name}", figures=figure(*told))
        for name, told in {"a": ("4/3", "two users"), "b": ("3/2", "two users"), "c": ("unbounded", "any")}.items()
    ]
    (line,) = cells(rows)
    assert line[HEADS.index("a liar's factor, at least")] == "3/2, two users (`own-b`); unbounded, any (`own-c`)"


@pytest.mark.parametrize("value", ["4/3", "1/n", "unbounded"])
def test_values_of_measures(value: str) -> None:
    assert Measure.INCENTIVE_AT_MOST.takes(value)
    assert not Measure.ENVY_FREENESS.takes(value)
    assert not Measure.INCENTIVE_AT_MOST.takes("two")
