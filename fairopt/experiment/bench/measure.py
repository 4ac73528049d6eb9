"""One measurement: a job that can be sent to any process, done in a process of its own, judged, and written down.

That process is started with pinned threads, watched, and stopped hard at its limits.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from fairopt.backends.wire import taken_from
from fairopt.codec import decode, encode
from fairopt.errors import NotCapable
from fairopt.experiment import machine
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.kinds import Instance, Judgement
from fairopt.experiment.bench.records import PASSING, STAGES, Measurement
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Clock, Environment, pinned, writable

#: Characters of a message that are kept.
MESSAGE = 2000
#: Seconds between two looks at the memory of the process.
LOOK = 0.02
#: How long after its limit a contender is killed, which until then may stop by itself: a part of it, and at least.
GRACE, LEAST_GRACE = 0.1, 1.0
#: Seconds for what is not timed: imports, drawing the instance, warming up; and writing the answer down.
SETUP = 900.0
_TAIL = 400


def reference(task: str, key: Instance) -> Any:
    """Return what answers of this instance are compared with."""
    return kinds.task(task).reference(kinds.drawn(key))


def measure(
    trial: Measurement, run: Environment, compared: Any = None, skipped: str = ""
) -> tuple[Measurement, Environment]:
    """Do a trial in another process, judge the answer in this one, and return what is written down of it.

    ``run`` is the environment that the run was started in, ``compared`` what the task compares answers with. What is
    ``skipped`` is only noted, with the reason.
    """
    here = run.here(trial.threads)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    status, message, judgement = TrialStatus.SKIPPED, skipped, None
    reported: Mapping[str, Any] = {}
    peak = 0
    if not skipped:
        with TemporaryDirectory(prefix="fairopt-bench-") as name:
            folder = Path(name)
            (folder / "job.json").write_text(json.dumps(encode(trial)))
            child = run_child(
                folder, time_limit=trial.time_limit, memory_limit=trial.memory_limit, threads=trial.threads
            )
            status, message, reported, peak = child.status, child.message, child.reported, child.peak
            if status is TrialStatus.SOLVED:
                status, said, judgement = _judged(trial, folder, reported, compared)
                message = message if said is None else said
    return replace(
        trial,
        libraries=reported.get("libraries", {}),
        status=status,
        message=_short(message),
        seconds=dict.fromkeys(STAGES) | decode(dict[str, Clock | None], reported.get("seconds", {}), "seconds"),
        peak_bytes=None if status in PASSING else peak or None,
        base_bytes=reported.get("base_bytes"),
        judgement=judgement,
        reference_job=decode(Clock | None, reported.get("reference_job"), "reference_job"),
        started=started,
        environment=here.digest,
    ), here


def _judged(
    trial: Measurement, folder: Path, reported: Mapping[str, Any], compared: Any
) -> tuple[TrialStatus, str | None, Judgement | None]:
    """Return what an answer comes to, why (None: nothing is wrong), and what it is worth."""
    try:
        with (folder / "answer").open("rb") as file:
            answer = taken_from(file.read)
        found = kinds.task(trial.task).judge(kinds.drawn(trial.instance), answer, compared)
        judgement = Judgement(
            accepted=bool(found.accepted),
            violation=float(found.violation),
            gap=float(found.gap),
            objective=float(found.objective),
            note=_short(found.note),
            proven=bool(found.proven),
        )
    except Exception as error:  # noqa: BLE001 - a failing judge must neither end the run nor accept the answer
        return TrialStatus.ERROR, f"judging failed: {error!r}", None
    taken = sum(reported["seconds"][stage]["wall"] for stage in ("build", "solve"))
    if not found.proven:
        return TrialStatus.ERROR, f"nothing proves how good the answer is: {found.note}", judgement
    if not found.accepted:
        return TrialStatus.WRONG, found.note, judgement
    if taken > trial.time_limit:
        late = f"answered after {taken:.3g} s; the limit is {trial.time_limit:g} s"
        return TrialStatus.TIMEOUT, late, judgement
    return TrialStatus.SOLVED, None, judgement


def _short(message: str) -> str:
    return writable(message if len(message) <= MESSAGE else message[:MESSAGE] + " ...")


# -- the process of a measurement, from outside ------------------------------------------------------------------------
def run_child(folder: Path, *, time_limit: float, memory_limit: int | None, threads: int) -> _Child:
    """Run the job in ``folder`` and return how it ended; the process and all that it started are then gone.

    The time limit holds for build and solve together, and again for certify. Errors: `NotCapable` on systems that do
    not stop groups of processes as POSIX does.
    """
    if not hasattr(os, "killpg"):
        raise NotCapable("measuring needs processes that are limited and stopped as on Linux and macOS; run it there")
    reading, writing = os.pipe()
    kills = machine.kills()
    with (folder / "log.txt").open("wb") as log, os.fdopen(reading, "rb", buffering=0) as pipe:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fairopt.experiment.bench.child", str(folder), str(writing)],
                stdin=subprocess.PIPE,  # closed when this process ends, and the child then ends too
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                env={**os.environ, **pinned(threads)},
                start_new_session=True,  # Ctrl-C reaches this process only, which then stops the child
            )
        finally:
            os.close(writing)
        child = _Child(process, time_limit, memory_limit)
        try:
            reported = child.watch(pipe)
        finally:
            # also after an answer: processes that a contender left behind would disturb the next measurement
            _kill(process)
    if not reported:
        tail = (folder / "log.txt").read_bytes()[-_TAIL:].decode(errors="replace").strip()
        child.message = f"{_how(process.returncode)} in {child.stage}{': ' if tail else ''}{tail}"
        ran_out = process.returncode == -signal.SIGKILL and machine.kills() > kills
        child.status = TrialStatus.MEMORY if ran_out else TrialStatus.ERROR
    return child


class _Child:
    """A process that does a job, watched while it runs: what it reports, its memory and its time.

    ``status`` and ``message`` say how it ended; SOLVED means that it wrote an answer. ``reported`` is the last line
    that it sent, ``peak`` the most memory in bytes.
    """

    def __init__(self, process: subprocess.Popen[bytes], time_limit: float, memory_limit: int | None) -> None:
        self.process, self.time_limit, self.memory_limit = process, time_limit, memory_limit
        self.status, self.message = TrialStatus.ERROR, ""
        self.stage, self.peak, self.used = "setup", 0, 0.0
        self.began = monotonic()
        self.reported: Mapping[str, Any] = {}

    def watch(self, pipe: Any) -> bool:
        """Wait until it has reported its end, or is over a limit; False where it ended without a report."""
        text = b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                # asked first, so that what was sent before the end is still read
                gone = self.process.poll() is not None
                if selector.select(LOOK):
                    read = os.read(pipe.fileno(), 1 << 16)
                    if not read:
                        return False
                    *lines, text = (text + read).split(b"\n")
                    if any(self._ended(json.loads(line)) for line in lines):
                        return True
                elif gone:  # a process that it left behind holds the pipe open
                    return False
                if self._over():
                    return True

    def _ended(self, data: Mapping[str, Any]) -> bool:
        self.reported = data
        if data["stage"] == "ended":
            self.status, self.message = TrialStatus(data["status"]), data["message"]
            self.peak = max(self.peak, data["peak_bytes"])
            return True
        # solve has what build left of the limit; certify has a limit of its own
        self.used = monotonic() - self.began if data["stage"] == "solve" else 0.0
        self.stage, self.began = data["stage"], monotonic()
        return False

    def _over(self) -> bool:
        timed = self.stage in ("build", "solve", "certify")
        now = machine.resident(self.process.pid)
        if timed:
            self.peak = max(self.peak, now)
        if self.memory_limit is not None and now > self.memory_limit:
            self.message = f"{now:,} bytes in {self.stage}; the limit is {self.memory_limit:,}"
            self.status, self.peak = TrialStatus.MEMORY, max(self.peak, now)
            return True
        limit = self.time_limit + max(LEAST_GRACE, GRACE * self.time_limit) if timed else SETUP
        passed = self.used + monotonic() - self.began
        if passed > limit:
            allowed = f"the limit is {self.time_limit:g} s" if timed else f"{SETUP:g} s are allowed"
            self.status = TrialStatus.TIMEOUT if timed else TrialStatus.ERROR
            self.message = f"stopped in {self.stage} after {passed:.3g} s; {allowed}"
            return True
        return False


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # all processes have ended
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def _how(code: int) -> str:
    if code >= 0:
        return f"the process ended with status {code}"
    hint = ", as the system does where memory runs out," if -code == signal.SIGKILL else ""
    return f"the process was ended by {signal.Signals(-code).name}{hint}"
