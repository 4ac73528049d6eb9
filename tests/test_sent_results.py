"""Results can be sent to other processes, which say the same of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from fairopt import History, allocate, compare, frontier, run
from fairopt.datasets import oef_example, philly_cluster, philly_trace
from fairopt.report import plain
from fairopt.simulation.measures import measure


def run_of_srtf() -> History:
    trace, cluster = philly_trace(), philly_cluster()
    return History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=3))


@pytest.mark.parametrize(
    "made",
    [
        lambda: [row.verdicts for row in compare(oef_example(), ["max-min"], ["envy_freeness"]).rows],
        lambda: [row.unique for row in compare(oef_example(), ["max-efficiency"], [], unique=True).rows],
        lambda: [row.over_optima for row in compare(oef_example(), "max-efficiency", every_optimum=True).rows],
        lambda: allocate("partial-allocation", oef_example(), exact=True).evidence,
        lambda: frontier(oef_example(), "total_efficiency", "envy_freeness", policies=["max-min"]),
        lambda: measure(run_of_srtf()),
    ],
)
def test_a_result_says_the_same_where_it_was_sent(made: Callable[[], Any]) -> None:
    result = made()
    sent = pickle.loads(pickle.dumps(result))
    assert plain(sent) == plain(result)
    assert str(sent) == str(result)
