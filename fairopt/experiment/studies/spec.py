"""A study's specification: one TOML file that says who plays what, and what is compared.

Every key is described in docs/howto/studies.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import isfinite
from typing import Any, ClassVar

from fairopt import discovery
from fairopt.configuring import configured
from fairopt.errors import BadInput, require
from fairopt.experiment.spec import (
    Entrant,
    Specification,
    check_entry,
    entrant_in,
    require_values,
)
from fairopt.experiment.statistics import Better
from fairopt.experiment.studies.playing import MEASURES
from fairopt.experiment.studies.traces import Place, Source, drawn
from fairopt.policy import Policy
from fairopt.problem import Queue
from fairopt.problem.files.storage import naming
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact, shown, whole, within
from fairopt.simulation import Mechanics
from fairopt.workloads import WorkEstimates

#: More seeds than this are a slip: no study has them.
MOST_SEEDS = 10_000
#: The numbers of `Mechanics`.
_NUMBERS = {"restart", "launch", "spread"}
#: Bytes of a study's name, which its files have with more behind it.
LONGEST_NAME = 200


def policy_of(entrant: Entrant, place: str = "options") -> Policy:
    """Return the policy. Errors: `BadInput` for an unknown name or option; ``place`` is where the options stand."""
    settings = [f"{name}={_text(value)}" for name, value in entrant.settings.items()]
    return configured(discovery.policy(entrant.name, Queue), settings, place)


@dataclass(frozen=True)
class MeasuredWindow:
    """What is measured: all jobs but the first part that arrives, ``warm_up``, and the last, ``cool_down``."""

    warm_up: float = within(0.0, least=0, below=1)
    cool_down: float = within(0.0, least=0, below=1)

    def __post_init__(self) -> None:
        check_entry(self)
        total = self.warm_up + self.cool_down
        require(total < 1, f"{total:g} for both", "window", "Leave some jobs between warm_up and cool_down")

    def rows(self, count: int) -> range:
        """Return the rows of the jobs that are measured."""
        return range(int(self.warm_up * count), count - int(self.cool_down * count))


@dataclass(frozen=True)
class Question:
    """What is compared: a measure, which values are better, and with whom; without ``baseline`` every pair."""

    measure: str
    better: Better
    baseline: str = ""

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise BadInput(f"got {shown(self.measure)}", place="key 'measure'", remedy=nearest(self.measure, MEASURES))


@dataclass(frozen=True)
class StudySetting:
    """What all policies of a study play alike: one point of the grid without policy and seed."""

    source: Source
    place: Place
    load: float | None
    error: WorkEstimates
    mechanics: Mechanics

    @property
    def key(self) -> tuple[str, str, float | None, str, str]:
        """The labels, and the load."""
        return self.source.label, self.place.label, self.load, self.error.label, self.mechanics.label

    @property
    def names(self) -> dict[str, str]:
        """What tables call each part."""
        load = "" if self.load is None else f"{self.load:g}"
        labels = self.source.label, self.place.label, load, self.error.label, self.mechanics.label
        return dict(zip(("trace", "cluster", "load", "error", "mechanics"), labels, strict=True))


def _labelled(called: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    return lambda each, _: {"label": called(each), **each}


def _differences(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in given.items()) or "none"


def _mechanics(given: dict[str, Any], place: str) -> dict[str, Any]:
    """Return mechanics with their numbers, of seconds and a factor, as exact ones."""
    exactly: dict[str, Any] = {}
    for name in _NUMBERS & given.keys():
        value, where = given[name], f"{place}, key {name!r}"
        require(isinstance(value, float | int) and not isinstance(value, bool), shown(value), where, "Give a number")
        exactly[name] = str(exact(value, where))
    return {"label": _differences(given), **given, **exactly}


@dataclass(frozen=True, kw_only=True)
class StudySpec(Specification):
    """A specification: every policy plays every trace on every cluster, load, error and mechanics, with every seed.

    ``length`` is that of a round in seconds, ``rounds`` the most that are played, None for all. Without ``loads`` each
    trace has its own.

    >>> spec = StudySpec.read("first-look")
    >>> [each.label for each in spec.policies]
    ['srtf', 'tiresias', 'themis', 'ltgf', 'fifo-quota']
    """

    package = "fairopt.benchmarks.studies"
    lister = "fairopt study list"
    required = ("policies", "traces", "clusters", "compare")
    tables: ClassVar = {
        "policies": (Entrant, lambda each, place: entrant_in(each, place, "policy", "options")),
        "traces": (Source, _labelled(lambda each: each.get("file", "") or each.get("generator", ""))),
        "clusters": (Place, _labelled(lambda each: each.get("file", "") or " + ".join(each.get("hosts", ())))),
        "errors": (WorkEstimates, _labelled(_differences)),
        "mechanics": (Mechanics, _mechanics),
        "compare": (Question, lambda each, _: each),
    }

    length: float = within(300, above=0)
    rounds: int | None = within(None, least=1)
    seeds: tuple[int, ...] = (0,)
    loads: tuple[float, ...] = ()
    window: MeasuredWindow = MeasuredWindow()
    policies: tuple[Entrant, ...] = ()
    traces: tuple[Source, ...] = ()
    clusters: tuple[Place, ...] = ()
    errors: tuple[WorkEstimates, ...] = (WorkEstimates(),)
    mechanics: tuple[Mechanics, ...] = (Mechanics(),)
    compare: tuple[Question, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        bare = not set("/\\") & set(self.name) and not self.name.startswith(".")
        bare = bare and self.name.isprintable() and len(self.name.encode()) <= LONGEST_NAME
        require(bare, shown(self.name), "key 'name'", "Give a name that files can have, with no folder in it")
        for values, place in ((self.seeds, "key 'seeds'"), (self.loads or (1,), "key 'loads'")):
            require_values(values, place)
        for seed in self.seeds:
            whole(seed, "key 'seeds'", least=0)
        for load in self.loads:
            require(isfinite(load) and load > 0, shown(load), "key 'loads'", "Give loads above 0")

    def check(self) -> None:
        """Refuse unknown policies and options, and traces that cannot be played. Errors: `BadInput`, with the place."""
        checks: Mapping[str, list[Callable[[], object]]] = {
            "policies": [partial(policy_of, each) for each in self.policies],
            "traces": [each.check for each in self.traces],
            "clusters": [each.made for each in self.clusters],
        }
        for kind, entries in checks.items():
            for number, check in enumerate(entries, start=1):
                with _within(kind, number):
                    check()
        labels = [each.label for each in self.clusters]
        for number, source in enumerate(self.traces, start=1):
            for label in source.clusters:
                if label not in labels:
                    place = f"traces {number}, key 'clusters'"
                    raise BadInput(f"there is no {shown(label)}", place=place, remedy=nearest(label, labels))
            if self.loads and "load" in source.parameters:
                place = f"traces {number}, parameters, key 'load'"
                raise BadInput("the study has loads", place=place, remedy="Leave out one of the two")
            for cluster in self.clusters:
                if not source.clusters or cluster.label in source.clusters:
                    with _within("traces", number, f" on {cluster.label}"):
                        drawn(source, cluster, self.loads[0] if self.loads else None, self.errors[0], self.seeds[0])
            if source.resampled and 0 not in self.seeds:
                remedy = "Add 0, which plays it as it is: the others are draws from it"
                raise BadInput(f"trace {source.label!r} is a file", place="key 'seeds'", remedy=remedy)

    def settings(self) -> Iterator[StudySetting]:
        """Yield what all policies play, in the order of the specification."""
        for source, place, load, error, mechanics in product(
            self.traces, self.clusters, self.loads or (None,), self.errors, self.mechanics
        ):
            if not source.clusters or place.label in source.clusters:
                yield StudySetting(source, place, load, error, mechanics)

    @classmethod
    def _prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        if isinstance(count := data.get("seeds"), int) and not isinstance(count, bool):
            remedy = f"Give how many there are, at most {MOST_SEEDS}, or a list of them"
            require(1 <= count <= MOST_SEEDS, count, "key 'seeds'", remedy)
            data["seeds"] = list(range(count))
        return data

    def _check_labels(self) -> None:
        labels = [each.label for each in self.policies]
        asked = [(each.measure, each.baseline) for each in self.compare]
        for number, (measure, baseline) in enumerate(asked, start=1):
            if (measure, baseline) in asked[: number - 1]:
                place, remedy = f"compare {number}, key 'measure'", "Leave one of them out"
                raise BadInput(f"{shown(measure)} is compared twice", place=place, remedy=remedy)
            if baseline and baseline not in labels:
                place = f"compare {number}, key 'baseline'"
                raise BadInput(f"there is no {shown(baseline)}", place=place, remedy=nearest(baseline, labels))


def studies() -> Iterator[tuple[str, str]]:
    """Yield (name, title) of each study that comes with fairopt."""
    for name, text in StudySpec.shipped().items():
        yield name, StudySpec.parse(text, f"{name}.toml").title


@contextmanager
def _within(kind: str, number: int, where: str = "") -> Iterator[None]:
    """Put the table, such as "traces 1", before the place of every `BadInput` raised inside; not of another file."""
    table = f"{kind} {number}{where}"
    with naming(place=table):
        try:
            yield
        except BadInput as error:
            if error.place and not error.file:
                error.place = f"{table}, {error.place.removeprefix(f'{kind}, ')}"
            raise


def _text(value: Any) -> str:
    """Return a value as ``--set`` takes it."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
