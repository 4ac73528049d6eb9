"""The conformance suite of properties of runs.

from fairopt.testing.run_property_suite import run_property_suite
run_property_suite().run([MyProperty()]).require_complete()
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

from fairopt import discovery
from fairopt.compare import answered
from fairopt.problem import Queue
from fairopt.properties import Answer
from fairopt.properties.runs.run_property import RunProperty, why_not_over
from fairopt.simulation import History, Setting
from fairopt.testing import verdict_checks
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.suite import Suite, Traits, checks_of
from fairopt.testing.verdict_checks import Cases, asked_once

__all__ = ["run_property_suite"]

#: Exact and float margins are compared where the exact one is further from 0 than this.
AWAY = Fraction(1, 1000)
#: Runs over sampled settings end before that.
MOST_ROUNDS = 300


def run_property_suite() -> Suite[RunProperty]:
    """Return the suite of properties of runs.

    >>> [each.name for each in run_property_suite().checks][:3]
    ['says what it is', 'instances hold and fail', 'witness refutes by the bare definition']
    """
    return Suite(
        "properties of runs",
        checks_of(verdict_checks, sys.modules[__name__], given=asked_once(lambda _: ((each,) for each in cases()))),
        lambda each: Traits(each.name),
    )


def says_what_it_counts(each: RunProperty) -> None:
    """Guards against margins without a unit."""
    assert each.unit
    assert each.of == "run"


def exact_and_float_agree_away_from_the_boundary(each: RunProperty, given: Cases) -> None:
    """Guards against strict comparisons in floats, where a job that runs alone may take 1e-16 too long."""
    compared = 0
    for (_, one), rounded in zip(given(each), _in_floats(), strict=True):
        other = each.check(rounded)
        assert not other.exact
        if one.margin is None or one.margin == 0 or not -AWAY <= one.margin <= AWAY:
            compared += 1
            assert one.answer is other.answer, f"{one} in Fractions, {other} in floats"
    assert compared


def a_run_that_was_cut_is_undecided_unless_it_fails(each: RunProperty) -> None:
    """Guards against calling a run fair of which nobody knows how it goes on."""
    undecided = 0
    for history in cases():
        for count in {0, 1, len(history.rounds) // 2, len(history.rounds) - 1} - {-1}:
            cut = replace(history, rounds=history.rounds[:count])
            if why_not_over(cut):
                verdict = each.check(cut)
                assert verdict.answer in (Answer.FAILS, Answer.UNDECIDED), verdict
                assert bool(verdict.reason) == (verdict.answer is Answer.UNDECIDED)
                undecided += verdict.answer is Answer.UNDECIDED
    assert undecided


def no_failure_is_undone_by_what_comes_later(each: RunProperty, given: Cases) -> None:
    """Guards against failures of a run that was cut which are none once it goes on."""
    for (history,), whole in given(each):
        for count in range(1, len(history.rounds), 3):
            fails = each.check(replace(history, rounds=history.rounds[:count])).answer is Answer.FAILS
            assert not fails or whole.answer is Answer.FAILS, f"after {count} rounds it fails, then {whole.answer}"


def cases() -> Iterator[History]:
    """Yield exact runs of sampled settings to their end, under policies that differ."""
    return (history for _, _, history in _played())


@cache
def _played() -> tuple[tuple[Setting, str, History], ...]:
    """Return settings, the policy that decided, and the runs; one of the policies leaves GPUs idle."""
    settings = [*sample_settings(6, seed=8, outages=False), *sample_settings(2, seed=9)]
    chosen = [*((setting, "srtf") for setting in settings), *((setting, "fifo-quota") for setting in settings[:3])]
    return tuple((setting, name, _history(setting, name)) for setting, name in chosen)


@cache
def _in_floats() -> tuple[History, ...]:
    return tuple(_history(setting.as_(float), name) for setting, name, _ in _played())


def _history(setting: Setting, name: str) -> History:
    history = answered(setting, discovery.policy(name, Queue), rounds=MOST_ROUNDS).outcome
    assert isinstance(history, History)
    return history


def of_runs() -> list[RunProperty]:
    """Return one of each installed property of runs."""
    return [each for each in discovery.properties(Setting) if isinstance(each, RunProperty)]
