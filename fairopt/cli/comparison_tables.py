"""A comparison as a table of policies and properties, with what shows each failure; plain text off a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rich.text import Text

from fairopt.cli.round_tables import short
from fairopt.cli.tables import MARKS, STYLES, fits, range_of, say, table_of, what_shows
from fairopt.compare import AllocationRow, PlanRow, Row, RunRow
from fairopt.policy import Uniqueness
from fairopt.problem import Market
from fairopt.problem.batch import Batch
from fairopt.problem.ranges import stand_ins
from fairopt.program import Number, number_text
from fairopt.properties import Answer, MechanismProperty, Property, Verdict
from fairopt.properties.boundary import Boundary, percent
from fairopt.properties.metrics import Metrics
from fairopt.simulation import Setting
from fairopt.simulation.measures import Measures

R = TypeVar("R", bound=Row)

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


def markets(rows: Sequence[AllocationRow], market: Market, properties: Sequence[Property]) -> None:
    """Print the comparison on a market."""
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
    _comparison(rows, title, properties, OF_METRICS, lambda row: _metrics(row.metrics), notes)


def runs(rows: Sequence[RunRow], setting: Setting, properties: Sequence[Property]) -> None:
    """Print the comparison of runs of a trace."""
    cluster = setting.cluster
    gpus = ", ".join(f"{count} {name}" for name, count in zip(cluster.types, cluster.capacity, strict=True))
    title = f"{len(setting.trace.jobs)} jobs on {gpus}, rounds of {number_text(setting.length)}."
    _comparison(
        rows, title, properties, [name.replace("_", "\n") for name in OF_MEASURES], lambda row: _measures(row.measures)
    )


def plans(rows: Sequence[PlanRow], batch: Batch, properties: Sequence[Property]) -> None:
    """Print the comparison on a batch."""
    title = f"{len(batch.jobs)} jobs of {len(batch.tenants)} tenants on {len(batch.servers.names)} servers."
    _comparison(rows, title, properties, OF_PLANS, _plan)


def _comparison(
    rows: Sequence[R],
    title: str,
    properties: Sequence[Property],
    numbers: Sequence[str],
    of: Callable[[R], Sequence[str]],
    notes: Sequence[str] = (),
) -> None:
    """Print the table of policies and properties, with ``numbers`` beside it, then what shows each failure."""
    heads = {each.name: each.short or each.name for each in properties}
    columns = list(dict.fromkeys(column for row in rows for column in _cells(row)))
    titles = [" ".join([heads[name], kind]).strip().replace(" ", "\n") for name, kind in columns]
    full, grid = table_of("policy", *titles, *numbers), table_of("policy", *titles)
    described = table_of("policy", *numbers)
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
            if shown := what_shows(verdict):
                say(f"  {row.policy.name}, {name}: {shown}")


def seconds_of(rows: Sequence[Row], properties: Sequence[Property]) -> str:
    """Return how long it took, the searches apart from all else; "" where nothing was searched."""
    searches = {each.name for each in properties if isinstance(each, MechanismProperty)}
    took = [(name in searches, seconds) for row in rows for name, seconds in row.seconds.items()]
    judged, searched = (sum(seconds for apart, seconds in took if apart is kind) for kind in (False, True))
    return f"{judged:.1f} s to decide and to judge, {searched:.1f} s to search for misreports" if searches else ""


def _metrics(numbers: Metrics | None) -> tuple[str, ...]:
    if numbers is None:
        return ("-",) * len(OF_METRICS)
    price = f"{float(numbers.price_of_fairness):z.1%}"  # below 0 where more is given out than there is
    return number_text(float(numbers.total_efficiency)), price, f"{float(numbers.jain_index):.3f}"


def _measures(found: Measures) -> tuple[str, ...]:
    values = found.row()
    return tuple(short(values[name]) for name in OF_MEASURES)


def _plan(row: PlanRow) -> tuple[str, ...]:
    plan = row.plan
    return ("-",) * len(OF_PLANS) if plan is None else (str(len(plan.schedules)), f"{float(plan.revenue):.6g}")


def _cells(row: Row) -> dict[tuple[str, str], Verdict]:
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
