"""The cells of a study in order: means of each policy, every pair with who is better, and what to be careful about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.statistics import (
    Better,
    Estimate,
    PairedResult,
    compare_drawn,
    compare_resampled,
    holm,
    mean_of,
    mser,
)
from fairopt.experiment.studies.cells import StudyCell, planned
from fairopt.experiment.studies.playing import MEASURES
from fairopt.experiment.studies.spec import Question, StudySetting, StudySpec
from fairopt.experiment.words import digits
from fairopt.report import SCHEMA_KEY, Grid, Key, ResultForm, Tabular, few, keys_of, listed
from fairopt.simulation.measures import WORDS

_SETTING = keys_of(str, "trace cluster load error mechanics", "The label.")
_MEAN = ResultForm(
    "A policy in a setting.",
    *_SETTING,
    *keys_of(str, "policy measure", "The name."),
    Key("seeds", int, "How many runs it is of."),
    *keys_of(float | None, "value low high", "The mean over seeds, and its interval."),
)
_PAIR = ResultForm(
    "Two policies in a setting.",
    *_SETTING,
    *keys_of(str, "measure better than", "What is compared, who is better, than whom."),
    Key("sure", bool, "Whether the family of comparisons allows to say so."),
    *keys_of(Estimate.form, "factor difference", "By how much; null where it is not known."),
    *keys_of(float | None, "p p_holm", "The p-value, alone and among all comparisons."),
    Key("seeds", int, "How many pairs of runs."),
    Key("verdict", str, "The same in words."),
)


class StudyResults(Tabular):
    """What a study found, from the cells that ended: those of ``spec`` and of this version of the code, each once.

    ``others`` counts the cells that are not of it. ``failed`` are those that ended with an error, ``missing`` what was
    not played.
    """

    form = ResultForm(
        "Who is better, by how much, and how sure.",
        SCHEMA_KEY,
        Key("study", str, "Its name.", lambda found: found.spec.name),
        Key("cells", int, "Cells that ended, and those that were not played.", lambda found: len(found.cells)),
        Key("missing", int, "Cells that ended, and those that were not played.", lambda found: len(found.missing)),
        Key(
            "failed",
            listed(dict),
            "Cells that ended with an error, and the error.",
            lambda found: [{"cell": each.called, "message": each.message} for each in found.failed],
        ),
        Key("notes", list[str], "What a reader must know before the numbers."),
        Key(
            "means",
            listed(_MEAN),
            "Of each measure that is compared.",
            lambda found: [
                _MEAN.json({**setting.names, **vars(mean), "policy": policy, "measure": measure, "seeds": mean.count})
                for (setting, policy, measure), mean in found.means.items()
            ],
        ),
        Key("pairs", listed(_PAIR), "Every pair, one family of comparisons.", lambda found: [*found.pairs_as_json()]),
        name="study",
    )

    def __init__(self, spec: StudySpec, records: Iterable[Environment | StudyCell]) -> None:
        self.spec = spec
        listed = [each for each in records if isinstance(each, StudyCell) and each.ended]
        wanted = planned(spec)  # two of other labels may be of one key
        keys = {cell.key for cell in wanted}
        found = {each.key: each for each in listed if each.key in keys}
        self.others = sum(each.key not in keys for each in listed)
        # labels may have changed since, which changes no outcome
        labels = ("study", *LABELS)
        self.cells = [
            replace(found[cell.key], **{name: getattr(cell, name) for name in labels})
            for cell in wanted
            if cell.key in found
        ]
        self.missing = [cell for cell in wanted if cell.key not in found]
        self.failed = [each for each in self.cells if each.status is TrialStatus.FAILED]
        self._by_place = {(each.policy, each.setting, each.seed): each for each in self.cells}

    def __repr__(self) -> str:
        cells = f"{len(self.cells)} of {len(self.cells) + len(self.missing)} cells"
        return f"<StudyResults: {self.spec.name}, {cells}; policies: {few(self.policies)}>"

    def _table(self) -> Grid:
        rows = [(setting, policy) for setting in self.settings for policy in self.policies]
        columns: dict[str, list[Any]] = {}
        if len(self.settings) > 1:
            columns["setting"] = [self.called(setting) for setting, _ in rows]
        for measure in dict.fromkeys(each.measure for each in self.spec.compare):
            means = [self.means.get((*row, measure)) for row in rows]
            columns[WORDS.get(measure, measure.replace("_", " "))] = [each and each.value for each in means]
            columns[f"{measure}, 95%"] = [each and f"{digits(each.low)} to {digits(each.high)}" for each in means]
        return Grid("policy", [policy for _, policy in rows], columns)

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

    def played(self, policy: str, setting: StudySetting) -> list[StudyCell]:
        """Return the cells of a policy in a setting that were played, by seed."""
        found = (self._by_place.get((policy, setting.key, seed)) for seed in self.spec.seeds)
        return [each for each in found if each is not None and each.status is TrialStatus.PLAYED]

    def outcomes(self, policy: str, setting: StudySetting, measure: str) -> dict[int, float]:
        """Return a measure by seed, where it is known."""
        found = {each.seed: each.observed.measures[measure] for each in self.played(policy, setting) if each.observed}
        known = {seed: value for seed, value in found.items() if value is not None}
        if setting.source.resampled and 0 not in known:
            return {}  # the draws are around the trace itself
        return dict(sorted(known.items()))

    @cached_property
    def means(self) -> dict[tuple[StudySetting, str, str], Estimate]:
        """The mean over seeds of each policy in each setting, of each measure that is compared."""
        return {
            (setting, policy, measure): mean_of([*values.values()], setting.source.resampled)
            for measure in dict.fromkeys(each.measure for each in self.spec.compare)
            for setting in self.settings
            for policy in self.policies
            if (values := self.outcomes(policy, setting, measure))
        }

    @cached_property
    def pairs(self) -> dict[tuple[Question, StudySetting], list[PairedResult]]:
        """Every pair, or those with the baseline, in each setting, by each measure: one family for Holm.

        The first of a pair has the better value.
        """
        made = [
            ((question, setting), pair)
            for question in self.spec.compare
            for setting in self.settings
            for a, b in combinations(self.policies, 2)
            if not question.baseline or question.baseline in (a, b)
            if (pair := self._pair(question, setting, a, b)) is not None
        ]
        found: dict[tuple[Question, StudySetting], list[PairedResult]] = {}
        for (where, pair), p in zip(made, holm([pair.p for _, pair in made]), strict=True):
            found.setdefault(where, []).append(replace(pair, adjusted=p, family=len(made)))
        return found

    def best(self, question: Question, setting: StudySetting) -> str | None:
        """Return the policy that is better than every other in a setting, where all of that is sure; None where not."""
        pairs = self.pairs.get((question, setting), [])
        beaten = {name: {pair.second for pair in pairs if pair.first == name and pair.sure} for name in self.policies}
        return next((name for name, others in beaten.items() if len(others) == len(self.policies) - 1 > 0), None)

    def pairs_as_json(self) -> Iterator[dict[str, Any]]:
        """Yield what is said of each pair."""
        for (question, setting), pairs in self.pairs.items():
            for each in pairs:
                said: dict[str, Any] = {**setting.names, "measure": question.measure, "p_holm": each.adjusted}
                yield _PAIR.json(each, **said, better=each.first, than=each.second, seeds=each.pairs)

    def _pair(self, question: Question, setting: StudySetting, a: str, b: str) -> PairedResult | None:
        ours, theirs = (self.outcomes(each, setting, question.measure) for each in (a, b))
        seeds = [seed for seed in ours if seed in theirs]
        if not seeds:
            return None
        compare = compare_resampled if setting.source.resampled else compare_drawn
        first, second = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
        result = compare(first, second)
        if (result.difference.value > 0) != (question.better is Better.MORE) and result.difference.value:
            a, b, result = b, a, compare(second, first)
        return replace(result, first=a, second=b, better=question.better)

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
            yield "Where a trace is a file, intervals say how results vary when that one trace is resampled"
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


#: The columns of a cell's row that say where it stands in the grid.
LABELS = ("policy", "trace", "cluster", "load", "error", "mechanics", "seed")


def require_whole(results: StudyResults, shards: int) -> None:
    """Refuse cells of a study of which some are missing; ``shards`` is into how many parts it was cut.

    Errors: `BadInput` that names the parts.
    """
    if not results.missing:
        return
    keys = {each.key for each in results.missing}
    every = planned(results.spec)
    parts = {n: every[n - 1 :: shards] for n in range(1, shards + 1)}
    lacking = [n for n, part in parts.items() if any(each.key in keys for each in part)]
    where = f", in shards {', '.join(f'{n}/{shards}' for n in lacking)}" if shards > 1 else ""
    first = results.missing[0].called
    problem = f"{len(results.missing)} cells are missing{where}; the first is {first}"
    raise BadInput(
        problem, place="the cells", remedy="Run `fairopt study SPEC --shard i/n` for them, with the same code"
    )
