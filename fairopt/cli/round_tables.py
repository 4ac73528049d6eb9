"""A run as tables for people, and its progress; plain text where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fairopt.cli.tables import on_terminal, say, some_of, table_of
from fairopt.policy import Policy
from fairopt.problem import Trace
from fairopt.program import Number
from fairopt.simulation import Round
from fairopt.simulation.measures import UNITS, Measures, Spread


def measures(found: Measures, policy: Policy, trace: Trace) -> None:
    """Print the measures of a run, then its tenants, then the jobs that did not complete."""
    say(
        f"{policy.name}: {found.completed} of {len(trace.jobs)} jobs completed in {found.rounds} rounds; times in the "
        "trace's unit (seconds in files)"
    )
    spreads = table_of("of jobs", "jobs", "mean", "median", "90%", "99%", "least", "most")
    for name, spread in (
        ("completion time (JCT)", found.jct),
        ("slowdown", found.slowdown),
        ("first wait", found.first_wait),
        ("finish-time fairness", found.finish_time),
        ("long-term GPU-time fairness", found.ltgf),
    ):
        spreads.add_row(name, *_spread(spread))
    say(spreads)
    row = found.row()
    single = table_of("of the run", "", "unit")
    for name in (
        *("makespan", "utilisation", "useful", "loading", "lost", "fragmentation", "scattered", "worse_off"),
        *("sharing_loss", "migrations", "to_faster", "restarts", "deciding"),
    ):
        single.add_row(name, short(row[name]), UNITS[name])
    say(single)
    whose = table_of("tenant", "jobs", "completed", "mean JCT", "GPU-time", "LTGF")
    for name, tenant in found.tenants.items():
        numbers = (tenant.jct_mean, tenant.held, tenant.ltgf)
        whose.add_row(name, str(tenant.jobs), str(tenant.completed), *map(short, numbers))
    say(whose)
    if found.jobs < len(trace.jobs):
        say(f"not arrived when the run ended: {len(trace.jobs) - found.jobs} jobs")
    for what, names in (
        ("not completed", found.unfinished),
        ("never started", found.never_started),
        ("fit no type of the cluster", found.misfits),
    ):
        if names:
            say(f"{what}: {some_of(names)}")


def short(value: Number | None) -> str:
    """Return a number in four digits, "-" for none."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{float(value):.4g}"


def _spread(spread: Spread) -> tuple[str, ...]:
    middle = (spread.percentiles[50], spread.percentiles[90], spread.percentiles[99])
    return (str(spread.count), *map(short, (spread.mean, *middle, spread.least, spread.most)))


@contextmanager
def progress(trace: Trace, rounds: int | None, before: Sequence[Round]) -> Iterator[Callable[[Round], None]]:
    """Show the mean part of the jobs' work that is done, or the part of ``rounds``, on a terminal of standard error."""
    if not sys.stderr.isatty():
        yield lambda record: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    work = dict(zip(trace.jobs.names, trace.jobs.work, strict=True))
    misfits: set[str] = set()
    parts, played, completed = 0.0, 0, 0

    def done(record: Round) -> float:
        nonlocal parts, completed
        misfits.update(record.misfits)
        parts += sum(float(ran.progress / work[ran.job]) for ran in record.ran)
        completed += len(record.completed)
        return parts / max(len(work) - len(misfits), 1)

    for record in before:
        done(record)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, **on_terminal()) as bar:
        task = bar.add_task("rounds", total=1.0)

        def advance(record: Round) -> None:
            nonlocal played
            played += 1
            part = max(done(record), played / rounds if rounds else 0.0)
            said = f"round {record.index}, {completed} of {len(work)} jobs done, {len(record.waiting)} wait"
            bar.update(task, completed=part, description=said)

        yield advance
