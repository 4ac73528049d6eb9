"""From Python, a name or a class serves wherever an object does, and what is left out is everything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import fairopt
from fairopt import BadInput, Market, allocate, compare, decide, discovery, verify
from fairopt.backends import Highs
from fairopt.datasets import astraea_example
from fairopt.models import MaxMin
from fairopt.properties import EnvyFreeness

MARKET = Market.of([[1, 2], [1, 5]], capacity=[1, 1])


def test_policies_and_solvers_by_name_by_class_and_as_objects() -> None:
    given: list[tuple[Any, Any]] = [("max-min", "highs"), (MaxMin, Highs), (MaxMin(), Highs())]
    decisions = [allocate(policy, MARKET, solver) for policy, solver in given]
    assert {each.backend for each in decisions} == {"highs"}
    assert len({str(each.shares) for each in decisions}) == 1
    assert allocate("max-min", MARKET, "prices").method == MaxMin.methods[0]
    assert decide("fcfs", astraea_example()).policy == "fcfs"


def test_everything_that_is_installed_is_compared() -> None:
    (row,) = compare(MARKET, ["equal-split"])
    assert set(row.verdicts) == {each.name for each in discovery.properties(Market)}
    rows = list(compare(MARKET, properties=[EnvyFreeness]))
    assert [row.policy.name for row in rows] == [each.name for each in fairopt.policies(Market)]
    assert {name for row in rows for name in row.verdicts} == {"envy_freeness"}


def test_lists_are_verified_with_all_properties_of_allocations() -> None:
    verdicts = verify(MARKET, [[1, 0], [0, 1]])
    assert verdicts["feasibility"].answer.value == "HOLDS"
    assert "strategy_proofness" not in verdicts


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: allocate("max-mn", MARKET), "Did you mean max-min"),
        (lambda: allocate("fcfs", MARKET), "`fairopt schedule` takes it"),
        (lambda: allocate(3, MARKET), "policy: got a int. Give a policy"),
        (lambda: allocate("max-min", MARKET, "hihgs"), "Did you mean highs"),
        (lambda: next(compare(MARKET, ["max-min"], ["envy"])), "there is no 'envy' among the properties"),
        (lambda: verify(MARKET, [[1, 0], [0, 1]], ["strategy_proofness"]), "`compare` asks it of a policy"),
    ],
)
def test_what_is_none_says_what_there_is(ask: Any, says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(says)):
        ask()


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{fairopt.__version__}"' in text
