"""A skipped test says why, and the reasons are counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from skip_reasons import reason_of, skipped_for


def report(words: object) -> SimpleNamespace:
    return SimpleNamespace(longrepr=words)


@pytest.mark.parametrize("words", ["Skipped", "Skipped: ", "Skipped: unconditional skip"])
def test_no_words_are_no_reason(words: str) -> None:
    assert reason_of(report(("tests/test_a.py", 3, words))) == ""


def test_reasons_are_counted() -> None:
    told = [
        ("a.py", 1, "Skipped: no chromium here"),
        ("b.py", 2, "Skipped: no chromium here"),
        "Skipped: no z3\nat all",
    ]
    assert skipped_for(map(report, told)) == {"no chromium here": 2, "no z3": 1}
