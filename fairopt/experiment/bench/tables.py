"""What the tables of a page show, computed: each row or cell is an object, which the templates write as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.bench.kinds import InstanceKey
from fairopt.experiment.bench.records import Measurement, MeasurementStatus, Record, status_words
from fairopt.experiment.bench.results import (
    Cell,
    NumberedMeasurement,
    Seconds,
    Study,
    studies,
    to_answer,
    to_evidence,
    wall,
)
from fairopt.experiment.bench.spec import Goal, Statistic
from fairopt.experiment.bench.timing import Noise, Ratios, median_of, noise, ratios
from fairopt.experiment.words import NOTHING, bytes_text, count, factor_text, seconds_text


@dataclass(frozen=True)
class SizeCell:
    """One contender on all instances of one size: seconds are medians, NaN where there are none.

    ``peak`` is the largest memory of a solved run, 0 where unknown; ``fastest`` whether nobody was faster.
    """

    rows: Sequence[NumberedMeasurement]
    answer: float
    build: float
    solve: float
    certify: float
    peak: int
    fastest: bool

    @property
    def failures(self) -> dict[MeasurementStatus, list[NumberedMeasurement]]:
        """The runs that were not solved, by status."""
        found = {status: [row for row in self.rows if row.measured.status is status] for status in MeasurementStatus}
        return {status: rows for status, rows in found.items() if rows and status is not MeasurementStatus.SOLVED}


@dataclass(frozen=True)
class MeanRow:
    """A contender's shifted geometric means in seconds (None: not known), and its ratios to the baseline.

    ``usual`` are those of ``answer`` with the shifts that others use, by shift. ``untried`` counts instances that it
    was never tried on; ``ratios`` is None for the baseline itself.
    """

    name: str
    solved: int
    instances: int
    untried: int
    answer: float | None
    usual: dict[float, float | None]
    solve: float | None
    corrected: float | None
    ratios: Ratios | None


@dataclass(frozen=True)
class Unsolved:
    """Measurements of one contender that ended alike with one message, by the name of the instance."""

    contender: str
    status: MeasurementStatus
    message: str
    places: dict[str, list[NumberedMeasurement]] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many measurements these are."""
        return sum(map(len, self.places.values()))


def size_cells(study: Study) -> dict[str, list[SizeCell]]:
    """Return each contender's cells, in the order of ``study.columns``."""
    found: dict[str, list[SizeCell]] = {name: [] for name in study.contenders}
    for of in study.columns.values():
        cells = {name: [study.cell(name, each) for each in of] for name in study.contenders}
        times = {name: _median(each, to_answer) for name, each in cells.items() if all(cell.solved for cell in each)}
        best = min(times.values(), default=math.inf)
        for name, each in cells.items():
            rows = [row for cell in each for row in cell.rows]
            peak = max((row.measured.peak_bytes or 0 for row in rows if row.measured.solved), default=0)
            stages = {stage: _median(each, wall(stage)) for stage in ("build", "solve", "certify")}
            fastest = times.get(name) == best
            found[name].append(SizeCell(rows, _median(each, to_answer), **stages, peak=peak, fastest=fastest))
    return found


def _median(cells: Sequence[Cell], of: Seconds) -> float:
    found = [cell.median(of) for cell in cells]
    return median_of([each for each in found if not math.isnan(each)])


def means(study: Study, baseline: str) -> list[MeanRow]:
    """Return a row of each contender that could run here, the fastest first."""
    usual = median_of(study.reference_walls)

    def corrected(measured: Measurement) -> float | None:
        clock, answer = measured.reference_job, measured.to_answer
        return answer * usual / clock.wall if clock and clock.wall and answer is not None else answer

    rows = []
    for name in study.present:
        solved = study.solved(name)
        untried = sum(set(study.cell(name, each).statuses) <= {MeasurementStatus.SKIPPED} for each in study.instances)
        answer, solve, adjusted = (study.mean(name, of) for of in (to_answer, wall("solve"), corrected))
        # how many times as fast as the baseline it is: the baseline's seconds over its own
        theirs = study.seconds(baseline, to_answer), study.seconds(name, to_answer)
        compared = None if name == baseline else ratios(*theirs, study.solved(baseline), solved)
        others = {shift: study.mean(name, to_answer, shift) for shift in study.usual_shifts}
        rows.append(MeanRow(name, int(solved.sum()), solved.size, untried, answer, others, solve, adjusted, compared))
    return sorted(rows, key=lambda row: math.inf if row.answer is None else row.answer)


def means_told(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the shifted geometric means of all studies as JSON: seconds to the answer, by contender and shift."""
    return [
        {
            "specification": study.name,
            "task": study.task,
            "machine": study.machine,
            "contender": row.name,
            "solved": row.solved,
            "instances": row.instances,
            "time_limit": study.limit,
            "shifted_geometric_means": [
                {"shift": shift, "seconds": mean} for shift, mean in {study.shift: row.answer, **row.usual}.items()
            ],
        }
        for study in studies(records)
        for row in means(study, study.baseline(None))
    ]


def unsolved(study: Study) -> list[Unsolved]:
    """Return what was not solved; measurements with the same message share a row."""
    found: dict[tuple[str, MeasurementStatus, str], Unsolved] = {}
    for row in study.rows:
        measured = row.measured
        if not measured.solved:
            note = "" if measured.judgement is None else measured.judgement.note
            message = "; ".join(part for part in (measured.message, note) if part) or NOTHING
            key = measured.called, measured.status, message
            found.setdefault(key, Unsolved(*key)).places.setdefault(measured.instance.name, []).append(row)
    return sorted(found.values(), key=lambda each: each.contender)


def steadiness(study: Study) -> Noise | BadInput:
    """Return how much the reference job varied in a study; the error where nothing can be said."""
    try:
        return noise(study.reference_walls)
    except BadInput as error:
        return error


def libraries(rows: Iterable[NumberedMeasurement]) -> Mapping[str, None]:
    """Return the libraries of measurements with their versions, each once, in the order of the measurements."""
    used = (row.measured.libraries for row in rows)
    return dict.fromkeys(f"{name} {each[name]}" for each in used for name in sorted(each))


# -- goals of a specification: the worst instance that a goal chooses decides ------------------------------------------
# Seconds are those to the answer and its evidence, medians over repeats. Where the other contender of a ratio ran out
# of time, its time limit counts for its seconds, and the ratio is a lower bound.
@dataclass(frozen=True)
class GoalResult:
    """A goal's row: what was asked and measured, and how, as text; whether it was reached (None: not decided)."""

    goal: Goal
    asked: str
    measured: str
    how: str
    reached: bool | None
    instance: InstanceKey | None = None


@dataclass(frozen=True)
class MeasuredValue:
    """A value on one instance: NaN with the reason where there is none; ``bound`` where it is a lower bound."""

    value: float
    reason: str = ""
    bound: bool = False


def outcomes(study: Study) -> list[GoalResult]:
    """Return the outcome of each goal of the study's specification, in its order."""
    return [] if study.spec is None else [_outcome(study, goal) for goal in study.spec.goals]


def _outcome(study: Study, goal: Goal) -> GoalResult:
    (measured, words), at_least = _MEASURED[goal.statistic], goal.statistic is Statistic.RATIO
    asked = f"{'at least' if at_least else 'at most'} {words(goal.limit)}"
    chosen = [each for each in study.instances if goal.chooses(each.family, each.size, each.parameters)]
    chosen = [each for each in chosen if study.cell(goal.contender, each).rows]
    if not chosen:
        return GoalResult(goal, asked, "not measured", "no measurement of this contender on these instances", None)
    cells = [study.cell(goal.contender, each) for each in chosen]
    others = [(study.cell(goal.against, each), goal.against) if at_least else () for each in chosen]
    found = [measured(cell, *other) for cell, other in zip(cells, others, strict=True)]
    failed = [place for place, each in enumerate(found) if math.isnan(each.value)]
    over = f"{count(len(chosen), 'instance')}, {count(sum(len(cell.rows) for cell in cells), 'measurement')}"
    if failed:
        place = failed[0]
        reason = found[place].reason + (f" ({len(failed)} of {len(chosen)} instances)" if len(chosen) > 1 else "")
        return GoalResult(goal, asked, reason, over, None if cells[place].solved else False, chosen[place])
    values = [each.value for each in found]
    place = int(np.argmin(values) if at_least else np.argmax(values))
    reached = values[place] >= goal.limit if at_least else values[place] <= goal.limit
    bound = found[place].bound
    how = over + (f"; {goal.against} ran into its time limit, which is counted" if bound else "")
    said = ("more than " if bound else "") + words(values[place])
    undecided = bound and not reached  # the other one may be slower still
    return GoalResult(goal, asked, said, how, None if undecided else reached, chosen[place])


def ratio(cell: Cell, other: Cell, against: str) -> MeasuredValue:
    """Return the seconds of another contender over ours, to the answer and its evidence; ``against`` is its name."""
    ours, limit = _of(cell), other.ran_out_of
    if math.isnan(ours.value):
        return ours
    theirs = _of(other) if limit is None else MeasuredValue(limit, bound=True)
    if math.isnan(theirs.value):
        return MeasuredValue(math.nan, f"{against}: {theirs.reason}")
    return MeasuredValue(theirs.value / ours.value if ours.value else math.inf, bound=theirs.bound)


def _largest(cell: Cell, of: Callable[[Measurement], float | None], unknown: str) -> MeasuredValue:
    if not cell.solved:
        return _of(cell)
    found = [of(row.measured) for row in cell.rows]
    known = [value for value in found if value is not None and not math.isnan(value)]
    return MeasuredValue(float(max(known))) if len(known) == len(found) else MeasuredValue(math.nan, unknown)


def _of(cell: Cell) -> MeasuredValue:
    if cell.solved:
        return MeasuredValue(cell.median(to_evidence))
    return MeasuredValue(math.nan, status_words(cell.statuses) if cell.rows else "not measured")


#: How each statistic is measured in a cell (a ratio: in two), and written.
_MEASURED: Mapping[Statistic, tuple[Callable[..., MeasuredValue], Callable[[float], str]]] = {
    Statistic.SECONDS: (_of, seconds_text),
    Statistic.RATIO: (ratio, factor_text),
    Statistic.BYTES: (lambda cell: _largest(cell, lambda of: of.peak_bytes, "not recorded"), bytes_text),
    Statistic.GAP: (
        lambda cell: _largest(cell, lambda of: of.judgement.gap if of.judgement else None, "no gap is known"),
        "{:.2g}".format,
    ),
}
