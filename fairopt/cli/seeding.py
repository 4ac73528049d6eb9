"""`fairopt compare TRACE --seeds N`: the quick question on one trace, by the statistics of studies.

The first of the N plays is of the trace as it is, the others of draws from it: blocks of jobs that follow each other,
with the times between their arrivals. The table says how the ratio of two policies would differ on another such trace.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import fspath
from pathlib import Path

import typer

from fairopt.cli import study_tables
from fairopt.cli.exits import Exit
from fairopt.cli.listing import print_json
from fairopt.cli.settings import Playing, read_trace_on
from fairopt.cli.tables import progress
from fairopt.errors import BadInput
from fairopt.experiment.runner import place
from fairopt.experiment.spec import Entrant
from fairopt.experiment.statistics import Better
from fairopt.experiment.studies.cells import StudyCell, run_study
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import MOST_SEEDS, Question, StudySpec
from fairopt.experiment.studies.traces import Place, Source
from fairopt.policy import Policy
from fairopt.problem import exact
from fairopt.simulation.mechanics import length_of

#: What is compared.
QUESTIONS = (
    Question("jct_mean", Better.LESS),
    Question("jct_p99", Better.LESS),
    Question("finish_time_mean", Better.LESS),
    Question("ltgf_tenant_min", Better.MORE),
)


def seeded(
    file: Path,
    policies: Sequence[Policy],
    playing: Playing,
    cluster: Path | None,
    seeds: int,
    json_: bool,
    *,
    pairs: bool,
) -> None:
    """Play a trace and draws from it under each policy, and print who is better."""
    if cluster is None:
        raise BadInput(f"{file} is a trace", place="--cluster", remedy="Say on which cluster it is played")
    if len(policies) < 2:
        raise BadInput("got one policy", place="--policy", remedy="Name two at least")
    if seeds > MOST_SEEDS:
        raise BadInput(f"got {seeds}", place="--seeds", remedy=f"Give at most {MOST_SEEDS}")
    read_trace_on(file, cluster)  # refused here, and not in each cell
    spec = StudySpec(
        name="compare",
        title=f"{file} on {cluster}",
        length=float(length_of(exact(playing.length, "--length"))),
        rounds=playing.rounds,
        seeds=tuple(range(seeds)),
        policies=tuple(Entrant(each.name, each.name) for each in policies),
        traces=(Source(str(file), file=fspath(file)),),
        clusters=(Place(str(cluster), file=fspath(cluster)),),
        mechanics=(playing.mechanics,),
        compare=QUESTIONS,
    )
    total = len(policies) * len(spec.seeds)
    workers = min(os.cpu_count() or 1, total)
    records = []
    with progress(total) as advance, place(workers, None, "--seeds") as (executor, concurrent):
        for record in run_study(spec, executor, concurrent=concurrent):
            records.append(record)
            if isinstance(record, StudyCell):
                advance(record.policy, f"seed {record.seed}")
    found = StudyResults(spec, records)
    if json_:
        print_json(StudyResults.form.json(found))
    else:
        study_tables.results(found, pairs=pairs)
    if found.failed:
        raise typer.Exit(Exit.NOT_SOLVED)
