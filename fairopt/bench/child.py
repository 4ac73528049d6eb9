"""The process of a measurement: it draws the instance, lets the contender answer, and reports what that took.

`fairopt.bench.measure` starts it, stops it at the limits, reads its stages on a pipe, and judges the answer's file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO, TypeVar

from fairopt.bench import configuring, memory
from fairopt.bench.answers import write_answer
from fairopt.bench.kinds import Contender, Task, TimedOut
from fairopt.bench.machine import now, reference_job, since, versions
from fairopt.bench.records import MeasurementStatus, Trial
from fairopt.codec import decode
from fairopt.errors import NotInstalled

T = TypeVar("T")


@dataclass
class _Report:
    """What the parent process reads: a line as each stage begins and one at the end, with all that is known then."""

    pipe: TextIO
    found: dict[str, Any] = field(default_factory=lambda: {"status": "solved", "message": "", "seconds": {}})

    def stage(self, name: str) -> None:
        self.pipe.write(json.dumps({"stage": name, **self.found}) + "\n")
        self.pipe.flush()

    def timed(self, stage: str, do: Callable[[], T]) -> T:
        """Return what ``do`` returns; its seconds are those of the stage."""
        self.stage(stage)
        began = now()
        made = do()
        self.found["seconds"][stage] = asdict(since(began))
        return made

    def failed(self, status: MeasurementStatus, message: object) -> None:
        self.found |= {"status": status.value, "message": str(message)}


def main(folder: Path, pipe: TextIO) -> None:
    """Do the trial in ``folder``/job.json."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    trial = decode(Trial, json.loads((folder / "job.json").read_text()))
    report = _Report(pipe)
    try:
        _measure(trial, folder, report)
    except TimedOut as error:
        report.failed(MeasurementStatus.TIMEOUT, error)
    except MemoryError as error:
        report.failed(MeasurementStatus.MEMORY, error)
    except NotInstalled as error:
        report.failed(MeasurementStatus.MISSING, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a contender raises is kept as how it ended
        traceback.print_exc()  # into the log, whose end is kept
        report.failed(MeasurementStatus.ERROR, f"{type(error).__name__}: {error}")
    # the peak is taken twice: before the answer was written, and since then
    report.found["peak_bytes"] = max(report.found.get("peak_bytes", 0), memory.peak(os.getpid()))
    report.stage("ended")


def _measure(trial: Trial, folder: Path, report: _Report) -> None:
    report.stage("setup")
    found = report.found
    contender = configuring.contender(trial.contender, trial.settings)
    if (reason := contender.missing()) is not None:
        raise NotInstalled(reason)
    found["libraries"] = versions(contender.libraries)
    task = configuring.task(trial.task)
    instance = configuring.drawn(trial.instance)
    prepared = contender.prepare(task.name, instance.problem)
    del instance  # only what the contender holds on to is counted
    limits: dict[str, Any] = {"time_limit": trial.time_limit, "threads": trial.threads}
    found["message"] = _warmed_up(contender, task, limits)
    found["reference_job"] = asdict(reference_job())
    gc.collect()
    memory.forget_peak()
    found["base_bytes"] = memory.resident(os.getpid())
    built = report.timed("build", lambda: contender.build(task.name, prepared, **limits))
    answer = report.timed("solve", lambda: contender.solve(built))
    report.stage("answer")
    found["peak_bytes"] = memory.peak(os.getpid())
    write_answer(answer, folder)  # before "certify", which might change it
    memory.forget_peak()
    if contender.certifies:
        gc.collect()
        report.timed("certify", lambda: contender.certify(built, answer))


def _warmed_up(contender: Contender, task: Task, limits: Mapping[str, Any]) -> str:
    """Let the contender answer a tiny problem, untimed; return what went wrong, which does not end the measurement."""
    if (tiny := task.warm_up()) is None:
        return ""
    try:
        built = contender.build(task.name, contender.prepare(task.name, tiny), **limits)
        answer = contender.solve(built)
        if contender.certifies:
            contender.certify(built, answer)
    except Exception as error:  # noqa: BLE001 - the message goes with the measurement
        return f"warming up failed: {error!r}"
    return ""


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the parent has ended, which closes it
    os._exit(1)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "w") as to_parent:
        main(Path(sys.argv[1]), to_parent)
    sys.stdout.flush()
    os._exit(0)  # all is written; some libraries crash as they are unloaded, or wait for threads
