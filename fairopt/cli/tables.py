"""Results as tables for people; plain text where there is no terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import getdoc
from threading import Timer
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from fairopt.cli.exits import Exit
from fairopt.numbers import arithmetic
from fairopt.policy import Allocation, Claim, Policy
from fairopt.problem import Market
from fairopt.program import INFINITY, number_text
from fairopt.properties import Answer, SlackCase, Verdict
from fairopt.properties.verdict import MARKS
from fairopt.report import Statement

if TYPE_CHECKING:
    from fairopt.properties.metrics import Metrics

#: The width where there is no terminal; lines are not broken, so that they can be searched.
WIDE = 200
#: A width that fits every table.
ENDLESS = 100_000
#: Seconds until something that goes on shows a spinner.
PATIENCE = 0.7
CASES = ("\n", "\n  * ")  # how the lines of evidence after the first are shown
#: The characters of the longest bar.
BAR = 20
#: The most names of jobs in a line.
SHOWN = 10
STYLES: Mapping[Answer, str] = {**dict.fromkeys(Answer, "yellow"), Answer.HOLDS: "green", Answer.FAILS: "red"}


def allocations(decisions: Iterable[Allocation]) -> None:
    """Print what several policies give to whom."""
    for decided in decisions:
        say(f"{decided.policy} gives:")
        _shares(decided)


def _shares(decided: Allocation) -> None:
    market = decided.market
    own, fair = decided.utilities, market.fair_utility()
    rows = [
        (user, *map(number_text, row)) for user, *row in zip(market.users, *decided.shares.T, own, fair, strict=True)
    ]
    heads = ("user", *market.types, "throughput", "equal share is worth")
    times = [float(got / due) if due > 0 else 0.0 for got, due in zip(own, fair, strict=True)]
    full, most = "#" if terminal().options.ascii_only else "█", max(*times, 1.0)
    bars = [f"{full * round(BAR * each / most)} {each:.2f}" for each in times]
    drawn = table_of(
        (*heads, *texts("times the equal share")), ((*row, bar) for row, bar in zip(rows, bars, strict=True))
    )
    say(drawn if fits(drawn) else table_of(heads, rows))


def decision(decided: Allocation, unique: Statement | None) -> None:
    """Print the shares and throughputs of a decision; of ``unique``, None where it was not asked."""
    _shares(decided)
    by = f"its own method {decided.method.name!r}" if decided.method else decided.backend
    only = f"; {unique}" if unique else ""
    near = f"; irrational; throughputs are proved to a part of {float(decided.error):.0e}" if decided.error else ""
    say(f"{decided.policy}: {decided.status.value} by {by}, objective {number_text(decided.objective)}{near}{only}")
    solution = decided.solution
    if solution is not None and solution.upper is not None and not (decided.exact and solution.upper == solution.lower):
        say(
            f"proved, with all rounding counted: the optimum is at most {number_text(solution.upper)}. These shares, "
            f"corrected by no more than rounding errors, reach it to a relative gap of {solution.gap:.1e}"
        )


def verdicts(found: Mapping[str, Verdict], numbers: Metrics, market: Market) -> None:
    """Print verdicts on an allocation, and its metrics."""
    from fairopt.properties.within_bounds import range_of  # here, since an audit has no ranges

    if within := range_of(market):
        say(f"Verdicts are for all speedups {within}.")
    answers(found)
    idle = ", ".join(
        f"{name} {float(part):.0%}"
        for name, part in zip(market.types, numbers.utilisation, strict=True)
        if part is not None
    )
    stated = "" if market.known.all() else "at the speedups as the market states them: "
    say(
        f"{stated}total efficiency {number_text(numbers.total_efficiency)}, price of fairness "
        f"{float(numbers.price_of_fairness):z.1%}, Jain's index {float(numbers.jain_index):.3f}, in use: {idle}"
    )


def answers(found: Mapping[str, Verdict]) -> None:
    """Print verdicts, one a line."""
    heads: list[Any] = ["property", *texts("answer"), "margin", *texts("unit"), "exact", *texts("what shows it")]
    rows = (
        (
            name,
            MARKS[verdict.answer],
            "" if verdict.margin is None else number_text(verdict.margin),
            verdict.unit,
            "yes" if verdict.exact else "no",
            verdict.shown_by,
        )
        for name, verdict in found.items()
    )
    say(table_of(heads, rows))


def status_of(verdicts: Iterable[Verdict]) -> Exit:
    """Return what verdicts come to: FAILS before UNDECIDED before FINE."""
    answers = {verdict.answer for verdict in verdicts}
    if Answer.FAILS in answers:
        return Exit.FAILS
    return Exit.UNDECIDED if answers & {Answer.UNDECIDED, Answer.DEPENDS} else Exit.FINE


def policies(listed: Sequence[Policy], title: str = "policy") -> None:
    """Print the policies, with what their claims assume."""
    rows = ((each.name, each.source, ", ".join(map(_claimed, each.claims))) for each in listed)
    say(table_of(texts(title, "source", "claims"), rows))


def policy(shown: Policy, options: Sequence[Statement]) -> None:
    """Print all about one policy."""
    say(Text(shown.name, style="bold").append(f": {(getdoc(type(shown)) or '').partition(chr(10))[0]}"))
    say(f"source: {shown.source}")
    say(f"own methods: {', '.join(each.name for each in shown.methods) or 'none'}")
    for claim in shown.claims:
        say(f"claims {_claimed(claim)}: {claim.source}")
    if not options:
        return say("options: none")
    say(table_of(texts("option", "type", "default", "meaning"), (each.parts.values() for each in options)))
    say("They are set by --set OPTION=VALUE.")


def _claimed(claim: Claim) -> str:
    kind = f" ({claim.misreport} misreports)" if claim.misreport != "any" else ""
    refuted = " [refuted]" if claim.refuted_by is not None else ""
    return f"{claim.said()}{kind}{f' if {claim.assumes}' if claim.assumes else ''}{refuted}"


def backends(listed: Sequence[Any]) -> None:
    """Print the backends."""
    rows = (
        (
            each.name,
            f"no: needs {', '.join(missing)}" if (missing := each.missing()) else "yes",
            arithmetic(each.number).name,
            ", ".join(sorted(capability.name.lower() for capability in each.capabilities)),
        )
        for each in listed
    )
    say(table_of(texts("backend", "available", "numbers", "can"), rows))


def listing(columns: Mapping[str, str], listed: Sequence[Mapping[str, Any]]) -> None:
    """Print things that have texts; ``columns``: titles by the key of a text."""
    say(table_of(texts(*columns.values()), ([each[key] for key in columns] for each in listed)))


def workloads(listed: Sequence[Mapping[str, Any]]) -> None:
    """Print the generators of traces, as JSON has them."""
    rows = ([each[key] for key in ("name", "about", "cluster", "source")] for each in listed)
    say(table_of([*texts("generator", "about"), "own cluster", *texts("source")], rows))
    say("`fairopt generate NAME` says what options a generator has.")


def workload(shown: Mapping[str, Any]) -> None:
    """Print all about one generator."""
    say(Text(shown["name"], style="bold").append(f": {shown['about']}"))
    say(f"source: {shown['source']}; own cluster: {shown['cluster'] or 'none'}")
    listing({"name": "option", "type": "type", "default": "default", "meaning": "meaning"}, shown["options"])
    say("They are set by --set OPTION=VALUE; --out FILE writes a trace.")


def lie(policy: Policy, market: Market, witness: SlackCase) -> None:
    """Print a market, a misreport on it, and its gain."""
    limits = ["" if limit == INFINITY else number_text(limit) for limit in market.limit]
    rows = zip(market.users, market.speedup, market.weight, limits, strict=True)
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    say(f"{len(market.users)} {'user shares' if len(market.users) == 1 else 'users share'} {gpus} under {policy.name}:")
    lines = ((user, *map(number_text, (*speedup, weight)), limit) for user, speedup, weight, limit in rows)
    say(table_of(("user", *market.types, "weight", "demand"), lines))
    choice = "whatever optima are chosen" if witness.every_optimum else "by the optima that were chosen"
    say(f"{witness}: {number_text(witness.gain)} more, {choice}")


@contextmanager
def progress(total: int, so_far: Callable[[], Any] | None = None) -> Iterator[Callable[..., None]]:
    """Show progress on standard error if that is a terminal; yield what is told of each part before it begins.

    ``so_far`` returns what is shown above the bar meanwhile, and goes with it.
    """
    if not sys.stderr.isatty():
        yield lambda *part: None
        return
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=Console(stderr=True))
    task = bar.add_task("", total=total, completed=-1)
    shown = Live(get_renderable=lambda: Group(*([so_far()] if so_far else []), bar), **on_terminal())
    with shown:
        yield lambda *part: bar.update(task, advance=1, description=": ".join(part))


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on standard error if that is a terminal, once something takes longer than `PATIENCE`.

    Yield what is told when something else is done.
    """
    if not sys.stderr.isatty():
        yield lambda now: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    spinner = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), **on_terminal())
    task = spinner.add_task(what, total=None)
    timer = Timer(PATIENCE, spinner.start)
    timer.start()
    try:
        yield lambda now: spinner.update(task, description=now)
    finally:
        timer.cancel()
        timer.join()
        spinner.stop()


def on_terminal() -> dict[str, Any]:
    """Return where progress is shown: on standard error, without taking along what goes to a file or a pipe."""
    return {"console": Console(stderr=True), "transient": True, "redirect_stdout": sys.stdout.isatty()}


def say(what: str | Text | Table) -> None:
    """Print a table, in parts where it is too wide, or a text whose lines are not broken."""
    console = terminal()
    if not isinstance(what, Table):
        return console.print(what, soft_wrap=True)
    for part in _parts(what, console):
        console.print(part)


def fits(table: Table) -> bool:
    """Return whether no line of a table has to be broken."""
    console = terminal()
    return Measurement.get(console, console.options.update(width=ENDLESS), table).maximum <= console.width


def _parts(table: Table, console: Console) -> Iterator[Table]:
    """Yield a table whose longest words fit beside each other; else some of its columns at a time, after the first."""
    if _narrowest(table, console) <= console.width:
        yield _kept_whole(table, console)
        return
    first, *others = table.columns
    part: list[Column] = []
    for column in others:
        if part and _narrowest(_of_columns([first, *part, column]), console) > console.width:
            yield _kept_whole(_of_columns([first, *part]), console)
            part = []
        part.append(column)
    yield _kept_whole(_of_columns([first, *part]), console)


def _kept_whole(table: Table, console: Console) -> Table:
    """Return a table whose words are not broken where they fit: of columns that are wrapped, the widest give way."""
    spare = console.width - _narrowest(table, console)
    if spare < 0 or fits(table):
        return table
    endless = console.options.update(width=ENDLESS)
    found = [[Measurement.get(console, endless, cell) for cell in (each.header, *each.cells)] for each in table.columns]
    widths = [max(cell.minimum for cell in cells) for cells in found]
    most = [max(cell.maximum for cell in cells) for cells in found]
    for _ in range(spare):  # there are columns that could take more, or all would fit
        grows = min((i for i, width in enumerate(widths) if width < most[i]), key=widths.__getitem__)
        widths[grows] += 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return table


def _narrowest(table: Table, console: Console) -> int:
    """Return the width that a table needs to break no word."""
    return Measurement.get(console, console.options.update(width=ENDLESS), table).minimum


def _of_columns(columns: Sequence[Column]) -> Table:
    rows: Any = zip(*(column.cells for column in columns), strict=True)
    return table_of(columns, rows)


def some_of(names: Sequence[str]) -> str:
    """Return the first names of jobs, and how many there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} job{'s' * (len(names) != 1)}: {', '.join(names[:SHOWN])}{more}"


def terminal() -> Console:
    """Return the console for tables: as wide as the terminal, also where a pipe leads to it, or as COLUMNS says."""
    return Console(markup=False, highlight=False, width=_width())


def _width() -> int:
    if columns := os.environ.get("COLUMNS", ""):
        return int(columns) or WIDE if columns.isdecimal() else WIDE
    here = (each for each in (sys.stdout, sys.stderr, sys.stdin) if each is not None and each.isatty())
    return next((os.get_terminal_size(each.fileno()).columns or WIDE for each in here), WIDE)


def table_of(heads: Iterable[str | Column], rows: Iterable[Iterable[str | Text]] = ()) -> Table:
    """Return a table: numbers stand at the right; texts, the first column's and those of each `Column`, at the left."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, head in enumerate(heads):
        column = head if isinstance(head, Column) else Column(head, justify="right" if number else "left")
        grid.add_column(column.header, justify=column.justify, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def texts(*heads: str) -> list[Column]:
    """Return columns of texts."""
    return [Column(head) for head in heads]
