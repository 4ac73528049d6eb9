"""One measurement: a job that can be sent anywhere, and what comes back from where it was done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairopt.bench import configuring
from fairopt.bench.answers import read_answer
from fairopt.bench.kinds import Contender, Instance, Judgement
from fairopt.bench.machine import Told, environment, writable
from fairopt.bench.process import Ended, run_child
from fairopt.bench.records import Clock, Environment, InstanceKey, Judged, Measurement, Stages, Status
from fairopt.codec import decode, encode

#: Characters of a message that are kept.
MESSAGE = 2000


@dataclass(frozen=True)
class Job:
    """A measurement to be made; small, and the same wherever it is done. ``reference`` is what the task compares with.

    ``skipped`` says why it is not to be made: then it is only written down.
    """

    spec: str
    spec_digest: str
    task: str
    contender: str
    label: str
    settings: Mapping[str, Any]
    instance: InstanceKey
    repeat: int
    time_limit: float
    memory_limit: int | None
    threads: int
    concurrent: int
    told: Told
    reference: Any = None
    skipped: str = ""


def drawn(key: InstanceKey) -> Instance:
    """Return the instance again. Errors: `ValueError` where its content is another than that of the key."""
    instance = configuring.family(key.family).draw(key.seed, key.parameters)
    if key.digest and instance.digest != key.digest:
        raise ValueError(f"{key.name} has the digest {instance.digest} on this machine, and not {key.digest}")
    return instance


def key_of(instance: Instance) -> InstanceKey:
    """Return what is written down of an instance."""
    return InstanceKey(
        family=instance.family,
        name=instance.name,
        size=instance.size,
        seed=instance.seed,
        parameters=dict(instance.parameters),
        digest=instance.digest,
    )


def reference(task: str, key: InstanceKey) -> Any:
    """Return what answers of this instance are compared with."""
    return configuring.task(task).reference(drawn(key))


def settings_of(contender: Contender) -> dict[str, Any]:
    """Return all settings of a contender, defaults included, as they are written down."""
    if not is_dataclass(contender):
        return {}
    plain: dict[str, Any] = encode(contender, finite=True)
    return plain


def measure(job: Job) -> tuple[Measurement, Environment]:
    """Do a job in a process of its own, judge the answer in this one, and return what is written down of it."""
    here = environment(job.told, job.threads)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    if job.skipped:
        return _record(job, here, started, Ended(Status.SKIPPED, job.skipped), None), here
    with TemporaryDirectory(prefix="fairopt-bench-") as folder:
        asked = {
            "contender": job.contender,
            "settings": job.settings,
            "task": job.task,
            "family": job.instance.family,
            "parameters": job.instance.parameters,
            "seed": job.instance.seed,
            "digest": job.instance.digest,
            "time_limit": job.time_limit,
            "threads": job.threads,
        }
        (Path(folder) / "job.json").write_text(json.dumps(asked))
        ended = run_child(Path(folder), time_limit=job.time_limit, memory_limit=job.memory_limit, threads=job.threads)
        judgement = None
        if ended.status is Status.SOLVED:
            ended, judgement = _judged(job, Path(folder), ended)
    return _record(job, here, started, ended, judgement), here


def _judged(job: Job, folder: Path, ended: Ended) -> tuple[Ended, Judgement | None]:
    """Return how it ended once the answer is judged."""
    task = configuring.task(job.task)
    try:
        judgement = task.judge(drawn(job.instance), read_answer(folder), job.reference)
    except Exception as error:  # noqa: BLE001 - a judge that fails must not end the run, nor let the answer count
        return Ended(Status.ERROR, f"judging failed: {error!r}", ended.peak_bytes, ended.told), None
    status, message = Status.SOLVED, ended.message
    if not judgement.accepted:
        status, message = Status.WRONG, judgement.note
    if not judgement.proven:
        status, message = Status.ERROR, f"nothing proves how good the answer is: {judgement.note}"
    taken = sum(ended.told["seconds"][stage]["wall"] for stage in ("build", "solve"))
    if status is Status.SOLVED and taken > job.time_limit:
        status, message = Status.TIMEOUT, f"answered after {taken:.3g} s; the limit is {job.time_limit:g} s"
    return Ended(status, message, ended.peak_bytes, ended.told), judgement


def _short(message: str) -> str:
    """Return what can be written of a message that anybody may have made: its beginning."""
    return writable(message if len(message) <= MESSAGE else message[:MESSAGE] + " ...")


def _record(job: Job, here: Environment, started: str, ended: Ended, judgement: Judgement | None) -> Measurement:
    told = ended.told
    clock = told.get("reference_job")
    return Measurement(
        spec=job.spec,
        task=job.task,
        contender=job.contender,
        settings=job.settings,
        libraries=told.get("libraries", {}),
        instance=job.instance,
        repeat=job.repeat,
        status=ended.status,
        message=_short(ended.message),
        seconds=decode(Stages, told.get("seconds", {}), "seconds"),
        peak_bytes=None if ended.status in (Status.MISSING, Status.SKIPPED) else ended.peak_bytes or None,
        base_bytes=told.get("base_bytes"),
        judgement=None
        if judgement is None
        else Judged(
            float(judgement.violation), float(judgement.gap), float(judgement.objective), _short(judgement.note)
        ),
        reference_job=None if clock is None else decode(Clock, clock, "reference_job"),
        started=started,
        environment=here.digest,
        label=job.label,
        spec_digest=job.spec_digest,
        time_limit=job.time_limit,
        memory_limit=job.memory_limit,
        threads=job.threads,
        concurrent=job.concurrent,
    )
