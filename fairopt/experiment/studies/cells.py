"""The cells of a study's grid: what each plays, its key, what is kept of it, and playing them.

A file of cells (``*.jsonl``) holds an environment's line and a line for each cell that ended. Its key is the hash of
all that decides the outcome: policy and options, trace, cluster, load, error, mechanics, seed, length, window, and the
version of the code. A cell whose key is in the file is not played again.
"""

from __future__ import annotations

import json
import os
import platform
import traceback
from collections.abc import Collection, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import fairopt
from fairopt.codec import encode
from fairopt.errors import BadInput, FairoptError
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.runner import failed, side_by_side
from fairopt.experiment.spec import Entrant
from fairopt.experiment.studies.playing import Observed, play
from fairopt.experiment.studies.spec import StudySetting, StudySpec, policy_of
from fairopt.experiment.studies.traces import drawn, origin
from fairopt.policy import Policy

#: Libraries whose versions an environment has, beside fairopt and NumPy.
LIBRARIES = ("highspy", "scipy")
#: The shard of a study that is not cut into parts.
WHOLE = slice(None)
#: Folders and modules of fairopt that no outcome depends on.
ASIDE = (
    *("benchmarks", "certificates", "cli", "compare", "experiment/bench", "experiment/plot", "proofs", "properties"),
    "testing",
)


@dataclass(frozen=True, kw_only=True)
class StudyCell:
    """A cell of a study: where it stands in the grid, by labels, the hash of its inputs, and how it ended, if it has.

    ``seconds`` are wall time, ``environment`` the digest of where it was played.
    """

    kind: ClassVar[str] = "cell"

    study: str
    policy: str
    trace: str
    cluster: str
    load: float | None
    error: str
    mechanics: str
    seed: int
    key: str
    status: TrialStatus
    message: str = ""
    observed: Observed | None = None
    seconds: float = 0.0
    started: str = ""
    environment: str = ""

    @property
    def ended(self) -> bool:
        """Whether it was tried: played, or failed."""
        return self.status in (TrialStatus.PLAYED, TrialStatus.FAILED)

    @property
    def setting(self) -> tuple[Any, ...]:
        """What all policies play alike, without the seed: the `key` of a `StudySetting`."""
        return self.trace, self.cluster, self.load, self.error, self.mechanics

    @property
    def called(self) -> str:
        """What messages call it."""
        load = "" if self.load is None else f"load {self.load:g}"
        parts = (self.policy, self.trace, self.cluster, load, self.error, self.mechanics)
        return ", ".join([*(part for part in parts if part), f"seed {self.seed}"])


#: The classes of what a file of cells holds.
KINDS = (Environment, StudyCell)


def planned(spec: StudySpec) -> list[StudyCell]:
    """Return the cells of a study, not played; the policies change fastest, so that they share a trace."""
    made = [(player, policy_of(player)) for player in spec.policies]
    return [
        StudyCell(
            study=spec.name,
            policy=player.label,
            trace=setting.source.label,
            cluster=setting.place.label,
            load=setting.load,
            error=setting.error.label,
            mechanics=setting.mechanics.label,
            seed=seed,
            key=_key(spec, setting, player, policy, seed),
            status=TrialStatus.SKIPPED,
        )
        for setting in spec.settings()
        for seed in spec.seeds
        for player, policy in made
    ]


def _key(spec: StudySpec, setting: StudySetting, player: Entrant, policy: Policy, seed: int) -> str:
    inputs = [
        [player.name, dict(player.settings), origin(type(policy).__module__)],
        setting.source.content(),
        setting.place.content(),
        [setting.load, seed, spec.length, spec.rounds, seed == spec.seeds[0]],
        encode(spec.window),
        # labels do not matter
        [value for name, value in encode(setting.error).items() if name != "label"],
        [value for name, value in encode(setting.mechanics).items() if name != "label"],
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


# -- playing them ------------------------------------------------------------------------------------------------------
def shard_of(text: str, place: str = "--shard") -> slice:
    """Return the shard of a text i/n: every n-th cell, beginning with the i-th. Errors: `BadInput`.

    >>> list("abcdefg"[shard_of("2/3")])
    ['b', 'e']
    """
    number, slash, of = text.partition("/")
    if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
        return slice(int(number) - 1, None, int(of))
    raise BadInput(f"got {text!r}", place=place, remedy="Write i/n, such as 1/8, with i from 1 to n")


def run_study(
    spec: StudySpec,
    executor: Executor | None = None,
    *,
    concurrent: int = 1,
    done: Collection[str] = (),
    known: Collection[str] = (),
    shard: slice = WHOLE,
) -> Iterator[Environment | StudyCell]:
    """Play the cells of a study whose keys are not ``done``; yield each when it ends, after its environment's record.

    ``executor`` plays them, this process if None, ``concurrent`` at once; ``shard`` is a part of the `planned` ones.
    ``known`` are digests of environments that need not be yielded again. A cell that fails is yielded with its error.
    Errors: `NotSolved` where an executor broke.
    """
    todo = [each for each in planned(spec)[shard] if each.key not in done]
    where, told = Environment.starting(spec.source, LIBRARIES), {*known}
    jobs = ((cell, play_cell, (spec, cell, where)) for cell in todo)
    for cell, future in side_by_side(jobs, executor, concurrent):
        played, machine = _outcome(future, cell, where)
        if machine.digest not in told:
            told.add(machine.digest)
            yield machine
        yield played


def play_cell(spec: StudySpec, cell: StudyCell, where: Environment) -> tuple[StudyCell, Environment]:
    """Play a cell in this process, and return it as it ended; an error of any kind is one of the ways to end."""
    machine = where.here(threads=1)
    began, started = perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    found: dict[str, Any] = {"status": TrialStatus.PLAYED}
    try:
        setting = next(each for each in spec.settings() if each.key == cell.setting)
        player = next(each for each in spec.policies if each.label == cell.policy)
        policy = policy_of(player)
        if _key(spec, setting, player, policy, cell.seed) != cell.key:
            problem = "fairopt, or a file of the study, is another here than where the study was begun"
            raise BadInput(problem, place=platform.node(), remedy="Give all workers the same fairopt and files")
        trace = drawn(setting.source, setting.place, setting.load, setting.error, cell.seed)
        found["observed"] = play(
            policy,
            trace,
            setting.place.made(),
            length=spec.length,
            mechanics=setting.mechanics,
            rounds=spec.rounds,
            rows=spec.window.rows(len(trace.jobs)),
            detailed=cell.seed == spec.seeds[0],
        )
    except FairoptError as error:
        found |= {"status": TrialStatus.FAILED, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever a policy raises is kept as how the cell ended
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
        found |= {"status": TrialStatus.FAILED, "message": message}
    taken: dict[str, Any] = {"seconds": perf_counter() - began, "started": started, "environment": machine.digest}
    return replace(cell, **found, **taken), machine


def _outcome(
    future: Future[tuple[StudyCell, Environment]], cell: StudyCell, where: Environment
) -> tuple[StudyCell, Environment]:
    try:
        return future.result()
    except BrokenExecutor as error:  # the whole pool: which cell it was, nobody knows
        raise failed(f"a worker ended while {cell.called} or another cell was played", error) from error
    except Exception as error:  # noqa: BLE001 - a cluster gave up on this cell; the others go on
        machine = where.here(threads=1)
        message = f"its worker was lost: {error!r}"
        return replace(cell, status=TrialStatus.FAILED, message=message, environment=machine.digest), machine


def progress_text(done: int, total: int, failures: int, seconds: float, fresh: int) -> str:
    """Return how far a study is, and how long the rest will take at the pace of the ``fresh`` cells in ``seconds``."""
    left = seconds / fresh * (total - done) if fresh else float("nan")
    failed = f"{failures} failed" if failures else ""
    parts = [f"{done} of {total} cells", failed, f"{_time(left)} left" if fresh and done < total else ""]
    return ", ".join(part for part in parts if part)


def _time(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    if hours:
        return f"{hours} h {rest // 60:02d} min"
    return f"{rest // 60} min {rest % 60:02d} s" if rest >= 60 else f"{rest} s"
