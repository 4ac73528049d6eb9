"""`fairopt verify RECORD`: which properties a recorded run has."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import typer

from fairopt.cli import tables
from fairopt.cli.answers import status_of
from fairopt.cli.as_json import of_properties
from fairopt.cli.listing import outcome_properties, print_json
from fairopt.compare import verify as verified
from fairopt.problem import exact as rational
from fairopt.simulation import Setting
from fairopt.simulation.replay import read_record

#: How the name of a record ends.
SUFFIXES = (".jsonl", ".jsonl.gz")


def verify(path: Path, property_names: list[str] | None, *, json_: bool, tolerance: Fraction, exact: bool) -> None:
    """Print the verdicts on a recorded run, as it is recorded; `fairopt check` decides whether it can have been so.

    Exit status: as that of `fairopt.cli.sharing.verify`.
    """
    of_runs = outcome_properties(property_names, Setting)
    record = read_record(path)
    history = record.history
    setting = Setting(history.cluster, history.trace, record.mechanics, rational(record.run["length"], "length"))
    slack = tolerance if not history.trace.jobs.exact and not exact else Fraction(0)
    verdicts = verified(setting, history, of_runs, tolerance=slack)
    if json_:
        print_json(of_properties(verdicts, exact=exact))
    else:
        tables.answers(verdicts)
        print(f"of the run as it is recorded; `fairopt check {path}` decides whether it can have been so")
    raise typer.Exit(status_of(verdicts.values()))
