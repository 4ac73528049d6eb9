"""The process of a measurement: it draws the instance, lets the contender answer, and reports what that took.

`measure` starts it, stops it at the limits, reads its stages on a pipe, and judges the answer's file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, TypeVar

from fairopt.backends.wire import framed
from fairopt.codec import decode
from fairopt.errors import NotInstalled, OutOfTime
from fairopt.experiment import machine
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.kinds import Contender, Task
from fairopt.experiment.bench.records import Measurement
from fairopt.experiment.journal import TrialStatus

T = TypeVar("T")


def main(folder: Path, pipe: TextIO) -> None:
    """Do the trial in ``folder``/job.json; write a line as each stage begins and one at the end, with what is known."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    trial = decode(Measurement, json.loads((folder / "job.json").read_text()))
    found: dict[str, Any] = {"status": TrialStatus.SOLVED.value, "message": "", "seconds": {}}

    def say(stage: str) -> None:
        pipe.write(json.dumps({"stage": stage, **found}) + "\n")
        pipe.flush()

    def failed(status: TrialStatus, message: object) -> None:
        found.update(status=status.value, message=str(message))

    try:
        _measure(trial, folder, found, say)
    except OutOfTime as error:
        failed(TrialStatus.TIMEOUT, error)
    except MemoryError as error:
        failed(TrialStatus.MEMORY, error)
    except NotInstalled as error:
        failed(TrialStatus.MISSING, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a contender raises is kept as how it ended
        traceback.print_exc()  # into the log, whose end is kept
        failed(TrialStatus.ERROR, f"{type(error).__name__}: {error}")
    # the peak is taken twice: before the answer was written, and since then
    found["peak_bytes"] = max(found.get("peak_bytes", 0), machine.peak(os.getpid()))
    say("ended")


def _measure(trial: Measurement, folder: Path, found: dict[str, Any], say: Callable[[str], None]) -> None:
    def timed(stage: str, do: Callable[[], T]) -> T:
        say(stage)
        began = machine.now()
        made = do()
        found["seconds"][stage] = asdict(machine.since(began))
        return made

    say("setup")
    contender = kinds.contender(trial.contender, trial.settings)
    if (reason := contender.missing()) is not None:
        raise NotInstalled(reason)
    found["libraries"] = machine.versions(contender.libraries)
    task = kinds.task(trial.task)
    instance = kinds.drawn(trial.instance)
    prepared = contender.prepare(task.name, instance.problem)
    del instance  # only what the contender holds on to is counted
    limits: dict[str, Any] = {"time_limit": trial.time_limit, "threads": trial.threads}
    found["message"] = _warmed_up(contender, task, limits)
    found["reference_job"] = asdict(machine.reference_job())
    gc.collect()
    machine.forget_peak()
    found["base_bytes"] = machine.resident(os.getpid())
    built = timed("build", lambda: contender.build(task.name, prepared, **limits))
    answer = timed("solve", lambda: contender.solve(built))
    say("answer")
    found["peak_bytes"] = machine.peak(os.getpid())
    # data only, nothing that could be executed by the judge; before "certify", which might change it
    (folder / "answer").write_bytes(framed(answer))
    machine.forget_peak()
    if contender.certifies:
        gc.collect()
        timed("certify", lambda: contender.certify(built, answer))


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
