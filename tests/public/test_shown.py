"""Results show themselves: on one line, as a table in a notebook, in pandas; and a verdict is no truth value."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import fairopt
from fairopt import Answer, History, Market, Verdict, allocate, compare, decide, metrics, verify
from fairopt.compare.incentives import incentives
from fairopt.datasets import astraea_example, philly_cluster, philly_trace
from fairopt.numbers import short_text
from fairopt.properties import Effort
from fairopt.report import Tabular
from fairopt.simulation import Setting
from fairopt.simulation.measures import measure

MARKET = Market.of(
    [[1, "2/7"], [1, Fraction(10**40 + 1, 10**40 * 3)]], [3, 1], users=["<b>A</b>", "B & C"], types=["K80", "V100"]
)
PLAYED = History.of(
    philly_trace(), philly_cluster(), fairopt.run("srtf", philly_trace(), philly_cluster(), length=300, rounds=12)
)


def shown() -> Iterator[tuple[Tabular, str]]:
    """Yield results, and what they must not lose: which policy or market they are of."""
    decision = allocate("oef-cooperative", MARKET, exact=True)
    yield MARKET, "2 types (K80, V100), 4 GPUs"
    yield decision, "oef-cooperative on <Market: 2 users, 2 types (K80, V100), 4 GPUs"
    yield allocate("nash-welfare", MARKET), "nash-welfare"
    yield metrics(MARKET, decision.shares), "2 users"
    yield verify(MARKET, decision.shares)["sharing_incentive"], "sharing_incentive HOLDS"
    yield from ((row, "max-efficiency: FAILS ") for row in compare(MARKET, ["max-efficiency"], ["envy_freeness"]))
    comparison = compare(MARKET, ["equal-split", "max-min"], ["envy_freeness", "pareto_efficiency"])
    comparison.to_frame()
    yield comparison, "on <Market: 2 users, 2 types (K80, V100), 4 GPUs>; computed: equal-split, max-min"
    yield PLAYED, "srtf on <Cluster: 8 hosts"
    yield measure(PLAYED), "jobs completed in 12 rounds"
    yield decide("fcfs", astraea_example()), "fcfs on <Batch: 4 jobs of 2 tenants"
    yield incentives("max-efficiency", MARKET, ["larger"], Effort(evaluations=20)), "max-efficiency; larger pays"
    yield compare(Setting(philly_cluster(), philly_trace()), ["srtf"], ["lease_kept"], rounds=2), "Setting"


def test_a_result_is_a_line_and_a_table() -> None:
    for result, kept in shown():
        line = repr(result)
        assert kept in line
        assert "\n" not in line
        assert len(line) < 300
        assert not re.search(r"\d{14}|Fraction\(", line), line
        html = result._repr_html_()
        assert "<b>A" not in html
        assert not re.search(r"\d{14}|Fraction\(|color|background", html), html  # colours are the page's, light or dark
        Nested().feed(html)
        frame = result.to_frame()
        assert len(frame)
        assert not any(isinstance(value, Fraction) for value in frame.to_numpy().ravel()), frame


class Nested(HTMLParser):
    """Fails where tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_rounded_fractions_say_so_and_exact_ones_are_kept_where_asked() -> None:
    assert "≈0.333333" in MARKET._repr_html_()
    assert MARKET.to_frame(exact=True).loc["B & C", "V100"] == MARKET.speedup[1, 1]


def test_numbers_too_long_to_be_written_out_are_rounded() -> None:
    market = Market.of([[1, 2]], [1, 1])
    shares = np.array([[Fraction(1, 3) + Fraction(1, 10**5000), Fraction(1)]], dtype=object)
    assert short_text(shares[0, 0]) == "≈0.333333"
    assert "<td>2.33333</td>" in metrics(market, shares)._repr_html_()  # metrics of such shares are floats


def test_what_a_long_table_leaves_out_is_counted() -> None:
    many = Market.of([[1] * 25] * 30, [1] * 25)
    assert "11 more rows and 6 more columns" in many._repr_html_()
    assert many.to_frame().shape == (30, 25)
    printed = str(allocate("equal-split", many)).splitlines()
    assert len(printed) == 1 + 1 + 20 + 1
    assert printed[-1] == "... 10 more rows: to_frame() has all"


def test_an_allocation_is_printed_with_its_shares() -> None:
    first, head, *rows = str(allocate("max-min", Market.of([[1, 2], [1, 5]], [1, 1]))).splitlines()
    assert first.startswith("max-min on <Market: 2 users")
    assert head.split()[:4] == ["user", "T1", "T2", "throughput"]
    assert [row.split()[0] for row in rows] == ["u1", "u2"]


def test_a_type_called_as_another_column_keeps_its_own() -> None:
    market = Market.of([[1, 7], [1, 8]], [1, 2], types=["weight", "throughput"], weight=[3, 4], demand=[5, 6])
    for each in (market, allocate("equal-split", market)):
        html = each._repr_html_()
        assert re.findall("<th>((?:weight|throughput|demand)[*]?)</th>", html) == (
            ["weight", "throughput", "weight*", "demand"] if each is market else ["weight", "throughput", "throughput*"]
        )


def test_the_table_of_a_comparison_has_answers_margins_and_measures() -> None:
    comparison = compare(MARKET, ["equal-split", "max-min"], ["envy_freeness"])
    assert next(comparison).policy.name == "equal-split"
    frame = comparison.to_frame()
    assert frame.index.tolist() == ["equal-split", "max-min"]
    assert frame["envy_freeness"].tolist() == ["HOLDS", "HOLDS"]
    assert {"envy_freeness_margin", "total_efficiency"} <= set(frame)


def test_the_table_of_a_history_has_a_row_for_each_job_and_round() -> None:
    frame = PLAYED.to_frame()
    assert len(frame) == sum(len(record.ran) for record in PLAYED.rounds)
    assert frame["completed"].sum() == sum(len(record.completed) for record in PLAYED.rounds)


def test_an_allocation_as_a_table_is_verified_like_itself() -> None:
    decision = allocate("max-min", MARKET, exact=True)
    table = decision.to_frame(exact=True).loc[::-1, ::-1]
    assert verify(MARKET, table)["envy_freeness"].margin == verify(MARKET, decision.shares)["envy_freeness"].margin


def test_a_table_without_pandas_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from fairopt.datasets import oef_example\n"
        "oef_example()._repr_html_()\n"
        "oef_example().to_frame()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "NotInstalled: to_frame needs pandas: pip install 'fairopt[tables]'" in ran.stderr


@pytest.mark.parametrize("answer", Answer)
def test_a_verdict_refuses_truth_and_says_whether_it_holds(answer: Answer) -> None:
    verdict = Verdict("envy_freeness", answer, None, "", exact=True, effort="")
    with pytest.raises(TypeError, match=r"ask its `\.holds`.* None where it is UNDECIDED"):
        bool(verdict)
    wanted: Any = {Answer.HOLDS: True, Answer.FAILS: False}
    assert verdict.holds is wanted.get(answer)
