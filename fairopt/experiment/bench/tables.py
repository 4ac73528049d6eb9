"""What the tables of a page show, computed: each row or cell is an object, which the templates write as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.bench.records import Measurement, Record
from fairopt.experiment.bench.results import Cell, Study, studies, to_answer, to_evidence
from fairopt.experiment.bench.spec import Goal, Statistic
from fairopt.experiment.bench.timing import noise
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.statistics import Estimate
from fairopt.experiment.words import NOTHING, bytes_text, factor_text, seconds_text
from fairopt.numbers import counted


def means_told(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the shifted geometric means of all studies as JSON: seconds to the answer, by contender and shift."""
    return [
        {
            "specification": study.name,
            "task": study.task,
            "machine": study.machine,
            "contender": name,
            "solved": int(study.solved(name).sum()),
            "instances": len(study.instances),
            "time_limit": study.limit,
            "shifted_geometric_means": [
                {"shift": shift, "seconds": study.mean(name, to_answer, shift)}
                for shift in (study.shift, *study.usual_shifts)
            ],
        }
        for study in studies(records)
        for name in study.ranked
    ]


def unsolved(study: Study) -> dict[tuple[str, TrialStatus, str], dict[str, list[Measurement]]]:
    """Return what was not solved by contender, status and message, and then by the name of the instance."""
    found: dict[tuple[str, TrialStatus, str], dict[str, list[Measurement]]] = {}
    for row in study.rows:
        if not row.solved:
            alike = found.setdefault((row.called, row.status, row.why or NOTHING), {})
            alike.setdefault(row.instance.name, []).append(row)
    return dict(sorted(found.items(), key=lambda each: each[0][0]))


def steadiness(study: Study) -> Estimate | BadInput:
    """Return how much the reference job varied in a study; the error where nothing can be said."""
    try:
        return noise(study.reference_walls)
    except BadInput as error:
        return error


def libraries(rows: Iterable[Measurement]) -> Mapping[str, None]:
    """Return the libraries of measurements with their versions, each once, in the order of the measurements."""
    used = (row.libraries for row in rows)
    return dict.fromkeys(f"{name} {each[name]}" for each in used for name in sorted(each))


# -- goals of a specification: the worst instance that a goal chooses decides ------------------------------------------
# Seconds are those to the answer and its evidence, medians over repeats. Where the other contender of a ratio ran out
# of time, its time limit counts for its seconds, and the ratio is a lower bound.
def outcomes(study: Study) -> list[Goal]:
    """Return the goals of the study's specification, in its order, with what came of each."""
    return [] if study.spec is None else [_outcome(study, goal) for goal in study.spec.goals]


def _outcome(study: Study, goal: Goal) -> Goal:
    (measured, words, unknown), at_least = _MEASURED[goal.statistic], goal.statistic is Statistic.RATIO
    asked = f"{'at least' if at_least else 'at most'} {words(goal.limit)}"
    chosen = [each for each in study.instances if goal.instances.has(each)]
    chosen = [each for each in chosen if study.cell(goal.contender, each).rows]
    if not chosen:
        how = "no measurement of this contender on these instances"
        return replace(goal, asked=asked, measured="not measured", how=how)
    cells = [study.cell(goal.contender, each) for each in chosen]
    others = [study.cell(goal.against, each) if at_least else Cell() for each in chosen]
    values = [measured(*pair) if pair[0].solved else math.nan for pair in zip(cells, others, strict=True)]
    over = f"{counted(len(chosen), 'instance')}, {counted(sum(len(cell.rows) for cell in cells), 'measurement')}"
    failed = [place for place, each in enumerate(values) if math.isnan(each)]
    if failed:
        place = failed[0]
        reason = cells[place].why if not cells[place].solved else unknown
        if at_least and cells[place].solved:
            reason = f"{goal.against}: {others[place].why}"
        reason += f" ({len(failed)} of {len(chosen)} instances)" if len(chosen) > 1 else ""
        reached = None if cells[place].solved else False
        return replace(goal, asked=asked, measured=reason, how=over, reached=reached, instance=chosen[place])
    place = int(np.argmin(values) if at_least else np.argmax(values))
    reached = values[place] >= goal.limit if at_least else values[place] <= goal.limit
    bound = others[place].ran_out_of is not None
    how = over + (f"; {goal.against} ran into its time limit, which is counted" if bound else "")
    said = ("more than " if bound else "") + words(values[place])
    decided = None if bound and not reached else reached  # the other one may be slower still
    return replace(goal, asked=asked, measured=said, how=how, reached=decided, instance=chosen[place])


def ratio(cell: Cell, other: Cell) -> float:
    """Return the seconds of another contender over ours, to the answer and its evidence; NaN where one has none.

    Where the other ran out of time, its time limit counts, and the ratio is a lower bound.
    """
    ours, limit = cell.median(to_evidence), other.ran_out_of
    theirs = limit if limit is not None else other.median(to_evidence) if other.solved else math.nan
    return theirs / ours if ours else math.nan if math.isnan(theirs) else math.inf


def _largest(cell: Cell, of: Callable[[Measurement], float | None]) -> float:
    """Return the largest number over repeats; NaN where one of them has none."""
    found = [math.nan if value is None else float(value) for value in map(of, cell.rows)]
    return math.nan if any(map(math.isnan, found)) else max(found)


#: How each statistic is measured in a cell that is solved (a ratio: beside another one), how it is written, and what is
#: said where it is not known.
_MEASURED: Mapping[Statistic, tuple[Callable[[Cell, Cell], float], Callable[[float], str], str]] = {
    Statistic.SECONDS: (lambda cell, _: cell.median(to_evidence), seconds_text, ""),
    Statistic.RATIO: (ratio, factor_text, ""),
    Statistic.BYTES: (lambda cell, _: _largest(cell, lambda of: of.peak_bytes), bytes_text, "not recorded"),
    Statistic.GAP: (
        lambda cell, _: _largest(cell, lambda of: of.judgement.gap if of.judgement else None),
        "{:.2g}".format,
        "no gap is known",
    ),
}
