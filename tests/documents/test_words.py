"""No page is longer than people read, and all of them together are not either."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import words

COUNTED = words.pages()


def test_words_are_counted_by_what_they_stand_in() -> None:
    assert doctest.testmod(words).failed == 0
    page = "a b\n```{glossary}\nc\n  d e\n```\n````{code-cell}\n```\nf\n````\n:::{note}\ng | -\n:::\n"
    assert words.Words.of(page) == (6, 1, 0)


@pytest.mark.parametrize("name", COUNTED)
def test_no_page_is_too_long(name: str) -> None:
    counted = COUNTED[name]
    assert counted.text + counted.written <= words.PAGE


def test_all_pages_together_are_not_too_long() -> None:
    assert sum(each.text for each in COUNTED.values()) <= words.TOTAL
