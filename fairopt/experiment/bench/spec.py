"""A benchmark's specification: one TOML file that says which contenders answer which instances, and within what.

docs/formats/benchmark.md describes every key. A task, a family or a contender is named by its entry point, or as
MODULE:NAME.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from itertools import product
from typing import Any, ClassVar

from fairopt.codec import UNWRITTEN
from fairopt.errors import BadInput, NotInstalled, require
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.spec import (
    Entrant,
    Specification,
    check_entry,
    entrant_in,
    require_values,
)
from fairopt.problem.files.storage import naming
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown, within

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Statistic(Enum):
    """What a goal limits. ``SECONDS``, ``BYTES`` and ``GAP`` must be at most the limit, ``RATIO`` at least."""

    SECONDS = "seconds"  # to the answer, its evidence included: build, solve and certify
    RATIO = "ratio"  # seconds of the contender named by ``against`` over our own
    BYTES = "bytes"  # peak memory of the process
    GAP = "gap"  # how far the objective is below what is proven possible, as a part of it


@dataclass(frozen=True)
class Instances:
    """Instances of one family. A block of them has every combination of ``parameters`` and ``seeds``.

    Those that a goal is about are of ``family`` ("": any) and of ``size`` (None: any), with parameters as listed.
    """

    family: str = ""
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    size: int | None = within(None, least=0)

    def __post_init__(self) -> None:
        for name, values in self.parameters.items():
            require_values(values, f"parameter {name!r}")
        require_values(self.seeds, "key 'seeds'")
        require(min(self.seeds) >= 0, shown(min(self.seeds)), "key 'seeds'", "Give whole numbers, at least 0")
        check_entry(self)

    def combinations(self) -> list[tuple[dict[str, Any], int]]:
        """Return (parameters, seed) of each instance; the last parameter changes fastest, seeds faster still."""
        names = list(self.parameters)
        chosen = product(*self.parameters.values())
        return [(dict(zip(names, values, strict=True)), seed) for values in chosen for seed in self.seeds]

    def has(self, instance: Instance) -> bool:
        """Whether an instance is one of those that a goal is about."""
        fits = self.family in ("", instance.family) and self.size in (None, instance.size)
        return fits and all(instance.parameters.get(name) in values for name, values in self.parameters.items())


@dataclass(frozen=True)
class Goal:
    """A row of the table of goals: on the instances chosen, the statistic of the contender keeps the limit.

    ``contender`` and ``against`` are labels; ``against`` goes with the statistic `Statistic.RATIO` only.

    No specification says the rest, which is what came of it, as text: what was ``asked`` and ``measured``, and how;
    whether it was ``reached`` (None: not decided), and the instance that decided it.
    """

    text: str
    contender: str
    statistic: Statistic
    limit: float = within(MISSING, above=0)
    against: str = ""
    instances: Instances = field(default_factory=Instances)
    asked: str = field(default="", metadata=UNWRITTEN)
    measured: str = field(default="", metadata=UNWRITTEN)
    how: str = field(default="", metadata=UNWRITTEN)
    reached: bool | None = field(default=None, metadata=UNWRITTEN)
    instance: Instance | None = field(default=None, metadata=UNWRITTEN)

    def __post_init__(self) -> None:
        check_entry(self, "text")
        if (self.statistic is Statistic.RATIO) != bool(self.against):
            problem = "it goes with the statistic 'ratio', and with no other"
            remedy = "Name the contender whose seconds are divided by those of the first"
            raise BadInput(problem, place="key 'against'", remedy=remedy)


def _block(block: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a block of instances in which seeds and parameters are lists: one value may stand by itself."""
    check_keys(block, ("family", "parameters", "seeds"), ("family",), place)
    if isinstance(block["family"], str):
        require(bool(block["family"].strip()), shown(block["family"]), f"{place}, key 'family'", "Give a string")
    seeds = block.get("seeds", [0])
    return {**_with_lists(block), "seeds": seeds if isinstance(seeds, list) else [seeds]}


def _goal(goal: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a goal whose limit, where it is one of memory, is a number of bytes."""
    if isinstance(chosen := goal.get("instances"), dict):
        check_keys(chosen, ("family", "size", "parameters"), (), f"{place}, key 'instances'")
        goal = {**goal, "instances": _with_lists(chosen)}
    if goal.get("statistic") != Statistic.BYTES.value or "limit" not in goal:
        return goal
    return {**goal, "limit": _bytes(goal["limit"], f"{place}, key 'limit'")}


def _with_lists(instances: dict[str, Any]) -> dict[str, Any]:
    parameters = instances.get("parameters", {})
    if isinstance(parameters, dict):
        parameters = {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
    return {**instances, "parameters": parameters}


def _bytes(value: Any, place: str) -> int:
    """Return a number of bytes, or "8 GB", "512 MiB" as such."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value) if isinstance(value, str) else None
    size = int(float(found[1]) * _UNITS.get(found[2].upper(), 0)) if found else 0
    if not size:
        raise BadInput(f"got {shown(value)}", place=place, remedy='Give bytes, or a string such as "8 GB" or "512 MiB"')
    return size


@dataclass(frozen=True, kw_only=True)
class Spec(Specification):
    """A specification of a benchmark. Seconds and bytes.

    ``shift`` is that of the shifted geometric mean. ``give_up``: a contender that ran out of time or memory is not
    tried again on that instance, nor on larger ones of the family.
    """

    package = "fairopt.benchmarks.specs"
    lister = "fairopt bench list"
    required = ("task", "time_limit", "instances", "contenders")
    tables: ClassVar = {
        "instances": (Instances, _block),
        "contenders": (Entrant, lambda each, place: entrant_in(each, place, "contender", "settings", "largest")),
        "goals": (Goal, _goal),
    }

    task: str
    time_limit: float = within(MISSING, above=0)
    memory_limit: int | None = None
    repeats: int = within(1, least=1)
    shift: float = within(0.01, above=0)
    threads: int = within(1, least=1)
    give_up: bool = True
    instances: tuple[Instances, ...] = ()
    contenders: tuple[Entrant, ...] = ()
    goals: tuple[Goal, ...] = ()

    def __post_init__(self) -> None:
        check_entry(self, "name", "title", "task")

    def check(self) -> None:
        """Refuse unknown tasks, families, contenders and settings, and contenders that do not answer the task.

        A plug-in that cannot be loaded is left for the run, which records it as missing.
        """
        with naming(place="key 'task'"):
            task = kinds.task(self.task)
        for number, block in enumerate(self.instances, start=1):
            with naming(place=f"instances {number}, key 'family'"):
                kinds.family(block.family)
        for number, entrant in enumerate(self.contenders, start=1):
            place = f"contenders {number} ({entrant.label})"
            try:
                with naming(place=f"{place}, key 'contender'"):
                    made = kinds.contender(entrant.name, entrant.settings, f"{place}, settings")
            except NotInstalled:
                continue
            if not {self.task, task.name} & set(made.tasks):
                remedy = f"It answers {', '.join(made.tasks) or 'nothing'}"
                raise BadInput(f"{entrant.name!r} does not answer {self.task!r}", place=place, remedy=remedy)

    @classmethod
    def _prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("goals") == []:
            del data["goals"]
        if "memory_limit" in data:
            data["memory_limit"] = _bytes(data["memory_limit"], "key 'memory_limit'")
        return data

    def _check_labels(self) -> None:
        labels = [each.label for each in self.contenders]
        for number, goal in enumerate(self.goals, start=1):
            for key, label in (("contender", goal.contender), ("against", goal.against or labels[0])):
                if label not in labels:
                    place = f"goals {number}, key {key!r}"
                    raise BadInput(f"there is no {shown(label)}", place=place, remedy=nearest(label, labels))


def specifications() -> Iterator[tuple[str, ...]]:
    """Yield (name, task, title) of each specification that comes with fairopt."""
    for name, text in Spec.shipped().items():
        spec = Spec.parse(text, f"{name}.toml")
        yield name, spec.task, spec.title
