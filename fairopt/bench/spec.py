"""A benchmark's specification: one TOML file that says which contenders answer which instances, and within what.

Every key is described in docs/benchmarks.md. A name of a task, family or contender is an entry point's, or MODULE:NAME.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from importlib import resources
from itertools import product
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from fairopt.bench import configuring
from fairopt.codec import decode
from fairopt.errors import BadInput, NotInstalled, require
from fairopt.problem.files.documents import parse_toml
from fairopt.problem.files.storage import naming, read_text
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
        _require_text(self, "family")
        for name, values in self.parameters.items():
            _require_values(values, f"parameter {name!r}")
        _require_values(self.seeds, "key 'seeds'")
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
        _require_text(self, "contender", "label")
        _require_counts(self, 0, "largest")


@dataclass(frozen=True)
class InstanceFilter:
    """Which instances a goal is about: of ``family`` ("": any), of ``size`` (None: any), with equal ``parameters``."""

    family: str = ""
    size: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_counts(self, 0, "size")


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
        _require_text(self, "text")
        _require_positive(self, "limit")
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
        _require_text(self, "name", "title", "task")
        _require_positive(self, "time_limit", "shift")
        _require_counts(self, 1, "repeats", "threads")

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
        source, file = _source(path_or_name)
        spec = cls.parse(source, file)
        with naming(file):
            check_names(spec)
        return spec


def shipped() -> dict[str, str]:
    """Return the text of each specification that comes with fairopt, by name."""
    found = {each.name: each for each in resources.files(SHIPPED).iterdir() if each.name.endswith(".toml")}
    return {name.removesuffix(".toml"): found[name].read_text(encoding="utf-8") for name in sorted(found)}


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


def _source(path_or_name: str | PathLike[str]) -> tuple[str, str]:
    given = path_or_name if isinstance(path_or_name, Path) else Path(path_or_name)
    if given.is_file():
        with naming(given):
            return read_text(given), str(given)
    known = shipped()
    name = str(path_or_name)
    if name in known:
        return known[name], f"{name}.toml"
    if given.suffix or len(given.parts) > 1:
        raise BadInput("there is no such file", file=name, remedy="`fairopt bench list` lists what comes with fairopt")
    remedy = f"Give a file, or a name. {nearest(name, known, 'specification')}"
    raise BadInput(f"there is no specification {shown(name)}", remedy=remedy)


# -- reading the text --------------------------------------------------------------------------------------------------
def _spec(source: str) -> Spec:
    data = _plain(parse_toml(source), "")
    known = ["schema", *(each.name for each in fields(Spec) if each.name != "source")]
    check_keys(data, known, ("schema", "name", "task", "time_limit", "instances", "contenders"), "the top level")
    if (schema := data.pop("schema")) != SCHEMA:
        raise BadInput(f"got {shown(schema)}", place="key 'schema'", remedy=f"Write schema = {SCHEMA}")
    instances = _blocks(Instances, data, "instances", _with_lists)
    contenders = _blocks(Entrant, data, "contenders", lambda each, _: {"label": each.get("contender"), **each})
    goals = _blocks(Goal, data, "goals", _in_bytes) if data.get("goals", []) != [] else ()
    _check_labels(contenders, goals)
    if "memory_limit" in data:
        data["memory_limit"] = _bytes(data["memory_limit"], "key 'memory_limit'")
    top = {"title": data["name"], **{key: data[key] for key in data if key not in ("instances", "contenders", "goals")}}
    spec: Spec = decode(Spec, top)
    return replace(spec, instances=instances, contenders=contenders, goals=goals, source=source)


def _blocks(
    kind: type[T], data: Mapping[str, Any], key: str, prepared: Callable[[dict[str, Any], str], dict[str, Any]]
) -> tuple[T, ...]:
    """Return what the tables [[key]] describe; each is ``prepared`` for the codec, which takes one form only."""
    given = data[key]
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise BadInput(f"got {shown(given)}", place=f"key {key!r}", remedy=f"Give tables [[{key}]]")
    places = [f"{key} {number}" for number in range(1, len(given) + 1)]
    return tuple(decode(kind, prepared(each, place), place) for each, place in zip(given, places, strict=True))


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


def _plain(value: Any, place: str) -> Any:
    """Return what TOML holds in the types of JSON; decimals become floats."""
    if isinstance(value, dict):
        return {key: _plain(each, f"{place}, key {key!r}".removeprefix(", ")) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, place) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str | int):
        return value
    raise BadInput(f"got {shown(value)}", place=place, remedy=_PLAIN_VALUE)


# -- what cannot be ----------------------------------------------------------------------------------------------------
def _check_labels(contenders: Sequence[Entrant], goals: Sequence[Goal]) -> None:
    labels = [each.label for each in contenders]
    for number, label in enumerate(labels, start=1):
        if label in labels[: number - 1]:
            place = f"contenders {number}"
            raise BadInput(f"the label {label!r} stands twice", place=place, remedy="Give labels that differ")
    for number, goal in enumerate(goals, start=1):
        for key, label in (("contender", goal.contender), ("against", goal.against or labels[0])):
            if label not in labels:
                place = f"goals {number}, key {key!r}"
                raise BadInput(f"there is no {shown(label)}", place=place, remedy=nearest(label, labels))


def _require(of: object, keys: Sequence[str], fits: Callable[[Any], bool], remedy: str) -> None:
    for key in keys:
        if not fits(value := getattr(of, key)):
            raise BadInput(f"got {shown(value)}", place=f"key {key!r}", remedy=remedy)


def _require_text(of: object, *keys: str) -> None:
    _require(of, keys, lambda value: bool(value.strip()), "Give a string")


def _require_positive(of: object, *keys: str) -> None:
    _require(of, keys, lambda value: isfinite(value) and value > 0, "Give a number above 0")


def _require_counts(of: object, least: int, *keys: str) -> None:
    _require(of, keys, lambda value: value is None or value >= least, f"Give a whole number, at least {least}")


def _require_values(values: Sequence[Any], place: str) -> None:
    """Refuse an empty list, values that stand twice, and tables among them."""
    if not values:
        raise BadInput("got an empty list", place=place, remedy="Give at least one value")
    for number, value in enumerate(values):
        if isinstance(value, Mapping):
            raise BadInput(f"got {shown(value)}", place=place, remedy=_PLAIN_VALUE)
        if value in values[:number]:
            raise BadInput(f"{shown(value)} stands twice", place=place, remedy="Leave one of them out")
