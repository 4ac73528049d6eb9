"""What the tables of a page show, computed: each row or cell is an object, which the templates write as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairopt.errors import BadInput
from fairopt.experiment.bench.records import Measurement, MeasurementStatus, Record
from fairopt.experiment.bench.results import Cell, NumberedMeasurement, Seconds, Study, studies, to_answer, wall
from fairopt.experiment.bench.timing import Noise, Ratios, median_of, noise, ratios
from fairopt.experiment.words import NOTHING


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
