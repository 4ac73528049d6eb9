"""Benchmarks as tables for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from fairopt.cli.tables import say, table_of
from fairopt.experiment.bench.records import Measurement, MeasurementStatus

if TYPE_CHECKING:
    from fairopt.experiment.bench.export import Exported, Skipped


def ended(of: Measurement) -> str:
    """Return in words how a measurement ended."""
    took = "" if of.to_evidence is None else f" in {of.to_evidence:.4g} s"
    why = f": {of.message}" if of.message else ""
    return f"{of.called} on {of.instance.name}: {of.status.value}{took}{why}"


def results(measured: Sequence[Measurement]) -> None:
    """Print a table for each instance, in the order measured: medians of wall seconds, of verified answers only."""
    groups: dict[tuple[str, str], dict[str, list[Measurement]]] = {}
    for each in measured:
        by_name = groups.setdefault((each.instance.name, each.instance.digest), {})
        by_name.setdefault(each.called, []).append(each)
    for (instance, _), by_name in groups.items():
        table = table_of("contender", "status", "build", "solve", "certify", "CPU", "MB", "gap")
        for called, several in by_name.items():
            table.add_row(called, *_cells(several))
        say(f"{instance}: seconds, medians")
        say(table)


def _cells(several: Sequence[Measurement]) -> list[str]:
    solved = [each for each in several if each.solved]
    # skipped repeats are left out if another one was measured
    tried = [each for each in several if each.status is not MeasurementStatus.SKIPPED] or several
    return [
        ", ".join(dict.fromkeys(each.status.value for each in tried)),
        *(_shown([each.seconds.wall(stage) for each in solved], ".3g") for stage in ("build", "solve", "certify")),
        _shown([each.seconds.cpu for each in solved], ".3g"),
        _shown([each.peak_bytes and each.peak_bytes / 1e6 for each in solved], ".0f"),
        _shown([each.judgement.gap for each in solved if each.judgement is not None], ".1e"),
    ]


def exported_words(of: Exported | Skipped) -> str:
    """Return in words what became of an instance."""
    from fairopt.experiment.bench.export import Skipped  # here, so that other commands begin sooner

    if isinstance(of, Skipped):
        return f"{of.instance}: left out: {of.why}"
    return f"{of.instance.name}: {of.file}: {_optimum(of)}"


def exported(written: Sequence[Exported]) -> None:
    """Print a table of the files that were written."""
    table = table_of("instance", "file", "rows", "variables", "optimum")
    for each in written:
        table.add_row(each.instance.name, each.file, f"{each.rows:,}", f"{each.variables:,}", _optimum(each))
    say(table)


def _optimum(of: Exported) -> str:
    """Return the optimum if it is proven, else the closest bounds; most methods' are of the numbers before rounding."""
    known = of.optimum.decimals
    if of.optimum.exact is not None and known is not None:
        return f"{known[0]:.12g}, proven"
    low, high = known or (-math.inf, math.inf)
    method = of.method
    if method is not None and not method.of_file:
        return f"from {method.lower:.12g} to {method.upper:.12g} before rounding"
    if method is not None:
        low, high = max(low, method.lower), min(high, method.upper)
    return f"from {low:.12g} to {high:.12g}" if low > -math.inf or high < math.inf else "not known"


def listing(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of texts."""
    table = table_of(*columns)
    for row in rows:
        table.add_row(*row)
    say(f"{title}:")
    say(table)


def _shown(values: Iterable[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(median(known), form) if known else "-"
