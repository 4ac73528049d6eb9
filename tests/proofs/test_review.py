"""What the review of the ledger asked for: each point of it, in quick form."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from fairopt.models import CooperativeOEF, MaxMin
from fairopt.problem import Market
from fairopt.proofs.claims.oef.printed_range import CUT, PRINTED_HIGH, PRINTED_LOW, GavelDual, most_above_gavel
from fairopt.proofs.claims.oef.theorems import factor_of_under_reporting, no_optimum_has
from fairopt.proofs.findings.review import vertices
from fairopt.proofs.ledger.checking import NoLongerFollows
from fairopt.proofs.ledger.entries import Finding, Ruling, measured, read_package
from fairopt.proofs.ledger.measuring import exactly
from fairopt.properties import ParetoEfficiency

ROWS = {row.id: row for row in read_package("fairopt.proofs.claims")}


def test_verdicts_are_no_more_than_what_is_decided() -> None:
    assert ROWS["gandiva-eq1-3"].verdict is Ruling.QUALIFIED, "5 to 8 users are sampled"
    assert ROWS["oef-thm5.1"].verdict is Ruling.PROVED, "optimal as Sec. 2.3.2 has it"
    assert ROWS["oef-fig8"].verdict is Ruling.QUALIFIED
    for meaning in ("Sec. 2.3.2", "Eq. (4)"):
        assert meaning in ROWS["oef-table1"].evidence


def test_three_users_on_two_types_of_whom_one_cannot_run_are_enough_against_theorem_5_3() -> None:
    market = Market.of([[1, 3], [1, 4], [0, 1]], [1, 1])
    assert no_optimum_has(ParetoEfficiency(), CooperativeOEF(), market)


@pytest.mark.parametrize("fast", [10, 10**6])
def test_under_reporting_gains_without_bound(fast: int) -> None:
    told = Fraction(10**6 + 1, 10**6)
    factor = factor_of_under_reporting(2, 2, fast, told)
    assert factor == (fast + 1) / (told + 1)
    assert factor > Fraction(fast + 1, 2) * Fraction(999, 1000)


# -- rows that are measured ----------------------------------------------------------------------------------------
def test_a_measured_row_follows_but_for_what_was_measured() -> None:
    row = replace(ROWS["oef-fig10a"], evidence="Of 20 runs it takes 5.5 s, 1.2e+02 times as long, and loses 3.1%.")

    def follows(runs: int, seconds: float, loss: str, words: str = "and loses") -> bool:
        text = f"Of {runs} runs it takes {measured(seconds, '.1f')} s, {measured(7.0, '.2g')} times as long, {words} "
        return row.follows(Finding.measuring(row.verdict, f"{text}{loss}%."))

    assert follows(20, 71.25, "3.1")
    assert follows(20, 5.5, "3.2"), "the last digit depends on the processor"
    assert not follows(20, 5.5, "3.3")
    assert not follows(21, 5.5, "3.1")
    assert not follows(20, 5.5, "3.1", "and gains")
    assert not replace(row, measured=False).follows(Finding(row.verdict, row.evidence.replace("5.5", "5.6")))
    assert not row.follows(Finding(Ruling.PROVED, row.evidence))


def test_what_is_stored_of_a_measured_row_has_no_marks() -> None:
    finding = Finding.measuring(Ruling.PROVED, f"It takes {measured(0.1234, '.2f')} s.")
    assert finding.evidence == "It takes 0.12 s."
    assert finding.says("It takes 99 s.")


# -- how far above Gavel -------------------------------------------------------------------------------------------
def test_no_speedups_in_the_printed_range_bring_a_fifth_more_than_gavel() -> None:
    assert Fraction(18, 100) < most_above_gavel(PRINTED_LOW, PRINTED_HIGH, CUT) < Fraction(19, 100)
    with pytest.raises(NoLongerFollows, match="the cut is between"):
        most_above_gavel(PRINTED_LOW, PRINTED_HIGH, Fraction(1))
    # the largest that is known, nearly, among few tenants
    tenants = [[1, 1, PRINTED_HIGH]] * 4 + [[1, 1, PRINTED_LOW]] * 2 + [[1, PRINTED_HIGH, PRINTED_HIGH]] * 2
    market = Market.of(tenants, [1, 1, 1])
    ours, theirs = (exactly(policy, market).utilities.sum() for policy in (CooperativeOEF(), MaxMin()))
    assert Fraction(6, 100) < ours / theirs - 1 <= GavelDual.of(market).most_above


def test_the_bound_above_gavel_is_reached() -> None:
    market = Market.of([[1, 1], [1, 5]], [1, 1])
    ours, theirs = (exactly(policy, market).utilities.sum() for policy in (CooperativeOEF(), MaxMin()))
    assert ours / theirs - 1 == GavelDual.of(market).most_above == Fraction(1, 5)


# -- non-zeros of an extreme point -----------------------------------------------------------------------------------
def test_more_users_and_types_have_more_nonzeros_than_n_plus_k_minus_1() -> None:
    assert [vertices.largest(2, k) for k in (2, 3, 7)] == [3, 4, 8]
    assert [vertices.largest(n, 2) for n in (3, 4, 5)] == [5, 7, 9]
    assert vertices._most([[3, 3, 3], [2, 2, 1], [1, 2, 1], [3, 3, 3]], 60) == vertices.largest(4, 3) == 9
