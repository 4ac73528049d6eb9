"""Changes to a certificate, one at a time: every number, name, answer and list of it, in every way that matters.

A certificate is JSON; a leaf of it is a number, a name or a yes or no. A verifier must reject a change that makes the
statement false. It may accept one that leaves it true.

>>> [change.value for change in changes({"gap": "1/2"}, ("gap",), Random(0)) if change.kind == "doubled"]
['1']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import getitem
from random import Random
from typing import Any, TypeAlias

from fairopt.certificates.kinds import PROPERTIES

Place: TypeAlias = tuple[str | int, ...]
TINY = Fraction(1, 10**9)
NUMBER = re.compile(r"-?\d+(/\d+)?")
#: What a word at the end of a place may be changed to; at any other place a word is the name of a user or of a type.
WORDS = {
    "answer": ["HOLDS", "FAILS", "DEPENDS"],
    "sense": ["maximize", "minimize"],
    "policy": ["max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling", "nash-welfare"],
    "property": [*PROPERTIES, "equal_throughput", "pareto_efficiency"],
    "goal": ["total_efficiency", "nash_welfare", "least_gain"],
    "certificate": ["optimality", "levels", "equilibrium", "trace", "envy", "dominance", "bound", "infeasibility"],
}


@dataclass(frozen=True)
class Tampering:
    """What to put at a place of a certificate; ``kind`` says what is done to what stood there."""

    place: Place
    kind: str
    value: Any

    def of(self, data: Any) -> Any:
        """Return the certificate with the change; the one that was given stays as it is."""
        return _replaced(data, self.place, self.value)


def places(data: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where every leaf stands, and every list (which can be emptied, or left out)."""
    if not isinstance(data, dict):
        yield at
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(value, (*at, key))


def at(data: Any, place: Place) -> Any:
    """Return what stands at a place."""
    return reduce(getitem, place, data)


def leaves(data: Any) -> Iterator[Any]:
    """Yield what stands at all places."""
    return (at(data, place) for place in places(data))


def changes(data: Any, place: Place, random: Random) -> list[Tampering]:
    """Return the changes that can be made at a place, none of which leaves it as it is."""
    before = at(data, place)
    return [Tampering(place, kind, value) for kind, value in _values(data, place, before, random) if value != before]


def tampered(data: Any, random: Random, most: int | None = None) -> Iterator[Tampering]:
    """Yield changes of a certificate: all of them, or ``most``, each at a place drawn anew."""
    everywhere = list(places(data))
    if most is None:
        for place in everywhere:
            yield from changes(data, place, random)
        return
    made = 0
    while made < most:
        possible = changes(data, random.choice(everywhere), random)
        if possible:
            yield random.choice(possible)
            made += 1


def _values(data: Any, place: Place, before: Any, random: Random) -> Iterator[tuple[str, Any]]:
    if isinstance(before, list):
        yield "emptied", []
        yield "null", None
        yield "one dropped", before[:-1]
    elif isinstance(before, bool):
        yield "the other answer", not before
    elif before is None:
        yield "0 for null", "0"
    elif is_number(before):
        for kind, number in _numbers(data, Fraction(before), random):
            whole = isinstance(before, int) and number.denominator == 1
            if number != Fraction(before):
                yield kind, int(number) if whole else str(number)
        yield "null", None
    else:
        names = (value for value in leaves(data) if isinstance(value, str) and not is_number(value))
        known = WORDS.get(str(place[-1])) or [*names, "nobody"]
        others = [word for word in known if word != before]
        for word in others if place[-1] == "answer" else [random.choice(others)]:
            yield "another word", word


def _numbers(data: Any, number: Fraction, random: Random) -> Iterator[tuple[str, Fraction]]:
    yield from (("plus 1", number + 1), ("minus 1", number - 1), ("negated", -number), ("doubled", 2 * number))
    yield from (("a little more", number + TINY), ("a little less", number - TINY))
    yield "another numerator", Fraction(number.numerator + 1, number.denominator)
    yield "another number of the same", random.choice([Fraction(value) for value in leaves(data) if is_number(value)])


def is_number(value: Any) -> bool:
    """Return whether a leaf is a number: an integer, or a string "p/q"."""
    if isinstance(value, str):
        return NUMBER.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _replaced(data: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    copy = data.copy()
    copy[place[0]] = value if len(place) == 1 else _replaced(data[place[0]], place[1:], value)
    return copy
