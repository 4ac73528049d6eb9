"""A study on a Dask scheduler and workers that are processes of their own, where workers and the command are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from study_examples import cells_of, spec_file, spec_text, without_times, words

from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.studies.cells import StudyCell, run_study
from fairopt.experiment.studies.spec import StudySpec

pytestmark = pytest.mark.slow
#: Cells of the study: 2 policies at 2 loads with 20 seeds.
ALL = 80


@contextmanager
def process(*words: str, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of Dask, and end it."""
    started = subprocess.Popen([sys.executable, "-m", "dask", *words], cwd=cwd, stderr=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def worker(address: str, folder: Path) -> subprocess.Popen[bytes] | object:
    """Return a worker process with one thread and no nanny, which would replace it."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    return process("worker", address, *options, "--local-directory", str(folder), cwd=folder)


def command(folder: Path, address: str) -> subprocess.Popen[str]:
    """Start the study, as a shell does that lets Ctrl-C be heard."""

    def heard() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    options = ("--cells", "small.jsonl", "--shard", "1/1", "--dask", address)
    how = {"cwd": folder, "stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    return subprocess.Popen(words(folder / "small.toml", *options), preexec_fn=heard, **how)  # type: ignore[call-overload, no-any-return]


def played(folder: Path, more: int, study: subprocess.Popen[str]) -> int:
    """Wait until so many cells more are kept, and return how many there are; the study is still under way then."""
    file = folder / "small.jsonl"
    before = file.read_bytes().count(b'"cell"') if file.exists() else 0
    for _ in range(6000):
        found = file.read_bytes().count(b'"cell"') if file.exists() else 0
        if found >= before + more:
            return found
        assert study.poll() is None, study.communicate()[1]
        time.sleep(0.02)
    raise AssertionError(f"{found} cells after two minutes")


def test_workers_and_the_command_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    spec_file(tmp_path, spec_text(tmp_path).replace("seeds = 3", "seeds = 20"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        scheduler = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        stack.enter_context(process(*scheduler, cwd=tmp_path))
        first = stack.enter_context(worker(address, tmp_path))  # type: ignore[arg-type]
        # Ctrl-C in the midst of it: the command says how to go on, and the worker stays
        study = command(tmp_path, address)
        kept = played(tmp_path, 3, study)
        os.kill(study.pid, signal.SIGINT)
        said = study.communicate(timeout=60)[1]
        assert study.returncode == 130, said
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
        assert first.poll() is None
        # killed without a word
        study = command(tmp_path, address)
        kept = played(tmp_path, 3, study)
        study.kill()
        study.communicate()
        assert len(cells_of(tmp_path / "small.jsonl")) >= kept < ALL
        # the worker dies under the study, and another one comes
        study = command(tmp_path, address)
        played(tmp_path, 3, study)
        first.kill()
        stack.enter_context(worker(address, tmp_path))  # type: ignore[arg-type]
        said = study.communicate(timeout=240)[1]
        assert study.returncode == 0, said
    cells = cells_of(tmp_path / "small.jsonl")
    assert {each.status for each in cells} == {TrialStatus.PLAYED}
    assert len(cells) == len({each.key for each in cells}) == ALL
    spec = StudySpec.read(tmp_path / "small.toml")
    assert without_times(cells) == without_times([each for each in run_study(spec) if isinstance(each, StudyCell)])
