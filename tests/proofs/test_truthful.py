"""How good truthful rules can be, in a quick form: the same computations as the slow rows of the findings."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from fairopt.proofs.findings.truthful.design import Design, nash_utilities
from fairopt.proofs.findings.truthful.levels import (
    COMPLETE,
    NOTHING,
    Size,
    best,
    even,
    interval,
    two_type_equilibrium,
    worst_level,
)
from fairopt.proofs.findings.truthful.profiles import Profiles, grid
from fairopt.proofs.ledger.checking import NoLongerFollows
from fairopt.proofs.ledger.entries import read_package

QUICK = Size(2, grid(2, 6, positive=False), even(6))
GOALS = pytest.mark.parametrize("maximise", [Design.proportionally_fair, Design.large_total])


@GOALS
def test_a_rule_is_between_the_bounds_and_better_than_equal_split(maximise: Callable[[Design], None]) -> None:
    below, above = interval(QUICK, NOTHING, maximise)
    assert below is not None
    assert Fraction(1, 2) < below < above < 1
    assert interval(QUICK, COMPLETE, maximise)[0] < below


@GOALS
def test_the_rule_keeps_its_promise_at_reports_that_no_program_saw(maximise: Callable[[Design], None]) -> None:
    random, parts = np.random.default_rng(1), 6
    below, rule = best(2, QUICK.below, NOTHING, maximise)
    at = {tuple(told): x for told, x in zip(Profiles.every(QUICK.below, 2).told.tolist(), rule, strict=True)}
    for _ in range(100):
        numbers = [Fraction(int(b), 97) for b in random.integers(0, 98, 3)]
        one, other, lie = (min(int(b * parts), parts - 1) for b in numbers)
        speedup = np.array([[b, 1 - b] for b in numbers[:2]])
        own = (speedup * at[one, other]).sum(axis=1)
        assert own[0] >= speedup[0] @ at[lie, other][0]
        if maximise is Design.large_total:
            assert own.sum() >= below * speedup.max(axis=0).sum()
        else:
            assert (own >= below * nash_utilities(speedup, np.array([1, 1]))).all()


def test_a_rule_that_can_be_deceived_is_caught() -> None:
    profiles = Profiles.every(QUICK.below, 2)
    _, rule = best(2, QUICK.below, NOTHING, Design.proportionally_fair)
    rule[7] *= Fraction(9, 10)
    with pytest.raises(NoLongerFollows, match="no lie of user"):
        worst_level(profiles, rule, fair=True)
    with pytest.raises(NoLongerFollows, match="feasible"):
        worst_level(profiles, rule * 2, fair=True)


def test_prices_in_closed_form_are_those_of_the_equilibrium() -> None:
    random = np.random.default_rng(2)
    for n in (2, 3, 4) * 5:
        parts = [Fraction(int(b), 8) for b in random.integers(1, 8, n)]
        speedup = np.array([[b, 1 - b] for b in parts])
        assert two_type_equilibrium(speedup) == nash_utilities(speedup, np.array([1, 1])).tolist()


def test_the_table_of_the_page_has_the_numbers_of_the_rows() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "howto" / "search-a-rule.md").read_text(encoding="utf-8")
    rows = {row.id: row.evidence for row in read_package("fairopt.proofs.findings.truthful")}
    columns = ("proportional-2x2", "total-2x2", "proportional-3x2", "total-3x2")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if " to 0." in line]
    assert len(table) == 6
    for asked, *cells in table:
        for cell, column in zip(cells, columns, strict=True):
            assert f"{asked} {cell}" in rows[f"own-truthful-{column}"]
