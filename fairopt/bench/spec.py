"""A benchmark's specification: one TOML file that says which contenders answer which instances, and within what.

Every key is described in docs/benchmarks.md. A name of a task, family or contender is an entry point's, or MODULE:NAME.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from hashlib import sha256
from itertools import product
from os import PathLike
from typing import Any, TypeVar

from fairopt.bench import configuring
from fairopt.bench.reading import (
    check_different,
    check_schema,
    plain,
    require_counts,
    require_positive,
    require_text,
    require_values,
    shipped_in,
    source_of,
    tables_of,
)
from fairopt.codec import decode
from fairopt.errors import BadInput, NotInstalled, require
from fairopt.problem.files.documents import parse_toml
from fairopt.problem.files.storage import naming
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown

T = TypeVar("T")
SCHEMA = 1
#: Where the specifications that come with fairopt are.
SHIPPED = "fairopt.benchmarks.specs"
_PLAIN_VALUE = "Give a number, a string, true or false, or a list"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Statistic(Enum):
    """What a goal limits. ``SECONDS``, ``BYTES`` and ``GAP`` must be at most the limit, ``RATIO`` at least."""

    SECONDS = "seconds"  # to the answer, its evidence included: build, solve and certify
    RATIO = "ratio"  # seconds of the contender named by ``against`` over our own
    BYTES = "bytes"  # peak memory of the process
    GAP = "gap"  # how far the objective is below what is proven possible, as a part of it


@dataclass(frozen=True)
class Instances:
    """A block of instances: every combination of ``parameters`` and ``seeds``, of one family."""

    family: str
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        require_text(self, "family")
        for name, values in self.parameters.items():
            require_values(values, f"parameter {name!r}")
        require_values(self.seeds, "key 'seeds'")
        require(min(self.seeds) >= 0, shown(min(self.seeds)), "key 'seeds'", "Give whole numbers, at least 0")

    def combinations(self) -> list[tuple[dict[str, Any], int]]:
        """Return (parameters, seed) of each instance; the last parameter changes fastest, seeds faster still."""
        names = list(self.parameters)
        chosen = product(*self.parameters.values())
        return [(dict(zip(names, values, strict=True)), seed) for values in chosen for seed in self.seeds]


@dataclass(frozen=True)
class Entrant:
    """A contender in a specification: ``label``, unique there, is what tables call it; not tried beyond ``largest``."""

    contender: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    largest: int | None = None

    def __post_init__(self) -> None:
        require_text(self, "contender", "label")
        require_counts(self, 0, "largest")


@dataclass(frozen=True)
class InstanceFilter:
    """Which instances a goal is about: of ``family`` ("": any), of ``size`` (None: any), with equal ``parameters``."""

    family: str = ""
    size: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_counts(self, 0, "size")


@dataclass(frozen=True)
class Goal:
    """A row of the table of goals: on the instances chosen, the statistic of the contender keeps the limit.

    ``contender`` and ``against`` are labels; ``against`` goes with the statistic `Statistic.RATIO` only.
    """

    text: str
    contender: str
    statistic: Statistic
    limit: float
    against: str = ""
    instances: InstanceFilter = field(default_factory=InstanceFilter)

    def __post_init__(self) -> None:
        require_text(self, "text")
        require_positive(self, "limit")
        if (self.statistic is Statistic.RATIO) != bool(self.against):
            problem = "it goes with the statistic 'ratio', and with no other"
            remedy = "Name the contender whose seconds are divided by those of the first"
            raise BadInput(problem, place="key 'against'", remedy=remedy)

    def chooses(self, family: str, size: int, parameters: Mapping[str, Any]) -> bool:
        """Whether an instance counts for this goal."""
        of = self.instances
        fits = of.family in ("", family) and of.size in (None, size)
        return fits and all(parameters.get(name) == value for name, value in of.parameters.items())


@dataclass(frozen=True)
class Spec:
    """A specification. Seconds and bytes; ``source`` is the text that it was read from, ``digest`` the hash of that.

    ``shift`` is that of the shifted geometric mean. ``give_up``: a contender that ran out of time or memory is not
    tried again on that instance, nor on larger ones of the family.
    """

    name: str
    title: str
    task: str
    time_limit: float
    memory_limit: int | None = None
    repeats: int = 1
    shift: float = 0.01
    threads: int = 1
    give_up: bool = True
    instances: tuple[Instances, ...] = ()
    contenders: tuple[Entrant, ...] = ()
    goals: tuple[Goal, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        require_text(self, "name", "title", "task")
        require_positive(self, "time_limit", "shift")
        require_counts(self, 1, "repeats", "threads")

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return sha256(self.source.encode()).hexdigest()

    @classmethod
    def parse(cls, source: str, file: str = "") -> Spec:
        """Return the specification in a TOML text; names are not looked up yet (`check_names`).

        Errors: `BadInput` with the file, the key, the value and what to do.
        """
        with naming(file):
            return _spec(source)

    @classmethod
    def read(cls, path_or_name: str | PathLike[str]) -> Spec:
        """Return the specification in a file, or the one of that name that comes with fairopt, with names looked up.

        Errors: `BadInput`, as `parse`.
        """
        source, file = source_of(path_or_name, SHIPPED, "fairopt bench list")
        spec = cls.parse(source, file)
        with naming(file):
            check_names(spec)
        return spec


def shipped() -> dict[str, str]:
    """Return the text of each specification that comes with fairopt, by name."""
    return shipped_in(SHIPPED)


def specifications() -> Iterator[tuple[str, ...]]:
    """Yield (name, task, title) of each specification that comes with fairopt."""
    for name, text in shipped().items():
        spec = Spec.parse(text, f"{name}.toml")
        yield name, spec.task, spec.title


def check_names(spec: Spec) -> None:
    """Refuse unknown tasks, families, contenders and settings, and contenders that do not answer the task.

    A plug-in that cannot be loaded is left for the run, which records it as missing.
    """
    with naming(place="key 'task'"):
        task = configuring.task(spec.task)
    for number, block in enumerate(spec.instances, start=1):
        with naming(place=f"instances {number}, key 'family'"):
            configuring.family(block.family)
    for number, entrant in enumerate(spec.contenders, start=1):
        place = f"contenders {number} ({entrant.label})"
        try:
            with naming(place=f"{place}, key 'contender'"):
                made = configuring.contender(entrant.contender, entrant.settings, f"{place}, settings")
        except NotInstalled:
            continue
        if not {spec.task, task.name} & set(made.tasks):
            remedy = f"It answers {', '.join(made.tasks) or 'nothing'}"
            raise BadInput(f"{entrant.contender!r} does not answer {spec.task!r}", place=place, remedy=remedy)


# -- reading the text --------------------------------------------------------------------------------------------------
def _spec(source: str) -> Spec:
    data = plain(parse_toml(source), "")
    known = ["schema", *(each.name for each in fields(Spec) if each.name != "source")]
    check_keys(data, known, ("schema", "name", "task", "time_limit", "instances", "contenders"), "the top level")
    check_schema(data, SCHEMA)
    instances = tables_of(Instances, data, "instances", _with_lists)
    contenders = tables_of(Entrant, data, "contenders", lambda each, _: {"label": each.get("contender"), **each})
    goals = tables_of(Goal, data, "goals", _in_bytes) if data.get("goals", []) != [] else ()
    _check_labels(contenders, goals)
    if "memory_limit" in data:
        data["memory_limit"] = _bytes(data["memory_limit"], "key 'memory_limit'")
    top = {"title": data["name"], **{key: data[key] for key in data if key not in ("instances", "contenders", "goals")}}
    spec: Spec = decode(Spec, top)
    return replace(spec, instances=instances, contenders=contenders, goals=goals, source=source)


def _with_lists(block: dict[str, Any], _: str) -> dict[str, Any]:
    """Return a block of instances in which seeds and parameters are lists: one value may stand by itself."""
    parameters = block.get("parameters", {})
    if isinstance(parameters, dict):
        parameters = {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
    seeds = block.get("seeds", [0])
    return {**block, "parameters": parameters, "seeds": seeds if isinstance(seeds, list) else [seeds]}


def _in_bytes(goal: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a goal whose limit, where it is one of memory, is a number of bytes."""
    if goal.get("statistic") != Statistic.BYTES.value or "limit" not in goal:
        return goal
    return {**goal, "limit": _bytes(goal["limit"], f"{place}, key 'limit'")}


def _bytes(value: Any, place: str) -> int:
    """Return a number of bytes, or "8 GB", "512 MiB" as such."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    size = int(float(found[1]) * _UNITS.get(found[2].upper(), 0)) if found else 0
    if not size:
        raise BadInput(f"got {shown(value)}", place=place, remedy='Give bytes, or a string such as "8 GB" or "512 MiB"')
    return size


# -- what cannot be ----------------------------------------------------------------------------------------------------
def _check_labels(contenders: Sequence[Entrant], goals: Sequence[Goal]) -> None:
    labels = [each.label for each in contenders]
    check_different("contenders", labels)
    for number, goal in enumerate(goals, start=1):
        for key, label in (("contender", goal.contender), ("against", goal.against or labels[0])):
            if label not in labels:
                place = f"goals {number}, key {key!r}"
                raise BadInput(f"there is no {shown(label)}", place=place, remedy=nearest(label, labels))
