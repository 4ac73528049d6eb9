"""A verdict by itself: which answers are true or false, what it prints, and what is written of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.problem import Market
from fairopt.properties import TOLERANCE, Answer, Verdict
from fairopt.properties.within_bounds import Boundary
from fairopt.report import plain

F = Fraction


def verdict(answer: Answer, **others: Any) -> Verdict:
    return Verdict("fairness", answer, F(-1, 3), "GPUs", True, "all of them", **others)


def test_two_answers_are_true_or_false_and_no_verdict_is() -> None:
    assert TOLERANCE == 1e-6
    held = {each: verdict(each).holds for each in Answer}
    assert held == {each: {"HOLDS": True, "FAILS": False}.get(each.value) for each in Answer}
    for each in Answer:
        with pytest.raises(TypeError, match=rf"this one is fairness {each.value}\): ask its `.holds`"):
            bool(verdict(each))


def test_what_shows_an_answer() -> None:
    shown = {each: verdict(each, witness="u1", reason="no time", boundary="at 2").shown_by for each in Answer}
    assert shown == {
        Answer.HOLDS: "u1",
        Answer.FAILS: "u1",
        Answer.NOT_REFUTED: "u1",
        Answer.UNDECIDED: "undecided: no time",
        Answer.DEPENDS: "depends: at 2",
    }
    assert verdict(Answer.HOLDS).shown_by == ""


def test_for_whom_it_fails_is_whom_the_witness_names() -> None:
    assert (verdict(Answer.FAILS, witness=Named("u1")).who, verdict(Answer.FAILS).who) == ("u1", "")


def test_what_depends_shows_its_own_evidence_or_the_speedups_at_which_it_holds() -> None:
    ends = Boundary("at 2", ends={"holds": Market.of([[1, 2]], [1, 1])})
    told = [verdict(Answer.DEPENDS, boundary=ends, evidence=each).to_json()["evidence"] for each in ("a lie", None)]
    assert told == ["a lie", {"speedups": [[1, 2]]}]
    assert verdict(Answer.HOLDS, evidence="a proof").to_json()["evidence"] == "a proof"


def test_a_verdict_prints_what_it_has() -> None:
    assert repr(verdict(Answer.FAILS, witness="u1")) == "<Verdict: fairness FAILS, margin -1/3 (GPUs), exact; u1>"
    long = verdict(Answer.FAILS, witness=" ".join(["word"] * 40))
    assert repr(long) == f"<Verdict: fairness FAILS, margin -1/3 (GPUs), exact; {' '.join(['word'] * 19)} ...>"
    open_ = Verdict.undecided("fairness", "no time", effort="half", unit="GPUs")
    assert repr(open_) == "<Verdict: fairness UNDECIDED, not exact; undecided: no time>"
    assert (open_.effort, open_.unit, open_.exact, open_.margin) == ("half", "GPUs", False, None)
    assert (
        repr(Verdict("fairness", Answer.HOLDS, 0.5, "", False, ""))
        == "<Verdict: fairness HOLDS, margin 0.5, not exact>"
    )


@dataclass
class Named:
    who: str


@dataclass
class Whole:
    number: Any


class Short(Whole):
    def summary(self) -> dict[str, Any]:
        return {"only": self.number}


@pytest.mark.parametrize(
    ("value", "exact", "right"),
    [
        (F(1, 3), True, "1/3"),
        (F(1, 4), False, 0.25),
        (np.array([[F(1, 2)], [F(3)]], dtype=object), True, [["1/2"], ["3"]]),
        (np.float64(np.inf), False, None),
        (float("nan"), True, None),
        (2.5, True, 2.5),
        ({1: (F(1, 2), [F(1, 4)])}, False, {"1": [0.5, [0.25]]}),
        ({1: (F(1, 2), [F(1, 4)])}, True, {"1": ["1/2", ["1/4"]]}),
        (Whole(F(1, 2)), True, {"number": "1/2"}),
        (Whole(F(1, 2)), False, {"number": 0.5}),
        (Short(F(1, 2)), True, {"only": "1/2"}),
        (Whole, False, Whole),
        ("words", False, "words"),
        (True, True, True),
    ],
)
def test_what_is_written(value: Any, exact: bool, right: Any) -> None:
    assert plain(value, exact=exact) == right


def test_fractions_are_decimals_unless_told_otherwise() -> None:
    assert plain(F(1, 4)) == 0.25


def test_a_verdict_is_written_with_its_kinds() -> None:
    kinds = {"larger": verdict(Answer.HOLDS), "any": verdict(Answer.FAILS, witness=Whole(F(1, 2)))}
    both = verdict(Answer.FAILS, by_misreport=kinds)
    told = both.to_json(exact=True)
    assert (told["answer"], told["margin"], told["reason"], told["exact"]) == ("FAILS", "-1/3", None, True)
    assert told["by_misreport"]["any"]["witness"] == {"number": "1/2"}
    assert both.to_json()["by_misreport"]["any"]["witness"] == {"number": 0.5}
    assert "by_misreport" not in verdict(Answer.HOLDS).to_json()
    page = both._repr_html_()
    assert [name in page for name in ("fairness, larger", "fairness, any", "HOLDS", "what shows it")] == [True] * 4
