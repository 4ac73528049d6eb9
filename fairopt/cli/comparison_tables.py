"""A comparison as a table of policies and properties, with what shows each failure; plain text off a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from rich.text import Text

from fairopt.cli.round_tables import short
from fairopt.cli.tables import MARKS, STYLES, fits, range_of, say, table_of
from fairopt.compare import Row
from fairopt.policy import Uniqueness
from fairopt.problem import Market
from fairopt.problem.batch import Batch
from fairopt.problem.ranges import stand_ins
from fairopt.program import Number, number_text
from fairopt.properties import Answer, MechanismProperty, Property, Verdict
from fairopt.properties.within_bounds import Boundary, percent
from fairopt.simulation import Setting

KEY = (
    "yes holds, NO fails (by this margin, in the unit of the definition), ? not refuted by the search; "
    "~ decided in floats within a tolerance, else exactly."
)
#: What a cell shows; the words of `MARKS` where a table has one property a line.
CELLS: Mapping[Answer, str] = {**MARKS, Answer.NOT_REFUTED: "?"}

OF_METRICS = ("total\nefficiency", "price of\nfairness", "Jain's\nindex")
OF_MEASURES = ("completed", "jct_mean", "makespan", "finish_time_max", "utilisation", "migrations")
OF_PLANS = ("jobs\nrun", "revenue")


def left_out(others: Mapping[str, str]) -> None:
    """Print which policies are left out, and why; nothing where there are none."""
    if others:
        say("\n".join(("Left out:", *(f"  {why}" for why in others.values()))))


@singledispatch
def compared(problem: Any, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> None:
    """Print the comparison on a problem: a `Market`, a `Setting` or a `Batch`."""
    raise TypeError(f"there is no table for a {type(problem).__name__}")


@compared.register(Market)
def _(market: Market, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> None:
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    notes = [f"  {row.policy.name}, {row.unique.words}" for row in rows if row.unique != Uniqueness()]
    notes += [
        f"  {row.policy.name}, {name}: holds for some optimum, not for all"
        for row in rows
        for name, over in row.over_optima.items()
        if (over.some.answer, over.every.answer) == (Answer.HOLDS, Answer.FAILS)
    ]
    title = f"{len(market.users)} {'user shares' if len(market.users) == 1 else 'users share'} {gpus}."
    if said := stand_ins(market):
        title += f"\n{said}"
    if within := range_of(market):
        title += (
            "\nPolicies decide by the speedups that are stated, robust ones by the ranges. Verdicts are for all true "
            f"speedups {within}; `to 5%` says that it holds up to that error."
        )
    _comparison(rows, title, properties, OF_METRICS, _metrics, notes)


@compared.register(Setting)
def _(setting: Setting, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> None:
    cluster = setting.cluster
    gpus = ", ".join(f"{count} {name}" for name, count in zip(cluster.types, cluster.capacity, strict=True))
    title = f"{len(setting.trace.jobs)} jobs on {gpus}, rounds of {number_text(setting.length)}."
    _comparison(rows, title, properties, [name.replace("_", "\n") for name in OF_MEASURES], _measures)


@compared.register(Batch)
def _(batch: Batch, rows: Sequence[Row[Any]], properties: Sequence[Property]) -> None:
    title = f"{len(batch.jobs)} jobs of {len(batch.tenants)} tenants on {len(batch.servers.names)} servers."
    _comparison(rows, title, properties, OF_PLANS, _plan)


def _comparison(
    rows: Sequence[Row[Any]],
    title: str,
    properties: Sequence[Property],
    numbers: Sequence[str],
    of: Callable[[Row[Any]], Sequence[str]],
    notes: Sequence[str] = (),
) -> None:
    """Print the table of policies and properties, with ``numbers`` beside it, then what shows each failure."""
    heads = {each.name: each.short or each.name for each in properties}
    columns = list(dict.fromkeys(column for row in rows for column in _cells(row)))
    titles = [" ".join([heads[name], kind]).strip().replace(" ", "\n") for name, kind in columns]
    full, grid = table_of(["policy", *titles, *numbers]), table_of(["policy", *titles])
    described = table_of(["policy", *numbers])
    for row in rows:
        cells, values = _cells(row), of(row)
        full.add_row(row.policy.name, *(_cell(cells.get(each), with_margin=True) for each in columns), *values)
        grid.add_row(row.policy.name, *(_cell(cells.get(each), with_margin=False) for each in columns))
        described.add_row(row.policy.name, *values)
    say(title)
    # where marks, margins and numbers do not fit beside each other, the margins are left to the lines below
    for each in (full,) if fits(full) else (grid, described):
        say(each)
    say(", ".join(f"{short} {name}" for name, short in heads.items()) + ".")
    say(KEY)
    for asked in properties:
        efforts = {row.verdicts[asked.name].effort for row in rows if asked.name in row.verdicts}
        if isinstance(asked, MechanismProperty) and len(efforts) == 1 and any(efforts):
            say(f"{heads[asked.name]} searched, for each policy: {efforts.pop()}.")
    for row in rows:
        if row.error is not None:
            say(f"  {row.policy.name}: stopped: {row.error}")
        for note in notes:
            if note.startswith(f"  {row.policy.name}, "):
                say(note)
        for name, verdict in row.verdicts.items():
            if verdict.shown_by:
                say(f"  {row.policy.name}, {name}: {verdict.shown_by}")


def seconds_of(rows: Sequence[Row[Any]], properties: Sequence[Property]) -> str:
    """Return how long it took, the searches apart from all else; "" where nothing was searched."""
    searches = {each.name for each in properties if isinstance(each, MechanismProperty)}
    took = [(name in searches, seconds) for row in rows for name, seconds in row.seconds.items()]
    judged, searched = (sum(seconds for apart, seconds in took if apart is kind) for kind in (False, True))
    return f"{judged:.1f} s to decide and to judge, {searched:.1f} s to search for misreports" if searches else ""


def _metrics(row: Row[Any]) -> Sequence[str]:
    if row.metrics is None:
        return ("-",) * len(OF_METRICS)
    price = f"{float(row.metrics.price_of_fairness):z.1%}"  # below 0 where more is given out than there is
    return number_text(float(row.metrics.total_efficiency)), price, f"{float(row.metrics.jain_index):.3f}"


def _measures(row: Row[Any]) -> Sequence[str]:
    return [short(row.numbers[name]) for name in OF_MEASURES]


def _plan(row: Row[Any]) -> Sequence[str]:
    if row.outcome is None:
        return ("-",) * len(OF_PLANS)
    return str(row.numbers["jobs_run"]), f"{float(row.outcome.revenue):.6g}"


def _cells(row: Row[Any]) -> dict[tuple[str, str], Verdict]:
    """Return a row's verdicts by property and, where it has several, kind of misreport."""
    return {
        (name, kind): each
        for name, verdict in row.verdicts.items()
        for kind, each in (verdict.by_misreport or {"": verdict}).items()
    }


def _cell(verdict: Verdict | None, *, with_margin: bool) -> Text:
    if verdict is None:
        return Text("-")
    exact_fallback = verdict.exact or verdict.answer not in (Answer.HOLDS, Answer.FAILS)
    margin = f" {_short(verdict.margin)}" if with_margin and verdict.answer is Answer.FAILS else ""
    up_to = verdict.boundary.error if isinstance(verdict.boundary, Boundary) else None
    said = CELLS[verdict.answer] if up_to is None else f"to {percent(up_to)}"
    return Text(f"{'' if exact_fallback else '~'}{said}{margin}", style=STYLES[verdict.answer])


def _short(margin: Number | None) -> str:
    return "" if margin is None else f"{float(margin):.3g}"
