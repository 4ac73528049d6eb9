"""Every case of schedulers' own tests has the verdict that is recorded, and the page says what they are."""

from __future__ import annotations

from collections import Counter

import pytest
from playing import Case
from table import CALLED, PAGE, key_of, page, played, recorded

Found = list[tuple[Case, str, str]]


@pytest.fixture(scope="module")
def found() -> Found:
    return played()


def test_what_differs_is_listed_or_explained(found: Found) -> None:
    """Nothing is silent: where the outcome differs, what the importer lists names the cause."""
    silent = [(key_of(case), case.said["name"], listed) for case, kind, listed in found if kind == "silent"]
    assert not silent


def test_recorded_verdicts_are_of_cases_that_do_not_agree(found: Found) -> None:
    kinds = {key_of(case): kind for case, kind, _ in found}
    known = recorded()
    assert {key: kinds.get(key) for key in known.said} == dict.fromkeys(known.said, "not modelled")
    assert {key: kinds.get(key) for key in known.why} == dict.fromkeys(known.why, "disagree")


def test_each_case_cites_where_it_is_from(found: Found) -> None:
    keys = Counter(key_of(case) for case, _, _ in found)
    assert not [key for key, count in keys.items() if count > 1 or not key[2]]
    assert {case.scheduler for case, _, _ in found} == set(CALLED)
    assert len(found) >= 400


def test_the_page_says_what_was_found(found: Found) -> None:
    """`python tests/schedulers/table.py` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page(found)
