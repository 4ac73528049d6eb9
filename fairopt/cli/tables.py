"""Results as tables for people; plain text where there is no terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import shorten
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.compare import Row
from fairopt.ledger import Entry, Finding, Ruling
from fairopt.metrics import Metrics
from fairopt.policy import Allocation, Policy, Uniqueness
from fairopt.problem import Market
from fairopt.program import INFINITY, Number, number_text
from fairopt.properties import Answer, MechanismProperty, Misreport, Property, Verdict

#: The width where there is no terminal; lines are not broken, so that they can be searched.
WIDE = 200
#: The width of one table of marks, margins and metrics. Narrower terminals get a second table for the metrics, and
#: margins only in the lines below.
ROOM_FOR_ALL = 150
#: The most characters of a row's evidence in the ledger's table; the row itself shows all of it.
IN_SHORT = 110
METRICS = ("total\nefficiency", "price of\nfairness", "Jain's\nindex")
KEY = (
    "yes holds, NO fails (by this margin, in the unit of the definition), ? not refuted by the search; "
    "~ decided in floats within a tolerance, else exactly."
)
MARKS: Mapping[Answer, str] = {Answer.HOLDS: "yes", Answer.FAILS: "NO", Answer.NOT_REFUTED: "not refuted"}
RULINGS: Mapping[Ruling, str] = {
    Ruling.REPRODUCED: "green",
    Ruling.PROVED: "green",
    Ruling.HOLDS_BOUNDED: "green",
    Ruling.REFUTED: "red",
    Ruling.INCONSISTENT: "red",
    Ruling.QUALIFIED: "yellow",
}
STYLES: Mapping[Answer, str] = {Answer.HOLDS: "green", Answer.FAILS: "red", Answer.NOT_REFUTED: "yellow"}


def decision(decided: Allocation, unique: Uniqueness) -> None:
    """Print the shares and throughputs of a decision."""
    market = decided.market
    table = table_of("user", *market.types, "throughput", "equal share is worth")
    for i, user in enumerate(market.users):
        row = [number_text(share) for share in decided.shares[i]]
        table.add_row(user, *row, number_text(decided.utilities[i]), number_text(market.fair_utility()[i]))
    console = terminal()
    console.print(table)
    said = {True: "yes", False: "no, another optimum has others", None: "nothing is optimised"}
    console.print(
        f"{decided.policy}: {decided.status.value} by {decided.backend}, objective {number_text(decided.objective)}; "
        f"unique utilities: {said[unique.utilities]}; unique shares: {said[unique.shares]}",
        soft_wrap=True,
    )
    solution = decided.solution
    if solution is not None and solution.upper is not None and not decided.exact:
        console.print(
            f"proven, all rounding counted: the optimum is at most {number_text(solution.upper)}, and these shares, "
            f"corrected by no more than rounding, are within a relative gap of {solution.gap:.1e}",
            soft_wrap=True,
        )


def verdicts(found: Mapping[str, Verdict], numbers: Metrics, market: Market) -> None:
    """Print verdicts on an allocation, and its metrics."""
    table = table_of("property", "answer", "margin", "unit", "exact", "what shows it")
    for name, verdict in found.items():
        margin = "" if verdict.margin is None else number_text(verdict.margin)
        shown = "" if verdict.witness is None else str(verdict.witness)
        table.add_row(name, MARKS[verdict.answer], margin, verdict.unit, "yes" if verdict.exact else "no", shown)
    console = terminal()
    console.print(table)
    idle = ", ".join(
        f"{name} {float(part):.0%}"
        for name, part in zip(market.types, numbers.utilisation, strict=True)
        if part is not None
    )
    console.print(
        f"total efficiency {number_text(numbers.total_efficiency)}, price of fairness "
        f"{float(numbers.price_of_fairness):.1%}, Jain's index {float(numbers.jain_index):.3f}, in use: {idle}",
        soft_wrap=True,
    )


def table(rows: Sequence[Row], market: Market, properties: Sequence[Property | MechanismProperty]) -> None:
    """Print the table of policies and properties, then what shows each failure."""
    console = terminal()
    wide = console.width >= ROOM_FOR_ALL
    heads = {each.name: each.short or each.name for each in properties}
    columns = list(dict.fromkeys(column for row in rows for column in _cells(row)))
    titles = [" ".join([heads[name], kind]).strip().replace(" ", "\n") for name, kind in columns]
    grid = table_of("policy", *titles, *(METRICS if wide else ()))
    described = table_of("policy", *METRICS)
    for row in rows:
        cells, numbers = _cells(row), _numbers(row.metrics)
        marks = (_cell(cells.get(column), with_margin=wide) for column in columns)
        grid.add_row(row.policy.name, *marks, *(numbers if wide else ()))
        described.add_row(row.policy.name, *numbers)
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    console.print(f"{len(market.users)} users share {gpus}.", soft_wrap=True)
    for each in (grid,) if wide else (grid, described):
        console.print(each)
    console.print(", ".join(f"{short} {name}" for name, short in heads.items()) + ".", soft_wrap=True)
    console.print(KEY, soft_wrap=True)
    for row in rows:
        if row.error is not None:
            console.print(f"  {row.policy.name}: stopped: {row.error}", soft_wrap=True)
        for name, over in row.over_optima.items():
            if (over.some.answer, over.every.answer) == (Answer.HOLDS, Answer.FAILS):
                console.print(f"  {row.policy.name}, {name}: holds for some optimum, not for all", soft_wrap=True)
        for name, verdict in row.verdicts.items():
            if verdict.witness is not None:
                console.print(f"  {row.policy.name}, {name}: {verdict.witness}", soft_wrap=True)


def _numbers(numbers: Metrics | None) -> tuple[str, str, str]:
    if numbers is None:
        return "-", "-", "-"
    price = max(float(numbers.price_of_fairness), 0.0)
    return number_text(float(numbers.total_efficiency)), f"{price:.1%}", f"{float(numbers.jain_index):.3f}"


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
    mark = {**MARKS, Answer.NOT_REFUTED: "?"}[verdict.answer]
    doubt = "" if verdict.exact or verdict.answer is Answer.NOT_REFUTED else "~"
    margin = f" {_short(verdict.margin)}" if with_margin and verdict.answer is Answer.FAILS else ""
    return Text(f"{doubt}{mark}{margin}", style=STYLES[verdict.answer])


def _short(margin: Number | None) -> str:
    return "" if margin is None else f"{float(margin):.3g}"


def policies(listed: Sequence[Policy]) -> None:
    """Print the policies."""
    grid = table_of("policy", "source", "claims")
    for policy in listed:
        claims = [
            claim.property
            + (f" ({claim.misreport} misreports)" if claim.misreport != "any" else "")
            + (f" if {claim.assumes}" if claim.assumes else "")
            + (" [refuted]" if claim.refuted_by is not None else "")
            for claim in policy.claims
        ]
        grid.add_row(policy.name, policy.source, ", ".join(claims))
    terminal().print(grid)


def backends(listed: Sequence[Any]) -> None:
    """Print the back ends."""
    grid = table_of("back end", "available", "numbers", "can")
    for backend in listed:
        missing = backend.missing()
        here = "yes" if not missing else f"no: needs {', '.join(missing)}"
        can = ", ".join(sorted(capability.name.lower() for capability in backend.capabilities))
        grid.add_row(backend.name, here, "floats" if backend.number is float else "exact rationals", can)
    terminal().print(grid)


def properties(listed: Sequence[Property | MechanismProperty]) -> None:
    """Print the properties."""
    grid = table_of("property", "of", "definition", "source")
    for each in listed:
        kind = "policy" if isinstance(each, MechanismProperty) else "allocation"
        grid.add_row(each.name, kind, each.definition, each.source)
    terminal().print(grid)


def lie(policy: Policy, market: Market, witness: Misreport) -> None:
    """Print a market, a misreport on it, and its gain."""
    table = table_of("user", *market.types, "weight", "demand")
    for i, user in enumerate(market.users):
        limit = "" if market.limit[i] == INFINITY else number_text(market.limit[i])
        table.add_row(user, *map(number_text, market.speedup[i]), number_text(market.weight[i]), limit)
    console = terminal()
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    console.print(f"{len(market.users)} users share {gpus} under {policy.name}:", soft_wrap=True)
    console.print(table)
    choice = "whatever optima are chosen" if witness.every_optimum else "by the optima that were chosen"
    console.print(f"{witness}: {number_text(witness.gain)} more, {choice}", soft_wrap=True)


def claims(rows: Sequence[Entry], *, in_full: bool) -> None:
    """Print rows of the ledger: a line each, or in full."""
    console = terminal()
    if not in_full:
        grid = table_of("claim", "where", "verdict", "in short")
        for row in rows:
            short = shorten(row.evidence or f"waits for {row.waits_for}", IN_SHORT, placeholder=" ...")
            grid.add_row(row.id, row.where, _ruling(row), short)
        console.print(grid)
        counts = Counter(row.verdict.value for row in rows)
        console.print(f"{len(rows)} claims: " + ", ".join(f"{n} {name}" for name, n in counts.items()), soft_wrap=True)
        return
    for row in rows:
        console.print(f"{row.id} ({row.paper}, {row.where}; {row.kind})", style="bold", soft_wrap=True)
        console.print(f"  claim:    {row.says}", soft_wrap=True)
        console.print(Text("  verdict:  ").append(_ruling(row)), soft_wrap=True)
        shown = f"  evidence: {row.evidence}" if row.evidence else f"  waits for {row.waits_for}"
        console.print(shown, soft_wrap=True)
        if row.run:
            console.print(f"  again:    fairopt claims {row.id} --run", soft_wrap=True)


def recomputed(row: Entry, outcome: Finding | Exception, seconds: float, *, follows: bool) -> None:
    """Print the result of recomputing one row, or the error that stopped it."""
    console = terminal()
    if not isinstance(outcome, Finding):
        console.print(f"{row.id}: not recomputed: {outcome}", soft_wrap=True)
        return
    said = "follows"
    if outcome.verdict is not row.verdict:
        said = f"NO LONGER FOLLOWS from the computation, which says {outcome.verdict.value}"
    elif not follows:
        said = "follows, but NOT with the stored evidence; computed was"
    console.print(f"{row.id}: {row.verdict.value} {said} ({seconds:.1f} s): {outcome.evidence}", soft_wrap=True)


def _ruling(row: Entry) -> Text:
    return Text(row.verdict.value, style=RULINGS.get(row.verdict, ""))


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show progress on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("policies", total=total)
        yield lambda done: bar.update(task, advance=1, description=f"{done} done")


def terminal() -> Console:
    """Return the console for tables: as wide as the terminal, or wide enough without one."""
    return Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else WIDE)


def table_of(*columns: str) -> Table:
    """Return an empty table with these columns."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(columns):
        grid.add_column(name, justify="left" if number == 0 or name in LEFT else "right")
    return grid


LEFT = frozenset(
    {
        *("source", "claims", "definition", "can", "unit", "what shows it", "of", "answer", "available", "numbers"),
        *("where", "verdict", "in short"),
    }
)
