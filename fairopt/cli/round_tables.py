"""A run as tables for people, and its progress; plain text where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter

from fairopt.cli.tables import on_terminal, say, some_of, table_of, texts
from fairopt.numbers import counted, four_digits
from fairopt.policy import Policy
from fairopt.problem import Trace
from fairopt.report import Statement
from fairopt.simulation.measures import UNITS, WORDS, Measures
from fairopt.simulation.record import Changes

#: Seconds between two lines about how far a run is, where there is no terminal.
BETWEEN = 60.0
#: The measures of a run that have a line of their own.
OF_RUNS = (
    *("makespan", "utilisation", "useful", "loading", "lost", "freed", "fragmentation", "scattered", "worse_off"),
    *("sharing_loss", "migrations", "to_faster", "restarts", "deciding"),
)


def measures(found: Measures, policy: Policy, trace: Trace) -> None:
    """Print the measures of a run, then its tenants, then the jobs that did not complete."""
    say(
        f"{policy.name}: {found.completed} of {counted(len(trace.jobs), 'job')} completed in {found.rounds} "
        f"round{'s' if found.rounds != 1 else ''}; times in the trace's unit (seconds in files)"
    )
    spreads = {
        "completion time (JCT)": found.jct,
        "slowdown": found.slowdown,
        "first wait": found.first_wait,
        "finish-time fairness": found.finish_time,
        "long-term GPU-time fairness": found.ltgf,
    }
    heads = ["of jobs", "jobs", "mean", "median", "90%", "99%", "least", "most"]
    say(table_of(heads, ((name, *_spread(spread)) for name, spread in spreads.items())))
    row = found.row()
    say(
        table_of(
            ["of the run", "", *texts("unit")],
            ((WORDS[name], four_digits(row[name]), UNITS[name]) for name in OF_RUNS),
        )
    )
    tenants = (
        (name, str(each.jobs), str(each.completed), *map(four_digits, (each.jct_mean, each.held, each.ltgf)))
        for name, each in found.tenants.items()
    )
    say(table_of(["tenant", "jobs", "completed", "mean JCT", "GPU-time", "LTGF"], tenants))
    if found.jobs < len(trace.jobs):
        say(f"not arrived when the run ended: {counted(len(trace.jobs) - found.jobs, 'job')}")
    for what, names in (
        ("not completed", found.unfinished),
        ("never started", found.never_started),
        ("fit no type of the cluster", found.unschedulable),
    ):
        if names:
            say(f"{what}: {some_of(names)}")


def _spread(spread: Statement) -> tuple[str, ...]:
    middle = (spread.percentiles[50], spread.percentiles[90], spread.percentiles[99])
    return (str(spread.count), *map(four_digits, (spread.mean, *middle, spread.least, spread.most)))


class RunProgress:
    """How far a run is: the mean part of the jobs' work that is done, or the part of ``rounds``."""

    def __init__(self, trace: Trace, rounds: int | None) -> None:
        self._work, self._rounds = trace.jobs.work, rounds
        self._jobs = self._all = len(trace.jobs)
        self._part: dict[int, float] = {}  # of the jobs present, without what those that run do now
        self._running: dict[int, tuple[float, float]] = {}  # from when on, and what part in a unit of time
        self._begun = perf_counter()
        self.index = self.completed = self.played = 0
        self.now = 0.0

    def add(self, changes: Changes) -> None:
        """Take a round in."""
        self.now, self.played, self.index = float(changes.end), self.played + changes.index - self.index, changes.index
        for row in (*changes.stopped, *changes.lost, *(each.row for each in changes.placed)):
            self._stop(row, float(changes.begin))
        self._part |= dict.fromkeys(changes.arrived, 0.0)
        self._jobs -= len(changes.unschedulable)
        for each in changes.placed:
            if each.row not in changes.lost:
                begin = float(changes.begin) + float(each.setup)
                self._running[each.row] = begin, float(each.speed / self._work[each.row])
        for row in (*changes.completed, *changes.unschedulable):
            self._running.pop(row, None)
            del self._part[row]
        self.completed += len(changes.completed)

    def _stop(self, row: int, now: float) -> None:
        if row in self._running:
            begin, speed = self._running.pop(row)
            self._part[row] += max(now - begin, 0.0) * speed

    def begin(self) -> None:
        """What is taken in from now on takes time."""
        self._begun, self.played = perf_counter(), 0
        self._before = self._of_work()

    def _of_work(self) -> float:
        now = sum(max(self.now - begin, 0.0) * speed for begin, speed in self._running.values())
        return min((self.completed + sum(self._part.values()) + now) / max(self._jobs, 1), 1.0)

    @property
    def part(self) -> float:
        """The part that is done."""
        return max(self._of_work(), self.played / self._rounds if self._rounds else 0.0)

    def __str__(self) -> str:
        waiting = len(self._part) - len(self._running)
        return f"round {self.index}, {self.completed} of {counted(self._all, 'job')} done, {waiting} wait"

    def times(self) -> str:
        """Return how long it took, and how long it may still take, in words."""
        spent, done = perf_counter() - self._begun, max(self.part - self._before, 0.0)
        left = f", about {_clock(spent * (1 - self.part) / done)} left" if done else ""
        return f"{self.part:.0%} in {_clock(spent)}{left}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(min(seconds, 1e9))))


@contextmanager
def shown(progress: RunProgress) -> Iterator[Callable[[], None]]:
    """Give what shows progress on standard error: a bar on a terminal, elsewhere a line now and then."""
    progress.begin()
    last = perf_counter()

    def tell() -> None:
        nonlocal last
        if perf_counter() - last > BETWEEN:
            last = perf_counter()
            print(f"{progress}; {progress.times()}", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        yield tell
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, **on_terminal()) as bar:
        task = bar.add_task("rounds", total=1.0)

        def draw() -> None:
            nonlocal last
            if perf_counter() - last > 0.1 or progress.part == 1.0:
                last = perf_counter()
                bar.update(task, completed=progress.part, description=str(progress))

        yield draw
