"""The names that users import are settled: at most 150, and none goes without warning for one release."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.public.test_documented import LISTED, named, shown

#: A name a line; one that is to go has the version in which it goes behind it.
HELD = Path(__file__).with_name("settled_names.txt")
LINES = [line.split() for line in HELD.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
GOING = {name: version[0] for name, *version in LINES if version}


def test_the_reference_lists_the_settled_names_and_no_other() -> None:
    assert sorted(LISTED) == sorted(name for name, *_ in LINES if name not in GOING)
    assert len(LISTED) == len(set(LISTED)) <= 150


def test_every_settled_name_has_an_example() -> None:
    assert not set(LISTED) - shown()


@pytest.mark.parametrize("name", [name for name, *_ in LINES])
def test_a_settled_name_is_there_and_warns_only_where_it_is_to_go(name: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert named(name).__doc__
    said = [str(each.message) for each in seen if issubclass(each.category, DeprecationWarning) and name in str(each)]
    assert bool(said) == (name in GOING), said
    assert all(GOING[name] in each for each in said)
