"""Printed numbers beside what a study found: which settings reach them, and the table's line."""

from __future__ import annotations

import math

from fairopt.experiment.statistics import Estimate
from fairopt.proofs.ledger.levels import FoundShare, PrintedShare, percentages


def level(value: float, low: float, high: float, load: str) -> FoundShare:
    return FoundShare({"load": load}, Estimate(value, low, high))


def test_a_number_is_reached_where_the_interval_holds_it() -> None:
    printed = PrintedShare("7.1% of jobs", 7.1, [level(9, 6, 12, "load 1"), level(20, 15, 25, "load 2")])
    assert [each.where["load"] for each in printed.inside] == ["load 1"]
    line = printed.line()
    assert (line.claimed, line.found) == ("7.1% of jobs", "9.00 to 20.0%")
    assert line.interval == "[6.00, 12.0] to [15.0, 25.0]"
    assert line.holds == "within the interval in 1 of 2 (load 1)"


def test_without_an_interval_the_number_itself_must_be_found() -> None:
    nothing = math.nan
    printed = PrintedShare("", 7.1, [level(7.1, nothing, nothing, "1"), level(7.2, nothing, nothing, "2")])
    assert [each.where["load"] for each in printed.inside] == ["1"]


def test_an_interval_of_parts_ends_at_all_and_nothing() -> None:
    found = percentages({0: 0.0, 1: 0.5, 2: 1.0}, resampled=False)
    assert (found.value, found.low, found.high) == (50, 0, 100)
