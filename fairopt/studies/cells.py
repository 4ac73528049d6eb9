"""The cells of a study's grid: what each plays, its key, and what is kept of it.

A file of cells (``*.jsonl``) holds an environment's line and a line for each cell that ended. Its key is the hash of
all that decides the outcome: policy and options, trace, cluster, load, error, mechanics, seed, length, window, and the
version of the code. A cell whose key is in the file is not played again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import fairopt
from fairopt.bench.records import Environment
from fairopt.codec import encode
from fairopt.policy import Policy
from fairopt.studies.playing import Observed
from fairopt.studies.spec import Player, StudySetting, StudySpec
from fairopt.studies.traces import origin

#: Folders and modules of fairopt that no outcome depends on.
ASIDE = ("bench", "benchmarks", "certificates", "cli", "compare", "plot", "proofs", "properties", "testing")


class CellStatus(Enum):
    """How a cell ended."""

    PLAYED = "played"
    FAILED = "failed"  # an error; the others go on


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """Where a cell stands in the grid, by labels, and the hash of its inputs."""

    study: str
    policy: str
    trace: str
    cluster: str
    load: float | None
    error: str
    mechanics: str
    seed: int
    key: str

    @property
    def setting(self) -> tuple[Any, ...]:
        """What all policies play alike, without the seed."""
        return self.trace, self.cluster, self.load, self.error, self.mechanics

    @property
    def called(self) -> str:
        """What messages call it."""
        load = "" if self.load is None else f"load {self.load:g}"
        parts = (self.policy, self.trace, self.cluster, load, self.error, self.mechanics)
        return ", ".join([*(part for part in parts if part), f"seed {self.seed}"])


@dataclass(frozen=True, kw_only=True)
class PlayedCell(CellKey):
    """A cell that ended. ``seconds`` are wall time, ``environment`` the digest of where it was played."""

    kind: ClassVar[str] = "cell"

    status: CellStatus
    message: str = ""
    observed: Observed | None = None
    seconds: float = 0.0
    started: str = ""
    environment: str = ""


#: The classes of what a file of cells holds.
KINDS = (Environment, PlayedCell)


@dataclass(frozen=True)
class CellTask:
    """A cell that is to be played, with all that a worker needs: it can be pickled."""

    cell: CellKey
    policy: Policy
    setting: StudySetting
    spec: StudySpec = field(repr=False)
    detailed: bool = False


def tasks(spec: StudySpec) -> Iterator[CellTask]:
    """Yield the cells of a study; the policies change fastest, so that they share a trace."""
    made = [(player, player.made()) for player in spec.policies]
    for setting in spec.settings():
        for seed in spec.seeds:
            for player, policy in made:
                names = setting.names
                cell = CellKey(
                    study=spec.name,
                    policy=player.label,
                    trace=names["trace"],
                    cluster=names["cluster"],
                    load=setting.load,
                    error=names["error"],
                    mechanics=names["mechanics"],
                    seed=seed,
                    key=_key(spec, setting, player, policy, seed),
                )
                yield CellTask(cell, policy, setting, spec, detailed=seed == spec.seeds[0])


def _key(spec: StudySpec, setting: StudySetting, player: Player, policy: Policy, seed: int) -> str:
    inputs = [
        [player.policy, dict(player.options), origin(type(policy).__module__)],
        setting.source.content(),
        setting.place.content(),
        [setting.load, seed, spec.length, spec.rounds, seed == spec.seeds[0]],
        encode(spec.window),
        # labels do not matter
        [value for name, value in encode(setting.error).items() if name != "label"],
        [value for name, value in encode(setting.costs).items() if name != "label"],
        code_version(),
    ]
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@cache
def code_version() -> str:
    """Return the hash of the parts of fairopt that decide what is played and measured."""
    top = Path(fairopt.__file__).parent
    found = sha256()
    for folder, folders, files in os.walk(top, followlinks=True):
        inside = Path(folder).relative_to(top)
        folders[:] = sorted(each for each in folders if each != "__pycache__" and str(inside / each) not in ASIDE)
        for name in sorted(files):
            if name.endswith((".py", ".csv", ".gz", ".toml")):
                found.update(str(inside / name).encode())
                found.update((Path(folder) / name).read_bytes())
    return found.hexdigest()
