"""A comparison for people: the answer in sentences, a table of policies and properties, and what shows the failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.table import Table
from rich.text import Text

from fairopt.cli.app import EVERY
from fairopt.cli.tables import STYLES, fits, say, table_of
from fairopt.compare import Row
from fairopt.compare.answer import answer, telling, together, with_and
from fairopt.compare.words import Groups, held_by_all, key, mark, numbers, title, unit, verdicts
from fairopt.policy.optima import UNKNOWN
from fairopt.properties import Answer, MechanismProperty, Property, Verdict

#: The most characters of a line of a column's head, and of its unit.
HEAD, WIDE_HEAD = 12, 18
#: Answers that leave a property open.
OPEN = (Answer.UNDECIDED, Answer.DEPENDS)


def left_out(others: Mapping[str, str]) -> None:
    """Print which policies are left out, and why; nothing where there are none."""
    if others:
        say("\n".join(("Left out:", *(f"  {why}" for why in others.values()))))


def compared(problem: Any, rows: Sequence[Row[Any]], properties: Sequence[Property], why: str = "") -> None:
    """Print the comparison on a problem: a `Market`, a `Setting` or a `Batch`.

    ``why``: the policy of which everything is shown that fails, `EVERY` for all, "" for what matters most.
    """
    say(title(problem))
    say("\n".join(answer(problem, rows, properties)))
    groups = together(problem, rows)
    heads, of = numbers(problem)
    held = held_by_all(groups, properties)
    some = [each for each in properties if each not in held]
    # where margins and numbers do not fit beside each other, the margins are left to the lines below
    full = _table(groups, some, heads, of, with_margin=True)
    narrow = _table(groups, some, (), of, with_margin=False), _table(groups, (), heads, of, with_margin=False)
    for each in (full,) if fits(full) else narrow:
        say(each)
    if held:
        say(f"All of them: {', '.join(each.asks() for each in held)}.")
    say("\n".join(key(groups, some)))
    _show_why(groups, properties, why)


def table(problem: Any, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> Table:
    """Return the table of the rows that are known so far, in the order in which they came."""
    return _table([[row] for row in rows], properties, *numbers(problem), with_margin=False)


def _table(
    groups: Groups,
    properties: Sequence[Property],
    heads: Sequence[str],
    of: Callable[[Row[Any]], Sequence[str]],
    *,
    with_margin: bool,
) -> Table:
    """Return the table: a line for each group of policies, ``heads`` for the numbers that ``of`` makes."""
    asked = [_narrow(each, unit(groups, each) if with_margin else "") for each in properties]
    grid = table_of(["policy", *asked, *heads])
    for group in groups:
        cells = [_cell(group[0].verdicts.get(each.name), with_margin=with_margin) for each in properties]
        grid.add_row("\n".join(row.policy.name for row in group), *cells, *(of(group[0]) if heads else ()))
    return grid


def _narrow(asked: Property, margin: str) -> str:
    """Return the head of a property's column, over several lines, and the unit of its margins."""
    return "\n".join([*wrap(asked.asks(), HEAD), *wrap(f"({margin})" if margin else "", WIDE_HEAD)])


def _show_why(groups: Groups, properties: Sequence[Property], why: str) -> None:
    """Print what shows failures: of one policy, of all, or those that matter most; and what was left open."""
    shown = [row for group in groups for row in (group if why not in ("", EVERY) else group[:1])]
    if not why and (found := telling(groups, properties)):
        count = sum(verdict.answer is Answer.FAILS for row in shown for verdict in row.verdicts.values())
        more = "" if count == len(found) else f" (--why shows all {count}, --why POLICY those of one)"
        say(f"What shows it{more}:")
        for row, verdict in found:
            say(f"  {row.policy.name}: {verdict.shown_by}")
    for row in shown:
        mine = why in (EVERY, row.policy.name)
        if row.unique != UNKNOWN:
            say(f"  {row.policy.name}, {row.unique}")
        for name, over in row.over_optima.items():
            if (over.some.answer, over.every.answer) == (Answer.HOLDS, Answer.FAILS):
                say(f"  {row.policy.name}, {name}: holds for some optimum, not for all")
        for asked in properties:
            for verdict in verdicts([row], asked):
                if mine and verdict.shown_by and verdict.answer not in OPEN:
                    say(f"  {row.policy.name}: {verdict.shown_by}")
    _show_open([row for group in groups for row in group], properties)


def _show_open(rows: Sequence[Row[Any]], properties: Sequence[Property]) -> None:
    """Print what was left open, and why: a line for all policies of which the same is open for the same reason."""
    policies: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in rows:
        asks: dict[str, list[str]] = {}
        for asked in properties:
            for verdict in verdicts([row], asked):
                if verdict.answer in OPEN:
                    asks.setdefault(verdict.shown_by, []).append(asked.asks())
        for reason, of_row in asks.items():
            policies.setdefault((reason, tuple(of_row)), []).append(row.policy.name)
    for (reason, those), names in policies.items():
        say(f"  {with_and(those)} ({with_and(names)}): {reason}")


def seconds_of(rows: Sequence[Row[Any]], properties: Sequence[Property]) -> str:
    """Return how long it took, the searches apart from all else; "" where nothing was searched."""
    searches = {each.name for each in properties if isinstance(each, MechanismProperty)}
    took = [(name in searches, seconds) for row in rows for name, seconds in row.seconds.items()]
    judged, searched = (sum(seconds for apart, seconds in took if apart is kind) for kind in (False, True))
    return f"{judged:.1f} s to decide and to judge, {searched:.1f} s to search for lies that pay" if searches else ""


def _cell(verdict: Verdict | None, *, with_margin: bool) -> Text:
    return Text("-") if verdict is None else Text(mark(verdict, with_margin=with_margin), style=STYLES[verdict.answer])
