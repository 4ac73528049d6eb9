"""Documents that somebody spoiled: one value replaced, dropped, or given twice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported

Spot: TypeAlias = tuple[Any, ...]
CHANGES = ("replace", "drop", "twice")
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=9),
    st.sampled_from([[], {}, [{}], "9" * 5000, "1e999", "-1", "1/2", "root", "Closed", 10**40, {"a": {"b": [1]}}]),
    st.recursive(st.just({}), lambda inner: st.fixed_dictionaries({"spec": inner, "items": inner}), max_leaves=40),
)


def spots(value: Any, at: Spot = ()) -> list[Spot]:
    """Return where the values of a document stand, by keys and places in lists; not the whole document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [spot for key, each in inner for spot in ((*at, key), *spots(each, (*at, key)))]


def mutated(document: Any, spot: Spot, value: Any, how: str) -> Any:
    """Return a copy of a document with one value changed."""
    whole = copy.deepcopy(document)
    inner = whole
    for key in spot[:-1]:
        inner = inner[key]
    if how == "replace":
        inner[spot[-1]] = value
    elif how == "drop":
        del inner[spot[-1]]
    elif isinstance(inner, list):
        inner.append(inner[spot[-1]])
    return whole


def answered_or_refused(read: Callable[[], Imported]) -> None:
    """Demand an answer, or an error with a place and a remedy; a traceback of anything else fails the test."""
    try:
        assert read().problem.users
    except BadInput as error:
        if not (error.place and error.remedy):
            raise AssertionError(str(error)) from error
