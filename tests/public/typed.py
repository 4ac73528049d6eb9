"""What type checkers see of the main calls: `make check` gives this file to mypy; nothing here is run."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import assert_type

import pandas as pd

import fairopt
from fairopt.compare import Row
from fairopt.datasets import astraea_example, philly_cluster, philly_trace
from fairopt.policy import Allocation, Plan, Policy
from fairopt.properties import Verdict
from fairopt.properties.metrics import Metrics
from fairopt.report import Statement
from fairopt.simulation import History, Round, Setting


def main_calls() -> None:
    market = fairopt.Market.of([[1, 2], [1, 5]], {"K80": 1, "V100": 1}, types=["K80", "V100"])
    decision = fairopt.allocate("oef-cooperative", market, exact=True)
    assert_type(market, fairopt.Market)
    assert_type(decision, Allocation)
    assert_type(decision.objective, int | float | Fraction)
    assert_type(fairopt.decide("max-min", market), Allocation)
    assert_type(fairopt.decide("fcfs", astraea_example()), Plan)
    assert_type(fairopt.verify(market, [[1, 0], [0, 1]]), dict[str, Verdict])
    assert_type(fairopt.verify(market, decision.to_frame())["envy_freeness"].holds, bool | None)
    for row in fairopt.compare(market, ["max-min"]):
        assert_type(row, Row[Allocation])
        assert_type(row.outcome, Allocation | None)
    for played in fairopt.compare(Setting(philly_cluster(), philly_trace())):
        assert_type(played, Row[History])
    assert_type(fairopt.run("srtf", philly_trace(), philly_cluster(), length=300), Iterator[Round])
    assert_type(fairopt.metrics(market, decision.shares), Metrics)
    assert_type(fairopt.policies(fairopt.Market), list[Policy])
    assert_type(fairopt.uniqueness("max-min", decision), Statement)
    assert_type(fairopt.read_market("market.toml"), fairopt.Market)
    assert_type(market.to_frame(), pd.DataFrame)
    assert_type(fairopt.__version__, str)
