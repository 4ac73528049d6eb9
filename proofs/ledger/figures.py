"""The table of policies: what rows of the ledger say of each in numbers, and of its properties, with the rows' ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from fairopt.proofs.ledger.entries import Entry, Figure, Measure

PROPERTIES = (
    Measure.SHARING_INCENTIVE,
    Measure.ENVY_FREENESS,
    Measure.PARETO_EFFICIENCY,
    Measure.STRATEGY_PROOFNESS,
)
#: What the numbers of a column are; the properties and the complexity follow.
COLUMNS: Mapping[str, Measure] = MappingProxyType(
    {
        "efficiency": Measure.EFFICIENCY,
        "at least, proved": Measure.EFFICIENCY_AT_LEAST,
        "worst known": Measure.EFFICIENCY_AT_MOST,
        "a liar's factor, at least": Measure.INCENTIVE_AT_LEAST,
        "at most, proved": Measure.INCENTIVE_AT_MOST,
    }
)
HEADS = ("policy", *COLUMNS, "properties", "it solves")
#: Where several rows have a number for the same markets, the sharper one is the larger one of these.
LARGER = (Measure.EFFICIENCY_AT_LEAST, Measure.INCENTIVE_AT_LEAST)
#: How it is said of a property.
SIGNS = MappingProxyType({"yes": "has", "no": "lacks"})
#: A fraction with more letters than this is shown as a decimal.
LONG = 9


def cells(rows: Sequence[Entry]) -> list[list[str]]:
    """Return the table: a line for each policy that has figures, in the columns of `HEADS`."""
    told = [(figure, row.id) for row in rows for figure in row.figures]
    return [_line(policy, told) for policy in dict.fromkeys(figure.policy for figure, _ in told)]


def _line(policy: str, told: Iterable[tuple[Figure, str]]) -> list[str]:
    own = [(figure, row) for figure, row in told if figure.policy == policy]
    numbers = [_cited(_numbers(own, measure)) for measure in COLUMNS.values()]
    having = {
        figure.measure: (f"{SIGNS[figure.value]} {words_of(figure.measure)}", row)
        for figure, row in own
        if figure.measure in PROPERTIES
    }
    solves = [figure.value for figure, _ in own if figure.measure is Measure.COMPLEXITY]
    return [f"`{policy}`", *numbers, _cited(having[each] for each in PROPERTIES if each in having), "; ".join(solves)]


def words_of(measure: Measure) -> str:
    """Return a measure as a sentence says it."""
    return measure.value.replace("_", " ").replace("pareto", "Pareto")


def _numbers(own: Iterable[tuple[Figure, str]], measure: Measure) -> Iterator[tuple[str, str]]:
    """Yield the sharpest number for each scope, and formulas, each with its row."""
    scopes: dict[str, list[tuple[Figure, str]]] = {}
    for figure, row in own:
        if figure.measure is measure:
            scopes.setdefault(figure.scope, []).append((figure, row))
    for scope, there in scopes.items():
        fixed = [each for each in there if _number(each[0].value) is not None]
        sharpest = (max if measure in LARGER else min)(fixed, key=_of, default=None)
        shown = [each for each in there if each not in fixed or each is sharpest]
        yield from {f"{_shown(figure.value, measure)}, {scope}": row for figure, row in reversed(shown)}.items()


def _of(each: tuple[Figure, str]) -> Fraction:
    return Fraction(each[0].value)


def _number(value: str) -> Fraction | None:
    try:
        return Fraction(value)
    except ValueError:
        return None


def _shown(value: str, measure: Measure) -> str:
    number = _number(value)
    if number is None or (measure is not Measure.EFFICIENCY and len(value) <= LONG):
        return value
    return f"{float(100 * number):.1f}%" if measure is Measure.EFFICIENCY else f"{float(number):.4f}"


def _cited(told: Iterable[tuple[str, str]]) -> str:
    """Return what rows say, each row named once behind all that it says."""
    by_row: dict[str, list[str]] = {}
    for words, row in told:
        by_row.setdefault(row, []).append(words)
    return "; ".join(f"{'; '.join(words)} (`{row}`)" for row, words in by_row.items())
