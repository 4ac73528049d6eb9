"""What a comparison comes to, in sentences: which policies keep what was asked, what the others break, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch
from itertools import groupby
from typing import Any

from fairopt.compare.rows import Row
from fairopt.numbers import four_digits
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.problem.batch import Batch
from fairopt.program import number_text
from fairopt.properties import Answer, Property, Verdict
from fairopt.simulation import Setting

#: Numbers that agree in so many digits are the same; prices of fairness below this are rounding.
DIGITS, NO_PRICE = 9, 5e-7
#: How many failures are shown where nobody asks for all.
TELLING = 3


def answer(problem: Any, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> list[str]:
    """Return the answer: a sentence in sum, then one for each group of policies that break the same, the best first.

    Of a `Market` what a group costs is its loss of throughput, of a `Setting` the time that jobs take to complete, of a
    `Batch` the revenue that it leaves.

    >>> from fairopt import compare
    >>> from fairopt.datasets import oef_example
    >>> found = compare(oef_example(), ["equal-split", "max-min"], ["envy_freeness", "sharing_incentive"])
    >>> print(found)
    1 of 2 policies keeps both properties that were asked.
    equal-split keeps both. Total throughput: 4, 20.0% below the maximum.
    max-min breaks 1: u3 envies another. Total throughput: 4.40816, 11.8% below the maximum.
    """
    if not rows:
        return []
    of = {each.name: each for each in properties}
    decided = sorted((row for row in rows if row.error is None), key=lambda row: _rank(problem, row))
    said = []
    what = "the property that was asked" if len(of) == 1 else f"{_all(len(of))} properties that were asked"
    if of and len(decided) > 1:
        keep = [row for row in decided if not (_with(row, Answer.FAILS) or _open(row))]
        which = f"{len(keep) or 'None'} of {len(decided)} policies {'keep' if len(keep) > 1 else 'keeps'}"
        sure = not any(_with(row, Answer.NOT_REFUTED) for row in keep)
        known = "" if sure else " (no lie that pays was found, which proves nothing)"
        said = [f"{which} {what}{known}."]
    kept = what if len(decided) == 1 else "it" if len(of) == 1 else _all(len(of))  # one sentence says what was asked
    for (fails, undecided), group in groupby(decided, key=lambda row: _words(row, of)):
        said.append(_sentence(problem, list(group), fails, undecided, kept if of else ""))
    return [*said, *(f"{row.policy.name} was stopped: {row.error}" for row in rows if row.error is not None)]


def together(problem: Any, rows: Iterable[Row[Any]]) -> list[list[Row[Any]]]:
    """Return the rows in order, the best first, and those together that give the same and of which the same is said."""
    alike: dict[Any, list[Row[Any]]] = {}
    for row in sorted(rows, key=lambda row: _rank(problem, row)):
        alike.setdefault(_said(row), []).append(row)
    return list(alike.values())


def telling(groups: Sequence[Sequence[Row[Any]]], properties: Sequence[Property]) -> list[tuple[Row[Any], Verdict]]:
    """Return the failures that matter most: the best policies', each of another property, `TELLING` at most.

    Of each of `together`'s groups the first row speaks.
    """
    found: dict[str, tuple[Row[Any], Verdict]] = {}
    for row, *_ in groups:
        for each in properties:
            verdict = row.verdicts.get(each.name)
            if verdict is not None and verdict.answer is Answer.FAILS and verdict.shown_by:
                found.setdefault(each.name, (row, verdict))
    return [*found.values()][:TELLING]


def _words(row: Row[Any], of: Mapping[str, Property]) -> tuple[list[str], list[str]]:
    """Return in words what fails under a policy, and what is open."""
    fails, undecided = _broken(row)
    return [of[name].fails_so(row.verdicts[name]) for name, _ in fails], [of[name].asks() for name in undecided]


def _sentence(problem: Any, group: Sequence[Row[Any]], fails: list[str], undecided: list[str], kept: str) -> str:
    s = "" if len(group) > 1 else "s"
    parts = []
    if fails:
        parts.append(f"break{s} {len(fails)}: {with_and(fails)}")
    if undecided:
        parts.append(f"leave{s} open: {with_and(undecided)}")
    if kept and not parts:
        parts.append(f"keep{s} {kept}")
    names = with_and([row.policy.name for row in group])
    said = f"{names} {'; '.join(parts)}." if parts else f"{names}:"
    return f"{said} {cost(problem, group)}"


@singledispatch
def cost(problem: Any, group: Sequence[Row[Any]]) -> str:
    """Return what the answers of policies cost, in a sentence."""
    raise TypeError(f"nothing is known of what a {type(problem).__name__} costs")


@cost.register
def _(problem: Market, group: Sequence[Row[Any]]) -> str:
    total = _span([row.numbers["total_efficiency"] for row in group], lambda value: number_text(float(value)))
    prices = [_number(row, "price_of_fairness") for row in group]
    if max(prices) < -NO_PRICE:
        return f"Total throughput: {total}, more than the GPUs that there are can give."
    if max(prices) <= NO_PRICE:
        return f"Total throughput: {total}, the maximum."
    return f"Total throughput: {total}, {_span(prices, lambda value: f'{value:z.1%}')} below the maximum."


@cost.register
def _(problem: Setting, group: Sequence[Row[Any]]) -> str:
    times = [row.numbers["jct_mean"] for row in group if row.numbers["jct_mean"] is not None]
    return f"A job takes {_span(times, four_digits)} from its arrival on average." if times else "No job was completed."


@cost.register
def _(problem: Batch, group: Sequence[Row[Any]]) -> str:
    return f"Revenue: {_span([row.numbers['revenue'] for row in group], four_digits)}."


@singledispatch
def _loss(problem: Any, row: Row[Any]) -> float:
    """Return what orders policies that break as much: the less, the better."""
    return 0.0


@_loss.register
def _(problem: Market, row: Row[Any]) -> float:
    return -_number(row, "total_efficiency")


@_loss.register
def _(problem: Setting, row: Row[Any]) -> float:
    mean = row.numbers["jct_mean"]
    return float("inf") if mean is None else float(mean)


@_loss.register
def _(problem: Batch, row: Row[Any]) -> float:
    return -_number(row, "revenue")


def _rank(problem: Any, row: Row[Any]) -> tuple[Any, ...]:
    """Return the place of a row: who breaks less is before, then who leaves less open, then who costs less."""
    if row.outcome is None or row.error is not None:
        return (1,)
    broken, undecided = _broken(row)
    return 0, len(broken), len(undecided), broken, undecided, round(_loss(problem, row), DIGITS)


def _broken(row: Row[Any]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return which properties fail, each with for whom, and which are open."""
    fails = tuple((name, row.verdicts[name].who) for name in row.verdicts if name in _with(row, Answer.FAILS))
    return fails, tuple(name for name in row.verdicts if name in _open(row))


def _said(row: Row[Any]) -> Any:
    """Return what two rows must have in common to be one."""
    if row.outcome is None or row.error is not None:
        return row.policy.name
    outcome = row.outcome.utilities if isinstance(row.outcome, Allocation) else ()
    numbers = [None if value is None else f"{float(value):.{DIGITS}g}" for value in (*outcome, *row.numbers.values())]
    verdicts = [
        (
            name,
            kind,
            each.answer,
            each.exact,
            each.margin is None or f"{float(each.margin):.{DIGITS}g}",
            str(each.boundary),
        )
        for name, verdict in row.verdicts.items()
        for kind, each in {"": verdict, **verdict.by_misreport}.items()
    ]
    return tuple(numbers), tuple(verdicts), str(row.unique), tuple(sorted(row.over_optima))


def _with(row: Row[Any], answer: Answer) -> set[str]:
    return {name for name, verdict in row.verdicts.items() if verdict.answer is answer}


def _open(row: Row[Any]) -> set[str]:
    return _with(row, Answer.UNDECIDED) | _with(row, Answer.DEPENDS)


def _number(row: Row[Any], name: str) -> float:
    value = row.numbers[name]
    assert value is not None
    return float(value)


def _span(values: Sequence[Any], words: Callable[[Any], str]) -> str:
    low, high = words(min(values)), words(max(values))
    return low if low == high else f"{low} to {high}"


def with_and(names: Sequence[str]) -> str:
    """Return names as a sentence has them: with commas, and "and" before the last."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _all(asked: int) -> str:
    return "both" if asked == 2 else f"all {asked}"
