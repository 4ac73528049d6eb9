"""The findings on the frontier that are slow, in a quick form, and the arithmetic that they rest on."""

from __future__ import annotations

from fractions import Fraction

from fairopt.proofs.findings.frontier.equilibrium import Alone, Crossed
from fairopt.proofs.findings.frontier.three_properties import against_policies, drawn, on_tables
from fairopt.proofs.ledger.entries import Ruling


def test_the_tables_in_a_quick_form() -> None:
    assert on_tables(1).verdict is Ruling.QUALIFIED
    assert against_policies(1).evidence.endswith("On all of them all three: oef-efficient, nash-welfare.")


def test_markets_are_drawn_alike_every_time() -> None:
    again = dict(drawn(1))
    for case, market in drawn(1):
        assert market == again[case]
        assert len(market.users) == int(case.split()[-2])


def test_what_the_families_leave_by_hand() -> None:
    assert [Alone((1,) * n).gain for n in (1, 2, 3)] == [Fraction(3, 2), 2, Fraction(5, 2)]
    assert Alone((1,), 10**6).ratio - Fraction(2, 3) < Fraction(1, 10**5)
    assert Crossed(5, 5).gain == Fraction(19, 4)
