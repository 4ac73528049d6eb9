"""The data files of this package, and the shared parts of their readers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.problem.labels import aligned, nearest
from fairopt.problem.market import Market

_FOLDER = Path(__file__).parent
_SUFFIXES = (".csv", ".gz", ".toml", ".md")


class Throughput(NamedTuple):
    """One job as measured: training steps per second by GPU type on ``scale_factor`` GPUs together.

    0 means that the job does not fit on the type, None that it was not measured. ``batch_size`` is None where a model
    has a single setting.

    >>> Throughput("VAE", None, 1, True, {"K80": Fraction(2), "V100": Fraction(5)}).over("K80")["V100"]
    Fraction(5, 2)
    """

    model: str
    batch_size: int | None
    scale_factor: int
    consolidated: bool
    steps_per_s: Mapping[str, Fraction | None]

    @property
    def name(self) -> str:
        """The job as Gavel writes it, such as "ResNet-18 (batch size 64)"."""
        return self.model if self.batch_size is None else f"{self.model} (batch size {self.batch_size})"

    def over(self, slow: str) -> dict[str, Fraction]:
        """Return the speedups over a type that it runs on, by type, where it was measured."""
        unit = self.steps_per_s[slow]
        assert unit
        return {name: steps / unit for name, steps in self.steps_per_s.items() if steps is not None}


def dataset_path(name: str) -> Path:
    """Return the path of a data file of this package, such as "gavel.toml"; `BadInput` where there is none.

    Errors: `BadInput` where there is none.

    >>> dataset_path("gavel.toml").name
    'gavel.toml'
    """
    names = sorted(entry.name for entry in _FOLDER.iterdir() if entry.suffix in _SUFFIXES)
    if name not in names:
        raise BadInput(f"there is no data file {name!r}", remedy=nearest(name, names, "file"))
    return _FOLDER / name


def records(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV data file, without the lines that start with #, which name its source."""
    with dataset_path(name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def market_of_choices(
    choices: Mapping[str, Mapping[str, Fraction]], capacity: Mapping[str, Any], weight: Any, demand: Any
) -> Market:
    """Return the market of users, each with a measured throughput by type, on the types that ``capacity`` names.

    ``weight`` and ``demand`` are by user (dictionary or Series) or in the users' order.
    """
    remedy = "Give a dictionary such as {'K80': 60, 'V100': 12}"
    require(isinstance(capacity, Mapping), type(capacity).__name__, "capacity", remedy)
    users = list(choices)
    known = {name for row in choices.values() for name in row}
    for name in capacity:
        if known and name not in known:
            raise BadInput(f"no throughputs on {name!r}", place="capacity", remedy=nearest(name, sorted(known), "type"))
    return Market.of(
        [[row[name] for name in capacity] for row in choices.values()],
        list(capacity.values()),
        weight=None if weight is None else aligned(weight, users, "weight", "user"),
        demand=None if demand is None else aligned(demand, users, "demand", "user"),
        users=users,
        types=list(capacity),
    )


def by_user(chosen: Mapping[str, object] | Iterable[object], names: Sequence[str], what: str) -> list[str]:
    """Return the users' names: the keys of a dictionary, else the names of the chosen items, which must differ."""
    if isinstance(chosen, Mapping):
        return list(chosen)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        remedy = "Give a dictionary from users' names to what they run"
        raise BadInput(f"{twice!r} stands twice", place=what, remedy=remedy)
    return list(names)
