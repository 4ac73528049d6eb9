"""A benchmark's specification: one TOML file that says which contenders answer which instances, and within what.

Every key is described in docs/benchmarks.md. A name of a task, family or contender is an entry point's, or MODULE:NAME.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from importlib import resources
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

from fairopt.bench.configuring import made, settings_checked
from fairopt.bench.kinds import Contender, Family, Task
from fairopt.bench.spec_values import amount, flag, reader, table, tables, text, whole
from fairopt.errors import BadInput, NotInstalled
from fairopt.problem.files.market import read_text
from fairopt.problem.files.market_schema import naming
from fairopt.problem.files.toml_json import parse_toml
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown

SCHEMA = 1
#: Where the specifications that come with fairopt are.
SHIPPED = "fairopt.benchmarks.specs"
_TOP = (
    *("schema", "name", "title", "task", "time_limit", "memory_limit", "repeats", "shift", "threads", "give_up"),
    *("instances", "contenders", "goals"),
)
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
    parameters: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]

    def combinations(self) -> list[tuple[dict[str, Any], int]]:
        """Return (parameters, seed) of each instance; the last parameter changes fastest, seeds faster still."""
        names = list(self.parameters)
        chosen = product(*self.parameters.values())
        return [(dict(zip(names, values, strict=True)), seed) for values in chosen for seed in self.seeds]


@dataclass(frozen=True)
class Entrant:
    """A contender as a specification enters it: ``label`` is what tables call it, unique within the specification.

    ``largest`` is the size beyond which it is not tried; None: it is always tried.
    """

    contender: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    largest: int | None = None

    def make(self) -> Contender:
        """Return the contender with its settings. Errors: `BadInput`, and `NotInstalled` for a broken plug-in."""
        contender: Contender = made("fairopt.contenders", self.contender, Contender, self.settings)
        return contender


@dataclass(frozen=True)
class Goal:
    """A row of the table of goals: on the instances chosen, the statistic of the contender keeps the limit.

    ``contender`` and ``against`` are labels. Instances are chosen by ``family`` ("": all), ``size`` (None: all) and
    ``parameters`` (values that must be equal).
    """

    text: str
    contender: str
    statistic: Statistic
    limit: float
    against: str = ""
    family: str = ""
    size: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def chooses(self, family: str, size: int, parameters: Mapping[str, Any]) -> bool:
        """Whether an instance counts for this goal."""
        fits = self.family in ("", family) and self.size in (None, size)
        return fits and all(parameters.get(name) == value for name, value in self.parameters.items())


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
    instances: tuple[Instances, ...]
    contenders: tuple[Entrant, ...]
    memory_limit: int | None = None
    repeats: int = 1
    shift: float = 0.01
    threads: int = 1
    give_up: bool = True
    goals: tuple[Goal, ...] = ()
    source: str = ""

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return sha256(self.source.encode()).hexdigest()

    def make_task(self) -> Task:
        """Return the task. Errors: `BadInput`, `NotInstalled`."""
        task: Task = made("fairopt.tasks", self.task, Task, {})
        return task

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
    folder = resources.files(SHIPPED)
    found = sorted((each for each in folder.iterdir() if each.name.endswith(".toml")), key=lambda each: each.name)
    return {each.name.removesuffix(".toml"): each.read_text(encoding="utf-8") for each in found}


def check_names(spec: Spec) -> None:
    """Refuse tasks, families, contenders and settings that there are not, and contenders that have another task.

    A plug-in that cannot be loaded is left for the run, which records it as missing.
    """
    with _at("key 'task'"):
        spec.make_task()
    for number, block in enumerate(spec.instances, start=1):
        with _at(f"instances {number}, key 'family'"):
            made("fairopt.instances", block.family, Family, {})
    for number, entrant in enumerate(spec.contenders, start=1):
        place = f"contenders {number} ({entrant.label})"
        try:
            with _at(f"{place}, key 'contender'"):
                plain: Contender = made("fairopt.contenders", entrant.contender, Contender, {})
            settings_checked(type(plain), entrant.settings, f"{place}, settings")
        except NotInstalled:
            continue
        if spec.task not in plain.tasks and spec.make_task().name not in plain.tasks:
            raise BadInput(
                f"{entrant.contender!r} does not answer {spec.task!r}",
                place=place,
                remedy=f"It answers {', '.join(plain.tasks) or 'nothing'}",
            )


def _at(place: str) -> Any:
    from fairopt.bench.configuring import placed

    return placed(place)


def _source(path_or_name: str | PathLike[str]) -> tuple[str, str]:
    """Return the text of a file or a shipped specification, and what messages call it."""
    given = Path(path_or_name)
    if given.is_file():
        return read_text(given), str(given)
    known = shipped()
    name = str(path_or_name)
    if name in known:
        return known[name], f"{name}.toml"
    if given.suffix or len(given.parts) > 1:
        raise BadInput("there is no such file", file=name, remedy="`fairopt bench list` lists what comes with fairopt")
    raise BadInput(
        f"there is no specification {shown(name)}", remedy=f"{nearest(name, known, 'specification')} Or give a file"
    )


# -- reading the text --------------------------------------------------------------------------------------------------
def _spec(source: str) -> Spec:
    data = parse_toml(source)
    check_keys(data, _TOP, ("schema", "name", "task", "time_limit", "instances", "contenders"), "the top level")
    if data["schema"] != SCHEMA:
        raise BadInput(f"got {shown(data['schema'])}", place="key 'schema'", remedy=f"Write schema = {SCHEMA}")
    read = reader(data, "")
    name = read("name", text)
    entrants = tuple(_entrant(each, place) for each, place in tables(data, "contenders"))
    _refuse_twins(entrants)
    return Spec(
        name=name,
        title=read("title", text, name),
        task=read("task", text),
        time_limit=read("time_limit", amount(above=0)),
        memory_limit=read("memory_limit", _bytes, None),
        repeats=read("repeats", whole(least=1), 1),
        shift=read("shift", amount(above=0), Spec.shift),
        threads=read("threads", whole(least=1), 1),
        give_up=read("give_up", flag, True),
        instances=tuple(_instances(each, place) for each, place in tables(data, "instances")),
        contenders=entrants,
        goals=tuple(_goal(each, place, entrants) for each, place in tables(data, "goals", required=False)),
        source=source,
    )


def _instances(data: Mapping[str, Any], place: str) -> Instances:
    check_keys(data, ("family", "parameters", "seeds"), ("family",), place)
    read = reader(data, place)
    parameters = {}
    for name, values in read("parameters", table, {}).items():
        many = values if isinstance(values, list) else [values]
        inside = f"{place}, parameter {name!r}"
        if not many:
            raise BadInput("got an empty list", place=inside, remedy="Give at least one value")
        parameters[name] = tuple(_plain(value, inside) for value in many)
        _refuse_repeated(parameters[name], inside)
    seeds = read("seeds", _seeds, (0,))
    _refuse_repeated(seeds, f"{place}, key 'seeds'")
    return Instances(read("family", text), parameters, seeds)


def _entrant(data: Mapping[str, Any], place: str) -> Entrant:
    check_keys(data, ("contender", "label", "settings", "largest"), ("contender",), place)
    read = reader(data, place)
    name = read("contender", text)
    settings = read("settings", table, {})
    return Entrant(
        contender=name,
        label=read("label", text, name),
        settings={key: _plain(value, f"{place}, settings, key {key!r}") for key, value in settings.items()},
        largest=read("largest", whole(least=0), None),
    )


def _goal(data: Mapping[str, Any], place: str, entrants: Sequence[Entrant]) -> Goal:
    keys = ("text", "contender", "statistic", "limit", "against", "instances")
    check_keys(data, keys, keys[:4], place)
    read = reader(data, place)
    labels = [each.label for each in entrants]
    statistic = read("statistic", _statistic)
    if (statistic is Statistic.RATIO) != ("against" in data):
        raise BadInput(
            "it goes with the statistic 'ratio', and with no other",
            place=f"{place}, key 'against'",
            remedy="Name the contender whose seconds are divided by those of the first",
        )
    chosen = read("instances", table, {})
    inside = f"{place}, instances"
    check_keys(chosen, ("family", "size", "parameters"), (), inside)
    pick = reader(chosen, inside)
    return Goal(
        text=read("text", text),
        contender=read("contender", _one_of(labels)),
        statistic=statistic,
        limit=float(read("limit", _bytes if statistic is Statistic.BYTES else amount(above=0))),
        against=read("against", _one_of(labels), ""),
        family=pick("family", text, ""),
        size=pick("size", whole(least=0), None),
        parameters={key: _plain(value, inside) for key, value in pick("parameters", table, {}).items()},
    )


def _refuse_twins(entrants: Sequence[Entrant]) -> None:
    seen: set[str] = set()
    for number, each in enumerate(entrants, start=1):
        if each.label in seen:
            raise BadInput(
                f"the label {each.label!r} stands twice", place=f"contenders {number}", remedy="Give labels that differ"
            )
        seen.add(each.label)


def _refuse_repeated(values: Sequence[Any], place: str) -> None:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise BadInput(f"{shown(value)} stands twice", place=place, remedy="Leave one of them out")


def _plain(value: Any, place: str) -> Any:
    """Return a setting as JSON would have it; decimals become floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(each, place) for each in value]
    if isinstance(value, str | int | float | bool):
        return value
    raise BadInput(f"got {shown(value)}", place=place, remedy="Give a number, a string, true or false, or a list")


def _seeds(value: Any, place: str) -> tuple[int, ...]:
    many = value if isinstance(value, list) else [value]
    if not many:
        raise BadInput("got an empty list", place=place, remedy="Give at least one seed")
    return tuple(whole(least=0)(each, place) for each in many)


def _statistic(value: Any, place: str) -> Statistic:
    known = {each.value: each for each in Statistic}
    return known[_one_of(list(known))(value, place)]


def _one_of(names: Sequence[str]) -> Callable[[Any, str], str]:
    def read(value: Any, place: str) -> str:
        if value not in names:
            raise BadInput(f"there is no {shown(value)}", place=place, remedy=nearest(value, names))
        return str(value)

    return read


def _bytes(value: Any, place: str) -> int:
    """Return a number of bytes, or "8 GB", "512 MiB" as such."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    if (
        found is None
        or found[2].upper() not in _UNITS
        or not (bytes_ := int(float(found[1]) * _UNITS[found[2].upper()]))
    ):
        raise BadInput(f"got {shown(value)}", place=place, remedy='Give bytes, or a string such as "8 GB" or "512 MiB"')
    return bytes_
