"""The conformance suite of properties of runs.

from fairopt.testing.run_property_suite import run_property_suite
report = run_property_suite().run([MyProperty()])
print(report)
report.require_complete()
"""

from __future__ import annotations

import json
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
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.suite import Suite, Traits, check

#: Exact and float margins are compared where the exact one is further from 0 than this.
AWAY = Fraction(1, 1000)
#: Runs over sampled settings end before that.
MOST_ROUNDS = 300


def run_property_suite() -> Suite[RunProperty]:
    """Return the suite of properties of runs."""
    return Suite(
        "properties of runs",
        [
            check(says_what_it_is),
            check(instances_hold_and_fail),
            check(witness_refutes_by_the_bare_definition),
            check(margin_agrees_with_answer),
            check(exact_and_float_agree_away_from_the_boundary),
            check(a_run_that_was_cut_is_undecided_unless_it_fails),
            check(no_failure_is_undone_by_what_comes_later),
            check(verdict_is_json),
            check(tolerance_is_honoured),
        ],
        lambda each: Traits(each.name),
    )


def says_what_it_is(each: RunProperty) -> None:
    """Guards against properties without a definition that a reader could check."""
    assert each.name
    assert each.definition
    assert each.source
    assert each.unit
    assert each.of == "run"


def instances_hold_and_fail(each: RunProperty) -> None:
    """Guards against a checker that always says the same: instances by hand, one that holds and one that fails."""
    answers = set()
    for instance in each.instances:
        verdict = each.check(instance.history)
        assert verdict.answer is instance.answer, f"{instance.source}: {verdict}"
        assert verdict.exact, f"{instance.source}: an exact run, but a verdict that is not"
        answers.add(verdict.answer)
    assert answers == {Answer.HOLDS, Answer.FAILS}


def witness_refutes_by_the_bare_definition(each: RunProperty) -> None:
    """Guards against witnesses that do not show what they are said to show."""
    failed = 0
    for history in (*cases(), *(instance.history for instance in each.instances)):
        verdict = each.check(history)
        if verdict.answer is Answer.FAILS:
            failed += 1
            assert verdict.witness.refutes(history), f"{verdict.witness} does not refute the run"
            assert len(str(verdict.witness)) > 10
        else:
            assert verdict.witness is None
    assert failed, "no run fails, so that no witness was looked at"


def margin_agrees_with_answer(each: RunProperty) -> None:
    """Guards against margins whose sign says something else than the answer."""
    for history in cases():
        verdict = each.check(history)
        fails = verdict.margin is not None and verdict.margin < 0
        assert fails == (verdict.answer is Answer.FAILS), verdict


def exact_and_float_agree_away_from_the_boundary(each: RunProperty) -> None:
    """Guards against strict comparisons in floats, where a job that runs alone may take 1e-16 too long."""
    compared = 0
    for setting, name, exact in _played():
        rounded = _history(setting.as_(float), name)
        one, other = each.check(exact), each.check(rounded)
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


def no_failure_is_undone_by_what_comes_later(each: RunProperty) -> None:
    """Guards against failures of a run that was cut which are none once it goes on."""
    for history in cases():
        whole = each.check(history).answer
        for count in range(1, len(history.rounds), 3):
            answer = each.check(replace(history, rounds=history.rounds[:count])).answer
            assert answer is not Answer.FAILS or whole is Answer.FAILS, f"after {count} rounds it fails, then {whole}"


def verdict_is_json(each: RunProperty) -> None:
    """Guards against witnesses that cannot be printed, and against NaN in JSON."""
    for history in cases():
        verdict = each.check(history)
        for exact in (False, True):
            text = json.dumps(verdict.to_json(exact=exact), allow_nan=False)
            assert json.loads(text)["answer"] == verdict.answer.value


def tolerance_is_honoured(each: RunProperty) -> None:
    """Guards against a tolerance that is taken and ignored."""
    for instance in each.instances:
        if instance.answer is Answer.FAILS:
            loose = each.check(instance.history, tolerance=1000)
            assert loose.answer is Answer.HOLDS, loose
            assert not loose.exact, "an answer that a tolerance decided is not exact"


def cases() -> Iterator[History]:
    """Yield exact runs of sampled settings to their end, under policies that differ."""
    return (history for _, _, history in _played())


@cache
def _played() -> tuple[tuple[Setting, str, History], ...]:
    """Return settings, the policy that decided, and the runs; one of the policies leaves GPUs idle."""
    settings = [*sample_settings(6, seed=8, outages=False), *sample_settings(2, seed=9)]
    chosen = [*((setting, "srtf") for setting in settings), *((setting, "fifo-quota") for setting in settings[:3])]
    return tuple((setting, name, _history(setting, name)) for setting, name in chosen)


def _history(setting: Setting, name: str) -> History:
    row = answered(setting, discovery.policy(name, Queue), rounds=MOST_ROUNDS)
    history: History = row.outcome
    return history


def of_runs() -> list[RunProperty]:
    """Return one of each installed property of runs."""
    return [each for each in discovery.properties(Setting) if isinstance(each, RunProperty)]
