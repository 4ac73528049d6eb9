"""Whether the goals of a specification were reached: the worst instance that a goal chooses decides.

Seconds are those to the answer and its evidence, medians over repeats. Where the other contender of a ratio ran out of
time, its time limit counts for its seconds, and the ratio is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.experiment.bench.kinds import InstanceKey
from fairopt.experiment.bench.records import Measurement, status_words
from fairopt.experiment.bench.results import Cell, Study, to_evidence
from fairopt.experiment.bench.spec import Goal, Statistic
from fairopt.experiment.words import bytes_text, count, factor_text, seconds_text


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
