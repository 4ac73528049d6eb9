"""Measurements in order for a report: studies, each of contenders by instances.

A study is one specification on one machine, since times of two machines are never compared. What counts as solved, and
which seconds count, is decided here, once for all tables and pictures.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.bench.records import PASSING, Measurement, Record, environments, status_words
from fairopt.experiment.bench.spec import Goal, Spec
from fairopt.experiment.bench.timing import Flags, median_of, penalised, ratios, shifted_geometric_mean
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.statistics import Floats
from fairopt.experiment.words import plain, settings_text
from fairopt.numbers import counted
from fairopt.report import Grid, Key, ResultForm, Tabular, few, keys_of

#: The shifts in seconds that others state means with: 1 s in reports on SCIP, 10 s in papers on PDLP (their SGM10).
USUAL_SHIFTS = (1.0, 10.0)
#: Seconds of a measurement, as one of its parts or sums; None where there are none.
Seconds = Callable[[Measurement], float | None]
_Known = tuple[Environment, Spec | BadInput]


@dataclass(frozen=True)
class Cell:
    """One contender on ``of`` instances, mostly one: all repeats."""

    rows: tuple[Measurement, ...] = ()
    of: int = 1

    @cached_property
    def _by_instance(self) -> dict[tuple[str, str], list[Measurement]]:
        found: dict[tuple[str, str], list[Measurement]] = {}
        for row in self.rows:
            found.setdefault((row.instance.name, row.instance.digest), []).append(row)
        return found

    @property
    def solved(self) -> bool:
        """Whether every instance has a repeat, and every repeat was solved."""
        return len(self._by_instance) == self.of and all(row.solved for row in self.rows)

    @property
    def why(self) -> str:
        """What it says where it is not solved, such as "time-out 3"."""
        return status_words(self.statuses) if self.rows else "not measured"

    @property
    def statuses(self) -> Counter[TrialStatus]:
        """How often each status occurs."""
        return Counter(row.status for row in self.rows)

    @property
    def tried(self) -> Counter[TrialStatus]:
        """How often each status but "skipped" occurs: after a time-out, repeats are skipped."""
        return Counter(each for each in self.statuses.elements() if each is not TrialStatus.SKIPPED)

    @property
    def ran_out_of(self) -> float | None:
        """The time limit, if it is known and every repeat that was tried ran out of it; else None."""
        limits = [row.time_limit for row in self.rows]
        timed_out = self.tried.keys() == {TrialStatus.TIMEOUT} and all(map(math.isfinite, limits))
        return min(limits) if timed_out else None

    def median(self, seconds: Seconds) -> float:
        """Return the median over instances of that over solved repeats; NaN where none has these seconds."""
        found = [[seconds(row) for row in rows if row.solved] for rows in self._by_instance.values()]
        medians = [median_of([value for value in values if value is not None]) for values in found]
        return medians[0] if len(medians) == 1 else median_of([each for each in medians if not math.isnan(each)])

    @property
    def peak(self) -> int:
        """The largest memory of a solved run in bytes, 0 where unknown."""
        return max((row.peak_bytes or 0 for row in self.rows if row.solved), default=0)

    @property
    def failures(self) -> dict[TrialStatus, list[Measurement]]:
        """The runs that were not solved, by status."""
        found = {status: [row for row in self.rows if row.status is status] for status in TrialStatus}
        return {status: rows for status, rows in found.items() if rows and status is not TrialStatus.SOLVED}


class Study(Tabular):
    """One specification on one machine: ``cells`` by contender's name, instance's name and its digest.

    ``key`` is (specification, task, machine); ``known`` has each environment and what its specification was read as.
    """

    def __init__(self, key: tuple[str, str, str], rows: list[Measurement], known: Mapping[str, _Known]) -> None:
        self.name, self.task, self.machine = key
        used = [known[digest] for digest in dict.fromkeys(row.environment for row in rows)]
        self.environments, read = [each for each, _ in used], [spec for _, spec in used]
        ours = (each for each in reversed(read) if isinstance(each, Spec) and each.name == self.name)
        self.spec: Spec | None = next(ours, None)
        names = _names(rows)
        cells: dict[tuple[str, str, str], list[Measurement]] = {}
        instances: dict[tuple[str, str], Instance] = {}
        for row in rows:
            instance = row.instance
            instances.setdefault((instance.name, instance.digest), instance)
            cells.setdefault((names[_identity(row)], instance.name, instance.digest), []).append(row)
        self.cells = {key: Cell(_standing(found)) for key, found in cells.items()}
        #: All measurements that stand, in the order of the records.
        self.rows = sorted((row for cell in self.cells.values() for row in cell.rows), key=lambda row: row.number)
        self.instances = sorted(instances.values(), key=lambda each: (each.family, each.size, each.seed))
        order = [] if self.spec is None else [each.label for each in self.spec.contenders]
        listed = dict.fromkeys(names.values())
        self.contenders = tuple(sorted(listed, key=lambda each: order.index(each) if each in order else len(order)))
        self.notes = list(dict.fromkeys(self._notes(rows, read)))

    form = ResultForm(
        "Measurements of one specification on one machine.",
        *keys_of(str, "name task machine", "The name."),
        Key("contenders", list[str], "Who was measured."),
        Key("notes", list[str], "What a reader must know before the numbers."),
    )

    def __repr__(self) -> str:
        return f"<Study: {self.name} on {counted(len(self.instances), 'instance')}; contenders: {few(self.contenders)}>"

    def _table(self) -> Grid:
        columns: dict[str, list[Any]] = {
            "solved": [int(self.solved(name).sum()) for name in self.contenders],
            "of": [len(self.instances)] * len(self.contenders),
            "mean seconds to the answer": [self.mean(name, to_answer) for name in self.contenders],
        }
        return Grid("contender", self.contenders, columns)

    def _notes(self, rows: Iterable[Measurement], read: Iterable[Spec | BadInput]) -> Iterator[str]:
        for each in read:
            if isinstance(each, BadInput):
                yield f"The specification cannot be read: {each}"
        changing = {"specification": "spec_text", "commit": "commit", "Python": "python", "libraries": "libraries"}
        values = {what: {plain(getattr(each, key)) for each in self.environments} for what, key in changing.items()}
        if differing := ", ".join(what for what, found in values.items() if len(found) > 1):
            yield f"Measured in {len(self.environments)} environments on this machine, which differ in: {differing}"
        limits = sorted({row.time_limit for row in rows})
        if len(limits) > 1:
            yield f"Time limits differ: {', '.join(f'{each:g}' for each in limits)} s; in means the largest counts"

    @property
    def title(self) -> str:
        """The specification's title; its name where it cannot be read."""
        return self.name if self.spec is None else self.spec.title

    @property
    def anchor(self) -> str:
        """The anchor of the study in the page; it is unique, since the numbers of rows are."""
        return f"s{self.rows[0].number}"

    @property
    def limit(self) -> float | None:
        """The time limit in seconds, the largest where they differ; None where none is recorded."""
        finite = [row.time_limit for row in self.rows if math.isfinite(row.time_limit)]
        return max(finite) if finite else None

    @property
    def concurrent(self) -> int:
        """How many measurements may have been under way at once, at most."""
        return max(row.concurrent for row in self.rows)

    @cached_property
    def reference_walls(self) -> list[float]:
        """The seconds of the reference job, where it was timed."""
        return [row.reference_job.wall for row in self.rows if row.reference_job is not None]

    @property
    def shift(self) -> float:
        """The shift of means in seconds: the specification's, or its default."""
        return Spec.shift if self.spec is None else self.spec.shift

    @property
    def usual_shifts(self) -> list[float]:
        """The shifts in seconds that the field uses, but for the study's own."""
        return [each for each in USUAL_SHIFTS if each != self.shift]

    @cached_property
    def present(self) -> tuple[str, ...]:
        """The contenders that could run here: those with any status but "missing"."""
        found = {name: {row.status for row in self.of(name)} for name in self.contenders}
        return tuple(name for name in self.contenders if found[name] - {TrialStatus.MISSING})

    @property
    def absent(self) -> list[str]:
        """The contenders that could not run here."""
        return [name for name in self.contenders if name not in self.present]

    @cached_property
    def columns(self) -> dict[tuple[str, int], list[Instance]]:
        """The instances by group and size: groups in the order of the instances, sizes ascending."""
        met: dict[str, dict[int, list[Instance]]] = {}
        for instance in self.instances:
            met.setdefault(group_of(instance), {}).setdefault(instance.size, []).append(instance)
        return {(group, size): sizes[size] for group, sizes in met.items() for size in sorted(sizes)}

    @property
    def groups(self) -> Counter[str]:
        """How many sizes each group has."""
        return Counter(group for group, _ in self.columns)

    def cell(self, contender: str, *instances: Instance) -> Cell:
        """Return the cell of one instance, or of several; empty where nothing was measured."""
        found = [self.cells.get((contender, each.name, each.digest), Cell()) for each in instances]
        return found[0] if len(found) == 1 else Cell(tuple(row for cell in found for row in cell.rows), len(found))

    @cached_property
    def fastest(self) -> dict[tuple[str, int], float]:
        """The seconds to the answer of the fastest, by group and size, among those who solved all; infinite if none."""
        cells = {column: [self.cell(name, *of) for name in self.contenders] for column, of in self.columns.items()}
        return {
            column: min((each.median(to_answer) for each in row if each.solved), default=math.inf)
            for column, row in cells.items()
        }

    def of(self, contender: str) -> list[Measurement]:
        """Return the measurements of a contender."""
        return [row for instance in self.instances for row in self.cell(contender, instance).rows]

    def solved(self, contender: str) -> Flags:
        """Return which instances (n,) the contender solved."""
        return np.array([self.cell(contender, each).solved for each in self.instances], dtype=bool)

    def seconds(self, contender: str, seconds: Seconds) -> Floats:
        """Return the medians (n,) over solved repeats, NaN where there is none."""
        return np.array([self.cell(contender, each).median(seconds) for each in self.instances], dtype=float)

    def mean(self, contender: str, seconds: Seconds, shift: float | None = None) -> float | None:
        """Return the shifted geometric mean; None where something was not solved and no time limit is recorded.

        ``shift`` is in seconds, the study's if None.
        """
        times = self.seconds(contender, seconds)
        solved = self.solved(contender) & np.isfinite(times)
        if self.limit is not None:
            times = penalised(times, solved, self.limit)
        elif not solved.all():
            return None
        return shifted_geometric_mean(times, self.shift if shift is None else shift)

    @property
    def ranked(self) -> list[str]:
        """The contenders that could run here, those of the least mean to the answer first."""
        means = {name: self.mean(name, to_answer) for name in self.present}
        known = {name: math.inf if mean is None else mean for name, mean in means.items()}
        return sorted(known, key=known.__getitem__)

    @cached_property
    def _usual_reference(self) -> float:
        return median_of(self.reference_walls)

    def corrected(self, measured: Measurement) -> float | None:
        """Return the seconds to the answer, as if the reference job had taken as long as it mostly did."""
        clock, answer = measured.reference_job, measured.to_answer
        return answer * self._usual_reference / clock.wall if clock and clock.wall and answer is not None else answer

    def untried(self, contender: str) -> int:
        """Return on how many instances a contender was never tried."""
        return sum(set(self.cell(contender, each).statuses) <= {TrialStatus.SKIPPED} for each in self.instances)

    def ratios(self, contender: str, baseline: str) -> Floats:
        """Return how many times as fast as the baseline a contender is (m,), on instances that both solved."""
        theirs = self.seconds(baseline, to_answer), self.seconds(contender, to_answer)
        return ratios(*theirs, self.solved(baseline), self.solved(contender))

    def only(self, contender: str, baseline: str) -> int:
        """Return how many instances a contender solved and the baseline did not."""
        return int((self.solved(contender) & ~self.solved(baseline)).sum())

    @property
    def unmeasured(self) -> int:
        """How many pairs of a contender that could run and an instance have no measurement."""
        return sum(not self.cell(name, each).rows for name in self.present for each in self.instances)

    @property
    def baseline(self) -> str:
        """What others are compared with: the first that a goal names, else who solved most."""
        goals: Sequence[Goal] = () if self.spec is None else self.spec.goals
        named = [goal.against for goal in goals if goal.against in self.present]
        return next(iter(named), None) or max(self.present, key=lambda name: int(self.solved(name).sum()), default="")


to_answer: Seconds = attrgetter("to_answer")
to_evidence: Seconds = attrgetter("to_evidence")


def wall(stage: str) -> Seconds:
    """Return what gives the wall seconds of a stage: build, solve or certify."""
    return lambda measured: measured.wall(stage)


def group_of(instance: Instance) -> str:
    """Return the name of a group of instances that differ only in size and seed: the family and other parameters."""
    rest = sorted((name, value) for name, value in instance.parameters.items() if value != instance.size)
    return f"{instance.family} ({settings_text(rest)})" if rest else instance.family


def studies(records: Iterable[Record]) -> list[Study]:
    """Return the studies of the records, in the order in which they first occur.

    Errors: `BadInput` if nothing was measured, and for a measurement that lacks the seconds that it must have, has
    negative or infinite seconds, or was made in an environment that is not among the records.
    """
    listed = list(records)
    known = {digest: (each, _spec_of(each)) for digest, each in environments(listed).items()}
    together: dict[tuple[str, str, str], list[Measurement]] = {}
    for number, each in enumerate(listed, start=1):
        if isinstance(each, Environment):
            continue
        if not isinstance(each, Measurement):
            raise BadInput(f"got {each!r:.80}", place=f"record {number}", remedy="Give environments and measurements")
        _check(each, number, known)
        where, _ = known[each.environment]
        machine = f"{where.cpu}, {counted(where.cores, 'core')}, {where.system}"  # times of two are not compared
        together.setdefault((each.spec, each.task, machine), []).append(replace(each, number=number))
    if not together:
        remedy = "Run `fairopt bench SPEC --json FILE` first"
        raise BadInput("there are no measurements", place="records", remedy=remedy)
    return [Study(key, rows, known) for key, rows in together.items()]


def _names(rows: Sequence[Measurement]) -> dict[tuple[str, str], str]:
    """Return what to call each contender: its label, with the settings that differ where one label has several."""
    settings: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        called, key = _identity(row)
        settings.setdefault(called, {})[key] = row.settings
    names: dict[tuple[str, str], str] = {}
    for called, kinds in settings.items():
        used = {name for each in kinds.values() for name in each}
        changing = {name for name in used if len({plain(each.get(name)) for each in kinds.values()}) > 1}
        for key, each in kinds.items():
            shown = ", ".join(f"{name}={plain(each[name])}" for name in sorted(changing & set(each)))
            names[called, key] = f"{called} ({shown or 'as it was'})" if len(kinds) > 1 else called
    return names


def _identity(row: Measurement) -> tuple[str, str]:
    return row.called, json.dumps(row.settings, sort_keys=True, default=str)


def _standing(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the rows of a cell in order, without missing and skipped ones that were measured later."""
    ordered = sorted(rows, key=lambda row: (row.repeat, row.number))
    last = {row.repeat: row for row in ordered}
    return tuple(row for row in ordered if row.status not in PASSING or row is last[row.repeat])


def _spec_of(environment: Environment) -> Spec | BadInput:
    try:
        return Spec.parse(environment.spec_text)
    except BadInput as error:
        return error  # the report does without the specification, and shows this as a note


def _check(measured: Measurement, number: int, known: Mapping[str, _Known]) -> None:
    place = f"record {number} ({measured.called} on {measured.instance.name})"
    if measured.environment not in known:
        problem = f"its environment {measured.environment:.12} is not among the records"
        raise BadInput(problem, place=place, remedy="Give the whole file, with its environment lines")
    clocks = {**measured.seconds, "reference job": measured.reference_job}
    for stage, clock in clocks.items():
        if clock is not None and not all(math.isfinite(value) and value >= 0 for value in (clock.wall, clock.cpu)):
            raise BadInput(f"{stage} took {clock}", place=place, remedy="Seconds are finite and not negative")
    if measured.solved and measured.to_answer is None:
        raise BadInput("the seconds to build and to solve are missing", place=place, remedy="Measure it again")
