"""From Python, a name or a class serves wherever an object does, and what is left out is everything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import fairopt
from fairopt import BadInput, Market, NotCapable, allocate, compare, decide, discovery, plot, run, uniqueness, verify
from fairopt.backends import Highs
from fairopt.datasets import astraea_example, philly_cluster, philly_trace
from fairopt.models import MaxMin
from fairopt.models import ShortestRemainingTimeFirst as SRTF
from fairopt.policy import decide as decide_with
from fairopt.properties import EnvyFreeness, StrategyProofness
from fairopt.simulation import Setting
from fairopt.testing.policy_suite import installed

MARKET = Market.of([[1, 2], [1, 5]], capacity=[1, 1])


def test_policies_and_solvers_by_name_by_class_and_as_objects() -> None:
    given: list[tuple[Any, Any]] = [("max-min", "highs"), (MaxMin, Highs), (MaxMin(), Highs())]
    decisions = [allocate(policy, MARKET, solver) for policy, solver in given]
    assert {each.backend for each in decisions} == {"highs"}
    assert len({str(each.shares) for each in decisions}) == 1
    assert allocate("max-min", MARKET, "prices").method == MaxMin.methods[0]
    assert decide("fcfs", astraea_example()).policy == "fcfs"


TRACE, CLUSTER = philly_trace(), philly_cluster()


def test_rounds_by_name_by_class_and_as_objects() -> None:
    first = [next(run(policy, TRACE, CLUSTER, length=300)) for policy in ("srtf", SRTF, SRTF())]
    assert first[0] == first[1] == first[2]
    assert next(run("oef-rounds", TRACE, CLUSTER, length=300, backend="exact")).backend == "exact"


def test_uniqueness_and_pictures_by_name() -> None:
    decision = allocate("max-min", MARKET, exact=True)
    assert uniqueness("max-min", decision) == uniqueness(MaxMin(), decision)
    figure = plot.misreport(["max-min", MaxMin], MARKET, "u1", "T1", [1, 2], "highs")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()].count("max-min") == 2


def test_exact_is_asked_for_without_the_name_of_a_back_end() -> None:
    assert allocate("max-min", MARKET, exact=True).exact
    assert decide("max-min", MARKET, exact=True).exact
    assert allocate("max-min", MARKET, "exact", exact=True).exact
    assert next(run("gavel-rounds", TRACE, CLUSTER, length=300, exact=True)).backend == "exact"
    (row,) = compare(MARKET, ["max-min"], ["feasibility"], backend="highs")
    assert row.outcome is not None
    assert row.outcome.backend == "highs"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: allocate("max-min", MARKET, "highs", exact=True),
        lambda: decide("max-min", MARKET, Highs, exact=True),
        lambda: next(run("gavel-rounds", TRACE, CLUSTER, length=300, backend="highs", exact=True)),
        lambda: raised(next(compare(MARKET, ["max-min"], ["feasibility"], backend="highs", exact=True)).error),
    ],
    ids=["allocate", "decide", "run", "compare"],
)
def test_exact_with_a_solver_in_floats_is_refused(ask: Any) -> None:
    with pytest.raises(NotCapable, match="exact=True asks for rational numbers, and highs has floats: leave out one"):
        ask()


def raised(error: Exception | None) -> None:
    assert error is not None
    raise error


def test_everything_that_is_installed_is_compared() -> None:
    (row,) = compare(MARKET, "equal-split")
    assert set(row.verdicts) == {each.name for each in discovery.properties(Market) if each.asked_of(MARKET)}
    rows = list(compare(MARKET, properties=[EnvyFreeness]))
    assert [row.policy.name for row in rows] == [each.name for each in installed() if each.asked_of(MARKET)]
    assert {name for row in rows for name in row.verdicts} == {"envy_freeness"}


def test_lists_are_verified_with_all_properties_of_allocations() -> None:
    assert list(verify(MARKET, [[1, 0], [0, 1]], "feasibility")) == ["feasibility"]
    verdicts = verify(MARKET, [[1, 0], [0, 1]])
    assert verdicts["feasibility"].answer.value == "HOLDS"
    assert "strategy_proofness" not in verdicts
    decision = allocate("max-min", MARKET, exact=True)
    assert verify(MARKET, decision)["envy_freeness"].margin == verify(MARKET, decision.shares)["envy_freeness"].margin


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: allocate("max-mn", MARKET), "Did you mean max-min"),
        (lambda: allocate("fcfs", MARKET), "`fairopt schedule` takes it"),
        (lambda: allocate(3, MARKET), "policy: got an int. Give a policy"),
        (lambda: allocate("max-min", MARKET, "hihgs"), "Did you mean highs"),
        (lambda: allocate("max-min", MARKET, 3), "backend: got an int. Give a backend, its class, or a name"),  # type: ignore[arg-type]
        (lambda: compare(MARKET, ["max-min"], ["envy"]), "there is no 'envy' among the properties"),
        (lambda: compare(MARKET, ["max-min"], 3), "property: got an int. Give a property, its class, or a name"),
        (lambda: compare(MARKET, effort=3), "effort: got 3. Give an Effort("),
        (lambda: next(compare(MARKET, limit=float("nan"))), "time limit: got nan. Give seconds, or None"),
        (lambda: compare("market.toml"), "problem: got a str. Give a Market, a Setting or a Batch"),  # type: ignore[call-overload]
        (lambda: verify("market.toml", [[1, 0], [0, 1]]), "problem: got a str"),  # type: ignore[arg-type]
        (lambda: compare(MARKET, ["max-min"], backend="hihgs"), "Did you mean highs"),
        (
            lambda: uniqueness("max-efficiency", allocate("max-min", MARKET)),
            "Give an allocation that max-efficiency decided",
        ),
        (lambda: uniqueness("max-min", MARKET), "decision: got a Market. Give an allocation"),  # type: ignore[arg-type]
        (lambda: run("max-min", TRACE, CLUSTER, length=300), "`fairopt solve` takes it"),
        (lambda: run("srtf", [MARKET], CLUSTER, length=300), "Give a Trace; for one market after another"),
        (lambda: run("srtf", TRACE, CLUSTER, length=300, rounds=-1), "rounds: got -1. Give a whole number"),
        (lambda: run("srtf", TRACE, CLUSTER, length=300, rounds=1.5), "rounds: got 1.5. Give a whole number"),  # type: ignore[arg-type]
        (lambda: fairopt.policies("Market"), "problem: got a str. Give Market, Queue or Batch"),  # type: ignore[arg-type]
        (lambda: fairopt.write_market("m", "m.toml"), "market: got a str. Give a Market"),  # type: ignore[arg-type]
        (lambda: StrategyProofness().search("max-min", MARKET), "policy: got the name 'max-min'. Give a policy"),  # type: ignore[arg-type]
        (lambda: plot.shares(MARKET), "decision: got a Market. Give what fairopt.allocate returns"),  # type: ignore[arg-type]
        (lambda: plot.cdf({}, "hours"), "values: got a dict. Give numbers by name"),
        (lambda: discovery.workload("poisson").trace(1, TRACE), "cluster: got a Trace. Give a Cluster"),  # type: ignore[arg-type]
        (lambda: verify(astraea_example(), [[1, 0]]), "outcome: got a list. Of a Batch, give a Plan"),
        (lambda: verify(Setting(CLUSTER, TRACE), 3), "outcome: got an int. Of a Setting, give a History"),
        (lambda: verify(MARKET, [[1, 0], [0, 1]], ["strategy_proofness"]), "`compare` asks it of a policy"),
    ],
)
def test_what_is_none_says_what_there_is(ask: Any, says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(says)):
        ask()


def test_a_slip_of_the_keyboard_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'exct'"):
        decide("max-min", MARKET, exct=True)  # type: ignore[call-overload]


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{fairopt.__version__}"' in text


def test_who_decides_takes_policies_and_says_who_takes_names() -> None:
    for given, says in (("max-min", "the name 'max-min'"), (MaxMin, "the class MaxMin")):
        with pytest.raises(BadInput, match=f"policy: got {says}. Give a policy; fairopt.discovery.policy_of makes one"):
            decide_with(given, MARKET)  # type: ignore[call-overload]
