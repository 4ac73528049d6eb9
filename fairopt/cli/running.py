"""The command ``run``: a trace on a cluster under a policy of rounds, stopped and gone on from as one likes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from fairopt import discovery
from fairopt.backends import Method, Solver
from fairopt.cli import round_json, round_tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import input_file, input_option
from fairopt.cli.journal import Journal, Resumed, read_journal
from fairopt.cli.listing import AsJson, Backend, policy_option, print_json
from fairopt.cli.parquet import require_parquet, write_parquet
from fairopt.cli.settings import Settings, configured, mechanics_of, read_trace_on
from fairopt.errors import BadInput, FairoptError
from fairopt.policy import Policy, chosen
from fairopt.problem import Cluster, Queue, Trace, exact
from fairopt.problem.numbers import shown
from fairopt.simulation import History, Mechanics, Round, run
from fairopt.simulation.measures import measure
from fairopt.simulation.recording import Recorder, header


def run_command(
    trace: Annotated[Path, input_file("TRACE", "A trace file: .csv, .csv.gz, .toml or .json.", Trace)],
    cluster: Annotated[Path, input_option("A cluster file: .toml or .json.", Cluster)],
    policy: Annotated[str, policy_option("A policy of rounds", Queue)],
    rounds: Annotated[int | None, typer.Option(help="Stop after so many rounds, counted from here.", min=0)] = None,
    length: Annotated[str, typer.Option(help="Seconds of a round.")] = "300",
    settings: Settings = None,
    backend: Backend = "auto",
    floats: Annotated[bool, typer.Option("--floats", help="Count in floats, not in fractions: faster.")] = False,
    restart: Annotated[str, typer.Option(help="Seconds to stop a job and start it again.")] = "0",
    launch: Annotated[str, typer.Option(help="Seconds to start a job for the first time.")] = "0",
    spread: Annotated[str, typer.Option(help="Factor on the speed of a gang on several hosts (intra-operator).")] = "1",
    local_data: Annotated[bool, typer.Option("--local-data", help="Copy datasets to hosts before jobs run.")] = False,
    json_: AsJson = False,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a row for each job and round.")] = None,
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Write down how to go on from any round.")] = None,
    resume: Annotated[Path | None, input_option("Go on from what --state wrote.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what changed, round by round (.jsonl.gz), for proofs/verify.py."),
    ] = None,
) -> None:
    """Play a trace on a cluster, round after round, and measure what came of it.

    A run that is interrupted prints what it has, writes its state, and says so by exit status 130; one that was
    gone on from prints all of its rounds, as if it had never stopped. Exit status 3: the policy could not go on.
    """
    if parquet is not None:
        require_parquet(parquet)
    # exact numbers of a long run may have more digits than Python prints by default
    sys.set_int_max_str_digits(0)
    given, there = read_trace_on(trace, cluster)
    rule = configured(discovery.policy(policy, Queue), settings or [])
    mechanics = mechanics_of(restart, launch, spread, local_data)
    seconds = exact(length, "--length")
    if seconds <= 0:
        raise BadInput(f"got {shown(seconds)}", place="--length", remedy="Give the seconds of a round, positive")
    solver = discovery.solver(rule, backend)
    if floats:
        given = given.as_(float)
    began = header(policy, given, there, length=seconds, mechanics=mechanics, options=settings or [], backend=backend)
    before = None if resume is None else read_journal(resume, began, given, there, mechanics, rule.states)
    chosen(rule, solver)  # refused before anything is played
    books: list[Recorder] = []
    if state is not None:
        books.append(Journal(state, began, given, there, before))
    if record is not None:
        books.append(Recorder(record, began, given, there, before=before.rounds if before else (), place="--record"))
    played = _Played(rule, given, there, mechanics, seconds)
    played.play(solver, rounds, before, books)
    if played.error is not None and not played.records:  # nothing came of it that could be shown
        raise played.error
    found = measure(played.history)
    if parquet is not None:
        write_parquet(round_json.rows(played.history), round_json.COLUMNS, parquet)
    if json_:
        data = round_json.result(
            played.history,
            found,
            policy=policy,
            options=settings or [],
            mechanics=mechanics,
            length=seconds,
            stopped=played.stopped,
        )
        print_json(data, indent=None)
    else:
        round_tables.measures(found, rule, played.trace)
    played.leave()


@dataclass
class _Played:
    """A run and what has come of it so far."""

    policy: Policy
    trace: Trace
    cluster: Cluster
    mechanics: Mechanics
    length: Any
    records: list[Round] = field(default_factory=list)
    interrupted: bool = False
    error: FairoptError | None = None

    @property
    def history(self) -> History:
        return History.of(self.trace, self.cluster, self.records)

    def play(
        self, solver: Solver | Method | None, rounds: int | None, before: Resumed | None, books: Sequence[Recorder]
    ) -> None:
        """Play the rounds; an interruption and an error of fairopt's keep what there is, and are remembered."""
        self.records = [] if before is None else list(before.rounds)
        with ExitStack() as stack:
            for book in books:
                stack.enter_context(book)
            advance = stack.enter_context(round_tables.progress(self.trace, rounds, self.records))
            try:
                for record in run(
                    self.policy,
                    self.trace,
                    self.cluster,
                    length=self.length,
                    mechanics=self.mechanics,
                    backend=solver,
                    rounds=rounds,
                    after=None if before is None else before.snapshot,
                ):
                    self.records.append(record)
                    for book in books:
                        book.add(record)
                    advance(record)
            except KeyboardInterrupt:
                self.interrupted = True
            except FairoptError as error:
                self.error = error
            for book in books:
                book.outcome = {"complete": self.complete, "stopped": self.stopped}

    @property
    def complete(self) -> bool:
        """Whether every job has arrived, and every job that can run is done."""
        if not self.records:
            return False
        last, names = self.records[-1], self.trace.jobs.names
        return last.after.arrived == len(names) and all(names[row] in last.misfits for row in last.after.present)

    @property
    def stopped(self) -> str | None:
        """Why the run ended before that; None where it did not."""
        if self.error is not None:
            return str(self.error)
        if self.interrupted:
            return "interrupted"
        return None if self.complete else "--rounds"

    def leave(self) -> None:
        """Say how the run ended, by error or exit status."""
        if self.error is not None:
            raise self.error
        if self.interrupted:
            print(f"interrupted after {len(self.records)} rounds", file=sys.stderr)
            raise typer.Exit(Exit.INTERRUPTED)
