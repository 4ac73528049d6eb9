"""Gavel with space sharing: optima by hand, measured pairs, no pairs, wrong pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Highs, Session
from fairopt.backends.cvxpy import CLARABEL
from fairopt.backends.exact import Exact
from fairopt.datasets import gavel_market, gavel_pair_speeds
from fairopt.errors import BadInput
from fairopt.models import MaxMin
from fairopt.models.gavel.space_sharing import Pairs, max_min_with_space_sharing, throughput
from fairopt.problem import Market

#: The instance of Gavel's own test, scheduler/tests/policies_tests.py, test_max_min_fairness_with_packing.
GAVEL = Market.of([[2, 1, "1/2"], [3, 2, 1]], capacity=[1, 1, 1], demand=[1, 1], users=["0", "1"])


def test_gavels_own_instance_by_hand() -> None:
    # together on the V100 both are as fast as alone; alone, an equal share is half of the V100 and half of the P100
    pairs = Pairs.of(GAVEL, {("0", "1"): [[2, 3], [1, 2], ["1/2", 1]]})
    found = max_min_with_space_sharing(GAVEL, pairs, Session(Exact()))
    rate = throughput(GAVEL, pairs, found.values["share"], found.values["shared"])
    assert found.objective == Fraction(6, 5) == 3 / GAVEL.fair_utility()[1]
    assert rate[1] == 3
    assert rate[0] / GAVEL.fair_utility()[0] >= 1


def test_two_jobs_on_one_gpu_by_hand() -> None:
    # alone 2 and 3, together 3/2 and 2; a part x of the time together: 3/2 x + 2 y = c 1, 2 x + 3 (1 - x - y) = c 3/2
    market = Market.of([[2], [3]], capacity=[1], demand=[1, 1], users=["A", "B"])
    found = max_min_with_space_sharing(market, Pairs.of(market, {("A", "B"): [["3/2", 2]]}), Session(Exact()))
    assert found.objective == Fraction(18, 13)
    assert found.values["shared"].tolist() == [[Fraction(12, 13)]]
    assert found.values["share"].tolist() == [[0], [Fraction(1, 13)]]


def test_without_pairs_it_is_max_min() -> None:
    market = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1], demand=[1, 1, 1])
    pairs = Pairs.of(market, {})
    found = max_min_with_space_sharing(market, pairs, Session(Exact()))
    plain = allocate(MaxMin(), market, exact=True)
    assert (throughput(market, pairs, found.values["share"], found.values["shared"]) / market.fair_utility()).min() == (
        plain.utilities / market.fair_utility()
    ).min()


@pytest.mark.parametrize("backend", [Highs(), CLARABEL], ids=lambda each: each.name)
def test_measured_pairs_gain_and_fit(backend: Any) -> None:
    jobs = {"a": "A3C", "b": ("LM", 10), "c": ("ResNet-18", 32), "d": ("Recommendation", 512)}
    market = gavel_market(jobs, {"K80": 1, "P100": 1, "V100": 1}, unit=None, digits=None, demand=[1] * 4)
    pairs = Pairs.of(market, gavel_pair_speeds(jobs, market.types))
    found = max_min_with_space_sharing(market, pairs, Session(backend))
    least = (allocate(MaxMin(), market, exact=True).utilities / market.fair_utility()).min()
    assert found.objective > 1.1 * float(least)
    used = np.asarray(found.values["share"].sum(axis=0) + found.values["shared"].sum(axis=0), dtype=float)
    assert (used <= 1 + 1e-6).all()
    assert found.objective == pytest.approx(
        float((throughput(market, pairs, found.values["share"], found.values["shared"]) / market.fair_utility()).min()),
        rel=1e-6,
    )


def test_a_pair_and_its_mirror_are_one_measurement() -> None:
    one = gavel_pair_speeds({"a": "A3C", "b": ("LM", 10)}, ["V100", "K80"])["a", "b"]
    other = gavel_pair_speeds({"b": ("LM", 10), "a": "A3C"}, ["V100", "K80"])["b", "a"]
    assert one == [pair[::-1] for pair in other]


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        ({("A", "nobody"): [[1, 1]]}, "not two jobs"),
        ({("A", "A"): [[1, 1]]}, "not two jobs"),
        ({("A", "B"): [[1, 1], [1, 1]]}, "speeds by type"),
        ({("A", "B"): [[1, -1]]}, "-1"),
        ({("A", "C"): [[1, 1]]}, "gangs have 1 and 2 GPUs"),
    ],
)
def test_wrong_pairs_are_refused(speeds: dict[tuple[str, str], Any], words: str) -> None:
    market = Market.of([[1], [1], [1]], capacity=[1], demand=[1, 1, 2], users=["A", "B", "C"])
    with pytest.raises(BadInput, match=words):
        Pairs.of(market, speeds)
