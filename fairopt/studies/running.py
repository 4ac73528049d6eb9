"""The grid of a study on an executor: what is left to be played, in which order, and what becomes of it."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from fairopt.bench.executors import Here, failed, submitted
from fairopt.bench.machine import Provenance, environment
from fairopt.bench.records import Environment
from fairopt.errors import BadInput, FairoptError
from fairopt.studies.cells import CellKey, CellStatus, CellTask, PlayedCell, tasks
from fairopt.studies.playing import play
from fairopt.studies.spec import StudySpec
from fairopt.studies.traces import drawn

#: Libraries whose versions an environment has, beside fairopt and NumPy.
LIBRARIES = ("highspy", "scipy")


@dataclass(frozen=True)
class Shard:
    """A part of a study: every ``of``-th cell, beginning with the ``number``-th."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str, place: str = "--shard") -> Shard:
        """Return the shard of a text i/n. Errors: `BadInput`."""
        number, slash, of = text.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return cls(int(number), int(of))
        raise BadInput(f"got {text!r}", place=place, remedy="Write i/n, such as 1/8, with i from 1 to n")

    def __call__(self, given: Sequence[CellTask]) -> list[CellTask]:
        """Return the tasks of this shard."""
        return list(given[self.number - 1 :: self.of])


def run_study(
    spec: StudySpec,
    executor: Executor | None = None,
    *,
    concurrent: int = 1,
    done: Collection[str] = (),
    known: Collection[str] = (),
    shard: Shard = Shard(),
) -> Iterator[Environment | PlayedCell]:
    """Play the cells of a study whose keys are not ``done``; yield each when it ends, after its environment's record.

    ``executor`` plays them, this process if None, ``concurrent`` at once. ``known`` are digests of environments that
    need not be yielded again. A cell that fails is yielded with its error. Errors: `NotSolved` where an executor broke.
    """
    waiting = iter([each for each in shard(list(tasks(spec))) if each.cell.key not in done])
    where, told = Provenance.of(spec.source, LIBRARIES), {*known}
    place = executor or Here()
    pending: dict[Future[tuple[PlayedCell, Environment]], CellKey] = {}
    try:
        while True:
            while len(pending) < concurrent and (task := next(waiting, None)) is not None:
                pending[submitted(place, play_cell, task, where)] = task.cell
            if not pending:
                return
            ended, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                played, machine = _outcome(future, pending.pop(future), where)
                if machine.digest not in told:
                    told.add(machine.digest)
                    yield machine
                yield played
    finally:
        for future in pending:
            future.cancel()


def play_cell(task: CellTask, where: Provenance) -> tuple[PlayedCell, Environment]:
    """Play a cell in this process, and return it as it ended; an error of any kind is one of the ways to end."""
    machine = environment(where, threads=1)
    began, started = perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    found: dict[str, Any] = {"status": CellStatus.PLAYED}
    setting, spec = task.setting, task.spec
    try:
        trace = drawn(setting.source, setting.place, setting.load, setting.error, task.cell.seed)
        found["observed"] = play(
            task.policy,
            trace,
            setting.place.made(),
            length=spec.length,
            mechanics=setting.costs.made(),
            rounds=spec.rounds,
            rows=spec.window.rows(len(trace.jobs)),
            detailed=task.detailed,
        )
    except FairoptError as error:
        found |= {"status": CellStatus.FAILED, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever a policy raises is kept as how the cell ended
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
        found |= {"status": CellStatus.FAILED, "message": message}
    taken: dict[str, Any] = {"seconds": perf_counter() - began, "started": started, "environment": machine.digest}
    return PlayedCell(**vars(task.cell), **found, **taken), machine


def _outcome(
    future: Future[tuple[PlayedCell, Environment]], cell: CellKey, where: Provenance
) -> tuple[PlayedCell, Environment]:
    try:
        return future.result()
    except BrokenExecutor as error:  # the whole pool: which cell it was, nobody knows
        raise failed(f"a worker ended while {cell.called} or another cell was played", error) from error
    except Exception as error:  # noqa: BLE001 - a cluster gave up on this cell; the others go on
        machine = environment(where, threads=1)
        lost: dict[str, Any] = {"status": CellStatus.FAILED, "message": f"its worker was lost: {error!r}"}
        return PlayedCell(**vars(cell), **lost, environment=machine.digest), machine


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
