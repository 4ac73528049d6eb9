"""What the suites ask of all properties of outcomes, whatever they are of; a case is what such a property checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from fairopt.properties import Answer

#: Exact cases on which a property is asked, on some of which it fails, each with the property's verdict.
Cases = Callable[[Any], Iterable[tuple[tuple[Any, ...], Any]]]


def asked_once(cases: Callable[[Any], Iterable[tuple[Any, ...]]]) -> Cases:
    """Return ``cases`` of a property with its verdicts, which all checks of the property share."""
    kept: list[Any] = [None, []]

    def given(each: Any) -> Iterable[tuple[tuple[Any, ...], Any]]:
        if kept[0] is not each:
            kept[:] = each, [(case, each.check(*case)) for case in cases(each)]
        return kept[1]  # type: ignore[no-any-return]

    return given


def says_what_it_is(each: Any) -> None:
    """Guards against properties without a definition that a reader could check."""
    assert each.name
    assert each.definition
    assert each.source


def instances_hold_and_fail(each: Any) -> None:
    """Guards against a checker that always says the same: known instances, one that holds and one that fails."""
    answers = set()
    for instance in each.instances:
        verdict = each.check(*instance.case)
        assert verdict.answer is instance.answer, f"{instance.source}: {verdict}"
        assert verdict.exact, f"{instance.source}: exact numbers, but a verdict that is not"
        answers.add(verdict.answer)
    assert answers == {Answer.HOLDS, Answer.FAILS}


def witness_refutes_by_the_bare_definition(each: Any, given: Cases) -> None:
    """Guards against witnesses that do not show what they are said to show."""
    failed = 0
    instances = ((instance.case, each.check(*instance.case)) for instance in each.instances)
    for case, verdict in (*given(each), *instances):
        if verdict.answer is Answer.FAILS:
            failed += 1
            assert verdict.witness.refutes(*case), f"{verdict.witness} does not refute {case}"
            assert len(str(verdict.witness)) > 10
        else:
            assert verdict.witness is None
    assert failed, "none of the cases fails, so that no witness was looked at"


def margin_agrees_with_answer(each: Any, given: Cases) -> None:
    """Guards against margins whose sign says something else than the answer."""
    for _, verdict in given(each):
        fails = verdict.margin is not None and verdict.margin < 0
        assert fails == (verdict.answer is Answer.FAILS), verdict


def verdict_is_json(each: Any, given: Cases) -> None:
    """Guards against witnesses that cannot be printed, and against NaN in JSON."""
    for _, verdict in given(each):
        for exact in (False, True):
            text = json.dumps(verdict.to_json(exact=exact), allow_nan=False)
            assert json.loads(text)["answer"] == verdict.answer.value


def tolerance_is_honoured(each: Any) -> None:
    """Guards against a tolerance that is taken and ignored."""
    for instance in each.instances:
        if instance.answer is Answer.FAILS:
            loose = each.check(*instance.case, tolerance=1000)
            assert loose.answer is Answer.HOLDS, loose
            assert not loose.exact, "an answer that a tolerance decided is not exact"
