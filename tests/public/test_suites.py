"""A broken plug-in is told where it broke, and what its method must return."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Backend
from fairopt.models import EqualSplit
from fairopt.policy import Computed, Formulated
from fairopt.problem import Market
from fairopt.program import Formulation, Program
from fairopt.properties import AllocationProperty
from fairopt.testing.backend_suite import backend_suite
from fairopt.testing.data_suites import dataset_suite, importer_suite
from fairopt.testing.policy_suite import policy_suite
from fairopt.testing.property_suite import property_suite
from fairopt.testing.suite import Suite


def breaks() -> Any:
    return {}["no such key"]


class Returns(Computed):
    """A rule that returns whatever it is given."""

    source = "made to be wrong"

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.found = name, found  # type: ignore[misc]

    def compute(self, problem: Market, state: Any) -> Any:
        return self.found(problem)


@dataclass(frozen=True)
class NoProgram(Formulated):
    """A policy whose author forgot to return."""

    name = "no-program"
    source = "made to be wrong"

    def formulate(self, problem: Market, state: Any) -> Any:
        breaks.__name__.upper()


@dataclass(frozen=True)
class NoShares(Formulated):
    """A policy whose program gives its variables another name."""

    name = "no-shares"
    source = "made to be wrong"

    def formulate(self, problem: Market, state: Any) -> Program:
        p = Formulation("no shares")
        p.maximize(p.variable("x", problem.shape, lower=0, upper=1).sum())
        return p.program()


class Solver(Backend):
    """A backend that returns whatever it is given."""

    modules = ()
    capabilities = frozenset()

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.found = name, found  # type: ignore[misc]

    def _solve(self, program: Any, options: Any) -> Any:
        return self.found()


class Judge(AllocationProperty):
    """A property that returns whatever it is given."""

    source = definition = "made to be wrong"
    instances = ()

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.found = name, found  # type: ignore[misc]

    def _check(self, market: Market, shares: Any, tolerance: Any) -> Any:
        return self.found()


def broken_data() -> Market:
    """Return nothing. Source: made to be wrong."""
    found: Market = breaks()
    return found


def broken_import(path: Any) -> Market:
    """Return nothing. Source: made to be wrong."""
    found: Market = breaks()
    return found


@pytest.mark.parametrize(
    ("suite", "subject"),
    [
        (policy_suite(), Returns("p", lambda _: breaks())),
        (backend_suite(), Solver("b", breaks)),
        (property_suite(), Judge("q", breaks)),
        (dataset_suite(), broken_data),
        (importer_suite(__file__), broken_import),
    ],
    ids=["policy", "backend", "property", "data set", "importer"],
)
def test_an_error_of_the_plug_in_has_its_traceback(suite: Suite[Any], subject: Any) -> None:
    report = suite.run([subject])
    assert "FAILED: KeyError: 'no such key' (test_suites.py:" in str(report)
    with pytest.raises(AssertionError) as failure:
        report.require_complete()
    said = str(failure.value)
    assert said.count('return {}["no such key"]') == 1, "the same traceback stands there once, not once a check"
    assert re.search(r"test_suites\.py\", line \d+, in breaks", said)


@pytest.mark.parametrize(
    ("suite", "subject", "wanted"),
    [
        (policy_suite(), Returns("none", lambda _: None), "Returns.compute returned None; it must return a pair"),
        (policy_suite(), Returns("one", lambda it: it.equal_split()), "it must return a pair: shares (n, k), and"),
        (policy_suite(), NoProgram(), "NoProgram.formulate returned None; it must return a Program"),
        (policy_suite(), NoShares(), 'must return a Program: p.program() of a Formulation p, with variables "share"'),
        (backend_suite(), Solver("none", lambda: None), "Solver._solve returned None; it must return a Solution"),
        (property_suite(), Judge("bool", lambda: True), "Judge._check returned a bool; it must return a Verdict"),
    ],
)
def test_what_a_method_must_return_is_said(suite: Suite[Any], subject: Any, wanted: str) -> None:
    assert wanted in str(suite.run([subject]))


class Halves(Computed):
    """Floats in an array of objects."""

    name, source = "halves", "none"

    def compute(self, problem: Market, state: Any) -> tuple[Any, None]:
        return np.full(problem.shape, 0.5, dtype=object), None


def test_floats_among_objects_are_not_called_exact() -> None:
    assert not allocate(Halves(), Market.of([[1, 2], [1, 5]], capacity=[1, 1])).exact


def test_a_rule_may_return_lists() -> None:
    rule = Returns("lists", lambda problem: (EqualSplit().compute(problem, None)[0].tolist(), None))
    rule.traits = EqualSplit.traits  # type: ignore[misc]
    policy_suite().run([rule]).require_complete()


def test_an_assertion_without_words_is_shown_itself() -> None:
    judge = Judge("nothing", lambda: None)
    assert "AssertionError: assert answers == {Answer.HOLDS, Answer.FAILS}" in str(property_suite().run([judge]))
