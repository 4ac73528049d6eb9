"""The process of a measurement: it draws the instance, lets the contender answer, and writes down what it took.

Started by `fairopt.bench.measure`, which stops it at the limits. It says on a pipe which stage it is in, and writes the
answer to a file; whether that is any good is not for this process to say.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from fairopt.bench import configuring, memory
from fairopt.bench.answers import write_answer
from fairopt.bench.kinds import Contender, Task, TimedOut
from fairopt.bench.machine import now, reference_job, since, versions
from fairopt.bench.records import Status, Trial
from fairopt.codec import decode
from fairopt.errors import NotInstalled


class _Telling:
    """The pipe to the parent: a line for each stage as it begins, and one for how it ended, with what is known then."""

    def __init__(self, pipe: TextIO, found: Mapping[str, Any]) -> None:
        self.pipe, self.found = pipe, found

    def stage(self, name: str) -> None:
        self._line({"stage": name, **self.found})

    def ended(self) -> None:
        self._line({"stage": "ended", **self.found})

    def _line(self, data: Mapping[str, Any]) -> None:
        self.pipe.write(json.dumps(data) + "\n")
        self.pipe.flush()


def main(folder: Path, pipe: TextIO) -> None:
    """Do the trial in ``folder``/job.json."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    trial = decode(Trial, json.loads((folder / "job.json").read_text()))
    found: dict[str, Any] = {"status": Status.SOLVED.value, "message": "", "seconds": {}}
    tell = _Telling(pipe, found)
    try:
        _measure(trial, folder, tell, found)
    except TimedOut as error:
        found |= _status(Status.TIMEOUT, error)
    except MemoryError as error:
        found |= _status(Status.MEMORY, error)
    except NotInstalled as error:
        found |= _status(Status.MISSING, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a contender raises is kept as how it ended
        import traceback

        traceback.print_exc()  # to the log, for who wants to know more than the message
        found |= _status(Status.ERROR, error)
    # the most before the answer was written down, and after that
    found["peak_bytes"] = max(found.get("peak_bytes", 0), memory.peak(os.getpid()))
    tell.ended()


def _measure(trial: Trial, folder: Path, tell: _Telling, found: dict[str, Any]) -> None:
    tell.stage("setup")
    contender = configuring.contender(trial.contender, trial.settings)
    reason = contender.missing()
    if reason is not None:
        raise NotInstalled(reason)
    found["libraries"] = versions(contender.libraries)
    task = configuring.task(trial.task)
    instance = configuring.drawn(trial.instance)
    prepared = contender.prepare(task.name, instance.problem)
    del instance  # what the contender does not hold on to is not counted
    limits: dict[str, Any] = {"time_limit": trial.time_limit, "threads": trial.threads}
    found["message"] = _warmed_up(contender, task, limits)
    found["reference_job"] = asdict(reference_job())
    gc.collect()
    memory.forget_peak()
    found["base_bytes"] = memory.resident(os.getpid())
    seconds = found["seconds"]
    tell.stage("build")
    began = now()
    built = contender.build(task.name, prepared, **limits)
    seconds["build"] = asdict(since(began))
    tell.stage("solve")
    began = now()
    answer = contender.solve(built)
    seconds["solve"] = asdict(since(began))
    tell.stage("answer")
    found["peak_bytes"] = memory.peak(os.getpid())
    write_answer(answer, folder)  # before "certify", which might change it
    memory.forget_peak()
    if contender.certifies:
        gc.collect()
        tell.stage("certify")
        began = now()
        contender.certify(built, answer)
        seconds["certify"] = asdict(since(began))


def _warmed_up(contender: Contender, task: Task, limits: Mapping[str, Any]) -> str:
    """Let the contender answer a tiny problem, untimed; return what went wrong there, which is no reason to stop."""
    tiny = task.warm_up()
    if tiny is None:
        return ""
    try:
        built = contender.build(task.name, contender.prepare(task.name, tiny), **limits)
        answer = contender.solve(built)
        if contender.certifies:
            contender.certify(built, answer)
    except Exception as error:  # noqa: BLE001 - it is told with the measurement
        return f"warming up failed: {error!r}"
    return ""


def _status(status: Status, error: BaseException) -> dict[str, str]:
    text = str(error)
    return {
        "status": status.value,
        "message": text if status is not Status.ERROR else f"{type(error).__name__}: {text}",
    }


def _end_with_parent() -> None:
    """End this process when the one that started it has ended: its end of the standard input is then closed."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "w") as to_parent:
        main(Path(sys.argv[1]), to_parent)
    sys.stdout.flush()
    os._exit(0)  # some libraries crash on their way out, or wait for threads; what matters has been written
