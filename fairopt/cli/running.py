"""The command ``run``: play a trace on a cluster under a policy of rounds; stop it, and resume it later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from signal import Signals, default_int_handler, signal
from threading import current_thread, main_thread
from typing import Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import evidence_files, round_tables
from fairopt.cli.exits import HANG_UP, Exit, print_nowhere
from fairopt.cli.given import Columns, Html, input_file, input_option, require_different, require_page
from fairopt.cli.listing import AsJson, Backend, policy_option
from fairopt.cli.parquet import ParquetTable, require_parquet
from fairopt.cli.round_json import COLUMNS, WrittenRounds, measured
from fairopt.cli.settings import Playing, Settings, grouped, read_trace_on
from fairopt.compare import Row
from fairopt.configuring import configured
from fairopt.errors import BadInput, FairoptError
from fairopt.experiment.page import write_page
from fairopt.policy import chosen
from fairopt.problem import Cluster, Queue, Trace, exact
from fairopt.program import INFINITY
from fairopt.simulation import Setting, Snapshot
from fairopt.simulation.document import begun, standings
from fairopt.simulation.engine import Engine
from fairopt.simulation.gpu_time import Window
from fairopt.simulation.measures import Measuring, measured_window
from fairopt.simulation.record import Changes
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_journal


@grouped
def run_command(
    trace: Annotated[Path, input_file("TRACE", "A trace file: .csv, .csv.gz, .toml or .json.", Trace)],
    cluster: Annotated[Path, input_option("A cluster file: .toml or .json.", Cluster)],
    policy: Annotated[str, policy_option("A policy of rounds", Queue)],
    settings: Settings = None,
    backend: Backend = "auto",
    floats: Annotated[bool, typer.Option("--floats", help="Count in floats, not in fractions: faster.")] = False,
    json_: AsJson = False,
    window: Annotated[
        str | None,
        typer.Option(metavar="BEGIN:END", help="Measure jobs that arrive, and GPU-time, between these seconds only."),
    ] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a row for each job and round.")] = None,
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a state for --resume.")] = None,
    resume: Annotated[Path | None, input_option("Go on from a state that --state wrote.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what changed, round by round (.jsonl.gz), for `fairopt check`."),
    ] = None,
    program: evidence_files.Write = None,
    columns: Columns = None,
    html: Html = None,
    *,
    playing: Playing,
) -> None:
    """Play a trace on a cluster, round after round, and measure the result.

    Ctrl-C, SIGTERM and SIGHUP let the round end. Then the run prints what it has, writes its state, and ends with exit
    status 130, 143 or 129; a second Ctrl-C ends it at once. A run that goes on from a state prints all of its rounds,
    as if it had never stopped. Exit status 3: the policy could not go on. Without a terminal, a line each minute says
    how far it is.
    """
    written = {"--parquet": parquet, "--state": state, "--record": record, "--html": html}
    for option, read in (("TRACE", trace), ("--cluster", cluster)):
        require_different({option: read, **written})
    if parquet is not None:
        require_parquet(parquet)
    require_page(html, "matplotlib")
    # exact numbers of a long run may have more digits than Python prints by default
    sys.set_int_max_str_digits(0)
    given, there = read_trace_on(trace, cluster)
    rule = configured(discovery.policy(policy, Queue), settings or [])
    mechanics, seconds, rounds = playing.mechanics, playing.seconds, playing.rounds
    if program is not None:
        if strange := [option for option, path in {**written, "--resume": resume}.items() if path is not None]:
            remedy = "Leave out one of the two"
            raise BadInput("--write ends in the first round that asks for a program", place=strange[0], remedy=remedy)
        how: dict[str, Any] = {"length": seconds, "mechanics": mechanics, "rounds": rounds}
        return evidence_files.write_program(
            rule, lambda asked: list(Engine(rule, given, there, backend=asked, **how)), program, json_
        )
    solver = discovery.solver(rule, backend)
    if floats:
        given = given.as_(float)
    measuring = Measuring(given, there, window=None if window is None else window_of(window))
    began = header(policy, given, there, length=seconds, mechanics=mechanics, options=settings or [], backend=backend)
    after, before = (None, ()) if resume is None else read_journal(resume, began, given, there, mechanics, rule.states)
    chosen(rule, solver)  # refused before anything is played
    play = Engine(rule, given, there, length=seconds, mechanics=mechanics, backend=solver, rounds=rounds, after=after)
    progress = round_tables.RunProgress(given, rounds)
    document = begun(given, there, mechanics, seconds, policy) if json_ else None
    with ExitStack() as stack:
        books: list[Recorder] = []
        if state is not None:
            books.append(stack.enter_context(Recorder(state, began, given, there, state_of=play, place="--state")))
        if record is not None:
            books.append(stack.enter_context(Recorder(record, began, given, there, place="--record")))
        table = None if parquet is None else stack.enter_context(ParquetTable(COLUMNS, parquet))
        whole = WrittenRounds(policy, given, there, document, table)
        seen: list[Any] = []
        if html is not None:
            from fairopt.experiment.studies.playing import Observing  # here, so that other runs begin sooner

            seen.append(Observing(given, there))
        takes = [*(book.add for book in books), measuring.add, whole.add, progress.add, *(each.add for each in seen)]
        for changes in before:
            for take in takes:
                take(changes)
        for book in books:  # the files that go on from there are put in place
            book.keep()
        with round_tables.shown(progress) as tell:
            received, stopped = _played(play, takes, tell)
        found = measuring.result(play.index)
        if stopped is not None and not found.rounds:  # nothing came of it that could be shown
            raise stopped
        whole.end(play.index)
        complete = found_complete(play.snapshot(), given, there)
        why = str(stopped) if stopped is not None else "interrupted" if received is not None else None
        outcome = {"complete": complete, "stopped": why or (None if complete else "--rounds")}
        for book in books:
            book.end(play.snapshot(), outcome)
    if html is not None:
        from fairopt.experiment.comparison_page import page

        row = Row(policy=rule, outcome=seen[0].result(play.index), numbers=found.row())
        write_page(page(Setting(there, given, mechanics, seconds), [row], (), trace.name), html)
    if json_:
        whole.end_document(
            standing=standings(play.snapshot(), given, there),
            outcome={"options": settings or [], **outcome},
            measures=measured(found, measuring.window),
        )
    else:
        round_tables.measures(found, rule, given)
    if stopped is not None:
        raise stopped
    if received is not None:
        print(f"interrupted after {found.rounds} rounds", file=sys.stderr)
        raise typer.Exit(Exit(128 + received))


def window_of(text: str) -> Window:
    """Return the window that BEGIN:END says; either may be left out. Errors: `BadInput`."""
    begin, colon, end = text.partition(":")
    if not colon:
        raise BadInput(f"got {text!r}", place="--window", remedy="Write BEGIN:END in seconds, as 86400:604800")
    first = exact(begin, "--window") if begin.strip() else Fraction(0)
    last = exact(end, "--window") if end.strip() else INFINITY
    return measured_window(Window(first, last), Fraction, "--window")


def _played(
    play: Engine, takes: Sequence[Callable[[Changes], None]], tell: Callable[[], None]
) -> tuple[Signals | None, FairoptError | None]:
    """Play to the end, and let all take each round in; return the signal, or the error, that ended it before.

    Both keep what there is.
    """
    with _stopping(play) as received:
        try:
            for changes in play:
                for take in takes:
                    take(changes)
                tell()
        except FairoptError as error:
            return None, error
    return next(iter(received), None), None


@contextmanager
def _stopping(play: Engine) -> Iterator[list[Signals]]:
    """Let the first signal end a run after its round; yield the signals that came."""
    received: list[Signals] = []

    def stop(number: int, _: object) -> None:
        received.append(Signals(number))
        play.stop()
        signal(Signals.SIGINT, default_int_handler)  # the second one does not wait
        print_nowhere(number)
        print("stopping after this round; Ctrl-C again stops at once", file=sys.stderr)

    if current_thread() is not main_thread():  # nobody else gets signals
        yield received
        return
    before = {number: signal(number, stop) for number in (Signals.SIGINT, Signals.SIGTERM, *HANG_UP)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal(number, handler)


def found_complete(after: Snapshot, trace: Trace, cluster: Cluster) -> bool:
    """Whether every job has arrived, and every job that can run is done."""
    if after.arrived < len(trace.jobs):
        return False
    rows = list(after.present)
    return not rows or len(Queue.fresh(trace.jobs.take(rows), cluster, length=1).unschedulable) == len(rows)
