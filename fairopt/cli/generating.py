"""`fairopt generate`: traces that are drawn at random, by seed, at a load that is stated."""

from __future__ import annotations

from inspect import getdoc
from pathlib import Path
from typing import Annotated

import typer

from fairopt import discovery
from fairopt.cli import completing, listing, tables
from fairopt.cli.data import _WRITTEN
from fairopt.cli.given import input_option, require_different
from fairopt.cli.listing import OPTIONS, SOURCE
from fairopt.cli.settings import NAME, settings_listed
from fairopt.configuring import configured
from fairopt.errors import BadInput, require
from fairopt.problem import Cluster, Trace, read_cluster, write_trace
from fairopt.problem.numbers import exact
from fairopt.report import SCHEMA_KEY, Key, ResultForm
from fairopt.workloads import ErrorForm, ErrorSign, WorkEstimates, Workload

GENERATOR = ResultForm(
    "A generator of traces.",
    SCHEMA_KEY,
    NAME,
    SOURCE,
    Key(
        "about",
        str,
        "What it is about.",
        lambda it: (getdoc(type(it)) or "").partition("\n\n")[0].replace("\n", " ").rstrip("."),
    ),
    Key("cluster", str, "The data set of its own cluster; empty where it has none.", lambda it: it.home),
    OPTIONS,
    name="generator",
)

GENERATED = ResultForm(
    "A trace that was written.",
    SCHEMA_KEY,
    *_WRITTEN,
    Key("load", float, "Demand for GPU-time over GPU-time."),
    Key("counted", str, "The speed at which GPU-time is counted: mean or fastest."),
    name="generated",
)


def generate(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A generator; without one, all are listed. Without --out: all about it, its options too.",
            autocompletion=completing.registered(discovery.WORKLOADS),
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write the trace: .csv, .toml, .json.")
    ] = None,
    cluster: Annotated[
        Path | None, input_option("A cluster file: .toml or .json. The generator's own where left out.", Cluster)
    ] = None,
    settings: Annotated[list[str] | None, settings_listed("generate NAME")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same trace.", min=0)] = 0,
    error: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Relative error of the estimates of work that policies get, such as 0.3."),
    ] = None,
    error_form: Annotated[ErrorForm, typer.Option(help="How errors are distributed.")] = ErrorForm.UNIFORM,
    error_sign: Annotated[
        ErrorSign, typer.Option(help="Whether estimates are too large, too small, or either.")
    ] = ErrorSign.BOTH,
    json_: listing.AsJson = False,
) -> None:
    """Draw a random trace with a given load, and write it to a file for the other commands."""
    if name is None and out is not None:
        raise BadInput(
            f"no trace to write to {out}", place="--out", remedy="Name a generator; `fairopt generate` has all"
        )
    off = error_form is not ErrorForm.UNIFORM or error_sign is not ErrorSign.BOTH
    if error is None and off:
        raise BadInput("--error-form and --error-sign say of what kind it is", place="--error", remedy="Give its size")
    if out is None and (cluster or settings or seed or error):
        raise BadInput("nothing says where to write the trace", place="--out", remedy="Add --out FILE")
    require_different({"--cluster": cluster, "--out": out})
    known = listing.chosen(None if name is None else [name], discovery.WORKLOADS, discovery.workload)
    if name is None or out is None:
        rows = GENERATOR.list(known)
        return listing.show(json_, rows, lambda: tables.workloads(rows) if name is None else tables.workload(*rows))
    workload = configured(known[0], settings or [])
    there = _home(workload) if cluster is None else read_cluster(cluster)
    with tables.working(f"writing {out}"):
        trace = workload.trace(seed, there)
        if error is not None:
            size = float(exact(error, "--error"))
            require(size > 0, size, "error", "Give a number above 0 and at most 10")
            trace = WorkEstimates(size, error_form, error_sign).applied(trace, seed)
        write_trace(trace, out)
    _say(workload, trace, there, out, json_)


def _home(workload: Workload) -> Cluster:
    if not workload.home:
        remedy = "Give a cluster file, or a data set such as @philly-cluster"
        raise BadInput(f"{workload.name} has no cluster of its own", place="--cluster", remedy=remedy)
    home: Cluster = discovery.load(discovery.DATASETS, workload.home)()
    return home


def _say(workload: Workload, trace: Trace, cluster: Cluster, out: Path, json_: bool) -> None:
    jobs, load = trace.jobs, float(workload.load_of(trace, cluster))
    hours = float(jobs.arrival[-1] - jobs.arrival[0]) / 3600
    said = GENERATED.json(workload, file=str(out), kind="trace", holds=repr(trace), load=load)
    text = f"{out}: {trace!r}, arriving over {hours:.4g} h; load {load:.4f} at {workload.counted.value} speed"
    listing.show(json_, said, lambda: tables.say(text))
