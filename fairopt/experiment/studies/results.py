"""The cells of a study in order: means of each policy, every pair with who is better, and what to be careful about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.machine import Environment
from fairopt.experiment.statistics import (
    Estimate,
    PairedResult,
    compare_drawn,
    compare_resampled,
    holm,
    mean_of,
    mser,
)
from fairopt.experiment.studies.cells import CellStatus, PlayedCell, tasks
from fairopt.experiment.studies.playing import MEASURES
from fairopt.experiment.studies.spec import Better, Question, StudySetting, StudySpec
from fairopt.experiment.words import digits


@dataclass(frozen=True)
class Mean:
    """The outcome of a policy in one setting: mean of a measure over seeds, with its interval and their number."""

    setting: StudySetting
    policy: str
    measure: str
    estimate: Estimate
    seeds: int


class Certainty(Enum):
    """How sure a comparison is; the value is its verdict."""

    SAME = "{first} and {second}: the same in all runs"
    SURE = "{first} better than {second} by {by}"
    TOO_FEW_SEEDS = "{first} before {second} by {by}: too few seeds to be sure"
    NOT_SURE = "{first} before {second} by {by}: not sure among {family} comparisons"
    UNDECIDED = "{first} and {second}: undecided, {by}"

    @property
    def short(self) -> str:
        """Its name, in words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Pair:
    """Two policies in one setting, by one measure; ``first`` has the better value. ``result`` is first to second.

    ``family`` is the number of comparisons among which it must stand.
    """

    setting: StudySetting
    question: Question
    first: str
    second: str
    result: PairedResult
    family: int = 1

    @property
    def factor(self) -> Estimate:
        """By what the first is better, at least 1; NaN where there is no ratio, and the difference says it."""
        ratio = self.result.ratio
        if self.question.better is Better.MORE:
            return ratio
        return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.p) if ratio.value > 0 else ratio

    @property
    def by(self) -> str:
        """By how much the first is better, in words: a factor, or a difference."""
        if not math.isnan(self.factor.value):
            return shown(self.factor)
        apart, sign = self.result.difference, 1 if self.question.better is Better.MORE else -1
        low, high = (apart.low, apart.high) if sign > 0 else (-apart.high, -apart.low)
        return f"{shown(Estimate(sign * apart.value, low, high))} {'more' if sign > 0 else 'less'}"

    @property
    def certainty(self) -> Certainty:
        """How sure it is."""
        found, none = self.result.decisive
        if found.value == found.low == found.high == none:
            return Certainty.SAME
        if self.result.sure:
            return Certainty.SURE
        if math.isnan(self.result.p):
            return Certainty.TOO_FEW_SEEDS
        return Certainty.UNDECIDED if found.low <= none <= found.high else Certainty.NOT_SURE

    @property
    def verdict(self) -> str:
        """Who is better and how sure, in words."""
        names = {"first": self.first, "second": self.second, "by": self.by, "family": self.family}
        return self.certainty.value.format(**names)


class StudyResults:
    """What a study found, from the cells that ended: those of ``spec`` and of this version of the code, each once.

    ``others`` counts the cells that are not of it. ``failed`` are those that ended with an error, ``missing`` what was
    not played.
    """

    def __init__(self, spec: StudySpec, records: Iterable[Environment | PlayedCell]) -> None:
        self.spec = spec
        listed = [each for each in records if isinstance(each, PlayedCell)]
        wanted = [task.cell for task in tasks(spec)]  # two of other labels may be of one key
        keys = {cell.key for cell in wanted}
        found = {each.key: each for each in listed if each.key in keys}
        self.others = sum(each.key not in keys for each in listed)
        # labels may have changed since, which changes no outcome
        self.cells = [replace(found[cell.key], **vars(cell)) for cell in wanted if cell.key in found]
        self.missing = [cell for cell in wanted if cell.key not in found]
        self.failed = [each for each in self.cells if each.status is CellStatus.FAILED]
        self._by_place = {(each.policy, each.setting, each.seed): each for each in self.cells}

    @property
    def policies(self) -> list[str]:
        """The labels of the policies."""
        return [each.label for each in self.spec.policies]

    @property
    def settings(self) -> list[StudySetting]:
        """What all policies play, in order."""
        return list(self.spec.settings())

    def called(self, setting: StudySetting) -> str:
        """Return a setting's name: the parts in which settings differ; the trace's where there is one only."""
        every = [each.names for each in self.settings]
        own = setting.names
        differing = [name for name in own if len({each[name] for each in every}) > 1]
        parts = [f"load {own[name]}" if name == "load" else own[name] for name in differing]
        return ", ".join(parts) or own["trace"]

    def played(self, policy: str, setting: StudySetting) -> list[PlayedCell]:
        """Return the cells of a policy in a setting that were played, by seed."""
        names = setting.names
        key = names["trace"], names["cluster"], setting.load, names["error"], names["mechanics"]
        found = (self._by_place.get((policy, key, seed)) for seed in self.spec.seeds)
        return [each for each in found if each is not None and each.status is CellStatus.PLAYED]

    def outcomes(self, policy: str, setting: StudySetting, measure: str) -> dict[int, float]:
        """Return a measure by seed, where it is known."""
        found = {each.seed: each.observed.measures[measure] for each in self.played(policy, setting) if each.observed}
        known = {seed: value for seed, value in found.items() if value is not None}
        if setting.source.resampled and 0 not in known:
            return {}  # the draws are around the trace itself
        return dict(sorted(known.items()))

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each measure that is compared, of each policy in each setting."""
        return [
            Mean(setting, policy, measure, mean_of([*values.values()], setting.source.resampled), len(values))
            for measure in dict.fromkeys(each.measure for each in self.spec.compare)
            for setting in self.settings
            for policy in self.policies
            if (values := self.outcomes(policy, setting, measure))
        ]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every pair, or those with the baseline, in each setting, by each measure: one family for Holm."""
        made = [
            pair
            for question in self.spec.compare
            for setting in self.settings
            for a, b in combinations(self.policies, 2)
            if not question.baseline or question.baseline in (a, b)
            if (pair := self._pair(question, setting, a, b)) is not None
        ]
        adjusted = holm([pair.result.p for pair in made])
        return [
            replace(pair, result=replace(pair.result, adjusted=p), family=len(made))
            for pair, p in zip(made, adjusted, strict=True)
        ]

    def _pair(self, question: Question, setting: StudySetting, a: str, b: str) -> Pair | None:
        ours, theirs = (self.outcomes(each, setting, question.measure) for each in (a, b))
        seeds = [seed for seed in ours if seed in theirs]
        if not seeds:
            return None
        compare = compare_resampled if setting.source.resampled else compare_drawn
        first, second = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
        result = compare(first, second)
        if (result.difference.value > 0) == (question.better is Better.MORE) or not result.difference.value:
            return Pair(setting, question, a, b, result)
        return Pair(setting, question, b, a, compare(second, first))

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know before the tables."""
        return [*self._notes()]

    def _notes(self) -> Iterator[str]:
        if self.missing:
            yield f"{len(self.missing)} of {len(self.missing) + len(self.cells)} cells are not played yet"
        if self.failed:
            first = self.failed[0]
            yield f"{len(self.failed)} cells failed; the first is {first.called}: {first.message}"
        if self.others:
            yield f"{self.others} cells in the file are of another specification, or of other code, and do not count"
        if any(setting.source.resampled for setting in self.settings):
            yield "Intervals of a trace that is a file say how results would differ on another draw from that one trace"
        unfinished: dict[str, int] = {}
        for each in self.cells:
            if each.observed is not None and each.observed.unfinished:
                unfinished[each.policy] = unfinished.get(each.policy, 0) + each.observed.unfinished
        for policy, count in unfinished.items():
            yield f"{policy}: {count} measured jobs did not complete, and are in no completion time"
        yield from self._steadiness()

    def _steadiness(self) -> Iterator[str]:
        late: dict[str, float] = {}
        for setting in self.settings:
            for policy in self.policies:
                cut = self.cut(policy, setting)
                if cut > self.spec.window.warm_up:
                    late[policy] = max(cut, late.get(policy, 0.0))
        for policy, cut in late.items():
            said = (
                "no steady state is to be seen" if cut > 0.5 else f"the first {cut:.0%} of the jobs are not yet steady"
            )
            left = f"the window leaves out {self.spec.window.warm_up:.0%}"
            yield f"{policy}: {said} in some setting, by MSER-5 of completion times; {left}"

    def cut(self, policy: str, setting: StudySetting) -> float:
        """Return which part of the jobs is not yet in a steady state, by `mser` of the mean course over seeds."""
        courses = [each.observed.course for each in self.played(policy, setting) if each.observed]
        length = min(map(len, courses), default=0)
        return mser(np.mean([each[:length] for each in courses], axis=0)) if length else math.nan

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each cell as a row of a table, with all measures."""
        for each in self.cells:
            labels = {name: getattr(each, name) for name in LABELS}
            measures: Mapping[str, Any] = each.observed.measures if each.observed else {}
            yield {**labels, "status": each.status.value, **{name: measures.get(name) for name in MEASURES}}

    def as_json(self) -> dict[str, Any]:
        """Return what was found, in the types of JSON."""
        means = [
            {
                **each.setting.names,
                **{"policy": each.policy, "measure": each.measure, "seeds": each.seeds},
                **_ends(each.estimate),
            }
            for each in self.means
        ]
        pairs = [
            {
                **pair.setting.names,
                "measure": pair.question.measure,
                "better": pair.first,
                "than": pair.second,
                "sure": pair.result.sure,
                "factor": _ends(pair.factor),
                "difference": _ends(pair.result.difference),
                "p": _finite(pair.result.p),
                "p_holm": _finite(pair.result.adjusted),
                "seeds": pair.result.pairs,
                "verdict": pair.verdict,
            }
            for pair in self.pairs
        ]
        failed = [{"cell": each.called, "message": each.message} for each in self.failed]
        return {
            **{"study": self.spec.name, "cells": len(self.cells), "missing": len(self.missing), "failed": failed},
            **{"notes": self.notes, "means": means, "pairs": pairs},
        }


#: The columns of a cell's row that say where it stands in the grid.
LABELS = ("policy", "trace", "cluster", "load", "error", "mechanics", "seed")


def require_whole(results: StudyResults, shards: int) -> None:
    """Refuse cells of a study of which some are missing; ``shards`` is into how many parts it was cut.

    Errors: `BadInput` that names the parts.
    """
    if not results.missing:
        return
    keys = {each.key for each in results.missing}
    every = tasks(results.spec)
    parts = {n: every[n - 1 :: shards] for n in range(1, shards + 1)}
    lacking = [n for n, part in parts.items() if any(each.cell.key in keys for each in part)]
    where = f", in shards {', '.join(f'{n}/{shards}' for n in lacking)}" if shards > 1 else ""
    first = results.missing[0].called
    problem = f"{len(results.missing)} cells are missing{where}; the first is {first}"
    raise BadInput(
        problem, place="the cells", remedy="Run `fairopt study SPEC --shard i/n` for them, with the same code"
    )


def shown(estimate: Estimate) -> str:
    """Return a number with its interval, such as 1.32 [1.20, 1.45]."""
    value = digits(estimate.value)
    return value if math.isnan(estimate.low) else f"{value} [{digits(estimate.low)}, {digits(estimate.high)}]"


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {name: _finite(getattr(estimate, name)) for name in ("value", "low", "high")}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
