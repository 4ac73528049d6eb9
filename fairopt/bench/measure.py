"""One measurement: a job that can be sent to any process, and the record that comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairopt.bench import configuring, records
from fairopt.bench.answers import read_answer
from fairopt.bench.kinds import Contender, Judgement
from fairopt.bench.machine import Provenance, environment, writable
from fairopt.bench.process import Ending, run_child
from fairopt.bench.records import Clock, Environment, InstanceKey, Judged, Measurement, MeasurementStatus, Stages, Trial
from fairopt.codec import decode, encode

#: Characters of a message that are kept.
MESSAGE = 2000


@dataclass(frozen=True)
class Job:
    """A measurement to be made; small, and the same wherever it is done. ``reference`` is what the task compares with.

    ``skipped`` says why it is not to be made; then it is only written down.
    """

    trial: Trial
    provenance: Provenance
    reference: Any = None
    skipped: str = ""


def reference(task: str, key: InstanceKey) -> Any:
    """Return what answers of this instance are compared with."""
    return configuring.task(task).reference(configuring.drawn(key))


def settings_of(contender: Contender) -> dict[str, Any]:
    """Return all settings of a contender, defaults included, as they are written down."""
    plain: dict[str, Any] = encode(contender, finite=True) if is_dataclass(contender) else {}
    return plain


def measure(job: Job) -> tuple[Measurement, Environment]:
    """Do a job in another process, judge the answer in this one, and return what is written down of it."""
    trial = job.trial
    here = environment(job.provenance, trial.threads)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    if job.skipped:
        return _record(trial, here, started, Ending(MeasurementStatus.SKIPPED, job.skipped), None), here
    with TemporaryDirectory(prefix="fairopt-bench-") as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(encode(trial)))
        ended = run_child(folder, time_limit=trial.time_limit, memory_limit=trial.memory_limit, threads=trial.threads)
        judgement = None
        if ended.status is MeasurementStatus.SOLVED:
            ended, judgement = _judged(job, folder, ended)
    return _record(trial, here, started, ended, judgement), here


def _judged(job: Job, folder: Path, ended: Ending) -> tuple[Ending, Judgement | None]:
    """Return how it ended once the answer is judged."""
    task = configuring.task(job.trial.task)
    try:
        judgement = task.judge(configuring.drawn(job.trial.instance), read_answer(folder), job.reference)
    except Exception as error:  # noqa: BLE001 - a failing judge must neither end the run nor accept the answer
        return replace(ended, status=MeasurementStatus.ERROR, message=f"judging failed: {error!r}"), None
    taken = sum(ended.reported["seconds"][stage]["wall"] for stage in ("build", "solve"))
    status, message = MeasurementStatus.SOLVED, ended.message
    if not judgement.proven:
        status, message = MeasurementStatus.ERROR, f"nothing proves how good the answer is: {judgement.note}"
    elif not judgement.accepted:
        status, message = MeasurementStatus.WRONG, judgement.note
    elif taken > job.trial.time_limit:
        message = f"answered after {taken:.3g} s; the limit is {job.trial.time_limit:g} s"
        status = MeasurementStatus.TIMEOUT
    return replace(ended, status=status, message=message), judgement


def _short(message: str) -> str:
    """Return the beginning of a message, in characters that can be written."""
    return writable(message if len(message) <= MESSAGE else message[:MESSAGE] + " ...")


def _record(trial: Trial, here: Environment, started: str, ended: Ending, judgement: Judgement | None) -> Measurement:
    reported = ended.reported
    judged = None
    if judgement is not None:
        violation, gap, objective = (float(each) for each in (judgement.violation, judgement.gap, judgement.objective))
        judged = Judged(violation, gap, objective, _short(judgement.note))
    return Measurement(
        **vars(trial),
        libraries=reported.get("libraries", {}),
        status=ended.status,
        message=_short(ended.message),
        seconds=decode(Stages, reported.get("seconds", {}), "seconds"),
        peak_bytes=None if ended.status in records.PASSING else ended.peak_bytes or None,
        base_bytes=reported.get("base_bytes"),
        judgement=judged,
        reference_job=decode(Clock | None, reported.get("reference_job"), "reference_job"),
        started=started,
        environment=here.digest,
    )
